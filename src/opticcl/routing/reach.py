"""Connected components of a grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.routing.grid import Grid

__all__ = ["components"]


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
    least, before = np.arange(grid.num_tiles), np.zeros(0, np.int64)  # tile that each is known to be joined to
    while not np.array_equal(least, before):
        before = least.copy()
        np.minimum.at(least, before[start[both_ways]], before[end[both_ways]])
        while not np.array_equal(least, least[least]):
            least = least[least]
    closed = np.isin(np.arange(grid.num_tiles), grid.shut)
    part = np.full(grid.num_tiles, -1, np.int32)
    names, part[~closed] = np.unique(least[~closed], return_inverse=True)
    reach = np.eye(len(names), dtype=bool)
    reach[part[start], part[end]] = True
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    return part, reach
