"""Fat tree: the papers' trees, routings, shapes and broken paths."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from tests.fabrics.walks import (
    assert_broken_paths_are_refused,
    assert_routes_arrive,
    latency_s,
    loads,
    num_hops,
    pairs,
    routed,
)

from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.fat_tree import num_switches, shape_of


def test_the_tree_of_wrht() -> None:
    """Table 2: 40 Gb/s; 25 us within a leaf of 32 nodes, 75 us across."""
    made = fabric("fat_tree:nodes=1024,preset=wrht")
    assert made.node_rate_bits_per_s == 40e9
    assert (latency_s(made, 0, 31), latency_s(made, 0, 32)) == pytest.approx((25e-6, 75e-6))
    assert (num_hops(made, 0, 31), num_hops(made, 0, 32)) == (2, 4)
    assert sum(r.count for r in made.resources) == 2 * (1024 + 32 * 32)


def test_thirty_two_port_routers_connect_512_nodes() -> None:
    """Table 2 says 32 ports and 1024 nodes, which contradict each other (W38)."""
    assert fabric("fat_tree:nodes=512,preset=wrht,radix=32").num_nodes == 512
    with pytest.raises(FabricError, match="at most nodes=512"):
        fabric("fat_tree:nodes=1024,preset=wrht,radix=32")


def test_the_tree_of_oddl() -> None:
    """Section 5.A: radix 16, three layers, 1:1: 8 nodes a leaf, 64 a pod, 1024 in all; 1, 3 or 5 switches of 1 us."""
    made = fabric("fat_tree:nodes=1024,preset=oddl")
    assert made.node_rate_bits_per_s == 100e9
    assert [latency_s(made, 0, d) for d in (7, 8, 63, 64, 1023)] == pytest.approx([1e-6, 3e-6, 3e-6, 5e-6, 5e-6])
    assert num_switches(1024, 16, 3) == 128 + 128 + 64
    with pytest.raises(FabricError, match="at most nodes=1024"):
        fabric("fat_tree:nodes=1025,preset=oddl")


def test_given_parameters_take_precedence_over_the_preset() -> None:
    """And those not given come from the TOML file."""
    made = fabric("fat_tree:nodes=64,preset=wrht,rate=10Gb/s,router_latency=1us")
    assert made.node_rate_bits_per_s == 10e9
    assert latency_s(made, 0, 63) == pytest.approx(3e-6)
    assert fabric_at_scale("fat_tree:preset=wrht", 64, 800e9).node_rate_bits_per_s == pytest.approx(800e9)


@pytest.mark.parametrize("routing", ["dmodk", "smodk", "ecmp", "dstedge", "single"])
@pytest.mark.parametrize("spec", ["radix=4,layers=3,nodes=16", "radix=6,layers=2,nodes=17", "radix=4,layers=4,nodes=29",
                                  "radix=8,layers=2,nodes=30,oversubscription=3"])  # fmt: skip
def test_all_routes_arrive(routing: str, spec: str) -> None:
    """With every routing, odd numbers of nodes and oversubscription included."""
    assert_routes_arrive(fabric(f"fat_tree:{spec},routing={routing}"))


def test_full_bisection_carries_every_permutation_of_shifts() -> None:
    """Destination- and source-modulo routing never put two flows of a shift on one link (the point of D-mod-k)."""
    node = np.arange(128)
    for routing in ("dmodk", "smodk"):
        made = fabric(f"fat_tree:nodes=128,radix=8,layers=3,routing={routing}")
        for shift in range(1, 128):
            circuits = routed(made, node, (node + shift) % 128)
            assert np.bincount(circuits.hops).max() == 1


def test_loads_of_all_pairs() -> None:
    """Balanced routings: no link carries more flows than a node's; one fixed path: all of a leaf's are on one link."""
    assert max(load.max() for load in loads(fabric("fat_tree:nodes=128,radix=8,layers=3"))) == 127
    single = loads(fabric("fat_tree:nodes=128,radix=8,layers=3,routing=single"))
    assert max(load.max() for load in single) == 16 * 112  # 16 nodes a pod, 112 others


def test_ecmp_is_seeded() -> None:
    """The same seed gives the same routes, another seed others; up-links have nearly equal loads."""
    src, dst = pairs(64)
    one, same, other = (
        routed(fabric(f"fat_tree:nodes=64,radix=16,routing=ecmp,seed={s}"), src, dst).hops for s in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    load = np.bincount(one)
    assert load.max() < 2 * load[load > 0].mean()


def test_broken_paths() -> None:
    """Within a leaf and across."""
    made = fabric("fat_tree:nodes=16,radix=4,layers=3")
    assert_broken_paths_are_refused(made, 0, 1)
    assert_broken_paths_are_refused(made, 3, 12)


def test_nodes_forward_nothing() -> None:
    """A path through another node's port is refused: 0 -> leaf -> 1 -> leaf -> 2."""
    from dataclasses import replace

    from tests.fabrics.walks import refusals

    made = fabric("fat_tree:nodes=16,radix=8,layers=2")
    hops = np.concatenate([routed(made, np.array([a]), np.array([b])).hops for a, b in ((0, 1), (1, 2))])
    bent = replace(routed(made, np.array([0]), np.array([2])), hops=hops, hop_offsets=np.array([0, 4]))
    assert refusals(made, bent) == {"path_broken"}


