"""Folded Clos networks: routes by their definition, link by link, and switches and cables counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, product

import numpy as np
import pytest
from tests.fabrics.walks import pairs, routed

from opticcl.fabrics import fabric
from opticcl.fabrics._packet import PacketFabric, hash_of


@dataclass
class Tree:
    """Links of each vertex up and down, as (end, link) in the order of the ends, and the nodes below each vertex."""

    up: dict[int, list[tuple[int, int]]]
    down: dict[int, list[tuple[int, int]]]
    below: dict[int, set[int]]

    def path(self, src: int, dst: int, key: Callable[[int], int], *, digits: bool) -> list[int]:
        """Links up until dst is below, each the number key(layer) of its switch or, of digits, its next digit; then down."""
        at, hops, divided = src, [], 1
        for layer in count(1):
            if dst in self.below[at]:
                break
            links = self.up[at]
            at, link = links[key(layer) // divided % len(links)]
            divided *= len(links) if digits else 1
            hops.append(link)
        while at != dst:
            ((at, link),) = ((end, link) for end, link in self.down[at] if dst in self.below[end])
            hops.append(link)
        return hops


def tree_of(made: PacketFabric, left_out: range = range(0)) -> Tree:
    """Of a network without the switches that are left out: links lead up to what is farther from the nodes."""
    ends = zip(made.network.tail.tolist(), made.network.head.tolist(), strict=True)
    links = [(tail, head, k) for k, (tail, head) in enumerate(ends) if not {tail, head} & set(left_out)]
    layer = dict.fromkeys(range(made.num_nodes), 0)
    while more := {tail for tail, head, _ in links if head in layer} - layer.keys():
        layer |= dict.fromkeys(more, max(layer.values()) + 1)
    up, down = ({vertex: [] for vertex in layer} for _ in range(2))
    below = {vertex: {vertex} if vertex < made.num_nodes else set() for vertex in layer}
    for tail, head, k in sorted(links, key=lambda link: (layer[link[0]], link[1])):
        leads_up = layer[head] > layer[tail]
        (up if leads_up else down)[tail].append((head, k))
        below[head] |= below[tail] if leads_up else set()
    return Tree(up, down, below)


def assert_routed_by_definition(
    made: PacketFabric, tree: Tree, routing: str, number: list[int], leaf: list[int]
) -> None:
    """Every path that does not stay in a server has the links that the numbers of nodes or leaves choose."""
    n, servers = made.num_nodes, np.array([*range(made.num_nodes)]) // made.parameters.get("nodes_per_server", 1)
    src, dst = pairs(n)
    apart = servers[src] != servers[dst]
    circuits = routed(made, src[apart], dst[apart])
    for i, (a, b) in enumerate(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True)):
        key = {"dmodk": number[b], "smodk": number[a], "dstedge": leaf[b], "single": 0}.get(routing)
        if key is None:
            due = tree.path(a, b, lambda layer, a=a, b=b: int(hash_of(a, b, 3, layer)[0]), digits=False)
        else:
            due = tree.path(a, b, lambda layer, key=key: key, digits=True)
        assert circuits.path(i).tolist() == due, (a, b)


ROUTINGS = ("dmodk", "smodk", "ecmp", "dstedge", "single")


@pytest.mark.parametrize(
    ("specification", "leaf"),
    [
        ("fat_tree:nodes=21,radix=4,layers=4", 2),
        ("fat_tree:nodes=27,radix=9,layers=2,oversubscription=2", 6),
        ("fat_tree:nodes=30,radix=8,layers=3,oversubscription=3", 6),
        ("leaf_spine:nodes=17,nodes_per_leaf=3,spines=4", 3),
    ],
)
def test_routes_of_trees(specification: str, leaf: int) -> None:
    """Digits of the receiver, of the sender or of the receiver's leaf, a hash of both and the layer, or the first link."""
    tree = None
    for routing in ROUTINGS:
        made = fabric(f"{specification},routing={routing},seed=3")
        assert isinstance(made, PacketFabric)
        tree = tree or tree_of(made)
        node = list(range(made.num_nodes))
        assert_routed_by_definition(made, tree, routing, node, [one // leaf for one in node])


@pytest.mark.parametrize("routing", ROUTINGS)
def test_routes_between_servers(routing: str) -> None:
    """Ports of leaves count in the place of nodes: of 2 servers each, first rail by rail, then the next 2 servers."""
    made = fabric(f"superpod:nodes=23,nodes_per_server=3,radix=4,seed=3,routing={routing}")
    assert isinstance(made, PacketFabric)
    ports = {
        (two * 2 + server) * 3 + rail: k for k, (two, rail, server) in enumerate(product(range(4), range(3), range(2)))
    }
    number = [ports[node] for node in range(23)]
    assert_routed_by_definition(made, tree_of(made, range(23, 23 + 8)), routing, number, [port // 2 for port in number])


@pytest.mark.parametrize(
    ("specification", "links", "switches"),
    [
        ("fat_tree:nodes=192,radix=8,layers=3,oversubscription=3", (192, 64, 64), ((32, 8), (16, 8), (8, 8))),
        ("fat_tree:nodes=100,radix=8,layers=3,oversubscription=3", (100, 34, 40), ((17, 8), (10, 8), (5, 8))),
        ("fat_tree:nodes=13,radix=6,layers=2", (13, 15), ((5, 6), (3, 6))),
        ("leaf_spine:nodes=20,nodes_per_leaf=8,spines=5", (20, 15), ((3, 13), (5, 3))),
        ("superpod:nodes=9,nodes_per_server=1,radix=4", (9, 10, 12), ((5, 4), (6, 4), (3, 4))),
        ("superpod:nodes=8,nodes_per_server=1,radix=4", (8, 8), ((4, 4), (2, 4))),
    ],
)
def test_switches_and_cables(specification: str, links: tuple[int, ...], switches: tuple[tuple[int, int], ...]) -> None:
    """Cables below each layer, with two ends; switches of each layer and their ports, of a partly filled top those in use."""
    parts = fabric(specification).parts()
    assert [part.count for part in parts[::2]] == [2 * cables for cables in links]
    assert [(part.count, part.ports) for part in parts[1::2]] == list(switches)
    assert [part.kind for part in parts[1::2]] == ["electrical_switch"] * len(links)
