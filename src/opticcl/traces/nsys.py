"""Reader of Nsight Systems reports, exported by `nsys export --type sqlite --include-json true report.nsys-rep`.

::

    CUPTI_ACTIVITY_KIND_KERNEL            kernels: start, end [ns], stream, correlation id, name, process
    CUPTI_ACTIVITY_KIND_MEMCPY            copies, of which those between devices count as communication
    CUPTI_ACTIVITY_KIND_RUNTIME           what the host called: launches, cudaStreamWaitEvent
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION   waits of streams for events
    CUPTI_ACTIVITY_KIND_CUDA_EVENT        records of events
    NVTX_EVENTS                           ranges: ncclAllReduce with its message size (NCCL 2.19 and later), steps
    StringIds                             texts

A report is of one process or, recorded once for a node, of several, each with a device or with several: every device of a
process is a rank. A call is of the device on which its range launches, else of the only one on which its thread does, and in a
group of calls for several devices of the one that the others leave (_nsys_groups.py). NCCL
records the bytes of one rank: the whole of an all_reduce, a broadcast and a reduce, of the others the share of each rank. Its
later versions record the communicator of every call, and number, size and own rank when it is made (communicators.py); "Peer
rank" counts within the communicator. Ranges called ProfilerStep#1, step 1 or iteration 1 divide the report into steps. The file
is opened for reading alone.

Source: NVIDIA, Nsight Systems, SQLite schema reference; NVIDIA/nccl, collectives.cc and nvtx_payload_schemas.h.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from bisect import bisect_left
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from opticcl.files import temporary_folder
from opticcl.reading import DamageError, check_size, head_of, printable, reading, refusal
from opticcl.traces._kineto_events import KERNEL, NCCL, SIZED, Events, Record, StreamWait
from opticcl.traces._kineto_parts import IN_ORDER, OTHER_DEVICE, by_device
from opticcl.traces._nsys_groups import GroupRange, batch_of, groups_of, take_grouped
from opticcl.traces.c10d import collective_of, count_of
from opticcl.traces.communicators import nccl_call, number_in_largest
from opticcl.traces.files import copy_unpacked
from opticcl.traces.kernel_names import KernelSizes, is_launch, library_of
from opticcl.traces.kineto import trace_of
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import GroupEnds, GroupPlace, RankCall, RankTrace
from opticcl.traces.sidecar import rank_in_name
from opticcl.units import counted, format_seconds

__all__ = ["NsysReader"]

MAX_STEPS = 10_000
_WAIT_EVENT = 3  # syncType of CUpti_ActivitySynchronizationType
_BETWEEN_DEVICES = 10  # copyKind of CUpti_ActivityMemcpyKind
_STEP = re.compile(r"(?:ProfilerStep|step|iteration|iter)[ _#:]*[0-9]+", re.IGNORECASE)
_MAGIC = b"SQLite format 3\0"


def _is_sqlite(head: bytes) -> int:
    return 2 * head.startswith(_MAGIC)


@register_trace("nsys", (".sqlite", ".sqlite3"), _is_sqlite)
class NsysReader(TraceReader):
    """Reads an Nsight Systems report exported as SQLite."""

    has_kernels = True

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The calls and tasks of each process, as the base class describes."""
        sizes = KernelSizes.read(options.kernel_sizes) if options.kernel_sizes else None
        if head_of(path, len(_MAGIC)) != _MAGIC:
            raise refusal(path, "is not an SQLite file")
        with open(path, "rb") as raw:
            is_packed = raw.read(len(_MAGIC)) != _MAGIC
        with ExitStack() as stack:
            plain = path
            if is_packed:
                plain = stack.enter_context(temporary_folder()) / "report.sqlite"
                with reading(path, "report of Nsight Systems") as file:
                    copy_unpacked(path, file, plain)
            processes = self._processes(path, plain, sizes)
        found = []
        for process in processes:
            source = f"Nsight Systems report {printable(path.name)}"
            trace = trace_of(path, process.events, source, tasks=tasks)
            trace.places = process.places
            trace.after += sizes.notes() if sizes else ()
            found.append(trace)
        return found

    def _processes(self, path: Path, plain: Path, sizes: KernelSizes | None) -> list[_Process]:
        """The events of each process, of a file that is not packed."""
        try:
            uri = f"file:{quote(os.fsencode(plain.resolve()))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                connection.execute("PRAGMA trusted_schema = OFF")
                return _Report(path, connection, sizes).processes()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may have bytes of the file
            raise refusal(path, f"cannot be read as SQLite: {error}") from None
        except DamageError as error:
            raise refusal(path, f"row {error.at:,}: {error.what}") from None


