"""Divide and conquer: squares of four GPUs add up among themselves, then squares in pairs, then pairs of squares, ...

    16 GPUs     step 0   1      step 2   3          each arrow: the whole buffer, both ways
                a - b    a b      A | B    A   B    a .. d: the GPUs of a square
                         | |               |   |    A .. D: squares
                c - d    c d      C | D    C   D

On LIGHTPATH the squares are those of the grid, however its nodes are numbered; elsewhere the order of the nodes
decides. Every step sends the whole buffer, so it has the fewest steps and the most bytes.

Source: LUMORPH section 3.2 (D&C in section 5).
Reading: the text gives no count of rounds and no sizes. log2 N rounds of the whole buffer is the one reading that makes
it lose to the ring above 16 MB on 256 GPUs, as section 5 has it; with the first two rounds as one, each GPU of a square
sending to the three others on a third of its lasers (square=at_once), the crossing is near 14 MB. A number of nodes
that is no power of two takes its larger prime factors as groups that exchange at once.
"""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np

from opticcl.collective import Request
from opticcl.fabric.lightpath import tile_of_node
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm
from opticcl.schedule.lumorph import digits, peers
from opticcl.schedule.mesh import MOST_TRANSFERS, not_joined

__all__ = ["divide_and_conquer"]

DOES = ("all_reduce", "barrier")

Square = Literal["pairs", "at_once"]


def groups(num_nodes: int, square: str = "pairs") -> tuple[int, ...]:
    """How many parts come together in each step.

    >>> groups(16), groups(16, "at_once"), groups(12)
    ((2, 2, 2, 2), (4, 2, 2), (2, 2, 3))
    """
    if square == "at_once" and num_nodes % 4 == 0:
        return (4, *digits(num_nodes // 4))
    return digits(num_nodes)


def order(fabric: Fabric) -> IntArray:
    """Nodes in the order in which neighbours come together: square by square on LIGHTPATH, int32 (num_nodes,)."""
    nodes = np.arange(fabric.num_nodes)
    if fabric.name != "lightpath":
        return nodes.astype(np.int32)
    p = fabric.parameters
    tile = tile_of_node(p["shape"], p["numbering"], p["seed"])[fabric.machine_nodes(nodes)]
    place_of_tile = np.argsort(tile_of_node(p["shape"], "squares"))
    return np.argsort(place_of_tile[tile]).astype(np.int32)


def accepts(collective: Request, fabric: Fabric, square: str = "pairs") -> str | None:
    """None, or the reason why not."""
    if collective.name not in DOES:
        return f"it does {' and '.join(DOES)}"
    n = fabric.num_nodes
    ks = groups(n, square)
    if n * (max(ks, default=1) - 1) > MOST_TRANSFERS:
        step = f"a group of {max(ks)} means {n * (max(ks) - 1):,} transfers a step"
        return f"{step}, more than {MOST_TRANSFERS:,}; try a number of nodes with smaller prime factors"
    node_at = order(fabric)
    for i, k in enumerate(ks):
        partners = node_at[peers(n, k, prod(ks[:i]))]
        if reason := next(filter(None, (not_joined(fabric, node_at, partners[:, j]) for j in range(k))), None):
            return reason
    return None


@register_algorithm("divide_and_conquer", accepts)
def divide_and_conquer(collective: Request, fabric: Fabric, *, square: Square = "pairs") -> Schedule:
    """Divide-and-conquer all-reduce: log2 N steps of the whole buffer.

    Args: square: pairs: the four GPUs of a square in two steps; at_once: in one, three peers each.
    """
    n = fabric.num_nodes
    ks = groups(n, square)
    node_at = order(fabric)

    def step(i: int) -> Transfers:
        partners = node_at[peers(n, ks[i], prod(ks[:i]))]
        return Transfers.of(node_at[:, None], partners, 0, 1, Op.REDUCE)

    return Schedule("divide_and_conquer", collective.on(n, 1), len(ks), step, parameters={"square": square})
