"""Divide and conquer: squares of four GPUs reduce among themselves, then squares in pairs, then pairs of squares, ...

    16 GPUs     step 0   1      step 2   3          each arrow: the whole buffer, in both directions
                a - b    a b      A | B    A   B    a .. d: the GPUs of a square
                         | |               |   |    A .. D: squares
                c - d    c d      C | D    C   D

On LIGHTPATH the squares are those of the grid, however its nodes are numbered; elsewhere the order of the nodes
decides. Every step sends the whole buffer, so it has the fewest steps and the most bytes.

Source: LUMORPH section 3.2 (D&C in section 5).
Reading: the text gives neither the number of rounds nor sizes. log2 N rounds of the whole buffer is the only reading with
which it loses to the ring above 16 MB on 256 GPUs, as in section 5; with the first two rounds merged, each GPU of a square
sending to the three others on a third of its lasers (square=at_once), the crossing is near 14 MB. Where the number of nodes
is not a power of two, its larger prime factors are groups whose nodes all exchange in one step.
"""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath, tile_of_node
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, reason_not_linked
from opticcl.schedule._walk import visits, walk
from opticcl.schedule.lumorph import digits, peers

__all__ = ["divide_and_conquer"]

DOES = ("all_reduce", "barrier")

Square = Literal["pairs", "at_once"]


def groups(num_nodes: int, square: str = "pairs") -> tuple[int, ...]:
    """Sizes of the groups that exchange in each step.

    >>> groups(16), groups(16, "at_once"), groups(12)
    ((2, 2, 2, 2), (4, 2, 2), (2, 2, 3))
    """
    if square == "at_once" and num_nodes % 4 == 0:
        return (4, *digits(num_nodes // 4))
    return digits(num_nodes)


def order(fabric: Fabric) -> IntArray:
    """Nodes in the order in which neighbours are grouped: square by square on LIGHTPATH, int32 (num_nodes,)."""
    nodes = np.arange(fabric.num_nodes)
    machine = fabric.machine
    if not isinstance(machine, Lightpath):
        return nodes.astype(np.int32)
    tile = machine.tile[fabric.machine_nodes(nodes)]
    place_of_tile = np.argsort(tile_of_node(machine.grid_shape, "squares"))
    return np.argsort(place_of_tile[tile]).astype(np.int32)


def accepts(collective: Request, fabric: Fabric, square: str = "pairs") -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        square: as the algorithm takes it.
    """
    if collective.name not in DOES:
        return f"it does {' and '.join(DOES)}"
    n = fabric.num_nodes
    ks = groups(n, square)
    if n * (max(ks, default=1) - 1) > MOST_TRANSFERS:
        step = f"a group of {max(ks)} means {n * (max(ks) - 1):,} transfers a step"
        return SizeLimit(f"{step}, more than {MOST_TRANSFERS:,}; try a number of nodes with smaller prime factors")
    node_at = order(fabric)
    for i, k in enumerate(ks):
        partners = node_at[peers(n, k, prod(ks[:i]))]
        if reason := next(filter(None, (reason_not_linked(fabric, node_at, partners[:, j]) for j in range(k))), None):
            return reason
    return None


@register_algorithm("divide_and_conquer", accepts)
def divide_and_conquer(collective: Request, fabric: Fabric, *, square: Square = "pairs") -> Schedule:
    """Divide-and-conquer all-reduce: log2 N steps of the whole buffer.

    Args:
        collective: all_reduce or barrier.
        fabric: the fabric.
        square: pairs: the four GPUs of a square in two steps; at_once: in one, with three peers each.
    """
    ks = groups(fabric.num_nodes, square)
    space = Space(ks[::-1] or (1,), order(fabric))  # neighbours differ in the last digit
    steps, _ = walk(collective, space, [visits(space.radices, range(len(ks) - 1, -1, -1))], depth=0)
    return Schedule.of("divide_and_conquer", collective.on(fabric.num_nodes, 1), steps, parameters={"square": square})
