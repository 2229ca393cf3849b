"""Data over time: nothing is sent before it is there, nothing is overwritten before it is sent, sums share a memory.

The schedule is replayed on times instead of data: for every rank and chunk, when its sum is complete and when its last send has
left. Where every step begins after all data of the steps before it, that is known without a replay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray, Op, Transfers
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.verify._time_rows import Copy, StoredStep, TimeRows
from opticcl.verify.sweep import levels, numbered, runs_of, slack

__all__ = ["DataTiming", "buffer_bytes", "follow_data", "sums_late"]

FloatArray = npt.NDArray[Any]  # float64

WINDOW = limit("time_data.WINDOW")

MOST_REPLAYED = limit("time_data.MOST_REPLAYED")

MOST_SUMS = limit("time_data.MOST_SUMS")


@dataclass(frozen=True, slots=True)
class DataTiming:
    """When data is ready, and by how much transfers miss it.

    Args:
        ready_s: of the transfers of each unrolled step, by step: float64 (transfers,) [s].
        late_s: step -> time by which each transfer is sent before its data is ready, float64 (transfers,) [s]; steps without
            such transfers are left out.
        overwritten_s: step -> time by which each arrival precedes the last bit of an earlier send of its chunk, likewise.
    """

    ready_s: dict[int, FloatArray] = field(default_factory=dict)
    late_s: dict[int, FloatArray] = field(default_factory=dict)
    overwritten_s: dict[int, FloatArray] = field(default_factory=dict)


def follow_data(rows: TimeRows, *, exact: bool) -> DataTiming:
    """Follow the data of all steps.

    Args:
        rows: of the programme.
        exact: whether the time is needed at which the data of each transfer is ready; else a later one will do where all
            steps wait for all data before them.
    Raises: UnsupportedError: the schedule is too large to be replayed, and its steps do not wait for each other.
    """
    barriers = _with_barriers(rows)
    if barriers is not None and not exact:
        return barriers
    c = rows.plan.schedule.collective
    chunks = sum(int(s.transfers.chunk_n.astype(np.int64).sum()) * s.repeats for s in rows.steps)
    if chunks > MOST_REPLAYED:
        if barriers is not None:
            return barriers
        raise UnsupportedError(
            f"verify: the times of {chunks:,} sent chunks are more than {MOST_REPLAYED:,}; try a programme with barriers"
        )
    timing = DataTiming()
    unrolled = {copy.step for copy in rows.copies}
    width = max(1, min(c.num_chunks, WINDOW // c.num_ranks))
    for low in range(0, c.num_chunks, width):
        _replay(rows, low, min(width, c.num_chunks - low), unrolled, timing)
    return timing


def _with_barriers(rows: TimeRows) -> DataTiming | None:
    """Ready times where every step begins after all data of the steps before it, or None where some step does not."""
    timing, complete = DataTiming(), 0.0
    for stored in rows.steps:
        if not len(stored.transfers):
            continue
        sent, left = stored.sent_s()
        begin, end = float(sent.min()), max(float(stored.summed_s.max()), float(left.max()))
        if begin < complete - slack(complete) or not _sent_before_arrivals(stored, left):
            return None
        if stored.repeats > 1 and begin + stored.period_s < end - slack(end):
            return None
        for turn in rows.turns(stored):
            shift = turn * stored.period_s
            ready = complete if turn == 0 else end - stored.period_s + shift
            timing.ready_s[stored.step + turn] = np.full(len(stored.transfers), ready)
        complete = end + (stored.repeats - 1) * stored.period_s
    return timing


def _sent_before_arrivals(stored: StoredStep, left: FloatArray) -> bool:
    """Whether all sends of each rank have left before anything arrives there in the same step, whatever the chunks."""
    t = stored.transfers
    top = 1 + int(max(t.src.max(), t.dst.max()))
    last_left, first_arrival = np.full(top, -np.inf), np.full(top, np.inf)
    np.maximum.at(last_left, t.src, left)
    np.minimum.at(first_arrival, t.dst, stored.arrived_s)
    return bool((last_left <= first_arrival + slack(np.minimum(first_arrival, 1e300))).all())


def _replay(rows: TimeRows, low: int, width: int, unrolled: set[int], timing: DataTiming) -> None:
    """Replay all steps on the chunks low .. low + width - 1; results are merged into `timing`."""
    schedule = rows.plan.schedule
    shape = (schedule.collective.num_ranks, width)
    ready, left, copied = np.full((3, *shape), -np.inf)
    for stored in rows.steps:
        sent_s, left_s = stored.sent_s()
        for turn in range(stored.repeats):
            step = stored.step + turn
            t = stored.transfers if turn == 0 else schedule.step(step)
            shift = turn * stored.period_s
            of_transfer, missing = np.full(len(t), -np.inf), np.zeros(len(t))
            _replay_step(
                t.src, t.dst, t.chunk_lo, t.chunk_n, _apart(t), t.op, left_s + shift, stored.arrived_s + shift,
                stored.summed_s + shift, low, width, ready, left, copied, of_transfer, missing,
            )  # fmt: skip
            shown, ready_s = step, of_transfer
            if step not in unrolled:  # the last one before them stands for all that are not
                shown = stored.step + len(rows.turns(stored)) // 2 - 1
                ready_s = of_transfer - (step - shown) * stored.period_s
            before = timing.ready_s.get(shown)
            timing.ready_s[shown] = ready_s if before is None else np.maximum(before, ready_s)
            begin = sent_s + shift
            with np.errstate(invalid="ignore"):
                late = of_transfer - begin
            _keep(timing.late_s, step, np.where(late > slack(begin), late, 0.0))
            _keep(timing.overwritten_s, step, np.where(missing > slack(stored.arrived_s + shift), missing, 0.0))


def _keep(found: dict[int, FloatArray], step: int, missing: FloatArray) -> None:
    """Merge the times of one step, if any is positive."""
    if (missing > 0).any():
        found[step] = np.maximum(found[step], missing) if step in found else missing


def _apart(t: Transfers) -> IntArray:
    """Distance between the chunks of each transfer."""
    return np.ones(len(t), np.int32) if t.chunk_step is None else t.chunk_step


@njit
def _inside(first, count, apart, width):  # type: ignore[no-untyped-def]
    """Those of the chunks first, first + apart, ... of a transfer that are 0 to width - 1; `count` of them in all."""
    skipped = max(0, -(first // apart))
    return range(first + skipped * apart, min(first + count * apart, width), apart)


@njit(writes=("ready", "left", "copied", "ready_of", "missing"))
def _replay_step(  # type: ignore[no-untyped-def]
    src,
    dst,
    chunk_lo,
    chunk_n,
    apart,
    op,
    left_s,
    arrived_s,
    summed_s,
    low,
    width,
    ready,
    left,
    copied,
    ready_of,
    missing,
):
    """One step, in place: all sends read the times before the step, then arrivals change them.

    ready: when all that was added to a chunk since its last copy is summed. left: when its last send has left. copied: when
    its last copy arrived. `ready_of` is raised to the ready time of what each transfer sends, `missing` to the time by which
    its arrival precedes a send, a sum or a copy of an earlier step that it would overwrite.
    """
    for t in range(len(src)):
        for c in _inside(chunk_lo[t] - low, chunk_n[t], apart[t], width):
            ready_of[t] = max(ready_of[t], ready[src[t], c])
            left[src[t], c] = max(left[src[t], c], left_s[t])
    for t in range(len(src)):
        if op[t] & Op.MOVE:
            for c in _inside(chunk_lo[t] - low, chunk_n[t], apart[t], width):
                ready[src[t], c], copied[src[t], c] = -np.inf, -np.inf
    for t in range(len(src)):
        for c in _inside(chunk_lo[t] - low, chunk_n[t], apart[t], width):
            d = dst[t]
            missing[t] = max(missing[t], left[d, c] - arrived_s[t])
            if op[t] == Op.COPY:
                missing[t] = max(missing[t], ready[d, c] - arrived_s[t])
                ready[d, c], copied[d, c] = summed_s[t], arrived_s[t]
            else:
                missing[t] = max(missing[t], copied[d, c] - arrived_s[t])
                ready[d, c] = max(ready[d, c], summed_s[t])


def buffer_bytes(rows: TimeRows, timing: DataTiming, chunk_bytes: float) -> float:
    """Largest receive buffer of a rank for data that arrives while its chunk still leaves.

    Args:
        rows: of the programme.
        timing: of its data.
        chunk_bytes: size of a chunk [bytes].
    Returns: bytes; data needs a buffer from its first bit until the chunk has left.
    """
    parts = []
    firsts = [stored.step for stored in rows.steps]
    for step, missing in timing.overwritten_s.items():
        stored, t = rows.steps[bisect_right(firsts, step) - 1], rows.plan.schedule.step(step)
        copy = Copy(stored, step - stored.step)
        first, _ = stored.sent_s()
        kept = np.flatnonzero(missing > 0)
        until = stored.arrived_s[kept] + missing[kept]
        parts.append((t.dst[kept], first[kept] + copy.shift_s, until + copy.shift_s, t.size_chunks()[kept]))
    if not parts:
        return 0.0
    rank, begin, end, chunks = (np.concatenate(column) for column in zip(*parts, strict=True))
    *_, held = levels(rank, begin, end, chunks)
    return float(held.max() * chunk_bytes)


# --- sums -------------------------------------------------------------------------------------------------------------


def sums_late(
    rows: TimeRows, chunk_bytes: float, compute: str, memory_bytes_per_s: float
) -> Iterator[tuple[Copy, IntArray, FloatArray]]:
    """Sums that are complete before the memory of their rank can have computed them.

    A rank's memory computes one sum at a time and may interrupt it for a more urgent one; by earliest deadline first all
    sums meet the times that the programme claims if any order does.

    Args:
        rows: of the programme.
        chunk_bytes: size of a chunk [bytes].
        compute: fused, chain or none.
        memory_bytes_per_s: of each rank [byte/s].
    Returns: of each unrolled step with such sums: the step, transfers, and missing times [s].
    Raises: UnsupportedError: sums of repeated steps meet in time, and are too many to be followed one by one.
    """
    copies = [Copy(stored, turn) for stored in rows.steps for turn in _turns_of_sums(rows, stored, compute)]
    parts: list[tuple[IntArray, ...]] = []
    for position, copy in enumerate(copies):
        stored = copy.stored
        early = stored.arrived_s - stored.summed_s
        bad = np.flatnonzero(early > slack(stored.arrived_s))
        if len(bad) and copy.turn == 0:
            yield copy, bad, early[bad]
        if compute != "none" and (stored.transfers.op & Op.REDUCE > 0).any():
            t = stored.transfers if copy.turn == 0 else rows.plan.schedule.step(copy.step)
            rank, row, chunks, release, due = _jobs(t, stored.arrived_s, stored.summed_s, compute)
            shift = copy.shift_s
            work = chunks * (chunk_bytes / memory_bytes_per_s)
            parts.append((rank, np.full(len(row), position), row, work, release + shift, due + shift))
    if not parts:
        return
    rank, number, row, work, release, due = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((due, release, rank))
    late = np.zeros(len(order))
    late[order] = _earliest_deadline(rank[order], work[order], release[order], due[order])
    late = np.where(late > slack(due), late, 0.0)
    for one in np.unique(number[late > 0]):
        mine = np.flatnonzero((number == one) & (late > 0))
        yield copies[one], row[mine], late[mine]


def _turns_of_sums(rows: TimeRows, stored: StoredStep, compute: str) -> Sequence[int]:
    """Repetitions of a step whose sums are followed: the unrolled ones where each is over before the next one begins; else all,
    since a memory that is a little too slow is late only after many of them.

    Args:
        rows: of the programme.
        stored: the step.
        compute: fused, chain or none.
    Raises: UnsupportedError: as in `sums_late`.
    """
    turns = rows.turns(stored)
    adds = stored.transfers.op & Op.REDUCE > 0
    if len(turns) == stored.repeats or compute == "none" or not adds.any():
        return turns
    due_s = float(stored.summed_s[adds].max())
    if due_s - float(stored.arrived_s[adds].min()) <= stored.period_s + slack(due_s):
        return turns
    sums = int(stored.transfers.chunk_n[adds].astype(np.int64).sum()) * stored.repeats
    if sums > MOST_SUMS:
        raise UnsupportedError(
            f"verify: {sums:,} sums of repeated steps meet in time, more than {MOST_SUMS:,}; try a programme with barriers"
        )
    return range(stored.repeats)


def _jobs(
    t: Transfers, arrived_s: FloatArray, summed_s: FloatArray, compute: str
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Sums of a step: rank, a transfer of each, chunks that memory moves, release and due time."""
    adds = np.flatnonzero(t.op & Op.REDUCE)
    summed, row = _renumbered(t.take(adds))
    rank, lo, n = (column.astype(np.int64) for column in (summed.dst, summed.chunk_lo, summed.chunk_n))
    adds = adds[row]
    if compute == "chain":
        return rank, adds, 3.0 * n, arrived_s[adds], summed_s[adds]
    if _ranges_cross(rank, lo, n):  # ranges that overlap partly are summed chunk by chunk
        owner, nth = numbered(n)
        lo = lo[owner] + nth
        rank, adds, n = rank[owner], adds[owner], np.ones(len(owner), np.int64)
    order, new = runs_of((rank, lo), (n,))
    first = np.flatnonzero(new)
    arrivals = np.diff(np.append(first, len(order)))
    release = np.maximum.reduceat(arrived_s[adds[order]], first)
    due = np.minimum.reduceat(summed_s[adds[order]], first)
    return rank[order][first], adds[order][first], (arrivals + 2.0) * n[order][first], release, due


