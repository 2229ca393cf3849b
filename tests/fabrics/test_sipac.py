"""SiPAC's ports and light: the paper's numbers, which shapes exist, what a circuit may be."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.sipac import crossings, num_groups
from opticcl.ir import Circuits, Fabric
from opticcl.optics.values import chain_of, optics

SHAPES = [(1, 1), (2, 1), (2, 4), (3, 2), (3, 3), (5, 2), (7, 1), (8, 2)]
MIXED = [(1,), (7,), (2, 3), (3, 2), (4, 8, 2), (5, 3, 2), (2, 2, 7)]


def _faults(where: Fabric, circuits: Circuits) -> set[str]:
    """Rules that the circuits break."""
    return {fault.rule for fault in where.faults(circuits) if len(fault.circuits)}


def _digits(node: int, radix: int, levels: int) -> list[int]:
    return [node // radix**level % radix for level in range(levels)]


@pytest.mark.parametrize(("levels", "nodes"), [(2, 256), (3, 4096)])
def test_nodes_of_the_paper(levels: int, nodes: int) -> None:
    """Section III-A: switches of 16 ports make 256 nodes in two levels, 4096 in three."""
    assert fabric("sipac", radix=16, levels=levels).num_nodes == nodes


@pytest.mark.parametrize(("channels", "pair"), [("published", 85.333e9), ("retuned", 97.524e9)])
def test_bandwidth_of_a_pair(channels: str, pair: float) -> None:
    """2048 Gb/s over three links of eight ports: B/8 (section III-B), or B/7 where no group leads back."""
    where = fabric("sipac", channels=channels)
    groups = {"published": 8, "retuned": 7}[channels]
    assert where.num_wavelengths % groups == 0
    assert where.num_wavelengths // groups * where.rate_bits_per_s == pytest.approx(pair, rel=1e-4)
    assert where.node_rate_bits_per_s == pytest.approx(2048e9)


@pytest.mark.parametrize(
    ("radix", "channels", "wavelengths"),
    [
        (8, "published", 160),
        (8, "retuned", 154),
        (3, "published", 159),
        (2, "retuned", 160),
        (1, "retuned", 160),
        (200, "published", 200),
        (200, "retuned", 199),
    ],
)
def test_default_wavelengths_fill_the_groups(radix: int, channels: str, wavelengths: int) -> None:
    """As many of the comb's 160 lines as fill all groups alike; one a group where there are more groups than lines."""
    assert fabric("sipac", radix=radix, levels=1, channels=channels).num_wavelengths == wavelengths


@pytest.mark.parametrize(("radix", "levels"), SHAPES)
def test_linked_means_one_digit(radix: int, levels: int) -> None:
    """Two nodes share a switch where they differ in exactly one digit: L (r - 1) neighbours each."""
    where = fabric("sipac", radix=radix, levels=levels)
    node = np.arange(where.num_nodes)
    linked = where.linked(node[:, None], node)
    digits = np.array([_digits(n, radix, levels) for n in range(where.num_nodes)])
    assert (linked == ((digits[:, None] != digits[None]).sum(axis=2) == 1)).all()
    assert (linked.sum(axis=1) == levels * (radix - 1)).all()


@pytest.mark.parametrize(("radix", "levels"), SHAPES)
def test_ring_order_links_neighbours(radix: int, levels: int) -> None:
    """The ring visits every node once, and each is linked with the next, the last with the first."""
    where = fabric("sipac", radix=radix, levels=levels)
    order = where.ring_order()
    assert sorted(order.tolist()) == list(range(where.num_nodes))
    assert where.num_nodes == 1 or where.linked(order, np.roll(order, -1)).all()


