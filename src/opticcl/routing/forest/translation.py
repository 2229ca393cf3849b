"""One tree whose translations serve as the trees of all other roots.

Vertices are the elements of a group of translations: digits that are added without carry. An arc from u to v belongs to the
class v - u, and the trees of all roots use every class as often as one tree does, once from each vertex. So a tree is
good if the classes that it uses load no link much. Classes are taken by what a class alone costs on its busiest link:

    the cheapest classes join the vertices of a subgroup H; the next ones join the cosets of H, as few as are needed, and so on

Within a level the tree grows breadth first; a vertex that several classes reach takes the shortest one, or that used least.

Source: ours; for one level these are the breadth-first trees of Cayley graphs (Akers and Krishnamurthy 1989).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray

__all__ = ["TranslatedTree", "translated_tree"]

ROUNDING = 1e-9


class TranslatedTree(NamedTuple):
    """The tree of vertex 0.

    Args:
        radices: of the digits of a vertex, the last one fastest.
        parent: of each vertex, 0 for 0, int64 (vertices,).
        depth: of each vertex, int64 (vertices,).
        order: rank at each vertex, int64 (vertices,); None: its number.
    """

    radices: tuple[int, ...]
    parent: IntArray
    depth: IntArray
    order: IntArray | None = None

    def moved(self, vertices: IntArray, by: IntArray, sign: int = 1) -> IntArray:
        """Vertices moved by others, digit by digit.

        Args:
            vertices, by: numbers that broadcast.
            sign: 1 to add, -1 to subtract.
        """
        return _moved(self.radices, vertices, by, sign)


def _moved(radices: tuple[int, ...], vertices: IntArray, by: IntArray, sign: int = 1) -> IntArray:
    """As `TranslatedTree.moved`, with the radices of the digits."""
    digits = zip(np.unravel_index(vertices, radices), np.unravel_index(by, radices), radices, strict=True)
    moved: IntArray = np.ravel_multi_index([(a + sign * b) % radix for a, b, radix in digits], radices)
    return moved


def translated_tree(radices: tuple[int, ...], cost: npt.NDArray[np.float64], length: IntArray) -> TranslatedTree | None:
    """A tree of vertex 0 by the cheapest classes; None where they do not join all vertices.

    Args:
        radices: of the digits of a vertex.
        cost: of each class on its busiest link, infinite for one that is not used, float64 (vertices,).
        length: links on the way of each class, of which the shortest is taken, int64 (vertices,).
    """
    n = prod(radices)
    tree = TranslatedTree(radices, np.zeros(n, np.int64), np.zeros(n, np.int64))
    joined, used = np.array([0]), np.zeros(n, np.int64)
    for price in np.unique(np.round(cost[np.isfinite(cost)] / cost.min(), 9)) * cost.min():
        outside = ~np.isin(np.arange(n), joined)
        classes = np.flatnonzero(outside & (np.abs(cost - price) <= ROUNDING * price))
        if len(classes):
            joined = _join_cosets(tree, joined, classes[np.argsort(length[classes], kind="stable")], length, used)
    return tree if len(joined) == n else None


def _join_cosets(
    tree: TranslatedTree, subgroup: IntArray, classes: IntArray, length: IntArray, used: IntArray
) -> IntArray:
    """Extend the tree of a subgroup to the group that it and some classes generate; the vertices of the latter.

    Args:
        tree: changed.
        subgroup: vertices that it has, int64 (h,).
        classes: that lead to other cosets, the shortest first, int64 (classes,).
        length: links on the way of each class, int64 (vertices,).
        used: how often each class has been taken, int64 (vertices,); changed.
    """
    coset = np.full(len(used), -1)
    entries, level = [0], [0]
    coset[subgroup] = 0
    while level:
        ends = tree.moved(np.array([entries[c] for c in level])[:, None], classes)
        options: dict[int, list[tuple[int, int, int]]] = {}
        names: dict[int, int] = {}
        for at, k in zip(*np.nonzero(coset[ends] < 0), strict=True):
            end = int(ends[at, k])
            if end not in names:
                names.update(dict.fromkeys(tree.moved(subgroup, np.array(end)).tolist(), end))
            options.setdefault(names[end], []).append((int(classes[k]), entries[level[at]], end))
        level = []
        for ways in sorted(options.values(), key=len):
            by, start, entry = min(ways, key=lambda way: (length[way[0]], used[way[0]]))
            used[by] += 1
            vertices = tree.moved(subgroup, np.array(entry))
            tree.parent[vertices], tree.depth[vertices] = (
                tree.moved(tree.parent[subgroup], np.array(entry)),
                tree.depth[subgroup] + tree.depth[start] + 1,
            )
            tree.parent[entry] = start
            coset[vertices] = len(entries)
            level.append(len(entries))
            entries.append(entry)
    return np.flatnonzero(coset >= 0)
