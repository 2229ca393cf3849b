"""What a job may light on a grid of tiles: lasers, photodiodes, waveguides, and the routes between its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabric.lightpath import damage_in, tile_of_node
from opticcl.ir import Fabric, IntArray
from opticcl.routing.grid import Grid
from opticcl.routing.k_shortest import k_shortest
from opticcl.routing.paths import open_dimension_order
from opticcl.routing.reach import parts

__all__ = ["MOST_RANKS", "Path", "Wafer", "wafer_of", "walked_back"]

Path = tuple[int, ...]
"""Edges from the sender's tile to the receiver's, as in `opticcl.routing.grid`."""

MOST_RANKS = 256  # all pairs have routes here, one by one
MOST_ROUTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Wafer:
    """The light that a job has.

    Args:
        shape: rows and columns of tiles.
        onward: from a tile to the next one east, west, south and north, int64 (4,).
        tile: of each rank, int64 (ranks,).
        sends: lasers that work, bool (ranks, wavelengths).
        hears: photodiodes that work, bool (ranks, wavelengths).
        room: waveguides that work on each edge, int64 (4 tiles,); 0 where it leads nowhere.
        side_by_side: whether a waveguide carries one circuit on each wavelength, or one in all.
        routes: paths that a circuit may take, by (sender, receiver); none where no light gets through.
    """

    shape: tuple[int, int]
    onward: IntArray
    tile: IntArray
    sends: npt.NDArray[np.bool_]
    hears: npt.NDArray[np.bool_]
    room: IntArray
    side_by_side: bool
    routes: dict[tuple[int, int], tuple[Path, ...]]

    @property
    def num_ranks(self) -> int:
        """Ranks of the job [count]."""
        return len(self.tile)

    @property
    def num_wavelengths(self) -> int:
        """Lasers of a tile, dead ones included [count]."""
        return self.sends.shape[1]

    @property
    def unhurt(self) -> bool:
        """Whether all lasers and photodiodes of the job work, so that one is as good as another."""
        return bool(self.sends.all() and self.hears.all())

    def capacity(self) -> IntArray:
        """Circuits that each edge carries at once, int64 (4 tiles,)."""
        return self.room * (self.num_wavelengths if self.side_by_side else 1)

    def backwards(self) -> Wafer:
        """The same wafer with time and light turned round: what arrived is sent, and every path is walked back."""
        opposite = self.opposite()
        routes = {
            (dst, src): tuple(walked_back(path, opposite) for path in paths)
            for (src, dst), paths in self.routes.items()
        }
        room = np.zeros_like(self.room)
        inside = np.flatnonzero(self.room > 0)
        room[np.array(opposite)[inside]] = self.room[inside]
        return replace(self, sends=self.hears, hears=self.sends, room=room, routes=routes)

    def opposite(self) -> list[int]:
        """Each edge's number the other way round; of edges that lead nowhere it means nothing."""
        edge = np.arange(len(self.room))
        turned: list[int] = (4 * (edge // 4 + self.onward[edge % 4]) + (edge % 4 ^ 1)).tolist()
        return turned


def walked_back(path: Path, opposite: Sequence[int]) -> Path:
    """The path from its end to its start; see `Wafer.opposite`."""
    return tuple(map(opposite.__getitem__, reversed(path)))


def wafer_of(fabric: Fabric, num_routes: int = 2) -> Wafer:
    """The light of a job on LIGHTPATH.

    Args:
        fabric: a lightpath, whole or in part, with or without damage.
        num_routes: paths that each pair may choose from; the first two go along the row and along the column first.
    Raises: UnsupportedError: another fabric, or too many nodes; ParameterError: no such number of routes.
    """
    if fabric.name != "lightpath":
        raise UnsupportedError(f"synthesize: {fabric.name} has no grid of tiles; try --fabric lightpath:shape=2x4")
    if fabric.num_nodes > MOST_RANKS:
        raise UnsupportedError(
            f"synthesize: {fabric.num_nodes:,} nodes are more than {MOST_RANKS}; "
            "try a part of them (--job 0-15), or opticcl compile --algorithm lumorph"
        )
    if not 1 <= num_routes <= MOST_ROUTES:
        raise ParameterError(f"synthesize: routes={num_routes} is not 1 to {MOST_ROUTES}; try 2")
    p = fabric.parameters
    damage, grid = damage_in(p)
    ranks = np.arange(fabric.num_nodes)
    tile = tile_of_node(p["shape"], p["numbering"], p["seed"])[fabric.machine_nodes(ranks)]
    sends = np.ones((len(tile), p["lasers"]), bool)
    for dead_tile, laser in zip(damage.laser_tile, damage.laser, strict=True):
        sends[tile == dead_tile, laser] = False
    room = np.where(grid.width() > 0, damage.waveguides(grid.num_tiles, p["waveguides"]), 0)
    return Wafer(
        shape=(grid.rows, grid.columns),
        onward=grid.onward,
        tile=tile,
        sends=sends,
        hears=np.ones_like(sends),
        room=room,
        side_by_side=p["waveguide_sharing"] == "wavelength",
        routes=_routes(grid, tile, num_routes),
    )


def _routes(grid: Grid, tile: IntArray, num_routes: int) -> dict[tuple[int, int], tuple[Path, ...]]:
    """Row first, column first, then the shortest others."""
    src, dst = (column.ravel() for column in np.meshgrid(*[np.arange(len(tile))] * 2, indexing="ij"))
    part, reach = parts(grid)
    joined = (src != dst) & reach[part[tile[src]], part[tile[dst]]]
    routes: dict[tuple[int, int], tuple[Path, ...]] = {
        (int(s), int(d)): () for s, d in zip(src[src != dst], dst[src != dst], strict=True)
    }
    src, dst = src[joined], dst[joined]
    for first in ("row", "column")[:num_routes]:
        hops, ends = open_dimension_order(grid, tile[src], tile[dst], "row" if first == "row" else "column")
        for i, pair in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            path = tuple(hops[ends[i] : ends[i + 1]].tolist())
            if path not in routes[pair]:
                routes[pair] += (path,)
    if num_routes > 2:
        for (s, d), known in routes.items():
            more = k_shortest(grid, int(tile[s]), int(tile[d]), num_routes) if known else []
            found = dict.fromkeys([*known, *(tuple(path.tolist()) for path in more)])
            routes[s, d] = tuple(found)[:num_routes]
    return routes
