"""The graph of a file that describes a network, and what readers share to make it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite, nan
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError, OpticclError, printable
from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.units import Rate, Seconds, quantity

__all__ = [
    "IN_SERVERS",
    "NODE",
    "SWITCH",
    "Attributes",
    "Circuit",
    "FileFaultError",
    "FileGraph",
    "FileGraphBuilder",
    "FileOptions",
    "Nic",
    "Way",
    "content_of",
    "exact_quantity",
    "whole",
]

MOST_EDGES = limit("file_graph.MOST_EDGES")
MOST_BYTES = limit("file_graph.MOST_BYTES")
NODE, SWITCH = "node", "switch"
"""Kinds of vertices that every format may have; a vertex of kind "" is one of which the file says nothing."""

IN_SERVERS = ("NVSwitch", "PCI switch", "CPU")
"""Kinds of vertices inside a server."""

_OF_EDGES = ("source", "target", "key", "id", "directed", "latency", "circuit")
COMPUTE_KINDS = {"node", "host", "gpu", "compute", "server", "npu", "endpoint"}
_QUANTITY = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*+([A-Za-z/µμ]*)\s*")

_NAMED_VALUE = re.compile(r"""(?<![a-z])([a-z]+)["']?\s*[:=]\s*["']?([^\s,;"'}]+)""")


class Way(IntEnum):
    """Direction of an edge: one way, both ways with the rate in each, or both ways that share the rate."""

    ONE = 0
    BOTH = 1
    SHARED = 2


class FileFaultError(Exception):
    """A fault of a file.

    Args:
        line: of the fault, 0 where it is of the whole file.
        what: the fault and the rule, in words.
    """

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line:,}: {what}" if line else what)


@dataclass(frozen=True, kw_only=True, repr=False)
class FileOptions:
    """What the caller adds to a file; the parameters of `opticcl.fabrics.network.FileNetwork`, which describes them."""

    file: str
    format: str | None = None
    nodes: str | None = None
    node_key: str | None = None
    rate: Rate | None = None
    rate_key: str | None = None
    rate_unit: str | None = None
    latency: Seconds | None = None
    latency_key: str | None = None
    latency_unit: str | None = None
    directed: bool | None = None
    duplex: Literal["full"] | None = None
    gpu: str | None = None
    nvlink: int | None = None
    nvlink_rate: Rate | None = None
    nvswitch: bool | None = None
    with_pcie: bool | None = None
    pcie: Rate | None = None
    sys: Rate | None = None
    copies: int = 1
    nic_rate: Rate | None = None
    nics: str | None = None
    edges: int = MOST_EDGES


class Nic(NamedTuple):
    """A network card of a host.

    Args:
        name: in the file.
        near: the nearest nodes, in the order of the file.
        shares_switch: whether it shares a PCI switch with them.
        rate_bits_per_s: NaN where the file does not say [bit/s].
        hub: vertex of the network that it hangs from; -1: it has none.
    """

    name: str
    near: tuple[int, ...]
    shares_switch: bool
    rate_bits_per_s: float
    hub: int = -1


class Circuit(NamedTuple):
    """What a file says of an optical circuit switch.

    Args:
        switch: its name; "" where there is one, or where the switch is a vertex.
        ports: each with one circuit in and one out [count].
        reconfiguration_s: to set them [s].
    """

    switch: str
    ports: int
    reconfiguration_s: float


@dataclass(frozen=True, slots=True, eq=False)
class FileGraph:
    """Vertices and edges of a file, edges as columns of equal length.

    Args:
        names: of the vertices, all different.
        kinds: of the vertices; "" where the file says nothing.
        source, target: vertices of each edge, int64 (edges,).
        rate_bits_per_s: NaN where the file does not say, float64 (edges,) [bit/s].
        latency_s: NaN where the file does not say, float64 (edges,) [s].
        way: `Way` of each edge, uint8 (edges,).
        line: at which an edge stands, 0 where it has none, int64 (edges,).
        notes: what was assumed or left out, a sentence each.
        nics: network cards, for copies of a host.
        pcie_bits_per_s: of a link between a node and a PCI switch, NaN where it is unknown [bit/s].
        rate_hint: how to say a rate that the file does not have, for messages.
        lists_vertices: whether the file has a list of the vertices; else they are the ends of its edges.
        circuits: of edges that are one.
        circuit_switches: of vertices that are one.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    source: IntArray
    target: IntArray
    rate_bits_per_s: npt.NDArray[np.float64]
    latency_s: npt.NDArray[np.float64]
    way: npt.NDArray[np.uint8]
    line: IntArray
    notes: tuple[str, ...] = ()
    nics: tuple[Nic, ...] = ()
    pcie_bits_per_s: float = nan
    rate_hint: str = ""
    lists_vertices: bool = True
    circuits: Mapping[int, Circuit] = field(default_factory=dict)
    circuit_switches: Mapping[int, Circuit] = field(default_factory=dict)


