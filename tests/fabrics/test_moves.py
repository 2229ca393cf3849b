"""Moves of packet fabrics: routes between moved nodes are the moved routes, over links as fast and as long."""

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import Circuits
from opticcl.ir.representatives import LightMove
from opticcl.simulate.latency import path_latency

MACHINES = {
    "ideal:nodes=7": 7,
    "torus:shape=9": 9,
    "torus:shape=8": 4,
    "torus:shape=2x3": 6,
    "torus:shape=4x5x1": 10,
    "torus:shape=6x4": 6,
    "bcube:radix=4,levels=2": 16,
    "bcube:radix=3,levels=3,routing=dimension_order": 27,
    "bcube:radix=3,levels=3": 9,
    "bcube:radices=2x4": 8,
    "fat_tree:nodes=16,radix=4": 16,
    "fat_tree:nodes=12,radix=4": 12,
    "fat_tree:nodes=12,radix=4,routing=smodk": 12,
    "fat_tree:nodes=18,radix=6,routing=single": 18,
    "fat_tree:nodes=24,radix=6,oversubscription=2": 24,
    "fat_tree:nodes=16,radix=4,routing=ecmp": 1,
    "leaf_spine:nodes=24,routing=dstedge": 8,
    "leaf_spine:nodes=24": 1,
    "superpod:nodes=12,nodes_per_server=4,radix=4": 4,
    "superpod:nodes=16,nodes_per_server=2,radix=4": 16,
    "superpod:nodes=8": 8,
    "dragonfly:nodes=24,nodes_per_router=2,routers_per_group=4,global_links=1": 6,
    "dragonfly:nodes=20,nodes_per_router=2,routers_per_group=4,global_links=1": 2,
    "topoopt:nodes=6": 1,
}
"""Machine -> nodes that its moves join with node 0."""


def translations(count):
    """Every translation of a digit of the nodes' numbers: by one or more, of any stride and side."""
    nodes = np.arange(count)
    for stride in (d for d in range(1, count) if count % d == 0):
        for side in (d for d in range(2, count // stride + 1) if count // stride % d == 0):
            digit = nodes // stride % side
            for by in range(1, side):
                yield nodes + ((digit + by) % side - digit) * stride


def moves_of(where):
    """Those that the machine says it has."""
    return [move for nodes in translations(where.num_nodes) if (move := where.move_of(nodes)) is not None]


def all_pairs(where):
    """Sender and receiver of every pair."""
    src, dst = (column.ravel() for column in np.indices((where.num_nodes,) * 2))
    return src[src != dst], dst[src != dst]


@pytest.mark.parametrize("text", MACHINES)
def test_routes_are_moved(text):
    """Links in their order; what a path passes and the rates of links are equal, latency as published too."""
    where = fabric(text)
    src, dst = all_pairs(where)
    hops, offsets = where.route(src, dst)
    links = sum(resource.count for resource in where.resources)
    published = path_latency(where, assumptions("published"))
    for move in moves_of(where):
        assert sorted(move.hops.tolist()) == list(range(links))
        again, ends = where.route(move.nodes[src], move.nodes[dst])
        assert np.array_equal(ends, offsets)
        assert np.array_equal(again, move.hops[hops])
        before, after = (
            Circuits.of(np.arange(len(src)), *pair, path=(path, offsets))
            for pair, path in (((src, dst), hops), ((move.nodes[src], move.nodes[dst]), again))
        )
        assert np.array_equal(published.of_circuits(before), published.of_circuits(after))
        images = where.resource_images(move)
        for image, one, other in zip(images, where.usage(before), where.usage(after), strict=True):
            assert one.resource is other.resource
            assert np.array_equal(image[one.index], other.index)


@pytest.mark.parametrize("text", MACHINES)
def test_how_many_moves_there_are(text):
    """As many nodes as its routing allows are joined by translations of digits."""
    where = fabric(text)
    reached = {0}
    moves = moves_of(where)
    while True:
        more = reached | {int(move.nodes[node]) for move in moves for node in reached}
        if more == reached:
            break
        reached = more
    assert len(reached) == MACHINES[text]


def test_other_moves_do_not_keep_the_machine():
    """Links that join other nodes, have another rate or latency, or do not exist."""
    where = fabric("torus:shape=3x5")
    nodes = np.roll(np.arange(15), 5)
    move = where.move_of(nodes)

    def images(moved=nodes, hops=move.hops, machine=where):
        return machine.resource_images(LightMove(moved, move.ports, move.wavelengths, hops))

    assert images() is not None
    assert images(moved=np.arange(15)) is None
    assert images(hops=np.arange(60)) is None
    assert images(hops=move.hops[:-1]) is None
    assert images(moved=nodes[:-1]) is None
    ideal = fabric("ideal:nodes=3")
    turned = ideal.move_of(np.array([1, 2, 0]))
    assert ideal.resource_images(LightMove(turned.nodes, turned.ports, turned.wavelengths, np.arange(6))) is None