def _renumbered(t: Transfers) -> tuple[Transfers, IntArray]:
    """Transfers whose chunks are neighbours by some numbers of the chunks, and the row of each.

    Where all carry chunks in one distance k, chunks are numbered by their rest modulo k first: then none is to be split.
    """
    distance = np.unique(t.chunk_step[t.chunk_n > 1]) if t.chunk_step is not None else np.ones(1, np.int64)
    if len(distance) != 1 or distance[0] < 2:
        return t.ranges()
    turn, rest = np.divmod(t.chunk_lo, distance[0])
    lo = rest * np.int64((turn + t.chunk_n).max()) + turn
    return replace(t, chunk_lo=lo, chunk_step=None), np.arange(len(t))


def _ranges_cross(rank: IntArray, lo: IntArray, n: IntArray) -> bool:
    """Whether some ranges of one rank overlap without being equal."""
    order = np.lexsort((n, lo, rank))
    rank, lo, end = rank[order], lo[order], (lo + n)[order]
    same = rank[1:] == rank[:-1]
    equal = same & (lo[1:] == lo[:-1]) & (end[1:] == end[:-1])
    top = int(end.max()) + 1
    reached = np.maximum.accumulate(rank * top + end)
    return bool((same & ~equal & (rank[1:] * top + lo[1:] < reached[:-1])).any())


@njit
def _earliest_deadline(rank, work, release, due):  # type: ignore[no-untyped-def]
    """Time by which each job ends after its due time; jobs sorted by (rank, release).

    Preemptive: at any time a rank works on the released job that is due first.
    """
    n = len(rank)
    late = np.zeros(n)
    left = work.copy()
    at = 0
    while at < n:
        stop = at
        while stop < n and rank[stop] == rank[at]:
            stop += 1
        waiting = [(due[at], at)]
        now, following = release[at], at + 1
        while len(waiting) > 0 or following < stop:
            if len(waiting) == 0:
                now = max(now, release[following])
                heappush(waiting, (due[following], following))
                following += 1
                continue
            job = waiting[0][1]
            end = now + left[job]
            if following < stop and release[following] < end:
                spent = max(0.0, release[following] - now)
                left[job] -= spent
                now += spent
                heappush(waiting, (due[following], following))
                following += 1
            else:
                heappop(waiting)
                now = end
                late[job] = max(0.0, now - due[job])
        at = stop
    return late
