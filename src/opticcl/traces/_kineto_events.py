"""Events of a trace of the PyTorch profiler: kernels and launches as columns, records of collectives and stream waits as rows.

`_kineto_forms` reads them from a file, `_kineto_parts` decides which belong together.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

from opticcl.traces.c10d import add_splits
from opticcl.traces.kernel_names import Activity
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import GroupEnds, RankCall

__all__ = [
    "GLOO",
    "KERNEL",
    "NCCL",
    "OPERATOR",
    "RECORD",
    "SIZED",
    "Events",
    "Owner",
    "Record",
    "StreamWait",
    "Values",
    "give_values",
]

RECORD, KERNEL, SIZED, NCCL, GLOO, OPERATOR = (
    "record_param_comms",
    "communication kernels",
    "kernels whose sizes are listed",
    "nccl: annotations",
    "gloo: annotations",
    "c10d:: operators",
)


_OF_KERNELS = ("kernel_start_us", "kernel_us", "kernel_stream", "kernel_correlation")
_OF_LAUNCHES = ("launch_correlation", "launch_thread", "launch_us")


class Values(NamedTuple):
    """What an operator records of its call beside the sizes.

    Args:
        ends: of a transfer, within the group; None if not recorded.
        tag: of a transfer; empty if not recorded.
        sent, received: of an all_to_all, rows or elements to and from each member, as a list or as text; empty if not recorded.
    """

    ends: GroupEnds | None = None
    tag: str = ""
    sent: Any = ()
    received: Any = ()


class Record(NamedTuple):
    """One record of a collective.

    Args:
        kind: host record, kernel, annotation or operator; of what has no record of its own, what it is.
        thread: index of the host thread, or of the stream of a kernel.
        start_us, end_us: on the clock of the trace [us].
        call: size and group; None if the record does not contain them.
        external: id shared by a host record and its kernels; None if not recorded.
        correlation: id shared by a kernel and its launch; -1 if not recorded.
        word: name of the collective, "" if unknown; "coalesced" of the annotation in which a batch is launched.
        name: of a kernel.
        own_rank: rank of the job that recorded it; -1 if not recorded.
        values: of an operator; None of other records.
        copied_bytes: of a copy between devices [bytes].
    """

    kind: str
    thread: int
    start_us: float
    end_us: float
    call: RankCall | None
    external: object = None
    correlation: int = -1
    word: str = ""
    name: str = ""
    own_rank: int = -1
    values: Values | None = None
    copied_bytes: int = 0


class StreamWait(NamedTuple):
    """A stream that waits for an event.

    Args:
        thread: index of the host thread; -1 if not recorded.
        host_us: time at which the host issued it; -1 if not recorded [us].
        correlation: id of the wait; -1 if not recorded.
        stream, waits_for: the waiting stream, and the stream of the event; -1 if not recorded.
        recorded_at: correlation id of the record of the event; -1 if not recorded.
    """

    thread: int = -1
    host_us: float = -1.0
    correlation: int = -1
    stream: int = -1
    waits_for: int = -1
    recorded_at: int = -1


class Events:
    """Events of one rank, or of one device or process of it.

    Attributes:
        count: events of all kinds.
        world_size: number of ranks; 0 if not recorded [count].
        rank: of the trace; -1 if not recorded.
        groups: members of process groups by name.
        kernel_*: columns of the kernels that compute: start and duration [us], stream, correlation id (-1: not recorded).
        launch_*: columns of kernel launches: correlation id, index of the host thread, time [us].
        graph_launches: correlation ids of launches of graphs.
        records: of collectives by kind, in the order of the file.
        batches: annotations in which the host launches several calls at once.
        unsized: kernels that communicate without a record of their own, and copies between devices.
        waits: of streams for events.
        steps: name, start and end of the profiler's steps [us].
        omissions: records without a usable size, by kind.
        irregular: events that are not used, by reason.
        activities: what is left out of the device's events, by kind and name.
    """

    def __init__(self) -> None:
        self.count = self.world_size = 0
        self.rank = -1
        self.groups: dict[str, tuple[int, ...]] = {}
        self.kernel_start_us, self.kernel_us = array("d"), array("d")
        self.kernel_stream, self.kernel_correlation = array("i"), array("q")
        self.launch_correlation, self.launch_thread, self.launch_us = array("q"), array("i"), array("d")
        self.graph_launches: set[int] = set()
        self.records: dict[str, list[Record]] = {kind: [] for kind in (RECORD, KERNEL, SIZED, NCCL, GLOO, OPERATOR)}
        self.batches: list[Record] = []
        self.unsized: list[Record] = []
        self.waits: list[StreamWait] = []
        self.steps: dict[str, tuple[float, float]] = {}
        self.omissions = {kind: Omissions() for kind in self.records}
        self.irregular: Counter[str] = Counter()
        self.activities = Activity()
        self.threads: dict[object, int] = {}

    def add_kernel(self, start_us: float, took_us: float, stream: int, correlation: int) -> None:
        """Add a kernel that computes.

        Args:
            start_us, took_us: start and duration [us].
            stream, correlation: see `kernel_*`; -1 if not recorded.
        """
        self.kernel_start_us.append(start_us)
        self.kernel_us.append(took_us)
        self.kernel_stream.append(stream)
        self.kernel_correlation.append(correlation)

    def add_launch(self, correlation: int, thread: object, at_us: float, *, graph: bool) -> None:
        """Add a launch of a kernel, or of a graph of kernels.

        Args:
            correlation: id shared with the kernels.
            thread: id of the host thread.
            at_us: time [us].
            graph: whether a graph is launched.
        """
        if graph:
            self.graph_launches.add(correlation)
        self.launch_correlation.append(correlation)
        self.launch_thread.append(self.thread_index(thread))
        self.launch_us.append(at_us)

    def keep_launches(self, kept: Sequence[bool]) -> None:
        """Forget launches.

        Args: kept: whether each one stays.
        """
        for name in _OF_LAUNCHES:
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, compress(column, kept)))

    def forget_kernels(self) -> None:
        """Forget the kernels that compute."""
        for name in _OF_KERNELS:
            del getattr(self, name)[:]

    def thread_index(self, thread: object) -> int:
        """Index of a host thread by its id."""
        return self.threads.setdefault(thread, len(self.threads))

    @property
    def compute_s(self) -> float:
        """All kernels that are not collectives [s]."""
        return math.fsum(self.kernel_us) * 1e-6

    @property
    def busy_s(self) -> float:
        """All kernels that are not of recorded collectives, and copies between devices [s]."""
        return self.compute_s + sum(one.end_us - one.start_us for one in self.unsized) * 1e-6

    @property
    def num_kernels(self) -> int:
        """Number of these."""
        return len(self.kernel_us) + len(self.unsized)

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it is of a rank: no kernel, no launch, no record, no step, nothing unknown."""
        used = len(self.kernel_us) or len(self.launch_us) or self.steps or self.unsized or any(self.records.values())
        return not (used or self.activities)

    @property
    def own_ranks(self) -> set[int]:
        """Ranks that its records say they are of."""
        return {one.own_rank for rows in self.records.values() for one in rows} - {-1}

    def absorb(self, other: Events) -> None:
        """Take in the events of another device or process of the same rank, which loses them."""
        thread = {number: self.thread_index(key) for key, number in other.threads.items()}
        other.launch_thread = array("i", (thread[number] for number in other.launch_thread))
        for name in (*_OF_KERNELS, *_OF_LAUNCHES):
            mine, taken = getattr(self, name), getattr(other, name)
            if len(mine):
                mine.extend(taken)
                del taken[:]
            else:
                setattr(self, name, taken)
                setattr(other, name, mine)
        self.graph_launches |= other.graph_launches
        for kind, rows in other.records.items():
            on_device = kind in (KERNEL, SIZED)
            self.records[kind] += rows if on_device else [one._replace(thread=thread[one.thread]) for one in rows]
            self.omissions[kind].add_all(other.omissions[kind])
        self.batches += [one._replace(thread=thread[one.thread]) for one in other.batches]
        self.unsized += other.unsized
        self.waits += [one._replace(thread=thread.get(one.thread, -1)) for one in other.waits]
        self.steps |= other.steps
        self.irregular += other.irregular
        self.activities.add_all(other.activities)


class Owner(NamedTuple):
    """Whose events they are.

    Args:
        kind: "rank", "device", "process"; "place" of a device that is known only by the place of its events.
        name: rank, number of the device, or id of the process.
    """

    kind: str
    name: object


def give_values(call: RankCall, values: Values) -> Iterator[str]:
    """Give a call what its operator records beside the sizes.

    Args:
        call: is changed.
        values: of its operator.
    Yields: why a list of parts is not used.
    """
    if call.is_transfer and call.ends is None:
        call.ends, call.tag = values.ends, values.tag
    elif call.collective == "all_to_all":
        into = call.received_bytes if call.received_bytes >= 0 else call.size_bytes
        yield from add_splits(call, (values.sent, values.received), (call.size_bytes, into), 1)
