"""Trees along the links that are left where parts have failed.

Every chunk has an in-tree that gathers it at its root, an out-tree that hands it out, or both:

    all_reduce                  in-tree to a root, out-tree from it; roots are the nodes that lost no rate, in turn
    reduce_scatter, all_to_all  in-tree of the rank that gets the chunk; in an all_to_all contributions travel side by side
    all_gather, broadcast       out-tree of the rank that has it

The trees are shortest paths, one tree after the other, by costs that grow with what the links and ports of the earlier trees
carry over their rate; then each tree is planned again beside all others. In a pipeline of k pieces all stages of all trees
are busy at the same time, so a message takes (stages + k - 1) / k times what its busiest link carries.

Source: Edmonds 1973 for trees that share capacity; choosing them by costs of the load is Garg and Koenemann 2007. Ours is
a heuristic: such trees exist wherever the links that are left are strongly connected, the fewest seconds are not proven.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics.oddl import Oddl, coordinate, dimension_between
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm
from opticcl.schedule.tree import pipelined_classes

__all__ = ["links_left", "packed_trees"]

MOST_NODES = 128
PASSES = 3
STEEPNESS = 4.0
DISTANCE_SHARES = (1.0, 0.3, 0.05)
USUAL_PIECES = 32
PER_OWNER = 2
"""Trees of a rank that owns chunks [count]."""
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_to_all", "all_gather", "broadcast", "reduce")

Floats = npt.NDArray[np.float64]


class LinksLeft(NamedTuple):
    """LinksLeft of a fabric between its ranks.

    Args:
        width: wavelengths that join each pair, int64 (ranks, ranks).
        port: of the sender and of the receiver of each pair, int64 (ranks, ranks).
        ports: of a node [count].
        port_width: wavelengths of each port that work: of the sender and of the receiver, int64 (ranks, ports) each.
    """

    width: IntArray
    port: IntArray
    ports: int
    port_width: tuple[IntArray, IntArray]


class Forest(NamedTuple):
    """Trees: parent of each node in each, itself at the root, int64 (trees, ranks); depth likewise; and the root of each."""

    parent: IntArray
    depth: IntArray
    root: IntArray


@lru_cache(maxsize=8)
def links_left(fabric: Fabric) -> LinksLeft:
    """LinksLeft between ranks on which some wavelength works, by `Fabric.options`.

    Raises: UnsupportedError: the fabric does not list them.
    """
    n, ports, w = fabric.num_nodes, fabric.ports_per_node, fabric.num_wavelengths
    src, dst = (side.ravel() for side in np.divmod(np.arange(n * n), n))
    apart = np.flatnonzero(src != dst)
    nodes = fabric.machine_nodes(np.arange(n))
    circuits = fabric.options(nodes[src[apart]], nodes[dst[apart]]).circuits
    works = _settings_suffice(fabric, circuits.src, circuits.dst)
    for fault in fabric.part_faults(circuits):
        works[fault.circuits] = False
    circuits = circuits.take(works)
    pair = apart[circuits.transfer]
    port = np.zeros(n * n, np.int64)
    port[pair] = circuits.port
    width = np.bincount(pair, circuits.wavelength_n, n * n).astype(np.int64)
    cells = []
    for end in (src, dst):
        many = circuits.wavelength_n.astype(np.int64)
        row = np.repeat(np.arange(len(circuits)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        place = end[pair[row]] * ports + circuits.port[row]
        wavelength = circuits.wavelength_lo[row] + nth * circuits.wavelength_step
        used = np.unique(place * w + wavelength)
        cells.append(np.bincount(used // w, minlength=n * ports).reshape(n, ports))
    return LinksLeft(width.reshape(n, n), port.reshape(n, n), ports, (cells[0], cells[1]))


def _settings_suffice(fabric: Fabric, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
    """Pairs that switches which are set once can join all at the same time: of ODDL's, partners whose coordinates differ in one
    bit, or neighbours of a circle where sides are no powers of two, if there are fewer wavelengths than partners.

    Args:
        fabric: any.
        src, dst: nodes of each pair.
    """
    machine = fabric.machine
    if not isinstance(machine, Oddl) or machine.num_wavelengths >= max(machine.shape) - 1:
        return np.ones(len(src), bool)
    dimension = dimension_between(machine.shape, src, dst)
    at, to = (coordinate(machine.shape, end.astype(np.int64), dimension) for end in (src, dst))
    side = np.array(machine.shape)[dimension]
    bits = at ^ to
    gap = (to - at) % side
    whole = (side & (side - 1)) == 0
    found: npt.NDArray[np.bool_] = np.where(whole, bits & (bits - 1) == 0, (gap == 1) | (gap == side - 1))
    return found


def accepts(collective: Request, fabric: Fabric, pipeline: int = 8) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: pieces of every chunk [count].
    """
    if not fabric.conditions:
        return "it plans around failed parts, and none has failed"
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n = fabric.num_nodes
    if not 1 < n <= MOST_NODES:
        return f"{n:,} nodes are not 2 to {MOST_NODES}"
    if not 1 <= pipeline <= 1 << 12:
        return f"pipeline={pipeline} is not 1 to 4,096"
    if fabric.links_all:
        return "one circuit can join any two nodes; trees along links do not help"
    try:
        links = links_left(fabric)
    except UnsupportedError as error:
        return str(error)
    if (links.width[~np.eye(n, dtype=bool)] > 0).all():
        return "one circuit can join any two nodes; trees along links do not help"
    root = collective.root
    reach = [_shortest(np.where(way > 0, 1.0, np.inf), root)[1] for way in (links.width, links.width.T)]
    if not all(np.isfinite(distance).all() for distance in reach):
        return "the links that are left do not join all nodes"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Numbers of pieces."""
    return [{"pipeline": pieces} for pieces in (1, 4, 16, 48)] if fabric.conditions else []


@register_algorithm("packed_trees", accepts, variants)
def packed_trees(collective: Request, fabric: Fabric, *, pipeline: int = 8) -> Schedule:
    """Trees along the links that are left, each with its share of the message in k pieces that follow each other.

    Args:
        collective: all_reduce, reduce_scatter, all_to_all, all_gather, broadcast or reduce.
        fabric: one of which parts have failed, so that not all nodes are joined.
        pipeline: pieces k of every chunk [count].
    """
    n, name = fabric.num_nodes, collective.name
    up, down = _forests(fabric, name, collective.root)
    trees = len((up or down).root)  # type: ignore[union-attr]
    if name in ("all_reduce", "broadcast", "reduce"):
        made = collective.on(n, trees * pipeline)
    else:
        made = collective.on(n, trees * pipeline, owner=np.repeat((up or down).root, pipeline))  # type: ignore[union-attr]
    stages = _stages(up, down, name == "all_to_all")

    def step(i: int) -> Transfers:
        """Piece p of every tree is at stage i - p."""
        busy = range(max(0, i - pipeline + 1), min(i + 1, len(stages)))
        rows = np.concatenate([stages[stage] for stage in busy], axis=1)
        piece = np.repeat([i - stage for stage in busy], [stages[stage].shape[1] for stage in busy])
        src, dst, tree, op, parts = rows
        order = np.lexsort((tree, dst, src))
        columns = (src, dst, tree * pipeline + piece, np.ones_like(src), op, parts if name == "all_to_all" else None)
        return Transfers.of(*(None if column is None else column[order] for column in columns))

    classes = pipelined_classes(len(stages), pipeline)
    return Schedule("packed_trees", made, len(stages) + pipeline - 1, step, classes, {"pipeline": pipeline})


def _stages(up: Forest | None, down: Forest | None, side_by_side: bool) -> list[IntArray]:
    """Sender, receiver, tree, operation and contributions of every transfer of each stage, int64 (5, m) each.

    Args:
        up: in-trees, whose deepest nodes send first.
        down: out-trees.
        side_by_side: whether contributions are kept apart.
    """
    found = []
    if up is not None:
        below = _below(up)
        deepest = int(up.depth.max())
        for depth in range(deepest, 0, -1):
            tree, node = np.nonzero(up.depth == depth)
            op = int(Op.MOVE if side_by_side else Op.REDUCE)
            rows = (node, up.parent[tree, node], tree, np.full(len(node), op), below[tree, node])
            found.append(np.stack(rows))
    if down is not None:
        for depth in range(1, int(down.depth.max()) + 1):
            tree, node = np.nonzero(down.depth == depth)
            one = np.ones(len(node), np.int64)
            found.append(np.stack((down.parent[tree, node], node, tree, one * int(Op.COPY), one)))
    return found


def _below(forest: Forest) -> IntArray:
    """Nodes of each subtree, with its root, int64 (trees, ranks)."""
    below = np.ones_like(forest.parent)
    for depth in range(int(forest.depth.max()), 0, -1):
        tree, node = np.nonzero(forest.depth == depth)
        np.add.at(below, (tree, forest.parent[tree, node]), below[tree, node])
    return below


@lru_cache(maxsize=16)
def _forests(fabric: Fabric, name: str, root: int) -> tuple[Forest | None, Forest | None]:
    """In-trees and out-trees of a collective, None where it has none."""
    links, n = links_left(fabric), fabric.num_nodes
    if name in ("broadcast", "reduce"):
        roots = np.full(2 * max(1, int((links.width[root] > 0).sum())), root)
    elif name == "all_reduce":
        rate = np.minimum(*(side.sum(axis=1) for side in links.port_width))
        roots = np.repeat(np.flatnonzero(rate == rate.max()), PER_OWNER)
    else:
        roots = np.repeat(np.arange(n), PER_OWNER)
    up = name in ("all_reduce", "reduce_scatter", "all_to_all", "reduce")
    down = name in ("all_reduce", "all_gather", "broadcast")
    counted = name == "all_to_all"
    tried = [_packed(links, roots, up, down, counted, share) for share in ((1.0,) if counted else DISTANCE_SHARES)]
    return min(tried, key=lambda made: _seconds(links, made, counted))


def _seconds(links: LinksLeft, made: tuple[Forest | None, Forest | None], counted: bool) -> float:
    """What the busiest link carries over its rate, longer for deep trees; in units that only compare.

    Args:
        links: that are left.
        made: in-trees and out-trees.
        counted: as `sums_up` of `_packed`.
    """
    load, stages = np.zeros(links.width.shape), 0
    for forest, inwards in zip(made, (True, False), strict=True):
        if forest is None:
            continue
        tree, node = np.nonzero(forest.depth > 0)
        parent = forest.parent[tree, node]
        weight = _below(forest)[tree, node] if counted else np.ones(len(tree))
        np.add.at(load, (node, parent) if inwards else (parent, node), weight)
        stages += int(forest.depth.max())
    return float(_busy(links, load).max()) * (1 + stages / USUAL_PIECES)


def _packed(
    links: LinksLeft, roots: IntArray, up: bool, down: bool, sums_up: bool, share: float
) -> tuple[Forest | None, Forest | None]:
    """Trees of the given roots, planned one after the other and then again beside the others.

    Args:
        links: that are left.
        roots: of the trees.
        up: whether there are in-trees.
        down: whether there are out-trees.
        sums_up: whether a link of an in-tree carries as many chunks as there are nodes below it.
        share: of the distance from the root in what a tree is chosen by.
    """
    load = np.zeros(links.width.shape)
    kinds = [kind for kind, wanted in (("up", up), ("down", down)) if wanted]
    shape = (len(roots), len(load))
    trees = {kind: [np.zeros(shape, np.int64), np.zeros(shape, np.int64)] for kind in kinds}
    weights = {kind: np.zeros(shape) for kind in kinds}
    nodes = np.arange(len(load))
    order = np.argsort(np.arange(len(roots)) % PER_OWNER, kind="stable")
    for number in range(PASSES):
        for t in order.tolist():
            for kind in kinds:
                parent, depth = trees[kind]
                ends = (nodes, parent[t]) if kind == "up" else (parent[t], nodes)
                if number:
                    load[ends] -= weights[kind][t]  # each node has one parent, so no pair is there twice
                cost = _costs(links, load)
                parent[t], depth[t] = _tree(cost.T if kind == "up" else cost, int(roots[t]), share)
                weight = (depth[t] > 0).astype(float)
                if sums_up:
                    weight *= _below(Forest(parent[t][None], depth[t][None], roots[t : t + 1]))[0]
                weights[kind][t] = weight
                ends = (nodes, parent[t]) if kind == "up" else (parent[t], nodes)
                load[ends] += weight
    made = {kind: Forest(trees[kind][0], trees[kind][1], roots) for kind in kinds}
    return made.get("up"), made.get("down")


def _busy(links: LinksLeft, load: Floats) -> Floats:
    """What every link, or the busier of its ports, carries over its rate, float64 (n * n,)."""
    n = len(load)
    rows, columns = np.divmod(np.arange(n * n), n)
    port, flat = links.port.ravel(), load.ravel()
    busy = flat / np.maximum(links.width.ravel(), 1)
    for end, side in zip((rows, columns), links.port_width, strict=True):
        at = end * links.ports + port
        busy = np.maximum(busy, (np.bincount(at, flat, n * links.ports) / np.maximum(side.ravel(), 1))[at])
    return busy


def _costs(links: LinksLeft, load: Floats) -> Floats:
    """Cost of every link by what it and its ports carry over their rate; infinite where there is none, float64 (n, n)."""
    busy = _busy(links, load)
    width = links.width.ravel()
    cost = (0.05 + (busy / (busy.max() or 1.0)) ** STEEPNESS) / np.maximum(width, 1) * width.max()
    return np.where(width > 0, cost, np.inf).reshape(load.shape)


def _tree(cost: Floats, root: int, share: float) -> tuple[IntArray, IntArray]:
    """Parent and depth of each node of a tree that grows from its root by the node that costs least.

    Args:
        cost: of every link.
        root: of the tree.
        share: of the distance from the root in the cost of a node: 1 for shortest paths, 0 for cheap links alone.
    """
    parent, _ = _shortest(cost, root, share)
    depth = np.full(len(cost), -1)
    depth[root] = 0
    for _ in range(len(cost)):
        new = (depth < 0) & (depth[parent] >= 0)
        if not new.any():
            break
        depth[new] = depth[parent[new]] + 1
    return parent, depth


def _shortest(cost: Floats, root: int, share: float = 1.0) -> tuple[IntArray, Floats]:
    """Parent of each node on its path from the root, the root's own itself, and what it cost; infinite without a path.

    Args:
        cost: of every link.
        root: where paths begin.
        share: as of `_tree`.
    """
    n = len(cost)
    distance, parent = np.full(n, np.inf), np.full(n, root)
    distance[root] = 0.0
    waiting = np.ones(n, bool)
    for _ in range(n):
        node = int(np.argmin(np.where(waiting, distance, np.inf)))
        if not np.isfinite(distance[node]) or not waiting[node]:
            break
        waiting[node] = False
        through = share * distance[node] + cost[node]
        nearer = waiting & (through < distance)
        distance[nearer], parent[nearer] = through[nearer], node
    return parent, distance
