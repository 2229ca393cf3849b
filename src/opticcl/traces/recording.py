"""What one rank recorded, before the number of ranks and the process groups are known: the common form of all readers.

A reader turns a file into a `RankTrace`. `opticcl.traces.ranks` then determines the ranks and groups of the job and turns
every `RankCall` into a `CollectiveCall` of the whole group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.task_graph import Bound, Phase, RecordedTimes
from opticcl.traces.notes import Omissions

__all__ = [
    "MAX_RANKS",
    "Counts",
    "GroupEnds",
    "GroupPlace",
    "KernelTimes",
    "RankCall",
    "RankTask",
    "RankTrace",
    "RecordedStep",
    "lowered",
]

MAX_RANKS = 2**30
"""Ranks of a job [count]."""
Counts = Literal["message", "share"]
"""Convention of a recorded size: the whole message of the collective, or the part of one rank."""


class GroupEnds(NamedTuple):
    """Ends of a transfer as numbers within a process group, which are no ranks of the job.

    Args:
        sender, receiver: -1 if not recorded.
        members: ranks of the group, if recorded with the transfer.
    """

    sender: int
    receiver: int
    members: tuple[int, ...] = ()


class GroupPlace(NamedTuple):
    """Where a rank is in a process group.

    Args:
        number: of the rank, from 0.
        size: of the group; 0 if not recorded [count].
    """

    number: int
    size: int


@dataclass(slots=True, eq=False)
class RankCall:
    """A collective or a transfer, as one rank recorded it.

    Args:
        name: name in the trace.
        collective: canonical name, or "send" or "recv".
        size_bytes: as recorded; of an all_to_all the bytes that this rank sends [bytes].
        counts: what `size_bytes` counts; a "share" is multiplied by the size of the group.
        group: name of the process group; empty if not recorded.
        ranks: members of the group, if recorded with the call; of a transfer sender and receiver, -1 if not recorded.
        ends: of a transfer, if the file counts within the group; `ranks` follows from them once all groups are known.
        options: other senders and receivers that `ends` may be, where the group is not recorded.
        sequence: number of the call among those of its group, by which ranks agree; -1 if not recorded.
        group_size: number of members, if only that is recorded; 0 if unknown [count].
        group_stride: distance between members, if a rule gives it: with a size a block of that stride, without one all
            ranks at that distance [ranks].
        group_rule: the rule that gives size and stride; empty if there is none.
        measured_s: recorded duration; 0 if not recorded [s].
        received_bytes: of an all_to_all the bytes that this rank receives; -1 if not recorded [bytes].
        sent_splits, received_splits: of an uneven all_to_all the bytes to and from each member; empty if not recorded [bytes].
        tag: matches a send with its receive; empty if not recorded, "-1" for a receive of any.
        start_s, end_s: on the clock of the trace; -1 if not recorded [s].
        stream: number of the device's queue that it ran on, from 1; 0 if not recorded.
    """

    name: str
    collective: str
    size_bytes: int
    counts: Counts = "message"
    group: str = ""
    ranks: tuple[int, ...] = ()
    ends: GroupEnds | None = None
    options: tuple[tuple[int, int], ...] = ()
    sequence: int = -1
    group_size: int = 0
    group_stride: int = 1
    group_rule: str = ""
    measured_s: float = 0.0
    received_bytes: int = -1
    sent_splits: tuple[int, ...] = ()
    received_splits: tuple[int, ...] = ()
    tag: str = ""
    start_s: float = -1.0
    end_s: float = -1.0
    stream: int = 0

    @property
    def is_transfer(self) -> bool:
        """Whether it goes from one rank to another."""
        return self.collective in ("send", "recv")

    @property
    def is_uneven(self) -> bool:
        """Whether an all_to_all has parts of different sizes."""
        received = self.received_bytes if self.received_bytes >= 0 else self.size_bytes
        return received != self.size_bytes or len({*self.sent_splits}) > 1 or len({*self.received_splits}) > 1


@dataclass(slots=True)
class RankTask:
    """A task of the recorded device: computation, or calls.

    Args:
        name: name in the trace.
        compute_s: duration of the computation; 0 for a call [s].
        calls: of one collective and size in disjoint groups, at the same time; empty for computation.
        after: indices of earlier tasks that must have ended.
        phase, fusible: see `opticcl.ir.task_graph.Task`.
        operations: floating-point operations, if recorded instead of a duration [count].
        memory_bytes: bytes read and written, if recorded instead of a duration [bytes].
        place: in the file, which decides between tasks without a recorded order; -1: as in the list.
    """

    name: str
    compute_s: float = 0.0
    calls: tuple[RankCall, ...] = ()
    after: tuple[int, ...] = ()
    phase: Phase = ""
    fusible: bool = False
    operations: float = 0.0
    memory_bytes: float = 0.0
    place: int = -1


@dataclass(slots=True)
class RecordedStep:
    """A training step.

    Args:
        name: in the trace; empty if the trace is of one step.
        tasks: in topological order.
        notes: on the order of its tasks.
        bound: of its tasks in that order, see `opticcl.ir.task_graph.TaskGraph`; what is left out or waits for another rank
            lowers it later.
        ordered: whether the order of the computation is recorded; otherwise it follows from dependencies.
        recorded: times of the recorded step; None if none are recorded.
    """

    name: str
    tasks: list[RankTask]
    notes: list[str] = field(default_factory=list)
    bound: Bound = ""
    ordered: bool = True
    recorded: RecordedTimes | None = None


def lowered(bound: Bound) -> Bound:
    """What a time is that may also be too short, because a call is left out or a receive does not wait for its sender."""
    return "lower" if bound in ("", "lower") else "estimate"


class KernelTimes(NamedTuple):
    """When a device computed, a row a kernel.

    Args:
        start_s, end_s: on the clock of the trace, float64 (n,) [s].
        stream: number of the device's queue; -1 if not recorded, int64 (n,).
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    stream: IntArray


@dataclass(slots=True)
class RankTrace:
    """A file, or the part of it that is of one rank.

    Args:
        name: of the job.
        source: description of the file.
        file: name of the file, for messages.
        calls: in the order of the file.
        steps: with their tasks; empty if only the calls were read.
        rank: whose trace it is; -1 if unknown, or if it is of all ranks.
        world_size: number of ranks that the file records; 0 if it does not [count].
        world_source: the field that records it.
        groups: members of process groups by name, as recorded in the file or beside it.
        groups_source: where they are recorded.
        places: place of the rank in each process group whose members the file does not record; None: not recorded either.
        whole_job: whether the file is of all ranks, so that no rank occurs elsewhere.
        compute_s: computation of the device [s].
        omissions: calls that the reader leaves out.
        before, after: notes in front of and behind those on ranks and groups.
        kernels: when the device computed; None if starts are not recorded, or if tasks are not wanted.
    """

    name: str
    source: str
    file: str
    calls: Sequence[RankCall]
    steps: list[RecordedStep] = field(default_factory=list)
    rank: int = -1
    world_size: int = 0
    world_source: str = ""
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    groups_source: str = "recorded"
    places: Mapping[str, GroupPlace | None] = field(default_factory=dict)
    whole_job: bool = False
    compute_s: float = 0.0
    omissions: Omissions = field(default_factory=Omissions)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    kernels: KernelTimes | None = None
