"""TeraRack ring: the paper's numbers, shapes, and light that the hardware cannot make."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.fabrics.walks import refusals

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.terarack import ring_cuts
from opticcl.ir import Circuits
from opticcl.optics.decibels import ratio_of_db
from opticcl.optics.values import optics

RING = fabric("terarack", nodes=6, wavelengths=4, rings=2)


def light(
    src: list[int], dst: list[int], port: Any, paths: list[list[int]], wavelength: Any = 0, n: int = 1
) -> Circuits:
    """Circuits on the given segments."""
    offsets = np.cumsum([0, *map(len, paths)])
    hops = np.concatenate([np.asarray(p, int) for p in paths])
    return Circuits.of(np.arange(len(src)), np.array(src), np.array(dst), port, wavelength, n, (hops, offsets))


def test_numbers_of_the_paper() -> None:
    """Table 2 and section 3.2: 64 wavelengths of 40 Gb/s each way, 25 us, 497 fs; four interfaces with both rings."""
    made = fabric("terarack")
    assert (made.num_nodes, made.num_wavelengths, made.ports_per_node, made.lasers_per_port) == (1024, 64, 2, 64)
    assert (made.rate_bits_per_s, made.reconfiguration_s, made.latency_s) == (40e9, 25e-6, 497e-15)
    assert made.node_rate_bits_per_s == 5.12e12
    assert fabric("terarack:rings=2").ports_per_node == 4


def test_light_both_ways_is_accepted() -> None:
    """Two arcs each way between the same nodes, over the place where the numbers wrap, on one wavelength."""
    paths = [[4, 5, 0], [1, 2, 3], [6 + 0, 6 + 5, 6 + 4], [6 + 3, 6 + 2, 6 + 1]]
    assert refusals(RING, light([4, 1, 1, 4], [1, 4, 4, 1], [0, 0, 1, 1], paths)) == set()


@pytest.mark.parametrize(
    ("port", "path"),
    [
        pytest.param(0, [1, 2], id="cut before the receiver"),
        pytest.param(0, [2, 3], id="starts behind the sender"),
        pytest.param(0, [1, 3], id="jumps over a segment"),
        pytest.param(0, [1, 8, 3], id="bent onto the other fibre"),
        pytest.param(0, [1, 1, 3], id="a segment repeated for another"),
        pytest.param(0, [6 + 0, 6 + 5, 6 + 4], id="clockwise port, counter-clockwise fibre"),
        pytest.param(1, [1, 2, 3], id="counter-clockwise port, clockwise fibre"),
        pytest.param(0, [1, 2, 3, 4, 5, 0, 1, 2, 3], id="past the receiver and round again"),
        pytest.param(0, [], id="no segment"),
        pytest.param(0, [1, 2, 15], id="a segment that is not there"),
        pytest.param(0, [-5, 2, 3], id="a negative segment"),
    ],
)
def test_broken_path_is_refused(port: int, path: list[int]) -> None:
    """Light goes from 1 to 4 along the fibre of its port, or not at all."""
    assert refusals(RING, light([1], [4], port, [path])) == {"path_broken"}


def test_broken_path_among_good_ones_is_found() -> None:
    """The check of joints does not run over from one circuit into the next."""
    good = light([0, 2, 4], [2, 4, 0], 0, [[0, 1], [2, 3], [4, 5]])
    assert refusals(RING, good) == set()
    bad = light([0, 2, 4], [2, 4, 0], 0, [[0, 1], [2, 4], [4, 5]])
    assert [list(f.circuits) for f in RING.faults(bad)][-1] == [1]


def test_port_or_wavelength_that_is_not_there_is_refused() -> None:
    """Ports 0 to 3, wavelengths 0 to 3."""
    assert refusals(RING, light([1], [2], 4, [[1]])) == {"port_unknown"}
    assert refusals(RING, light([1], [2], 0, [[1]], wavelength=4)) == {"wavelength_unknown"}
    assert refusals(RING, light([1], [2], 0, [[1]], wavelength=3, n=2)) == {"wavelength_unknown"}


def test_fibre_carries_a_wavelength_once() -> None:
    """Arcs that overlap in one segment clash on one wavelength and not on two, nor on the other ring."""
    src, dst, paths = [0, 1], [2, 3], [[0, 1], [1, 2]]
    assert refusals(RING, light(src, dst, 0, paths)) == {"wavelength_clash"}
    assert refusals(RING, light(src, dst, 0, paths, wavelength=[0, 1])) == set()
    assert refusals(RING, light(src, dst, [0, 2], paths)) == set()
    assert refusals(RING, light(src, dst, 0, paths, wavelength=[0, 1], n=2)) == {"wavelength_clash"}


def test_doubled_circuit_is_refused() -> None:
    """The same light twice: fibre, modulator and photodiode are each there once."""
    doubled = light([1, 1], [3, 3], 0, [[1, 2], [1, 2]])
    assert refusals(RING, doubled) == {"wavelength_clash", "laser_shared", "photodiode_shared"}


@pytest.mark.parametrize("nodes", [1, 2, 3, 139, 65536])
def test_any_number_of_nodes(nodes: int) -> None:
    """A ring has any number of nodes, and the rate of a node is what was asked for."""
    made = fabric_at_scale("terarack", nodes, 12.8e12)
    assert made.num_nodes == nodes
    assert made.node_rate_bits_per_s == pytest.approx(12.8e12)


@pytest.mark.parametrize("nodes", [1, 2])
def test_smallest_rings(nodes: int) -> None:
    """On two nodes every segment joins the two; on one node it joins the node to itself."""
    made = fabric("terarack", nodes=nodes)
    last = nodes - 1
    assert refusals(made, light([0], [last], 0, [[0]])) == set()
    assert refusals(made, light([0], [last], 1, [[nodes + last]])) == set()
    assert refusals(made, light([0], [last], 0, [[nodes]])) == {"path_broken"}


@pytest.mark.parametrize(
    "text", ["nodes=0", "wavelengths=0", "rings=0", "wavelength_rate=0b/s", "reconfiguration=-1s", "oeo=-1s"]
)
def test_bad_shape_is_refused(text: str) -> None:
    """The message names the field."""
    with pytest.raises(FabricError, match=text.split("=")[0]):
        fabric(f"terarack:{text}")


def test_unknown_parameter_is_refused() -> None:
    """A group size is the algorithm's business."""
    with pytest.raises(ParameterError, match="group_size"):
        fabric("terarack:group_size=5")


