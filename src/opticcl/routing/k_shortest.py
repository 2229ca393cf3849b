"""The k shortest simple paths of one pair (Yen)."""

from __future__ import annotations

import heapq

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.routing.grid import Grid

__all__ = ["k_shortest"]


def k_shortest(grid: Grid, src: int, dst: int, k: int) -> list[IntArray]:
    """Up to k open paths from one tile to another, the shortest first, equally long ones in the order of their edges.

    Args:
        grid: the grid.
        src, dst: tiles.
        k: number of paths; fewer are returned if fewer exist [count].
    Returns: edges of each path, int32 (hops,). A path from a tile to itself has none.
    Source: LUMORPH section 3.1, which uses Yen's algorithm.

    >>> [path.tolist() for path in k_shortest(Grid(2, 2), 0, 3, 3)]
    [[0, 6], [2, 8]]
    """
    width = grid.width()
    first = _shortest(width, grid.columns, src, dst, np.zeros(len(width), bool), np.zeros(grid.num_tiles, bool))
    if not len(first):
        return [first] if src == dst else []
    found: list[tuple[int, ...]] = [tuple(first.tolist())]
    waiting: list[tuple[int, tuple[int, ...]]] = []
    known = set(found)
    while len(found) < k:
        last = found[-1]
        for spur in range(len(last)):
            root = last[:spur]
            banned = np.zeros(len(width), bool)
            banned[[path[spur] for path in found if path[:spur] == root and len(path) > spur]] = True
            passed = np.zeros(grid.num_tiles, bool)
            passed[[edge // 4 for edge in root]] = True
            rest = _shortest(width, grid.columns, last[spur] // 4, dst, banned, passed)
            if len(rest):
                path = root + tuple(rest.tolist())
                if path not in known:
                    known.add(path)
                    heapq.heappush(waiting, (len(path), path))
        if not waiting:
            break
        found.append(heapq.heappop(waiting)[1])
    return [np.array(path, np.int32) for path in found[:k]]


@njit
def _shortest(width, columns, start, goal, banned, passed):  # type: ignore[no-untyped-def]
    """Edges of the shortest open path that begins on no banned edge and enters no passed tile; of equal ones the first.

    Distances to the goal, then always the first direction with a smaller distance. Only edges out of `start` are banned.
    """
    tiles = len(width) // 4
    distance, queue = np.full(tiles, -1, np.int64), np.empty(tiles, np.int64)
    distance[goal], queue[0], head, tail = 0, goal, 0, 1
    while head < tail:
        tile = queue[head]
        head += 1
        for d in range(4):  # the tile from which direction d leads here
            back = tile - (1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns)
            if not 0 <= back < tiles or width[4 * back + d] <= 0 or banned[4 * back + d] or passed[back]:
                continue
            if distance[back] < 0:
                distance[back] = distance[tile] + 1
                queue[tail] = back
                tail += 1
    if distance[start] < 0:
        return np.empty(0, np.int32)
    path = np.empty(distance[start], np.int32)
    tile = start
    for h in range(len(path)):
        for d in range(4):
            edge = 4 * tile + d
            if width[edge] <= 0 or banned[edge]:
                continue
            to = tile + (1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns)
            if distance[to] == distance[tile] - 1 and not passed[to]:
                path[h] = edge
                tile = to
                break
    return path
