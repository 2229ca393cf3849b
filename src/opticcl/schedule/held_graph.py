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
from math import gcd
from typing import Literal

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ocs import Ocs
from opticcl.fabrics.topoopt import strides_of
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space, Steps
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._digraphs import Digraph
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._walk import levels, walk
from opticcl.schedule.digit_shifts import COLLECTIVES
from opticcl.units import Shape

__all__ = ["graph_of", "held_graph", "kautz_links"]

MOST_TRIED = limit("held_graph.MOST_TRIED")

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
    """A Kautz graph, and circulants of TopoOpt's strides and of steps both ways, on two planes or more."""
    n, planes = fabric.num_nodes, fabric.machine_as(Ocs).planes
    if planes < 2 or n < 3:
        return []
    if n * n > MOST_TRIED:
        return [left_out(n * (n - 1), MOST_TRIED)]
    graphs: list[dict[str, object]] = [{}, {"graph": "circulant"}]
    near = [max(1, round(n ** (power / (planes // 2)))) for power in range(planes // 2)]
    both = [stride for one in near for stride in (one % n, -one % n)] + [1] * (planes % 2)
    if gcd(n, *both) == 1 and min(both) > 0:
        graphs.append({"graph": "circulant", "strides": tuple(both)})
    further: list[Along] = []
    if fabric.machine_as(Ocs).forwarding == "any" and collective.name != "all_to_all":
        further = ["paths", "whole"] if collective.name == "all_reduce" else ["paths"]
    return [*graphs, *({**one, "along": along} for one in graphs for along in further)]


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
    """A collective on links that stand, with relays.

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