@dataclass(slots=True)
class _Process:
    """What one process did on its devices, or on one of them.

    Args:
        label: for messages.
        events: of the host; once divided, of it and the device.
        devices: events of each of its devices, by number.
        made: communicators, with the device and the place in each of a rank that makes it.
        places: of its rank in communicators.
        sizes: of communicators without a name [count].
        packed: ranges of calls whose values are only in a packed form [count].
        groups: ranges in which groups of calls begin and end.
    """

    label: str
    events: Events = field(default_factory=Events)
    devices: dict[Any, Events] = field(default_factory=dict)
    made: list[tuple[str, int, GroupPlace | None]] = field(default_factory=list)
    places: dict[str, GroupPlace | None] = field(default_factory=dict)
    sizes: set[int] = field(default_factory=set)
    packed: int = 0
    groups: list[GroupRange] = field(default_factory=list)

    @property
    def calls(self) -> bool:
        """Whether it calls NCCL."""
        on_devices = any(one.records[KERNEL] or one.records[SIZED] for one in self.devices.values())
        return bool(self.packed or self.made or on_devices or self.events.records[NCCL])

    def on(self, device: Any) -> Events:
        """Events of a device."""
        return self.devices.setdefault(device, Events())

    def of(self, device: Any) -> Events:
        """Events of a device that has kernels, else of the host."""
        return self.devices.get(device, self.events)

    def divided(self) -> list[_Process]:
        """The process on each of its devices that has calls, by number; itself if that is one."""
        groups = groups_of(self.groups)
        self.events.count += sum(one.count for one in self.devices.values())
        self.events.batches = list(map(batch_of, groups))
        members = {device for _, device, _ in self.made}
        calling = {
            number: one
            for number, one in self.devices.items()
            if one.records[KERNEL] or one.records[SIZED] or number in members
        }
        if len(calling) < 2:
            for number, one in self.devices.items():
                if calling and number not in calling:
                    self.events.irregular[OTHER_DEVICE.format(number, format_seconds(one.busy_s))] += one.num_kernels
                else:
                    self.events.absorb(one)
            self.places.update({name: place for name, _, place in self.made})
            return [self]
        found = []
        grouped, unknown = take_grouped(groups, self.events, calling, self.made)
        for number, events in sorted(by_device(self.events, calling).items(), key=lambda one: str(one[0]).zfill(9)):
            events.count = self.events.count
            events.records[NCCL] += grouped.get(number, [])
            called = {row.call.group for row in events.records[NCCL] if row.call is not None and row.call.group}
            places: dict[str, GroupPlace | None] = dict.fromkeys(called & self.places.keys())
            places |= {name: place for name, device, place in self.made if device == number}
            label = f"device {number} of {self.label}"
            found.append(_Process(label, events, {number: events}, [], places, self.sizes, self.packed))
        for call in (row.call for row in unknown if row.call is not None):
            what = f"{call.name} in a group of calls for several devices, of which it is not known which is its own"
            found[0].events.omissions[NCCL].add(what, call.size_bytes, missing=True)
        return found


