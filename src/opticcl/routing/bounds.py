"""What no routes can undercut: cuts, and prices of edges.

Give every edge a price. A circuit pays at least what its cheapest path costs, and all circuits together pay at most the
fullness of the fullest edge times what all edges cost (each times its share). So

    fullest edge  >=  sum over circuits of cheapest path  /  sum over edges of price * share

for any prices at all, and the best prices give the linear programme's optimum. A cut is the case of price 1 on the edges
that cross it: every circuit from one side to the other pays at least 1. Overlaps are whole numbers on a whole grid, so
there the bound is rounded up.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST, Grid
from opticcl.routing.paths import cheapest_paths

__all__ = ["cut_bound", "price_bound", "rounded_up"]

_ROUNDING = 1e-7  # relative; prices are floats


def rounded_up(grid: Grid, bound: float) -> float:
    """The next whole number where overlaps are whole numbers; a shade below one counts as that one."""
    return float(ceil(bound * (1 - _ROUNDING))) if grid.whole else bound


def cut_bound(grid: Grid, src: IntArray, dst: IntArray) -> tuple[float, npt.NDArray[np.float64]]:
    """The largest bound of all cuts along a row or a column, in either direction, and of all single tiles.

    Args: src, dst: tiles, int64 (n,).
    Returns: (bound, prices of the edges: 1 on those of the cut).

    >>> grid = Grid(1, 4)
    >>> cut_bound(grid, np.array([0, 0, 1]), np.array([3, 2, 3]))[0]  # three circuits pass between tiles 1 and 2
    3.0
    """
    width = grid.width().reshape(grid.rows, grid.columns, 4)
    (r0, c0), (r1, c1) = np.divmod(src, grid.columns), np.divmod(dst, grid.columns)
    best, where = 0.0, np.zeros(0, np.int64)
    edges = np.arange(width.size).reshape(width.shape)
    for size, a, b, ways in ((grid.columns, c0, c1, (EAST, WEST)), (grid.rows, r0, r1, (SOUTH, NORTH))):
        for way, lo, hi in ((ways[0], a, b), (ways[1], b, a)):
            demand = _crossing(lo, hi, size)
            lines = width[..., way].sum(axis=0 if way < 2 else 1)  # by column, or by row
            across = lines[:-1] if way in (EAST, SOUTH) else lines[1:]
            found, line = _most_full(demand, across)
            if found > best:
                line += way in (WEST, NORTH)
                best, where = found, (edges[:, line, way] if way < 2 else edges[line, :, way]).ravel()
    for ends, into in ((src, False), (dst, True)):
        by_tile = _into(grid, width.ravel()) if into else width.reshape(-1, 4)
        found, tile = _most_full(np.bincount(ends, minlength=grid.num_tiles), by_tile.sum(axis=1))
        if found > best:
            best = found
            where = _edges_into(grid, tile) if into else 4 * tile + np.arange(4)
    prices = np.zeros(width.size)
    prices[where] = 1.0
    return rounded_up(grid, best), prices


def _crossing(lo: IntArray, hi: IntArray, size: int) -> IntArray:
    """Circuits from line i or before to a later line, for each i but the last, int64 (size - 1,)."""
    forward = lo < hi
    steps = np.bincount(lo[forward], minlength=size + 1) - np.bincount(hi[forward], minlength=size + 1)
    return np.cumsum(steps)[: size - 1]


def _most_full(demand: IntArray, width: npt.NDArray[np.float64]) -> tuple[float, int]:
    """The largest demand / width, and where; 0 if there is no demand."""
    asked = demand > 0
    if not asked.any():
        return 0.0, 0
    with np.errstate(divide="ignore"):
        full = np.where(asked, demand / np.where(asked, width, 1.0), 0.0)
    return float(full.max()), int(full.argmax())


def _edges_into(grid: Grid, tile: int) -> IntArray:
    """Edges that lead into a tile, those within the grid."""
    row, column = divmod(tile, grid.columns)
    inside = [column > 0, column < grid.columns - 1, row > 0, row < grid.rows - 1]
    return (4 * (tile - grid.onward) + np.arange(4))[inside]


def _into(grid: Grid, width: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Width of the edges that lead into each tile, float64 (tiles, 4)."""
    w = width.reshape(grid.rows, grid.columns, 4)
    into = np.zeros_like(w)
    into[:, 1:, EAST], into[:, :-1, WEST] = w[:, :-1, EAST], w[:, 1:, WEST]
    into[1:, :, SOUTH], into[:-1, :, NORTH] = w[:-1, :, SOUTH], w[1:, :, NORTH]
    return into.reshape(-1, 4)


def price_bound(grid: Grid, src: IntArray, dst: IntArray, prices: npt.NDArray[np.float64]) -> float:
    """The bound that prices of edges prove.

    Args:
        src, dst: tiles, int64 (n,).
        prices: float64 (4 rows columns,), not negative.
    """
    width = grid.width()
    paid = float((prices * width).sum())
    if paid <= 0:
        return 0.0
    cost, _, _ = cheapest_paths(grid, src, dst, prices)
    return rounded_up(grid, float(cost.sum()) / paid)
