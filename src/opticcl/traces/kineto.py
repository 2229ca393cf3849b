"""Reader of PyTorch profiler traces (Kineto's Chrome-trace JSON) of one rank, on NCCL, RCCL or Gloo.

::

    _kineto_events    events to columns and records
    _kineto_calls     which records are the calls, and which kernels are theirs
    _kineto_order     what waits for what

The annotations `ProfilerStep#n` divide a trace into steps: a call belongs to the step in which the host issued it, a kernel to
the step in which it was launched. What was launched before the recording began belongs to no step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opticcl.ir.task_graph import RecordedTimes
from opticcl.reading import printable, title
from opticcl.traces._kineto_calls import HostCall, select_calls
from opticcl.traces._kineto_events import Events, read_events
from opticcl.traces._kineto_order import Kernels, order_of, tasks_of
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recorded import recorded_times
from opticcl.traces.recording import RankTask, RankTrace, RecordedStep
from opticcl.units import format_seconds

__all__ = ["KinetoReader", "trace_of"]


def _is_kineto(head: bytes) -> int:
    if re.match(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*[{\]])", head) is None:
        return 0
    return 2 if re.search(rb'"(traceEvents|schemaVersion|distributedInfo|ph)"\s*:', head) else 1


@register_trace("kineto", (".json",), _is_kineto)
class KinetoReader(TraceReader):
    """Reads a trace of the PyTorch profiler."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls of one rank, in the order in which they start, and the tasks of each step, as the base class describes."""
        events = read_events(path)
        return trace_of(path, events, f"PyTorch profiler trace {printable(path.name)}", tasks=tasks)


def trace_of(path: Path, events: Events, source: str, *, tasks: bool) -> RankTrace:
    """The trace of events that a profiler recorded.

    Args:
        path: of the file.
        events: in it.
        source: description of the file.
        tasks: whether tasks are wanted beside the calls.
    """
    selection = select_calls(events)
    after = list(selection.notes(events))
    if events.compute_s:
        after.append(f"computation: {format_seconds(events.compute_s)} in {len(events.kernel_us):,} other kernels")
    trace = RankTrace(
        title(path),
        source + (f", rank {events.rank}" if events.rank >= 0 else ""),
        printable(path.name),
        [host.call for host in selection.calls],
        rank=events.rank,
        world_size=events.world_size,
        world_source="world_size",
        groups=events.groups,
        groups_source="pg_config",
        compute_s=events.compute_s,
        omissions=selection.omissions(events),
        before=[f"events: {events.count:,}"],
        after=after,
    )
    if tasks:
        trace.steps, notes = _steps(events, selection.calls)
        trace.after += notes
    elif len(events.steps) > 1:
        trace.after.append(f"profiler steps: {len(events.steps):,}; the calls of all of them are kept")
    return trace


def _steps(events: Events, calls: Sequence[HostCall]) -> tuple[list[RecordedStep], list[str]]:
    """The tasks of each step, and notes on them."""
    kernels = _kernels(events)
    spans = sorted(events.steps.items(), key=lambda item: item[1]) or [("", (-np.inf, np.inf))]
    launched = ~np.isnan(kernels.launch_us)
    launches_known = len(events.launch_us) > 0
    when = kernels.launch_us if launches_known else kernels.start_us
    steps: list[RecordedStep] = []
    notes: list[str] = []
    if launches_known and not launched.all():
        busy_s = float(kernels.took_us[~launched].sum()) * 1e-6
        notes.append(
            f"left out: {int((~launched).sum()):,} kernels, {format_seconds(busy_s)}, launched before the recording began: "
            "they belong to no step"
        )
    inside = 0
    for name, (start_us, end_us) in spans:
        mine = kernels.rows((when >= start_us) & (when < end_us))
        own = [call for call in calls if start_us <= call.start_us < end_us]
        inside += len(own)
        if not own and not len(mine.start_us):
            continue
        if not len(mine.start_us) or not _in_order(own):
            note = "all computation precedes all communication: no kernel of a collective was recorded"
            steps.append(RecordedStep(name, _without_order(mine, own), [note], "upper"))
            if any(host.call.measured_s for host in own):
                measured_s = sum(host.call.measured_s for host in own)
                steps[-1].recorded = RecordedTimes(float(mine.took_us.sum()) * 1e-6, measured_s)
        else:
            waits = [wait for wait in events.waits if wait.stream >= 0 or start_us <= wait.host_us < end_us]
            order = order_of(mine, own, waits)
            steps.append(RecordedStep(name, tasks_of(mine, own, order), order.notes, order.bound))
            steps[-1].recorded = _recorded(mine, own, (end_us - start_us) * 1e-6 if name else None)
    if len(calls) > inside:
        notes.append(f"left out: {len(calls) - inside:,} calls outside of the profiler's steps")
    return steps, notes


def _recorded(kernels: Kernels, calls: Sequence[HostCall], total_s: float | None) -> RecordedTimes | None:
    """Times of a step; None if no kernel of a collective was recorded."""
    mine = [kernel for call in calls for kernel in call.kernels]
    if not mine:
        return None
    start_s = np.array([kernel.start_us * 1e-6 for kernel in mine])
    end_s = np.array([kernel.end_us * 1e-6 for kernel in mine])
    compute = kernels.start_us * 1e-6, (kernels.start_us + kernels.took_us) * 1e-6
    return recorded_times(compute, (start_s, end_s), total_s)


def _in_order(calls: Sequence[HostCall]) -> bool:
    """Whether the recording places calls among the kernels: by a kernel or a launch."""
    return any(call.kernels for call in calls) or not calls


def _without_order(kernels: Kernels, calls: Sequence[HostCall]) -> list[RankTask]:
    """All computation, then all calls."""
    compute_s = float(kernels.took_us.sum()) * 1e-6
    tasks = [RankTask("computation", compute_s)] if compute_s else []
    return tasks + [RankTask(host.call.name, 0.0, (host.call,), tuple(range(len(tasks)))) for host in calls]


def _kernels(events: Events) -> Kernels:
    """The kernels that compute, by start, with their launches."""
    start_us, took_us = np.array(events.kernel_start_us), np.array(events.kernel_us)
    stream, correlation = np.array(events.kernel_stream, np.int64), np.array(events.kernel_correlation, np.int64)
    launch_us, thread = np.full(len(start_us), np.nan), np.full(len(start_us), -1, np.int64)
    if len(events.launch_us):
        known = np.array(events.launch_correlation, np.int64)
        order = np.argsort(known, kind="stable")
        known = known[order]
        at = np.minimum(np.searchsorted(known, correlation), len(known) - 1)
        found = (known[at] == correlation) & (correlation >= 0)
        launch_us[found] = np.array(events.launch_us)[order][at[found]]
        thread[found] = np.array(events.launch_thread, np.int64)[order][at[found]]
    kernels = Kernels(start_us, took_us, stream, correlation, thread, launch_us)
    rows: npt.NDArray[np.int64] = np.argsort(start_us, kind="stable")
    return kernels.rows(rows)
