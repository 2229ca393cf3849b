"""Collectives that use the links of a packet network as far as its narrowest cut, or its least busy link, allows.

Every rank is the root of k trees that reach all others, each with its share of the rank's data; on no link do the trees of all
ranks carry more than its rate allows in the time of the optimum, or in at most one per cent more (`opticcl.routing.forest`).

    all_gather, broadcast          data goes down the trees of its rank, or of the root
    reduce_scatter, reduce         up trees of the links the other way, where sums are made
    all_reduce                     up, then down
    all_to_all                     parts of a block take the paths of a maximum concurrent flow, in one step

The data of a tree is cut into s pieces that follow each other. Where all trees are H deep at most, a step carries a piece at
each of H stages, so the links need (H + s - 1) / s times what the trees take; the steps have their latencies beside it.

Where the trees of all ranks can be translations of one on the routes of the fabric, they are: steps are then defined by N - 1
transfers. Else trees are packed one by one, or, of many ranks, are translations of those of one on stated paths.

In trees packets take the routes of the fabric between pairs of ranks whose routes pass no other rank, as far as such trees
are as fast; else transfers state their paths.

Source: Zhao et al. 2024 (ForestColl) for the trees. TACOS (Won et al. 2024) and the schedules of Zhao et al. 2023 for networks
without switches solve the same problem step by step.
"""

from __future__ import annotations

from contextlib import suppress
from math import lcm, prod

import numpy as np

from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics.exchange_flow import exchange_flow, exchange_paths, num_exchange_flows
from opticcl.fabrics.spanning_trees import (
    TranslatedTree,
    TreePacking,
    direct_ranks,
    has_network,
    num_splittings,
    one_tree_for_all,
    spanning_trees,
)
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.paths import paths_of_rows
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import SizeLimit

__all__ = ["forest"]

MOST_NODES = limit("forest.MOST_NODES")
MOST_NODES_SOON = limit("forest.MOST_NODES_SOON")
MOST_NODES_LISTED = limit("forest.MOST_NODES_LISTED")
MOST_NODES_ROOTED = limit("forest.MOST_NODES_ROOTED")
MOST_NODES_TRIED = limit("forest.MOST_NODES_TRIED")
MOST_NODES_ROOTED_TRIED = limit("forest.MOST_NODES_ROOTED_TRIED")
MOST_SPLITTINGS_TRIED = limit("forest.MOST_SPLITTINGS_TRIED")
MOST_NODES_TRANSLATED = limit("forest.MOST_NODES_TRANSLATED")
MOST_TRIED = limit("forest.MOST_TRIED")
MOST_ROUTED = limit("forest.MOST_ROUTED")
MOST_PIECES = limit("forest.MOST_PIECES")
MOST_FLOWS = limit("forest.MOST_FLOWS")
MOST_FLOWS_TRIED = limit("forest.MOST_FLOWS_TRIED")
MOST_TREES = 64
SEVERAL = 16
"""Trees of one root, of which the inner vertices of one are mostly leaves of others [count]."""
ROOTED = ("broadcast", "reduce")
UP, DOWN = ("reduce_scatter", "reduce", "all_reduce"), ("all_gather", "broadcast", "all_reduce")


