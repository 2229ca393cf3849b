"""Two binary trees, each for half of the message, such that most inner nodes of one tree are leaves of the other.

Below the root are the M = N - 1 other nodes, counted from the root on. Every second of them is a leaf of the first
tree; the second tree is the first one shifted by one node (M odd) or mirrored (M even). Eight nodes, root 0:

    first         4             second        5
              2       6                   3       7
            1   3   5   7               2   4   6   1

The top of each tree is linked to the root. A node sends to at most two children in one tree and receives from one parent
in each, so in a long pipeline both directions of every port are always busy: twice the bandwidth of one tree.

Source: Sanders, Speck and Traeff 2009; NCCL 2.4 uses it for all-reduce.
Reading: they colour the edges such that a node has one partner a step. Here a level is one step; a fabric whose ports
have one partner at a time takes two rounds for it, which is equivalent.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import reason_not_linked
from opticcl.schedule._pipeline import MOST_PIECES, PipelineStage, pipelined

__all__ = ["double_tree", "two_trees"]

UP = ("reduce", "all_reduce", "barrier")
DOWN = ("broadcast", "all_reduce", "barrier")


def accepts(collective: Request, fabric: Fabric, pipeline: int = 1) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: chunks of the message [count].
    """
    if collective.name not in UP + DOWN:
        return "it does broadcast, reduce, all_reduce, barrier"
    if not 1 <= pipeline <= MOST_PIECES:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES:,}"
    for child, parent, _ in two_trees(fabric.num_nodes, collective.root):
        if reason := reason_not_linked(fabric, parent, child) or reason_not_linked(fabric, child, parent):
            return reason
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Each half whole, in eight chunks, or in 64; a barrier has nothing to divide."""
    return [{}] if collective.name == "barrier" else [{}, {"pipeline": 8}, {"pipeline": 64}]


@register_algorithm("double_tree", accepts, variants)
def double_tree(collective: Request, fabric: Fabric, *, pipeline: int = 1) -> Schedule:
    """Double binary tree: floor(log2(N-1)) + 1 steps up, as many down, of half the message in each tree.

    Args:
        collective: broadcast, reduce, all_reduce or barrier.
        fabric: the fabric.
        pipeline: chunks k of each half; they follow each other in k - 1 additional steps [count].
    """
    n = fabric.num_nodes
    trees = two_trees(n, collective.root)
    depth = max((int(tree[2].max()) for tree in trees), default=0)
    stages = [(level, True) for level in range(depth, 0, -1) if collective.name in UP]
    stages += [(level, False) for level in range(1, depth + 1) if collective.name in DOWN]
    rows = [[np.flatnonzero(tree[2] == level) for level in range(depth + 1)] for tree in trees]

    def stage(level: int, up: bool) -> PipelineStage:
        """The transfers of one level of both trees."""
        of_half = [[column[rows[half][level]] for column in tree[:2]] for half, tree in enumerate(trees)]
        child, parent = (np.concatenate(column) for column in zip(*of_half, strict=True))
        half = np.repeat(np.arange(len(trees)), [len(one) for one, _ in of_half])
        return PipelineStage(child, parent, half, Op.REDUCE) if up else PipelineStage(parent, child, half, Op.COPY)

    steps = pipelined(n, [stage(level, up) for level, up in stages], pipeline, 2)
    return Schedule.of("double_tree", collective.on(n, 2 * pipeline), steps)


@lru_cache(maxsize=8)
def two_trees(num_nodes: int, root: int = 0) -> tuple[tuple[IntArray, IntArray, IntArray], ...]:
    """(child, parent, level of the child) of both trees, int64 (num_nodes - 1,) each; the root is on level 0.

    >>> child, parent, level = two_trees(8)[0]
    >>> parent.tolist(), level.tolist()
    ([2, 4, 2, 0, 6, 4, 6], [3, 2, 3, 1, 3, 2, 3])
    """
    below = num_nodes - 1
    if not below:
        return ()
    place, above, level = _in_order(below)
    mirrored = below % 2 == 0

    def node(at: IntArray) -> IntArray:
        """Of a place in the second tree; 0 stays the root."""
        moved = below + 1 - at if mirrored else at % below + 1
        return np.where(at == 0, 0, moved)

    trees = ((place, above), (node(place), node(above)))
    return tuple(((child + root) % num_nodes, (parent + root) % num_nodes, level) for child, parent in trees)


def _in_order(size: int) -> tuple[IntArray, IntArray, IntArray]:
    """Places 1 to size of a binary tree in order, the parent of each (0 above the top), and levels (1 at the top).

    The lowest set bit is the height. The parent of a place has that bit moved up by one; where that is beyond the end, the
    parent is the next one above that.
    """
    place = np.arange(1, size + 1)
    above, levels = _step_up(place), np.zeros(size, np.int64)
    top = 1 << size.bit_length() - 1
    while (beyond := above > size).any():
        above = np.where(beyond, _step_up(above), above)
    above[top - 1] = 0
    at = place.copy()
    while (at > 0).any():
        levels += at > 0
        at = np.where(at > 0, above[at - 1], 0)
    return place, above, levels


def _step_up(place: IntArray) -> IntArray:
    low = place & -place
    up: IntArray = place - low | low << 1
    return up
