"""The abstract class of all fabrics, and the types that it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError, UnsupportedError
from opticcl.ir._common import IntArray
from opticcl.ir.capacity import Axis, Cut
from opticcl.ir.circuits import Circuits
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import LightPath, Limit, Optics
from opticcl.ir.netlist import Netlist
from opticcl.ir.occupied import (
    WEAK,
    Condition,
    Occupied,
    Options,
    PartKind,
    PartUse,
    failed_parts,
    shares_of_rate,
)
from opticcl.ir.representatives import LightMove

__all__ = [
    "RESOURCE_KINDS",
    "CellGrid",
    "ControlPlane",
    "Fabric",
    "FabricNumbers",
    "Fault",
    "HopLatency",
    "Part",
    "Resource",
    "Usage",
]

RESOURCE_KINDS = ("laser", "photodiode", "tx_port", "rx_port", "waveguide", "fibre", "subnet", "switch_port", "link")
"""Kinds of resources that circuits occupy; the verifier has a rule for each except links, which packets share."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of resource that circuits occupy, `count` identical instances of it.

    Args:
        kind: one of `RESOURCE_KINDS`.
        count: number of instances [count].
        capacity: circuits a round that one instance may carry (on each wavelength if `per_wavelength`); bit/s if `shared`.
        per_wavelength: whether circuits on different wavelengths do not conflict.
        shared: packets share it (electrical links); light never does.
        once_per_job: set once for the whole job: all circuits that ever use it must agree on its setting.
        one_setting: circuits of a round that use one instance must agree on its setting, whatever their wavelengths.
        in_wavelengths: the capacity counts the wavelengths of circuits (`Usage.amount`), not circuits.
        splits: passive optics that hand one signal to many: circuits of one signal (same sender, port, wavelengths and
            data) count once.
    Raises: FabricError: no such kind, or a link that is not shared.
    """

    kind: str
    count: int
    capacity: float = 1
    per_wavelength: bool = True
    shared: bool = False
    once_per_job: bool = False
    splits: bool = False
    one_setting: bool = False
    in_wavelengths: bool = False

    def __post_init__(self) -> None:
        if self.kind not in RESOURCE_KINDS:
            known = ", ".join(RESOURCE_KINDS)
            raise FabricError(f"Resource: kind={self.kind!r} has no rule in the verifier; known: {known}")
        if self.kind == "link" and not self.shared:
            raise FabricError(
                "Resource: a link is shared by packets; write shared=True, or fibre or waveguide for light"
            )


@dataclass(frozen=True, slots=True)
class Usage:
    """Instances of one kind of resource that circuits occupy.

    Args:
        resource: the kind.
        index: instance, 0 to count - 1, int64 (m,).
        circuit: row of the `Circuits`, int64 (m,), or None if row i of `index` belongs to circuit i.
        setting: setting of the resource, int64 (m,), for `once_per_job` and `one_setting` resources.
        amount: of the capacity that each row takes, int64 (m,), where wavelengths are not counted apart; None: 1 each.
    """

    resource: Resource
    index: IntArray
    circuit: IntArray | None = None
    setting: IntArray | None = None
    amount: IntArray | None = None

    def cells(self, circuits: Circuits, num_wavelengths: int) -> tuple[IntArray, IntArray, IntArray]:
        """Row of `index`, circuit and number of each cell that is taken, int64 (cells,) each.

        A cell is an instance, or one wavelength of it where wavelengths are counted apart: instance x wavelengths + wavelength.

        Args:
            circuits: of the usage.
            num_wavelengths: of the fabric [count].
        """
        row, cell = np.arange(len(self.index)), np.asarray(self.index, np.int64)
        circuit = row if self.circuit is None else np.asarray(self.circuit, np.int64)
        if self.resource.per_wavelength:
            row, wavelength = circuits.each_wavelength(circuit)
            cell, circuit = cell[row] * num_wavelengths + wavelength, circuit[row]
        return row, circuit, cell


@dataclass(frozen=True, slots=True)
class Fault:
    """Circuits that the hardware cannot make, and by which rule.

    Args:
        rule: name of the rule, such as path_broken or wavelength_unheard.
        circuits: rows that break it, int64 (k,).
        expected: what the hardware demands, in words.
    """

    rule: str
    circuits: IntArray
    expected: str


@dataclass(frozen=True, slots=True)
class Part:
    """Identical parts that a fabric is built of; prices and power are in estimate/prices.toml.

    Args:
        kind: such as transceiver, electrical_switch, star_coupler or fibre.
        count: number of parts [count].
        ports: of each, 0 if it has none [count].
        rate_bits_per_s: of each, or of each of its ports, 0 if it has none [bit/s].
    """

    kind: str
    count: int
    ports: int = 0
    rate_bits_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Control plane of a fabric: what it does once a job and before every round.

    Args:
        once_a_job: action before the job starts.
        once_a_job_s: its duration [s].
        every_round: action before every round; its duration is `Fabric.control_s`.
        source: of the duration once a job.
    """

    once_a_job: str
    once_a_job_s: float
    every_round: str
    source: str

    def record(self) -> dict[str, Any]:
        """Fields as plain values, without the source."""
        return {"once_a_job": self.once_a_job, "once_a_job_s": self.once_a_job_s, "every_round": self.every_round}


