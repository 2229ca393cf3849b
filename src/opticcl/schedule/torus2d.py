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

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics import near_square
from opticcl.ir import Fabric, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import SizeLimit, grid_of, reason_not_linked
from opticcl.schedule._walk import visits, walk
from opticcl.units import Shape

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")
MOST_ROWS = limit("torus2d.MOST_ROWS")


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: rows and columns; None: those of the machine.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
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
    space = Space(sides(fabric, shape))
    steps, cut = walk(collective, space, [visits(space.radices, (1, 0), "ring")])
    return Schedule.of("torus2d", collective.on(space.num_ranks, steps.num_chunks, owner=steps.owners), steps, cut=cut)
