"""Reader of Chakra execution traces (.et), the form in which PyTorch and ASTRA-sim exchange what a job does.

::

    file = length message, length message, ...    the first is GlobalMetadata, every other a Node

One message is in memory at a time; fields that are not needed are stepped over by their length, and attributes are
decoded for communication nodes alone. PyTorch records a collective up to three times: once or twice where the host
issues it (`is_cpu_op`, no size) and once as the kernel that does it. The kernel is the call.

Source: mlcommons/chakra, schema/protobuf/et_def.proto, releases 0.0.4 to 1.0.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from opticcl.units import format_seconds
from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import DamageError, check_size, printable, reading, refusal, title
from opticcl.workload._notes import LeftOut, notes_on
from opticcl.workload._protobuf import LENGTH, VARINT, fields, messages, unpack

__all__ = ["Trace", "read_trace", "read_workload", "workload_of"]

NODE_TYPES: tuple[str, ...] = ("invalid", "metadata", "mem_load", "mem_store")
NODE_TYPES += ("comp", "comm_send", "comm_recv", "comm_coll", "storage", "batch", "checkpoint")
# By number; MPI's reduce_scatter_block, with equal blocks, is what is called reduce_scatter here.
COLLECTIVE_TYPES: tuple[str, ...] = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast")
COLLECTIVE_TYPES += ("all_to_all", "reduce_scatter", "reduce_scatter", "barrier")

MAX_GRAPH = 2**24  # words; of a trace whose ids and dependencies take more, they are not checked

_COMP, _SEND, _RECV, _COLL = (NODE_TYPES.index(kind) for kind in ("comp", "comm_send", "comm_recv", "comm_coll"))
_ON_DEVICE = b"\n\tis_cpu_op\xd8\x01\0"  # the attribute as it is always written; decoding them all takes seconds

Value = int | str | None


def read_workload(path: Path) -> Workload:
    """The calls of one rank's trace; the notes count everything else.

    Raises: WorkloadError: no Chakra trace, a damaged one, or nothing in it has a size.
    """
    return workload_of(path, read_trace(path))


def workload_of(path: Path, trace: Trace) -> Workload:
    """The calls of a trace that has been read from that file.

    Raises: WorkloadError: nothing in it has a size.
    """
    calls = tuple(trace.calls)
    kinds = [f"{n:,} {kind}" for kind, n in trace.nodes.items()]
    notes = [f"nodes: {', '.join(kinds)}; {trace.nodes.total():,} in all", *notes_on(calls), *trace.left_out()]
    notes += trace.oddities()
    if trace.compute_s:
        notes.append(f"computation: {format_seconds(trace.compute_s)} on the device")
    if not calls:
        raise refusal(path, f"no collective with a size in this trace; {'; '.join(notes)}")
    facts = [f"{key} {trace.metadata[key]}" for key in ("version", "schema", "time") if key in trace.metadata]
    return Workload(
        title(path), ", ".join(["Chakra trace", path.name, *facts]), calls, tuple(notes), 0, trace.compute_s
    )


def read_trace(path: Path, make: Callable[[dict[str, Value]], Trace] | None = None) -> Trace:
    """Reads a whole trace, of any length, in one pass; gzip is unpacked on the way.

    Args: make: what holds it, from the metadata; `Trace` if None.
    Raises: WorkloadError: no Chakra trace or a damaged one, with the byte (once unpacked) at which that shows.
    """
    trace: Trace | None = None
    with reading(path, "Chakra trace (.et)") as file:
        for at, message in messages(file):
            try:
                if trace is None:
                    trace = (make or Trace)(_metadata(message))
                else:
                    trace.add(message)
            except DamageError as error:
                raise DamageError(at + error.at, error.what) from None
        if trace is None:
            raise DamageError(0, "the file is empty")
    return trace


class Trace:
    """What one rank's trace holds.

    Attributes:
        metadata: attributes of the file by name.
        nodes: nodes by type [count].
        compute_s: computation on the device, that of the host aside [s].
    """

    def __init__(self, metadata: dict[str, Value]) -> None:
        self.metadata = metadata
        self.nodes: Counter[str] = Counter()
        self.compute_s = 0.0
        self._left_out = LeftOut()
        self._by_kernel: list[CollectiveCall] = []
        self._by_host: list[CollectiveCall] = []
        self._needs: dict[int, array[int]] | None = {}
        self._without_size = self._doubled = self._graph_size = 0

    @property
    def calls(self) -> list[CollectiveCall]:
        """Collectives and sends in file order: the kernels; without kernels the host does the calls itself."""
        return self._by_kernel or self._by_host

    def left_out(self) -> Iterator[str]:
        """What takes part in communication and is no call, a line for each reason."""
        if on_host := self._without_size + (len(self._by_host) if self._by_kernel else 0):
            yield f"left out: {on_host:,} comm_coll where the host issues a call"
        yield from self._left_out.notes()

    def add(self, message: bytes) -> None:
        """Adds the node of a message."""
        node = kind = duration_us = 0
        needs = array("Q")
        if not message:
            raise DamageError(0, "a node without content")
        for tag, value, end in fields(message, 0, len(message)):
            if tag == _ATTR:
                pass  # half of all fields
            elif tag in _PACKED_DEPS:
                unpack(message, value, end, needs)
            elif tag in _DEPS:
                needs.append(value)
            elif tag == _ID:
                node = value
            elif tag == _TYPE:
                kind = value
            elif tag == _DURATION:
                duration_us = value
            elif tag not in _NOT_NEEDED and tag >> 3 <= _ATTR >> 3:
                raise DamageError(end, f"field {tag >> 3} of a node cannot have wire type {tag & 7}")
        self.nodes[NODE_TYPES[kind] if kind < len(NODE_TYPES) else "of unknown type"] += 1
        self._add_needs(node, needs)
        if kind == _COMP and duration_us and _ON_DEVICE in message:
            self.compute_s += duration_us * 1e-6
        elif kind in (_SEND, _RECV, _COLL):
            self._add_call(node, kind, message, duration_us * 1e-6)

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

    def _add_call(self, node: int, kind: int, message: bytes, measured_s: float) -> None:
        name, attributes = "", dict[str, Value]()
        for tag, value, end in fields(message, 0, len(message)):
            if tag == _ATTR:
                attributes.update([_attribute(message, value, end)])
            elif tag == _NAME:
                name = _text(message[value:end])
        size, group = attributes.get("comm_size"), attributes.get("pg_name")
        on_host = bool(attributes.get("is_cpu_op"))
        if not isinstance(size, int):
            if on_host and kind == _COLL:
                self._without_size += 1
            else:
                self._left_out.add(f"{NODE_TYPES[kind]} without comm_size")
            return
        check_size(size, 0, f"comm_size of node {node}")
        ranks: tuple[int, ...] = ()
        collective = "send_recv"
        if kind == _COLL:
            number = attributes.get("comm_type")
            if not isinstance(number, int) or not 0 <= number < len(COLLECTIVE_TYPES):
                self._left_out.add("comm_coll without a known comm_type", size)
                return
            collective = COLLECTIVE_TYPES[number]
        else:
            ranks = (_rank(attributes.get("comm_src")), _rank(attributes.get("comm_dst")))
            if kind == _RECV:
                self._left_out.add("comm_recv, which the sender's trace has as a send", size)
                return
            if ranks[0] == ranks[1] >= 0:
                self._left_out.add("comm_send from a rank to itself", size)
                return
        call = CollectiveCall(name, collective, size, "" if group is None else str(group), measured_s, ranks)
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


# --- fields ---

_ID, _TYPE, _START, _DURATION = (number << 3 for number in (1, 3, 6, 7))
_NAME, _INPUTS, _OUTPUTS, _ATTR = (number << 3 | LENGTH for number in (2, 8, 9, 10))
_DEPS, _PACKED_DEPS = (4 << 3, 5 << 3), (4 << 3 | LENGTH, 5 << 3 | LENGTH)  # ctrl_deps, data_deps
_NOT_NEEDED = (_NAME, _START, _INPUTS, _OUTPUTS)


def _rank(value: Value) -> int:
    return value if isinstance(value, int) and value >= 0 else -1


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))


def _attribute(data: bytes, i: int, end: int) -> tuple[str, Value]:
    """Name and value of an AttributeProto; None for floats and lists."""
    name: str = ""
    found: Value = None
    for tag, value, stop in fields(data, i, end):
        number, wire = tag >> 3, tag & 7
        if wire == LENGTH and number == 1:
            name = _text(data[value:stop])
        elif wire == LENGTH and number == 29:
            found = _text(data[value:stop])
        elif wire == VARINT and number in (7, 9):  # int32, int64: two's complement
            found = value - (value >> 63 << 64)
        elif wire == VARINT and number in (15, 17):  # sint32, sint64: zigzag
            found = value >> 1 ^ -(value & 1)
        elif wire == VARINT:  # uint32, uint64, bool
            found = value
        elif number in (19, 21, 23, 25):  # fixed32, fixed64, sfixed32, sfixed64
            found = int.from_bytes(data[value:stop], "little", signed=number > 21)
    return name, found


def _metadata(message: bytes) -> dict[str, Value]:
    """Attributes of a GlobalMetadata: version = 1 and attr = 2; older files have attr = 1."""
    found: dict[str, Value] = {}
    for tag, value, end in fields(message, 0, len(message)):
        if tag == 1 << 3 | LENGTH and message[value : value + 1] != b"\n":
            found["version"] = _text(message[value:end])
        elif tag in (1 << 3 | LENGTH, 2 << 3 | LENGTH):
            found.update([_attribute(message, value, end)])
        elif tag < 3 << 3:
            raise DamageError(0, "the first message is no GlobalMetadata; before schema 0.0.4 there was none")
    return found
