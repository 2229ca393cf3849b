"""A recorded job as a `Job`: the computation that the trace has, its calls, and what waits for what.

::

    step.et        kernels in the order of their issue, collectives beside them        _chakra_job.py
    step.json      kernels and collectives by their times, where they are recorded     _kineto_job.py
    graph.fbuf     the busiest device, and the calls of all                            _topoopt_job.py
    layers.txt     layers forward and back, given a clock                              _astra_job.py
    anything else  the calls in their order; all computation, where it is known, before them

Calls of equal size that start together in groups without a rank in common are one task, with as many groups at work.
`network_bytes` and `num_calls` count them all, so that nothing that the trace asks of the network is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from opticcl.errors import WorkloadError
from opticcl.registry import as_path, whole_number
from opticcl.workload import CollectiveCall, Workload, _form_of, load_workload
from opticcl.workload.job import Group, Job, Task

__all__ = ["Groups", "job_of", "load_job", "network_bytes", "num_calls", "side_by_side"]


def load_job(path: str | os.PathLike[str], *, num_ranks: int = 0, clock_hz: float | None = None) -> Job:
    """The job in a trace.

    Args:
        path: the file, or the name of a built-in workload.
        num_ranks: devices of the job where the file does not tell; 0: as the file tells [count].
        clock_hz: clock of ASTRA-sim's text form; None: its computation stays unknown [1/s].
    Raises: WorkloadError: the file cannot be read, waits for itself in a circle, or does not tell the number of devices;
        ParameterError: no path, or no whole number.
    """
    path, num_ranks = as_path(path, "load_job", "step.et"), whole_number(num_ranks, "load_job: num_ranks")
    form = _form_of(Path(path)) if os.path.exists(path) else ""
    if form == "chakra":
        from opticcl.workload._chakra_job import read_job
    elif form == "kineto":
        from opticcl.workload._kineto_job import read_job
    elif form == "topoopt":
        from opticcl.workload._topoopt_job import read_job
    elif form == "astra":
        from opticcl.workload._astra_job import read_job as read_layers

        return read_layers(Path(path), num_ranks, clock_hz=clock_hz)
    else:
        return job_of(load_workload(path), num_ranks=num_ranks)
    return read_job(Path(path), num_ranks)


def job_of(workload: Workload, *, num_ranks: int = 0) -> Job:
    """The calls of a workload one after the other, behind all of its computation.

    Reading: a list of calls does not tell when they start, so nothing overlaps: the iteration comes out as an upper bound.

    Args: num_ranks: devices of the job where the workload does not tell; 0: as it tells [count].
    Raises: WorkloadError: nobody tells the number of devices, or a call names a rank beyond it.
    """
    groups = Groups(workload, num_ranks)
    tasks = [Task("computation", compute_s=workload.compute_s)] if workload.compute_s else []
    after = (0,) if tasks else ()
    for batch in side_by_side(workload.calls):
        tasks.append(groups.task(batch, after))
    notes = list(workload.notes)
    if workload.compute_s:
        notes.append("all computation stands before all communication: the form does not tell when calls start")
    return groups.job(workload, tasks, notes)


def network_bytes(job: Job) -> int:
    """Messages of all tasks in all groups that are at work at once [bytes]."""
    return sum(task.size_bytes * job.groups[task.group].num_groups for task in job.tasks if task.communicates)


def num_calls(job: Job) -> int:
    """Calls of all tasks in all groups [count]."""
    return sum(job.groups[task.group].num_groups for task in job.tasks if task.communicates)


def side_by_side(calls: Iterable[CollectiveCall]) -> Iterator[list[CollectiveCall]]:
    """Calls in order, those together that can go at once: neighbours of one kind and size without a rank in common.

    A transfer shares its sender with no other transfer and its receiver with no other; it may send and receive at once.

    >>> pairs = [CollectiveCall("t", "send_recv", 8, ranks=ranks) for ranks in ((0, 1), (0, 2), (1, 0), (2, 1))]
    >>> [[call.ranks for call in batch] for batch in side_by_side(pairs)]
    [[(0, 1), (1, 0)], [(0, 2), (2, 1)]]
    """
    for _, run in groupby(calls, lambda c: (c.collective, c.size_bytes, c.group, len(c.ranks), c.is_transfer)):
        batches: list[list[CollectiveCall]] = []
        busy: dict[tuple[int, int], int] = {}  # (rank, role) -> bit set of the batches that it is in
        for call in run:
            ends = list(enumerate(call.ranks)) if call.is_transfer else [(0, rank) for rank in call.ranks or (0,)]
            if call.is_transfer and -1 in call.ranks:
                ends = [(0, -1), (1, -1)]  # nobody knows which: never beside another
            taken = 0
            for role, rank in ends:
                taken |= busy.get((rank, role), 0)
            batch = (~taken & (taken + 1)).bit_length() - 1
            for role, rank in ends:
                busy[rank, role] = busy.get((rank, role), 0) | 1 << batch
            if batch == len(batches):
                batches.append([])
            batches[batch].append(call)
        yield from batches


class Groups:
    """The groups of a job that is being made, and the tasks that call in them.

    Args:
        workload: whose calls they are.
        num_ranks: devices where the workload does not tell; 0: as it tells [count].
    Raises: WorkloadError: nobody tells the number of devices, or both do and differ.
    """

    def __init__(self, workload: Workload, num_ranks: int = 0) -> None:
        told = max([workload.num_ranks, *(max(call.ranks) + 1 for call in workload.calls if call.ranks)])
        if not (told or num_ranks):
            raise WorkloadError(
                f"{workload.name}: the file does not tell how many devices take part; give their number, as --nodes does"
            )
        if num_ranks and num_ranks < told:
            raise WorkloadError(
                f"{workload.name}: {num_ranks:,} devices, but the file speaks of {told:,}; give {told:,} or more"
            )
        self.num_ranks = told or num_ranks
        self.unknown = 0
        self._names: dict[tuple[str, tuple[int, ...], int], str] = {}
        self._groups: dict[str, Group] = {}

    def task(
        self, batch: Sequence[CollectiveCall], after: tuple[int, ...], *, phase: str = "", fusible: bool = False
    ) -> Task:
        """The task of calls that go at once."""
        call = batch[0]
        made = Task(call.name, 0.0, call.collective, call.size_bytes, self._name(call, len(batch)), after)
        return replace(made, phase=phase, fusible=fusible)  # type: ignore[arg-type]

    def job(self, workload: Workload, tasks: Sequence[Task], notes: Sequence[str]) -> Job:
        """The whole job.

        Raises: WorkloadError: it does not carry the bytes and calls of the workload: an error of ours.
        """
        told = list(notes)
        if self.unknown:
            told.append(f"transfers whose two ranks are not told: {self.unknown:,}, taken as from rank 0 to rank 1")
        made = Job(workload.name, workload.source, self.num_ranks, tuple(tasks), dict(self._groups), notes=tuple(told))
        if (network_bytes(made), num_calls(made)) != (workload.total_bytes, len(workload.calls)):
            raise WorkloadError(f"{workload.name}: {network_bytes(made):,} of {workload.total_bytes:,} bytes were kept")
        return made

    def _name(self, call: CollectiveCall, num_groups: int) -> str:
        """Of the group that such a call is in."""
        ranks: range | tuple[int, ...] = call.ranks or range(self.num_ranks)
        if call.is_transfer and -1 in call.ranks:
            self.unknown += 1
            ranks = (0, 1)
        if len(ranks) == self.num_ranks and sorted(ranks) == list(range(self.num_ranks)) and not call.is_transfer:
            ranks = range(self.num_ranks)
        key = call.group, tuple(ranks), num_groups
        if key not in self._names:
            kind = "pair" if call.is_transfer else call.group or ("all" if len(ranks) == self.num_ranks else "part")
            name = next(n for n in self._free(kind) if n not in self._groups)
            self._names[key], self._groups[name] = name, Group(name, ranks, num_groups)
        return self._names[key]

    @staticmethod
    def _free(kind: str) -> Iterator[str]:
        yield kind
        number = 2
        while True:
            yield f"{kind} {number}"
            number += 1
