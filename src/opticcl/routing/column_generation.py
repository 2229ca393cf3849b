"""Paths by linear programme: HiGHS mixes paths so that the fullest edge is as empty as can be, prices tell what to add.

    min z    each circuit's paths add up to 1; on each edge the circuits add up to at most z times its share

Its prices of edges prove a bound (see `bounds`), its mix of paths is rounded at random. It begins with the paths given
and takes in, for every circuit, the cheapest path at the prices of the moment, until none is cheaper than those it has or
the bound says that the routes that are known cannot be beaten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.routing.bounds import rounded_up
from opticcl.routing.grid import Grid, fullest
from opticcl.routing.paths import cheapest_paths, in_order

if TYPE_CHECKING:
    import highspy

__all__ = ["Mix", "generate_columns", "rounded"]

_CHEAPER = 1e-6  # by which a new path must be cheaper than those there are


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Paths that a circuit takes in parts, and what their prices prove.

    Args:
        hops, offsets: the paths.
        circuit: of each path, int64 (paths,).
        part: of the circuit that takes the path, float64 (paths,).
        overlap: of this mix on the fullest edge.
        bound: that the best prices prove.
        prices: these, float64 (edges,).
        rounds: linear programmes solved [count].
    """

    hops: IntArray
    offsets: IntArray
    circuit: IntArray
    part: npt.NDArray[np.float64]
    overlap: float
    bound: float
    prices: npt.NDArray[np.float64]
    rounds: int


def generate_columns(
    grid: Grid,
    src: IntArray,
    dst: IntArray,
    paths: list[tuple[IntArray, IntArray]],
    *,
    enough: float = 0.0,
    most_rounds: int = 200,
    seed: int = 0,
) -> Mix:
    """Solve the linear programme over all paths.

    Args:
        src, dst: tiles, int64 (n,).
        paths: to begin with: (hops, offsets) of all circuits, once or several times.
        enough: fullness of the fullest edge of known routes; a bound that reaches it ends the search.
        most_rounds: linear programmes to solve at most.
        seed: of the solver.
    """
    model = _Master(grid, len(src), seed)
    for hops, offsets in paths:
        model.add(np.arange(len(src)), hops, offsets)
    bound, best_prices, rounds = 0.0, np.zeros(4 * grid.num_tiles), 0
    while rounds < most_rounds:
        rounds += 1
        worth, prices = model.solve()
        cost, hops, offsets = cheapest_paths(grid, src, dst, prices)
        paid = float((prices * model.width).sum())
        proven = rounded_up(grid, float(cost.sum()) / paid) if paid > 0 else 0.0
        if proven > bound:
            bound, best_prices = proven, prices
        new = np.flatnonzero(cost < worth - _CHEAPER)
        if not len(new) or bound >= enough - 1e-9 > 0:
            break
        model.add(new, *in_order(hops, offsets, new))
    return model.mix(bound, best_prices, rounds)


class _Master:
    """The programme so far: column 0 is z, the others are paths; rows are circuits, then edges that are open."""

    def __init__(self, grid: Grid, num_circuits: int, seed: int) -> None:
        import highspy

        self.width = grid.width()
        self._row_of_edge = np.full(len(self.width), -1, np.int64)
        open_edges = np.flatnonzero(self.width > 0)
        self._row_of_edge[open_edges] = num_circuits + np.arange(len(open_edges))
        self._open, self._num_circuits = open_edges, num_circuits
        self._hops: list[IntArray] = []
        self._lengths: list[IntArray] = []
        self._circuits: list[IntArray] = []
        self._highs: highspy.Highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("random_seed", seed % 2**31)):
            self._highs.setOptionValue(option, value)
        inf = highspy.kHighsInf
        empty_int, empty = np.zeros(0, np.int32), np.zeros(0)
        lower = np.concatenate([np.ones(num_circuits), np.full(len(open_edges), -inf)])
        upper = np.concatenate([np.ones(num_circuits), np.zeros(len(open_edges))])
        self._highs.addRows(len(lower), lower, upper, 0, np.zeros(len(lower), np.int32), empty_int, empty)
        rows = np.arange(num_circuits, num_circuits + len(open_edges), dtype=np.int32)
        self._highs.addCol(1.0, 0.0, inf, len(rows), rows, -self.width[open_edges])

    def add(self, circuits: IntArray, hops: IntArray, offsets: IntArray) -> None:
        """A path for each of the given circuits."""
        lengths = np.diff(offsets)
        starts = offsets[:-1] + np.arange(len(circuits))  # every column has the row of its circuit, too
        index = np.empty(len(hops) + len(circuits), np.int32)
        index[starts] = circuits
        on_edges = np.ones(len(index), bool)
        on_edges[starts] = False
        index[on_edges] = self._row_of_edge[hops]
        count = len(circuits)
        zeros, inf = np.zeros(count), np.full(count, 1e30)
        self._highs.addCols(count, zeros, zeros, inf, len(index), starts.astype(np.int32), index, np.ones(len(index)))
        self._hops.append(hops)
        self._lengths.append(lengths)
        self._circuits.append(np.asarray(circuits))

    def solve(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """What each circuit is worth, and the prices of all edges."""
        self._highs.run()
        duals = np.asarray(self._highs.getSolution().row_dual)
        prices = np.zeros(len(self.width))
        prices[self._open] = np.maximum(0.0, -duals[self._num_circuits :])
        return duals[: self._num_circuits], prices

    def mix(self, bound: float, prices: npt.NDArray[np.float64], rounds: int) -> Mix:
        """The last solution."""
        values = np.asarray(self._highs.getSolution().col_value)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(self._lengths))])
        hops, circuit = np.concatenate(self._hops), np.concatenate(self._circuits)
        return Mix(hops, offsets, circuit, np.maximum(values[1:], 0.0), float(values[0]), bound, prices, rounds)


def rounded(grid: Grid, mix: Mix, num_circuits: int, tries: int, seed: int) -> tuple[IntArray, IntArray]:
    """One path for each circuit, drawn with the probability of its part; the best of so many draws."""
    rng = np.random.default_rng(seed)
    order = np.lexsort((-mix.part, mix.circuit))
    circuit, part = mix.circuit[order], mix.part[order]
    first = np.searchsorted(circuit, np.arange(num_circuits + 1))
    ends = np.cumsum(part)
    before = np.concatenate([[0.0], ends])[first]
    total = np.diff(before)
    best: tuple[IntArray, IntArray] | None = None
    best_overlap = np.inf
    for _ in range(tries):
        drawn = before[:-1] + rng.random(num_circuits) * total
        chosen = np.clip(np.searchsorted(ends, drawn, side="right"), first[:-1], first[1:] - 1)
        hops, offsets = in_order(mix.hops, mix.offsets, order[chosen])
        if (overlap := fullest(grid, hops)) < best_overlap:
            best, best_overlap = (hops, offsets), overlap
    assert best is not None
    return best
