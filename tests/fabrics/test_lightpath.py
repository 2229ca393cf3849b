"""LIGHTPATH's shape, numbering and physics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.fabrics.walks import pairs

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale, near_square
from opticcl.fabrics.lightpath import EAST, NORTH, SOUTH, WEST, Lightpath, sides_of_hops, tile_of_node
from opticcl.ir import CircuitPlan, Circuits, Fabric, Transfers, concatenate_circuits
from opticcl.ir.occupied import parse_conditions
from opticcl.optics.values import optics
from opticcl.schedule import generate
from opticcl.verify import verify

SHAPES = [(1, 1), (1, 2), (2, 1), (1, 7), (3, 5), (4, 4), (4, 8), (6, 6), (16, 16)]


def edge(tile: int, direction: int) -> int:
    """The number that the fabric's drawing gives an edge."""
    return 4 * tile + direction


def carried(where: Fabric, nodes: Sequence[tuple[int, int]], circuits: Circuits) -> set[str]:
    """Rules that the light of one step breaks; its data are of no interest."""
    src, dst = np.array(nodes).T
    schedule = replace(
        generate("ring", "all_reduce", where), num_steps=1, classes=(), step=lambda i: Transfers.of(src, dst, 0, 1, 1)
    )
    verdict = verify(CircuitPlan(where, schedule, lambda i: (circuits,)))
    return {v.rule for v in verdict.violations} - {"contribution_missing", "contribution_doubled"}


def one_circuit(shape: str, src: int, dst: int, path: Sequence[int], **columns: int) -> set[str]:
    """Rules that a single circuit over the given edges breaks."""
    where = fabric("lightpath", shape=shape)
    return carried(where, [(src, dst)], Circuits.of([0], [src], [dst], path=np.array([path], int), **columns))


# --- shape and numbers ------------------------------------------------------------------------------------------------


def test_numbers_of_the_paper() -> None:
    """256 GPUs, 300 GB/s each (appendix C), 4.4 us before a round's first byte (section 6.1)."""
    wafer = fabric("lightpath")
    assert wafer.num_nodes == 256
    assert wafer.node_rate_bits_per_s / 8 == pytest.approx(300e9)
    assert wafer.latency_s + wafer.reconfiguration_s == pytest.approx(4.4e-6)


def test_resources_are_lasers_photodiodes_and_waveguides() -> None:
    """Four directed edges a tile; their waveguides are counted, or each has a number and one setting."""
    laser, photodiode, waveguide = fabric("lightpath:shape=4x8,waveguides=7").resources
    assert (laser.count, photodiode.count, waveguide.count, waveguide.capacity) == (32, 32, 128, 7)
    assert waveguide.per_wavelength
    numbered = fabric("lightpath:shape=4x8,waveguides=7,switch_unit=waveguide").resources[2]
    assert (numbered.count, numbered.capacity, numbered.one_setting) == (7 * 128, 1, True)


