"""The least time of an all-gather and of a broadcast: all cuts, all trees, published machines."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import chain, permutations, product

import highspy
import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.routing.forest.networks import PUBLISHED, network, networks, of_networkx, worst_ratio

from opticcl.errors import UnsupportedError
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_networks(name: str) -> None:
    """The fraction of ForestColl, and a cut that proves it."""
    make, seconds = PUBLISHED[name]
    graph = make()
    best = optimum(graph)
    assert best is not None
    assert best.time / Fraction(graph.unit_bits_per_s) == Fraction(seconds)
    crossing = sum(
        capacity
        for tail, head, capacity in zip(graph.tail, graph.head, graph.capacity, strict=True)
        if best.inside[tail] and not best.inside[head]
    )
    assert not best.inside[: graph.num_compute].all()
    assert best.time == Fraction(int(best.inside[: graph.num_compute].sum()), int(crossing))


@examples(60)
@given(graph=networks())
def test_no_cut_is_worse(graph: CapacityGraph) -> None:
    """All 2^n cuts of drawn networks, for an all-gather and for a broadcast from the last vertex that computes."""
    for root in (None, graph.num_compute - 1):
        best = optimum(graph, root)
        assert best is not None
        assert best.time == worst_ratio(graph, root)


@examples(6)
@given(graph=networks(12, 3))
def test_no_cut_of_twelve_vertices_is_worse(graph: CapacityGraph) -> None:
    """The same on up to twelve vertices."""
    best = optimum(graph)
    assert best is not None
    assert best.time == worst_ratio(graph)


@pytest.mark.parametrize("seed", range(3))
def test_regular_graphs_without_symmetry(seed: int) -> None:
    """Cubic graphs of twelve vertices at random."""
    drawn = of_networkx(networkx.random_regular_graph(3, 12, seed))
    best = optimum(drawn)
    assert best is not None
    assert best.time == worst_ratio(drawn)


@cache
def out_trees(n: int, root: int) -> list[tuple[tuple[int, int], ...]]:
    """The arcs of all spanning trees from a root, each vertex with any parent."""
    others = [v for v in range(n) if v != root]
    trees = []
    for parents in product(range(n), repeat=n - 1):
        arcs = tuple(zip(parents, others, strict=True))
        tree = networkx.DiGraph(arcs)
        if all(a != b for a, b in arcs) and len(networkx.descendants(tree, root) if root in tree else ()) == n - 1:
            trees.append(arcs)
    return trees


@examples(40)
@given(graph=st.one_of(networks(6, 0), networks(6, 2)))
def test_all_trees_together_take_as_long(graph: CapacityGraph) -> None:
    """A linear programme over every spanning tree of every root: as much as possible of each root's data a second.

    Without switches on up to six vertices; with one or two on up to four that compute, a link of a tree by each way there is.
    """
    n = graph.num_compute
    arcs: dict[tuple[int, int], int] = {}
    for tail, head, width in zip(graph.tail.tolist(), graph.head.tolist(), graph.capacity.tolist(), strict=True):
        arcs[tail, head] = arcs.get((tail, head), 0) + width
    ways: dict[tuple[int, int], list[tuple[tuple[int, int], ...]]] = {}
    for pair in permutations(range(n), 2):
        over = [((pair[0], switch), (switch, pair[1])) for switch in range(n, graph.num_vertices)]
        ways[pair] = [way for way in [(pair,), *over] if all(one in arcs for one in way)]
    model = highspy.Highs()
    model.silent()
    infinity = highspy.kHighsInf
    rate = model.addVariable(0, infinity, 1)
    loads: dict[tuple[int, int], list[highspy.highs_var]] = {pair: [] for pair in arcs}
    for root in range(n):
        of_root = []
        for tree in out_trees(n, root):
            for chosen in product(*(ways[pair] for pair in tree)):
                of_root.append(model.addVariable(0, infinity))
                for one in chain(*chosen):
                    loads[one].append(of_root[-1])
        model.addConstr(sum(of_root) - rate >= 0)
    for pair, load in loads.items():
        if load:
            model.addConstr(sum(load) <= arcs[pair])
    model.maximize(rate)
    best = optimum(graph)
    assert best is not None
    assert model.getInfo().objective_function_value * best.time == pytest.approx(1, rel=1e-7)


def test_what_is_cut_off_is_refused() -> None:
    """The node is named; a switch without links is no node."""
    with pytest.raises(UnsupportedError, match="no links lead from the others to node 0"):
        optimum(network(3, [(0, 1, 1.0), (1, 2, 1.0)], both_ways=False))
    with pytest.raises(UnsupportedError, match="to node 1;"):
        optimum(network(3, [(0, 2, 1.0), (2, 0, 1.0)], both_ways=False))
    best = optimum(network(2, [(0, 1, 1.0)], switches=1))
    assert best is not None
    assert best.time == 1


@pytest.mark.parametrize(
    ("rates", "unit"),
    [((300.0, 25.0), 25.0), ((1e11 / 3, 1e11), 1e11 / 3), ((0.1, 0.25), 0.05), ((1.5, 1.0, 2.25), 0.25)],
)
def test_rates_have_a_common_unit(rates: tuple[float, ...], unit: float) -> None:
    """The greatest that all are multiples of."""
    graph = network(len(rates) + 1, [(i, i + 1, rate) for i, rate in enumerate(rates)])
    assert graph.unit_bits_per_s == pytest.approx(unit, rel=1e-15)
    assert (graph.capacity * unit).tolist() == pytest.approx([*rates, *rates], rel=1e-12)


def test_rates_without_a_common_unit_are_refused() -> None:
    """Both rates are in the message."""
    with pytest.raises(UnsupportedError, match=r"a link of 1.41421 bit/s beside one of 1: .* denominators up to 255"):
        network(3, [(0, 1, 1.0), (1, 2, 2**0.5)])
    with pytest.raises(UnsupportedError, match=r"links of 1 to 1e\+13 bit/s have the common unit 1 bit/s"):
        network(3, [(0, 1, 1.0), (1, 2, 1e13)])
