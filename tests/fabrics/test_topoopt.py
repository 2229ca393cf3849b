"""TopoOpt: the papers' numbers, strides, the fewest circuits, light, shapes and broken paths."""

from __future__ import annotations

from math import gcd

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fabrics.walks import assert_broken_paths_are_refused, assert_routes_arrive, latency_s, loads, pairs, routed
from tests.profiles import examples

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics import topoopt as topoopt_module
from opticcl.fabrics.topoopt import fewest_circuits, strides_of
from opticcl.optics.values import optics
from opticcl.schedule import generate

SPECS = [
    "nodes=1",
    "nodes=2",
    "nodes=2,degree=3",
    "nodes=7,degree=2",
    "nodes=12,degree=3",
    "nodes=13",
    "nodes=16,degree=4",
]


def test_numbers_of_ramp() -> None:
    """Section 7.5: 1.6 Tb/s towards one neighbour, 260 ns between nodes and 100 ns in and out of one."""
    made = fabric("topoopt:nodes=64")
    assert (made.ports_per_node, made.node_rate_bits_per_s) == (1, 1.6e12)
    assert [(r.count, r.capacity) for r in made.resources] == [(64, 1.6e12)]
    assert latency_s(made, 0, 1) == pytest.approx(0.36e-6)
    assert latency_s(made, 0, 63) == pytest.approx(63 * 0.36e-6)
    assert made.reconfiguration_s == 0


def test_numbers_of_topoopt() -> None:
    """Its simulations: 128 nodes with four interfaces of 100 Gb/s, 1 us a link."""
    made = fabric("topoopt:nodes=128,preset=topoopt")
    assert (made.ports_per_node, made.rate_bits_per_s, made.node_rate_bits_per_s) == (4, 100e9, 400e9)
    assert sum(r.count for r in made.resources) == 4 * 128
    assert latency_s(made, 5, 6) == pytest.approx(1e-6)
    assert fabric("topoopt:preset=topoopt,node_rate=800Gb/s").rate_bits_per_s == 200e9


def test_a_ring_takes_the_time_of_the_formula() -> None:
    """RAMP 7.4: 2(N-1) steps of m/N over 1.6 Tb/s and 0.36 us each."""
    made = opticcl.fabric("topoopt:nodes=1024")
    plan = opticcl.compile(made, "all_reduce", "1GB", algorithm="ring")
    due = 2 * 1023 * (0.36e-6 + 1e9 / 1024 * 8 / 1.6e12)
    assert plan.simulate(compute="none", assumptions="published").total_s == pytest.approx(due, rel=1e-12)


@pytest.mark.parametrize(
    ("nodes", "degree", "strides"),
    [
        (1, 3, ()),
        (2, 3, (1, 1, 1)),
        (7, 2, (1, 3)),
        (64, 3, (1, 3, 15)),
        (6, 4, (1, 5, 1, 5)),
        (65536, 4, (1, 15, 255, 4095)),
    ],
)
def test_strides(nodes: int, degree: int, strides: tuple[int, ...]) -> None:
    """1 first, then near to a geometric series; they repeat where there are no more."""
    assert strides_of(nodes, degree) == strides


@given(nodes=st.integers(2, 400), degree=st.integers(1, 8))
@examples(50)
def test_strides_make_rings(nodes: int, degree: int) -> None:
    """Every stride leads through all nodes, and strides are distinct where there are enough."""
    strides = strides_of(nodes, degree)
    assert len(strides) == degree
    assert all(gcd(p, nodes) == 1 and 0 < p < nodes for p in strides)
    prime_to = sum(gcd(p, nodes) == 1 for p in range(1, nodes))
    assert len(set(strides)) == min(degree, prime_to)


@given(nodes=st.integers(2, 60), degree=st.integers(1, 5))
@examples(40)
def test_circuits_are_the_fewest(nodes: int, degree: int) -> None:
    """As many as a breadth-first search over the circuits finds; `distance` agrees."""
    rings = tuple(dict.fromkeys(strides_of(nodes, degree)))
    graph = nx.DiGraph((i, (i + p) % nodes) for i in range(nodes) for p in rings)
    shortest = nx.single_source_shortest_path_length(graph, 0)
    circuits, _ = fewest_circuits(nodes, rings)
    assert circuits.tolist() == [shortest[i] for i in range(nodes)]
    made = fabric("topoopt", nodes=nodes, degree=degree)
    src, dst = pairs(nodes)
    assert np.array_equal(routed(made, src, dst).num_hops(), circuits[(dst - src) % nodes])
    assert np.array_equal(made.distance(src, dst), circuits[(dst - src) % nodes])


