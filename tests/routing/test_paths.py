"""Random shortest paths, detours, k shortest paths, components of a grid."""

from __future__ import annotations

from itertools import islice

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.routing.grids import demands, graph_of, grids, recount

from opticcl.errors import FabricError
from opticcl.fabrics import lightpath
from opticcl.routing import grid as edges
from opticcl.routing.dimension_order import dimension_order
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST, Grid
from opticcl.routing.k_shortest import k_shortest
from opticcl.routing.paths import cheapest_paths, open_dimension_order, random_shortest, replace_paths
from opticcl.routing.reach import components


@examples(60)
@given(st.data())
def test_random_paths_are_shortest(data: st.DataObject) -> None:
    """As long as in networkx, around closed tiles and edges."""
    grid = data.draw(grids())
    src, dst = data.draw(demands(grid))
    hops, offsets = random_shortest(grid, src, dst, seed=data.draw(st.integers(0, 99)))
    recount(grid, src, dst, hops, offsets)
    graph = graph_of(grid)
    due = [networkx.shortest_path_length(graph, a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    assert np.diff(offsets).tolist() == due


def test_all_shortest_paths_are_equally_likely() -> None:
    """Six ways from corner to corner of 3 x 3 tiles, 6000 draws: each about a sixth."""
    n = 6000
    hops, offsets = random_shortest(Grid(3, 3), np.zeros(n, int), np.full(n, 8), seed=1)
    _, counts = np.unique(hops.reshape(n, 4), axis=0, return_counts=True)
    assert offsets[-1] == 4 * n
    assert len(counts) == 6
    assert counts.min() > 850
    assert counts.max() < 1150


@examples(40)
@given(st.data())
def test_dimension_order_goes_around(data: st.DataObject) -> None:
    """Row first where that is open, else a shortest path."""
    grid = data.draw(grids())
    src, dst = data.draw(demands(grid))
    for first in ("row", "column"):
        hops, offsets = open_dimension_order(grid, src, dst, first)
        recount(grid, src, dst, hops, offsets)


@examples(40)
@given(st.data())
def test_dimension_order_is_along_one_side_and_then_the_other(data: st.DataObject) -> None:
    """Of any lengths, none among them, in both orders: as walked tile by tile."""
    rows, columns, n = (data.draw(st.integers(1, 7)) for _ in range(3))
    ends = st.lists(st.integers(0, rows * columns - 1), min_size=n, max_size=n)
    src, dst, row_first = data.draw(ends), data.draw(ends), data.draw(st.booleans())
    due, offsets = list[int](), [0]
    for tile, goal in zip(src, dst, strict=True):
        for along_row in (row_first, not row_first):
            place, stride = (lambda k: k % columns, 1) if along_row else (lambda k: k // columns, columns)
            while place(tile) != place(goal):
                ahead = place(tile) < place(goal)
                due.append(4 * tile + (EAST, WEST, SOUTH, NORTH)[2 * (not along_row) + (not ahead)])
                tile += stride if ahead else -stride
        offsets.append(len(due))
    found = dimension_order(np.array(src), np.array(dst), columns, "row" if row_first else "column")
    assert [one.tolist() for one in found] == [due, offsets]


def test_a_wall_is_refused() -> None:
    """Tile 1 of three in a row."""
    wall = Grid(1, 3, np.array([1]))
    for find in (open_dimension_order, random_shortest):
        with pytest.raises(FabricError, match="no open path leads from tile 2 to tile 0"):
            find(wall, np.array([2]), np.array([0]))


@examples(40)
@given(st.data())
def test_cheapest_paths_are_networkxs(data: st.DataObject) -> None:
    """Dijkstra's costs, with random prices."""
    grid = data.draw(grids())
    src, dst = data.draw(demands(grid))
    prices = np.random.default_rng(data.draw(st.integers(0, 9))).random(4 * grid.num_tiles)
    cost, hops, offsets = cheapest_paths(grid, src, dst, prices)
    recount(grid, src, dst, hops, offsets)
    graph = graph_of(grid)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = prices[edge["number"]]
    due = [networkx.dijkstra_path_length(graph, a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    assert cost == pytest.approx(due)


def test_replaced_paths_lie_where_the_old_ones_did() -> None:
    """The middle of three paths becomes a longer one."""
    hops, offsets = replace_paths(
        np.array([1, 2, 3]), np.array([0, 1, 2, 3]), np.array([1]), np.array([7, 8]), np.array([0, 2])
    )
    assert (hops.tolist(), offsets.tolist()) == ([1, 7, 8, 3], [0, 1, 3, 4])


@examples(25)
@given(st.data())
def test_k_shortest_are_networkxs(data: st.DataObject) -> None:
    """As many, as long, distinct and without loops."""
    grid = data.draw(grids(4))
    graph = graph_of(grid)
    tiles = sorted(graph)
    if not tiles:
        return
    a, b, k = data.draw(st.sampled_from(tiles)), data.draw(st.sampled_from(tiles)), data.draw(st.integers(1, 12))
    found = k_shortest(grid, a, b, k)
    for path in found:
        recount(grid, np.array([a]), np.array([b]), path, np.array([0, len(path)]))
    if a == b:
        due = [0]
    elif networkx.has_path(graph, a, b):
        due = [len(path) - 1 for path in islice(networkx.shortest_simple_paths(graph, a, b), k)]
    else:
        due = []
    assert [len(path) for path in found] == due
    assert len({path.tobytes() for path in found}) == len(found)


@examples(60)
@given(grids())
def test_parts_tell_who_reaches_whom(grid: Grid) -> None:
    """All pairs, as in networkx."""
    part, reach = components(grid)
    graph = graph_of(grid)
    assert (part[grid.shut] == -1).all()
    for a in graph:
        within = networkx.descendants(graph, a) | {a}
        assert {b for b in graph if reach[part[a], part[b]]} == within


def test_edges_are_numbered_as_the_fabric_numbers_them() -> None:
    """One drawing for both."""
    ways = ("EAST", "WEST", "SOUTH", "NORTH")
    assert [getattr(edges, way) for way in ways] == [getattr(lightpath, way) for way in ways] == [0, 1, 2, 3]
