"""Digits of places whose rotations are symmetries: machines that have them, orders that hide them, links that break them."""

from __future__ import annotations

from dataclasses import replace

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
    network,
    networks,
    of_networkx,
    torus,
)

from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.symmetry import Translations, translations


def judge(graph: CapacityGraph, symmetry: Translations) -> None:
    """Every step of a digit takes every arc to one of its capacity, and ends at places moved by one in that digit."""
    places = np.arange(graph.num_compute).reshape(symmetry.radices)
    assert len(symmetry.arcs) == len(symmetry.radices)
    for digit, arcs in enumerate(symmetry.arcs):
        assert sorted(arcs.tolist()) == list(range(len(graph.tail)))
        image = {
            int(symmetry.order[a]): int(symmetry.order[b])
            for a, b in zip(places.ravel(), np.roll(places, -1, digit).ravel(), strict=True)
        }
        for arc, other in enumerate(arcs.tolist()):
            assert graph.capacity[arc] == graph.capacity[other]
            for ends in (graph.tail, graph.head):
                assert image.setdefault(int(ends[arc]), int(ends[other])) == ends[other]
        assert len(set(image.values())) == len(image)


def fat_tree_of_16() -> CapacityGraph:
    """Four pods of two leaves of two nodes; two upper switches a pod, each joined to two of four cores."""
    links = [(node, 16 + node // 2, 1.0) for node in range(16)]
    for pod in range(4):
        links += [(16 + 2 * pod + leaf, 24 + 2 * pod + up, 1.0) for leaf in range(2) for up in range(2)]
        links += [(24 + 2 * pod + up, 32 + 2 * up + core, 1.0) for up in range(2) for core in range(2)]
    return network(16, links, switches=20)


MACHINES = {
    "boxes of A100": (lambda: boxes(16, 8, 300, 25, 2), (16, 8)),
    "boxes on rails": (lambda: boxes(6, 4, 300, 25, 4), (6, 4)),
    "torus 5 x 6 x 4": (lambda: torus(4, 6, 5), (5, 6, 4)),
    "ring of 12": (lambda: torus(12), (12,)),
    "Petersen": (lambda: of_networkx(networkx.petersen_graph()), None),
    "fat tree": (fat_tree_of_16, (4, 2, 2)),
    "DGX-1": (lambda: dgx1(2.0), None),
    "generalised Kautz": (lambda: kautz(12, 2), None),
    "a bridge": (bridge_of_five_and_seven, None),
}


@pytest.mark.parametrize("name", MACHINES)
def test_published_machines(name: str) -> None:
    """Digits of those that have some, none of the others."""
    make, radices = MACHINES[name]
    graph = make()
    symmetry = translations(graph, np.arange(graph.num_compute))
    assert (symmetry and symmetry.radices) == radices
    if symmetry is not None:
        judge(graph, symmetry)


@examples(30)
@given(name=st.sampled_from([name for name, (_, radices) in MACHINES.items() if radices]), seed=st.integers(0, 99))
def test_numbers_of_vertices_do_not_matter(name: str, seed: int) -> None:
    """With nodes, switches and arcs in another order, the order of the nodes says where digits are."""
    make, radices = MACHINES[name]
    graph, draw = make(), np.random.default_rng(seed)
    n = graph.num_compute
    number = np.r_[draw.permutation(n), n + draw.permutation(graph.num_vertices - n)]
    arcs = draw.permutation(len(graph.tail))
    drawn = replace(graph, tail=number[graph.tail][arcs], head=number[graph.head][arcs], capacity=graph.capacity[arcs])
    symmetry = translations(drawn, number[:n])
    assert symmetry is not None
    assert symmetry.radices == radices
    judge(drawn, symmetry)


@examples(40)
@given(graph=networks())
def test_of_drawn_networks_all_are_true(graph: CapacityGraph) -> None:
    """What is given passes the judge."""
    if (symmetry := translations(graph, np.arange(graph.num_compute))) is not None:
        judge(graph, symmetry)


@pytest.mark.parametrize("arc", [0, 77, 200])
def test_one_link_of_another_rate_breaks_them(arc: int) -> None:
    """Wherever it is."""
    graph = boxes(16, 8, 300, 25, 2)
    capacity = graph.capacity.copy()
    capacity[arc] += 1
    assert translations(replace(graph, capacity=capacity), np.arange(128)) is None
