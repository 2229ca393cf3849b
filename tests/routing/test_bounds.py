"""Cuts and prices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.routing.grids import demands, grids, recount

from opticcl.routing.bounds import cut_bound, price_bound
from opticcl.routing.dimension_order import dimension_order
from opticcl.routing.grid import Grid, max_overlap
from opticcl.routing.paths import random_shortest


@pytest.mark.parametrize(("rows", "columns", "bound"), [(16, 16, 1024), (4, 8, 64), (2, 3, 4), (1, 7, 12), (5, 5, 30)])
def test_all_pairs_meet_the_middle_cut(rows: int, columns: int, bound: int) -> None:
    """N max(R, C) / 4 where that is whole; dimension order reaches it."""
    n = rows * columns
    src, dst = (np.ravel(a) for a in np.nonzero(~np.eye(n, dtype=bool)))
    grid = Grid(rows, columns)
    assert cut_bound(grid, src, dst)[0] == bound
    assert max_overlap(grid, dimension_order(src, dst, columns)[0]) == bound


def test_a_cut_with_a_weak_edge_counts_it_in_part() -> None:
    """Three circuits across one and a half edges."""
    share = np.ones(16)
    share[0] = 0.5
    bound, prices = cut_bound(Grid(2, 2, share=share), np.array([0, 2, 2]), np.array([1, 3, 1]))
    assert bound == pytest.approx(2)
    assert np.flatnonzero(prices).tolist() in ([0, 8], [6, 13], [0, 13])  # east of tiles 0 and 2, or into tile 1


def test_a_corner_can_be_the_narrowest_cut() -> None:
    """Five circuits leave a corner tile by two edges; no row or column is as narrow."""
    bound, prices = cut_bound(Grid(3, 3), np.zeros(5, int), np.array([1, 3, 4, 5, 7]))
    assert bound == 3
    assert prices[:4].tolist() == [1, 1, 1, 1]


@examples(30)
@given(st.data())
def test_no_routes_undercut_a_cut_or_any_prices(data: st.DataObject) -> None:
    """Random shortest paths and random prices."""
    grid = data.draw(grids())
    src, dst = data.draw(demands(grid))
    hops, offsets = random_shortest(grid, src, dst, data.draw(st.integers(0, 9)))
    overlap = recount(grid, src, dst, hops, offsets)
    bound, prices = cut_bound(grid, src, dst)
    assert bound <= overlap + 1e-9
    assert price_bound(grid, src, dst, prices) >= bound - 1e-9
    some = np.random.default_rng(data.draw(st.integers(0, 9))).random(4 * grid.num_tiles)
    assert price_bound(grid, src, dst, some) <= overlap + 1e-9


def test_prices_of_nothing_prove_nothing() -> None:
    """All zero."""
    assert price_bound(Grid(2, 2), np.array([0]), np.array([3]), np.zeros(16)) == 0
