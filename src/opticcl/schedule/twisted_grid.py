"""Trees on a grid each of whose lines is one ring in an order of its own: few steps on circuits that are set once.

A node of an ODDL has one sender and one receiver a dimension. On rings in the order of the coordinates the farthest node is sum
(n_i - 1) steps away. Here every line is a ring in a random order, which makes the grid an expander: all nodes are about log_k N
steps away, k dimensions. Data go up to the root of a tree of shortest paths, or down from it, or both:

    4 x 4    row 0    0 - 2 - 1 - 3 - 0        column 0    0 - 12 - 4 - 8 - 0
             row 1    4 - 7 - 6 - 5 - 4        column 1    1 - 5 - 13 - 9 - 1        and so on

    broadcast, scatter      down, the message or the blocks of all nodes below
    reduce, gather          up
    all_reduce, barrier     sums up, sums down
    reduce_scatter          sums up, blocks down
    all_gather              blocks up, the message down

In s pieces that follow each other, with rate B a circuit and trees of depths D, one way takes

    (D + s - 1) (alpha + V / (s B))

and the circuits are set once. 32x32 nodes are 12 steps apart instead of 62. Orders are a hash of the node and a number, one of
several with the shallowest trees. Random orders have no symmetry to claim.

Source: random regular graphs are expanders, Friedman 2008. That lines of a grid may be rings in any order, set once by the
switches, is our own.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.collective import Request
from opticcl.fabrics.oddl import Oddl
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers, concatenate_transfers, mixed_bits
from opticcl.ir.limits import limit
from opticcl.ir.phases import Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import SizeLimit, long_sides, reason_not_linked
from opticcl.schedule._pipeline import Pipeline

__all__ = ["TwistedTree", "twisted_grid", "twisted_tree"]

UP = ("reduce", "gather", "all_reduce", "barrier", "reduce_scatter", "all_gather")
DOWN = ("broadcast", "scatter", "all_reduce", "barrier", "reduce_scatter", "all_gather")
BLOCKS_UP, BLOCKS_DOWN = ("gather", "all_gather"), ("scatter", "reduce_scatter")
PIECES = (1, 2, 4, 8, 16, 32)
NUM_ORDERS = 16  # of which the best is taken
MOST_NODES = limit("twisted_grid.MOST_NODES")


class TwistedTree(NamedTuple):
    """A tree of shortest paths.

    Args:
        node: all but the root, by level, int64 (nodes - 1,).
        parent: of each, int64 (nodes - 1,).
        first: of each, the first of the blocks of the nodes below it, itself included, int64 (nodes - 1,).
        size: number of these blocks, int64 (nodes - 1,).
        starts: first node of each level, and the end.
        owner: node of each block, int64 (nodes,).
    """

    node: IntArray
    parent: IntArray
    first: IntArray
    size: IntArray
    starts: tuple[int, ...]
    owner: IntArray

    @property
    def depth(self) -> int:
        """Levels below the root [count]."""
        return len(self.starts) - 1


def accepts(collective: Request, fabric: Fabric, pipeline: int = 1) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: pieces of the message [count].
    """
    if collective.name not in UP + DOWN:
        return "it does " + ", ".join(dict.fromkeys(UP + DOWN))
    if len(long_sides(fabric, None)) < 2:
        return "it needs a grid of two or more dimensions; try ring"
    if fabric.num_nodes > MOST_NODES:
        return SizeLimit(f"{fabric.num_nodes:,} nodes are more than {MOST_NODES:,}; try rotated_rings")
    if not 1 <= pipeline <= PIECES[-1] ** 2:
        return f"pipeline={pipeline} is not 1 to {PIECES[-1] ** 2:,}"
    if pipeline > 1 and collective.name in BLOCKS_UP + BLOCKS_DOWN:
        return f"{collective.name} moves blocks, not pieces; leave pipeline out"
    up, down = _trees(long_sides(fabric, None), collective.root, collective.name)
    return reason_not_linked(fabric, up.node, up.parent) or reason_not_linked(fabric, down.parent, down.node)


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """On an ODDL: numbers of pieces."""
    if not isinstance(fabric.machine, Oddl) or accepts(collective, fabric) or collective.name == "barrier":
        return []
    return [{}] if collective.name in BLOCKS_UP + BLOCKS_DOWN else [{"pipeline": pieces} for pieces in PIECES]


