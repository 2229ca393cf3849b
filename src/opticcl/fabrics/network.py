"""A network of packets that a file describes: nodes, switches and links of any rates.

    node a --300 GB/s--> switch s --300 GB/s--> node b

Readers of formats are in `opticcl.fabrics.networks`. This module decides which vertices are nodes, fills what the file leaves
out from parameters, and refuses what is no network of which every node reaches every other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from math import isclose
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError, TooLargeError, UnsupportedError, printable
from opticcl.fabrics import register_fabric
from opticcl.fabrics._cheapest import cheapest_paths, reached
from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics._failures import FailingFabric
from opticcl.fabrics._packet import Network, PacketFabric, at_least, hash_of, positive_rates
from opticcl.fabrics.networks import read_network
from opticcl.fabrics.networks.circuits import set_circuits
from opticcl.fabrics.networks.file_graph import IN_SERVERS, NODE, Circuit, FileFaultError, FileGraph, FileOptions, Way
from opticcl.ir import Circuits, ControlPlane, Fabric, FabricNumbers, IntArray, Part, PartKind, PartUse, Resource, Usage
from opticcl.ir.limits import limit
from opticcl.ir.occupied import failed_parts
from opticcl.ir.paths import paths_of_rows
from opticcl.routing.reach import connected_parts
from opticcl.units import counted, format_seconds

SHEET = datasheet("network")
MOST_RATES = limit("network.MOST_RATES")
MOST_RATIO = limit("network.MOST_RATIO")
MOST_SCANNED = limit("network.MOST_SCANNED")
LEAST_COST = 1e-6  # of a link of any rate, so that of two paths of one sum of rates the one of fewer links is cheaper
COUNTED = 8  # vertices that a message names


class _Vertices(NamedTuple):
    """Vertices in the order of the network: nodes, then switches inside servers, then the others.

    Args:
        names, kinds: of each.
        number: of each vertex of the file, int64 (vertices,).
        num_nodes, num_inside: how many are nodes, and switches inside servers [count].
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    number: IntArray
    num_nodes: int
    num_inside: int


class _Content(NamedTuple):
    """What was made of a file.

    Args:
        network: links both ways are two links.
        vertices: names and kinds.
        pool: rate that each link has a share of, int64 (links,); None: each has its own.
        notes: what was assumed or left out.
        digest: of the content of the file.
        circuit_switches: that circuits pass.
    """

    network: Network
    vertices: _Vertices
    pool: IntArray | None
    notes: tuple[str, ...]
    digest: str
    circuit_switches: tuple[Circuit, ...]


