"""Leaf-spine: rates of two kinds, balance, shapes and broken paths."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabrics.walks import assert_broken_paths_are_refused, assert_routes_arrive, latency_s, loads, num_hops

from opticcl.fabrics import fabric, fabric_at_scale


def test_two_rates_and_one_to_one() -> None:
    """16 x 400 Gb/s down and 4 x 1600 Gb/s up; 350 ns a switch, one or three of them."""
    made = fabric("leaf_spine")
    down, up = made.resources
    assert (down.capacity, up.capacity) == (400e9, 1600e9)
    assert (down.count, up.count) == (2 * 64, 2 * 4 * 4)
    assert (num_hops(made, 0, 15), num_hops(made, 0, 16)) == (2, 4)
    assert (latency_s(made, 0, 15), latency_s(made, 0, 16)) == pytest.approx((350e-9, 1050e-9))


def test_loads_of_all_pairs() -> None:
    """Routed by destination, all spines have equal loads: 16 x 48 flows leave a leaf over 4 links."""
    hosts, spines = loads(fabric("leaf_spine:routing=dmodk"))
    assert set(hosts.tolist()) == {63}
    assert set(spines.tolist()) == {16 * 48 // 4}
    _, single = loads(fabric("leaf_spine:routing=single"))
    assert set(single.tolist()) == {0, 16 * 48}


@pytest.mark.parametrize("spec", ["nodes=1", "nodes=2", "nodes=17", "nodes=64,spines=3",
                                  "nodes=31,nodes_per_leaf=1,spines=1",
                                  "nodes=50,nodes_per_leaf=7,spines=5,routing=dstedge"])  # fmt: skip
def test_all_routes_arrive(spec: str) -> None:
    """Odd numbers of everything."""
    assert_routes_arrive(fabric(f"leaf_spine:{spec}"))


@pytest.mark.parametrize("nodes", [1, 2, 13, 33])
def test_any_number_of_nodes(nodes: int) -> None:
    """Both rates scale with the node's."""
    made = fabric_at_scale("leaf_spine", nodes, 100e9)
    assert (made.num_nodes, made.node_rate_bits_per_s) == (nodes, pytest.approx(100e9))
    assert made.resources[-1].capacity == pytest.approx(400e9)


def test_broken_paths() -> None:
    """Within a leaf and across."""
    assert_broken_paths_are_refused(fabric("leaf_spine:nodes=40"), 0, 1)
    assert_broken_paths_are_refused(fabric("leaf_spine:nodes=40"), 0, 39)


def test_names() -> None:
    """Links to nodes first, then those to spines."""
    made = fabric("leaf_spine:nodes=20,nodes_per_leaf=16,spines=2")
    assert made.place_names(0, [17, 37]) == ["link node 17 (leaf 1) -> leaf 1", "link leaf 1 -> node 17 (leaf 1)"]
    assert made.place_names(1, [3, 4]) == ["link leaf 1 -> spine 1", "link spine 0 -> leaf 0"]
    assert made.kind_names(1, np.array([3, 4]))[0] == ("leaf -> spine", "spine -> leaf")


def test_parts() -> None:
    """64 nodes on 4 leaves with 4 spines: two ends a cable; a leaf has 16 + 4 ports, a spine 4."""
    assert [(part.kind, part.count) for part in fabric("leaf_spine").parts()] == [
        ("copper_end", 2 * 64),
        ("electrical_switch", 4),
        ("transceiver", 2 * 16),
        ("electrical_switch", 4),
    ]
    assert [part.ports for part in fabric("leaf_spine").parts()][1::2] == [20, 4]
    assert [part.rate_bits_per_s for part in fabric("leaf_spine").parts()] == [400e9, 400e9, 1600e9, 1600e9]
