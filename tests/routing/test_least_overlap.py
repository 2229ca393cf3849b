"""Routes of least overlap: they connect, their overlap is as reported, and not below the bound."""

from __future__ import annotations

from itertools import product

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.routing.grids import demands, graph_of, grids, recount

from opticcl.errors import FabricError
from opticcl.routing.bounds import price_bound
from opticcl.routing.grid import Grid, Routes
from opticcl.routing.least_overlap import least_overlap
from opticcl.studies.lumorph import rounds_of


def fewest(grid: Grid, src: np.ndarray, dst: np.ndarray) -> float:
    """The least overlap, by trying every path of every pair."""
    graph = graph_of(grid)
    width = grid.width()
    choices = []
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        paths = networkx.all_simple_edge_paths(graph, a, b)
        choices.append([[graph.edges[edge]["number"] for edge in path] for path in paths])
    best = np.inf
    for chosen in product(*choices):
        load = np.bincount([hop for path in chosen for hop in path], minlength=len(width))
        best = min(best, float((load[load > 0] / width[load > 0]).max(initial=0.0)))
    return best


def checked(grid: Grid, src: np.ndarray, dst: np.ndarray, **options: object) -> Routes:
    """Routes, walked and counted again, with their bound computed again from its prices."""
    routes = least_overlap(grid, src, dst, **options)
    assert recount(grid, src, dst, routes.hops, routes.offsets) == pytest.approx(routes.max_overlap)
    assert routes.bound <= routes.max_overlap + 1e-9
    if routes.prices is not None:
        assert price_bound(grid, src, dst, routes.prices) == pytest.approx(routes.bound)
    return routes


@examples(15)
@given(st.data())
def test_routes_connect_and_bounds_hold(data: st.DataObject) -> None:
    """Random demands on random grids, with closed tiles and weak edges."""
    grid = data.draw(grids())
    src, dst = data.draw(demands(grid, 30))
    checked(grid, src, dst)


@examples(25)
@given(st.data())
def test_nothing_is_better_than_the_bound_says(data: st.DataObject) -> None:
    """All combinations of paths on tiny grids: the bound holds, and the routes have at most one circuit more."""
    grid = data.draw(grids(3))
    src, dst = data.draw(demands(grid, 3))
    routes = checked(grid, src, dst)
    best = fewest(grid, src, dst)
    assert routes.bound <= best + 1e-9
    assert best <= routes.max_overlap + 1e-9
    if grid.whole:
        assert routes.max_overlap <= best + 1


@pytest.mark.parametrize("shape", [(16, 16), (32, 8), (4, 64)])
@pytest.mark.parametrize("numbering", ["row", "squares"])
@pytest.mark.parametrize("radix", [2, 4])
def test_digit_exchanges_meet_the_cut(shape: tuple[int, int], numbering: str, radix: int) -> None:
    """Dimension order is optimal for every round of LUMORPH on 256 GPUs, and the cut proves it."""
    for src, dst in rounds_of(shape, radix, numbering, 0):
        routes = least_overlap(Grid(*shape), src, dst)
        assert (routes.optimal, routes.certificate) == (True, "cut")


@pytest.mark.parametrize("seed", range(3))
def test_random_placement_is_within_a_tenth_of_the_bound(seed: int) -> None:
    """16 x 16 tiles, LUMORPH-2 and -4, at random places: optimal."""
    for radix in (2, 4):
        for src, dst in rounds_of((16, 16), radix, "random", seed):
            routes = checked(Grid(16, 16), src, dst)
            assert routes.max_overlap <= 1.1 * routes.bound


def test_loads_of_the_hardest_round() -> None:
    """16 circuits for LUMORPH-4 and 8 for LUMORPH-2 on 16 x 16 squares."""
    most = [
        max(least_overlap(Grid(16, 16), s, d).max_overlap for s, d in rounds_of((16, 16), r, "squares", 0))
        for r in (2, 4)
    ]
    assert most == [8, 16]


def test_the_programme_proves_what_no_cut_does() -> None:
    """LUMORPH-2 at random places on 8 x 8 tiles: some rounds are above every cut, and still optimal."""
    hard = [(s, d) for n in range(8) for s, d in rounds_of((8, 8), 2, "random", n)]
    found = [checked(Grid(8, 8), s, d) for s, d in hard]
    assert any(routes.certificate == "linear programme" for routes in found)
    assert all(routes.optimal for routes in found)


def test_equal_seeds_give_equal_routes() -> None:
    """Results do not depend on a clock."""
    src, dst = next(iter(rounds_of((16, 16), 4, "random", 1)))
    one, other = (least_overlap(Grid(16, 16), src, dst, seed=5) for _ in range(2))
    assert np.array_equal(one.hops, other.hops)


def test_no_demand_needs_no_routes() -> None:
    """An empty demand is accepted."""
    routes = least_overlap(Grid(1, 1), np.zeros(0, int), np.zeros(0, int))
    assert (routes.max_overlap, routes.bound, routes.offsets.tolist()) == (0, 0, [0])


def test_tiles_that_no_path_joins_are_refused() -> None:
    """A wall between two tiles."""
    with pytest.raises(FabricError, match="from tile 0 to tile 2"):
        least_overlap(Grid(1, 3, np.array([1])), np.array([0]), np.array([2]))


def test_a_weak_edge_is_kept_clear() -> None:
    """Four circuits over two ways, one of which works by a third: three take the whole one."""
    share = np.ones(16)
    share[0] = 1 / 3  # east of tile 0
    routes = checked(Grid(2, 2, share=share), np.zeros(4, int), np.full(4, 3))
    assert routes.max_overlap == pytest.approx(3)
    assert np.bincount(routes.hops, minlength=16)[0] == 1