def accepts(collective: Request, fabric: Fabric, pipeline: int = 32, trees: int = 1) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: pieces of the data of a tree, or parts of a block of an all_to_all [count].
        trees: of each root at least [count].
    """
    if collective.name not in (*UP, *DOWN, "all_to_all"):
        return "it does all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce"
    if not has_network(fabric):
        return "it needs a network of packets"
    if not 1 <= pipeline <= MOST_PIECES:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES:,}"
    if not 1 <= trees <= MOST_TREES:
        return f"trees={trees} is not 1 to {MOST_TREES}"
    if fabric.num_nodes < 2:
        return "one node has nothing to send"
    try:
        if collective.name == "all_to_all":
            return _exchange_declined(fabric, trees)
        if trees == 1 and _trees_for_all(fabric, collective):
            return None
        most, listed = (MOST_NODES_ROOTED,) * 2 if collective.name in ROOTED else (MOST_NODES, MOST_NODES_LISTED)
        packings = [] if fabric.num_nodes > listed else _packings(fabric, collective, trees)
    except UnsupportedError as error:
        return str(error)
    if len(packings) < len(_directions(collective)):
        if fabric.num_nodes > most:
            return SizeLimit(f"trees of {fabric.num_nodes:,} nodes are packed one by one; at most {most:,}")
        return "no trees were found within 1 % of the narrowest cut of this machine or of its routes"
    return None


def _exchange_declined(fabric: Fabric, trees: int) -> str | None:
    """Why an all_to_all has no paths, or None.

    Args:
        fabric: with a network.
        trees: requested.
    Raises: UnsupportedError: as `exchange_flow`.
    """
    if trees != 1:
        return f"trees={trees}: an all_to_all has paths and no trees; leave it out"
    if (flows := num_exchange_flows(fabric)) > MOST_FLOWS:
        return SizeLimit(f"{flows:,} flows, ranks times links, of an all_to_all; at most {MOST_FLOWS:,}")
    exchange_flow(fabric)
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """Numbers of pieces; trees of one root, which are deep where they are few, in two numbers."""
    n = fabric.num_nodes
    if n < 2 or not has_network(fabric) or collective.name not in (*UP, *DOWN, "all_to_all"):
        return []
    if collective.name == "all_to_all":
        flows = num_exchange_flows(fabric)
        many = NotTried("", f"{flows:,} flows, ranks times links; a search tries {MOST_FLOWS_TRIED:,} at most")
        return [many] if flows > MOST_FLOWS_TRIED else [{"pipeline": parts} for parts in (1, 8, 32)]
    with suppress(UnsupportedError):  # rank 0 has no route to some other
        if n <= MOST_NODES_TRANSLATED and (routes := n * len(direct_ranks(fabric))) > MOST_ROUTED:
            return [NotTried("", f"{routes:,} routes; a search divides trees by {MOST_ROUTED:,} at most")]
    trees = _trees_for_all(fabric, collective)
    most = MOST_NODES_ROOTED_TRIED if collective.name in ROOTED else MOST_NODES_TRIED
    if not trees and n > most:
        return [NotTried("", f"{n:,} nodes; a search packs trees of {most} at most")]
    if not trees and (splittings := num_splittings(fabric)) > MOST_SPLITTINGS_TRIED:
        why = f"{splittings:,} vertices that are not ranks, times ranks; a search splits {MOST_SPLITTINGS_TRIED:,} off at most"
        return [NotTried("", why)]
    if collective.name in ROOTED:
        return [{"pipeline": pieces, "trees": many} for many in (1, SEVERAL) for pieces in (8, 32, 128, 512)]
    if trees and all(tree.depth.max() == 1 for tree in trees):
        return []  # what mesh sends
    if trees and (count := n * (n - 1) * sum(int(tree.depth.max()) for tree in trees)) > MOST_TRIED:
        return [left_out(count, MOST_TRIED)]
    return [{"pipeline": pieces} for pieces in (1, 4, 16, 64)]


@register_algorithm("forest", accepts, variants)
def forest(collective: Request, fabric: Fabric, *, pipeline: int = 32, trees: int = 1) -> Schedule:
    """Trees of all ranks that share the links, each tree's data in s pieces: H + s - 1 steps for trees H deep.

    Args:
        collective: all_gather, reduce_scatter, all_reduce, all_to_all, broadcast or reduce.
        fabric: one of packets.
        pipeline: pieces s of the data of a tree; parts of a block of an all_to_all [count].
        trees: of each root at least; the fewest from there on with which links carry at most 1 % more than they must [count].
    """
    if collective.name == "all_to_all":
        return _exchange(collective, fabric, pipeline)
    if one_tree := trees == 1 and _trees_for_all(fabric, collective):
        return _translations(collective, one_tree, pipeline)
    n, packings = fabric.num_nodes, _packings(fabric, collective, trees)
    a_root = lcm(*(packing.trees_a_root for packing in packings))
    owner = np.repeat([collective.root] if collective.name in ROOTED else np.arange(n), a_root)
    parts = [MessagePart(((UNIT, 1, pipeline),), pipeline)] * len(owner)
    phases = []
    for packing, up in zip(packings, _directions(collective), strict=True):
        rows, stages, paths = _rows(packing, a_root, owner, up)
        phases.append(Phase(rows, (), stages + pipeline - 1, paths=None if packing.routed else paths))
    blocks = np.repeat(owner, pipeline) if collective.name in ("all_gather", "reduce_scatter") else None
    made = collective.on(n, len(parts) * pipeline, owner=blocks)
    return Schedule.of("forest", made, Steps(Space((n,)), parts, phases), cut=1 if len(phases) > 1 else None)


def _exchange(collective: Request, fabric: Fabric, parts: int) -> Schedule:
    """Every block in one step, its parts on paths that load links as the flow does.

    Args:
        collective: all_to_all.
        fabric: with a network.
        parts: of a block [count].
    """
    n, paths = fabric.num_nodes, exchange_paths(fabric, parts)
    _, block = np.unique(paths.src * n + paths.dst, return_inverse=True)
    before = np.cumsum(paths.parts) - paths.parts - parts * block  # parts of the block on the paths in front of it
    sent = Transfers.of(
        paths.src, paths.dst, paths.dst * parts + before, paths.parts, Op.MOVE, path=(paths.hops, paths.offsets)
    )
    return Schedule.of("forest", collective.on(n, n * parts), Steps.of_lists(n, n * parts, [sent]))


def _translations(collective: Request, trees: list[TranslatedTree], pieces: int) -> Schedule:
    """The schedule of trees that are translations of one, up trees of the first before those of the last.

    Args:
        collective: all_gather, reduce_scatter or all_reduce.
        trees: of rank 0, for each direction.
        pieces: of the data of a rank [count].
    """
    radices, phases = trees[0].radices, []
    n, digits = prod(radices), range(len(radices))
    for tree, up in zip(trees, _directions(collective), strict=True):
        child, stages = np.arange(1, n), int(tree.depth.max())
        sends, receives = (child, tree.parent[1:]) if up else (tree.parent[1:], child)
        stage = stages - tree.depth[1:] if up else tree.depth[1:] - 1
        order = np.lexsort((receives, sends, stage))
        dst, owner = (
            np.stack(np.unravel_index(tree.moved(vertices[order], sends[order], -1), radices), axis=1)
            for vertices in (receives, np.zeros_like(sends))
        )
        op = int(Op.REDUCE if up else Op.COPY)
        rows = PhaseRows.of(len(radices), 0, dst, owner, unit_lo=-stage[order], unit_shift=1, op=op)
        phases.append(Phase(rows, (True,) * len(radices), stages + pieces - 1))
    part = MessagePart((*((d, 1, radices[d]) for d in digits), (UNIT, 1, pieces)), pieces)
    steps = Steps(Space(radices, trees[0].order), [part], phases)
    return Schedule.of(
        "forest", collective.on(n, n * pieces, owner=steps.owners), steps, cut=1 if len(phases) > 1 else None
    )


def _trees_for_all(fabric: Fabric, collective: Request) -> list[TranslatedTree]:
    """A tree for each direction whose translations serve all ranks; none where a direction has none.

    Args:
        fabric: where it would run.
        collective: requested.
    """
    if collective.name in ROOTED or fabric.num_nodes > MOST_NODES_TRANSLATED:
        return []
    try:
        trees = [one_tree_for_all(fabric, up) for up in _directions(collective)]
    except UnsupportedError:  # some ranks have no route to others, or what `_packings` says
        return []
    every = [tree for tree in trees if tree is not None]
    same = len(every) == len(trees) and len({Space(tree.radices, tree.order) for tree in every}) == 1
    return every if same else []


def _directions(collective: Request) -> list[bool]:
    """Whether data goes up in each of the packings of a collective."""
    return [True] * (collective.name in UP) + [False] * (collective.name in DOWN)


def _rows(
    packing: TreePacking, a_root: int, owner: IntArray, up: bool
) -> tuple[PhaseRows, int, tuple[IntArray, IntArray]]:
    """Transfers of all trees, the stages that a piece passes, and the path of each transfer.

    Args:
        packing: trees out of their roots, in groups.
        a_root: parts of the message of each root, a multiple of its trees [count].
        owner: of each part, int64 (parts,).
        up: whether data goes from the leaves to the roots.
    """
    parent, depth = packing.parent, packing.depth
    by_root = np.argsort(packing.root, kind="stable")
    group_of = np.repeat(by_root, packing.copies[by_root] * (a_root // packing.trees_a_root))  # of each part
    assert np.array_equal(packing.root[group_of], owner)
    part, child = np.nonzero(depth[group_of])
    group = group_of[part]
    src, dst, stage = parent[group, child], child, depth[group, child] - 1
    stages = int(stage.max()) + 1
    if up:
        src, dst, stage = dst, src, stages - 1 - stage
    order = np.lexsort((part, dst, src, stage))
    src, dst, op = src[order][:, None], dst[order][:, None], int(Op.REDUCE if up else Op.COPY)
    links = [np.array(path[::-1] if up else path, np.int32) for path in packing.ways.path]
    offsets = np.cumsum([0, *map(len, links)])
    paths = paths_of_rows(np.concatenate(links), offsets, packing.way[group, child][order])
    return PhaseRows.of(1, src, dst, 0, part=part[order], unit_lo=-stage[order], unit_shift=1, op=op), stages, paths


def _packings(fabric: Fabric, collective: Request, trees: int) -> list[TreePacking]:
    """Trees for each direction of a collective, fewer where a direction has none.

    Args:
        fabric: where it would run.
        collective: requested.
        trees: of each root at least [count].
    Raises: UnsupportedError: rates without a common unit, or nodes that no links lead to.
    """
    root = collective.root if collective.name in ROOTED else None
    ways = _directions(collective)
    if root is None and fabric.num_nodes > MOST_NODES_SOON:
        moved = [spanning_trees(fabric, root, up, trees, True) for up in ways]
        if None not in moved or fabric.num_nodes > MOST_NODES:
            return [packing for packing in moved if packing is not None]
    made = (spanning_trees(fabric, root, up, trees, False) for up in ways)
    return [packing for packing in made if packing is not None]
