"""Packet fabrics: directed links between vertices, the paths over them, and the names of links and switches.

A vertex is a node (0 .. num_nodes - 1) or a switch (from num_nodes on). A hop is a link's number. Links of one kind (a
level and a direction, say) stand together and have one rate and one latency.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics._walks import breaks_off, joined
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Resource, Usage, mixed_bits, numbered
from opticcl.ir.capacity import Cut, thresholds
from opticcl.ir.fabric import HopLatency
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.limits import limit
from opticcl.ir.representatives import LightMove
from opticcl.routing.concurrent_flow import concurrent_flow
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum
from opticcl.routing.reach import connected_parts
from opticcl.routing.shared_capacity import shared_bound
from opticcl.units import counted

__all__ = [
    "MAX_NODES",
    "NO_HOP",
    "LinkGroup",
    "Network",
    "PacketFabric",
    "at_least",
    "hash_of",
    "not_too_large",
    "paths_of_columns",
    "positive_rates",
    "tree_tiers",
]

MAX_NODES = 2**22
MAX_LINKS = 2**26  # 24 bytes each
NO_HOP = -1  # in a column of hops, where a path has none
MAX_TIERS = 8  # of switches that a cut is carried up
MOST_LINKS_PASSED = 2**24  # links times their number on the paths whose latency is looked for
MOST_LINKS_CUT = 2**20  # machines with more are not cut for a bound
MOST_FLOWS = limit("packet.MOST_FLOWS")
MOST_NARROWED = 2**27  # vertices times links of a machine whose narrowest cut is found: half a second


class LinkGroup(NamedTuple):
    """Links of one kind.

    Args:
        tail, head: vertices that each link leads from and to, (k,).
        rate_bits_per_s: of each link [bit/s].
        latency_s: of the link and of what stands at its end [s].
    """

    tail: IntArray
    head: IntArray
    rate_bits_per_s: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class Network:
    """All links of a packet fabric.

    Args:
        num_nodes: vertices below are nodes, the others are switches [count].
        tail, head: of every link, int64 (links,).
        latency_s: of every link, float64 (links,) [s].
        resources: links of one rate and neighbouring numbers, in the order of the numbers.
        relays: whether nodes pass on what is not for them (torus, BCube) or only switches do.
    """

    num_nodes: int
    tail: IntArray
    head: IntArray
    latency_s: npt.NDArray[np.float64]
    resources: tuple[Resource, ...]
    relays: bool

    @classmethod
    def of(cls, num_nodes: int, kinds: Sequence[LinkGroup], *, relays: bool = False) -> Network:
        """The network with the links of these kinds, numbered in this order.

        Args:
            num_nodes: vertices below are nodes [count].
            kinds: links, kind by kind.
            relays: whether nodes forward packets of others.
        """
        resources = []
        for rate, neighbours in groupby((k for k in kinds if len(k.tail)), key=lambda k: k.rate_bits_per_s):
            count = sum(len(k.tail) for k in neighbours)
            resources.append(Resource("link", count, capacity=rate, per_wavelength=False, shared=True))
        if not resources:  # one node alone: a fabric still says that it is shared by packets
            resources = [Resource("link", 0, capacity=kinds[0].rate_bits_per_s, per_wavelength=False, shared=True)]
        return cls(
            num_nodes,
            np.concatenate([np.asarray(k.tail, np.int64) for k in kinds]),
            np.concatenate([np.asarray(k.head, np.int64) for k in kinds]),
            np.concatenate([np.full(len(k.tail), k.latency_s) for k in kinds]),
            tuple(resources),
            relays,
        )

    @property
    def num_links(self) -> int:
        """Directed links [count]."""
        return len(self.tail)

    @property
    def num_vertices(self) -> int:
        """Nodes and switches that links join [count]."""
        return max(self.num_nodes, *(int(np.max(side, initial=-1)) + 1 for side in (self.tail, self.head)))

    @property
    def rate_bits_per_s(self) -> npt.NDArray[np.float64]:
        """Of every link, float64 (links,) [bit/s]."""
        return np.concatenate([np.full(r.count, r.capacity) for r in self.resources])

    def latencies_from(
        self, node: int, tail: IntArray, head: IntArray, seconds: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Least latency from a node to every node, float64 (num_nodes,) [s].

        Paths grow by a link at a time. Where that ends before the last of them is found, what is farther takes at least as
        long as that many of the quickest links.

        Args:
            node: where paths begin.
            tail, head: ends of every link, in the direction of the paths.
            seconds: latency of every link [s].
        """
        latency_s = np.full(self.num_vertices, np.inf)
        latency_s[node] = 0.0
        by_tail = np.argsort(tail, kind="stable")
        begin = np.searchsorted(tail[by_tail], np.arange(self.num_vertices + 1))
        links, quickest, reached = 0, float(seconds.min(initial=np.inf)), np.array([node])
        while links * self.num_links <= MOST_LINKS_PASSED:
            links += 1
            count = begin[reached + 1] - begin[reached]
            vertex, nth = numbered(count)
            onward = by_tail[begin[reached][vertex] + nth]
            late, ends = latency_s[tail[onward]] + seconds[onward], np.unique(head[onward])
            before = latency_s[ends]
            np.minimum.at(latency_s, head[onward], late)
            reached = ends[latency_s[ends] < before]
            if not len(reached):
                return latency_s[: self.num_nodes]
        return np.minimum(latency_s, (links + 1) * quickest)[: self.num_nodes]

    def graph(self, nodes: IntArray) -> CapacityGraph:
        """Links between some nodes, which are vertices 0, 1, ... in their order; an arc has the number of its link.

        Other nodes are switches where nodes forward packets of others; their links have no capacity where they do not.

        Args: nodes: that compute, int (n,).
        Raises: UnsupportedError: rates without a common unit.
        """
        vertex = np.full(self.num_vertices, -1)
        vertex[nodes] = np.arange(len(nodes))
        others = np.flatnonzero(vertex < 0)
        vertex[others] = np.arange(len(nodes), len(vertex))
        rate = np.concatenate([np.full(resource.count, resource.capacity) for resource in self.resources])
        made = CapacityGraph.of_rates(len(nodes), len(vertex), vertex[self.tail], vertex[self.head], rate)
        idle = np.zeros(len(vertex), bool)
        idle[others[others < self.num_nodes]] = not self.relays
        return replace(made, capacity=np.where(idle[self.tail] | idle[self.head], 0, made.capacity))

    def leaving(self, nodes: IntArray) -> tuple[float, float]:
        """Capacity of the links that leave a set of nodes, and of those that enter it [bit/s].

        A switch counts as part of the set where most of the links that lead to it come from there: any choice makes a cut.

        Args:
            nodes: of the set.
        """
        inside = np.zeros(self.num_vertices, bool)
        inside[nodes] = True
        rate = self.rate_bits_per_s
        of_switch = self.head >= self.num_nodes
        enters, into = np.bincount(self.head[of_switch], rate[of_switch], self.num_vertices), self.head[of_switch]
        for _ in range(MAX_TIERS):
            from_inside = np.bincount(into, rate[of_switch] * inside[self.tail[of_switch]], self.num_vertices)
            joined = inside.copy()
            joined[self.num_nodes :] = 2 * from_inside[self.num_nodes :] > enters[self.num_nodes :]
            if np.array_equal(joined, inside):
                break
            inside = joined
        out, back = inside[self.tail] & ~inside[self.head], ~inside[self.tail] & inside[self.head]
        return float(rate[out].sum()), float(rate[back].sum())

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Every link on the way."""
        owner = circuits.hop_owner()
        if len(self.resources) == 1:
            yield Usage(self.resources[0], circuits.hops, owner)
            return
        first = 0
        for resource in self.resources:
            mine = (circuits.hops >= first) & (circuits.hops < first + resource.count)
            yield Usage(resource, circuits.hops[mine] - first, owner[mine])
            first += resource.count

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Paths that are no walk from the sender to the receiver."""
        walks = (circuits.hops, circuits.hop_offsets, circuits.src, circuits.dst)
        if not breaks_off(*walks, self.tail, self.head, 0 if self.relays else self.num_nodes):
            return
        hops, owner = circuits.hops, circuits.hop_owner()
        broken = circuits.num_hops() == 0
        broken[owner[(hops < 0) | (hops >= self.num_links)]] = True
        yield Fault("path_broken", np.flatnonzero(broken), f"one link or more, numbered 0 to {self.num_links - 1}")
        if broken.any() or not len(circuits):
            return
        tail, head = self.tail[hops], self.head[hops]
        apart = tail[1:] != head[:-1]
        if not self.relays:
            apart |= tail[1:] < self.num_nodes
        broken[owner[1:][apart & (owner[1:] == owner[:-1])]] = True
        broken |= tail[circuits.hop_offsets[:-1]] != circuits.src
        broken |= head[circuits.hop_offsets[1:] - 1] != circuits.dst
        through = "nodes and switches" if self.relays else "switches"
        yield Fault(
            "path_broken", np.flatnonzero(broken), f"links end to end from sender to receiver through {through}"
        )