def test_a_million_routes_take_about_a_second() -> None:
    """Vectorised: 1,047,552 pairs of 1024 nodes (the limit is generous; a loop would take ten times as long)."""
    import time

    made, (src, dst) = fabric("fat_tree:nodes=1024,preset=oddl"), pairs(1024)
    begin = time.process_time()
    made.route(src, dst)
    assert time.process_time() - begin < 4


def test_unknown_routings_and_presets_are_refused() -> None:
    """With the known ones."""
    with pytest.raises(ParameterError, match="dmodk, smodk, ecmp, dstedge, single"):
        fabric("fat_tree:routing=random")
    with pytest.raises(ParameterError, match="wrht, oddl"):
        fabric("fat_tree:preset=ramp")


def test_a_tree_has_the_fewest_layers() -> None:
    """Two while they have enough ports."""
    assert len(shape_of(2048, 64, None, 1).children) == 2
    assert len(shape_of(2049, 64, None, 1).children) == 3
    assert shape_of(48, 8, 2, 3).parents == (1, 2)


def test_ports_of_a_leaf_are_divided_as_wanted() -> None:
    """Every division of up to 12 ports by its ratio, odd numbers of ports too; the top has all its ports down."""
    for radix in range(2, 13):
        for up in range(1, radix):
            down = radix - up
            shape = shape_of(down * radix, radix, None, down / up)
            assert (shape.children, shape.parents) == ((down, radix), (1, up))
            assert shape_of(1, radix, 2, down / up) == shape
    assert shape_of(32, 4, None, 1).children == (2, 2, 2, 4)


@pytest.mark.parametrize("ratio", [0.0, 1e-12, -0.5, -1.0, -3.0, 2.5, 2.999, 3.001, 30.0, 1e30, inf, nan])
def test_other_ratios_are_refused(ratio: float) -> None:
    """With the nearest of 3, 1 and 1/3, which 4 ports have; 2 ports have 1 alone."""
    nearest = 1 / 3 if ratio < 1 else 3
    with pytest.raises(
        FabricError, match=rf"^fat_tree: radix=4 cannot be split .*; nearest: oversubscription={nearest:g} "
    ):
        shape_of(8, 4, 2, ratio)
    with pytest.raises(FabricError, match=r"nearest: oversubscription=1 \(1 down, 1 up\)$"):
        shape_of(2, 2, 2, ratio)


def test_names() -> None:
    """Switches are named by their layer: leaves, spines, cores."""
    made = fabric("fat_tree:nodes=16,radix=4,layers=3")
    assert made.place_names(0, [0, 16, 32]) == [
        "link node 0 (leaf 0) -> leaf 0",
        "link leaf 0 -> node 0 (leaf 0)",
        "link leaf 0 -> spine 0",
    ]
    kinds, of_link = made.kind_names(0, np.arange(96))
    assert sorted(kinds) == sorted(
        ["node -> leaf", "leaf -> node", "leaf -> spine", "spine -> leaf", "spine -> core", "core -> spine"]
    )
    assert np.bincount(of_link).tolist() == [16] * 6


def test_values_of_a_preset() -> None:
    """All parameters that a preset may set; parameters keep what was given."""
    made = fabric("fat_tree:nodes=64,preset=oddl,rate=10Gb/s")
    assert (made.values["radix"], made.values["layers"], made.values["rate"]) == (16, 3, 10e9)
    assert (made.parameters["radix"], made.parameters["rate"]) == (None, 10e9)
