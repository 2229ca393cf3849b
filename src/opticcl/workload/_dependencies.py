"""Which node of a trace names which others, as columns: kept as bytes while the trace is read, decoded in one go.

A trace of 3 MB has a hundred thousand dependencies, which are most of its varints.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Decoded", "IdLists", "Oddities", "oddities"]

BLOCK = 2**20  # bytes that are decoded at a time

Ids = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


class Decoded(NamedTuple):
    """Lists of ids.

    Args:
        ids: of all rows, one after the other.
        starts: where each row starts; one place more than there are rows.
    """

    ids: Ids
    starts: Places

    def row(self, i: int) -> list[int]:
        """The ids of a row."""
        found: list[int] = self.ids[self.starts[i] : self.starts[i + 1]].tolist()
        return found


class IdLists:
    """Lists of ids, one a row, as protobuf packs them: varints, none of which may be cut.

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
        """One more row."""
        self._packed += packed
        self._ends.append(len(self._packed))

    @property
    def held_bytes(self) -> int:
        """Memory that it takes [bytes]."""
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
    """The numbers of varints that follow each other."""
    last = np.flatnonzero(data < 128)
    first = np.concatenate([[0], last[:-1] + 1])[: len(last)]
    length = last - first + 1
    ids = (data[first] & 127).astype(np.uint64)
    for k in range(1, int(length.max(initial=1))):
        longer = np.flatnonzero(length > k)
        ids[longer] |= (data[first[longer] + k] & 127).astype(np.uint64) << np.uint64(7 * k)
    return ids


class Oddities(NamedTuple):
    """What is odd about a graph.

    Args:
        doubled: nodes with an id that an earlier one has [count].
        dangling: dependencies on ids that no node has [count].
        unknown: those ids [count].
        closing: dependencies that lead back to a node that is being followed, depth first [count].
        circle: the first such circle, by ids.
    """

    doubled: int
    dangling: int
    unknown: int
    closing: int
    circle: tuple[int, ...]


def oddities(ids: Ids, needs: IdLists) -> Oddities:
    """What is odd about nodes with these ids, a row each, that need those others. Nodes of one id count as one."""
    named, starts = needs.decoded()
    known, first_row, known_of = np.unique(ids, return_index=True, return_inverse=True)
    # A node is known by its first row, so that nodes are followed in the order of the file.
    first_row = first_row.astype(np.int32)
    found = np.minimum(np.searchsorted(known, named).astype(np.int32), len(known) - 1)
    dangles = known[found] != named
    needed = first_row[found[~dangles]]
    needing = np.repeat(first_row[known_of], np.diff(starts))[~dangles]
    in_order = np.argsort(needing, kind="stable")
    bounds = np.searchsorted(needing[in_order], np.arange(len(ids) + 1))
    closing, circle = _circles(bounds, needed[in_order])
    return Oddities(
        len(ids) - len(known),
        int(dangles.sum()),
        len(np.unique(named[dangles])),
        closing,
        tuple(int(ids[row]) for row in circle),
    )


def _circles(bounds: Places, needed: npt.NDArray[np.int32]) -> tuple[int, list[int]]:
    """Follows all dependencies, depth first; row r needs needed[bounds[r]:bounds[r + 1]].

    Returns: how many lead back to a row that is being followed; the rows of the first such circle, its first also last.
    """
    on_path, done = 1, 2
    state = bytearray(len(bounds) - 1)
    closing, circle = 0, list[int]()

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
                    circle = circle or [*path[path.index(row) :], row]
                elif not state[row]:
                    state[row] = on_path
                    path.append(row)
                    ahead.append(needs(row))
                    break
            else:
                state[path.pop()] = done
                ahead.pop()
    return closing, circle