@pytest.mark.parametrize("radices", MIXED)
def test_irregular_sipacs(radices: tuple[int, ...]) -> None:
    """Section III-A: with a radix of its own at each level, two nodes are linked where one digit differs."""
    where = fabric("sipac", radices=radices)
    digits = np.stack(
        np.unravel_index(np.arange(where.num_nodes), radices, order="F"), axis=1
    )  # level 0 is the fastest
    assert (where.num_nodes, where.ports_per_node) == (math.prod(radices), len(radices))
    node = np.arange(where.num_nodes)
    linked = where.linked(node[:, None], node)
    assert (linked == ((digits[:, None] != digits[None]).sum(axis=2) == 1)).all()
    order = where.ring_order()
    assert sorted(order.tolist()) == node.tolist()
    assert where.num_nodes == 1 or where.linked(order, np.roll(order, -1)).all()


def test_equal_radices_are_the_regular_sipac() -> None:
    """8x8x8 is r = 8, L = 3; radix and levels do not count beside radices."""
    one, other = fabric("sipac:radices=8x8x8,radix=5,levels=1"), fabric("sipac")
    for field in ("num_nodes", "num_wavelengths", "ports_per_node", "rate_bits_per_s"):
        assert getattr(one, field) == getattr(other, field)
    assert one.sides == other.sides == (8, 8, 8)


@pytest.mark.parametrize(
    ("radices", "channels", "wavelengths"),
    [
        ((4, 8, 2), "published", 160),  # multiples of 8
        ((4, 8, 2), "retuned", 147),  # of 3 x 7
        ((3, 5, 7), "published", 105),
        ((7, 9, 11), "published", 160),  # 693 lines would fill all groups alike
        ((200, 3), "published", 200),
    ],
)
def test_default_wavelengths_of_mixed_radices(radices: tuple[int, ...], channels: str, wavelengths: int) -> None:
    """The groups of every level alike if 160 lines can do that."""
    assert fabric("sipac", radices=radices, channels=channels).num_wavelengths == wavelengths


def test_wavelengths_heard_depend_on_the_level() -> None:
    """2 x 3 CUs: line 3 leads to the other CU at level 0 and back to the sender at level 1, where line 4 leads on."""
    where = fabric("sipac", radices=(2, 3), wavelengths=6)

    def heard(dst: int, level: int) -> list[int]:
        circuits = [Circuits.of([0], [0], [dst], level, lo, path=[[level]]) for lo in range(6)]
        return [lo for lo in range(6) if not _faults(where, circuits[lo])]

    assert heard(1, 0) == [1, 3, 5]
    assert heard(2, 1) == [1, 4]
    assert heard(4, 1) == [2, 5]
    both = Circuits.of([0, 1], [0, 0], [1, 2], [0, 1], 1, 2, [[0], [1]], wavelength_step=3)  # 1 and 4: wrong at level 0
    assert [(f.rule, f.circuits.tolist()) for f in where.faults(both) if len(f.circuits)] == [
        ("wavelength_unheard", [0])
    ]


def test_switch_of_figure_4() -> None:
    """3 x 3, nine wavelengths: line k of input i drops at output (k + i) mod 3 alone; every third comes back."""
    where = fabric("sipac", radix=3, levels=1, wavelengths=9)
    heard = {
        (i, j, k)
        for i, j, k in itertools.product(range(3), range(3), range(9))
        if not _faults(where, Circuits.of([0], [i], [j], wavelength_lo=k, path=[[0]]))
    }
    assert heard == {(i, (k + i) % 3, k) for i in range(3) for k in range(9) if k % 3}


def test_retuned_switch_loses_nothing() -> None:
    """3 x 3 retuned: every line of every input reaches another node, and an output hears each line once."""
    where = fabric("sipac", radix=3, levels=1, wavelengths=8, channels="retuned")
    heard = [
        (i, j, k)
        for i, j, k in itertools.product(range(3), range(3), range(8))
        if not _faults(where, Circuits.of([0], [i], [j], wavelength_lo=k, path=[[0]]))
    ]
    assert sorted((i, k) for i, _, k in heard) == sorted((j, k) for _, j, k in heard)
    assert sorted((i, k) for i, _, k in heard) == list(itertools.product(range(3), range(8)))


