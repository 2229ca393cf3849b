"""Part of a machine: a job with some of its nodes, in the order of its ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.ir import Circuits, Condition, Fabric, FabricNumbers, Fault, IntArray, Resource, Usage
from opticcl.ir.occupied import failed_parts
from opticcl.ir.sub_grid import sub_grid
from opticcl.registry import as_list, whole_number
from opticcl.routing.closed_order import closed_order

__all__ = ["Groups", "Job", "groups", "job", "survivors"]


def job(machine: Fabric, nodes: Iterable[int] | IntArray, *, shares: bool = False) -> Job:
    """A job on some nodes of a machine: its ranks are these nodes, in this order.

    Args:
        machine: the whole, or a job on it.
        nodes: node numbers of the machine, each at most once.
        shares: whether the system's own algorithms use no more of what all nodes have in common, as the wavelengths of a ring,
            than the share of the nodes; else all of it.
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
    return Job(machine.machine, ranks, share=-(-machine.num_machine_nodes // len(ranks)) if shares else 1)


def groups(machine: Fabric, members: Iterable[Iterable[int] | IntArray]) -> Fabric:
    """Groups of nodes that each do the same collective at the same time, on disjoint parts of one machine.

    Ranks are those of the first group, then those of the second, and so on.

    Args:
        machine: the whole, or a job on it.
        members: nodes of each group in the order of its ranks; equally many.
    Raises: ParameterError: anything but lists of whole numbers. FabricError: no group, groups of different sizes, a node in two
        of them, or one that does not exist or cannot be used; the text names the group and the node.
    """
    parts = []
    for number, nodes in enumerate(members):
        try:
            parts.append(job(machine, nodes))
        except FabricError as error:
            raise FabricError(f"group {number}: {error}") from None
    if not parts:
        raise FabricError(f"{machine.name}: groups of nodes are at least one")
    chosen = [part.chosen for part in parts]
    count = len(chosen[0])
    for number, each in enumerate(chosen):
        if len(each) != count:
            raise FabricError(f"group {number}: {len(each)} nodes, group 0 has {count}; groups are of one size")
    nodes = np.concatenate(chosen)
    order = np.argsort(nodes, kind="stable")
    twice = np.flatnonzero(nodes[order][1:] == nodes[order][:-1])
    if len(twice):
        one, other = order[twice[0]] // count, order[twice[0] + 1] // count
        raise FabricError(
            f"group {other}: node {nodes[order[twice[0]]]} is in group {one} too; groups have no node in common"
        )
    return parts[0] if len(parts) == 1 else Groups(machine.machine, nodes, len(parts))


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
    """Some nodes of a machine; all other properties are those of the machine, the parameters of its class too.

    Args:
        whole: the machine.
        chosen: nodes of the machine in the order of the job's ranks, int32 (num_nodes,).
        share: of how many equal shares of what all nodes have in common the job has one, that of its place; 1: it has all.
    """

    whole: Fabric
    chosen: IntArray
    share: int = field(default=1, kw_only=True)

    def __eq__(self, other: object) -> bool:
        """Equal machines, and the same nodes in the same order."""
        if not isinstance(other, Job):
            return NotImplemented
        same = self.whole == other.whole and np.array_equal(self.chosen, other.chosen)
        return same and (self.share, self.num_members) == (other.share, other.num_members)

    def __hash__(self) -> int:
        return hash((self.whole, self.chosen.tobytes(), self.share, self.num_members))

    def __getattr__(self, name: str) -> Any:
        """What the class of the machine adds to the members of `Fabric`: its parameters and its own methods."""
        if name.startswith("_") or "whole" not in self.__dict__:  # a job that is being unpickled has no machine yet
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(self.whole, name)

    def with_node_rate(self, node_rate_bits_per_s: float) -> Self:
        """The same job on the machine with other transmitters."""
        return replace(self, whole=self.whole.with_node_rate(node_rate_bits_per_s))

    @cached_property
    def numbers(self) -> FabricNumbers:
        """Of the machine, with the part of its grid that the job's nodes are; a single line if they are none."""
        count, values = len(self.chosen), sub_grid(self.whole.dimensions, self.chosen)
        sides = tuple(len(some) for some in values or () if len(some) > 1) or (count,)
        return replace(
            self.whole.numbers, num_nodes=count, dimensions=sides, nodes_per_group=0, double_ring_bits_per_s=0.0
        )

    @cached_property
    def equivalent(self) -> Fabric | None:
        """What the machine says that the job's nodes are like, with its share of what they have in common with others."""
        alone = self.whole.sub_machine(self.chosen)
        return alone and alone.shared(self.share)

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
        return self.chosen

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
        return _ranks_on(self.whole, self.chosen)

    def without(self, conditions: Iterable[Condition]) -> Fabric:
        """The job on the machine with further failed parts, without its nodes that are dead.

        Raises: FabricError: no such part, or no node of the job is left.
        """
        return survivors(self.whole.without(conditions).machine, self.chosen)

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
        repaired = closed_order(order[order >= 0], self.linked)
        return ranks if repaired is None else repaired

    def ring_order(self) -> IntArray:
        """Ranks in their own order if neighbours are linked, else in the machine's, repaired where a missing node left a gap.

        Where no such order was found it is their own order, and algorithms that need links between neighbours decline.
        """
        return self._ring_order

    def control_s(self, src: IntArray, dst: IntArray) -> float:
        """Of the machine, between the job's nodes [s]."""
        return self.whole.control_s(self._rank_on_machine[src], self._rank_on_machine[dst])


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Job):
    """Groups of nodes of a machine that each do the same at the same time.

    Args:
        count: of the groups; nodes are those of one after the other.
    """

    count: int

    @property
    def num_members(self) -> int:
        """Number of groups [count]."""
        return self.count

    @cached_property
    def _parts(self) -> tuple[Job, ...]:
        return tuple(Job(self.whole, nodes) for nodes in np.split(self.chosen, self.count))

    @property
    def member(self) -> Job:
        """The first group."""
        return self._parts[0]

    @cached_property
    def equivalent(self) -> Fabric | None:
        """What every group's nodes are like, with the wavelengths that each has of those that they share."""
        first = self.member.equivalent
        if first is None or any(part.equivalent != first for part in self._parts[1:]):
            return None
        return first.shared(self.count)

    def without(self, conditions: Iterable[Condition]) -> Groups:
        """The same groups on the machine with further failed parts.

        Raises: FabricError: no such part, or a node of a group is dead.
        """
        machine = self.whole.without(conditions).machine
        _ranks_on(machine, self.chosen)
        return Groups(machine, self.chosen, self.count)


_OF_MACHINE = (
    "name", "parameters", "notes", "hops_are_links", "num_hops", "inventory", "conditions", "occupied", "parts_used",
    "part_faults", "options",
    "devices", "settings", "links_set", "netlist", "states", "ends", "route", "links_all", "axes", "cuts",
    "flow_s_per_bit", "shortest_paths_s", "hop_latency_s", "passage", "hop_passages", "control_plane", "cell_grid",
    "light_path", "limits", "parts", "coordinates", "place_names", "kind_names",
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
