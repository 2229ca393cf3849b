"""A training job as one of its devices sees it: tasks of computation and communication, and what waits for what.

A `Workload` is the list of calls that a trace recorded; a `Job` adds the computation between them and the order in which
one device does it all. Partitioned models make jobs, and so do traces that record both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from opticcl.errors import WorkloadError
from opticcl.units import counted, format_bytes, format_seconds

__all__ = ["Group", "Job", "Phase", "Task"]

Phase = Literal["forward", "backward", "update", ""]


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that call a collective together. All groups of a kind do so at the same time, this one among them.

    Args:
        name: kind of group: data, tensor, pipeline, expert, ...
        ranks: of the group that the device is in, in order.
        num_groups: groups of this kind that are alike and at work at once [count].
    """

    name: str
    ranks: range | tuple[int, ...]
    num_groups: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """Something that one device does: it computes, or it takes part in a collective.

    Args:
        name: such as "conv1 backward".
        compute_s: computation on the device [s]; 0 for communication.
        collective: canonical name of the collective; empty for computation.
        size_bytes: its message, as `opticcl.collective` counts it [bytes].
        group: name of the group that takes part; for a send_recv the two ranks stand in order.
        after: earlier tasks that must have ended, by their place in the job.
        phase: forward, backward or update, where it matters.
        fusible: a gradient that may travel in one message with others (data-parallel all-reduce).
    """

    name: str
    compute_s: float = 0.0
    collective: str = ""
    size_bytes: int = 0
    group: str = ""
    after: tuple[int, ...] = ()
    phase: Phase = ""
    fusible: bool = False

    @property
    def communicates(self) -> bool:
        """Whether it uses the network."""
        return bool(self.collective)


@dataclass(frozen=True, slots=True)
class Job:
    """One iteration of training, as one device does it; all devices are alike but for their place.

    Args:
        name: of the model or trace.
        source: where its numbers come from.
        num_ranks: devices [count].
        tasks: each after those that it waits for; computation runs in this order, and so does communication.
        groups: by name.
        samples: that an iteration trains on, on all devices together; 0 if unknown [count].
        memory_bytes: that a device needs for parameters, gradients, optimiser and activations; 0 if unknown [bytes].
        operations: floating-point operations of one device in an iteration; 0 if unknown [count].
        notes: what was assumed or left out, a line each.
    Raises: WorkloadError: a task waits for a later one, or names a group that is none.
    """

    name: str
    source: str
    num_ranks: int
    tasks: tuple[Task, ...]
    groups: Mapping[str, Group] = field(default_factory=dict)
    samples: int = 0
    memory_bytes: float = 0.0
    operations: float = 0.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for place, task in enumerate(self.tasks):
            if late := [i for i in task.after if not 0 <= i < place]:
                raise WorkloadError(
                    f"{self.name}: task {place} ({task.name}) waits for task {late[0]}, which does not stand before it; "
                    "order the tasks so that each follows what it waits for"
                )
            if task.communicates and task.group not in self.groups:
                raise WorkloadError(
                    f"{self.name}: task {place} ({task.name}) calls {task.collective} in group {task.group!r}; "
                    f"the job has {', '.join(map(repr, self.groups)) or 'none'}"
                )

    def __repr__(self) -> str:
        return f"<Job {self._in_words()}>"

    def __str__(self) -> str:
        return "\n  ".join([self._in_words(), *self.notes])

    def _in_words(self) -> str:
        devices, tasks = counted(self.num_ranks, "device"), counted(len(self.tasks), "task")
        messages = sum(task.communicates for task in self.tasks)
        return (
            f"{self.name} on {devices}: {tasks}, {format_seconds(self.compute_s)} of computation, "
            f"{counted(messages, 'message')} of {format_bytes(self.total_bytes)} in all"
        )

    @property
    def total_bytes(self) -> int:
        """Sum of the messages of all communication [bytes]."""
        return sum(task.size_bytes for task in self.tasks)

    @property
    def compute_s(self) -> float:
        """Sum of all computation [s]."""
        return sum(task.compute_s for task in self.tasks)
