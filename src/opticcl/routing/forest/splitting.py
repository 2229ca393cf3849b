"""Networks without their switches: links between vertices that compute, each over a path through switches.

A pair of arcs (u, w) and (w, t) of a switch w is split off: some of the capacity of both becomes that of an arc (u, t). A cut
that has u and t on one side and w on the other loses as much, so the capacity that may be split off is what the least of all
cuts has over its need. Where a switch receives at least what it sends, all that leaves it can be split off, one pair after the
other, and no cut falls below its need.

Pairs are split off evenly: trees of many short arcs are shallower than those of a few wide ones. Many pairs are tried at once;
where a cut falls below its need, the last pairs that it loses by are taken back as far as it lacks. A cut has never more than
before, so one that has nothing to spare forbids its pairs from then on.

Source: Bang-Jensen, Frank and Jackson 1995; Zhao et al. 2024 (ForestColl).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.routing.forest._flows import least_cut
from opticcl.routing.forest.graph import CapacityGraph

__all__ = ["Path", "Ways", "split_off_routes", "split_off_switches"]

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


class _Chains:
    """Ways that lie one behind the other and may become one.

    Args:
        chains: ways of each.
        tail, head: of every way, int64 (ways,).
    """

    def __init__(self, chains: Sequence[Path], tail: IntArray, head: IntArray) -> None:
        self.chains = chains
        self.way = np.array([way for chain in chains for way in chain], np.int64)
        self.chain = np.repeat(np.arange(len(chains)), [len(chain) for chain in chains])
        self.from_, self.to = tail[self.way], head[self.way]
        self.tail, self.head = (
            np.array([ends[chain[at]] for chain in chains], np.int64) for ends, at in ((tail, 0), (head, -1))
        )

    def lost(self, inside: npt.NDArray[np.bool_]) -> IntArray:
        """What a cut loses by a unit of each chain, int64 (chains,): how often it crosses the cut more than it must."""
        crosses = inside[self.from_] & ~inside[self.to]
        times = np.bincount(self.chain[crosses], minlength=len(self.chains))
        return times - (inside[self.tail] & ~inside[self.head])

    def even_parts(self, capacity: IntArray, allowed: npt.NDArray[np.bool_]) -> IntArray:
        """An equal part of the ways of each chain, as far as there is enough for those before it, int64 (chains,).

        Args:
            capacity: of every way, int64 (ways,).
            allowed: chains that have a part, bool (chains,).
        """
        sharing = np.bincount(self.way[allowed[self.chain]], minlength=len(capacity))
        part, rest = (capacity // np.maximum(1, sharing)).tolist(), capacity.tolist()
        parts = np.zeros(len(self.chains), np.int64)
        for k in np.flatnonzero(allowed).tolist():
            chain = self.chains[k]
            amount = min(max(1, min(part[way] for way in chain)), *(rest[way] for way in chain))
            for way in chain:
                rest[way] -= amount
            parts[k] = amount
        return parts


class _Splitting:
    """Ways that are left of a network, which change until no switch has one.

    Args:
        graph: the network.
        capacity: of each arc, int64 (arcs,).
        share: trees from each vertex, int64 (vertices,).
    """

    def __init__(self, graph: CapacityGraph, capacity: IntArray, share: IntArray) -> None:
        self.graph, self.share = graph, share
        self.targets, self.needed = np.arange(graph.num_compute), int(share.sum())
        self.tail, self.head, self.capacity = graph.tail, graph.head, capacity
        self.path: list[Path] = [(arc,) for arc in range(len(self.tail))]
        self.cuts: list[npt.NDArray[np.bool_]] = []  # that once lacked capacity

    def lacking(self, tail: IntArray, head: IntArray, capacity: IntArray) -> tuple[int, npt.NDArray[np.bool_]]:
        """What the least of all cuts lacks, 0 if it has enough, and the vertices from which it leads.

        Args:
            tail, head, capacity: of ways, int64 (ways,).
        """
        used = capacity > 0
        columns = (tail[used], head[used], capacity[used], self.share, self.targets, self.needed, True)
        flow, _, side = least_cut(self.graph.num_vertices, *columns)
        return self.needed - int(flow), ~side

    def allowed(self, chains: _Chains) -> npt.NDArray[np.bool_]:
        """Chains that no cut that is known forbids, and on whose ways there is capacity, bool (chains,)."""
        full = np.bincount(chains.chain[self.capacity[chains.way] == 0], minlength=len(chains.chains))
        found: npt.NDArray[np.bool_] = full == 0
        for inside in self.cuts:
            leaving = self.capacity[inside[self.tail] & ~inside[self.head]].sum() + self.share[~inside].sum()
            found &= chains.lost(inside) <= leaving - self.needed
        return found

    def join(self, pieces: Sequence[Path]) -> None:
        """Join the ways of chains, an equal part of each at a time, until no cut allows more.

        Args: pieces: ways of each chain; the first are served first.
        """
        if not pieces:
            return
        chains = _Chains(pieces, self.tail, self.head)
        while (allowed := self.allowed(chains)).any():
            amount = chains.even_parts(self.capacity, allowed)
            while True:
                capacity = self.capacity - np.bincount(
                    chains.way, amount[chains.chain], minlength=len(self.capacity)
                ).astype(np.int64)
                columns = [
                    np.concatenate(pair)
                    for pair in ((self.tail, chains.tail), (self.head, chains.head), (capacity, amount))
                ]
                lack, inside = self.lacking(*columns)
                if not lack:
                    break
                self.cuts.append(inside)
                _take_back(amount, chains.lost(inside), lack)
            made = np.flatnonzero(amount).tolist()
            self.tail, self.head, self.capacity = (
                np.concatenate([column[: len(capacity)], column[len(capacity) :][made]]) for column in columns
            )
            self.path += [tuple(arc for way in pieces[k] for arc in self.path[way]) for k in made]

    def pairs_of(self, switch: int, others: int) -> list[Path]:
        """Ways into a switch and out of it that may become one: those of a distance together, those least joined first.

        Ways without capacity are forgotten, so the numbers of the others change.

        Args:
            switch: vertex.
            others: of both ends of the ways that are switches themselves [count].
        """
        if not (some := self.capacity > 0).all():  # the others are of no more use
            self.tail, self.head, self.capacity = (column[some] for column in (self.tail, self.head, self.capacity))
            self.path = list(compress(self.path, some))
        into, out = (np.flatnonzero(ends == switch) for ends in (self.head, self.tail))
        number = np.full((2, self.graph.num_vertices), -1, np.int64)  # of vertices before and behind the switch
        number[0, self.tail[into]], number[1, self.head[out]] = np.arange(len(into)), np.arange(len(out))
        row, column = number[0, self.tail], number[1, self.head]
        near = (row >= 0) & (column >= 0)
        pairs = row[near] * len(out) + column[near]
        joined = np.bincount(pairs, self.capacity[near], len(into) * len(out))
        place, other = (index.ravel() for index in np.indices((len(into), len(out))))
        tail, head, shift = self.tail[into[place]], self.head[out[other]], (other - place) % max(1, len(out))
        wanted = (tail != head) & ((tail >= self.graph.num_compute) + 1 * (head >= self.graph.num_compute) == others)
        among = np.bincount(shift[wanted], joined[number[0, tail] * len(out) + number[1, head]][wanted], len(out))
        order = np.lexsort((shift, among[shift])) if len(out) else place
        order = order[wanted[order]]
        return list(zip(into[place[order]].tolist(), out[other[order]].tolist(), strict=True))

    def ways(self) -> Ways | None:
        """Ways between vertices that compute, the widest first; None where a cut lacks capacity without all others."""
        stays = (self.capacity > 0) & (np.maximum(self.tail, self.head) < self.graph.num_compute)
        rows = np.flatnonzero(stays)
        rows = rows[np.argsort(-self.capacity[rows], kind="stable")]
        tail, head, capacity = self.tail[rows], self.head[rows], self.capacity[rows]
        if self.lacking(tail, head, capacity)[0]:
            return None
        return Ways(tail, head, capacity, [self.path[row] for row in rows.tolist()])


def _take_back(amount: IntArray, lost: IntArray, lack: int) -> None:
    """Lower the amounts of the last chains until a cut has what it lacks.

    Args:
        amount: of each chain, int64 (chains,); changed.
        lost: what the cut loses by a unit of each, int64 (chains,).
        lack: what it lacks.
    """
    for k in np.flatnonzero((lost > 0) & (amount > 0))[::-1].tolist():
        less = min(int(amount[k]), -(-lack // int(lost[k])))
        amount[k] -= less
        lack -= less * int(lost[k])
        if lack <= 0:
            return


def split_off_switches(graph: CapacityGraph, capacity: IntArray, share: IntArray) -> Ways | None:
    """Ways between the vertices that compute, the widest first, of which the same trees can be made.

    There are always such ways where every switch receives as much as it sends or more; else there may be None.

    Args:
        graph: the network.
        capacity: of each arc, int64 (arcs,) [units].
        share: trees from each vertex, int64 (vertices,).
    """
    left = _Splitting(graph, capacity, share)
    for switch in _nearest_first(graph):
        for others in range(3):
            left.join(left.pairs_of(switch, others))
    return left.ways()


def split_off_routes(graph: CapacityGraph, capacity: IntArray, share: IntArray, routes: Sequence[Path]) -> Ways | None:
    """The same with routes that packets keep to; None where none are found.

    Short routes are taken as far as they serve, then longer ones; or else all at once.

    Args:
        graph, capacity, share: as of `split_off_switches`.
        routes: arcs of each, from a vertex that computes to another one through switches.
    """
    alone = {route[0] for route in routes if len(route) == 1}
    direct = (graph.tail < graph.num_compute) & (graph.head < graph.num_compute)
    capacity = np.where(direct & ~np.isin(np.arange(len(capacity)), list(alone)), 0, capacity)
    longer = [route for route in routes if len(route) > 1]
    lengths = sorted({len(route) for route in longer})
    for order in ([[n] for n in lengths], [lengths]) if len(lengths) > 1 else ([lengths],):
        left = _Splitting(graph, capacity, share)
        for together in order:
            left.join([route for route in longer if len(route) in together])
        if (ways := left.ways()) is not None:
            return ways
    return None


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
