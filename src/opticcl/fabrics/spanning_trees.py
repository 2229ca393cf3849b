"""Spanning trees of the ranks of a job on a packet fabric, which together use its links as far as its narrowest cut allows.

A link of a tree is a pair of ranks whose route passes no other rank. Where such trees take over 1 % more than the narrowest cut
of all links, packets leave the routes of the fabric: a link of a tree is then any path past no other rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.fabrics._packet import PacketFabric
from opticcl.ir import Fabric, IntArray
from opticcl.ir.limits import ROUTES_AT_ONCE, limit
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum
from opticcl.routing.forest.packing import TreePacking, pack
from opticcl.routing.forest.symmetry import translations
from opticcl.routing.forest.translated_paths import pack_translations
from opticcl.routing.forest.translation import TranslatedTree, translated_tree
from opticcl.routing.shared_capacity import shared_capacity

__all__ = [
    "TranslatedTree",
    "TreePacking",
    "has_network",
    "num_splittings",
    "one_tree_for_all",
    "ranks_closed",
    "spanning_trees",
]

MOST_SHARED = limit("spanning_trees.MOST_SHARED")
WITHIN = Fraction(1, 100)
"""What trees may take more than the narrowest cut."""


def has_network(fabric: Fabric) -> bool:
    """Whether packets pass links between nodes and switches, one after the other."""
    return isinstance(fabric.machine, PacketFabric)


def ranks_closed(fabric: Fabric) -> IntArray | None:
    """Ranks from which no links that work lead to the others, the fewest, int64; None if every rank reaches all.

    Args: fabric: with a network: a machine or a job on one.
    """
    machine, n = fabric.machine, fabric.num_nodes
    assert isinstance(machine, PacketFabric)
    graph = machine.graph(fabric.machine_nodes(np.arange(n)))
    works = graph.capacity > 0
    tail, head = graph.tail[works], graph.head[works]
    reach = np.eye(n, graph.num_vertices, dtype=bool)
    while True:
        further = reach.copy()
        np.logical_or.at(further.T, head, reach.T[tail])
        if np.array_equal(further, reach):
            break
        reach = further
    sizes = reach[:, :n].sum(axis=1)
    return None if sizes.min() == n else np.flatnonzero(reach[int(sizes.argmin()), :n])


@lru_cache(maxsize=64)
def spanning_trees(
    fabric: Fabric, root: int | None, inwards: bool, fewest: int, translated: bool
) -> TreePacking | None:
    """The fewest trees whose time is within 1 % of the narrowest cut; None: none were found.

    They are on routes, or else on any paths, or else on routes and within 1 % of the narrowest cut between ranks on routes.
    Trees of all ranks towards the roots are those out of them turned round, where every link leads back as widely and so do the
    routes: one packing then serves an all_gather, a reduce_scatter and an all_reduce.

    Args:
        fabric: with a network: a machine or a job on one.
        root: rank of all trees; None: every rank is the root of as many.
        inwards: whether data goes towards the roots: the trees lead out of them on the links turned round.
        fewest: trees a root [count].
        translated: whether only trees are looked for that are translations of those of one rank, on any paths.
    Raises: UnsupportedError: rates without a common unit, or ranks that no links lead to.
    """
    machine, nodes = fabric.machine, fabric.machine_nodes(np.arange(fabric.num_nodes))
    assert isinstance(machine, PacketFabric)
    graph = machine.graph(nodes)
    routes = [] if translated else _routes(fabric, graph)
    if inwards and root is None and machine.rate_pools is None and (back := _turned(graph)) is not None:
        if (out := spanning_trees(fabric, None, False, fewest, translated)) is None:
            return None
        paths = [tuple(back[list(path)].tolist()) for path in out.ways.path]
        used = np.unique(out.way[out.way >= 0]).tolist()
        if not out.routed or {paths[way] for way in used} <= {route[::-1] for route in routes}:
            return out._replace(ways=out.ways._replace(path=paths))
    if inwards:
        graph, routes = replace(graph, tail=graph.head, head=graph.tail), [route[::-1] for route in routes]
    if machine.rate_pools is not None:
        graph = _divided(graph, machine.rate_pools, root)
    best = optimum(graph, root)
    if best is None:
        return None
    if translated:
        every = (translations(graph, np.argsort(order[nodes], kind="stable")) for order in machine.orders())
        packings = (
            pack_translations(graph, best, one, within=WITHIN, fewest=fewest) for one in every if one is not None
        )
        return next((packing for packing in packings if packing is not None), None)
    on_routes = np.isin(np.arange(len(graph.tail)), [arc for route in routes for arc in route])
    kept = replace(graph, capacity=np.where(on_routes, graph.capacity, 0))
    routed = None
    with suppress(UnsupportedError):  # a rank that no route leads to past no other
        routed = optimum(kept, root)
    most = best.time * (1 + WITHIN)
    packing = None
    if routed is not None and routed.time <= most:
        packing = pack(kept, routed, root, within=most / routed.time - 1, fewest=fewest, routes=routes)
    packing = packing or pack(graph, best, root, within=WITHIN, fewest=fewest)
    if packing is None and routed is not None:
        packing = pack(kept, routed, root, within=WITHIN, fewest=fewest, routes=routes)
    return packing


def num_splittings(fabric: Fabric) -> int:
    """Vertices of the machine that are not ranks, switches and nodes of others, times ranks [count].

    Args: fabric: with a network: a machine or a job on one.
    """
    machine = fabric.machine
    assert isinstance(machine, PacketFabric)
    return fabric.num_nodes * (machine.network.num_vertices - fabric.num_nodes)


@lru_cache(maxsize=64)
def one_tree_for_all(fabric: Fabric, inwards: bool) -> TranslatedTree | None:
    """A tree whose translations together take at most 1 % more than the narrowest cut; None where none is found.

    Args:
        fabric: with a network: a machine or a job on one.
        inwards: as in `spanning_trees`.
    Raises: UnsupportedError: as `spanning_trees`.
    """
    machine, n = fabric.machine, fabric.num_nodes
    assert isinstance(machine, PacketFabric)
    nodes = fabric.machine_nodes(np.arange(n))
    if machine.rate_pools is not None:  # capacities are divided for trees of all roots
        return None
    graph = machine.graph(nodes)
    best = optimum(graph)
    for radices, order in _digits(fabric, graph, nodes):
        classes = _Classes(fabric, graph, nodes if order is None else nodes[order], radices, inwards)
        cost, length = classes.costs()
        tree = translated_tree(radices, cost, length) if np.isfinite(cost).any() else None
        if tree is None or best is None:
            continue
        every = np.arange(1, n)
        taken, times = np.unique(tree.moved(every, tree.parent[1:], -1), return_counts=True)
        load = sum(
            count * classes.load(hops) for count, (hops, _) in zip(times.tolist(), classes.routes(taken), strict=True)
        )
        if (load / np.maximum(graph.capacity, 1)).max() <= best.time * (1 + WITHIN):
            return tree._replace(order=order)
    return None


def _digits(fabric: Fabric, graph: CapacityGraph, nodes: IntArray) -> Iterator[tuple[tuple[int, ...], IntArray | None]]:
    """Radices of digits of ranks whose translations may be symmetries, and the rank at each place.

    Args:
        fabric: a machine or a job on one.
        graph: its links.
        nodes: of all ranks, int (ranks,).
    """
    n = len(nodes)
    shapes = [fabric.dimensions] if prod(fabric.dimensions) == n else []
    near = _nearest(fabric, graph, nodes)
    shapes += [(n // near, near)] if 1 < near < n and n % near == 0 else []
    yield from ((shape, None) for shape in shapes)
    assert isinstance(fabric.machine, PacketFabric)
    for number, of_machine in enumerate(fabric.machine.orders()):
        order = np.argsort(of_machine[nodes], kind="stable")
        symmetry = translations(graph, order)
        if symmetry is not None and (number or symmetry.radices not in shapes):
            yield symmetry.radices, order if number else None
    yield (n,), None


def _turned(graph: CapacityGraph) -> IntArray | None:
    """The arc that leads back along each one and is as wide, int64 (arcs,); None where some arc has none of its own.

    Args: graph: the network.
    """
    there, back = (np.lexsort((graph.capacity, *ends)) for ends in ((graph.head, graph.tail), (graph.tail, graph.head)))
    columns = ((graph.tail, graph.head), (graph.head, graph.tail), (graph.capacity, graph.capacity))
    if not all(np.array_equal(one[there], other[back]) for one, other in columns):
        return None
    turned = np.empty(len(there), np.int64)
    turned[there] = back
    return turned


def _divided(graph: CapacityGraph, pool: IntArray, root: int | None) -> CapacityGraph:
    """The network with a capacity for each way of links that share one.

    Args: graph, pool, root: as of `shared_capacity`.
    Raises: UnsupportedError: more flows than are divided for.
    """
    if (flows := graph.num_compute * len(graph.tail)) > MOST_SHARED:
        raise UnsupportedError(
            f"{flows:,} flows, ranks times links whose ways share rates; at most {MOST_SHARED:,}, duplex=full has no such"
        )
    return shared_capacity(graph, pool, root)


def _nearest(fabric: Fabric, graph: CapacityGraph, nodes: IntArray) -> int:
    """Rank 0 and those to which its route has the widest narrowest link [count].

    Args:
        fabric: a machine or a job on one.
        graph: its links.
        nodes: of all ranks, int (ranks,).
    """
    hops, offsets = fabric.route(np.broadcast_to(nodes[:1], len(nodes) - 1), nodes[1:])
    width = np.minimum.reduceat(graph.capacity[hops], offsets[:-1])
    return 1 + int(np.count_nonzero(width == width.max()))


@lru_cache(maxsize=64)
def direct_ranks(fabric: Fabric) -> IntArray:
    """Ranks that the route of rank 0 leads to past no other rank, int64 (at most ranks - 1,).

    Args: fabric: with a network: a machine or a job on one.
    Raises: UnsupportedError: no route leads to a rank.
    """
    machine = fabric.machine
    assert isinstance(machine, PacketFabric)
    nodes = fabric.machine_nodes(np.arange(fabric.num_nodes))
    return _direct(fabric, machine.graph(nodes), nodes, inwards=False)


class _Classes:
    """Routes from the rank at each place to that at the place which a translation takes it to.

    Args:
        fabric: a machine or a job on one.
        graph: its links.
        nodes: at all places, int (ranks,).
        radices: of the digits of places.
        inwards: whether routes lead the other way.
    """

    def __init__(
        self, fabric: Fabric, graph: CapacityGraph, nodes: IntArray, radices: tuple[int, ...], inwards: bool
    ) -> None:
        self.fabric, self.graph, self.nodes, self.inwards = fabric, graph, nodes, inwards
        self.origin = TranslatedTree(radices, nodes, nodes)

    def routes(self, classes: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Routes of each class, (hops, offsets).

        Args: classes: int (classes,).
        """
        n = len(self.nodes)
        together = max(1, ROUTES_AT_ONCE // n)
        for some in np.split(classes, range(together, len(classes), together)):
            moved = self.nodes[self.origin.moved(np.arange(n), some[:, None])].ravel()
            ends = np.tile(self.nodes, len(some)), moved
            hops, offsets = self.fabric.route(*(ends[::-1] if self.inwards else ends))
            for first in range(0, len(moved), n):
                mine = offsets[first : first + n + 1]
                yield hops[mine[0] : mine[-1]], mine - mine[0]

    def load(self, hops: IntArray) -> IntArray:
        """How often routes lead over each link, int64 (links,)."""
        return np.bincount(hops, minlength=len(self.graph.tail))

    def costs(self) -> tuple[npt.NDArray[np.float64], IntArray]:
        """Load over capacity of the busiest link of each class, infinite where a route passes a rank, and its longest route.

        Returns: float64 (ranks,) [weight / unit], int64 (ranks,) [links].
        """
        n = len(self.nodes)
        cost, length = np.full(n, np.inf), np.zeros(n, np.int64)
        direct = self.direct()
        for one, (hops, offsets) in zip(direct.tolist(), self.routes(direct), strict=True):
            length[one] = np.diff(offsets).max()
            if np.count_nonzero(self.graph.head[hops] < n) == n:  # the last link of each leads to a rank
                cost[one] = (self.load(hops) / np.maximum(self.graph.capacity, 1)).max()
        return cost, length

    def direct(self) -> IntArray:
        """Classes by which place 0 has a route past no other rank, int64 (at most ranks - 1,)."""
        return _direct(self.fabric, self.graph, self.nodes, self.inwards)


def _direct(fabric: Fabric, graph: CapacityGraph, nodes: IntArray, inwards: bool) -> IntArray:
    """Places that the route of place 0 leads to past no other rank, int64.

    Args: fabric, graph, nodes, inwards: as of `_Classes`.
    """
    ends = np.broadcast_to(nodes[:1], len(nodes) - 1), nodes[1:]
    hops, offsets = fabric.route(*(ends[::-1] if inwards else ends))
    passed = np.add.reduceat(graph.head[hops] < len(nodes), offsets[:-1])
    return 1 + np.flatnonzero(passed == 1)  # the last link of each leads to a rank


def _routes(fabric: Fabric, graph: CapacityGraph) -> list[tuple[int, ...]]:
    """Routes between ranks that no other rank is on, those between ranks of equal distance in number together.

    None where some ranks have no route to others, as on damaged machines whose nodes forward nothing.
    """
    n = fabric.num_nodes
    src, ahead = (column.ravel() for column in np.meshgrid(np.arange(n), np.arange(1, n)))
    nodes = fabric.machine_nodes(np.arange(n))
    try:
        hops, offsets = fabric.route(nodes[src], nodes[(src + ahead) % n])
    except UnsupportedError:
        return []
    passes_rank = graph.head[hops] < n
    passes_rank[offsets[1:] - 1] = False
    links, direct = hops.tolist(), np.add.reduceat(passes_rank, offsets[:-1]) == 0
    return [tuple(links[a:b]) for (a, b), alone in zip(pairwise(offsets.tolist()), direct, strict=True) if alone]
