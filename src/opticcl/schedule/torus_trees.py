"""Broadcast and reduce on as many spanning trees as a torus has ways to go, none of which share a link.

Coordinates are counted from the root on. In tree d of a torus of k dimensions, with links in one direction, the parent of a
node is the node one back along

    dimension d                  if coordinate d is 0, round the ring
    the next dimension after d   cyclically, whose coordinate is not 0, if there is one besides d
    dimension d                  else

At a node whose coordinates differ from 0 in the dimensions S, the trees outside S keep their own dimension and those in S pass
theirs on cyclically: all dimensions are distinct, so no link is in two trees. Coordinate d stays above 0 until all others
are 0, so every path ends at the root, after 1 + sum (n_i - 1) links at most.

    3 x 3, root 00     tree 0   00 - 10 - 20;  10 - 11 - 12, 20 - 21 - 22;  21 - 01, 22 - 02
                       tree 1   the same with the coordinates exchanged

The share of every tree is cut into s pieces, which follow each other. With T trees, rate B a link and the depth D = 1 + sum
(n_i - 1) a broadcast of V takes

    R + (D + s - 1) (alpha + V / (T s B))      T = k, or 2 k where links lead both ways: the mirror image of each tree

Every node has T links that lead to it, so V / (T B) is the least. All circuits stand.

Source: trees without common links exist by Edmonds 1973, on hypercubes Johnsson and Ho 1989. The rule for a torus is our own.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.oddl import Oddl
from opticcl.fabrics.terarack_torus import TerarackTorus
from opticcl.fabrics.torus import Torus
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.limits import limit
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, long_sides, reason_not_linked, reason_not_shaped
from opticcl.schedule._pipeline import MOST_PIECES, along_trees
from opticcl.units import Shape

__all__ = ["torus_spanning_trees", "torus_trees"]

PIECES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)  # at most 3 % from the best number in between
MOST_ROWS_TRIED = limit("torus_trees.MOST_ROWS_TRIED")


def accepts(
    collective: Request,
    fabric: Fabric,
    pipeline: int = 1,
    both_ways: bool = False,
    shape: tuple[int, ...] | None = None,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: pieces of the share of a tree [count].
        both_ways: whether links lead both ways round each ring.
        shape: sides of the torus, numbered row by row; None: those of the machine.
    """
    if collective.name not in ("broadcast", "reduce"):
        return "it does broadcast, reduce"
    n = fabric.num_nodes
    if shape is not None and (reason := reason_not_shaped(shape, n)):
        return reason
    sides = long_sides(fabric, shape)
    if len(sides) < 2:
        return "it needs a grid of two or more dimensions; try ring"
    if both_ways and min(sides) < 3:
        return "a ring of two nodes has one link each way; leave both_ways out"
    trees = len(sides) * (1 + both_ways)
    if not 1 <= pipeline <= MOST_PIECES // trees:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES // trees:,}"
    if trees * n > MOST_TRANSFERS:
        return SizeLimit(f"{trees * n:,} transfers a step are more than {MOST_TRANSFERS:,}; try tree")
    child, parent, _, _ = torus_spanning_trees(sides, collective.root, both_ways)
    return reason_not_linked(fabric, *((parent, child) if collective.name == "broadcast" else (child, parent)))


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """Numbers of pieces, where the lines of the machine are rings whose links all work at the same time."""
    sides = long_sides(fabric, None)
    machine = fabric.machine
    rings = isinstance(machine, Oddl) or (isinstance(machine, (Torus, TerarackTorus)) and min(sides, default=0) > 2)
    if collective.name not in ("broadcast", "reduce") or len(sides) < 2 or not rings:
        return []
    both_ways = not isinstance(machine, Oddl)
    rows = 2 * fabric.num_nodes * len(sides) * (1 + both_ways)  # a tree each time it fills and drains
    depth = 1 + sum(side - 1 for side in sides)
    all_tried = rows * depth <= MOST_ROWS_TRIED
    choices: list[dict[str, object] | NotTried] = [
        {"pipeline": pieces, "both_ways": both_ways} for pieces in (PIECES if all_tried else PIECES[::2])
    ]
    skipped = f"pipeline={', '.join(map(str, PIECES[1::2]))}"
    return choices if all_tried else [*choices, left_out(rows * depth, MOST_ROWS_TRIED, skipped)]


@register_algorithm("torus_trees", accepts, variants)
def torus_trees(
    collective: Request, fabric: Fabric, *, pipeline: int = 1, both_ways: bool = False, shape: Shape | None = None
) -> Schedule:
    """Broadcast or reduce on trees without common links along the rings of a torus, in s pieces.

    Args:
        collective: broadcast or reduce.
        fabric: one on the lines of whose grid neighbours are linked.
        pipeline: pieces s of the share of each tree [count].
        both_ways: whether links lead both ways round each ring; twice as many trees.
        shape: sides of the torus, numbered row by row; None: those of the machine.
    """
    n, sides = fabric.num_nodes, long_sides(fabric, shape)
    links = torus_spanning_trees(sides, collective.root, both_ways)
    trees = len(sides) * (1 + both_ways)
    steps = along_trees(links, n, pipeline, trees, down=collective.name == "broadcast")
    return Schedule.of("torus_trees", collective.on(n, steps.num_chunks), steps, stands=True)


def torus_spanning_trees(
    sides: tuple[int, ...], root: int = 0, both_ways: bool = False
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(child, parent, tree, level of the child) of all trees, int64 (T (N - 1),) each; the root is on level 0.

    Args:
        sides: of the torus, 2 or more each, the last coordinate fastest.
        root: node.
        both_ways: whether each tree has a mirror image; those are last.

    >>> child, parent, tree, level = torus_spanning_trees((2, 3))
    >>> [(int(c), int(p)) for c, p, t in zip(child, parent, tree) if t == 0]
    [(1, 4), (2, 5), (3, 0), (4, 3), (5, 4)]
    """
    n, k = prod(sides), len(sides)
    if n == 1:
        return (np.zeros(0, np.int64),) * 4
    size = np.array(sides)[:, None]
    relative = np.array(np.unravel_index(np.arange(1, n), sides))
    origin = np.array(np.unravel_index(root, sides))[:, None]
    columns: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
    for way in (1, -1)[: 1 + both_ways]:
        child = _number(sides, (origin + way * relative) % size)
        for d in range(k):
            others = [*range(d + 1, k), *range(d)]
            rest = relative[others] != 0
            nearest = np.array([*others, d])[np.where(rest.any(axis=0), rest.argmax(axis=0), k - 1)] if others else d
            along = np.where(relative[d] == 0, d, nearest)
            above = relative.copy()
            above[along, np.arange(n - 1)] -= 1
            level = relative.sum(axis=0) + np.where(relative[d] == 0, sides[d], 0)
            parent = _number(sides, (origin + way * above) % size)
            columns.append((child, parent, np.full(n - 1, len(columns)), level))
    joined = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    return joined[0], joined[1], joined[2], joined[3]


def _number(sides: tuple[int, ...], coordinates: IntArray) -> IntArray:
    """Of nodes, int64 (nodes,).

    Args:
        sides: of the torus.
        coordinates: of the nodes, int64 (dimensions, nodes).
    """
    number: IntArray = np.ravel_multi_index(tuple(coordinates), sides)
    return number
