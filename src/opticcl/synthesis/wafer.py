"""Optical resources of a job on a grid of tiles: lasers, photodiodes, waveguides, and the routes between its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric, IntArray
from opticcl.routing.grid import Grid
from opticcl.routing.k_shortest import k_shortest
from opticcl.routing.paths import open_dimension_order
from opticcl.routing.reach import components

__all__ = ["MOST_RANKS", "Path", "Wafer", "reversed_path", "wafer_of", "with_all_routes"]

Path = tuple[int, ...]
"""Edges from the sender's tile to the receiver's, as in `opticcl.routing.grid`."""

MOST_RANKS = 256  # routes of all pairs are stored one by one
MOST_ROUTES = 8
MOST_OF_A_PAIR = 16  # routes that a search for a proof may have; beyond, its models are too large


@dataclass(frozen=True, slots=True, eq=False)
class Wafer:
    """Optical resources of a job.

    Args:
        shape: rows and columns of tiles.
        onward: offset from a tile to the next one east, west, south and north, int64 (4,).
        tile: tile of each rank, int64 (ranks,).
        lasers: lasers that work, bool (ranks, wavelengths).
        photodiodes: photodiodes that work, bool (ranks, wavelengths).
        room: waveguides that work on each edge, int64 (4 tiles,); 0 for edges that leave the grid.
        routes: paths that a circuit may take, by (sender, receiver); empty where none exists.
        all_routes: whether these are all paths that pass no tile twice.
    """

    shape: tuple[int, int]
    onward: IntArray
    tile: IntArray
    lasers: npt.NDArray[np.bool_]
    photodiodes: npt.NDArray[np.bool_]
    room: IntArray
    routes: dict[tuple[int, int], tuple[Path, ...]]
    all_routes: bool = False

    @property
    def num_ranks(self) -> int:
        """Ranks of the job [count]."""
        return len(self.tile)

    @property
    def num_wavelengths(self) -> int:
        """Lasers of a tile, including failed ones [count]."""
        return self.lasers.shape[1]

    @property
    def undamaged(self) -> bool:
        """Whether all lasers and photodiodes of the job work."""
        return bool(self.lasers.all() and self.photodiodes.all())

    def capacity(self) -> IntArray:
        """Circuits that each edge carries in one round, int64 (4 tiles,)."""
        return self.room * self.num_wavelengths

    def time_reversed(self) -> Wafer:
        """The same wafer with time and light reversed: senders become receivers, and every path is reversed."""
        opposite = self.reverse_edges()
        routes = {
            (dst, src): tuple(reversed_path(path, opposite) for path in paths)
            for (src, dst), paths in self.routes.items()
        }
        room = np.zeros_like(self.room)
        inside = np.flatnonzero(self.room > 0)
        room[np.array(opposite)[inside]] = self.room[inside]
        return replace(self, lasers=self.photodiodes, photodiodes=self.lasers, room=room, routes=routes)

    def reverse_edges(self) -> list[int]:
        """Number of each edge in the opposite direction; undefined for edges that leave the grid."""
        edge = np.arange(len(self.room))
        turned: list[int] = (4 * (edge // 4 + self.onward[edge % 4]) + (edge % 4 ^ 1)).tolist()
        return turned


def reversed_path(path: Path, opposite: Sequence[int]) -> Path:
    """The path from its end to its start; see `Wafer.reverse_edges`."""
    return tuple(map(opposite.__getitem__, reversed(path)))


def wafer_of(fabric: Fabric, num_routes: int = 2) -> Wafer:
    """The optical resources of a job on LIGHTPATH.

    Args:
        fabric: a lightpath, whole or in part, with or without damage.
        num_routes: paths that each pair may choose from; the first two go along the row and along the column first.
    Raises: UnsupportedError: another fabric, or too many nodes; ParameterError: an invalid number of routes.
    """
    machine = fabric.machine
    if not isinstance(machine, Lightpath):
        raise UnsupportedError(f"synthesize: {fabric.name} is not a grid of tiles; try --fabric lightpath:shape=2x4")
    if fabric.num_nodes > MOST_RANKS:
        raise UnsupportedError(
            f"synthesize: {fabric.num_nodes:,} nodes are more than {MOST_RANKS}; "
            "try a part of them (--job 0-15), or opticcl compile --algorithm lumorph"
        )
    if not 1 <= num_routes <= MOST_ROUTES:
        raise ParameterError(f"synthesize: routes={num_routes} is not 1 to {MOST_ROUTES}; try 2")
    damage, grid = machine.damage, machine.grid
    tile = machine.tile[fabric.machine_nodes(np.arange(fabric.num_nodes))]
    lasers = np.ones((len(tile), machine.lasers), bool)
    for dead_tile, laser in zip(damage.laser_tile, damage.laser, strict=True):
        lasers[tile == dead_tile, laser] = False
    room = np.where(grid.width() > 0, damage.waveguides(grid.num_tiles, machine.waveguides), 0)
    routes = _routes(grid, tile, num_routes)
    return Wafer(
        shape=(grid.rows, grid.columns),
        onward=grid.onward,
        tile=tile,
        lasers=lasers,
        photodiodes=np.ones_like(lasers),
        room=room,
        routes=routes,
        all_routes=num_routes > 2 and all(len(paths) < num_routes for paths in routes.values()),
    )


def with_all_routes(wafer: Wafer, fabric: Fabric) -> Wafer | None:
    """The wafer with all paths that pass no tile twice; None where a pair has more than 16.

    Args:
        wafer: of the fabric.
        fabric: a lightpath, whole or in part.
    """
    grid, routes = fabric.machine_as(Lightpath).grid, dict(wafer.routes)
    farthest_first = sorted((pair for pair in routes if routes[pair]), key=lambda pair: -len(routes[pair][0]))
    for src, dst in farthest_first:
        paths = k_shortest(grid, int(wafer.tile[src]), int(wafer.tile[dst]), MOST_OF_A_PAIR + 1)
        if len(paths) > MOST_OF_A_PAIR:
            return None
        routes[src, dst] = tuple(tuple(path.tolist()) for path in paths)
    return replace(wafer, routes=routes, all_routes=True)


def _routes(grid: Grid, tile: IntArray, num_routes: int) -> dict[tuple[int, int], tuple[Path, ...]]:
    """Row first, column first, then the other shortest paths."""
    src, dst = (column.ravel() for column in np.meshgrid(*[np.arange(len(tile))] * 2, indexing="ij"))
    part, reach = components(grid)
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
