"""Reader of dumps of PyTorch's NCCL flight recorder, of one rank: as JSON, or as the pickle that PyTorch writes.

::

    {"version": "2.5", "pg_config": {"0": {"name", "desc", "ranks": "[0, 1]"}}, "entries": [{"profiling_name":
     "nccl:all_reduce", "process_group": ["0", "default_pg"], "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
     "output_sizes", "output_dtypes", "time_discovered_started_ns", "time_discovered_completed_ns", "duration_ms",
     "state", "is_p2p", ...}, ...]}

A pickle can execute code when it is loaded. So its opcodes are listed before: it is refused unless they make built-in
containers, texts and numbers alone, and no class or function.

Source: pytorch/pytorch, FlightRecorder; pytorch/tutorials, flight_recorder_tutorial.
"""

from __future__ import annotations

import pickle
import pickletools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opticcl.errors import WorkloadError
from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import (
    DamageError,
    check_size,
    content_of,
    head_of,
    printable,
    reading,
    refusal,
    title,
)
from opticcl.traces.c10d import add_splits, collective_of, count_of, ends_of, rank_list, ratio_of, tensors_of
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTrace
from opticcl.traces.sidecar import rank_in_name

__all__ = ["FlightRecorderReader"]

MAX_BYTES = 2**28
MAX_VALUES, MAX_DEPTH = 10_000_000, 20
WHAT = "dump of the NCCL flight recorder"
_USED: tuple[str, ...] = ("profiling_name", "process_group", "pg_id", "state", "duration_ms")
_USED += ("is_p2p", "collective_seq_id", "p2p_seq_id", "input_split_sizes", "output_split_sizes")
_USED += ("input_sizes", "input_dtypes", "output_sizes", "output_dtypes")
_USED += ("time_discovered_started_ns", "time_discovered_completed_ns")


def _is_dump(head: bytes) -> int:
    if head[:1] == b"\x80" and len(head) > 1 and 2 <= head[1] <= 5:
        return 2  # a pickle
    keys = rb'"(entries|pg_config|pg_status|nccl_comm_state|record_id|profiling_name)"\s*:'
    return 2 * (re.match(rb"(\xef\xbb\xbf)?\s*\{", head) is not None and re.search(keys, head) is not None)


@register_trace("flight_recorder", (".pkl", ".pickle"), _is_dump)
class FlightRecorderReader(TraceReader):
    """Reads a dump of one rank."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls in the buffer of the recorder, in order, as the base class describes."""
        dump = _unpickled(path) if head_of(path, 1) == b"\x80" else _parsed(path)
        entries = dump.get("entries") if isinstance(dump, dict) else None
        if isinstance(dump, dict) and "entries" not in dump and "pg_config" in dump:
            raise refusal(path, f"is a {WHAT} without an entry: nothing was recorded; Gloo records no transfers")
        if not isinstance(entries, list):
            raise refusal(path, f"is not a {WHAT}: it has no list of entries; {_shape_of(dump)}")
        groups = _groups(dump.get("pg_config"))
        calls: list[RankCall] = []
        omissions = Omissions()
        states = Counter[str]()
        rank = rank_in_name(path.name if "." in path.name else f"{path.name}.json")
        try:
            for number, entry in enumerate(entries):
                if call := _call(number, entry, groups, omissions):
                    calls.append(call)
                    states[str(entry.get("state"))] += 1
        except DamageError as error:
            raise refusal(path, f"entry {error.at:,}: {error.what}") from None
        after = [f"state of the calls: {', '.join(f'{n:,} {printable(state[:20])}' for state, n in states.items())}"]
        if "None" in states or not states:
            after = []
        if any(call.name.startswith("gloo:") for call in calls):
            after.append(
                "Gloo's recorder writes a reduce_scatter as an all_reduce, and neither transfers nor parts of all_to_alls"
            )
        return RankTrace(
            title(path),
            f"{WHAT} {printable(path.name)}, version {printable(str(dump.get('version'))[:20])}",
            printable(path.name),
            calls,
            rank=rank,
            groups={name: ranks for name, ranks in groups.items() if ranks},
            groups_source="pg_config",
            omissions=omissions,
            before=[f"entries: {len(entries):,}"],
            after=[*after, "no computation is recorded: the calls follow each other"],
        )


def _shape_of(value: Any) -> str:
    """What a value is, for a message."""
    if isinstance(value, dict):
        keys = ", ".join(printable(str(key)[:30]) for key in list(value)[:6])
        return f"its keys are {keys or 'none'}"
    return f"it is a {type(value).__name__}"


def _parsed(path: Path) -> Any:
    """The value of a JSON file, entry after entry; of an entry only what a call is made of, not its stack."""
    with reading(path, WHAT, "character") as file:
        stream = JsonStream(file)
        if stream.peek() != "{":
            return stream.value()
        dump: dict[str, Any] = {}
        for key in stream.members():
            if key == "entries" and stream.peek() == "[":
                entries = dump[key] = []
                for _ in stream.elements():
                    entry = stream.value()
                    if isinstance(entry, dict):
                        entry = {name: entry[name] for name in _USED if name in entry}
                    entries.append(entry)
                    if len(entries) > MAX_VALUES:
                        raise DamageError(stream.at, f"more than {MAX_VALUES:,} entries")
            else:
                dump[key] = stream.value()
        stream.finish()
    return dump


