"""The linear programme over paths, against one over edges."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.routing.grids import demands, graph_of, grids, recount

from opticcl.routing.bounds import price_bound
from opticcl.routing.column_generation import generate_columns, round_at_random
from opticcl.routing.grid import Grid
from opticcl.routing.paths import random_shortest


def by_edges(grid: Grid, src: np.ndarray, dst: np.ndarray) -> float:
    """The same optimum as a flow on edges: what leaves a tile less what enters it is 1, -1 or 0."""
    graph = graph_of(grid)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    z = model.addVariable(lb=0)
    flow = [{edge: model.addVariable(lb=0) for edge in graph.edges} for _ in src]
    for i, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        for tile in graph:
            out = sum(flow[i][edge] for edge in graph.out_edges(tile))
            into = sum(flow[i][edge] for edge in graph.in_edges(tile))
            if graph.degree(tile):
                model.addConstr(out - into == (tile == a) - (tile == b))
    for edge in graph.edges:
        model.addConstr(sum(f[edge] for f in flow) <= z * graph.edges[edge]["share"])
    model.minimize(z)
    return float(model.getInfo().objective_function_value)


@examples(15)
@given(st.data())
def test_both_programmes_agree(data: st.DataObject) -> None:
    """Small grids; the bound of the prices is the optimum, rounded up on whole grids."""
    grid = data.draw(grids(4))
    src, dst = data.draw(demands(grid, 5))
    assume(len(src) > 0)
    mix = generate_columns(grid, src, dst, [random_shortest(grid, src, dst)])
    optimum = by_edges(grid, src, dst)
    assert mix.overlap == pytest.approx(optimum, abs=1e-6)
    due = np.ceil(optimum - 1e-6) if grid.whole else optimum
    assert mix.bound == pytest.approx(due, abs=1e-6)
    assert price_bound(grid, src, dst, mix.prices) == pytest.approx(mix.bound)
    assert np.bincount(mix.circuit, mix.part, minlength=len(src)) == pytest.approx(np.ones(len(src)), abs=1e-6)


def test_a_draw_takes_one_path_of_each_circuit() -> None:
    """Twenty circuits between two corners, rounded."""
    grid, src, dst = Grid(3, 4), np.zeros(20, int), np.full(20, 11)
    mix = generate_columns(grid, src, dst, [random_shortest(grid, src, dst)])
    assert mix.overlap == pytest.approx(10)
    hops, offsets = round_at_random(grid, mix, 20, tries=10, seed=0)
    assert recount(grid, src, dst, hops, offsets) >= mix.bound


def test_a_bound_that_is_enough_ends_the_search() -> None:
    """One programme proves that the initial routes are optimal."""
    grid, src, dst = Grid(1, 5), np.array([0, 1]), np.array([4, 3])
    known = random_shortest(grid, src, dst)
    assert generate_columns(grid, src, dst, [known], enough=2.0).rounds == 1
