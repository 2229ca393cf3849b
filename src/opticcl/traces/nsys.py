"""Reader of Nsight Systems reports of one rank, exported as SQLite (`nsys export --type sqlite report.nsys-rep`).

::

    CUPTI_ACTIVITY_KIND_KERNEL            kernels: start, end [ns], stream, correlation id, name
    CUPTI_ACTIVITY_KIND_RUNTIME           what the host called: launches, cudaStreamWaitEvent
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION   waits of streams for events
    CUPTI_ACTIVITY_KIND_CUDA_EVENT        records of events
    NVTX_EVENTS                           ranges: ncclAllReduce with its message size (NCCL 2.19 and later), steps
    StringIds                             texts

NCCL records the bytes of one rank: of an all_gather and a reduce_scatter the share. Ranges called ProfilerStep#1, step 1 or
iteration 1 divide the report into steps. The file is opened for reading alone.

Source: NVIDIA, Nsight Systems, SQLite schema reference; NVIDIA/nccl, collectives.cc.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from bisect import bisect_left
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from opticcl.reading import DamageError, check_file, check_size, printable, refusal
from opticcl.traces._kineto_events import KERNEL, NCCL, Events, Record, StreamWait
from opticcl.traces.c10d import collective_of
from opticcl.traces.kineto import trace_of
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTrace
from opticcl.traces.sidecar import rank_in_name

__all__ = ["NsysReader"]

MAX_STEPS = 10_000
_WAIT_EVENT = 3  # syncType of CUpti_ActivitySynchronizationType
_STEP = re.compile(r"(?:ProfilerStep|step|iteration|iter)[ _#:]*[0-9]+", re.IGNORECASE)


def _is_sqlite(head: bytes) -> int:
    return 2 * head.startswith(b"SQLite format 3\0")


@register_trace("nsys", (".sqlite", ".sqlite3"), _is_sqlite)
class NsysReader(TraceReader):
    """Reads an Nsight Systems report exported as SQLite."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls and tasks of one rank, as the base class describes."""
        check_file(path)
        with open(path, "rb") as file:
            if not _is_sqlite(file.read(16)):
                raise refusal(path, "is not an SQLite file; if it is packed, unpack it first")
        try:
            uri = f"file:{quote(os.fsencode(path.resolve()))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")
                events = _Report(path, connection).events()
        except sqlite3.Error as error:
            raise refusal(path, f"cannot be read as SQLite: {error}") from None
        except DamageError as error:
            raise refusal(path, f"row {error.at:,}: {error.what}") from None
        return trace_of(path, events, f"Nsight Systems report {printable(path.name)}", tasks=tasks)


