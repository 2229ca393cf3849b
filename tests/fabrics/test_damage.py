"""Failed parts of a LIGHTPATH grid: what the texts say, the conditions they stand for, and the circuits that need them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from opticcl.errors import FabricError
from opticcl.fabrics import damage as module
from opticcl.fabrics.damage import Damage, damage_from, dead_parts_used, grid_of
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Circuits, Condition
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST, Grid

STEPS = {EAST: (0, 1), WEST: (0, -1), SOUTH: (1, 0), NORTH: (-1, 0)}


def edges_of(rows: int, columns: int) -> dict[int, tuple[int, int]]:
    """Tiles that each edge joins, of those that do not leave the grid."""
    return {
        4 * (r * columns + c) + way: (r * columns + c, (r + down) * columns + c + right)
        for r, c in product(range(rows), range(columns))
        for way, (down, right) in STEPS.items()
        if 0 <= r + down < rows and 0 <= c + right < columns
    }


def described(tiles: str | None = None, lasers: str | None = None, waveguides: str | None = None) -> Damage:
    """The damage of 2 x 4 tiles with 16 lasers each and 3 waveguides on an edge."""
    return damage_of((2, 4), 16, 3, dead_tiles=tiles, dead_lasers=lasers, dead_waveguides=waveguides)


def damage_of(shape: tuple[int, int], lasers: int, waveguides: int, **dead: str | None) -> Damage:
    """The damage of a machine of that shape."""
    return Lightpath(shape=shape, lasers=lasers, waveguides=waveguides, **dead).damage


def columns_of(damage: Damage) -> tuple[list[int], ...]:
    """All columns as lists."""
    return tuple(getattr(damage, name).tolist() for name in Damage.__slots__)


def numbers(*values: int) -> np.ndarray:
    """An int64 array."""
    return np.array(values, np.int64)


# --- texts --------------------------------------------------------------------------------------------------------------


def test_texts_name_parts_in_any_order() -> None:
    """Edge 0 leads east from tile 0, 9 west from tile 2, 23 north from tile 5; waveguides are edge x 3 + number."""
    found = described("6+0-1", "1:4-5+0:15", "5-1:2+0-1:1+2-1:3")
    assert found.tiles.tolist() == [0, 1, 6]
    assert (found.laser_tile.tolist(), found.laser.tolist()) == ([0, 1, 1], [15, 4, 5])
    assert (found.edge.tolist(), found.dead.tolist()) == ([0, 9, 23], [1, 3, 2])
    assert found.guide.tolist() == [0, 27, 28, 29, 69, 70]
    assert not any(columns_of(described()))


@pytest.mark.parametrize(
    ("tiles", "lasers", "waveguides", "words"),
    [
        ("8", None, None, "dead_tiles=8: tiles are 0 to 7"),
        ("7-8", None, None, "dead_tiles=7-8: tiles are 0 to 7"),
        ("3-1", None, None, "dead_tiles=3-1: .*ranges go upwards"),
        ("1+x", None, None, r"dead_tiles=1\+x: 'x' is not of the form; write dead_tiles=3\+17-19"),
        ("1+1", None, None, "dead_tiles names something twice"),
        ("0-7", None, None, "dead_tiles=0-7 leaves no tile of 8"),
        (None, "8:0", None, "dead_lasers=8:0: tiles are 0 to 7"),
        (None, "7:16", None, "dead_lasers=7:16: lasers are 0 to 15"),
        (None, "1:0-3+1:3", None, "dead_lasers names something twice"),
        (None, None, "0-1:0", "dead_waveguides=0-1:0: there are 3 on an edge; try 1 to 3"),
        (None, None, "0-1:4", "dead_waveguides=0-1:4: there are 3"),
        (None, None, "0-1:1+0-1:2", "dead_waveguides names something twice"),
        (None, None, "0-8:1", "dead_waveguides=0-8:1: tiles are 0 to 7"),
    ],
)
def test_what_is_not_there_is_refused(
    tiles: str | None, lasers: str | None, waveguides: str | None, words: str
) -> None:
    """In words that name the parameter and the part."""
    with pytest.raises(FabricError, match=f"^lightpath: {words}"):
        described(tiles, lasers, waveguides)


def test_a_range_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many parts as may be listed, and one more; where the range begins makes no difference."""
    monkeypatch.setattr(module, "MOST_LISTED", 4)
    assert described("2-5").tiles.tolist() == [2, 3, 4, 5]
    with pytest.raises(FabricError, match="dead_tiles=2-6: more than 4 tiles; try fewer"):
        described("2-6")


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (2, 2), (2, 3), (3, 2)])
def test_edges_join_neighbours(shape: tuple[int, int]) -> None:
    """Every pair of tiles: the edge between them, or a refusal; no edge goes around the end of a row."""
    edge = {ends: number for number, ends in edges_of(*shape).items()}
    for a, b in product(range(shape[0] * shape[1]), repeat=2):
        if (a, b) in edge:
            assert damage_of(shape, 1, 1, dead_waveguides=f"{a}-{b}:1").edge.tolist() == [edge[a, b]]
        else:
            with pytest.raises(FabricError, match=f"dead_waveguides={a}-{b}:1: tiles {a} and {b} are not neighbours"):
                damage_of(shape, 1, 1, dead_waveguides=f"{a}-{b}:1")


