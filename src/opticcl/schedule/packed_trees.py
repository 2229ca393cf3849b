"""Trees along the links that are left where parts have failed.

Every chunk has an in-tree that gathers it at its root, an out-tree that hands it out, or both:

    all_reduce                  in-tree to a root, out-tree from it; roots are the nodes that lost no rate, or all
    reduce_scatter, all_to_all  in-tree of the rank that gets the chunk; in an all_to_all contributions travel side by side
    all_gather, broadcast       out-tree of the rank that has it

In a pipeline of k pieces all stages of all trees are busy at the same time, so a message takes (stages + k - 1) / k times what
its busiest link carries. With `stagger` a step has one transfer of each link, in an order that repeats every period of as many
steps as the busiest link has transfers, each after those that it needs. Such steps are as short as they can be, so less time
passes until all links are busy; they are more, which costs where a step has a latency of its own.

Where the number of `trees` is given, each takes the root from which its links cost least, and pieces go on `LAG` steps after
they were sent: their latency passes while others are sent, if nothing waits for the end of a step (engine `device`).

Source: Edmonds 1973 for trees that share capacity; Lam 1988 for turns that repeat (software pipelining). Ours is a heuristic:
such trees exist wherever the links that are left are strongly connected, the fewest seconds are not proven.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import SizeLimit
from opticcl.schedule._links_left import LinksLeft, joins_all, links_left
from opticcl.schedule._pipeline import Pipeline
from opticcl.schedule._tree_packing import Forest, below, busiest, in_turns, pack

__all__ = ["forwarding_variants", "packed_trees"]

MOST_PIECES = limit("packed_trees.MOST_PIECES")
MOST_NODES = 128
MOST_NODES_OF_TURNS = 36
"""With turns every step is different: there are many to plan."""
DISTANCE_SHARES = (1.0, 0.5, 0.25, 0.1)
USUAL_PIECES = 48
TREES_OF_OWNER = (2, 3)
"""Trees of a rank that owns chunks [count]."""
USUAL_TREES, MOST_TREES = 42, 128
LAG = 2
"""Steps after which a piece goes on, where the number of trees is given [count]."""
NUMBERS_OF_TREES, FEWER_TREES = ((12, 24), (24, 48)), ((6, 10), (10, 16))
"""First, and one beyond the last: the number is the one of which least is lost by whole trees [count]."""
ROUNDING = 1e-9
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_to_all", "all_gather", "broadcast", "reduce")


def accepts(
    collective: Request, fabric: Fabric, pipeline: int = 8, stagger: bool = False, trees: int = 0
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: pieces of every chunk [count].
        stagger: whether transfers of a link alternate.
        trees: as in `packed_trees`.
    """
    if not fabric.conditions:
        return "it plans around failed parts, and none has failed"
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n = fabric.num_nodes
    if not 1 < n <= MOST_NODES:
        return SizeLimit(f"{n:,} nodes are not 2 to {MOST_NODES}")
    if not 1 <= pipeline <= MOST_PIECES:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES:,}"
    if stagger and (n > MOST_NODES_OF_TURNS or collective.name == "all_to_all"):
        return f"stagger=true is for up to {MOST_NODES_OF_TURNS} nodes, and not for all_to_all"
    if trees and not (stagger and collective.name == "all_reduce" and 0 < trees <= MOST_TREES):
        return f"trees={trees}: 1 to {MOST_TREES} go with all_reduce and stagger=true"
    if fabric.links_all:
        return "one circuit can join any two nodes; trees along links do not help"
    try:
        links = links_left(fabric)
    except UnsupportedError as error:
        return str(error)
    if (links.width[~np.eye(n, dtype=bool)] > 0).all():
        return "one circuit can join any two nodes; trees along links do not help"
    if not joins_all(links):
        return "the links that are left do not join all nodes"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int | bool]]:
    """Numbers of pieces; turns where a port has one partner at a time."""
    if not fabric.conditions:
        return []
    tried: list[dict[str, int | bool]] = [{"pipeline": pieces} for pieces in (1, 4, 12, 24, 48, 128)]
    if _one_partner(fabric) and fabric.num_nodes <= MOST_NODES_OF_TURNS and collective.name != "all_to_all":
        tried += [{"pipeline": pieces, "stagger": True} for pieces in (16, 28, 64)]
    return tried


