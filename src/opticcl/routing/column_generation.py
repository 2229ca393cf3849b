"""Fractional routing by linear programme: HiGHS minimises the load of the most congested edge, prices generate paths.

    min z    the parts of each circuit add up to 1; on each edge the circuits add up to at most z times its share

Its prices of edges prove a bound (see `bounds`), its fractional solution is rounded at random. It starts from the given paths
and adds, for every circuit, the cheapest path at the current prices, until none is cheaper than the known ones or the bound
proves the known routes optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.paths import paths_of_rows
from opticcl.routing.bounds import round_up
from opticcl.routing.grid import Grid, max_overlap
from opticcl.routing.paths import cheapest_paths

if TYPE_CHECKING:
    import highspy

__all__ = ["FractionalRouting", "generate_columns", "round_at_random"]

_MIN_IMPROVEMENT = 1e-6  # by which a new path must be cheaper than the known ones
MOST_ROUNDS = 200  # linear programmes of one search


@dataclass(frozen=True, slots=True, eq=False)
class FractionalRouting:
    """Fractional paths of circuits, and the bound that their prices prove.

    Args:
        hops, offsets: the paths.
        circuit: circuit of each path, int64 (paths,).
        part: fraction of the circuit on the path, float64 (paths,).
        overlap: load of the most congested edge.
        bound: largest bound that the prices proved.
        prices: prices of that bound, float64 (edges,).
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
    seed: int = 0,
) -> FractionalRouting:
    """Solve the linear programme over all paths.

    Args:
        grid: the grid.
        src, dst: tiles, int64 (n,).
        paths: initial paths: (hops, offsets) of all circuits, once or several times.
        enough: overlap of known routes; a bound that reaches it ends the search.
        seed: seed of the solver.
    """
    model = _Master(grid, len(src), seed)
    for hops, offsets in paths:
        model.add(np.arange(len(src)), hops, offsets)
    bound, best_prices, rounds = 0.0, np.zeros(4 * grid.num_tiles), 0
    while rounds < MOST_ROUNDS:
        rounds += 1
        worth, prices = model.solve()
        cost, hops, offsets = cheapest_paths(grid, src, dst, prices)
        paid = float((prices * model.width).sum())
        proven = round_up(grid, float(cost.sum()) / paid) if paid > 0 else 0.0
        if proven > bound:
            bound, best_prices = proven, prices
        new = np.flatnonzero(cost < worth - _MIN_IMPROVEMENT)
        if not len(new) or bound >= enough - 1e-9 > 0:
            break
        model.add(new, *paths_of_rows(hops, offsets, new))
    return model.mix(bound, best_prices, rounds)


class _Master:
    """The master programme: column 0 is z, the others are paths; rows are circuits, then open edges."""

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
        """Dual values of the circuits, and the prices of all edges."""
        self._highs.run()
        duals = np.asarray(self._highs.getSolution().row_dual)
        prices = np.zeros(len(self.width))
        prices[self._open] = np.maximum(0.0, -duals[self._num_circuits :])
        return duals[: self._num_circuits], prices

    def mix(self, bound: float, prices: npt.NDArray[np.float64], rounds: int) -> FractionalRouting:
        """The last solution."""
        values = np.asarray(self._highs.getSolution().col_value)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(self._lengths))])
        hops, circuit = np.concatenate(self._hops), np.concatenate(self._circuits)
        return FractionalRouting(
            hops, offsets, circuit, np.maximum(values[1:], 0.0), float(values[0]), bound, prices, rounds
        )


def round_at_random(
    grid: Grid, mix: FractionalRouting, num_circuits: int, tries: int, seed: int
) -> tuple[IntArray, IntArray]:
    """One path for each circuit, drawn with the probability of its part; the best of `tries` draws.

    Args:
        grid: the grid.
        mix: solution of the linear programme.
        num_circuits: circuits [count].
        tries: draws [count].
        seed: seed of the draws.
    """
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
        hops, offsets = paths_of_rows(mix.hops, mix.offsets, order[chosen])
        if (overlap := max_overlap(grid, hops)) < best_overlap:
            best, best_overlap = (hops, offsets), overlap
    assert best is not None
    return best
