"""Rings along rows and columns: 2(R + C - 2) steps instead of the ring's 2(RC - 1), with the same amount of data.

Ranks stand row by row on R rows of C; chunk c R + r belongs to the rank in row r and column c.

    movement        rings     each rank sends                      steps
    rows reduce     rows      R chunks, those of one column        C - 1
    columns reduce  columns   one chunk                            R - 1
    columns gather  columns   one chunk                            R - 1
    rows gather     rows      R chunks                             C - 1

A reduce-scatter is the first two, an all-gather the last two; an all-to-all is the first two with contributions kept
apart.

Source: Mikami et al. 2018 and Ying et al. 2018, who call it 2-D torus (or 2-D mesh) all-reduce.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.ir.symmetry import Digits, Run, RunSteps, Symmetry
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import SizeLimit, grid_of, reason_not_linked
from opticcl.units import Shape

REDUCE, GATHER = ("rows reduce", "columns reduce"), ("columns gather", "rows gather")
MOVEMENTS = {"all_reduce": REDUCE + GATHER, "reduce_scatter": REDUCE, "all_gather": GATHER, "all_to_all": REDUCE}
MOST_ROWS = 1 << 26  # transfers of an all-to-all, whose steps are all distinct


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: rows and columns; None: those of the machine.
    """
    if collective.name not in MOVEMENTS:
        return "it does " + ", ".join(MOVEMENTS)
    n = fabric.num_nodes
    if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != n):
        near = "x".join(map(str, near_square(n)))
        return f"shape={'x'.join(map(str, shape))} is not two sides of {n} nodes; try {near}"
    rows, columns = sides(fabric, shape)
    if collective.name == "all_to_all" and n * (rows + columns - 2) > MOST_ROWS:
        return SizeLimit(f"{n * (rows + columns - 2):,} transfers in distinct steps are more than {MOST_ROWS:,}")
    rank = np.arange(n)
    return reason_not_linked(fabric, rank, _next_in_row(rank, columns)) or reason_not_linked(
        fabric, rank, (rank + columns) % n
    )


def near_square(num_nodes: int) -> tuple[int, int]:
    """Two sides as equal as possible, the shorter first.

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

    Args:
        collective: one of these.
        fabric: the fabric.
        shape: rows and columns; None: those of the machine, or near a square.
    """
    n = fabric.num_nodes
    rows, columns = sides(fabric, shape)
    rank = np.arange(n, dtype=np.int32)
    row, column = rank // columns, rank % columns
    apart = collective.name == "all_to_all"
    of_ranks, of_chunks = (rows, columns), (columns, rows)  # radices: chunk column * rows + row

    def run(movement: str) -> Run:
        """The first step of a movement; from step to step the chunk is one column, or one row, earlier."""
        adds, on_rows = movement in REDUCE, movement.startswith("rows")
        op = Op.MOVE if apart else Op.REDUCE if adds else Op.COPY
        back = 1 if adds else 0  # distance of the chunk that a node sends behind its own

        def base() -> Transfers:
            if on_rows:
                lo = (column - back) % columns * rows
                return Transfers.of(rank, _next_in_row(rank, columns), lo, rows, op, 1 if apart else None)
            lo = column * rows + (row - back) % rows
            return Transfers.of(rank, (rank + columns) % n, lo, 1, op, columns if apart else None)

        count, digit = (columns - 1, 0) if on_rows else (rows - 1, 1)
        return Run(base, count, Digits(of_chunks, digit, -1), (1 if on_rows else columns) * apart)

    lengths = {"rows": columns, "columns": rows}
    step = RunSteps(tuple(run(m) for m in MOVEMENTS[collective.name] if lengths[m.split()[0]] > 1), n)
    chunk = np.arange(n, dtype=np.int32)
    chunks = collective.on(n, n, owner=chunk % rows * columns + chunk // rows)
    symmetries = tuple(Symmetry(Digits(of_ranks, d, 1), Digits(of_chunks, 1 - d, 1)) for d in (0, 1))
    classes = () if apart else step.classes
    steps_of = collective, rows, columns
    return Schedule("torus2d", chunks, step.num_steps, step, classes, symmetries=symmetries, steps_of=steps_of)
