"""Names the error of a wrong result: which contributions are missing, and which are there more than once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opticcl.ir import IntArray, Op, Schedule, Violation
from opticcl.ir.limits import limit
from opticcl.ir.phases import ChunkEvents, PhaseRows

__all__ = ["contributions_of", "events_of", "explained"]

MOST_TIMES = limit("explain.MOST_TIMES")


def explained(schedule: Schedule, wrong: Sequence[tuple[int, int]], results: int) -> list[Violation]:
    """Name the errors of some wrong results, and count the others with them.

    Args:
        schedule: that was judged.
        wrong: (chunk, rank) of wrong results.
        results: that are wrong [count].
    """
    named: dict[str, Violation] = {}
    c = schedule.collective
    ranks = np.arange(c.num_ranks)
    for chunk, rank in wrong:
        if len(named) == 2:  # both rules are named
            break
        times = contributions_of(events_of(schedule, chunk), rank, c.num_ranks)
        holds = np.broadcast_to(c.before(ranks, np.full(c.num_ranks, chunk)), len(ranks))
        times, due = times * holds, holds.astype(np.int64)
        if not (c.reduces or c.keeps_apart):  # any holder may be the source
            first = ranks == int(np.flatnonzero(holds)[0])
            times, due = np.where(first, times.sum(), 0), first.astype(np.int64)
        where = f"chunk {chunk} at rank {rank}"
        for rule, who in (("contribution_missing", times < due), ("contribution_doubled", times > due)):
            if who.any() and rule not in named:
                origins = np.flatnonzero(who)
                text = ", ".join(f"rank {o} x{times[o]}" for o in origins[:4]) + (", ..." if len(origins) > 4 else "")
                named[rule] = Violation(rule, -1, -1, where, "each contribution once", text, results)
    if not named:  # a wrong result is never accepted, whatever its explanation
        where = f"chunk {wrong[0][0]} at rank {wrong[0][1]}"
        named["other"] = Violation("contribution_missing", -1, -1, where, "each contribution once", "others", results)
    return list(named.values())


def contributions_of(events: ChunkEvents, rank: int, num_places: int) -> IntArray:
    """How often what each place had of a chunk at the start is in the result of a rank, up to 2**40, int64 (num_places,).

    Args:
        events: transfers that carry the chunk, in the order of the steps.
        rank: whose result.
        num_places: senders and receivers [count].
    """
    times = np.zeros(num_places, np.int64)
    times[rank] = 1
    cuts = np.flatnonzero(np.diff(events.step)) + 1
    for at in reversed(np.split(np.arange(len(events)), cuts) if len(events) else []):
        src, dst, op = events.src[at], events.dst[at], events.op[at]
        before = times.copy()
        before[dst[op == Op.COPY]] = 0
        before[src[op & Op.MOVE > 0]] = 0
        np.add.at(before, src, times[dst])
        times = np.minimum(before, MOST_TIMES)
    return times


def events_of(schedule: Schedule, chunk: int) -> ChunkEvents:
    """Transfers that carry a chunk, in the order of the steps; senders and receivers are ranks."""
    steps, number, rest = schedule.steps, 0, chunk
    while rest >= steps.parts[number].size:
        rest -= steps.parts[number].size
        number += 1
    labels, units = steps.parts[number].labels(np.array([rest]), len(steps.space.radices))
    events: list[list[IntArray]] = []
    for at, phase in enumerate(steps.phases):
        if isinstance(phase.rows, PhaseRows):
            one = steps.events(number, int(units[0]), labels[0], range(at, at + 1))
            ranks = steps.space.ranks
            events.append([one.step, ranks(one.src), ranks(one.dst), one.op, one.parts])
            continue
        for i in range(steps.starts[at], steps.starts[at + 1]):
            t = steps(i)
            distance = np.ones(len(t), np.int64) if t.chunk_step is None else t.chunk_step
            ahead = chunk - t.chunk_lo.astype(np.int64)
            rows = np.flatnonzero((ahead >= 0) & (ahead % distance == 0) & (ahead // distance < t.chunk_n))
            parts = np.ones(len(rows), np.int64) if t.parts is None else t.parts[rows]
            events.append([np.full(len(rows), i), t.src[rows], t.dst[rows], t.op[rows], parts])
    columns = [np.concatenate(column).astype(np.int64) for column in zip(*events, strict=True)]
    return ChunkEvents(*columns) if events else ChunkEvents(*(np.zeros(0, np.int64) for _ in range(5)))