# --- brute force on a ring of six nodes -----------------------------------------------------------------------------------


def segments(src: int, dst: int, back: bool) -> list[int]:
    """Of the ring of six: clockwise s joins s to s + 1, counter-clockwise 6 + s joins s + 1 to s."""
    found, at = [], src
    while at != dst or not found:
        found.append(6 + (at - 1) % 6 if back else at)
        at = (at - 1) % 6 if back else (at + 1) % 6
    return found


def nodes_reached(path: list[int]) -> list[int]:
    """At the end of each segment."""
    return [hop - 6 if hop >= 6 else (hop + 1) % 6 for hop in path]


PAIRS = [(a, b) for a in range(6) for b in range(6) if a != b]


def test_options_take_the_shorter_way_first() -> None:
    """Each ring and wavelength, then all of them the other way; halfway round clockwise is first."""
    src, dst = np.array(PAIRS).T
    found = RING.options(src, dst)
    due = []
    for pair, (a, b) in enumerate(PAIRS):
        longer = (b - a) % 6 > 3
        for back, ring, light in product((longer, not longer), range(2), range(4)):
            due.append((pair, a, b, 2 * ring + back, light, 1, segments(a, b, back)))
    lit = found.circuits
    paths = [path.tolist() for path in np.split(lit.hops, lit.hop_offsets[1:-1])]
    columns = (lit.transfer, lit.src, lit.dst, lit.port, lit.wavelength_lo, np.broadcast_to(lit.wavelength_n, len(lit)))
    assert list(zip(*(column.tolist() for column in columns), paths, strict=True)) == due
    assert found.choice.tolist() == list(range(len(due)))


