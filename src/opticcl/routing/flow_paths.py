"""Paths of whole parts that load links as a flow of fractions does, for Numba.

A flow from a source divides into paths: from a receiver back over the arcs with most flow left, as often as something is left.
Every pair then has a number of equal parts to send. Pair by pair, a part takes the path that leaves the load of links nearest
to that of the flow so far: the least sum of squares of what they carry too much or too little, over their capacity. Then parts
leave the busiest link one by one, as long as the other path of the pair stays less busy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.kernels import njit

__all__ = ["WholePaths", "whole_paths"]


class WholePaths(NamedTuple):
    """Paths between vertices, and how many parts each has.

    Args:
        src, dst: of each path, those of a pair together, int64 (paths,).
        parts: that it carries, int64 (paths,) [count].
        hops, offsets: arcs of all paths end to end, and where each path begins.
    """

    src: IntArray
    dst: IntArray
    parts: IntArray
    hops: IntArray
    offsets: IntArray


def whole_paths(
    flow: npt.NDArray[np.float64],
    tail: IntArray,
    head: IntArray,
    room: npt.NDArray[np.float64],
    pool: IntArray,
    parts: int,
) -> WholePaths:
    """Paths of a flow that brings one unit from every source to every other, in parts of equal size.

    Args:
        flow: of each source over each arc, float64 (sources, arcs).
        tail, head: of each arc, int64 (arcs,); sources are vertices 0, 1, ...
        room: capacity of each pool, float64 (pools,).
        pool: capacity that each arc has a share of, int64 (arcs,).
        parts: of each pair [count].
    """
    by_head = np.argsort(head, kind="stable")
    vertices = int(max(tail.max(), head.max())) + 1
    into = np.searchsorted(head[by_head], np.arange(vertices + 1))
    src, dst, share, hops, offsets = _divided(flow, tail, by_head, into)
    given = _whole(src, dst, share, hops, offsets, room, pool, parts)
    _, pair = np.unique(src * vertices + dst, return_inverse=True)
    _less_busy(given, np.searchsorted(pair, np.arange(pair.max(initial=-1) + 2)), pair, hops, offsets, room, pool)
    kept = np.flatnonzero(given)
    lengths = np.diff(offsets)
    taken = np.repeat(given > 0, lengths)
    return WholePaths(src[kept], dst[kept], given[kept], hops[taken], np.r_[0, np.cumsum(lengths[kept])])


@njit(writes=())
def _divided(flow, tail, by_head, into):  # type: ignore[no-untyped-def]
    """Paths of each pair with their shares; a pair has one path at least.

    Args:
        flow: as of `whole_paths`.
        tail: of each arc.
        by_head, into: arcs in the order of their heads, and the first one of each vertex.
    Returns: source, receiver and share of each path, arcs end to end, and where each path begins.
    """
    least = 1e-7
    num = len(flow)
    src, dst, share = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)], [0.0 for _ in range(0)]
    hops, offsets = [np.int64(0) for _ in range(0)], [np.int64(0)]
    way, seen = np.empty(len(into), np.int64), np.full(len(into), -1)
    for source in range(num):
        left = flow[source].copy()
        for target in range(num):
            rest, first = 1.0, True
            while target != source and (first or rest > least):
                seen[:] = -1
                at, depth = target, 0
                while at != source:
                    seen[at] = depth
                    best = by_head[into[at]]
                    for k in range(into[at], into[at + 1]):
                        if left[by_head[k]] > left[best]:
                            best = by_head[k]
                    way[depth], at = best, tail[best]
                    depth += 1
                    if left[best] <= least:
                        depth = -1
                        break
                    if seen[at] >= 0:  # what goes round brings nothing
                        round_trip = way[seen[at] : depth]
                        left[round_trip] -= left[round_trip].min()
                        at, depth = target, 0
                        seen[:] = -1
                if depth < 0:
                    break
                amount = rest if rest - least < left[way[:depth]].min() else left[way[:depth]].min()
                left[way[:depth]] -= amount
                rest, first = rest - amount, False
                src.append(np.int64(source))
                dst.append(np.int64(target))
                share.append(amount)
                for k in range(depth - 1, -1, -1):
                    hops.append(way[k])
                offsets.append(np.int64(len(hops)))
            assert target == source or not first
    return np.array(src), np.array(dst), np.array(share), np.array(hops), np.array(offsets)


@njit(writes=())
def _whole(src, dst, share, hops, offsets, room, pool, parts):  # type: ignore[no-untyped-def]
    """Parts of each path.

    Args:
        src, dst, share, hops, offsets: as `_divided` returns them.
        room, pool, parts: as of `whole_paths`.
    """
    given = np.zeros(len(src), np.int64)
    excess = np.zeros(len(room))
    first = 0
    while first < len(src):
        last, whole = first, 0.0
        while last < len(src) and src[last] == src[first] and dst[last] == dst[first]:
            whole += share[last]
            last += 1
        for path in range(first, last):
            given[path] = int(parts * share[path] / whole)
            more = given[path] - parts * share[path] / whole
            for k in range(offsets[path], offsets[path + 1]):
                excess[pool[hops[k]]] += more / room[pool[hops[k]]]
        for _ in range(parts - given[first:last].sum()):
            best, least = first, np.inf
            for path in range(first, last):
                cost = 0.0
                for k in range(offsets[path], offsets[path + 1]):
                    one = 1 / room[pool[hops[k]]]
                    cost += one * (2 * excess[pool[hops[k]]] + one)
                if cost < least:
                    best, least = path, cost
            given[best] += 1
            for k in range(offsets[best], offsets[best + 1]):
                excess[pool[hops[k]]] += 1 / room[pool[hops[k]]]
        first = last
    return given


@njit(writes=("given",))
def _less_busy(given, begin, pair, hops, offsets, room, pool):  # type: ignore[no-untyped-def]
    """Move parts from the busiest link to other paths of their pairs, which end less busy than it was.

    Args:
        given: parts of each path; changed.
        begin: first path of each pair, and the number of paths.
        pair: of each path.
        hops, offsets, room, pool: as of `_whole`.
    """
    load = np.zeros(len(room))
    for path in range(len(given)):
        for k in range(offsets[path], offsets[path + 1]):
            load[pool[hops[k]]] += given[path] / room[pool[hops[k]]]
    for _ in range(len(given)):
        busiest = load.argmax()
        least, leaves, takes = load[busiest] * (1 - 1e-9), -1, -1
        for path in range(len(given)):
            passes = False
            for k in range(offsets[path], offsets[path + 1]):
                passes = passes or pool[hops[k]] == busiest
            if not passes or given[path] == 0:
                continue
            for other in range(begin[pair[path]], begin[pair[path] + 1]):
                after = 0.0
                for k in range(offsets[other], offsets[other + 1]):
                    after = max(after, load[pool[hops[k]]] + 1 / room[pool[hops[k]]])
                if after < least:
                    least, leaves, takes = after, path, other
        if takes < 0:
            break
        for path, more in ((leaves, -1), (takes, 1)):
            given[path] += more
            for k in range(offsets[path], offsets[path + 1]):
                load[pool[hops[k]]] += more / room[pool[hops[k]]]
