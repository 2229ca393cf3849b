"""Torus: shortest paths, balance, shapes, names and broken paths."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabrics.walks import assert_broken_paths_are_refused, assert_routes_arrive, latency_s, loads, pairs, routed

from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.torus import Torus

SHAPES = ["1", "2", "3", "7", "8", "2x2", "1x5", "5x1", "3x4", "4x4", "2x3x4", "3x3x3", "2x2x2x2", "1x1"]


def test_numbers_of_sipac() -> None:
    """Section VI-A and figure 11: 512 nodes as 16 x 32, 2048 Gb/s over four links of 512, 24 hops of 1 us across."""
    made = fabric_at_scale("torus", 512)
    assert made.parameters["shape"] == (16, 32)
    assert (made.ports_per_node, made.node_rate_bits_per_s) == (4, 2048e9)
    assert routed(made, *pairs(512)).num_hops().max() == 24
    assert latency_s(made, 0, 8 * 32 + 16) == pytest.approx(24e-6)
    assert sum(r.count for r in made.resources) == 4 * 512


@pytest.mark.parametrize("shape", SHAPES)
def test_paths_are_the_shortest(shape: str) -> None:
    """As many hops as the coordinates differ, in the shorter direction; `distance` agrees."""
    made = fabric(f"torus:shape={shape}")
    assert_routes_arrive(made)
    sides = made.parameters["shape"]
    src, dst = pairs(made.num_nodes)
    apart = [np.abs(a - b) for a, b in zip(np.unravel_index(src, sides), np.unravel_index(dst, sides), strict=True)]
    shortest = sum(np.minimum(d, side - d) for d, side in zip(apart, sides, strict=True))
    assert np.array_equal(routed(made, src, dst).num_hops(), shortest + np.zeros(len(src), int))
    assert np.array_equal(made.distance(src, dst), shortest + np.zeros(len(src), int))


@pytest.mark.parametrize("shape", ["8", "7", "4x4", "8x8", "3x5", "4x4x4", "16"])
def test_both_directions_carry_equal_loads(shape: str) -> None:
    """Every node to every other: loads in a dimension differ by no more than the odd flows of a tie."""
    made = fabric(f"torus:shape={shape}")
    (load,) = loads(made)
    sides = made.parameters["shape"]
    for number, side in enumerate(sides):
        mine = load[2 * number * made.num_nodes : 2 * (number + 1) * made.num_nodes]
        assert mine.max() - mine.min() <= (made.num_nodes // side if side % 4 == 2 else 0)


@pytest.mark.parametrize(
    ("shape", "ports"), [("1", 1), ("2", 1), ("3", 2), ("2x2", 2), ("2x3", 3), ("4x4x4", 6), ("1x4", 2)]
)
def test_ports(shape: str, ports: int) -> None:
    """Two a dimension; one where the next node is also the previous one; one for a single node."""
    assert fabric(f"torus:shape={shape}").ports_per_node == ports


@pytest.mark.parametrize("shape", SHAPES)
def test_ring_order_follows_links(shape: str) -> None:
    """Neighbours in the order share a link; every node occurs once."""
    made = fabric(f"torus:shape={shape}")
    order = made.ring_order()
    assert sorted(order) == list(range(made.num_nodes))
    if made.num_nodes > 1:
        assert (routed(made, order[:-1], order[1:]).num_hops() == 1).all()


@pytest.mark.parametrize(
    ("nodes", "shape"), [(1, (1,)), (2, (2,)), (13, (13,)), (64, (8, 8)), (1024, (32, 32)), (54, (6, 9))]
)
def test_shape_at_scale(nodes: int, shape: tuple[int, ...]) -> None:
    """Two dimensions with the least difference."""
    made = fabric_at_scale("torus", nodes, 1e12)
    assert made.parameters["shape"] == shape
    assert made.node_rate_bits_per_s == pytest.approx(1e12)


def test_broken_paths() -> None:
    """Nodes forward packets, but only along links."""
    assert_broken_paths_are_refused(fabric("torus:shape=4x5"), 0, 8)
    assert_broken_paths_are_refused(fabric("torus:shape=3x3x3"), 0, 26)


@pytest.mark.parametrize("shape", SHAPES)
def test_links_join_coordinates_that_differ_by_one(shape: str) -> None:
    """Link group by group: a dimension up, then down where a side is above 2; routes go dimension by dimension."""
    made = fabric(f"torus:shape={shape}")
    sides, n = made.parameters["shape"], made.num_nodes
    grid = np.arange(n).reshape(sides)
    ways = [(k, way) for k, side in enumerate(sides) for way in (1, -1) if side > 2 or (side == 2 and way == 1)]
    due = [np.roll(grid, -way, axis=k).ravel() for k, way in ways]
    assert made.network.head.tolist() == np.concatenate([*due, grid[:0].ravel()]).tolist()
    assert made.network.tail.tolist() == list(range(n)) * len(ways)
    src, dst = pairs(n)
    circuits = routed(made, src, dst)
    dimension = np.array([k for k, _ in ways], int)[circuits.hops // n]
    assert (np.diff(dimension)[np.diff(circuits.hop_owner()) == 0] >= 0).all()
    node = np.arange(n)
    assert [made.coordinates(i) for i in node] == [
        "(" + ", ".join(str(int(c)) for c in np.unravel_index(i, sides)) + ")" for i in node
    ]


def test_the_ring_goes_back_and_forth() -> None:
    """Along the first row, back along the second, from node 0 on."""
    assert fabric("torus:shape=3x3").ring_order().tolist() == [0, 1, 2, 5, 4, 3, 6, 7, 8]


def test_ties_are_broken_by_the_coordinate() -> None:
    """Two steps of a ring of four: up from even nodes, down from odd ones."""
    made = fabric("torus:shape=4")
    assert [routed(made, i, (i + 2) % 4).hops.tolist() for i in range(4)] == [[0, 1], [5, 4], [2, 3], [7, 6]]


def test_sides_are_one_or_more_and_nodes_not_too_many() -> None:
    """No side, a side of 0 and one node too many are refused; 2048 x 2048 nodes are as many as there may be."""
    for shape in ((), (4, 0), (0, 4), (2**22 + 1,)):
        with pytest.raises(FabricError, match="sides of 1 or more, at most 4194304 nodes"):
            Torus(shape=shape)
    assert Torus(shape=(2048, 2048)).num_nodes == 2**22
    assert Torus.parameters_at_scale(12) == {"shape": (3, 4)}
    assert Torus.parameters_at_scale(1) == {"shape": (1,)}
    assert Torus.parameters_at_scale(6) == {"shape": (2, 3)}


def test_names() -> None:
    """Links lead from node to node."""
    made = fabric("torus:shape=2x3")
    assert made.place_names(0, [0, 6 + 2, 12]) == [
        "link node 0 (0, 0) -> node 3 (1, 0)",
        "link node 2 (0, 2) -> node 0 (0, 0)",
        "link node 0 (0, 0) -> node 2 (0, 2)",
    ]
    assert made.kind_names(0, np.arange(18))[0] == ("node -> node",)
