"""Spanning trees that together take no more than the capacity of every link, and as much of it as is possible or nearly so.

With k trees from each root and capacities floor(U b) the trees take U / k where the least time is T, so U >= k T. For k the
denominator of T there are trees with U = k T; fewer trees take a little longer. `pack` takes the fewest within a given share
of the optimum, and for those the least U.

Edmonds' theorem: the trees exist if from every set of vertices enough capacity leaves for the trees whose roots are within.
An arc may be taken if that remains so for the trees that are not complete.

Source: Edmonds 1973, Tarjan 1977; Berczi and Frank 2010 for groups of equal trees; Zhao et al. 2024 (ForestColl) for k and U.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.routing.forest._flows import grow_trees, least_cut
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import Optimum, weights_of
from opticcl.routing.forest.splitting import Path, Ways, split_off_routes, split_off_switches

__all__ = ["TreePacking", "pack"]

MOST_TREES = limit("packing.MOST_TREES")


class TreePacking(NamedTuple):
    """Groups of equal spanning trees.

    Args:
        ways: links between vertices that compute, over switches.
        way: by which the trees of a group come to each vertex that computes, -1 at their root, int64 (groups, vertices).
        copies: trees of each group, int64 (groups,).
        trees_a_root: of all groups with one root [count].
        time: in which every root's data is at all, all trees at once [weight of one vertex / unit of capacity].
        routed: whether ways are routes that packets keep to.
    """

    ways: Ways
    way: IntArray
    copies: IntArray
    trees_a_root: int
    time: Fraction
    routed: bool

    @property
    def root(self) -> IntArray:
        """Of each group, int64 (groups,)."""
        return np.argmin(self.way, axis=1)

    @property
    def parent(self) -> IntArray:
        """Vertex from which each one receives in a group, itself at the root, int64 (groups, vertices)."""
        return np.where(self.way < 0, np.arange(self.way.shape[1]), self.ways.tail[self.way])

    @property
    def depth(self) -> IntArray:
        """Ways from the root to each vertex in a group, int64 (groups, vertices)."""
        above, found = self.parent, np.zeros(self.way.shape, np.int64)
        at = np.arange(self.way.shape[1])[None, :].repeat(len(self.way), axis=0)
        while (below := at != self.root[:, None]).any():
            found += below
            at = np.take_along_axis(above, at, axis=1)
        return found


def pack(
    graph: CapacityGraph,
    best: Optimum,
    root: int | None = None,
    *,
    within: Fraction = Fraction(1, 100),
    fewest: int = 1,
    routes: Sequence[Path] | None = None,
) -> TreePacking | None:
    """The fewest trees a root whose time is within a share of the optimum; None: with these routes none were found.

    Where packets may take any path there are such trees unless a switch sends more than it receives; then there may be None.

    Args:
        graph: the network.
        best: its optimum.
        root: of a broadcast; None: every vertex that computes has trees.
        within: share of the optimum.
        fewest: trees a root [count].
        routes: that packets keep to, as arcs one after the other; None: any path.
    """
    weights = weights_of(graph, root)
    balanced = routes is None and _balanced(graph, graph.capacity)
    for trees in range(fewest, fewest + min(best.time.denominator, MOST_TREES)):
        for scale in _scales(graph, best, trees, weights, within, balanced=balanced):
            capacity = np.array([floor(scale * b) for b in graph.capacity.tolist()], np.int64)
            args = (graph, capacity, trees * weights)
            ways = split_off_switches(*args) if routes is None else split_off_routes(*args, routes)
            if ways is not None:
                share = trees * weights[: graph.num_compute]
                way, count = grow_trees(graph.num_compute, ways.tail, ways.head, ways.capacity, share)
                return TreePacking(ways, way, count, trees, scale / trees, routes is not None)
    return None


def _scales(
    graph: CapacityGraph, best: Optimum, trees: int, weights: IntArray, within: Fraction, *, balanced: bool
) -> Iterator[Fraction]:
    """The least scale of all capacities with which no cut lacks capacity for that many trees a root, and the most.

    Args:
        graph: the network.
        best: its optimum.
        trees: from each root [count].
        weights: of each vertex, int64 (vertices,).
        within: share of the optimum.
        balanced: whether no switch may send more than it receives.
    """
    least, most = trees * best.time, trees * best.time * (1 + within)
    scales = {least}
    for b in np.unique(graph.capacity[graph.capacity > 0]).tolist():
        scales |= {Fraction(units, b) for units in range(ceil(least * b), floor(most * b) + 1)}
    tried = sorted(scales)

    def enough(scale: Fraction) -> bool:
        different, which = np.unique(graph.capacity, return_inverse=True)
        capacity = np.array([floor(scale * b) for b in different.tolist()], np.int64)[which]
        if balanced and not _balanced(graph, capacity):
            return False
        needed = trees * int(weights.sum())
        columns = (graph.num_vertices, graph.tail, graph.head, capacity, trees * weights)
        return bool(least_cut(*columns, np.arange(graph.num_compute), needed, False)[0] == needed)

    low, high = 0, len(tried)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(tried[middle]) else (middle + 1, high)
    yield from dict.fromkeys((*tried[low : low + 1], *tried[low:][-1:]))


def _balanced(graph: CapacityGraph, capacity: IntArray) -> bool:
    """Whether no switch sends more than it receives.

    Args:
        graph: the network.
        capacity: of each arc, int64 (arcs,).
    """
    sends, receives = (np.bincount(end, capacity, graph.num_vertices) for end in (graph.tail, graph.head))
    return not (sends > receives)[graph.num_compute :].any()