@pytest.mark.parametrize(("degree", "most"), [(2, 512), (4, 64), (8, 32)])
def test_no_node_is_far(degree: int, most: int) -> None:
    """65,536 nodes: no more than d N^(1/d) circuits between any two."""
    assert fewest_circuits(65536, strides_of(65536, degree))[0].max() <= most


@pytest.mark.parametrize("spec", SPECS)
def test_routes_arrive(spec: str) -> None:
    """Every pair has a path."""
    made = fabric(f"topoopt:{spec}")
    assert_routes_arrive(made)
    assert sorted(made.ring_order()) == list(range(made.num_nodes))


@pytest.mark.parametrize("spec", ["nodes=9", "nodes=16,degree=2", "nodes=25,strides=7x3x7"])
def test_circuits_of_a_ring_carry_equal_loads(spec: str) -> None:
    """Every node to every other: all circuits of one stride carry as many flows, by symmetry."""
    made = fabric(f"topoopt:{spec}")
    n = made.num_nodes
    every = np.concatenate(loads(made))
    assert len(every) % n == 0
    assert all(len(set(ring.tolist())) == 1 for ring in every.reshape(-1, n))


def test_equal_strides_run_in_parallel() -> None:
    """Two of three interfaces on one ring: twice the rate there, and the ring algorithm uses that ring."""
    made = fabric("topoopt:nodes=12,strides=1x5x5,node_rate=600Gb/s")
    assert [r.capacity for r in made.resources] == [400e9, 200e9]
    assert made.ring_order()[:3].tolist() == [0, 5, 10]
    assert made.node_rate_bits_per_s == 600e9


def test_any_number_of_nodes_at_any_rate() -> None:
    """The rate of a node is the given one, with a preset too."""
    for nodes in (1, 2, 13, 1024, 65536):
        for spec in ("topoopt", "topoopt:preset=topoopt"):
            made = fabric_at_scale(spec, nodes, 1e12)
            assert made.num_nodes == nodes
            assert made.node_rate_bits_per_s == pytest.approx(1e12)


def test_paths_past_all_nodes_are_refused() -> None:
    """A step whose paths would fill the memory is refused in one line."""
    made = fabric("topoopt:nodes=65536")
    plan = lower(made, generate("halving_doubling", "all_reduce", made))
    with pytest.raises(UnsupportedError, match="larger degree"):
        plan.rounds(0)


def test_broken_paths() -> None:
    """Nodes forward packets, but only along circuits."""
    assert_broken_paths_are_refused(fabric("topoopt:nodes=11,degree=2"), 0, 9)
    assert_broken_paths_are_refused(fabric("topoopt:nodes=5"), 1, 4)


def test_light() -> None:
    """Every circuit passes two fibres and the panel; the largest loss of the panel is what the budget has left."""
    made = fabric("topoopt:nodes=5,degree=2")
    assert made.light_path is not None
    assert made.light_path.kinds == ("fibre", "patch_panel")
    (limit,) = made.limits(optics(made.light_path.table, "typical"))
    assert limit.name == "largest_panel_loss_db"
    assert limit.value == pytest.approx(
        0.0 + 4.0 - 2 * 0.02
    )  # launch 0 dBm, sensitivity -4 dBm, 0.1 km of 0.2 dB/km twice
    (limit,) = made.limits(optics(made.light_path.table, "typical", {"launch": "-5dBm"}))
    assert limit.value is None


def test_control_plane_and_names() -> None:
    """Circuits are set once a job; links lead from node to node."""
    made = fabric("topoopt:nodes=5,degree=2")
    plane = made.control_plane()
    assert (plane.once_a_job, plane.once_a_job_s, plane.every_round) == ("circuits are patched", 10e-3, "nothing")
    assert made.place_names(0, [0, 5, 9]) == ["link node 0 -> node 1", "link node 0 -> node 2", "link node 4 -> node 1"]
    assert made.example() == (fabric("topoopt:nodes=8,degree=2"), "ring")


