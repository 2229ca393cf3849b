"""Sets of contributors in place of random labels: no probability is left for the chunks that are followed.

Each rank has, for each followed chunk, a bit for each contributor, and a mark that is set where an added set overlaps with
the set already held, since one contribution is then counted twice. COPY, REDUCE and MOVE pass the mark on. A count never
shrinks, so a result without the mark that has exactly the bits that are due is right. Contributors are divided into blocks, so
that memory is bounded; each block replays the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opticcl.ir import Collective, IntArray, Op, Schedule, Transfers, Violation, concatenate_transfers
from opticcl.ir.symmetry import Run
from opticcl.kernels import njit
from opticcl.verify.chunk_rows import followed_rows, indexed_by_chunk, with_neighbours_alone
from opticcl.verify.symmetry import runs_of

__all__ = ["check_sets"]

MOST_WORDS = 1 << 25  # of all sets together: 256 MB
MOST_EVENTS = 1 << 22  # of a run, evaluated at once


class ChunkEvents(NamedTuple):
    """Transfers of single chunks, in the order of their steps; int64 (events,) each.

    Args:
        step: number of the step.
        src, dst: ranks.
        op: operation.
        chunk: position among the followed chunks.
    """

    step: IntArray
    src: IntArray
    dst: IntArray
    op: IntArray
    chunk: IntArray


def check_sets(schedule: Schedule, chunks: IntArray) -> list[Violation]:
    """Violations of the first wrong set, or none.

    Args:
        schedule: that was replayed on labels without a violation.
        chunks: to be followed, ascending.
    """
    c = schedule.collective
    single = not (c.reduces or c.keeps_apart)  # all holders hold the same data, which is one contribution
    contributors = 1 if single else c.num_ranks
    words = min(-(-contributors // 64), max(1, MOST_WORDS // c.num_ranks))
    at_once = max(1, MOST_WORDS // (c.num_ranks * words))
    for first in range(0, len(chunks), at_once):
        block = chunks[first : first + at_once]
        for low in range(0, contributors, 64 * words):
            found = _check_block(schedule, block, low, words, single)
            if found:
                return [found]
    return []


def _check_block(schedule: Schedule, chunks: IntArray, low: int, words: int, single: bool) -> Violation | None:
    """The first wrong set of some chunks.

    Args:
        schedule: to be checked.
        chunks: followed.
        low: first contributor of the block.
        words: of 64 contributors each [count].
        single: whether there is one contributor.
    """
    c = schedule.collective
    ranks = np.arange(c.num_ranks)
    held = np.array(c.before(ranks[:, None], chunks[None, :]), bool)
    sets = np.zeros((c.num_ranks, len(chunks), words), np.uint64)
    due = np.zeros((len(chunks), words), np.uint64)
    for rank in range(low, min(low + 64 * words, c.num_ranks)) if not single else ():
        word, bit = divmod(rank - low, 64)
        mine = held[rank].astype(np.uint64) << np.uint64(bit)
        sets[rank, :, word] = mine
        due[:, word] |= mine
    if single:
        sets[:, :, 0] = held
        due[:, 0] = held.any(axis=0)
    marked = np.zeros((c.num_ranks, len(chunks)), np.bool_)
    for events in _events(schedule, chunks):
        _play_sets(*events, sets, marked)
    wanted = np.broadcast_to(c.after(ranks[:, None], chunks[None, :]), marked.shape)
    wrong = wanted & (marked | (sets != due[None]).any(axis=2))
    if not wrong.any():
        return None
    rank, k = (int(index) for index in np.argwhere(wrong)[0])
    rule = "contribution_doubled" if marked[rank, k] else "contribution_missing"
    where = f"chunk {chunks[k]} at rank {rank}"
    return Violation(rule, -1, -1, where, "each contribution once", "another set", int(wrong.sum()))


def _events(schedule: Schedule, chunks: IntArray) -> Iterator[ChunkEvents]:
    """Transfers of the followed chunks, some steps at a time."""
    c, start = schedule.collective, 0
    below = np.searchsorted(chunks, np.arange(c.num_chunks + 1)).astype(np.int32)
    for run in runs_of(schedule):
        bases = [with_neighbours_alone(member.base())[0] for member in run.members]
        step = bases[0] if len(bases) == 1 else concatenate_transfers(bases)
        if run.count == 1:
            row, chunk = _carried(step.chunk_lo, step.chunk_n, below)
            yield _events_of(step, np.full(len(row), start), row, chunk)
        else:
            yield from _run_events(run, bases, step, chunks, start, c)
        start += run.count


def _carried(chunk_lo: IntArray, chunk_n: IntArray, below: IntArray) -> tuple[IntArray, IntArray]:
    """Rows that carry followed chunks, one entry for each of them, and the chunks."""
    row, first, last = followed_rows(chunk_lo, chunk_n, below)
    counts = (last - first).astype(np.int64)
    chunk = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return np.repeat(row.astype(np.int64), counts), chunk


def _events_of(step: Transfers, number: IntArray, row: IntArray, chunk: IntArray) -> ChunkEvents:
    columns = (step.src[row], step.dst[row], step.op[row], chunk)
    return ChunkEvents(number.astype(np.int64), *(np.asarray(column, np.int64) for column in columns))


def _run_events(
    run: Run, bases: Sequence[Transfers], step: Transfers, chunks: IntArray, start: int, c: Collective
) -> Iterator[ChunkEvents]:
    """Events of a run, as many steps at once as `MOST_EVENTS` allows.

    Args:
        run: with those beside it.
        bases: first steps of its members.
        step: all of them.
        chunks: followed.
        start: number of the first step.
        c: collective.
    """
    rows, starts, inverse, source = indexed_by_chunk(run, bases, chunks, c)
    most = int(np.diff(starts).max(initial=0)) * source.size
    at_once = max(1, MOST_EVENTS // max(1, most))
    for turn in range(0, run.count, at_once):
        number, row, chunk = _list_events(rows, starts, inverse, source, min(at_once, run.count - turn), most)
        yield _events_of(step, start + turn + number, row, chunk)


@njit
def _list_events(rows, starts, inverse, source, count, most):  # type: ignore[no-untyped-def]
    """Step, row and chunk of the next steps of a run; `source` is changed from step to step."""
    step = np.empty(count * most, np.int64)
    row = np.empty(count * most, np.int64)
    chunk = np.empty(count * most, np.int64)
    at = 0
    members, chunks = source.shape
    for turn in range(count):
        for k in range(chunks):
            for m in range(members):
                for r in range(starts[source[m, k]], starts[source[m, k] + 1]):
                    step[at], row[at], chunk[at] = turn, rows[r], k
                    at += 1
                source[m, k] = inverse[source[m, k]]
    return step[:at], row[:at], chunk[:at]


@njit
def _play_sets(step, src, dst, op, chunk, sets, marked):  # type: ignore[no-untyped-def]
    """Carry out events in place: all sends of a step see the data before it."""
    words = sets.shape[2]
    begin = 0
    while begin < len(step):
        end = begin
        while end < len(step) and step[end] == step[begin]:
            end += 1
        sent = np.empty((end - begin, words), np.uint64)
        mark = np.empty(end - begin, np.bool_)
        for e in range(begin, end):
            sent[e - begin] = sets[src[e], chunk[e]]
            mark[e - begin] = marked[src[e], chunk[e]]
        for e in range(begin, end):
            if op[e] & Op.MOVE:
                sets[src[e], chunk[e]] = 0
                marked[src[e], chunk[e]] = False
        for e in range(begin, end):
            d, k = dst[e], chunk[e]
            if op[e] == Op.COPY:
                sets[d, k] = sent[e - begin]
                marked[d, k] = mark[e - begin]
            else:
                for w in range(words):
                    marked[d, k] |= (sets[d, k, w] & sent[e - begin, w]) != 0
                    sets[d, k, w] |= sent[e - begin, w]
                marked[d, k] |= mark[e - begin]
        begin = end
