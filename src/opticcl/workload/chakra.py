"""Reader of Chakra execution traces (.et), the form in which PyTorch and ASTRA-sim exchange what a job does.

::

    file     = length message, length message, ...    the first is GlobalMetadata, every other a Node
    message  = tag value, tag value, ...              tag = field number << 3 | wire type
    value    = 0 varint | 1 eight bytes | 2 length and that many bytes | 5 four bytes, by the wire type

One message is in memory at a time; fields that are not needed are stepped over by their length, and attributes are
decoded for collective nodes alone. PyTorch records a collective up to three times: once or twice where the host issues
it (`is_cpu_op`, no size) and once as the kernel that does it. The kernel is the call.

Source: mlcommons/chakra, schema/protobuf/et_def.proto, releases 0.0.4 to 1.0; protobuf's description of its encoding.
"""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path

from opticcl.collective import COLLECTIVES
from opticcl.units import MAX_MESSAGE_BYTES, format_seconds
from opticcl.workload import CollectiveCall, Workload, check_file, printable, refusal

__all__ = ["Trace", "read_trace", "read_workload"]

NODE_TYPES: tuple[str, ...] = ("invalid", "metadata", "mem_load", "mem_store")
NODE_TYPES += ("comp", "comm_send", "comm_recv", "comm_coll", "storage", "batch", "checkpoint")
COLLECTIVE_TYPES: tuple[str, ...] = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast")
COLLECTIVE_TYPES += ("all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier")

MAX_MESSAGE = 2**26  # bytes; a longer one is refused
MAX_GRAPH = 2**24  # words; of a trace whose ids and dependencies take more, they are not checked

_COMM_COLL = NODE_TYPES.index("comm_coll")
_ON_HOST = "where the host issues a call"

Value = int | str | None


def read_workload(path: Path) -> Workload:
    """The calls of a trace that OptiCCL can carry; the notes count everything else.

    Raises: WorkloadError: no Chakra trace, a damaged one, or none of its calls can be carried.
    """
    trace = read_trace(path)
    calls = tuple(call for call in trace.calls if call.collective in COLLECTIVES)
    notes = tuple(_notes(trace, calls))
    if not calls:
        raise refusal(path, f"no {' or '.join(COLLECTIVES)} with a size in this trace; {'; '.join(notes)}")
    facts = [f"{key} {trace.metadata[key]}" for key in ("version", "schema", "time") if key in trace.metadata]
    source = ", ".join(["Chakra trace", path.name, *facts])
    return Workload(Path(path.name.removesuffix(".gz")).stem, source, calls, notes)


def _notes(trace: Trace, calls: tuple[CollectiveCall, ...]) -> Iterator[str]:
    kinds = [f"{n:,} {kind}" for kind, n in trace.nodes.items()]
    yield f"nodes: {', '.join(kinds)}; {trace.nodes.total():,} in all"
    if measured := [call.measured_s for call in calls if call.measured_s]:
        yield f"measured: {format_seconds(sum(measured))} in all for {len(measured):,} of {len(calls):,} calls"
    for kind in sorted({call.collective for call in trace.calls} - set(COLLECTIVES)):
        sizes = [call.size_bytes for call in trace.calls if call.collective == kind]
        yield f"left out: {len(sizes):,} {kind} of {sum(sizes):,} bytes in all, which cannot be carried yet"
    for reason, n in trace.dropped.items():
        yield f"left out: {n:,} comm_coll {reason}"
    if n := trace.nodes["comm_send"] + trace.nodes["comm_recv"]:
        yield f"left out: {n:,} comm_send and comm_recv, which cannot be carried yet"
    if n := sum(not call.group for call in calls):
        yield f"no process group recorded for {n:,} of {len(calls):,} calls: taken to span all ranks"
    if n := sum(not call.size_bytes for call in calls):
        yield f"size of 0 bytes: {n:,} of {len(calls):,} calls"
    yield from trace.oddities()


def read_trace(path: Path) -> Trace:
    """Reads a whole trace, of any length, in one pass; gzip is unpacked on the way.

    Raises: WorkloadError: no Chakra trace or a damaged one, with the byte (once unpacked) at which that shows.
    """
    check_file(path)
    trace: Trace | None = None
    at = 0
    try:
        with open(path, "rb") as raw, gzip.GzipFile(fileobj=raw) as unzipped:
            for at, message in _messages(unzipped if raw.peek(2)[:2] == b"\x1f\x8b" else raw):
                try:
                    if trace is None:
                        trace = Trace(_metadata(message))
                    else:
                        trace.add(message)
                except _DamageError as error:
                    raise _DamageError(at + error.at, error.what) from None
        if trace is None:
            raise _DamageError(0, "the file is empty")
    except _DamageError as error:
        raise refusal(path, f"byte {error.at:,}: {error.what}; is this a whole Chakra trace (.et)?") from None
    except (OSError, EOFError, zlib.error) as error:
        raise refusal(path, f"cannot be read beyond byte {at:,}: {error}") from None
    return trace