@pytest.mark.parametrize("spec", ["nodes=1", "nodes=1,strides=5", "nodes=7", "nodes=8,degree=2", "nodes=8,strides=3"])
def test_interfaces_panel_and_fibres(spec: str) -> None:
    """Of every node its interfaces, one panel with a port for each, and a fibre each way to it."""
    made = fabric(f"topoopt:{spec}")
    interfaces = made.num_nodes * made.ports_per_node
    assert [(part.kind, part.count, part.ports) for part in made.parts()] == [
        ("transceiver", interfaces, 0),
        ("patch_panel", 1, interfaces),
        ("fibre", 2 * interfaces, 0),
    ]
    path, floor = made.light_path, assumptions("common").floor
    assert path is not None
    assert made.network.num_links == (0 if made.num_nodes == 1 else made.num_nodes * len(made.interfaces_of_stride))
    lit = routed(made, *pairs(made.num_nodes))
    assert path.counts(lit).tolist() == [[1, 1, 1]] * len(lit)
    assert (path.extremes.tolist(), path.typical.tolist()) == ([[1, 1, 1]], [1, 1, 1])
    passed = made.hop_passages(floor)
    assert passed.fibre_m.tolist() == [floor.through_centre_m(made.num_nodes)] * made.network.num_links
    assert (passed.receivers, passed.switches) == (1, 1)


@pytest.mark.parametrize(("nodes", "strides"), [(8, (3,)), (9, (2,)), (8, (1, 3)), (11, (1, 3, 9))])
def test_circuits_follow_the_strides(nodes: int, strides: tuple[int, ...]) -> None:
    """Circuit k N + i leads from node i a stride further; the last one of a path is that of `fewest_circuits`."""
    made = fabric("topoopt", nodes=nodes, strides=strides)
    circuits, last = fewest_circuits(nodes, strides)
    src, dst = pairs(nodes)
    lit = routed(made, src, dst)
    stride = np.array(strides)[lit.hops // nodes]
    reached = (src + np.bincount(lit.hop_owner(), stride, len(src)).astype(int)) % nodes
    assert np.array_equal(reached, dst)
    assert np.array_equal(lit.num_hops(), circuits[(dst - src) % nodes])
    for ahead in range(1, nodes):
        assert circuits[ahead] == circuits[(ahead - strides[last[ahead]]) % nodes] + 1
    order = made.ring_order()
    assert ((np.roll(order, -1) - order) % nodes == strides[0]).all()


def test_the_most_of_everything() -> None:
    """2^22 nodes and 64 interfaces are right; so is a panel that loses all that the budget has, and no more than 0 dB."""
    assert fabric("topoopt:nodes=4194304,degree=64").num_nodes == 2**22
    with pytest.raises(FabricError, match="8 makes no ring of 8 nodes"):
        fabric("topoopt:nodes=8,strides=8")
    with pytest.raises(FabricError, match="2 makes no ring of 2 nodes"):
        fabric("topoopt:nodes=2,strides=2")
    made = fabric("topoopt:nodes=5")
    for launch, due in (("-4dBm", 0.0), ("-3.5dBm", 0.5)):
        (limit,) = made.limits(optics(made.light_path.table, "typical", {"launch": launch, "fibre.loss": "0dB/km"}))
        assert (limit.value, limit.text) == (due, f"the panel may lose up to {due:.2f} dB")


def test_one_node_and_as_many_circuits_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is 0 circuits from itself; paths of as many circuits as fit are right, one more is not."""
    assert fabric("topoopt:nodes=1").distance(np.zeros(1, int), np.zeros(1, int)).tolist() == [0]
    monkeypatch.setattr(topoopt_module, "MAX_HOPS", 5)
    made = fabric("topoopt:nodes=8")
    assert routed(made, 0, 5).num_hops().tolist() == [5]
    with pytest.raises(UnsupportedError, match="have 6 circuits, at most 5"):
        made.route(np.zeros(1, int), np.array([6]))
