"""Dragonfly: Kim's numbers, the links between groups, shapes and broken paths."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabrics.walks import assert_broken_paths_are_refused, assert_routes_arrive, latency_s, loads, pairs, routed

from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale


def test_numbers_of_kim() -> None:
    """Balanced with p = h = 4, a = 8: 33 groups, 1056 nodes; figure 5's p = h = 2, a = 4: 9 groups, 72 nodes."""
    assert fabric("dragonfly").num_nodes == 1056
    made = fabric_at_scale("dragonfly", 72)
    assert made.parameters["routers_per_group"] == 4
    nodes, local, between = 2 * 72, 9 * 4 * 3, 9 * 8
    assert sum(r.count for r in made.resources) == nodes + local + between
    with pytest.raises(FabricError, match="at most nodes=72"):
        fabric("dragonfly:nodes=73,nodes_per_router=2,routers_per_group=4,global_links=2")


def test_at_most_one_global_link() -> None:
    """Five links at most, one of them between groups; 350 ns for each of four routers."""
    made = fabric("dragonfly:nodes=72,nodes_per_router=2,routers_per_group=4,global_links=2")
    circuits = routed(made, *pairs(72))
    assert circuits.num_hops().max() == 5
    first_global = 2 * 72 + 9 * 4 * 3
    crossings = np.bincount(circuits.hop_owner(), circuits.hops >= first_global)
    assert np.array_equal(crossings, circuits.src // 8 != circuits.dst // 8)
    slowest = max(latency_s(made, 0, d) for d in range(1, 72))
    assert slowest == pytest.approx(4 * 350e-9 + 4 * 20e-9 + 250e-9)


def test_every_two_groups_share_one_link() -> None:
    """All pairs between two groups, 8 x 8, cross the same link; links of the nodes carry 71 each."""
    made = fabric("dragonfly:nodes=72,nodes_per_router=2,routers_per_group=4,global_links=2")
    (load,) = loads(made)
    assert set(load[: 2 * 72].tolist()) == {71}
    assert set(load[-72:].tolist()) == {64}


@pytest.mark.parametrize("spec", ["nodes=1", "nodes=2", "nodes=3", "nodes=31", "nodes=100",
                                  "nodes=11,nodes_per_router=11,routers_per_group=1,global_links=0",
                                  "nodes=20,nodes_per_router=5,routers_per_group=2,global_links=3",
                                  "nodes=9,nodes_per_router=1,routers_per_group=3,global_links=5"])  # fmt: skip
def test_all_routes_arrive(spec: str) -> None:
    """Partly filled groups and unbalanced shapes included."""
    assert_routes_arrive(fabric(f"dragonfly:{spec}"))


@pytest.mark.parametrize(("nodes", "half"), [(1, 1), (6, 1), (7, 2), (72, 2), (73, 3), (342, 3), (343, 4)])
def test_the_smallest_balanced_shape(nodes: int, half: int) -> None:
    """Groups of 2 p routers with p nodes each, 2 p^2 + 1 of them: 6 nodes, 72, 342."""
    made = fabric_at_scale("dragonfly", nodes).parameters
    shape = ("nodes", "nodes_per_router", "routers_per_group", "global_links")
    assert [made[name] for name in shape] == [nodes, half, 2 * half, half]


def test_broken_paths() -> None:
    """Within a router, a group, and across."""
    made = fabric_at_scale("dragonfly", 72)
    assert_broken_paths_are_refused(made, 0, 1)
    assert_broken_paths_are_refused(made, 0, 7)
    assert_broken_paths_are_refused(made, 0, 71)


def test_names() -> None:
    """Routers have a number and a group; links of all kinds have one rate."""
    made = fabric("dragonfly:nodes=11,nodes_per_router=2,routers_per_group=2,global_links=1")
    assert made.coordinates(10) == "10 (group 2, router 1)"
    first_local = 2 * 11
    assert made.place_names(0, [10, first_local, first_local + 6]) == [
        "link node 10 (group 2, router 1) -> router 5 (group 2)",
        "link router 0 (group 0) -> router 1 (group 0)",
        "link router 0 (group 0) -> router 3 (group 1)",
    ]
    assert set(made.kind_names(0, np.arange(34))[0]) == {"node -> router", "router -> node", "router -> router"}


def test_parts() -> None:
    """72 nodes: an end for each directed link, copper within groups; 36 routers of 2 + 3 + 2 ports."""
    made = fabric_at_scale("dragonfly", 72)
    assert [(part.kind, part.count) for part in made.parts()] == [
        ("copper_end", 2 * 72 + 9 * 4 * 3),
        ("transceiver", 9 * 8),
        ("electrical_switch", 36),
    ]
    assert made.parts()[2].ports == 7
    assert {part.rate_bits_per_s for part in made.parts()} == {made.rate_bits_per_s}