class Trace:
    """What one rank's trace holds.

    Attributes:
        metadata: attributes of the file by name.
        nodes: nodes by type [count].
    """

    def __init__(self, metadata: dict[str, Value]) -> None:
        self.metadata = metadata
        self.nodes: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._by_kernel: list[CollectiveCall] = []
        self._by_host: list[CollectiveCall] = []
        self._needs: dict[int, array[int]] | None = {}
        self._doubled = self._graph_size = 0

    @property
    def calls(self) -> list[CollectiveCall]:
        """Collectives of every kind, in file order: the kernels; without kernels the host does the calls itself."""
        return self._by_kernel or self._by_host

    @property
    def dropped(self) -> Counter[str]:
        """Collective nodes that are no call, by reason [count]."""
        return self._dropped + Counter({_ON_HOST: len(self._by_host) if self._by_kernel else 0})

    def add(self, message: bytes) -> None:
        """Adds the node of a message."""
        node = kind = duration_us = 0
        needs = array("Q")
        if not message:
            raise _DamageError(0, "a node without content")
        for tag, value, end in _fields(message, 0, len(message)):
            if tag == _ATTR:
                pass  # half of all fields
            elif tag in _PACKED_DEPS:
                _unpack(message, value, end, needs)
            elif tag in _DEPS:
                needs.append(value)
            elif tag == _ID:
                node = value
            elif tag == _TYPE:
                kind = value
            elif tag == _DURATION:
                duration_us = value
            elif tag not in _NOT_NEEDED and tag >> 3 <= _ATTR >> 3:
                raise _DamageError(end, f"field {tag >> 3} of a node cannot have wire type {tag & 7}")
        self.nodes[NODE_TYPES[kind] if kind < len(NODE_TYPES) else "of unknown type"] += 1
        self._add_needs(node, needs)
        if kind == _COMM_COLL:
            self._add_collective(node, message, duration_us * 1e-6)

    def _add_needs(self, node: int, needs: array[int]) -> None:
        if self._needs is None:
            return
        if node in self._needs:
            self._doubled += 1
            self._needs[node].extend(needs)
        else:
            self._needs[node] = needs
        self._graph_size += 16 + len(needs)  # words of 8 bytes
        if self._graph_size > MAX_GRAPH:
            self._needs = None

    def _add_collective(self, node: int, message: bytes, measured_s: float) -> None:
        name, attributes = "", dict[str, Value]()
        for tag, value, end in _fields(message, 0, len(message)):
            if tag == _ATTR:
                attributes.update([_attribute(message, value, end)])
            elif tag == _NAME:
                name = _text(message[value:end])
        size, kind, group = (attributes.get(key) for key in ("comm_size", "comm_type", "pg_name"))
        on_host = bool(attributes.get("is_cpu_op"))
        if not isinstance(size, int):
            self._dropped[_ON_HOST if on_host else "without comm_size"] += 1
        elif not isinstance(kind, int) or not 0 <= kind < len(COLLECTIVE_TYPES):
            self._dropped["without a known comm_type"] += 1
        elif not 0 <= size <= MAX_MESSAGE_BYTES:
            raise _DamageError(0, f"comm_size of node {node} is {size:,} bytes, not 0 to 2**60")
        else:
            call = CollectiveCall(name, COLLECTIVE_TYPES[kind], size, "" if group is None else str(group), measured_s)
            (self._by_host if on_host else self._by_kernel).append(call)

    def oddities(self) -> Iterator[str]:
        """What is odd about ids and dependencies, a line each."""
        if self._needs is None:
            yield "ids and dependencies were not checked: there are too many to keep in memory"
            return
        if self._doubled:
            yield f"ids that an earlier node has: {self._doubled:,}; each of these nodes counts"
        dangling, closing, circle = _walk(self._needs)
        if dangling:
            yield f"dangling dependencies, ignored: {len(dangling):,} on {len(set(dangling)):,} ids that no node has"
        if circle:
            shown = " needs ".join(map(str, circle if len(circle) <= 8 else [*circle[:4], "...", *circle[-3:]]))
            yield f"cyclic dependencies, ignored: {closing:,} close a circle, such as {shown}"


def _walk(needs: Mapping[int, array[int]]) -> tuple[list[int], int, list[int]]:
    """Follows all dependencies, depth first.

    Returns: dependencies on no node; how many lead back to a node that is being followed; the first such circle.
    """
    dangling, closing, circle = list[int](), 0, list[int]()
    on_path: dict[int, bool] = {}  # False: followed to the end
    for start in needs:
        if start in on_path:
            continue
        on_path[start] = True
        path, ahead = [start], [iter(needs[start])]
        while path:
            for node in ahead[-1]:
                followed = on_path.get(node)
                if followed:
                    closing += 1
                    circle = circle or [*path[path.index(node) :], node]
                elif followed is None and node in needs:
                    on_path[node] = True
                    path.append(node)
                    ahead.append(iter(needs[node]))
                    break
                elif followed is None:
                    dangling.append(node)
            else:
                on_path[path.pop()] = False
                ahead.pop()
    return dangling, closing, circle