def test_a_stuck_filter_ends_the_light_that_passes_it() -> None:
    """Of its node, port and wavelength, on the way to another node; every other circuit is as before."""
    node_port_light = [(2, 0, 1), (4, 3, 0), (0, 1, 3)]
    numbers = [(node * 4 + port) * 4 + colour for node, port, colour in node_port_light]
    failed = "+".join(f"filter:{number}:stuck=0" for number in numbers)
    where = fabric("terarack", nodes=6, wavelengths=4, rings=2, failed=f"{failed}+comb_laser:5")
    bands = [(0, 1, 1), (1, 1, 1), (0, 2, 1), (0, 2, 2), (1, 2, 2), (3, 1, 1), (2, 2, 1), (0, 4, 1)]
    rows = [(a, b, port, *band) for a, b in PAIRS for port in range(4) for band in bands]
    src, dst, port, lo, n, step = np.array(rows).T
    ways = [segments(a, b, p % 2 == 1) for a, b, p, *_ in rows]
    path = np.concatenate(ways), np.cumsum([0, *map(len, ways)])
    for each in (1, 2):  # circuits of a round have one distance between their wavelengths
        mine = np.flatnonzero(step == each)
        some = Circuits.of(np.arange(len(rows)), src, dst, port, lo, n, path, each).take(mine)
        lost, dead = [], []
        for row, at in enumerate(mine.tolist()):
            a, _, p, first, count, _ = rows[at]
            between = nodes_reached(ways[at])[:-1]
            colours = {first + each * k for k in range(count)}
            if any(node in between and p == own and colour in colours for node, own, colour in node_port_light):
                lost.append(row)
            if a * 4 + p == 5:
                dead.append(row)
        found: dict[str, list[int]] = {}
        for fault in where.part_faults(some):
            found.setdefault(fault.expected, []).extend(fault.circuits.tolist())
        assert found.pop("no light past a filter that is stuck") == lost
        assert sorted(row for others in found.values() for row in others) == dead
    assert not where.links_all
    assert RING.links_all


def test_parts_devices_and_settings_of_two_rings() -> None:
    """A comb a port, rings for each port and wavelength; rings between pass, that of the receiver drops."""
    ports = 6 * 4
    assert {kind.kind: (kind.count, kind.settings) for kind in RING.inventory()} == {
        "node": (6, 0), "comb_laser": (ports, 0), "modulator": (ports * 4, 0), "filter": (ports * 4, 1), "fibre": (ports, 0),
    }  # fmt: skip
    assert RING.netlist().count("transmitter") == ports
    for a, b in PAIRS:
        for port in range(4):
            path = segments(a, b, port % 2 == 1)
            one = light([a], [b], port, [path], wavelength=1, n=2)
            modulators, rings = RING.settings(one)
            assert modulators.index.tolist() == [(a * 4 + port) * 4 + colour for colour in (1, 2)]
            due = [(node, colour, int(node == b)) for node in nodes_reached(path) for colour in (1, 2)]
            assert rings.index.tolist() == [(node * 4 + port) * 4 + colour for node, colour, _ in due]
            assert rings.setting.tolist() == [drops for *_, drops in due]
            adds, drops = RING.states(one)
            assert (adds.kind, drops.kind) == ("add", "drop")
            assert adds.index.tolist() == [a * 4 + port] * 2
            assert drops.index.tolist() == [node * 4 + port for node, *_ in due]
            assert drops.within.tolist() == [colour for _, colour, _ in due]


def test_names_of_fibres() -> None:
    """By both ends, ring and direction, in the order of the resource."""
    fibre = RING.resources[0]
    for ring, back, near in product(range(2), (False, True), range(6)):
        ends = ((near + 1) % 6, near) if back else (near, (near + 1) % 6)
        due = f"fibre from node {ends[0]} to node {ends[1]} (ring {ring}, {'counter-' * back}clockwise)"
        assert RING.place_name(fibre, ring * 12 + 6 * back + near) == due
    one = fabric("terarack", nodes=3)
    assert one.place_name(one.resources[0], 5) == "fibre from node 0 to node 2 (counter-clockwise)"


