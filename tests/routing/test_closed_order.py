"""Closed orders: every result is one, and where there is none a brute-force search finds none either, with rare exceptions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.ir import IntArray
from opticcl.routing.closed_order import closed_order


def _random_graph(rng: np.random.Generator, num_nodes: int, density: float, both_ways: bool) -> np.ndarray:
    """Adjacency of a random graph, (num_nodes, num_nodes); no node is linked to itself."""
    adjacent = rng.random((num_nodes, num_nodes)) < density
    adjacent = np.triu(adjacent, 1) if both_ways else adjacent & ~np.eye(num_nodes, dtype=bool)
    return adjacent | adjacent.T if both_ways else adjacent


def _has_closed_order(adjacent: np.ndarray) -> bool:
    """Whether a Hamiltonian cycle exists, by dynamic programming over sets of nodes (Held and Karp 1962)."""
    n = len(adjacent)
    if n == 1:
        return True
    ends = np.zeros(1 << n, np.int64)  # last nodes of paths from node 0 through each set, as bits
    ends[1] = 1
    masks = [sum(1 << int(w) for w in np.flatnonzero(adjacent[v])) for v in range(n)]
    for visited in range(1, 1 << n, 2):
        for v in range(n):
            if ends[visited] >> v & 1:
                for w in range(1, n):
                    if masks[v] >> w & 1 and not visited >> w & 1:
                        ends[visited | 1 << w] |= 1 << w
    return any(ends[-1] >> v & 1 and adjacent[v, 0] for v in range(1, n))


def _assert_closed(found: IntArray, order: IntArray, adjacent: np.ndarray) -> None:
    assert sorted(found.tolist()) == sorted(order.tolist())
    assert found[0] == order.min()
    if len(order) > 1:
        assert adjacent[found, np.roll(found, -1)].all()


@given(num_nodes=st.integers(1, 40), density=st.floats(0, 1), both_ways=st.booleans(), seed=st.integers(0, 2**32))
@examples(200)
def test_every_result_is_a_closed_order(num_nodes: int, density: float, both_ways: bool, seed: int) -> None:
    """All ranks once, neighbours linked, also where links lead one way alone; the given order is not changed."""
    rng = np.random.default_rng(seed)
    adjacent = _random_graph(rng, num_nodes, density, both_ways)
    order = rng.permutation(num_nodes)
    before = order.copy()
    found = closed_order(order, lambda src, dst: adjacent[src, dst])
    assert np.array_equal(order, before)
    if found is not None:
        _assert_closed(found, order, adjacent)


def test_missed_orders_are_rare() -> None:
    """On small random graphs: never an order that does not exist, and fewer than one in a hundred existing ones missed."""
    rng = np.random.default_rng(7)
    existing = missed = 0
    for _ in range(400):
        adjacent = _random_graph(rng, int(rng.integers(1, 9)), rng.random(), both_ways=True)
        order = rng.permutation(len(adjacent))
        found = closed_order(order, lambda src, dst, adjacent=adjacent: adjacent[src, dst])
        exists = _has_closed_order(adjacent)
        assert exists or found is None
        existing += exists
        missed += exists and found is None
    assert existing > 100
    assert missed < existing / 100


SNAKE = np.array([0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 8, 4])
"""Nodes of a 3 x 4 grid, numbered row by row, in an order with one gap."""


def _beside(src: IntArray, dst: IntArray) -> np.ndarray:
    """Whether nodes of the grid are neighbours."""
    return np.abs(src // 4 - dst // 4) + np.abs(src % 4 - dst % 4) == 1


@pytest.mark.parametrize("removed", range(12))
def test_a_grid_with_an_odd_number_of_nodes_has_none(removed: int) -> None:
    """Grids are bipartite, so a closed order has an even number of nodes."""
    assert closed_order(SNAKE[~np.isin(SNAKE, removed)], _beside) is None


def test_a_grid_without_a_corner() -> None:
    """A grid has an order with and without two nodes at a corner, but not with a node that has a single neighbour."""
    assert closed_order(SNAKE[~np.isin(SNAKE, [0, 1, 4, 5])], _beside) is None  # node 8
    for removed in ([], [0, 1]):
        order = SNAKE[~np.isin(SNAKE, removed)]
        found = closed_order(order, _beside)
        assert found is not None
        assert sorted(found.tolist()) == sorted(order.tolist())
        assert _beside(found, np.roll(found, -1)).all()


def test_links_one_way_are_not_used() -> None:
    """Two ranks of which one cannot answer have no closed order."""
    adjacent = np.array([[False, True], [False, False]])
    assert closed_order(np.arange(2), lambda src, dst: adjacent[src, dst]) is None
    everywhere = np.ones((2, 2), bool)
    found = closed_order(np.array([1, 0]), lambda src, dst: everywhere[src, dst])
    assert found is not None
    assert found.tolist() == [0, 1]


def test_many_gaps_are_closed() -> None:
    """A random order of the nodes of a 16 x 16 grid whose rows and columns are fully linked."""

    def on_a_line(src: IntArray, dst: IntArray) -> np.ndarray:
        return (src // 16 == dst // 16) ^ (src % 16 == dst % 16)

    order = np.random.default_rng(3).permutation(256)
    assert not on_a_line(order, np.roll(order, -1)).all()
    found = closed_order(order, on_a_line)
    assert found is not None
    assert sorted(found.tolist()) == list(range(256))
    assert on_a_line(found, np.roll(found, -1)).all()
