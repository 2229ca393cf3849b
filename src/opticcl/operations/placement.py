"""Placement of a job on a machine, such that its algorithms work and its circuits do not conflict with those of other jobs.

A machine is a grid of cells, and a job gets a block of it: the cells in the intersection of some lines along each axis.

    fabric       grid                 a cell           block                    why jobs do not conflict
    oddl         its shape            a node           any lines of the grid    ports belong to nodes
    sipac        digits, highest up   a CU             any digits               ports belong to CUs
    lightpath    rows x columns       a tile           side by side             row-and-column routes stay inside
    torus        its shape            a node           side by side             not by construction: they may share links
    ramp         groups x devices     J nodes          any groups and devices   other groups, or other wavelengths
    any other    its nodes in a row   a node           side by side             not by construction: verify_together

The block is as small as the sides of the machine allow; of several smallest shapes the squarest comes first (SiPAC: the one
that fills whole switches; RAMP: one that runs its algorithms, then the one of most groups). Positions whose corner is a
multiple of the block's sides come first, so that blocks of a power of two do not fragment the machine. Where a block need not
be contiguous, scattered lines are tried last.

Reading: RAMP section 6.2.3 describes parallel jobs on other groups or other device numbers. A star coupler is shared by
all racks of a group, so a device number belongs to one job in all racks of a group; a job that needs fewer holds all J.
Reading: SiPAC's future work, jobs on CUs that are not neighbours, is a block of scattered digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir import CellGrid, IntArray

__all__ = ["JobPlace", "block_sums", "blocks_of", "find_place", "lines_of", "place_on", "scattered_block"]

Mask = npt.NDArray[np.bool_]

MOST_BLOCKS = 16  # shapes that are tried; bounds the search on a full machine
MOST_SCATTERED_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Nodes for a job.

    Args:
        nodes: of the job, in the order of its ranks, int64 (n,).
        held: nodes of the block, which no other job may use, ascending; more than `nodes` where no block has exactly that
            many, int64 (m,).
    """

    nodes: IntArray
    held: IntArray


def find_place(grid: CellGrid, free: Mask, num_nodes: int) -> JobPlace | None:
    """The first free block for a job, or None.

    Args:
        grid: of the machine.
        free: nodes that no job holds, bool (nodes,).
        num_nodes: requested, 1 or more [count].
    """
    cell_free: Mask = np.all(free[grid.cells], axis=-1)
    for number, block in enumerate(blocks_of(grid, ceil(num_nodes / grid.cells.shape[-1]))[:MOST_BLOCKS]):
        lines = _contiguous_block(cell_free, block)
        if lines is None and not grid.contiguous and number < MOST_SCATTERED_BLOCKS:
            lines = scattered_block(cell_free, block)
        if lines is not None:
            return place_on(grid, lines, num_nodes)
    return None


def place_on(grid: CellGrid, lines: Sequence[IntArray], num_nodes: int) -> JobPlace:
    """The first nodes of a block, in the order of their numbers, by which a fabric knows the whole machine that they are like.

    Args:
        grid: of the machine.
        lines: of the block along each axis.
        num_nodes: of the job [count].
    """
    found = grid.cells[np.ix_(*lines)].ravel()
    return JobPlace(np.sort(found[:num_nodes]), np.sort(found))


def blocks_of(grid: CellGrid, num_cells: int) -> tuple[tuple[int, ...], ...]:
    """Sides of the smallest blocks of at least `num_cells` cells, in order of preference."""
    return _smallest_blocks(grid.sides, grid.rank, num_cells)


@lru_cache(4096)
def _smallest_blocks(
    of_grid: tuple[int, ...], rank: Callable[[tuple[int, ...]], Any], num_cells: int
) -> tuple[tuple[int, ...], ...]:
    *others, last = of_grid
    found: list[tuple[int, ...]] = []
    for sides in product(*(range(1, side + 1) for side in others)):
        missing = ceil(num_cells / prod(sides))
        if missing <= last:
            found.append((*sides, missing))
    smallest = min(map(prod, found), default=0)
    return tuple(sorted((s for s in found if prod(s) == smallest), key=lambda sides: (rank(sides), sides)))


def block_sums(count: IntArray, block: tuple[int, ...]) -> IntArray:
    """Sum of every contiguous block, int64 (side - block side + 1, ...), by corner.

    Args:
        count: number in each cell, (*sides,).
        block: its sides, each at most the grid's.
    """
    count = count.astype(np.int64)
    for axis, side in enumerate(block):
        total = np.cumsum(count, axis=axis)
        sums = np.take(total, np.arange(side - 1, count.shape[axis]), axis)
        at = [slice(None)] * count.ndim
        at[axis] = slice(1, None)
        sums[tuple(at)] -= np.take(total, np.arange(count.shape[axis] - side), axis)
        count = sums
    return count


def _contiguous_block(free: Mask, block: tuple[int, ...]) -> list[IntArray] | None:
    """Lines of the first free contiguous block; corners at multiples of its sides come first."""
    corners = np.argwhere(block_sums(free, block) == prod(block))
    if not len(corners):
        return None
    aligned = corners[(corners % block == 0).all(axis=1)]
    corner = (aligned if len(aligned) else corners)[0]
    return lines_of(corner, block)


def lines_of(corner: IntArray, block: tuple[int, ...]) -> list[IntArray]:
    """Lines of a contiguous block along each axis. Args: corner: its first cell; block: its sides."""
    return [np.arange(lo, lo + side) for lo, side in zip(corner.tolist(), block, strict=True)]


def scattered_block(free: Mask, block: tuple[int, ...]) -> list[IntArray] | None:
    """Lines that intersect in free cells only: those with the fewest free cells are removed until the block remains.

    The exact problem is NP-hard (a biclique); this greedy search may miss a block.
    """
    lines = [np.arange(side) for side in free.shape]
    left = free
    while any(len(kept) > side for kept, side in zip(lines, block, strict=True)):
        worst: tuple[float, int, int] | None = None
        for axis, side in enumerate(block):
            if len(lines[axis]) == side:
                continue
            shares = left.mean(axis=tuple(k for k in range(free.ndim) if k != axis))
            line = int(shares.argmin())
            if worst is None or shares[line] < worst[0]:
                worst = float(shares[line]), axis, line
        assert worst is not None
        _, axis, line = worst
        lines[axis] = np.delete(lines[axis], line)
        left = np.delete(left, line, axis)
    return lines if left.all() else None
