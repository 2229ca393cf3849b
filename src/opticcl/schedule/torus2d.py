"""Rings along rows and columns: in 2(R + C - 2) steps instead of the ring's 2(RC - 1), with as little data.

Ranks stand row by row on R rows of C; chunk c R + r belongs to the rank in row r and column c.

    movement        rings     who sends what                       steps
    rows add        rows      R chunks, those of one column        C - 1
    columns add     columns   one chunk                            R - 1
    columns tell    columns   one chunk                            R - 1
    rows tell       rows      R chunks                             C - 1

A reduce-scatter is the first two, an all-gather the last two; an all-to-all is the first two with contributions kept
apart.

Source: Mikami et al. 2018 and Ying et al. 2018, who call it 2-D torus (or 2-D mesh) all-reduce.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import grid_of, why_apart
from opticcl.units import Shape

ADD, TELL = ("rows add", "columns add"), ("columns tell", "rows tell")
MOVEMENTS = {"all_reduce": ADD + TELL, "reduce_scatter": ADD, "all_gather": TELL, "all_to_all": ADD}
MOST_ROWS = 1 << 26  # transfers of an all-to-all, no two of whose steps are alike


class Rings(NamedTuple):
    """One of the four movements: its steps, whether on rows, whether they add."""

    steps: range
    on_rows: bool
    adds: bool


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not."""
    if collective.name not in MOVEMENTS:
        return "it does " + ", ".join(MOVEMENTS)
    n = fabric.num_nodes
    if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != n):
        near = "x".join(map(str, near_square(n)))
        return f"shape={'x'.join(map(str, shape))} is not two sides of {n} nodes; try {near}"
    rows, columns = sides(fabric, shape)
    if collective.name == "all_to_all" and n * (rows + columns - 2) > MOST_ROWS:
        return f"{n * (rows + columns - 2):,} transfers, no two steps alike; at most {MOST_ROWS:,} are taken on"
    rank = np.arange(n)
    return why_apart(fabric, rank, _next_in_row(rank, columns)) or why_apart(fabric, rank, (rank + columns) % n)


def near_square(num_nodes: int) -> tuple[int, int]:
    """Two sides as alike as the number allows, the shorter first.

    >>> near_square(12), near_square(7)
    ((3, 4), (1, 7))
    """
    rows = next(side for side in range(isqrt(num_nodes), 0, -1) if num_nodes % side == 0)
    return rows, num_nodes // rows


def sides(fabric: Fabric, shape: tuple[int, ...] | None) -> tuple[int, int]:
    """Rows and columns: those given, those of the machine if it has two dimensions, or near a square."""
    chosen = shape or grid_of(fabric)
    return (chosen[0], chosen[1]) if len(chosen) == 2 else near_square(fabric.num_nodes)


def _next_in_row(rank: np.ndarray, columns: int) -> np.ndarray:
    following: np.ndarray = rank // columns * columns + (rank + 1) % columns
    return following


@register_algorithm("torus2d", accepts)
def torus2d(collective: Request, fabric: Fabric, *, shape: Shape | None = None) -> Schedule:
    """Ring all-reduce, reduce-scatter, all-gather or all-to-all by rows and columns.

    Args: shape: rows and columns; None: the machine's, or near a square.
    """
    n = fabric.num_nodes
    rows, columns = sides(fabric, shape)
    rank = np.arange(n, dtype=np.int32)
    row, column = rank // columns, rank % columns
    apart = collective.name == "all_to_all"
    movements = _movements(collective.name, rows, columns)

    def step(i: int) -> Transfers:
        turn = next(m for m in movements if i in m.steps)
        s = i - turn.steps.start
        back = s + 1 if turn.adds else s  # how far behind its own the chunk is that a node sends
        op = Op.MOVE if apart else Op.REDUCE if turn.adds else Op.COPY
        if turn.on_rows:
            lo, size = (column - back) % columns * rows, rows
            return Transfers.of(rank, _next_in_row(rank, columns), lo, size, op, s + 1 if apart else None)
        lo = column * rows + (row - back) % rows
        return Transfers.of(rank, (rank + columns) % n, lo, 1, op, columns * (s + 1) if apart else None)

    chunk = np.arange(n, dtype=np.int32)
    chunks = collective.on(n, n, owner=chunk % rows * columns + chunk // rows)
    alike = tuple(m.steps for m in movements if m.steps)
    return Schedule("torus2d", chunks, sum(map(len, alike)), step, () if apart else alike)


def _movements(name: str, rows: int, columns: int) -> list[Rings]:
    movements, start = [], 0
    for movement in MOVEMENTS[name]:
        on_rows = movement.startswith("rows")
        length = (columns if on_rows else rows) - 1
        movements.append(Rings(range(start, start + length), on_rows, movement in ADD))
        start += length
    return movements
