"""Failed tiles, lasers and waveguides of a LIGHTPATH grid, written as text and joined by +.

    dead_tiles       3+17-19        tiles 3, 17, 18 and 19: no GPU, and no light through them
    dead_lasers      5:0+6:3-7      laser 0 of tile 5, lasers 3 to 7 of tile 6
    dead_waveguides  5-6:2+6-5:40   two waveguides from tile 5 to tile 6, forty back

Tile (r, c) of R x C tiles has number r C + c. What remains of an edge is its waveguides less the dead ones.

They are another way to write conditions of `opticcl.ir.occupied`, whose parts are

    node         n             its tile
    laser        t L + k       laser k of tile t; a photodiode likewise
    waveguide    e W + i       waveguide i of the e-th edge, of those that do not leave the grid, in the order of their numbers
    mzi          e             the switches at that edge: none of its waveguides carries light
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from opticcl.errors import FabricError
from opticcl.ir import Circuits, Condition, Fault, IntArray
from opticcl.ir.occupied import failed_parts
from opticcl.pairs import distinct
from opticcl.routing.grid import Grid

__all__ = ["KINDS", "Damage", "damage_from", "dead_parts_used", "grid_of", "written_conditions"]

MOST_LISTED = 1 << 20
KINDS = ("node", "laser", "photodiode", "waveguide", "mzi")
DIRECTIONS = ("east", "west", "south", "north")


@dataclass(frozen=True, slots=True, eq=False)
class Damage:
    """Failed parts.

    Args:
        tiles: dead tiles, ascending, int64 (t,).
        laser_tile, laser: dead lasers of tiles, int64 (l,) each.
        edge: edges with dead waveguides, ascending, int64 (e,).
        dead: dead waveguides on each of them, int64 (e,) [count].
        photodiode_tile, photodiode: dead photodiodes of tiles, int64 (p,) each.
        guide: dead waveguides by number, edge x waveguides + waveguide, ascending, int64 (w,); the first of an edge where
            only their number is known.
    """

    tiles: IntArray
    laser_tile: IntArray
    laser: IntArray
    edge: IntArray
    dead: IntArray
    photodiode_tile: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    photodiode: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    guide: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def __bool__(self) -> bool:
        return bool(len(self.tiles) or self.dark or len(self.edge))

    @property
    def dark(self) -> bool:
        """Whether lasers or photodiodes are dead."""
        return bool(len(self.laser) or len(self.photodiode))

    def waveguides(self, num_tiles: int, waveguides: int) -> IntArray:
        """Waveguides that work on each edge, int64 (4 num_tiles,)."""
        alive = np.full(4 * num_tiles, waveguides)
        alive[self.edge] -= self.dead
        return alive


def grid_of(shape: tuple[int, int], waveguides: int, damage: Damage) -> Grid:
    """The tiles and edges that light can take.

    Args:
        shape: rows and columns.
        waveguides: on each edge in each direction [count].
        damage: dead parts.
    """
    share = damage.waveguides(shape[0] * shape[1], waveguides) / waveguides if len(damage.edge) else None
    return Grid(*shape, damage.tiles, share)


def written_conditions(
    shape: tuple[int, int],
    lasers: int,
    waveguides: int,
    node: IntArray,
    inner: IntArray,
    dead_tiles: str | None,
    dead_lasers: str | None,
    dead_waveguides: str | None,
) -> list[Condition]:
    """The conditions that the texts describe; of dead waveguides without a number the first ones of their edge.

    Args:
        shape: rows and columns.
        lasers: of a tile [count].
        waveguides: on each edge in each direction [count].
        node: of each tile.
        inner: edges that do not leave the grid, ascending.
        dead_tiles, dead_lasers, dead_waveguides: as the module docstring writes them; None for none.
    Raises: FabricError: a text of another form, something that is not there, or dead twice.
    """
    num_tiles = shape[0] * shape[1]
    tiles: list[int] = []
    for part, numbers in _items("dead_tiles", dead_tiles, r"([0-9]+)(?:-([0-9]+))?", "3+17-19"):
        tiles += _range("dead_tiles", part, "tile", numbers[0], numbers[1], num_tiles)
    dark: list[int] = []
    for part, (tile, low, high) in _items("dead_lasers", dead_lasers, r"([0-9]+):([0-9]+)(?:-([0-9]+))?", "5:0+6:3-7"):
        _range("dead_lasers", part, "tile", tile, "", num_tiles)
        dark += [int(tile) * lasers + k for k in _range("dead_lasers", part, "laser", low, high, lasers)]
    edges: list[int] = []
    guides: list[int] = []
    for part, (a, b, count) in _items(
        "dead_waveguides", dead_waveguides, r"([0-9]+)-([0-9]+):([0-9]+)", "5-6:2+6-5:40"
    ):
        start, stop = (_range("dead_waveguides", part, "tile", t, "", num_tiles)[0] for t in (a, b))
        if not 0 < int(count) <= waveguides:
            raise FabricError(
                f"lightpath: dead_waveguides={part}: there are {waveguides} on an edge; try 1 to {waveguides}"
            )
        edges.append(_edge(part, start, stop, shape[1]))
        first = int(np.searchsorted(inner, edges[-1])) * waveguides
        guides += range(first, first + int(count))
    for name, indices in (("dead_tiles", tiles), ("dead_lasers", dark), ("dead_waveguides", edges)):
        if len(set(indices)) < len(indices):
            raise FabricError(f"lightpath: {name} names something twice; write each once")
    if len(tiles) == num_tiles:
        raise FabricError(f"lightpath: dead_tiles={dead_tiles} leaves no tile of {num_tiles}; leave at least one")
    parts = (("node", node[tiles].tolist()), ("laser", dark), ("waveguide", guides))
    return sorted(Condition(kind, index) for kind, indices in parts for index in indices)


def damage_from(
    conditions: Iterable[Condition], tile: IntArray, lasers: int, inner: IntArray, waveguides: int
) -> Damage:
    """The dead parts that conditions name.

    Args:
        conditions: dead parts, each once.
        tile: of each node.
        lasers: of a tile [count].
        inner: edges that do not leave the grid, ascending.
        waveguides: on each edge [count].
    Raises: FabricError: no tile is left.
    """
    listed = list(conditions)
    parts = {kind: failed_parts(listed, kind) for kind in KINDS}
    if len(parts["node"]) == len(tile):
        raise FabricError("lightpath: all nodes are dead; leave at least one")
    sending, receiving = parts["laser"], parts["photodiode"]
    named = inner[parts["waveguide"] // waveguides] * waveguides + parts["waveguide"] % waveguides
    closed = inner[parts["mzi"]][:, None] * waveguides + np.arange(waveguides)
    guide = distinct(np.concatenate([named, closed.ravel()]).astype(np.int64))
    edge, dead = np.unique(guide // waveguides, return_counts=True)
    return Damage(
        np.sort(tile[parts["node"]]),
        sending // lasers,
        sending % lasers,
        edge,
        dead,
        receiving // lasers,
        receiving % lasers,
        guide,
    )


def _items(name: str, text: str | None, form: str, example: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each part of a text, with the numbers that the form picks out, "" for one that is not written.

    Raises: FabricError: a part of another form.
    """
    for part in str(text).split("+") if text is not None else ():
        match = re.fullmatch(form, part.strip(), re.ASCII)
        if match is None:
            raise FabricError(f"lightpath: {name}={text}: {part.strip()!r} is not of the form; write {name}={example}")
        yield part.strip(), match.groups("")


