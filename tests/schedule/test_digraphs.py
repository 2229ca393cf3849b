"""Directed graphs of few links: distances, paths that load links evenly, trees."""

import networkx as nx
import numpy as np
import pytest

from opticcl.schedule.held_graph import graph_of, kautz_links

SHAPES = ((6, 2), (9, 2), (27, 2), (20, 3), (64, 4))


def as_networkx(graph) -> nx.DiGraph:
    """Its links."""
    found = nx.DiGraph()
    found.add_nodes_from(range(graph.num_nodes))
    found.add_edges_from((node, to) for node, ends in enumerate(graph.links.tolist()) for to in ends if to >= 0)
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["kautz", "circulant"])
def test_distances_are_those_of_another_library(name, shape):
    """Of all pairs."""
    graph = graph_of(name, None, *shape)
    due = dict(nx.all_pairs_shortest_path_length(as_networkx(graph)))
    assert all(graph.distance[a, b] == far for a, ends in due.items() for b, far in ends.items())
    assert graph.is_connected
    assert graph.longest == max(max(ends.values()) for ends in due.values())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["kautz", "circulant"])
def test_paths_lead_there_and_load_what_is_said(name, shape):
    """No longer than the farthest node is; not below the mean over all links."""
    graph = graph_of(name, None, *shape)
    load = np.zeros(graph.links.shape, np.int64)
    for src in range(graph.num_nodes):
        for dst in range(graph.num_nodes):
            node = src
            for link in graph.paths.links[src, dst].tolist():
                if link >= 0:
                    load[node, link] += 1
                    node = int(graph.links[node, link])
            assert node == dst
    assert graph.paths.links.shape[2] == graph.longest
    assert load.max() == graph.paths.load >= graph.distance.sum() / graph.links.size


@pytest.mark.parametrize(
    ("shape", "program"), [((27, 2), 50.25), ((64, 2), 151.15), ((81, 2), 207.45), ((64, 4), 45.33)]
)
def test_one_path_a_pair_is_near_the_linear_programme(shape, program):
    """Pairs over the busiest link, if every pair were divided among all paths of any length."""
    assert program <= graph_of("kautz", None, *shape).paths.load <= 1.1 * program


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("towards", [False, True])
def test_trees_are_of_shortest_paths(shape, towards):
    """Every neighbour is one link nearer to the root."""
    graph = graph_of("kautz", None, *shape)
    near = graph.trees(towards)
    for root in range(graph.num_nodes):
        for node in set(range(graph.num_nodes)) - {root}:
            ends = (node, near[root, node]) if towards else (near[root, node], node)
            assert ends[1] in graph.links[ends[0]]
            far = graph.distance.T[root] if towards else graph.distance[root]
            assert far[near[root, node]] == far[node] - 1


@pytest.mark.parametrize("shape", [(64, 2), (27, 2), (10, 2), (9, 3), (5, 3), (4, 3)])
def test_links_of_a_kautz_graph(shape):
    """As many leave each node as reach it; none leads to its own node, also where the formula would have it."""
    nodes, degree = shape
    links = kautz_links(nodes, degree)
    assert not (links == np.arange(nodes)[:, None]).any()
    assert (np.bincount(links[links >= 0], minlength=nodes) == (links >= 0).sum(axis=1)).all()
    formula = {(i, (-degree * i - q) % nodes) for i in range(nodes) for q in range(1, degree + 1)}
    drawn = {(node, to) for node, ends in enumerate(links.tolist()) for to in ends if to >= 0}
    assert {(a, b) for a, b in formula if a != b} <= drawn