# --- protobuf ---------------------------------------------------------------------------------------------------------

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_MASK = 2**64 - 1

_ID, _TYPE, _START, _DURATION = (number << 3 for number in (1, 3, 6, 7))
_NAME, _INPUTS, _OUTPUTS, _ATTR = (number << 3 | _LENGTH for number in (2, 8, 9, 10))
_DEPS, _PACKED_DEPS = (4 << 3, 5 << 3), (4 << 3 | _LENGTH, 5 << 3 | _LENGTH)  # ctrl_deps, data_deps
_NOT_NEEDED = (_NAME, _START, _INPUTS, _OUTPUTS)


class _DamageError(Exception):
    def __init__(self, at: int, what: str) -> None:
        self.at, self.what = at, what


def _messages(file: BufferedReader | gzip.GzipFile) -> Iterator[tuple[int, bytes]]:
    """The byte at which each message starts, and the message."""
    at = 0
    while prefix := file.read(1):
        while prefix[-1] > 127 and len(prefix) < 10 and (byte := file.read(1)):
            prefix += byte
        length, size = _varint(prefix, 0, at)
        at += size
        if length > MAX_MESSAGE:
            raise _DamageError(at, f"a message of {length:,} bytes is too long")
        message = file.read(length)
        if len(message) < length:
            raise _DamageError(at, f"a message of {length:,} bytes, of which {len(message):,} are there")
        yield at, message
        at += length


def _fields(data: bytes, i: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Each field in data[i:end]: its tag, its varint or where its content starts, and where it ends."""
    while i < end:
        start, tag = i, data[i]
        i += 1
        if tag > 127:
            tag, i = _varint(data, start)
        wire = tag & 7
        if wire == _LENGTH or wire == _VARINT:  # noqa: SIM109
            value = data[i] if i < end else 128
            i += 1
            if value > 127:
                value, i = _varint(data, i - 1)
            if wire == _LENGTH:
                value, i = i, i + value
        elif wire == _EIGHT_BYTES:
            value, i = i, i + 8
        elif wire == _FOUR_BYTES:
            value, i = i, i + 4
        else:
            raise _DamageError(start, f"there is no wire type {wire}")
        if i > end or tag < 8:
            raise _DamageError(start, f"field {tag >> 3} runs beyond its message" if i > end else "a field of number 0")
        yield tag, value, i


def _varint(data: bytes, i: int, at: int = 0) -> tuple[int, int]:
    """The 64-bit number that starts at data[i], and where it ends; data[0] is byte `at`."""
    value = 0
    for k, byte in enumerate(data[i : i + 10]):
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value & _MASK, i + k + 1
    raise _DamageError(at + i, "a varint that does not end")


def _unpack(data: bytes, i: int, end: int, into: array[int]) -> None:
    """Appends the varints in data[i:end]."""
    rest = iter(data[i:end])
    try:
        for byte in rest:
            value, shift = byte & 127, 7
            while byte > 127:
                byte = next(rest)
                value |= (byte & 127) << shift
                shift += 7
                if shift > 70:
                    raise OverflowError
            into.append(value)
    except (StopIteration, OverflowError):
        raise _DamageError(i, "a list with a varint that does not end") from None


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))


def _attribute(data: bytes, i: int, end: int) -> tuple[str, Value]:
    """Name and value of an AttributeProto; None for floats and lists."""
    name: str = ""
    found: Value = None
    for tag, value, stop in _fields(data, i, end):
        number, wire = tag >> 3, tag & 7
        if wire == _LENGTH and number == 1:
            name = _text(data[value:stop])
        elif wire == _LENGTH and number == 29:
            found = _text(data[value:stop])
        elif wire == _VARINT and number in (7, 9):  # int32, int64: two's complement
            found = value - (value >> 63 << 64)
        elif wire == _VARINT and number in (15, 17):  # sint32, sint64: zigzag
            found = value >> 1 ^ -(value & 1)
        elif wire == _VARINT:  # uint32, uint64, bool
            found = value
        elif number in (19, 21, 23, 25):  # fixed32, fixed64, sfixed32, sfixed64
            found = int.from_bytes(data[value:stop], "little", signed=number > 21)
    return name, found


def _metadata(message: bytes) -> dict[str, Value]:
    """Attributes of a GlobalMetadata: version = 1 and attr = 2; older files have attr = 1."""
    found: dict[str, Value] = {}
    for tag, value, end in _fields(message, 0, len(message)):
        if tag == 1 << 3 | _LENGTH and message[value : value + 1] != b"\n":
            found["version"] = _text(message[value:end])
        elif tag in (1 << 3 | _LENGTH, 2 << 3 | _LENGTH):
            found.update([_attribute(message, value, end)])
        elif tag < 3 << 3:
            raise _DamageError(0, "the first message is no GlobalMetadata; before schema 0.0.4 there was none")
    return found
