"""Several ranks of one job together: the calls of all, and one task graph with a device for each rank."""

from __future__ import annotations

import heapq
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import Bound, CollectiveCall, RecordedTimes, Task, TaskGraph, Workload
from opticcl.traces.graphs import GraphBuilder, job_of, require_count
from opticcl.traces.matching import Matching, match_calls, skew_notes, waited_s
from opticcl.traces.notes import Omissions, notes_on
from opticcl.traces.ranks import RankModel, rank_model
from opticcl.traces.recording import RankTask, RankTrace, RecordedStep, lowered
from opticcl.units import counted

__all__ = ["merged_graphs", "merged_workload", "order_ranks"]

MAX_TASKS = 20_000_000
BUFFERED = (
    "transfers start when their sender is ready, since the ranks send before they receive and would wait for each other"
)
# Only to order computation that is recorded as operations and bytes, not to time it.
_OPERATIONS_PER_S, _BYTES_PER_S = 1e14, 1e12


def order_ranks(traces: Sequence[RankTrace]) -> list[RankTrace]:
    """The traces by rank.

    Raises: WorkloadError: a trace without a rank, or two of the same rank.
    """
    for trace in traces:
        if trace.rank < 0:
            raise WorkloadError(
                f"{trace.file}: the rank of this trace is not recorded; name the files by rank, such as w.0.et or rank0.json"
            )
    found: dict[int, RankTrace] = {}
    for trace in traces:
        if trace.rank in found:
            raise WorkloadError(
                f"{trace.file} and {found[trace.rank].file} are both of rank {trace.rank}; give one file for each rank"
            )
        found[trace.rank] = trace
    return [found[rank] for rank in sorted(found)]


def merged_workload(traces: Sequence[RankTrace], given: int = 0) -> Workload:
    """The calls of several ranks, each collective and transfer once.

    Args:
        traces: of distinct ranks.
        given: number of ranks by the caller; 0: as recorded [count].
    Raises: WorkloadError: two sources contradict each other, or a rank occurs twice or is not recorded.
    """
    traces = order_ranks(traces)
    model = rank_model(traces, given)
    omissions = _omissions(traces)
    matching = match_calls(traces, [trace.calls for trace in traces], model, omissions)
    calls = [one.call for one in matching.matched]
    notes = _notes(traces, model, calls, matching, omissions)
    compute_s = max(trace.compute_s for trace in traces)
    name, source = _about(traces)
    about = (model.count.value, compute_s, model.count.source, omissions.records())
    return Workload(name, source, tuple(calls), tuple(notes), *about)


def merged_graphs(traces: Sequence[RankTrace], given: int = 0) -> list[TaskGraph]:
    """The task graph of each step of several ranks.

    Args:
        traces: of distinct ranks, with their tasks.
        given: number of ranks by the caller; 0: as recorded [count].
    Raises: WorkloadError: as `merged_workload`, unequal numbers of steps, or ranks that wait for each other.
    """
    traces = order_ranks(traces)
    model = rank_model(traces, given)
    require_count(traces[0].name, model.count)
    if not any(trace.steps for trace in traces):
        return [job_of(merged_workload(traces, given), num_ranks=model.count.value)]
    names = _common_steps(traces)
    graphs = []
    for name in names:
        steps = [next(step for step in trace.steps if step.name == name) for trace in traces]
        omissions = _omissions(traces)
        calls = [[call for task in step.tasks for call in task.calls] for step in steps]
        matching = match_calls(traces, calls, model, omissions)
        notes = [*_notes(traces, model, [one.call for one in matching.matched], matching, omissions)]
        for step in steps:
            notes += [note for note in step.notes if note not in notes]
        alone = any(len(one.sides) < 2 and one.sides[0].call.collective == "recv" for one in matching.matched)
        bound = _weakest({step.bound for step in steps})
        if alone or any(one.missing for one in omissions.records()):
            bound = lowered(bound)
        graph = _graph(traces, [step.tasks for step in steps], model, matching, notes, name, bound)
        graphs.append(replace(graph, recorded=_recorded(traces, steps, matching)))
    return graphs


def _recorded(traces: Sequence[RankTrace], steps: Sequence[RecordedStep], matching: Matching) -> RecordedTimes | None:
    """Times of the rank with the longest step, or with the most computation; None if none are recorded."""
    known = [(one.recorded, trace.rank) for trace, one in zip(traces, steps, strict=True) if one.recorded is not None]
    if not known:
        return None
    chosen, rank = max(known, key=lambda one: (one[0].total_s or 0.0, one[0].compute_s))
    return replace(chosen, skew_s=waited_s(matching, rank))


def _omissions(traces: Sequence[RankTrace]) -> Omissions:
    """What the readers left out of all traces."""
    found = Omissions()
    for trace in traces:
        found.add_all(trace.omissions)
    return found