@pytest.mark.parametrize(
    ("src", "dst", "port", "path"),
    [
        (0, 1, 1, [[1]]),  # they differ in digit 0
        (0, 3, 0, [[0]]),  # in digit 1
        (0, 4, 0, [[0]]),  # in both
        (2, 3, 0, [[0]]),  # in both, though their numbers are neighbours
        (0, 0, 0, [[0]]),  # in none
        (0, 1, 0, [[1]]),  # the port leads elsewhere
        (0, 1, 0, [[-1]]),
        (0, 3, -1, [[-1]]),
        (0, 1, 0, [[2]]),
        (0, 1, 2, [[2]]),
        (0, 1, 0, [[0, 0]]),
        (0, 1, 0, None),
    ],
)
def test_impossible_paths(src: int, dst: int, port: int, path: list[list[int]] | None) -> None:
    """A circuit passes one switch, at the level where its ends differ and nowhere else."""
    where = fabric("sipac", radix=3, levels=2)
    circuits = Circuits.of([0], [src], [dst], port, wavelength_lo=1, path=path)
    assert _faults(where, circuits) == {"path_broken"}


def test_impossible_ports_of_a_single_switch() -> None:
    """There is one level."""
    circuits = Circuits.of([0, 1], [0, 0], [1, 1], [1, 0], wavelength_lo=1, path=[[1], [0]])
    found = [(fault.rule, fault.circuits.tolist()) for fault in fabric("sipac", radix=3, levels=1).faults(circuits)]
    assert [one for one in found if one[1]] == [("path_broken", [0])]


def test_one_of_two_paths_cut() -> None:
    """Only the circuit without its hop is at fault."""
    where = fabric("sipac", radix=3, levels=2)
    circuits = Circuits.of([0, 1], [0, 1], [1, 2], 0, 1, path=([0], [0, 1, 1]))
    assert [(f.rule, f.circuits.tolist()) for f in where.faults(circuits)] == [("path_broken", [1])]


def test_what_circuits_occupy() -> None:
    """Node 4 sends through both its ports and hears through both: one resource a node, port and direction."""
    where = fabric("sipac", radix=3, levels=2)
    circuits = Circuits.of([0, 1, 2, 3], [4, 4, 3, 1], [5, 7, 4, 4], [0, 1, 0, 1], 1, path=[[0], [1], [0], [1]])
    used = {usage.resource.kind: usage.index.tolist() for usage in where.usage(circuits)}
    assert used == {"laser": [8, 9, 6, 3], "photodiode": [10, 15, 8, 9]}


@pytest.mark.parametrize(("lo", "n", "step"), [(0, 1, 3), (2, 1, 3), (1, 2, 1), (1, 2, 2), (1, 2, 0), (4, 2, -3)])
def test_unheard_wavelengths(lo: int, n: int, step: int) -> None:
    """All wavelengths of a circuit belong to the group of its ring, and none is named twice."""
    where = fabric("sipac", radix=3, levels=2)
    circuits = Circuits.of([0], [0], [1], 0, lo, n, [[0]], wavelength_step=step)
    assert _faults(where, circuits) == {"wavelength_unheard"}


@pytest.mark.parametrize("step", [3, 6])
def test_heard_wavelengths(step: int) -> None:
    """Some lines of the group will do as well as all."""
    where = fabric("sipac", radix=3, levels=2)
    assert not _faults(where, Circuits.of([0], [0], [1], 0, 1, 2, [[0]], wavelength_step=step))


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (1, (1, 1)),
        (2, (2, 1)),
        (7, (7, 1)),
        (32, (32, 1)),
        (36, (6, 2)),
        (37, (37, 1)),
        (64, (8, 2)),
        (512, (8, 3)),
        (1024, (32, 2)),
        (1369, (37, 2)),
        (4096, (16, 3)),
        (65536, (16, 4)),
    ],
)
def test_shape_at_scale(nodes: int, shape: tuple[int, int]) -> None:
    """The fewest levels with a radix of at most 32; else the smallest radix; a prime is a single switch."""
    where = fabric_at_scale("sipac", nodes, 1e12)
    assert (where.parameters["radix"], where.parameters["levels"]) == shape
    assert where.node_rate_bits_per_s == pytest.approx(1e12)