@pytest.mark.parametrize(("nodes", "shape"), [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (13, (1, 13)), (256, (16, 16))])
def test_at_scale_takes_the_squarest_grid(nodes: int, shape: tuple[int, int]) -> None:
    """Any number of nodes has a grid, a prime a single row."""
    made = fabric_at_scale("lightpath", nodes, 800e9)
    assert made.parameters["shape"] == shape == near_square(nodes)
    assert made.num_nodes == nodes
    assert made.node_rate_bits_per_s == pytest.approx(800e9)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("lightpath:shape=64", "try shape=8x8"),
        ("lightpath:shape=2x3x4", "try shape=4x6"),
        ("lightpath:shape=99999x99999", "more than"),
        ("lightpath:lasers=0", "lasers=0"),
        ("lightpath:waveguides=0", "waveguides=0"),
        ("lightpath:laser_rate=0", "laser_rate"),
        ("lightpath:reconfiguration=-1 us", "reconfiguration"),
        ("lightpath:numbering=random,seed=-1", "seed=-1"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(text: str, hint: str) -> None:
    """The message names the field and what to try."""
    with pytest.raises(FabricError, match=hint) as error:
        fabric(text)
    assert "\n" not in str(error.value)


def test_unknown_numbering_is_refused() -> None:
    """The message lists the known ones."""
    with pytest.raises(ParameterError, match="row, squares, random"):
        fabric("lightpath:numbering=hilbert")


# --- who sits where ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("numbering", ["row", "squares", "random"])
def test_every_node_has_a_tile_of_its_own(shape: tuple[int, int], numbering: str) -> None:
    """A numbering is a permutation of the tiles, the same every time."""
    tiles = tile_of_node(shape, numbering, seed=5)
    assert sorted(tiles) == list(range(shape[0] * shape[1]))
    assert np.array_equal(tiles, tile_of_node(shape, numbering, seed=5))


def test_seeds_differ() -> None:
    """Another seed, another placement."""
    assert not np.array_equal(tile_of_node((4, 4), "random", 0), tile_of_node((4, 4), "random", 1))


@pytest.mark.parametrize(("shape", "count"), [((16, 16), 64), ((4, 8), 8), ((6, 6), 9)])
def test_squares_numbers_squares_of_four_together(shape: tuple[int, int], count: int) -> None:
    """Nodes 4 i to 4 i + 3 sit on a square of two rows and two columns (section 3.2)."""
    groups = tile_of_node(shape, "squares").reshape(count, 4)
    rows, columns = np.divmod(groups, shape[1])
    assert (np.ptp(rows, axis=1) == 1).all()
    assert (np.ptp(columns, axis=1) == 1).all()


def test_coordinates_name_the_tile() -> None:
    """Messages tell where a node sits."""
    assert fabric("lightpath:shape=4x4,numbering=squares").coordinates(6) == "6 at (row=1, column=2)"


@pytest.mark.parametrize("shape", ["1x1", "1x2", "1x7", "5x1", "3x5", "4x4"])
@pytest.mark.parametrize("numbering", ["row", "squares", "random"])
def test_ring_order_goes_tile_by_tile(shape: str, numbering: str) -> None:
    """A ring needs one waveguide on every edge, however the nodes are numbered."""
    where = fabric("lightpath", shape=shape, numbering=numbering, waveguides=1)
    plan = lower(where, generate("ring", "all_reduce", where))
    verify(plan).raise_if_bad()
    assert all(len(plan.rounds(i)) == 1 for i in range(plan.schedule.num_steps))


# --- what light can do ------------------------------------------------------------------------------------------------

# 3 x 3 tiles:   0 1 2
#                3 4 5
#                6 7 8


@pytest.mark.parametrize(
    "path",
    [
        [edge(0, EAST), edge(1, SOUTH)],
        [edge(0, SOUTH), edge(3, EAST)],
        [edge(0, SOUTH), edge(3, SOUTH), edge(6, EAST), edge(7, NORTH)],
        [edge(0, EAST), edge(1, EAST), edge(2, SOUTH), edge(5, WEST)],
    ],
)
def test_any_walk_is_a_path(path: list[int]) -> None:
    """Column first, row first and detours are all circuits from tile 0 to tile 4."""
    assert one_circuit("3x3", 0, 4, path) == set()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param([], id="no light at all"),
        pytest.param([edge(0, EAST)], id="ends early"),
        pytest.param([edge(1, SOUTH)], id="starts elsewhere"),
        pytest.param([edge(0, EAST), edge(2, SOUTH)], id="gap"),
        pytest.param([edge(0, EAST), edge(1, SOUTH), edge(4, SOUTH)], id="goes on"),
        pytest.param([edge(0, EAST), edge(1, EAST), edge(2, WEST), edge(1, SOUTH)], id="straight back"),
        pytest.param([edge(0, NORTH), edge(1, SOUTH)], id="off the top"),
        pytest.param(
            [edge(0, EAST), edge(1, EAST), edge(2, EAST), edge(3, EAST)], id="off the right, round the corner"
        ),
        pytest.param([edge(0, WEST), edge(1, SOUTH)], id="off the left"),
        pytest.param([edge(0, SOUTH), edge(3, SOUTH), edge(6, SOUTH), edge(1, SOUTH)], id="off the bottom"),
        pytest.param([edge(9, EAST), edge(1, SOUTH)], id="no such tile"),
        pytest.param([-1, edge(1, SOUTH)], id="negative edge"),
        pytest.param([2**31 - 1, edge(1, SOUTH)], id="enormous edge"),
    ],
)
def test_anything_else_is_no_path(path: list[int]) -> None:
    """From tile 0 to tile 4."""
    assert one_circuit("3x3", 0, 4, path) == {"path_broken"}


def test_paths_start_where_the_node_sits() -> None:
    """With squares, node 2 of a 4 x 4 grid sits on tile 4."""
    where = fabric("lightpath:shape=4x4,numbering=squares")
    assert carried(where, [(0, 2)], Circuits.of([0], [0], [2], path=np.array([[edge(0, SOUTH)]]))) == set()
    assert carried(where, [(0, 2)], Circuits.of([0], [0], [2], path=np.array([[edge(0, EAST)]]))) == {"path_broken"}


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"wavelength_lo": 16}, "wavelength_unknown"),
        ({"wavelength_lo": 12, "wavelength_n": 5}, "wavelength_unknown"),
        ({"wavelength_lo": -1}, "wavelength_unknown"),
        ({"port": 1}, "port_unknown"),
    ],
)
def test_sixteen_lasers_and_one_port(columns: dict[str, int], rule: str) -> None:
    """What does not exist cannot be lit."""
    assert one_circuit("1x2", 0, 1, [edge(0, EAST)], **columns) == {rule}


def test_waveguides_switched_by_wavelength_or_as_a_whole() -> None:
    """Two circuits on different wavelengths share a waveguide, but not where an MZI moves all of it."""
    both = Circuits.of(
        [0, 1], [0, 1], [2, 2], 0, [0, 5], 5, (np.array([edge(0, EAST), edge(1, EAST), edge(1, EAST)]), [0, 2, 3])
    )
    by_wavelength = fabric("lightpath:shape=1x3,waveguides=1")
    as_a_whole = fabric("lightpath:shape=1x3,waveguides=1,switch_unit=waveguide")
    assert carried(by_wavelength, [(0, 2), (1, 2)], both) == set()
    assert carried(as_a_whole, [(0, 2), (1, 2)], both) == {"waveguide_unassigned"}
    assert carried(as_a_whole, [(0, 2), (1, 2)], replace(both, waveguide=np.zeros(2, np.int32))) == {"mzi_clash"}


def test_a_loop_fills_its_edges_twice() -> None:
    """Light that comes round again needs another waveguide."""
    loop = [edge(0, EAST), edge(1, SOUTH), edge(4, WEST), edge(3, NORTH)]
    path = np.array([[*loop, *loop, edge(0, EAST)]])
    circuits = Circuits.of([0], [0], [1], path=path)
    assert carried(fabric("lightpath:shape=3x3,waveguides=3"), [(0, 1)], circuits) == set()
    assert carried(fabric("lightpath:shape=3x3,waveguides=2"), [(0, 1)], circuits) == {"waveguide_overfull"}


