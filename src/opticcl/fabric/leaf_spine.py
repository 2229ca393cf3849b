r"""Leaf-spine: two layers of switches, every leaf joined to every spine.

::

    [spine 0]     [spine 1]     [spine 2]      a leaf has one link of `uplink_rate` to each spine
        |  \     /   |   \     /   |
    [ leaf 0 ]    [ leaf 1 ]    [ leaf 2 ]
      | | | |       | | | |       | | | |      a node has one port of `rate`
      nodes         nodes         nodes

Unlike a fat tree its two kinds of links may have different rates, and any number of spines will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.fabric import register_fabric
from opticcl.fabric._clos import Clos, Routing
from opticcl.fabric._packet import Network, at_least, not_too_large, paths_of_columns, positive_rates
from opticcl.ir import Fabric, IntArray
from opticcl.units import Rate, Seconds

SHEET = datasheet("leaf_spine")


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: as many leaves as needed."""
    return {"nodes": num_nodes}


@register_fabric("leaf_spine", at_scale, rate="rate_factor")
def leaf_spine(
    *,
    nodes: int = SHEET["nodes"],
    nodes_per_leaf: int = SHEET["nodes_per_leaf"],
    spines: int = SHEET["spines"],
    rate: Rate = SHEET["rate"],
    uplink_rate: Rate = SHEET["uplink_rate"],
    rate_factor: float = 1.0,
    link_latency: Seconds = SHEET["link_latency"],
    router_latency: Seconds = SHEET["router_latency"],
    routing: Routing = SHEET["routing"],
    seed: int = 0,
) -> Fabric:
    """Leaf-spine network.

    Args:
        nodes: nodes, >= 1 [count].
        nodes_per_leaf: ports of a leaf that lead to nodes [count].
        spines: spine switches [count].
        rate: of a node's link, each direction [bit/s].
        uplink_rate: of a link between leaf and spine, each direction [bit/s].
        rate_factor: by which both rates are multiplied; a comparison at equal rates of the nodes sets it.
        link_latency: of a link [s].
        router_latency: of a switch [s].
        routing: dmodk, smodk, ecmp, dstedge or single; see `fat_tree`.
        seed: of ecmp.
    Raises: FabricError: no such network.
    """
    at_least("leaf_spine", 1, nodes=nodes, nodes_per_leaf=nodes_per_leaf, spines=spines)
    at_least("leaf_spine", 0, link_latency=link_latency, router_latency=router_latency, seed=seed)
    positive_rates("leaf_spine", rate_factor, rate=rate, uplink_rate=uplink_rate)
    rates = [rate * rate_factor, uplink_rate * rate_factor]
    num_leaves = -(-nodes // nodes_per_leaf)
    not_too_large("leaf_spine", nodes, 2 * (nodes + num_leaves * spines))
    tree = Clos((nodes_per_leaf, num_leaves), (1, spines), np.arange(nodes))
    network = Network.of(nodes, tree.links(nodes, rates, [link_latency] * 2, router_latency))

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        return paths_of_columns(tree.columns(src, dst, routing, seed))

    def coordinates(node: int) -> str:
        return f"{node} (leaf {node // nodes_per_leaf})"

    return Fabric(
        name="leaf_spine",
        num_nodes=nodes,
        num_wavelengths=1,
        ports_per_node=1,
        lasers_per_port=1,
        rate_bits_per_s=rates[0],
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        route=route,
        coordinates=coordinates,
        parts=tree.parts(rates, "copper_end"),
        source="ours: the usual data-centre network; SiPAC section VI-A names it for the SuperPod",
    )
