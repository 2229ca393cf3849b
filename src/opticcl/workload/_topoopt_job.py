"""The job in a TopoOpt task graph, as its busiest device does it.

The graph is of all devices. The job has the computation of the device that computes longest, and the calls of all: what is
ready at a time waits for what that device has done by then, were the network infinitely fast; its own computation waits for
the transfers that lead to it. Calls of one size that wait for the same go together where they have no rank in common.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from opticcl.workload import CollectiveCall
from opticcl.workload._files import refusal
from opticcl.workload.job import Job, Phase, Task
from opticcl.workload.topoopt import TASK_TYPES, GraphTask, busiest, read_graph, workload_of
from opticcl.workload.trace_job import Groups, side_by_side

__all__ = ["read_job"]

_PHASES: dict[str, Phase] = {"forward": "forward", "backward": "backward", "update": "update"}


def read_job(path: Path, num_ranks: int = 0) -> Job:
    """The job of a graph.

    Raises: WorkloadError: no task graph, a damaged one, its tasks wait for each other in a circle, or it has more devices.
    """
    graph = read_graph(path)
    workload = workload_of(path, graph)
    groups = Groups(workload, num_ranks)
    tasks, calls = graph.tasks, graph.calls
    before = _before(tasks)
    finish = _finish_times(path, tasks, before)
    device, _ = busiest(tasks)
    mine = [i for i, task in enumerate(tasks) if task.computes and task.device == device]
    mine.sort(key=lambda i: (finish[i], i))
    made: list[Task] = []
    place: dict[int, int] = {}  # task of the graph -> task of the job
    waiting = _calls_by_start(calls, mine, finish, before)
    for number in range(-1, len(mine)):
        after: tuple[int, ...] = ()
        if number >= 0:
            i = mine[number]
            kind = TASK_TYPES[tasks[i].type]
            after = tuple(sorted({place[j] for j in before[i] if j in calls and j in place}))
            place[i] = len(made)
            made.append(Task(f"{kind} {tasks[i].id}", tasks[i].run_s, after=after, phase=_PHASES.get(kind, "")))
            after = (place[i],)
        rows = waiting[number]
        by_call = {id(calls[i]): i for i in rows}
        for batch in side_by_side(calls[i] for i in rows):
            for call in batch:
                place[by_call[id(call)]] = len(made)
            reduces = batch[0].collective == "all_reduce"
            made.append(groups.task(batch, after, phase="backward" if reduces else "", fusible=reduces))
    notes = [
        *workload.notes,
        f"computation of the device that computes longest; calls of all {graph.num_nodes:,} nodes, "
        f"{len(calls) - sum(t.communicates for t in made):,} of them beside others of their size",
    ]
    return groups.job(workload, made, notes)


def _before(tasks: Sequence[GraphTask]) -> list[list[int]]:
    """What each task waits for."""
    place = {task.id: i for i, task in enumerate(tasks)}
    before: list[list[int]] = [[] for _ in tasks]
    for i, task in enumerate(tasks):
        for following in task.ahead:
            if following in place:
                before[place[following]].append(i)
    return before


def _finish_times(path: Path, tasks: Sequence[GraphTask], before: Sequence[Sequence[int]]) -> list[float]:
    """When each task ends if the network takes no time and every device does one thing at a time [s].

    Raises: WorkloadError: tasks wait for each other in a circle.
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
            path, f"{len(tasks) - done:,} tasks wait for each other in a circle, such as task {tasks[stuck].id}"
        )
    return finish


def _calls_by_start(
    calls: Mapping[int, CollectiveCall], mine: Sequence[int], finish: Sequence[float], before: Sequence[Sequence[int]]
) -> dict[int, list[int]]:
    """Calls by the last of the device's tasks that is done when they are ready (-1: none), in order of kind and size."""
    ends = [finish[i] for i in mine]
    waiting: dict[int, list[int]] = defaultdict(list)
    for i in calls:
        ready = max((finish[j] for j in before[i]), default=0.0)
        waiting[bisect_right(ends, ready) - 1].append(i)
    for rows in waiting.values():
        rows.sort(key=lambda i: (calls[i].collective, calls[i].size_bytes, len(calls[i].ranks), i))
    return waiting
