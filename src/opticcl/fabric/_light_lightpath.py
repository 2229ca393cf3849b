r"""What LIGHTPATH's light passes: from tile to tile, a waveguide, two switches, and the seam between the tiles.

::

    laser -> modulator -> [1x3] ==seam== [1x3] -> [1x3] ==seam== [1x3] -> ... -> photodiode
                                 one hop                  one hop
             a hop along a row is a tile wide, one along a column a tile high; from wafer to wafer a fibre in place of the seam

Source: LUMORPH sections 2.1, 2.2, 7, figures 1, 2.
Reading: 32 tiles on 200 x 200 mm drawn as 4 rows of 8 are 2.5 cm wide and 5 cm high. A circuit enters a tile by one of
its four switches and leaves by another, so a hop has two. Grids of more than 4 x 8 tiles are wafers side by side. Crossings
of waveguides on a tile are called low-loss, without number or figure, and are left out.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits, IntArray
from opticcl.physics.light import Counts, Element, LightPath
from opticcl.physics.optics import geometry

__all__ = ["lightpath_light"]

_ELEMENTS = ("modulator", "mzi", "waveguide_x", "waveguide_y", "stitch", "board_fibre")


def lightpath_light(rows: int, columns: int) -> LightPath:
    """Paths along the edges of the grid."""
    tall, wide = (int(geometry("lightpath", side)) for side in ("board_rows", "board_columns"))

    def totals(along_x: Counts, along_y: Counts, between_boards: Counts) -> Counts:
        hops = along_x + along_y
        return np.stack(
            [np.ones_like(hops), 2 * hops, along_x, along_y, hops - between_boards, between_boards], axis=-1
        )

    def counts(circuits: Circuits) -> Counts:
        start, direction = np.divmod(circuits.hops.astype(np.int64), 4)
        row, column = np.divmod(start, columns)
        along_y = direction >= 2
        before = np.where(along_y, row, column) - direction % 2  # the place that the seam follows
        outside = (before + 1) % np.where(along_y, tall, wide) == 0
        owner, n = circuits.hop_owner(), len(circuits)
        x, y, apart = (np.bincount(owner[of], minlength=n).astype(float) for of in (~along_y, along_y, outside))
        return totals(x, y, apart)

    corner = totals(*(np.array([float(value)]) for value in _corner(rows, columns, tall, wide)))
    return LightPath(
        "lightpath",
        tuple(map(Element, _ELEMENTS)),
        counts,
        corner,
        (f"corner to corner of {rows}x{columns} tiles",),
        totals(*(np.asarray(value) for value in _means(rows, columns, tall, wide))),
    )


def _corner(rows: int, columns: int, tall: int, wide: int) -> tuple[int, int, int]:
    """Hops along rows and columns between opposite corners, and those from wafer to wafer."""
    return columns - 1, rows - 1, (columns - 1) // wide + (rows - 1) // tall


def _means(rows: int, columns: int, tall: int, wide: int) -> tuple[float, float, float]:
    """The same, mean over all pairs of different tiles and shortest ways."""
    tiles = rows * columns
    pairs = tiles / max(1, tiles - 1)
    x, between_x = _mean_of_line(columns, wide)
    y, between_y = _mean_of_line(rows, tall)
    return x * pairs, y * pairs, (between_x + between_y) * pairs


def _mean_of_line(side: int, board: int) -> tuple[float, float]:
    """Mean over all ordered pairs of places: seams between them, and those of them that part two boards.

    The seam behind place b - 1 parts b from side - b places.

    >>> _mean_of_line(3, 2)
    (0.8888888888888888, 0.4444444444444444)
    """
    behind: IntArray = np.arange(1, side)
    crossed = 2 * behind * (side - behind) / side**2
    return float(crossed.sum()), float(crossed[behind % board == 0].sum())
