"""Connected components of a grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.kernels import njit
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
    width = grid.width()
    part = np.full(grid.num_tiles, -2, np.int32)
    part[grid.shut] = -1
    reach = np.eye(int(_label(width, grid.columns, part)), dtype=bool)
    edges = np.flatnonzero(width > 0)
    start = edges // 4
    reach[part[start], part[start + grid.onward[edges % 4]]] = True
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    return part, reach


@njit
def _label(width, columns, part):  # type: ignore[no-untyped-def]
    """Number the tiles (-2 before) by component, along edges that are open both ways; returns the number of components."""
    queue = np.empty(len(part), np.int64)
    count = 0
    for seed in range(len(part)):
        if part[seed] != -2:
            continue
        part[seed], queue[0], head, tail = count, seed, 0, 1
        while head < tail:
            tile = queue[head]
            head += 1
            for d in range(4):
                if width[4 * tile + d] > 0:
                    to = tile + (1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns)
                    if width[4 * to + (d ^ 1)] > 0 and part[to] == -2:
                        part[to] = count
                        queue[tail] = to
                        tail += 1
        count += 1
    return count
