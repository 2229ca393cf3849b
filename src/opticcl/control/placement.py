"""Where on a machine a job fits, so that its algorithms still do and no light meets that of another job.

A machine is a grid of cells, and a job gets a block of it: some rows, some columns, ... all cells where they cross.

    fabric       grid                 a cell           block                    why jobs never meet
    oddl         its shape            a node           any lines of the grid    ports belong to nodes
    sipac        digits, highest up   a CU             any digits               ports belong to CUs
    lightpath    rows x columns       a tile           side by side             row-and-column routes stay inside
    ramp         groups x devices     J nodes          any groups and devices   other groups, or other wavelengths
    any other    its nodes in a row   a node           side by side             not by construction: ask the judge

The block is as small as the machine's sides allow; where several shapes are equally small the squarest comes first (SiPAC: the
one that fills whole switches). Places whose corner is a multiple of its sides come first, so that blocks of a power of two
leave room for others. Where the block need not be in one piece, lines that stand apart are tried last.

Reading: RAMP section 6.2.3 speaks of parallel jobs on other groups or other device numbers. A star coupler is shared by
all racks of a group, so a device number belongs to one job in all racks of a group; a job that needs fewer holds all J.
Reading: SiPAC's future work, jobs on CUs that are not neighbours, needs no more than digits that stand apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from opticcl.fabric.lightpath import tile_of_node
from opticcl.fabric.sipac import radices_of
from opticcl.ir import Fabric, IntArray

__all__ = ["Ground", "Place", "find_place", "ground_of"]

Mask = npt.NDArray[np.bool_]

MOST_BLOCKS = 16  # shapes that are tried; a full machine must answer as soon as an empty one
MOST_BLOCKS_APART = 2


@dataclass(frozen=True, slots=True)
class Ground:
    """A machine as a grid of cells.

    Args:
        cells: nodes of each cell, int64 (*sides, nodes a cell).
        together: whether a block must be in one piece.
        squarest: whether blocks of equal sides are better than long ones.
    """

    cells: IntArray
    together: bool
    squarest: bool = True

    @property
    def sides(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self.cells.shape[:-1]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job is to stand.

    Args:
        nodes: of the job, in the order of its ranks, int64 (n,).
        held: all that nobody else may have, ascending; more than `nodes` where no block has that many, int64 (m,).
    """

    nodes: IntArray
    held: IntArray


def ground_of(fabric: Fabric) -> Ground:
    """The grid of a whole machine."""
    p, n = fabric.parameters, fabric.num_machine_nodes
    if fabric.name == "oddl":
        return Ground(np.arange(n).reshape(*p["shape"], 1), together=False)
    if fabric.name == "sipac":
        return Ground(np.arange(n).reshape(*radices_of(fabric)[::-1], 1), together=False, squarest=False)
    if fabric.name == "lightpath":
        node_of_tile = np.argsort(tile_of_node(p["shape"], p["numbering"], p["seed"]))
        return Ground(node_of_tile.reshape(*p["shape"], 1), together=True)
    if fabric.name == "ramp":
        by_rack = np.arange(n).reshape(p["groups"], p["racks"], p["wavelengths"])
        return Ground(by_rack.transpose(0, 2, 1), together=False)
    return Ground(np.arange(n).reshape(n, 1), together=True)


def find_place(ground: Ground, free: Mask, num_nodes: int) -> Place | None:
    """The first place for a job, or None.

    Args:
        free: which nodes nobody holds, bool (nodes,).
        num_nodes: that the job wants, 1 or more [count].
    """
    cell_free: Mask = np.all(free[ground.cells], axis=-1)
    for number, block in enumerate(_blocks(ground, ceil(num_nodes / ground.cells.shape[-1]))[:MOST_BLOCKS]):
        lines = _standing_together(cell_free, block)
        if lines is None and not ground.together and number < MOST_BLOCKS_APART:
            lines = _standing_apart(cell_free, block)
        if lines is not None:
            found = ground.cells[np.ix_(*lines)].ravel()
            return Place(found[:num_nodes], np.sort(found))
    return None


def _blocks(ground: Ground, num_cells: int) -> list[tuple[int, ...]]:
    """Sides of the smallest blocks that hold so many cells, the best first."""
    *others, last = ground.sides
    found: list[tuple[int, ...]] = []
    for sides in product(*(range(1, side + 1) for side in others)):
        missing = ceil(num_cells / prod(sides))
        if missing <= last:
            found.append((*sides, missing))
    smallest = min(map(prod, found), default=0)
    long = (lambda sides: sum(side > 1 for side in sides)) if not ground.squarest else (lambda sides: 0)
    return sorted((s for s in found if prod(s) == smallest), key=lambda sides: (long(sides), sum(sides), sides))


def _standing_together(free: Mask, block: tuple[int, ...]) -> list[IntArray] | None:
    """Lines of the first free block in one piece, those at multiples of its sides first."""
    room = free.astype(np.int32)
    for axis, side in enumerate(block):  # how many of the next `side` cells along each axis are free
        total = np.cumsum(room, axis=axis)
        room = np.take(total, np.arange(side - 1, free.shape[axis]), axis)
        tail = np.take(total, np.arange(free.shape[axis] - side), axis)
        at = [slice(None)] * free.ndim
        at[axis] = slice(1, None)
        room[tuple(at)] -= tail
    corners = np.argwhere(room == prod(block))
    if not len(corners):
        return None
    aligned = corners[(corners % block == 0).all(axis=1)]
    corner = (aligned if len(aligned) else corners)[0]
    return [np.arange(lo, lo + side) for lo, side in zip(corner, block, strict=True)]


def _standing_apart(free: Mask, block: tuple[int, ...]) -> list[IntArray] | None:
    """Lines that cross in free cells only: those with the fewest free cells go until the block is left.

    Finding the best is a hard problem (a clique in a graph of two sides); this looks once and may miss a place.
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