@pytest.mark.parametrize("system", ["sipac", "bcube"])
@pytest.mark.parametrize(
    ("nodes", "radices"),
    [
        (48, (6, 8)),
        (128, (8, 16)),
        (2048, (8, 16, 16)),
        (8192, (16, 16, 32)),
        (16384, (16, 32, 32)),
        (32768, None),  # 32x32x32
        (74, None),  # a prime factor above 32: a single switch
    ],
)
def test_radices_differ_where_that_saves_two_levels(system: str, nodes: int, radices: tuple[int, ...] | None) -> None:
    """The fewest levels of radices up to 32, as equal as possible; a number with a prime factor above 32 stays."""
    made = fabric_at_scale(system, nodes)
    assert (made.num_nodes, made.parameters["radices"]) == (nodes, radices)


def test_every_number_of_nodes_exists() -> None:
    """at_scale declines nothing."""
    assert all(fabric_at_scale("sipac", n).num_nodes == n for n in range(1, 300))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"radix": 0}, "radix=0.* 1 or more"),
        ({"levels": 0}, "levels=0.* 1 or more"),
        ({"radix": 1, "levels": 2}, "single node; try levels=1"),
        ({"radix": 2, "levels": 31}, "2\\*\\*31 nodes or more; try levels=30"),
        ({"radix": 2**31, "levels": 1}, "try radix=32"),
        ({"radix": 8, "wavelengths": 7}, "wavelengths=7 .* 8 groups .*try wavelengths=8"),
        ({"radix": 8, "wavelengths": 6, "channels": "retuned"}, "try wavelengths=7"),
        ({"radices": (4, 1, 2)}, "radices=4x1x2 has switches of one port; try radices=4x2"),
        ({"radices": (1, 1)}, "try radices=1$"),
        ({"radices": (2**20, 2**10, 8)}, "2\\*\\*31 nodes or more; try radices=1048576x1024$"),
        ({"radices": (2**31,)}, "2\\*\\*31 nodes or more; try radices=32$"),
        ({"radices": (4, 8), "wavelengths": 7}, "wavelengths=7 .* 8 groups of radix=8, .*try wavelengths=8"),
        ({"node_rate": 0}, "node_rate=0"),
        ({"latency": "-1us"}, "latency=-1e-06"),
    ],
)
def test_bad_shapes_are_refused(parameters: dict[str, object], text: str) -> None:
    """One clear line names the field and what to try."""
    with pytest.raises(FabricError, match=text) as caught:
        fabric("sipac", **parameters)
    assert "\n" not in str(caught.value)


def test_coordinates() -> None:
    """A node is named by its digits, level 0 first."""
    assert fabric("sipac").coordinates(3 + 7 * 64) == "(x0=3, x1=0, x2=7)"
    assert fabric("sipac:radices=4x8x2").coordinates(3 + 5 * 4 + 32) == "(x0=3, x1=5, x2=1)"


# --- brute force: where each line of each node leads, by the table of the three kinds of channels ------------------------

CHANNELS = ("published", "retuned", "ring")
SIDES = [(3,), (2, 3), (4, 2), (1,), (2, 2, 3), (3, 3)]


def machine(sides: tuple[int, ...], channels: str, **further: object) -> Fabric:
    """Of seven lines a link: groups of different sizes."""
    return fabric("sipac", radices=sides, channels=channels, wavelengths=7, **further)


def digits_of(node: int, sides: tuple[int, ...]) -> list[int]:
    """Level 0 first."""
    found = []
    for side in sides:
        node, digit = divmod(node, side)
        found.append(digit)
    return found