@register_fabric("network", listed=False)
@dataclass(frozen=True, kw_only=True, repr=False)
class FileNetwork(FileOptions, FailingFabric, PacketFabric):
    """A network that a file describes.

    Args:
        file: path of the file.
        format: of the file; None: as its content says.
        nodes: patterns of names of compute nodes, joined by +, such as b*g*; None: as the file marks them.
        node_key: attribute of vertices that marks nodes; None: kind.
        rate: of links of which the file does not say it; of one of the links that it counts.
        rate_key: attribute of edges that is the rate; None: rate.
        rate_unit: unit of rates that are written without one, such as Gb/s.
        latency: of links of which the file does not say it; None: 0.
        latency_key: attribute of edges that is the latency; None: latency.
        latency_unit: unit of latencies that are written without one, such as us.
        directed: no: links that the file calls directed and writes once lead both ways; None: as the file says.
        duplex: full: both ways of links that share a rate have it each; None: as the file says.
        gpu: generation of the GPUs, such as a100, for the rate and the number of their links.
        nvlink: links of each GPU to NVSwitches, for templates that hold none [count].
        nvlink_rate: of a link between GPUs in one direction; None: that of `gpu`.
        nvswitch: whether equal links between all GPUs lead to NVSwitches; None: as their number says.
        with_pcie: whether PCIe is part of the network; None: where no other links join all GPUs.
        pcie: rate of PCI links in one direction; None: as the file says.
        sys: rate between two CPUs in one direction; None: by their vendor, where the file says it.
        copies: servers of the file that a switch of their network cards joins [count].
        nic_rate: of a network card in one direction; None: as the file says.
        nics: patterns of names of the network cards that join copies, joined by +; None: those at a PCI switch with a GPU.
        edges: that a file may have at most [count].
        relays: whether nodes pass on packets of others; None: where neither switches nor links of each pair join all nodes.
        seed: of the choice between paths of one cost.
        failed: parts that have failed, such as link:3+switch:0.
        content: digest that the file must have; None: any, and that of the file once it is read.
    Raises: FabricError: the file is none, or does not say what decides; one line with the file, the place and the rule.
    Reading: where no path is stated, packets take the shortest path by the sum of 1/rate, then by the number of links;
        of several each pair takes one, as OSPF and ECMP do.
    """

    relays: bool | None = None
    seed: int = 0
    failed: str | None = None
    content: str | None = None

    is_fixed = True
    source = "the file"

    def __post_init__(self) -> None:
        at_least("network", 1, copies=self.copies, edges=self.edges)
        at_least("network", 0, seed=self.seed, latency=self.latency or 0.0)
        rates = ("rate", "nvlink_rate", "pcie", "sys", "nic_rate")
        positive_rates("network", **{name: value for name in rates if (value := getattr(self, name)) is not None})
        at_least("network", 1, nvlink=1 if self.nvlink is None else self.nvlink)
        for name in ("file", "nodes", "nics", "node_key", "rate_key", "latency_key"):
            if "," in (getattr(self, name) or ""):
                raise FabricError(
                    printable(
                        f"network: {name}={getattr(self, name)}: a comma separates parameters; join patterns by +, rename files"
                    )
                )
        if self.content is not None and self.content != self._content.digest:
            raise _refusal(
                self.file, f"its content is {self._content.digest}, not content={self.content[:16]}; it has changed"
            )
        if self._content.network.num_links == 0:
            raise _refusal(self.file, "has no links")
        object.__setattr__(self, "content", self._content.digest)  # so that it is among the parameters

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters by name, without those that are as by default."""
        defaults = {f.name: f.default for f in self.__dataclass_fields__.values()}
        given = {name: getattr(self, name) for name in defaults}
        return {name: value for name, value in given.items() if value != defaults[name]}

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """None: a file has the nodes that it has."""
        return {}

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """None.

        Raises: FabricError: always.
        """
        raise FabricError("network: a file describes one machine, which has no small instance")

    def with_node_rate(self, node_rate_bits_per_s: float) -> Self:
        """The same network, if it has that rate already.

        Raises: FabricError: it has another one; a network from a file is not rescaled.
        """
        if isclose(node_rate_bits_per_s, self.node_rate_bits_per_s):
            return self
        own = f"{self.node_rate_bits_per_s / 1e9:.12g}Gb/s"
        raise _refusal(
            self.file, f"is not rescaled, its nodes send {own}; the others can have that rate: --equal rate={own}"
        )

    # --- the file ---------------------------------------------------------------------------------------------------

    @cached_property
    def _content(self) -> _Content:
        """What the file and the parameters say together."""
        graph, digest = read_network(self, self.content)
        try:
            graph, circuit_switches = set_circuits(graph)
        except FileFaultError as fault:
            raise _refusal(self.file, str(fault)) from None
        vertices = self._vertices(graph)
        links = _links(graph, vertices, self.directed is False, self.duplex == "full")
        rates, latencies = self._filled(graph, links)
        order = np.argsort(-rates, kind="stable")
        tail, head, pool, rates = links.tail[order], links.head[order], links.pool[order], rates[order]
        resources = self._resources(rates)
        network = Network(vertices.num_nodes, tail, head, latencies[order], resources, relays=True)
        _check_joined(self.file, network, vertices, self.directed)
        relays = self.relays if self.relays is not None else not _joined_without_relays(network)
        network = Network(vertices.num_nodes, tail, head, latencies[order], resources, relays)
        shared = len(np.unique(pool)) < len(pool)
        numbers = np.cumsum(np.r_[True, pool[1:] != pool[:-1]]) - 1 if shared else None
        notes = [*graph.notes]
        if relays and self.relays is None:
            notes.append("Nodes pass on packets of others.")
        if self.latency is None and np.isnan(graph.latency_s).any():
            unknown = counted(int(np.count_nonzero(np.isnan(graph.latency_s))), "link")
            notes.append(
                f"No latency in the file of {unknown}: under published latencies they add nothing, latency= says more."
            )
        if circuit_switches:
            slowest = format_seconds(max(one.reconfiguration_s for one in circuit_switches))
            passed = counted(len(circuit_switches), "circuit switch")
            notes.append(f"Circuits through {passed} are set before a job, in {slowest}, and stand while it runs.")
        return _Content(network, vertices, numbers, tuple(notes), digest, circuit_switches)

    def _vertices(self, graph: FileGraph) -> _Vertices:
        """Which vertices are nodes, and their order.

        Raises: FabricError: the file marks none and no parameter names them, or a pattern fits none.
        """
        kinds, names = graph.kinds, graph.names
        if self.nodes is not None:
            patterns = self.nodes.split("+")
            compute = [any(fnmatchcase(name, pattern) for pattern in patterns) for name in names]
        elif NODE in kinds:
            compute = [kind == NODE for kind in kinds]
        elif any(kinds):
            compute = [not kind for kind in kinds]
        else:
            if not graph.lists_vertices:
                raise _refusal(
                    self.file, "an edge list does not say which vertices are nodes; nodes=PATTERN+PATTERN names them"
                )
            compute = [True] * len(names)
        if not any(compute):
            shown = ", ".join(names[:COUNTED])
            which = f"nodes={self.nodes} fits none of the vertices" if self.nodes else "no vertex is a node"
            raise _refusal(self.file, f"{which} {shown}")
        inside = [kind in IN_SERVERS for kind in kinds]
        order = np.lexsort((np.arange(len(names)), ~np.array(inside), ~np.array(compute)))
        number = np.empty(len(names), np.int64)
        number[order] = np.arange(len(names))
        named = tuple(names[k] for k in order)
        count = sum(compute)
        at = sum(one and not other for one, other in zip(inside, compute, strict=True))
        kind_of = tuple("node" if compute[k] else kinds[k] or "switch" for k in order)
        return _Vertices(named, kind_of, number, count, at)

    def _filled(self, graph: FileGraph, links: _Links) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Rates and latencies of the links, those that the file leaves out from the parameters.

        Raises: FabricError: a rate that is unknown.
        """
        rates, latencies = graph.rate_bits_per_s[links.edge], graph.latency_s[links.edge]
        unknown = np.flatnonzero(np.isnan(rates))
        if len(unknown) and self.rate is None:
            edge = int(links.edge[unknown[0]])
            ends = f"{graph.names[graph.source[edge]]} to {graph.names[graph.target[edge]]}"
            line = f"line {graph.line[edge]:,}: " if graph.line[edge] else ""
            hint = f"; {graph.rate_hint}" if graph.rate_hint else ""
            raise _refusal(self.file, f"{line}the link {ends} has no rate, and rate= gives none{hint}")
        rates = np.where(np.isnan(rates), self.rate or 0.0, rates)
        known = SHEET["latency"] if self.latency is None else self.latency
        return rates, np.where(np.isnan(latencies), known, latencies)

    def _resources(self, rates: npt.NDArray[np.float64]) -> tuple[Resource, ...]:
        """Links of one rate each, in the order of the links."""
        values, counts = np.unique(-rates, return_counts=True)
        if len(values) and values[0] < values[-1] * MOST_RATIO:
            raise _refusal(
                self.file,
                f"rates of {-values[-1]:g} to {-values[0]:g} bit/s; a factor of at most {MOST_RATIO:,} is computed with",
            )
        if len(values) > MOST_RATES:
            raise _refusal(self.file, f"links of {len(values):,} rates; at most {MOST_RATES:,}, try rounded ones")
        return tuple(
            Resource("link", int(count), capacity=float(-rate), per_wavelength=False, shared=True)
            for rate, count in zip(values, counts, strict=True)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or left out when the file was read, a sentence each."""
        return self._content.notes

    # --- fabric -----------------------------------------------------------------------------------------------------

    @property
    def network(self) -> Network:
        """All links, the fastest first; those of one rate in the order of the file, there before back."""
        return self._content.network

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The rate is the largest sum of the links that lead out of a node, or into one."""
        network = self.network
        n, rates = network.num_nodes, network.rate_bits_per_s
        most = max(np.bincount(ends, rates, network.num_vertices)[:n].max() for ends in (network.tail, network.head))
        groups = n // self.copies if self.copies > 1 else 0
        return FabricNumbers(num_nodes=n, rate_bits_per_s=float(most), nodes_per_group=groups)

    @property
    def hops_are_links(self) -> bool:  # type: ignore[override]
        """Unless both ways of a link share its rate."""
        return self._content.pool is None

    @property
    def num_hops(self) -> int:
        """Directed links [count]."""
        return self.network.num_links

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Links, by rate; both ways of a link that share its rate are one."""
        pool = self._content.pool
        if pool is None:
            return self.network.resources
        kinds, first = [], 0
        for resource in self.network.resources:
            mine = pool[first : first + resource.count]
            first += resource.count
            kinds.append(
                Resource("link", int(mine[-1] - mine[0]) + 1, resource.capacity, per_wavelength=False, shared=True)
            )
        return tuple(kinds)

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Every link on the way, or the rate that it shares with the way back."""
        pool = self._content.pool
        if pool is None:
            yield from self.network.usage(circuits)
            return
        owner, used, first = circuits.hop_owner(), pool[circuits.hops], 0
        for resource in self.resources:
            mine = (used >= first) & (used < first + resource.count)
            yield Usage(resource, used[mine] - first, owner[mine])
            first += resource.count

    @property
    def rate_pools(self) -> IntArray | None:
        """Both ways of a link that share its rate have one number; see `PacketFabric.rate_pools`."""
        return self._content.pool

    @property
    def lost_links(self) -> npt.NDArray[np.bool_] | None:
        """Those that have failed themselves or lead to or from a switch that has."""
        return np.isinf(self._routing.cost) if self.conditions else None

    @property
    def server_switches(self) -> range:
        """NVSwitches, PCI switches and CPUs."""
        n = self.network.num_nodes
        return range(n, n + self._content.vertices.num_inside)

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """The path of the least sum of 1/rate around failed parts; see the class.

        Raises: UnsupportedError: no path. TooLargeError: more links times receivers than are scanned.
        """
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        table, network = self._routing, self.network
        root, last = table.root[dst], table.last[dst]
        order = np.lexsort((src, root))
        begin, end = src[order], root[order]
        group = np.r_[np.flatnonzero(np.r_[True, end[1:] != end[:-1]]), len(end)] if len(end) else np.zeros(1, np.int64)
        if (len(group) - 1) * network.num_links > MOST_SCANNED:
            raise TooLargeError(
                f"network: {len(group) - 1:,} receivers times {network.num_links:,} links are more than the "
                f"{MOST_SCANNED:,} that are scanned for routes; take an algorithm that states its paths"
            )
        draw = hash_of(src, dst, self.seed, 0)[order]
        ends = network.tail, network.head
        not_through = 0 if network.relays else network.num_nodes
        links = table.cost, table.by_head, table.into, table.by_tail, table.out
        hops, offsets = cheapest_paths(begin, end, group, draw, *ends, *links, not_through)
        lost = np.flatnonzero((np.diff(offsets) == 0) & (begin != end))
        if len(lost):
            pair = order[lost[0]]
            names = " to ".join(self.node_name(int(one)) for one in (src[pair], dst[pair]))
            raise UnsupportedError(
                f"network: no path through switches from {names}{'' if network.relays else '; relays=yes'}"
            )
        back = np.argsort(order)
        hops, offsets = paths_of_rows(hops, offsets, back)
        return _followed_by(hops, offsets, last)

    @cached_property
    def _routing(self) -> _Routing:
        """Costs of the links, infinite for those that have failed, and from where the last link to each node leads."""
        network = self.network
        rates = network.rate_bits_per_s
        cost = rates.max() / rates + LEAST_COST
        dead = np.zeros(network.num_vertices, bool)
        dead[failed_parts(self.conditions, "node")] = True
        dead[failed_parts(self.conditions, "switch") + network.num_nodes] = True
        cost[failed_parts(self.conditions, "link")] = np.inf
        cost[dead[network.tail] | dead[network.head]] = np.inf
        by_head, into = _by_ends(network.head, network.num_vertices)
        by_tail, out = _by_ends(network.tail, network.num_vertices)
        nodes = np.arange(network.num_nodes)
        last = by_head[into[nodes]]
        single = (
            (np.diff(into)[nodes] == 1)
            & (network.relays | (network.tail[last] >= len(nodes)))
            & np.isfinite(cost[last])
        )
        return _Routing(
            cost, by_head, into, by_tail, out, np.where(single, network.tail[last], nodes), np.where(single, last, -1)
        )

    # --- parts ------------------------------------------------------------------------------------------------------

    def inventory(self) -> tuple[PartKind, ...]:
        """Nodes, switches of every kind, directed links."""
        network = self.network
        counts = {
            "node": network.num_nodes,
            "switch": network.num_vertices - network.num_nodes,
            "link": network.num_links,
        }
        return tuple(PartKind(kind, count, weakens=False) for kind, count in counts.items() if count)

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Both ends, and the nodes, the switches and the links on the way."""
        owner, head, n = circuits.hop_owner(), self.network.head[circuits.hops], self.network.num_nodes
        yield PartUse("node", circuits.src.astype(np.int64))
        yield PartUse("node", head[head < n], owner[head < n])
        yield PartUse("switch", head[head >= n] - n, owner[head >= n])
        yield PartUse("link", circuits.hops.astype(np.int64), owner)

    def parts(self) -> tuple[Part, ...]:
        """Switches by kind, ports and rate, and both ends of links; CPUs, PCI switches and links to them are the server's."""
        network, kinds = self.network, np.array(self._content.vertices.kinds)
        rates = network.rate_bits_per_s
        free = np.isin(kinds, ("CPU", "PCI switch"))
        inside = np.isin(kinds, IN_SERVERS)
        outside = ~inside & (kinds != "node")
        leaves = outside[network.tail] | outside[network.head]  # a cable of a network card, at a PCI switch too
        priced = leaves | ~(free[network.tail] | free[network.head])
        backplane = ~leaves & (inside[network.tail] | inside[network.head])
        parts: list[Part] = []
        for kind, mine in (("backplane_end", priced & backplane), ("transceiver", priced & ~backplane)):
            values, counts = np.unique(rates[mine], return_counts=True)
            parts += [Part(kind, int(n), rate_bits_per_s=float(rate)) for rate, n in zip(values, counts, strict=True)]
        ports = np.bincount(network.tail, minlength=len(kinds))
        fastest = np.zeros(len(kinds))
        np.maximum.at(fastest, network.tail, rates)
        for kind, mine in (("nvlink_switch", kinds == "NVSwitch"), ("electrical_switch", outside)):
            each, counts = np.unique(np.stack([ports[mine], fastest[mine]]), axis=1, return_counts=True)
            parts += [Part(kind, int(n), int(p), float(r)) for p, r, n in zip(*each, counts, strict=True) if p]
        of_circuits = Counter(one.ports for one in self._content.circuit_switches)
        parts += [Part("circuit_switch", count, ports=most) for most, count in of_circuits.items()]
        return tuple(parts)

    def control_plane(self) -> ControlPlane:
        """Circuit switches are set before a job; none without them."""
        if not (switches := self._content.circuit_switches):
            return super().control_plane()
        slowest = max(one.reconfiguration_s for one in switches)
        return ControlPlane("circuits are set", slowest, "nothing", self.source)

    # --- names ------------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the vertices in the file, nodes first."""
        return self._content.vertices.names

    def orders(self) -> Iterator[IntArray]:
        """That of the file, and that of the names, with numbers in them by value: b2g0 before b10g0."""
        yield from super().orders()
        parts = [re.split("([0-9]+)", name) for name in self.names[: self.num_nodes]]
        keys = [
            [(len(digits := one.lstrip("0")), digits) if k % 2 else (0, one) for k, one in enumerate(part)]
            for part in parts
        ]
        yield np.argsort(sorted(range(self.num_nodes), key=keys.__getitem__))

    def coordinates(self, node: int) -> str:
        """Number of a node, and its name in the file."""
        name = self.names[node]
        return str(node) if name == str(node) else f"{node} ({name})"

    def vertex_kinds(self) -> tuple[IntArray, tuple[str, ...]]:
        """Kinds of the vertices in the file; see `PacketFabric.vertex_kinds`."""
        kinds = self._content.vertices.kinds[: self.network.num_vertices]
        names = tuple(dict.fromkeys(("node", *kinds)))
        number = {name: k for k, name in enumerate(names)}
        return np.array([number[kind] for kind in kinds]), names

    def switch_name(self, kind: str, number: int) -> str:
        """A switch by its name in the file."""
        mine = [name for name, one in zip(self.names, self._content.vertices.kinds, strict=True) if one == kind]
        return mine[number] if mine[number].startswith(kind) else f"{kind} {mine[number]}"

    def place_names(self, resource: int, index: Sequence[int] | IntArray) -> list[str]:
        """Links by both ends, one that shares its rate with the way back by both ways."""
        pool = self._content.pool
        if pool is None:
            return super().place_names(resource, index)
        first = sum(r.count for r in self.resources[:resource])
        name, network = self._vertex_names(), self.network
        links = np.searchsorted(pool, np.asarray(index) + first)
        both = np.searchsorted(pool, np.asarray(index) + first, "right") - links > 1
        return [
            f"link {name(int(network.tail[k]))} {'<->' if two else '->'} {name(int(network.head[k]))}"
            for k, two in zip(links.tolist(), both.tolist(), strict=True)
        ]

    def kind_names(self, resource: int, index: IntArray) -> tuple[tuple[str, ...], IntArray]:
        """Kinds of links, such as "node -> switch"; see `Fabric.kind_names`."""
        pool = self._content.pool
        if pool is None:
            return super().kind_names(resource, index)
        before = sum(r.count for r in self.resources[:resource])
        links = np.searchsorted(pool, np.asarray(index) + before)
        return super().kind_names(resource, links - sum(r.count for r in self.network.resources[:resource]))


def _refusal(file: str, what: str) -> FabricError:
    """The error for a file, in one printable line."""
    return FabricError(printable(f"network: {file}: {what}"))


class _Routing(NamedTuple):
    """What routes follow from.

    Args:
        cost: of each link, float64 (links,).
        by_head, into: links in the order of their heads, and the first one of each vertex.
        by_tail, out: the same of their tails.
        root: vertex from where the path to each node is decided: the node, or the switch at its only link, int64 (nodes,).
        last: link from there to the node, -1 where they are the same, int64 (nodes,).
    """

    cost: npt.NDArray[np.float64]
    by_head: IntArray
    into: IntArray
    by_tail: IntArray
    out: IntArray
    root: IntArray
    last: IntArray


def _by_ends(ends: IntArray, num_vertices: int) -> tuple[IntArray, IntArray]:
    """Links in the order of one of their ends, and the first one of each vertex, int64 (links,) and (vertices + 1,)."""
    order = np.argsort(ends, kind="stable")
    return order, np.searchsorted(ends[order], np.arange(num_vertices + 1))


class _Links(NamedTuple):
    """Directed links of edges.

    Args:
        tail, head: vertices of the network, int64 (links,).
        edge: of the file, int64 (links,).
        pool: rate that each has, equal for both ways of an edge that share one, int64 (links,).
    """

    tail: IntArray
    head: IntArray
    edge: IntArray
    pool: IntArray


def _links(graph: FileGraph, vertices: _Vertices, both_ways: bool, full_duplex: bool) -> _Links:
    """Links of the edges of a file, there before back.

    Args:
        graph: of the file.
        vertices: their numbers in the network.
        both_ways: whether edges that are directed, and written in one direction alone, lead both ways.
        full_duplex: whether both ways of edges that share a rate have it each.
    """
    source, target, way = vertices.number[graph.source], vertices.number[graph.target], graph.way.copy()
    if both_ways:
        there = source * len(graph.names) + target
        back = target * len(graph.names) + source
        way[(way == Way.ONE) & ~np.isin(back, there[way == Way.ONE])] = Way.BOTH
    if full_duplex:
        way[way == Way.SHARED] = Way.BOTH
    count = np.where(way == Way.ONE, 1, 2)
    edge = np.repeat(np.arange(len(way)), count)
    back = np.r_[False, edge[1:] == edge[:-1]] if len(edge) else np.zeros(0, bool)
    shares = back & (way[edge] == Way.SHARED)
    return _Links(
        np.where(back, target[edge], source[edge]),
        np.where(back, source[edge], target[edge]),
        edge,
        np.cumsum(~shares) - 1,
    )


def _reached(
    network: Network, start: int, through: npt.NDArray[np.bool_], *, back: bool = False
) -> npt.NDArray[np.bool_]:
    """Vertices that links lead to from one, bool (vertices,).

    Args:
        network: all links.
        start: vertex to begin with.
        through: vertices that links are followed from, besides this one.
        back: whether links are followed against their direction.
    """
    tail, head = (network.head, network.tail) if back else (network.tail, network.head)
    vertices: npt.NDArray[np.bool_] = reached(start, *_by_ends(tail, network.num_vertices), head, through)
    return vertices


def _check_joined(file: str, network: Network, vertices: _Vertices, directed: bool | None) -> None:
    """Refuse a network in which some node does not reach all others.

    Raises: FabricError: names the first node that node 0 does not reach, or that does not reach it.
    """
    every = np.ones(network.num_vertices, bool)
    for back in (False, True):
        lost = np.flatnonzero(~_reached(network, 0, every, back=back)[: network.num_nodes])
        if not len(lost):
            continue
        one, other = (vertices.names[k] for k in ((lost[0], 0) if back else (0, lost[0])))
        hint = ""
        if directed is not False and _reached(_undirected(network), 0, every)[: network.num_nodes].all():
            hint = "; as written, links lead one way: directed=no makes them lead both ways"
        raise _refusal(file, f"no path leads from {one} to {other}{hint or '; every node must reach every other'}")


def _undirected(network: Network) -> Network:
    """The same with every link back too."""
    ends = np.r_[network.tail, network.head], np.r_[network.head, network.tail]
    return Network(
        network.num_nodes, *ends, np.r_[network.latency_s, network.latency_s], network.resources, relays=True
    )


def _joined_without_relays(network: Network) -> bool:
    """Whether nodes need pass on nothing: each pair has a link, or each node links to and from one part of the switches."""
    n = network.num_nodes
    near = (network.tail < n) & (network.head < n)
    pairs = np.unique(network.tail[near] * n + network.head[near])
    if len(pairs) == n * (n - 1):
        return True
    between = (network.tail >= n) & (network.head >= n)
    part = connected_parts(network.tail[between], network.head[between], network.num_vertices)
    joins = np.ones(network.num_vertices, bool)
    for node, switch in ((network.tail, network.head), (network.head, network.tail)):
        at_node = (node < n) & (switch >= n)
        distinct = np.unique(part[switch[at_node]] * n + node[at_node]) // n
        joins &= np.bincount(distinct, minlength=network.num_vertices) == n
    return bool(joins.any())


def _followed_by(hops: IntArray, offsets: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Paths with one more link at their ends, where that is not negative."""
    more = np.flatnonzero(last >= 0)
    if not len(more):
        return hops, offsets
    counts = np.diff(offsets)
    longer = counts + (last >= 0)
    ends = np.r_[0, np.cumsum(longer)]
    longer_hops = np.empty(ends[-1], np.int32)
    inner = np.ones(len(longer_hops), bool)
    inner[ends[more + 1] - 1] = False
    longer_hops[inner] = hops
    longer_hops[~inner] = last[more]
    return longer_hops, ends
