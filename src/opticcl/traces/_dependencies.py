"""Dependencies of the nodes of a trace as columns: kept as packed bytes while the trace is read, decoded together.

A trace of 3 MB has a hundred thousand dependencies, which are most of its varints.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Decoded", "IdLists", "Irregularities", "irregularities"]

BLOCK = 2**20  # bytes that are decoded at a time

Ids = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


class Decoded(NamedTuple):
    """Lists of ids.

    Args:
        ids: of all rows, one after the other.
        starts: offset of each row, and the end of the last.
    """

    ids: Ids
    starts: Places

    def row(self, i: int) -> list[int]:
        """The ids of a row."""
        ids: list[int] = self.ids[self.starts[i] : self.starts[i + 1]].tolist()
        return ids


class IdLists:
    """Lists of ids, one per row, as packed varints of protobuf.

    >>> lists = IdLists()
    >>> for packed in (bytes([1, 172, 2]), b"", bytes([9])):
    ...     lists.append(packed)
    >>> [lists.decoded().row(i) for i in range(3)]
    [[1, 300], [], [9]]
    """

    def __init__(self) -> None:
        self._packed = bytearray()
        self._ends = array("q", [0])

    def append(self, packed: bytes) -> None:
        """Append a row."""
        self._packed += packed
        self._ends.append(len(self._packed))

    @property
    def held_bytes(self) -> int:
        """Memory in use [bytes]."""
        return len(self._packed) + 8 * len(self._ends)

    def decoded(self) -> Decoded:
        """The ids."""
        data, ends = np.frombuffer(self._packed, np.uint8), np.frombuffer(self._ends, np.int64)
        ids, lengths = [_varints(data[:0])], [np.zeros(1, np.int64)]
        row = 0
        while row < len(ends) - 1:
            upto = max(row + 1, int(np.searchsorted(ends, ends[row] + BLOCK)) - 1)
            part = data[ends[row] : ends[upto]]
            ids.append(_varints(part))
            before = np.concatenate([[0], np.cumsum(part < 128)])  # ids that end before each byte
            lengths.append(np.diff(before[ends[row : upto + 1] - ends[row]]))
            row = upto
        return Decoded(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))


def _varints(data: npt.NDArray[np.uint8]) -> Ids:
    """The values of consecutive varints."""
    last = np.flatnonzero(data < 128)
    first = np.concatenate([[0], last[:-1] + 1])[: len(last)]
    length = last - first + 1
    ids = (data[first] & 127).astype(np.uint64)
    for k in range(1, int(length.max(initial=1))):
        longer = np.flatnonzero(length > k)
        ids[longer] |= (data[first[longer] + k] & 127).astype(np.uint64) << np.uint64(7 * k)
    return ids


class Irregularities(NamedTuple):
    """Irregularities of a graph.

    Args:
        doubled: nodes with the id of an earlier one [count].
        dangling: dependencies on unknown ids [count].
        unknown: these ids [count].
        closing: back edges of a depth-first search [count].
        cycle: the first cycle, by ids.
    """

    doubled: int
    dangling: int
    unknown: int
    closing: int
    cycle: tuple[int, ...]


def irregularities(ids: Ids, needs: IdLists) -> Irregularities:
    """Irregularities of a graph whose nodes have these ids and dependencies. Nodes of one id count as one."""
    named, starts = needs.decoded()
    known, first_row, known_of = np.unique(ids, return_index=True, return_inverse=True)
    # A node is identified by its first row, so that the search follows the order of the file.
    first_row = first_row.astype(np.int32)
    place = np.minimum(np.searchsorted(known, named).astype(np.int32), len(known) - 1)
    dangles = known[place] != named
    needed = first_row[place[~dangles]]
    needing = np.repeat(first_row[known_of], np.diff(starts))[~dangles]
    in_order = np.argsort(needing, kind="stable")
    bounds = np.searchsorted(needing[in_order], np.arange(len(ids) + 1))
    closing, cycle = _cycles(bounds, needed[in_order])
    return Irregularities(
        len(ids) - len(known),
        int(dangles.sum()),
        len(np.unique(named[dangles])),
        closing,
        tuple(int(ids[row]) for row in cycle),
    )


def _cycles(bounds: Places, needed: npt.NDArray[np.int32]) -> tuple[int, list[int]]:
    """Depth-first search over all dependencies; row r depends on needed[bounds[r]:bounds[r + 1]].

    Returns: number of back edges; rows of the first cycle, its first also last.
    """
    on_path, done = 1, 2
    state = bytearray(len(bounds) - 1)
    closing, cycle = 0, list[int]()

    def needs(row: int) -> Iterator[int]:
        return iter(needed[bounds[row] : bounds[row + 1]].tolist())

    for start in np.flatnonzero(np.diff(bounds)).tolist():
        if state[start]:
            continue
        state[start] = on_path
        path, ahead = [start], [needs(start)]
        while path:
            for row in ahead[-1]:
                if state[row] == on_path:
                    closing += 1
                    cycle = cycle or [*path[path.index(row) :], row]
                elif not state[row]:
                    state[row] = on_path
                    path.append(row)
                    ahead.append(needs(row))
                    break
            else:
                state[path.pop()] = done
                ahead.pop()
    return closing, cycle
