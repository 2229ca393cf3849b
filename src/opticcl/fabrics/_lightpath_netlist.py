r"""Elements of LIGHTPATH, in the reading of equation 6: a tile switches each wavelength of each waveguide by itself.

::

    laser k ~>[ tile: 4 W + L inputs, 4 W + 1 outputs ]==W waveguides==>[ tile ] ... [ tile ]~> demux ~> photodiodes
                 in d W + m    light that came in direction d on waveguide m
                 in 4 W + k    laser k
                 out d W + m   direction d, waveguide m
                 out 4 W       photodiodes of the tile

A circuit takes the first waveguide of an edge that is free on its wavelength; where none is left, it shares the last.

Source: LUMORPH section 2.1, equation 6. Reading: the switch behind each laser, 1 : 4 W, is part of the tile's and is in no
formula of losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, IntArray
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = ["TileGrid", "lightpath_ends", "lightpath_netlist", "lightpath_states"]

SOURCE = "LUMORPH section 2.1, equation 6"
DIRECTIONS = ("east", "west", "south", "north")


@dataclass(frozen=True, eq=False)
class TileGrid:
    """What the elements follow from.

    Args:
        rows, columns: tiles [count].
        board: rows and columns of the tiles of one board.
        lasers: of a tile [count].
        waveguides: of an edge in one direction [count].
        dead_tiles: tiles that let no light through, int64 (k,).
        dead_lasers: tile * lasers + laser, int64 (k,).
        width: function that returns the waveguides of each edge that work, int64 (4 tiles,).
        dead_guides: edge * waveguides + waveguide of those that do not, int64 (g,).
        tile: of each node, int (nodes,).
        laser_rate: of a laser [bit/s].
    """

    rows: int
    columns: int
    board: tuple[int, int]
    lasers: int
    waveguides: int
    dead_tiles: IntArray
    dead_lasers: IntArray
    width: Callable[[], IntArray]
    dead_guides: IntArray
    tile: IntArray
    laser_rate: float

    @property
    def tiles(self) -> int:
        """All tiles [count]."""
        return self.rows * self.columns

    @property
    def onward(self) -> IntArray:
        """By how much a tile's number changes in each direction, int64 (4,)."""
        return np.array([1, -1, self.columns, -self.columns])

    @cached_property
    def edges(self) -> tuple[tuple[str, IntArray], ...]:
        """Directed edges along rows and columns, within a board and between boards: kind, edges 4 tile + direction."""
        edge = np.arange(4 * self.tiles)
        row, column, way = edge // 4 // self.columns, edge // 4 % self.columns, edge % 4
        edges_exist = np.choose(way, [column < self.columns - 1, column > 0, row < self.rows - 1, row > 0])
        kind = np.where(edges_exist, self.kind(edge), -1)
        return tuple((name, np.flatnonzero(kind == number)) for number, name in enumerate(self.counts()))

    def kind(self, edges: IntArray) -> IntArray:
        """Number of the kind of each edge in the order of `counts`, int64 (n,)."""
        tile, way = np.divmod(np.asarray(edges, np.int64), 4)
        along_y = way >= 2
        seam = np.where(along_y, tile // self.columns, tile % self.columns) - way % 2 + 1
        between: IntArray = seam % np.where(along_y, *self.board) == 0
        return 2 * along_y + between

    def edge_name(self, edge: int) -> str:
        """A directed edge in words."""
        start, way = divmod(edge, 4)
        row, column = divmod(start, self.columns)
        return f"{DIRECTIONS[way]} of tile (row={row}, column={column})"

    def tile_name(self, tile: int) -> str:
        """A tile in words."""
        return f"tile (row={tile // self.columns}, column={tile % self.columns})"

    def laser_name(self, laser: int) -> str:
        """A laser in words; they are numbered tile by tile."""
        return f"laser {laser % self.lasers} of {self.tile_name(laser // self.lasers)}"

    def photodiode_name(self, photodiode: int) -> str:
        """A photodiode in words; they are numbered tile by tile."""
        return f"wavelength {photodiode % self.lasers} of {self.tile_name(photodiode // self.lasers)}"

    def node_on(self, tile: IntArray) -> IntArray:
        """Node on each tile, -1 on one without, int64 (n,)."""
        node = np.full(self.tiles, -1)
        node[self.tile] = np.arange(len(self.tile))
        nodes: IntArray = node[tile]
        return nodes

    def counts(self) -> dict[str, int]:
        """Edges of each kind by formula."""
        tall, wide = self.board
        x, y = 2 * self.rows * (self.columns - 1), 2 * self.columns * (self.rows - 1)
        x_apart, y_apart = 2 * self.rows * ((self.columns - 1) // wide), 2 * self.columns * ((self.rows - 1) // tall)
        return {
            "waveguide_x": x - x_apart, "waveguide_x_board": x_apart,
            "waveguide_y": y - y_apart, "waveguide_y_board": y_apart,
        }  # fmt: skip


def lightpath_netlist(wafer: TileGrid) -> Netlist:
    """Elements of all tiles and edges."""
    tiles, lasers, w = wafer.tiles, wafer.lasers, wafer.waveguides
    n_in, n_out = 4 * w + lasers, 4 * w + 1

    def working(dead: IntArray) -> Callable[[IntArray], npt.NDArray[np.bool_]]:
        return lambda element: ~np.isin(element, dead)

    counts = wafer.counts()
    groups = (
        ElementGroup(
            "transmitter", "emitter", tiles * lasers, 0, 1, per_wavelength=True, loss={"modulator": 1},
            parameters={"works": working(wafer.dead_lasers), "emits": lambda laser: laser % lasers}, place=wafer.laser_name,
            node_of=lambda device: wafer.node_on(device // lasers), source=SOURCE,
        ),
        ElementGroup(
            "tile", "wss", tiles, n_in, n_out, per_wavelength=True, parameters={"works": working(wafer.dead_tiles)},
            bill=BillLine("integrated_tile", 1, lasers, wafer.laser_rate), place=wafer.tile_name, node_of=wafer.node_on,
            device="mzi", source=SOURCE,
        ),
        *(_waveguides(wafer, name, count) for name, count in counts.items()),
        ElementGroup("demux", "demux", tiles, 1, lasers, place=wafer.tile_name, source=SOURCE),
        ElementGroup(
            "photodiode", "photodiode", tiles * lasers, 1, 0, place=wafer.photodiode_name,
            node_of=lambda device: wafer.node_on(device // lasers), source=SOURCE,
        ),
    )  # fmt: skip

    def bundles() -> Iterator[Bundle]:
        each, member = np.arange(tiles), np.arange(w)
        k = np.arange(tiles * lasers)
        yield Bundle("transmitter", k, "tile", k // lasers * n_in + 4 * w + k % lasers)
        for name, edges in wafer.edges:
            start, way = np.divmod(edges, 4)
            end = start + wafer.onward[way]
            guide = np.arange(len(edges) * w)
            outputs = ((start * n_out + way * w)[:, None] + member).ravel()
            inputs = ((end * n_in + way * w)[:, None] + member).ravel()
            yield Bundle("tile", outputs, name, guide)
            yield Bundle(name, guide, "tile", inputs)
        yield Bundle("tile", each * n_out + 4 * w, "demux", each)
        yield Bundle("demux", k, "photodiode", k)

    return Netlist("lightpath", groups, lasers, bundles, "transmitter")


def _waveguides(wafer: TileGrid, name: str, count: int) -> ElementGroup:
    """Waveguides of the edges of one kind: edge * waveguides + waveguide.

    Args:
        wafer: that has them.
        name: of the kind.
        count: edges [count].
    """
    w = wafer.waveguides
    seam = "board_fibre" if name.endswith("_board") else "stitch"

    def edges() -> IntArray:
        return dict(wafer.edges)[name]

    def works(element: IntArray) -> npt.NDArray[np.bool_]:
        return element % w < wafer.width()[edges()[element // w]]

    def place(element: int) -> str:
        return f"waveguide {element % w} {wafer.edge_name(int(edges()[element // w]))}"

    loss = {"mzi": 2.0, name.removesuffix("_board"): 1.0, seam: 1.0}
    parameters = {"works": works}
    return ElementGroup(
        name, "waveguide", count * w, loss=loss, parameters=parameters, place=place,
        hops=lambda element: edges()[element // w], source=SOURCE,
    )  # fmt: skip


def lightpath_states(wafer: TileGrid, circuits: Circuits) -> Iterator[SettingUse]:
    """States of the tiles on the paths: which output each (input, wavelength) leads to.

    Args:
        wafer: with the edges.
        circuits: of a round; one without hops needs no state.
    """
    lasers, w = wafer.lasers, wafer.waveguides
    owner, hops = circuits.hop_owner(), circuits.hops.astype(np.int64)
    each = circuits.wavelength_n[owner].astype(np.int64)
    hop, wavelength = circuits.each_wavelength(owner)
    start, way = np.divmod(hops[hop], 4)
    width = wafer.width()[hops[hop]]
    out = way * w + np.minimum(_nth_of_each(hops[hop] * lasers + wavelength), np.maximum(width - 1, 0))
    begins, ends = np.zeros(len(owner), bool), np.zeros(len(owner), bool)
    some = circuits.num_hops() > 0
    begins[circuits.hop_offsets[:-1][some]] = True
    ends[circuits.hop_offsets[1:][some] - 1] = True
    before = np.arange(len(hop)) - each[np.maximum(hop - 1, 0)]  # the same wavelength on the hop before
    into = np.where(begins[hop], 4 * w + wavelength, out[np.maximum(before, 0)])
    yield SettingUse("tile", start, out, owner[hop], within=into * lasers + wavelength)
    last = ends[hop]
    tile, received = start[last] + wafer.onward[way[last]], out[last] * lasers + wavelength[last]
    inside = (tile >= 0) & (tile < wafer.tiles)
    rx = np.full(int(inside.sum()), 4 * w)
    yield SettingUse("tile", tile[inside], rx, owner[hop][last][inside], within=received[inside])


def _nth_of_each(key: IntArray) -> IntArray:
    """Number of each row among those of its key, int64 (n,)."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    nth = np.empty(len(key), np.int64)
    nth[order] = np.arange(len(key)) - np.searchsorted(ordered, ordered)
    return nth


def lightpath_ends(circuits: Circuits, tile: IntArray, lasers: int) -> tuple[IntArray, IntArray]:
    """Laser and photodiode of every (circuit, wavelength), int64 (m,) each.

    Args:
        circuits: of a round.
        tile: of each node, int64 (nodes,).
        lasers: of a tile [count].
    """
    circuit, wavelength = circuits.each_wavelength()
    src, dst = (tile[nodes].astype(np.int64)[circuit] for nodes in (circuits.src, circuits.dst))
    return src * lasers + wavelength, dst * lasers + wavelength
