"""Reader of TopoOpt's task graphs (.fbuf), which FlexFlow's search writes.

The file has the tasks of all devices. The task graph has the computation of the device with the most computation and the
calls of all devices: a call depends on what that device has computed by the time the call would be ready on an infinitely
fast network; the device's own computation depends on the transfers that lead to it. Calls of one size with the same
dependencies are batched if their ranks are disjoint.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from opticcl.ir.task_graph import Phase
from opticcl.reading import refusal
from opticcl.traces._topoopt_graph import TASK_TYPES, Graph, GraphTask, busiest, read_graph, trace_of
from opticcl.traces.graphs import rank_batches
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep

__all__ = ["TopooptReader"]

_PHASES: dict[str, Phase] = {"forward": "forward", "backward": "backward", "update": "update"}


def _is_task_graph(head: bytes) -> bool:
    # A FlatBuffers file starts with the offset of its root table, far below 2^16.
    return head[2:4] == b"\0\0" and len(head) > 16 and head[:2] != b"\0\0"


@register_trace("topoopt", (".fbuf",), _is_task_graph)
class TopooptReader(TraceReader):
    """Reads a TopoOpt task graph."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls of all devices and the tasks of the busiest one, as the base class describes.

        Raises: WorkloadError: also cyclic dependencies, if tasks are wanted.
        """
        graph = read_graph(path)
        trace = trace_of(path, graph)
        if tasks:
            made = _tasks(path, graph)
            trace.steps = [RecordedStep("", made)]
            batched = len(trace.calls) - sum(bool(task.calls) for task in made)
            trace.after.append(
                f"computation of the device with the most computation; calls of all {graph.num_nodes:,} nodes, "
                f"{batched:,} of them at the same time as others of their size"
            )
        return trace


def _tasks(path: Path, graph: Graph) -> list[RankTask]:
    """The tasks of the busiest device and the calls of all.

    Raises: WorkloadError: cyclic dependencies.
    """
    tasks, calls = graph.tasks, graph.calls
    before = _before(tasks)
    finish = _finish_times(path, tasks, before)
    device, _ = busiest(tasks)
    mine = [i for i, task in enumerate(tasks) if task.computes and task.device == device]
    mine.sort(key=lambda i: finish[i])
    made: list[RankTask] = []
    place: dict[int, int] = {}  # task of the graph -> task of the result
    waiting = _calls_by_start(calls, mine, finish, before)
    for number in range(-1, len(mine)):
        after: tuple[int, ...] = ()
        if number >= 0:
            i = mine[number]
            kind = TASK_TYPES[tasks[i].type]
            after = tuple(sorted({place[j] for j in before[i] if j in calls and j in place}))
            place[i] = len(made)
            made.append(RankTask(f"{kind} {tasks[i].id}", tasks[i].run_s, after=after, phase=_PHASES.get(kind, "")))
            after = (place[i],)
        rows = waiting[number]
        by_call = {id(calls[i]): i for i in rows}
        for batch in rank_batches(calls[i] for i in rows):
            for call in batch:
                place[by_call[id(call)]] = len(made)
            reduces = batch[0].collective == "all_reduce"
            phase: Phase = "backward" if reduces else ""
            made.append(RankTask(batch[0].name, 0.0, tuple(batch), after, phase, reduces))
    return made


def _before(tasks: Sequence[GraphTask]) -> list[list[int]]:
    """Dependencies of each task."""
    place = {task.id: i for i, task in enumerate(tasks)}
    before: list[list[int]] = [[] for _ in tasks]
    for i, task in enumerate(tasks):
        for following in task.ahead:
            if following in place:
                before[place[following]].append(i)
    return before


def _finish_times(path: Path, tasks: Sequence[GraphTask], before: Sequence[Sequence[int]]) -> list[float]:
    """When each task ends on an infinitely fast network, one task at a time on every device [s].

    Raises: WorkloadError: cyclic dependencies.
    """
    ahead: list[list[int]] = [[] for _ in tasks]
    waits = [len(b) for b in before]
    for i, needed in enumerate(before):
        for j in needed:
            ahead[j].append(i)
    finish = [0.0] * len(tasks)
    free: dict[int, float] = defaultdict(float)
    ready = [(0.0, i) for i, n in enumerate(waits) if not n]
    done = 0
    while ready:
        at, i = heapq.heappop(ready)
        done += 1
        if tasks[i].computes:
            at = max(at, free[tasks[i].device]) + tasks[i].run_s
            free[tasks[i].device] = at
        finish[i] = at
        for j in ahead[i]:
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, (max(finish[k] for k in before[j]), j))
    if done < len(tasks):
        stuck = next(i for i, n in enumerate(waits) if n)
        raise refusal(
            path, f"cyclic dependencies: {len(tasks) - done:,} tasks can never start, such as task {tasks[stuck].id}"
        )
    return finish


def _calls_by_start(
    calls: Mapping[int, RankCall], mine: Sequence[int], finish: Sequence[float], before: Sequence[Sequence[int]]
) -> dict[int, list[int]]:
    """Calls by the last task of the device that ends before they are ready (-1: none), in order of collective and size."""
    ends = [finish[i] for i in mine]
    waiting: dict[int, list[int]] = defaultdict(list)
    for i in calls:
        ready = max((finish[j] for j in before[i]), default=0.0)
        waiting[bisect_right(ends, ready) - 1].append(i)
    for rows in waiting.values():
        rows.sort(key=lambda i: (calls[i].collective, calls[i].size_bytes, len(calls[i].ranks)))
    return waiting
