"""Cheapest paths and rip-up and reroute, for Numba. In one file, since they call each other."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["paths_from_each_source", "rip_up_and_reroute"]

FADING = 0.95  # decay of the history cost of an edge per pass
LEAST_PRICE = 0.01  # of an empty edge, so that detours end


@njit
def paths_from_each_source(width, prices, src, dst, columns, cost, length):  # type: ignore[no-untyped-def]
    """Cheapest path of each pair, pairs sorted by source; fills cost and length, returns the hops end to end.

    Args:
        width: of each edge, float64 (4 tiles,).
        prices: of each edge, float64 (4 tiles,).
        src, dst: tiles of each pair, sorted by source.
        columns: of the grid [count].
        cost: filled: price of each path.
        length: filled: hops of each path.
    """
    tiles = len(width) // 4
    at, by = np.empty(tiles), np.empty(tiles, np.int32)
    heap_cost, heap_tile = np.empty(4 * tiles + 4), np.empty(4 * tiles + 4, np.int32)
    hops = np.empty(max(64, 16 * len(src)), np.int32)
    end = 0
    for i in range(len(src)):
        if i == 0 or src[i] != src[i - 1]:
            _dijkstra(width, prices, src[i], -1, columns, at, by, heap_cost, heap_tile)
        cost[i], length[i] = at[dst[i]], 0
        if at[dst[i]] == np.inf:
            continue
        tile = dst[i]
        while tile != src[i]:
            length[i] += 1
            tile = by[tile] // 4
        if end + length[i] > len(hops):
            hops = np.concatenate((hops, np.empty(len(hops) + length[i], np.int32)))
        end += length[i]
        tile, k = dst[i], end
        while tile != src[i]:
            k -= 1
            hops[k] = by[tile]
            tile = by[tile] // 4
    return hops[:end]


@njit
def _dijkstra(width, prices, start, goal, columns, at, by, heap_cost, heap_tile):  # type: ignore[no-untyped-def]
    """Cost of the cheapest path to every tile (up to `goal`, if it is one) and the edge by which it comes."""
    at[:] = np.inf
    by[:] = -1
    at[start] = 0.0
    heap_cost[0], heap_tile[0], size = 0.0, start, 1
    while size:
        here, tile = heap_cost[0], heap_tile[0]
        size -= 1
        last_cost, last_tile = heap_cost[size], heap_tile[size]
        k = 0
        while True:  # sift the last entry down from the top
            child = 2 * k + 1
            if child >= size:
                break
            if child + 1 < size and heap_cost[child + 1] < heap_cost[child]:
                child += 1
            if heap_cost[child] >= last_cost:
                break
            heap_cost[k], heap_tile[k] = heap_cost[child], heap_tile[child]
            k = child
        heap_cost[k], heap_tile[k] = last_cost, last_tile
        if here > at[tile]:
            continue
        if tile == goal:
            return
        for d in range(4):
            edge = 4 * tile + d
            if width[edge] <= 0:
                continue
            to = tile + (1 if d == 0 else -1 if d == 1 else columns if d == 2 else -columns)
            cost = here + prices[edge]
            if cost < at[to]:
                at[to], by[to] = cost, edge
                k = size
                size += 1
                while k and heap_cost[(k - 1) // 2] > cost:  # sift up
                    heap_cost[k], heap_tile[k] = heap_cost[(k - 1) // 2], heap_tile[(k - 1) // 2]
                    k = (k - 1) // 2
                heap_cost[k], heap_tile[k] = cost, to


@njit
def rip_up_and_reroute(width, src, dst, columns, paths, length, draws, target, patience):  # type: ignore[no-untyped-def]
    """Remove one circuit after the other and route it again over the least congested edges, until the target is met.

    Edges that are among the most congested after a pass cost more for a while (`memory`), so that circuits do not return to the
    same edges forever.

    Args:
        width: part of each edge that works.
        src, dst: tiles.
        columns: of the grid [count].
        paths, length: a path of each circuit, int32 (n, room) and int64 (n,); overwritten with the best found.
        draws: random numbers whose order is that of the circuits in each pass, float64 (passes, n).
        target: load of the most congested edge at which to stop.
        patience: passes without a better result after which to stop.
    Returns: (load of the most congested edge, number of passes).
    """
    tiles = len(width) // 4
    load = np.zeros(4 * tiles)
    for i in range(len(src)):
        for h in range(length[i]):
            load[paths[i, h]] += 1
    best = _max_load(width, load)
    now, now_length = paths.copy(), length.copy()
    prices, memory = np.empty(4 * tiles), np.ones(4 * tiles)
    at, by = np.empty(tiles), np.empty(tiles, np.int32)
    heap_cost, heap_tile = np.empty(4 * tiles + 4), np.empty(4 * tiles + 4, np.int32)
    idle = 0
    for done in range(len(draws)):
        if best <= target or idle >= patience:
            return best, done
        for edge in range(4 * tiles):
            prices[edge] = memory[edge] * _price(load[edge], width[edge], best)
        for i in np.argsort(draws[done]):
            for h in range(now_length[i]):
                edge = now[i, h]
                load[edge] -= 1
                prices[edge] = memory[edge] * _price(load[edge], width[edge], best)
            _dijkstra(width, prices, src[i], dst[i], columns, at, by, heap_cost, heap_tile)
            tile, count = dst[i], 0
            while tile != src[i]:
                count += 1
                tile = by[tile] // 4
            if count <= now.shape[1]:  # otherwise the detour is too long for the array
                now_length[i] = count
                tile = dst[i]
                while tile != src[i]:
                    count -= 1
                    now[i, count] = by[tile]
                    tile = by[tile] // 4
            for h in range(now_length[i]):
                edge = now[i, h]
                load[edge] += 1
                prices[edge] = memory[edge] * _price(load[edge], width[edge], best)
        idle += 1
        load_now = _max_load(width, load)
        if load_now < best:
            best, idle = load_now, 0
            paths[:], length[:] = now, now_length
        for edge in range(4 * tiles):
            full = width[edge] > 0 and load[edge] >= best * width[edge]
            memory[edge] = 1 + FADING * (memory[edge] - 1) + (1 if full else 0)
    return best, len(draws)


@njit
def _price(load, width, best):  # type: ignore[no-untyped-def]
    """Price of one more circuit on an edge, steep near the largest load."""
    return np.exp(min(3.0 * ((load + 1) / width - best), 60.0)) + LEAST_PRICE if width > 0 else np.inf


@njit
def _max_load(width, load):  # type: ignore[no-untyped-def]
    largest = 0.0
    for edge in range(len(load)):
        if load[edge] > 0:
            largest = max(largest, load[edge] / width[edge] if width[edge] > 0 else np.inf)
    return largest
