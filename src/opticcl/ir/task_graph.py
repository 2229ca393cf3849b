"""A training job: the collective calls that a trace recorded, and the task graph of one of its devices.

A `Workload` is the list of calls in a trace. A `TaskGraph` adds the computation between them and the dependencies, as one
device executes it. Partitioned models and traces that record both produce task graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from opticcl.errors import WorkloadError
from opticcl.ir.call_table import CallSequence
from opticcl.units import counted, format_bytes, format_seconds

__all__ = [
    "BOUND_WORDS",
    "Bound",
    "CallTable",
    "CollectiveCall",
    "Matrix",
    "Omission",
    "Phase",
    "ProcessGroup",
    "RecordedTimes",
    "Task",
    "TaskGraph",
    "Workload",
    "counted_calls",
    "highest_rank",
    "median_step",
]

Phase = Literal["forward", "backward", "update", ""]
Bound = Literal["", "upper", "lower", "estimate"]
Matrix = tuple[tuple[int, ...], ...]
"""Of an uneven all_to_all: bytes that each rank of the group (row) sends to each (column); empty of other calls [bytes]."""

BOUND_WORDS: dict[Bound, str] = {"": "", "upper": "at most ", "lower": "at least ", "estimate": "about "}
"""What stands before a time that is such a bound."""


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """A collective that the job calls, or a transfer between two of its ranks.

    Args:
        name: name in the trace, such as that of the kernel.
        collective: canonical name; a transfer is a send_recv whose `ranks` are the sender and the receiver.
        size_bytes: the whole message, as `opticcl.collective` counts it; of a transfer the bytes sent, of an uneven all_to_all
            the message of an even one in which every rank moves as much as the busiest [bytes].
        group: name of the process group; empty if not recorded.
        measured_s: recorded duration; 0 if not recorded [s].
        ranks: members of the group in order; empty: all ranks. In a transfer -1 is a rank that the trace does not record.
        group_source: where the members come from: "recorded", the name of a file beside the trace, "assumed", ...
        matrix_bytes: of an uneven all_to_all, the bytes that each rank of the group (row) sends to each (column) [bytes].
    """

    name: str
    collective: str
    size_bytes: int
    group: str = ""
    measured_s: float = 0.0
    ranks: tuple[int, ...] = ()
    group_source: str = ""
    matrix_bytes: Matrix = ()

    @property
    def is_transfer(self) -> bool:
        """Whether it goes from one rank to another: `ranks` are the two. A send_recv without ranks is a shift of all ranks."""
        return self.collective == "send_recv" and len(self.ranks) == 2

    @property
    def is_uneven(self) -> bool:
        """Whether it is an all_to_all whose ranks are known to send unequal parts to others."""
        return len({part for i, row in enumerate(self.matrix_bytes) for j, part in enumerate(row) if i != j}) > 1


class CallTable(CallSequence[CollectiveCall]):
    """Calls as columns, see `CallSequence`."""

    __slots__ = ()

    def make(self, kind: CollectiveCall, row: tuple[str, int, tuple[int, ...], float, str]) -> CollectiveCall:
        """The call of a row."""
        name, size, ends, took, group = row
        return CollectiveCall(
            name, kind.collective, size, group or kind.group, took, ends or kind.ranks, kind.group_source
        )


def counted_calls(calls: Iterable[CollectiveCall]) -> Iterable[tuple[CollectiveCall, int, int]]:
    """Calls with a number and the sum of their sizes: of a table a call of each kind, otherwise each call.

    A call stands for others of the same collective and group; its own name and size do not matter.
    """
    if not isinstance(calls, CallTable):
        return ((call, 1, call.size_bytes) for call in calls)
    kinds, many = calls.columns.kind, len(calls.kinds)
    counts = np.bincount(kinds, minlength=many).tolist()
    sizes = [0] * many
    for shift in (0, 20, 40):  # sums of 20 bits at a time, which a float holds exactly
        part = np.bincount(kinds, weights=calls.columns.size_bytes >> shift & (2**20 - 1), minlength=many)
        sizes = [size + (int(more) << shift) for size, more in zip(sizes, part.tolist(), strict=True)]
    first = np.zeros(many, np.int64)
    first[kinds[::-1]] = np.arange(len(kinds) - 1, -1, -1)  # of equal indices the last counts
    return ((calls[row], counts[kind], sizes[kind]) for kind, row in enumerate(first.tolist()) if counts[kind])


def highest_rank(calls: Sequence[CollectiveCall]) -> int:
    """The highest rank that a call names; -1 if none does."""
    if isinstance(calls, CallTable):
        ends = max(int(calls.columns.src.max(initial=-1)), int(calls.columns.dst.max(initial=-1)))
        return max([ends, *(max(kind.ranks) for kind in calls.kinds if kind.ranks and not kind.is_transfer)])
    return max((max(call.ranks) for call in calls if call.ranks), default=-1)


class Omission(NamedTuple):
    """Calls of a trace that are left out for one reason.

    Args:
        what: kind and reason.
        calls: number of records.
        size_bytes: their sum where it is known [bytes].
        missing: whether they take time on the network, so that a time without them may be too short.
    """

    what: str
    calls: int
    size_bytes: int = 0
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """The collective calls of one training step.

    Args:
        name: of the job.
        source: file or publication that the numbers come from.
        calls: at least one, in order; a tuple, or a table of columns.
        notes: one line each for what was counted, left out or irregular.
        num_ranks: of the job; 0 if unknown [count].
        compute_s: computation of one device, the busiest if several are recorded; 0 if not recorded [s].
        ranks_source: where `num_ranks` comes from, such as "the given number".
        omitted: what the trace has beside the calls.
    """

    name: str
    source: str
    calls: Sequence[CollectiveCall]
    notes: tuple[str, ...] = ()
    num_ranks: int = 0
    compute_s: float = 0.0
    ranks_source: str = ""
    omitted: tuple[Omission, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Sum of the messages of all calls [bytes]."""
        return sum(size for _, _, size in counted_calls(self.calls))

    def sizes(self, collective: str) -> tuple[int, ...]:
        """Messages of the calls of one collective, in order, transfers between two ranks excluded [bytes].

        Args: collective: canonical name, such as "all_reduce"; `opticcl.collective.collective_name` returns it.
        """
        return tuple(call.size_bytes for call in self.calls if call.collective == collective and not call.is_transfer)


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Ranks that call a collective together. All groups of a kind call at the same time.

    Args:
        name: kind of group: data, tensor, pipeline, expert, ...
        ranks: members of the group of this device, in order.
        num_groups: groups of this kind with the same calls at the same time, this one included [count].
        source: where the members come from, see `CollectiveCall.group_source`; empty for a model.
    """

    name: str
    ranks: range | tuple[int, ...]
    num_groups: int = 1
    source: str = ""

    def record(self) -> dict[str, Any]:
        """The group as plain values; the members are cut after the 64th."""
        return {
            "name": self.name,
            "size": len(self.ranks),
            "ranks": list(self.ranks[:64]),
            "num_groups": self.num_groups,
            "source": self.source or None,
        }


@dataclass(frozen=True, slots=True)
class Task:
    """Computation on one device, or a collective in which it takes part.

    Args:
        name: such as "conv1 backward".
        compute_s: computation on the device [s]; 0 for communication.
        collective: canonical name of the collective; empty for computation.
        size_bytes: its message, as `opticcl.collective` counts it [bytes].
        group: name of the process group; in the group of a send_recv the sender comes first.
        after: indices of earlier tasks that must have ended.
        phase: forward, backward or update; empty if unknown.
        fusible: whether it is a gradient that may be fused with others into one message (data-parallel all-reduce).
        devices: that compute or communicate, by index in `TaskGraph.device_ranks`; computation has one.
        operations: floating-point operations of computation without a duration, see `opticcl.training.rooflines` [count].
        memory_bytes: bytes that it reads and writes [bytes].
        measured_s: recorded duration of a call; 0 if not recorded [s].
        streams: recorded queue of the call on each of `devices`, counted from 1; 0: any; empty if not recorded.
        matrix_bytes: of an uneven all_to_all, the bytes that each rank of the group (row) sends to each (column); its
            `size_bytes` are those of the busiest rank's even exchange [bytes].
    """

    name: str
    compute_s: float = 0.0
    collective: str = ""
    size_bytes: int = 0
    group: str = ""
    after: tuple[int, ...] = ()
    phase: Phase = ""
    fusible: bool = False
    devices: tuple[int, ...] = (0,)
    operations: float = 0.0
    memory_bytes: float = 0.0
    measured_s: float = 0.0
    streams: tuple[int, ...] = ()
    matrix_bytes: Matrix = ()

    @property
    def communicates(self) -> bool:
        """Whether it uses the network."""
        return bool(self.collective)


@dataclass(frozen=True, slots=True)
class RecordedTimes:
    """Times of an iteration as it was recorded.

    Args:
        compute_s: sum of the computation of the device [s].
        communication_s: sum of the recorded calls [s].
        exposed_s: time in which a call ran and nothing was computed; None if the order of both is not recorded [s].
        total_s: from the start to the end of the step; None if not recorded [s].
        busy_s: time in which something was computed, overlapping kernels once; None if not recorded [s].
        host_s: idle time before kernels that the host had not launched yet; None if launches are not recorded [s].
        skew_s: time in which its calls waited for the last rank; None if no other rank is recorded [s].
    Raises: WorkloadError: computed and exposed time are more than the whole.
    """

    compute_s: float
    communication_s: float
    exposed_s: float | None = None
    total_s: float | None = None
    busy_s: float | None = None
    host_s: float | None = None
    skew_s: float | None = None

    def __post_init__(self) -> None:
        if self.total_s is not None and self.exposed_s is not None and self.busy_s is not None:
            parts_s = self.busy_s + self.exposed_s
            if parts_s > self.total_s * (1 + 1e-9) + 1e-12:
                raise WorkloadError(f"recorded times: the parts take {parts_s:g} s, the whole {self.total_s:g} s")

    @property
    def hidden_share(self) -> float | None:
        """Share of the communication that computation hides; None if not recorded."""
        if self.exposed_s is None or not self.communication_s:
            return None
        return max(0.0, 1 - self.exposed_s / self.communication_s)

    @property
    def idle_s(self) -> float | None:
        """Time in which the device neither computed nor communicated; None if not recorded [s]."""
        if self.total_s is None or self.exposed_s is None or self.busy_s is None:
            return None
        return max(0.0, self.total_s - self.busy_s - self.exposed_s)

    def record(self) -> dict[str, Any]:
        """The times as plain values."""
        return {
            "iteration_s": self.total_s,
            "compute_s": self.compute_s,
            "busy_s": self.busy_s,
            "communication_s": self.communication_s,
            "exposed_s": self.exposed_s,
            "hidden_share": self.hidden_share,
            "idle_s": self.idle_s,
            "host_s": self.host_s,
            "skew_s": self.skew_s,
        }


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """One iteration of a training job, as one device executes it, or several devices if their traces are known.

    Args:
        name: of the model or trace.
        source: file or publication that its numbers come from.
        num_ranks: devices [count].
        tasks: in topological order; the compute queue runs its tasks in this order.
        groups: process groups by name.
        samples: per iteration on all devices; 0 if unknown [count].
        memory_bytes: on a device for parameters, gradients, optimiser and activations; 0 if unknown [bytes].
        operations: floating-point operations of one device per iteration; 0 if unknown [count].
        model_operations: the same of the average device, without what is recomputed; 0 if unknown [count].
        peak_per_s: peak rate of a device; 0 if unknown [1/s].
        notes: one line each for assumptions and omissions.
        ranks_source: where `num_ranks` comes from; empty for a model.
        step: name of the recorded step, if the trace has several.
        bound: what the iteration time is if the recording does not determine all dependencies: an upper or a lower bound, or
            an estimate that is neither; empty if it does.
        device_ranks: rank of each device with tasks of its own; empty if there is one, of any rank.
        recorded: times of the recorded iteration; None for a model, or if none are recorded.
        degrees: devices along each dimension of parallelism, that of neighbouring ranks first; empty for a trace [count].
    Raises: WorkloadError: a task depends on a later one, names an unknown group, or an unknown device.
    """

    name: str
    source: str
    num_ranks: int
    tasks: tuple[Task, ...]
    groups: Mapping[str, ProcessGroup] = field(default_factory=dict)
    samples: int = 0
    memory_bytes: float = 0.0
    operations: float = 0.0
    notes: tuple[str, ...] = ()
    ranks_source: str = ""
    step: str = ""
    bound: Bound = ""
    device_ranks: tuple[int, ...] = ()
    recorded: RecordedTimes | None = None
    model_operations: float = 0.0
    peak_per_s: float = 0.0
    degrees: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, task in enumerate(self.tasks):
            if late := [i for i in task.after if not 0 <= i < index]:
                raise WorkloadError(
                    f"{self.name}: task {index} ({task.name}) depends on task {late[0]}, which does not precede it; "
                    "order the tasks topologically"
                )
            if task.communicates and task.group not in self.groups:
                raise WorkloadError(
                    f"{self.name}: task {index} ({task.name}) calls {task.collective} in group {task.group!r}; "
                    f"known groups: {', '.join(map(repr, self.groups)) or 'none'}"
                )
            if not task.devices or not 0 <= min(task.devices) <= max(task.devices) < self.num_devices:
                raise WorkloadError(
                    f"{self.name}: task {index} ({task.name}) is on devices {task.devices}; there are {self.num_devices}"
                )
            if task.streams and (len(task.streams) != len(task.devices) or min(task.streams) < 0):
                raise WorkloadError(
                    f"{self.name}: task {index} ({task.name}) has streams {task.streams} on devices {task.devices}; give "
                    "one from 0 for each device"
                )

    def __repr__(self) -> str:
        return f"<TaskGraph {self._summary()}>"

    def __str__(self) -> str:
        return "\n  ".join([self._summary(), *self.notes])

    def _summary(self) -> str:
        devices, tasks = counted(self.num_ranks, "device"), counted(len(self.tasks), "task")
        messages = sum(task.communicates for task in self.tasks)
        return (
            f"{self.name} on {devices}: {tasks}, {format_seconds(self.compute_s)} of computation, "
            f"{counted(messages, 'message')} of {format_bytes(self.total_bytes)} in all"
        )

    @property
    def num_devices(self) -> int:
        """Devices with tasks of their own [count]."""
        return len(self.device_ranks) or 1

    @property
    def layout(self) -> str:
        """Dimensions of parallelism above 1, that of neighbouring ranks first: "tensor,data"; empty for a trace."""
        return ",".join(name for name, degree in self.degrees.items() if degree > 1)

    @property
    def total_bytes(self) -> int:
        """Sum of the messages of all tasks [bytes]."""
        return sum(task.size_bytes for task in self.tasks)

    @property
    def network_bytes(self) -> int:
        """Sum of the messages of all process groups [bytes]."""
        return sum(task.size_bytes * self.groups[task.group].num_groups for task in self.tasks if task.communicates)

    @property
    def num_calls(self) -> int:
        """Calls of all process groups [count]."""
        return sum(self.groups[task.group].num_groups for task in self.tasks if task.communicates)

    @property
    def compute_s(self) -> float:
        """Computation of the device with the most [s]."""
        busy = [0.0] * self.num_devices
        for task in self.tasks:
            busy[task.devices[0]] += task.compute_s
        return max(busy)

    def record(self) -> dict[str, Any]:
        """The job, its sums and its process groups as plain values."""
        return {
            "name": self.name,
            "source": self.source,
            "step": self.step or None,
            "bound": self.bound or None,
            "num_ranks": self.num_ranks,
            "num_ranks_source": self.ranks_source or None,
            "bytes": self.network_bytes,
            "calls": self.num_calls,
            "tasks": len(self.tasks),
            "devices": self.num_devices,
            "compute_s": self.compute_s,
            "samples": self.samples,
            "memory_bytes": self.memory_bytes,
            "operations": self.operations,
            "model_operations": self.model_operations,
            "groups": [group.record() for group in self.groups.values()],
            "notes": list(self.notes),
        }


def median_step(steps: Sequence[TaskGraph]) -> TaskGraph:
    """The step with the median computation among those with calls; of two the earlier."""
    calling = [step for step in steps if step.num_calls] or list(steps)
    return sorted(calling, key=lambda step: step.compute_s)[(len(calling) - 1) // 2]