# --- values -------------------------------------------------------------------------------------------------------------


def test_any_dead_part_is_damage() -> None:
    """A tile, a laser, a photodiode or a waveguide; lasers and photodiodes are dark."""
    none = numbers()
    photodiodes = Damage(none, none, none, none, none, numbers(1, 4, 4), numbers(7, 2, 9))
    lasers = described(lasers="1:4-5+0:15")
    each = (described("3"), lasers, described(waveguides="0-1:1"), photodiodes)
    assert [bool(one) for one in (described(), *each)] == [False, True, True, True, True]
    assert [one.dark for one in (described(), *each)] == [False, False, True, False, True]


def test_an_edge_works_by_what_is_left() -> None:
    """Two of three waveguides; other edges work fully, and those of a dead tile are closed."""
    hurt = described("7", None, "5-1:1")
    assert np.flatnonzero(hurt.waveguides(8, 3) != 3).tolist() == [4 * 5 + NORTH]
    width = grid_of((2, 4), 3, hurt).width()
    joined = {number for number, ends in edges_of(2, 4).items() if 7 not in ends}
    assert set(np.flatnonzero(width)) == joined
    assert width[4 * 5 + NORTH] == pytest.approx(2 / 3)
    assert {width[number] for number in joined - {4 * 5 + NORTH}} == {1.0}
    assert grid_of((2, 4), 3, described()).whole


# --- conditions ---------------------------------------------------------------------------------------------------------

TILE = numbers(3, 0, 5, 1, 4, 2)
"""Tile of each node of 2 x 3 tiles."""
INNER = np.flatnonzero(Grid(2, 3).width())
LASERS, WAVEGUIDES = 4, 3


