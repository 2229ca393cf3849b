"""Directed graphs of few links a node: distances, paths of all pairs that load links evenly, and shortest path trees.

A graph is the node that each link of each node leads to, int64 (nodes, degree); -1: there is no such link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.kernels import njit

__all__ = ["Digraph", "PairPaths", "distances_of_strides"]

MOST_RELAXED = limit("digraphs.MOST_RELAXED")

PASSES = 12
"""Times that the paths of all pairs are moved to less loaded links [count]."""

SOFT, STEEP = 4, 128
"""Power of a link's load that paths keep away from: at first, doubled after every second pass, and at most."""


class PairPaths(NamedTuple):
    """One path for each ordered pair of nodes.

    Args:
        links: numbers of its links among those of their nodes, in order, -1 behind the last, int8 (nodes, nodes, longest).
        load: pairs over the busiest link [count].
    """

    links: npt.NDArray[np.int8]
    load: int


@dataclass(frozen=True, eq=False)
class Digraph:
    """A graph whose every node reaches every other.

    Args: links: node that each leads to, -1 where there is none, int64 (nodes, degree).
    """

    links: IntArray

    @property
    def num_nodes(self) -> int:
        """Nodes [count]."""
        return len(self.links)

    @cached_property
    def distance(self) -> IntArray:
        """Links on a shortest path from each node to each, -1 where there is none, int32 (nodes, nodes)."""
        return np.asarray(_distances(self.links))

    @property
    def is_connected(self) -> bool:
        """Whether every node reaches every other."""
        return bool((self.distance >= 0).all())

    @property
    def longest(self) -> int:
        """Links to the farthest node [count]."""
        return int(self.distance.max())

    @cached_property
    def least_load(self) -> int:
        """Pairs over the busiest link, at least: the mean over all links [count]."""
        return -(-int(self.distance.sum()) // int((self.links >= 0).sum()))

    @cached_property
    def paths(self) -> PairPaths:
        """Paths of at most `longest` links that load the busiest link little, by moving one path at a time.

        Where that would relax more links than `MOST_RELAXED`, each pair gets a shortest path over the links that are least
        loaded so far. On a circulant paths of the first node, moved, serve where no paths of all nodes load links less.
        """
        n, degree = self.links.shape
        ahead, sources = (self.links - np.arange(n)[:, None]) % n, [n]
        if (self.links >= 0).all() and (ahead == ahead[0]).all():
            sources = [1, n]
        best: PairPaths | None = None
        for many in sources:
            work = many * n * self.longest * n * degree
            passes = min(PASSES, MOST_RELAXED // max(1, work))
            if best is not None and (not passes or best.load <= self.least_load):
                break
            found, load = _paths(self.links, self.distance, self.longest, passes, STEEP, many, self.least_load)
            if best is None or load < best.load:
                every = found if many == n else found[0][(np.arange(n) - np.arange(n)[:, None]) % n]
                best = PairPaths(every, int(load))
        assert best is not None
        return best

    def trees(self, towards: bool) -> IntArray:
        """Neighbour of each node on a shortest path tree of each root, the root itself at the root, int32 (roots, nodes).

        In every step all trees grow by a level; the links that they choose are those which others take least.

        Args: towards: whether the root is the end of all paths, and neighbours are the next nodes; else the nodes before.
        """
        return np.asarray(_trees(self.links, self.distance, towards))


def distances_of_strides(strides: IntArray, num_nodes: int) -> tuple[IntArray, IntArray]:
    """Links from a node of circulants to all others in sum, and to the farthest, int64 (graphs,) each.

    Args:
        strides: of each graph, 1 among them, int64 (graphs, degree).
        num_nodes: N [count].
    """
    total, longest = _distances_of_strides(strides, num_nodes)
    return np.asarray(total), np.asarray(longest)


@njit(writes=())
def _distances_of_strides(strides, nodes):  # type: ignore[no-untyped-def]
    graphs, degree = strides.shape
    total, longest = np.zeros(graphs, np.int64), np.zeros(graphs, np.int64)
    far, queue = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for graph in range(graphs):
        far[:] = -1
        far[0], queue[0] = 0, 0
        last = 1
        for first in range(nodes):
            node = queue[first]
            total[graph] += far[node]
            for plane in range(degree):
                onward = node + strides[graph, plane]
                onward -= nodes if onward >= nodes else 0
                if far[onward] < 0:
                    far[onward], queue[last] = far[node] + 1, onward
                    last += 1
        longest[graph] = far[queue[nodes - 1]]
    return total, longest


@njit(writes=())
def _distances(links):  # type: ignore[no-untyped-def]
    nodes, degree = links.shape
    found = np.full((nodes, nodes), -1, np.int32)
    queue = np.empty(nodes, np.int64)
    for source in range(nodes):
        mine = found[source]
        mine[source] = 0
        queue[0] = source
        first, last = 0, 1
        while first < last:
            node = queue[first]
            first += 1
            for link in range(degree):
                to = links[node, link]
                if to >= 0 and mine[to] < 0:
                    mine[to] = mine[node] + 1
                    queue[last] = to
                    last += 1
    return found


@njit(writes=())
def _paths(links, distance, longest, passes, steep, sources, least_load):  # type: ignore[no-untyped-def]
    """Numbers of the links of each pair's path, and the pairs over the busiest link.

    Args:
        links: as of `Digraph`.
        distance: links on shortest paths, int32 (nodes, nodes).
        longest: links of a path at most.
        passes: times that all paths are moved.
        steep: largest power of the load that they keep away from.
        sources: nodes whose paths are found: all, or the first one, of whose paths those of all others are images.
        least_load: pairs over the busiest link with which no path has to be moved.
    """
    nodes, degree = links.shape
    load = np.zeros((sources, degree), np.int64)
    paths = np.full((sources, nodes, longest), -1, np.int8)
    for source in range(sources):
        for turn in range(1, nodes):
            target = (source + turn) % nodes
            node, at = source, 0
            while node != target:
                chosen = -1
                for link in range(degree):
                    to = links[node, link]
                    nearer = to >= 0 and distance[to, target] == distance[node, target] - 1
                    if nearer and (chosen < 0 or load[node % sources, link] < load[node % sources, chosen]):
                        chosen = link
                load[node % sources, chosen] += 1
                paths[source, target, at] = chosen
                node = links[node, chosen]
                at += 1
    best, least = paths.copy(), load.max()
    cost = np.empty((longest + 1, nodes))
    came = np.full((longest + 1, nodes), -1, np.int64)
    for done in range(passes):
        if least <= least_load:
            break
        mean, power = load.sum() / load.size, min(steep, SOFT * 2 ** (done // 2))
        for source in range(sources):
            for turn in range(1, nodes):
                target = (source + turn) % nodes
                node, at = source, 0
                while at < longest and paths[source, target, at] >= 0:
                    link = paths[source, target, at]
                    load[node % sources, link] -= 1
                    paths[source, target, at] = -1
                    node = links[node, link]
                    at += 1
                cost[:] = np.inf
                cost[0, source] = 0.0
                for step in range(longest):
                    for node in range(nodes):
                        if cost[step, node] == np.inf:
                            continue
                        for link in range(degree):
                            to = links[node, link]
                            if to < 0 or step + 1 + distance[to, target] > longest:
                                continue
                            price = cost[step, node] + ((load[node % sources, link] + 1) / mean) ** power
                            if price < cost[step + 1, to]:
                                cost[step + 1, to] = price
                                came[step + 1, to] = node * degree + link
                end = 1
                for step in range(1, longest + 1):
                    if cost[step, target] < cost[end, target]:
                        end = step
                node = target
                for step in range(end, 0, -1):
                    before = came[step, node]
                    node, link = before // degree, before % degree
                    paths[source, target, step - 1] = link
                    load[node % sources, link] += 1
        if load.max() < least:
            best, least = paths.copy(), load.max()
    return best, least


@njit(writes=())
def _trees(links, distance, towards):  # type: ignore[no-untyped-def]
    """Neighbours on the trees of all roots.

    Args:
        links: as of `Digraph`.
        distance: links on shortest paths, int32 (nodes, nodes).
        towards: as of `Digraph.trees`.
    """
    nodes, degree = links.shape
    before = np.full((nodes, degree), -1, np.int64)  # nodes with a link to each, and the numbers of these links
    over = np.zeros((nodes, degree), np.int64)
    many = np.zeros(nodes, np.int64)
    for node in range(nodes):
        for link in range(degree):
            to = links[node, link]
            if to >= 0:
                before[to, many[to]], over[to, many[to]] = node, link
                many[to] += 1
    load = np.zeros((distance.max() + 1, nodes, degree), np.int64)
    found = np.empty((nodes, nodes), np.int32)
    for only in (True, False):  # where one link alone serves, it is counted before others are chosen
        for root in range(nodes):
            for node in range(nodes):
                far = distance[node, root] if towards else distance[root, node]
                if far == 0:
                    found[root, node] = root
                    continue
                chosen, choices, taken = -1, 0, -1
                for link in range(degree):
                    near = links[node, link] if towards else before[node, link]
                    if near < 0 or (distance[near, root] if towards else distance[root, near]) != far - 1:
                        continue
                    choices += 1
                    loaded = load[far, node, link] if towards else load[far, near, over[node, link]]
                    if chosen < 0 or loaded < taken:
                        chosen, taken = link, loaded
                if (choices == 1) == only:
                    near = links[node, chosen] if towards else before[node, chosen]
                    found[root, node] = near
                    if towards:
                        load[far, node, chosen] += 1
                    else:
                        load[far, near, over[node, chosen]] += 1
    return found
