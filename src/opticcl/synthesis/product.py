"""All-to-all of a whole grid, coloured line by line: the colour of a circuit is a pair of colours, one for the part of its path
along the row and one for the part along the column.

On a line of m tiles let a(i, j) be the colour of the path from i to j, such that

    rows and columns of a              have every colour at most once (an empty path has a colour too)
    the paths over one edge            have every colour at most W times

With row first, column second, the colour (a(c, c'), b(r, r')) is then free at the sender, at the receiver and on all edges:
the paths over an edge of a row begin in that row, those over an edge of a column end in that column, so the other
half of their colours differs. Such tables have max(m, m^2 / (4 W)) colours; those of 4 tiles and W = 1 are Sudokus. So
16 colours are enough for 4 x 4 tiles and one waveguide, as many as must cross the middle.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.hints import direct_demands
from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.wafer import Wafer

__all__ = ["line_colours", "product_rounds"]

STEPS = 2_000  # of the search for a table


@cache
def line_colours(length: int, waveguides: int) -> tuple[tuple[int, ...], ...] | None:
    """The table a(i, j) of a line with the fewest possible colours, or None if a short search finds none.

    Args:
        length: tiles [count].
        waveguides: waveguides of each edge in each direction [count].

    >>> line_colours(2, 1)
    ((1, 0), (0, 1))
    """
    middle = (length // 2) * (length - length // 2)
    colours = max(length, -(-middle // waveguides))
    table = np.full((length, length), -1)
    crossing = np.zeros((2, length, colours), np.int64)  # eastward, westward; edge between i and i + 1
    cells = sorted(((i, j) for i in range(length) for j in range(length)), key=lambda cell: -abs(cell[0] - cell[1]))
    steps = 0

    def edges(i: int, j: int) -> tuple[int, slice]:
        return (0, slice(i, j)) if i < j else (1, slice(j, i))

    def fill(depth: int) -> bool:
        nonlocal steps
        steps += 1
        if depth == len(cells):
            return True
        if steps > STEPS:
            return False
        i, j = cells[depth]
        way = edges(i, j)
        for colour in range(colours):
            if colour in table[i] or colour in table[:, j] or (crossing[(*way, colour)] >= waveguides).any():
                continue
            table[i, j] = colour
            crossing[(*way, colour)] += 1
            if fill(depth + 1):
                return True
            table[i, j] = -1
            crossing[(*way, colour)] -= 1
        return False

    return tuple(tuple(row) for row in table.tolist()) if fill(0) else None


def product_rounds(wafer: Wafer, before: npt.NDArray[np.bool_], after: npt.NDArray[np.bool_]) -> SendRounds | None:
    """Every piece directly from its holder, coloured by rows and columns; None where the grid is damaged or partly used.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
    """
    rows, columns = wafer.shape
    inside = wafer.room[wafer.room > 0]
    edges = 2 * (rows * (columns - 1) + columns * (rows - 1))
    whole = wafer.num_ranks == rows * columns and len(inside) == edges and wafer.undamaged
    if not whole or not edges:
        return None
    along = line_colours(columns, int(inside.min()))
    across = line_colours(rows, int(inside.min()))
    if along is None or across is None:
        return None
    depth = max(map(max, across)) + 1
    period = (max(map(max, along)) + 1) * depth
    row, column = (of_rank.tolist() for of_rank in np.divmod(wafer.tile, columns))
    num_wavelengths = wafer.num_wavelengths
    schedule: SendRounds = []
    num_sends: dict[tuple[int, int], int] = {}
    for demand in direct_demands(wafer, before, after):
        src, dst = pair = demand.senders[0], demand.dst
        slot = along[column[src]][column[dst]] * depth + across[row[src]][row[dst]] + period * num_sends.get(pair, 0)
        num_sends[pair] = num_sends.get(pair, 0) + 1
        number, wavelength = divmod(slot, num_wavelengths)
        schedule += [[] for _ in range(number + 1 - len(schedule))]
        schedule[number].append(PieceSend(demand.piece, *pair, False, wavelength, wafer.routes[pair][0]))
    return [sends for sends in schedule if sends]