def test_conditions_are_numbered_as_the_module_says() -> None:
    """node n, laser and photodiode t L + k, waveguide e W + i of the e-th edge within the grid, mzi e."""
    assert INNER.tolist() == list(edges_of(2, 3))
    kinds = {"node": 6, "laser": 6 * LASERS, "photodiode": 6 * LASERS, "waveguide": 14 * WAVEGUIDES, "mzi": 14}
    parts = [Condition(kind, number) for kind, count in kinds.items() for number in range(count)]
    for seed in range(40):
        drawn = np.random.default_rng(seed).permutation(len(parts))[: 3 * seed // 2 + 1]
        given = [parts[i] for i in drawn]
        of = {kind: sorted(one.index for one in given if one.kind == kind) for kind in kinds}
        if len(of["node"]) == 6:
            continue
        guides = {INNER[w // WAVEGUIDES] * WAVEGUIDES + w % WAVEGUIDES for w in of["waveguide"]}
        guides |= {INNER[e] * WAVEGUIDES + i for e in of["mzi"] for i in range(WAVEGUIDES)}
        dead = {
            edge: sum(g // WAVEGUIDES == edge for g in guides) for edge in sorted({g // WAVEGUIDES for g in guides})
        }
        found = damage_from(given, TILE, LASERS, INNER, WAVEGUIDES)
        tiles, laser_tile, laser, edge, count, photodiode_tile, photodiode, guide = columns_of(found)
        assert tiles == sorted(TILE[of["node"]])
        assert list(zip(laser_tile, laser, strict=True)) == [divmod(p, LASERS) for p in of["laser"]]
        assert list(zip(photodiode_tile, photodiode, strict=True)) == [divmod(p, LASERS) for p in of["photodiode"]]
        assert dict(zip(edge, count, strict=True)) == dead
        assert guide == sorted(guides)


def test_some_node_is_left() -> None:
    """All but one may be dead."""
    dead = [Condition("node", n) for n in range(6)]
    assert damage_from(dead[1:], TILE, LASERS, INNER, WAVEGUIDES).tiles.tolist() == [0, 1, 2, 4, 5]
    with pytest.raises(FabricError, match="all nodes are dead; leave at least one"):
        damage_from(dead, TILE, LASERS, INNER, WAVEGUIDES)


# --- circuits that need them --------------------------------------------------------------------------------------------


def faults(damage: Damage, circuits: Circuits, *, numbered: bool) -> dict[str, list[int]]:
    """Circuits of each text on 2 x 4 tiles, whose nodes are their tiles."""
    end = circuits.hops // 4 + Grid(2, 4).onward[circuits.hops % 4]
    found = list(dead_parts_used(damage, circuits, np.arange(8), end, 3, numbered))
    assert {fault.rule for fault in found} == {"part_failed"}
    return {fault.expected: fault.circuits.tolist() for fault in found if len(fault.circuits)}


def test_circuits_that_need_a_failed_part_are_named() -> None:
    """Two from tile 0 to 2, by 1, one back, and one from 4 to 5 below them."""
    hops = [EAST, 4 + EAST] * 2 + [8 + WEST, 4 + WEST, 16 + EAST]
    circuits = Circuits.of(
        range(4), numbers(0, 0, 2, 4), numbers(2, 2, 0, 5), wavelength_lo=numbers(0, 4, 0, 0), wavelength_n=numbers(4, 2, 2, 1),
        path=(hops, [0, 2, 4, 6, 7]),
    )  # fmt: skip
    assert faults(described("1+7"), circuits, numbered=False) == {"no light through tiles 1, 7": [0, 1, 2]}
    for tile in (4, 5):
        assert faults(described(f"{tile}"), circuits, numbered=False) == {f"no light through tiles {tile}": [3]}
    assert faults(described(lasers="0:3+0:5+4:1"), circuits, numbered=False) == {
        "no light from lasers 0:3, 0:5, 4:1": [0, 1]
    }
    none = numbers()
    photodiodes = Damage(none, none, none, none, none, numbers(0, 2), numbers(2, 5))
    assert faults(photodiodes, circuits, numbered=False) == {"no light from photodiodes 0:2, 2:5": [1]}
    assert faults(described(waveguides="0-1:2"), circuits, numbered=False) == {}
    assert faults(described(waveguides="0-1:3+4-5:3+1-2:1"), circuits, numbered=False) == {
        "at most 0 circuit(s) of a wavelength east of tile 0": [0, 1],
        "at most 0 circuit(s) of a wavelength east of tile 4": [3],
    }
    assert faults(described(waveguides="0-1:3"), circuits, numbered=True) == {}  # until waveguides are chosen


def test_wavelengths_may_be_apart() -> None:
    """Wavelengths 0, 2 and 4 beside 1, 3 and 5: no laser is the other's, and one waveguide takes both circuits."""
    circuits = Circuits.of(
        range(2), numbers(0, 0), numbers(1, 1), wavelength_lo=numbers(0, 1), wavelength_n=3, wavelength_step=2,
        path=[[EAST]] * 2,
    )  # fmt: skip
    users: list[list[int]] = [[0], [1], [0], [1], [0], [1], [], []]
    for laser, expected in enumerate(users):
        found = faults(described(lasers=f"0:{laser}"), circuits, numbered=False)
        assert list(found.values()) == [expected] * bool(expected)
    assert faults(described(waveguides="0-1:2"), circuits, numbered=False) == {}


def test_a_waveguide_of_a_number_is_dead_or_alive() -> None:
    """Two circuits from tile 0 to 2, on waveguides 0 and 1; of an edge with two dead ones both are named."""
    circuits = Circuits.of(
        range(2), numbers(0, 0), numbers(2, 2), wavelength_lo=numbers(0, 1), waveguide=numbers(0, 1),
        path=[[EAST, 4 + EAST]] * 2,
    )  # fmt: skip
    assert faults(described(waveguides="1-2:1"), circuits, numbered=True) == {
        "no light through waveguide 0 east of tile 1": [0]
    }
    assert faults(described(waveguides="1-2:2"), circuits, numbered=True) == {
        "no light through waveguide 0 east of tile 1, 1 east of tile 1": [0, 1]
    }
    assert faults(described(waveguides="2-1:3"), circuits, numbered=True) == {}
    nothing = dead_parts_used(described("7"), circuits, np.arange(8), numbers(1, 2, 1, 2), 3, True)
    assert not any("waveguide" in fault.expected for fault in nothing)


def test_no_more_than_eight_parts_are_listed() -> None:
    """Of nine, eight and three points."""
    alone = Circuits.of([0], [0], [1], path=[[EAST]])
    (eight,) = faults(described(lasers="0:0-7"), alone, numbered=False)
    (nine,) = faults(described(lasers="0:0-8"), alone, numbered=False)
    assert eight == "no light from lasers " + ", ".join(f"0:{k}" for k in range(8))
    assert nine == eight + ", ..."
