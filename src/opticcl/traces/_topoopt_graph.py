"""Parser of TopoOpt's task graphs (.fbuf): one training iteration of all nodes.

::

    TaskGraph  0 GPUs a node  1 nodes  2 switches  8 tasks  9 devices
    Task       0 type  1 id  2 device  3 run time [ms]  4 size [bytes]  5 next tasks
    Device     0 type  1 id  2 node  3 property  4 bandwidth

An all-reduce lists the nodes of its group in place of the next tasks; a transfer runs on a device whose property is
source x (nodes + switches) + destination. Tasks are in the order of FlexFlow's search; calls are returned in the order in
which they can start by dependencies and run times.

Source: hipersys-team/FlexFlow, src/runtime/taskgraph.fbs and the writer in simulator.cc.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from opticcl.formats.encoding.flatbuffers import FlatTable, root
from opticcl.reading import DamageError, check_size, content_of, printable, reading, title
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import RankCall, RankTrace
from opticcl.units import format_seconds

__all__ = ["Graph", "GraphTask", "busiest", "read_graph", "trace_of"]

MAX_FILE_BYTES = 2**28
MAX_LINKS = 2**22  # dependencies and members of groups in all
TASK_TYPES = ("forward", "backward", "comm", "update", "barrier", "transfer", "all_reduce")
_COMM, _TRANSFER, _ALL_REDUCE = (TASK_TYPES.index(kind) for kind in ("comm", "transfer", "all_reduce"))
_BETWEEN_NODES = 14  # device type


class GraphTask(NamedTuple):
    """A task of the graph; `at` is its byte offset, `next` the ids of tasks, or the nodes of an all-reduce."""

    at: int
    type: int
    id: int
    device: int
    run_s: float
    size_bytes: int
    next: tuple[int, ...]

    @property
    def computes(self) -> bool:
        """Whether it is computation on a device."""
        return 0 <= self.type < _TRANSFER and self.type != _COMM

    @property
    def ahead(self) -> tuple[int, ...]:
        """Ids of the tasks that depend on it."""
        return () if self.type == _ALL_REDUCE else self.next


class Graph(NamedTuple):
    """A task graph.

    Args:
        num_nodes: of the job [count].
        tasks: in the order of the file.
        calls: by index of their task.
        omissions: calls that are left out.
    """

    num_nodes: int
    tasks: tuple[GraphTask, ...]
    calls: dict[int, RankCall]
    omissions: Omissions


def read_graph(path: Path) -> Graph:
    """The whole graph.

    Raises: WorkloadError: no task graph, or a damaged one.
    """
    omissions = Omissions()
    with reading(path, "TopoOpt task graph (.fbuf)") as file:
        graph = root(content_of(path, file, MAX_FILE_BYTES))
        num_nodes, num_switches = graph.number(1, "<I"), graph.number(2, "<I")
        ends = {
            device.number(1): divmod(device.number(3), max(1, num_nodes + num_switches))
            for device in graph.tables(9)
            if device.number(0, "<h") == _BETWEEN_NODES
        }
        tasks = tuple(_tasks(graph))
        if not tasks or not num_nodes:
            raise DamageError(graph.at, f"a graph of {len(tasks):,} tasks on {num_nodes:,} nodes")
        calls = {i: call for i, task in enumerate(tasks) if (call := _call(task, ends, num_nodes, omissions))}
    return Graph(num_nodes, tasks, calls, omissions)


def trace_of(path: Path, graph: Graph) -> RankTrace:
    """The calls of a graph, in the order in which they can start.

    Args:
        path: of the file.
        graph: read from it.
    """
    num_nodes, tasks = graph.num_nodes, graph.tasks
    order, remarks = _order(tasks)
    counts = Counter(TASK_TYPES[t.type] if 0 <= t.type < len(TASK_TYPES) else "of unknown type" for t in tasks)
    before = [f"tasks: {', '.join(f'{n:,} {kind}' for kind, n in counts.items())}; {len(tasks):,} in all"]
    after = [*remarks]
    _, compute_s = busiest(tasks)
    if compute_s:
        after.append(f"computation: {format_seconds(compute_s)} on the busiest device")
    return RankTrace(
        title(path),
        f"TopoOpt task graph {printable(path.name)}, {num_nodes:,} nodes",
        printable(path.name),
        [graph.calls[i] for i in order if i in graph.calls],
        world_size=num_nodes,
        world_source="number of nodes",
        compute_s=compute_s,
        omissions=graph.omissions,
        before=before,
        after=after,
    )


def _tasks(graph: FlatTable) -> Iterator[GraphTask]:
    links = 0
    for table in graph.tables(8):
        run_s = table.number(3, "<f") * 1e-3
        if not 0 <= run_s < math.inf:
            raise DamageError(table.at, f"a task of {run_s} seconds")
        size = check_size(table.number(4), table.at, "the size of a task")
        following = table.integers(5, MAX_LINKS)
        links += len(following)
        if links > MAX_LINKS:
            raise DamageError(table.at, f"more than {MAX_LINKS:,} dependencies")
        yield GraphTask(table.at, table.number(0, "<h"), table.number(1), table.number(2), run_s, size, following)


def _call(
    task: GraphTask, ends: Mapping[int, tuple[int, int]], num_nodes: int, omissions: Omissions
) -> RankCall | None:
    """The call of a task, or None."""
    if task.type == _ALL_REDUCE:
        ranks = tuple(dict.fromkeys(task.next))
        if any(rank >= num_nodes for rank in ranks):
            raise DamageError(task.at, f"an all_reduce with node {max(ranks)} of {num_nodes:,}")
        if len(ranks) < 2:
            omissions.add("all_reduce in a group of one node or none", task.size_bytes)
            return None
        return RankCall(f"task {task.id}", "all_reduce", task.size_bytes, ranks=ranks)
    if task.type == _TRANSFER:
        pair = ends.get(task.device)
        if pair is None:
            omissions.add("transfers on no device between nodes", task.size_bytes)
        elif max(pair) >= num_nodes:
            omissions.add("transfers from or to a switch or an unknown node", task.size_bytes)
        elif pair[0] == pair[1]:
            omissions.add("transfers from a node to itself", task.size_bytes)
        else:
            return RankCall(f"task {task.id}", "send", task.size_bytes, ranks=pair)
    elif task.type == _COMM:
        omissions.add("comm, one hop of a transfer", task.size_bytes)
    elif task.size_bytes:
        omissions.add("sizes of tasks that compute", task.size_bytes)
    return None


def _order(tasks: Sequence[GraphTask]) -> tuple[list[int], list[str]]:
    """Tasks by the time at which their dependencies have ended, and remarks on irregular dependencies."""
    remarks = []
    place = {task.id: i for i, task in enumerate(tasks)}
    if len(place) < len(tasks):
        remarks.append(f"duplicate ids: {len(tasks) - len(place):,}; each of these tasks counts")
    ahead: list[Sequence[int]] = []
    waits = [0] * len(tasks)
    dangling = 0
    for task in tasks:
        following = [place[n] for n in task.ahead if n in place]
        dangling += len(task.ahead) - len(following)
        ahead.append(following)
        for i in following:
            waits[i] += 1
    if dangling:
        remarks.append(f"dangling dependencies, ignored: {dangling:,} on ids that no task has")
    starts = [0.0] * len(tasks)
    ready = [(0.0, i) for i, n in enumerate(waits) if not n]
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        for j in ahead[i]:
            starts[j] = max(starts[j], starts[i] + tasks[i].run_s)
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, (starts[j], j))
    if len(order) < len(tasks):
        remarks.append(f"cyclic dependencies: {len(tasks) - len(order):,} tasks in or behind a cycle come last")
        order += sorted(set(range(len(tasks))) - set(order))
    return order, remarks


def busiest(tasks: Sequence[GraphTask]) -> tuple[int, float]:
    """The device with the most computation, or -1, and its computation [s]."""
    busy: dict[int, float] = {}
    for task in tasks:
        if task.computes:
            busy[task.device] = busy.get(task.device, 0.0) + task.run_s
    return max(busy.items(), key=lambda item: item[1], default=(-1, 0.0))
