"""SiP-Ring: ODDL's numbers, shapes, and light that the hardware cannot make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fabrics.test_terarack import PAIRS, nodes_reached, segments
from tests.fabrics.walks import refusals

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import Circuits
from opticcl.optics.values import optics

ONE, TWO = (fabric("sip_ring", nodes=6, wavelengths=4, directions=d) for d in (1, 2))


def light(src: list[int], dst: list[int], paths: list[list[int]], port: Any = 0, wavelength: Any = 0) -> Circuits:
    """Circuits on the given segments."""
    offsets = np.cumsum([0, *map(len, paths)])
    hops = np.concatenate([np.asarray(p, int) for p in paths])
    return Circuits.of(np.arange(len(src)), np.array(src), np.array(dst), port, wavelength, 1, (hops, offsets))


def test_numbers_of_oddl() -> None:
    """Table 2 and section 3.C: NICs of 100 Gb/s, 5 us to change a link, 96 wavelengths; one way round."""
    made = fabric("sip_ring")
    assert (made.num_nodes, made.num_wavelengths, made.ports_per_node) == (1024, 96, 1)
    assert (made.rate_bits_per_s, made.node_rate_bits_per_s, made.reconfiguration_s) == (100e9, 100e9, 5e-6)
    assert [(r.kind, r.count) for r in made.resources] == [("fibre", 1024), ("tx_port", 1024), ("rx_port", 1024)]
    assert fabric("sip_ring:directions=2").node_rate_bits_per_s == 200e9


@pytest.mark.parametrize("nodes", [1, 2, 3, 139, 65536])
def test_any_number_of_nodes(nodes: int) -> None:
    """A ring has any number of nodes, and the rate of a node is what was asked for."""
    for spec in ("sip_ring", "sip_ring:directions=2"):
        made = fabric_at_scale(spec, nodes, 12.8e12)
        assert made.num_nodes == nodes
        assert made.node_rate_bits_per_s == pytest.approx(12.8e12)


def test_arcs_that_do_not_meet_share_a_wavelength() -> None:
    """One behind the other on one fibre, over the place where the numbers wrap, and the other way on the other fibre."""
    assert refusals(ONE, light([4, 1], [1, 4], [[4, 5, 0], [1, 2, 3]])) == set()
    both = light([4, 1, 1, 4], [1, 4, 4, 1], [[4, 5, 0], [1, 2, 3], [6, 11, 10], [9, 8, 7]], port=[0, 0, 1, 1])
    assert refusals(TWO, both) == set()


def test_fibre_carries_a_wavelength_once() -> None:
    """Arcs that overlap in one segment clash on one wavelength and not on two."""
    src, dst, paths = [0, 1], [2, 3], [[0, 1], [1, 2]]
    assert refusals(ONE, light(src, dst, paths)) == {"wavelength_clash"}
    assert refusals(ONE, light(src, dst, paths, wavelength=[0, 1])) == set()


def test_a_nic_has_one_partner_at_a_time() -> None:
    """Two wavelengths of one sender, or towards one receiver, are refused; a fibre each way has its own NIC."""
    assert refusals(ONE, light([0, 0], [1, 2], [[0], [0, 1]], wavelength=[0, 1])) == {"transmitter_shared"}
    assert refusals(ONE, light([0, 1], [2, 2], [[0, 1], [1]], wavelength=[0, 1])) == {"receiver_shared"}
    assert refusals(TWO, light([0, 0], [1, 5], [[0], [11]], port=[0, 1])) == set()


def test_a_transmitter_lights_one_wavelength() -> None:
    """Two side by side would double its rate."""
    wide = Circuits.of([0], np.array([0]), np.array([1]), 0, 0, 2, np.array([[0]]))
    assert refusals(ONE, wide) == {"wavelength_unheard"}


@pytest.mark.parametrize(
    ("port", "path"),
    [
        pytest.param(0, [1, 2], id="cut before the receiver"),
        pytest.param(0, [2, 3], id="starts behind the sender"),
        pytest.param(0, [1, 3], id="jumps over a segment"),
        pytest.param(0, [], id="no segment"),
        pytest.param(0, [6, 11, 10], id="the fibre of the other way"),
        pytest.param(1, [1, 2, 3], id="the port of the other way"),
        pytest.param(0, [1, 2, 15], id="a segment that is not there"),
    ],
)
def test_broken_path_is_refused(port: int, path: list[int]) -> None:
    """Light goes from 1 to 4 along the fibre of its port, or not at all."""
    assert refusals(TWO, light([1], [4], [path], port)) == {"path_broken"}


def test_what_is_not_there_is_refused() -> None:
    """A second port on a one-way ring, a fifth wavelength of four."""
    assert refusals(ONE, light([1], [0], [[6]], port=1)) == {"port_unknown"}
    assert refusals(ONE, light([1], [2], [[1]], wavelength=4)) == {"wavelength_unknown"}


def test_what_circuits_occupy_and_set() -> None:
    """Segments, transmitter and receiver of the port; a laser at its wavelength, rings that pass and the one that drops."""
    for ways in (1, 2):
        made = fabric("sip_ring", nodes=6, wavelengths=4, directions=ways)
        assert [(r.kind, r.count, r.per_wavelength) for r in made.resources] == [
            ("fibre", 6 * ways, True), ("tx_port", 6 * ways, False), ("rx_port", 6 * ways, False),
        ]  # fmt: skip
        assert [(device.kind, device.count, device.setting_time_s) for device in made.devices] == [
            ("laser", 6 * ways, made.reconfiguration_s), ("ring", 24 * ways, made.reconfiguration_s),
        ]  # fmt: skip
        assert [(part.kind, part.count) for part in made.parts()] == [
            ("tunable_transceiver", 6 * ways),
            ("fibre", 6 * ways),
        ]
        assert made.parts()[0].rate_bits_per_s == made.rate_bits_per_s
        for (a, b), way in [(pair, way) for pair in PAIRS for way in range(ways)]:
            path = segments(a, b, way == 1)
            one = light([a], [b], [path], port=way, wavelength=2)
            fibre, tx, rx = (used.index.tolist() for used in made.usage(one))
            assert (fibre, tx, rx) == (path, [a * ways + way], [b * ways + way])
            laser, rings = made.settings(one)
            assert (laser.kind, laser.index.tolist(), laser.setting.tolist()) == ("laser", [a * ways + way], [2])
            assert rings.kind == "ring"
            assert rings.index.tolist() == [(node * ways + way) * 4 + 2 for node in nodes_reached(path)]
            assert rings.setting.tolist() == [int(node == b) for node in nodes_reached(path)]


def test_distances_lengths_and_names() -> None:
    """With one direction light goes all the way round; segments are as long both ways."""
    src, dst = np.array(PAIRS).T
    assert ONE.distance(src, dst).tolist() == [len(segments(a, b, False)) for a, b in PAIRS]
    assert TWO.distance(src, dst).tolist() == [
        min(len(segments(a, b, back)) for back in (False, True)) for a, b in PAIRS
    ]
    floor = replace(assumptions("common").floor, nodes_per_rack=4)
    lengths = floor.segments_m(6, np.arange(6), np.array([1, 2, 3, 4, 5, 0])).tolist()
    assert TWO.hop_passages(floor).fibre_m.tolist() == lengths * 2
    assert ONE.hop_passages(floor).fibre_m.tolist()[:6] == lengths
    assert TWO.passage(floor).receivers == 1
    fibre = TWO.resources[0]
    assert TWO.place_name(fibre, 5) == "fibre from node 5 to node 0 (clockwise)"
    assert TWO.place_name(fibre, 6) == "fibre from node 1 to node 0 (counter-clockwise)"


@pytest.mark.parametrize(("launch", "hops"), [(1.4, 0), (3.6, 1), (10.0, 4), (1.1, None)])
def test_limits_by_hand(launch: float, hops: int | None) -> None:
    """4 dB in the modulator and 2 dB an interface, down to -2.75 dBm; where no light arrives, a ring of one node."""
    for made, ways in ((ONE, 1), (TWO, 2)):
        values = optics(made.light_path.table, "typical", {"launch": launch, "sensitivity": -2.75})
        reached, largest = made.limits(values)
        assert (reached.name, reached.value) == ("reach_interfaces", hops)
        nodes = 1 + ways * (hops or 0)
        assert (largest.name, largest.value) == ("largest_ring_nodes", nodes)
        said = f"{hops if hops is not None else 'no'} interface{'s' * (hops != 1)}"
        assert reached.text == f"by power light passes {said}"
        assert largest.text.endswith(f"reaches every node: {nodes} node{'s' * (nodes != 1)}")
