"""From the tasks that one rank recorded to a task graph.

Calls of equal size in disjoint groups that can run at the same time become one task whose process group counts them
(`ProcessGroup.num_groups`). `TaskGraph.network_bytes` and `TaskGraph.num_calls` include them all, so that no call is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import (
    Bound,
    CollectiveCall,
    Matrix,
    ProcessGroup,
    RecordedTimes,
    Task,
    TaskGraph,
    Workload,
    highest_rank,
)
from opticcl.traces.notes import Omissions, measured
from opticcl.traces.ranks import GIVEN, RankCount, notes_of, rank_model, workload_from
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep, lowered

__all__ = ["GraphBuilder", "disjoint_batches", "job_of", "rank_batches", "require_count", "task_graphs"]


def task_graphs(trace: RankTrace, given: int = 0) -> list[TaskGraph]:
    """The task graph of each step of the recorded device; the calls one after the other if the trace has no tasks.

    Args:
        trace: as its reader returned it.
        given: number of ranks by the caller; 0: as recorded [count].
    Raises: WorkloadError: two sources of the number of ranks contradict each other, or there is none.
    """
    model = rank_model([trace], given)
    require_count(trace.name, model.count)
    if not trace.steps:
        return [_one_after_the_other(workload_from(trace, given), model.count)]
    omissions = Omissions()
    omissions.add_all(trace.omissions)
    resolved = {id(one): call for one in trace.calls if (call := model.resolve(trace, one, omissions))}
    calls = [resolved[id(one)] for one in trace.calls if id(one) in resolved]
    notes = [*notes_of(trace, model, calls), *omissions.notes()]
    missing = any(one.missing for one in omissions.records())
    return [_step_graph(trace, step, resolved, notes, model.count, missing=missing) for step in trace.steps]


def _step_graph(
    trace: RankTrace,
    step: RecordedStep,
    resolved: Mapping[int, CollectiveCall],
    notes: Sequence[str],
    rank_count: RankCount,
    *,
    missing: bool,
) -> TaskGraph:
    """The task graph of one step; calls that are left out pass their dependencies on.

    Args:
        trace, step: as recorded.
        resolved: call of each recorded one, by identity.
        notes: on the trace.
        rank_count: of the job.
        missing: whether calls that take time on the network are left out.
    """
    builder = GraphBuilder(rank_count.value)
    tasks: list[Task] = []
    ends: list[tuple[int, ...]] = []  # tasks that stand for each recorded task
    for one in step.tasks:
        after = tuple(sorted({i for j in one.after for i in ends[j]}))
        batch = [resolved[id(call)] for call in one.calls if id(call) in resolved]
        if one.calls and not batch:
            ends.append(after)
            continue
        ends.append((len(tasks),))
        if batch:
            tasks.append(builder.task(batch, after, one))
        else:
            operations, memory_bytes = one.operations, one.memory_bytes
            tasks.append(
                Task(one.name, one.compute_s, "", 0, "", after, one.phase, False, (0,), operations, memory_bytes)
            )
    receives = sum(call.collective == "recv" for one in step.tasks for call in one.calls if id(call) in resolved)
    waits = [
        f"order: {receives:,} receives start as early as the order of this rank allows, not when the sender sends; the traces "
        "of all ranks together show it"
    ]
    about = [*(waits if receives else ()), *notes, *step.notes]
    more = (step.name, lowered(step.bound) if receives or missing else step.bound, (), step.recorded)
    return builder.graph(trace.name, trace.source, tasks, about, rank_count, *more)


def job_of(workload: Workload, *, num_ranks: int = 0) -> TaskGraph:
    """The calls of a workload one after the other, after all of its computation.

    Reading: a list of calls has no start times, so nothing overlaps: the iteration time is an upper bound.

    Args: num_ranks: devices of the job if the workload does not record them; 0: as recorded [count].
    Raises: WorkloadError: the number of devices is unknown, or contradicts the workload.
    """
    highest = highest_rank(workload.calls) + 1
    value, source = workload.num_ranks, workload.ranks_source or "the workload"
    if num_ranks:
        if value not in (0, num_ranks) or highest > num_ranks:
            raise WorkloadError(
                f"{workload.name}: {num_ranks:,} ranks are given, but {source} has {max(value, highest):,}"
            )
        value, source = num_ranks, GIVEN
    rank_count = RankCount(value, source, highest)
    require_count(workload.name, rank_count)
    return _one_after_the_other(workload, rank_count)


def require_count(name: str, rank_count: RankCount) -> None:
    """Raises WorkloadError: the number of ranks is unknown.

    Args:
        name: of the job.
        rank_count: of the job.
    """
    if not rank_count.value:
        raise WorkloadError(f"{name}: the file does not record the number of devices; give it with --nodes")


def _one_after_the_other(workload: Workload, rank_count: RankCount) -> TaskGraph:
    builder = GraphBuilder(rank_count.value)
    tasks = [Task("computation", compute_s=workload.compute_s)] if workload.compute_s else []
    after = (0,) if tasks else ()
    for batch in disjoint_batches(workload.calls):
        tasks.append(builder.task(batch, after, RankTask(batch[0].name)))
    notes = list(workload.notes)
    bound: Bound = ""
    if workload.compute_s:
        bound = "upper"
        notes.append("all computation precedes all communication: the format does not record when calls start")
    if any(one.missing for one in workload.omitted):
        bound = lowered(bound)
    measured_s = measured(workload.calls)[0]
    recorded = RecordedTimes(workload.compute_s, measured_s) if measured_s else None
    return builder.graph(workload.name, workload.source, tasks, notes, rank_count, bound=bound, recorded=recorded)


Call = TypeVar("Call", CollectiveCall, RankCall)
MAX_BATCHES = 4096  # open at once; then no call joins an earlier one


def disjoint_batches(calls: Iterable[CollectiveCall]) -> Iterator[list[CollectiveCall]]:
    """Calls in order; consecutive calls of one collective and size whose ranks are disjoint share a batch.

    In a batch every rank sends at most one transfer and receives at most one; it may do both.

    >>> pairs = [CollectiveCall("t", "send_recv", 8, ranks=ranks) for ranks in ((0, 1), (0, 2), (1, 0), (2, 1))]
    >>> [[call.ranks for call in batch] for batch in disjoint_batches(pairs)]
    [[(0, 1), (1, 0)], [(0, 2), (2, 1)]]
    """
    for _, equal in groupby(calls, lambda call: call.matrix_bytes):
        yield from _batches(equal, lambda call: call.is_transfer)


def rank_batches(calls: Iterable[RankCall]) -> Iterator[list[RankCall]]:
    """The same for recorded calls."""
    return _batches(calls, lambda call: call.is_transfer)


def _batches(calls: Iterable[Call], transfers: Callable[[Call], bool]) -> Iterator[list[Call]]:
    for _, run in groupby(calls, lambda c: (c.collective, c.size_bytes, c.group, len(c.ranks), -1 in c.ranks)):
        batches: list[list[Call]] = []
        busy: dict[tuple[int, int], int] = {}  # (rank, role) -> bit set of the batches that it is in
        for call in run:
            ends = list(enumerate(call.ranks)) if transfers(call) else [(0, rank) for rank in call.ranks or (0,)]
            if -1 in call.ranks:
                ends = [(0, -1)]  # an unknown pair shares a batch with no other
            taken = 0
            for role, rank in ends:
                taken |= busy.get((rank, role), 0)
            batch = (~taken & (taken + 1)).bit_length() - 1
            if batch == MAX_BATCHES:  # of one pair again and again
                yield from batches
                batches, busy, batch = [], {}, 0
            for role, rank in ends:
                busy[rank, role] = busy.get((rank, role), 0) | 1 << batch
            if batch == len(batches):
                batches.append([])
            batches[batch].append(call)
        yield from batches


def _in_order_of(call: CollectiveCall, ranks: Sequence[int]) -> Matrix:
    """The matrix of a call with rows and columns in the order of these ranks, the same ones."""
    place = {rank: i for i, rank in enumerate(call.ranks or range(len(ranks)))}
    order = [place[rank] for rank in ranks]
    return tuple(tuple(call.matrix_bytes[i][j] for j in order) for i in order)


class GraphBuilder:
    """Collects the process groups of a task graph while its tasks are made.

    Args: num_ranks: of the job [count].
    """

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self.unknown_pairs = 0
        self._names: dict[tuple[str, tuple[int, ...], int], str] = {}
        self._groups: dict[str, ProcessGroup] = {}
        self._numbers: dict[str, int] = {}  # groups of each kind

    def task(self, batch: Sequence[CollectiveCall], after: tuple[int, ...], recorded: RankTask) -> Task:
        """The task of a batch of calls.

        Args:
            batch: calls of one collective and size in disjoint groups.
            after: see `Task`.
            recorded: whose phase and stream it has.
        """
        call = batch[0]
        group = self._group_of(call, len(batch))
        matrix = _in_order_of(call, self._groups[group].ranks) if call.is_uneven else ()
        phase, fusible = recorded.phase, recorded.fusible
        measured_s = max(one.measured_s for one in batch)
        streams = (recorded.calls[0].stream,) if recorded.calls and recorded.calls[0].stream else ()
        about = call.collective, call.size_bytes, group, after, phase, fusible
        return Task(call.name, 0.0, *about, measured_s=measured_s, streams=streams, matrix_bytes=matrix)

    def graph(
        self,
        name: str,
        source: str,
        tasks: Sequence[Task],
        notes: Sequence[str],
        rank_count: RankCount,
        step: str = "",
        bound: Bound = "",
        device_ranks: tuple[int, ...] = (),
        recorded: RecordedTimes | None = None,
    ) -> TaskGraph:
        """The whole task graph.

        Args:
            name, source: of the job.
            tasks: made by `task`, and computation.
            notes: of the trace.
            rank_count: number of ranks and its source.
            step: name of the step, if the trace has several.
            bound, device_ranks, recorded: see `TaskGraph`.
        """
        lines = list(notes)
        if self.unknown_pairs:
            lines.append(f"transfers without recorded ranks: {self.unknown_pairs:,}, assumed from rank 0 to rank 1")
        return TaskGraph(
            name,
            source,
            self.num_ranks,
            tuple(tasks),
            dict(self._groups),
            notes=tuple(lines),
            ranks_source=rank_count.source,
            step=step,
            bound=bound,
            device_ranks=device_ranks,
            recorded=recorded,
        )

    def _group_of(self, call: CollectiveCall, num_groups: int) -> str:
        """Name of the process group of such a call."""
        ranks: range | tuple[int, ...] = call.ranks or range(self.num_ranks)
        source = call.group_source
        if -1 in call.ranks:
            self.unknown_pairs += 1
            ranks, source = (0, 1), "assumed"
        if len(ranks) == self.num_ranks and sorted(ranks) == list(range(self.num_ranks)) and not call.is_transfer:
            ranks = range(self.num_ranks)
        key = call.group, tuple(ranks), num_groups
        if key not in self._names:
            kind = "pair" if call.is_transfer else call.group or ("all" if len(ranks) == self.num_ranks else "part")
            name = kind
            while name in self._groups:
                self._numbers[kind] = self._numbers.get(kind, 1) + 1
                name = f"{kind} {self._numbers[kind]}"
            self._names[key], self._groups[name] = name, ProcessGroup(name, ranks, num_groups, source)
        return self._names[key]
