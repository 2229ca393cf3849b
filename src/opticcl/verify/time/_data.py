"""Data over time: nothing is sent before it is there, nothing is overwritten before it is sent, sums share a memory.

The schedule is replayed on times instead of data: for every rank and chunk, when its sum is complete and when its last send has
left. Where every step begins after all data of the steps before it, that is known without a replay.

Of a step whose transfers are images of listed ones, what a rank has depends on rows that are not listed. So every step must
begin after all data of those before it, anywhere; data arrives once the last bit of the step has left, anywhere; and sums end
after the last arrival and all of the work of a rank.
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
from opticcl.ir import CircuitPlan, IntArray, Op, Transfers, numbered
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.verify.sweep import levels, runs_of, slack
from opticcl.verify.time._rows import StoredStep, TimeRows

__all__ = ["DataTiming", "buffer_bytes", "follow_data", "ranges_cross", "sums_late", "sums_of_images_late"]

FloatArray = npt.NDArray[Any]  # float64

WINDOW = limit("data.WINDOW")

MOST_REPLAYED = limit("data.MOST_REPLAYED")

MOST_SUMS = limit("data.MOST_SUMS")


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


def follow_data(rows: TimeRows, *, exact: bool, defined: bool) -> DataTiming:
    """Follow the data of all steps.

    Args:
        rows: of the programme.
        exact: whether the time is needed at which the data of each transfer is ready; else a later one will do where all
            steps wait for all data before them.
        defined: whether the transfers define others, so that steps must wait.
    Raises: UnsupportedError: the schedule is too large to be replayed, and its steps do not wait for each other.
    """
    barriers = _with_barriers(rows, anywhere=defined)
    wait = not (barriers.late_s or barriers.overwritten_s)
    if defined or (wait and not exact):
        return barriers
    c = rows.plan.schedule.collective
    chunks = sum(int(s.transfers.chunk_n.astype(np.int64).sum()) * s.repeats for s in rows.steps)
    if chunks > MOST_REPLAYED:
        if wait:
            return barriers
        raise UnsupportedError(
            f"verify: the times of {chunks:,} sent chunks are more than {MOST_REPLAYED:,}; try a programme with barriers"
        )
    timing = DataTiming()
    width = max(1, min(c.num_chunks, WINDOW // c.num_ranks))
    for low in range(0, c.num_chunks, width):
        _replay(rows, low, width, timing)
    return timing


def _with_barriers(rows: TimeRows, *, anywhere: bool) -> DataTiming:
    """Times of data that is ready when all data of the steps before it is, and what misses that.

    Data may arrive once all sends of its receiver in that step have left.

    Args:
        rows: of the programme.
        anywhere: whether all sends of the step must have left then.
    """
    timing, complete = DataTiming(), 0.0
    for stored in rows.steps:
        if not len(stored.transfers):
            continue
        sent, left = stored.sent_s()
        end, period = max(float(stored.summed_s.max()), float(left.max())), stored.period_s
        late = np.maximum(complete - sent, end - (sent + period) if stored.repeats > 1 else 0.0)
        _keep(timing.late_s, stored.step, late, np.maximum(sent, 0.0))
        last = np.full(
            1 + int(max(stored.transfers.src.max(), stored.transfers.dst.max())), left.max() if anywhere else -np.inf
        )
        np.maximum.at(last, stored.transfers.src, left)
        early = last[stored.transfers.dst] - stored.arrived_s
        _keep(timing.overwritten_s, stored.step, early, stored.arrived_s)
        for turn in rows.turns(stored):
            ready = complete if turn == 0 else end + (turn - 1) * period
            timing.ready_s[stored.step + turn] = np.full(len(stored.transfers), ready)
        complete = end + (stored.repeats - 1) * period
    return timing


def _replay(rows: TimeRows, low: int, width: int, timing: DataTiming) -> None:
    """Replay all steps on the chunks low .. low + width - 1; results are merged into `timing`."""
    schedule = rows.plan.schedule
    shape = (schedule.collective.num_ranks, width)
    ready, left, copied = np.full((3, *shape), -np.inf)
    for stored in rows.steps:
        sent_s, left_s = stored.sent_s()
        unrolled = rows.turns(stored)
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
            if len(unrolled) < stored.repeats and len(unrolled) // 2 <= turn < stored.repeats - len(unrolled) // 2:
                # the last one before them stands for all that are not unrolled
                shown = stored.step + len(unrolled) // 2 - 1
                ready_s = of_transfer - (step - shown) * stored.period_s
            before = timing.ready_s.get(shown)
            timing.ready_s[shown] = ready_s if before is None else np.maximum(before, ready_s)
            begin = sent_s + shift
            with np.errstate(invalid="ignore"):
                late = of_transfer - begin
            _keep(timing.late_s, step, late, begin)
            _keep(timing.overwritten_s, step, missing, stored.arrived_s + shift)


def _keep(by_step: dict[int, FloatArray], step: int, missing: FloatArray, time_s: FloatArray) -> None:
    """Merge times that are missing in one step, if any is more than the tolerance.

    Args:
        by_step: by step.
        step: its number.
        missing: of each transfer, float64 (transfers,) [s].
        time_s: that is compared [s].
    """
    missing = np.where(missing > slack(time_s), missing, 0.0)
    if missing.any():
        by_step[step] = np.maximum(by_step[step], missing) if step in by_step else missing


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
        later_s = (step - stored.step) * stored.period_s
        first, _ = stored.sent_s()
        kept = np.flatnonzero(missing > 0)
        until = stored.arrived_s[kept] + missing[kept]
        parts.append((t.dst[kept], first[kept] + later_s, until + later_s, t.size_chunks()[kept]))
    if not parts:
        return 0.0
    rank, begin, end, chunks = (np.concatenate(column) for column in zip(*parts, strict=True))
    *_, held = levels(rank, begin, end, chunks)
    return float(held.max() * chunk_bytes)


# --- sums -------------------------------------------------------------------------------------------------------------


def sums_late(
    rows: TimeRows, chunk_bytes: float, compute: str, memory_bytes_per_s: float
) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Sums that are complete before the memory of their rank can have computed them.

    A rank's memory computes one sum at a time and may interrupt it for a more urgent one; by earliest deadline first all
    sums meet the times that the programme claims if any order does.

    Args:
        rows: of the programme.
        chunk_bytes: size of a chunk [bytes].
        compute: fused, chain or none.
        memory_bytes_per_s: of each rank [byte/s].
    Returns: of each step with such sums: its number, transfers, and missing times [s].
    Raises: UnsupportedError: sums of repeated steps meet in time, and are too many to be followed one by one.
    """
    parts: list[tuple[IntArray, ...]] = []
    for stored in rows.steps:
        early = stored.arrived_s - stored.summed_s
        bad = np.flatnonzero(early > slack(stored.arrived_s))
        yield stored.step, bad, early[bad]
        adds = compute != "none" and (stored.transfers.op & Op.REDUCE > 0).any()
        for turn in _turns_of_sums(rows, stored) if adds else ():
            step, later_s = stored.step + turn, turn * stored.period_s
            t = stored.transfers if turn == 0 else rows.plan.schedule.step(step)
            rank, row, chunks, release, due = _jobs(t, stored.arrived_s, stored.summed_s, compute)
            work = chunks * (chunk_bytes / memory_bytes_per_s)
            parts.append((rank, np.full(len(row), step), row, work, release + later_s, due + later_s))
    if not parts:
        return
    rank, number, row, work, release, due = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((due, release, rank))
    late = np.zeros(len(order))
    late[order] = _earliest_deadline(rank[order], work[order], release[order], due[order])
    late = np.where(late > slack(due), late, 0.0)
    for step in np.unique(number[late > 0]).tolist():
        mine = np.flatnonzero((number == step) & (late > 0))
        yield step, row[mine], late[mine]


