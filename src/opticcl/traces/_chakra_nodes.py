"""Parser of Chakra execution traces (.et), the exchange format of PyTorch and ASTRA-sim.

::

    file = length message, length message, ...    the first is GlobalMetadata, every other a Node

One message is in memory at a time; unused fields are skipped by their length, and attributes are decoded for communication
nodes alone. PyTorch records a collective up to three times: once or twice where the host issues it (`is_cpu_op`, no size) and
once as its kernel. The kernel is the call.

Source: mlcommons/chakra, schema/protobuf/et_def.proto, releases 0.0.4 to 1.0.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opticcl.formats.encoding.protobuf import EIGHT_BYTES, FOUR_BYTES, LENGTH, check_varints, fields, messages, written
from opticcl.reading import DamageError, check_size, printable, reading
from opticcl.traces._dependencies import IdLists, irregularities
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import RankCall

__all__ = ["NODE_TYPES", "USED", "ChakraNode", "Trace", "collect", "read_trace"]

NODE_TYPES: tuple[str, ...] = ("invalid", "metadata", "mem_load", "mem_store")
NODE_TYPES += ("comp", "comm_send", "comm_recv", "comm_coll", "storage", "batch", "checkpoint")
# By number; MPI's reduce_scatter_block, with equal blocks, is what is called reduce_scatter here.
COLLECTIVE_TYPES: tuple[str, ...] = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast")
COLLECTIVE_TYPES += ("all_to_all", "reduce_scatter", "reduce_scatter", "barrier")

USED = frozenset(
    {"is_cpu_op", "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "pg_name", "num_ops", "tensor_size"}
)
"""Attributes of a node that count."""
MAX_GRAPH = 2**23  # bytes; of a trace whose ids and dependencies take more, they are not checked

_COMP, _SEND, _RECV, _COLL = (NODE_TYPES.index(kind) for kind in ("comp", "comm_send", "comm_recv", "comm_coll"))
# The attribute as it is always written; decoding those of every node takes seconds.
_ON_DEVICE, _ON_HOST = b"\n\tis_cpu_op\xd8\x01\0", b"\n\tis_cpu_op\xd8\x01\1"

Value = int | str | None


def read_trace(path: Path, make: Callable[[dict[str, Value]], Trace] | None = None) -> Trace:
    """Read a whole trace of any length in one pass.

    Args:
        path: of the file.
        make: collects the nodes, from the metadata; None: `Trace`.
    Raises: WorkloadError: not a Chakra trace or a damaged one, with the offset of the damage (once unpacked).
    """
    with reading(path, "Chakra trace (.et)") as file:
        return collect(messages(file), make)


def collect(
    messages: Iterable[tuple[int, bytes | ChakraNode]], make: Callable[[dict[str, Value]], Trace] | None = None
) -> Trace:
    """The trace of messages, the first of which is the metadata.

    Args:
        messages: place and content of each; of a node also the node itself.
        make: collects the nodes, from the metadata; None: `Trace`.
    Raises: DamageError: no message, or a damaged one.
    """
    trace: Trace | None = None
    for at, message in messages:
        try:
            if isinstance(message, bytes):
                if trace is None:
                    trace = (make or Trace)(_metadata(message))
                    continue
                message = ChakraNode.of(message)
            if trace is not None:
                trace.add(message)
        except DamageError as error:
            raise DamageError(at + error.at, error.what) from None
    if trace is None:
        raise DamageError(0, "the file is empty")
    return trace


@dataclass(slots=True)
class ChakraNode:
    """A node of the trace, its attributes not yet decoded.

    Args:
        message: that contains it.
        id: of the node.
        kind: number of its type.
        start_us, duration_us: its start, 0 if not recorded, and its duration [us].
        control, data: ids that it depends on, as packed varints.
    """

    message: bytes
    id: int = 0
    kind: int = 0
    start_us: int = 0
    duration_us: int = 0
    control: bytes = b""
    data: bytes = b""

    @classmethod
    def of(cls, message: bytes) -> ChakraNode:
        """The node in a message.

        Raises: DamageError: the message is not a node.
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
            elif tag == _START:
                node.start_us = value
            elif tag not in _NOT_NEEDED and tag >> 3 <= _ATTR >> 3:
                raise DamageError(end, f"field {tag >> 3} of a node cannot have wire type {tag & 7}")
        return node

    @property
    def type(self) -> str:
        """Name of its type."""
        return NODE_TYPES[self.kind] if self.kind < len(NODE_TYPES) else "of unknown type"

    @property
    def compute_s(self) -> float:
        """Computation on the device; 0 for other nodes [s]."""
        on_device = self.kind == _COMP and self.duration_us and _ON_DEVICE in self.message
        return self.duration_us * 1e-6 if on_device else 0.0

    def work(self) -> tuple[float, float]:
        """Floating-point operations [count] and memory traffic [bytes] of a computation; 0 if not recorded."""
        if self.kind != _COMP or b"num_ops" not in self.message:
            return 0.0, 0.0
        attributes: dict[str, Value] = {}
        for tag, value, end in fields(self.message, 0, len(self.message)):
            if tag == _ATTR:
                attributes.update([_attribute(self.message, value, end)])
        operations, size = attributes.get("num_ops"), attributes.get("tensor_size")
        return (
            float(max(operations, 0)) if isinstance(operations, int) else 0.0,
            float(max(size, 0)) if isinstance(size, int) else 0.0,
        )

    @property
    def on_host(self) -> bool:
        """Whether the host executes the node."""
        return _ON_HOST in self.message


