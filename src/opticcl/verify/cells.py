"""What ranks hold of the followed chunks while a schedule is replayed: labels and numbers of contributions.

A cell is a rank and a followed chunk. It holds two label words, sums modulo 2**64, and a saturating count of contributions.
A transfer of a range of chunks runs along the chunks of two ranks, a run of steps through the ranks with one chunk; so cells
lie rank by rank or chunk by chunk in memory, as the next step needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir import Collective, IntArray, Op
from opticcl.ir.collective import Holders
from opticcl.kernels import ROWS_OF_A_CALL, njit, worth_compiling
from opticcl.verify._cell_columns import play_run, play_step
from opticcl.verify.chunk_rows import followed_rows

__all__ = ["Cells", "first_holders"]

_SATURATED = 1 << 61  # the sum of two counts fits in 64 bits
_LAST = np.iinfo(np.int32).max

Words = npt.NDArray[np.uint64]
Counters = tuple[IntArray, IntArray, IntArray]


@dataclass(slots=True, eq=False)
class Cells:
    """Cells of some chunks at all ranks, changed by steps.

    Args:
        words: label words, uint64 (2, ranks, chunks); (2, chunks, ranks) where they lie chunk by chunk.
        held: contributions, int64, in the same order.
        expected: label words of the result of each chunk, uint64 (2, chunks).
        due: contributions in it, int64 (chunks,).
        chunk_first: whether they lie chunk by chunk.
    """

    words: Words
    held: IntArray
    expected: Words
    due: IntArray
    chunk_first: bool
    stamps: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.stamps = np.zeros((0, 0), np.int64)

    @classmethod
    def at_start(cls, c: Collective, chunks: IntArray, labels: Words, *, chunk_first: bool) -> Cells:
        """Each holder has its own label, or that of the first holder where all hold the same data.

        Args:
            c: collective.
            chunks: followed, ascending.
            labels: of each rank, uint64 (ranks, 2).
            chunk_first: whether the cells lie chunk by chunk at first.
        """
        ranks = 1 if chunk_first else 0  # the axis of ranks
        if isinstance(c.before, Holders) and c.before.kind == "all" and (c.reduces or c.keeps_apart):
            shape = (len(chunks), c.num_ranks) if chunk_first else (c.num_ranks, len(chunks))
            every = np.empty((2, *shape), np.uint64)
            every[:] = np.expand_dims(labels.T, 2 - ranks)
            expected = np.repeat(labels.sum(axis=0)[:, None], len(chunks), axis=1)
            return cls(every, np.ones(shape, np.int64), expected, np.full(len(chunks), c.num_ranks), chunk_first)
        held = np.array(c.before(*_pairs(c, chunks, chunk_first)), np.int64)
        first = first_holders(c, held if ranks == 0 else held.T)
        of_each = labels if first is None else labels[first]
        words = np.empty((2, *held.shape), np.uint64)
        for word, label in zip(words, of_each.T, strict=True):
            np.multiply(np.expand_dims(label, 1 - ranks if first is None else ranks), held.view(np.uint64), out=word)
        if first is None:
            return cls(words, held, words.sum(axis=1 + ranks), held.sum(axis=ranks), chunk_first)
        return cls(words, held, of_each.T, np.ones(len(chunks), np.int64), chunk_first)

    def wrong(self, c: Collective, chunks: IntArray) -> npt.NDArray[np.bool_]:
        """Cells that must hold the result and do not, bool (ranks, chunks).

        Args:
            c: collective.
            chunks: followed, ascending.
        """

        def of_all(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return values[:, None] if self.chunk_first else values

        found: npt.NDArray[np.bool_] = self.held != of_all(self.due)
        for word, expected in zip(self.words, self.expected, strict=True):
            found |= word != of_all(expected)
        found &= c.after(*_pairs(c, chunks, self.chunk_first))
        return found.T if self.chunk_first else found

    def play_step(self, columns: tuple[IntArray, ...], followed_below: IntArray, step: int) -> Counters:
        """One step: all sends see the cells as before it.

        Args:
            columns: src, dst, chunk_lo, chunk_n, op, parts; no parts where contributions are added.
            followed_below: number of followed chunks below each chunk, int32 (chunks + 1,).
            step: its number.
        Returns: (count, first row, its chunk, contributions held) of clashing writes, of sends of nothing, and of sends of a
            wrong size.
        """
        self._lie(chunk_first=False)
        src, dst, chunk_lo, chunk_n, op, parts = columns
        row, first, last = followed_rows(chunk_lo, chunk_n, followed_below)
        if not worth_compiling(int((last - first).sum()), _rows_apart):
            return play_step(src, dst, op, parts, row, first, last, self.words, self.held)
        apart, alone = _rows_apart(src, dst, op, row, first, last, len(self.held))
        if not (apart and alone) and not self.stamps.size:
            self.stamps = np.zeros(self.held.shape, np.int64)
        carried = (src, dst, op, parts, row, first, last, self.words, self.held, self.stamps, step + 1)
        return _play_apart(*carried, alone) if apart else _play_step(*carried)

    def play_block(
        self, columns: tuple[IntArray, ...], starts: IntArray, followed_below: IntArray, step: int
    ) -> tuple[int, Counters]:
        """Several steps, up to the first with a violation.

        Args:
            columns: as of `play_step`, of all steps, step after step.
            starts: row at which each step begins, and the number of rows, int64 (steps + 1,).
            followed_below: as of `play_step`.
            step: number of the first.
        Returns: number of steps that were played, and of the last of them what `play_step` returns.
        """
        self._lie(chunk_first=False)
        src, dst, chunk_lo, chunk_n, op, parts = columns
        row, first, last = followed_rows(chunk_lo, chunk_n, followed_below)
        if not self.stamps.size:
            self.stamps = np.zeros(self.held.shape, np.int64)
        carried = (src, dst, op, parts, row, first, last, self.words, self.held, self.stamps, step + 1)
        played, *found = _play_steps(*carried, np.searchsorted(row, starts))
        return int(played), (found[0], found[1], found[2])

    def play_run(self, columns: tuple[IntArray, ...], source: IntArray, count: int, parts_step: IntArray) -> IntArray:
        """All steps of a run.

        Args:
            columns: src, dst, op, parts of the base, and what `indexed_by_chunk` returns but for the last.
            source: the last: the place of each followed chunk in the first step, (members, chunks).
            count: steps.
            parts_step: what a step adds to the parts of each row.
        Returns: (count, row, chunk, contributions held, step of the run) of clashing writes, sends of nothing, sends of a wrong
            size, int64 (3, 5).
        """
        self._lie(chunk_first=True)
        if not worth_compiling(count * (source.size + ROWS_OF_A_CALL), _play_run):
            return play_run(columns, source, count, parts_step, self.words, self.held)
        src, dst, op, parts, rows, starts, inverse = columns
        base = (src, dst, op, parts, rows, starts, inverse, source, count, parts_step)
        return _play_run(*base, self.words, self.held)

    def _lie(self, *, chunk_first: bool) -> None:
        if chunk_first != self.chunk_first:
            self.words = np.ascontiguousarray(self.words.swapaxes(1, 2))
            self.held = np.ascontiguousarray(self.held.T)
            self.chunk_first = chunk_first


def _pairs(c: Collective, chunks: IntArray, chunk_first: bool) -> tuple[IntArray, IntArray]:
    """Ranks and chunks that broadcast to all cells."""
    ranks = np.arange(c.num_ranks)
    return (ranks, chunks[:, None]) if chunk_first else (ranks[:, None], chunks)


def first_holders(c: Collective, held: IntArray) -> IntArray | None:
    """First holder of each chunk, whose label is used where several ranks hold the same data at the start; None where each rank
    has a label of its own.

    Args:
        c: collective.
        held: contributions that each rank holds of each followed chunk, (num_ranks, chunks).
    """
    if c.reduces or c.keeps_apart or (held.sum(axis=0) <= 1).all():
        return None
    first: IntArray = np.argmax(held > 0, axis=0)
    return first


@njit
def _rows_apart(src, dst, op, row, first, last, num_ranks):  # type: ignore[no-untyped-def]
    """Whether no cell is both sent and written in a step, and whether no copy can meet another write; both judged by the first
    and the last chunk that each rank sends and receives, so that a no is not certain."""
    sent_lo, written_lo = np.empty(num_ranks, np.int32), np.empty(num_ranks, np.int32)
    for rank in range(num_ranks):
        sent_lo[rank], written_lo[rank] = _LAST, _LAST
    sent_hi, written_hi = np.zeros(num_ranks, np.int32), np.zeros(num_ranks, np.int32)
    writes, copied = np.zeros(num_ranks, np.int32), np.zeros(num_ranks, np.bool_)
    for i in range(len(row)):
        s, d = src[row[i]], dst[row[i]]
        sent_lo[s], sent_hi[s] = min(sent_lo[s], first[i]), max(sent_hi[s], last[i])
        written_lo[d], written_hi[d] = min(written_lo[d], first[i]), max(written_hi[d], last[i])
        writes[d] += 1
        copied[d] |= op[row[i]] == Op.COPY
    apart, alone = True, True
    for rank in range(num_ranks):
        apart &= (sent_hi[rank] <= written_lo[rank]) | (written_hi[rank] <= sent_lo[rank])
        alone &= (writes[rank] <= 1) | (not copied[rank])
    return apart, alone


@njit
def _note(counter, row, k, there):  # type: ignore[no-untyped-def]
    """Count a violation, and keep the first."""
    counter[0] += 1
    if counter[0] == 1:
        counter[1], counter[2], counter[3] = row, k, there


@njit
def _play_apart(  # type: ignore[no-untyped-def]
    src, dst, op, parts, row, first, last, words, held, stamps, step, alone
):
    """One step in which no cell is both sent and written, in place, row by row; cells that are moved are cleared at its end.

    row, first, last: rows that carry followed chunks, as `followed_rows` returns them. Where `alone` is false, a stamp of
    2 step + (op is not a copy) marks what was written in this step, counted from 1: a copy excludes any other write.
    """
    clashes, not_held, wrong_size = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64)
    moves = False
    for i in range(len(row)):
        t = row[i]
        s, d, f, n = src[t], dst[t], first[i], last[i] - first[i]
        moves |= op[t] & Op.MOVE > 0
        source, target = held[s, f : f + n], held[d, f : f + n]
        least = _SATURATED
        for k in range(n):
            least = min(least, source[k])
        if least == 0 or len(parts):
            for k in range(n):
                if source[k] == 0:
                    _note(not_held, t, f + k, 0)
                elif len(parts) and parts[t] != source[k]:
                    _note(wrong_size, t, f + k, source[k])
        if not alone:
            for k in range(f, f + n):
                if stamps[d, k] >= 2 * step and (op[t] == Op.COPY or stamps[d, k] == 2 * step):
                    _note(clashes, t, k, 0)
                stamps[d, k] = 2 * step + (op[t] != Op.COPY)
        a, b, x, y = words[0, s, f : f + n], words[1, s, f : f + n], words[0, d, f : f + n], words[1, d, f : f + n]
        if op[t] == Op.COPY:
            for k in range(n):
                x[k] = a[k]
            for k in range(n):
                y[k] = b[k]
            for k in range(n):
                target[k] = source[k]
        else:
            for k in range(n):
                x[k] += a[k]
            for k in range(n):
                y[k] += b[k]
            for k in range(n):
                target[k] = min(target[k] + source[k], _SATURATED)
    if moves:
        for i in range(len(row)):
            if op[row[i]] & Op.MOVE:
                s = src[row[i]]
                for k in range(first[i], last[i]):
                    words[0, s, k] = 0
                    words[1, s, k] = 0
                    held[s, k] = 0
    return clashes, not_held, wrong_size


@njit
def _play_step(src, dst, op, parts, row, first, last, words, held, stamps, step):  # type: ignore[no-untyped-def]
    """One step, in place: gather what is sent, clear what is moved, then add or store it; arguments as of `_play_apart`."""
    clashes, not_held, wrong_size = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64)
    total = 0
    for i in range(len(row)):
        total += last[i] - first[i]
    sent = np.empty((total, 2), np.uint64)
    sent_held = np.empty(total, np.int64)
    at, moves, copied = 0, False, False
    for i in range(len(row)):
        t = row[i]
        s = src[t]
        moves = moves or op[t] & Op.MOVE > 0
        copied = copied or op[t] == Op.COPY
        for k in range(first[i], last[i]):
            sent[at, 0] = words[0, s, k]
            sent[at, 1] = words[1, s, k]
            there = held[s, k]
            sent_held[at] = there
            if there == 0:
                _note(not_held, t, k, 0)
            elif len(parts) and parts[t] != there:
                _note(wrong_size, t, k, there)
            at += 1
    if moves:
        for i in range(len(row)):
            t = row[i]
            if op[t] & Op.MOVE:
                for k in range(first[i], last[i]):
                    words[0, src[t], k] = 0
                    words[1, src[t], k] = 0
                    held[src[t], k] = 0
    at = 0
    for i in range(len(row)):
        t = row[i]
        d = dst[t]
        for k in range(first[i], last[i]):
            if copied:  # sums alone never clash
                stamp = stamps[d, k]
                if stamp >= 2 * step and (op[t] == Op.COPY or stamp == 2 * step):
                    _note(clashes, t, k, 0)
                stamps[d, k] = 2 * step + (op[t] != Op.COPY)
            if op[t] == Op.COPY:
                words[0, d, k] = sent[at, 0]
                words[1, d, k] = sent[at, 1]
                held[d, k] = sent_held[at]
            else:
                words[0, d, k] += sent[at, 0]
                words[1, d, k] += sent[at, 1]
                held[d, k] = min(held[d, k] + sent_held[at], _SATURATED)
            at += 1
    return clashes, not_held, wrong_size


@njit
def _play_steps(  # type: ignore[no-untyped-def]
    src, dst, op, parts, row, first, last, words, held, stamps, step, starts
):
    """Steps one after the other, up to the first with a violation; step k has the entries of `row` from starts[k] on."""
    played = 0
    found = (np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64))
    while played < len(starts) - 1 and not (found[0][0] or found[1][0] or found[2][0]):
        a, b = starts[played], starts[played + 1]
        found = _play_step(src, dst, op, parts, row[a:b], first[a:b], last[a:b], words, held, stamps, step + played)
        played += 1
    return played, found[0], found[1], found[2]


@njit
def _first_in_run(counter, turn, row, k, there):  # type: ignore[no-untyped-def]
    """Count a violation, and keep that of the first step, of its first chunk."""
    counter[0] += 1
    if counter[0] == 1 or turn < counter[4]:
        counter[1], counter[2], counter[3], counter[4] = row, k, there, turn


@njit
def _play_run(  # type: ignore[no-untyped-def]
    src, dst, op, parts, rows, starts, inverse, source, count, parts_step, words, held
):
    """All steps of a run, in place, one chunk after the other, since chunks do not interact.

    `source[m, k]` is the place in the base of member m of what the first step carries of chunk k; `inverse` leads from the
    place in a step to that in the next. `words` and `held` lie chunk by chunk.
    """
    found = np.zeros((3, 5), np.int64)
    members, chunks = source.shape
    ranks = held.shape[1]
    most = 0
    for at in range(len(starts) - 1):
        most = max(most, starts[at + 1] - starts[at])
    row, sent_held = np.empty(most * members, np.int64), np.empty(most * members, np.int64)
    sent_first, sent_second = np.empty(most * members, np.uint64), np.empty(most * members, np.uint64)
    # the step, through all chunks, that last wrote to a rank, and whether it added
    written, summed = np.empty(ranks, np.int64), np.empty(ranks, np.bool_)
    for rank in range(ranks):
        written[rank] = -1
    place = np.empty(members, np.int64)
    for k in range(chunks):
        first, second, there = words[0, k], words[1, k], held[k]
        for m in range(members):
            place[m] = source[m, k]
        for turn in range(count):
            step = k * count + turn
            n, moves = 0, False
            for m in range(members):
                for r in range(starts[place[m]], starts[place[m] + 1]):
                    row[n] = rows[r]
                    n += 1
                place[m] = inverse[place[m]]
            for i in range(n):
                t = row[i]
                s = src[t]
                moves |= op[t] & Op.MOVE > 0
                sent_first[i], sent_second[i], sent_held[i] = first[s], second[s], there[s]
                if there[s] == 0:
                    _first_in_run(found[1], turn, t, k, 0)
                elif len(parts) and parts[t] + turn * parts_step[t] != there[s]:
                    _first_in_run(found[2], turn, t, k, there[s])
            if moves:
                for i in range(n):
                    if op[row[i]] & Op.MOVE:
                        s = src[row[i]]
                        first[s], second[s], there[s] = 0, 0, 0
            for i in range(n):
                t = row[i]
                d = dst[t]
                copies = op[t] == Op.COPY
                if n > 1:
                    if written[d] == step and (copies or not summed[d]):
                        _first_in_run(found[0], turn, t, k, 0)
                    written[d] = step
                    summed[d] = not copies
                if copies:
                    first[d], second[d], there[d] = sent_first[i], sent_second[i], sent_held[i]
                else:
                    first[d] += sent_first[i]
                    second[d] += sent_second[i]
                    there[d] = min(there[d] + sent_held[i], _SATURATED)
    return found
