"""Capacity that both ways of a link share, divided between them as an all-gather or a broadcast needs it.

    min T    into each vertex that computes flows what all others have, over arcs no wider than u;
             the widths u of arcs that share a capacity add up to no more than T times it;
             out of a switch, which copies nothing, leads no more width than into it

The flow into one vertex does not load links beside that into another: schedules along trees send a piece over a link once for
all that need it. Trees then have widths u / T (`opticcl.routing.forest`).

Without the condition of switches, prices prove a bound, as of a concurrent flow: every vertex t gives each arc a price, and
what flows into t pays at least the distances to it. An arc costs the sum of these prices a unit of width, a capacity as much as
the dearest arc that has a share of it.

Source: Edmonds 1973 and Ahlswede, Cai, Li and Yeung 2000 for flows into several vertices over the same widths.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.routing.concurrent_flow import WHOLE_PRICE, distances, solved_programme
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import weights_of

__all__ = ["shared_bound", "shared_capacity"]

Floats = npt.NDArray[np.float64]

PARTS = limit("shared_capacity.PARTS")


def shared_capacity(graph: CapacityGraph, pool: IntArray, root: int | None = None) -> CapacityGraph:
    """The network with a capacity for each arc, by the division with the least time, in smaller units.

    Args:
        graph: the network, in which every arc has all of what it has a share of.
        pool: capacity that each arc has a share of, from 0 on, int64 (arcs,).
        root: of a broadcast; None: an all-gather.
    Raises: UnsupportedError: no way leads to some vertex that computes.
    """
    asked = _Asked.of(graph, pool, root)
    time, width, _ = asked.solved(copies=False)
    capacity = np.zeros(len(graph.tail), np.int64)
    capacity[asked.arcs] = _parts(width / time, asked.pool, asked.room)
    return replace(graph, capacity=capacity, unit_bits_per_s=graph.unit_bits_per_s / PARTS)


def shared_bound(graph: CapacityGraph, pool: IntArray, root: int | None = None) -> Fraction:
    """Time below which no division of the capacities is, even if switches copied [weight of one vertex / unit of capacity].

    Args: graph, pool, root: as of `shared_capacity`.
    Raises: UnsupportedError: as `shared_capacity`.
    """
    asked = _Asked.of(graph, pool, root)
    *_, price = asked.solved(copies=True)
    whole = np.rint(price * (WHOLE_PRICE / price.sum(axis=0).max())).astype(np.int64)
    dearest = np.zeros(len(asked.room), np.int64)
    np.maximum.at(dearest, asked.pool, whole.sum(axis=0))
    paid = sum(int(p) * int(c) for p, c in zip(dearest.tolist(), asked.room.tolist(), strict=True))
    turned, due = replace(graph, tail=graph.head, head=graph.tail), 0
    for prices, target in zip(whole, asked.targets.tolist(), strict=True):
        far = distances(turned, asked.arcs, prices, np.array([target]))[0]
        due += int(far[asked.weights > 0].sum())
    return Fraction(due, paid)


class _Asked(NamedTuple):
    """What is divided, and for what.

    Args:
        graph: the network.
        arcs: those with capacity, int (n,).
        pool: capacity that each has a share of, int (n,).
        room: of each pool, int64 (pools,).
        weights: of the data of each vertex, 0 or 1, int64 (vertices,).
        targets: vertices that receive, int64 (targets,).
    """

    graph: CapacityGraph
    arcs: IntArray
    pool: IntArray
    room: IntArray
    weights: IntArray
    targets: IntArray

    @classmethod
    def of(cls, graph: CapacityGraph, pool: IntArray, root: int | None) -> _Asked:
        """From the arguments of `shared_capacity`."""
        arcs = np.flatnonzero(graph.capacity)
        _, first, shared = np.unique(pool[arcs], return_index=True, return_inverse=True)
        targets = np.array([v for v in range(graph.num_compute) if v != root])
        return cls(graph, arcs, shared, graph.capacity[arcs][first], weights_of(graph, root), targets)

    def solved(self, *, copies: bool) -> tuple[float, Floats, Floats]:
        """Time, width of each arc, and the price of each arc for each target.

        Args: copies: whether more width may lead out of a switch than into it.
        Raises: UnsupportedError: there is no flow.
        """
        graph, n, many = self.graph, len(self.arcs), len(self.targets)
        tail, head = graph.tail[self.arcs], graph.head[self.arcs]
        flow = 1 + n + np.arange(many)[:, None] * n + np.arange(n)  # columns: the time, widths, flows into each target
        others = np.array([[v for v in range(graph.num_vertices) if v != t] for t in self.targets.tolist()])
        row_of = np.zeros((many, graph.num_vertices), np.int64)
        row_of[np.arange(many)[:, None], others] = 1 + np.arange(others.size).reshape(others.shape)
        width, covers, limits = 1 + np.arange(n), others.size + np.arange(many * n), others.size + many * n
        switches = limits + len(self.room) - graph.num_compute
        ones = np.ones(n)
        entries = [
            (covers, flow.ravel(), np.ones(many * n)),
            (covers, np.tile(width, many), -np.ones(many * n)),
            (limits + self.pool, width, ones),
            (limits + np.arange(len(self.room)), np.zeros(len(self.room), np.int64), -self.room.astype(float)),
        ]
        for ends, sign in ((tail, 1.0), (head, -1.0)):
            row, of_switch = row_of[:, ends] - 1, (ends >= graph.num_compute) & (not copies)
            entries.append((row[row >= 0], flow[row >= 0], np.full(np.count_nonzero(row >= 0), sign)))
            entries.append((switches + ends[of_switch], width[of_switch], sign * ones[of_switch]))
        rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        found = solved_programme((rows, columns, values), self.weights[others].ravel().astype(float), 1 + n + many * n)
        if found is None:
            raise UnsupportedError("no links lead from some node to another; every node needs a way to every other")
        primal, dual = found
        return float(primal[0]), primal[width], np.maximum(0.0, -dual[covers]).reshape(many, n)


def _parts(width: Floats, pool: IntArray, room: IntArray) -> IntArray:
    """Widths as whole parts of the capacities that arcs share, what is left to the widest of each, int64 (arcs,).

    Args:
        width: of each arc, float64 (arcs,).
        pool: capacity that each has a share of, int (arcs,).
        room: of each pool, int64 (pools,).
    """
    share = width / room[pool]
    parts = np.floor(share * PARTS + 1e-6).astype(np.int64)
    left = PARTS - np.bincount(pool, parts, len(room)).astype(np.int64)
    widest = np.lexsort((share, pool))[np.cumsum(np.bincount(pool)) - 1]
    parts[widest] += np.maximum(0, left)
    return parts * room[pool]
