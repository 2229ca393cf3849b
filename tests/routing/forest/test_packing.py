"""Trees of a packing: each spans, links carry no more than their capacity in the time that is claimed, which is the optimum."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.routing.forest.networks import (
    boxes,
    bridge_of_five_and_seven,
    dgx1,
    kautz,
    mi250,
    network,
    networks,
    of_networkx,
    torus,
)

from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum
from opticcl.routing.forest.packing import TreePacking, pack
from opticcl.routing.forest.symmetry import translations
from opticcl.routing.forest.translated_paths import pack_translations

NETWORKS = {
    "two boxes of A100": lambda: boxes(2, 8, 300, 25, 2),
    "four boxes of A100": lambda: boxes(4, 8, 300, 25, 2),
    "MI250, half of two boxes": lambda: mi250(2, 8),
    "MI250, two boxes": lambda: mi250(2, 16),
    "torus 4 x 4": lambda: torus(4, 4),
    "mesh 3 x 3": lambda: torus(3, 3, wraps=False),
    "Petersen": lambda: of_networkx(networkx.petersen_graph()),
    "DGX-1 with V100": lambda: dgx1(2.0),
    "generalised Kautz": lambda: kautz(12, 2),
    "a bridge of five and seven": bridge_of_five_and_seven,
}


def judge(graph: CapacityGraph, packing: TreePacking, root: int | None) -> None:
    """Count trees and loads of links apart from the library.

    Args:
        graph: the network.
        packing: of its trees.
        root: of a broadcast; None: every vertex that computes has trees.
    """
    trees_of: Counter[int] = Counter()
    of_way: Counter[int] = Counter()
    for ways, count in zip(packing.way.tolist(), packing.copies.tolist(), strict=True):
        links = [(int(packing.ways.tail[way]), int(packing.ways.head[way])) for way in ways if way >= 0]
        assert [head for _, head in links] == [vertex for vertex, way in enumerate(ways) if way >= 0]
        (start,) = (vertex for vertex, way in enumerate(ways) if way < 0)
        assert networkx.descendants(networkx.DiGraph(links), start) == set(range(graph.num_compute)) - {start}
        trees_of[start] += count
        for way in ways:
            of_way[way] += count if way >= 0 else 0
    roots = range(graph.num_compute) if root is None else [root]
    assert trees_of == dict.fromkeys(roots, packing.trees_a_root)
    of_link: Counter[int] = Counter()
    for way, path in enumerate(packing.ways.path):
        vertices = [int(graph.tail[path[0]]), *(int(graph.head[link]) for link in path)]
        assert vertices[:-1] == [int(graph.tail[link]) for link in path]
        assert (vertices[0], vertices[-1]) == (packing.ways.tail[way], packing.ways.head[way])
        assert all(vertex >= graph.num_compute for vertex in vertices[1:-1])
        for link in path:
            of_link[link] += of_way[way]
    for link, load in of_link.items():
        assert load <= int(graph.capacity[link]) * packing.time * packing.trees_a_root


@pytest.mark.parametrize("root", [None, 1])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.deep) if name == "MI250, two boxes" else name for name in NETWORKS]
)
def test_packings_of_published_networks(name: str, root: int | None) -> None:
    """The fewest trees are within 1 % of the optimum, and as many as it takes are as fast."""
    graph = NETWORKS[name]()
    best = optimum(graph, root)
    assert best is not None
    for within in (Fraction(1, 100), Fraction(0)):
        packing = pack(graph, best, root, within=within)
        assert packing is not None
        judge(graph, packing, root)
        assert best.time <= packing.time <= best.time * (1 + within)


@examples(60)
@given(graph=networks(9, 3), at_root=st.booleans(), fewest=st.integers(1, 3))
def test_packings_of_drawn_networks(graph: CapacityGraph, at_root: bool, fewest: int) -> None:
    """Networks with switches, parallel and one-way links; exactly the optimum."""
    root = 0 if at_root else None
    best = optimum(graph, root)
    assert best is not None
    packing = pack(graph, best, root, within=Fraction(0), fewest=fewest)
    assert packing is not None
    judge(graph, packing, root)
    assert packing.time == best.time
    assert packing.trees_a_root >= fewest


def planes(count: int, size: int, cards: int) -> CapacityGraph:
    """Boxes of GPUs on three switches each of 100 GB/s, and cards of 25 GB/s of each to switches that join all."""
    n, links = count * size, []
    for gpu in range(n):
        links += [(gpu, n + gpu // size * 3 + plane, 100.0) for plane in range(3)]
        links += [(gpu, n + 3 * count + card, 25.0) for card in range(cards)]
    return network(n, links, switches=3 * count + cards)


@pytest.mark.parametrize(
    ("graph", "trees"),
    [
        (boxes(16, 8, 300, 25, 2), 1),
        (torus(12, 12), 1),
        (planes(26, 4, 2), 2),  # 25 paths a tree over two cards
        (planes(101, 4, 2), 1),
        (planes(9, 2, 3), 3),
    ],
)
def test_trees_that_are_translated(graph: CapacityGraph, trees: int) -> None:
    """With their paths, of which several of one cost are taken evenly."""
    best, symmetry = optimum(graph), translations(graph, np.arange(graph.num_compute))
    assert best is not None
    assert symmetry is not None
    packing = pack_translations(graph, best, symmetry, within=Fraction(1, 100))
    assert packing is not None
    judge(graph, packing, None)
    assert best.time <= packing.time <= best.time * Fraction(101, 100)
    assert packing.trees_a_root == trees


@examples(40)
@given(graph=networks(9, 3))
def test_trees_of_drawn_networks_that_are_translated(graph: CapacityGraph) -> None:
    """Where there are some, they are right."""
    best, symmetry = optimum(graph), translations(graph, np.arange(graph.num_compute))
    if symmetry is not None and best is not None:
        packing = pack_translations(graph, best, symmetry, within=Fraction(1, 2))
        if packing is not None:
            judge(graph, packing, None)
            assert best.time <= packing.time <= best.time * Fraction(3, 2)


@pytest.mark.parametrize("seed", range(3))
def test_packings_of_regular_graphs_without_symmetry(seed: int) -> None:
    """Cubic graphs of twelve vertices at random."""
    graph = of_networkx(networkx.random_regular_graph(3, 12, seed))
    best = optimum(graph)
    assert best is not None
    packing = pack(graph, best, within=Fraction(0))
    assert packing is not None
    judge(graph, packing, None)
    assert packing.time == best.time


def test_a_switch_may_receive_more_than_it_sends() -> None:
    """The surplus is left; where it sends more than it receives, there are no such trees."""
    inwards = [(0, 3, 1.0), (1, 3, 1.0), (2, 3, 1.0), (0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)]
    surplus = network(3, [*inwards, (3, 0, 1.0), (3, 1, 1.0)], switches=1, both_ways=False)
    best = optimum(surplus)
    assert best is not None
    packing = pack(surplus, best, within=Fraction(0))
    assert packing is not None
    judge(surplus, packing, None)
    assert packing.time == best.time == 2
    copies = network(3, [(0, 3, 1.0), (3, 1, 1.0), (3, 2, 1.0), (1, 0, 1.0), (2, 0, 1.0)], switches=1, both_ways=False)
    best = optimum(copies)
    assert best is not None
    assert pack(copies, best) is None


def test_packets_keep_to_their_routes() -> None:
    """Two GPUs around a switch of their own and a slow link: over the switch alone, half of the rate of both."""
    graph = network(2, [(0, 2, 3.0), (1, 2, 3.0), (0, 1, 1.0)], switches=1)
    best = optimum(graph)
    assert best is not None
    assert best.time == Fraction(1, 4)
    arcs = list(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
    there, back = ((arcs.index((a, 2)), arcs.index((2, b))) for a, b in ((0, 1), (1, 0)))
    packing = pack(graph, best, within=Fraction(1, 2), routes=[there, back])
    assert packing is not None
    assert set(packing.ways.path) <= {there, back}
    assert packing.time == Fraction(1, 3)
