"""Forms of the events of PyTorch profiler traces (Kineto's Chrome-trace JSON) of jobs on NCCL, RCCL or Gloo.

::

    {"distributedInfo": {"rank", "world_size", "pg_config"}, "traceEvents": [{"name", "cat", "ts", "dur", "args"}, ...]}

Events are decoded many at a time; where one of them is unusual or damaged, one after the other. The arguments of those that are
not used stay text. Events of several ranks, devices or processes are kept apart.

What a device did is computation, communication (`kernel_names`) or unknown. A pair of events B and E
is one event.

Source: pytorch/pytorch, ParamCommsUtils and profiler_kineto; pytorch/kineto, output_json; traces of both back ends.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any

import msgspec

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError, check_size, printable, reading, refusal
from opticcl.traces._kineto_arguments import Arguments, shaped_call, values_of
from opticcl.traces._kineto_events import (
    GLOO,
    KERNEL,
    NCCL,
    OPERATOR,
    RECORD,
    SIZED,
    Events,
    Owner,
    Record,
    StreamWait,
    give_values,
)
from opticcl.traces.c10d import (
    MAX_GROUP,
    collective_of,
    count_of,
    members_of,
    width_of,
)
from opticcl.traces.kernel_names import KernelSizes, activity_of_task, is_host, is_launch, library_of
from opticcl.traces.recording import RankCall
from opticcl.units import number_of

__all__ = ["FileEvents", "read_events"]

_LONGEST = {"ts": 1e18, "dur": 1e13}  # 30,000 years after the epoch, and 115 days [us]
MAX_STEPS = 10_000
NAMELESS = "events without a name"
MAX_OPEN = 100_000  # events B without their E
_ROOTED = ("broadcast", "reduce", "gather", "scatter")  # their records have the root in place of the rank

BATCH = "coalesced"
_OF_CALLS = ("record_param_comms", "nccl:", "gloo:", "c10d::", "ProfilerStep#", "hcom_")


class TraceEvent(msgspec.Struct):
    """One event of a trace, as decoded.

    Args:
        ph, cat, name: phase, category and name.
        ts, dur: start and duration [us].
        pid, tid: ids of process and thread.
        args: its arguments.
    """

    ph: Any = None
    cat: Any = ""
    name: Any = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Any = None


class _Brief(TraceEvent):
    """An event whose arguments are still text."""

    args: msgspec.Raw = msgspec.Raw(b"null")


_whole_events, _brief_events = msgspec.json.Decoder(list[TraceEvent]), msgspec.json.Decoder(list[_Brief])
_arguments = msgspec.json.Decoder()
_lenient = json.JSONDecoder(strict=False)


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
        self._arguments = Arguments()
        self._open: dict[tuple[str, str], list[list[TraceEvent]]] = defaultdict(
            list
        )  # of a thread, and of a name in it
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
            if isinstance(group, dict) and (ranks := members_of(group)):
                self.groups[printable(str(group.get("pg_name")))] = ranks

    def add_all(self, stream: JsonStream) -> None:
        """Add the list of events; one that is no JSON, which PyTorch writes for some names, is left out and counted.

        Raises: DamageError: the list has no further event after a damaged one.
        """
        for _ in stream.elements():
            batch = stream.batch(_decoded, _NEXT_EVENT)
            self.count += len(batch)
            for index, event in enumerate(batch):
                try:
                    self._add_event(event, 0)
                except DamageError as damage:
                    raise DamageError(stream.position(index), damage.what) from None
            at = stream.at
            try:
                value = stream.value()
            except DamageError as damage:
                if not stream.resume(_NEXT_EVENT):
                    raise
                self.irregular[f"events that are not JSON, left out, such as that at character {damage.at:,}"] += 1
                continue
            self.count += 1
            self._add_event(_event_of(value), at)
        self.irregular["events that begin and do not end, left out"] += self._num_open

    def _add_event(self, event: TraceEvent, at: int) -> None:
        """Add a decoded event.

        Args:
            event: if it is no object, one without anything.
            at: its position, for messages.
        """
        if event.ph == "E" or (event.ph == "B" and isinstance(event.name, str)):
            whole = self._whole_event(event)
            if whole is None:
                return
            event = whole
        name = event.name
        if type(name) is not str:
            self.irregular[NAMELESS] += 1
            return
        category, on_host = _category_of(str(event.cat))
        if on_host and not name.startswith(_OF_CALLS) and type(event.args) is not dict:
            return  # most events
        args = _arguments_of(event)
        if not on_host or name.startswith(_OF_CALLS) or "Task Type" in args:
            self._add(event, category, name, args, at)

    def _whole_event(self, event: TraceEvent) -> TraceEvent | None:
        """The event that a B or an E completes, with its duration; None if it completes none."""
        thread = repr((event.pid, event.tid))
        of_thread = self._open[thread, ""]
        if event.ph == "B":
            if self._num_open >= MAX_OPEN:
                self.irregular["events that begin and do not end, left out"] += 1
            else:
                begun = [event]  # empty once it has ended
                of_thread.append(begun)
                self._open[thread, "of " + event.name].append(begun)
                self._num_open += 1
            return None
        of_name = of_thread if event.name is None else self._open[thread, f"of {event.name}"]
        _drop_ended(of_name)
        if not of_name:
            self.irregular["events that end and did not begin, left out"] += 1
            return None
        whole = of_name.pop().pop()
        _drop_ended(of_thread)
        self._num_open -= 1
        start_us, end_us = self._time(whole, "ts"), self._time(event, "ts")
        args = {**_arguments_of(whole), **_arguments_of(event)}
        return TraceEvent(
            whole.ph, whole.cat, whole.name, whole.ts, max(0.0, end_us - start_us), whole.pid, whole.tid, args
        )

    def part(self, kind: str, event: TraceEvent, args: dict[str, Any]) -> Events:
        """The events of the rank, device or process of an event.

        Args:
            kind: "device" or "process", unless the event has a rank.
            event, args: the event.
        """
        key: tuple[str, object]
        if "rank" in args and count_of(args["rank"], -1) >= 0:
            key = "rank", args["rank"]
        elif kind == "process":
            key = "process", _name(event.pid)
        elif type(args.get("device")) is int:
            key = "device", args["device"]
        else:
            key = "place", "" if "Task Type" in args else _name(event.pid)
        found = self.parts.get(key)  # type: ignore[call-overload]  # an owner is equal to its tuple, which is made sooner
        if found is None:
            found = self.parts[Owner(*key)] = Events()
        return found

    def _add(self, event: TraceEvent, category: str, name: str, args: dict[str, Any], at: int) -> None:
        """Add an event by its category, in lower case, or by its name."""
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

    def _add_kernel(self, event: TraceEvent, name: str, args: dict[str, Any], at: int) -> None:
        """A kernel: that of a recorded collective, another that communicates, or computation."""
        library = library_of(name)
        if "Collective name" in args or (library is not None and library.recorded):
            self._add_record(KERNEL, event, args, at)
        elif library is not None:
            self._add_unsized(f"kernels of {library.name}", event, name, args)
        else:
            stream, correlation = count_of(args.get("stream"), -1), _number_of(args, "correlation")
            part = self.part("device", event, args)
            part.add_kernel(self._time(event, "ts"), self._time(event, "dur"), stream, correlation)

    def _add_unsized(self, what: str, event: TraceEvent, name: str, args: dict[str, Any]) -> None:
        """A kernel that communicates and has no record: a call, if its size is listed."""
        part, start_us = self.part("device", event, args), self._time(event, "ts")
        end_us = start_us + self._time(event, "dur")
        stream, correlation = count_of(args.get("stream"), -1), _number_of(args, "correlation")
        call = self._sizes.call_of(name) if self._sizes is not None else None
        one = Record(what, stream, start_us, end_us, call, _external(args), correlation, name=name)
        if call is not None:
            part.records[SIZED].append(one._replace(kind=SIZED, word=call.collective))
        else:
            part.unsized.append(one._replace(copied_bytes=max(0, _number_of(args, "bytes"))))

    def _add_foreign(self, event: TraceEvent, name: str, args: dict[str, Any], at: int) -> None:
        """A device event of another maker: a collective, computation, or unknown."""
        start_us, took_us = self._time(event, "ts"), self._time(event, "dur")
        part = self.part("device", event, args)
        stream = count_of(args.get("Stream Id"), -1)
        library = library_of(name)
        if library is not None and library.recorded:
            word = name.partition("_")[2].split("__")[0]
            size, elements = (max(0, _number_of(args, key)) for key in ("size(Byte)", "count"))
            size = size or elements * width_of(args.get("data_type"))
            call = None
            if size and collective_of(word):
                call = RankCall(
                    printable(name[:80]), collective_of(word), check_size(size, at, f"{name[:40]} of this event")
                )
            elif collective_of(word):
                part.omissions[KERNEL].add(f"{KERNEL} of {printable(word[:40])} without a size", missing=True)
            part.records[KERNEL].append(
                Record(KERNEL, stream, start_us, start_us + took_us, call, word=collective_of(word), name=name)
            )
        elif activity_of_task(args.get("Task Type")) == "computation":
            part.add_kernel(start_us, took_us, stream, -1)
        elif event.ph == "X":
            part.activities.add("device events of an unknown kind", name, took_us)

    def _time(self, event: TraceEvent, key: str) -> float:
        """A start or a duration [us], some versions write it as text; 0 if it is not recorded or no time, which is counted."""
        value = event.ts if key == "ts" else event.dur
        if type(value) is float and 0 <= value <= _LONGEST[key]:
            return value
        try:
            number = number_of(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = 0.0 if value is None else -1.0
        if 0 <= number <= _LONGEST[key]:
            return number
        self.irregular["times out of range, taken as 0"] += 1
        return 0.0

    def _add_runtime(self, event: TraceEvent, name: str, args: dict[str, Any]) -> None:
        part = self.part("process", event, args)
        if is_launch(name):
            correlation = _number_of(args, "correlation")
            part.add_launch(correlation, _name(event.tid), self._time(event, "ts"), graph="GraphLaunch" in name)
        elif name.endswith("StreamWaitEvent"):
            part.waits.append(StreamWait(part.thread_index(_name(event.tid)), self._time(event, "ts")))

    def _add_sync(self, event: TraceEvent, name: str, args: dict[str, Any]) -> None:
        if "wait event" not in name.lower():
            return
        stream, waits_for = count_of(args.get("stream"), -1), count_of(args.get("wait_on_stream"), -1)
        correlation, recorded_at = (
            _number_of(args, key) for key in ("correlation", "wait_on_cuda_event_record_corr_id")
        )
        if min(stream, waits_for, correlation, recorded_at) < 0:
            self.irregular["stream waits without an event, ignored"] += 1
            return
        part = self.part("device", event, args)
        wait = StreamWait(correlation=correlation, stream=stream, waits_for=waits_for, recorded_at=recorded_at)
        part.waits.append(wait)

    def _add_record(self, kind: str, event: TraceEvent, args: dict[str, Any], at: int) -> None:
        name = args.get("Collective name")
        part = self.part("device" if kind == KERNEL else "process", event, args)
        # Once the host has a record with a size, kernels and annotations only give times.
        needed = kind == RECORD or count_of(args.get("rank"), -1) not in self._with_records
        call = self._arguments.call(part, kind, name, args, at) if isinstance(name, str) and needed else None
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
                stream if kind == KERNEL else part.thread_index(_name(event.tid)),
                start_us,
                end_us,
                call,
                _external(args),
                _number_of(args, "correlation"),
                collective_of(name) if isinstance(name, str) else "",
                intern(event.name) if kind == KERNEL else "",
                own,
            )
        )

    def _add_shapes(self, kind: str, event: TraceEvent, text: str, args: dict[str, Any], at: int) -> None:
        start_us = self._time(event, "ts")
        end_us = start_us + self._time(event, "dur")
        word, _, ends = text.partition(" ")
        part = self.part("process", event, args)
        collective, thread = collective_of(word), part.thread_index(_name(event.tid))
        if word == BATCH:
            part.batches.append(Record(kind, thread, start_us, end_us, None, _external(args), word=BATCH))
        name = printable(event.name)
        needed = kind != NCCL or count_of(args.get("rank"), -1) not in self._with_records
        call = shaped_call(part, kind, name, collective, ends, args, at) if needed else None
        if call is not None and kind == GLOO:
            call.measured_s = (end_us - start_us) * 1e-6
        values = values_of(name, collective, args) if kind == OPERATOR else None
        if call is not None and values is not None:
            for why in give_values(call, values):
                part.omissions[kind].add(why)
        one = Record(kind, thread, start_us, end_us, call, _external(args), word=collective, values=values)
        part.records[kind].append(one)


def _drop_ended(begun: list[list[TraceEvent]]) -> None:
    """Forget the last events that have begun as long as they have ended."""
    while begun and not begun[-1]:
        begun.pop()


def _decoded(text: str) -> Sequence[TraceEvent]:
    """The events of a list; none if one of them is no event, or not what the faster decoder accepts."""
    tasks = "Task Type" in text or "\\u" in text  # an argument by which events of the host are used, however written
    try:
        return (_whole_events if tasks else _brief_events).decode(text)
    except (msgspec.DecodeError, RecursionError):
        return ()


def _event_of(value: Any) -> TraceEvent:
    """The event of an object; one without anything of another value."""
    return TraceEvent(
        **{key: value[key] for key in TraceEvent.__struct_fields__ if key in value} if isinstance(value, dict) else {}
    )


def _arguments_of(event: TraceEvent) -> dict[str, Any]:
    """The arguments of an event; none if they are no object."""
    found = event.args
    if type(found) is msgspec.Raw:
        try:
            found = _arguments.decode(found)
        except msgspec.DecodeError:  # a number that is no float
            found = _lenient.decode(bytes(found).decode())
    return found if isinstance(found, dict) else {}


@lru_cache(1024)
def _category_of(word: str) -> tuple[str, bool]:
    """A category in lower case, and whether its events are not of a device; a trace has few."""
    return word.lower(), is_host(word.lower())


_NEXT_EVENT = re.compile(
    r"\}(?=\s*,\s*\{\s*\"(?:ph|name|cat|pid|tid|ts|dur|id|args)\"\s*:)|\}(?=\s*\]\s*(?:,\s*\"[A-Za-z_ ]+\"\s*:|\}\s*\Z))"
)
"""The end of an event: a further event follows, or the end of the list."""


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
        if not found or 0 < events.count == events.irregular[NAMELESS]:
            raise refusal(
                path,
                "is JSON, but no trace that opticcl reads: there are no traceEvents; docs/traces.md lists the forms",
            )
        stream.finish()
    return events


def _name(value: object) -> object:
    """Id of a thread or a process; None if it is none."""
    return value if isinstance(value, (int, str)) else None


def _number_of(args: dict[str, Any], key: str) -> int:
    """A number from 0, such as an id that a process which runs for days counts up; -1 if it is not recorded."""
    return count_of(args.get(key), -1, 63)


def _external(args: dict[str, Any]) -> object:
    """Id shared by a kernel and the call that issued it, or None."""
    found = args.get("External id")
    return found if isinstance(found, (int, str)) else None