def _about(traces: Sequence[RankTrace]) -> tuple[str, str]:
    """Name and source of the job."""
    first = traces[0]
    common = os.path.commonprefix([trace.name for trace in traces]).rstrip("._-")  # noqa: RUF071 (names, not paths)
    others = len({trace.file for trace in traces}) - 1
    return common or first.name, f"{first.source} and {counted(others, 'other file')}" if others else first.source


def _weakest(bounds: set[Bound]) -> Bound:
    """What a time is that rests on times of these kinds."""
    known = bounds - {""}
    return "" if not known else known.pop() if len(known) == 1 else "estimate"


def _common_steps(traces: Sequence[RankTrace]) -> list[str]:
    """Names of the steps that all traces have.

    Raises: WorkloadError: there is none, or a trace has no call.
    """
    for trace in traces:
        if not trace.steps:
            notes = "; ".join([*trace.after, *trace.omissions.notes()])
            raise WorkloadError(f"{trace.file}: no collective with a size in this trace; {notes or 'leave it out'}")
    common = set.intersection(*({step.name for step in trace.steps} for trace in traces))
    if not common:
        has = "; ".join(f"{t.file} has {', '.join(s.name or 'one step' for s in t.steps[:3])}" for t in traces[:3])
        more = "; ..." if len(traces) > 3 else ""
        raise WorkloadError(
            f"{traces[0].name}: the traces have no step in common: {has}{more}; give recordings of the same step, or one alone"
        )
    return [step.name for step in traces[0].steps if step.name in common]


# --- notes ------------------------------------------------------------------------------------------------------------


def _notes(
    traces: Sequence[RankTrace],
    model: RankModel,
    calls: Sequence[CollectiveCall],
    matching: Matching,
    omissions: Omissions,
) -> list[str]:
    """Notes on all ranks together, and those of a single rank that the others do not contradict."""
    count = model.count.value
    present = {trace.rank for trace in traces}
    files = len({trace.file for trace in traces})
    notes = [f"files: {files:,}, ranks {min(present):,} to {max(present):,}"]
    if count and len(present) < count:
        missing = sorted(set(range(min(count, 10_000))) - present)
        shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        notes.append(
            f"without a trace: {count - len(present):,} of {count:,} ranks ({shown}); they are taken to keep up"
        )
    notes += [*notes_on(calls, count), *model.notes(calls), *matching.notes]
    if uneven := sum(call.is_uneven for call in calls):
        notes.append(
            f"uneven all_to_all: {uneven:,}, timed with the bytes of each pair on the plan of an even one; sizes are those of "
            "the busiest rank"
        )
    notes += skew_notes(matching)
    common = set.intersection(*(set(trace.after) for trace in traces))
    notes += [note for note in traces[0].after if note in common]
    if differing := sum(note not in common for trace in traces for note in trace.after):
        notes.append(f"notes on single files: {differing:,}; read a file alone to see them")
    return [*notes, *omissions.notes()]


# --- the task graph ---------------------------------------------------------------------------------------------------


def _graph(
    traces: Sequence[RankTrace],
    tasks: Sequence[Sequence[RankTask]],
    model: RankModel,
    matching: Matching,
    notes: list[str],
    step: str,
    bound: Bound,
) -> TaskGraph:
    """The task graph of one step.

    Raises: WorkloadError: ranks that wait for each other, or too many tasks.
    """
    if (total := sum(map(len, tasks))) > MAX_TASKS:
        raise WorkloadError(f"{traces[0].name}: {total:,} tasks of {len(traces):,} ranks are more than {MAX_TASKS:,}")
    nodes, after = _nodes(traces, tasks, matching)
    order = _order(nodes, after)
    if len(order) < len(nodes):  # ranks that send before they receive
        buffered = _nodes(traces, tasks, matching, buffered=True)
        if len(again := _order(*buffered)) == len(nodes):
            (nodes, after), order, bound = buffered, again, lowered(bound)
            notes = [*notes, BUFFERED]
    if len(order) < len(nodes):
        started = set(order)
        stuck = next(node for i, node in enumerate(nodes) if i not in started)
        raise WorkloadError(
            f"{traces[0].name}: the ranks wait for each other: {len(nodes) - len(order):,} tasks can never start, such as "
            f"{stuck.name!r} of rank {traces[stuck.devices[0]].rank}"
        )
    builder = GraphBuilder(model.count.value)
    place = {old: new for new, old in enumerate(order)}
    made: list[Task] = []
    for old in order:
        node = nodes[old]
        waits = tuple(sorted({place[j] for j in after[old]}))
        if node.call is None:
            one = node.task
            made.append(
                Task(
                    one.name,
                    one.compute_s,
                    after=waits,
                    phase=one.phase,
                    devices=node.devices,
                    operations=one.operations,
                    memory_bytes=one.memory_bytes,
                )
            )
        else:
            streams = node.streams if any(node.streams) else ()
            made.append(replace(builder.task([node.call], waits, node.task), devices=node.devices, streams=streams))
    name, source = _about(traces)
    ranks = tuple(trace.rank for trace in traces)
    return builder.graph(name, source, made, notes, model.count, step, bound, ranks)


