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
3 north) is the directed edge 4 t + d. A hop is such an edge. Laser k of a tile has wavelength k. A waveguide carries
one signal of a wavelength, so an edge carries `waveguides` circuits of each wavelength; the figures of the paper count
circuits instead, as if each had a waveguide of its own (waveguide_sharing=circuit).

Tiles, lasers and waveguides may be dead (see `_damage` for how they are written). A dead tile has no GPU and lets no light
through: its node is in no job. Nodes keep their numbers, ranks are counted without the dead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import isqrt, prod
from typing import Any, Literal

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._control import every_round
from opticcl.fabric._damage import Damage, damage_of, dead_parts_used, grid_of
from opticcl.fabric._light_lightpath import lightpath_light
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST, Grid
from opticcl.units import Rate, Seconds, Shape

__all__ = ["EAST", "NORTH", "SOUTH", "WEST", "damage_in", "lightpath", "near_square", "tile_of_node"]

SHEET = datasheet("lightpath")
MOST_TILES = 1 << 24  # edges are numbered with 32 bits, and nobody builds so many

Numbering = Literal["row", "squares", "random"]
WaveguideSharing = Literal["wavelength", "circuit"]
Routing = Literal["dimension_order", "random", "least_overlap"]


def near_square(num_nodes: int) -> tuple[int, int]:
    """Rows and columns of the squarest grid of exactly that many tiles.

    >>> near_square(256), near_square(32), near_square(7)
    ((16, 16), (4, 8), (1, 7))
    """
    rows = next(r for r in range(isqrt(num_nodes), 0, -1) if num_nodes % r == 0)
    return rows, num_nodes // rows


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: the squarest grid."""
    return {"shape": near_square(num_nodes)}


def tile_of_node(shape: tuple[int, int], numbering: str, seed: int = 0) -> IntArray:
    """Where each node sits: the tile of node n, int64 (num_nodes,).

    Args:
        shape: rows and columns.
        numbering: row (node n on tile n), squares (squares of four, then 8-tuples, ...: the bits of row and column
            interleaved) or random (a permutation by `seed`).
    Reading: section 3.2 speaks of squares on a grid whose sides are powers of two. On any other grid we keep that order
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


def _written(shape: tuple[int, ...]) -> str:
    """The shape as a user writes it: 16x16."""
    return "x".join(map(str, shape))


