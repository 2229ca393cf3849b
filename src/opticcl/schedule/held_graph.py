"""A graph of degree k whose links stand for the whole collective on k planes; nodes forward what is not for them.

    kautz        node i leads to -k i - q modulo N, q = 1 ... k: the farthest node is about log_k N links away. Links that would
                 lead a node to itself are joined in a ring among such nodes; a single one stays dark
    circulant    node i leads to i + s_j on plane j, for k strides s_j

Links are used along

    paths    one step: every block from its sender over at most as many links as lead to the farthest node, on planes of any
             order; an all_reduce is a reduce_scatter and an all_gather
    trees    a step a level: the block of an all_gather goes down a shortest path tree of its own, a link a step, and a sum of a
             reduce_scatter up such a tree
    whole    paths of an all_reduce whose nodes send all their data to all others, which add it: one step instead of two

With D links to the farthest node, L pairs over the busiest link, and L_t blocks over the busiest link of step t

    paths    alpha + D delta + L M / (N B)
    trees    D (alpha + delta) + sum of L_t M / (N B)

Paths change planes, which the fabric has to allow (`forwarding=any`); trees do not.

Source: Imase and Itoh 1983 for the graph, which arXiv 2602.10468 has with degree 2; circulants of strides prime to N as in
TopoOpt. Which paths and trees load links evenly, and links for nodes that would be joined with themselves, are ours.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, combinations
from math import comb, gcd, inf
from typing import Literal

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ocs import Ocs
from opticcl.fabrics.topoopt import strides_of
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space, Steps
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._digraphs import Digraph, distances_of_strides
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._walk import levels, walk
from opticcl.schedule.digit_shifts import COLLECTIVES
from opticcl.units import Shape

__all__ = ["graph_of", "held_graph", "kautz_links", "nearest_strides", "patched_links"]

MOST_TRIED = limit("held_graph.MOST_TRIED")
MOST_VISITED = limit("held_graph.MOST_VISITED")
MOST_COMPARED = limit("held_graph.MOST_COMPARED")

GraphName = Literal["kautz", "circulant"]

Along = Literal["paths", "trees", "whole"]


def kautz_links(num_nodes: int, degree: int) -> IntArray:
    """Node that each link of the generalised Kautz graph leads to, int64 (nodes, degree); -1: there is none.

    >>> kautz_links(6, 2).tolist()
    [[5, 4], [3, 2], [1, 0], [5, 4], [3, 2], [1, 0]]

    Args:
        num_nodes: N [count].
        degree: k, below N [count].
    """
    node = np.arange(num_nodes)[:, None]
    end = (-degree * node - np.arange(1, degree + 1)) % num_nodes
    alone = end == node
    end[alone] = np.roll(end[alone], -1)
    return np.where(end == node, -1, end)


def patched_links(schedule: Schedule, degree: int) -> str:
    """Which nodes of the Kautz graph of a schedule would lead to themselves, and where they lead, in words; "" if none.

    Args:
        schedule: of `held_graph`.
        degree: planes k [count].
    """
    n = schedule.collective.num_ranks
    if schedule.parameters["graph"] != "kautz" or n == 1:
        return ""
    node = np.arange(n)[:, None]
    alone = np.flatnonzero(((-degree * node - np.arange(1, degree + 1)) % n == node).any(axis=1))
    if not len(alone):
        return ""
    shown = ", ".join(map(str, alone[:4].tolist())) + (", ..." if len(alone) > 4 else "")
    if len(alone) == 1:
        return f"the formula of the kautz graph joins node {shown} with itself; its port stays dark"
    return (
        f"the formula of the kautz graph joins {len(alone)} nodes with themselves ({shown}); they are joined in a ring"
    )


@lru_cache(maxsize=16)
def graph_of(graph: GraphName, strides: tuple[int, ...] | None, num_nodes: int, degree: int) -> Digraph:
    """The graph that is held.

    Args:
        graph: kautz or circulant.
        strides: of a circulant; None: those of TopoOpt.
        num_nodes: N [count].
        degree: planes k [count].
    """
    if graph == "kautz":
        return Digraph(kautz_links(num_nodes, degree))
    chosen = np.array(strides or strides_of(num_nodes, degree), np.int64)
    return Digraph((np.arange(num_nodes)[:, None] + chosen) % num_nodes)


def _num_sets(num_nodes: int, degree: int) -> int:
    """Sets of strides, 1 among them, that `nearest_strides` evaluates [count].

    Args:
        num_nodes: N [count].
        degree: strides of a set [count].
    """
    most = max(1, MOST_VISITED // (num_nodes * degree))
    pool = degree - 1
    while pool < num_nodes - 2 and comb(pool + 1, degree - 1) <= most:
        pool += 1
    return comb(pool, degree - 1)


@lru_cache(maxsize=64)
def nearest_strides(num_nodes: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Strides, 1 among them, with the fewest pairs over the busiest link, and those with the fewest links to the farthest node.

    Those over whose links all nodes are nearest are compared by their paths. All sets are candidates where that visits at most
    `MOST_VISITED` links, else those of strides near to N^(q/k), either way round.

    >>> nearest_strides(14, 2), nearest_strides(13, 3)
    (((1, 4),), ((1, 3, 9),))

    Args:
        num_nodes: N, 3 or more [count].
        degree: strides of a set k, 2 or more [count].
    """
    if degree > num_nodes - 1:
        return ()
    others = np.arange(2, num_nodes)
    series = np.arange(degree) / degree * np.log(num_nodes)
    far = np.abs(np.log(np.minimum(others, num_nodes - others))[:, None] - series).min(axis=1)
    wanted, pool = _num_sets(num_nodes, degree), degree - 1
    while comb(pool, degree - 1) < wanted:
        pool += 1
    near = np.sort(others[np.argsort(far, kind="stable")[:pool]])
    places = np.fromiter(chain.from_iterable(combinations(range(pool), degree - 1)), np.int64)
    sets = np.insert(near[places].reshape(-1, degree - 1), 0, 1, axis=1)
    total, longest = distances_of_strides(sets, num_nodes)
    compared = max(1, MOST_COMPARED // num_nodes**2)
    orders = [np.lexsort(keys)[:compared] for keys in ((longest, total), (total, longest))]
    nearest = [tuple(sets[at].tolist()) for at in dict.fromkeys(np.concatenate(orders).tolist())]
    graphs = [graph_of("circulant", strides, num_nodes, degree) for strides in nearest]
    loads = [(graph.paths.load if len(graphs) > 1 else 0, graph.longest) for graph in graphs]
    best = min(range(len(graphs)), key=loads.__getitem__), min(range(len(graphs)), key=lambda at: loads[at][::-1])
    return tuple(nearest[at] for at in dict.fromkeys(best))


def accepts(
    collective: Request,
    fabric: Fabric,
    graph: GraphName = "kautz",
    strides: tuple[int, ...] | None = None,
    along: Along | None = None,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        graph, strides, along: as of `held_graph`.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    machine, n = fabric.machine_as(Ocs), fabric.num_nodes
    if n * n > MOST_TRANSFERS:
        return SizeLimit(f"{n * (n - 1):,} pairs of nodes are more than {MOST_TRANSFERS:,}; try balanced_digits")
    along = along or _usual(collective)
    if along != "paths" and (collective.name == "all_to_all" or (along == "whole" and collective.name != "all_reduce")):
        return f"along={along} is not for {collective.name}; try along=paths"
    if along != "trees" and machine.forwarding != "any" and machine.planes > 1:
        return "its paths change planes, which forwarding=plane forbids; try ocs:forwarding=any"
    if graph == "kautz":
        return _reason_no_kautz(n, machine.planes, strides)
    if strides is None or n == 1:
        return None
    text = "x".join(map(str, strides))
    if len(strides) != machine.planes:
        return f"strides={text} are {len(strides)}; give one for each of the {machine.planes} planes"
    if not all(0 < stride < n for stride in strides) or gcd(n, *strides) > 1:
        return f"strides={text} do not lead from node 0 to all {n} nodes; give 1 to {n - 1}, without a common factor of all"
    return None


def _reason_no_kautz(num_nodes: int, degree: int, strides: tuple[int, ...] | None) -> str | None:
    """Why there is no generalised Kautz graph, or None if there is."""
    if strides is not None:
        return f"strides={'x'.join(map(str, strides))} are those of graph=circulant; a kautz graph has none"
    if num_nodes > 1 and degree >= num_nodes:
        return f"a kautz graph of degree {degree} has more than {degree} nodes, not {num_nodes}; try graph=circulant"
    if num_nodes > 1 and not graph_of("kautz", None, num_nodes, degree).is_connected:
        return f"a kautz graph of degree {degree} does not join all {num_nodes} nodes; try graph=circulant"
    return None


def _variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """A Kautz graph, and circulants of TopoOpt's strides and of those that lead to all nodes best, on two planes or more."""
    n, planes = fabric.num_nodes, fabric.machine_as(Ocs).planes
    if planes < 2 or n < 3:
        return []
    if n * n > MOST_TRIED:
        return [left_out(n * (n - 1), MOST_TRIED)]
    usual, any_plane = _usual(collective), fabric.machine_as(Ocs).forwarding == "any"
    if usual == "paths" and (not any_plane or _none_is_better(n, planes)):
        return [{}] if any_plane else []
    graphs: list[dict[str, object]] = [{}, {"graph": "circulant"}]
    graphs += [{"graph": "circulant", "strides": strides} for strides in nearest_strides(n, planes)]
    every, tried = comb(n - 2, planes - 1), _num_sets(n, planes)
    fewer = NotTried(
        "graph=circulant", f"{every:,} sets of strides; a search evaluates {tried:,}, near a geometric series"
    )
    of_paths: list[Along] = ["paths", "whole"] if collective.name == "all_reduce" else ["paths"]
    by_paths = _best_by_paths(graphs, n, planes) if any_plane else []
    further = [one if along == usual else {**one, "along": along} for one in by_paths for along in of_paths]
    return [*(graphs if usual == "trees" else []), *further, *[fewer] * (tried < every)]


def _none_is_better(num_nodes: int, degree: int) -> bool:
    """Whether paths on no circulant can be shorter, or load links less, than those of the Kautz graph.

    Over d links with k strides, in any order, a node reaches as many nodes at most as there are sums of d of k numbers.

    Args:
        num_nodes: N [count].
        degree: planes k [count].
    """
    if _reason_no_kautz(num_nodes, degree, None):
        return False
    far, reached, links = 0, 1, 0
    while reached < num_nodes:
        far += 1
        more = min(num_nodes - reached, comb(far + degree - 1, degree - 1))
        reached, links = reached + more, links + far * more
    kautz = graph_of("kautz", None, num_nodes, degree)
    return kautz.longest <= far and kautz.paths.load <= -(-links // degree)


def _best_by_paths(graphs: list[dict[str, object]], num_nodes: int, degree: int) -> list[dict[str, object]]:
    """Graphs of which none has another with as few links to the farthest node and as few pairs over the busiest link.

    Args:
        graphs: parameters of each.
        num_nodes: N [count].
        degree: planes k [count].
    """
    best: list[tuple[Digraph, dict[str, object]]] = []
    for given in graphs:
        if not given and _reason_no_kautz(num_nodes, degree, None):
            continue
        one = graph_of(given.get("graph", "kautz"), given.get("strides"), num_nodes, degree)
        least = min((other.paths.load for other, _ in best if other.longest <= one.longest), default=inf)
        if least <= one.least_load or least <= one.paths.load:
            continue
        best = [(other, its) for other, its in best if other.longest < one.longest or other.paths.load < one.paths.load]
        best.append((one, given))
    return [given for _, given in best]


def _usual(collective: Request) -> Along:
    """How links are used where it is not said."""
    return "paths" if collective.name == "all_to_all" else "trees"


@register_algorithm("held_graph", accepts, _variants, systems=("ocs",))
def held_graph(
    collective: Request,
    fabric: Fabric,
    *,
    graph: GraphName = "kautz",
    strides: Shape | None = None,
    along: Along | None = None,
) -> Schedule:
    """Collectives on a graph of degree k that stands, with relays: a generalised Kautz graph or a circulant.

    Args:
        collective: all_to_all, reduce_scatter, all_gather or all_reduce.
        fabric: optical circuit switches, of as many planes as the graph has links a node.
        graph: kautz or circulant.
        strides: of a circulant, one a plane; None: 1 and numbers prime to N near a geometric series.
        along: paths, trees or whole; None: paths of an all_to_all, else trees.
    """
    n, along = fabric.num_nodes, along or _usual(collective)
    if along != "trees" or n == 1:
        whole = along == "whole"
        steps, cut = walk(collective, Space((n,)), [levels(0, (n,), "direct")], depth=0 if whole else None)
        chunks = collective.on(n, steps.num_chunks, owner=None if whole else steps.owners)
        return Schedule.of("held_graph", chunks, steps, stands=True, cut=cut)
    held = graph_of(graph, strides, n, fabric.machine_as(Ocs).planes)
    sums = _levels(held, True) if collective.name != "all_gather" else ()
    copies = _levels(held, False) if collective.name != "reduce_scatter" else ()
    listed = Steps.of_lists(n, n, (*sums, *copies))
    cut = len(sums) if sums and copies else None
    return Schedule.of("held_graph", collective.on(n, n, owner=np.arange(n)), listed, stands=True, cut=cut)


def _levels(held: Digraph, towards: bool) -> tuple[Transfers, ...]:
    """Steps of all trees at the same time.

    Args:
        held: graph.
        towards: whether sums go up the trees, the farthest level first; else blocks go down.
    """
    near = held.trees(towards)
    far = held.distance.T if towards else held.distance
    found = []
    for level in range(1, held.longest + 1):
        root, node = np.nonzero(far == level)
        src, dst = (node, near[root, node]) if towards else (near[root, node], node)
        found.append(Transfers.of(src, dst, root, 1, Op.REDUCE if towards else Op.COPY))
    return tuple(reversed(found) if towards else found)
