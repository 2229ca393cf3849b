"""Part of a machine: a job with some of its nodes, in the order of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.ir import (
    CellGrid,
    Circuits,
    Condition,
    ControlPlane,
    Fabric,
    Fault,
    IntArray,
    Occupied,
    Options,
    Part,
    PartKind,
    PartUse,
    Resource,
    Usage,
)
from opticcl.ir.capacity import Axis, Cut
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.fabric import HopLatency
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import LightPath, Limit, Optics
from opticcl.ir.netlist import Netlist, StateUse
from opticcl.ir.occupied import failed_parts
from opticcl.registry import as_list, whole_number
from opticcl.routing.closed_order import closed_order

__all__ = ["Job", "job", "survivors"]


def job(machine: Fabric, nodes: Iterable[int] | IntArray) -> Job:
    """A job on some nodes of a machine: its ranks are these nodes, in this order.

    Args:
        machine: the whole, or a job on it.
        nodes: node numbers of the machine, each at most once.
    Raises: ParameterError: anything but a list of whole numbers. FabricError: no nodes, one twice, or one that does not
        exist or cannot be used.
    """
    if isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype.kind in "iu":
        chosen = nodes.astype(np.int64)
    else:
        chosen = np.array([whole_number(node, "nodes") for node in as_list(nodes, "nodes", "range(8)")], np.int64)
    limit = machine.num_machine_nodes
    if not len(chosen):
        raise FabricError(f"{machine.name}: a job needs at least one node")
    outside = chosen[(chosen < 0) | (chosen >= limit)]
    if len(outside):
        raise FabricError(f"{machine.name}: there is no node {outside[0]}; try 0 to {limit - 1}")
    if len(np.unique(chosen)) < len(chosen):
        twice = np.flatnonzero(np.bincount(chosen) > 1)[0]
        raise FabricError(f"{machine.name}: node {twice} is given twice; a job has each node once")
    ranks = chosen.astype(np.int32)
    _ranks_on(machine, ranks)  # refuses nodes that cannot be used
    return Job(machine.machine, ranks)


def survivors(machine: Fabric, nodes: IntArray | None = None) -> Fabric:
    """The machine, or a job on the given nodes, without dead nodes.

    Args:
        machine: the whole.
        nodes: of the machine; None: all that can be used.
    Raises: FabricError: all of them are dead.
    """
    dead = failed_parts(machine.conditions, "node")
    if nodes is None and not len(dead):
        return machine  # without an array of all nodes: a file may name any number of them
    usable = machine.machine_nodes(np.arange(machine.num_nodes)) if nodes is None else nodes
    left = usable[~np.isin(usable, dead)]
    if not len(left):
        raise FabricError(f"{machine.name}: all nodes are dead; leave at least one")
    return machine if nodes is None and len(left) == len(usable) else Job(machine, left.astype(np.int32))


@dataclass(frozen=True, eq=False, repr=False)
class Job(Fabric):
    """Some nodes of a machine; all other properties are those of the machine.

    Args:
        whole: the machine.
        nodes: of the machine in the order of the job's ranks, int32 (num_nodes,).
    """

    whole: Fabric
    nodes: IntArray

    def __eq__(self, other: object) -> bool:
        """Equal machines, and the same nodes in the same order."""
        if not isinstance(other, Job):
            return NotImplemented
        return self.whole == other.whole and np.array_equal(self.nodes, other.nodes)

    def __hash__(self) -> int:
        return hash((self.whole, self.nodes.tobytes()))

    @property
    def name(self) -> str:
        """Registered name of the machine."""
        return self.whole.name

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the machine."""
        return self.whole.parameters

    def with_node_rate(self, node_rate_bits_per_s: float) -> Job:
        """The same job on the machine with other transmitters."""
        return Job(self.whole.with_node_rate(node_rate_bits_per_s), self.nodes)

    @property
    def num_nodes(self) -> int:
        """Nodes of the job [count]."""
        return len(self.nodes)

    @property
    def num_wavelengths(self) -> int:
        """Of the machine [count]."""
        return self.whole.num_wavelengths

    @property
    def ports_per_node(self) -> int:
        """Of the machine [count]."""
        return self.whole.ports_per_node

    @property
    def lasers_per_port(self) -> int:
        """Of the machine [count]."""
        return self.whole.lasers_per_port

    @property
    def rate_bits_per_s(self) -> float:
        """Of the machine [bit/s]."""
        return self.whole.rate_bits_per_s

    @property
    def reconfiguration_s(self) -> float:
        """Of the machine [s]."""
        return self.whole.reconfiguration_s

    @property
    def slot_s(self) -> float:
        """Of the machine [s]."""
        return self.whole.slot_s

    @property
    def slot_payload_bytes(self) -> float:
        """Of the machine [bytes]."""
        return self.whole.slot_payload_bytes

    @property
    def latency_s(self) -> float:
        """Of the machine [s]."""
        return self.whole.latency_s

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Of the machine."""
        return self.whole.resources

    @property
    def hops_are_links(self) -> bool:
        """Of the machine."""
        return self.whole.hops_are_links

    @property
    def machine(self) -> Fabric:
        """The whole machine."""
        return self.whole

    @property
    def node_of_rank(self) -> IntArray:
        """Node of each rank, int32 (num_nodes,)."""
        return self.nodes

    @property
    def machine_size(self) -> int:
        """Nodes of the whole machine [count]."""
        return self.whole.num_machine_nodes

    @property
    def dimensions(self) -> tuple[int, ...]:
        """A single line."""
        return (self.num_nodes,)

    def usage(self, circuits: Circuits) -> Iterable[Usage]:
        """Of the machine: circuits join its nodes."""
        return self.whole.usage(circuits)

    def faults(self, circuits: Circuits) -> Iterable[Fault]:
        """Of the machine: circuits join its nodes."""
        return self.whole.faults(circuits)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Of the machine."""
        return self.whole.devices

    def settings(self, circuits: Circuits) -> Iterable[SettingUse]:
        """Of the machine: circuits join its nodes."""
        return self.whole.settings(circuits)

    def links_set(self, circuits: Circuits) -> tuple[IntArray, IntArray, IntArray] | None:
        """Of the machine."""
        return self.whole.links_set(circuits)

    def netlist(self) -> Netlist | None:
        """Of the machine."""
        return self.whole.netlist()

    def states(self, circuits: Circuits) -> Iterable[StateUse]:
        """As on the machine."""
        return self.whole.states(circuits)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """As on the machine."""
        return self.whole.ends(circuits)

    @cached_property
    def _rank_on_machine(self) -> IntArray:
        """Rank of each of the job's nodes among the usable nodes of the machine."""
        return _ranks_on(self.whole, self.nodes)

    def inventory(self) -> tuple[PartKind, ...]:
        """Of the machine."""
        return self.whole.inventory()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Failed parts of the machine."""
        return self.whole.conditions

    def without(self, conditions: Iterable[Condition]) -> Fabric:
        """The job on the machine with further failed parts, without its nodes that are dead.

        Raises: FabricError: no such part, or no node of the job is left.
        """
        return survivors(self.whole.without(conditions).machine, self.nodes)

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Of the machine: circuits join its nodes."""
        return self.whole.parts_used(circuits)

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """Of the machine, between its nodes."""
        return self.whole.options(src, dst)

    @property
    def occupied(self) -> Occupied:
        """Of the machine."""
        return self.whole.occupied

    def part_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Of the machine: circuits join its nodes."""
        return self.whole.part_faults(circuits)

    @property
    def links_all(self) -> bool:
        """As on the machine."""
        return self.whole.links_all

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether one circuit can join two ranks of the job; arrays that broadcast."""
        if self.whole.links_all:
            return self.whole.linked(src, dst)
        return self.whole.linked(self._rank_on_machine[src], self._rank_on_machine[dst])

    def distance(self, src: IntArray, dst: IntArray) -> IntArray | None:
        """Links between two ranks of the job on the machine."""
        return self.whole.distance(self._rank_on_machine[src], self._rank_on_machine[dst])

    def axes(self, nodes: IntArray) -> Iterable[Axis]:
        """Of the machine."""
        return self.whole.axes(nodes)

    def cuts(self, nodes: IntArray) -> Iterable[Cut]:
        """Of the machine."""
        return self.whole.cuts(nodes)

    def shortest_paths_s(
        self, node: int, of_hops: HopLatency
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Of the machine."""
        return self.whole.shortest_paths_s(node, of_hops)

    @property
    def shortest_control_s(self) -> float:
        """Of the machine [s]."""
        return self.whole.shortest_control_s

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Of the machine, between its nodes."""
        return self.whole.route(src, dst)

    def hop_latency_s(self, hops: IntArray) -> npt.NDArray[np.float64] | None:
        """Of the machine [s]."""
        return self.whole.hop_latency_s(hops)

    def passage(self, floor: FloorPlan) -> Passage:
        """Of the machine."""
        return self.whole.passage(floor)

    def hop_passages(self, floor: FloorPlan) -> Passage | None:
        """Of the machine."""
        return self.whole.hop_passages(floor)

    @cached_property
    def _ring_order(self) -> IntArray:
        ranks = np.arange(self.num_nodes)
        if self.linked(ranks, np.roll(ranks, -1)).all():
            return ranks
        rank_of = np.full(self.whole.num_nodes, -1, np.int64)
        rank_of[self._rank_on_machine] = ranks
        order = rank_of[self.whole.ring_order()]
        found = closed_order(order[order >= 0], self.linked)
        return ranks if found is None else found

    def ring_order(self) -> IntArray:
        """Ranks in their own order if neighbours are linked, else in the machine's, repaired where a missing node left a gap.

        Where no such order was found it is their own order, and algorithms that need links between neighbours decline.
        """
        return self._ring_order

    def control_s(self, src: IntArray, dst: IntArray) -> float:
        """Of the machine, between the job's nodes [s]."""
        return self.whole.control_s(self._rank_on_machine[src], self._rank_on_machine[dst])

    def control_plane(self) -> ControlPlane:
        """Of the machine."""
        return self.whole.control_plane()

    def cell_grid(self) -> CellGrid:
        """Of the machine."""
        return self.whole.cell_grid()

    @property
    def light_path(self) -> LightPath | None:
        """Of the machine."""
        return self.whole.light_path

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Of the machine."""
        return self.whole.limits(values)

    def parts(self) -> tuple[Part, ...]:
        """Of the whole machine."""
        return self.whole.parts()

    def coordinates(self, node: int) -> str:
        """Of the machine's node."""
        return self.whole.coordinates(node)

    def place_names(self, resource: int, index: Sequence[int] | IntArray) -> list[str]:
        """Of the machine."""
        return self.whole.place_names(resource, index)

    def kind_names(self, resource: int, index: IntArray) -> tuple[tuple[str, ...], IntArray]:
        """Of the machine."""
        return self.whole.kind_names(resource, index)


def _ranks_on(machine: Fabric, nodes: IntArray) -> IntArray:
    """Ranks of nodes on a machine of which some nodes may be unusable.

    Raises: FabricError: one of them is such a node.
    """
    usable = machine.node_of_rank
    if usable is None:
        return nodes
    rank = np.full(machine.num_machine_nodes, -1, np.int32)
    rank[usable] = np.arange(machine.num_nodes)
    missing = nodes[rank[nodes] < 0]
    if len(missing):
        raise FabricError(
            f"{machine.name}: node {machine.coordinates(int(missing[0]))} is dead or not in the job; leave it out"
        )
    return rank[nodes]
