"""Trees of all roots that are translations of one, over paths that are translated with them.

A path from vertex 0 of the group of translations stands for one from every vertex. All together load an arc by the number of
translations over the arcs that it is taken to, its orbit, for each arc of that orbit on the path. So the one tree shows the
load of all: of cheapest paths the next takes arcs whose orbits are filled least, and where one tree cannot divide its paths
evenly, several trees a root do.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import Optimum
from opticcl.routing.forest.packing import TreePacking
from opticcl.routing.forest.splitting import Path, Ways
from opticcl.routing.forest.symmetry import Translations
from opticcl.routing.forest.translation import TranslatedTree, translated_tree

__all__ = ["pack_translations"]

MOST_TREES = limit("translated_paths.MOST_TREES")
EVEN, LEAST_COST = 20, 1e-3
"""Power of the share of an orbit that is taken, in the cost of an arc, and what an arc costs of which none is."""


def pack_translations(
    graph: CapacityGraph, best: Optimum, symmetry: Translations, *, within: Fraction, fewest: int = 1
) -> TreePacking | None:
    """The fewest trees a root whose time is within a share of the optimum; None: none were found.

    Args:
        graph: the network.
        best: its optimum.
        symmetry: its translations.
        within: share of the optimum.
        fewest: trees a root [count].
    """
    paths = _Paths(graph, symmetry)
    cost, length = paths.costs()
    if (tree := translated_tree(symmetry.radices, cost, length)) is None:
        return None
    for trees in range(fewest, fewest + MOST_TREES):
        chosen, load = paths.of_trees(tree, trees, float(trees * best.time))
        if (time := load / trees) <= best.time * (1 + within):
            return _moved_everywhere(graph, symmetry, tree, chosen, time)
    return None


class _Paths:
    """Paths from the vertex at place 0 past no other that computes, and loads of all their translations.

    Args:
        graph: the network.
        symmetry: its translations.
    """

    def __init__(self, graph: CapacityGraph, symmetry: Translations) -> None:
        self.graph, self.order = graph, symmetry.order
        orbit = np.arange(len(graph.tail))
        while True:  # the least arc that steps of the digits lead to
            least = orbit.copy()
            for arcs in symmetry.arcs:
                np.minimum.at(least, arcs, orbit)
                least = np.minimum(least, least[arcs])
            if np.array_equal(least, orbit):
                break
            orbit = least[least]
        _, first, self.orbit, size = np.unique(orbit, return_index=True, return_inverse=True, return_counts=True)
        self.width = (size * graph.capacity[first]).tolist()  # of all arcs of each orbit
        passes = (graph.tail >= graph.num_compute) | (graph.tail == self.order[0])
        usable = passes & (graph.head != self.order[0]) & (graph.capacity > 0)
        self.arcs = np.flatnonzero(usable)
        # what one arc of an orbit on a path from place 0 adds to the load over capacity of each of its arcs
        self.adds = graph.num_compute / np.maximum(self.width, 1)[self.orbit]

    def cheapest(self, cost: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], IntArray]:
        """Cost of a cheapest path to each vertex, and the last arc of it, -1 where there is none.

        Args: cost: of each arc, positive, float64 (arcs,).
        """
        tail, head, price = self.graph.tail[self.arcs], self.graph.head[self.arcs], cost[self.arcs]
        away = np.full(self.graph.num_vertices, np.inf)
        away[self.order[0]] = 0.0
        while True:
            nearer = away.copy()
            np.minimum.at(nearer, head, away[tail] + price)
            if np.array_equal(nearer, away):
                break
            away = nearer
        last = np.full(len(away), -1)
        on_path = np.flatnonzero(np.isfinite(away[head]) & (away[tail] + price == away[head]))
        last[head[on_path]] = self.arcs[on_path]
        return away, last

    def back(self, vertex: int, last: IntArray) -> Path:
        """Arcs of a path to a vertex, in their order."""
        arcs: list[int] = []
        while (arc := int(last[vertex])) >= 0:
            arcs.append(arc)
            vertex = int(self.graph.tail[arc])
        return tuple(reversed(arcs))

    def costs(self) -> tuple[npt.NDArray[np.float64], IntArray]:
        """Load over capacity of the busiest orbit of each class by its cheapest path, and the arcs of that.

        Returns: float64 (classes,), infinite where there is no path [weight / unit], int64 (classes,).
        """
        n = self.graph.num_compute
        away, last = self.cheapest(self.adds)
        cost, length = np.full(n, np.inf), np.zeros(n, np.int64)
        for one in range(1, n):
            if np.isfinite(away[self.order[one]]):
                path = list(self.back(int(self.order[one]), last))
                times = np.bincount(self.orbit[path], minlength=len(self.width))
                cost[one], length[one] = (times[self.orbit[path]] * self.adds[path]).max(), len(path)
        return cost, length

    def of_trees(self, tree: TranslatedTree, trees: int, most: float) -> tuple[list[list[Path]], Fraction]:
        """A path for each class that leads to a place of some trees, and the largest load over capacity.

        Args:
            tree: of place 0.
            trees: a root, equal but for their paths [count].
            most: load over capacity that there is room for.
        """
        places = np.arange(1, len(self.order))
        classes = tree.moved(places, tree.parent[1:], -1)
        times, chosen = np.zeros(len(self.width), np.int64), []
        for _ in range(trees):
            of_tree: list[Path] = [()]
            for one in classes.tolist():
                _, last = self.cheapest(self.adds * (LEAST_COST + (times[self.orbit] * self.adds / most) ** EVEN))
                of_tree.append(self.back(int(self.order[one]), last))
                np.add.at(times, self.orbit[list(of_tree[-1])], 1)
            chosen.append(of_tree)
        loads = (
            Fraction(len(self.order) * many, width)
            for many, width in zip(times.tolist(), self.width, strict=True)
            if many
        )
        return chosen, max(loads)


def _moved_everywhere(
    graph: CapacityGraph, symmetry: Translations, tree: TranslatedTree, chosen: list[list[Path]], time: Fraction
) -> TreePacking:
    """The trees of all roots.

    Args:
        graph, symmetry: as of `pack_translations`.
        tree: of place 0.
        chosen: path to each place but the first, for each of its trees.
        time: of all.
    """
    n, radices, order = graph.num_compute, symmetry.radices, symmetry.order
    places = np.arange(n)
    child, steps = places[1:], tree.moved(places[1:], tree.parent[1:], -1)
    names: dict[tuple[int, Path], int] = {}
    of_place = np.zeros((len(chosen), n), np.int64)  # number of the class and path that lead to a place
    for number, of_tree in enumerate(chosen):
        of_place[number, 1:] = [
            names.setdefault(key, len(names)) for key in zip(steps.tolist(), of_tree[1:], strict=True)
        ]
    paths = list(_images(radices, symmetry.arcs, [path for _, path in names]))  # of each name, from each place
    heads = order[tree.moved(places, np.array([one for one, _ in names])[:, None])]
    ways = Ways(np.tile(order, len(names)), heads.ravel(), np.ones(heads.size, np.int64), paths)
    way = np.full((len(chosen), n, n), -1)  # of a tree, a root, a vertex
    for number in range(len(chosen)):
        start = tree.moved(tree.parent[1:], places[:, None])  # place from which each place is reached, for each root
        end = tree.moved(child, places[:, None])
        way[number][order[places][:, None], order[end]] = of_place[number, 1:] * n + start
    copies = np.ones(len(chosen) * n, np.int64)
    return TreePacking(ways, way.reshape(-1, n), copies, len(chosen), time, routed=False)


def _images(radices: tuple[int, ...], steps: IntArray, paths: list[Path]) -> Iterator[Path]:
    """Each path from every place, in order.

    Args:
        radices: of the digits of places.
        steps: arc that each one is taken to by a step of each digit, int64 (digits, arcs).
        paths: from place 0.
    """
    arcs = np.array([arc for path in paths for arc in path])
    images = arcs[None]  # (translations, arcs), the last digit fastest
    for radix, step in zip(radices, steps, strict=True):
        rows = [images]
        for _ in range(radix - 1):
            rows.append(step[rows[-1]])
        images = np.stack(rows, axis=1).reshape(-1, len(arcs))
    ends = np.cumsum([0, *map(len, paths)]).tolist()
    for begin, end in pairwise(ends):
        yield from map(tuple, images[:, begin:end].tolist())
