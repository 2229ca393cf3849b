"""Reader of logs of the NCCL Inspector, a plugin of NCCL that runs beside a job: one JSON object in a line, of one process.

::

    {"header": {"id", "rank", "n_ranks"}, "metadata": {"hostname", "pid", ...}, "coll_perf": {"coll", "coll_sn",
     "coll_msg_size_bytes", "coll_exec_time_us"}}
    {"header": ..., "p2p_perf": {"p2p", "p2p_sn", "p2p_peer", "p2p_msg_size_bytes", "p2p_exec_time_us"}}
    {"header": ..., "dump_stats": {...}}

A line without a header is of the communicator of the last `dump_stats`. Ranks and peers count within the communicator. NCCL
numbers the calls of each function of a communicator, by which those of several ranks are matched; transfers have one number for
both kinds, and are matched in their order. A gap in the numbers is a call that was not logged, as those below 8 kB are by
default. The log has no computation, and the records of a communicator are together: the order between communicators is not
recorded. A log of several processes has a rank for each. A last line without its end, of a log that was cut or is being
written, is left out.

Source: NVIDIA/nccl, plugins/profiler/inspector, formats v4.0 to v4.3; src/plugin/profiler.cc for the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from opticcl.reading import DamageError, check_size, lines, printable, reading, refusal, title
from opticcl.traces.c10d import collective_of, count_of, is_whole
from opticcl.traces.communicators import nccl_call, number_in_largest, sequence_of
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import GroupEnds, GroupPlace, RankCall, RankTrace
from opticcl.units import counted

__all__ = ["NcclInspectorReader"]

_KINDS = {"coll_perf": "coll", "p2p_perf": "p2p"}
_DROPPED = ("dropped_total", "coll_dropped_total", "p2p_dropped_total")  # others are of parts of calls
MAX_TIME_US = 10**13  # 115 days
CUT = "line without its end, the last of a log that was cut or is being written"
NOT_LOGGED = "calls that are not in the log, by gaps in their numbers"


def _is_inspector(head: bytes) -> int:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return 3 * (text.startswith(b"{") and re.search(rb'"(coll_perf|p2p_perf|dump_stats)"\s*:', text) is not None)


@register_trace("nccl_inspector", (".log",), _is_inspector)
class NcclInspectorReader(TraceReader):
    """Reads a log of the NCCL Inspector."""

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The calls of each process, as the base class describes.

        Raises: WorkloadError: also two ranks of a process, or ranks of several processes that are not recorded.
        """
        processes: dict[tuple[str, str], _Process] = {}
        with reading(path, "log of the NCCL Inspector", "line") as file:
            for number, about, record in _records(lines(file)):
                if record is None:
                    next(reversed(processes.values())).omissions.add(CUT, missing=True)
                    continue
                metadata = record.get("metadata", about.get("metadata", record))
                metadata = metadata if isinstance(metadata, dict) else {}
                key = str(metadata.get("hostname", "")), str(metadata.get("pid", ""))
                _add(processes.setdefault(key, _Process()), number, record, about)
        traces = [_trace(path, process) for process in processes.values()]
        if len(traces) > 1 and (lost := [key for key, one in zip(processes, traces, strict=True) if one.rank < 0]):
            host, pid = lost[0]
            raise refusal(path, f"no rank of process {pid} on {host} in the job is recorded; give a log for each rank")
        return sorted(traces, key=lambda one: one.rank)


@dataclass(slots=True)
class _Process:
    """What a process recorded.

    Args:
        calls: with their numbers among those of one function of the communicator, or among its transfers.
        places: of its rank.
        omissions: calls that are left out.
        dropped: records that the Inspector left out, by communicator and counter [count].
    """

    calls: list[tuple[int, RankCall]] = field(default_factory=list)
    places: dict[str, GroupPlace | None] = field(default_factory=dict)
    omissions: Omissions = field(default_factory=Omissions)
    dropped: dict[tuple[str, str], int] = field(default_factory=dict)


