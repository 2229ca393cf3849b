"""Reader of PyTorch profiler traces (Kineto's Chrome-trace JSON) of one rank, on NCCL, RCCL or Gloo.

::

    _kineto_forms     what each event says
    _kineto_events    columns and records of events
    _kineto_parts     which events are of one rank
    _kineto_calls     which records are the calls, and which kernels are theirs
    _kineto_order     what waits for what

The annotations `ProfilerStep#n` divide a trace into steps: a call belongs to the step in which the host issued it, a kernel to
the step in which it was launched. What was launched before the recording began belongs to no step. The times of a step are the
device's: from the end of the last kernel of the step before to that of its own last one, whatever the host did meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opticcl.ir.task_graph import RecordedTimes
from opticcl.reading import printable, title
from opticcl.traces._kineto_calls import EARLIER, HostCall, Selection, select_calls
from opticcl.traces._kineto_events import KERNEL, SIZED, Events, Record
from opticcl.traces._kineto_forms import read_events
from opticcl.traces._kineto_order import Kernels, order_of, tasks_of
from opticcl.traces._kineto_parts import ranks_of
from opticcl.traces.kernel_names import KernelSizes
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recorded import union_s
from opticcl.traces.recording import KernelTimes, RankTask, RankTrace, RecordedStep, lowered
from opticcl.units import format_seconds

__all__ = ["KinetoReader", "trace_of"]


def _is_kineto(head: bytes) -> int:
    if re.match(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*[{\]])", head) is None:
        return 0
    return 2 if re.search(rb'"(traceEvents|schemaVersion|distributedInfo|ph)"\s*:', head) else 1


@register_trace("kineto", (".json",), _is_kineto)
class KinetoReader(TraceReader):
    """Reads a trace of the PyTorch profiler."""

    has_kernels = True

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The calls of each rank, in the order in which they start, and the tasks of each step, as the base class describes."""
        sizes = KernelSizes.read(options.kernel_sizes) if options.kernel_sizes else None
        events = read_events(path, sizes)
        source = f"PyTorch profiler trace {printable(path.name)}"
        traces = [trace_of(path, one, source, tasks=tasks) for one in ranks_of(path, events)]
        for trace in traces:
            trace.after += sizes.notes() if sizes else ()
        return traces


def trace_of(path: Path, events: Events, source: str, *, tasks: bool) -> RankTrace:
    """The trace of events that a profiler recorded.

    Args:
        path: of the file.
        events: of one rank; without tasks it loses its kernels that compute.
        source: description of the file.
        tasks: whether tasks are wanted beside the calls.
    """
    compute_s, num_kernels = events.compute_s, len(events.kernel_us)
    if not tasks:
        events.forget_kernels()  # of a large trace most of the memory
    selection = select_calls(events)
    for host in selection.calls:
        if not host.call.ranks:
            host.call.ranks = events.groups.get(host.call.group, ())
    after = list(selection.notes(events))
    if compute_s:
        after.append(f"computation: {format_seconds(compute_s)} in {num_kernels:,} other kernels")
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
        compute_s=compute_s,
        omissions=selection.omissions(events),
        before=[f"events: {events.count:,}"],
        after=after,
    )
    if tasks:
        kernels = _kernels(events)
        start_s = kernels.start_us * 1e-6
        trace.kernels = KernelTimes(start_s, start_s + kernels.took_us * 1e-6, kernels.stream)
        trace.steps, notes = _steps(events, selection, kernels)
        trace.after += notes
    elif len(events.steps) > 1:
        trace.after.append(f"profiler steps: {len(events.steps):,}; the calls of all of them are kept")
    return trace


def _steps(events: Events, selection: Selection, kernels: Kernels) -> tuple[list[RecordedStep], list[str]]:
    """The tasks of each step, and notes on them."""
    calls = selection.calls
    launched_us = dict(zip(events.launch_correlation, events.launch_us, strict=True))
    busy = _Busy(kernels, [*events.records[KERNEL], *events.records[SIZED], *events.unsized], launched_us)
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
    missing_us = _missing_us(events, selection)
    inside, ended_us = 0, -np.inf
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
        if any(start_us <= at_us < end_us for at_us in missing_us):
            steps[-1].bound = lowered(steps[-1].bound)
        ended_us = _add_recorded(steps[-1], busy, mine, own, ended_us)
    if len(calls) > inside:
        notes.append(f"left out: {len(calls) - inside:,} calls outside of the profiler's steps")
    return steps, notes


