"""Binomial tree: results go up to the root or come down from it. Any number of nodes, any root.

Six nodes, reduce in steps 0 to 2, broadcast in steps 3 to 5:

    0 <--------------- 4        step 2 (and 3)
    0 <------ 2                 step 1 (and 4)
    0 <- 1    2 <- 3   4 <- 5   step 0 (and 5)

Numbers are counted from the root. Where nodes form a grid and only its lines are linked, there is such a tree on every
line: first all lines of the last dimension, then the lines that the roots of these form, ...

Source: Thakur, Rabenseifner and Gropp 2005, section 4 (broadcast and reduce by binomial trees).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import line_or_grid
from opticcl.schedule._pipeline import MOST_PIECES, PipelineStage, pipelined

UP = ("reduce", "gather", "all_reduce", "barrier")
DOWN = ("broadcast", "scatter", "all_reduce", "barrier")
BLOCKS = ("scatter", "gather")  # a node sends the blocks of all nodes below it


class Level(NamedTuple):
    """One level of the tree: each child, its parent, and the positions first to first + size - 1 below the child."""

    child: IntArray
    parent: IntArray
    first: IntArray
    size: IntArray


def accepts(collective: Request, fabric: Fabric, pipeline: int = 1) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: as the algorithm takes it.
    """
    if collective.name not in UP + DOWN:
        return "it does " + ", ".join(dict.fromkeys(UP + DOWN))
    if not 1 <= pipeline <= MOST_PIECES:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES:,}"
    if pipeline > 1 and collective.name in BLOCKS:
        return "pipeline is for broadcast, reduce and all_reduce only"
    _, reason = _shape(fabric, collective.root)
    return reason


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Whole messages; cut into eight where that can be faster."""
    return [{}] if collective.name in (*BLOCKS, "barrier") else [{}, {"pipeline": 8}]


@register_algorithm("tree", accepts, variants)
def tree(collective: Request, fabric: Fabric, *, pipeline: int = 1) -> Schedule:
    """Binomial tree: ceil(log2 N) steps up, as many down, of the whole message or of the blocks below the child.

    Args:
        collective: a rooted one, all_reduce or barrier.
        fabric: the fabric.
        pipeline: chunks k of a message; they follow each other in k - 1 additional steps [count].
    """
    n, root = fabric.num_nodes, collective.root
    shape, _ = _shape(fabric, root)
    levels = _levels(shape, root)
    stages = [(level, True) for level in levels if collective.name in UP]
    stages += [(level, False) for level in levels[::-1] if collective.name in DOWN]
    if collective.name not in BLOCKS:
        ends = [
            (level.child, level.parent, Op.REDUCE) if up else (level.parent, level.child, Op.COPY)
            for level, up in stages
        ]
        made = pipelined(n, [PipelineStage(src, dst, 0, op) for src, dst, op in ends], pipeline)
        return Schedule.of("tree", collective.on(n, pipeline), made)
    phases = []
    for level, up in stages:
        src, dst = (level.child, level.parent) if up else (level.parent, level.child)
        phases.append(
            Phase(
                PhaseRows.of(1, src[:, None], dst[:, None], 0, unit_lo=level.first, unit_count=level.size, op=Op.COPY)
            )
        )
    steps = Steps(Space((n,)), [MessagePart(((UNIT, 1, n),), n)], phases)
    return Schedule.of("tree", collective.on(n, n, owner=_node(shape, root, np.arange(n))), steps)


@lru_cache(maxsize=8)
def _shape(fabric: Fabric, root: int) -> tuple[tuple[int, ...], str | None]:
    """A line if its tree's pairs are linked, else the grid of the machine; and why neither is possible."""
    return line_or_grid(fabric, lambda shape: _pairs(shape, root))


def _pairs(shape: tuple[int, ...], root: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Ends of the links of a tree, in both directions, level by level."""
    for level in _levels(shape, root):
        yield level.parent, level.child
        yield level.child, level.parent


def _levels(shape: tuple[int, ...], root: int) -> list[Level]:
    """Levels from the leaves up; on a line the child is an odd multiple of 2^l, its parent the multiple below."""
    levels = []
    for dimension in reversed(range(len(shape))):
        side, stride = shape[dimension], prod(shape[dimension + 1 :])
        lines = np.arange(prod(shape[:dimension]))[:, None] * side
        for bit in range((side - 1).bit_length()):
            on_line = np.arange(1 << bit, side, 2 << bit)
            first = ((lines + on_line) * stride).ravel()
            size = np.broadcast_to(np.minimum(1 << bit, side - on_line) * stride, (len(lines), len(on_line))).ravel()
            parent = first - (stride << bit)
            levels.append(Level(_node(shape, root, first), _node(shape, root, parent), first, size))
    return levels


def _node(shape: tuple[int, ...], root: int, position: IntArray) -> IntArray:
    """Node at a position counted from the root, coordinate by coordinate."""
    coordinates, origin = np.unravel_index(position, shape), np.unravel_index(root, shape)
    moved = [(c + o) % side for c, o, side in zip(coordinates, origin, shape, strict=True)]
    node: IntArray = np.ravel_multi_index(moved, shape)
    return node
