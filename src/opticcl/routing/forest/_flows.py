"""Flows into one vertex after another, for Numba. In one file, since kernels call each other.

All searches go backwards, from the vertex that receives: a source that is near ends them at once. Once the flow into a vertex
is known, the vertex becomes a source itself. Flow that has arrived there then leads from a source to a source and crosses no
later cut, so what is left of the capacities serves the next vertex, whose sources are mostly its neighbours.

Source: Dinic 1970 for flows by levels; Hao and Orlin 1994 for sources that grow by each sink.
"""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["least_cut"]


@njit
def _both_ways(num_vertices, tail, head):  # type: ignore[no-untyped-def]
    """First entry of each vertex, the other end of each entry, its opposite entry, and the entry of each arc at its tail."""
    begin = np.zeros(num_vertices + 1, np.int64)
    for arc in range(len(tail)):
        begin[tail[arc] + 1] += 1
        begin[head[arc] + 1] += 1
    for vertex in range(num_vertices):
        begin[vertex + 1] += begin[vertex]
    free = begin[:-1].copy()
    end, back, entry = (
        np.empty(2 * len(tail), np.int64),
        np.empty(2 * len(tail), np.int64),
        np.empty(len(tail), np.int64),
    )
    for arc in range(len(tail)):
        out = free[tail[arc]]
        free[tail[arc]] += 1
        into = free[head[arc]]
        free[head[arc]] += 1
        end[out], end[into], back[out], back[into], entry[arc] = head[arc], tail[arc], into, out, out
    return begin, end, back, entry


@njit
def _levels(target, begin, end, back, room, supply, source, level, queue):  # type: ignore[no-untyped-def]
    """Number the vertices by their distance to the target, up to the nearest that has something; whether one has."""
    level[:] = -1
    level[target] = 0
    queue[0], size, done, nearest = target, 1, 0, -1
    while done < size:
        vertex = queue[done]
        done += 1
        if nearest >= 0 and level[vertex] >= nearest:
            break
        for k in range(begin[vertex], begin[vertex + 1]):
            other = end[k]
            if level[other] < 0 and room[back[k]] > 0:
                level[other] = level[vertex] + 1
                queue[size] = other
                size += 1
                if source[other] or supply[other] > 0:
                    nearest = level[other]
    return nearest >= 0


@njit
def _flow_into(target, most, begin, end, back, room, supply, source, level, queue, at, way):  # type: ignore[no-untyped-def]
    """Flow into the target from sources, which have plenty, and from supplies, up to `most`; takes it from both.

    Args:
        target: vertex that receives.
        most: flow beyond which no more is looked for.
        begin, end, back: of `_both_ways`.
        room: what each entry can still carry away from its vertex.
        supply: of each vertex.
        source: whether each vertex has plenty.
        level, queue, at, way: work space of one entry a vertex; level is left at 0 or more on the target's side of a least cut
            where the flow is below `most`.
    """
    flow = min(most, supply[target])
    supply[target] -= flow
    while flow < most and _levels(target, begin, end, back, room, supply, source, level, queue):
        at[:] = begin[:-1]
        depth, vertex = 0, target
        while True:
            if vertex != target and (source[vertex] or supply[vertex] > 0):
                more = most - flow if source[vertex] else min(most - flow, supply[vertex])
                for k in range(depth):
                    more = min(more, room[back[way[k]]])
                if not source[vertex]:
                    supply[vertex] -= more
                flow += more
                first_full = depth
                for k in range(depth - 1, -1, -1):
                    room[back[way[k]]] -= more
                    room[way[k]] += more
                    if room[back[way[k]]] == 0:
                        first_full = k
                if flow == most:
                    break
                if first_full < depth:  # back to the vertex in front of the first full arc
                    depth, vertex = first_full, end[back[way[first_full]]]
                    continue
            advanced = False
            while at[vertex] < begin[vertex + 1]:
                k = at[vertex]
                if room[back[k]] > 0 and level[end[k]] == level[vertex] + 1:
                    way[depth], vertex, advanced = k, end[k], True
                    depth += 1
                    break
                at[vertex] += 1
            if advanced:
                continue
            if depth == 0:
                break
            depth -= 1
            vertex = end[back[way[depth]]]
            at[vertex] += 1
    return flow


@njit(writes=())
def least_cut(num_vertices, tail, head, capacity, supply, targets, needed, to_the_end):  # type: ignore[no-untyped-def]
    """Least flow from all supplies into one of the targets, up to `needed`; the target, and its side of a cut of that value.

    Args:
        num_vertices: [count].
        tail, head, capacity: of the arcs, int64 (arcs,).
        supply: of each vertex, int64 (vertices,).
        targets: vertices, int64 (targets,).
        needed: flow that is enough.
        to_the_end: whether all targets are tried, else up to the first with less than is needed.
    Returns: flow, position of the target (that of the first of several), bool (vertices,).
    """
    begin, end, back, entry = _both_ways(num_vertices, tail, head)
    room = np.zeros(len(end), np.int64)
    room[entry] = capacity
    rest, source, side = supply.copy(), np.zeros(num_vertices, np.bool_), np.zeros(num_vertices, np.bool_)
    level, queue = np.empty(num_vertices, np.int64), np.empty(num_vertices, np.int64)
    at, way = np.empty(num_vertices, np.int64), np.empty(num_vertices, np.int64)
    least, which = needed, len(targets)
    for number in range(len(targets)):
        flow = _flow_into(targets[number], needed, begin, end, back, room, rest, source, level, queue, at, way)
        if flow < least:
            least, which = flow, number
            side[:] = level >= 0
            if not to_the_end:
                break
        source[targets[number]] = True
    return least, which, side