@pytest.mark.parametrize("per_rack", [2, 4, 100])
def test_lengths_and_distances_on_the_ring(per_rack: int) -> None:
    """Segments are as long whichever way light runs; a distance is the shorter way round."""
    floor = replace(assumptions("common").floor, nodes_per_rack=per_rack)
    node = np.arange(6)
    one_way = floor.segments_m(6, node, np.array([1, 2, 3, 4, 5, 0])).tolist()
    assert RING.hop_passages(floor).fibre_m.tolist() == one_way * 2
    assert RING.passage(floor).receivers == 1
    src, dst = np.array(PAIRS).T
    assert RING.distance(src, dst).tolist() == [
        min(len(segments(a, b, back)) for back in (False, True)) for a, b in PAIRS
    ]


@pytest.mark.parametrize("nodes", [range(6), [0, 1, 4, 5], [2, 3, 5], [4, 1], [3]])
def test_bisections_of_the_ring_are_arcs_with_half_of_the_nodes(nodes: Any) -> None:
    """Each arc has two ends: light leaves it there clockwise and counter-clockwise."""
    members = np.array(list(nodes))
    order = sorted(members.tolist())
    half = len(order) // 2
    found = list(ring_cuts(members, out=3.0, back=5.0, where="a row"))
    begins = sorted({half * part // 4 for part in range(4)}) if half else []
    assert [cut.inside.tolist() for cut in found] == [
        [node in order[first : first + half] for node in members.tolist()] for first in begins
    ]
    assert {(cut.where, cut.out_bits_per_s, cut.in_bits_per_s) for cut in found} <= {("bisection of a row", 8.0, 8.0)}
    rate = 2 * 4 * RING.rate_bits_per_s
    assert RING.double_ring_bits_per_s == rate
    assert {cut.out_bits_per_s for cut in RING.cuts(members)} == ({2 * rate} if half else set())
    assert {cut.in_bits_per_s for cut in RING.cuts(members)} == ({2 * rate} if half else set())
    assert len(list(RING.cuts(members))) == len(found)


def test_the_example_and_the_least_values() -> None:
    """Fifteen nodes with two wavelengths; times of zero and a rate of 1 bit/s are accepted."""
    assert type(RING).example() == (fabric("terarack:nodes=15,wavelengths=2"), "wrht")
    made = fabric("terarack", nodes=2, wavelength_rate=1.0, reconfiguration=0.0, oeo=0.0)
    assert (made.rate_bits_per_s, made.latency_s) == (1.0, 0.0)


# --- limits ------------------------------------------------------------------------------------------------------------

POWER = {"launch": 10, "modulator.loss": 4, "interface.loss": 2, "penalty": 0, "sensitivity": -3}


def limits_of(**leaks: float) -> dict[str, float | None]:
    """With 9 dB for interfaces of 2 dB. Args: leaks: `receiver` and `transmitter` [dB below the signal], if known."""
    given = POWER | {f"crosstalk.{name}": decibels for name, decibels in leaks.items()}
    return {limit.name: limit.value for limit in RING.limits(optics(RING.light_path.table, "literal", given))}


def test_crosstalk_needs_both_of_its_values() -> None:
    """Where one is not known there is no limit by crosstalk; that by power remains."""
    for known in ({}, {"receiver": 30.0}, {"transmitter": 30.0}):
        assert limits_of(**known) == {"reach_interfaces": 4}
    assert limits_of(receiver=30.0, transmitter=30.0) == {"reach_interfaces": 4, "crosstalk_interfaces": 11}


def test_crosstalk_of_a_sender_alone() -> None:
    """An error rate of 1e-9 allows 1 / (4 ln 5e8) of the signal: a sender that leaks as much leaves no interface."""
    allowed = 1 / (4 * math.log(0.5 / 1e-9))
    most = -10 * math.log10(allowed)
    near = [most, *(np.nextafter(most, way) for way in (0, np.inf))]
    exact = next(float(decibels) for decibels in near if float(ratio_of_db(-decibels)) == allowed)
    assert limits_of(receiver=30.0, transmitter=exact)["crosstalk_interfaces"] == 0
    assert limits_of(receiver=30.0, transmitter=exact - 0.01)["crosstalk_interfaces"] is None
    leak = 10**-2.5
    assert limits_of(receiver=25.0, transmitter=100.0)["crosstalk_interfaces"] == math.floor((allowed - 1e-10) / leak)