class PacketFabric(Fabric):
    """A fabric whose packets share directed links; a hop is the number of a link."""

    hops_are_links = True

    @property
    @abstractmethod
    def network(self) -> Network:
        """All links; computed once."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Links, by rate."""
        return self.network.resources

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Every link on the path."""
        return self.network.usage(circuits)

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Paths that do not lead from the sender to the receiver."""
        return self.network.faults(circuits)

    def moved_by_nodes(self, nodes: IntArray, hops: IntArray | None = None) -> LightMove:
        """A move of nodes and links.

        Args:
            nodes: image of each node, int64 (nodes,).
            hops: of each link; None: links of a kind are numbered as the nodes that they belong to.
        """
        if hops is None:
            first = np.arange(0, self.network.num_links, len(nodes))
            hops = (first[:, None] + nodes).ravel()
        return LightMove(nodes, np.arange(self.ports_per_node), np.arange(self.num_wavelengths), hops)

    def resource_images(self, move: LightMove) -> tuple[IntArray, ...] | None:
        """Images of links that join the images of the vertices that they join, at the same rate and latency."""
        net, hops = self.network, move.hops
        if len(hops) != net.num_links or len(move.nodes) != net.num_nodes:
            return None
        vertex = np.arange(net.num_vertices)
        vertex[net.tail], vertex[net.head] = net.tail[hops], net.head[hops]
        vertex[: net.num_nodes] = move.nodes
        joined = (vertex[net.tail] == net.tail[hops]) & (vertex[net.head] == net.head[hops])
        if (
            not joined.all()
            or (net.latency_s[hops] != net.latency_s).any()
            or (vertex[net.num_nodes :] < net.num_nodes).any()
        ):
            return None
        images, first = [], 0
        for resource in net.resources:
            images.append(hops[first : first + resource.count] - first)
            first += resource.count
        within = all(((image >= 0) & (image < r.count)).all() for image, r in zip(images, net.resources, strict=True))
        return tuple(images) if within else None

    def hop_latency_s(self, hops: IntArray) -> npt.NDArray[np.float64]:
        """Latency of the link and of what stands at its end [s]."""
        return self.network.latency_s[hops]

    def passage(self, floor: FloorPlan) -> Passage:
        """Nothing apart from links, but that the node at the end of a path forwards nothing, where links count it.

        So a path of h links has h - 1 vertices that forward: switches, or nodes where they relay.
        """
        return Passage(switches=-1.0 if self.network.relays else 0.0)

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Length of each link, its receiver and the switch at its end; links within servers have no receiver of that kind.

        A switch whose nodes are all in one rack stands there, every other one at the centre. Where nodes forward packets of
        others, the node at the end of a link counts as a switch; `passage` takes that of the last link away.
        """
        net, servers = self.network, self.server_switches
        rack = floor.rack_of(np.arange(net.num_vertices))
        rack[net.num_nodes :] = _rack_of_switches(net, rack)
        num_racks = floor.racks(net.num_nodes)
        if num_racks == 1:
            rack[:] = 0
        tail, head = rack[net.tail], rack[net.head]
        length = floor.between_m(num_racks, np.maximum(tail, 0), np.maximum(head, 0))
        central, from_centre = (tail < 0) | (head < 0), floor.to_centre_m(num_racks)
        length[central] = from_centre[np.maximum(tail, head)[central]]
        length[(tail < 0) & (head < 0)] = floor.overhead_m
        at_switch = net.head >= net.num_nodes
        in_server, from_server = ((end >= servers.start) & (end < servers.stop) for end in (net.head, net.tail))
        forwards = ~in_server & (at_switch | net.relays)
        return Passage(
            fibre_m=length,
            receivers=(~(in_server | from_server)).astype(np.float64),
            switches=forwards.astype(np.float64),
            server_switches=in_server.astype(np.float64),
        )

    @property
    def server_switches(self) -> range:
        """Vertices that are switches within a server."""
        return range(0)

    @property
    def rate_pools(self) -> IntArray | None:
        """Number of the rate that each link has a share of, int64 (links,); None: every link has its own."""
        return None

    @property
    def lost_links(self) -> npt.NDArray[np.bool_] | None:
        """Whether each link has failed, bool (links,); None: none has."""
        return None

    def graph(self, nodes: IntArray) -> CapacityGraph:
        """Links that work between some nodes; see `Network.graph`."""
        made, lost = self.network.graph(nodes), self.lost_links
        return made if lost is None else replace(made, capacity=np.where(lost, 0, made.capacity))

    def orders(self) -> Iterator[IntArray]:
        """Orders of the nodes in which digits of their places may be translated, the place of each node, int64 (nodes,)."""
        yield np.arange(self.num_nodes)

    def shortest_paths_s(
        self, node: int, of_hops: HopLatency
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Over any links, through nodes too [s]; on large machines only a lower bound of it."""
        network = self.network
        seconds = of_hops(np.arange(network.num_links))
        if seconds is None or not len(seconds):
            return super().shortest_paths_s(node, of_hops)
        there = network.latencies_from(node, network.tail, network.head, seconds)
        return there, network.latencies_from(node, network.head, network.tail, seconds)

    def cuts(self, nodes: IntArray) -> Iterator[Cut]:
        """The narrowest for an all-gather, the nodes of the first coordinates of each dimension, the first nodes by number."""
        n = self.network.num_nodes
        if self.network.num_links > MOST_LINKS_CUT:
            return
        yield from self.narrowest_cuts(nodes)
        whole = np.arange(n)
        sides = self.dimensions if len(self.dimensions) > 1 else ()
        strides = [prod(sides[d + 1 :]) for d in range(len(sides))]
        for d, (side, stride) in enumerate(zip(sides, strides, strict=True)):
            for first in thresholds(nodes // stride % side):
                below = whole // stride % side < first
                yield Cut(f"cut of dimension {d}", below[nodes], *self.network.leaving(whole[below]))
        ends = {1 << bits for bits in range(1, n.bit_length())} | {*thresholds(nodes), self._behind_first_switch}
        for first in sorted(end for end in ends if 0 < end < n):
            yield Cut(f"links of nodes 0 to {first - 1}", nodes < first, *self.network.leaving(whole[:first]))

    def narrowest_cuts(self, nodes: IntArray) -> Iterator[Cut]:
        """The cut that bounds an all-gather among some nodes most of all cuts, and that of a reduce-scatter if it is another.

        Nothing on large machines, or where rates have no common unit; see `opticcl.routing.forest.optimum`.

        Args: nodes: of the machine, int (n,).
        """
        network, n = self.network, len(nodes)
        if network.num_vertices * network.num_links > MOST_NARROWED:
            return
        with suppress(UnsupportedError):
            graph = self.graph(nodes)
            there, back = optimum(graph), optimum(replace(graph, tail=graph.head, head=graph.tail))
            if there is None or back is None:
                return
            for inside in (there.inside, ~back.inside)[: 1 if np.array_equal(there.inside, back.inside) else 2]:
                widths = [graph.leaving(side) for side in (inside, ~inside)]
                parts, most = _parts(graph, inside)
                where = _between(nodes[inside[:n]], nodes[~inside[:n]])
                leaves, enters = (width * graph.unit_bits_per_s for width in widths)
                yield Cut(where, inside[:n], leaves, enters, parts if most <= min(widths) else 2)

    def flow_s_per_bit(self, nodes: IntArray, collective: str) -> float:
        """What the prices of links prove of the flow between these nodes; 0 on larger machines, and where cuts prove as much.

        See `opticcl.routing.concurrent_flow`, and `opticcl.routing.shared_capacity` where both ways of links share a rate.
        """
        network, pools = self.network, self.rate_pools
        if (
            len(nodes) * network.num_links > MOST_FLOWS
            or len(nodes) < 2
            or (collective != "all_to_all" and pools is None)
        ):
            return 0.0
        with suppress(UnsupportedError):
            graph = self.graph(nodes)
            if collective == "all_to_all":
                # nodes that forward nothing may still send data of others, in a later step
                return float(concurrent_flow(graph, pools, relays=True).bound) / graph.unit_bits_per_s
            if collective == "reduce_scatter":
                graph = replace(graph, tail=graph.head, head=graph.tail)
            assert pools is not None
            return float(shared_bound(graph, pools)) / graph.unit_bits_per_s
        return 0.0

    @property
    def _behind_first_switch(self) -> int:
        """The first node behind all that share a switch with node 0."""
        network = self.network
        switches = network.head[(network.tail == 0) & (network.head >= network.num_nodes)]
        near = network.tail[np.isin(network.head, switches) & (network.tail < network.num_nodes)]
        return int(near.max(initial=0)) + 1

    # --- names of links and switches --------------------------------------------------------------------------------

    def vertex_kinds(self) -> tuple[IntArray, tuple[str, ...]]:
        """Kind of each vertex, int64 (vertices,), and the names of the kinds; kind 0 is "node"."""
        kind = np.zeros(self.network.num_vertices, np.int64)
        kind[self.network.num_nodes :] = 1
        return kind, ("node", "switch")

    def switch_name(self, kind: str, number: int) -> str:
        """A switch by its kind and its number among those of its kind."""
        return f"{kind} {number}"

    def place_names(self, resource: int, index: Sequence[int] | IntArray) -> list[str]:
        """Links by both ends: "link leaf 0 -> node 6 (leaf 0)"; see `Fabric.place_names`."""
        link = np.asarray(index) + sum(r.count for r in self.resources[:resource])
        vertex = self._vertex_names()
        pairs = zip(self.network.tail[link].tolist(), self.network.head[link].tolist(), strict=True)
        return [f"link {vertex(tail)} -> {vertex(head)}" for tail, head in pairs]

    def kind_names(self, resource: int, index: IntArray) -> tuple[tuple[str, ...], IntArray]:
        """Kinds of links, such as "node -> leaf"; see `Fabric.kind_names`."""
        kind, names = self.vertex_kinds()
        link = np.asarray(index) + sum(r.count for r in self.resources[:resource])
        pair = kind[self.network.tail[link]] * len(names) + kind[self.network.head[link]]
        kinds, of_link = np.unique(pair, return_inverse=True)
        return tuple(f"{names[k // len(names)]} -> {names[k % len(names)]}" for k in kinds.tolist()), of_link

    def _vertex_names(self) -> Callable[[int], str]:
        kind, names = self.vertex_kinds()
        number = np.zeros(len(kind), np.int64)  # of each switch among those of its kind
        for k in range(1, len(names)):
            mine = np.flatnonzero(kind == k)
            number[mine] = np.arange(len(mine))

        def name(vertex: int) -> str:
            if vertex < self.network.num_nodes:
                return self.node_name(vertex)
            return self.switch_name(names[kind[vertex]], int(number[vertex]))

        return name


def _parts(graph: CapacityGraph, inside: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Sets of nodes that are left together without all links as wide as those across a cut, and the most that passes one.

    Args:
        graph: the network.
        inside: one side of the cut, bool (vertices,).
    Returns: sets [count], capacity that leaves or enters one of them [units].
    """
    across = inside[graph.tail] != inside[graph.head]
    stays = ~np.isin(graph.capacity, graph.capacity[across])
    part = connected_parts(graph.tail[stays], graph.head[stays], graph.num_vertices)
    tail, head = part[graph.tail], part[graph.head]
    leaves, enters = (np.bincount(end[tail != head], graph.capacity[tail != head], len(part)) for end in (tail, head))
    sets = np.unique(part[: graph.num_compute])
    return len(sets), int(max(leaves[sets].max(), enters[sets].max()))


def _between(nodes: IntArray, others: IntArray) -> str:
    """Name of the cut between nodes and others, such as "cut of 24 nodes from nodes 0 to 7"."""
    few, many = sorted((nodes, others), key=len)
    first, last = int(few.min()), int(few.max())
    names = counted(len(few), "other")
    if last - first + 1 == len(few):
        names = f"node {first}" if first == last else f"nodes {first} to {last}"
    return f"cut of {counted(len(many), 'node')} from {names}"


def _rack_of_switches(network: Network, rack: IntArray) -> IntArray:
    """Rack of each switch whose nodes are all in one rack, else -1, int64 (switches,).

    Args:
        network: all links.
        rack: of the nodes, the first entries of an array of all vertices.
    """
    n, switches = network.num_nodes, network.num_vertices - network.num_nodes
    least, most = np.full(switches, np.iinfo(np.int64).max), np.full(switches, -1)
    joined = (network.tail < n) & (network.head >= n)
    np.minimum.at(least, network.head[joined] - n, rack[network.tail[joined]])
    np.maximum.at(most, network.head[joined] - n, rack[network.tail[joined]])
    return np.where(least == most, most, -1)


def tree_tiers(network: Network) -> tuple[IntArray, tuple[str, ...]]:
    """Kinds of the vertices of a tree, as `PacketFabric.vertex_kinds` returns them: nodes, leaves, spines and higher tiers.

    Switches belong to one tier if packets need as many links from them down to a node; a vertex without links is of kind -1.
    """
    distance = np.full(network.num_vertices, -1)
    distance[: network.num_nodes] = 0
    away = 0
    while True:
        next_out = network.tail[(distance[network.head] == away) & (distance[network.tail] < 0)]
        if not len(next_out):
            break
        away += 1
        distance[next_out] = away
    return distance, ("node", *_TIERS[:away])


_TIERS = ("leaf", "spine", "core", "top switch")


def paths_of_columns(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """(hops, hop_offsets) of paths given hop by hop: one array a hop, NO_HOP where a path has none there.

    >>> paths_of_columns([np.array([4, -1]), np.array([5, 6])])
    (array([4, 5, 6], dtype=int32), array([0, 2, 3]))
    """
    return joined(np.stack([np.asarray(column, np.int32) for column in columns]))


def hash_of(src: IntArray, dst: IntArray, seed: int, salt: int) -> IntArray:
    """A non-negative number for each pair that looks random and is always the same (splitmix64).

    Args:
        src, dst: of each pair, int (n,).
        seed: of the draw.
        salt: another draw for the same pair and seed.
    """
    mixed = (np.asarray(src, np.uint64) << np.uint64(32)) ^ np.asarray(dst, np.uint64)
    mixed = np.atleast_1d(mixed)
    for word in (seed, salt):
        mixed = mixed_bits(mixed + np.uint64(0x9E3779B97F4A7C15 * (2 * word + 1) % 2**64))
    return (mixed >> np.uint64(1)).astype(np.int64)


def at_least(fabric: str, least: float, **values: float) -> None:
    """Refuse values below `least`.

    Raises: FabricError: names the first such value.
    """
    for name, value in values.items():
        if value < least:
            raise FabricError(f"{fabric}: {name}={value:g}; at least {least:g}")


def positive_rates(fabric: str, rate_factor: float = 1.0, **rates: float) -> None:
    """Refuse rates, and a factor of all of them, that are not positive.

    Raises: FabricError: names the first of them.
    """
    for name, rate in rates.items():
        if not rate > 0:
            raise FabricError(f"{fabric}: {name}={rate:g} bit/s; more than 0, try 400Gb/s")
    if not rate_factor > 0:
        raise FabricError(f"{fabric}: rate_factor={rate_factor:g}; more than 0, try 1")


def not_too_large(fabric: str, nodes: int, links: int = 0) -> None:
    """Refuse what would fill the memory, before an array is made.

    Args:
        fabric: name, for messages.
        nodes: [count].
        links: directed [count].
    Raises: FabricError: names the number.
    """
    for what, count, most in (("nodes", nodes, MAX_NODES), ("links", links, MAX_LINKS)):
        if count > most:
            raise FabricError(f"{fabric}: {count:,} {what}; at most {most:,}, try fewer nodes or switches")
