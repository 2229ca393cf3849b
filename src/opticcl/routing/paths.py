"""Paths of many pairs end to end: selection, replacement, detours around closed tiles and edges."""

from __future__ import annotations

from typing import Literal

import numpy as np

from opticcl.errors import FabricError
from opticcl.ir import IntArray
from opticcl.ir.paths import paths_of_rows
from opticcl.kernels import njit
from opticcl.routing._kernels import paths_from_each_source
from opticcl.routing.dimension_order import dimension_order
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST, Grid

__all__ = ["cheapest_paths", "open_dimension_order", "random_shortest", "replace_paths"]


def replace_paths(
    hops: IntArray, offsets: IntArray, rows: IntArray, new_hops: IntArray, new_offsets: IntArray
) -> tuple[IntArray, IntArray]:
    """The same paths with new ones for the given rows.

    Args:
        hops, offsets: paths as in `Routes`.
        rows: indices of the paths to replace, int64 (k,).
        new_hops, new_offsets: one new path for each.
    """
    chosen = np.arange(len(offsets) - 1)
    chosen[rows] = len(offsets) - 1 + np.arange(len(rows))
    together = np.concatenate([hops, new_hops])
    return paths_of_rows(together, np.concatenate([offsets, offsets[-1] + new_offsets[1:]]), chosen)


def cheapest_paths(
    grid: Grid, src: IntArray, dst: IntArray, prices: np.ndarray
) -> tuple[np.ndarray, IntArray, IntArray]:
    """Cheapest open path of every pair.

    Args:
        grid: the grid.
        src, dst: tiles, int64 (n,).
        prices: prices of the edges, float64 (4 rows columns,), not negative.
    Returns: (cost float64 (n,), hops, offsets); a pair that no path joins costs inf and has no hops.
    """
    src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    order = np.argsort(src, kind="stable")
    cost, length = np.empty(len(src)), np.zeros(len(src), np.int64)
    hops = paths_from_each_source(grid.width(), prices, src[order], dst[order], grid.columns, cost, length)
    back = np.argsort(order)
    return (cost[back], *paths_of_rows(hops, np.concatenate([[0], np.cumsum(length)]), back))


def open_dimension_order(
    grid: Grid, src: IntArray, dst: IntArray, first: Literal["row", "column"] = "row"
) -> tuple[IntArray, IntArray]:
    """Along the row and then along the column; a shortest detour where a closed tile or edge is in the way.

    Args:
        grid: the grid.
        src, dst: tiles, int64 (n,).
        first: row, or column for the other order.
    Raises: FabricError: no open path joins a pair.
    """
    hops, offsets = dimension_order(src, dst, grid.columns, first)
    if grid.whole:
        return hops, offsets
    owner = np.repeat(np.arange(len(src)), np.diff(offsets))
    blocked = np.unique(owner[grid.width()[hops] <= 0])
    if not len(blocked):
        return hops, offsets
    cost, around, ends = cheapest_paths(grid, src[blocked], dst[blocked], np.ones(4 * grid.num_tiles))
    _require_joined(src[blocked], dst[blocked], ~np.isfinite(cost))
    return replace_paths(hops, offsets, blocked, around, ends)


def _require_joined(src: IntArray, dst: IntArray, apart: np.ndarray) -> None:
    if apart.any():
        row = int(np.argmax(apart))
        raise FabricError(f"routes: no open path leads from tile {src[row]} to tile {dst[row]}; leave one of them out")


def random_shortest(grid: Grid, src: IntArray, dst: IntArray, seed: int = 0) -> tuple[IntArray, IntArray]:
    """A random shortest open path of every pair.

    Args:
        grid: the grid.
        src, dst: tiles, int64 (n,).
        seed: seed of the draws.
    Raises: FabricError: no open path joins a pair.
    Reading: section 5 selects "one path from the shortest paths at random". On a whole grid all of them are equally likely;
        around closed tiles and edges the next tile is drawn among those with a smaller distance.
    """
    src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    rng = np.random.default_rng(seed)
    if grid.whole:
        offsets = np.concatenate([[0], np.cumsum(_distances(grid, src, dst).sum(axis=0))])
        owner = np.repeat(np.arange(len(src)), np.diff(offsets))
        shuffled = np.lexsort((rng.random(len(owner)), owner))
        sideways = np.empty(len(owner), bool)  # the first of each shuffled path go along the row
        sideways[shuffled] = np.arange(len(owner)) - offsets[owner] < _distances(grid, src, dst)[0][owner]
        south, east = (ends[1] > ends[0] for ends in np.divmod((src, dst), grid.columns))
        along, down = np.where(east, EAST, WEST), np.where(south, SOUTH, NORTH)
        direction = np.where(sideways, along[owner], down[owner])
        ahead = grid.onward[direction]
        before = np.cumsum(dst - src) - (dst - src)  # that all earlier paths go ahead
        tile = (src - before)[owner] + np.cumsum(ahead) - ahead
        return (4 * tile + direction).astype(np.int32), offsets
    order = np.argsort(dst, kind="stable")
    width = grid.width()
    length = np.zeros(len(src), np.int64)
    draws = rng.random(1 << 16)
    hops = _towards_each_goal(width, src[order], dst[order], grid.columns, draws, length)
    _require_joined(src[order], dst[order], (length == 0) & (src[order] != dst[order]))
    return paths_of_rows(hops, np.concatenate([[0], np.cumsum(length)]), np.argsort(order))


def _distances(grid: Grid, src: IntArray, dst: IntArray) -> IntArray:
    """Distance along the row and along the column, int64 (2, n)."""
    (r0, c0), (r1, c1) = np.divmod(src, grid.columns), np.divmod(dst, grid.columns)
    return np.stack([np.abs(c1 - c0), np.abs(r1 - r0)])


@njit
def _towards_each_goal(width, src, dst, columns, draws, length):  # type: ignore[no-untyped-def]
    """Pairs sorted by receiver: distances to it, then one random step after the other; returns the hops end to end."""
    tiles = len(width) // 4
    distance, queue = np.empty(tiles, np.int32), np.empty(tiles, np.int64)
    hops = np.empty(max(64, 16 * len(src)), np.int32)
    end = drawn = 0
    for i in range(len(src)):
        if i == 0 or dst[i] != dst[i - 1]:
            distance[:] = -1
            distance[dst[i]], queue[0], head, tail = 0, dst[i], 0, 1
            while head < tail:
                tile = queue[head]
                head += 1
                for d in range(4):  # the tile from which direction d leads here
                    back = tile - (1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns)
                    if 0 <= back < tiles and width[4 * back + d] > 0 and distance[back] < 0:
                        distance[back] = distance[tile] + 1
                        queue[tail] = back
                        tail += 1
        if distance[src[i]] <= 0:
            continue
        length[i] = distance[src[i]]
        if end + length[i] > len(hops):
            hops = np.concatenate((hops, np.empty(len(hops) + length[i], np.int32)))
        tile = src[i]
        for _ in range(length[i]):
            choices = 0
            edge = -1
            for d in range(4):
                if width[4 * tile + d] > 0:
                    to = tile + (1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns)
                    if distance[to] == distance[tile] - 1:
                        choices += 1
                        drawn = (drawn + 1) % len(draws)
                        if draws[drawn] * choices < 1:  # each of them equally likely
                            edge = 4 * tile + d
            hops[end] = edge
            end += 1
            d = edge % 4
            tile += 1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns
    return hops[:end]
