"""Binomial tree all-reduce: sums climb to node 0, the result comes down the same way. Any number of nodes.

Six nodes, reduce in steps 0 to 2, broadcast in steps 3 to 5:

    0 <--------------- 4        step 2 (and 3)
    0 <------ 2                 step 1 (and 4)
    0 <- 1    2 <- 3   4 <- 5   step 0 (and 5)

Source: Thakur, Rabenseifner and Gropp 2005, section 4 (broadcast and reduce by binomial trees).
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import collective as make_collective
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm


def accepts(collective: str, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective != "all_reduce":
        return "it does all_reduce only"
    for level in range(_num_levels(fabric.num_nodes)):
        child, parent = _edges(fabric.num_nodes, level)
        apart = np.flatnonzero(~(fabric.linked(child, parent) & fabric.linked(parent, child)))
        if len(apart):
            near, far = (fabric.coordinates(int(column[apart[0]])) for column in (parent, child))
            return f"no single circuit joins nodes {near} and {far}"
    return None


def _num_levels(num_nodes: int) -> int:
    """Levels of the tree, ceil(log2 N)."""
    return (num_nodes - 1).bit_length()


def _edges(num_nodes: int, level: int) -> tuple[IntArray, IntArray]:
    """(child, parent) of one level of the tree: child is an odd multiple of 2^level, its parent the multiple below."""
    child = np.arange(1 << level, num_nodes, 2 << level)
    return child, child - (1 << level)


@register_algorithm("tree", accepts)
def tree(collective: str, fabric: Fabric) -> Schedule:
    """Binomial tree all-reduce: 2 ceil(log2 N) steps, each of the whole message."""
    n = fabric.num_nodes
    num_levels = _num_levels(n)

    def step(i: int) -> Transfers:
        if i < num_levels:
            child, parent = _edges(n, i)
            return Transfers.of(child, parent, 0, 1, Op.REDUCE)
        child, parent = _edges(n, 2 * num_levels - 1 - i)
        return Transfers.of(parent, child, 0, 1, Op.COPY)

    return Schedule("tree", make_collective(collective, n, 1), 2 * num_levels, step)
