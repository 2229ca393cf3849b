"""A kernel that finds cheapest paths over links of any cost, and spreads pairs over paths that cost the same."""

from __future__ import annotations

import heapq

import numpy as np

from opticcl.kernels import njit

__all__ = ["cheapest_paths"]

SAME = 1e-9  # relative difference of costs that are the same


@njit(writes=())
def cheapest_paths(begin, end, group, draw, tail, head, cost, by_head, into, not_through):  # type: ignore[no-untyped-def]
    """(hops, offsets) of a cheapest path of each pair, int32 and int64 (pairs + 1,); no hops where there is none.

    Args:
        begin, end: vertices of each pair, int64 (pairs,); pairs of one end stand together.
        group: first pair of each end, and the number of pairs, int64 (ends + 1,).
        draw: a number for each pair that decides between paths of one cost, int64 (pairs,).
        tail, head: vertices that each link joins, int64 (links,).
        cost: of each link, positive, infinite for one that is not taken, float64 (links,).
        by_head: links in the order of their heads, int64 (links,).
        into: first link of each head in `by_head`, int64 (vertices + 1,).
        not_through: vertices below this number forward nothing [count].
    """
    vertices = len(into) - 1
    hops, offsets, at = np.empty(4 * len(begin) + vertices, np.int32), np.zeros(len(begin) + 1, np.int64), 0
    first = np.empty(vertices + 1, np.int64)
    cheapest = np.empty(len(tail), np.int64)
    for number in range(len(group) - 1):
        goal = end[group[number]]
        away = np.full(vertices, np.inf)
        away[goal] = 0.0
        heap = [(0.0, goal)]
        while len(heap):
            far, vertex = heapq.heappop(heap)
            if far > away[vertex] or (vertex < not_through and vertex != goal):
                continue
            for place in range(into[vertex], into[vertex + 1]):
                link = by_head[place]
                if far + cost[link] < away[tail[link]]:
                    away[tail[link]] = far + cost[link]
                    heapq.heappush(heap, (far + cost[link], tail[link]))
        first[:] = 0
        for fill in range(2):  # links of cheapest paths, by tail
            for link in range(len(tail)):
                near, far = away[head[link]], away[tail[link]]
                through = head[link] >= not_through or head[link] == goal
                if through and near < far < np.inf and near + cost[link] - far <= SAME * far:
                    if fill:
                        cheapest[first[tail[link]]] = link
                        first[tail[link]] += 1
                    else:
                        first[tail[link] + 1] += 1
            if not fill:
                for vertex in range(vertices):
                    first[vertex + 1] += first[vertex]
        for vertex in range(vertices, 0, -1):
            first[vertex] = first[vertex - 1]
        first[0] = 0
        for pair in range(group[number], group[number + 1]):
            vertex = begin[pair]
            while vertex != goal and away[vertex] < np.inf:
                choices = first[vertex + 1] - first[vertex]
                link = cheapest[first[vertex] + (draw[pair] ^ (vertex * 2654435761)) % choices]
                if at == len(hops):
                    hops = np.concatenate((hops, np.empty(len(hops), np.int32)))
                hops[at] = link
                at += 1
                vertex = head[link]
            offsets[pair + 1] = at
    return hops[:at], offsets
