"""Spanning trees of the ranks of a job on a packet fabric, which together use its links as far as its narrowest cut allows.

Packets take the routes of the fabric. A link of a tree is a pair of ranks whose route passes no other rank.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from opticcl.fabrics._packet import PacketFabric
from opticcl.ir import Fabric
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum
from opticcl.routing.forest.packing import TreePacking, pack

__all__ = ["TreePacking", "has_network", "spanning_trees"]


def has_network(fabric: Fabric) -> bool:
    """Whether packets pass links between nodes and switches, one after the other."""
    return isinstance(fabric.machine, PacketFabric)


@lru_cache(maxsize=64)
def spanning_trees(fabric: Fabric, root: int | None, inwards: bool, fewest: int = 1) -> TreePacking | None:
    """The fewest trees whose time is within 1 % of the narrowest cut between ranks on routes; None: none were found.

    Args:
        fabric: with a network: a machine or a job on one.
        root: rank of all trees; None: every rank is the root of as many.
        inwards: whether data goes towards the roots: the trees lead out of them on the links turned round.
        fewest: trees a root [count].
    Raises: UnsupportedError: rates without a common unit, or ranks that no links lead to.
    """
    machine = fabric.machine
    assert isinstance(machine, PacketFabric)
    graph = machine.network.graph(fabric.machine_nodes(np.arange(fabric.num_nodes)))
    routes = _routes(fabric, graph)
    on_routes = np.isin(np.arange(len(graph.tail)), [arc for route in routes for arc in route])
    graph = replace(graph, capacity=np.where(on_routes, graph.capacity, 0))
    if inwards:
        graph, routes = replace(graph, tail=graph.head, head=graph.tail), [route[::-1] for route in routes]
    best = optimum(graph, root)
    return None if best is None else pack(graph, best, root, fewest=fewest, routes=routes)


def _routes(fabric: Fabric, graph: CapacityGraph) -> list[tuple[int, ...]]:
    """Routes between ranks that no other rank is on, those between ranks of equal distance in number together."""
    n = fabric.num_nodes
    src, ahead = (column.ravel() for column in np.meshgrid(np.arange(n), np.arange(1, n)))
    nodes = fabric.machine_nodes(np.arange(n))
    hops, offsets = fabric.route(nodes[src], nodes[(src + ahead) % n])
    passes_rank = graph.head[hops] < n
    passes_rank[offsets[1:] - 1] = False
    links, direct = hops.tolist(), np.add.reduceat(passes_rank, offsets[:-1]) == 0
    return [tuple(links[a:b]) for (a, b), alone in zip(pairwise(offsets.tolist()), direct, strict=True) if alone]
