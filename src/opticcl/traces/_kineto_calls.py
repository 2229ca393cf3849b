"""Selects the calls of a PyTorch profiler trace and links them to their kernels.

The profiler records one collective in several places. Of these, in this order, the first that contains sizes counts:

    record_param_comms    where the host issues it: collective, elements, type, group    (NCCL, since PyTorch 2.2)
    kernel                the same arguments on the kernel; the kernel also has the duration
    nccl:all_reduce       annotation with the shapes of the inputs                       (record_shapes=True)
    c10d::allreduce_      operator with the shapes of its tensors                        (record_shapes=True)

An annotation lies inside its operator, whose output and input give the whole message of an all_gather or a reduce_scatter, the
size of its group, and what an all_to_all receives. Gloo has no kernels: its calls are the annotations `gloo:all_reduce`,
beside those of NCCL if a job uses both.

A kernel belongs to the call during which the host launched it: the correlation id leads to the launch, the launch lies in the
interval of the call on the same thread. Without launches the external id links them. A call is on the stream of its first
kernel; PyTorch gives every process group a stream of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opticcl.traces._kineto_events import GLOO, KERNEL, NCCL, OPERATOR, RECORD, Events, Record
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import RankCall
from opticcl.units import format_seconds

__all__ = ["HostCall", "Selection", "select_calls"]


@dataclass(slots=True)
class HostCall:
    """A call with its place on the host and on the device.

    Args:
        call: the call.
        thread: index of the host thread; -1 for a kernel without a host record.
        start_us, end_us: interval of its outermost record on the host [us].
        kernels: of the call, by start.
        launch_us: time of its first launch; -1 if not recorded [us].
    """

    call: RankCall
    thread: int
    start_us: float
    end_us: float
    kernels: list[Record] = field(default_factory=list)
    launch_us: float = -1.0


@dataclass(slots=True)
class Selection:
    """The calls of a trace.

    Args:
        calls: by start.
        kinds: of records that count.
        foreign: kernels of collectives that belong to no call of the trace.
        repeated: other records of the same calls, by kind [count].
    """

    calls: list[HostCall]
    kinds: list[str]
    foreign: list[Record]
    repeated: dict[str, int]

    def omissions(self, events: Events) -> Omissions:
        """Records without a usable size, of the kinds that count or, if there is none, of all kinds."""
        found = Omissions()
        for kind in self.kinds or events.records:
            found.add_all(events.omissions[kind])
        return found

    def notes(self, events: Events) -> Iterator[str]:
        """Remarks on the selection."""
        yield f"calls recorded by: {' and '.join(self.kinds) or 'nothing with a size'}"
        for kind, n in self.repeated.items():
            yield f"repeated records of the same calls, not counted: {n:,} {kind}"
        if self.foreign:
            busy_s = sum(kernel.end_us - kernel.start_us for kernel in self.foreign) * 1e-6
            why = "launched before the recording began" if len(events.launch_us) else "without a record of their launch"
            yield (
                f"left out: {len(self.foreign):,} kernels of collectives, {format_seconds(busy_s)}, {why}: "
                "they belong to no call of the trace"
            )
        for what, n in events.irregular.items():
            yield f"{what}: {n:,}"


def select_calls(events: Events) -> Selection:
    """The calls of the records that count, with their kernels."""
    records = events.records
    with_size = {kind: [one for one in records[kind] if one.call] for kind in records}
    kinds = next(([kind] for kind in (RECORD, KERNEL, NCCL) if with_size[kind]), [])
    # Records without any of NCCL beside them are Gloo's own.
    if with_size[GLOO] and (kinds != [RECORD] or records[NCCL] or records[KERNEL]):
        kinds.append(GLOO)
    if not kinds and with_size[OPERATOR]:
        kinds.append(OPERATOR)
    chosen = sorted((one for kind in kinds for one in with_size[kind]), key=lambda one: one.start_us)
    extents = _Extents(records)
    calls = []
    for one in chosen:
        assert one.call is not None
        if one.kind in (NCCL, GLOO):
            _add_operator(one.call, extents.operator_of(one))
        thread, start_us, end_us = (-1, one.start_us, one.end_us) if one.kind == KERNEL else extents.of(one)
        calls.append(HostCall(one.call, thread, start_us, end_us, [one] if one.kind == KERNEL else []))
    foreign = [] if KERNEL in kinds else _link(events, calls, chosen)
    streams: dict[int, int] = {-1: 0}
    for host in calls:
        if host.kernels:
            host.kernels.sort(key=lambda kernel: kernel.start_us)
            host.call.stream = streams.setdefault(host.kernels[0].thread, len(streams))
            host.call.start_s = host.kernels[0].start_us * 1e-6
            host.call.end_s = max(kernel.end_us for kernel in host.kernels) * 1e-6
            host.call.measured_s = sum(kernel.end_us - kernel.start_us for kernel in host.kernels) * 1e-6
    repeated = {
        kind: len(records[kind]) - (len(foreign) if kind == KERNEL else 0) for kind in records if kind not in kinds
    }
    return Selection(calls, kinds, foreign, {kind: n for kind, n in repeated.items() if n and kinds})


def _add_operator(call: RankCall, operator: RankCall | None) -> None:
    """Complete the call of an annotation by the shapes of its operator."""
    if operator is None or operator.collective != call.collective:
        return
    if operator.group_size and call.collective in ("all_gather", "reduce_scatter"):
        call.size_bytes, call.counts, call.group_size = operator.size_bytes, "message", operator.group_size
    elif call.collective == "all_to_all":
        call.received_bytes = operator.received_bytes


class _Extents:
    """Intervals of the outermost records of calls on each host thread."""

    def __init__(self, records: dict[str, list[Record]]) -> None:
        self._operators = _by_thread(records[OPERATOR])
        outer = [one for kind in (OPERATOR, RECORD, NCCL, GLOO) for one in records[kind]]
        self._outermost = {}
        for thread, rows in _by_thread(outer).items():
            kept: list[Record] = []
            for one in rows:  # by start, the longest first
                if not kept or one.end_us > kept[-1].end_us:
                    kept.append(one)
            self._outermost[thread] = kept

    def of(self, record: Record) -> tuple[int, float, float]:
        """Thread, start and end of the outermost record around one."""
        outer = _around(self._outermost.get(record.thread, []), record) or record
        return record.thread, outer.start_us, outer.end_us

    def operator_of(self, record: Record) -> RankCall | None:
        """The call of the operator around a record."""
        outer = _around(self._operators.get(record.thread, []), record)
        return outer and outer.call


def _by_thread(records: Sequence[Record]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = defaultdict(list)
    for one in sorted(records, key=lambda one: (one.start_us, -one.end_us)):
        found[one.thread].append(one)
    return found


def _around(rows: list[Record], record: Record) -> Record | None:
    """The last of the rows that begins no later than a record and contains it."""
    at = bisect_right(rows, record.start_us, key=lambda row: row.start_us)
    for row in reversed(rows[max(0, at - 4) : at]):  # operators of one thread do not nest deeper
        if row.end_us >= record.end_us:
            return row
    return None


def _link(events: Events, calls: list[HostCall], chosen: Sequence[Record]) -> list[Record]:
    """Add its kernels to each call. Returns: the kernels of no call."""
    wanted = {kernel.correlation for kernel in events.records[KERNEL]}
    launches = {
        correlation: (thread, us)
        for correlation, thread, us in zip(
            events.launch_correlation, events.launch_thread, events.launch_us, strict=True
        )
        if correlation in wanted and correlation >= 0
    }
    by_thread: dict[int, list[int]] = defaultdict(list)
    for i in sorted(range(len(calls)), key=lambda i: calls[i].start_us):
        by_thread[calls[i].thread].append(i)
    by_external = {one.external: i for i, one in enumerate(chosen) if one.external is not None}
    foreign = []
    for kernel in events.records[KERNEL]:
        found = -1
        if kernel.correlation in launches:
            thread, us = launches[kernel.correlation]
            rows = by_thread[thread]
            at = bisect_right(rows, us, key=lambda i: calls[i].start_us) - 1
            if at >= 0 and us <= calls[rows[at]].end_us:
                found = rows[at]
                calls[found].launch_us = us if calls[found].launch_us < 0 else min(calls[found].launch_us, us)
        if found < 0 and kernel.correlation not in launches:
            found = by_external.get(kernel.external, -1)
        if found < 0:
            foreign.append(kernel)
        else:
            calls[found].kernels.append(kernel)
    return foreign
