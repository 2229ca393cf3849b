"""SuperPod: the papers' numbers, rails, shapes and broken paths."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabrics.walks import assert_broken_paths_are_refused, assert_routes_arrive, latency_s, loads, num_hops

from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.superpod import SuperPod


def test_numbers_of_ramp() -> None:
    """Section 7.5: 2.4 Tb/s inside, 200 Gb/s outside (1:12); 100 ns and 350 ns a switch, 20, 10, 50 ns a link."""
    made = fabric("superpod:nodes=512")
    inside, outside = (r.capacity for r in made.resources)
    assert (inside, outside, inside / outside) == (2.4e12, 200e9, 12)
    assert made.node_rate_bits_per_s == 2.6e12
    assert latency_s(made, 0, 7) == pytest.approx(20e-9 + 100e-9 + 20e-9)
    assert latency_s(made, 0, 8) == pytest.approx(350e-9 + 2 * 10e-9)
    assert latency_s(made, 0, 9) == pytest.approx(3 * 350e-9 + 2 * (10e-9 + 50e-9))


def test_the_largest_machine_of_ramp() -> None:
    """65,536 nodes: four layers of 40-port switches; 7 of them and 2(10 + 50 + 1250 + 1250) ns across."""
    made = fabric("superpod:nodes=65536")
    assert num_hops(made, 0, 65535) == 8
    assert latency_s(made, 0, 65535) == pytest.approx(7 * 350e-9 + 2 * (10e-9 + 50e-9 + 2 * 1250e-9))


def test_numbers_of_sipac() -> None:
    """Section VI-A: 9 us of NVLink, 120 ns a switch, 1 us a link: across 4 links and 3 switches."""
    made = fabric("superpod:nodes=512,preset=sipac")
    assert latency_s(made, 0, 1) == pytest.approx(9e-6)
    assert latency_s(made, 0, 511) == pytest.approx(4e-6 + 3 * 120e-9)


def test_rails() -> None:
    """Nodes of one position in their servers share a leaf; other positions are three switches away."""
    made = fabric("superpod:nodes=160")
    assert {num_hops(made, 3, 8 * server + 3) for server in range(1, 20)} == {2}
    assert {num_hops(made, 3, 8 * server + 4) for server in range(1, 20)} == {4}
    nvlink, cards = loads(made)
    assert set(nvlink.tolist()) == {7}
    assert cards[: 2 * 160].tolist() == [152] * 320


@pytest.mark.parametrize("spec", ["nodes=1", "nodes=2", "nodes=8", "nodes=9", "nodes=13", "nodes=64", "nodes=171",
                                  "nodes=40,nodes_per_server=1", "nodes=60,nodes_per_server=3,radix=8",
                                  "nodes=99,radix=6,routing=ecmp", "nodes=99,radix=6,routing=single"])  # fmt: skip
def test_all_routes_arrive(spec: str) -> None:
    """Partly filled servers and other switches included."""
    assert_routes_arrive(fabric(f"superpod:{spec}"))


@pytest.mark.parametrize("nodes", [1, 2, 7, 13, 24])
def test_any_number_of_nodes(nodes: int) -> None:
    """Both rates scale with the node's."""
    made = fabric_at_scale("superpod", nodes, 1e12)
    assert made.node_rate_bits_per_s == pytest.approx(1e12)


def test_broken_paths() -> None:
    """Within a server and across; a path from NVLink to the card through another node is refused."""
    from tests.fabrics.walks import refusals, routed

    made = fabric("superpod:nodes=32")
    assert_broken_paths_are_refused(made, 0, 5)
    assert_broken_paths_are_refused(made, 0, 30)
    hops = np.concatenate([routed(made, np.array([a]), np.array([b])).hops for a, b in ((0, 1), (1, 9))])
    from opticcl.ir import Circuits

    bent = Circuits.of([0], np.array([0]), np.array([9]), path=(hops, np.array([0, len(hops)])))
    assert refusals(made, bent) == {"path_broken"}


def test_names() -> None:
    """NVSwitches are a kind of their own; InfiniBand switches are named by their layer."""
    made = fabric("superpod:nodes=24")
    assert made.place_names(0, [9, 24]) == [
        "link node 9 (server 1, rail 1) -> NVSwitch 1",
        "link NVSwitch 0 -> node 0 (server 0, rail 0)",
    ]
    assert made.place_names(1, [10, 48]) == ["link node 10 (server 1, rail 2) -> leaf 2", "link leaf 0 -> spine 0"]
    assert set(made.kind_names(0, np.arange(48))[0]) == {"node -> NVSwitch", "NVSwitch -> node"}


def test_parts() -> None:
    """No InfiniBand within one server, no NVLink where servers have one node."""
    kinds = {p.kind for p in fabric("superpod:nodes=8").parts()}
    assert kinds == {"backplane_end", "nvlink_switch"}
    two = fabric("superpod:nodes=2").parts()
    assert [(p.kind, p.count) for p in two] == [("backplane_end", 4), ("nvlink_switch", 1)]
    kinds = {p.kind for p in fabric("superpod:nodes=8,nodes_per_server=1").parts()}
    assert kinds == {"transceiver", "electrical_switch"}


@pytest.mark.parametrize(
    ("nodes", "each", "nvlink", "cards"),
    [(1, 1, 1, 0), (2, 1, 0, 1), (4, 2, 1, 1), (2, 2, 1, 0), (8, 8, 1, 0), (9, 8, 1, 1)],
)
def test_links_that_a_node_has(nodes: int, each: int, nvlink: int, cards: int) -> None:
    """NVLink where servers have several nodes, or the machine one; cards where there are several servers."""
    made = fabric("superpod", nodes=nodes, nodes_per_server=each)
    assert made.node_rate_bits_per_s == nvlink * 2.4e12 + cards * 200e9
    assert [r.capacity for r in made.resources] == [2.4e12] * nvlink + [200e9] * cards
    if nvlink:
        assert made.resources[0].count == 2 * nodes


@pytest.mark.parametrize(
    ("spec", "servers"),
    [("nodes=13,nodes_per_server=3", range(13, 18)), ("nodes=8", range(8, 9)), ("nodes=1", range(1, 2)),
     ("nodes=5,nodes_per_server=1", range(0))],
)  # fmt: skip
def test_nvswitches_are_the_first_switches(spec: str, servers: range) -> None:
    """One a server, which joins its nodes; none where servers have one node."""
    made = fabric(f"superpod:{spec}")
    assert isinstance(made, SuperPod)
    assert [*made.server_switches] == [*servers]
    each = made.nodes_per_server
    for switch in servers:
        own = [node for node in range(made.nodes) if node // each == switch - made.nodes]
        assert made.network.tail[made.network.head == switch].tolist() == own


def test_a_server_alone_needs_no_infiniband() -> None:
    """Of more nodes than the switches would connect: 100 nodes around one NVSwitch."""
    made = fabric("superpod:nodes=100,nodes_per_server=100,radix=2")
    assert_routes_arrive(made)
    assert {num_hops(made, node, 99) for node in range(99)} == {2}
    assert [(part.kind, part.count) for part in made.parts()] == [("backplane_end", 200), ("nvlink_switch", 1)]


def test_kinds_of_switches_without_nvlink() -> None:
    """Of 5 servers of a node each, two layers: no third one is named."""
    made = fabric("superpod:nodes=5,nodes_per_server=1,radix=4")
    assert isinstance(made, SuperPod)
    assert made.vertex_kinds()[1] == ("node", "leaf", "spine", "NVSwitch")
    assert set(made.kind_names(0, np.arange(10))[0]) == {"node -> leaf", "leaf -> node"}
