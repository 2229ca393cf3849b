"""Order of the kernels and calls of a step: what a call depends on, and which kernels depend on it.

Kernels that compute run in the order of their start, one after the other.

- A call depends on the kernels that the host issued before it and that had ended when it started.
- A kernel depends on a call if its stream waits for it. With `cuda_sync` events the waiting stream and the awaited event are
  recorded; then the wait is followed through all streams. A `cudaStreamWaitEvent` alone records neither: those outside
  of a call are taken as `wait()` of the calls of the same thread, in the order of their issue, by the stream on which that
  thread launches; its next kernel depends on the call, unless the recording shows that it started earlier.
- A kernel depends on the calls before it on its own stream. A call that a graph launched depends on the kernels of the same
  launch that had ended.
- A kernel that was launched long before it started, and started when a call ended, waited for that call.
- Without stream ids a kernel also depends on a call if nothing was computed when the call ended and it is the first to start
  afterwards: an upper bound if the device was idle because of the host.
- Without any stream waits the first kernel after a hidden call depends on it if its kind brings data (all_gather,
  all_to_all, ...); a hidden reduction holds up only the kernels issued after the last call. This is an estimate.

A call without a timed kernel depends on the kernels issued before it, and is waited for by the same rules. Idle times of the
recorded device are not part of the result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir.task_graph import Bound
from opticcl.traces._kineto_calls import HostCall
from opticcl.traces._kineto_events import StreamWait
from opticcl.traces.recording import RankTask

__all__ = ["Kernels", "Order", "order_of", "tasks_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
QUEUED_US = 20.0  # a kernel launched that long before its start was queued on the device
AT_ONCE_US = 20.0  # a queued kernel that starts so soon after a call waited for it


class Kernels(NamedTuple):
    """Kernels that compute, by start.

    Args:
        start_us, took_us: start and duration [us].
        stream: number of the stream; -1 if not recorded.
        correlation: id of the launch; -1 if not recorded.
        thread: index of the host thread that launched it; -1 if not recorded.
        launch_us: time of the launch; NaN if not recorded [us].
    """

    start_us: Floats
    took_us: Floats
    stream: Ints
    correlation: Ints
    thread: Ints
    launch_us: Floats

    def rows(self, rows: Ints | npt.NDArray[np.bool_]) -> Kernels:
        """Some of the kernels."""
        return Kernels(*(column[rows] for column in self))  # type: ignore[arg-type]


class Order(NamedTuple):
    """Dependencies between kernels and calls of a step.

    Args:
        opens: kernels that each call depends on, a prefix of all [count].
        holds: first kernel that depends on each call; the number of all if none does [index].
        notes: how they were determined.
        bound: what the iteration time is, see `opticcl.ir.task_graph.TaskGraph`.
    """

    opens: list[int]
    holds: list[int]
    notes: list[str]
    bound: Bound


def order_of(kernels: Kernels, calls: Sequence[HostCall], waits: Sequence[StreamWait]) -> Order:
    """Dependencies of a step.

    Args:
        kernels: of the step, one at least.
        calls: of the step, by start of their record.
        waits: of the whole trace.
    """
    count = len(kernels.start_us)
    ended = np.maximum.accumulate(kernels.start_us + kernels.took_us)
    kernel_issue, call_issue = _issue(kernels, calls)
    opens = []
    for call, issued in zip(calls, call_issue, strict=True):
        side: Literal["left", "right"] = "right" if call.in_graph else "left"
        before = int(np.searchsorted(kernel_issue, issued, side)) if kernel_issue is not None else count
        if call.kernels:
            before = min(before, int(np.searchsorted(ended, call.kernels[0].start_us, "right")))
        elif kernel_issue is None:
            before = int(np.searchsorted(ended, call.start_us, "right"))
        opens.append(before)
    precise = [wait for wait in waits if wait.stream >= 0]
    holds = [count] * len(calls)
    notes = ["order: a collective depends on the kernels issued before it that had ended when it started"]
    bound: Bound = ""
    if precise and kernel_issue is not None:
        _hold_by_streams(kernels, calls, precise, holds)
        notes.append(f"order: kernels depend on collectives by {len(precise):,} recorded stream waits")
    elif outside := _outside([wait for wait in waits if wait.stream < 0], calls):
        matched = _hold_in_turn(kernels, calls, outside, holds)
        by_times = [count] * len(calls)
        _hold_by_times(kernels, ended, calls, kernel_issue, call_issue, opens, by_times)
        holds[:] = map(min, holds, by_times)
        bound = "upper"
        notes.append(
            f"order: {matched:,} of {len(outside):,} stream waits without a recorded stream were matched in issue order; a "
            "kernel also depends on a collective that ended while the device was idle, so the iteration is an upper bound"
        )
    else:
        _hold_by_times(kernels, ended, calls, kernel_issue, call_issue, opens, holds)
        _hold_by_kind(kernels, calls, holds)
        bound = "estimate"
        known = (
            f"{len(precise):,} recorded stream waits have no place among the kernels"
            if precise
            else "no stream waits are recorded"
        )
        notes.append(
            f"order: {known}; a hidden collective that brings data holds up the next kernel, a hidden "
            "reduction only kernels issued after the last collective: an estimate"
        )
    _hold_queued(kernels, ended, calls, holds)
    _hold_on_stream(kernels, calls, holds)
    holds = [max(hold, before) for hold, before in zip(holds, opens, strict=True)]
    notes.append(f"order: computation depends on {sum(h < count for h in holds):,} of {len(calls):,} calls")
    return Order(opens, holds, notes, bound)


def tasks_of(kernels: Kernels, calls: Sequence[HostCall], order: Order) -> list[RankTask]:
    """Tasks of a step in an order in which each follows those that it depends on.

    Kernels between which no call starts and on which no call depends are one task.

    Args:
        kernels: of the step, by start.
        calls: of the step, by start of their record.
        order: dependencies, as `order_of` returns them.
    """
    calls_at, held_at = _listed(order.opens), _listed(order.holds)
    tasks: list[RankTask] = []
    task_of: dict[int, int] = {}
    computed: tuple[int, ...] = ()
    count = len(kernels.start_us)
    cuts = sorted({0, *order.opens, *order.holds, count})
    for cut, end in zip(cuts, [*cuts[1:], count], strict=True):
        for i in calls_at[cut]:
            task_of[i] = len(tasks)
            tasks.append(RankTask(calls[i].call.name, 0.0, (calls[i].call,), computed))
        if end > cut:
            computed, after = (len(tasks),), tuple(sorted(task_of[i] for i in held_at[cut]))
            name = f"{end - cut:,} kernels" if end > cut + 1 else "1 kernel"
            tasks.append(RankTask(name, float(kernels.took_us[cut:end].sum()) * 1e-6, after=after))
    return tasks


def _listed(places: Sequence[int]) -> dict[int, list[int]]:
    """Calls by place, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for i, place in enumerate(places):
        found[place].append(i)
    return found


