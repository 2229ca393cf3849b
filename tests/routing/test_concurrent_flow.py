"""The flow between all pairs that loads links least: against a programme of every pair, published values, and its paths."""

from __future__ import annotations

from fractions import Fraction

import highspy
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

from opticcl.errors import UnsupportedError
from opticcl.routing.concurrent_flow import ConcurrentFlow, concurrent_flow
from opticcl.routing.flow_paths import WholePaths, whole_paths
from opticcl.routing.forest.graph import CapacityGraph

KNOWN = {
    "torus 4 x 4": (lambda: torus(4, 4), 8),
    "hypercube of 16": (lambda: torus(2, 2, 2, 2, wraps=False), 8),
    "Petersen": (lambda: of_networkx(networkx.petersen_graph()), 5),
    "mesh 4 x 4": (lambda: torus(4, 4, wraps=False), 16),
    "ring of 27": (lambda: torus(27), 91),
    "generalised Kautz (27, 2)": (lambda: kautz(27, 2), 50.25),
    "generalised Kautz (64, 2)": (lambda: kautz(64, 2), Fraction(965, 6)),
    "DGX-1 with V100": (lambda: dgx1(2.0), Fraction(8, 3)),
    "MI250, one box": (lambda: mi250(1, 16), Fraction(32, 3) / 50),
    "two boxes of A100": (lambda: boxes(2, 8, 300, 25, 2), Fraction(64, 200)),
    "a bridge of five and seven": (bridge_of_five_and_seven, 35),
}
"""Networks, and the most loaded link in blocks over the unit of their rates, by programmes without symmetry or by a cut."""


def least_time(graph: CapacityGraph, pool: np.ndarray | None = None) -> float:
    """The same by a programme with a variable for each pair and arc.

    Args:
        graph: a small network.
        pool: capacity that each arc has a share of.
    """
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    time = model.addVariable(lb=0)
    arcs = [arc for arc in range(len(graph.tail)) if graph.capacity[arc]]
    load: dict[int, list] = {arc if pool is None else int(pool[arc]): [] for arc in arcs}
    for src in range(graph.num_compute):
        for dst in range(graph.num_compute):
            if src == dst:
                continue
            flow = {arc: model.addVariable(lb=0) for arc in arcs}
            for vertex in range(graph.num_vertices):
                out = sum(flow[arc] for arc in arcs if graph.tail[arc] == vertex)
                into = sum(flow[arc] for arc in arcs if graph.head[arc] == vertex)
                model.addConstr(into - out == (vertex == dst) - (vertex == src))
            for arc in arcs:
                load[arc if pool is None else int(pool[arc])].append(flow[arc])
    for number, flows in load.items():
        arc = number if pool is None else int(np.flatnonzero(pool == number)[0])
        model.addConstr(sum(flows) - float(graph.capacity[arc]) * time <= 0)
    model.minimize(time)
    return float(model.getObjectiveValue())


@pytest.mark.parametrize("name", KNOWN)
def test_published_networks(name: str) -> None:
    """The value, and prices that prove it."""
    make, due = KNOWN[name]
    graph = make()
    found = concurrent_flow(graph, relays=True)
    unit = float(graph.unit_bits_per_s)
    assert found.time / unit == pytest.approx(float(due), rel=1e-6)
    assert 1 - 1e-6 < float(found.bound) / found.time <= 1 + 1e-9


@examples(25)
@given(graph=networks(6, 2))
def test_no_flow_of_drawn_networks_is_faster(graph: CapacityGraph) -> None:
    """As much as a programme of all pairs finds, and the prices prove it."""
    found, due = concurrent_flow(graph, relays=True), least_time(graph)
    assert found.time == pytest.approx(due, rel=1e-6)
    assert float(found.bound) == pytest.approx(due, rel=1e-6)
    assert float(found.bound) <= due * (1 + 1e-9)


@examples(15)
@given(graph=networks(6, 1))
def test_both_ways_of_a_link_share_its_capacity(graph: CapacityGraph) -> None:
    """Arcs between the same two vertices are one pool with the capacity of the first."""
    ends = np.sort(np.stack([graph.tail, graph.head]), axis=0)
    _, pool = np.unique(ends[0] * graph.num_vertices + ends[1], return_inverse=True)
    first = np.unique(pool, return_index=True)[1]
    capacity = graph.capacity[first][pool]
    shared = CapacityGraph(graph.num_compute, graph.num_vertices, graph.tail, graph.head, capacity)
    found, due = concurrent_flow(shared, pool, relays=True), least_time(shared, pool)
    assert found.time == pytest.approx(due, rel=1e-6)
    assert due * (1 - 1e-6) <= float(found.bound) <= due * (1 + 1e-9)


def test_vertices_that_forward_nothing() -> None:
    """On a triangle with one slow side, blocks of its ends cannot go round; the bound allows other schedules that do."""
    graph = network(3, [(0, 1, 1.0), (0, 2, 10.0), (1, 2, 10.0)])
    alone, around = (concurrent_flow(graph, relays=relays) for relays in (False, True))
    assert alone.time == pytest.approx(1.0)
    assert around.time < 0.5
    assert float(alone.bound) <= around.time


def test_a_vertex_that_nothing_leads_to() -> None:
    """No flow."""
    with pytest.raises(UnsupportedError, match="every node needs a way to every other"):
        concurrent_flow(network(3, [(0, 1, 1.0), (1, 0, 1.0), (2, 0, 1.0)], both_ways=False), relays=True)


def paths_of(graph: CapacityGraph, flow: ConcurrentFlow, parts: int) -> tuple[WholePaths, float]:
    """Paths, and the load of the busiest arc over that of the flow."""
    found = whole_paths(
        flow.flow, graph.tail, graph.head, np.maximum(1.0, graph.capacity), np.arange(len(graph.tail)), parts
    )
    load = np.bincount(found.hops, np.repeat(found.parts, np.diff(found.offsets)), len(graph.tail)) / parts
    return found, float((load[graph.capacity > 0] / graph.capacity[graph.capacity > 0]).max() / flow.time)


@examples(40)
@given(graph=networks(), parts=st.sampled_from((1, 3, 32)))
def test_paths_bring_every_part(graph: CapacityGraph, parts: int) -> None:
    """From sender to receiver over arcs with capacity, all parts of every pair, by no vertex twice."""
    found, _ = paths_of(graph, concurrent_flow(graph, relays=True), parts)
    given_parts = np.zeros((graph.num_compute, graph.num_compute), int)
    for row, (src, dst) in enumerate(zip(found.src.tolist(), found.dst.tolist(), strict=True)):
        arcs = found.hops[found.offsets[row] : found.offsets[row + 1]]
        assert graph.capacity[arcs].all()
        passed = [src, *graph.head[arcs].tolist()]
        assert graph.tail[arcs].tolist() == passed[:-1]
        assert passed[-1] == dst
        assert len(set(passed)) == len(passed)
        given_parts[src, dst] += found.parts[row]
    assert np.array_equal(given_parts, parts * (1 - np.eye(graph.num_compute, dtype=int)))


@pytest.mark.parametrize("name", KNOWN)
def test_whole_parts_load_links_as_the_flow_does(name: str) -> None:
    """Within one per cent with 32 parts of a block."""
    graph = KNOWN[name][0]()
    assert paths_of(graph, concurrent_flow(graph, relays=True), 32)[1] < 1.01
