"""Connected parts of graphs, and of grids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.routing.grid import Grid

__all__ = ["components", "connected_parts"]


def components(grid: Grid) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """The components into which closed tiles and edges divide a grid.

    Returns: (component of each tile, int32 (tiles,), -1 for closed ones; whether a path leads from component p to component q,
        bool (components, components)). Within a component every tile reaches every other in both directions.

    >>> part, reach = components(Grid(1, 3, np.array([1])))
    >>> part.tolist(), reach.tolist()
    ([0, -1, 1], [[True, False], [False, True]])
    """
    works = grid.width() > 0
    edges = np.flatnonzero(works)
    start, end = edges // 4, edges // 4 + grid.onward[edges % 4]
    both_ways = works[4 * end + (edges % 4 ^ 1)]
    least = connected_parts(start[both_ways], end[both_ways], grid.num_tiles)
    closed = np.isin(np.arange(grid.num_tiles), grid.shut)
    part = np.full(grid.num_tiles, -1, np.int32)
    names, part[~closed] = np.unique(least[~closed], return_inverse=True)
    reach = np.eye(len(names), dtype=bool)
    reach[part[start], part[end]] = True
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    return part, reach


@njit(writes=())
def connected_parts(tail, head, vertices):  # type: ignore[no-untyped-def]
    """The least vertex of the part that each vertex is in, int64 (vertices,).

    Args:
        tail, head: vertices that each link joins, in whichever direction, int64 (links,).
        vertices: [count].
    """
    parent = np.arange(vertices)
    for link in range(len(tail)):
        one, other = tail[link], head[link]
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        while parent[other] != other:
            parent[other] = parent[parent[other]]
            other = parent[other]
        parent[max(one, other)] = min(one, other)
    for vertex in range(vertices):
        parent[vertex] = parent[parent[vertex]]
    return parent