class Trace:
    """Contents of the trace of one rank.

    Attributes:
        metadata: attributes of the file by name.
        nodes: nodes by type [count].
        omissions: communication nodes without a usable size.
        compute_s, kernels: computation on the device, without that of the host [s], and its nodes [count].
    """

    def __init__(self, metadata: dict[str, Value]) -> None:
        self.metadata = metadata
        self.nodes: Counter[str] = Counter()
        self.compute_s, self.kernels = 0.0, 0
        self.omissions = Omissions()
        self._by_kernel: list[RankCall] = []
        self._by_host: list[RankCall] = []
        self._ids = array("Q")  # of all nodes, and what each of them needs
        self._needs: IdLists | None = IdLists()
        self._without_size = 0

    @property
    def calls(self) -> list[RankCall]:
        """Collectives and transfers in file order: the kernels; without kernels the calls of the host."""
        return self._by_kernel or self._by_host

    def repeated(self) -> Iterator[str]:
        """Communication nodes that repeat a call."""
        if on_host := self._without_size + (len(self._by_host) if self._by_kernel else 0):
            yield f"left out: {on_host:,} comm_coll where the host issues a call"

    def add(self, node: ChakraNode) -> None:
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

    def _add_call(self, node: ChakraNode) -> None:
        attributes: dict[str, Value] = {}
        name, message, kind = "", node.message, node.kind
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
                self.omissions.add(f"{NODE_TYPES[kind]} without comm_size", missing=True)
            return
        check_size(size, 0, f"comm_size of node {node.id}")
        collective, counts = "send" if kind == _SEND else "recv", "message"
        ranks: tuple[int, ...] = ()
        if kind == _COLL:
            number = attributes.get("comm_type")
            if not isinstance(number, int) or not 0 <= number < len(COLLECTIVE_TYPES):
                self.omissions.add("comm_coll without a known comm_type", size, missing=True)
                return
            collective = COLLECTIVE_TYPES[number]
            counts = "share" if collective in ("all_gather", "gather") else "message"
        else:
            ranks = (_rank(attributes.get("comm_src")), _rank(attributes.get("comm_dst")))
        call = RankCall(name, collective, size, counts, "" if group is None else str(group))  # type: ignore[arg-type]
        call.ranks, call.measured_s = ranks, node.duration_us * 1e-6
        call.tag = str(attributes.get("comm_tag", ""))
        if node.start_us:
            call.start_s, call.end_s = node.start_us * 1e-6, (node.start_us + node.duration_us) * 1e-6
        (self._by_host if on_host else self._by_kernel).append(call)

    def irregularities(self) -> Iterator[str]:
        """Remarks on irregular ids and dependencies."""
        if self._needs is None:
            yield "ids and dependencies were not checked: too many to keep in memory"
            return
        counts = irregularities(np.frombuffer(self._ids, np.uint64), self._needs)
        if counts.doubled:
            yield f"duplicate ids: {counts.doubled:,}; each of these nodes counts"
        if counts.dangling:
            yield f"dangling dependencies, ignored: {counts.dangling:,} on {counts.unknown:,} unknown ids"
        if counts.cycle:
            ids = list(map(str, counts.cycle))
            shown = " needs ".join(ids if len(ids) <= 8 else [*ids[:4], "...", *ids[-3:]])
            yield f"cyclic dependencies, ignored: {counts.closing:,} close a cycle, such as {shown}"