def sums_of_images_late(
    rows: TimeRows, plan: CircuitPlan, chunk_bytes: float, compute: str, memory_bytes_per_s: float
) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """As `sums_late`, of listed transfers that define others: sums that end before the last arrival and all work of a rank.

    Args:
        rows, chunk_bytes, compute, memory_bytes_per_s: as of `sums_late`.
        plan: with the steps, in which each rank receives as much as the first.
    """
    for stored in rows.steps:
        step = plan.images(stored.step)
        due_s, adds = stored.arrived_s, stored.transfers.op & Op.REDUCE > 0
        if compute != "none" and adds.any():
            received = stored.transfers if step is None else step.received_by_first()
            nothing = np.zeros(len(received))
            rank, _, chunks, *_ = _jobs(received, nothing, nothing, compute)
            work_s = float(np.bincount(rank, chunks).max()) * chunk_bytes / memory_bytes_per_s
            due_s = np.where(adds, due_s.max() + work_s, due_s)
        missing = due_s - stored.summed_s
        bad = np.flatnonzero(missing > slack(due_s))
        yield stored.step, bad, missing[bad]


def _turns_of_sums(rows: TimeRows, stored: StoredStep) -> Sequence[int]:
    """Repetitions of a step whose sums are followed: the unrolled ones where each is over before the next one begins; else all,
    since a memory that is a little too slow is late only after many of them.

    Args:
        rows: of the programme.
        stored: the step.
    Raises: UnsupportedError: as in `sums_late`.
    """
    turns = rows.turns(stored)
    adds = stored.transfers.op & Op.REDUCE > 0
    if len(turns) == stored.repeats:
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
    if ranges_cross(rank, lo, n):  # ranges that overlap partly are summed chunk by chunk
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


def ranges_cross(rank: IntArray, lo: IntArray, n: IntArray) -> bool:
    """Whether some ranges of one rank overlap without being equal.

    Args:
        rank: of each range, int64 (ranges,).
        lo, n: its first chunk, and how many it has, int64 (ranges,).
    """
    order = np.lexsort((lo, rank))  # if some overlap, two neighbours do
    rank, lo, end = rank[order], lo[order], (lo + n)[order]
    equal = (lo[1:] == lo[:-1]) & (end[1:] == end[:-1])
    return bool(((rank[1:] == rank[:-1]) & ~equal & (lo[1:] < end[:-1])).any())


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
