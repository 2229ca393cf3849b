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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opticcl.units import format_seconds
from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._dependencies import IdLists, oddities
from opticcl.workload._files import DamageError, check_size, printable, reading, refusal, title
from opticcl.workload._notes import LeftOut, notes_on
from opticcl.workload._protobuf import LENGTH, VARINT, check_varints, fields, messages, written

__all__ = ["Node", "Trace", "read_trace", "read_workload", "workload_of"]

NODE_TYPES: tuple[str, ...] = ("invalid", "metadata", "mem_load", "mem_store")
NODE_TYPES += ("comp", "comm_send", "comm_recv", "comm_coll", "storage", "batch", "checkpoint")
# By number; MPI's reduce_scatter_block, with equal blocks, is what is called reduce_scatter here.
COLLECTIVE_TYPES: tuple[str, ...] = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast")
COLLECTIVE_TYPES += ("all_to_all", "reduce_scatter", "reduce_scatter", "barrier")

MAX_GRAPH = 2**23  # bytes; of a trace whose ids and dependencies take more, they are not checked

_COMP, _SEND, _RECV, _COLL = (NODE_TYPES.index(kind) for kind in ("comp", "comm_send", "comm_recv", "comm_coll"))
# The attribute as it is always written; decoding those of every node takes seconds.
_ON_DEVICE, _ON_HOST = b"\n\tis_cpu_op\xd8\x01\0", b"\n\tis_cpu_op\xd8\x01\1"

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
    notes = [
        f"nodes: {', '.join(kinds) or 'none'}; {trace.nodes.total():,} in all",
        *notes_on(calls),
        *trace.left_out(),
    ]
    notes += trace.oddities()
    if trace.compute_s:
        kernels = f"{trace.kernels:,} of {trace.nodes['comp']:,} comp nodes"
        notes.append(
            f"computation: {format_seconds(trace.compute_s)} on the device in {kernels}; the others are left out"
        )
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
                    trace.add(Node.of(message))
            except DamageError as error:
                raise DamageError(at + error.at, error.what) from None
        if trace is None:
            raise DamageError(0, "the file is empty")
    return trace


@dataclass(slots=True)
class Node:
    """A node of the trace, its attributes not yet decoded.

    Args:
        message: that it stands in.
        id: of the node.
        kind: number of its type.
        duration_us: how long it takes [us].
        control, data: ids that it depends on, packed.
    """

    message: bytes
    id: int = 0
    kind: int = 0
    duration_us: int = 0
    control: bytes = b""
    data: bytes = b""

    @classmethod
    def of(cls, message: bytes) -> Node:
        """The node in a message.

        Raises: DamageError: it holds none.
        """
        if not message:
            raise DamageError(0, "a node without content")
        node = cls(message)
        for tag, value, end in fields(message, 0, len(message)):
            if tag == _ATTR:
                pass  # half of all fields
            elif tag in (_PACKED_CONTROL, _PACKED_DATA):
                check_varints(message, value, end)
                if tag == _PACKED_DATA:
                    node.data += message[value:end]
                else:
                    node.control += message[value:end]
            elif tag == _CONTROL:
                node.control += written(value)
            elif tag == _DATA:
                node.data += written(value)
            elif tag == _ID:
                node.id = value
            elif tag == _TYPE:
                node.kind = value
            elif tag == _DURATION:
                node.duration_us = value
            elif tag not in _NOT_NEEDED and tag >> 3 <= _ATTR >> 3:
                raise DamageError(end, f"field {tag >> 3} of a node cannot have wire type {tag & 7}")
        return node

    @property
    def type(self) -> str:
        """Name of its type."""
        return NODE_TYPES[self.kind] if self.kind < len(NODE_TYPES) else "of unknown type"

    @property
    def compute_s(self) -> float:
        """Computation on the device; 0 for all else [s]."""
        on_device = self.kind == _COMP and self.duration_us and _ON_DEVICE in self.message
        return self.duration_us * 1e-6 if on_device else 0.0

    @property
    def on_host(self) -> bool:
        """Whether the node says that the host does it."""
        return _ON_HOST in self.message


class Trace:
    """What one rank's trace holds.

    Attributes:
        metadata: attributes of the file by name.
        nodes: nodes by type [count].
        compute_s, kernels: computation on the device, that of the host aside [s], and nodes that do it [count].
    """

    def __init__(self, metadata: dict[str, Value]) -> None:
        self.metadata = metadata
        self.nodes: Counter[str] = Counter()
        self.compute_s, self.kernels = 0.0, 0
        self._left_out = LeftOut()
        self._by_kernel: list[CollectiveCall] = []
        self._by_host: list[CollectiveCall] = []
        self._ids = array("Q")  # of all nodes, and what each of them needs
        self._needs: IdLists | None = IdLists()
        self._without_size = 0

    @property
    def calls(self) -> list[CollectiveCall]:
        """Collectives and sends in file order: the kernels; without kernels the host does the calls itself."""
        return self._by_kernel or self._by_host

    def left_out(self) -> Iterator[str]:
        """What takes part in communication and is no call, a line for each reason."""
        if on_host := self._without_size + (len(self._by_host) if self._by_kernel else 0):
            yield f"left out: {on_host:,} comm_coll where the host issues a call"
        yield from self._left_out.notes()

    def add(self, node: Node) -> None:
        """Adds a node."""
        self.nodes[node.type] += 1
        if self._needs is not None:
            self._ids.append(node.id)
            self._needs.append(node.control + node.data)
            if self._needs.held_bytes + 8 * len(self._ids) > MAX_GRAPH:
                self._ids, self._needs = array("Q"), None
        compute_s = node.compute_s
        self.compute_s += compute_s
        self.kernels += compute_s > 0
        if node.kind in (_SEND, _RECV, _COLL):
            self._add_call(node)

    def _add_call(self, node: Node) -> None:
        name, attributes = "", dict[str, Value]()
        message, kind = node.message, node.kind
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
        check_size(size, 0, f"comm_size of node {node.id}")
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
        group_name = "" if group is None else str(group)
        call = CollectiveCall(name, collective, size, group_name, node.duration_us * 1e-6, ranks)
        (self._by_host if on_host else self._by_kernel).append(call)

    def oddities(self) -> Iterator[str]:
        """What is odd about ids and dependencies, a line each."""
        if self._needs is None:
            yield "ids and dependencies were not checked: there are too many to keep in memory"
            return
        if not self._ids:
            return
        odd = oddities(np.frombuffer(self._ids, np.uint64), self._needs)
        if odd.doubled:
            yield f"ids that an earlier node has: {odd.doubled:,}; each of these nodes counts"
        if odd.dangling:
            yield f"dangling dependencies, ignored: {odd.dangling:,} on {odd.unknown:,} ids that no node has"
        if odd.circle:
            ids = list(map(str, odd.circle))
            shown = " needs ".join(ids if len(ids) <= 8 else [*ids[:4], "...", *ids[-3:]])
            yield f"cyclic dependencies, ignored: {odd.closing:,} close a circle, such as {shown}"


# --- fields ---

_ID, _TYPE, _START, _DURATION = (number << 3 for number in (1, 3, 6, 7))
_NAME, _INPUTS, _OUTPUTS, _ATTR = (number << 3 | LENGTH for number in (2, 8, 9, 10))
_CONTROL, _DATA = 4 << 3, 5 << 3  # dependencies
_PACKED_CONTROL, _PACKED_DATA = _CONTROL | LENGTH, _DATA | LENGTH
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
