"""Kernels that follow links: cheapest paths, spread over those of one cost, and what can be reached."""

from __future__ import annotations

import heapq

import numpy as np

from opticcl.kernels import njit

__all__ = ["cheapest_paths", "reached"]

SAME = 1e-9  # relative difference of costs that are the same


@njit(writes=())
def cheapest_paths(begin, end, group, draw, tail, head, cost, by_head, into, by_tail, out, not_through):  # type: ignore[no-untyped-def]
    """(hops, offsets) of a cheapest path of each pair, int32 and int64 (pairs + 1,); no hops where there is none.

    For each end, costs spread against the links until those of all its beginnings are known. A path then follows links whose
    cost is the difference of the costs of their ends; of several the pair's draw takes one.

    Args:
        begin, end: vertices of each pair, int64 (pairs,); pairs of one end stand together.
        group: first pair of each end, and the number of pairs, int64 (ends + 1,).
        draw: a number for each pair that decides between paths of one cost, int64 (pairs,).
        tail, head: vertices that each link joins, int64 (links,).
        cost: of each link, positive, infinite for one that is not taken, float64 (links,).
        by_head, into: links in the order of their heads, and the first of each head, int64 (links,) and (vertices + 1,).
        by_tail, out: the same of their tails.
        not_through: vertices below this number forward nothing [count].
    """
    vertices = len(into) - 1
    hops, offsets, at = np.empty(4 * len(begin) + 1, np.int32), np.zeros(len(begin) + 1, np.int64), 0
    cheapest, count = np.empty(len(tail), np.int64), np.empty(vertices, np.int64)
    for number in range(len(group) - 1):
        goal, first, last = end[group[number]], group[number], group[number + 1]
        away = np.full(vertices, np.inf)
        away[goal] = 0.0
        heap, farthest = [(0.0, goal)], np.inf
        while len(heap):
            far, vertex = heapq.heappop(heap)
            if far > farthest:
                break
            if far > away[vertex]:
                continue
            for place in range(into[vertex], into[vertex + 1]):
                link = by_head[place]
                before = tail[link]
                if far + cost[link] < away[before]:
                    away[before] = far + cost[link]
                    if before >= not_through:
                        heapq.heappush(heap, (away[before], before))
            if farthest == np.inf and away[begin[first]] < np.inf and away[begin[last - 1]] < np.inf:
                farthest = 0.0
                for pair in range(first, last):
                    farthest = max(farthest, away[begin[pair]])
        count[:] = -1  # cheapest links out of each vertex, from `out` on; -1: not looked for yet
        for pair in range(first, last):
            vertex = begin[pair]
            while vertex != goal and away[vertex] < np.inf:
                if count[vertex] < 0:
                    count[vertex] = 0
                    for place in range(out[vertex], out[vertex + 1]):
                        link = by_tail[place]
                        near, far = away[head[link]], away[vertex]
                        through = head[link] >= not_through or head[link] == goal
                        if through and near < far and near + cost[link] - far <= SAME * far:
                            cheapest[out[vertex] + count[vertex]] = link
                            count[vertex] += 1
                link = cheapest[out[vertex] + (draw[pair] ^ (vertex * 2654435761)) % count[vertex]]
                if at == len(hops):
                    hops = np.concatenate((hops, np.empty(len(hops), np.int32)))
                hops[at] = link
                at += 1
                vertex = head[link]
            offsets[pair + 1] = at
    return hops[:at], offsets


@njit(writes=())
def reached(start, links, first, ends, through):  # type: ignore[no-untyped-def]
    """Vertices that links lead to from one, itself included, bool (vertices,).

    Args:
        start: vertex to begin with.
        links, first: links in the order of the vertices that they are followed from, and the first of each, as of `by_head`.
        ends: vertex that each link is followed to, int64 (links,).
        through: vertices that links are followed from, besides the first, bool (vertices,).
    """
    known = np.zeros(len(through), np.bool_)
    known[start] = True
    waiting, count = np.empty(len(through), np.int64), 1
    waiting[0] = start
    while count:
        count -= 1
        vertex = waiting[count]
        for place in range(first[vertex], first[vertex + 1]):
            other = ends[links[place]]
            if not known[other]:
                known[other] = True
                if through[other]:
                    waiting[count] = other
                    count += 1
    return known