# --- fields ---

_ID, _TYPE, _START, _DURATION = (number << 3 for number in (1, 3, 6, 7))
_NAME, _INPUTS, _OUTPUTS, _ATTR = (number << 3 | LENGTH for number in (2, 8, 9, 10))
_CONTROL, _DATA = 4 << 3, 5 << 3  # dependencies
_PACKED_CONTROL, _PACKED_DATA = _CONTROL | LENGTH, _DATA | LENGTH
_NOT_NEEDED = (_NAME, _INPUTS, _OUTPUTS)
# Of an attribute: its name and its value, in two's complement, zigzag, without a sign or in fixed bytes, perhaps with one.
_KEY, _STRING = 1 << 3 | LENGTH, 29 << 3 | LENGTH
_INT, _SINT, _UINT = (7 << 3, 9 << 3), (15 << 3, 17 << 3), (11 << 3, 13 << 3, 27 << 3)
_FIXED = {
    19 << 3 | FOUR_BYTES: False,
    21 << 3 | EIGHT_BYTES: False,
    23 << 3 | FOUR_BYTES: True,
    25 << 3 | EIGHT_BYTES: True,
}


def _rank(value: Value) -> int:
    return value if isinstance(value, int) and value >= 0 else -1


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))


def _attribute(data: bytes, i: int, end: int) -> tuple[str, Value]:
    """Name and value of an AttributeProto; None for floats and lists."""
    name: str = ""
    content: Value = None
    for tag, value, stop in fields(data, i, end):
        if tag == _KEY:
            name = _text(data[value:stop])
        elif tag == _STRING:
            content = _text(data[value:stop])
        elif tag in _INT:
            content = value - (value >> 63 << 64)
        elif tag in _SINT:
            content = value >> 1 ^ -(value & 1)
        elif tag in _UINT:
            content = value
        elif tag in _FIXED:
            content = int.from_bytes(data[value:stop], "little", signed=_FIXED[tag])
    return name, content


def _metadata(message: bytes) -> dict[str, Value]:
    """Attributes of a GlobalMetadata: version = 1 and attr = 2; older files have attr = 1."""
    attributes: dict[str, Value] = {}
    for tag, value, end in fields(message, 0, len(message)):
        if tag == 1 << 3 | LENGTH and message[value : value + 1] != b"\n":
            attributes["version"] = _text(message[value:end])
        elif tag in (1 << 3 | LENGTH, 2 << 3 | LENGTH):
            attributes.update([_attribute(message, value, end)])
        elif tag < 3 << 3:
            raise DamageError(0, "the first message is not GlobalMetadata; before schema 0.0.4 there was none")
    return attributes
