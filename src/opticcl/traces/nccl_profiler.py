"""Reader of traces of NCCL's example profiler plugin, of one rank: a JSON array of events that begin and end.

::

    {"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 7, "ts": 11.0,
     "args": {"SeqNum": 0, "CommHash": 99, "Rank": 0, "Count": 1048576, "Datatype": "ncclFloat32"}}
    {"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "pid": 7, "ts": 61.0}
    {"name": "Send", "cat": "P2P", "ph": "b", ..., "args": {"CommHash", "Rank", "Peer", "Count", "Datatype"}}
    {"name": "AllGather", "cat": "CE_COLL", "ph": "b", ..., "args": {"count", "datatype"}}

Rank and Peer count within the communicator, whose size is not recorded. The rank in the job is the largest number that the rank
has in a communicator. Groups, kernels, proxies and steps of the network are parts of calls, and not counted. Of a collective by
copy engines (CE_COLL) no communicator is recorded. NCCL 2.28 writes some values of other events without quotes: an event that
is no JSON is left out.

Source: NVIDIA/nccl, plugins/profiler/example, print_event.cc.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError, check_size, printable, reading, title
from opticcl.traces.c10d import collective_of, count_of, width_of
from opticcl.traces.communicators import nccl_call, sequence_of
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import GroupEnds, GroupPlace, RankCall, RankTrace
from opticcl.traces.sidecar import rank_in_name
from opticcl.units import counted

__all__ = ["NcclProfilerReader"]

_CALLS = ("COLL", "P2P", "CE_COLL")
_NEXT_EVENT = re.compile(r"\}(?=\s*,\s*\{[\"}]|\s*\]\s*\Z)")
"""The end of an event: a further event follows, or the end of the list."""
MAX_TIME_US = 1e18


def _is_profiler(head: bytes) -> int:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    pattern = rb'"cat"\s*:\s*"(GROUP|(CE_)?COLL|P2P|PROXY|NET)(_API)?"'
    return 3 * (text.startswith(b"[") and re.search(pattern, text) is not None)


@register_trace("nccl_profiler", (), _is_profiler)
class NcclProfilerReader(TraceReader):
    """Reads a trace of NCCL's example profiler plugin."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls of one rank, in the order in which they begin, as the base class describes."""
        recorded, damaged = _Calls(), 0
        with reading(path, "trace of NCCL's profiler plugin", "character") as file:
            stream = JsonStream(file)
            for at in stream.elements():
                try:
                    event = stream.value()
                except DamageError:
                    if not stream.resume(_NEXT_EVENT):
                        raise
                    damaged += 1
                    continue
                if isinstance(event, dict):
                    recorded.add(event, at)
            stream.finish()
        numbers = [place.number for place in recorded.places.values() if place is not None]
        named = rank_in_name(path.name)
        trace = RankTrace(
            title(path),
            f"trace of NCCL's profiler plugin {printable(path.name)}",
            printable(path.name),
            recorded.calls,
            rank=named if named >= 0 else max(numbers, default=-1),
            omissions=recorded.omissions,
            before=[f"events: {sum(recorded.events.values()):,}"],
        )
        trace.places = recorded.places
        if parts := sum(number for kind, number in recorded.events.items() if kind not in _CALLS):
            trace.after.append(
                f"parts of calls, not counted: {parts:,} events of groups, kernels, proxies and the network"
            )
        if damaged:
            trace.after.append(f"left out: {counted(damaged, 'event')} that are no JSON")
        if named < 0 and len(set(numbers)) > 1:
            trace.after.append("rank: taken to be the largest of its numbers in communicators")
        return trace


class _Calls:
    """Calls of a rank, its places, events by category, and what was left out."""

    def __init__(self) -> None:
        self.calls: list[RankCall] = []
        self.places: dict[str, GroupPlace | None] = {}
        self.events: Counter[str] = Counter()
        self.omissions = Omissions()
        self._open: dict[tuple[Any, Any, Any], tuple[RankCall, float]] = {}

    def add(self, event: dict[str, Any], at: int) -> None:
        """Add an event.

        Raises: DamageError: two ranks of one communicator, or a size of no message.
        """
        kind = str(event.get("cat", ""))
        if kind:
            self.events[kind] += 1
        if kind not in _CALLS:
            return
        key = kind, str(event.get("id")), str(event.get("pid"))
        when = event.get("ts")
        ts_us = float(when) if isinstance(when, (int, float)) and 0 < when < MAX_TIME_US else 0.0
        if event.get("ph") == "b":
            args = event.get("args")
            if call := self._call(str(event.get("name")), args if isinstance(args, dict) else {}, at):
                self.calls.append(call)
                self._open[key] = call, ts_us
        elif event.get("ph") == "e" and key in self._open:
            call, begun_us = self._open.pop(key)
            if 0 < begun_us <= ts_us:
                call.start_s, call.end_s, call.measured_s = begun_us / 1e6, ts_us / 1e6, (ts_us - begun_us) / 1e6

    def _call(self, name: str, args: dict[str, Any], at: int) -> RankCall | None:
        """The call of an event; None, and counted, if it is of an unknown kind or has no size."""
        collective = collective_of(name)
        type_ = str(args.get("Datatype", args.get("datatype"))).lower().removeprefix("nccl")
        width, count = 1 if type_.startswith("float8") else width_of(type_), args.get("Count", args.get("count"))
        if not collective or not width or not isinstance(count, int):
            why = "without elements of a known type" if collective else "which is not a known collective"
            self.omissions.add(f"{printable(name[:40])}, {why}", missing=True)
            return None
        group = f"communicator {args['CommHash']}" if isinstance(args.get("CommHash"), (int, str)) else ""
        call = nccl_call(name, collective, check_size(count * width, at, f"{name[:40]} of this event"), group)
        if not call.is_transfer:
            call.sequence = sequence_of(count_of(args.get("SeqNum"), -1), collective)
        number = count_of(args.get("Rank"), -1)
        if call.group:
            place = GroupPlace(number, 0) if number >= 0 else None
            if (known := self.places.setdefault(call.group, place)) != place:
                shown = " and ".join(str(one.number) for one in (known, place) if one)
                raise DamageError(at, f"the file has rank {shown} of {call.group}; give a file for each rank")
        if call.is_transfer:
            peer = count_of(args.get("Peer"), -1)
            call.ends = GroupEnds(number, peer) if collective == "send" else GroupEnds(peer, number)
        return call
