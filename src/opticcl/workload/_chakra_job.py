"""The job in a Chakra trace.

PyTorch records host and device. Kernels of a stream run in the order in which the host issued them, which is the order of
the file; a collective waits for the kernels issued before it, as NCCL's stream does. A kernel waits for a collective where a
data dependency leads to it or to the host's node that issues it, and those behind the last collective, which read what all of
them brought, wait for all. Other dependencies, among the host's nodes, say who called whom: they may be left dangling, and
in real traces they run in circles.

Without nodes of a host (the feeder of ASTRA-sim) dependencies are all the order there is: a circle is refused.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opticcl.workload import CollectiveCall
from opticcl.workload._dependencies import IdLists
from opticcl.workload._files import refusal
from opticcl.workload.chakra import Node, Trace, Value, read_trace, workload_of
from opticcl.workload.job import Job, Task
from opticcl.workload.trace_job import Groups

__all__ = ["read_job"]


@dataclass(slots=True)
class _Kept:
    """A node of the trace: it computes, calls, or does neither and only hands dependencies on."""

    id: int
    compute_s: float
    call: CollectiveCall | None
    issues: bool  # a collective, from the host


class _Graph(Trace):
    """A trace that keeps its nodes; those of the host only where they issue a collective."""

    def __init__(self, metadata: dict[str, Value]) -> None:
        super().__init__(metadata)
        self.kept: list[_Kept] = []
        self.control, self.data = IdLists(), IdLists()  # dependencies of each

    def add(self, node: Node) -> None:
        """Adds a node."""
        kernels, host = len(self._by_kernel), len(self._by_host)
        super().add(node)
        calls = self._by_kernel[kernels:] + self._by_host[host:]
        issues = node.on_host and node.type == "comm_coll"
        if node.on_host and not issues and not calls:
            return
        self.kept.append(_Kept(node.id, node.compute_s, calls[0] if calls else None, issues))
        self.control.append(node.control)
        self.data.append(node.data)


def read_job(path: Path, num_ranks: int = 0) -> Job:
    """The job of one rank's trace.

    Raises: WorkloadError: no such trace, it does not tell the number of devices, or its nodes wait in a circle.
    """
    graph = read_trace(path, _Graph)
    assert isinstance(graph, _Graph)
    workload = workload_of(path, graph)
    groups = Groups(workload, num_ranks)
    if graph._by_kernel:  # then what the host issues is no call of its own
        by_host = set(map(id, graph._by_host))
        for node in graph.kept:
            node.call = None if id(node.call) in by_host else node.call
    hosted = len(graph.kept) < graph.nodes.total() or any(node.issues for node in graph.kept)
    tasks, notes = (_streams if hosted else _dependencies)(path, graph, groups)
    return groups.job(workload, tasks, [*workload.notes, *notes])


def _streams(path: Path, graph: _Graph, groups: Groups) -> tuple[list[Task], list[str]]:
    """Kernels in the order of the file, those between two collectives as one task."""
    nodes, data, control = graph.kept, graph.data.decoded(), graph.control.decoded()
    tasks: list[Task] = []
    called: dict[int, int] = {}  # id of a collective's kernel, or of the host's node that issues it -> task
    owners = {j: node.id for i, node in enumerate(nodes) if node.call for j in (*data.row(i), *control.row(i))}
    issuing = {node.id for node in nodes if node.issues}
    pending: tuple[float, int, set[int]] = 0.0, 0, set()
    last_call = max((i for i, node in enumerate(nodes) if node.call), default=-1)
    computed = -1

    def flush() -> None:
        nonlocal pending, computed
        seconds, kernels, after = pending
        if kernels:
            computed, pending = len(tasks), (0.0, 0, set())
            name = f"{kernels:,} kernels" if kernels > 1 else "1 kernel"
            tasks.append(Task(name, seconds, after=tuple(sorted(after))))

    behind = 0
    for i, node in enumerate(nodes):
        if node.call:
            flush()
            called[node.id] = len(tasks)
            tasks.append(groups.task([node.call], (computed,) if computed >= 0 else ()))
        elif node.compute_s:
            named = data.row(i)
            waits = {called[j] for j in named if j in called}
            waits |= {called[owners[j]] for j in named if j in issuing and owners.get(j) in called}
            if i > last_call and not behind:
                waits |= set(called.values())
            behind += i > last_call
            if waits - pending[2]:
                flush()
            pending = pending[0] + node.compute_s, pending[1] + 1, pending[2] | waits
    flush()
    notes = ["order: kernels run in the order of the file; a collective waits for those before it"]
    if behind:
        kernels = (
            f"the {behind:,} kernels behind the last collective wait"
            if behind > 1
            else "the kernel behind the last collective waits"
        )
        notes.append(f"order: {kernels} for all collectives")
    return tasks, notes


def _dependencies(path: Path, graph: _Graph, groups: Groups) -> tuple[list[Task], list[str]]:
    """Nodes in the order in which they can start, by dependencies, run times and their place in the file."""
    nodes, data, control = graph.kept, graph.data.decoded(), graph.control.decoded()
    place = {node.id: i for i, node in enumerate(nodes)}
    needs = [sorted({place[j] for j in (*data.row(i), *control.row(i)) if j in place}) for i in range(len(nodes))]
    order = _in_order(path, nodes, needs)
    tasks: list[Task] = []
    reached: list[tuple[int, frozenset[int]]] = [(-1, frozenset())] * len(nodes)
    for i in order:
        node = nodes[i]
        # The last task that computes, which all before it have led to, and the calls that the node waits for or is.
        compute = max((reached[j][0] for j in needs[i]), default=-1)
        called = frozenset[int]().union(*(reached[j][1] for j in needs[i]))
        after = tuple(sorted({*called, *((compute,) if compute >= 0 else ())}))
        if node.call:
            compute, called = -1, frozenset((len(tasks),))
            tasks.append(groups.task([node.call], after))
        elif node.compute_s:
            compute, called = len(tasks), frozenset()
            tasks.append(Task(f"node {node.id}", node.compute_s, after=after))
        reached[i] = compute, called
    return tasks, ["order: as dependencies allow; each queue in the order in which its tasks could start"]


def _in_order(path: Path, nodes: list[_Kept], needs: list[list[int]]) -> list[int]:
    ahead: list[list[int]] = [[] for _ in nodes]
    waits = [len(n) for n in needs]
    for i, before in enumerate(needs):
        for j in before:
            ahead[j].append(i)
    starts = [0.0] * len(nodes)
    ready = [(0.0, i) for i, n in enumerate(waits) if not n]
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(i)
        node = nodes[i]
        ends = starts[i] + (node.call.measured_s if node.call else node.compute_s)
        for j in ahead[i]:
            starts[j] = max(starts[j], ends)
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, (starts[j], j))
    if len(order) < len(nodes):
        circle = " needs ".join(str(nodes[i].id) for i in _circle(needs, waits))
        raise refusal(path, f"its nodes wait for each other in a circle: {circle}; there is no order to run them in")
    return order


def _circle(needs: list[list[int]], waits: list[int]) -> Iterator[int]:
    """One circle among the nodes that still wait, its first node also last; of a long one the beginning."""
    seen: dict[int, None] = {}
    at = next(i for i, n in enumerate(waits) if n)
    while at not in seen:
        seen[at] = None
        at = next(j for j in needs[at] if waits[j])
    order = list(seen)
    circle = [*order[order.index(at) :], at]
    yield from circle if len(circle) <= 9 else [*circle[:8], at]
