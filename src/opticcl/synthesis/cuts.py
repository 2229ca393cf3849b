"""Cuts of a grid: a rectangle of tiles against all other tiles, and the capacity of its edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.wafer import Wafer

__all__ = ["WaferCut", "cuts"]

ALL_RECTANGLES_UP_TO = 64  # tiles of a grid; larger grids are cut along rows and columns and around single tiles only
WAYS = ((0, 1), (0, -1), (1, 0), (-1, 0))  # rows and columns to the next tile east, west, south, north


class WaferCut(NamedTuple):
    """One side of a cut.

    Args:
        where: position of the cut, in words.
        inside: ranks on this side, bool (ranks,).
        out: circuits that can leave this side in one round [count].
    """

    where: str
    inside: npt.NDArray[np.bool_]
    out: int


def cuts(wafer: Wafer) -> Iterator[WaferCut]:
    """Both sides of every rectangle that has ranks inside and outside."""
    rows, columns = wafer.shape
    row, column = np.divmod(wafer.tile, columns)
    capacity = wafer.capacity().reshape(rows, columns, 4)
    tiles = np.arange(rows * columns).reshape(rows, columns)
    for top, bottom, left, right in _rectangles(rows, columns):
        inside = (row >= top) & (row < bottom) & (column >= left) & (column < right)
        if not inside.any() or inside.all():
            continue
        within = np.zeros((rows + 2, columns + 2), bool)  # with a rim, so that every tile has four neighbours
        within[top + 1 : bottom + 1, left + 1 : right + 1] = True
        here = within[1:-1, 1:-1]
        shifted = [within[1 + down : rows + 1 + down, 1 + along : columns + 1 + along] for down, along in WAYS]
        there = np.stack(shifted, axis=2)
        where = _where(rows, columns, top, bottom, left, right, int(tiles[top, left]))
        yield WaferCut(where, inside, int(capacity[here[:, :, None] & ~there].sum()))
        yield WaferCut(where, ~inside, int(capacity[~here[:, :, None] & there].sum()))


def _rectangles(rows: int, columns: int) -> Iterator[tuple[int, int, int, int]]:
    """(top, bottom, left, right), ends excluded: straight cuts, single tiles, then, on small grids, all other rectangles."""
    straight = [(0, r, 0, columns) for r in range(1, rows)] + [(0, rows, 0, c) for c in range(1, columns)]
    single = [(r, r + 1, c, c + 1) for r in range(rows) for c in range(columns)]
    others = []
    if rows * columns <= ALL_RECTANGLES_UP_TO:
        for top in range(rows):
            for bottom in range(top + 1, rows + 1):
                others += [
                    (top, bottom, left, right) for left in range(columns) for right in range(left + 1, columns + 1)
                ]
    yield from dict.fromkeys([*straight, *single, *others])


def _where(rows: int, columns: int, top: int, bottom: int, left: int, right: int, tile: int) -> str:
    """Position of the cut, in words."""
    if (top, left, right) == (0, 0, columns):
        return f"the cut between rows {bottom - 1} and {bottom}"
    if (top, bottom, left) == (0, rows, 0):
        return f"the cut between columns {right - 1} and {right}"
    if bottom - top == right - left == 1:
        return f"the cut around tile {tile}"
    return f"the cut around rows {top} to {bottom - 1} of columns {left} to {right - 1}"