def test_rounds_that_were_split_cannot_stand_together() -> None:
    """Two rounds of a step on few waveguides, put into one, overfill the waveguides and nothing else."""
    where = fabric("lightpath:shape=4x4,waveguides=1")
    split = lower(where, generate("lumorph:radix=2", "all_reduce", where))
    together = replace(split, rounds=lambda i: (concatenate_circuits(split.rounds(i)),))
    verify(split).raise_if_bad()
    assert {v.rule for v in verify(together).violations} == {"waveguide_overfull"}


# --- rounds together -----------------------------------------------------------------------------------------------


# --- edges, ways and switches, from the drawing -----------------------------------------------------------------------

STEPS = {EAST: (0, 1), WEST: (0, -1), SOUTH: (1, 0), NORTH: (-1, 0)}


def edges(rows: int, columns: int) -> dict[int, tuple[int, int]]:
    """Edge -> the tile that it leaves and the tile that it enters."""
    found = {}
    for tile in range(rows * columns):
        row, column = divmod(tile, columns)
        for way, (down, right) in STEPS.items():
            if 0 <= row + down < rows and 0 <= column + right < columns:
                found[edge(tile, way)] = (tile, tile + down * columns + right)
    return found


def walk(columns: int, start: int, stop: int, row_first: bool) -> list[int]:
    """Edges along the row and then along the column, or the other way round."""
    found, at = [], list(divmod(start, columns))
    goal = divmod(stop, columns)
    for axis in (1, 0) if row_first else (0, 1):
        while at[axis] != goal[axis]:
            sign = 1 if goal[axis] > at[axis] else -1
            way = {(1, 1): EAST, (1, -1): WEST, (0, 1): SOUTH, (0, -1): NORTH}[axis, sign]
            found.append(edge(at[0] * columns + at[1], way))
            at[axis] += sign
    return found


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ((1, 1), {}),
        ((1, 5), {}),
        ((4, 1), {}),
        ((2, 2), {}),
        ((3, 4), {"numbering": "random"}),
        ((4, 5), {"dead_tiles": "0+7", "dead_waveguides": "1-2:1+6-1:2+19-14:1+18-19:2"}),
    ],
)
def test_cuts_count_the_waveguides_that_cross_them(shape: tuple[int, int], more: dict[str, str]) -> None:
    """Of 2 waveguides of 3 lasers of 10 Gb/s an edge: those that work, out of the first side and into it."""
    where = fabric("lightpath", shape=shape, lasers=3, waveguides=2, laser_rate="10Gb/s", **more)
    dead = {int(tile) for tile in more.get("dead_tiles", "99").split("+")}
    works = {(a, b): 0 if {a, b} & dead else 2 for a, b in edges(*shape).values()}
    for text in filter(None, more.get("dead_waveguides", "").split("+")):
        ends, count = text.split(":")
        a, b = map(int, ends.split("-"))
        works[a, b] -= int(count)
    nodes = where.machine_nodes(np.arange(where.num_nodes))
    cuts = list(where.cuts(nodes))
    for cut in cuts:
        inside = {int(where.tile[node]) for node in nodes[cut.inside]}
        out = sum(count for (a, b), count in works.items() if a in inside and b not in inside)
        back = sum(count for (a, b), count in works.items() if b in inside and a not in inside)
        assert (cut.out_bits_per_s, cut.in_bits_per_s) == (out * 30e9, back * 30e9)
        assert 0 < cut.inside.sum() < len(nodes)
    rows, columns = shape
    tiles = {divmod(int(tile), columns) for tile in where.tile[nodes]}
    corners = {(r, c) for r in (0, rows - 1) for c in (0, columns - 1)} & tiles if len(tiles) > 1 else set()
    due = [f"cut above row {r}" for r in range(1, rows)] + [f"cut left of column {c}" for c in range(1, columns)]
    assert sorted(cut.where for cut in cuts) == sorted([*due, *["edges of a corner tile"] * len(corners)])


@pytest.mark.parametrize("unit", ["wavelength", "waveguide"])
def test_options_are_both_ways_round_the_corner(unit: str) -> None:
    """Of all pairs of 3 x 4 tiles: row first, then column first, unless that is the same way; every laser and waveguide."""
    where = fabric("lightpath:shape=3x4,lasers=2,waveguides=3,numbering=squares", switch_unit=unit)
    src, dst = pairs(12)
    found = where.options(src, dst)
    due = []
    for pair, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        ways = [walk(4, int(where.tile[a]), int(where.tile[b]), row_first) for row_first in (True, False)]
        for way in ways[: 1 if ways[0] == ways[1] else 2]:
            for laser in range(2):
                due += [(pair, a, b, laser, way, guide) for guide in (range(3) if unit == "waveguide" else (None,))]
    got = found.circuits
    guides = [None] * len(got) if got.waveguide is None else got.waveguide.tolist()
    columns = (got.transfer.tolist(), got.src.tolist(), got.dst.tolist(), got.wavelength_lo.tolist())
    paths = [got.path(i).tolist() for i in range(len(got))]
    assert list(zip(*columns, paths, guides, strict=True)) == due
    assert (got.wavelength_n == 1).all()
    assert (got.port == 0).all()
    assert found.choice.tolist() == list(range(len(due)))
    assert not any(len(fault.circuits) for fault in where.faults(got))
    nothing = where.options(src[:0], dst[:0])
    assert len(nothing.circuits) == len(nothing.choice) == 0


BENT = [edge(0, EAST), edge(1, SOUTH)]
BACK = [edge(5, WEST)]


def two_circuits(where: Fabric, guide: Sequence[int] | None = None) -> Circuits:
    """On 3 x 3 tiles from tile 0 to 4 on wavelengths 1 and 3, and from tile 5 to 4 on wavelengths 0 and 2."""
    node = np.argsort(where.tile)
    ends = node[[0, 5]], node[[4, 4]]
    path = (np.array([*BENT, *BACK]), np.array([0, 2, 3]))
    return Circuits.of([0, 1], *ends, 0, [1, 0], 2, path, wavelength_step=2, waveguide=guide)


