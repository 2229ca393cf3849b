"""Maximum concurrent flow: equal demands between all vertices that compute, with as little as possible on every link.

    min T    a unit of flow leads from each of these vertices to every other, over a link no more than T times its capacity

Flows of one source are added up, so a variable is a source and an arc. Colours of variables and constraints are refined by
those of their neighbours; those of one colour in the end are one. By a theorem of linear programmes the optimum stays the same,
whether or not symmetries of the network take them to each other.

The prices of links that HiGHS returns prove a bound. A unit from s to t pays at least the distance of t from s, and all
together pay at most T times the price of all capacity. The bound is evaluated in whole numbers and holds for any prices, so it
rests neither on the solver nor on the refinement.

Source: Shahrokhi and Matula 1990 for the flow and its prices; Grohe, Kersting, Mladenov and Selman 2014 for the refinement.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray, mixed_bits
from opticcl.routing.forest.graph import CapacityGraph

if TYPE_CHECKING:
    import highspy

__all__ = ["WHOLE_PRICE", "ConcurrentFlow", "concurrent_flow", "distances", "solved_programme"]

Floats = npt.NDArray[np.float64]
Colours = npt.NDArray[np.uint64]

WHOLE_PRICE = 1e9
"""The largest price, where prices are whole numbers."""

SLACK = 1e-9
"""Share by which the shortest paths may exceed the least time."""


class ConcurrentFlow(NamedTuple):
    """Flows from all sources, and what prices of links prove.

    Args:
        time: largest load over capacity of a link [demand of a pair / unit of capacity].
        bound: below which no flow is, by the prices [demand of a pair / unit of capacity].
        flow: of each source over each arc, float64 (sources, arcs) [demand of a pair].
        price: of each arc, int64 (arcs,).
    """

    time: float
    bound: Fraction
    flow: Floats
    price: IntArray


def concurrent_flow(graph: CapacityGraph, pool: IntArray | None = None, *, relays: bool) -> ConcurrentFlow:
    """The flow with the least time, and of these one with the shortest paths.

    Args:
        graph: the network.
        pool: capacity that each arc has a share of, from 0 on, int64 (arcs,); None: each has its own.
        relays: whether flow passes vertices that compute. The bound holds either way, and is as good as the flow if so.
    Raises: UnsupportedError: no way leads to some vertex that computes.
    """
    arcs = np.flatnonzero(graph.capacity)
    _, shared = np.unique(arcs if pool is None else pool[arcs], return_inverse=True)
    programme = _Programme(graph, arcs, shared, relays=relays)
    time, flow, price = programme.solved()
    whole = np.rint(price * (WHOLE_PRICE / price.max())).astype(np.int64)[shared]
    paid = sum(int(p) * int(c) for p, c in zip(programme.room.tolist(), _of_pools(whole, shared), strict=True))
    every, cost = (np.zeros((*shape, len(graph.tail)), kind) for shape, kind in (((len(flow),), float), ((), np.int64)))
    every[:, arcs], cost[arcs] = flow, whole
    far = distances(graph, arcs, whole, np.arange(graph.num_compute))[:, : graph.num_compute]
    return ConcurrentFlow(time, Fraction(int(far.sum()), paid), every, cost)


def _of_pools(values: IntArray, pool: IntArray) -> list[int]:
    """The value of each pool, which all its arcs have."""
    return values[np.unique(pool, return_index=True)[1]].tolist()


def distances(graph: CapacityGraph, arcs: IntArray, price: IntArray, sources: IntArray) -> IntArray:
    """Least price of a way from each source to each vertex, int64 (sources, vertices).

    Args:
        graph: the network.
        arcs: numbers of those that may be used, int (n,).
        price: of each of these, int64 (n,).
        sources: vertices, int (sources,).
    """
    order = np.argsort(graph.head[arcs], kind="stable")
    tail, head, price = graph.tail[arcs][order], graph.head[arcs][order], price[order]
    reached, first = np.unique(head, return_index=True)
    found = np.full((len(sources), graph.num_vertices), np.iinfo(np.int64).max // 2)
    found[np.arange(len(sources)), sources] = 0
    while True:
        nearer = np.minimum(np.minimum.reduceat(found[:, tail] + price, first, axis=1), found[:, reached])
        if np.array_equal(nearer, found[:, reached]):
            return found
        found[:, reached] = nearer


def solved_programme(
    entries: tuple[IntArray, IntArray, Floats], demands: Floats, num_columns: int
) -> tuple[Floats, Floats] | None:
    """Values of the columns and prices of the rows where column 0 is least; None where there is no solution.

    Args:
        entries: row, column and value of each.
        demands: what the first rows are equal to, float64 (rows,); the others are at most 0.
        num_columns: [count].
    """
    programme = _Rows(num_columns - 1)
    row, column, value = entries
    programme.add(row, column - 1, value)
    solver = programme.solver(demands)
    values = programme.minimum(solver)
    return None if values is None else (values, np.asarray(solver.getSolution().row_dual))


class _Programme:
    """The linear programme of a network, and its refinement.

    Args:
        graph: the network.
        arcs: those with capacity, int (n,).
        pool: capacity that each has a share of, int (n,).
        relays: as of `concurrent_flow`.
    """

    def __init__(self, graph: CapacityGraph, arcs: IntArray, pool: IntArray, *, relays: bool) -> None:
        self.graph, self.pool = graph, pool
        self.tail, self.head = graph.tail[arcs], graph.head[arcs]
        self.room = graph.capacity[arcs][np.unique(pool, return_index=True)[1]]
        source = np.arange(graph.num_compute)[:, None]
        self.used = self.head != source
        if not relays:
            self.used &= (self.tail >= graph.num_compute) | (self.tail == source)

    def solved(self) -> tuple[float, Floats, Floats]:
        """Time, flows of each source over each arc, and the price of each pool.

        Raises: UnsupportedError: there is no flow.
        """
        flows, balances, pools = self._refined()
        of_flow, members = np.unique(flows[self.used], return_inverse=True)
        matrix = _Rows(len(of_flow))
        number = np.zeros(self.used.shape, np.int64)
        number[self.used] = members
        demands = self._balance_rows(matrix, balances, number)
        classes = self._pool_rows(matrix, pools, number)
        solver = matrix.solver(demands)
        values = matrix.minimum(solver)
        if values is None:
            raise UnsupportedError("no links lead from some node to another; every node needs a way to every other")
        counts = np.bincount(classes)
        price = -np.asarray(solver.getSolution().row_dual)[len(demands) :][classes] / counts[classes]
        shortest = matrix.shortest(solver, values[0], np.bincount(members).astype(float))
        flow = np.where(self.used, np.maximum(0.0, shortest[1:])[number], 0.0)
        return float(values[0]), flow, np.maximum(price, 0.0)

    def _refined(self) -> tuple[Colours, Colours, Colours]:
        """Colours of flows (sources, arcs), of balances (sources, vertices) and of pools that refinement leaves equal."""
        vertex, source = np.arange(self.graph.num_vertices), np.arange(self.graph.num_compute)[:, None]
        balances = np.where(vertex == source, 1, np.where(vertex < self.graph.num_compute, 2, 3)).astype(np.uint64)
        flows, pools = np.zeros(self.used.shape, np.uint64), self.room.astype(np.uint64)
        known: tuple[int, ...] = ()
        while True:
            of_ends = _mixed(balances, 1)[:, self.tail] + _mixed(balances, 2)[:, self.head]
            flows = np.where(self.used, _mixed(flows + of_ends + _mixed(pools, 3)[self.pool], 4), np.uint64(0))
            there, back = (np.where(self.used, _mixed(flows, salt), np.uint64(0)) for salt in (5, 6))
            around = _sums(there, self.head, len(vertex)) + _sums(back, self.tail, len(vertex))
            balances = _mixed(_mixed(balances, 7) + around, 8)
            carried = np.zeros(len(pools), np.uint64)
            np.add.at(carried, self.pool, there.sum(axis=0, dtype=np.uint64))
            pools = _mixed(_mixed(pools, 9) + carried, 10)
            count = tuple(len(np.unique(colours)) for colours in (flows, balances, pools))
            if count == known:
                return flows, balances, pools
            known = count

    def _balance_rows(self, matrix: _Rows, balances: Colours, number: IntArray) -> Floats:
        """Add what enters a vertex less what leaves it, for one of each colour; what that must be, float64 (rows,).

        Args:
            matrix: to add to.
            balances: colours, (sources, vertices).
            number: of the variable of each flow, int (sources, arcs).
        """
        n, vertices = self.graph.num_compute, self.graph.num_vertices
        others = np.flatnonzero((np.arange(vertices) != np.arange(n)[:, None]).ravel())
        rows = others[np.unique(balances.ravel()[others], return_index=True)[1]]
        row_of = np.full(n * vertices, -1)
        row_of[rows] = np.arange(len(rows))
        for ends, sign in ((self.head, 1.0), (self.tail, -1.0)):
            row = row_of.reshape(n, vertices)[:, ends]
            mine = self.used & (row >= 0)
            matrix.add(row[mine], number[mine], sign)
        matrix.num_rows = len(rows)  # no flow may reach the last vertices
        return (rows % vertices < n).astype(float)

    def _pool_rows(self, matrix: _Rows, pools: Colours, number: IntArray) -> IntArray:
        """Add what loads a pool less the time times its capacity, for one of each colour; colour of each pool.

        Args:
            matrix, number: as of `_balance_rows`.
            pools: colours, (pools,).
        """
        _, chosen, classes = np.unique(pools, return_index=True, return_inverse=True)
        first = matrix.num_rows
        row_of = np.full(len(pools), -1)
        row_of[chosen] = first + np.arange(len(chosen))
        row = np.broadcast_to(row_of[self.pool], self.used.shape)
        mine = self.used & (row >= 0)
        matrix.add(row[mine], number[mine], 1.0)
        matrix.add_time(row_of[chosen], self.room[chosen])
        return classes


class _Rows:
    """Rows of a programme whose column 0 is the time.

    Args: num_flows: other columns [count].
    """

    def __init__(self, num_flows: int) -> None:
        self.num_columns, self.num_rows = num_flows + 1, 0
        self._entries: list[tuple[IntArray, IntArray, Floats]] = []

    def add(self, row: IntArray, flow: IntArray, value: float | Floats) -> None:
        """Add a value for each of some flows; of one flow in one row the sum counts."""
        self._entries.append((row, flow + 1, np.broadcast_to(np.float64(value), row.shape)))
        self.num_rows = max(self.num_rows, int(row.max(initial=-1)) + 1)

    def add_time(self, row: IntArray, capacity: IntArray) -> None:
        """Take capacities times the time away."""
        self._entries.append((row, np.zeros(len(row), np.int64), -capacity.astype(float)))
        self.num_rows = max(self.num_rows, int(row.max(initial=-1)) + 1)  # no flow may load the last pools

    def solver(self, demands: Floats) -> highspy.Highs:
        """HiGHS with the programme: the first rows are equal to demands, the others at most 0, the time is to be least."""
        import highspy

        row, column, value = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        places, which = np.unique(row * self.num_columns + column, return_inverse=True)
        sums = np.bincount(which, value)
        places, sums = places[sums != 0], sums[sums != 0]
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self.num_columns, self.num_rows
        model.col_cost_ = (np.arange(self.num_columns) == 0).astype(float)
        model.col_lower_, model.col_upper_ = np.zeros(self.num_columns), np.full(self.num_columns, highspy.kHighsInf)
        limited = self.num_rows - len(demands)
        model.row_lower_ = np.concatenate([demands, np.full(limited, -highspy.kHighsInf)])
        model.row_upper_ = np.concatenate([demands, np.zeros(limited)])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        starts = np.searchsorted(places, np.arange(self.num_rows + 1) * self.num_columns)
        model.a_matrix_.start_ = starts.astype(np.int32)
        model.a_matrix_.index_ = (places % self.num_columns).astype(np.int32)
        model.a_matrix_.value_ = sums
        solver = highspy.Highs()
        for option, given in (("output_flag", False), ("threads", 1)):
            solver.setOptionValue(option, given)
        solver.passModel(model)
        return solver

    def minimum(self, solver: highspy.Highs) -> Floats | None:
        """Values of the columns at the optimum, float64 (columns,); None where there is none."""
        import highspy

        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return np.asarray(solver.getSolution().col_value)

    def shortest(self, solver: highspy.Highs, time: float, members: Floats) -> Floats:
        """Values of the columns with the least flow in all, at the least time.

        Args:
            solver: that has found the least time.
            time: that it found.
            members: flows that each column stands for, float64 (flows,) [count].
        """
        columns = np.arange(self.num_columns, dtype=np.int32)
        solver.changeColsCost(self.num_columns, columns, np.concatenate([[0.0], members]))
        solver.changeColBounds(0, 0.0, time * (1 + SLACK))
        values = self.minimum(solver)
        assert values is not None
        return values


def _mixed(values: Colours, salt: int) -> Colours:
    """Numbers that look random and are equal where the values are."""
    return mixed_bits(values + np.uint64(0x9E3779B97F4A7C15 * (2 * salt + 1) % 2**64))


def _sums(values: Colours, ends: IntArray, num_vertices: int) -> Colours:
    """Sums over the arcs of each end, modulo 2^64, (sources, vertices)."""
    order = np.argsort(ends, kind="stable")
    begin = np.searchsorted(ends[order], np.arange(num_vertices + 1))
    upto = np.zeros((len(values), len(ends) + 1), np.uint64)
    np.cumsum(values[:, order], axis=1, dtype=np.uint64, out=upto[:, 1:])
    return upto[:, begin[1:]] - upto[:, begin[:-1]]