def _issue(kernels: Kernels, calls: Sequence[HostCall]) -> tuple[Floats | None, list[float]]:
    """When kernels, as a running maximum, and calls were issued: by time of launch, by correlation id, or unknown."""
    if not np.isnan(kernels.launch_us).any():
        by_time = [call.launch_us if call.launch_us >= 0 else call.end_us for call in calls]
        return np.maximum.accumulate(kernels.launch_us), by_time
    timed = [call.kernels[0].correlation if call.kernels else -1 for call in calls]
    all_known = all(c >= 0 for c, call in zip(timed, calls, strict=True) if call.kernels)
    if not (all_known and max(timed, default=-1) >= 0 and (kernels.correlation >= 0).all()):
        return None, [0.0] * len(calls)
    following, known = float("inf"), [0.0] * len(calls)
    for i in reversed(range(len(calls))):  # a call without a kernel was issued before the next with one
        following = known[i] = float(timed[i]) if timed[i] >= 0 else following
    return np.maximum.accumulate(kernels.correlation.astype(np.float64)), known


def _hold_by_times(
    kernels: Kernels,
    ended: Floats,
    calls: Sequence[HostCall],
    kernel_issue: Floats | None,
    call_issue: Sequence[float],
    opens: Sequence[int],
    holds: list[int],
) -> None:
    """Without stream waits: the first kernel after a call that ended while nothing was computed; else those behind all."""
    if not calls:
        return
    if kernel_issue is not None:
        behind = int(np.searchsorted(kernel_issue, max(call_issue)))
    else:
        last = max(call.kernels[-1].end_us if call.kernels else call.end_us for call in calls)
        behind = int(np.searchsorted(kernels.start_us, last))
    for i, call in enumerate(calls):
        if not call.kernels:
            holds[i] = max(opens[i], behind)
            continue
        end_us = max(kernel.end_us for kernel in call.kernels)
        after = max(opens[i], int(np.searchsorted(kernels.start_us, end_us)))
        idle = after == opens[i] or ended[after - 1] <= end_us
        holds[i] = after if idle else max(after, behind)