@register_algorithm("twisted_grid", accepts, variants, systems=("oddl",))
def twisted_grid(collective: Request, fabric: Fabric, *, pipeline: int = 1) -> Schedule:
    """Trees on rings of random orders, s pieces in D + s - 1 steps up, down, or both.

    Args:
        collective: any but all_to_all and send_recv.
        fabric: an ODDL of two or more dimensions.
        pipeline: pieces s of the message [count].
    """
    n, name = fabric.num_nodes, collective.name
    up, down = _trees(long_sides(fabric, None), collective.root, name)
    blocks = name in BLOCKS_UP + BLOCKS_DOWN

    def sent(tree: TwistedTree, upwards: bool, stage: int, piece: int) -> Transfers:
        """A piece, or the blocks, at a stage of a tree."""
        level = tree.depth - 1 - stage if upwards else stage
        rows = slice(tree.starts[level], tree.starts[level + 1])
        src, dst = (tree.node, tree.parent) if upwards else (tree.parent, tree.node)
        op = Op.REDUCE if upwards and name not in BLOCKS_UP else Op.COPY
        if name in (BLOCKS_UP if upwards else BLOCKS_DOWN):
            return Transfers.of(src[rows], dst[rows], tree.first[rows], tree.size[rows], op)
        return Transfers.of(src[rows], dst[rows], piece, n if blocks else 1, op)

    def way(tree: TwistedTree, upwards: bool, i: int) -> Transfers:
        """Step i of one way: piece p is at stage i - p."""
        busy = Pipeline(tree.depth, pipeline).busy(i)
        return concatenate_transfers(sent(tree, upwards, stage, i - stage) for stage in busy)

    ways = [(up, True)] * (name in UP) + [(down, False)] * (name in DOWN)
    pipelines = [Pipeline(tree.depth, pipeline) for tree, _ in ways]
    lengths = [stages.num_steps for stages in pipelines]
    starts = list(accumulate(lengths, initial=0))

    def step(i: int) -> Transfers:
        number = 0 if i < lengths[0] else 1
        return way(*ways[number], i - starts[number])

    classes = tuple(
        range(run.start + at, run.stop + at)
        for stages, at in zip(pipelines, starts, strict=False)
        for run in stages.classes
    )
    owner = (up if name in BLOCKS_UP else down).owner
    chunks = collective.on(n, n, owner=owner) if blocks else collective.on(n, pipeline)
    steps = Steps.listed(n, chunks.num_chunks, starts[-1], step, classes, sends=True)
    return Schedule.of("twisted_grid", chunks, steps, stands=True)


@lru_cache(maxsize=8)
def _trees(sides: tuple[int, ...], root: int, name: str) -> tuple[TwistedTree, TwistedTree]:
    """Trees to the root and from it, with the order of the lines for which those that are used have the fewest levels.

    Args:
        sides: of the grid.
        root: node.
        name: of the collective.
    """
    following = _following(sides, np.arange(NUM_ORDERS))
    preceding = np.empty_like(following)
    np.put_along_axis(preceding, following, np.broadcast_to(np.arange(prod(sides)), following.shape), axis=2)
    levels = [_levels(there, root) for there in (following, preceding)]
    depths = [some.max(axis=1) for some in levels]
    steps = depths[0] * (name in UP) + depths[1] * (name in DOWN)
    best = int(np.argmin(steps))
    return (
        twisted_tree(following[best], levels[0][best], root),
        twisted_tree(preceding[best], levels[1][best], root),
    )


def _following(sides: tuple[int, ...], orders: IntArray) -> IntArray:
    """The next node of each on its line of each dimension, int64 (orders, dimensions, nodes).

    Args:
        sides: of the grid.
        orders: numbers, int64 (orders,).
    """
    n = prod(sides)
    found = np.empty((len(orders), len(sides), n), np.int64)
    node = np.arange(n)
    for d, side in enumerate(sides):
        stride = prod(sides[d + 1 :])
        line = node // (stride * side) * stride + node % stride
        for at, order in enumerate(orders):
            key = _hash(node + n * (d + len(sides) * int(order)))
            ring = np.lexsort((key, line)).reshape(-1, side)
            found[at, d, ring] = np.roll(ring, -1, axis=1)
    return found


def _hash(number: IntArray) -> npt.NDArray[np.uint64]:
    """Of each number, uint64."""
    return mixed_bits((number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def _levels(towards: IntArray, root: int) -> IntArray:
    """Steps from each node to the root, int64 (orders, nodes).

    Args:
        towards: nodes that each may go to, int64 (orders, ways, nodes).
        root: node.
    """
    orders, _, n = towards.shape
    level = np.full((orders, n), n, np.int64)
    level[:, root] = 0
    while True:
        nearest = np.minimum(level, 1 + np.take_along_axis(level[:, None, :], towards, axis=2).min(axis=1))
        if np.array_equal(nearest, level):
            return level
        level = nearest


def twisted_tree(towards: IntArray, level: IntArray, root: int) -> TwistedTree:
    """The tree in which every node goes to the first node that is nearer to the root.

    Args:
        towards: nodes that each may go to, int64 (ways, nodes).
        level: of each node, int64 (nodes,).
        root: node.
    """
    n = len(level)
    parent = towards[(level[towards] == level - 1).argmax(axis=0), np.arange(n)]
    node = np.lexsort((parent, level))[1:]  # without the root
    starts = np.searchsorted(level[node], np.arange(1, int(level.max()) + 2))
    size = np.ones(n, np.int64)
    for lo, hi in zip(starts[-2::-1], starts[:0:-1], strict=True):
        np.add.at(size, parent[node[lo:hi]], size[node[lo:hi]])
    first = np.zeros(n, np.int64)
    for lo, hi in pairwise(starts):  # children of a node are neighbours: its blocks in turn
        mine = node[lo:hi]
        before = np.cumsum(size[mine]) - size[mine]
        begins = np.searchsorted(parent[mine], parent[mine])
        first[mine] = first[parent[mine]] + 1 + before - before[begins]
    owner = np.argsort(first)
    return TwistedTree(node, parent[node], first[node], size[node], tuple(starts.tolist()), owner)