class _Report:
    """The tables of a report as events."""

    def __init__(self, path: Path, connection: sqlite3.Connection, sizes: KernelSizes | None) -> None:
        self._path, self._connection, self._sizes = path, connection, sizes
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(row[0]) for row in names}
        if "StringIds" not in self._tables:
            raise refusal(path, "is an SQLite file, but no export of Nsight Systems: it has no table StringIds")
        self._texts = {row[0]: str(row[1]) for row in self._rows("StringIds", "id", "value")}
        self._processes: dict[int, _Process] = {}

    def processes(self) -> list[_Process]:
        """The events of each device of processes that call NCCL, by rank.

        Raises: WorkloadError: no kernels, ranks that are not recorded, or values that the export left out. DamageError: a size
            out of range.
        """
        self._add_kernels()
        self._add_copies()
        self._add_runtime()
        self._add_waits()
        self._add_ranges()
        calling = {number: one for number, one in self._processes.items() if one.calls}
        found = [one for process in (calling or self._processes).values() for one in process.divided()]
        for one in found:
            self._finish(one)
        if len(found) == 1:
            named = rank_in_name(self._path.name)
            found[0].events.rank = named if named >= 0 else number_in_largest(found[0].places)
            return found
        ranks = [number_in_largest(one.places) for one in found]
        sizes = {place.size for one in found for place in one.places.values() if place is not None}
        sizes = sizes.union(*(one.sizes for one in found))
        if len(calling) < 2 and max(ranks) < 0 and max(sizes, default=len(found)) == len(found):
            ranks = list(range(len(found)))
            for one in found:
                one.events.irregular[IN_ORDER.format("devices")] += len(found)
        if min(ranks) < 0 or len(set(ranks)) < len(ranks):
            wrong = next(i for i, rank in enumerate(ranks) if rank < 0 or ranks.index(rank) < i)
            raise refusal(
                self._path,
                f"has calls of {len(found):,} ranks ({', '.join(one.label for one in found[:4])}), and no communicator records "
                f"the number of {found[wrong].label}; record from the start, or one report for each rank",
            )
        for rank, one in zip(ranks, found, strict=True):
            one.events.rank = rank
        return sorted(found, key=lambda one: one.events.rank)

    def _finish(self, process: _Process) -> None:
        """Give calls what their communicators record, once all are read.

        Raises: WorkloadError: the values of calls are only in a packed form.
        """
        calls = [row.call for row in process.events.records[NCCL] if row.call is not None]
        if process.packed and not calls:
            raise refusal(
                self._path,
                f"the values of {counted(process.packed, 'call')} of NCCL are only in a packed form (binaryData); export "
                "again with nsys export --type sqlite --include-json true",
            )
        if not process.places and len(process.sizes) == 1:
            process.events.world_size = next(iter(process.sizes))
        if process.packed:
            process.events.irregular["calls whose values are only in a packed form, left out"] += process.packed
        for call in calls:
            place = process.places.get(call.group)
            if place is not None:
                call.group_size = 0 if call.is_transfer else place.size
                if call.ends is not None:
                    sender, receiver, _ = call.ends
                    own = place.number
                    call.ends = GroupEnds(sender, own) if call.collective == "recv" else GroupEnds(own, receiver)

    def _rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of a table; None for those that it has not, nothing if there is no such table."""
        if table not in self._tables:
            return []
        known = {str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}
        chosen = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
        return self._connection.execute(f"SELECT {chosen} FROM {table}").fetchall()

    def _process_of(self, id: Any) -> _Process | None:
        """The process of a global id, if it has kernels; where kernels have none, there is one process."""
        return self._processes.get(_number_of_process(id)) or self._processes.get(-1)

    def _add_kernels(self) -> None:
        rows = self._rows(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            "start",
            "end",
            "streamId",
            "correlationId",
            "shortName",
            "demangledName",
            "deviceId",
            "globalPid",
        )
        if not rows:
            raise refusal(self._path, "has no kernels; record the report with nsys profile --trace=cuda,nvtx")
        for start, end, stream, correlation, short, long, device, pid in rows:
            number = _number_of_process(pid)
            process = self._processes.setdefault(
                number, _Process(f"process {number:,}" if number >= 0 else "the process")
            )
            events = process.on(device)
            events.count += 1
            name = self._texts.get(short) or self._texts.get(long) or str(short or long or "")
            if not _are_whole(start, end) or end < start:
                events.irregular["kernels without a time"] += 1
                continue
            stream, correlation = count_of(stream, -1), correlation if _are_whole(correlation) else -1
            library = library_of(name)
            one = Record(KERNEL, stream, start * 1e-3, end * 1e-3, None, None, correlation, name=name)
            if library is None:
                events.add_kernel(start * 1e-3, (end - start) * 1e-3, stream, correlation)
            elif library.recorded:
                events.records[KERNEL].append(one)
            else:
                self._add_unsized(events, one, f"kernels of {library.name}", 0)

    def _add_copies(self) -> None:
        """Copies from one device to another, which communicate."""
        columns = "start", "end", "streamId", "correlationId", "copyKind", "bytes", "globalPid", "deviceId"
        for start, end, stream, correlation, kind, size, pid, device in self._rows(
            "CUPTI_ACTIVITY_KIND_MEMCPY", *columns
        ):
            process = self._process_of(pid)
            if process is not None and kind == _BETWEEN_DEVICES and _are_whole(start, end) and end >= start:
                events = process.of(device)
                events.count += 1
                stream, correlation = (value if _are_whole(value) else -1 for value in (stream, correlation))
                one = Record(KERNEL, stream, start * 1e-3, end * 1e-3, None, None, correlation, name="Memcpy PtoP")
                self._add_unsized(events, one, "copies between devices", size if _are_whole(size) else 0)

    def _add_unsized(self, events: Events, one: Record, what: str, size_bytes: int) -> None:
        """A kernel or a copy that communicates and has no record: a call, if its size is listed."""
        call = self._sizes.call_of(one.name) if self._sizes is not None else None
        if call is not None:
            events.records[SIZED].append(one._replace(kind=SIZED, call=call, word=call.collective))
        else:
            events.unsized.append(one._replace(kind=what, copied_bytes=size_bytes))

    def _add_runtime(self) -> None:
        for start, thread, correlation, name in self._rows(
            "CUPTI_ACTIVITY_KIND_RUNTIME", "start", "globalTid", "correlationId", "nameId"
        ):
            process = self._process_of(thread)
            if process is None:
                continue
            process.events.count += 1
            word = re.sub(r"_v[0-9]+$", "", self._texts.get(name, ""))
            if not _are_whole(start, correlation):
                continue
            if is_launch(word):
                process.events.add_launch(correlation, thread, start * 1e-3, graph="GraphLaunch" in word)
            elif word.endswith("StreamWaitEvent") and "CUPTI_ACTIVITY_KIND_CUDA_EVENT" not in self._tables:
                index = process.events.thread_index(thread)
                process.events.waits.append(StreamWait(index, start * 1e-3))

    def _add_waits(self) -> None:
        """Waits of streams with the last record of their event."""
        recorded: dict[tuple[int, int], list[tuple[int, int]]] = {}
        columns = "syncType", "eventId", "streamId", "correlationId", "globalPid", "deviceId"
        for event, stream, correlation, pid in self._rows(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "eventId", "streamId", "correlationId", "globalPid"
        ):
            if _are_whole(event, stream, correlation):
                recorded.setdefault((_number_of_process(pid), event), []).append((correlation, stream))
        for rows in recorded.values():
            rows.sort()
        for kind, event, stream, correlation, pid, device in self._rows(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", *columns
        ):
            process, key = self._process_of(pid), (_number_of_process(pid), event)
            if process and kind == _WAIT_EVENT and _are_whole(event, stream, correlation) and key in recorded:
                at = bisect_left(recorded[key], (correlation, -1)) - 1
                if at >= 0:
                    number, of = recorded[key][at]
                    process.of(device).waits.append(
                        StreamWait(correlation=correlation, stream=stream, waits_for=of, recorded_at=number)
                    )

    def _add_ranges(self) -> None:
        columns = ("start", "end", "text", "textId", "globalTid", "jsonText", "jsonTextId", "binaryData")
        for row, (start, end, text, text_id, thread, payload, payload_id, packed) in enumerate(
            self._rows("NVTX_EVENTS", *columns)
        ):
            process = self._process_of(thread)
            if process is None:
                continue
            events = process.events
            events.count += 1
            name = text if isinstance(text, str) else self._texts.get(text_id, "")
            if not _are_whole(start, end):
                continue
            if _STEP.fullmatch(name) and len(events.steps) < MAX_STEPS:
                events.steps[printable(name)] = start * 1e-3, end * 1e-3
            elif name in ("ncclGroupStart", "ncclGroupEnd"):
                index = events.thread_index(thread)
                process.groups.append(GroupRange(index, start * 1e-3, end * 1e-3, name == "ncclGroupEnd"))
            elif name.lower().startswith(("nccl", "rccl")):
                values = _payload(payload if isinstance(payload, str) else self._texts.get(payload_id))
                size, number = _whole(values, "No. of ranks"), _whole(values, "Rank")
                group = _communicator(values)
                if size > 0:
                    process.sizes.add(size)
                    if group:
                        place = GroupPlace(number, size) if 0 <= number < size else None
                        process.made.append((group, _whole(values, "CUDA device"), place))
                    continue
                if packed is not None and not values and collective_of(name[4:].lstrip(":")):
                    process.packed += 1
                elif call := _call(row, name, values, events):
                    if group:
                        process.places.setdefault(group, None)
                    word = collective_of(name[4:].lstrip(":"))
                    index = events.thread_index(thread)
                    events.records[NCCL].append(Record(NCCL, index, start * 1e-3, end * 1e-3, call, None, -1, word))


def _number_of_process(id: Any) -> int:
    """The process in a global id of a process or a thread; -1 if it is not recorded."""
    return id >> 24 if _are_whole(id) else -1


def _are_whole(*values: Any) -> bool:
    return all(isinstance(value, int) and value >= 0 for value in values)


def _payload(text: Any) -> dict[str, Any]:
    """The values of a range, as JSON."""
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _whole(values: dict[str, Any], *names: str) -> int:
    """The first of some values that is a whole number, which may be a text; -1 if none is."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value, re.ASCII):
            value = int(value)
        if isinstance(value, int) and value >= 0:
            return int(value)
    return -1


def _communicator(values: dict[str, Any]) -> str:
    """Name of the communicator of a range; empty if it is not recorded."""
    value = values.get("NCCL communicator ID")
    return printable(f"communicator {value}"[:80]) if isinstance(value, (int, str)) and value != "" else ""


def _call(row: int, name: str, values: dict[str, Any], events: Events) -> RankCall | None:
    """The call of a range of NCCL; None, and counted, if it has no size or is of an unknown kind."""
    collective = collective_of(name[4:].lstrip(":"))
    size = _whole(values, "Message size [bytes]", "Bytes")
    if not collective:
        if size > 0:
            events.omissions[NCCL].add(f"{printable(name[:40])}, which is not a known collective", size, missing=True)
        return None
    if size < 0:
        why = f"{printable(name[:40])} without a message size, which NCCL records since 2.19"
        events.omissions[NCCL].add(why, missing=True)
        return None
    size = check_size(size, row, f"{name[:40]} of this range")
    call = nccl_call(name, collective, size, _communicator(values))
    if call.is_transfer:
        peer = _whole(values, "Peer rank")
        call.ends = GroupEnds(-1, peer) if collective == "send" else GroupEnds(peer, -1)
    return call
