"""Selects the calls of a PyTorch profiler trace and links them to their kernels.

The profiler records one collective in several places. Of these, in this order, the first that contains sizes counts:

    record_param_comms    where the host issues it: collective, elements, type, group    (NCCL, since PyTorch 2.2)
    kernel                the same arguments on the kernel; the kernel also has the duration
    nccl:all_reduce       annotation with the shapes of the inputs                       (record_shapes=True)
    c10d::allreduce_      operator with the shapes of its tensors                        (record_shapes=True)

An annotation lies inside its operator, whose output and input give the whole message of an all_gather or a reduce_scatter, the
size of its group, and what an all_to_all receives; its values are the ends of a transfer and the parts of an all_to_all. Gloo
has no kernels: its calls are the annotations `gloo:all_reduce`, beside those of NCCL if a job uses both. They begin when Gloo
starts the call, inside the operator or later: then the operator is the first of that collective and size without one.

A kernel belongs to the call during which the host launched it: the correlation id leads to the launch, the launch lies in the
interval of the call on the same thread. Otherwise the external id links them, or the only call of another thread at that time.
The kernel of a batch is launched in the annotation nccl:coalesced behind its calls; they share its time by their bytes. A call
is on the stream of its first kernel; PyTorch gives every process group a stream of its own.

A graph is captured once, while its calls are recorded and nothing runs, and launched often. The kernels of collectives of each
launch are the captured calls, in their order, if their number and their collectives agree; the captured calls themselves never
ran. Why a kernel belongs to no call is tested, and said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations

from opticcl.traces._kineto_events import GLOO, KERNEL, NCCL, OPERATOR, RECORD, SIZED, Events, Record, give_values
from opticcl.traces.c10d import collective_of
from opticcl.traces.kernel_names import UNSIZED
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import RankCall
from opticcl.units import counted, format_seconds

__all__ = ["EARLIER", "HostCall", "Selection", "select_calls"]

NEAR = 8  # calls before a launch that may contain it
MAX_GRAPHS = 6  # of different kernels, whose captures are distinguished
EARLIER = "launched before the recording began"


@dataclass(slots=True)
class HostCall:
    """A call with its place on the host and on the device.

    Args:
        call: the call.
        thread: index of the host thread; -1 for a kernel without a host record.
        start_us, end_us: interval of its outermost record on the host [us].
        kernels: of the call, by start.
        launch_us: time of its first launch; -1: not recorded, or `end_us` [us].
        in_graph: whether it was launched by a graph, together with the kernels around it.
        on_host: whether the host executes it, as Gloo does.
    """

    call: RankCall
    thread: int
    start_us: float
    end_us: float
    kernels: list[Record] = field(default_factory=list)
    launch_us: float = -1.0
    in_graph: bool = False
    on_host: bool = False


@dataclass(slots=True)
class Selection:
    """The calls of a trace.

    Args:
        calls: by start.
        kinds: of records that count.
        foreign: kernels of collectives that belong to no call of the trace, by reason.
        repeated: other records of the same calls, by kind [count].
        remarks: on batches and graphs.
    """

    calls: list[HostCall]
    kinds: list[str]
    foreign: dict[str, list[Record]]
    repeated: dict[str, int]
    remarks: list[str]

    def omissions(self, events: Events) -> Omissions:
        """Records without a usable size, of the kinds that count or, if there is none, of all kinds."""
        omissions = Omissions()
        for kind in self.kinds or events.records:
            omissions.add_all(events.omissions[kind])
        return omissions

    def notes(self, events: Events) -> Iterator[str]:
        """Remarks on the selection."""
        yield f"calls recorded by: {' and '.join(self.kinds) or 'nothing with a size'}"
        for kind, n in self.repeated.items():
            yield f"repeated records of the same calls, not counted: {n:,} {kind}"
        yield from self.remarks
        for why, kernels in self.foreign.items():
            busy_s = sum(kernel.end_us - kernel.start_us for kernel in kernels) * 1e-6
            yield (
                f"left out: {len(kernels):,} kernels of collectives, {format_seconds(busy_s)}, {why}: they belong to no call "
                "of the trace"
            )
        yield from events.activities.notes()
        for what, n in events.irregular.items():
            yield f"{what}: {n:,}"


def select_calls(events: Events) -> Selection:
    """The calls of the records that count, with their kernels."""
    records = events.records
    with_size = {kind: [one for one in records[kind] if one.call] for kind in records}
    launches = _launches(events)
    kinds = next(([kind] for kind in (RECORD, KERNEL, NCCL) if with_size[kind]), [])
    # Records without any of NCCL beside them are Gloo's own.
    if with_size[GLOO] and (kinds != [RECORD] or records[NCCL] or records[KERNEL]):
        kinds.append(GLOO)
    if not kinds and with_size[OPERATOR]:
        kinds.append(OPERATOR)
    if with_size[SIZED]:
        kinds.append(SIZED)
    chosen = sorted((one for kind in kinds for one in with_size[kind]), key=lambda one: one.start_us)
    extents = _Extents(records)
    calls = []
    for one in chosen:
        assert one.call is not None
        if one.kind in (RECORD, NCCL, GLOO):
            for why in _add_operator(one, extents.operator_of(one)):
                events.omissions[one.kind].add(why)
        if one.kind in (KERNEL, SIZED):
            at_us = launches[one.correlation][1] if one.correlation in launches else one.start_us
            in_graph = one.correlation in events.graph_launches
            calls.append(HostCall(one.call, -1, at_us, at_us, [one], in_graph=in_graph))
        else:
            calls.append(HostCall(one.call, *extents.of(one), on_host=one.kind == GLOO))
    foreign: dict[str, list[Record]] = {}
    remarks: list[str] = []
    if KERNEL not in kinds:
        lone = _link(events, launches, calls, chosen)
        lone, batches = _link_batches(events, launches, calls, lone)
        lone, calls, graphs = _link_graphs(events, launches, calls, lone)
        remarks = [*batches, *graphs]
        for why, kernel in _reasons(events, launches, lone):
            foreign.setdefault(why, []).append(kernel)
    for one in events.unsized:
        took_us = one.end_us - one.start_us
        events.activities.add(f"{one.kind} {UNSIZED}", one.name, took_us, one.copied_bytes)
    calls.sort(key=lambda call: call.start_us)
    _set_times(calls)
    lost = sum(map(len, foreign.values()))
    repeated = {kind: len(records[kind]) - (lost if kind == KERNEL else 0) for kind in records if kind not in kinds}
    return Selection(calls, kinds, foreign, {kind: n for kind, n in repeated.items() if n and kinds}, remarks)


def _set_times(calls: list[HostCall]) -> None:
    """Give each call the stream and the times of its kernels; calls of one kernel share its time by their bytes."""
    shares = Counter[int]()
    for host in calls:
        shares.update({id(kernel): max(1, host.call.size_bytes) for kernel in host.kernels})
    streams: dict[int, int] = {-1: 0}
    for host in calls:
        if host.kernels:
            host.kernels.sort(key=lambda kernel: kernel.start_us)
            host.call.stream = streams.setdefault(host.kernels[0].thread, len(streams))
            host.call.start_s = host.kernels[0].start_us * 1e-6
            host.call.end_s = max(kernel.end_us for kernel in host.kernels) * 1e-6
            size = max(1, host.call.size_bytes)
            parts = [(kernel.end_us - kernel.start_us) * (size / shares[id(kernel)]) for kernel in host.kernels]
            host.call.measured_s = sum(parts) * 1e-6


def _add_operator(one: Record, record: Record | None) -> Iterator[str]:
    """Complete a call by the values of its operator, and the call of an annotation by its shapes.

    Args:
        one: record of the call, which is changed.
        record: of the operator around it; None: there is none.
    Yields: why a list of parts is not used.
    """
    call = one.call
    if record is None or call is None or record.word != call.collective:
        return
    operator = record.call
    if operator is None or one.kind == RECORD:
        pass
    elif operator.group_size and call.collective in ("all_gather", "reduce_scatter"):
        call.size_bytes, call.counts, call.group_size = operator.size_bytes, "message", operator.group_size
    elif call.collective == "all_to_all":
        call.received_bytes = operator.received_bytes
    known = call.sent_splits or (call.is_transfer and call.ranks != (-1, -1))
    if record.values is not None and not known:
        yield from give_values(call, record.values)


class _Extents:
    """Intervals of the outermost records of calls on each host thread."""

    def __init__(self, records: dict[str, list[Record]]) -> None:
        self._operators = _by_thread(records[OPERATOR])
        self._used: set[int] = set()  # operators of Gloo's annotations, by identity
        self._waiting: dict[str, deque[Record]] = defaultdict(deque)
        for one in sorted(records[OPERATOR] if records[GLOO] else (), key=lambda one: one.start_us):
            self._waiting[one.word].append(one)
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

    def operator_of(self, record: Record) -> Record | None:
        """The record of the operator of a call; calls must come by start."""
        if record.kind != GLOO:
            return _around(self._operators.get(record.thread, []), record)
        operator = _around(self._operators.get(record.thread, []), record._replace(end_us=record.start_us))
        if operator is None or operator.word != record.word or id(operator) in self._used:
            waiting = self._waiting[record.word]
            while waiting and id(waiting[0]) in self._used:
                waiting.popleft()
            size = record.call.size_bytes if record.call else 0
            fitting = (
                one
                for one in islice(waiting, NEAR * NEAR)
                if one.start_us <= record.start_us
                and id(one) not in self._used
                and (one.call is None or size in (one.call.size_bytes, one.call.received_bytes))
            )
            operator = next(fitting, None)
        if operator is not None:
            self._used.add(id(operator))
        return operator


def _by_thread(records: Sequence[Record]) -> dict[int, list[Record]]:
    by_thread: dict[int, list[Record]] = defaultdict(list)
    for one in sorted(records, key=lambda one: (one.start_us, -one.end_us)):
        by_thread[one.thread].append(one)
    return by_thread


def _around(rows: list[Record], record: Record) -> Record | None:
    """The last of the rows that begins no later than a record and contains it."""
    at = bisect_right(rows, record.start_us, key=lambda row: row.start_us)
    for row in reversed(rows[max(0, at - 4) : at]):  # operators of one thread do not nest deeper
        if row.end_us >= record.end_us:
            return row
    return None


Launches = dict[int, tuple[int, float]]
"""Thread and time of each launch by its correlation id [us]."""


def _launches(events: Events) -> Launches:
    """Launches of the kernels that communicate."""
    kernels = (*events.records[KERNEL], *events.records[SIZED], *events.unsized)
    wanted = {kernel.correlation for kernel in kernels}
    rows = zip(events.launch_correlation, events.launch_thread, events.launch_us, strict=True)
    return {correlation: (thread, us) for correlation, thread, us in rows if correlation in wanted and correlation >= 0}


def _by_host(calls: Sequence[HostCall]) -> dict[int, list[HostCall]]:
    """Calls of each host thread, by start."""
    by_thread: dict[int, list[HostCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.start_us):
        by_thread[call.thread].append(call)
    return by_thread


def _link(events: Events, launches: Launches, calls: list[HostCall], chosen: Sequence[Record]) -> list[Record]:
    """Add its kernels to each call; one without a record of its own is from then on one of those that have.

    Returns: the other kernels of no call.
    """
    by_host = _by_host(calls)
    by_external = {one.external: call for one, call in zip(chosen, calls, strict=True) if one.external is not None}
    foreign: list[Record] = []
    candidates, events.unsized = [*events.records[KERNEL], *events.unsized], []
    for kernel in candidates:
        owner = None
        if kernel.correlation in launches:
            thread, us = launches[kernel.correlation]
            rows = by_host[thread]
            at = bisect_right(rows, us, key=lambda call: call.start_us) - 1
            if at >= 0 and us <= rows[at].end_us:
                owner = rows[at]
                owner.launch_us = us if owner.launch_us < 0 else min(owner.launch_us, us)
        if owner is None and kernel.external is not None and kernel.correlation not in events.graph_launches:
            owner = by_external.get(kernel.external)
        if owner is None:
            (foreign if kernel.kind == KERNEL else events.unsized).append(kernel)
        elif kernel.kind == KERNEL:
            owner.kernels.append(kernel)
        else:
            owner.kernels.append(kernel._replace(kind=KERNEL))
            events.records[KERNEL].append(owner.kernels[-1])
    by_start = sorted(calls, key=lambda call: call.start_us) if foreign else []
    return [kernel for kernel in foreign if not _link_across(kernel, events, launches, by_start)]


def _link_across(kernel: Record, events: Events, launches: Launches, by_start: list[HostCall]) -> bool:
    """Add a kernel to the only call without one that another thread issued while it was launched.

    Args:
        kernel: of no call so far, and so of none of its own thread.
        events, launches: of the trace.
        by_start: all calls, by start.
    Returns: whether there is one.
    """
    if kernel.correlation not in launches or kernel.correlation in events.graph_launches:
        return False
    us = launches[kernel.correlation][1]
    until = bisect_right(by_start, us, key=lambda call: call.start_us)
    near = [one for one in by_start[max(0, until - NEAR) : until] if us <= one.end_us and not one.on_host]
    if len(near) != 1 or near[0].kernels:
        return False
    near[0].launch_us = us
    near[0].kernels.append(kernel)
    return True


def _link_batches(
    events: Events, launches: Launches, calls: list[HostCall], lone: list[Record]
) -> tuple[list[Record], list[str]]:
    """Add the kernels of batches to their calls: those of the thread since its last launch that have no kernel themselves.

    Returns: the kernels of no call, and a remark.
    """
    annotations: dict[int, list[Record]] = defaultdict(list)
    for one in sorted(events.batches, key=lambda one: one.start_us):
        annotations[one.thread].append(one)
    by_host = _by_host(calls)
    batches: dict[int, list[HostCall]] = {}  # annotation, by identity -> calls
    left, linked = [], 0
    for kernel in lone:
        thread, us = launches.get(kernel.correlation, (-1, -1.0))
        rows = annotations.get(thread, [])
        at = bisect_right(rows, us, key=lambda one: one.start_us) - 1
        if at < 0 or us > rows[at].end_us:
            left.append(kernel)
            continue
        batch = rows[at]
        if id(batch) not in batches:
            before_us = rows[at - 1].end_us if at else -1.0
            until = bisect_right(by_host[thread], batch.end_us, key=lambda call: call.start_us)
            mine: list[HostCall] = []
            for call in reversed(by_host[thread][:until]):
                if call.kernels or call.start_us < before_us:
                    break
                mine.append(call)
            batches[id(batch)] = mine
        if not batches[id(batch)]:
            left.append(kernel)
        else:
            linked += 1
        for call in batches[id(batch)]:
            call.launch_us = us
            call.kernels = [*call.kernels, kernel]
    number = sum(map(len, batches.values()))
    remark = f"batches: {counted(linked, 'kernel')} of {counted(number, 'call')}, which share their time by bytes"
    return left, [remark] if linked else []


def _link_graphs(
    events: Events, launches: Launches, calls: list[HostCall], lone: list[Record]
) -> tuple[list[Record], list[HostCall], list[str]]:
    """Put the calls of launched graphs in the place of those that were captured.

    Returns: the kernels of no call, the calls, and a remark.
    """
    replays: dict[int, list[Record]] = defaultdict(list)
    for kernel in lone:
        if kernel.correlation in events.graph_launches and kernel.correlation in launches:
            replays[kernel.correlation].append(kernel)
    captured = [call for call in calls if not (call.kernels or call.on_host)]
    if not replays:
        return lone, calls, []
    for kernels in replays.values():
        kernels.sort(key=lambda kernel: kernel.start_us)
    forms = dict.fromkeys(tuple(_word(one) for one in replays[c]) for c in sorted(replays))
    captures = _captures(_whole_forms(list(forms)), captured)
    if captures is None:
        return lone, calls, []
    kept = [call for call in calls if call.kernels or call.on_host]
    in_order = sorted(replays, key=lambda correlation: launches[correlation][1])
    taken = set[int]()
    for correlation in in_order:
        thread, us = launches[correlation]
        form = tuple(_word(one) for one in replays[correlation])
        mine = captures.get(form, [])
        if not mine:  # a launch that the recording begins or ends in
            whole = next(iter(captures))
            if correlation == in_order[0] and whole[-len(form) :] == form:
                mine = captures[whole][-len(form) :]
            elif correlation == in_order[-1] and whole[: len(form)] == form:
                mine = captures[whole][: len(form)]
        for kernel, call in zip(replays[correlation], mine, strict=False):
            kept.append(HostCall(replace(call.call), thread, us, us, [kernel], in_graph=True))
            taken.add(id(kernel))
    remark = (
        f"graphs: launched {len(replays):,} times, with {len(taken):,} kernels of collectives, whose sizes are those of the "
        f"{counted(len(captured), 'call')} recorded while they were captured"
    )
    return [kernel for kernel in lone if id(kernel) not in taken], kept, [remark]


Form = tuple[str, ...]


def _whole_forms(forms: list[Form]) -> list[Form]:
    """Without those that may be the beginning or the end of the only longer one."""
    whole = [
        form
        for form in forms
        if not any(len(one) > len(form) and form in (one[-len(form) :], one[: len(form)]) for one in forms)
    ]
    return whole if len(whole) == 1 else forms


def _captures(forms: list[Form], captured: list[HostCall]) -> dict[Form, list[HostCall]] | None:
    """The captured calls of each graph, known by the collectives of its kernels; None if they do not agree or are ambiguous."""
    of_one = len(forms[0]) if len(forms) == 1 else 0
    if of_one and len(captured) % of_one == 0:  # a graph that was captured several times
        again = {_signature(captured[at : at + of_one]) for at in range(0, len(captured), of_one)}
        captured = captured[:of_one] if len(again) == 1 else captured
    if len(forms) > MAX_GRAPHS or sum(map(len, forms)) != len(captured):
        return None
    by_signature: dict[object, dict[Form, list[HostCall]]] = {}
    for order in permutations(forms):
        at, divided = 0, {}
        for form in order:
            divided[form] = captured[at : at + len(form)]
            at += len(form)
        if all(
            word in ("", call.call.collective) or (word == "send" and call.call.is_transfer)
            for form, rows in divided.items()
            for word, call in zip(form, rows, strict=True)
        ):
            by_signature[tuple(_signature(divided[form]) for form in forms)] = divided
    return next(iter(by_signature.values())) if len(by_signature) == 1 else None


def _signature(calls: Sequence[HostCall]) -> tuple[object, ...]:
    """What calls are, apart from their names and times."""
    return tuple((one.call.collective, one.call.size_bytes, one.call.group, one.call.ranks) for one in calls)


def _word(kernel: Record) -> str:
    """The collective in the name of a kernel, "send" of a transfer; empty if it has none."""
    part = kernel.name.partition("_")[2]
    return "send" if part.lower().startswith("sendrecv") else collective_of(part.partition("_")[0])


def _reasons(events: Events, launches: Launches, lone: Sequence[Record]) -> Iterator[tuple[str, Record]]:
    """Why each kernel belongs to no call; each reason is tested."""
    records = _by_thread([one for kind in (RECORD, NCCL, OPERATOR) for one in events.records[kind]]) if lone else {}
    first_us = min(events.launch_us, default=-1.0)
    first = min((c for c in events.launch_correlation if c >= 0), default=-1)
    for kernel in lone:
        if kernel.correlation in launches:
            thread, us = launches[kernel.correlation]
            inside = _around(records.get(thread, []), kernel._replace(start_us=us, end_us=us))
            if kernel.correlation in events.graph_launches:
                yield (
                    "launched by a graph whose calls are not recorded, or not known from those of other graphs",
                    kernel,
                )
            elif inside is not None:
                yield "launched within a record without a size", kernel
            else:
                yield "launched outside of any record of a call", kernel
        elif not len(events.launch_us):
            yield "without a record of their launch", kernel
        elif kernel.start_us < first_us or 0 <= kernel.correlation < first:
            yield EARLIER, kernel
        else:
            yield "whose launch is not in the file", kernel
