r"""LIGHTPATH: a wafer grid of tiles, one GPU a tile, circuits through the tiles in between.

::

      tile (r, c)        east 4 t + 0       tile (r, c + 1)            Tx: lasers on wavelengths 0 .. L-1
     +-----------+  === W waveguides ===>  +-----------+               Rx: photodiodes for the same L
     |  [Tx|Rx]  |                         |  [Tx|Rx]  |
     | MZI 1 x 3 |  <=== W waveguides ===  | MZI 1 x 3 |               light that comes in on one side leaves
     +-----------+   west 4 (t + 1) + 1    +-----------+               on one of the three others
       || south 4 t + 2     ^
       vv                   || north (of the tile below) + 3

Tile (r, c) of R rows and C columns has number t = r C + c, and its way out in direction d (0 east, 1 west, 2 south,
3 north) is the directed edge 4 t + d. A hop is such an edge. Laser k of a tile has wavelength k.

Two readings of what a tile switches (`switch_unit`). wavelength, equation 6: each wavelength of each waveguide by itself, so an
edge carries `waveguides` circuits of each wavelength, and any free waveguide of the next edge will do. waveguide, section 2.1:
an MZI moves a whole waveguide, so a circuit keeps its waveguide from end to end (`Circuits.waveguide`) and shares it with
circuits of the same path alone.

Tiles, lasers and waveguides may be dead (see `damage` for the syntax). A dead tile has no GPU and lets no light through:
its node is in no job. Nodes keep their numbers, ranks are counted without the dead.

What its light passes, from tile to tile: a waveguide, two switches, and the seam between the tiles::

    laser -> modulator -> [1x3] ==seam== [1x3] -> [1x3] ==seam== [1x3] -> ... -> photodiode
                                 one hop                  one hop
             a hop along a row is a tile wide, one along a column a tile high; from wafer to wafer a fibre in place of the seam

Source of the light path: LUMORPH sections 2.1, 2.2, 7, figures 1, 2. Reading: 32 tiles on 200 x 200 mm drawn as 4 rows of 8
are 2.5 cm wide and 5 cm high. A circuit enters a tile by one of its four switches and leaves by another, so a hop has two.
Grids of more than 4 x 8 tiles are wafers side by side. Crossings of waveguides on a tile are called low-loss, without number
or figure, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.fabrics import near_square, register_fabric
from opticcl.fabrics._control import check_synchronisation, exposed_share
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._failures import options_of_pairs
from opticcl.fabrics._lightpath_netlist import TileGrid, lightpath_ends, lightpath_netlist, lightpath_states
from opticcl.fabrics._lightpath_waveguides import FROM_LASER, passages, waveguide_netlist, waveguide_states
from opticcl.fabrics.damage import (
    KINDS,
    Damage,
    damage_from,
    dead_parts_used,
    grid_of,
    written_conditions,
)
from opticcl.ir import (
    CellGrid,
    Circuits,
    Condition,
    ControlPlane,
    Fabric,
    FabricNumbers,
    Fault,
    IntArray,
    Options,
    Part,
    PartKind,
    PartUse,
    Resource,
    Usage,
)
from opticcl.ir.capacity import Cut, thresholds
from opticcl.ir.circuits import concatenate_circuits
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import Counts, Element, LightPath, Limit, Optics, count_in_words
from opticcl.ir.netlist import Netlist
from opticcl.ir.occupied import conditions_as_text, failed_parts, parse_conditions, unique_parts
from opticcl.ir.representatives import LightMove
from opticcl.optics.limits import reach, reach_in_parts
from opticcl.optics.values import chain_of
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST, Grid
from opticcl.routing.paths import open_dimension_order
from opticcl.routing.reach import components
from opticcl.units import Rate, Seconds, Shape

__all__ = ["EAST", "NORTH", "SOUTH", "WEST", "Lightpath", "tile_of_node"]

SHEET = datasheet("lightpath")
MOST_TILES = 1 << 24  # edges are numbered with 32 bits

Numbering = Literal["row", "squares", "random"]
SwitchUnit = Literal["wavelength", "waveguide"]
Routing = Literal["dimension_order", "random", "least_overlap"]


def tile_of_node(shape: tuple[int, int], numbering: str, seed: int = 0) -> IntArray:
    """Tile of each node, int64 (num_nodes,).

    Args:
        shape: rows and columns.
        numbering: row (node n on tile n), squares (squares of four, then 8-tuples, ...: the bits of row and column
            interleaved) or random (a permutation by `seed`).
    Reading: section 3.2 mentions squares on a grid whose sides are powers of two. On any other grid we keep that order
        and leave out what lies beyond the edge; with even sides the squares of four stay whole.

    >>> tile_of_node((2, 4), "squares").tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    tiles = np.arange(shape[0] * shape[1])
    if numbering == "row":
        return tiles
    if numbering == "random":
        return np.random.default_rng(seed).permutation(tiles)
    row, column = np.divmod(tiles, shape[1])
    place = np.zeros_like(tiles)
    for bit in range(max(shape).bit_length()):
        place |= (column >> bit & 1) << 2 * bit | (row >> bit & 1) << 2 * bit + 1
    return np.argsort(place)


