"""Capacity that both ways of links share: as good as a programme with a variable for each pair, target and arc finds."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
from hypothesis import given
from tests.profiles import examples
from tests.routing.forest.networks import network, networks, worst_ratio

from opticcl.errors import UnsupportedError
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.shared_capacity import shared_bound, shared_capacity


def pooled(graph: CapacityGraph) -> tuple[CapacityGraph, np.ndarray]:
    """Arcs between the same two vertices share the capacity of the first of them.

    Args: graph: a network.
    """
    ends = np.sort(np.stack([graph.tail, graph.head]), axis=0)
    _, first, pool = np.unique(ends[0] * graph.num_vertices + ends[1], return_index=True, return_inverse=True)
    capacity = graph.capacity[first][pool]
    return CapacityGraph(graph.num_compute, graph.num_vertices, graph.tail, graph.head, capacity), pool


def least_time(graph: CapacityGraph, pool: np.ndarray, root: int | None, *, copies: bool) -> float:
    """By a flow for each pair of a source and a target, which fit into widths one target at a time.

    Args:
        graph: a small network.
        pool: capacity that each arc has a share of.
        root: of a broadcast; None: an all-gather.
        copies: whether switches copy.
    """
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    time, arcs = model.addVariable(lb=0), range(len(graph.tail))
    width = [model.addVariable(lb=0) for _ in arcs]
    for number in np.unique(pool):
        mine = [arc for arc in arcs if pool[arc] == number]
        model.addConstr(sum(width[arc] for arc in mine) - float(graph.capacity[mine[0]]) * time <= 0)
    for switch in range(graph.num_compute, graph.num_vertices if not copies else 0):
        out = sum(width[arc] for arc in arcs if graph.tail[arc] == switch)
        model.addConstr(out - sum(width[arc] for arc in arcs if graph.head[arc] == switch) <= 0)
    for target in range(graph.num_compute):
        into = [[] for _ in arcs]
        for source in range(graph.num_compute) if root is None else [root]:
            if source == target:
                continue
            flow = [model.addVariable(lb=0) for _ in arcs]
            for vertex in range(graph.num_vertices):
                enters = sum(flow[arc] for arc in arcs if graph.head[arc] == vertex)
                leaves = sum(flow[arc] for arc in arcs if graph.tail[arc] == vertex)
                model.addConstr(enters - leaves == (vertex == target) - (vertex == source))
            for arc in arcs:
                into[arc].append(flow[arc])
        for arc in arcs:
            if into[arc]:
                model.addConstr(sum(into[arc]) - width[arc] <= 0)
    model.minimize(time)
    return float(model.getObjectiveValue())


@examples(20)
@given(graph=networks(6, 1))
def test_no_division_of_drawn_networks_is_better(graph: CapacityGraph) -> None:
    """For an all-gather and a broadcast; prices prove it, all cuts of what was divided allow it, no capacity is exceeded."""
    shared, pool = pooled(graph)
    for root in (None, 0):
        bound, due = (least_time(shared, pool, root, copies=copies) for copies in (True, False))
        assert bound * (1 - 1e-6) <= float(shared_bound(shared, pool, root)) <= bound * (1 + 1e-9)
        found = shared_capacity(shared, pool, root)
        unit = found.unit_bits_per_s / shared.unit_bits_per_s
        assert bound * (1 - 1e-9) <= float(worst_ratio(found, root)) / unit <= due * 1.02
        given = np.bincount(pool, found.capacity) * unit
        assert (given <= np.bincount(pool, shared.capacity) / np.bincount(pool) * (1 + 1e-9)).all()


def test_the_dogbone() -> None:
    """If switches copied, three shards into a host and one out of it, two and two in the middle; else three and three."""
    graph = network(4, [(0, 4, 1.0), (1, 4, 1.0), (2, 5, 1.0), (3, 5, 1.0), (4, 5, 1.0)], switches=2)
    shared, pool = pooled(graph)
    assert shared_bound(shared, pool) == 4
    assert worst_ratio(shared_capacity(shared, pool)) * 840 == 6
    assert worst_ratio(graph) == 3


def test_a_vertex_that_nothing_leads_to() -> None:
    """No division."""
    graph = network(3, [(0, 1, 1.0), (1, 0, 1.0), (2, 0, 1.0)], both_ways=False)
    with pytest.raises(UnsupportedError, match="every node needs a way to every other"):
        shared_capacity(*pooled(graph))
    with pytest.raises(UnsupportedError, match="every node needs a way to every other"):
        shared_bound(*pooled(graph))
