r"""SuperPod: servers of eight nodes around an NVSwitch, and one InfiniBand card a node into a fat tree with rails.

::

    [spine] ... [spine]                                   a folded Clos network of switches of one radix
      |    \   /    |
    [leaf of rail 0] [leaf of rail 1] ... [rail 7]        a leaf takes the cards of one place (rail) of 20 servers
       |  \              |  \
       |   \             |   \  one InfiniBand link a node
     (GPU 0)  (GPU 8)  (GPU 1) ...
       \\       ||       //     NVLink, twelve times as fast
        [ NVSwitch of server 0 ]

Within a server packets go over the NVSwitch, between servers over the sender's and the receiver's own card.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._clos import Clos, Routing
from opticcl.fabric._packet import Links, Network, at_least, not_too_large, paths_of_columns, positive_rates
from opticcl.ir import Fabric, IntArray, Part
from opticcl.units import Rate, Seconds

SHEET = datasheet("superpod")

MOST_LAYERS = 4


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: servers are filled one after the other."""
    return {"nodes": num_nodes}


@register_fabric("superpod", at_scale, rate="rate_factor")
def superpod(
    *,
    nodes: int = SHEET["nodes"],
    nodes_per_server: int = SHEET["nodes_per_server"],
    nvlink_rate: Rate = SHEET["nvlink_rate"],
    card_rate: Rate = SHEET["card_rate"],
    rate_factor: float = 1.0,
    radix: int = SHEET["radix"],
    nvlink_latency: Seconds | None = None,
    nvswitch_latency: Seconds | None = None,
    leaf_latency: Seconds | None = None,
    spine_latency: Seconds | None = None,
    core_latency: Seconds | None = None,
    router_latency: Seconds | None = None,
    routing: Routing = SHEET["routing"],
    seed: int = 0,
    preset: Literal["ramp", "sipac"] = "ramp",
) -> Fabric:
    """DGX SuperPod.

    Args:
        nodes: nodes (GPUs), >= 1 [count].
        nodes_per_server: nodes around one NVSwitch [count].
        nvlink_rate: of a node to its NVSwitch, each direction [bit/s].
        card_rate: of a node's InfiniBand card and of every InfiniBand link, each direction [bit/s].
        rate_factor: by which both rates are multiplied; a comparison at equal rates of the nodes sets it.
        radix: ports of an InfiniBand switch, half of them down (all at the top) [count].
        nvlink_latency: of a link between node and NVSwitch [s].
        nvswitch_latency: of the NVSwitch [s].
        leaf_latency, spine_latency, core_latency: of the links below the first, second and higher layers [s].
        router_latency: of an InfiniBand switch [s].
        routing: dmodk, smodk, ecmp, dstedge or single; see `fat_tree`.
        seed: of ecmp.
        preset: whose latencies are taken where none is given: ramp or sipac.
    Raises: FabricError: no such machine.
    Source: RAMP section 7.5, SiPAC section VI-A.
    Reading: SiPAC pools a server's eight cards (1.6 Tb/s) and does not say how a node reaches another one's card; here
        a node sends over its own. Its 9 us of NVLink are from node to node, half on each link. A node's rate counts
        NVLink and card; SiPAC counts NVLink alone.
    """
    given = {
        "nvlink_latency": nvlink_latency,
        "nvswitch_latency": nvswitch_latency,
        "leaf_latency": leaf_latency,
        "spine_latency": spine_latency,
        "core_latency": core_latency,
        "router_latency": router_latency,
    }
    seconds = SHEET[preset] | {key: value for key, value in given.items() if value is not None}
    at_least("superpod", 1, nodes=nodes, nodes_per_server=nodes_per_server)
    at_least("superpod", 0, **seconds, seed=seed)
    positive_rates("superpod", rate_factor, nvlink_rate=nvlink_rate, card_rate=card_rate)
    fast, slow = nvlink_rate * rate_factor, card_rate * rate_factor
    not_too_large("superpod", nodes)
    if radix < 2 or radix % 2:
        raise FabricError(f"superpod: radix={radix}; an even number of ports, try {max(2, radix + 1)}")

    node = np.arange(nodes)
    server, rail = np.divmod(node, nodes_per_server)
    num_servers = int(server[-1]) + 1
    has_nvlink, has_cards = nodes_per_server > 1 and nodes > 1, num_servers > 1
    kinds: list[Links] = []
    if has_nvlink or not has_cards:
        switch = nodes + server
        up = Links(node, switch, fast, seconds["nvlink_latency"] + seconds["nvswitch_latency"])
        kinds = [up, Links(switch, node, fast, seconds["nvlink_latency"])]
    half = radix // 2
    leaf = server // half * nodes_per_server + rail
    depth = _layers(int(leaf.max()) + 1, half)
    tiers = [seconds["leaf_latency"], seconds["spine_latency"], *[seconds["core_latency"]] * (depth - 2)]
    position = leaf * half + server % half
    tree = Clos(
        (half, *(half,) * (depth - 2), radix), (1, *(half,) * (depth - 1)), position, sum(len(k.tail) for k in kinds)
    )
    if has_cards:
        not_too_large("superpod", nodes, tree.num_links())
        kinds += tree.links(nodes + num_servers, [slow] * depth, tiers, seconds["router_latency"])
    network = Network.of(nodes, kinds)
    nvlink = (
        Part("backplane_end", 2 * nodes, rate_bits_per_s=fast),
        Part("nvlink_switch", num_servers, nodes_per_server, fast),
    )
    inside = nvlink if has_nvlink else ()

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Over the NVSwitch within a server, else over both cards."""
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        near = (server[src] == server[dst]) & (src != dst)
        columns = [np.where(near, src, -1)]
        if has_cards:
            columns += [np.where(near, -1, column) for column in tree.columns(src, dst, routing, seed)]
        return paths_of_columns([*columns, np.where(near, nodes + dst, -1)])

    def coordinates(number: int) -> str:
        return f"{number} (server {number // nodes_per_server}, rail {number % nodes_per_server})"

    return Fabric(
        name="superpod",
        num_nodes=nodes,
        num_wavelengths=1,
        ports_per_node=1,
        lasers_per_port=1,
        rate_bits_per_s=(fast if has_nvlink or not has_cards else 0) + (slow if has_cards else 0),
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        route=route,
        coordinates=coordinates,
        source="RAMP section 7.5, SiPAC section VI-A",
        parts=(*inside, *(tree.parts([slow] * depth, "transceiver") if has_cards else ())),
    )


def _layers(num_leaves: int, half: int) -> int:
    """Fewest layers of InfiniBand switches for that many leaves.

    Raises: FabricError: more than four.
    """
    for depth in range(2, MOST_LAYERS + 1):
        if num_leaves <= half ** (depth - 2) * 2 * half:
            return depth
    most = prod([half] * (MOST_LAYERS - 2)) * 2 * half
    raise FabricError(
        f"superpod: {num_leaves} leaves are more than {MOST_LAYERS} layers of radix={2 * half} join; at most {most}"
    )
