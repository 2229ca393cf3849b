"""Steps and runs of cells with NumPy: what the kernels of `cells.py` do, for few transfers.

Every transfer of one chunk is an entry: the cell that sends it and the cell that it is written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray, Op

__all__ = ["play_run", "play_step"]

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Places = tuple[IntArray, IntArray]

_SATURATED = 1 << 61
_HALF_BITS, _HALF = 31, (1 << 31) - 1


class _Faults(NamedTuple):
    """Entries that break a rule, bool (entries,) each, and what the sender held, int64 (entries,)."""

    clash: Mask
    not_held: Mask
    wrong_size: Mask
    there: IntArray

    def of_each_rule(self) -> tuple[tuple[Mask, IntArray], ...]:
        """Each rule's entries, and the number that is reported of an entry."""
        nothing = np.zeros(len(self.there), np.int64)
        return (self.clash, nothing), (self.not_held, nothing), (self.wrong_size, self.there)


def play_step(
    src: IntArray,
    dst: IntArray,
    op: npt.NDArray[np.uint8],
    parts: IntArray,
    row: IntArray,
    first: IntArray,
    last: IntArray,
    words: Words,
    held: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """One step, in place.

    Args:
        src, dst, op, parts: columns of the step; no parts where contributions are added.
        row, first, last: as `followed_rows` returns them.
        words: label words (2, ranks, chunks), changed.
        held: contributions (ranks, chunks), changed.
    Returns: as `Cells.play_step`.
    """
    many = (last - first).astype(np.int64)
    t, k = np.repeat(row, many), _counted(first, many)
    faults = _play(words, held, (src[t], k), (dst[t], k), op[t], parts[t] if len(parts) else None)
    counters = np.zeros((3, 4), np.int64)
    for counter, (wrong, there) in zip(counters, faults.of_each_rule(), strict=True):
        if wrong.any():
            at = wrong.argmax()
            counter[:] = wrong.sum(), t[at], k[at], there[at]
    return counters[0], counters[1], counters[2]


def play_run(
    columns: Sequence[IntArray],
    source: IntArray,
    count: int,
    parts_step: IntArray,
    words: Words,
    held: IntArray,
) -> IntArray:
    """All steps of a run, in place.

    Args:
        columns, source, count, parts_step: as of `Cells.play_run`.
        words: label words (2, chunks, ranks), changed.
        held: contributions (chunks, ranks), changed.
    Returns: as `Cells.play_run`.
    """
    src, dst, op, parts, rows, starts, inverse = columns
    found = np.zeros((3, 5), np.int64)
    chunk = np.repeat(np.arange(source.shape[1]), source.shape[0])
    place = source.T.ravel()  # chunk by chunk, and of each member by member
    for turn in range(count):
        many = starts[place + 1] - starts[place]
        t, k = rows[_counted(starts[place], many)], np.repeat(chunk, many)
        due = parts[t] + turn * parts_step[t] if len(parts) else None
        faults = _play(words, held, (k, src[t]), (k, dst[t]), op[t], due)
        for counter, (wrong, there) in zip(found, faults.of_each_rule(), strict=True):
            if not wrong.any():
                continue
            if not counter[0]:
                at = wrong.argmax()
                counter[1:] = t[at], k[at], there[at], turn
            counter[0] += wrong.sum()
        place = inverse[place]
    return found


def _counted(begin: IntArray, many: IntArray) -> IntArray:
    """begin[i], begin[i] + 1, ... of each i, as many as it has."""
    return np.repeat(begin - (np.cumsum(many) - many), many) + np.arange(many.sum())


def _play(
    words: Words, held: IntArray, sent: Places, written: Places, op: npt.NDArray[np.uint8], parts: IntArray | None
) -> _Faults:
    """Entries of one step, in place: all are read, then what moves is cleared, then they are written one after the other.

    Args:
        words, held: cells in rows and columns; changed.
        sent, written: row and column of the cells of each entry.
        op: of each entry.
        parts: contributions that each entry says it carries.
    """
    labels, there = words[:, *sent], held[sent]
    not_held = there == 0
    wrong_size = np.zeros(len(op), np.bool_) if parts is None else ~not_held & (parts != there)
    moved = np.flatnonzero(op & Op.MOVE)
    if len(moved):
        cleared = sent[0][moved], sent[1][moved]
        words[:, *cleared], held[cleared] = 0, 0
    clash = np.zeros(len(op), np.bool_)
    if not len(op):
        return _Faults(clash, not_held, wrong_size, there)
    cell = written[0].astype(np.int64) * held.shape[1] + written[1]
    order = np.argsort(cell, kind="stable")
    cell, copies = cell[order], op[order] == Op.COPY
    again = cell[1:] == cell[:-1]
    clash[order[1:][again & (copies[1:] | copies[:-1])]] = True
    begin = np.flatnonzero(np.concatenate([[True], ~again]))
    at = np.arange(len(op))
    from_copy = np.maximum.reduceat(np.where(copies, at, -1), begin)  # the last copy, which replaces what was before it
    lost = at < np.repeat(from_copy, np.diff(begin, append=len(op)))
    labels, carried = labels[:, order], there[order]
    labels[:, lost], carried[lost] = 0, 0
    cells = written[0][order[begin]], written[1][order[begin]]
    added = from_copy < 0
    words[:, *cells] = np.add.reduceat(labels, begin, axis=1) + np.where(added, words[:, *cells], 0)
    held[cells] = _least_saturated(carried, begin, np.where(added, held[cells], 0))
    return _Faults(clash, not_held, wrong_size, there)


def _least_saturated(values: IntArray, begin: IntArray, more: IntArray) -> IntArray:
    """Sums of neighbours from each place up to the next, and of one number more each, at most `_SATURATED`."""
    low = np.add.reduceat(values & _HALF, begin) + (more & _HALF)
    high = np.add.reduceat(values >> _HALF_BITS, begin) + (more >> _HALF_BITS) + (low >> _HALF_BITS)
    most = _SATURATED >> _HALF_BITS
    return np.where(high >= most, _SATURATED, (np.minimum(high, most) << _HALF_BITS) + (low & _HALF))
