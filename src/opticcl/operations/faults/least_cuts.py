"""The sets of ranks whose links carry least of what must leave them, by maximum flow.

A set S needs f(S) bytes to leave it, and its links carry c(S): wavelengths of its ranks that reach a rank outside. Each row of
links is a node of a network, with an edge of its wavelengths from its sender and endless ones to the ranks that it reaches: an
edge is cut where the sender is inside and a rank that it reaches is outside, and the smallest cut between two ranks is the
maximum flow. The largest f / c:

    the same for all S      (all_reduce, broadcast): one over the smallest cut, from the root to every rank, and to it
    linear in |S|           (reduce_scatter, all_gather): Dinkelbach: with the best ratio so far, every rank of S adds an edge
                            to the sink, or from the source; a smaller cut is a better ratio, until no rank has one
    |S| (p - |S|)           (all_to_all): the sparsest cut, which no flow finds; all sets of up to 16 ranks are tried

Source: Ford and Fulkerson 1956; Dinic 1970; Dinkelbach 1967; the sparsest cut is NP-hard (Matula and Shahrokhi 1990).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.kernels import njit

__all__ = [
    "MOST_RANKS",
    "MOST_RANKS_OF_ALL_SETS",
    "LinksOfRanks",
    "largest_linear",
    "largest_of_all_sets",
    "smallest_cut",
]

MOST_RANKS = 128
"""Up to which flows are computed [count]."""

MOST_RANKS_OF_ALL_SETS = 16
"""Up to which all sets are tried [count]."""

TOLERANCE = 1e-9
"""By which a ratio is to be larger, as a share of it."""

Floats = npt.NDArray[np.float64]


class LinksOfRanks(NamedTuple):
    """What light of a sender reaches: a row for wavelengths that reach the same ranks.

    Args:
        sender: rank, int64 (m,).
        reaches: ranks, bool (m, ranks).
        number: wavelengths, float64 (m,).
    """

    sender: IntArray
    reaches: npt.NDArray[np.bool_]
    number: Floats


class _Network(NamedTuple):
    """Edges in pairs, an edge and its way back; those of node v are `edges[first[v]:first[v + 1]]`. The last two nodes are a
    source and a sink of all ranks."""

    first: IntArray
    edges: IntArray
    to: IntArray
    room: Floats


def smallest_cut(links: LinksOfRanks, root: int, ways: tuple[bool, bool]) -> float:
    """Wavelengths of the smallest cut between the root and any other rank.

    Args:
        links: of all ranks.
        root: rank.
        ways: whether cuts count that the root is inside of, and those that it is outside of.
    """
    net, others = _network(links, 0.0, 0.0), np.arange(links.reaches.shape[1])
    return float(_smallest(net.first, net.edges, net.to, net.room, others[others != root], root, *ways))


def largest_linear(links: LinksOfRanks, *, inside: bool) -> float:
    """The largest of ranks inside a set, or outside, over the wavelengths that leave it; infinite where none does.

    Args:
        links: of all ranks.
        inside: whether ranks inside count; else those outside.
    """
    p = links.reaches.shape[1]
    net = _network(links, float(not inside), float(inside))
    alone = float(np.bincount(links.sender, links.number, p).min())
    if alone == 0:
        return float("inf")
    start = (1.0 if inside else p - 1.0) / alone
    return float(_largest_ratio(net.first, net.edges, net.to, net.room, p, inside, start, TOLERANCE))


def largest_of_all_sets(links: LinksOfRanks) -> float:
    """The largest of |S| (p - |S|) / p over the wavelengths that leave S, over all sets of ranks; infinite where none does."""
    p = links.reaches.shape[1]
    masks = links.reaches @ (np.int64(1) << np.arange(p))
    return float(_largest_of_all_sets(links.sender, masks, links.number, p))


def _network(links: LinksOfRanks, to_sink: float, from_source: float) -> _Network:
    """The network of links, with edges of all ranks to a sink and from a source."""
    m, p = links.reaches.shape
    source, sink = p + m, p + m + 1
    row, reached = np.nonzero(links.reaches)
    ranks, none = np.arange(p), np.zeros(0, np.int64)
    ends = [(links.sender, p + np.arange(m), links.number), (p + row, reached, np.full(len(row), np.inf))]
    for given, src, dst in ((to_sink, ranks, np.full(p, sink)), (from_source, np.full(p, source), ranks)):
        ends.append((src, dst, np.full(p, given)) if given else (none, none, np.zeros(0)))
    src, dst, room = (np.concatenate(columns) for columns in zip(*ends, strict=True))
    start = np.stack([src, dst], axis=1).ravel().astype(np.int64)
    to = np.stack([dst, src], axis=1).ravel().astype(np.int64)
    edges = np.argsort(start, kind="stable")
    first = np.searchsorted(start[edges], np.arange(p + m + 3)).astype(np.int64)
    return _Network(first, edges, to, np.stack([room, np.zeros(len(room))], axis=1).ravel())


@njit
def _flow(first, edges, to, room, source, sink, enough):  # type: ignore[no-untyped-def]
    """Maximum flow, or `enough` once it is as much; `room` becomes what is left. Returns it and the nodes within reach."""
    nodes = len(first) - 1
    level, at = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    queue, path = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    total = 0.0
    while True:
        level[:] = -1
        level[source] = 0
        queue[0] = source
        head, tail = 0, 1
        while head < tail:
            v = queue[head]
            head += 1
            for k in range(first[v], first[v + 1]):
                e = edges[k]
                if room[e] > 1e-12 and level[to[e]] < 0:
                    level[to[e]] = level[v] + 1
                    queue[tail] = to[e]
                    tail += 1
        if level[sink] < 0 or total >= enough:
            return total, level >= 0
        for u in range(len(at)):
            at[u] = first[u]
        depth, v = 0, source
        while True:
            if v == sink:
                much = np.inf
                for i in range(depth):
                    much = min(much, room[path[i]])
                total += much
                back = 0
                for i in range(depth - 1, -1, -1):
                    room[path[i]] -= much
                    room[path[i] ^ 1] += much
                    if room[path[i]] <= 1e-12:
                        back = i
                depth = back
                v = to[path[back] ^ 1]
                if total >= enough:
                    return total, level >= 0
            moved = False
            while at[v] < first[v + 1]:
                e = edges[at[v]]
                if room[e] > 1e-12 and level[to[e]] == level[v] + 1:
                    path[depth] = e
                    depth += 1
                    v = to[e]
                    moved = True
                    break
                at[v] += 1
            if not moved:
                if depth == 0:
                    break
                depth -= 1
                v = to[path[depth] ^ 1]
                at[v] += 1


@njit
def _smallest(first, edges, to, room, others, root, outwards, inwards):  # type: ignore[no-untyped-def]
    least = np.inf
    for v in others:
        if outwards:
            least = min(least, _flow(first, edges, to, room.copy(), root, v, least)[0])
        if inwards:
            least = min(least, _flow(first, edges, to, room.copy(), v, root, least)[0])
    return least


@njit
def _largest_ratio(first, edges, to, room, p, inside, ratio, tolerance):  # type: ignore[no-untyped-def]
    """The largest of ranks inside, or outside, over what leaves a set, from a ratio that some set has."""
    source, sink = len(first) - 3, len(first) - 2
    of_rank = np.zeros(len(room), np.bool_)  # edges that do not grow with the ratio
    for e in range(0, len(room), 2):
        of_rank[e] = to[e ^ 1] == source if inside else to[e] == sink
    for v in range(p):
        while True:
            left = room.copy()
            for e in range(0, len(left), 2):
                if not of_rank[e]:
                    left[e] *= ratio
            if inside:  # v is outside; ranks outside cost one each
                much, reached = _flow(first, edges, to, left, source, v, np.inf)
            else:
                much, reached = _flow(first, edges, to, left, v, sink, np.inf)
            if much >= p * (1 - tolerance):
                break
            counted = 0
            for rank in range(p):
                counted += reached[rank] == inside
            leaves = (much - (p - counted)) / ratio
            if leaves <= 1e-12:
                return np.inf
            larger = counted / leaves
            if larger <= ratio * (1 + tolerance):
                break
            ratio = larger
    return ratio


@njit
def _largest_of_all_sets(sender, masks, number, p):  # type: ignore[no-untyped-def]
    largest = 0.0
    for chosen in range(1, (1 << p) - 1):
        size = 0
        for rank in range(p):
            size += chosen >> rank & 1
        leaves = 0.0
        for row in range(len(sender)):
            if chosen >> sender[row] & 1 and masks[row] & ~chosen:
                leaves += number[row]
        if leaves == 0.0:
            return np.inf
        largest = max(largest, size * (p - size) / (p * leaves))
    return largest
