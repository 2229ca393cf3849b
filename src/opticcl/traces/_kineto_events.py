"""Parser of PyTorch profiler traces (Kineto's Chrome-trace JSON) of jobs on NCCL, RCCL or Gloo.

::

    {"distributedInfo": {"rank", "world_size", "pg_config"}, "traceEvents": [{"name", "cat", "ts", "dur", "args"}, ...]}

Events are decoded one after the other. Kernels become columns; records of collectives, launches and stream waits are kept as
rows. `_kineto_calls` selects the calls among them, `_kineto_order` their order. Events of several ranks, devices or processes
are kept apart, `_kineto_parts` decides which belong together.

What a device did is computation, communication (`kernel_names`) or unknown. A pair of events B and E is one event.

Source: pytorch/pytorch, ParamCommsUtils and profiler_kineto; pytorch/kineto, output_json; traces of both back ends.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError, check_size, printable, reading, refusal
from opticcl.traces.c10d import (
    MAX_GROUP,
    add_splits,
    collective_of,
    count_of,
    elements_of,
    ends_of,
    is_whole,
    rank_list,
    ratio_of,
    tensors_of,
    width_of,
)
from opticcl.traces.kernel_names import UNSIZED, Activity, KernelSizes, activity_of_task, is_host, library_of
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import GroupEnds, RankCall
from opticcl.units import number_of

__all__ = [
    "GLOO",
    "KERNEL",
    "NCCL",
    "OPERATOR",
    "RECORD",
    "SIZED",
    "Events",
    "FileEvents",
    "Owner",
    "Record",
    "StreamWait",
    "give_values",
    "read_events",
]

_LONGEST = {"ts": 1e18, "dur": 1e13}  # 30,000 years after the epoch, and 115 days [us]
MAX_STEPS = 10_000
MAX_OPEN = 100_000  # events B without their E
_ROOTED = ("broadcast", "reduce", "gather", "scatter")  # their records have the root in place of the rank

RECORD, KERNEL, SIZED, NCCL, GLOO, OPERATOR = (
    "record_param_comms",
    "communication kernels",
    "kernels whose sizes are listed",
    "nccl: annotations",
    "gloo: annotations",
    "c10d:: operators",
)
BATCH = "coalesced"
_OF_CALLS = ("record_param_comms", "nccl:", "gloo:", "c10d::", "ProfilerStep#", "hcom_")


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
        kind: host record, kernel, annotation or operator.
        thread: index of the host thread, or of the stream of a kernel.
        start_us, end_us: on the clock of the trace [us].
        call: size and group; None if the record does not contain them.
        external: id shared by a host record and its kernels; None if not recorded.
        correlation: id shared by a kernel and its launch; -1 if not recorded.
        word: name of the collective, "" if unknown; "coalesced" of the annotation in which a batch is launched.
        name: of a kernel.
        own_rank: rank of the job that recorded it; -1 if not recorded.
        values: of an operator; None of other records.
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


class StreamWait(NamedTuple):
    """A stream that waits for an event.

    Args:
        thread: index of the host thread; -1 if not recorded.
        host_us: time at which the host issued it; -1 if not recorded [us].
        correlation: id of the wait; -1 if not recorded.
        stream, waits_for: the waiting stream, and the stream of the event; -1 if not recorded.
        recorded_at: correlation id of the record of the event; -1 if not recorded.
    """

    thread: int
    host_us: float
    correlation: int
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
        unsized: kernels that communicate without any record of a size, and copies between devices.
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
        self.kernel_stream, self.kernel_correlation = array("q"), array("q")
        self.launch_correlation, self.launch_thread, self.launch_us = array("q"), array("l"), array("d")
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

    def add_launch(self, correlation: int, thread: object, at_us: float, *, graph: bool = False) -> None:
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
        for name in ("launch_correlation", "launch_thread", "launch_us"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, compress(column, kept)))

    def thread_index(self, thread: object) -> int:
        """Index of a host thread by its id."""
        return self.threads.setdefault(thread, len(self.threads))

    @property
    def compute_s(self) -> float:
        """All kernels that are not collectives [s]."""
        return math.fsum(self.kernel_us) * 1e-6

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
        """Add the events of another device or process of the same rank."""
        thread = {number: self.thread_index(key) for key, number in other.threads.items()}
        for name in ("kernel_start_us", "kernel_us", "kernel_stream", "kernel_correlation"):
            getattr(self, name).extend(getattr(other, name))
        self.launch_correlation.extend(other.launch_correlation)
        self.launch_us.extend(other.launch_us)
        self.launch_thread.extend(thread[number] for number in other.launch_thread)
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


class FileEvents:
    """Events of a whole file, by rank, device and process.

    Args:
        sizes: of kernels without a record.

    Attributes:
        count: events of all kinds.
        world_size: number of ranks; 0 if not recorded [count].
        rank: of the file; -1 if not recorded.
        groups: members of process groups by name.
        parts: events by rank, device and process.
        irregular: events that are not used, by reason.
    """

    def __init__(self, sizes: KernelSizes | None = None) -> None:
        self.count = self.world_size = 0
        self.rank = -1
        self.groups: dict[str, tuple[int, ...]] = {}
        self.parts: dict[Owner, Events] = {}
        self.irregular: Counter[str] = Counter()
        self._sizes = sizes
        self._lists: dict[str, tuple[int, ...]] = {}
        self._open: dict[object, list[dict[str, Any]]] = {}
        self._num_open = 0
        self._with_records: set[int] = set()  # ranks whose host records have sizes; -1 of events without a rank

    def add_info(self, info: Any) -> None:
        """Add distributedInfo."""
        if not isinstance(info, dict):
            return
        self.rank = count_of(info.get("rank"), -1)
        self.world_size = min(count_of(info.get("world_size"), 0), MAX_GROUP)
        groups = info.get("pg_config")
        for group in groups if isinstance(groups, list) else ():
            if isinstance(group, dict) and (ranks := self._rank_list(group.get("ranks"))):
                self.groups[printable(str(group.get("pg_name")))] = ranks

    def add_all(self, stream: JsonStream) -> None:
        """Add the list of events; one that is no JSON, which PyTorch writes for some names, is left out and counted.

        Raises: DamageError: the list has no further event after a damaged one.
        """
        for at in stream.elements():
            try:
                event = stream.value()
            except DamageError as damage:
                if not stream.resume(_NEXT_EVENT):
                    raise
                self.irregular[f"events that are no JSON, left out, such as that at character {damage.at:,}"] += 1
                continue
            self.count += 1
            phase = event.get("ph") if isinstance(event, dict) else None
            if not isinstance(event, dict) or not (isinstance(event.get("name"), str) or phase == "E"):
                self.irregular["events without a name"] += 1
                continue
            if phase in ("B", "E"):
                event = self._whole_event(event)
                if event is None:
                    continue
            args = event.get("args")
            self._add(event, event["name"], args if isinstance(args, dict) else {}, at)
        if self._num_open:
            self.irregular["events that begin and do not end, left out"] += self._num_open

    def _whole_event(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """The event that a B or an E completes, with its duration; None if it completes none."""
        key = repr((event.get("pid"), event.get("tid")))
        begun = self._open.setdefault(key, [])
        if event["ph"] == "B":
            if self._num_open >= MAX_OPEN:
                self.irregular["events that begin and do not end, left out"] += 1
            else:
                begun.append(event)
                self._num_open += 1
            return None
        name = event.get("name")
        of_name = [i for i, one in enumerate(begun) if name in (None, one.get("name"))]
        if not of_name:
            self.irregular["events that end and did not begin, left out"] += 1
            return None
        whole = begun.pop(of_name[-1])
        self._num_open -= 1
        start_us, end_us = self._time(whole, "ts"), self._time(event, "ts")
        args = [one["args"] for one in (whole, event) if isinstance(one.get("args"), dict)]
        return {**whole, "dur": max(0.0, end_us - start_us), "args": {key: one[key] for one in args for key in one}}

    def part(self, kind: str, event: dict[str, Any], args: dict[str, Any]) -> Events:
        """The events of the rank, device or process of an event.

        Args:
            kind: "device" or "process", unless the event has a rank.
            event, args: the event.
        """
        rank = count_of(args["rank"], -1) if "rank" in args else -1
        key: tuple[str, object]
        if rank >= 0:
            key = "rank", rank
        elif kind == "process":
            key = "process", _name(event.get("pid"))
        elif is_whole(args.get("device")):
            key = "device", args["device"]
        else:
            key = "place", "" if "Task Type" in args else _name(event.get("pid"))
        found = self.parts.get(key)  # type: ignore[call-overload]  # an owner is equal to its tuple, which is made sooner
        if found is None:
            found = self.parts[Owner(*key)] = Events()
        return found

    def _add(self, event: dict[str, Any], name: str, args: dict[str, Any], at: int) -> None:
        category = _lower(str(event.get("cat", "")))
        if is_host(category) and not name.startswith(_OF_CALLS) and "Task Type" not in args:
            return  # most events
        if category == "kernel":
            self._add_kernel(event, name, args, at)
        elif category.endswith(("_runtime", "_driver")) or category == "runtime":
            self._add_runtime(event, name, args)
        elif category == "cuda_sync":
            self._add_sync(event, name, args)
        elif category == "gpu_memcpy":
            if "ptop" in name.lower() or "peer" in name.lower():
                self._add_unsized("copies between devices", event, name, args)
        elif category.startswith("gpu_"):
            return  # memory that is set, and annotations repeated on the stream
        elif name == "record_param_comms":
            self._add_record(RECORD, event, args, at)
        elif name.startswith("nccl:"):
            self._add_shapes(NCCL, event, name[5:], args, at)
        elif name.startswith("gloo:"):
            self._add_shapes(GLOO, event, name[5:], args, at)
        elif name.startswith("c10d::"):
            self._add_shapes(OPERATOR, event, name[6:], args, at)
        elif name.startswith("ProfilerStep#"):
            steps = self.part("process", event, args).steps
            if len(steps) < MAX_STEPS:
                start_us = self._time(event, "ts")
                steps[printable(name)] = start_us, start_us + self._time(event, "dur")
        else:
            self._add_foreign(event, name, args, at)

    def _add_kernel(self, event: dict[str, Any], name: str, args: dict[str, Any], at: int) -> None:
        """A kernel: that of a recorded collective, another that communicates, or computation."""
        library = library_of(name)
        if "Collective name" in args or (library is not None and library.recorded):
            self._add_record(KERNEL, event, args, at)
        elif library is not None:
            self._add_unsized(f"kernels of {library.name}", event, name, args)
        else:
            stream, correlation = count_of(args.get("stream"), -1), count_of(args.get("correlation"), -1)
            part = self.part("device", event, args)
            part.add_kernel(self._time(event, "ts"), self._time(event, "dur"), stream, correlation)

    def _add_unsized(self, what: str, event: dict[str, Any], name: str, args: dict[str, Any]) -> None:
        """A kernel that communicates and has no record: a call, if its size is listed."""
        part, start_us = self.part("device", event, args), self._time(event, "ts")
        end_us = start_us + self._time(event, "dur")
        stream, correlation = count_of(args.get("stream"), -1), count_of(args.get("correlation"), -1)
        call = self._sizes.call_of(name) if self._sizes is not None else None
        one = Record(KERNEL, stream, start_us, end_us, call, _external(args), correlation, name=name)
        if call is not None:
            part.records[SIZED].append(one._replace(kind=SIZED, word=call.collective))
            return
        part.unsized.append(one)
        part.activities.add(f"{what} {UNSIZED}", name, end_us - start_us, count_of(args.get("bytes"), 0))

    def _add_foreign(self, event: dict[str, Any], name: str, args: dict[str, Any], at: int) -> None:
        """A device event of another maker: a collective, computation, or unknown."""
        start_us, took_us = self._time(event, "ts"), self._time(event, "dur")
        part = self.part("device", event, args)
        stream = count_of(args.get("Stream Id"), -1)
        library = library_of(name)
        if library is not None and library.recorded:
            word = name.partition("_")[2].split("__")[0]
            size, elements = count_of(args.get("size(Byte)"), 0), count_of(args.get("count"), 0)
            size = size or elements * width_of(args.get("data_type"))
            call = None
            if size and collective_of(word):
                call = RankCall(
                    printable(name[:80]), collective_of(word), check_size(size, at, f"{name[:40]} of this event")
                )
            elif collective_of(word):
                part.omissions[KERNEL].add(f"{KERNEL} of {printable(word[:40])} without a size", missing=True)
            part.records[KERNEL].append(
                Record(KERNEL, stream, start_us, start_us + took_us, call, None, -1, collective_of(word), name)
            )
        elif activity_of_task(args.get("Task Type")) == "computation":
            part.add_kernel(start_us, took_us, stream, -1)
        elif event.get("ph") == "X":
            part.activities.add("device events of an unknown kind", name, took_us)

    def _time(self, event: dict[str, Any], key: str) -> float:
        """A start or a duration [us], some versions write it as text; 0 if it is not recorded or no time, which is counted."""
        value = event.get(key)
        if type(value) is float and 0 <= value <= _LONGEST[key]:
            return value
        try:
            number = number_of(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = 0.0 if value is None else -1.0
        if 0 <= number <= _LONGEST[key]:
            return number
        self.irregular["times out of range, taken as 0"] += 1
        return 0.0

    def _add_runtime(self, event: dict[str, Any], name: str, args: dict[str, Any]) -> None:
        part = self.part("process", event, args)
        if "aunch" in name:
            correlation = count_of(args.get("correlation"), -1)
            part.add_launch(correlation, _name(event.get("tid")), self._time(event, "ts"), graph="GraphLaunch" in name)
        elif name.endswith("StreamWaitEvent"):
            thread, correlation = part.thread_index(_name(event.get("tid"))), count_of(args.get("correlation"), -1)
            part.waits.append(StreamWait(thread, self._time(event, "ts"), correlation))

    def _add_sync(self, event: dict[str, Any], name: str, args: dict[str, Any]) -> None:
        if "wait event" not in name.lower():
            return
        stream, waits_for = count_of(args.get("stream"), -1), count_of(args.get("wait_on_stream"), -1)
        correlation = count_of(args.get("correlation"), -1)
        recorded_at = count_of(args.get("wait_on_cuda_event_record_corr_id"), -1)
        if min(stream, waits_for, correlation, recorded_at) < 0:
            self.irregular["stream waits without an event, ignored"] += 1
            return
        part = self.part("device", event, args)
        part.waits.append(StreamWait(-1, -1.0, correlation, stream, waits_for, recorded_at))

    # --- records with arguments ---

    def _add_record(self, kind: str, event: dict[str, Any], args: dict[str, Any], at: int) -> None:
        name = args.get("Collective name")
        part = self.part("device" if kind == KERNEL else "process", event, args)
        # Once the host has a record with a size, kernels and annotations only give times.
        needed = kind == RECORD or count_of(args.get("rank"), -1) not in self._with_records
        call = self._call(part, kind, name, args, at) if isinstance(name, str) and needed else None
        if call is not None and kind == RECORD:
            self._with_records.add(count_of(args.get("rank"), -1))
        own = -1
        if call is not None and not call.is_transfer and call.collective not in _ROOTED:
            number = count_of(args.get("Rank"), -1)  # within the group
            own = call.ranks[number] if 0 <= number < len(call.ranks) else -1
        if not isinstance(name, str):
            part.omissions[kind].add(f"{kind} without a collective's name")
        start_us = self._time(event, "ts")
        end_us = start_us + self._time(event, "dur")
        stream = count_of(args.get("stream"), -1)
        part.records[kind].append(
            Record(
                kind,
                stream if kind == KERNEL else part.thread_index(_name(event.get("tid"))),
                start_us,
                end_us,
                call,
                _external(args),
                count_of(args.get("correlation"), -1),
                collective_of(name) if isinstance(name, str) else "",
                str(event["name"]) if kind == KERNEL else "",
                own,
            )
        )

    def _call(self, part: Events, kind: str, name: str, args: dict[str, Any], at: int) -> RankCall | None:
        """The call in the arguments of a record; None, and counted, if it has no size."""
        omissions = part.omissions[kind]
        collective = collective_of(name)
        if not collective:
            omissions.add(f"{kind} of {printable(name[:40])}, which moves no data itself")
            return None
        elements = [args[key] for key in ("In msg nelems", "Out msg nelems") if is_whole(args.get(key))]
        width = width_of(args.get("dtype"))
        if not elements or not width:
            omissions.add(f"{kind} of {printable(name[:40])} without elements of a known type", missing=True)
            return None
        # The whole message is the larger side; of an all_to_all the bytes sent are the input.
        count = elements[0] if collective == "all_to_all" else max(elements)
        size = check_size(min(elements) if min(elements) < 0 else count * width, at, f"{name[:40]} of this event")
        call = RankCall(printable(name), collective, size)
        call.group, call.ranks, call.group_size = self._group(args)
        call.sequence = count_of(args.get("Seq"), -1)
        if call.is_transfer:
            number = count_of(args.get("Rank"), -1)  # of the peer, within the group
            members, call.ranks = call.ranks, (count_of(args.get("Src Rank"), -1), count_of(args.get("Dst Rank"), -1))
            if call.ranks == (-1, -1) and number >= 0:
                call.ends = GroupEnds(*((-1, number) if collective == "send" else (number, -1)), members)
        if collective == "all_to_all":
            call.received_bytes = elements[-1] * width
            lists = args.get("In split size"), args.get("Out split size")
            for why in add_splits(call, lists, (elements[0], elements[-1]), width):
                omissions.add(why)
        elif call.is_transfer:
            call.group_size = 0
        elif not call.ranks and not call.group_size and collective in ("all_gather", "reduce_scatter"):
            call.group_size = ratio_of(elements)
        return call

    def _group(self, args: dict[str, Any]) -> tuple[str, tuple[int, ...], int]:
        """Name of the process group, its ranks, and their number."""
        name = args.get("Process Group Name", args.get("Process Group ID", ""))
        name = printable(str(name)) if isinstance(name, (str, int)) else ""
        size = min(count_of(args.get("Group size"), 0), MAX_GROUP)
        ranks = self._rank_list(args.get("Process Group Ranks"))
        if not ranks:
            start, stride = count_of(args.get("Global rank start"), -1), count_of(args.get("Global rank stride"), 0)
            if start >= 0 and stride and size:  # long lists are cut: "[0, 1, ...]"
                ranks = self._lists.setdefault(f"{start} {stride} {size}", _range(start, stride, size))
        return name, ranks, size

    def _rank_list(self, value: Any) -> tuple[int, ...]:
        """The ranks of a list; equal lists are kept once."""
        if isinstance(value, list):
            value = str(value) if all(is_whole(rank) for rank in value) else ""
        if not isinstance(value, str):
            return ()
        if value not in self._lists:
            self._lists[value] = rank_list(value)
        return self._lists[value]

    # --- records with shapes ---

    def _add_shapes(self, kind: str, event: dict[str, Any], text: str, args: dict[str, Any], at: int) -> None:
        start_us = self._time(event, "ts")
        end_us = start_us + self._time(event, "dur")
        word, _, ends = text.partition(" ")
        part = self.part("process", event, args)
        collective, thread = collective_of(word), part.thread_index(_name(event.get("tid")))
        if word == BATCH:
            part.batches.append(Record(kind, thread, start_us, end_us, None, _external(args), -1, BATCH))
        name = printable(str(event["name"]))
        needed = kind != NCCL or count_of(args.get("rank"), -1) not in self._with_records
        call = self._shaped_call(part, kind, name, collective, ends, args, at) if needed else None
        if call is not None and kind == GLOO:
            call.measured_s = (end_us - start_us) * 1e-6
        values = _values(name, collective, args) if kind == OPERATOR else None
        if call is not None and values is not None:
            for why in give_values(call, values):
                part.omissions[kind].add(why)
        one = Record(kind, thread, start_us, end_us, call, _external(args), -1, collective, values=values)
        part.records[kind].append(one)

    def _shaped_call(
        self, part: Events, kind: str, name: str, collective: str, ends: str, args: dict[str, Any], at: int
    ) -> RankCall | None:
        """The call by the shapes of tensors; None, and counted, if they are unknown."""
        if not collective:
            part.omissions[kind].add(f"{name[:60]}, which moves no data itself")
            return None
        sizes = list(tensors_of(args.get("Input Dims"), args.get("Input type")))
        if not sizes and collective != "barrier":
            why = (
                "without shapes of a known type"
                if "Input Dims" in args
                else "without shapes; record_shapes=True has them"
            )
            part.omissions[kind].add(f"{name[:60]} {why}", missing=True)
            return None
        check_size(min(sizes, default=0), at, f"{name[:60]} of this event")
        # Annotations have the inputs; operators have all tensors, outputs first: the larger side is the message.
        size = max(sizes, default=0) if kind == OPERATOR else sum(sizes)
        call = RankCall(name, collective, check_size(size, at, f"{name[:60]} of this event"))
        if call.is_transfer:
            call.ranks = (-1, -1)
            call.ends = ends_of(ends)
        elif kind == OPERATOR and len(sizes) >= 2:
            if collective == "all_to_all":
                call.received_bytes, call.size_bytes = sizes[0], sizes[1]
            elif collective in ("all_gather", "reduce_scatter"):
                call.group_size = ratio_of(sizes[:2])
        elif collective in ("all_gather", "gather") and len(sizes) == 1:
            call.counts = "share"
        return call


_lower = lru_cache(1024)(str.lower)
"""A category in lower case; a trace has few."""

_NEXT_EVENT = re.compile(
    r"\}(?=\s*,\s*\{\s*\"(?:ph|name|cat|pid|tid|ts|dur|id|args)\"\s*:)|\}(?=\s*\]\s*(?:,\s*\"[A-Za-z_ ]+\"\s*:|\}\s*\Z))"
)
"""The end of an event: a further event follows, or the end of the list."""


def _values(name: str, collective: str, args: dict[str, Any]) -> Values | None:
    """What an operator records beside the sizes, by the order of its arguments; None if nothing."""
    concrete = args.get("Concrete Inputs")
    concrete = concrete if isinstance(concrete, list) else []
    if collective in ("send", "recv") and len(concrete) > 3 and "any_source" not in name:
        peer, tag = (int(v) if re.fullmatch("[0-9]{1,9}", str(v), re.ASCII) else -1 for v in concrete[2:4])
        return Values(GroupEnds(-1, peer) if collective == "send" else GroupEnds(peer, -1), str(tag))
    if collective != "all_to_all":
        return None
    shapes = args.get("Input Dims")
    tensors = [elements_of(shape) for shape in shapes[:2]] if isinstance(shapes, list) else []
    if len(tensors) == 2 and all(tensors):  # a list of tensors on each side, outputs first
        return Values(sent=tensors[1], received=tensors[0])
    return Values(sent=concrete[4], received=concrete[3]) if len(concrete) > 4 else None


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
        sent, received = values.sent, values.received
        if isinstance(sent, list) and isinstance(received, list) and call.received_bytes < 0 and sum(sent):
            call.received_bytes = call.size_bytes * sum(received) // sum(sent)
        into = call.received_bytes if call.received_bytes >= 0 else call.size_bytes
        yield from add_splits(call, (sent, received), (call.size_bytes, into), 1)


def read_events(path: Path, sizes: KernelSizes | None = None) -> FileEvents:
    """Read a whole trace of any length, one event after the other.

    Args:
        path: of the file.
        sizes: of kernels without a record.
    Raises: WorkloadError: not such a trace, or a damaged one.
    """
    events = FileEvents(sizes)
    with reading(path, "trace of the PyTorch profiler (.json)", "character") as file:
        stream = JsonStream(file)
        found = stream.peek() == "["
        if found:
            events.add_all(stream)
        else:
            for key in stream.members():
                if key == "traceEvents":
                    found = True
                    events.add_all(stream)
                elif key == "distributedInfo":
                    events.add_info(stream.value())
                else:
                    stream.skip()
        if not found:
            raise refusal(
                path,
                "is JSON, but no trace that opticcl reads: there are no traceEvents; docs/workload.md lists the forms",
            )
        stream.finish()
    return events


def _name(value: object) -> object:
    """Id of a thread or a process; None if it is none."""
    return value if isinstance(value, (int, str)) else None


def _external(args: dict[str, Any]) -> object:
    """Id shared by a kernel and the call that issued it, or None."""
    found = args.get("External id")
    return found if isinstance(found, (int, str)) else None


def _range(start: int, stride: int, size: int) -> tuple[int, ...]:
    return tuple(range(start, start + stride * size, stride))