def _records(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """Line, the last record of a dump's start, and the record of each line; None if it is the last one and has no end.

    Raises: DamageError: a line that is no JSON object.
    """
    about: dict[str, Any] = {}
    is_first = True
    for number, line in numbered:
        try:
            record = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            record = None
        if record is None and not is_first and line.startswith("{") and next(numbered, None) is None:
            yield number, about, None
            return
        if not isinstance(record, dict):
            raise DamageError(number, f"{line[:60]!r} is not a JSON object")
        is_first, about = False, record if "dump_stats" in record else about
        yield number, about, record


def _add(process: _Process, number: int, record: dict[str, Any], about: Mapping[str, Any]) -> None:
    """Add the record of a line.

    Raises: DamageError: no communicator, two ranks of one in a process, or a size of no message.
    """
    header = record.get("header", record if "id" in record else about.get("header"))
    if not isinstance(header, dict) or not isinstance(header.get("id"), (str, int)):
        raise DamageError(number, "the record has no header with the id of a communicator")
    group = printable(f"communicator {header['id']}"[:80])
    rank, size = count_of(header.get("rank"), -1), count_of(header.get("n_ranks"), 0)
    place = GroupPlace(rank, size) if rank >= 0 and (not size or rank < size) else None
    if (known := process.places.setdefault(group, place)) != place:
        shown = " and ".join(str(one.number) for one in (known, place) if one)
        raise DamageError(number, f"one process is rank {shown} of {group}; give a log for each rank")
    stats = record.get("dump_stats")
    for key, value in stats.items() if isinstance(stats, dict) else ():
        if key in _DROPPED and is_whole(value):
            process.dropped[group, key] = max(value, process.dropped.get((group, key), 0))
    for kind, prefix in _KINDS.items():
        if isinstance(values := record.get(kind), dict):
            _add_call(process, number, values, prefix, group, place)


def _add_call(
    process: _Process, line: int, values: Mapping[str, Any], prefix: str, group: str, place: GroupPlace | None
) -> None:
    """Add a call; one of an unknown kind or without a size is counted."""
    name, size = str(values.get(prefix)), values.get(f"{prefix}_msg_size_bytes")
    collective = collective_of(name)
    if not collective or not isinstance(size, int):
        why = "without a size" if collective else "which is not a known collective"
        process.omissions.add(f"{printable(name[:40])}, {why}", missing=True)
        return
    call = nccl_call(name, collective, check_size(size, line, "the message"), group)
    number = count_of(values.get(f"{prefix}_sn"), -1)
    took_us = values.get(f"{prefix}_exec_time_us")
    if isinstance(took_us, (int, float)) and 0 < took_us < MAX_TIME_US:
        call.measured_s = took_us / 1e6
    if call.is_transfer:
        own, peer = place.number if place else -1, count_of(values.get("p2p_peer"), -1)
        call.ends = GroupEnds(own, peer) if collective == "send" else GroupEnds(peer, own)
    else:
        call.sequence, call.group_size = sequence_of(number, collective), place.size if place else 0
    process.calls.append((number, call))


def _in_order(process: _Process) -> Iterator[RankCall]:
    """The calls, one communicator after the other, as in the log; those of one counter by their numbers. Counts their gaps."""
    order = {group: i for i, group in enumerate(process.places)}
    logged = sorted(process.calls, key=lambda one: order[one[1].group])
    counters: dict[tuple[str, str], list[tuple[int, RankCall]]] = {}
    keys = [(call.group, "" if call.is_transfer else call.collective) for _, call in logged]
    for key, one in zip(keys, logged, strict=True):
        counters.setdefault(key, []).append(one)
    gaps = 0
    for counted_calls in counters.values():
        counted_calls.sort(key=lambda one: one[0], reverse=True)
        numbers = {number for number, _ in counted_calls if number >= 0}
        gaps += max(numbers, default=-1) - min(numbers, default=0) + 1 - len(numbers)
    if (lost := gaps - sum(process.dropped.values())) > 0:
        process.omissions.add(
            f"{NOT_LOGGED}; NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=0 logs small ones", calls=lost, missing=True
        )
    return (counters[key].pop()[1] for key in keys)


def _trace(path: Path, process: _Process) -> RankTrace:
    """The calls of a process."""
    calls = list(_in_order(process))
    after = ["order: the calls of one communicator after the other, since the log does not record it otherwise"]
    if dropped := sum(process.dropped.values()):
        process.omissions.add(
            "records that the Inspector dropped before they were written", calls=dropped, missing=True
        )
    trace = RankTrace(
        title(path),
        f"log of the NCCL Inspector {printable(path.name)}",
        printable(path.name),
        calls,
        rank=number_in_largest(process.places),
        omissions=process.omissions,
        before=[f"communicators: {counted(len(process.places), 'communicator')}"],
        after=after if len(process.places) > 1 else [],
    )
    trace.places = process.places
    return trace
