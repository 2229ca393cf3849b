"""Broadcast and reduce on as many spanning trees as a node has links, none of which share a link.

Nodes stand on a grid on whose lines all are linked with each other. A side r gives r - 1 trees: in the tree (d, e), e = 1 ...
r - 1, the coordinates are counted from the root on, and

    the parent of a node       is the node
    whose coordinate d is e    with the first coordinate after d (cyclically) that is not 0 set to 0; the root if there is none
    of any other               with coordinate d set to e

    2 x 3, root 00            tree (0, 1)          tree (1, 1)          tree (1, 2)
                              00 - 10              00 - 01              00 - 02
                              10 - 11, 12, 00*     01 - 11, 02          02 - 12, 01
                              11 - 01, 12 - 02     11 - 10, 12          12 - 10, 11
    * the root itself needs nothing

Every tree takes its share of the message in k pieces, which follow each other. With L sides above 1 a tree is up to L + 1 deep,
so a broadcast takes L + k steps of 1/(k T) of the message on each link, T the number of trees; of a large message a link
carries 1/T, which is the least, since the root has T links.

Source: Johnsson and Ho 1989 for sides of 2; trees of this kind exist by Edmonds 1973. The form for any side is our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.fabrics.sipac import Sipac
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.limits import limit
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, grid_of, reason_any_not_linked, reason_not_shaped
from opticcl.schedule._pipeline import MOST_PIECES, along_trees
from opticcl.units import Shape

__all__ = ["disjoint_trees", "spanning_trees"]

PIECES = (1, 2, 4, 8, 12, 16, 24, 36, 48, 64, 96, 128)  # at most 3 % from the best number up to 128
MOST_ROWS_TRIED = limit("disjoint_trees.MOST_ROWS_TRIED")


def accepts(collective: Request, fabric: Fabric, pipeline: int = 1, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: pieces of the share of a tree [count].
        shape: sides of the grid, numbered row by row; None: those of the machine.
    """
    if collective.name not in ("broadcast", "reduce"):
        return "it does broadcast, reduce"
    sides, n = shape or _sides(fabric), fabric.num_nodes
    if reason := reason_not_shaped(sides, n):
        return reason
    trees = _num_trees(sides)
    if not 1 <= pipeline <= MOST_PIECES // max(trees, 1):
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES // max(trees, 1):,}"
    if trees * (n - 1) > MOST_TRANSFERS:
        return SizeLimit(f"{trees * (n - 1):,} transfers a step are more than {MOST_TRANSFERS:,}; try tree or sipco")

    def pairs() -> Iterator[tuple[IntArray, IntArray]]:
        child, parent, _, _ = spanning_trees(sides, collective.root)
        yield parent, child
        yield child, parent

    return reason_any_not_linked(fabric, pairs())


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """On a SiPAC, whose nodes use all their links at the same time: numbers of pieces, fewer for machines with many links. On a
    LIGHTPATH the same on grids of as many neighbours as a tile has lasers."""
    if collective.name not in ("broadcast", "reduce"):
        return []
    if isinstance(fabric.machine, Lightpath):
        shapes = _widest(fabric.num_nodes, fabric.lasers_per_port)
        return [{"pipeline": pieces, "shape": shape} for shape in shapes for pieces in PIECES]
    if not isinstance(fabric.machine, Sipac):
        return []
    sides = _sides(fabric)
    rows = _num_trees(sides) * fabric.num_nodes * 2 * len(sides)  # of the steps that differ
    most = max(MOST_ROWS_TRIED // max(rows, 1), 1)
    tried = PIECES[:: -(-len(PIECES) // most)]
    skipped = [pieces for pieces in PIECES if pieces not in tried]
    choices: list[dict[str, object] | NotTried] = [{"pipeline": pieces} for pieces in tried]
    return choices + [left_out(rows * len(PIECES), MOST_ROWS_TRIED, f"pipeline={', '.join(map(str, skipped))}")] * bool(
        skipped
    )


def _widest(num_nodes: int, lasers: int) -> list[tuple[int, ...]]:
    """Grids of which none has another with as few sides that uses as many lasers, the same number for each neighbour.

    >>> _widest(256, 16), _widest(64, 16)
    ([(8, 8, 2, 2)], [(8, 8), (4, 4, 2, 2)])
    """
    used: dict[int, tuple[int, tuple[int, ...]]] = {}

    def extend(chosen: tuple[int, ...], left: int) -> None:
        neighbours = _num_trees(chosen)
        if neighbours > lasers:
            return
        if left == 1 and chosen:
            in_use = lasers // neighbours * neighbours
            used[len(chosen)] = max(used.get(len(chosen), (0, ())), (in_use, chosen))
        for side in range(min(left, *chosen[-1:], left), 1, -1):
            if left % side == 0:
                extend((*chosen, side), left // side)

    extend((), num_nodes)
    widest: list[tuple[int, ...]] = []
    best = 0
    for count in sorted(used):
        if used[count][0] > best:
            best = used[count][0]
            widest.append(used[count][1])
    return widest


@register_algorithm("disjoint_trees", accepts, variants)
def disjoint_trees(collective: Request, fabric: Fabric, *, pipeline: int = 1, shape: Shape | None = None) -> Schedule:
    """Broadcast or reduce on T trees without common links, each of L levels with k pieces: L + k steps.

    Args:
        collective: broadcast or reduce.
        fabric: one on the lines of whose grid all nodes are linked.
        pipeline: pieces k of the share of each tree [count].
        shape: sides of the grid, numbered row by row; None: those of the machine.
    """
    n, sides = fabric.num_nodes, shape or _sides(fabric)
    links = spanning_trees(sides, collective.root)
    steps = along_trees(links, n, pipeline, max(_num_trees(sides), 1), down=collective.name == "broadcast")
    stands = isinstance(fabric.machine, Lightpath)
    return Schedule.of("disjoint_trees", collective.on(n, steps.num_chunks), steps, stands=stands)


def spanning_trees(sides: tuple[int, ...], root: int = 0) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(child, parent, tree, level of the child) of all trees, int64 (T (N - 1),) each; the root is on level 0.

    Args:
        sides: of the grid, the last coordinate fastest.
        root: node.

    >>> child, parent, tree, level = spanning_trees((2, 3))
    >>> [(c, p) for c, p, t in zip(child.tolist(), parent.tolist(), tree.tolist()) if t == 0]
    [(1, 4), (2, 5), (3, 0), (4, 3), (5, 3)]
    """
    n = prod(sides)
    digits = np.stack(np.unravel_index(np.arange(n), sides)) if n > 1 else np.zeros((len(sides), 1), np.int64)
    at_root = digits[:, root]
    numbers = np.array([prod(sides[d + 1 :]) for d in range(len(sides))], np.int64)
    columns: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
    below = np.delete(np.arange(n), root)
    relative = (digits[:, below] - at_root[:, None]) % np.array(sides)[:, None]
    for d, side in enumerate(sides):
        later = [*range(d + 1, len(sides)), *range(d)]
        others = relative[later] != 0
        first = (
            np.array([*later, d])[np.where(others.any(axis=0), others.argmax(axis=0), len(later))] if later else None
        )
        for e in range(1, side):
            above, inner = relative.copy(), relative[d] == e
            above[d, ~inner] = e
            clear = np.flatnonzero(inner)
            above[d if first is None else first[clear], clear] = 0
            to = ((above + at_root[:, None]) % np.array(sides)[:, None] * numbers[:, None]).sum(axis=0)
            level = 1 + others.sum(axis=0) + ~inner
            columns.append((below, to, np.full(n - 1, len(columns)), level))
    if not columns:
        return (np.zeros(0, np.int64),) * 4
    child, parent, tree, depth = (np.concatenate(column) for column in zip(*columns, strict=True))
    return child, parent, tree, depth


def _sides(fabric: Fabric) -> tuple[int, ...]:
    """Of the machine's grid; of a SiPAC its radices, level 0 last."""
    machine = fabric.equivalent
    return machine.sides[::-1] if isinstance(machine, Sipac) else grid_of(fabric)


def _num_trees(sides: tuple[int, ...]) -> int:
    """Links of a node [count]."""
    return sum(side - 1 for side in sides)
