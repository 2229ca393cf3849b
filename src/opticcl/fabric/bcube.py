r"""BCube: the shape of SiPAC with electrical switches; nodes pass on what is not for them.

::

    level 1     [switch (1, 0)]        [switch (1, 1)]        a switch joins the r nodes that differ in one digit alone
                  |         \            /         |
    node         00         10         01         11          node x has L digits x_0 ... x_{L-1} below r, the number
                  |         /            \         |          Σ x_l r^l, and one port a level
    level 0     [switch (0, 0)]        [switch (0, 1)]

A packet sets one digit right after the other, through one switch each. With rotated routing it begins with level
(src + dst) mod L, so that flows spread over the ports; in dimension order always with level 0.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._packet import MAX_NODES, Links, Network, at_least, paths_of_columns, positive_rates
from opticcl.fabric.sipac import shape_at_scale
from opticcl.ir import Fabric, IntArray, Part
from opticcl.units import Rate, Seconds

SHEET = datasheet("bcube")


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: radix and levels as for SiPAC, which its section VI-A asks for."""
    radix, levels = shape_at_scale(num_nodes)
    return {"radix": radix, "levels": levels}


@register_fabric("bcube", at_scale, rate="node_rate")
def bcube(
    *,
    radix: int = SHEET["radix"],
    levels: int = SHEET["levels"],
    node_rate: Rate = SHEET["node_rate"],
    link_latency: Seconds = SHEET["link_latency"],
    router_latency: Seconds = SHEET["router_latency"],
    routing: Literal["rotated", "dimension_order"] = SHEET["routing"],
) -> Fabric:
    """BCube of radix**levels nodes.

    Args:
        radix: ports of a switch r [count].
        levels: levels L, and ports of a node [count].
        node_rate: of all ports of a node together, each direction [bit/s].
        link_latency: of a link [s].
        router_latency: of a switch [s].
        routing: rotated or dimension_order.
    Raises: FabricError: no such shape.
    Source: SiPAC section VI-A; Guo et al. 2009.
    """
    at_least("bcube", 1, radix=radix, levels=levels)
    at_least("bcube", 0, link_latency=link_latency, router_latency=router_latency)
    positive_rates("bcube", node_rate=node_rate)
    if levels > 22 or radix**levels > MAX_NODES:
        raise FabricError(
            f"bcube: radix={radix} to the power levels={levels} is more than {MAX_NODES} nodes; try levels=3"
        )
    num_nodes, per_level, rate = radix**levels, radix ** (levels - 1), node_rate / levels
    node = np.arange(num_nodes)
    kinds = []
    for level in range(levels):
        stride = radix**level
        switch = num_nodes + level * per_level + node // (stride * radix) * stride + node % stride
        kinds += [Links(node, switch, rate, link_latency + router_latency), Links(switch, node, rate, link_latency)]
    network = Network.of(num_nodes, kinds, relays=True)

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """One digit after the other: up from where it is, down to the node that has the right digit."""
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        start = (src + dst) % levels if routing == "rotated" else np.zeros_like(src)
        columns, at = [], src
        for turn in range(levels):
            level = (start + turn) % levels
            stride = radix**level
            onward = at + (dst // stride % radix - at // stride % radix) * stride
            moves = onward != at
            columns.append(np.where(moves, 2 * level * num_nodes + at, -1))
            columns.append(np.where(moves, (2 * level + 1) * num_nodes + onward, -1))
            at = onward
        return paths_of_columns(columns)

    def coordinates(number: int) -> str:
        return "(" + ", ".join(f"x{level}={number // radix**level % radix}" for level in range(levels)) + ")"

    return Fabric(
        name="bcube",
        num_nodes=num_nodes,
        num_wavelengths=1,
        ports_per_node=levels,
        lasers_per_port=1,
        rate_bits_per_s=rate,
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        route=route,
        coordinates=coordinates,
        source="SiPAC section VI-A; Guo et al. 2009",
        parts=(
            Part("transceiver", network.num_links, rate_bits_per_s=rate),
            Part("electrical_switch", levels * per_level, radix, rate),
        ),
    )