def sides_of_hops(circuits: Circuits) -> IntArray:
    """Direction in which light left the tile before each hop, `FROM_LASER` at the first of a circuit, int64 (hops,)."""
    sides = np.roll(circuits.hops.astype(np.int64) % 4, 1)
    sides[circuits.hop_offsets[:-1][circuits.num_hops() > 0]] = FROM_LASER
    return sides


def _written(shape: tuple[int, ...]) -> str:
    """The shape as a user writes it: 16x16."""
    return "x".join(map(str, shape))


@register_fabric("lightpath", algorithm="lumorph")
@dataclass(frozen=True, kw_only=True, repr=False)
class Lightpath(Fabric):
    """LIGHTPATH wafers joined to one grid.

    Args:
        shape: rows x columns of tiles.
        lasers: lasers of a tile, and photodiodes, one a wavelength [count].
        waveguides: on each edge in each direction [count].
        laser_rate: of one wavelength [bit/s].
        reconfiguration: of the MZI switches [s].
        latency: software and propagation of one transfer, alpha [s].
        numbering: order of the nodes on the tiles: row, squares or random.
        seed: of the random numbering and of random routes.
        switch_unit: what a tile switches by itself: each wavelength of each waveguide (equation 6), or a waveguide with
            all its wavelengths (section 2.1).
        synchronisation: with the rack's central controller, before every round [s].
        control_hidden: share of it that is hidden behind computation, 0 to 1.
        routing: dimension_order: along the row, then along the column; random: one of the shortest paths; least_overlap:
            the fewest circuits on the most congested edge that can be found (algorithm 2).
        dead_tiles: such as 3+17-19.
        dead_lasers: tile:laser, such as 5:0+6:3-7.
        dead_waveguides: tile-neighbour:count, such as 5-6:2+6-5:40.
        failed: parts that have failed, also of other kinds or in other ways, such as photodiode:5+mzi:3:stuck=4.
    Raises: FabricError: no such shape, or a dead part that does not exist.
    Source: LUMORPH sections 2.1, 2.2, 3 and appendix C.
    Reading: section 2.1 has 16 lasers a tile, section 3 "the eight lasers", the testbed six; 16 by default. Section 3
        joins the boards of 4 x 8 tiles "serially" without saying how; a fibre is an edge like any other, so chains of
        boards are the shapes 32x8 and 4x64.
    """

    shape: Shape = tuple(SHEET["shape"])
    lasers: int = SHEET["lasers"]
    waveguides: int = SHEET["waveguides"]
    laser_rate: Rate = SHEET["laser_rate"]
    reconfiguration: Seconds = SHEET["reconfiguration"]
    latency: Seconds = SHEET["latency"]
    numbering: Numbering = "row"
    seed: int = SHEET["seed"]
    switch_unit: SwitchUnit = "wavelength"
    synchronisation: Seconds = SHEET["synchronisation"]
    control_hidden: float = SHEET["control_hidden"]
    routing: Routing = "dimension_order"
    dead_tiles: str | None = None
    dead_lasers: str | None = None
    dead_waveguides: str | None = None
    failed: str | None = None

    rate_parameter = "laser_rate"
    source = "LUMORPH sections 2.1, 2.2, 3, appendix C"
    drawing = "grid"
    former: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "waveguide_sharing": "switch_unit=wavelength (equation 6) or switch_unit=waveguide (an MZI moves a whole waveguide)"
        }
    )
    about = "A tile sends to several partners concurrently, each on its own lasers, and the tiles between them forward light."

    def __post_init__(self) -> None:
        if len(self.shape) != 2:
            near = _written(near_square(prod(self.shape)))
            raise FabricError(
                f"lightpath: shape={_written(self.shape)} has {len(self.shape)} side(s); a grid has 2, try shape={near}"
            )
        if prod(self.shape) > MOST_TILES:
            raise FabricError(
                f"lightpath: shape={_written(self.shape)} has more than {MOST_TILES:,} tiles; try shape=4096x4096"
            )
        if self.lasers < 1 or self.waveguides < 1:
            raise FabricError(f"lightpath: lasers={self.lasers}, waveguides={self.waveguides}; both are 1 or more")
        if self.laser_rate <= 0 or self.reconfiguration < 0 or self.latency < 0:
            raise FabricError("lightpath: laser_rate must be positive; reconfiguration and latency not negative")
        if self.seed < 0:
            raise FabricError(f"lightpath: seed={self.seed}; it is 0 or more")
        for name in ("dead_tiles", "dead_lasers", "dead_waveguides", "failed"):
            text = getattr(self, name)
            if not isinstance(text, (str, int, type(None))):
                raise FabricError(
                    f"lightpath: {name}={text!r} is not text; write {name}=... as in opticcl list lightpath"
                )
        check_synchronisation("lightpath", self.synchronisation)
        exposed_share("lightpath", self.control_hidden)
        _ = self.damage  # refuses parts that do not exist

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """The squarest grid of that many tiles."""
        return {"shape": near_square(num_nodes)}

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Four by four tiles with three lasers each."""
        return cls(shape=(4, 4), lasers=3), "lumorph:radix=4"

    @cached_property
    def damage(self) -> Damage:
        """Dead tiles, lasers, photodiodes and waveguides."""
        inner = self.inner_edges if self.conditions else np.zeros(0, np.int64)  # a grid without failures is not listed
        return damage_from(self.conditions, self.tile, self.lasers, inner, self.waveguides)

    @cached_property
    def inner_edges(self) -> IntArray:
        """Edges that do not leave the grid."""
        return np.flatnonzero(Grid(*self.grid_shape).width() > 0)

    def inventory(self) -> tuple[PartKind, ...]:
        """Tiles with their lasers and photodiodes, edges with their waveguides and switches; see `damage` for the numbers.

        Switches that are stuck pass on to their edge what comes in on one side: light on its way east, west, south or north
        (settings 0 to 3), or that of the tile's lasers (4). A waveguide that is weak needs a number (switch_unit=waveguide).
        """
        tiles, edges = prod(self.shape), len(self.inner_edges)
        counts = (tiles, tiles * self.lasers, tiles * self.lasers, edges * self.waveguides, edges)
        settings = {"mzi": FROM_LASER + 1}
        return tuple(
            PartKind(kind, count, settings.get(kind, 0), kind != "waveguide" or self.switch_unit == "waveguide")
            for kind, count in zip(KINDS, counts, strict=True)
        )

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Failed parts, however they are written."""
        dead = (self.dead_tiles, self.dead_lasers, self.dead_waveguides)
        if self.failed is None and all(text is None for text in dead):
            return ()
        sizes = self.grid_shape, self.lasers, self.waveguides
        written = written_conditions(*sizes, np.argsort(self.tile), self.inner_edges, *dead)
        return unique_parts([*written, *self._named], "lightpath: failed")

    @property
    def _named(self) -> tuple[Condition, ...]:
        """Those that `failed` names."""
        if self.failed is None:
            return ()
        return parse_conditions(self.failed, self.inventory(), f"lightpath: failed={self.failed}")

    def without(self, conditions: Iterable[Condition]) -> Lightpath:
        """The fabric with further failed parts; ranks are counted without dead tiles.

        Raises: FabricError: no such part, one that has failed already, or no node is left.
        """
        named = unique_parts([*self._named, *conditions], "lightpath: failed")
        return replace(self, failed=conditions_as_text(named))

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Tiles and switches all the way, lasers of the sender, photodiodes of the receiver, waveguides that have a number."""
        owner, hops = circuits.hop_owner(), circuits.hops.astype(np.int64)
        node = np.argsort(self.tile)
        yield PartUse("node", circuits.src.astype(np.int64))
        yield PartUse("node", node[hops // 4 + self.grid.onward[hops % 4]], owner)
        circuit, wavelength = circuits.each_wavelength()
        for kind, ends in (("laser", circuits.src), ("photodiode", circuits.dst)):
            yield PartUse(kind, self.tile[ends[circuit]] * self.lasers + wavelength, circuit)
        yield PartUse("mzi", np.searchsorted(self.inner_edges, hops), owner)
        if self.switch_unit == "waveguide":
            passed = passages(circuits, self.waveguides)
            edge = np.searchsorted(self.inner_edges, passed.edge)
            yield PartUse("waveguide", edge * self.waveguides + passed.waveguide, passed.circuit)

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """Any laser along the row first, then along the column first, whatever has failed; then around dead tiles and edges.

        On any waveguide, where they have numbers.
        """
        ways = self._ways(src, dst)
        if self.switch_unit == "wavelength":
            return options_of_pairs(ways)
        guide = np.tile(np.arange(self.waveguides, dtype=np.int32), len(ways))
        return options_of_pairs(replace(ways.take(np.repeat(np.arange(len(ways)), self.waveguides)), waveguide=guide))

    def _ways(self, src: IntArray, dst: IntArray) -> Circuits:
        """Lasers and paths for pairs of nodes, pair by pair."""
        lasers = np.arange(self.lasers)
        straight = self._straight_ways(np.asarray(src, np.int64), np.asarray(dst, np.int64), lasers)
        if self._detours.whole:
            return straight
        return self._with_detours(straight, src, dst, lasers)

    def _with_detours(self, straight: Circuits, src: IntArray, dst: IntArray, lasers: IntArray) -> Circuits:
        """Further ways around dead tiles and edges, and those whose switches are stuck, pair by pair.

        Args:
            straight: ways along rows and columns.
            src, dst: nodes of the pairs.
            lasers: wavelengths of every way.
        """
        start, stop = (self.tile[np.asarray(end, np.int64)] for end in (src, dst))
        part, reaches = components(self._detours)
        alive = ~np.isin(np.arange(len(self.tile)), self.damage.tiles)
        joined = np.flatnonzero(reaches[part[start], part[stop]] & alive[start] & alive[stop])
        row = np.repeat(joined, len(lasers))
        wavelength = np.tile(lasers, len(joined))
        ends = np.asarray(src)[row], np.asarray(dst)[row]
        around = [
            Circuits.of(row, *ends, 0, wavelength, 1, open_dimension_order(self._detours, start[row], stop[row], first))
            for first in ("row", "column")
        ]
        together = concatenate_circuits([straight, *around])
        return together.take(np.argsort(together.transfer, kind="stable"))

    @cached_property
    def _stuck_edges(self) -> IntArray:
        """Edges whose switches are stuck."""
        stuck = failed_parts(self.conditions, "mzi", "stuck")
        return np.asarray(self.inner_edges[stuck] if len(stuck) else stuck)

    @cached_property
    def _detours(self) -> Grid:
        """Tiles and edges that light can use whatever way it takes: without those whose switches are stuck."""
        if not len(self._stuck_edges):
            return self.grid
        share = np.ones(4 * prod(self.shape)) if self.grid.share is None else self.grid.share.copy()
        share[self._stuck_edges] = 0.0
        return Grid(*self.grid_shape, self.damage.tiles, share)

    def _straight_ways(self, src: IntArray, dst: IntArray, lasers: IntArray) -> Circuits:
        """Each of some lasers along the row and then the column, then along the column first; once where both are the same."""
        columns = self.grid_shape[1]
        start, stop = self.tile[src], self.tile[dst]
        down, right = stop // columns - start // columns, stop % columns - start % columns
        length = np.abs(down) + np.abs(right)
        choice = np.repeat(np.arange(2), len(start))
        first = np.where(choice == 0, np.tile(np.abs(right), 2), np.tile(np.abs(down), 2))
        sideways, upright = np.where(right > 0, EAST, WEST), np.where(down > 0, SOUTH, NORTH)
        hops = np.tile(length, 2)
        offsets = np.concatenate([[0], np.cumsum(hops)])
        way = np.repeat(np.arange(2 * len(start)), hops)
        nth, pair = np.arange(len(way)) - offsets[way], way % max(len(start), 1)
        along_row = (nth < first[way]) == (choice[way] == 0)
        direction = np.where(along_row, sideways[pair], upright[pair])
        done = np.where(nth < first[way], nth, first[way])  # hops of the first side before this one
        rest = nth - done
        onward = self.grid.onward
        one, other = (np.where(choice[way] == k, onward[sideways[pair]], onward[upright[pair]]) for k in (0, 1))
        edge = 4 * (start[pair] + done * one + rest * other) + direction
        paths = Circuits.of(
            np.tile(np.arange(len(start)), 2), np.tile(src, 2), np.tile(dst, 2), 0, 0, 1, (edge, offsets)
        )
        twice = (choice == 1) & np.tile((down == 0) | (right == 0), 2)  # a straight way is the same in both orders
        by_pair = np.lexsort((choice, paths.transfer))
        by_pair = by_pair[~twice[by_pair]]
        each = paths.take(np.repeat(by_pair, len(lasers)))
        return replace(each, wavelength_lo=np.tile(lasers.astype(np.int32), len(by_pair)))

    def part_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Circuits that need a failed part, or more waveguides of an edge than work."""
        if self.damage:
            end = circuits.hops // 4 + self.grid.onward[circuits.hops % 4]
            numbered = self.switch_unit == "waveguide"
            yield from dead_parts_used(self.damage, circuits, self.tile, end, self.waveguides, numbered)
        yield from self._astray(circuits)

    def _astray(self, circuits: Circuits) -> Iterator[Fault]:
        """Circuits that a stuck switch does not pass."""
        if not len(self._stuck_edges):
            return
        stands = np.full(4 * prod(self.shape), -1)
        stuck = [each for each in self.conditions if each.mode == "stuck"]
        stands[self.inner_edges[[each.index for each in stuck]]] = [each.value for each in stuck]
        setting = stands[circuits.hops.astype(np.int64)]
        astray = (setting >= 0) & (setting != sides_of_hops(circuits))
        expected = "light that comes in on the side for which its switches stand"
        yield Fault("part_failed", np.unique(circuits.hop_owner()[astray]), expected)

    @cached_property
    def grid(self) -> Grid:
        """Tiles and edges that light can use."""
        return grid_of(self.grid_shape, self.waveguides, self.damage)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.shape[0], self.shape[1]

    @cached_property
    def tile(self) -> IntArray:
        """Tile of each node, int64 (num_machine_nodes,)."""
        return tile_of_node(self.grid_shape, self.numbering, self.seed)

    @cached_property
    def _alive(self) -> IntArray:
        """Nodes whose tiles are not dead, int32 (num_nodes,)."""
        return np.flatnonzero(~np.isin(self.tile, self.damage.tiles)).astype(np.int32)

    @cached_property
    def numbers(self) -> FabricNumbers:
        """Tiles that are not dead, each with a wavelength a laser; dimensions are rows and columns."""
        return FabricNumbers(
            num_nodes=len(self._alive),
            num_wavelengths=self.lasers,
            lasers_per_port=self.lasers,
            rate_bits_per_s=self.laser_rate,
            reconfiguration_s=self.reconfiguration,
            latency_s=self.latency,
            shortest_control_s=self.synchronisation * (1 - self.control_hidden),
            dimensions=self.shape,
        )

    @property
    def node_of_rank(self) -> IntArray | None:
        """Nodes whose tiles are not dead, None if all are."""
        return self._alive if len(self.damage.tiles) else None

    @property
    def machine_size(self) -> int:
        """All tiles where some are dead, else 0 [count]."""
        return prod(self.shape) if len(self.damage.tiles) else 0

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Lasers and photodiodes of the tiles, waveguides of the edges: counted, or each by its number."""
        tiles = prod(self.shape)
        edges = (
            Resource("waveguide", 4 * tiles, capacity=self.waveguides)
            if self.switch_unit == "wavelength"
            else Resource("waveguide", 4 * tiles * self.waveguides, one_setting=True)
        )
        return Resource("laser", tiles), Resource("photodiode", tiles), edges

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Lasers of the sender, photodiodes of the receiver, a waveguide of every edge on the path."""
        laser, photodiode, waveguide = self.resources
        yield Usage(laser, circuits.src.astype(np.int64))
        yield Usage(photodiode, circuits.dst.astype(np.int64))
        if self.switch_unit == "wavelength":
            yield Usage(waveguide, circuits.hops.astype(np.int64), circuits.hop_owner())
            return
        passed = passages(circuits, self.waveguides)
        setting = passed.before * 5 + passed.after  # of the select at its start and the MZI at its end
        yield Usage(waveguide, passed.edge * self.waveguides + passed.waveguide, passed.circuit, setting)

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Edges go along with their tiles; one whose ends are no neighbours any more has no image."""
        node_on = np.argsort(self.tile)
        image_of = self.tile[nodes[node_on]]  # of tiles
        exists = self.grid.width() > 0
        edges = np.flatnonzero(exists)
        start, way = np.divmod(edges, 4)
        ahead = self.grid.onward[way]
        image = 4 * image_of[start] + way
        goes = (image_of[start + ahead] == image_of[start] + ahead) & exists[image]
        hops = np.full(len(exists), -1)
        hops[edges[goes]] = image[goes]
        move = LightMove(nodes, np.arange(self.ports_per_node), np.arange(self.lasers), hops)
        return None if self.resource_images(move) is None else move

    def resource_images(self, move: LightMove) -> tuple[IntArray, ...] | None:
        """Tiles are identical, and so are edges of a direction: a move of tiles takes an edge along, where its image is one.

        Nothing may have failed, a circuit takes any waveguide of an edge, and wavelengths stay.
        """
        kept = ((move.ports, self.ports_per_node), (move.wavelengths, self.lasers))
        exists = self.grid.width() > 0
        plain = self.switch_unit == "wavelength" and not self.conditions and len(move.hops) == len(exists)
        if not plain or any(not np.array_equal(column, np.arange(count)) for column, count in kept):
            return None
        moved = np.flatnonzero(move.hops >= 0)
        image = move.hops[moved]
        if not (exists[moved] & exists[image] & (moved % 4 == image % 4)).all():
            return None
        node_on = np.argsort(self.tile)
        for ahead in (0, self.grid.onward[moved % 4]):  # where an edge begins and where it ends
            if (self.tile[move.nodes[node_on[moved // 4 + ahead]]] != image // 4 + ahead).any():
                return None
        return move.nodes, move.nodes, move.hops

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Switch of every edge and wavelength, one a waveguide; switch to the photodiode of every tile and wavelength.

        Where a switch moves a whole waveguide: select and MZI of every waveguide, and the switch behind every laser.
        """
        tiles = prod(self.shape)
        if self.switch_unit == "waveguide":
            guides = 4 * tiles * self.waveguides
            return (
                Device("laser_switch", tiles * self.lasers, self.reconfiguration),
                Device("select", guides, self.reconfiguration),
                Device("mzi", guides, self.reconfiguration),
            )
        return (
            Device("mzi", 4 * tiles * self.lasers, self.reconfiguration, pool=self.waveguides),
            Device("mzi_to_tile", tiles * self.lasers, self.reconfiguration),
        )

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Side by which the light comes in, at the switch of every edge on the path and at the receiving tile.

        Where a switch moves a whole waveguide: waveguide of each laser, side of each select and of each MZI.
        """
        if self.switch_unit == "waveguide":
            yield from self._waveguide_settings(circuits)
            return
        owner, hops = circuits.hop_owner(), circuits.hops.astype(np.int64)
        side = sides_of_hops(circuits)
        hop, wavelength = circuits.each_wavelength(owner)
        yield SettingUse("mzi", hops[hop] * self.lasers + wavelength, side[hop], owner[hop])
        circuit, last_wavelength = circuits.each_wavelength()
        last = hops[circuits.hop_offsets[1:] - 1] % 4
        tile = self.tile[circuits.dst].astype(np.int64)
        yield SettingUse("mzi_to_tile", tile[circuit] * self.lasers + last_wavelength, last[circuit], circuit)

    def _waveguide_settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Of the switches behind the lasers, the selects and the MZIs."""
        passed, w = passages(circuits, self.waveguides), self.waveguides
        leads = np.full(len(circuits), -1)
        leads[passed.circuit[passed.first]] = (passed.edge % 4 * w + passed.waveguide)[passed.first]
        circuit, wavelength = circuits.each_wavelength()
        circuit, wavelength = (column[leads[circuit] >= 0] for column in (circuit, wavelength))
        laser = self.tile[circuits.src[circuit]].astype(np.int64) * self.lasers + wavelength
        yield SettingUse("laser_switch", laser, leads[circuit], circuit)
        guide = passed.edge * w + passed.waveguide
        yield SettingUse("select", guide, passed.before, passed.circuit)
        yield SettingUse("mzi", guide, passed.after, passed.circuit)

    @cached_property
    def _wafer(self) -> TileGrid:
        geometry = optics_of("lightpath").geometry
        board = int(geometry["board_rows"]), int(geometry["board_columns"])
        dead, tiles = self.damage, prod(self.shape)
        return TileGrid(
            *self.grid_shape,
            board,
            self.lasers,
            self.waveguides,
            dead.tiles,
            dead.laser_tile * self.lasers + dead.laser,
            lambda: dead.waveguides(tiles, self.waveguides),
            dead.guide,
            self.tile,
            self.laser_rate,
        )

    def netlist(self) -> Netlist:
        """Lasers, tiles or their switches, waveguides of every edge, photodiodes."""
        return (lightpath_netlist if self.switch_unit == "wavelength" else waveguide_netlist)(self._wafer)

    def states(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Outputs of the tiles on every path, for each wavelength, with a waveguide on every edge; or of their switches."""
        yield from (lightpath_states if self.switch_unit == "wavelength" else waveguide_states)(self._wafer, circuits)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Laser of the sender's tile and photodiode of the receiver's, of the wavelength."""
        return lightpath_ends(circuits, self.tile, self.lasers)

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Edges that do not lead from the sender's tile to the receiver's, and circuits without a waveguide."""
        if self._leaves_grid(circuits):
            yield from self._path_faults(circuits)
        if self.switch_unit == "waveguide":
            guide = np.full(len(circuits), -1) if circuits.waveguide is None else circuits.waveguide
            without = np.flatnonzero((guide < 0) | (guide >= self.waveguides))
            yield Fault("waveguide_unassigned", without, f"one waveguide of 0..{self.waveguides - 1} on its whole path")

    def _leaves_grid(self, circuits: Circuits) -> bool:
        from opticcl.fabrics._walks import leaves_grid

        ends = self.tile[circuits.src], self.tile[circuits.dst]
        return bool(leaves_grid(circuits.hops, circuits.hop_offsets, *ends, *self.grid_shape))

    def _path_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Which paths do not lead from tile to tile."""
        rows, columns = self.grid_shape
        owner = circuits.hop_owner()
        start, direction = np.divmod(circuits.hops.astype(np.int64), 4)
        r, c = np.divmod(start, columns)
        leaves = np.choose(direction, [c == columns - 1, c == 0, r == rows - 1, r == 0])
        unknown = np.unique(owner[leaves | (start < 0) | (start >= rows * columns)])
        yield Fault("path_broken", unknown, f"edges between neighbouring tiles of a {rows}x{columns} grid")
        if len(unknown):
            return
        end = start + self.grid.onward[direction]
        broken = circuits.num_hops() == 0
        first, last = circuits.hop_offsets[:-1][~broken], circuits.hop_offsets[1:][~broken] - 1
        astray = (start[first] != self.tile[circuits.src[~broken]]) | (end[last] != self.tile[circuits.dst[~broken]])
        apart = (end[:-1] != start[1:]) | (
            direction[1:] == direction[:-1] ^ 1
        )  # an MZI switch does not send light back
        broken[~broken] = astray
        broken[owner[1:][apart & (owner[1:] == owner[:-1])]] = True
        expected = "edges end to end from the sender's tile to the receiver's, none straight back"
        yield Fault("path_broken", np.flatnonzero(broken), expected)

    @cached_property
    def _reach(self) -> tuple[IntArray, npt.NDArray[np.bool_]] | None:
        """Connected part of the grid of each rank, and which parts reach which; None where all ranks reach all."""
        if self.grid.whole:
            return None
        part, reaches = components(self.grid)
        return None if reaches.all() else (part[self.tile[self._alive]], reaches)

    @property
    def links_all(self) -> bool:
        """Whether dead tiles and waveguides leave every tile within reach of every other."""
        return self._reach is None and not len(self._stuck_edges)

    def wavelength_in_common(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether some laser of a rank works whose light another can receive; arrays that broadcast."""
        if self._wavelengths is None:
            return np.ones(np.broadcast(src, dst).shape, bool)
        lasers, photodiodes = self._wavelengths
        return np.asarray((lasers[src] & photodiodes[dst]).any(axis=-1))

    @cached_property
    def _wavelengths(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None:
        """Lasers and photodiodes of each rank that work, bool (ranks, lasers) each; None if every pair has one in common."""
        tiles = prod(self.shape)
        works = []
        for at, number in (
            (self.damage.laser_tile, self.damage.laser),
            (self.damage.photodiode_tile, self.damage.photodiode),
        ):
            table = np.ones((tiles, self.lasers), bool)
            table[at, number] = False
            works.append(table[self.tile[self._alive]])
        dead = sum(int((~table).sum(axis=1).max()) for table in works)
        return (works[0], works[1]) if dead >= self.lasers else None

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether light can go from one tile to the other."""
        if len(self._stuck_edges):
            return self._joins[src, dst]
        if self._reach is None:
            return super().linked(src, dst)
        part, reaches = self._reach
        joined: npt.NDArray[np.bool_] = reaches[part[src], part[dst]]
        return joined

    @cached_property
    def _joins(self) -> npt.NDArray[np.bool_]:
        """Whether some path from each rank to each passes, bool (ranks, ranks)."""
        n = self.num_nodes
        joins = np.eye(n, dtype=bool)
        receivers = self.machine_nodes(np.arange(n)).astype(np.int64)
        closed = self.grid.width() <= 0
        one = np.zeros(1, np.int64)
        for rank, node in enumerate(receivers.tolist()):
            others = np.flatnonzero(np.arange(n) != rank)
            pairs = np.full(n - 1, node), receivers[others]
            ways = self._with_detours(self._straight_ways(*pairs, one), *pairs, one)
            works = np.ones(len(ways), bool)
            for fault in self._astray(ways):
                works[fault.circuits] = False
            works[ways.hop_owner()[closed[ways.hops]]] = False
            joins[rank, others[np.unique(ways.transfer[works])]] = True
        return joins

    def ring_order(self) -> IntArray:
        """Tile by tile, row by row: no edge of a whole grid carries two circuits of a direction."""
        return np.argsort(self.tile[self._alive])

    def cuts(self, nodes: IntArray) -> Iterator[Cut]:
        """Between two rows, between two columns, and around a tile in a corner: the waveguides that work there."""
        rows, columns = self.grid_shape
        room = self.grid.width().reshape(rows, columns, 4) * (self.waveguides * self.lasers * self.rate_bits_per_s)
        place = np.divmod(self.tile[nodes], columns)
        for first in thresholds(place[0]):
            out, back = room[first - 1, :, SOUTH].sum(), room[first, :, NORTH].sum()
            yield Cut(f"cut above row {first}", place[0] < first, float(out), float(back))
        for first in thresholds(place[1]):
            out, back = room[:, first - 1, EAST].sum(), room[:, first, WEST].sum()
            yield Cut(f"cut left of column {first}", place[1] < first, float(out), float(back))
        for row, column in {(r, c) for r in (0, rows - 1) for c in (0, columns - 1)}:
            inside = (place[0] == row) & (place[1] == column)
            if inside.any() and not inside.all():
                back = sum(
                    room[row + below, column + right, way]
                    for below, right, way in ((0, 1, WEST), (0, -1, EAST), (1, 0, NORTH), (-1, 0, SOUTH))
                    if 0 <= row + below < rows and 0 <= column + right < columns
                )
                yield Cut("edges of a corner tile", inside, float(room[row, column].sum()), float(back))

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """A tile's waveguide each, and fibre where a hop leads to another wafer: wafers stand in racks row by row."""
        (rows, columns), geometry = self.grid_shape, optics_of("lightpath").geometry
        tall, wide = int(geometry["board_rows"]), int(geometry["board_columns"])
        across = -(-columns // wide)
        row, column = np.divmod(np.arange(rows * columns), columns)
        wafer = row // tall * across + column // wide
        rack = wafer // floor.wafers_per_rack
        num_racks = int(rack.max()) + 1
        fibre = np.zeros((rows * columns, 4))
        for way, (down, right) in {EAST: (0, 1), WEST: (0, -1), SOUTH: (1, 0), NORTH: (-1, 0)}.items():
            there = (row + down) % rows * columns + (column + right) % columns  # edges off the grid carry no light
            apart = floor.between_m(num_racks, rack, rack[there])
            length = np.where(rack == rack[there], floor.between_wafers_m, apart)
            fibre[:, way] = np.where(wafer == wafer[there], 0.0, length)
        return Passage(fibre_m=fibre.ravel(), waveguide_m=floor.tile_m)

    def control_plane(self) -> ControlPlane:
        """A central controller a rack."""
        return control_plane("lightpath", "nothing", "messages between all nodes and the controller of the rack")

    def cell_grid(self) -> CellGrid:
        """Tiles; a block is contiguous, so that row-and-column routes stay inside."""
        node_of_tile = np.argsort(self.tile)
        return CellGrid(node_of_tile.reshape(*self.shape, 1), contiguous=True)

    @cached_property
    def light_path(self) -> LightPath:
        """Paths along the edges of the grid."""
        return _light(self._wafer, self.netlist())

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Tiles that light may pass straight ahead from the first tile of a wafer.

        Every fibre between wafers counts; where its loss is unknown, they are those of one wafer that is large enough.
        """
        path = self.light_path
        fibre = values.get("board_fibre.loss") is not None
        everything = np.array([fibre or element.kind != "board_fibre" for element in path.elements])
        chain = chain_of(path, values, everything)
        limits = []
        for name, side, along in (("x", "board_columns", "along a row"), ("y", "board_rows", "along a column")):
            each = {"mzi": 2, f"waveguide_{name}": 1}
            if fibre:
                tiles = int(optics_of("lightpath").geometry[side])
                passed = reach_in_parts(chain, path, each, tiles, "stitch", "board_fibre")
            else:
                passed, along = reach(chain, path, {**each, "stitch": 1}), f"{along} of one wafer"
            limits.append(Limit(f"reach_{name}_tiles", passed, f"reach {along}: {count_in_words(passed, 'tile')}"))
        return tuple(limits)

    def parts(self) -> tuple[Part, ...]:
        """Tiles, and the wafers that they are on."""
        return *super().parts(), Part("wafer", -(-prod(self.shape) // SHEET["tiles_of_a_board"]))

    def coordinates(self, node: int) -> str:
        """Number, row and column of its tile."""
        row, column = divmod(int(self.tile[node]), self.shape[1])
        return f"{node} at (row={row}, column={column})"

    def place_name(self, resource: Resource, index: int) -> str:
        """The waveguides of an edge, or one of them."""
        if self.switch_unit == "wavelength":
            return f"waveguides {self._wafer.edge_name(index)}"
        edge, number = divmod(index, self.waveguides)
        return f"waveguide {number} {self._wafer.edge_name(edge)}"


# --- light --------------------------------------------------------------------------------------------------------------

_ELEMENTS = ("modulator", "mzi", "waveguide_x", "waveguide_y", "stitch", "board_fibre")


def _light(wafer: TileGrid, netlist: Netlist) -> LightPath:
    """Paths along the edges of the grid: a laser's modulator, and a waveguide of every edge with its switches and seam.

    Args:
        wafer: with the edges.
        netlist: of it; a select and an MZI of their own, where it has them, are on every hop.
    """
    rows, columns, (tall, wide) = wafer.rows, wafer.columns, wafer.board
    switches = [name for name in ("select", "mzi") if name in netlist.position]
    sent, *each = (
        sum(
            np.array([float(netlist.groups[netlist.position[part]].loss.get(kind, 0)) for kind in _ELEMENTS])
            for part in parts
        )
        for parts in (("transmitter",), *((name, *switches) for name in wafer.counts()))
    )

    def totals(*hops: npt.ArrayLike) -> Counts:
        """Hops along rows within a board and between boards, and the same along columns, (paths,) each."""
        return sent + np.stack(hops, axis=-1).astype(np.float64) @ np.array(each)

    def shortest(first: IntArray, last: IntArray) -> tuple[IntArray, ...]:
        (above, left), (below, right) = np.divmod(first, columns), np.divmod(last, columns)
        return *_between(left, right, wide), *_between(above, below, tall)

    def least(src: IntArray, dst: IntArray) -> Counts:
        return totals(*shortest(wafer.tile[src], wafer.tile[dst]))

    def counts(circuits: Circuits) -> Counts:
        hops = np.stack(shortest(wafer.tile[circuits.src], wafer.tile[circuits.dst]))  # of any path, each at least once
        longer = np.flatnonzero(circuits.num_hops() != hops.sum(axis=0))
        if len(longer):
            paths = circuits.take(longer)
            kinds = 4 * paths.hop_owner() + wafer.kind(paths.hops)
            hops[:, longer] = np.bincount(kinds, minlength=4 * len(longer)).reshape(-1, 4).T
        return totals(*hops)

    def of_images(circuits: Circuits, moves: Sequence[LightMove]) -> Counts:
        ends = np.stack([circuits.src, circuits.dst])
        assert (counts(circuits) == least(*ends)).all()  # shortest paths, as those of their images are
        for move in moves:
            images = [ends]
            while not np.array_equal(further := move.nodes[images[-1]], ends):
                images.append(further)
            ends = np.concatenate(images, axis=1)
        return least(*ends)

    corner = totals(*shortest(np.array([0]), np.array([rows * columns - 1])))
    typical = totals(*_means(rows, columns, tall, wide))
    names = (f"corner to corner of {rows}x{columns} tiles",)
    return LightPath(
        optics_of("lightpath"), tuple(map(Element, _ELEMENTS)), counts, corner, names, typical, least, of_images
    )


def _between(first: IntArray, last: IntArray, board: int) -> tuple[IntArray, IntArray]:
    """Seams between two places of a line: those within a board and those between boards, int64 (pairs,) each.

    Args:
        first, last: places, int (pairs,).
        board: places of a board [count].
    """
    apart = np.abs(last // board - first // board)
    return np.abs(last - first) - apart, apart


def _means(rows: int, columns: int, tall: int, wide: int) -> tuple[float, float, float, float]:
    """The same, mean over all pairs of different tiles and shortest ways."""
    tiles = rows * columns
    pairs = tiles / max(1, tiles - 1)
    x, between_x = _mean_of_line(columns, wide)
    y, between_y = _mean_of_line(rows, tall)
    return (x - between_x) * pairs, between_x * pairs, (y - between_y) * pairs, between_y * pairs


def _mean_of_line(side: int, board: int) -> tuple[float, float]:
    """Mean over all ordered pairs of places: seams between them, and those of them that part two boards.

    The seam behind place b - 1 parts b from side - b places.

    >>> _mean_of_line(3, 2)
    (0.8888888888888888, 0.4444444444444444)
    """
    behind: IntArray = np.arange(1, side)
    crossed = 2 * behind * (side - behind) / side**2
    return float(crossed.sum()), float(crossed[behind % board == 0].sum())
