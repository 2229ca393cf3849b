"""Lower bounds on the load of the most congested edge: cuts, and prices of edges.

Give every edge a price. A circuit pays at least the cost of its cheapest path, and all circuits together pay at most the
load of the most congested edge times the cost of all edges (each times its share). So

    max overlap  >=  sum over circuits of cheapest path  /  sum over edges of price * share

for any prices, and the best prices give the optimum of the linear programme. A cut is the case of price 1 on the edges
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

__all__ = ["cut_bound", "price_bound", "round_up"]

_ROUNDING = 1e-7  # relative; prices are floats


def round_up(grid: Grid, bound: float) -> float:
    """The next whole number where overlaps are whole numbers; values just below one because of rounding count as that one."""
    return float(ceil(bound * (1 - _ROUNDING))) if grid.whole else bound


def cut_bound(grid: Grid, src: IntArray, dst: IntArray) -> tuple[float, npt.NDArray[np.float64]]:
    """The largest bound of all cuts along a row or a column, in either direction, and of all single tiles.

    Args:
        grid: the grid.
        src, dst: tiles, int64 (n,).
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
            demand = _num_crossing(lo, hi, size)
            lines = width[..., way].sum(axis=0 if way < 2 else 1)  # by column, or by row
            across = lines[:-1] if way in (EAST, SOUTH) else lines[1:]
            found, line = _max_ratio(demand, across)
            if found > best:
                line += way in (WEST, NORTH)
                best, where = found, (edges[:, line, way] if way < 2 else edges[line, :, way]).ravel()
    for ends, into in ((src, False), (dst, True)):
        by_tile = _incoming_width(grid, width.ravel()) if into else width.reshape(-1, 4)
        found, tile = _max_ratio(np.bincount(ends, minlength=grid.num_tiles), by_tile.sum(axis=1))
        if found > best:
            best = found
            where = _edges_into(grid, tile) if into else 4 * tile + np.arange(4)
    prices = np.zeros(width.size)
    prices[where] = 1.0
    return round_up(grid, best), prices


def _num_crossing(lo: IntArray, hi: IntArray, size: int) -> IntArray:
    """Circuits from line i or before to a later line, for each i but the last, int64 (size - 1,)."""
    forward = lo < hi
    steps = np.bincount(lo[forward], minlength=size + 1) - np.bincount(hi[forward], minlength=size + 1)
    return np.cumsum(steps)[: size - 1]


def _max_ratio(demand: IntArray, width: npt.NDArray[np.float64]) -> tuple[float, int]:
    """The largest demand / width, and its index; 0 if there is no demand."""
    needed = demand > 0
    if not needed.any():
        return 0.0, 0
    with np.errstate(divide="ignore"):
        full = np.where(needed, demand / np.where(needed, width, 1.0), 0.0)
    return float(full.max()), int(full.argmax())


def _edges_into(grid: Grid, tile: int) -> IntArray:
    """Edges of the grid that lead into a tile."""
    row, column = divmod(tile, grid.columns)
    inside = [column > 0, column < grid.columns - 1, row > 0, row < grid.rows - 1]
    return (4 * (tile - grid.onward) + np.arange(4))[inside]


def _incoming_width(grid: Grid, width: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Width of the edges that lead into each tile, float64 (tiles, 4)."""
    w = width.reshape(grid.rows, grid.columns, 4)
    into = np.zeros_like(w)
    into[:, 1:, EAST], into[:, :-1, WEST] = w[:, :-1, EAST], w[:, 1:, WEST]
    into[1:, :, SOUTH], into[:-1, :, NORTH] = w[:-1, :, SOUTH], w[1:, :, NORTH]
    return into.reshape(-1, 4)


def price_bound(grid: Grid, src: IntArray, dst: IntArray, prices: npt.NDArray[np.float64]) -> float:
    """The bound that prices of edges prove.

    Args:
        grid: the grid.
        src, dst: tiles, int64 (n,).
        prices: prices of the edges, float64 (4 rows columns,), not negative.
    """
    width = grid.width()
    paid = float((prices * width).sum())
    if paid <= 0:
        return 0.0
    cost, _, _ = cheapest_paths(grid, src, dst, prices)
    return round_up(grid, float(cost.sum()) / paid)