def _range(name: str, part: str, kind: str, low: str, high: str, count: int) -> range:
    """Numbers low to high, "" for low alone, all below `count`.

    Raises: FabricError: they are not.
    """
    first = int(low)
    last = int(high or low)
    if last < first or last >= count:
        raise FabricError(f"lightpath: {name}={part}: {kind}s are 0 to {count - 1}, ranges go upwards")
    if last - first >= MOST_LISTED:
        raise FabricError(f"lightpath: {name}={part}: more than {MOST_LISTED:,} {kind}s; try fewer")
    return range(first, last + 1)


def _edge(part: str, start: int, stop: int, columns: int) -> int:
    """The edge from a tile to a neighbour.

    Raises: FabricError: they are no neighbours.
    """
    ways = {1: 0, -1: 1, columns: 2, -columns: 3}  # of a single column the last two: its neighbours are above and below
    way = ways.get(stop - start)
    if way is None or (way < 2 and start // columns != stop // columns):
        raise FabricError(f"lightpath: dead_waveguides={part}: tiles {start} and {stop} are not neighbours")
    return 4 * start + way


def dead_parts_used(
    damage: Damage, circuits: Circuits, tile: IntArray, end: IntArray, waveguides: int, numbered: bool
) -> Iterator[Fault]:
    """Circuits that need a failed part.

    Args:
        tile: of each node.
        end: tile that each hop leads to, int64 (hops,).
        waveguides: on a whole edge [count].
        numbered: whether circuits have one waveguide on their whole path; else each takes any that is free on an edge.
    """
    owner, hops = circuits.hop_owner(), circuits.hops.astype(np.int64)
    passed = np.isin(hops // 4, damage.tiles) | np.isin(end, damage.tiles)
    yield Fault("part_failed", np.unique(owner[passed]), f"no light through tiles {_listed(damage.tiles)}")

    step, lo, n = circuits.wavelength_step, circuits.wavelength_lo, circuits.wavelength_n
    for kind, ends, tiles, numbers in (
        ("lasers", circuits.src, damage.laser_tile, damage.laser),
        ("photodiodes", circuits.dst, damage.photodiode_tile, damage.photodiode),
    ):
        dark = np.zeros(len(circuits), bool)
        for at, number in zip(tiles, numbers, strict=True):
            behind = number - lo
            dark |= (tile[ends] == at) & (behind >= 0) & (behind % step == 0) & (behind // step < n)
        pairs = [f"{t}:{k}" for t, k in zip(tiles, numbers, strict=True)]
        yield Fault("part_failed", np.flatnonzero(dark), f"no light from {kind} {_listed(pairs)}")

    if numbered:
        if circuits.waveguide is not None and len(damage.guide):
            mine = hops * waveguides + circuits.waveguide[owner]
            names = [
                f"{g % waveguides} {DIRECTIONS[g // waveguides % 4]} of tile {g // waveguides // 4}"
                for g in damage.guide[:9]
            ]
            yield Fault(
                "part_failed",
                np.unique(owner[np.isin(mine, damage.guide)]),
                f"no light through waveguide {_listed(names)}",
            )
        return
    for edge, dead in zip(damage.edge, damage.dead, strict=True):
        rows = owner[hops == edge]
        wavelengths = circuits.each_wavelength(rows)[1]
        most = int(np.bincount(wavelengths).max(initial=0))
        expected = f"at most {waveguides - dead} circuit(s) of a wavelength {DIRECTIONS[edge % 4]} of tile {edge // 4}"
        yield Fault("part_failed", np.unique(rows) if most > waveguides - dead else rows[:0], expected)


def _listed(things: Sequence[object] | IntArray) -> str:
    return ", ".join(map(str, things[:8])) + (", ..." if len(things) > 8 else "")