def _missing_us(events: Events, selection: Selection) -> list[float]:
    """When the host launched kernels that communicate and belong to no call; not those before a divided trace [us]."""
    launched = dict(zip(events.launch_correlation, events.launch_us, strict=True))
    foreign = [
        one for why, kernels in selection.foreign.items() if why != EARLIER or not events.steps for one in kernels
    ]
    return [launched.get(kernel.correlation, kernel.start_us) for kernel in (*events.unsized, *foreign)]


class _Busy:
    """Intervals of a device: what it did between two times.

    Args:
        kernels: that compute.
        messages: kernels that communicate, whether or not they are of a call.
        launched_us: time of each launch by its correlation [us].
    """

    def __init__(self, kernels: Kernels, messages: Sequence[Record], launched_us: Mapping[int, float]) -> None:
        self._compute = kernels.start_us, kernels.start_us + kernels.took_us
        self._messages = np.array([one.start_us for one in messages]), np.array([one.end_us for one in messages])
        start_us, end_us = (np.concatenate(pair) for pair in zip(self._compute, self._messages, strict=True))
        launch_us = [launched_us.get(one.correlation, np.nan) for one in messages]
        order = np.argsort(start_us, kind="stable")
        self._start_us, self._until_us = start_us[order], np.maximum.accumulate(end_us[order])
        self._launch_us = np.concatenate([kernels.launch_us, launch_us])[order]
        self._launches_known = bool(launched_us)

    def between(self, start_us: float, end_us: float) -> tuple[float, float]:
        """Time in which something was computed, and in which there was only communication [s]."""
        compute, messages = (
            (np.clip(side[0], start_us, end_us), np.clip(side[1], start_us, end_us))
            for side in (self._compute, self._messages)
        )
        busy_s = union_s(*compute) * 1e-6
        both = [np.concatenate(pair) for pair in zip(compute, messages, strict=True)]
        return busy_s, union_s(*both) * 1e-6 - busy_s

    def waits_for_host(self, start_us: float, end_us: float) -> float | None:
        """Idle time before kernels that the host had not launched yet; None if launches are not recorded [s].

        Args: start_us, end_us: the time between which it is counted [us].
        """
        if not self._launches_known:
            return None
        idle_us = np.clip(np.concatenate([[-np.inf], self._until_us[:-1]]), start_us, end_us)
        until_us = np.clip(np.fmin(self._launch_us, self._start_us), start_us, end_us)
        known = ~np.isnan(self._launch_us)
        return float(np.maximum(0.0, until_us - idle_us)[known].sum()) * 1e-6


def _add_recorded(
    step: RecordedStep, busy: _Busy, kernels: Kernels, calls: Sequence[HostCall], before_us: float
) -> float:
    """Give a step the times of the device: from the end of the last kernel of the step before to that of its own.

    Args:
        step: is changed; not if no kernel of a collective was recorded.
        busy: intervals of the device.
        kernels, calls: of the step.
        before_us: end of the last kernel of the step before; infinitely early: the step begins with its first kernel [us].
    Returns: end of its last kernel [us].
    """
    mine = {id(kernel): kernel for call in calls for kernel in call.kernels}.values()
    starts = [*(one.start_us for one in mine), *kernels.start_us[:1].tolist()]
    ends = [*(one.end_us for one in mine), *(kernels.start_us + kernels.took_us).tolist()]
    if not starts:
        return before_us
    end_us = max(ends)
    start_us = before_us if -np.inf < before_us < end_us else min(starts)
    if mine and step.recorded is None:
        computed_s, exposed_s = busy.between(start_us, end_us)
        took_s = sum(one.end_us - one.start_us for one in mine) * 1e-6
        compute_s = float(kernels.took_us.sum()) * 1e-6
        host_s = busy.waits_for_host(start_us, end_us)
        step.recorded = RecordedTimes(compute_s, took_s, exposed_s, (end_us - start_us) * 1e-6, computed_s, host_s)
    return max(end_us, before_us)


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
        launched = (known[at] == correlation) & (correlation >= 0)
        launch_us[launched] = np.array(events.launch_us)[order][at[launched]]
        thread[launched] = np.array(events.launch_thread, np.int64)[order][at[launched]]
    kernels = Kernels(start_us, took_us, stream, correlation, thread, launch_us)
    rows: npt.NDArray[np.int64] = np.argsort(start_us, kind="stable")
    return kernels.rows(rows)
