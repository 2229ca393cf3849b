"""Elements of LIGHTPATH, one by one, from the drawings of the two readings.

Boards of 2 x 3 tiles make small grids of several boards; some of their parts are dead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from tests.fabrics.walks import Port, links_of

from opticcl.fabrics import fabric
from opticcl.fabrics._lightpath_netlist import TileGrid, lightpath_netlist, lightpath_states
from opticcl.fabrics._lightpath_waveguides import passages, waveguide_netlist, waveguide_states
from opticcl.fabrics.lightpath import EAST, NORTH, SOUTH, WEST
from opticcl.ir import Circuits
from opticcl.ir.netlist import Netlist

STEPS = {EAST: (0, 1), WEST: (0, -1), SOUTH: (1, 0), NORTH: (-1, 0)}
NAMES = {EAST: "east", WEST: "west", SOUTH: "south", NORTH: "north"}
BACK = {EAST: WEST, WEST: EAST, SOUTH: NORTH, NORTH: SOUTH}
BOARD = (2, 3)
LASERS, GUIDES = 3, 2


class Drawing:
    """Tiles and edges of a grid, and the words for them.

    Args:
        rows, columns: tiles.
        few: nodes; tiles that are left have none.
    """

    def __init__(self, rows: int, columns: int, few: int | None = None) -> None:
        self.rows, self.columns, self.tiles = rows, columns, range(rows * columns)
        self.ends: dict[int, int] = {}
        for tile in self.tiles:
            for way, (down, right) in STEPS.items():
                row, column = tile // columns + down, tile % columns + right
                if 0 <= row < rows and 0 <= column < columns:
                    self.ends[4 * tile + way] = row * columns + column
        random = np.random.default_rng(1)
        self.node = dict.fromkeys(self.tiles, -1)
        tile = random.permutation(rows * columns)[:few]
        self.node.update({int(t): n for n, t in enumerate(tile)})
        self.width = random.integers(0, GUIDES + 1, 4 * len(self.tiles))
        self.dead_tiles, self.dead_lasers = {1, 5}, {2, 7, 9}
        inner = sorted(self.ends)
        self.dead_guides = {(inner[i], i % GUIDES) for i in range(0, len(inner), 3)}
        self.wafer = TileGrid(
            rows,
            columns,
            BOARD,
            LASERS,
            GUIDES,
            np.array(sorted(self.dead_tiles)),
            np.array(sorted(self.dead_lasers)),
            lambda: self.width,
            np.array(sorted(GUIDES * one + m for one, m in self.dead_guides), int),
            tile,
            40e9,
        )

    def kind(self, one: int) -> str:
        """Of the waveguides of an edge: along a row or a column, within a board or between two."""
        here, there = (divmod(tile, self.columns) for tile in (one // 4, self.ends[one]))
        apart = [(row // BOARD[0], column // BOARD[1]) for row, column in (here, there)]
        return f"waveguide_{'x' if here[0] == there[0] else 'y'}{'_board' * (apart[0] != apart[1])}"

    def edges(self, kind: str) -> list[int]:
        """Those of a kind, in their order."""
        return [one for one in sorted(self.ends) if self.kind(one) == kind]

    def at(self, tile: int) -> str:
        """A tile."""
        return f"tile (row={tile // self.columns}, column={tile % self.columns})"

    def guide(self, one: int, m: int) -> str:
        """A waveguide, or what is at one end of it."""
        return f"waveguide {m} {NAMES[one % 4]} of {self.at(one // 4)}"

    def laser(self, tile: int, k: int) -> str:
        """A laser, or the switch behind it."""
        return f"laser {k} of {self.at(tile)}"

    def diode(self, tile: int, k: int) -> str:
        """A photodiode."""
        return f"wavelength {k} of {self.at(tile)}"

    @property
    def on_tiles(self) -> list[tuple[int, int]]:
        """Tile and number of every laser."""
        return [(tile, k) for tile in self.tiles for k in range(LASERS)]

    def on_edges(self, kind: str = "") -> list[tuple[int, int]]:
        """Edge and number of every waveguide, or of those of a kind."""
        return [(one, m) for one in sorted(self.ends) for m in range(GUIDES) if kind in ("", self.kind(one))]


Row = tuple[str, str, int, int, bool, dict[str, float], list[str], list[int] | None, list[bool] | None]


def rows_of(net: Netlist) -> list[Row]:
    """Of each group: name, kind, ports, whether it is set by wavelength, losses, places, nodes, which elements work."""
    found = []
    for group in net.groups:
        element = np.arange(group.count)
        works = group.parameters.get("works")
        found.append(
            (
                group.name,
                group.kind,
                group.n_in,
                group.n_out,
                group.per_wavelength,
                dict(group.loss),
                [group.place(e) for e in range(group.count)],
                None if group.node_of is None else group.node_of(element).tolist(),
                None if works is None else works(element).tolist(),
            )
        )
    return found


GRIDS = [(1, 1), (1, 2), (2, 1), (2, 3), (3, 4), (4, 2), (5, 7)]


@pytest.mark.parametrize(("rows", "columns"), [*GRIDS, (2, 6), (4, 5), (3, 3)])
def test_edges_of_each_kind(rows: int, columns: int) -> None:
    """Along rows and columns, within a board of 2 x 3 tiles and between two; their number is a formula."""
    drawn = Drawing(rows, columns)
    kinds = ["waveguide_x", "waveguide_x_board", "waveguide_y", "waveguide_y_board"]
    assert [(name, edges.tolist()) for name, edges in drawn.wafer.edges] == [
        (name, drawn.edges(name)) for name in kinds
    ]
    assert drawn.wafer.counts() == {name: len(drawn.edges(name)) for name in kinds}


def test_a_tile_without_a_node() -> None:
    """Of 12 tiles 5 have one."""
    drawn = Drawing(3, 4, few=5)
    assert drawn.wafer.node_on(np.arange(12)).tolist() == list(drawn.node.values())
    assert sorted(drawn.node.values()) == [-1] * 7 + [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_elements_that_switch_every_wavelength(rows: int, columns: int) -> None:
    """Laser k enters its tile behind the waveguides of four directions; the last output leads to the photodiodes."""
    drawn, last = Drawing(rows, columns), 4 * GUIDES
    net = lightpath_netlist(drawn.wafer)
    due: Counter[tuple[Port, Port]] = Counter()
    for tile, k in drawn.on_tiles:
        due[("transmitter", drawn.laser(tile, k), 0), ("tile", drawn.at(tile), last + k)] += 1
        due[("demux", drawn.at(tile), k), ("photodiode", drawn.diode(tile, k), 0)] += 1
    for tile in drawn.tiles:
        due[("tile", drawn.at(tile), last), ("demux", drawn.at(tile), 0)] += 1
    for one, m in drawn.on_edges():
        guide, port = drawn.kind(one), one % 4 * GUIDES + m
        due[("tile", drawn.at(one // 4), port), (guide, drawn.guide(one, m), 0)] += 1
        due[(guide, drawn.guide(one, m), 0), ("tile", drawn.at(drawn.ends[one]), port)] += 1
    assert links_of(net) == due
    lasers, tiles = [drawn.laser(*one) for one in drawn.on_tiles], [drawn.at(tile) for tile in drawn.tiles]
    nodes = [drawn.node[tile] for tile, _ in drawn.on_tiles]
    bright = [LASERS * tile + k not in drawn.dead_lasers for tile, k in drawn.on_tiles]
    alive = [tile not in drawn.dead_tiles for tile in drawn.tiles]
    assert rows_of(net) == [
        ("transmitter", "emitter", 0, 1, True, {"modulator": 1}, lasers, nodes, bright),
        ("tile", "wss", last + LASERS, last + 1, True, {}, tiles, list(drawn.node.values()), alive),
        *waveguides(drawn, {"mzi": 2}, lambda one, m: m < drawn.width[one]),
        ("demux", "demux", 1, LASERS, False, {}, tiles, None, None),
        ("photodiode", "photodiode", 1, 0, False, {}, [drawn.diode(*one) for one in drawn.on_tiles], nodes, None),
    ]
    bills = {group.name: group.bill for group in net.groups if group.bill is not None}
    assert bills == {"tile": ("integrated_tile", 1, LASERS, 40e9)}
    assert net.groups[1].device == "mzi"


def waveguides(drawn: Drawing, more: dict[str, float], works: Callable[[int, int], bool]) -> list[Row]:
    """Groups of waveguides.

    Args:
        drawn: the grid.
        more: losses beside that of the waveguide and its seam.
        works: whether waveguide m of an edge does.
    """
    return [
        (
            kind,
            "waveguide",
            1,
            1,
            False,
            more | {kind[:11]: 1, "board_fibre" if kind.endswith("board") else "stitch": 1},
            [drawn.guide(*one) for one in drawn.on_edges(kind)],
            None,
            [bool(works(*one)) for one in drawn.on_edges(kind)],
        )
        for kind in ("waveguide_x", "waveguide_x_board", "waveguide_y", "waveguide_y_board")
    ]


def side(way: int, closed: int) -> int:
    """Number of a side among the three that are left without one; 3: lasers or photodiodes of the tile."""
    return [one for one in sorted(STEPS) if one != closed].index(way)


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_elements_that_switch_whole_waveguides(rows: int, columns: int) -> None:
    """A laser reaches every waveguide of its tile; a waveguide has a select at its start and an MZI at its end."""
    drawn = Drawing(rows, columns)
    net = waveguide_netlist(drawn.wafer)
    due: Counter[tuple[Port, Port]] = Counter()
    for tile, k in drawn.on_tiles:
        due[("transmitter", drawn.laser(tile, k), 0), ("laser_switch", drawn.laser(tile, k), 0)] += 1
        due[("demux", drawn.at(tile), k), ("photodiode", drawn.diode(tile, k), 0)] += 1
    for tile in drawn.tiles:
        due[("sides_mux", drawn.at(tile), 0), ("demux", drawn.at(tile), 0)] += 1
    for one, m in drawn.on_edges():
        (tile, way), end, here = divmod(one, 4), drawn.ends[one], drawn.guide(one, m)
        for k in range(LASERS):
            due[("laser_switch", drawn.laser(tile, k), way * GUIDES + m), ("lasers_mux", here, k)] += 1
        due[("lasers_mux", here, 0), ("select", here, 3)] += 1
        due[("select", here, 0), (drawn.kind(one), here, 0)] += 1
        due[(drawn.kind(one), here, 0), ("mzi", here, 0)] += 1
        due[("mzi", here, 3), ("sides_mux", drawn.at(end), way * GUIDES + m)] += 1
        for on in STEPS:
            if on != BACK[way] and 4 * end + on in drawn.ends:
                there = drawn.guide(4 * end + on, m)
                due[("mzi", here, side(on, BACK[way])), ("select", there, side(way, BACK[on]))] += 1
    assert links_of(net) == due
    lasers, tiles = [drawn.laser(*one) for one in drawn.on_tiles], [drawn.at(tile) for tile in drawn.tiles]
    guides = [drawn.guide(*one) for one in drawn.on_edges()]
    nodes = [drawn.node[tile] for tile, _ in drawn.on_tiles]
    bright = [LASERS * tile + k not in drawn.dead_lasers for tile, k in drawn.on_tiles]
    start = [one // 4 for one, _ in drawn.on_edges()]
    end = [drawn.ends[one] for one, _ in drawn.on_edges()]
    (at_start, alive_start), (at_end, alive_end) = (
        ([drawn.node[tile] for tile in of], [tile not in drawn.dead_tiles for tile in of]) for of in (start, end)
    )
    assert rows_of(net) == [
        ("transmitter", "emitter", 0, 1, True, {"modulator": 1}, lasers, nodes, bright),
        ("laser_switch", "mzi", 1, 4 * GUIDES, False, {}, lasers, nodes, None),
        ("lasers_mux", "mux", LASERS, 1, False, {}, guides, None, None),
        ("select", "select", 4, 1, False, {"mzi": 1}, guides, at_start, alive_start),
        *waveguides(drawn, {}, lambda one, m: (one, m) not in drawn.dead_guides),
        ("mzi", "mzi", 1, 4, False, {"mzi": 1}, guides, at_end, alive_end),
        ("sides_mux", "mux", 4 * GUIDES, 1, False, {}, tiles, None, None),
        ("demux", "demux", 1, LASERS, False, {}, tiles, None, None),
        ("photodiode", "photodiode", 1, 0, False, {}, [drawn.diode(*one) for one in drawn.on_tiles], nodes, None),
    ]
    bills = {group.name: group.bill for group in net.groups if group.bill is not None}
    assert bills == {"demux": ("integrated_tile", 1, LASERS, 40e9)}


# --- states -----------------------------------------------------------------------------------------------------------


def walks(drawn: Drawing, guide: list[int] | None = None) -> Circuits:
    """Circuits on random ways that do not lead straight back, some of them no way at all or off the grid at their end.

    Every second one has wavelengths 0 and 2, the others have one.

    Args:
        drawn: the grid.
        guide: number of the waveguide of each.
    """
    random = np.random.default_rng(2)
    last = 4 * (len(drawn.tiles) - 1)
    ways: list[list[int]] = [
        [],
        sorted(drawn.ends)[:1],
        [last + SOUTH],
        [4 * (len(drawn.tiles) - drawn.columns) + SOUTH],
        [NORTH],
    ]
    for _ in range(14):
        way, one = [], int(random.choice(sorted(drawn.ends) or [NORTH]))
        for _ in range(int(random.integers(1, 5))):
            way.append(one)
            onward = [4 * drawn.ends.get(one, -1) + on for on in STEPS if on != BACK[one % 4]]
            onward = [on for on in onward if on in drawn.ends]
            if not onward:
                break
            one = int(random.choice(onward))
        ways += [way, []]
    row = np.arange(len(ways))
    lo, n = np.where(row % 4 < 2, 0, row % 3), np.where(row % 4 < 2, 2, 1)
    edges = np.array([one for way in ways for one in way], int), np.cumsum([0, *map(len, ways)])
    return Circuits.of(row, row * 0, row * 0, 0, lo, n, edges, wavelength_step=2, waveguide=guide)


def wavelengths(circuits: Circuits, row: int) -> list[int]:
    """Those of a circuit."""
    return [int(circuits.wavelength_lo[row]) + 2 * k for k in range(int(circuits.wavelength_n[row]))]


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_states_of_every_wavelength(rows: int, columns: int) -> None:
    """Each takes the first waveguide of an edge that is free on its wavelength, or shares the last one that works."""
    drawn, used = Drawing(rows, columns), Counter()
    circuits = walks(drawn)
    due = []
    for row in range(len(circuits)):
        for w in wavelengths(circuits, row):
            into = 4 * GUIDES + w
            for one in circuits.path(row).tolist():
                out = one % 4 * GUIDES + max(0, min(used[one, w], drawn.width[one] - 1))
                used[one, w] += 1
                due.append((one // 4, into * LASERS + w, out, row))
                into = out
            if into < 4 * GUIDES and one in drawn.ends:
                due.append((drawn.ends[one], into * LASERS + w, 4 * GUIDES, row))
    found = [
        row
        for use in lightpath_states(drawn.wafer, circuits)
        for row in zip(*(column.tolist() for column in (use.index, use.within, use.setting, use.circuit)), strict=True)
    ]
    assert sorted(found) == sorted(due)
    for row in range(len(circuits)):  # one circuit by itself
        alone = circuits.take(np.array([row]))
        assert sum(len(use.index) for use in lightpath_states(drawn.wafer, alone)) == len(
            [1 for one in due if one[3] == row]
        )


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_states_of_whole_waveguides(rows: int, columns: int) -> None:
    """Lasers, and the sides of selects and MZIs along paths; a circuit without a number that exists sets nothing."""
    drawn = Drawing(rows, columns)
    guide = [row % (GUIDES + 2) - 1 for row in range(len(walks(drawn)))]
    circuits = walks(drawn, guide)
    inner = sorted(drawn.ends)
    due: dict[str, list[tuple[int, int, int]]] = {"laser_switch": [], "select": [], "mzi": []}
    for row, m in enumerate(guide):
        path = circuits.path(row).tolist()
        if not path or not 0 <= m < GUIDES:
            continue
        for w in wavelengths(circuits, row):
            due["laser_switch"].append((path[0] // 4 * LASERS + w, path[0] % 4 * GUIDES + m, row))
        for before, one, after in zip([None, *path[:-1]], path, [*path[1:], None], strict=True):
            if one not in drawn.ends:
                continue
            for name, other in (("select", before), ("mzi", after)):
                value = 3 if other is None else side(other % 4, BACK[one % 4])
                due[name].append((inner.index(one) * GUIDES + m, value, row))
    found = {
        use.kind: sorted(zip(use.index.tolist(), use.setting.tolist(), use.circuit.tolist(), strict=True))
        for use in waveguide_states(drawn.wafer, circuits)
    }
    assert found == {name: sorted(rows) for name, rows in due.items()}
    assert not any(len(use.index) for use in waveguide_states(drawn.wafer, walks(drawn)))
    assert not len(passages(walks(drawn), GUIDES).edge)


def test_the_netlist_of_a_fabric_has_its_failures() -> None:
    """Boards of 4 x 8 tiles; tile 4, laser 1 of tile 2 and a waveguide between tiles 0 and 1 are dead."""
    for unit, guide in (("wavelength", 1), ("waveguide", 0)):
        where = fabric(
            f"lightpath:shape=5x3,lasers=2,waveguides=2,numbering=random,switch_unit={unit},dead_tiles=4,"
            "dead_lasers=2:1,dead_waveguides=0-1:1"
        )
        net = where.netlist()
        broken = {
            group.place(e)
            for group in net.groups
            if group.name in ("transmitter", "tile", "waveguide_x", "waveguide_x_board", "waveguide_y_board")
            for e in np.flatnonzero(~group.parameters["works"](np.arange(group.count))).tolist()
        }
        around = {
            f"waveguide {m} {name} of tile (row={row}, column={column})"
            for name, row, column in (("east", 1, 0), ("west", 1, 1), ("east", 1, 1), ("west", 1, 2))
            for m in range(2)
        }
        lost = {f"waveguide {guide} east of tile (row=0, column=0)", "laser 1 of tile (row=0, column=2)"}
        assert broken - around - {"tile (row=1, column=1)"} == lost