def output_of(i: int, line: int, side: int, channels: str) -> int:
    """Output of a switch at which a line of input i arrives."""
    if channels == "retuned":
        return (i + 1 + line % max(1, side - 1)) % side
    group = line % side
    return (i + 1) % side if channels == "ring" and not group else (i + group) % side


def joined_by(src: int, dst: int, line: int, level: int, sides: tuple[int, ...], channels: str) -> bool:
    """Whether that line of that port of src reaches dst, another node."""
    one, other = digits_of(src, sides), digits_of(dst, sides)
    one[level] = output_of(one[level], line, sides[level], channels)
    return one == other and src != dst


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_options_are_the_lines_that_reach_the_receiver(sides: tuple[int, ...], channels: str) -> None:
    """Of every pair all of them and no others, pair by pair, each by itself."""
    where = machine(sides, channels)
    src, dst = (axis.ravel() for axis in np.indices((where.num_nodes,) * 2))
    found = where.options(src, dst)
    lit = found.circuits
    due = [
        (pair, int(a), int(b), level, line)
        for pair, (a, b) in enumerate(zip(src, dst, strict=True))
        for level in range(len(sides))
        for line in range(7)
        if joined_by(int(a), int(b), line, level, sides, channels)
    ]
    columns = (lit.transfer, lit.src, lit.dst, lit.port, lit.wavelength_lo)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert sorted(rows) == due
    assert lit.transfer.tolist() == sorted(lit.transfer.tolist())
    assert lit.hops.tolist() == lit.port.tolist()
    assert (lit.num_hops() == 1).all()
    assert np.all(lit.wavelength_n == 1)
    assert found.choice.tolist() == list(range(len(rows)))
    groups = [num_groups(side, channels) for side in sides]
    assert where.lines_apart == min(math.lcm(*groups), 7)
    assert np.all(lit.wavelength_step == where.lines_apart)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_faults_are_the_circuits_whose_light_goes_elsewhere(sides: tuple[int, ...], channels: str) -> None:
    """Every pair, port and line; several lines belong to one group, each named once."""
    where = machine(sides, channels)
    rows = [
        (src, dst, level, lo, n, step)
        for src, dst in itertools.product(range(where.num_nodes), repeat=2)
        for level in range(len(sides))
        for lo, n, step in (
            (0, 1, 1),
            (1, 1, -2),
            (2, 1, 0),
            (3, 1, 1),
            (0, 2, 2),
            (1, 2, 3),
            (1, 2, 1),
            (1, 2, 6),
            (2, 2, 0),
        )
    ]
    src, dst, level, lo, n, step = np.array(rows).T
    circuits = Circuits.of(np.arange(len(rows)), src, dst, level, lo, n, level[:, None], step)
    found: dict[str, set[int]] = {}
    for fault in where.faults(circuits):
        found.setdefault(fault.rule, set()).update(fault.circuits.tolist())
    broken, unheard = set(), set()
    for row, (a, b, at, first, count, apart) in enumerate(rows):
        one, other = digits_of(a, sides), digits_of(b, sides)
        if [k for k in range(len(sides)) if one[k] != other[k]] != [at]:
            broken.add(row)
            continue
        group = num_groups(sides[at], channels)
        of_one_group = count == 1 or (apart >= 1 and apart % group == 0)
        if not of_one_group or not joined_by(a, b, first, at, sides, channels):
            unheard.add(row)
    assert found == {"path_broken": broken, "wavelength_unheard": unheard}


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_parts_of_every_option_by_brute_force(sides: tuple[int, ...], channels: str) -> None:
    """Rings node by node, in the places of their outputs; switches by the digits that their nodes share."""
    where = machine(sides, channels)
    nodes, levels = where.num_nodes, len(sides)
    rings = [side - (channels == "retuned") for side in sides]
    counts = {
        "node": nodes, "comb_laser": nodes * levels, "modulator": nodes * levels * 7, "photodiode": nodes * levels * 7,
        "micro_ring": nodes * sum(rings), "switch": sum(nodes // side for side in sides), "input_fibre": nodes * levels,
        "output_fibre": nodes * levels,
    }  # fmt: skip
    assert {kind.kind: kind.count for kind in where.inventory()} == {
        kind: count for kind, count in counts.items() if count
    }
    assert [(r.kind, r.count) for r in where.resources] == [("laser", nodes * levels), ("photodiode", nodes * levels)]
    src, dst = (axis.ravel() for axis in np.indices((nodes, nodes)))
    lit = where.options(src, dst).circuits
    used: dict[str, list[tuple[int, int]]] = {}
    for use in where.parts_used(lit):
        used.setdefault(use.kind, []).extend(zip(use.owners().tolist(), use.part.tolist(), strict=True))
    due: dict[str, list[tuple[int, int]]] = {kind: [] for kind in used}
    for row in range(len(lit)):
        a, b, level, line = (int(column[row]) for column in (lit.src, lit.dst, lit.port, lit.wavelength_lo))
        i, j, side = digits_of(a, sides)[level], digits_of(b, sides)[level], sides[level]
        place = (j - i - 1) % side if channels == "retuned" else i if channels == "ring" and line % side == 0 else j
        others = [digits_of(node, sides)[:level] + digits_of(node, sides)[level + 1 :] for node in range(nodes)]
        switches = sorted({tuple(reversed(digits)) for digits in others})
        parts = {
            "comb_laser": a * levels + level, "modulator": (a * levels + level) * 7 + line,
            "photodiode": (b * levels + level) * 7 + line,
            "input_fibre": a * levels + level, "output_fibre": b * levels + level,
            "micro_ring": nodes * sum(rings[:level]) + a * rings[level] + place,
            "switch": sum(nodes // each for each in sides[:level]) + switches.index(tuple(reversed(others[a]))),
        }  # fmt: skip
        for kind, part in parts.items():
            due[kind].append((row, part))
        due["node"] += [(row, a), (row, b)]
    assert {kind: sorted(rows) for kind, rows in due.items()} == {kind: sorted(rows) for kind, rows in used.items()}


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_axes_have_the_lines_that_lead_to_others(sides: tuple[int, ...], channels: str) -> None:
    """Each level is one; its rate is that of the lines that do not come back."""
    where = machine(sides, channels)
    nodes = np.arange(where.num_nodes)[::-1]
    found = list(where.axes(nodes))
    for level, (axis, side) in enumerate(zip(found, sides, strict=True)):
        lines = [line for line in range(7) if output_of(0, line, side, channels) != 0]
        assert (axis.name, axis.partners) == (f"level {level}", side - 1)
        assert axis.coordinate.tolist() == [digits_of(node, sides)[level] for node in nodes.tolist()]
        assert axis.rate_bits_per_s == pytest.approx(len(lines) * where.rate_bits_per_s)


@pytest.mark.parametrize("per_rack", [2, 4, 5, 100])
def test_levels_within_racks_are_short(per_rack: int) -> None:
    """Twice within the rack where all nodes of each switch share one, else through the centre."""
    sides = (2, 2, 3)
    where, floor = machine(sides, "ring"), replace(assumptions("common").floor, nodes_per_rack=per_rack)
    lengths = where.hop_passages(floor).fibre_m
    assert len(lengths) == 3
    for level, length in enumerate(lengths):
        pairs = itertools.product(range(12), repeat=2)
        near = all(
            one // per_rack == other // per_rack
            for one, other in pairs
            if sum(a != b for a, b in zip(digits_of(one, sides), digits_of(other, sides), strict=True)) == 1
            and digits_of(one, sides)[level] != digits_of(other, sides)[level]
        )
        assert length == (2 * floor.in_rack_m if near else floor.through_centre_m(12))
    assert where.passage(floor).receivers == 1


def test_links_of_failed_sipacs_join_no_node_with_itself() -> None:
    """Of the pairs that one digit divides, those that a line which works joins."""
    where = machine((2, 3), "ring", failed="switch:0+micro_ring:14")
    node = np.arange(6)
    linked = where.linked(node[:, None], node)
    digits = np.array([digits_of(n, (2, 3)) for n in range(6)])
    apart = (digits[:, None] != digits[None]).sum(axis=2) == 1
    apart[0, 1] = apart[1, 0] = False  # switch 0 of level 0
    apart[0, 4] = False  # ring 12 + 2: from node 0 to the third output of its switch of level 1
    assert (linked == apart).all()
    assert not where.links_all


# --- light through a switch, ring by ring --------------------------------------------------------------------------------


def passed_by_hand(r: int, channels: str) -> dict[tuple[int, int, bool], int]:
    """Rings off resonance from input i to output j, by the loop-back group or not: the rings of both buses are listed."""
    outputs = {}  # of the rings of each input, in the order of the bus
    for i in range(r):
        if channels == "ring":
            outputs[i] = [((i + 1) % r, True) if place == i else (place, False) for place in range(r)]
        else:
            outputs[i] = [(j, False) for j in range(r) if channels == "published" or j != i]
    buses: dict[int, list[tuple[int, bool]]] = {j: [] for j in range(r)}  # rings that join each output: (input, loop)
    for i in range(r):
        for j, loop in sorted(outputs[i], key=lambda ring: not ring[1]):  # the loop joins first
            buses[j].append((i, loop))
    return {
        (i, j, loop): before + len(buses[j]) - 1 - buses[j].index((i, loop))
        for i in range(r)
        for before, (j, loop) in enumerate(outputs[i])
        if i != j
    }


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("r", [2, 3, 4, 7])
def test_rings_passed_are_counted_on_both_buses(r: int, channels: str) -> None:
    """By every option of a switch; the longest path is that of `crossings` where no group leads back."""
    if channels != "ring":
        assert crossings(r, num_groups(r, channels)) == max(passed_by_hand(r, channels).values())
    where = machine((r,), channels)
    lit = where.options(*(axis.ravel() for axis in np.indices((r, r)))).circuits
    counts = where.light_path(lit)[:, [element.kind for element in where.light_path.elements].index("ring_pass")]
    keys = zip(lit.src.tolist(), lit.dst.tolist(), (lit.wavelength_lo % r == 0).tolist(), strict=True)
    assert counts.tolist() == [passed_by_hand(r, channels)[i, j, loop and channels == "ring"] for i, j, loop in keys]


def test_pieces_of_a_path_and_the_rate_of_a_port() -> None:
    """Five lines: past four modulators, through two fibres with a coupler at each end, and past other lines' filters."""
    where = fabric("sipac", radices=(2, 5), wavelengths=5, node_rate=1e12)
    path = where.light_path
    bus = ["modulator", "bus_ring", "coupler", "fibre", "coupler"]
    drop = ["coupler", "bus_ring", "ring_drop"]
    assert [element.kind for element in path.elements] == [*bus, "ring_pass", "ring_drop", "coupler", "fibre", *drop]
    assert path.extremes.tolist() == [  # with 3 lines of the other input, and with 1 line of each of 4 others
        [1, 4, 1, 1, 1, 2 * (2 - 1), 1, 1, 1, 1, 3 - 1, 1],
        [1, 4, 1, 1, 1, 2 * (5 - 1), 1, 1, 1, 1, 4 - 1, 1],
    ]
    assert [part.rate_bits_per_s for part in where.parts() if part.kind == "comb_transceiver"] == [1e12 / 2]


@pytest.mark.parametrize("channels", CHANNELS)
def test_the_largest_switch_closes_and_the_next_does_not(channels: str) -> None:
    """With the same lines; the most rings that a circuit passes are those of the largest level."""
    where = fabric("sipac", radices=(3, 8, 2), channels=channels)
    values = optics(where.light_path.table, "typical")
    largest, passed = where.limits(values)

    def closes(radix: int) -> bool:
        made = fabric("sipac", radices=(radix,), channels=channels, wavelengths=max(where.num_wavelengths, radix))
        return bool(chain_of(made.light_path, values).closes(made.light_path.extremes).all())

    radix = largest.value
    assert radix is not None
    assert largest.name == "largest_radix"
    if radix < where.num_wavelengths:
        assert closes(int(radix))
        assert not closes(int(radix) + 1)
    most = crossings(8, num_groups(8, channels))
    assert (passed.name, passed.value) == ("crossings", most)
    assert passed.text.startswith(
        f"a circuit passes up to {most} rings off resonance, {most * values.loss_db('ring_pass'):.2f} dB"
    )
    rings = crossings(int(radix), num_groups(int(radix), channels))
    assert f"largest switch for {where.num_wavelengths} lines" in largest.text
    assert f"{rings:,} rings passed" in largest.text


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("lines", [1, 2, 6])
def test_the_largest_switch_has_a_line_for_each_group(lines: int, channels: str) -> None:
    """Of the machines that are not refused, the largest that closes; with less light smaller ones, in the end none."""
    lowest = 2 if channels == "retuned" or lines > 1 else 1
    where = fabric("sipac", radix=lowest, levels=1, channels=channels, wavelengths=lines)
    made = []
    for radix in range(2, 12):
        try:
            made.append(fabric("sipac", radix=radix, levels=1, channels=channels, wavelengths=lines))
        except FabricError:
            break
    for launch in np.arange(-2.02, -1.2, 0.1):
        values = optics(where.light_path.table, "typical", {"launch": f"{launch:.2f}", "ring_pass.loss": 0.05})
        closing = [
            one.num_nodes for one in made if chain_of(one.light_path, values).closes(one.light_path.extremes).all()
        ]
        largest = where.limits(values)[0]
        assert largest.value == max(closing, default=None)
        assert largest.text.endswith("none closes") == (not closing)


def test_switches_are_counted_up_to_a_limit() -> None:
    """Without losses of the rings any switch closes."""
    free = {"ring_pass.loss": 0, "bus_ring.loss": 0}
    for lines, due in ((65_535, 65_535), (65_536, 65_536), (100_000, 65_536)):
        where = fabric("sipac", radix=2, levels=1, wavelengths=lines)
        largest = where.limits(optics(where.light_path.table, "typical", free))[0]
        assert largest.value == due
        assert ("or more ports" in largest.text) == (lines > 65_535)


# --- shapes --------------------------------------------------------------------------------------------------------------


def test_shapes_at_the_limits() -> None:
    """Thirty levels of two are the most; one bit a second and no latency are a machine; sixteen to the power eight is none."""
    large = fabric("sipac", radix=2, levels=30, node_rate=1.0, latency=0.0)
    assert (large.num_nodes, large.ports_per_node) == (2**30, 30)
    with pytest.raises(FabricError, match="2\\*\\*31 nodes or more; try levels=7"):
        fabric("sipac", radix=16, levels=8)
    assert [crossings(r, max(1, r - 1)) for r in (1, 2, 3)] == [0, 0, 2]


def test_dimensions_cells_and_the_example() -> None:
    """Digits with the highest first where radices are equal; nodes of a cell need not be neighbours."""
    made, mixed = fabric("sipac:radix=3,levels=2"), machine((2, 3), "published")
    assert (made.dimensions, mixed.dimensions) == ((3, 3), (6,))
    assert (made.nodes_per_group, mixed.nodes_per_group) == (3, 2)
    grid = mixed.cell_grid()
    assert np.asarray(grid.cells).tolist() == [[[0], [1]], [[2], [3]], [[4], [5]]]
    assert not grid.contiguous
    assert sorted([(2, 2), (1, 4), (4, 1)], key=grid.rank) == [(1, 4), (4, 1), (2, 2)]
    assert type(made).example() == (fabric("sipac:radix=3,levels=2,wavelengths=3"), "sipco")