@register_fabric("lightpath", at_scale, rate="laser_rate", own="lumorph")
def lightpath(
    *,
    shape: Shape = tuple(SHEET["shape"]),
    lasers: int = SHEET["lasers"],
    waveguides: int = SHEET["waveguides"],
    laser_rate: Rate = SHEET["laser_rate"],
    reconfiguration: Seconds = SHEET["reconfiguration"],
    latency: Seconds = SHEET["latency"],
    numbering: Numbering = "row",
    seed: int = SHEET["seed"],
    waveguide_sharing: WaveguideSharing = "wavelength",
    synchronisation: Seconds = SHEET["synchronisation"],
    control_hidden: float = SHEET["control_hidden"],
    routing: Routing = "dimension_order",
    dead_tiles: str | None = None,
    dead_lasers: str | None = None,
    dead_waveguides: str | None = None,
) -> Fabric:
    """LIGHTPATH wafers joined to one grid.

    Args:
        shape: rows x columns of tiles.
        lasers: lasers of a tile, and photodiodes, one a wavelength [count].
        waveguides: on each edge in each direction [count].
        laser_rate: of one wavelength [bit/s].
        reconfiguration: of the MZI switches [s].
        latency: software and propagation of one transfer, alpha [s].
        numbering: which node sits on which tile: row, squares or random.
        seed: of the random numbering and of routes found by chance.
        waveguide_sharing: wavelength: a waveguide carries one circuit on each wavelength (equation 6); circuit: one
            circuit in all, as figures 5 and 6 count.
        synchronisation: with the rack's central controller, before every round [s].
        control_hidden: share of it that hides behind computing, 0 to 1.
        routing: dimension_order: along the row, then along the column; random: one of the shortest paths; least_overlap:
            as few circuits on the fullest edge as can be found (algorithm 2).
        dead_tiles: such as 3+17-19.
        dead_lasers: tile:laser, such as 5:0+6:3-7.
        dead_waveguides: tile-neighbour:count, such as 5-6:2+6-5:40.
    Raises: FabricError: no such shape, or something dead that is not there.
    Source: LUMORPH sections 2.1, 2.2, 3 and appendix C.
    Reading: section 2.1 has 16 lasers a tile, section 3 "the eight lasers", the testbed six; 16 by default. Section 3
        joins the boards of 4 x 8 tiles "serially" without saying how; a fibre is an edge like any other, so chains of
        boards are the shapes 32x8 and 4x64.
    """
    if len(shape) != 2:
        near = _written(near_square(prod(shape)))
        raise FabricError(
            f"lightpath: shape={_written(shape)} has {len(shape)} side(s); a grid has 2, try shape={near}"
        )
    if prod(shape) > MOST_TILES:
        raise FabricError(f"lightpath: shape={_written(shape)} has more than {MOST_TILES:,} tiles; try shape=4096x4096")
    if lasers < 1 or waveguides < 1:
        raise FabricError(f"lightpath: lasers={lasers}, waveguides={waveguides}; both are 1 or more")
    if laser_rate <= 0 or reconfiguration < 0 or latency < 0:
        raise FabricError("lightpath: laser_rate must be positive; reconfiguration and latency not negative")
    if seed < 0:
        raise FabricError(f"lightpath: seed={seed}; it is 0 or more")

    rows, columns = shape
    num_nodes = rows * columns
    tile = tile_of_node((rows, columns), numbering, seed)
    for name, text in (("dead_tiles", dead_tiles), ("dead_lasers", dead_lasers), ("dead_waveguides", dead_waveguides)):
        if not isinstance(text, (str, int, type(None))):
            raise FabricError(f"lightpath: {name}={text!r} is no text; write {name}=... as in opticcl list lightpath")
    damage, grid = _damage_in((rows, columns), lasers, waveguides, dead_tiles, dead_lasers, dead_waveguides)
    laser = Resource("laser", num_nodes)
    photodiode = Resource("photodiode", num_nodes)
    side_by_side = waveguide_sharing == "wavelength"
    waveguide = Resource("waveguide", 4 * num_nodes, capacity=waveguides, per_wavelength=side_by_side)
    onward = grid.onward
    alive = np.flatnonzero(~np.isin(tile, damage.tiles)).astype(np.int32)  # nodes, by number

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Lasers of the sender, photodiodes of the receiver, a waveguide of every edge on the way."""
        yield Usage(laser, circuits.src.astype(np.int64))
        yield Usage(photodiode, circuits.dst.astype(np.int64))
        yield Usage(waveguide, circuits.hops.astype(np.int64), circuits.hop_owner())

    def faults(circuits: Circuits) -> Iterator[Fault]:
        owner = circuits.hop_owner()
        start, direction = np.divmod(circuits.hops.astype(np.int64), 4)
        r, c = np.divmod(start, columns)
        leaves = np.choose(direction, [c == columns - 1, c == 0, r == rows - 1, r == 0])
        unknown = np.unique(owner[leaves | (start < 0) | (start >= num_nodes)])
        yield Fault("path_broken", unknown, f"edges between neighbouring tiles of a {rows}x{columns} grid")
        if len(unknown):
            return
        end = start + onward[direction]
        broken = circuits.num_hops() == 0
        first, last = circuits.hop_offsets[:-1][~broken], circuits.hop_offsets[1:][~broken] - 1
        astray = (start[first] != tile[circuits.src[~broken]]) | (end[last] != tile[circuits.dst[~broken]])
        apart = (end[:-1] != start[1:]) | (direction[1:] == direction[:-1] ^ 1)  # the MZI switch knows no way back
        broken[~broken] = astray
        broken[owner[1:][apart & (owner[1:] == owner[:-1])]] = True
        expected = "edges end to end from the sender's tile to the receiver's, none straight back"
        yield Fault("path_broken", np.flatnonzero(broken), expected)
        if damage:
            yield from dead_parts_used(damage, circuits, tile, end, waveguides, side_by_side)

    def coordinates(node: int) -> str:
        return f"{node} at (row={tile[node] // columns}, column={tile[node] % columns})"

    def tile_order() -> IntArray:
        """Tile by tile, row by row: no edge of a whole grid carries two circuits of a direction."""
        return np.argsort(tile[alive])

    return Fabric(
        name="lightpath",
        num_nodes=len(alive),
        num_wavelengths=lasers,
        ports_per_node=1,
        lasers_per_port=lasers,
        rate_bits_per_s=laser_rate,
        reconfiguration_s=reconfiguration,
        latency_s=latency,
        control_s=every_round("lightpath", synchronisation, control_hidden),
        resources=(laser, photodiode, waveguide),
        usage=usage,
        faults=faults,
        **_joined(grid, tile[alive]),
        nodes=alive if len(damage.tiles) else None,
        machine_size=num_nodes if len(damage.tiles) else 0,
        ring_order=tile_order,
        coordinates=coordinates,
        source="LUMORPH sections 2.1, 2.2, 3, appendix C",
        light_path=lightpath_light(rows, columns),
        parts=(
            Part("integrated_tile", num_nodes, ports=lasers, rate_bits_per_s=laser_rate),
            Part("wafer", -(-num_nodes // SHEET["tiles_of_a_board"])),
        ),
    )


def damage_in(parameters: Mapping[str, Any]) -> tuple[Damage, Grid]:
    """What is dead on a fabric of these parameters, and the tiles and edges that light can take."""
    names = ("shape", "lasers", "waveguides", "dead_tiles", "dead_lasers", "dead_waveguides")
    return _damage_in(*(parameters[name] for name in names))


@lru_cache(maxsize=16)
def _damage_in(
    shape: tuple[int, int],
    lasers: int,
    waveguides: int,
    dead_tiles: str | None,
    dead_lasers: str | None,
    dead_waveguides: str | None,
) -> tuple[Damage, Grid]:
    damage = damage_of(shape, lasers, waveguides, dead_tiles, dead_lasers, dead_waveguides)
    return damage, grid_of(shape, waveguides, damage)


def _joined(grid: Grid, tile: IntArray) -> dict[str, Any]:
    """Which ranks light can go between, as an argument of `Fabric`; nothing where it can go everywhere.

    Args: tile: of each rank.
    """
    if grid.whole:
        return {}
    from opticcl.routing.reach import parts

    part, reach = parts(grid)
    if reach.all():
        return {}
    part_of = part[tile]
    return {"linked": lambda src, dst: reach[part_of[src], part_of[dst]]}