class _Report:
    """The tables of a report as events."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(row[0]) for row in names}
        if "StringIds" not in self._tables:
            raise refusal(path, "is an SQLite file, but no export of Nsight Systems: it has no table StringIds")

    def events(self) -> Events:
        """All events of one device.

        Raises: WorkloadError: kernels of several devices, or no kernels. DamageError: a size out of range.
        """
        events = Events()
        events.rank = rank_in_name(self._path.name)
        self._add_kernels(events)
        self._add_runtime(events)
        self._add_waits(events)
        self._add_ranges(events)
        return events

    def _rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of a table; None for those that it has not, nothing if there is no such table."""
        if table not in self._tables:
            return []
        known = {str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}
        chosen = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
        return self._connection.execute(f"SELECT {chosen} FROM {table}").fetchall()

    def _texts(self) -> dict[int, str]:
        return {row[0]: str(row[1]) for row in self._rows("StringIds", "id", "value")}

    def _add_kernels(self, events: Events) -> None:
        rows = self._rows(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            "start",
            "end",
            "streamId",
            "correlationId",
            "shortName",
            "demangledName",
            "deviceId",
        )
        if not rows:
            raise refusal(self._path, "has no kernels; record the report with nsys profile --trace=cuda,nvtx")
        devices = Counter(row[6] for row in rows)
        if len(devices) > 1:
            raise refusal(
                self._path,
                f"has kernels of {len(devices):,} devices; record one report for each rank, such as "
                "nsys profile -o rank%q{RANK} python train.py",
            )
        texts = self._texts()
        for start, end, stream, correlation, short, long, _ in rows:
            events.count += 1
            name = texts.get(short) or texts.get(long) or str(short or long or "")
            if not _are_whole(start, end) or end < start:
                events.irregular["kernels without a time"] += 1
            elif name.lower().startswith(("nccl", "rccl", "mscclkernel")):
                ids = stream if _are_whole(stream) else -1, correlation if _are_whole(correlation) else -1
                events.records[KERNEL].append(Record(KERNEL, ids[0], start * 1e-3, end * 1e-3, None, None, ids[1]))
            else:
                stream, correlation = (value if _are_whole(value) else -1 for value in (stream, correlation))
                events.add_kernel(start * 1e-3, (end - start) * 1e-3, stream, correlation)

    def _add_runtime(self, events: Events) -> None:
        texts = self._texts()
        for start, thread, correlation, name in self._rows(
            "CUPTI_ACTIVITY_KIND_RUNTIME", "start", "globalTid", "correlationId", "nameId"
        ):
            events.count += 1
            word = re.sub(r"_v[0-9]+$", "", texts.get(name, ""))
            if not _are_whole(start, correlation):
                continue
            if "aunch" in word:
                events.add_launch(correlation, thread, start * 1e-3)
            elif word.endswith("StreamWaitEvent") and "CUPTI_ACTIVITY_KIND_CUDA_EVENT" not in self._tables:
                events.waits.append(StreamWait(events.thread_index(thread), start * 1e-3, correlation))

    def _add_waits(self, events: Events) -> None:
        """Waits of streams with the last record of their event."""
        recorded: dict[int, list[tuple[int, int]]] = {}
        for event, stream, correlation in self._rows(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "eventId", "streamId", "correlationId"
        ):
            if _are_whole(event, stream, correlation):
                recorded.setdefault(event, []).append((correlation, stream))
        for rows in recorded.values():
            rows.sort()
        for kind, event, stream, correlation in self._rows(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "syncType", "eventId", "streamId", "correlationId"
        ):
            if kind == _WAIT_EVENT and _are_whole(event, stream, correlation) and event in recorded:
                at = bisect_left(recorded[event], (correlation, -1)) - 1
                if at >= 0:
                    number, of = recorded[event][at]
                    events.waits.append(StreamWait(-1, -1.0, correlation, stream, of, number))

    def _add_ranges(self, events: Events) -> None:
        texts = self._texts()
        sizes: set[int] = set()
        for row, (start, end, text, text_id, thread, payload) in enumerate(
            self._rows("NVTX_EVENTS", "start", "end", "text", "textId", "globalTid", "jsonText")
        ):
            events.count += 1
            name = text if isinstance(text, str) else texts.get(text_id, "")
            if not _are_whole(start, end):
                continue
            if _STEP.fullmatch(name) and len(events.steps) < MAX_STEPS:
                events.steps[printable(name)] = start * 1e-3, end * 1e-3
            elif name.lower().startswith(("nccl", "rccl")):
                values = _payload(payload)
                if name.startswith("ncclCommInitRank") and _are_whole(values.get("No. of ranks")):
                    sizes.add(values["No. of ranks"])
                if call := _call(row, name, values, events):
                    thread_index = events.thread_index(thread)
                    word = collective_of(name[4:].lstrip(":"))
                    events.records[NCCL].append(
                        Record(NCCL, thread_index, start * 1e-3, end * 1e-3, call, None, -1, word)
                    )
        if len(sizes) == 1:
            events.world_size = sizes.pop()


def _are_whole(*values: Any) -> bool:
    return all(isinstance(value, int) and value >= 0 for value in values)


def _payload(text: Any) -> dict[str, Any]:
    """The values of a range, as JSON."""
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _call(row: int, name: str, values: dict[str, Any], events: Events) -> RankCall | None:
    """The call of a range of NCCL; None, and counted, if it has no size."""
    collective = collective_of(name[4:].lstrip(":"))
    if not collective:
        return None
    size = next((values[key] for key in ("Message size [bytes]", "Bytes") if _are_whole(values.get(key))), None)
    if size is None:
        events.omissions[NCCL].add(f"{printable(name[:40])} without a message size, which NCCL records since 2.19")
        return None
    call = RankCall(printable(name[:80]), collective, check_size(size, row, f"{name[:40]} of this range"))
    if collective in ("all_gather", "gather", "reduce_scatter"):
        call.counts = "share"
    if call.is_transfer:
        peer = values["Peer rank"] if _are_whole(values.get("Peer rank")) else -1
        call.ranks = (events.rank, peer) if collective == "send" else (peer, events.rank)
    return call