def test_switches_of_every_wavelength() -> None:
    """At every edge and wavelength the side by which light comes in, and at the receiving tile; 4 is the laser."""
    where = fabric("lightpath:shape=3x3,lasers=5,waveguides=4,numbering=random,reconfiguration=2us")
    circuits = two_circuits(where)
    mzi, to_tile = where.settings(circuits)
    found = list(zip(mzi.index.tolist(), mzi.setting.tolist(), mzi.circuit.tolist(), strict=True))
    assert found == [
        *((5 * BENT[0] + w, 4, 0) for w in (1, 3)),
        *((5 * BENT[1] + w, EAST, 0) for w in (1, 3)),
        *((5 * BACK[0] + w, 4, 1) for w in (0, 2)),
    ]
    found = list(zip(to_tile.index.tolist(), to_tile.setting.tolist(), to_tile.circuit.tolist(), strict=True))
    assert found == [(5 * 4 + w, SOUTH, 0) for w in (1, 3)] + [(5 * 4 + w, WEST, 1) for w in (0, 2)]
    devices = [(d.kind, d.count, d.setting_time_s, d.pool) for d in where.devices]
    assert devices == [("mzi", 4 * 9 * 5, 2e-6, 4), ("mzi_to_tile", 9 * 5, 2e-6, 1)]
    laser, photodiode, waveguide = where.usage(circuits)
    assert laser.index.tolist() == circuits.src.tolist()
    assert photodiode.index.tolist() == circuits.dst.tolist()
    assert (waveguide.index.tolist(), waveguide.circuit.tolist()) == ([*BENT, *BACK], [0, 0, 1])
    assert [(r.kind, r.count, r.capacity) for r in where.resources] == [
        ("laser", 9, 1), ("photodiode", 9, 1), ("waveguide", 36, 4)
    ]  # fmt: skip


def test_switches_of_whole_waveguides() -> None:
    """A laser leads to waveguide way * 4 + number; each has a select at its start and an MZI at its end; 4 is the tile."""
    where = fabric(
        "lightpath:shape=3x3,lasers=5,waveguides=4,numbering=random,switch_unit=waveguide,reconfiguration=2us"
    )
    circuits = two_circuits(where, [3, 1])
    laser, select, mzi = where.settings(circuits)
    found = list(zip(laser.index.tolist(), laser.setting.tolist(), laser.circuit.tolist(), strict=True))
    assert found == [(w, 4 * EAST + 3, 0) for w in (1, 3)] + [(5 * 5 + w, 4 * WEST + 1, 1) for w in (0, 2)]
    guides = [4 * BENT[0] + 3, 4 * BENT[1] + 3, 4 * BACK[0] + 1]
    for use, sides in ((select, [4, EAST, 4]), (mzi, [SOUTH, 4, 4])):
        assert (use.index.tolist(), use.setting.tolist(), use.circuit.tolist()) == (guides, sides, [0, 0, 1])
    devices = [(d.kind, d.count, d.setting_time_s, d.pool) for d in where.devices]
    assert devices == [("laser_switch", 45, 2e-6, 1), ("select", 144, 2e-6, 1), ("mzi", 144, 2e-6, 1)]
    *_, waveguide = where.usage(circuits)
    assert (waveguide.index.tolist(), waveguide.circuit.tolist()) == (guides, [0, 0, 1])
    assert waveguide.setting.tolist() == [5 * 4 + SOUTH, 5 * EAST + 4, 5 * 4 + 4]
    names = [where.place_name(where.resources[2], guide) for guide in guides[::2]]
    by_wavelength = fabric("lightpath:shape=3x3,numbering=random")
    plain = [by_wavelength.place_name(by_wavelength.resources[2], one) for one in (BENT[0], BACK[0])]
    assert names == [f"waveguide {m}{name.removeprefix('waveguides')}" for m, name in zip((3, 1), plain, strict=True)]
    for guide in ([-1, 1], [3, 4]):  # without a number that exists nothing is set, and nothing is occupied
        astray = two_circuits(where, guide)
        row = int(guide[0] < 0)
        assert all((use.circuit == row).all() and len(use.circuit) for use in where.settings(astray))
        (fault,) = (f for f in where.faults(astray) if f.rule == "waveguide_unassigned")
        assert fault.circuits.tolist() == [1 - row]


@pytest.mark.parametrize("unit", ["wavelength", "waveguide"])
def test_parts_that_light_passes(unit: str) -> None:
    """Nodes of all tiles on the way, lasers, photodiodes, switches of edges that exist in their order, waveguides by number."""
    where = fabric("lightpath:shape=3x3,lasers=5,waveguides=4,numbering=random", switch_unit=unit)
    circuits = two_circuits(where, [3, 1] if unit == "waveguide" else None)
    node = np.argsort(where.tile).tolist()
    inner = sorted(edges(3, 3))
    lit = [inner.index(one) for one in (*BENT, *BACK)]
    found = [(use.kind, np.asarray(use.part).tolist(), use.owners().tolist()) for use in where.parts_used(circuits)]
    due = [
        ("node", [node[0], node[5]], [0, 1]),
        ("node", [node[1], node[4], node[4]], [0, 0, 1]),
        ("laser", [1, 3, 25, 27], [0, 0, 1, 1]),
        ("photodiode", [21, 23, 20, 22], [0, 0, 1, 1]),
        ("mzi", lit, [0, 0, 1]),
    ]
    by_number = [("waveguide", [4 * lit[0] + 3, 4 * lit[1] + 3, 4 * lit[2] + 1], [0, 0, 1])]
    assert found == due + (by_number if unit == "waveguide" else [])
    assert [(p.kind, p.count, p.settings, p.weakens) for p in where.inventory()] == [
        ("node", 9, 0, True),
        ("laser", 45, 0, True),
        ("photodiode", 45, 0, True),
        ("waveguide", 4 * len(inner), 0, unit == "waveguide"),
        ("mzi", len(inner), 5, True),
    ]