@dataclass
class FileGraphBuilder:
    """Collects vertices and edges of a file and refuses those that no network has.

    Args: options: of the caller.
    """

    options: FileOptions
    number: dict[str, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    edges: list[tuple[int, int, float, float, int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)
    pcie_bits_per_s: float = nan
    rate_hint: str = ""
    lists_vertices: bool = True
    circuits: dict[int, Circuit] = field(default_factory=dict)
    circuit_switches: dict[int, Circuit] = field(default_factory=dict)

    def vertex(self, name: str, kind: str = "", line: int = 0, circuit: Circuit | None = None) -> int:
        """Add a vertex.

        Args:
            name: of its own.
            kind: of the vertex, "" if unknown.
            line: of the file.
            circuit: of a circuit switch.
        Returns: its number.
        Raises: FileFaultError: another one has that name.
        """
        if name in self.number:
            raise FileFaultError(line, f"two vertices are called {name[:60]!r}; each needs a name of its own")
        if len(self.kinds) > self.options.edges:
            raise FileFaultError(
                line, f"more than {self.options.edges:,} vertices; raise edges= if the machine is so large"
            )
        self.number[name] = len(self.kinds)
        self.kinds.append(kind)
        if circuit is not None:
            if kind == NODE:
                raise FileFaultError(line, f"the node {name[:60]!r} has circuit=; a circuit switch or a link has")
            self.circuit_switches[self.number[name]] = circuit
        return self.number[name]

    def end(self, name: str, line: int = 0) -> int:
        """Number of a vertex.

        Raises: FileFaultError: none has that name.
        """
        if name not in self.number:
            raise FileFaultError(line, f"an edge ends at {name[:60]!r}, which is not a vertex of the file")
        return self.number[name]

    def edge(
        self,
        source: int,
        target: int,
        rate: float = nan,
        latency: float = nan,
        way: int = Way.ONE,
        line: int = 0,
        circuit: Circuit | None = None,
    ) -> None:
        """Add an edge.

        Args:
            source, target: vertices.
            rate: NaN if unknown [bit/s].
            latency: NaN if unknown [s].
            way: `Way`.
            line: of the file.
            circuit: of an edge that is one.
        Raises: FileFaultError: a self-loop, a rate that is not positive, a negative latency, or too many edges.
        """
        if source == target:
            name = list(self.number)[source]
            raise FileFaultError(line, f"an edge leads from {name[:60]!r} to itself; a link joins two vertices")
        if not (rate > 0 or rate != rate) or rate == inf:
            raise FileFaultError(line, f"rate={rate:g} bit/s; a rate is positive and finite")
        if latency < 0 or latency == inf:
            raise FileFaultError(line, f"latency={latency:g} s; a latency is 0 or more and finite")
        if len(self.edges) >= self.options.edges:
            raise FileFaultError(
                line, f"more than {self.options.edges:,} edges; raise edges= if the machine is so large"
            )
        if circuit is not None:
            self.circuits[len(self.edges)] = circuit
        self.edges.append((source, target, rate, latency, int(way), line))

    def expect(self, count: int, what: str) -> None:
        """Refuse a count that a file claims before vertices or edges are made of it.

        Raises: FileFaultError: more than `edges` of the options.
        """
        if count > self.options.edges:
            raise FileFaultError(0, f"{count:,} {what}, and at most edges={self.options.edges:,} are read")

    def graph(self) -> FileGraph:
        """The graph of all that was added."""
        columns = list(zip(*self.edges, strict=True)) or [()] * 6
        return FileGraph(
            names=tuple(map(printable, self.number)),
            kinds=tuple(self.kinds),
            source=np.array(columns[0], np.int64),
            target=np.array(columns[1], np.int64),
            rate_bits_per_s=np.array(columns[2], np.float64),
            latency_s=np.array(columns[3], np.float64),
            way=np.array(columns[4], np.uint8),
            line=np.array(columns[5], np.int64),
            notes=tuple(self.notes),
            nics=tuple(self.nics),
            pcie_bits_per_s=self.pcie_bits_per_s,
            rate_hint=self.rate_hint,
            lists_vertices=self.lists_vertices,
            circuits=self.circuits,
            circuit_switches=self.circuit_switches,
        )


@lru_cache(4096)
def exact_quantity(text: str, unit: str, default_unit: str) -> float:
    """The quantity that a text writes, the float next to its exact decimal value.

    >>> exact_quantity("0.3GB/s", "bit/s", ""), exact_quantity("25", "bit/s", "GB/s")
    (2400000000.0, 200000000000.0)

    Args:
        text: number and unit.
        unit: of the result, as `opticcl.units.quantity` takes it.
        default_unit: of a text without a unit; "": such a text is refused.
    Raises: FileFaultError: no such quantity; its text says why.
    """
    written = _QUANTITY.fullmatch(text)
    if written is None:
        raise FileFaultError(0, f"{text[:40]!r} is not a number with a unit")
    number, said = written[1], written[2] or default_unit
    if not said:
        raise FileFaultError(0, f"{text[:40]!r} has no unit")
    try:
        factor = quantity(f"1 {said}", unit)
    except OpticclError as error:
        raise FileFaultError(0, str(error)) from None
    value = Fraction(number) * Fraction(repr(factor)) if len(number) < 40 else Fraction(10) ** 400
    try:
        rounded = float(value)
    except OverflowError:
        rounded = inf
    if not isfinite(rounded):
        raise FileFaultError(0, f"{text[:40]!r} is beyond every {'rate' if unit == 'bit/s' else 'time'}")
    return rounded


class Attributes:
    """Attributes of vertices and edges in files that name them freely.

    Args: options: names and units of the caller.
    """

    def __init__(self, options: FileOptions) -> None:
        self._options, self._seen = options, dict[str, None]()

    @property
    def key_of_kind(self) -> str:
        """Attribute of vertices that marks nodes."""
        return self._options.node_key or "kind"

    def kind(self, attributes: dict[str, str]) -> str:
        """Kind of a vertex: node if its attribute says so, a kind of switch if it says something else, "" without one."""
        said = attributes.get(self.key_of_kind, "").strip().lower()
        if not said:
            return ""
        if said in COMPUTE_KINDS or (self._options.node_key and said in ("1", "true", "yes")):
            return NODE
        return next((kind for kind in IN_SERVERS if kind.lower() == said), SWITCH)

    def of_edge(self, attributes: dict[str, str], line: int) -> tuple[float, float]:
        """Rate and latency of an edge, NaN without one [bit/s], [s].

        Raises: FileFaultError: as `rate` and `latency`.
        """
        return self.rate(attributes, line), self.latency(attributes, line)

    def rate(self, attributes: dict[str, str], line: int) -> float:
        """Rate of an edge, NaN without one [bit/s].

        Raises: FileFaultError: no rate, or one without a unit.
        """
        if not attributes.keys() <= self._seen.keys():
            self._seen |= dict.fromkeys(attributes)
        key = self._options.rate_key or "rate"
        if not (text := attributes.get(key, "").strip()):
            return nan
        try:
            return exact_quantity(text, "bit/s", self._options.rate_unit or "")
        except FileFaultError as fault:
            hint = "" if self._options.rate_unit else f"; name it, such as rate_key={key},rate_unit=Gb/s"
            raise FileFaultError(line, f"{key}: {fault}{hint}") from None

    def latency(self, attributes: dict[str, str], line: int) -> float:
        """Latency of an edge, NaN without one [s].

        Raises: FileFaultError: no time, or one without a unit.
        """
        key = self._options.latency_key or "latency"
        if not (text := attributes.get(key, "").strip()):
            return nan
        try:
            return exact_quantity(text, "s", self._options.latency_unit or ("s" if not text.strip("0.") else ""))
        except FileFaultError as fault:
            hint = (
                "" if self._options.latency_unit else "; write it with its unit, such as 700ns, or name latency_unit="
            )
            raise FileFaultError(line, f"{key}: {fault}{hint}") from None

    def circuit(self, attributes: dict[str, str], line: int) -> Circuit | None:
        """The circuit switch of an edge or of a vertex, None without one.

        Raises: FileFaultError: no whole number of ports, or no time.
        """
        if not (text := attributes.get("circuit", "").strip()):
            return None
        said = dict(_NAMED_VALUE.findall(text))
        if not {"ports", "reconfiguration"} <= said.keys() <= {"switch", "ports", "reconfiguration"}:
            raise FileFaultError(
                line, f"circuit={text[:60]!r}; write it as ports=64 reconfiguration=10ms, and switch=NAME"
            )
        ports = whole(said["ports"], "ports", line)
        try:
            seconds = exact_quantity(said["reconfiguration"], "s", "")
        except FileFaultError as fault:
            raise FileFaultError(line, f"reconfiguration: {fault}") from None
        if ports < 2 or seconds < 0:
            raise FileFaultError(line, f"circuit={text[:60]!r}; two ports or more, and a time of 0 or more")
        return Circuit(said.get("switch", ""), ports, seconds)

    def hint(self) -> str:
        """Attributes of edges that may be the rate, for the message that there is none."""
        others = [name for name in self._seen if name not in _OF_EDGES]
        if not others:
            return ""
        return f"its edges have {', '.join(map(printable, others[:6]))}: rate_key=NAME,rate_unit=Gb/s takes one of them"


def whole(text: object, what: str, line: int = 0) -> int:
    """A whole number of 0 or more.

    Args:
        text: digits.
        what: its name, for the message.
        line: of the file.
    Raises: FileFaultError: it is none.
    """
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,12}", text):
        raise FileFaultError(line, f"{what}={str(text)[:40]!r} is not a whole number of 0 or more")
    return int(text)


def content_of(file: str) -> bytes:
    """Content of a file.

    Raises: FabricError: it is none, cannot be read, or is too large.
    """
    path = Path(file)
    try:
        if not path.is_file():
            what = (
                "is a directory" if path.is_dir() else "there is no such file" if not path.exists() else "is not a file"
            )
            raise FabricError(printable(f"network: {file}: {what}; file= names one file that describes a network"))
        if path.stat().st_size > MOST_BYTES:
            raise FabricError(printable(f"network: {file}: is larger than {MOST_BYTES >> 20} MiB"))
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FabricError(printable(f"network: {file}: cannot be read: {reason}")) from None