def _hold_by_kind(kernels: Kernels, calls: Sequence[HostCall], holds: list[int]) -> None:
    """Without stream waits: the first kernel after a call that brings data depends on it."""
    for i, call in enumerate(calls):
        if call.kernels and call.call.collective not in ("all_reduce", "reduce_scatter", "reduce", "send", "barrier"):
            holds[i] = min(holds[i], int(np.searchsorted(kernels.start_us, call.kernels[-1].end_us - 1.0)))


def _outside(waits: Sequence[StreamWait], calls: Sequence[HostCall]) -> list[StreamWait]:
    """Waits that the host issued outside of the intervals of calls, by time; those inside order the call itself."""
    intervals: dict[int, list[HostCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.start_us):
        intervals[call.thread].append(call)
    found = []
    for wait in sorted(waits, key=lambda wait: wait.host_us):
        rows = intervals[wait.thread]
        at = bisect_right(rows, wait.host_us, key=lambda call: call.start_us) - 1
        if at < 0 or wait.host_us > rows[at].end_us:
            found.append(wait)
    return found


def _hold_in_turn(kernels: Kernels, calls: Sequence[HostCall], waits: Sequence[StreamWait], holds: list[int]) -> int:
    """Match waits to the calls of their thread in order of issue. Returns: waits that were matched."""
    by_launch = np.argsort(kernels.launch_us, kind="stable")
    on_thread = {wait.thread: by_launch[kernels.thread[by_launch] == wait.thread] for wait in waits}
    on_stream = {int(s): by_launch[kernels.stream[by_launch] == s] for s in np.unique(kernels.stream)}
    pending = sorted(range(len(calls)), key=lambda i: calls[i].start_us)
    matched = 0
    for wait in waits:
        rows = on_thread[wait.thread]
        at = int(np.searchsorted(kernels.launch_us[rows], wait.host_us))
        near = rows[max(at - 1, 0)] if len(rows) else by_launch[0]  # the last launch before the wait, else the next
        rows = on_stream[int(kernels.stream[near])]
        following = int(np.searchsorted(kernels.launch_us[rows], wait.host_us, "right"))
        kernel = int(rows[following]) if following < len(rows) else -1
        latest_us = kernels.start_us[kernel] + 1.0 if kernel >= 0 else np.inf
        i = _awaited(calls, pending, wait, latest_us)
        if i >= 0:
            pending.remove(i)
            matched += 1
            holds[i] = min(holds[i], kernel) if kernel >= 0 else holds[i]
    return matched


def _awaited(calls: Sequence[HostCall], pending: Sequence[int], wait: StreamWait, latest_us: float) -> int:
    """The first pending call issued before a wait, of its thread if there is one; -1 if there is none.

    A call that ended after `latest_us`, when the waiting kernel had started, is not awaited.
    """
    other = -1
    for i in pending:
        call = calls[i]
        if call.start_us >= wait.host_us:
            break
        if call.kernels and call.kernels[-1].end_us > latest_us:
            continue
        if call.thread == wait.thread:
            return i
        other = i if other < 0 else other
    return other


def _hold_queued(kernels: Kernels, ended: Floats, calls: Sequence[HostCall], holds: list[int]) -> None:
    """The first kernel after a call waited for it if it was queued and its stream idle until the call ended."""
    for i, call in enumerate(calls):
        if not call.kernels:
            continue
        end_us = max(kernel.end_us for kernel in call.kernels)
        first = int(np.searchsorted(kernels.start_us, end_us - 1.0))
        if first >= len(kernels.start_us) or not kernels.launch_us[first] < end_us - QUEUED_US:
            continue
        idle = first == 0 or ended[first - 1] < end_us - 1.0
        if idle and kernels.start_us[first] < end_us + AT_ONCE_US:
            holds[i] = min(holds[i], first)


def _hold_on_stream(kernels: Kernels, calls: Sequence[HostCall], holds: list[int]) -> None:
    """The first kernel behind a call on the same stream waited for it."""
    on_stream = {
        int(stream): np.flatnonzero(kernels.stream == stream) for stream in np.unique(kernels.stream) if stream >= 0
    }
    for i, call in enumerate(calls):
        rows = on_stream.get(call.kernels[0].thread) if call.kernels else None
        if rows is not None:
            at = int(np.searchsorted(kernels.start_us[rows], call.kernels[-1].end_us - 1.0))
            holds[i] = min(holds[i], int(rows[at])) if at < len(rows) else holds[i]


def _hold_by_streams(
    kernels: Kernels, calls: Sequence[HostCall], waits: Sequence[StreamWait], holds: list[int]
) -> None:
    """Follow the recorded waits through all streams.

    A stream knows, for each stream of collectives, up to which of its calls it has waited. An event passes that knowledge on
    as it was when the event was recorded.
    """
    order: list[tuple[int, int, int]] = []  # correlation id, kind (0 wait, 1 call, 2 kernel), row
    order += [(wait.correlation, 0, row) for row, wait in enumerate(waits)]
    order += [(call.kernels[0].correlation, 1, row) for row, call in enumerate(calls) if call.kernels]
    order += [(int(c), 2, row) for row, c in enumerate(kernels.correlation) if c >= 0]
    knows: dict[int, dict[int, int]] = defaultdict(dict)  # stream -> stream of calls -> calls of it that have ended
    history: dict[int, tuple[list[int], list[dict[int, int]]]] = defaultdict(lambda: ([], []))
    applied: dict[int, dict[int, int]] = defaultdict(dict)  # what the kernels of a stream already wait for
    issued: dict[int, list[int]] = defaultdict(list)  # stream of calls -> its calls

    def changed(stream: int, correlation: int) -> None:
        places, states = history[stream]
        places.append(correlation)
        states.append(dict(knows[stream]))

    for correlation, kind, row in sorted(order):
        if kind == 1:
            stream = calls[row].kernels[0].thread
            issued[stream].append(row)
            knows[stream][stream] = len(issued[stream])
            changed(stream, correlation)
        elif kind == 0:
            wait = waits[row]
            places, states = history[wait.waits_for]
            at = bisect_right(places, wait.recorded_at) - 1
            for stream, upto in (states[at] if at >= 0 else {}).items():
                knows[wait.stream][stream] = max(upto, knows[wait.stream].get(stream, 0))
            changed(wait.stream, correlation)
        else:
            mine = int(kernels.stream[row])
            for stream, upto in knows[mine].items():
                for i in issued[stream][applied[mine].get(stream, 0) : upto]:
                    holds[i] = min(holds[i], row)
                applied[mine][stream] = upto