@dataclass(frozen=True, slots=True, eq=False)
class CellGrid:
    """A machine as a grid of cells, of which a job gets a block: some rows, some columns, all cells where they cross.

    Args:
        cells: nodes of each cell, int64 (*sides, nodes a cell).
        contiguous: whether a block must be contiguous.
        rank: of a block with these sides among those of as many cells; the least is preferred. By default the squarest one.
    """

    cells: IntArray
    contiguous: bool
    rank: Callable[[tuple[int, ...]], Any] = sum

    @property
    def sides(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self.cells.shape[:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricNumbers:
    """Numbers of a fabric.

    Args:
        num_nodes: that can be used: ranks [count].
        rate_bits_per_s: of one wavelength of one port [bit/s].
        num_wavelengths: on the grid [count].
        ports_per_node: independent transmitters of a node [count].
        lasers_per_port: wavelengths that one transmitter can emit at the same time [count].
        reconfiguration_s: to change circuits [s].
        slot_s: time slot, 0 if there is none [s].
        slot_payload_bytes: of one circuit in one slot [bytes].
        latency_s: from the first bit sent to the first bit received, apart from hops [s].
        shortest_control_s: least control-plane time of a round with transfers [s].
        double_ring_bits_per_s: of a segment in one direction where all nodes stand on one ring of both directions, else 0
            [bit/s].
        dimensions: sides of the grid of the nodes, numbered row by row; empty: a single line.
        nodes_per_group: neighbouring nodes that belong together in a drawing; 0 for none [count].
    """

    num_nodes: int
    rate_bits_per_s: float
    num_wavelengths: int = 1
    ports_per_node: int = 1
    lasers_per_port: int = 1
    reconfiguration_s: float = 0.0
    slot_s: float = 0.0
    slot_payload_bytes: float = 0.0
    latency_s: float = 0.0
    shortest_control_s: float = 0.0
    double_ring_bits_per_s: float = 0.0
    dimensions: tuple[int, ...] = ()
    nodes_per_group: int = 0


System = TypeVar("System", bound="Fabric")

HopLatency = Callable[[IntArray], npt.NDArray[Any] | None]
"""Hops -> latency that each adds [s], or None if hops add none."""

_AT_PORTS = {"tx_port": "transmitter", "rx_port": "receiver", "laser": "lasers", "photodiode": "photodiodes"}


class Fabric(ABC):
    """An interconnect: its nodes, what its circuits occupy, its optics, parts, control plane and names.

    A system is one final frozen dataclass of its parameters that implements this class; `register_fabric` registers it.
    `usage` and `faults` are the physics of a circuit, written from the hardware description; they know nothing of the rule
    that assigns circuits. One law is common to all fabrics: in a round, the circuits that share an exclusive resource and a
    wavelength never exceed its capacity.

    Nodes are the nodes of the machine; ranks are the nodes that can be used, in their order. They differ only where some
    nodes are dead or a job has a part of the machine (`node_of_rank`). `num_nodes`, `linked`, `distance` and `ring_order`
    refer to ranks; `usage`, `faults`, `coordinates` and circuits refer to nodes.

    Class attributes:
        registered_name: set by `register_fabric`.
        algorithm: registered name of the system's own algorithm, "" if it has none.
        rate_parameter: parameter that the rate of a node is proportional to; no circuit, latency or loss depends on it.
        source: paper and sections.
        about: what a reader must know to follow a picture of its light.
        drawing: kind of picture: "nodes", "ring", "grid" or "chords".
        alternatives: other values of parameters whose defaults may decide a rank; comparisons evaluate them too.
        hops_are_links: whether each hop of a path is the number of a shared link, counted over all `resources`.
        is_reference: whether it cannot be built, and stands beside those that are ranked without a rank.
        is_fixed: whether it has the nodes and the rate that it has, as a network from a file; others are compared at these.
        former: parameters that no longer exist -> what to write in their place.
    """

    registered_name: ClassVar[str] = ""
    algorithm: ClassVar[str] = ""
    rate_parameter: ClassVar[str] = ""
    source: ClassVar[str] = ""
    about: ClassVar[str] = ""
    drawing: ClassVar[str] = "nodes"
    alternatives: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    is_reference: ClassVar[bool] = False
    is_fixed: ClassVar[bool] = False
    hops_are_links: ClassVar[bool] = False
    former: ClassVar[Mapping[str, str]] = MappingProxyType({})

    # --- identity ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Registered name."""
        return self.registered_name

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters by name; the name and the parameters describe the fabric wholly."""
        if not is_dataclass(self):
            return MappingProxyType({})
        return MappingProxyType({f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """Parameters that set the shape of a fabric with that many nodes.

        Raises: FabricError: it has no such shape; the text gives the nearest sizes.
        """
        return {"nodes": num_nodes}

    @classmethod
    def at_scale(cls, num_nodes: int, **parameters: Any) -> Self:
        """The fabric with that many nodes; given parameters take precedence.

        Raises: FabricError: it has no such shape.
        """
        return cls(**{**cls.parameters_at_scale(num_nodes), **parameters})

    def with_node_rate(self, node_rate_bits_per_s: float) -> Self:
        """The same fabric with other transmitters, such that a node sends that much in all [bit/s]."""
        scaled = getattr(self, self.rate_parameter) * node_rate_bits_per_s / self.node_rate_bits_per_s
        return replace(self, **{self.rate_parameter: scaled})  # type: ignore[type-var]

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """An instance small enough to draw and follow, and the algorithm to show on it."""
        return cls.at_scale(8), cls.algorithm or "auto"

    def __getstate__(self) -> dict[str, Any]:
        """Parameters alone: cached values are computed again where the fabric is unpickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        from opticcl.units import counted, format_rate

        size = f"{self.num_nodes:,} of {counted(self.machine_size, 'node')}" if self.machine_size else ""
        nodes = size or counted(self.num_nodes, "node")
        return f"<{type(self).__name__} {self.name}: {nodes}, {format_rate(self.node_rate_bits_per_s)} per node>"

    def __str__(self) -> str:
        from opticcl.units import format_quantity, in_columns

        given = {key: value for key, value in self.parameters.items() if value is not None}
        rows = [(f"  {k}", f"{v:g}" if isinstance(v, float) else format_quantity(v, "")) for k, v in given.items()]
        return "\n".join([repr(self).partition(" ")[2][:-1], in_columns(rows), *self.notes]).rstrip()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or left out when it was made, a sentence each."""
        return ()

    # --- numbers ----------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def numbers(self) -> FabricNumbers:
        """Numbers of nodes, ports and wavelengths, rates and times; each is a property as well."""

    @property
    def num_nodes(self) -> int:
        """Nodes that can be used: ranks [count]."""
        return self.numbers.num_nodes

    @property
    def num_wavelengths(self) -> int:
        """Wavelengths on the grid [count]."""
        return self.numbers.num_wavelengths

    @property
    def ports_per_node(self) -> int:
        """Independent transmitters of a node [count]."""
        return self.numbers.ports_per_node

    @property
    def lasers_per_port(self) -> int:
        """Wavelengths that one transmitter can emit at the same time [count]."""
        return self.numbers.lasers_per_port

    @property
    def rate_bits_per_s(self) -> float:
        """Rate of one wavelength of one port [bit/s]."""
        return self.numbers.rate_bits_per_s

    @property
    def reconfiguration_s(self) -> float:
        """Time to change circuits [s]."""
        return self.numbers.reconfiguration_s

    @property
    def slot_s(self) -> float:
        """Time slot, 0 if the fabric has none [s]."""
        return self.numbers.slot_s

    @property
    def slot_payload_bytes(self) -> float:
        """Payload of one circuit in one slot [bytes]."""
        return self.numbers.slot_payload_bytes

    @property
    def latency_s(self) -> float:
        """From the first bit sent to the first bit received, apart from hops [s]."""
        return self.numbers.latency_s

    @property
    def shortest_control_s(self) -> float:
        """Least control-plane time of a round with transfers [s]."""
        return self.numbers.shortest_control_s

    @property
    def double_ring_bits_per_s(self) -> float:
        """Rate of a segment in one direction where all nodes stand on one ring of both directions, else 0 [bit/s]."""
        return self.numbers.double_ring_bits_per_s

    @property
    def nodes_per_group(self) -> int:
        """Neighbouring nodes that belong together in a drawing; 0 for none [count]."""
        return self.numbers.nodes_per_group

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Sides of the grid of the nodes, numbered row by row; a single line if it has none."""
        return self.numbers.dimensions or (self.num_machine_nodes,)

    @property
    @abstractmethod
    def resources(self) -> tuple[Resource, ...]:
        """Kinds of resources that `usage` refers to; always the same objects."""

    @property
    def node_rate_bits_per_s(self) -> float:
        """What one node can send at most [bit/s]."""
        return self.ports_per_node * self.lasers_per_port * self.rate_bits_per_s

    @cached_property
    def is_packet_switched(self) -> bool:
        """Whether its links are shared by packets rather than held by circuits."""
        return any(r.shared for r in self.resources)

    # --- the whole machine and the part of it that can be used --------------------------------------------------------

    @property
    def machine(self) -> Fabric:
        """The whole machine; a job has a part of it."""
        return self

    def machine_as(self, system: type[System]) -> System:
        """The whole machine, if it is of that class.

        Raises: UnsupportedError: it is of another class.
        """
        if not isinstance(self.machine, system):
            raise UnsupportedError(f"{self.name}: not a {system.registered_name or system.__name__}")
        return self.machine

    def sub_machine(self, nodes: IntArray) -> Fabric | None:
        """A whole machine that some nodes are like, on which the system's own algorithms make schedules for a job of them.

        Its node i is the i-th of them, and what it can send at once the machine can send between them; light, rates and times
        remain those of the machine. None where they form no such part, as on every fabric without algorithms of its own.

        Args:
            nodes: of the machine in the order of the job's ranks, int (n,).
        """
        return None

    @property
    def equivalent(self) -> Fabric | None:
        """The fabric itself, or the whole machine that a job's nodes are like; see `sub_machine`."""
        return self

    def shared(self, num_members: int) -> Fabric:
        """The whole machine that each of some groups sees, if light of all passes the same fibres; itself if not.

        Args: num_members: that are like this machine [count].
        """
        return self

    @property
    def share(self) -> int:
        """Of how many equal shares of what nodes have in common it has one, 1 for all but jobs beside others [count]."""
        return 1

    @property
    def num_members(self) -> int:
        """Groups of ranks that each do the same at the same time, 1 for all but `opticcl.fabrics.groups` [count]."""
        return 1

    @property
    def member(self) -> Fabric:
        """The fabric as one of the groups sees it, the first; itself where there is one."""
        return self

    def groups_at(self, nodes: IntArray) -> IntArray:
        """Number of the group that nodes of the machine are in."""
        return self.ranks_at(nodes) // (self.num_nodes // self.num_members)

    def ranks_in_group(self, nodes: IntArray) -> IntArray:
        """Rank of nodes of the machine within their groups."""
        return self.ranks_at(nodes) % (self.num_nodes // self.num_members)

    @property
    def node_of_rank(self) -> IntArray | None:
        """Node of each rank, int32 (num_nodes,), or None where they are the same."""
        return None

    @property
    def machine_size(self) -> int:
        """Nodes of the whole machine where only some of them can be used, else 0 [count]."""
        return 0

    @property
    def num_machine_nodes(self) -> int:
        """Nodes of the machine, including those that cannot be used [count]."""
        return self.machine_size or self.num_nodes

    def machine_nodes(self, ranks: IntArray) -> IntArray:
        """Nodes of the machine for ranks of the job."""
        return ranks if self.node_of_rank is None else self.node_of_rank[ranks]

    def ranks_at(self, nodes: IntArray) -> IntArray:
        """Ranks of the job for nodes of the machine, -1 for a node that is not in the job."""
        if self.node_of_rank is None:
            return nodes
        rank = np.full(self.num_machine_nodes, -1, np.int32)
        rank[self.node_of_rank] = np.arange(self.num_nodes)
        inside = (nodes >= 0) & (nodes < len(rank))
        ranks: IntArray = np.where(inside, rank[np.where(inside, nodes, 0)], -1).astype(np.int32)
        return ranks

    # --- physics ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def usage(self, circuits: Circuits) -> Iterable[Usage]:
        """Resources that circuits occupy, one `Usage` a kind."""

    @abstractmethod
    def faults(self, circuits: Circuits) -> Iterable[Fault]:
        """Circuits that this hardware cannot make."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """Kinds of devices that circuits need set; none where nothing is ever set."""
        return ()

    def settings(self, circuits: Circuits) -> Iterable[SettingUse]:
        """Settings of devices that circuits need while their light passes, on their whole path, one `SettingUse` a kind."""
        return ()

    def links_set(self, circuits: Circuits) -> tuple[IntArray, IntArray] | None:
        """Links that stand for circuits, where circuits share links; None where every circuit is set for itself.

        A link joins an input to an output, and stands until one of the two gets another.

        Returns: input and output of each link, int64 (links,) each; a link may be there several times.
        """
        return None

    def netlist(self) -> Netlist | None:
        """Optical elements of the machine and the links between them, or None if no light goes from end to end."""
        return None

    def states(self, circuits: Circuits) -> Iterable[SettingUse]:
        """States of the elements of the netlist that circuits need, apart from signals, one or more `SettingUse` a group."""
        return ()

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Transmitter and photodiode of every (circuit, wavelength): elements of the netlist, int64 (m,) each.

        Raises: UnsupportedError: the fabric has no netlist.
        """
        raise UnsupportedError(f"{self.name}: no netlist of its elements")

    # --- parts that fail --------------------------------------------------------------------------------------------

    def inventory(self) -> tuple[PartKind, ...]:
        """Kinds of parts that can fail; the nodes alone where nothing else is known."""
        return (PartKind("node", self.num_machine_nodes),)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Parts of the machine that have failed, sorted."""
        return ()

    def without(self, conditions: Iterable[Condition]) -> Fabric:
        """The fabric with further failed parts; where nodes are dead, a job on the others.

        Raises: FabricError: no such part, one that has failed already, or no node is left.
        """
        raise FabricError(f"{self.name}: its parts do not fail here; leave nodes out by a job of the others")

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Parts that the light of every circuit passes, of every kind of `inventory`; written apart from `usage`."""
        yield PartUse("node", circuits.src.astype(np.int64))
        yield PartUse("node", circuits.dst.astype(np.int64))

    def parts_of_kinds(self, kinds: Collection[str], circuits: Circuits) -> Iterator[PartUse]:
        """Those of `parts_used` that are of some kinds."""
        return (use for use in self.parts_used(circuits) if use.kind in kinds)

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """Every way to light pairs of nodes, whatever has failed; `transfer` is the row of the pair.

        Raises: UnsupportedError: they are not listed.
        """
        raise UnsupportedError(f"{self.name}: the ways to light a pair of nodes are not listed")

    @property
    def occupied(self) -> Occupied:
        """Cells that stuck parts take in every round."""
        return Occupied.none()

    def part_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Circuits that need a failed part, rule part_failed."""
        dead = {c.kind for c in self.conditions if c.mode == "dead"}
        for use in self.parts_of_kinds(dead, circuits) if dead else ():
            parts = failed_parts(self.conditions, use.kind)
            hit = np.unique(use.owners()[np.isin(use.part, parts)])
            listed = ", ".join(map(str, parts[:8])) + (", ..." if len(parts) > 8 else "")
            yield Fault("part_failed", hit, f"no light through {use.kind} {listed}")

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """The move of the machine that takes each node to another one, or None where there is none, or none is known.

        A circuit between two nodes, or the route between them, is moved to that between their images.

        Args: nodes: image of each node, int64 (nodes,).
        """
        return None

    def resource_images(self, move: LightMove) -> tuple[IntArray, ...] | None:
        """Image of each instance of each resource under a move that leaves the machine what it was.

        Where it is not None, circuits that are moved occupy the images of what they occupied, on the images of their
        wavelengths, and the machine can make them exactly if it could make the others, each circuit for itself.

        Args: move: of nodes, ports, wavelengths and hops.
        Returns: int64 (count,) for each of `resources`; None: the machine is another one then, or none is known.
        """
        return None

    def units_of_devices(self) -> tuple[tuple[int, int], ...] | None:
        """Of each kind of `devices` the resource that they are parts of, and how many of them a unit of it has.

        Device i of such a kind is part of unit i // many, so that it serves one circuit at a time if the unit does.

        Returns: (position in `resources`, devices of a unit) for each kind; None: none is known.
        """
        return None

    def wavelengths_carried(self, circuits: Circuits) -> npt.NDArray[Any]:
        """Wavelengths of each circuit, times the share of its rate that weak parts on its way leave it, (n,).

        Circuits of one transfer share its data in proportion.
        """
        if not any(condition.mode == WEAK for condition in self.conditions):
            return circuits.wavelength_n
        return circuits.wavelength_n * shares_of_rate(self.conditions, self.parts_used(circuits), len(circuits))

    # --- links ------------------------------------------------------------------------------------------------------

    @property
    def links_all(self) -> bool:
        """Whether one circuit can join any two ranks, so that `linked` need not be called."""
        return type(self).linked is Fabric.linked

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether one circuit can join two ranks; arrays that broadcast."""
        return np.ones(np.broadcast(src, dst).shape, bool)

    def distance(self, src: IntArray, dst: IntArray) -> IntArray | None:
        """Links (fibres, waveguides) on the shortest path between two ranks, or None where links are not passed one by one."""
        return None

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """(hops, hop_offsets) of each pair of nodes, on packet fabrics: their routing is part of the machine.

        Raises: UnsupportedError: circuits have no fixed route.
        """
        raise UnsupportedError(f"{self.name}: circuits have no fixed routes")

    @property
    def num_hops(self) -> int:
        """Numbers that a hop of a route may have, where hops have a latency [count]."""
        return sum(resource.count for resource in self.resources)

    def hop_latency_s(self, hops: IntArray) -> npt.NDArray[np.float64] | None:
        """Latency that each hop adds to a path through it [s], or None if hops add none."""
        return None

    def passage(self, floor: FloorPlan) -> Passage:
        """What the signal of every circuit passes, apart from hops: one receiver, and the centre where hops have no length."""
        through = 0.0 if self.hops_have_length else floor.through_centre_m(self.num_machine_nodes)
        return Passage(fibre_m=through, receivers=1)

    @property
    def hops_have_length(self) -> bool:
        """Whether hops add to what a signal passes, `hop_passages`."""
        return type(self).hop_passages is not Fabric.hop_passages

    def hop_passages(self, floor: FloorPlan) -> Passage | None:
        """What each hop adds, by the number of the hop, or None if hops add nothing."""
        return None

    # --- what lower bounds rest on ----------------------------------------------------------------------------------

    def axes(self, nodes: IntArray) -> Iterable[Axis]:
        """Directions in which circuits between these nodes lead; none where a circuit may join any two."""
        return ()

    def cuts(self, nodes: IntArray) -> Iterable[Cut]:
        """Cuts between these nodes whose capacity may bound a collective among them."""
        return ()

    def flow_s_per_bit(self, nodes: IntArray, collective: str) -> float:
        """Time below which no flow moves a block of one bit of a collective; 0 where that is not known [s].

        Args:
            nodes: that take part.
            collective: all_to_all, with a block from each to every other; all_gather or reduce_scatter, with one of each.
        """
        return 0.0

    def shortest_paths_s(
        self, node: int, of_hops: HopLatency
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Least latency of links from a node to every node, and from every node to it, float64 (nodes,) each [s].

        Args:
            node: of the machine.
            of_hops: latency of each hop [s].
        """
        return np.zeros(self.num_machine_nodes), np.zeros(self.num_machine_nodes)

    # --- order of the ranks -----------------------------------------------------------------------------------------

    def ring_order(self) -> IntArray:
        """Ranks in an order in which neighbours (last and first too) are linked, int64 (num_nodes,)."""
        return np.arange(self.num_nodes)

    # --- control plane ----------------------------------------------------------------------------------------------

    def control_s(self, src: IntArray, dst: IntArray) -> float:
        """Control-plane time of a round with these transfers between ranks [s]; the least one unless a class says more."""
        return self.shortest_control_s if len(src) else 0.0

    def control_plane(self) -> ControlPlane:
        """The control plane; networks of packets have none."""
        return ControlPlane("nothing", 0.0, "nothing: packets are routed hop by hop", "")

    def cell_grid(self) -> CellGrid:
        """The grid from which jobs get blocks of nodes."""
        n = self.num_machine_nodes
        return CellGrid(np.arange(n).reshape(n, 1), contiguous=True)

    # --- light and cost ---------------------------------------------------------------------------------------------

    @property
    def light_path(self) -> LightPath | None:
        """Elements that the light of circuits passes, or None if no light goes from end to end."""
        return None

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Sizes and distances that the light budget of the machine allows.

        Raises: ParameterError: values are missing.
        """
        return ()

    def parts(self) -> tuple[Part, ...]:
        """Parts of the whole machine, those that the groups of its netlist are bought as; empty if unknown."""
        netlist = self.netlist()
        if netlist is None:
            return ()
        return tuple(Part(kind, count, ports, rate) for (kind, ports, rate), count in netlist.bill().items())

    # --- names and drawings -----------------------------------------------------------------------------------------

    def coordinates(self, node: int) -> str:
        """Name of a node in the paper's terms, for messages."""
        return str(node)

    def node_name(self, node: int) -> str:
        """A node with its coordinates, for messages: "node 3 (1, 1)"."""
        called = self.coordinates(node)
        return f"node {called}" if called.startswith(str(node)) else f"node {node} {called}"

    def place_names(self, resource: int, index: Sequence[int] | IntArray) -> list[str]:
        """Instances of one kind of resource in words: "lasers of port 1 of node 5 (x0=1, x1=1)".

        Args:
            resource: position in `resources`.
            index: instances, each below its count.
        """
        kind, places = self.resources[resource], np.asarray(index).tolist()
        ports, rest = divmod(kind.count, self.num_machine_nodes)
        if kind.kind in _AT_PORTS and not rest:
            which = [f"port {i % ports} of " if ports > 1 else "" for i in places]
            return [
                f"{_AT_PORTS[kind.kind]} of {port}{self.node_name(i // ports)}"
                for port, i in zip(which, places, strict=True)
            ]
        return [self.place_name(kind, i) for i in places]

    def place_name(self, resource: Resource, index: int) -> str:
        """One resource between the nodes in words: a fibre, a switch, a subnet."""
        return f"{resource.kind} {index}"

    def kind_names(self, resource: int, index: IntArray) -> tuple[tuple[str, ...], IntArray]:
        """Finer kinds of instances, such as "node -> leaf", for summaries.

        Returns: the kinds, and the kind of each of `index`, int64 (m,).
        """
        kind = self.resources[resource].kind
        return (_AT_PORTS.get(kind, kind.replace("_", " ")),), np.zeros(len(index), np.int64)
