"""Reader of Chakra execution traces (.et) of one rank.

PyTorch records host and device. Kernels of a stream run in the order in which the host issued them, which is the order of
the file; a collective depends on the kernels issued before it, as NCCL's stream does. A kernel depends on a collective if a
data dependency leads to it or to the host node that issues it; kernels after the last collective, which read the results of
all, depend on all. Other dependencies, among host nodes, are the call stack: some are dangling, and in real traces some are
cyclic.

Without host nodes (the feeder of ASTRA-sim) the order follows from dependencies alone: a cycle is refused.

`comm_size` is the whole message, of an all_gather and a gather the share of one rank. The members of the process groups are in
a JSON file beside the traces: `w.json` for `w.0.et`, `w.1.et`, ...
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opticcl.formats.encoding.protobuf import messages
from opticcl.ir.task_graph import RecordedTimes
from opticcl.reading import DamageError, printable, reading, refusal, title
from opticcl.traces._chakra_nodes import ChakraNode, Trace, Value, collect, read_trace
from opticcl.traces._dependencies import IdLists
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recorded import recorded_times
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep
from opticcl.traces.sidecar import add_groups_beside
from opticcl.units import format_seconds

__all__ = ["ChakraReader", "read_chakra", "read_trace"]


@dataclass(slots=True)
class _Kept:
    """A node of the trace: computation, a call, or neither, which only passes dependencies on."""

    id: int
    compute_s: float
    call: RankCall | None
    issues: bool  # a collective, from the host
    operations: float = 0.0
    memory_bytes: float = 0.0
    start_s: float = 0.0


class _Graph(Trace):
    """A trace that keeps its nodes; of the host only those that issue a collective."""

    def __init__(self, metadata: dict[str, Value]) -> None:
        super().__init__(metadata)
        self.kept: list[_Kept] = []
        self.control, self.data = IdLists(), IdLists()  # dependencies of each node

    def add(self, node: ChakraNode) -> None:
        """Adds a node."""
        kernels, host = len(self._by_kernel), len(self._by_host)
        super().add(node)
        calls = self._by_kernel[kernels:] + self._by_host[host:]
        issues = node.on_host and node.type == "comm_coll"
        if node.on_host and not issues and not calls:
            return
        call = calls[0] if calls else None
        self.kept.append(_Kept(node.id, node.compute_s, call, issues, *node.work(), node.start_us * 1e-6))
        self.control.append(node.control)
        self.data.append(node.data)


def _is_chakra(head: bytes) -> int:
    """A length, then a message that starts with a field of GlobalMetadata; or an empty one and a node. It is no text."""
    if re.search(rb"[\0-\x08]", head) is None:
        return 0
    if head[:1] == b"\0":
        return int(head[2:3] == b"\x08")
    start = next((i + 1 for i, byte in enumerate(head[:5]) if byte < 128), 0)
    return int(head[start : start + 1] in (b"\x0a", b"\x12") and b"\n" != head[:1] != b"\r")


@register_trace("chakra", (".et",), _is_chakra)
class ChakraReader(TraceReader):
    """Reads the Chakra trace of one rank."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls and tasks of one rank, as the base class describes.

        Raises: WorkloadError: also cyclic dependencies without a host, if tasks are wanted.
        """
        with reading(path, "Chakra trace (.et)") as file:
            return _read(path, messages(file), tasks)


def read_chakra(path: Path, messages: Iterable[tuple[int, bytes | ChakraNode]], unit: str, *, tasks: bool) -> RankTrace:
    """The calls and tasks in messages of a Chakra trace in another encoding.

    Args:
        path: of the file.
        messages: place and content of each message, the metadata first.
        unit: of the places.
        tasks: whether tasks are wanted beside the calls.
    Raises: WorkloadError: a damaged trace, or cyclic dependencies without a host, if tasks are wanted.
    """
    try:
        return _read(path, messages, tasks)
    except DamageError as error:
        raise refusal(path, f"{unit} {error.at:,}: {error.what}; is this a whole Chakra trace?") from None


def _read(path: Path, messages: Iterable[tuple[int, bytes | ChakraNode]], tasks: bool) -> RankTrace:
    graph = collect(messages, _Graph if tasks else None)
    facts = [f"{key} {graph.metadata[key]}" for key in ("version", "schema", "time") if key in graph.metadata]
    trace = RankTrace(
        title(path),
        ", ".join(["Chakra trace", printable(path.name), *facts]),
        printable(path.name),
        graph.calls,
        compute_s=graph.compute_s,
        omissions=graph.omissions,
        before=[_census(graph)],
        after=list(_remarks(graph)),
    )
    add_groups_beside(trace, path)
    if isinstance(graph, _Graph):
        tasks_, notes = _tasks(path, graph)
        ordered = not any(task.place >= 0 for task in tasks_)
        trace.steps = [RecordedStep("", tasks_, notes, "", ordered, _recorded(graph))]
    return trace


def _recorded(graph: _Graph) -> RecordedTimes | None:
    """Times of the step, with the order of its kernels if their starts are recorded; None if no call has a duration."""
    compute = [(node.start_s, node.start_s + node.compute_s) for node in graph.kept if node.compute_s]
    calls = [call for call in graph.calls if call.measured_s]
    if not calls:
        return None
    if any(call.start_s < 0 for call in calls) or not all(start for start, _ in compute):
        return RecordedTimes(graph.compute_s, sum(call.measured_s for call in calls))
    columns = np.array(compute).reshape(-1, 2).T, np.array([(call.start_s, call.end_s) for call in calls]).T
    return recorded_times((columns[0][0], columns[0][1]), (columns[1][0], columns[1][1]))


def _census(graph: Trace) -> str:
    kinds = [f"{n:,} {kind}" for kind, n in graph.nodes.items()]
    return f"nodes: {', '.join(kinds) or 'none'}; {graph.nodes.total():,} in all"


def _remarks(graph: Trace) -> Iterator[str]:
    yield from graph.repeated()
    yield from graph.irregularities()
    if graph.compute_s:
        kernels = f"{graph.kernels:,} of {graph.nodes['comp']:,} comp nodes"
        yield f"computation: {format_seconds(graph.compute_s)} on the device in {kernels}; the others are left out"


def _tasks(path: Path, graph: _Graph) -> tuple[list[RankTask], list[str]]:
    """Tasks in topological order, and notes on the order.

    Raises: WorkloadError: cyclic dependencies without a host.
    """
    if graph._by_kernel:  # then the calls of the host are repetitions
        by_host = set(map(id, graph._by_host))
        for node in graph.kept:
            node.call = None if id(node.call) in by_host else node.call
    hosted = len(graph.kept) < graph.nodes.total() or any(node.issues for node in graph.kept)
    return _streams(graph) if hosted else _dependencies(path, graph)


def _streams(graph: _Graph) -> tuple[list[RankTask], list[str]]:
    """Kernels in the order of the file, those between two collectives as one task."""
    nodes, data, control = graph.kept, graph.data.decoded(), graph.control.decoded()
    tasks: list[RankTask] = []
    called: dict[int, int] = {}  # id of a collective's kernel, or of the host's node that issues it -> task
    owners = {j: node.id for i, node in enumerate(nodes) if node.call for j in (*data.row(i), *control.row(i))}
    issuing = {node.id for node in nodes if node.issues}
    pending: tuple[float, int, set[int]] = 0.0, 0, set()
    last_call = max((i for i, node in enumerate(nodes) if node.call), default=len(nodes))
    computed = -1

    def flush() -> None:
        nonlocal pending, computed
        seconds, kernels, after = pending
        if kernels:
            computed, pending = len(tasks), (0.0, 0, set())
            name = f"{kernels:,} kernels" if kernels > 1 else "1 kernel"
            tasks.append(RankTask(name, seconds, after=tuple(sorted(after))))

    behind = 0
    for i, node in enumerate(nodes):
        if node.call:
            flush()
            called[node.id] = len(tasks)
            tasks.append(RankTask(node.call.name, 0.0, (node.call,), (computed,) if computed >= 0 else ()))
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
    notes = ["order: kernels run in the order of the file; a collective depends on those before it"]
    if behind:
        kernels = (
            f"the {behind:,} kernels after the last collective depend"
            if behind > 1
            else "the kernel after the last collective depends"
        )
        notes.append(f"order: {kernels} on all collectives")
    return tasks, notes


def _dependencies(path: Path, graph: _Graph) -> tuple[list[RankTask], list[str]]:
    """Nodes in the order in which they can start, by dependencies, run times and their place in the file."""
    nodes, data, control = graph.kept, graph.data.decoded(), graph.control.decoded()
    place = {node.id: i for i, node in enumerate(nodes)}
    needs = [sorted({place[j] for j in (*data.row(i), *control.row(i)) if j in place}) for i in range(len(nodes))]
    order = _in_order(path, nodes, needs)
    tasks: list[RankTask] = []
    reached: dict[int, tuple[int, frozenset[int]]] = {}
    for i in order:
        node = nodes[i]
        # The last computation that leads to the node, and the calls that the node depends on or is.
        compute = max((reached[j][0] for j in needs[i]), default=-1)
        called = frozenset[int]().union(*(reached[j][1] for j in needs[i]))
        after = tuple(sorted({*called, *((compute,) if compute >= 0 else ())}))
        if node.call:
            compute, called = -1, frozenset((len(tasks),))
            tasks.append(RankTask(node.call.name, 0.0, (node.call,), after, place=i))
        elif node.compute_s or node.operations or node.memory_bytes:
            compute, called = len(tasks), frozenset()
            task = RankTask(f"node {node.id}", node.compute_s, after=after, place=i)
            if not node.compute_s:
                task.operations, task.memory_bytes = node.operations, node.memory_bytes
            tasks.append(task)
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
        cycle = " needs ".join(str(nodes[i].id) for i in _cycle(needs, waits))
        raise refusal(path, f"cyclic dependencies: {cycle}; no order of execution exists")
    return order


def _cycle(needs: list[list[int]], waits: list[int]) -> Iterator[int]:
    """One cycle among the nodes that still wait, its first node also last; of a long one the beginning."""
    seen: dict[int, None] = {}
    at = next(i for i, n in enumerate(waits) if n)
    while at not in seen:
        seen[at] = None
        at = next(j for j in needs[at] if waits[j])
    order = list(seen)
    yield from [*order[order.index(at) :][:8], at]
