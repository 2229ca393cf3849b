"""Routes along the row and then along the column, or the other way round.

For digit exchanges on grids whose sides are powers of two no routes have a smaller overlap, as the middle cut proves:
16 circuits for LUMORPH-4 on 16 x 16 tiles, 8 for LUMORPH-2.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST

__all__ = ["dimension_order"]


def dimension_order(
    src: IntArray, dst: IntArray, columns: int, first: Literal["row", "column"] = "row"
) -> tuple[IntArray, IntArray]:
    """Paths along the row to the receiver's column, then along that column.

    Args:
        src, dst: tiles, int64 (n,).
        columns: columns of the grid [count].
        first: row, or column for the other order.
    Returns: (hops, offsets) as in `Routes`.

    >>> dimension_order(np.array([0]), np.array([5]), 3)  # 2 east, 1 south
    (array([ 0,  4, 10], dtype=int32), array([0, 3]))
    >>> dimension_order(np.array([0]), np.array([5]), 3, "column")[0]
    array([ 2, 12, 16], dtype=int32)
    """
    (r0, c0), (r1, c1) = np.divmod(src, columns), np.divmod(dst, columns)
    east, south = c1 - c0, r1 - r0
    offsets = np.concatenate([[0], np.cumsum(np.abs(east) + np.abs(south))])
    hops = np.empty(offsets[-1], np.int32)
    _walk(src, east, south, columns, first == "row", offsets, hops)
    return hops, offsets


@njit(writes=("hops",))
def _walk(start, east, south, columns, row_first, offsets, hops):  # type: ignore[no-untyped-def]
    """Write the edges of each path: `east` tiles east (west if negative), `south` tiles south (north if negative)."""
    for i in range(len(start)):
        tile, at = start[i], offsets[i]
        for leg in range(2):
            if (leg == 0) == row_first:
                for _ in range(abs(east[i])):
                    hops[at] = 4 * tile + (EAST if east[i] > 0 else WEST)
                    tile += 1 if east[i] > 0 else -1
                    at += 1
            else:
                for _ in range(abs(south[i])):
                    hops[at] = 4 * tile + (SOUTH if south[i] > 0 else NORTH)
                    tile += columns if south[i] > 0 else -columns
                    at += 1
