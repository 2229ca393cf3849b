"""The job in a TopoOpt task graph, as its busiest device does it.

The graph is of all devices. The job has the computation of the device that computes longest, and the calls of all: what is
ready at a time waits for what that device has done by then, were the network infinitely fast; its own computation waits for
the transfers that lead to it. Calls of one size that wait for the same go together where they have no rank in common.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import reading, refusal
from opticcl.workload._flatbuffers import root
from opticcl.workload._notes import LeftOut
from opticcl.workload.job import Job, Phase, Task
from opticcl.workload.topoopt import (
    _ALL_REDUCE,
    _BETWEEN_NODES,
    _COMM,
    _TRANSFER,
    MAX_FILE_BYTES,
    TASK_TYPES,
    _call,
    _Task,
    _tasks,
)
from opticcl.workload.trace_job import Groups, side_by_side

__all__ = ["job_of_graph"]

_PHASES: dict[str, Phase] = {"forward": "forward", "backward": "backward", "update": "update"}


def job_of_graph(path: Path, workload: Workload, num_ranks: int = 0) -> Job:
    """The job of a graph whose calls have been read as a workload.

    Raises: WorkloadError: its tasks wait for each other in a circle, or it has more devices than that.
    """
    groups = Groups(workload, num_ranks)
    with reading(path, "TopoOpt task graph (.fbuf)") as file:
        graph = root(file.read(MAX_FILE_BYTES + 1))
        num_nodes, num_switches = graph.integer(1, "<I"), graph.integer(2, "<I")
        ends = {
            device.integer(1): divmod(device.integer(3), max(1, num_nodes + num_switches))
            for device in graph.tables(9)
            if device.integer(0, "<h") == _BETWEEN_NODES
        }
        tasks = list(_tasks(graph))
        calls = {i: call for i, task in enumerate(tasks) if (call := _call(task, ends, num_nodes, LeftOut()))}
    before = _before(tasks)
    finish = _finish_times(path, tasks, before)
    busiest = _busiest(tasks)
    mine = sorted((i for i in _computing(tasks) if tasks[i].device == busiest), key=lambda i: (finish[i], i))
    made: list[Task] = []
    place: dict[int, int] = {}  # task of the graph -> task of the job
    waiting = _calls_by_start(tasks, calls, mine, finish, before)
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
        f"computation of the device that computes longest; calls of all {num_nodes:,} nodes, "
        f"{len(calls) - sum(t.communicates for t in made):,} of them beside others of their size",
    ]
    return groups.job(workload, made, notes)


def _computing(tasks: Sequence[_Task]) -> list[int]:
    """Tasks that compute."""
    return [i for i, task in enumerate(tasks) if 0 <= task.type < _TRANSFER and task.type != _COMM]


def _busiest(tasks: Sequence[_Task]) -> int:
    """The device that computes longest."""
    busy: dict[int, float] = defaultdict(float)
    for i in _computing(tasks):
        busy[tasks[i].device] += tasks[i].run_s
    return max(busy, key=lambda device: busy[device], default=-1)


def _before(tasks: Sequence[_Task]) -> list[list[int]]:
    """What each task waits for."""
    place = {task.id: i for i, task in enumerate(tasks)}
    before: list[list[int]] = [[] for _ in tasks]
    for i, task in enumerate(tasks):
        for following in () if task.type == _ALL_REDUCE else task.next:
            if following in place:
                before[place[following]].append(i)
    return before


def _finish_times(path: Path, tasks: Sequence[_Task], before: Sequence[Sequence[int]]) -> list[float]:
    """When each task ends if the network takes no time and every device does one thing at a time [s].

    Raises: WorkloadError: tasks wait for each other in a circle.
    """
    computing = set(_computing(tasks))
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
        if i in computing:
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
    tasks: Sequence[_Task],
    calls: dict[int, CollectiveCall],
    mine: Sequence[int],
    finish: Sequence[float],
    before: Sequence[Sequence[int]],
) -> dict[int, list[int]]:
    """Calls by the last of the device's tasks that is done when they are ready (-1: none), in order of kind and size."""
    from bisect import bisect_right

    ends = [finish[i] for i in mine]
    own = {i: number for number, i in enumerate(mine)}
    waiting: dict[int, list[int]] = defaultdict(list)
    for i in calls:
        ready = max((finish[j] for j in before[i]), default=0.0)
        number = bisect_right(ends, ready) - 1
        waiting[number].append(i)
    for rows in waiting.values():
        rows.sort(key=lambda i: (calls[i].collective, calls[i].size_bytes, len(calls[i].ranks), i))
    assert len(own) == len(mine)
    return waiting
