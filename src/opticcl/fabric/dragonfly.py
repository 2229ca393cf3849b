r"""Dragonfly: groups of routers, all joined within a group, and every two groups joined by one link.

::

    group 0                              group 1
    [router 0]--[router 1]   global     [router 0]--[router 1]      a routers a group, p nodes and h global ports a
     router; | |   \    /    | |  \-----------/  | |   \    /    | |        at most a h + 1 groups
     nodes  ----     nodes               nodes  ----     nodes

Global port q of group i (on its router q // h) leads to group (i + q + 1) mod g. Packets go the shortest way: to the
router with the right global link, over it, and to the receiver's router: at most one global link.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._packet import Links, Network, at_least, not_too_large, paths_of_columns, positive_rates
from opticcl.ir import Fabric, IntArray, Part
from opticcl.units import Rate, Seconds

SHEET = datasheet("dragonfly")


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: the smallest balanced dragonfly (a = 2p = 2h) that holds them, part filled."""
    p = next(p for p in range(1, num_nodes + 1) if 2 * p * p * (2 * p * p + 1) >= num_nodes)
    return {"nodes": num_nodes, "nodes_per_router": p, "routers_per_group": 2 * p, "global_links": p}


@register_fabric("dragonfly", at_scale, rate="rate_factor")
def dragonfly(
    *,
    nodes: int = SHEET["nodes"],
    nodes_per_router: int = SHEET["nodes_per_router"],
    routers_per_group: int = SHEET["routers_per_group"],
    global_links: int = SHEET["global_links"],
    rate: Rate = SHEET["rate"],
    rate_factor: float = 1.0,
    local_latency: Seconds = SHEET["local_latency"],
    global_latency: Seconds = SHEET["global_latency"],
    router_latency: Seconds = SHEET["router_latency"],
) -> Fabric:
    """Dragonfly with one link between any two groups.

    Args:
        nodes: nodes, >= 1; the last group may be part filled [count].
        nodes_per_router: p [count].
        routers_per_group: a [count].
        global_links: h of a router [count].
        rate: of every link, each direction [bit/s].
        rate_factor: by which `rate` is multiplied; a comparison at equal rates of the nodes sets it.
        local_latency: of a link within a group, nodes' links included [s].
        global_latency: of a link between groups [s].
        router_latency: of a router [s].
    Raises: FabricError: no such network.
    Source: Kim et al. 2008; SiPAC section VI-A names it ("one inter-group link per EPS").
    """
    p, a, h = nodes_per_router, routers_per_group, global_links
    at_least("dragonfly", 1, nodes=nodes, nodes_per_router=p, routers_per_group=a)
    at_least("dragonfly", 0, global_links=h, local_latency=local_latency, global_latency=global_latency)
    at_least("dragonfly", 0, router_latency=router_latency)
    positive_rates("dragonfly", rate_factor, rate=rate)
    link_rate = rate * rate_factor
    groups = -(-nodes // (a * p))
    if groups > a * h + 1:
        most = a * p * (a * h + 1)
        raise FabricError(
            f"dragonfly: nodes={nodes} take {groups} groups, and {a} routers with {h} global links reach {a * h} "
            f"others; at most nodes={most}"
        )

    not_too_large("dragonfly", nodes, 2 * nodes + groups * a * (a - 1) + groups * (groups - 1))
    node, router, others = np.arange(nodes), np.arange(groups * a), np.arange(groups * (groups - 1))
    near, far = router_latency + local_latency, router_latency + global_latency
    own, seat = np.repeat(router, a - 1), np.tile(np.arange(a - 1), groups * a)
    peer = own // a * a + seat + (seat >= own % a)  # all of the group but itself
    group, port = np.divmod(others, max(1, groups - 1))
    target = (group + port + 1) % groups
    gate = group * a + port // max(1, h)  # router with the global link of each pair of groups
    landing = target * a + (groups - 2 - port) // max(1, h)
    kinds = [
        Links(node, nodes + node // p, link_rate, near),
        Links(nodes + node // p, node, link_rate, local_latency),
        Links(nodes + own, nodes + peer, link_rate, near),
        Links(nodes + gate, nodes + landing, link_rate, far),
    ]
    network = Network.of(nodes, kinds)
    first = np.cumsum([0, *(len(k.tail) for k in kinds)]).tolist()

    def local(here: IntArray, there: IntArray) -> IntArray:
        """Number of the link between two routers of a group, among all such links."""
        seat: IntArray = there % a - (there % a > here % a)
        return here * (a - 1) + seat

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Up, to the gate, over, to the receiver's router, down."""
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        moves, here, there = src != dst, src // p, dst // p
        crosses = here // a != there // a
        q = (there // a - here // a - 1) % groups
        pair = np.where(crosses, here // a * (groups - 1) + q, 0)
        out = np.where(crosses, gate[pair] if len(gate) else 0, there)
        back = np.where(crosses, landing[pair] if len(landing) else 0, there)
        return paths_of_columns(
            [
                np.where(moves, first[0] + src, -1),
                np.where(here != out, first[2] + local(here, out), -1),
                np.where(crosses, first[3] + pair, -1),
                np.where(crosses & (back != there), first[2] + local(back, there), -1),
                np.where(moves, first[1] + dst, -1),
            ]
        )

    def coordinates(number: int) -> str:
        return f"{number} (group {number // (p * a)}, router {number // p % a})"

    return Fabric(
        name="dragonfly",
        num_nodes=nodes,
        num_wavelengths=1,
        ports_per_node=1,
        lasers_per_port=1,
        rate_bits_per_s=link_rate,
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        route=route,
        coordinates=coordinates,
        source="Kim et al. 2008; SiPAC section VI-A",
        parts=(
            Part("copper_end", 2 * nodes + len(own), rate_bits_per_s=link_rate),
            Part("transceiver", len(gate), rate_bits_per_s=link_rate),
            Part("electrical_switch", groups * a, p + a - 1 + h, link_rate),
        ),
    )