def forwarding_variants(collective: Request, fabric: Fabric) -> list[dict[str, int | bool]]:
    """Numbers of pieces for nodes that forward them as they arrive."""
    if not fabric.conditions:
        return []
    if _one_partner(fabric) and fabric.num_nodes <= MOST_NODES_OF_TURNS and collective.name == "all_reduce":
        return [{"pipeline": pieces, "stagger": True, "trees": USUAL_TREES} for pieces in (8, 32)]
    return [{"pipeline": pieces} for pieces in (12, 48, 96, 192)]


def _one_partner(fabric: Fabric) -> bool:
    """Whether a port has one partner at a time."""
    return not all(resource.per_wavelength for resource in fabric.resources[:2])


@register_algorithm("packed_trees", accepts, variants)
def packed_trees(
    collective: Request, fabric: Fabric, *, pipeline: int = 8, stagger: bool = False, trees: int = 0
) -> Schedule:
    """Trees along the links that failed parts leave, each with a share of the message in k pieces.

    Args:
        collective: all_reduce, reduce_scatter, all_to_all, all_gather, broadcast or reduce.
        fabric: one of which parts have failed, so that not all nodes are joined.
        pipeline: pieces k of every chunk [count].
        stagger: whether transfers of a link alternate, one a step.
        trees: number of them, whose roots are chosen; 0: as many as the rates suggest, with roots in turn [count].
    """
    n, name = fabric.num_nodes, collective.name
    up, down = _forests(fabric, name, collective.root, stagger, trees)
    owner = np.repeat((up or down).root, pipeline)  # type: ignore[union-attr]
    owned = name not in ("all_reduce", "broadcast", "reduce")
    made = collective.on(n, len(owner), owner=owner) if owned else collective.on(n, len(owner))
    stages = _stages(up, down, name == "all_to_all")
    period = 1
    if stagger:
        stages, period = in_turns(stages, LAG if trees else 1)
    apart = np.arange(len(stages)) % period

    def step(i: int) -> Transfers:
        """Piece p of every tree is at stage i - p * period."""
        first = max(0, i - (pipeline - 1) * period)
        busy = [stage for stage in range(first, min(i + 1, len(stages))) if apart[stage] == i % period]
        rows = np.concatenate([stages[stage] for stage in busy], axis=1)
        piece = np.repeat([(i - stage) // period for stage in busy], [stages[stage].shape[1] for stage in busy])
        src, dst, tree, op, parts = rows
        order = np.argsort((src * n + dst) * len(owner) + tree, kind="stable")
        columns = (src, dst, tree * pipeline + piece, np.ones_like(src), op, parts if name == "all_to_all" else None)
        return Transfers.of(*(None if column is None else column[order] for column in columns))

    steps = len(stages) + (pipeline - 1) * period
    classes = () if stagger else Pipeline(len(stages), pipeline).classes
    given = {"pipeline": pipeline, "stagger": stagger, **({"trees": trees} if trees else {})}
    return Schedule("packed_trees", made, steps, step, classes, given)


def _stages(up: Forest | None, down: Forest | None, side_by_side: bool) -> list[IntArray]:
    """Sender, receiver, tree, operation and contributions of every transfer of each stage, int64 (5, m) each.

    Args:
        up: in-trees, whose deepest nodes send first.
        down: out-trees.
        side_by_side: whether contributions are kept apart.
    """
    stages = []
    if up is not None:
        sizes = below(up)
        deepest = int(up.depth.max())
        for depth in range(deepest, 0, -1):
            tree, node = np.nonzero(up.depth == depth)
            op = int(Op.MOVE if side_by_side else Op.REDUCE)
            rows = (node, up.parent[tree, node], tree, np.full(len(node), op), sizes[tree, node])
            stages.append(np.stack(rows))
    if down is not None:
        for depth in range(1, int(down.depth.max()) + 1):
            tree, node = np.nonzero(down.depth == depth)
            one = np.ones(len(node), np.int64)
            stages.append(np.stack((down.parent[tree, node], node, tree, one * int(Op.COPY), one)))
    return stages


@lru_cache(maxsize=16)
def _forests(fabric: Fabric, name: str, root: int, stagger: bool, trees: int) -> tuple[Forest | None, Forest | None]:
    """In-trees and out-trees of a collective, None where it has none.

    Args:
        fabric: of which parts have failed.
        name: of the collective.
        root: of a collective that has one.
        stagger: whether transfers of a link alternate.
        trees: number of them, whose roots are free; 0: as the rates suggest [count].
    """
    counted = name == "all_to_all"
    links = links_left(fabric, one_partner=not counted)
    up = name in ("all_reduce", "reduce_scatter", "all_to_all", "reduce")
    down = name in ("all_reduce", "all_gather", "broadcast")
    numbers = ((trees, trees + 1),) if trees else FEWER_TREES if stagger else NUMBERS_OF_TREES
    tried = [
        pack(links, roots, up, down, counted=counted, share=share, enough=enough, free=trees > 0)
        for roots, enough in _roots(links, name, root, numbers)[-1 if trees else 0 :]
        for share in (DISTANCE_SHARES if fabric.num_nodes <= MOST_NODES_OF_TURNS else DISTANCE_SHARES[:2])
    ]
    return min(tried, key=lambda made: _seconds(links, made, counted, stagger, LAG if trees else 1))


def _roots(
    links: LinksLeft, name: str, root: int, numbers: tuple[tuple[int, int], ...]
) -> list[tuple[IntArray, float]]:
    """Roots of the trees to try, and the least that the busiest link can carry with them over its wavelengths.

    Args:
        links: that are left.
        name: of the collective.
        root: of a collective that has one.
        numbers: of trees, first and one beyond the last.
    """
    n = len(links.width)
    if name not in ("all_reduce", "broadcast", "reduce"):
        return [(np.repeat(np.arange(n), many), 0.0) for many in TREES_OF_OWNER]
    rate = np.minimum(*(side.sum(axis=1) for side in links.port_width))
    total = min(side.sum() for side in links.port_width)
    if name == "all_reduce":
        sets = [np.flatnonzero(rate == rate.max()), np.arange(n)][: 1 + int(rate.min() < rate.max())]
        least = max(2 * (n - 1) / total, 1 / rate.min())
    else:
        sets = [np.array([root])]
        of_root = links.port_width[0 if name == "broadcast" else 1][root].sum()
        least = max((n - 1) / total, 1 / rate.min(), 1 / of_root)
    width = int(np.bincount(links.width[links.width > 0]).argmax())
    choices = []
    for first, last in numbers:
        number = min(range(first, last), key=lambda trees: (round(_rounded(least * width * trees), 6), trees))
        enough = float(np.ceil(least * width * number - ROUNDING) / width)
        choices += [(np.resize(roots, number), enough) for roots in sets]
    return choices


def _rounded(load: float) -> float:
    """What rounding a load up costs, as a factor."""
    return float(np.ceil(load - ROUNDING) / load)


def _seconds(
    links: LinksLeft, made: tuple[Forest | None, Forest | None], counted: bool, stagger: bool, lag: int
) -> float:
    """What the busiest link carries over its wavelengths in each step of a pipeline, added up; in messages.

    Args:
        links: that are left.
        made: in-trees and out-trees.
        counted: whether a link of an in-tree carries as many chunks as there are nodes below it.
        stagger: whether transfers of a link alternate.
        lag: steps after which a piece goes on, where they do [count].
    """
    if stagger:
        turns, period = in_turns(_stages(*made, counted), lag)
        steps = len(turns) + (USUAL_PIECES - 1) * period
        trees = next(len(forest.root) for forest in made if forest is not None)
        return steps / USUAL_PIECES / trees
    stages = []
    for forest, inwards in zip(made, (True, False), strict=True):
        if forest is None:
            continue
        deepest, weight = int(forest.depth.max()), below(forest) if counted else np.ones_like(forest.depth)
        tree, node = np.nonzero(forest.depth)
        depth, parent = forest.depth[tree, node], forest.parent[tree, node]
        stage = deepest - depth if inwards else depth - 1
        ends = (node, parent) if inwards else (parent, node)
        load = np.zeros((deepest, *links.width.shape))
        np.add.at(load, (stage, *ends), weight[tree, node])
        stages.append(load)
    roots = next(forest.root for forest in made if forest is not None)
    return float(busiest(links, np.concatenate(stages), USUAL_PIECES).sum()) / USUAL_PIECES / len(roots)
