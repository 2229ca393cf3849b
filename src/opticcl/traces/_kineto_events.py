"""Parser of PyTorch profiler traces (Kineto's Chrome-trace JSON) of jobs on NCCL, RCCL or Gloo.

::

    {"distributedInfo": {"rank", "world_size", "pg_config"}, "traceEvents": [{"name", "cat", "ts", "dur", "args"}, ...]}

Events are decoded one after the other. Kernels become columns; records of collectives, launches and stream waits are kept as
rows. `_kineto_calls` selects the calls among them, `_kineto_order` their order.

Source: pytorch/pytorch, ParamCommsUtils and profiler_kineto; pytorch/kineto, output_json; traces of both back ends.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError, check_size, printable, reading
from opticcl.traces.c10d import (
    MAX_GROUP,
    collective_of,
    count_of,
    is_whole,
    rank_list,
    ratio_of,
    splits_of,
    tensors_of,
    width_of,
)
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import RankCall
from opticcl.units import number_of

__all__ = ["GLOO", "KERNEL", "NCCL", "OPERATOR", "RECORD", "Events", "Record", "StreamWait", "read_events"]

_LONGEST = {"ts": 1e18, "dur": 1e13}  # 30,000 years after the epoch, and 115 days [us]
MAX_STEPS = 10_000

RECORD, KERNEL, NCCL, GLOO, OPERATOR = (
    "record_param_comms",
    "communication kernels",
    "nccl: annotations",
    "gloo: annotations",
    "c10d:: operators",
)


class Record(NamedTuple):
    """One record of a collective.

    Args:
        kind: host record, kernel, annotation or operator.
        thread: index of the host thread, or of the stream of a kernel.
        start_us, end_us: on the clock of the trace [us].
        call: size and group; None if the record does not contain them.
        external: id shared by a host record and its kernels; None if not recorded.
        correlation: id shared by a kernel and its launch; -1 if not recorded.
        word: name of the collective, "" if unknown.
    """

    kind: str
    thread: int
    start_us: float
    end_us: float
    call: RankCall | None
    external: object = None
    correlation: int = -1
    word: str = ""


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
    """Contents of the trace of one rank.

    Attributes:
        count: events of all kinds.
        world_size: number of ranks; 0 if not recorded [count].
        rank: of the trace; -1 if not recorded.
        groups: members of process groups by name.
        kernel_*: columns of the kernels that compute: start and duration [us], stream, correlation id (-1: not recorded).
        launch_*: columns of kernel launches: correlation id, index of the host thread, time [us].
        records: of collectives by kind, in the order of the file.
        waits: of streams for events.
        steps: name, start and end of the profiler's steps [us].
        omissions: records without a usable size, by kind.
    """

    def __init__(self) -> None:
        self.count = self.world_size = 0
        self.rank = -1
        self.groups: dict[str, tuple[int, ...]] = {}
        self.kernel_start_us, self.kernel_us = array("d"), array("d")
        self.kernel_stream, self.kernel_correlation = array("q"), array("q")
        self.launch_correlation, self.launch_thread, self.launch_us = array("q"), array("l"), array("d")
        self.records: dict[str, list[Record]] = {kind: [] for kind in (RECORD, KERNEL, NCCL, GLOO, OPERATOR)}
        self.waits: list[StreamWait] = []
        self.steps: dict[str, tuple[float, float]] = {}
        self.omissions = {kind: Omissions() for kind in self.records}
        self.irregular: Counter[str] = Counter()
        self._threads: dict[object, int] = {}
        self._lists: dict[str, tuple[int, ...]] = {}

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

    def add_launch(self, correlation: int, thread: object, at_us: float) -> None:
        """Add a kernel launch.

        Args:
            correlation: id shared with the kernel.
            thread: id of the host thread.
            at_us: time [us].
        """
        self.launch_correlation.append(correlation)
        self.launch_thread.append(self.thread_index(thread))
        self.launch_us.append(at_us)

    def thread_index(self, thread: object) -> int:
        """Index of a host thread by its id."""
        return self._threads.setdefault(thread, len(self._threads))

    @property
    def compute_s(self) -> float:
        """All kernels that are not collectives [s]."""
        return math.fsum(self.kernel_us) * 1e-6

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
        """Add the list of events."""
        for at in stream.elements():
            event = stream.value()
            self.count += 1
            if not isinstance(event, dict) or not isinstance(event.get("name"), str):
                self.irregular["events without a name"] += 1
                continue
            args = event.get("args")
            self._add(event, event["name"], args if isinstance(args, dict) else {}, at)

    def _add(self, event: dict[str, Any], name: str, args: dict[str, Any], at: int) -> None:
        category = str(event.get("cat", "")).lower()
        if category == "kernel":
            if "Collective name" in args or name.lower().startswith(("nccl", "rccl", "mscclkernel")):
                self._add_record(KERNEL, event, args, at)
            else:
                stream, correlation = count_of(args.get("stream"), -1), count_of(args.get("correlation"), -1)
                self.add_kernel(self._time(event, "ts"), self._time(event, "dur"), stream, correlation)
        elif category.endswith(("_runtime", "_driver")) or category == "runtime":
            self._add_runtime(event, name, args)
        elif category == "cuda_sync":
            self._add_sync(event, name, args)
        elif category.startswith("gpu_"):
            return  # copies, and annotations repeated on the stream
        elif name == "record_param_comms":
            self._add_record(RECORD, event, args, at)
        elif name.startswith("nccl:"):
            self._add_shapes(NCCL, event, name[5:], args, at)
        elif name.startswith("gloo:"):
            self._add_shapes(GLOO, event, name[5:], args, at)
        elif name.startswith("c10d::"):
            self._add_shapes(OPERATOR, event, name[6:], args, at)
        elif name.startswith("ProfilerStep#") and len(self.steps) < MAX_STEPS:
            start_us = self._time(event, "ts")
            self.steps[printable(name)] = start_us, start_us + self._time(event, "dur")

    def _time(self, event: dict[str, Any], key: str) -> float:
        """A start or a duration [us], some versions write it as text; 0 if it is not recorded or no time, which is counted."""
        value = event.get(key)
        try:
            number = number_of(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = 0.0 if value is None else -1.0
        if 0 <= number <= _LONGEST[key]:
            return number
        self.irregular["times out of range, taken as 0"] += 1
        return 0.0

    def _thread(self, event: dict[str, Any]) -> int:
        key = event.get("tid")
        key = key if isinstance(key, (int, str)) else None
        return self.thread_index(key)

    def _add_runtime(self, event: dict[str, Any], name: str, args: dict[str, Any]) -> None:
        if "aunch" in name:
            key = event.get("tid") if isinstance(event.get("tid"), (int, str)) else None
            self.add_launch(count_of(args.get("correlation"), -1), key, self._time(event, "ts"))
        elif name.endswith("StreamWaitEvent"):
            correlation = count_of(args.get("correlation"), -1)
            self.waits.append(StreamWait(self._thread(event), self._time(event, "ts"), correlation))

    def _add_sync(self, event: dict[str, Any], name: str, args: dict[str, Any]) -> None:
        if "wait event" not in name.lower():
            return
        stream, waits_for = count_of(args.get("stream"), -1), count_of(args.get("wait_on_stream"), -1)
        correlation = count_of(args.get("correlation"), -1)
        recorded_at = count_of(args.get("wait_on_cuda_event_record_corr_id"), -1)
        if min(stream, waits_for, correlation, recorded_at) < 0:
            self.irregular["stream waits without an event, ignored"] += 1
            return
        self.waits.append(StreamWait(-1, -1.0, correlation, stream, waits_for, recorded_at))

    # --- records with arguments ---

    def _add_record(self, kind: str, event: dict[str, Any], args: dict[str, Any], at: int) -> None:
        name = args.get("Collective name")
        call = self._call(kind, name, args, at) if isinstance(name, str) else None
        if not isinstance(name, str):
            self.omissions[kind].add(f"{kind} without a collective's name")
        start_us = self._time(event, "ts")
        end_us = start_us + self._time(event, "dur")
        stream = count_of(args.get("stream"), -1)
        self.records[kind].append(
            Record(
                kind,
                stream if kind == KERNEL else self._thread(event),
                start_us,
                end_us,
                call,
                _external(args),
                count_of(args.get("correlation"), -1),
                collective_of(name) if isinstance(name, str) else "",
            )
        )

    def _call(self, kind: str, name: str, args: dict[str, Any], at: int) -> RankCall | None:
        """The call in the arguments of a record; None, and counted, if it has no size."""
        omissions = self.omissions[kind]
        collective = collective_of(name)
        if not collective:
            omissions.add(f"{kind} of {printable(name[:40])}, which moves no data itself")
            return None
        elements = [args[key] for key in ("In msg nelems", "Out msg nelems") if is_whole(args.get(key))]
        width = width_of(args.get("dtype"))
        if not elements or not width:
            omissions.add(f"{kind} of {printable(name[:40])} without elements of a known type")
            return None
        # The whole message is the larger side; of an all_to_all the bytes sent are the input.
        count = elements[0] if collective == "all_to_all" else max(elements)
        size = check_size(min(elements) if min(elements) < 0 else count * width, at, f"{name[:40]} of this event")
        call = RankCall(printable(name), collective, size)
        call.group, call.ranks, call.group_size = self._group(args)
        if collective == "all_to_all":
            call.received_bytes = elements[-1] * width
            call.sent_splits = splits_of(args.get("In split size"), width, size)
            call.received_splits = splits_of(args.get("Out split size"), width, call.received_bytes)
        elif collective == "send":
            call.ranks = count_of(args.get("Src Rank"), self.rank), count_of(args.get("Dst Rank"), -1)
        elif collective == "recv":
            call.ranks = count_of(args.get("Src Rank"), -1), count_of(args.get("Dst Rank"), self.rank)
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
        return name, ranks or self.groups.get(name, ()), size

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
        name = printable(str(event["name"]))
        call = self._shaped_call(kind, name, collective_of(word), ends, args, at)
        if call is not None and kind == GLOO:
            call.measured_s = (end_us - start_us) * 1e-6
        self.records[kind].append(
            Record(kind, self._thread(event), start_us, end_us, call, _external(args), -1, collective_of(word))
        )

    def _shaped_call(
        self, kind: str, name: str, collective: str, ends: str, args: dict[str, Any], at: int
    ) -> RankCall | None:
        """The call by the shapes of tensors; None, and counted, if they are unknown."""
        if not collective:
            self.omissions[kind].add(f"{name[:60]}, which moves no data itself")
            return None
        sizes = list(tensors_of(args.get("Input Dims"), args.get("Input type")))
        if not sizes and collective != "barrier":
            self.omissions[kind].add(f"{name[:60]} without shapes of a known type")
            return None
        check_size(min(sizes, default=0), at, f"{name[:60]} of this event")
        # Annotations have the inputs; operators have all tensors, outputs first: the larger side is the message.
        size = max(sizes, default=0) if kind == OPERATOR else sum(sizes)
        call = RankCall(name, collective, check_size(size, at, f"{name[:60]} of this event"))
        if collective in ("send", "recv"):
            match = re.fullmatch(r"([0-9]{1,9})->([0-9]{1,9})", ends, re.ASCII)
            known = (self.rank, -1) if collective == "send" else (-1, self.rank)
            call.ranks = (int(match[1]), int(match[2])) if match else known
        elif kind == OPERATOR and len(sizes) >= 2:
            if collective == "all_to_all":
                call.received_bytes, call.size_bytes = sizes[0], sizes[1]
            elif collective in ("all_gather", "reduce_scatter"):
                call.group_size = ratio_of(sizes[:2])
        elif collective in ("all_gather", "gather") and len(sizes) == 1:
            call.counts = "share"
        return call


def read_events(path: Path) -> Events:
    """Read a whole trace of any length, one event after the other.

    Raises: WorkloadError: not such a trace, or a damaged one.
    """
    events = Events()
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
        stream.finish()
        if not found:
            raise DamageError(0, "there are no traceEvents")
    return events


def _external(args: dict[str, Any]) -> object:
    """Id shared by a kernel and the call that issued it, or None."""
    found = args.get("External id")
    return found if isinstance(found, (int, str)) else None


def _range(start: int, stride: int, size: int) -> tuple[int, ...]:
    return tuple(range(start, start + stride * size, stride))