_PLAIN = """
PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 EMPTY_LIST
APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET GET
BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE
"""
"""Opcodes of built-in containers, texts and numbers; the others look up or call something."""


def _unpickled(path: Path) -> Any:
    """The value of a pickle of plain data.

    Raises: WorkloadError: damaged, or it contains a class or a function.
    """
    with reading(path, WHAT) as file:
        content = content_of(path, file, MAX_BYTES, "the recorder keeps some thousand calls")
    plain = frozenset(_PLAIN.split())
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if opcode.name not in plain:
                raise refusal(
                    path,
                    f"is a pickle with more than plain data (opcode {ord(opcode.code)}); opticcl does not load it: dump the "
                    "flight recorder as JSON (torch._C._distributed_c10d._dump_nccl_trace_json)",
                )
            if "PUT" in opcode.name and isinstance(argument, int) and argument > number:
                raise ValueError(f"its memo would have {argument:,} entries")  # which the loader would make room for
        return _plain(pickle.loads(content), MAX_DEPTH, [MAX_VALUES])
    except WorkloadError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its opcodes lead to
        raise refusal(path, f"is a damaged pickle: {type(error).__name__}: {str(error)[:100]}") from None


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    """A value with lists in place of tuples and sets, as JSON has it.

    In a pickle one list can be within many, and these within many: a few bytes expand to any size, or without an end.

    Raises: ValueError: there are more, or a number is larger than any size.
    """
    if not left[0] or depth < 0:
        raise ValueError("it expands to more than a recorder writes")
    left[0] -= 1
    if isinstance(value, dict):
        return {str(k): _plain(v, depth - 1, left) for k, v in value.items() if isinstance(k, (str, int))}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one, depth - 1, left) for one in value]
    if isinstance(value, int) and abs(value) >= 2**70:
        raise ValueError("a number of more than 20 digits")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _groups(config: Any) -> dict[str, tuple[int, ...]]:
    """Members of the process groups by name."""
    groups = {}
    for key, group in config.items() if isinstance(config, dict) else ():
        if isinstance(group, dict):
            groups[printable(str(group.get("name", key)))] = rank_list(group.get("ranks"))
    return groups


def _call(number: int, entry: Any, groups: dict[str, tuple[int, ...]], omissions: Omissions) -> RankCall | None:
    """The call of an entry; None, and counted, if it has no size."""
    if not isinstance(entry, dict):
        raise DamageError(number, "is not a record")
    name = printable(str(entry.get("profiling_name", ""))[:80])
    word, _, ends = name.partition(":")[2].partition(" ")
    collective = collective_of(word)
    if not collective:
        omissions.add(f"entries of {name or 'no name'}, which move no data themselves")
        return None
    sides = [list(tensors_of(entry.get(f"{way}_sizes"), entry.get(f"{way}_dtypes"))) for way in ("input", "output")]
    sizes = [sum(side) for side in sides if side]
    if not sizes and collective != "barrier":
        omissions.add(f"entries of {name} without sizes of a known type", missing=True)
        return None
    size = check_size(
        sizes[0] if collective == "all_to_all" else max(sizes, default=0), number, f"{name} of this entry"
    )
    call = RankCall(name, collective, size)
    group = entry.get("process_group")
    call.group = printable(str(group[0] if isinstance(group, list) and group else entry.get("pg_id", "")))
    members = groups.get(call.group, ())
    number_of = "p2p_seq_id" if call.is_transfer else "collective_seq_id"
    call.sequence = count_of(_whole(entry.get(number_of)), -1)
    if collective == "all_to_all":
        call.received_bytes = sizes[-1]
        for why in _add_parts(call, entry, sides, members):
            omissions.add(why)
    elif collective in ("all_gather", "reduce_scatter") and not members and len(sizes) == 2:
        call.group_size = ratio_of(sizes)
    if call.is_transfer:
        call.ranks, call.ends = (-1, -1), ends_of(ends)
    start, end, took = (
        entry.get(k) for k in ("time_discovered_started_ns", "time_discovered_completed_ns", "duration_ms")
    )
    if isinstance(took, (int, float)) and 0 < took < 1e12:
        call.measured_s = took * 1e-3
    if isinstance(start, int) and isinstance(end, int) and 0 < start < end < 2**63:
        call.start_s, call.end_s = start * 1e-9, end * 1e-9
    return call


def _add_parts(
    call: RankCall, entry: dict[str, Any], sides: list[list[int]], members: tuple[int, ...]
) -> Iterator[str]:
    """Give an all_to_all its parts: by the lists of the entry, in elements, else a tensor for each member.

    Args:
        call: is changed.
        entry: of the recorder.
        sides: bytes of each tensor of input and output.
        members: of the group; empty if unknown.
    Yields: why a list is not used.
    """
    lists = entry.get("input_split_sizes"), entry.get("output_split_sizes")
    if any(lists):
        yield from add_splits(call, lists, (call.size_bytes, call.received_bytes), 1)
    elif all(len(side) == (len(members) or len(side)) > 1 for side in sides):
        call.sent_splits, call.received_splits = map(tuple, sides)


def _whole(value: Any) -> Any:
    """A number that some versions write as text."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII) else value
