"""Tiles and the edges between them.

Tile (r, c) of R rows and C columns is t = r C + c; its edge in direction d (0 east, 1 west, 2 south, 3 north) is the
directed edge 4 t + d, as on LIGHTPATH. An edge is open or closed; `share` is the part of an edge that works: an edge on which
30 of 40 waveguides work has 0.75. Its load is circuits / share, so four circuits on three quarters of an edge count as 5.33
on a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray

__all__ = ["EAST", "NORTH", "SOUTH", "WEST", "Grid", "Routes", "edge_loads", "max_overlap"]

EAST, WEST, SOUTH, NORTH = range(4)  # the opposite of d is d ^ 1


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A grid of tiles.

    Args:
        rows, columns: sides [tiles].
        shut: tiles that no path may pass, int64 (k,).
        share: part of each edge that works, float64 (4 rows columns,), 0 to 1; None: all of it.
    """

    rows: int
    columns: int
    shut: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    share: npt.NDArray[np.float64] | None = None

    @property
    def num_tiles(self) -> int:
        """Tiles, including closed ones [count]."""
        return self.rows * self.columns

    @property
    def whole(self) -> bool:
        """Whether no tile is closed and all edges work fully."""
        return not len(self.shut) and self.share is None

    @property
    def onward(self) -> IntArray:
        """Offset from a tile to the next one east, west, south and north, int64 (4,)."""
        return np.array([1, -1, self.columns, -self.columns])

    def width(self) -> npt.NDArray[np.float64]:
        """Part of each edge that works, float64 (4 rows columns,); 0 for edges that leave the grid or enter a closed tile."""
        rows, columns = self.rows, self.columns
        width = np.ones((rows, columns, 4)) if self.share is None else self.share.reshape(rows, columns, 4).copy()
        width[:, -1, EAST] = width[:, 0, WEST] = width[-1, :, SOUTH] = width[0, :, NORTH] = 0.0
        flat = width.reshape(-1)
        if len(self.shut):
            leaving = 4 * np.asarray(self.shut)[:, None] + np.arange(4)
            flat[leaving] = 0.0
            row, column = np.divmod(np.asarray(self.shut), columns)
            for d, (down, right) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
                inside = (row - down >= 0) & (row - down < rows) & (column - right >= 0) & (column - right < columns)
                flat[4 * (np.asarray(self.shut) - self.onward[d])[inside] + d] = 0.0
        return flat


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """Paths, and a proof of their quality.

    Args:
        hops: edges of all paths end to end, int32.
        offsets: path i is hops[offsets[i]:offsets[i + 1]], int64 (n + 1,).
        max_overlap: load of the most congested edge: the most circuits on one, where all edges work fully.
        bound: lower bound on the overlap of any routes.
        certificate: proof of the bound: "cut" (a row or column cut), "prices" (prices of edges), "linear programme" (prices
            of its optimum), or "none".
        prices: of the edges, float64 (4 rows columns,), not negative. The cost of the cheapest paths of all pairs, over the
            cost of all edges (each times its share), is a bound, rounded up on whole grids; `bounds.price_bound` computes it.
    """

    hops: IntArray
    offsets: IntArray
    max_overlap: float
    bound: float
    certificate: str
    prices: npt.NDArray[np.float64] | None = None

    @property
    def optimal(self) -> bool:
        """Whether the overlap is proven minimal."""
        return self.max_overlap <= self.bound + 1e-9


def edge_loads(grid: Grid, hops: IntArray) -> IntArray:
    """Circuits on each edge, int64 (4 rows columns,)."""
    return np.bincount(hops, minlength=4 * grid.num_tiles)


def max_overlap(grid: Grid, hops: IntArray) -> float:
    """Load of the most congested edge, inf if a path takes a closed one."""
    load = edge_loads(grid, hops)
    if grid.whole:
        return float(load.max(initial=0))
    width = grid.width()
    used = load > 0
    with np.errstate(divide="ignore"):
        return float((load[used] / width[used]).max(initial=0.0))
