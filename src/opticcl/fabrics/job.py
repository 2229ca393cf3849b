"""Part of a machine: a job with some of its nodes, in the order of its ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.ir import Circuits, Condition, Fabric, FabricNumbers, Fault, IntArray, Resource, Usage
from opticcl.ir.occupied import failed_parts
from opticcl.ir.sub_grid import sub_grid
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

    def with_node_rate(self, node_rate_bits_per_s: float) -> Job:
        """The same job on the machine with other transmitters."""
        return Job(self.whole.with_node_rate(node_rate_bits_per_s), self.nodes)

    @cached_property
    def numbers(self) -> FabricNumbers:
        """Of the machine, with the part of its grid that the job's nodes are; a single line if they are none."""
        count, values = len(self.nodes), sub_grid(self.whole.dimensions, self.nodes)
        sides = tuple(len(some) for some in values or () if len(some) > 1) or (count,)
        return replace(
            self.whole.numbers, num_nodes=count, dimensions=sides, nodes_per_group=0, double_ring_bits_per_s=0.0
        )

    @cached_property
    def equivalent(self) -> Fabric | None:
        """What the machine says that the job's nodes are like."""
        return self.whole.sub_machine(self.nodes)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Of the machine."""
        return self.whole.resources

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

    def usage(self, circuits: Circuits) -> Iterable[Usage]:
        """Of the machine: circuits join its nodes."""
        return self.whole.usage(circuits)

    def faults(self, circuits: Circuits) -> Iterable[Fault]:
        """Of the machine: circuits join its nodes."""
        return self.whole.faults(circuits)

    @cached_property
    def _rank_on_machine(self) -> IntArray:
        """Rank of each of the job's nodes among the usable nodes of the machine."""
        return _ranks_on(self.whole, self.nodes)

    def without(self, conditions: Iterable[Condition]) -> Fabric:
        """The job on the machine with further failed parts, without its nodes that are dead.

        Raises: FabricError: no such part, or no node of the job is left.
        """
        return survivors(self.whole.without(conditions).machine, self.nodes)

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether one circuit can join two ranks of the job; arrays that broadcast."""
        if self.whole.links_all:
            return self.whole.linked(src, dst)
        return self.whole.linked(self._rank_on_machine[src], self._rank_on_machine[dst])

    def distance(self, src: IntArray, dst: IntArray) -> IntArray | None:
        """Links between two ranks of the job on the machine."""
        return self.whole.distance(self._rank_on_machine[src], self._rank_on_machine[dst])

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


_OF_MACHINE = (
    "name", "parameters", "hops_are_links", "inventory", "conditions", "occupied", "parts_used", "part_faults", "options",
    "devices", "settings", "links_set", "netlist", "states", "ends", "route", "links_all", "axes", "cuts",
    "shortest_paths_s", "hop_latency_s", "passage", "hop_passages", "control_plane", "cell_grid", "light_path", "limits",
    "parts", "coordinates", "place_names", "kind_names",
)  # fmt: skip
"""Members that a job has from its machine, whose nodes its circuits join."""


def _of_machine(name: str) -> Any:
    """A member of `Fabric` that is the machine's."""
    member = getattr(Fabric, name)
    if not callable(member):
        return property(lambda job: getattr(job.whole, name))

    @wraps(member)
    def call(job: Job, *given: Any, **named: Any) -> Any:
        return getattr(job.whole, name)(*given, **named)

    return call


for _name in _OF_MACHINE:
    setattr(Job, _name, _of_machine(_name))


def _ranks_on(machine: Fabric, nodes: IntArray) -> IntArray:
    """Ranks of nodes on a machine of which some nodes may be unusable.

    Raises: FabricError: one of them is such a node.
    """
    ranks = machine.ranks_at(nodes)
    missing = nodes[ranks < 0]
    if len(missing):
        raise FabricError(
            f"{machine.name}: node {machine.coordinates(int(missing[0]))} is dead or not in the job; leave it out"
        )
    return ranks
