"""The player: transfers that carry a chunk are played in order, and what each rank holds is counted in whole numbers.

Forwards, a rank holds a number of contributions. A rank that holds none cannot send; of contributions that are kept apart it
sends as many as it has; a chunk is written once in a step, or added to.

Backwards, from a rank whose result is judged: how often is the contribution of each rank in it? What a transfer brings to
its receiver is as often in the value of its sender; a copy replaces what was there; a sender that gives a chunk up has it no
more. At the start every holder must be found exactly once, and no one else. Sixty-four results are followed at a time, as
bits: one word of a rank says in which of them it is at least once, another in which at least twice. Results that are copies
of one value at the end of a plan are one result.

Everything is exact: nothing is drawn at random, and no number of contributions is too large to be distinguished from one that
is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opticcl.ir import IntArray, Op
from opticcl.ir.collective import Holders
from opticcl.ir.phases import ChunkEvents
from opticcl.kernels import njit

__all__ = ["ALL", "ONE", "TABLE", "columns_of", "play_events", "rows_by_chunk"]

ALL, ONE, TABLE = range(3)
"""Who holds a chunk: all ranks, one rank, those of a table."""

MOST_HELD = 1 << 61
"""Contributions beyond which a count stays as it is: no result is right with more."""

_COPY, _SUM, _GIVES_UP = int(Op.COPY), int(Op.REDUCE), int(Op.MOVE)

OVERWRITTEN, NOT_HELD, OTHER_SIZE = range(3)
"""Rules that a transfer breaks: rows of the counters of `play`."""


NO_RANKS, NO_TABLE = np.zeros(1, np.int64), np.zeros((1, 1), bool)


def columns_of(holders: Any, chunks: IntArray, num_ranks: int) -> tuple[int, IntArray, np.ndarray]:
    """Holders of chunks as `play` takes them: kind, the rank of each, a table.

    Args:
        holders: predicate of a collective.
        chunks: int (n,).
        num_ranks: ranks [count].
    """
    if isinstance(holders, Holders):
        if holders.kind == "all":
            return ALL, NO_RANKS, NO_TABLE
        if holders.kind == "root":
            return ONE, np.full(len(chunks), holders.root, np.int64), NO_TABLE
        assert holders.owners is not None
        return ONE, holders.owners[chunks].astype(np.int64), NO_TABLE
    table = np.broadcast_to(holders(np.arange(num_ranks), chunks[:, None]), (len(chunks), num_ranks))
    return TABLE, NO_RANKS, np.ascontiguousarray(table)


def play_events(
    events: ChunkEvents,
    starts: IntArray,
    rows: IntArray,
    before: Any,
    after: Any,
    *,
    sums: bool,
    num_ranks: int,
    apart: bool = False,
    stale: bool = False,
    num_places: int | None = None,
) -> Any:
    """What `play` returns, whatever the types of the columns, for which it is compiled once.

    Args: as of `play`; `num_places` None: the ranks alone.
    """
    ends = (column.astype(np.int32, copy=False) for column in (events.step, events.src, events.dst))
    op, parts = events.op.astype(np.uint8, copy=False), events.parts.astype(np.int32, copy=False)
    places = num_ranks if num_places is None else num_places
    played = play.for_turns(len(rows) + (len(starts) - 1) * num_ranks)
    return played(starts, rows, *ends, op, parts, before, after, sums, apart, stale, num_ranks, places)


@njit(writes=())
def rows_by_chunk(lo, n, distance, first, last):  # type: ignore[no-untyped-def]
    """Rows that carry each chunk from first to before last, in order: (starts, rows).

    Args:
        lo, n, distance: chunks of each row, int (rows,) each.
        first, last: chunks.
    """
    starts = np.zeros(last - first + 1, np.int64)
    for row in range(len(lo)):
        for at in range(n[row]):
            chunk = lo[row] + at * distance[row]
            if first <= chunk < last:
                starts[chunk - first + 1] += 1
    for chunk in range(last - first):
        starts[chunk + 1] += starts[chunk]
    place = starts[:-1].copy()
    rows = np.empty(starts[-1], np.int32)
    for row in range(len(lo)):
        for at in range(n[row]):
            chunk = lo[row] + at * distance[row]
            if first <= chunk < last:
                rows[place[chunk - first]] = row
                place[chunk - first] += 1
    return starts, rows


@njit
def _holds(kind, one, table, chunk, rank, num_ranks):  # type: ignore[no-untyped-def]
    """Whether a place is a rank that holds a chunk, of holders as `play` takes them."""
    if kind == ALL or rank >= num_ranks:
        return rank < num_ranks
    return one[chunk] == rank if kind == ONE else table[chunk, rank]


@njit
def _count(broken, rule, entry, chunk, held):  # type: ignore[no-untyped-def]
    """Count that a rule is broken, and keep where it is first."""
    if broken[rule, 0] == 0:
        broken[rule, 1] = entry
        broken[rule, 2] = chunk
        broken[rule, 3] = held
    broken[rule, 0] += 1


@njit(writes=())
def play(  # type: ignore[no-untyped-def]
    starts, rows, step, src, dst, op, parts, before, after, sums, apart, stale, num_ranks, num_places
):
    """Play chunks one after the other.

    Args:
        starts: first entry of `rows` of each chunk, and their number, int64 (chunks + 1,).
        rows: transfers that carry each chunk, in the order of the steps.
        step, src, dst, op, parts: of the transfers.
        before, after: who holds each chunk at the start, and must hold it at the end: kind, rank (chunks,), table (chunks,
            num_ranks).
        sums: whether all that hold a chunk at the start contribute; else they hold the same data.
        apart: whether contributions are kept apart.
        stale: whether ranks that are no holders at the start have something else, which no result may have.
        num_ranks: ranks [count].
        num_places: senders and receivers: the ranks, and behind them places that hold nothing at the start [count].
    Returns: of each rule, how often it is broken, the first entry of `rows` that breaks it, its chunk, and contributions held
        there, int64 (3, 4); the first rank that ends with a wrong result of each chunk, or -1, int64 (chunks,); how many
        results are wrong; and whether each rank has one, bool (num_ranks,).
    """
    chunks = len(starts) - 1
    broken = np.zeros((3, 4), np.int64)
    wrong, wrong_results, wrong_rank = np.full(chunks, -1, np.int64), 0, np.zeros(num_ranks, np.bool_)
    seen, held = np.full(num_places, -1, np.int64), np.zeros(num_places, np.int64)
    written, origin = np.zeros(num_places, np.int64), np.zeros(num_places, np.int64)
    once, twice = np.zeros(num_places, np.uint64), np.zeros(num_places, np.uint64)
    touched, bit_of = np.empty(num_places, np.int64), np.full(num_places, -1, np.int64)
    roots = np.empty(num_ranks, np.int64)
    most = 1
    for chunk in range(chunks):
        most = max(most, starts[chunk + 1] - starts[chunk])
    carried, carried_once, carried_twice = (
        np.empty(most, np.int64),
        np.empty(most, np.uint64),
        np.empty(most, np.uint64),
    )
    zero = np.uint64(0)
    for chunk in range(chunks):
        a, b = starts[chunk], starts[chunk + 1]
        due, many = 1, 0
        if sums:
            due = num_ranks if before[0] == ALL else 1
            if before[0] == TABLE:
                due = 0
                for rank in range(num_ranks):
                    due += before[2][chunk, rank]
        # forwards
        first, turn = a, 0
        while first < b:
            end = first + 1
            while end < b and step[rows[end]] == step[rows[first]]:
                end += 1
            for entry in range(first, end):
                row = rows[entry]
                for rank in (src[row], dst[row]):
                    if seen[rank] != chunk:
                        seen[rank] = chunk
                        touched[many] = rank
                        many += 1
                        held[rank] = _holds(before[0], before[1], before[2], chunk, rank, num_ranks)
                        written[rank] = -1
                there = held[src[row]]
                if there == 0:
                    _count(broken, NOT_HELD, entry, chunk, 0)
                elif apart and there != parts[row]:
                    _count(broken, OTHER_SIZE, entry, chunk, there)
                carried[entry - a] = there
            for entry in range(first, end):
                if op[rows[entry]] & _GIVES_UP:
                    held[src[rows[entry]]] = 0
            for entry in range(first, end):
                row = rows[entry]
                rank, copies = dst[row], op[row] == _COPY
                if written[rank] >= 2 * turn and (copies or written[rank] == 2 * turn):
                    _count(broken, OVERWRITTEN, entry, chunk, 0)
                written[rank] = 2 * turn if copies else 2 * turn + 1
                held[rank] = carried[entry - a] if copies else min(held[rank] + carried[entry - a], MOST_HELD)
            first, turn = end, turn + 1
        # where each result comes from, through the copies at the end
        last = b
        while last > a:
            first = last - 1
            while first > a and step[rows[first - 1]] == step[rows[last - 1]]:
                first -= 1
            copies = True
            for entry in range(first, last):
                copies &= op[rows[entry]] == _COPY
            if not copies:
                break
            last = first
        for at in range(many):
            origin[touched[at]] = touched[at]
        first = last
        while first < b:
            end = first + 1
            while end < b and step[rows[end]] == step[rows[first]]:
                end += 1
            for entry in range(first, end):
                carried[entry - a] = origin[src[rows[entry]]]
            for entry in range(first, end):
                origin[dst[rows[entry]]] = carried[entry - a]
            first = end
        # results of ranks that nothing reaches, or that do not hold as much as is due
        num_roots = 0
        one_rank = after[0] == ONE
        for at in range(1 if one_rank else num_ranks):
            rank = after[1][chunk] if one_rank else at
            if not one_rank and not _holds(after[0], after[1], after[2], chunk, rank, num_ranks):
                continue
            reached = seen[rank] == chunk
            amount = (
                held[rank] if reached else np.int64(_holds(before[0], before[1], before[2], chunk, rank, num_ranks))
            )
            if amount != due:
                wrong_results += 1
                wrong_rank[rank] = True
                if wrong[chunk] < 0:
                    wrong[chunk] = rank
            elif reached and bit_of[origin[rank]] < 0:
                bit_of[origin[rank]] = num_roots
                roots[num_roots] = origin[rank]
                num_roots += 1
        # backwards
        for block in range(0, num_roots, 64):
            results = min(64, num_roots - block)
            for at in range(many):
                once[touched[at]] = zero
                twice[touched[at]] = zero
            for at in range(results):
                once[roots[block + at]] = np.uint64(1) << np.uint64(at)
            end = last
            while end > a:
                first = end - 1
                while first > a and step[rows[first - 1]] == step[rows[end - 1]]:
                    first -= 1
                for entry in range(first, end):
                    rank = dst[rows[entry]]
                    carried_once[entry - a], carried_twice[entry - a] = once[rank], twice[rank]
                for entry in range(first, end):
                    if op[rows[entry]] == _COPY:
                        once[dst[rows[entry]]], twice[dst[rows[entry]]] = zero, zero
                for entry in range(first, end):
                    if op[rows[entry]] & _GIVES_UP:
                        once[src[rows[entry]]], twice[src[rows[entry]]] = zero, zero
                for entry in range(first, end):
                    rank = src[rows[entry]]
                    twice[rank] |= carried_twice[entry - a] | (once[rank] & carried_once[entry - a])
                    once[rank] |= carried_once[entry - a]
                end = first
            every, doubled, all_once, givers = zero, zero, ~zero, 0
            for at in range(many):
                rank = touched[at]
                if not _holds(before[0], before[1], before[2], chunk, rank, num_ranks):
                    doubled |= once[rank] if stale else zero  # what no one contributed
                    continue
                doubled |= twice[rank] | (zero if sums else every & once[rank])
                every |= once[rank]
                all_once &= once[rank]
                givers += 1
            right = (all_once if givers == due else zero) if sums else every
            right &= ~doubled
            for at in range(results):
                if not (right >> np.uint64(at)) & np.uint64(1):
                    bit_of[roots[block + at]] = -2  # a wrong result
        for at in range(1 if one_rank else num_ranks):
            rank = after[1][chunk] if one_rank else at
            if not one_rank and not _holds(after[0], after[1], after[2], chunk, rank, num_ranks):
                continue
            if seen[rank] == chunk and bit_of[origin[rank]] == -2 and held[rank] == due:
                wrong_results += 1
                wrong_rank[rank] = True
                if wrong[chunk] < 0 or rank < wrong[chunk]:
                    wrong[chunk] = rank
        for at in range(num_roots):
            bit_of[roots[at]] = -1
    return broken, wrong, wrong_results, wrong_rank
