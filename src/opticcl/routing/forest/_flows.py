"""Flows into one vertex after another, for Numba. In one file, since kernels call each other.

All searches go backwards, from the vertex that receives: a source that is near ends them at once. Once the flow into a vertex
is known, the vertex becomes a source itself. Flow that has arrived there then leads from a source to a source and crosses no
later cut, so what is left of the capacities serves the next vertex, whose sources are mostly its neighbours.

Source: Dinic 1970 for flows by levels; Hao and Orlin 1994 for sources that grow by each sink.
"""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["grow_trees", "least_cut"]

MOST_FULL = 64  # sets without capacity to spare that growing trees remember; the last ones decide most


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
        for v in range(len(at)):
            at[v] = begin[v]
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
            for v in range(num_vertices):
                side[v] = level[v] >= 0
            if not to_the_end:
                break
        source[targets[number]] = True
    return least, which, side


@njit
def _units_for(group, x, y, tail, head, left, depth, counts, size):  # type: ignore[no-untyped-def]
    """How many trees of a group may take an arc, so that all others can still be completed, and the set that allows no more.

    They may as far as what flows from the tail of the arc and from all other trees that lack its head into it exceeds the
    number of these: then no cut lacks capacity for the trees that are still to cross it.

    Args:
        group: of the trees.
        x, y: tail and head of the arc, a vertex that the trees have and one that they lack.
        tail, head, left: of all arcs, with the capacity that is left, int64 (arcs,).
        depth: of each vertex in each group, -1 where the group lacks it, int64 (groups, vertices).
        counts: trees of each group that is not complete, else 0, int64 (groups,).
        size: groups [count].
    Returns: trees, at most those of the group; bool (vertices,), of use where they are fewer.
    """
    num = depth.shape[1]
    free = np.flatnonzero(left)
    members = np.zeros(size, np.int64)
    for other in range(size):
        if counts[other] > 0 and other != group and depth[other, y] < 0:
            for vertex in range(num):
                members[other] += depth[other, vertex] >= 0
    links = len(free) + members[members > 1].sum()
    tails, heads, widths = np.empty(links, np.int64), np.empty(links, np.int64), np.empty(links, np.int64)
    tails[: len(free)], heads[: len(free)], widths[: len(free)] = tail[free], head[free], left[free]
    supply = np.zeros(num + (members > 1).sum(), np.int64)
    link, hub = len(free), num
    for other in range(size):
        if members[other] == 0:
            continue
        if members[other] > 1:
            supply[hub] = counts[other]
        for vertex in range(num):
            if depth[other, vertex] >= 0:
                if members[other] == 1:
                    supply[vertex] += counts[other]
                else:
                    tails[link], heads[link], widths[link] = hub, vertex, counts[other]
                    link += 1
        hub += members[other] > 1
    others = supply.sum()
    begin, end, back, entry = _both_ways(len(supply), tails, heads)
    room = np.zeros(len(end), np.int64)
    for k in range(links):
        room[entry[k]] = widths[k]
    source = np.zeros(len(supply), np.bool_)
    source[x] = True
    level, queue = np.empty(len(supply), np.int64), np.empty(len(supply), np.int64)
    at, way = np.empty(len(supply), np.int64), np.empty(len(supply), np.int64)
    most = others + counts[group]
    flow = _flow_into(y, most, begin, end, back, room, supply, source, level, queue, at, way)
    return flow - others, level[:num] >= 0


@njit
def _enters_full(x, y, has, full):  # type: ignore[no-untyped-def]
    """Whether an arc enters a set of vertices, of which a tree has some, that has no capacity to spare.

    Args:
        x, y: tail and head of the arc.
        has: depth of each vertex in the tree, -1 where it lacks it, int64 (vertices,).
        full: such sets, bool (sets, vertices).
    """
    for number in range(len(full)):
        if full[number, y] and not full[number, x]:
            for vertex in range(len(has)):
                if full[number, vertex] and has[vertex] >= 0:
                    return True
    return False


@njit(writes=())
def grow_trees(num, tail, head, capacity, share):  # type: ignore[no-untyped-def]
    """Spanning trees that share arcs, as many from each vertex as it has a share; groups of equal trees are one row.

    All trees grow by a level at a time and take the first arcs first. Where only some of a group of equal trees may take an
    arc, the group divides. Capacity into a set that trees lack falls as fast as the number of these trees, or faster, so a set
    that has none to spare never has again: no tree that has some of it may take an arc into it.

    Args:
        num: vertices [count].
        tail, head, capacity: of the arcs, of which enough leave every set of vertices for the share within, int64 (arcs,).
        share: trees from each vertex, int64 (vertices,).
    Returns: arc by which each tree comes to each vertex (-1 at its root), int64 (groups, vertices); trees of each group.
    """
    left, most = capacity.copy(), len(tail) + num
    by, depth, counts = np.full((most, num), -1), np.full((most, num), -1), np.zeros(most, np.int64)
    missing, size = np.full(most, num - 1), np.int64(0)  # a literal 0 would compile `_units_for` once more
    full, num_full = np.zeros((MOST_FULL, num), np.bool_), 0
    for root in range(num):
        if share[root] > 0:
            depth[size, root], counts[size] = 0, share[root]
            size += 1
    sizes = counts.copy()
    for level in range(num):
        group = np.int64(0)
        while group < size:
            for arc in range(len(tail)):
                x, y = tail[arc], head[arc]
                if left[arc] == 0 or depth[group, x] != level or depth[group, y] >= 0:
                    continue
                if _enters_full(x, y, depth[group], full[:num_full]):
                    continue
                units, inside = _units_for(group, x, y, tail, head, left, depth, counts, size)
                if units <= left[arc] and units < counts[group]:  # none of the set's is left now
                    full[num_full % MOST_FULL] = inside
                    num_full += 1
                units = min(left[arc], units)
                if units <= 0:
                    continue
                if units < counts[group]:
                    by[size], depth[size], missing[size] = by[group], depth[group], missing[group]
                    counts[size] = sizes[size] = counts[group] - units
                    counts[group] = sizes[group] = units
                    size += 1
                left[arc] -= units
                by[group, y], depth[group, y] = arc, level + 1
                missing[group] -= 1
            if missing[group] == 0:
                counts[group] = 0
            group += 1
    return by[:size], sizes[:size]
