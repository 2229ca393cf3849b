"""Policies that choose a job's nodes among the free ones.

    first   the first free block (`placement`)
    best    the free block beside which the fewest cells are free
    buddy   a block of a power of two cells at a multiple of its sides: halves of halves of the machine, the longest side first
    any     the first free block, else free nodes near each other; their light goes around that of the running jobs
    exact   up to 64 nodes: the free block that leaves the largest free block; where blocks need not be contiguous, lines
            by an integer programme, so that a block that exists is found

The largest job that a policy could place in the free nodes is `largest_job`; fragmentation is 1 - largest / free nodes.

Source: first, best and buddy: Feitelson 1997, "Packing schemes for gang scheduling"; Knuth, The Art of Computer Programming,
volume 1, section 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import CellGrid, IntArray
from opticcl.operations.placement import (
    MOST_BLOCKS,
    JobPlace,
    block_sums,
    blocks_of,
    find_place,
    lines_of,
    place_on,
    scattered_block,
)
from opticcl.registry import known_name

__all__ = ["POLICIES", "check_policy", "largest_job", "place_by"]

Mask = npt.NDArray[np.bool_]

POLICIES = ("first", "best", "buddy", "any", "exact")

MOST_EXACT_NODES = 64
"""Nodes of a machine up to which `exact` is used [count]."""


def check_policy(name: str, grid: CellGrid) -> str:
    """The canonical name of a policy.

    Raises: UnknownNameError: no such policy. ParameterError: `exact` on a larger machine than it is for.
    """
    policy = known_name("policy", name, POLICIES)
    if policy == "exact" and grid.cells.size > MOST_EXACT_NODES:
        raise ParameterError(
            f"policy exact: {grid.cells.size:,} nodes are more than {MOST_EXACT_NODES}; try --policy best"
        )
    return policy


def place_by(policy: str, grid: CellGrid, free: Mask, num_nodes: int) -> JobPlace | None:
    """Nodes for a job by a policy, or None.

    Args:
        policy: one of `POLICIES`.
        grid: of the machine.
        free: nodes that no job holds, bool (nodes,).
        num_nodes: requested, 1 or more [count].
    """
    if policy == "first":
        return find_place(grid, free, num_nodes)
    if policy == "any":
        return find_place(grid, free, num_nodes) or _near_each_other(grid, free, num_nodes)
    cell_free: Mask = np.all(free[grid.cells], axis=-1)
    lines_by = {"best": _best, "buddy": _buddy, "exact": _exact}[policy]
    lines = lines_by(grid, cell_free, ceil(num_nodes / grid.cells.shape[-1]))
    return None if lines is None else place_on(grid, lines, num_nodes)


def largest_job(policy: str, grid: CellGrid, free: Mask) -> int:
    """Nodes of the largest job that a policy could place [count].

    Args:
        policy: one of `POLICIES`.
        grid: of the machine.
        free: nodes that no job holds, bool (nodes,).
    """
    if policy == "any":
        return int(free.sum())
    cell_free: Mask = np.all(free[grid.cells], axis=-1)
    return _largest_block(policy, grid, cell_free) * grid.cells.shape[-1]


def _largest_block(policy: str, grid: CellGrid, free: Mask) -> int:
    """Cells of the largest block that a policy could place [count]."""
    if policy == "buddy":
        sizes = [1 << k for k in range(int(free.sum()).bit_length())]
        return max((size for size in sizes if _buddy(grid, free, size) is not None), default=0)
    largest = _largest_contiguous(free)
    if grid.contiguous:
        return largest
    scattered = _scattered_exactly if policy == "exact" else _scattered
    sizes = sorted({prod(blocks_of(grid, count)[0]) for count in range(largest + 1, int(free.sum()) + 1)})
    low, high = 0, len(sizes)  # sizes below `low` are placed, as far as a smaller block is easier to place
    while low < high:
        middle = (low + high) // 2
        if scattered(grid, free, sizes[middle]) is None:
            high = middle
        else:
            low, largest = middle + 1, sizes[middle]
    return largest


def _largest_contiguous(free: Mask) -> int:
    """Cells of the largest free contiguous block [count]."""
    corner_sums = np.pad(free.astype(np.int64), [(1, 0)] * free.ndim)
    for axis in range(free.ndim):
        corner_sums = np.cumsum(corner_sums, axis=axis)
    count = int(free.sum())
    shapes = np.indices(free.shape).reshape(free.ndim, -1).T + 1
    size = shapes.prod(axis=1)
    for block in shapes[np.argsort(-size, kind="stable")][np.sort(-size) >= -count].tolist():
        sums = corner_sums
        for axis, side in enumerate(block):  # inclusion and exclusion, an axis at a time
            sums = np.take(sums, range(side, sums.shape[axis]), axis) - np.take(
                sums, range(sums.shape[axis] - side), axis
            )
        if (sums == prod(block)).any():
            return prod(block)
    return 0


def _best(grid: CellGrid, free: Mask, num_cells: int) -> list[IntArray] | None:
    """The free contiguous block with the fewest free cells beside it; of equal ones the first, of the first shape."""
    best: tuple[int, list[IntArray]] | None = None
    for block in blocks_of(grid, num_cells)[:MOST_BLOCKS]:
        corners = np.argwhere(block_sums(free, block) == prod(block))
        if not len(corners):
            continue
        beside = _free_beside(free, block)[tuple(corners.T)]
        at = int(beside.argmin())
        if best is None or beside[at] < best[0]:
            best = int(beside[at]), lines_of(corners[at], block)
    if best is not None:
        return best[1]
    return None if grid.contiguous else _scattered(grid, free, num_cells)


def _free_beside(free: Mask, block: tuple[int, ...]) -> IntArray:
    """Free cells that have a face in common with a contiguous block, by corner."""
    total = None
    for axis, side in enumerate(block):
        slab = tuple(1 if k == axis else other for k, other in enumerate(block))
        padded = np.pad(free, [(1, 1) if k == axis else (0, 0) for k in range(free.ndim)])
        sums = block_sums(padded, slab)
        last = free.shape[axis] - side + 1
        both = np.take(sums, range(last), axis) + np.take(sums, range(side + 1, side + 1 + last), axis)
        total = both if total is None else total + both
    assert total is not None
    return total


def _scattered(grid: CellGrid, free: Mask, num_cells: int) -> list[IntArray] | None:
    """Lines of a scattered block of the two shapes that come first, by the greedy search of `placement`."""
    for block in blocks_of(grid, num_cells)[:2]:
        if (lines := scattered_block(free, block)) is not None:
            return lines
    return None


def _buddy(grid: CellGrid, free: Mask, num_cells: int) -> list[IntArray] | None:
    """The first free block of the size, a power of two, at a multiple of its sides."""
    block = [1 << (side - 1).bit_length() for side in grid.sides]
    if num_cells > prod(block):
        return None
    while prod(block) // 2 >= num_cells:
        longest = max(range(len(block)), key=lambda axis: (block[axis], -axis))
        block[longest] //= 2
    if any(side > have for side, have in zip(block, grid.sides, strict=True)):
        return [np.arange(side) for side in grid.sides] if free.all() and free.size >= num_cells else None
    whole = block_sums(free, tuple(block))[tuple(slice(None, None, side) for side in block)] == prod(block)
    corners = np.argwhere(whole)
    return lines_of(corners[0] * block, tuple(block)) if len(corners) else None


def _near_each_other(grid: CellGrid, free: Mask, num_nodes: int) -> JobPlace | None:
    """The free nodes nearest to one of them, for the one whose distances have the least sum."""
    nodes = np.flatnonzero(free)
    if len(nodes) < num_nodes:
        return None
    place = np.empty((free.size, len(grid.sides)), np.int64)
    place[grid.cells.reshape(-1, grid.cells.shape[-1])] = (
        np.indices(grid.sides).reshape(len(grid.sides), -1).T[:, None, :]
    )
    best: tuple[int, IntArray] | None = None
    for node in nodes.tolist():
        far = np.abs(place[nodes] - place[node]).sum(axis=1)
        chosen = np.argsort(far, kind="stable")[:num_nodes]
        total = int(far[chosen].sum())
        if best is None or total < best[0]:
            best = total, np.sort(nodes[chosen])
    assert best is not None
    return JobPlace(best[1], best[1])


def _exact(grid: CellGrid, free: Mask, num_cells: int) -> list[IntArray] | None:
    """The free contiguous block that leaves the largest free contiguous block, else lines of the integer programme."""
    best: tuple[int, list[IntArray]] | None = None
    for block in blocks_of(grid, num_cells):
        for corner in np.argwhere(block_sums(free, block) == prod(block)):
            lines = lines_of(corner, block)
            rest = free.copy()
            rest[np.ix_(*lines)] = False
            left = _largest_contiguous(rest)
            if best is None or left > best[0]:
                best = left, lines
    if best is not None:
        return best[1]
    return None if grid.contiguous else _scattered_exactly(grid, free, num_cells)


def _scattered_exactly(grid: CellGrid, free: Mask, num_cells: int) -> list[IntArray] | None:
    """Lines that intersect in free cells only, those with the fewest free cells; None: no block of any shape exists.

    Binary u(axis, line): sum over the lines of an axis is the block's side there, and of the lines through a cell that is
    not free one is left out. It minimises the free cells on the lines.
    """
    for block in blocks_of(grid, num_cells):
        if (lines := _lines_by_programme(free, block)) is not None:
            return lines
    return None


def _lines_by_programme(free: Mask, block: Sequence[int]) -> list[IntArray] | None:
    import highspy

    first = np.concatenate([[0], np.cumsum(free.shape)])
    taken = np.argwhere(~free)
    columns = np.concatenate([np.arange(first[-1]), (taken + first[:-1]).ravel()])
    starts = np.concatenate([first, first[-1] + free.ndim * np.arange(1, len(taken) + 1)])
    cost = [free.sum(axis=tuple(k for k in range(free.ndim) if k != axis)) for axis in range(free.ndim)]
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = int(first[-1]), free.ndim + len(taken)
    model.col_cost_ = np.concatenate(cost).astype(float)
    model.col_lower_, model.col_upper_ = np.zeros(first[-1]), np.ones(first[-1])
    model.row_lower_ = np.concatenate([np.array(block, float), np.full(len(taken), -highspy.kHighsInf)])
    model.row_upper_ = np.concatenate([np.array(block, float), np.full(len(taken), free.ndim - 1.0)])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = starts.astype(np.int32), columns.astype(np.int32)
    model.a_matrix_.value_ = np.ones(len(columns))
    model.integrality_ = [highspy.HighsVarType.kInteger] * int(first[-1])
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    chosen = np.array(solver.getSolution().col_value) > 0.5
    return [np.flatnonzero(chosen[lo:hi]) for lo, hi in pairwise(first.tolist())]
