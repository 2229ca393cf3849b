"""Networks without their switches: links between vertices that compute, each over a path through switches.

A pair of arcs (u, w) and (w, t) of a switch w is split off: some of the capacity of both becomes that of an arc (u, t). A cut
that has u and t on one side and w on the other loses as much, so the capacity that may be split off is what the least of all
cuts has over its need. Where a switch receives at least what it sends, all that leaves it can be split off, one pair after the
other, and no cut falls below its need.

Pairs are split off evenly: trees of many short arcs are shallower than those of a few wide ones. Many pairs are tried at once,
and divided in two where a cut falls below its need.

Source: Bang-Jensen, Frank and Jackson 1995; Zhao et al. 2024 (ForestColl).
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.routing.forest._flows import least_cut
from opticcl.routing.forest.graph import CapacityGraph

__all__ = ["Ways", "split_off_switches"]

Path = tuple[int, ...]


class Ways(NamedTuple):
    """Capacity from one vertex to another over a path.

    Args:
        tail, head: ends, int64 (ways,).
        capacity: int64 (ways,) [units].
        path: arcs of the graph, one after the other, of each.
    """

    tail: IntArray
    head: IntArray
    capacity: IntArray
    path: list[Path]


class _Pair(NamedTuple):
    """Capacity of two ways that becomes one of both."""

    into: int
    out: int
    amount: int


class _Splitting:
    """Ways that are left of a network, which change until no switch has one.

    Args:
        graph: the network.
        capacity: of each arc, int64 (arcs,).
        share: trees from each vertex, int64 (vertices,).
        routes: paths that may be taken and all parts of them; None: any.
    """

    def __init__(
        self, graph: CapacityGraph, capacity: IntArray, share: IntArray, routes: Container[Path] | None
    ) -> None:
        self.graph, self.share, self.routes = graph, share, routes
        self.targets, self.needed = np.arange(graph.num_compute), int(share.sum())
        self.tail, self.head, self.capacity = graph.tail.tolist(), graph.head.tolist(), capacity.tolist()
        self.path: list[Path] = [(arc,) for arc in range(len(self.tail))]

    def spare(self) -> int:
        """What the least of all cuts has over its need, up to 0; negative where it lacks."""
        rows = [row for row, amount in enumerate(self.capacity) if amount]
        columns = (
            np.array([column[row] for row in rows], np.int64) for column in (self.tail, self.head, self.capacity)
        )
        flow, _, _ = least_cut(self.graph.num_vertices, *columns, self.share, self.targets, self.needed, True)
        return int(flow) - self.needed

    def split(self, pairs: list[_Pair]) -> int:
        """Split off as many of some pairs as all cuts allow; the capacity that was."""
        size = len(self.tail)
        for pair in pairs:
            self._join(pair)
        if (spare := self.spare()) >= 0:
            return sum(pair.amount for pair in pairs)
        for pair in pairs:
            self.capacity[pair.into] += pair.amount
            self.capacity[pair.out] += pair.amount
        for column in (self.tail, self.head, self.capacity, self.path):
            del column[size:]
        if len(pairs) > 1:
            return self.split(pairs[: len(pairs) // 2]) + self.split(pairs[len(pairs) // 2 :])
        amount = pairs[0].amount + spare
        if amount > 0:
            self._join(pairs[0]._replace(amount=amount))
        return max(0, amount)

    def _join(self, pair: _Pair) -> None:
        self.capacity[pair.into] -= pair.amount
        self.capacity[pair.out] -= pair.amount
        self.tail.append(self.tail[pair.into])
        self.head.append(self.head[pair.out])
        self.capacity.append(pair.amount)
        self.path.append(self.path[pair.into] + self.path[pair.out])

    def pairs_of(self, switch: int, others: int) -> list[tuple[int, int]]:
        """Ways into a switch and out of it that may become one: those of a distance together, those least joined first.

        Args:
            switch: vertex.
            others: of both ends of the ways that are switches themselves [count].
        """
        into, out = (
            [row for row, end in enumerate(ends) if end == switch and self.capacity[row]]
            for ends in (self.head, self.tail)
        )
        joined, among = dict[tuple[int, int], int](), [0] * len(out)
        for ends, amount in zip(zip(self.tail, self.head, strict=True), self.capacity, strict=True):
            joined[ends] = joined.get(ends, 0) + amount
        pairs = []
        for place, i in enumerate(into):
            for other, o in enumerate(out):
                ends = self.tail[i], self.head[o]
                if ends[0] == ends[1] or sum(end >= self.graph.num_compute for end in ends) != others:
                    continue
                if self.routes is None or self.path[i] + self.path[o] in self.routes:
                    shift = (other - place) % len(out)
                    among[shift] += joined.get(ends, 0)
                    pairs.append((shift, i, o))
        pairs.sort(key=lambda pair: (among[pair[0]], pair[0]))
        return [(i, o) for _, i, o in pairs]

    def split_evenly(self, pairs: list[tuple[int, int]]) -> int:
        """Split off an equal part of each pair, or else as much of each as is possible; the capacity that was."""
        partners = np.bincount(np.ravel(pairs), minlength=len(self.tail)).tolist()
        rest, even = list(self.capacity), []
        for i, o in pairs:
            part = max(1, min(self.capacity[i] // partners[i], self.capacity[o] // partners[o]))
            if amount := min(rest[i], rest[o], part):
                even.append(_Pair(i, o, amount))
                rest[i], rest[o] = rest[i] - amount, rest[o] - amount
        return self.split(even) or sum(
            self.split([_Pair(i, o, most)]) for i, o in pairs if (most := min(self.capacity[i], self.capacity[o]))
        )

    def empty(self, switch: int) -> bool:
        """Split off the pairs of a switch and leave it out; whether no cut lacks capacity then."""
        for others in range(3):
            while (pairs := self.pairs_of(switch, others)) and self.split_evenly(pairs):
                pass
        for row in range(len(self.tail)):
            if switch in (self.tail[row], self.head[row]):
                self.capacity[row] = 0
        return self.spare() >= 0


def split_off_switches(
    graph: CapacityGraph, capacity: IntArray, share: IntArray, routes: Container[Path] | None = None
) -> Ways | None:
    """Ways between the vertices that compute, the widest first, of which the same trees can be made; None: not found.

    There are always such ways where every switch receives as much as it sends or more, and may forward anything anywhere.

    Args:
        graph: the network.
        capacity: of each arc, int64 (arcs,) [units].
        share: trees from each vertex, int64 (vertices,).
        routes: paths that may be taken and all parts of them; None: any.
    """
    left = _Splitting(graph, capacity, share, routes)
    if left.spare() < 0:
        return None
    for switch in _nearest_first(graph):
        if not left.empty(switch):
            return None
    rows = [row for row, amount in enumerate(left.capacity) if amount]
    rows.sort(key=lambda row: -left.capacity[row])
    tail, head, wide = (
        np.array([column[row] for row in rows], np.int64) for column in (left.tail, left.head, left.capacity)
    )
    return Ways(tail, head, wide, [left.path[row] for row in rows])


def _nearest_first(graph: CapacityGraph) -> list[int]:
    """Switches by the number of arcs from the nearest vertex that computes."""
    away = np.where(np.arange(graph.num_vertices) < graph.num_compute, 0, graph.num_vertices)
    for _ in range(graph.num_vertices):
        nearer = away.copy()
        np.minimum.at(nearer, graph.head, away[graph.tail] + 1)
        if np.array_equal(nearer, away):
            break
        away = nearer
    return (np.argsort(away[graph.num_compute :], kind="stable") + graph.num_compute).tolist()
