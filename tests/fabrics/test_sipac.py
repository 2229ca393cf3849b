"""SiPAC's ports and light: the paper's numbers, which shapes exist, what a circuit may be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import Circuits, Fabric

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
        (0, 1, 0, [[0, 0]]),
        (0, 1, 0, None),
    ],
)
def test_impossible_paths(src: int, dst: int, port: int, path: list[list[int]] | None) -> None:
    """A circuit passes one switch, at the level where its ends differ and nowhere else."""
    where = fabric("sipac", radix=3, levels=2)
    circuits = Circuits.of([0], [src], [dst], port, wavelength_lo=1, path=path)
    assert _faults(where, circuits) == {"path_broken"}


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