@dataclass(slots=True)
class _Node:
    """A task of the merged graph: computation of one rank, or a call of several."""

    name: str
    task: RankTask
    devices: tuple[int, ...]
    place: int
    call: CollectiveCall | None = None
    took_s: float = 0.0
    streams: tuple[int, ...] = ()  # of the call on each device


def _nodes(
    traces: Sequence[RankTrace], tasks: Sequence[Sequence[RankTask]], matching: Matching, *, buffered: bool = False
) -> tuple[list[_Node], list[set[int]]]:
    """Nodes and their dependencies; calls that are left out pass theirs on.

    Args:
        traces: of the ranks.
        tasks: of each.
        matching: of their calls.
        buffered: whether a transfer starts when its sender is ready, and its receiver waits alone.
    """
    device_of = {trace.rank: device for device, trace in enumerate(traces)}
    nodes: list[_Node] = []
    after: list[set[int]] = []
    of_match: dict[int, int] = {}
    for device, (trace, mine) in enumerate(zip(traces, tasks, strict=True)):
        ends: list[set[int]] = []
        computed = -1
        ordered = trace.steps[0].ordered
        for place, task in enumerate(mine):
            waits = {i for j in task.after for i in ends[j]}
            here: set[int] = set()
            if not task.calls:
                if ordered and computed >= 0:
                    waits.add(computed)
                took_s = task.compute_s or max(task.operations / _OPERATIONS_PER_S, task.memory_bytes / _BYTES_PER_S)
                computed = len(nodes)
                here.add(computed)
                nodes.append(_Node(task.name, task, (device,), task.place if task.place >= 0 else place, None, took_s))
                after.append(waits)
            for call in task.calls:
                matched = matching.by_call.get(id(call))
                if matched is None:
                    here |= waits
                    continue
                if id(matched) not in of_match:
                    of_match[id(matched)] = len(nodes)
                    queues = {device_of[side.rank]: side.call.stream for side in matched.sides}
                    devices = tuple(sorted(queues))
                    streams = tuple(queues[one] for one in devices)
                    nodes.append(_Node(call.name, task, devices, place, matched.call, streams=streams))
                    after.append(set())
                i = of_match[id(matched)]
                here.add(i)
                if buffered and call.collective == "recv" and len(matched.sides) == 2:
                    here |= waits
                else:
                    after[i] |= waits
            ends.append(here)
    return nodes, after


def _order(nodes: Sequence[_Node], after: Sequence[set[int]]) -> list[int]:
    """Nodes in the order in which they start on an infinitely fast network.

    Of several ready tasks of a device the first in its trace starts.

    Returns: fewer nodes than there are if some can never start.
    """
    ahead: list[list[int]] = [[] for _ in nodes]
    waits = [len(before) for before in after]
    for i, before in enumerate(after):
        for j in before:
            ahead[j].append(i)
    order: list[int] = []
    ready: dict[int, list[tuple[int, int]]] = defaultdict(list)  # device -> heap of (place, node)
    busy: set[int] = set()
    running: list[tuple[float, int]] = []

    def finish(first: int) -> None:
        stack = [first]
        while stack:
            for j in ahead[stack.pop()]:
                waits[j] -= 1
                if not waits[j]:
                    release(j, stack)

    def release(i: int, stack: list[int]) -> None:
        if nodes[i].call is None:
            heapq.heappush(ready[nodes[i].devices[0]], (nodes[i].place, i))
        else:
            order.append(i)
            stack.append(i)

    for i, n in enumerate(waits):
        if not n and nodes[i].call is None:
            heapq.heappush(ready[nodes[i].devices[0]], (nodes[i].place, i))
    for i in [i for i, before in enumerate(after) if not before and nodes[i].call is not None]:
        order.append(i)
        finish(i)
    now = 0.0
    while True:
        for device, waiting in ready.items():
            if waiting and device not in busy:
                _, i = heapq.heappop(waiting)
                order.append(i)
                busy.add(device)
                heapq.heappush(running, (now + nodes[i].took_s, i))
        if not running:
            return order
        now = running[0][0]
        while running and running[0][0] <= now:
            _, i = heapq.heappop(running)
            busy.discard(nodes[i].devices[0])
            finish(i)