@pytest.mark.parametrize("unit", ["wavelength", "waveguide"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 9), (5, 1), (4, 8), (6, 10), (9, 17)])
def test_light_passes_seams_and_fibres_between_boards(shape: tuple[int, int], unit: str) -> None:
    """Boards of 4 x 8 tiles: a hop has a waveguide, two switches, and a seam, or a fibre where it leads to another board."""
    where = fabric("lightpath", shape=shape, switch_unit=unit)
    path, (rows, columns), joined = where.light_path, shape, edges(*shape)
    assert [element.kind for element in path.elements] == [
        "modulator", "mzi", "waveguide_x", "waveguide_y", "stitch", "board_fibre"
    ]  # fmt: skip

    def light(start: int, stop: int) -> list[int]:
        found = [1, 0, 0, 0, 0, 0]
        for one in walk(columns, start, stop, True):
            (r, c), (s, d) = (divmod(tile, columns) for tile in joined[one])
            found[1] += 2
            found[2 if r == s else 3] += 1
            found[4 if (r // 4, c // 8) == (s // 4, d // 8) else 5] += 1
        return found

    n = rows * columns
    src, dst = pairs(n)
    few = np.unique(np.linspace(0, max(len(src) - 1, 0), 60).astype(int))[: len(src)]
    ways = [walk(columns, a, b, True) for a, b in zip(src[few].tolist(), dst[few].tolist(), strict=True)]
    lit = Circuits.of(
        np.arange(len(few)),
        src[few],
        dst[few],
        path=(np.array([one for way in ways for one in way], int), np.cumsum([0, *map(len, ways)])),
    )
    assert path.counts(lit).tolist() == [light(a, b) for a, b in zip(src[few].tolist(), dst[few].tolist(), strict=True)]
    assert path.extremes.tolist() == [light(0, n - 1)]
    if n > 1 and n < 100:
        mean = np.mean([light(a, b) for a, b in zip(src.tolist(), dst.tolist(), strict=True)], axis=0)
        assert path.typical == pytest.approx(mean)
    *_, wafers = where.parts()
    assert (wafers.kind, wafers.count) == ("wafer", -(-n // 32))


@pytest.mark.parametrize(("per_rack", "racks"), [(1, 9), (2, 5)])
def test_fibres_lead_from_wafer_to_wafer(per_rack: int, racks: int) -> None:
    """9 x 20 tiles are 3 x 3 wafers of 4 x 8, in racks: between two of a rack, between racks, none within a wafer."""
    where, floor = fabric("lightpath:shape=9x20"), replace(assumptions("common").floor, wafers_per_rack=per_rack)
    passed = where.hop_passages(floor)
    assert passed.waveguide_m == floor.tile_m
    for one, ends in edges(9, 20).items():
        wafer = [tile // 20 // 4 * 3 + tile % 20 // 8 for tile in ends]
        rack = np.array([number // per_rack for number in wafer])
        due = floor.between_wafers_m if rack[0] == rack[1] else float(floor.between_m(racks, rack[:1], rack[1:])[0])
        assert passed.fibre_m[one] == (0 if wafer[0] == wafer[1] else due)
    assert len(passed.fibre_m) == 4 * 180
    assert where.passage(floor).receivers == 1
    grid = fabric("lightpath:shape=2x3,numbering=random").cell_grid()
    tile = fabric("lightpath:shape=2x3,numbering=random").tile
    assert tile[grid.cells.ravel()].tolist() == list(range(6))
    assert (grid.cells.shape, grid.contiguous) == ((2, 3, 1), True)


def test_synchronisation_that_is_hidden_takes_no_time() -> None:
    """3 us before a round, a quarter hidden; negative times and shares above 1 are refused, 0 is right."""
    where = fabric("lightpath:shape=2x2,synchronisation=3us,control_hidden=0.25")
    assert where.shortest_control_s == where.control_s(np.array([0]), np.array([1])) == pytest.approx(2.25e-6)
    assert where.control_s(np.zeros(0, int), np.zeros(0, int)) == 0
    for text in ("synchronisation=-1us", "control_hidden=2", "latency=-1us"):
        with pytest.raises(FabricError, match=text.split("=")[0]):
            fabric(f"lightpath:shape=2x2,{text}")
    assert fabric("lightpath:shape=2x2,lasers=1,reconfiguration=0s,latency=0s").num_wavelengths == 1
    for name in ("dead_tiles", "dead_lasers", "dead_waveguides", "failed"):
        with pytest.raises(FabricError, match=f"{name}=1.5 is not text"):
            Lightpath(shape=(2, 2), **{name: 1.5})
    assert Lightpath(shape=(2, 2), dead_tiles=3).num_nodes == 3
    assert Lightpath(shape=(4096, 4096)).rate_bits_per_s > 0
    assert near_square(6) == (2, 3)


# --- failed parts, circuit by circuit ---------------------------------------------------------------------------------


def refused_by_parts(where: Fabric, circuits: Circuits) -> set[int]:
    """Circuits that `part_faults` lists."""
    return {row for fault in where.part_faults(circuits) for row in fault.circuits.tolist()}


@pytest.mark.parametrize(("number", "side"), [(number, side) for number in (0, 4, 9) for side in range(5)])
def test_a_stuck_switch_passes_one_side(number: int, side: int) -> None:
    """Of all ways between 2 x 3 tiles those pass that come to that edge from there; 4 is the laser of its tile."""
    stuck = sorted(edges(2, 3))[number]
    where = fabric("lightpath", shape=(2, 3), lasers=1, failed=f"mzi:{number}:stuck={side}")
    src, dst = pairs(6)
    found = where.options(src, dst).circuits
    due = set()
    for row in range(len(found)):
        path = found.path(row).tolist()
        for before, one in zip([None, *path[:-1]], path, strict=True):
            if one == stuck and (4 if before is None else before % 4) != side:
                due.add(row)
    assert refused_by_parts(where, found) == due
    works = np.delete(np.arange(len(found)), sorted(due))
    joined = {(int(found.src[row]), int(found.dst[row])) for row in works}
    node = np.arange(6)
    assert {(a, b) for a, b in np.argwhere(where.linked(node[:, None], node[None])).tolist() if a != b} == joined
    assert len(joined) == 30
    assert not where.links_all


@pytest.mark.parametrize("unit", ["wavelength", "waveguide"])
def test_circuits_that_need_a_dead_part(unit: str) -> None:
    """Tile 5, laser 1 of tile 0, photodiode 2 of tile 3 and a waveguide from tile 1 to 2 of 2 x 3 tiles of 3 lasers."""
    whole = fabric("lightpath:shape=2x3,lasers=3,waveguides=2,numbering=random", switch_unit=unit)
    node = np.argsort(whole.tile).tolist()
    inner = sorted(edges(2, 3))
    guide = 2 * inner.index(edge(1, EAST)) + 1
    failed = f"node:{node[5]}+laser:1+photodiode:{3 * 3 + 2}+waveguide:{guide}"
    where = replace(whole, failed=failed)
    assert [str(condition) for condition in where.conditions] == sorted(failed.split("+"))
    waveguides = [None] if unit == "wavelength" else [0, 1]
    for wave in [(lo, n, step) for step in (1, 2) for n in (1, 2, 3) for lo in range(3) if lo + (n - 1) * step < 3]:
        for number in waveguides:
            lo, n, step = wave
            lit = {lo + k * step for k in range(n)}
            src, dst = pairs(6)
            tiles = list(zip(whole.tile[src].tolist(), whole.tile[dst].tolist(), strict=True))
            paths = [walk(3, a, b, True) for a, b in tiles]
            path = (np.array([one for way in paths for one in way]), np.cumsum([0, *map(len, paths)]))
            columns = (np.arange(len(src)), src, dst, 0, lo, n, path)
            circuits = Circuits.of(*columns, wavelength_step=step, waveguide=number)
            due = set()
            for row, ((a, b), way) in enumerate(zip(tiles, paths, strict=True)):
                passed = {a, b, *(tile for one in way for tile in edges(2, 3)[one])}
                dark = (a == 0 and 1 in lit) or (b == 3 and 2 in lit)
                if 5 in passed or dark or (number == 1 and edge(1, EAST) in way):
                    due.add(row)
            # of two waveguides one is left, for the circuits 0 -> 2, 1 -> 2 and those that go on to tile 5
            over = {row for row, way in enumerate(paths) if edge(1, EAST) in way} if number is None else set()
            assert refused_by_parts(where, circuits) == due | over
            few = circuits.take(np.array([row for row in range(len(src)) if row not in over or tiles[row] == (1, 2)]))
            kept = [row for row in range(len(src)) if row not in over or tiles[row] == (1, 2)]
            assert refused_by_parts(where, few) == {k for k, row in enumerate(kept) if row in due}


def test_lasers_and_photodiodes_in_common() -> None:
    """Of 2 lasers a tile: a pair needs one that works whose light the other can receive."""
    where = fabric("lightpath:shape=1x3,lasers=2,failed=laser:0+photodiode:3+photodiode:4+photodiode:5")
    node = np.arange(3)
    assert where.wavelength_in_common(node[:, None], node[None]).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, False],
    ]
    assert fabric("lightpath:shape=1x3,lasers=2").wavelength_in_common(node[:, None], node[None]).all()
    apart = fabric("lightpath:shape=1x2,lasers=3,failed=laser:1-2+laser:4-5+photodiode:0+photodiode:2-3+photodiode:5")
    assert not apart.wavelength_in_common(node[:2, None], node[None, :2]).any()  # lasers 0, photodiodes 1
    some = fabric("lightpath:shape=1x3,lasers=2,failed=laser:0+photodiode:3").wavelength_in_common(node, node[:, None])
    assert some.tolist() == [[True, True, True], [False, True, True], [True, True, True]]


@pytest.mark.parametrize(
    ("dead", "stuck"),
    [
        ({}, {}),
        ({"dead_waveguides": "1-2:1+3-2:1"}, {}),
        ({"dead_waveguides": "1-2:2"}, {}),
        ({"dead_waveguides": "2-3:2"}, {5: 4}),
        ({"dead_tiles": "3"}, {}),
        ({"dead_tiles": "1"}, {8: EAST, 13: 4}),
        ({"dead_waveguides": "3-4:1"}, {8: EAST, 13: 4}),
        ({}, {4: 4}),
        ({}, {4: EAST, 17: 4}),
        ({}, {0: WEST}),
        ({"dead_tiles": "4", "dead_waveguides": "1-0:2"}, {9: WEST, 0: 4}),
    ],
)
def test_who_is_joined_along_a_row(dead: dict[str, str], stuck: dict[int, int]) -> None:
    """Of 5 tiles: there is one way; no tile and no edge on it is dead, and stuck switches pass what comes that way."""
    inner = sorted(edges(1, 5))
    failed = "+".join(f"mzi:{inner.index(one)}:stuck={side}" for one, side in stuck.items()) or None
    where = fabric("lightpath", shape=(1, 5), lasers=2, waveguides=2, numbering="random", failed=failed, **dead)
    gone = {int(dead["dead_tiles"])} if "dead_tiles" in dead else set()
    shut = {
        tuple(map(int, one[:-2].split("-"))) for one in dead.get("dead_waveguides", "").split("+") if one[-2:] == ":2"
    }
    tiles = [tile for tile in where.tile.tolist() if tile not in gone]

    def joined(a: int, b: int) -> bool:
        way = walk(5, a, b, True)
        ends = [edges(1, 5)[one] for one in way]
        if shut & set(ends) or gone & {tile for pair in ends for tile in pair}:
            return False
        sides = [4, *(one % 4 for one in way)]
        return all(stuck.get(one, side) == side for one, side in zip(way, sides, strict=False))

    rank = np.arange(len(tiles))
    due = [[joined(a, b) for b in tiles] for a in tiles]
    assert where.linked(rank[:, None], rank[None]).tolist() == due
    assert where.links_all == (not stuck and all(map(all, due)))


@pytest.mark.parametrize(
    "dead",
    [
        {"dead_tiles": "1+5+9"},
        {"dead_tiles": "5"},
        {"dead_waveguides": "0-1:2+4-5:2+8-9:2"},
        {"dead_waveguides": "2-1:2+6-5:2+10-9:2+0-4:2+1-5:2", "dead_tiles": "3"},
        {"dead_waveguides": "11-10:2+11-7:2+0-1:1"},
    ],
)
def test_who_is_joined_on_a_grid(dead: dict[str, str]) -> None:
    """Of 3 x 4 tiles: whoever can be reached over edges of which a waveguide works, and tiles that are alive."""
    where = fabric("lightpath", shape=(3, 4), lasers=1, waveguides=2, numbering="random", **dead)
    gone = {int(tile) for tile in dead.get("dead_tiles", "").split("+") if tile}
    shut = {
        tuple(map(int, one[:-2].split("-"))) for one in dead.get("dead_waveguides", "").split("+") if one[-2:] == ":2"
    }
    steps = {ends for ends in edges(3, 4).values() if ends not in shut and not gone & set(ends)}
    tiles = [tile for tile in where.tile.tolist() if tile not in gone]
    due = []
    for tile in tiles:
        found, more = {tile}, {tile}
        while more := {b for a, b in steps if a in found} - found:
            found |= more
        due.append([other in found for other in tiles])
    rank = np.arange(len(tiles))
    assert where.linked(rank[:, None], rank[None]).tolist() == due
    assert where.links_all == all(map(all, due))
    node = np.argsort(where.tile)
    reached = {tile: set(np.array(tiles)[row].tolist()) for tile, row in zip(tiles, due, strict=True)}
    src, dst = pairs(12)
    ways = where.options(node[src], node[dst]).circuits
    listed: list[Counter[tuple[int, ...]]] = [Counter() for _ in src]
    for row, pair in enumerate(ways.transfer.tolist()):
        listed[pair][tuple(ways.path(row).tolist())] += 1
    for a, b, found in zip(src.tolist(), dst.tolist(), listed, strict=True):
        straight = {tuple(walk(4, a, b, row_first)) for row_first in (True, False)}
        assert found.keys() >= straight
        assert found.total() == len(straight) + 2 * (b in reached.get(a, ()))  # both orders again, around what is dead
        for way in straight:
            passes = b in reached.get(a, ()) and all(edges(3, 4)[one] in steps for one in way)
            assert found[way] >= 1 + passes * (2 // len(straight))
        assert all(edges(3, 4)[one] in steps for way in found.keys() - straight for one in way)


def test_edges_that_do_not_exist_are_named_first() -> None:
    """Of 3 x 3 tiles: edges off the grid, of no tile, and only without them paths with gaps, of which there is one."""
    where = fabric("lightpath:shape=3x3")
    outside = [4 * tile + way for tile in range(9) for way in STEPS if edge(tile, way) not in edges(3, 3)]
    outside += [-1, -4, edge(9, EAST), edge(9, NORTH), edge(12, WEST)]
    others = sorted(edges(3, 3))
    path = np.array([[one, EAST] for one in [*outside, *others]])
    row = np.arange(len(path))
    circuits = Circuits.of(row, row * 0, row * 0 + 1, path=path)
    (fault,) = (f for f in where.faults(circuits) if len(f.circuits))
    (gaps,) = (f for f in where.faults(circuits.take(row[len(outside) :])) if len(f.circuits))
    assert (fault.rule, fault.expected) == ("path_broken", "edges between neighbouring tiles of a 3x3 grid")
    assert fault.circuits.tolist() == list(range(len(outside)))
    assert gaps.circuits.tolist() == list(range(len(others)))


def test_switches_behind_lasers_lead_to_every_waveguide() -> None:
    """Setting way * W + number, for a circuit over each edge and waveguide of 3 x 3 tiles; states are of the same elements."""
    where = fabric("lightpath:shape=3x3,lasers=2,waveguides=2,switch_unit=waveguide")
    rows = [(one, *ends, m) for one, ends in edges(3, 3).items() for m in range(2)]
    path, src, dst, guide = np.array(rows).T
    circuits = Circuits.of(np.arange(len(rows)), src, dst, path=path[:, None], waveguide=guide)
    laser, *_ = where.settings(circuits)
    assert laser.setting.tolist() == [one % 4 * 2 + m for one, _, _, m in rows]
    assert [use.kind for use in where.states(circuits)] == ["laser_switch", "select", "mzi"]
    assert {use.kind for use in replace(where, switch_unit="wavelength").states(circuits)} == {"tile"}


def test_tiles_that_light_reaches() -> None:
    """From 10 dBm to -17 dBm over a modulator of 4 dB: 23 dB for hops of two switches, a waveguide, and a seam or a fibre."""
    where = fabric("lightpath:shape=8x16")
    board, along = {"x": 8, "y": 4}, {"x": "along a row", "y": "along a column"}
    switches, waveguide = 2 * 0.3, {"x": 0.4 * 2.5, "y": 0.4 * 5.0}

    def reached(axis: str, fibre_db: float) -> int:
        hops, loss_db = 0, 0.0
        while loss_db <= 23:
            hops += 1
            loss_db += switches + waveguide[axis] + (0.25 if hops % board[axis] else fibre_db)
        return hops - 1

    values = optics(where.light_path.table, "typical")
    assert [(x.name, x.value, x.text) for x in where.limits(values)] == [
        (f"reach_{axis}_tiles", reached(axis, 3.0), f"reach {along[axis]}: {reached(axis, 3.0)} tiles") for axis in "xy"
    ]
    given = {"launch": "10dBm", "modulator.loss": "4dB", "mzi.loss": "0.3dB", "sensitivity": "-17dBm"}
    values = optics(where.light_path.table, "literal", given)  # what a fibre loses is not printed
    assert [(x.name, x.value, x.text) for x in where.limits(values)] == [
        (f"reach_{axis}_tiles", found, f"reach {along[axis]} of one wafer: {found} tiles")
        for axis, found in (("x", reached("x", 0.25)), ("y", reached("y", 0.25)))
    ]
    assert (reached("x", 3.0), reached("y", 3.0), reached("x", 0.25), reached("y", 0.25)) == (10, 7, 12, 8)


def test_parts_that_are_named_twice_and_both_ways() -> None:
    """What the texts of dead parts say is the same as conditions of parts; further ones are added."""
    written = fabric("lightpath:shape=2x3,lasers=3,waveguides=2,dead_tiles=4,dead_lasers=1:0-1,dead_waveguides=0-1:1")
    named = fabric("lightpath:shape=2x3,lasers=3,waveguides=2,failed=node:4+laser:3+laser:4+waveguide:0")
    assert written.conditions == named.conditions
    assert [str(condition) for condition in named.conditions] == ["laser:3", "laser:4", "node:4", "waveguide:0"]
    both = replace(written, failed="photodiode:7")
    assert {str(condition) for condition in both.conditions} == {
        *(str(condition) for condition in named.conditions), "photodiode:7"
    }  # fmt: skip
    more = both.without(parse_conditions("mzi:2", both.inventory(), "here"))
    assert {str(condition) for condition in more.conditions} == {
        *(str(condition) for condition in both.conditions), "mzi:2"
    }  # fmt: skip
    assert fabric("lightpath:shape=2x3").conditions == ()
    for made in (written, named):
        damage = made.damage
        assert (damage.tiles.tolist(), damage.laser_tile.tolist(), damage.laser.tolist()) == ([4], [1, 1], [0, 1])
        assert (damage.edge.tolist(), damage.dead.tolist(), damage.guide.tolist()) == ([0], [1], [0])
    assert both.damage.photodiode_tile.tolist() == [2]
    assert both.damage.photodiode.tolist() == [1]
    assert both.damage.dark
    assert Lightpath.example() == (fabric("lightpath:shape=4x4,lasers=3"), "lumorph:radix=4")


def test_one_pair_and_waveguides_without_a_number() -> None:
    """Ways of one pair; without a number a circuit has no waveguide; waveguide 0 to the east is one; rates from 1 b/s on."""
    where = fabric("lightpath:shape=3x3,lasers=5,waveguides=4,numbering=random,switch_unit=waveguide")
    one = where.options(np.array([0]), np.array([1])).circuits
    assert len(one) in (20, 40)
    assert not any(len(fault.circuits) for fault in where.faults(one))
    (fault,) = (f for f in where.faults(two_circuits(where)) if f.rule == "waveguide_unassigned")
    assert fault.circuits.tolist() == [0, 1]
    laser, *_ = where.settings(two_circuits(where, [0, 1]))
    assert laser.setting.tolist() == [0, 0, 5, 5]
    assert fabric("lightpath:laser_rate=1b/s").rate_bits_per_s == 1
    assert near_square(10) == (2, 5)
    assert tile_of_node((2, 8), "squares").tolist() == [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]
    assert np.array_equal(tile_of_node((4, 4), "random"), tile_of_node((4, 4), "random", 0))
    last = Circuits.of([0, 1], [0, 1], [1, 1], path=(np.array([edge(0, EAST)]), np.array([0, 1, 1])))
    assert sides_of_hops(last).tolist() == [4]


def test_ways_around_a_dead_tile() -> None:
    """From tile 3 to 5 of 3 x 3, where tile 4 is dead: straight on as if it were not, and around it; to 4 straight on alone."""
    where = fabric("lightpath:shape=3x3,lasers=2,dead_tiles=4")
    for stop, around in ((5, True), (4, False)):
        found = where.options(np.array([3]), np.array([stop])).circuits
        paths = {tuple(found.path(row).tolist()) for row in range(len(found))}
        straight = tuple(walk(3, 3, stop, True))
        assert straight in paths
        rest = paths - {straight}
        assert bool(rest) == around
        assert all(tile != 4 for path in rest for one in path for tile in edges(3, 3)[one])
        assert sorted(set(found.wavelength_lo.tolist())) == [0, 1]
        assert (found.wavelength_n == 1).all()
        assert (found.port == 0).all()
        assert not any(len(fault.circuits) for fault in where.faults(found))
