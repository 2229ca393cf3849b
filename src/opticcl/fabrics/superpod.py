r"""SuperPod: servers of eight nodes around an NVSwitch, and one InfiniBand card a node into a fat tree with rails.

::

    [spine] ... [spine]                                   a folded Clos network of switches of one radix
      |    \   /    |
    [leaf of rail 0] [leaf of rail 1] ... [rail 7]        a leaf connects the cards of one position (rail) of 20 servers
       |  \              |  \
       |   \             |   \  one InfiniBand link a node
     (GPU 0)  (GPU 8)  (GPU 1) ...
       \\       ||       //     NVLink, twelve times as fast
        [ NVSwitch of server 0 ]

Within a server packets go through the NVSwitch, between servers through the sender's and the receiver's own card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._clos import Clos, Routing
from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics._packet import (
    NO_HOP,
    LinkGroup,
    Network,
    PacketFabric,
    at_least,
    not_too_large,
    paths_of_columns,
    positive_rates,
    tree_tiers,
)
from opticcl.ir import FabricNumbers, IntArray, Part
from opticcl.ir.representatives import LightMove
from opticcl.units import Rate, Seconds

__all__ = ["SuperPod"]

SHEET = datasheet("superpod")

MOST_LAYERS = 4

_FROM_PRESET = ("nvlink_latency", "nvswitch_latency", "leaf_latency", "spine_latency", "core_latency", "router_latency")


@register_fabric("superpod")
@dataclass(frozen=True, kw_only=True, repr=False)
class SuperPod(PacketFabric):
    """DGX SuperPod, filled server by server.

    Latencies that are None are taken from the preset; `values` has them all.

    Args:
        nodes: nodes (GPUs), >= 1 [count].
        nodes_per_server: nodes around one NVSwitch [count].
        nvlink_rate: of a node to its NVSwitch, each direction [bit/s].
        card_rate: of a node's InfiniBand card and of every InfiniBand link, each direction [bit/s].
        rate_factor: multiplies both rates; `with_node_rate` sets it.
        radix: ports of an InfiniBand switch, half of them down (all at the top) [count].
        nvlink_latency: of a link between node and NVSwitch [s].
        nvswitch_latency: of the NVSwitch [s].
        leaf_latency, spine_latency, core_latency: of the links below the first, second and higher layers [s].
        router_latency: of an InfiniBand switch [s].
        routing: dmodk, smodk, ecmp, dstedge or single; see `FatTree`.
        seed: of ecmp.
        preset: source of the latencies that are not given: ramp or sipac.
    Raises: FabricError: no such machine.
    Source: RAMP section 7.5, SiPAC section VI-A.
    Reading: SiPAC pools a server's eight cards (1.6 Tb/s) and does not say how a node reaches another one's card; here
        a node sends through its own. Its 9 us of NVLink are from node to node, half on each link. A node's rate counts
        NVLink and card; SiPAC counts NVLink alone.
    """

    nodes: int = SHEET["nodes"]
    nodes_per_server: int = SHEET["nodes_per_server"]
    nvlink_rate: Rate = SHEET["nvlink_rate"]
    card_rate: Rate = SHEET["card_rate"]
    rate_factor: float = 1.0
    radix: int = SHEET["radix"]
    nvlink_latency: Seconds | None = None
    nvswitch_latency: Seconds | None = None
    leaf_latency: Seconds | None = None
    spine_latency: Seconds | None = None
    core_latency: Seconds | None = None
    router_latency: Seconds | None = None
    routing: Routing = SHEET["routing"]
    seed: int = 0
    preset: Literal["ramp", "sipac"] = "ramp"

    rate_parameter = "rate_factor"
    source = "RAMP section 7.5, SiPAC section VI-A"

    def __post_init__(self) -> None:
        at_least("superpod", 1, nodes=self.nodes, nodes_per_server=self.nodes_per_server)
        at_least("superpod", 0, **self.values, seed=self.seed)
        positive_rates("superpod", self.rate_factor, nvlink_rate=self.nvlink_rate, card_rate=self.card_rate)
        not_too_large("superpod", self.nodes)
        if self.radix < 2 or self.radix % 2:
            near = max(2, self.radix + 1)
            raise FabricError(f"superpod: radix={self.radix}; an even number of ports, try radix={near}")
        not_too_large("superpod", self.nodes, self._nvlinks + (self._tree.num_links() if self._has_cards else 0))

    @cached_property
    def values(self) -> Mapping[str, float]:
        """Latencies that a preset may set, by name: as given, else from the preset [s]."""
        given = {key: getattr(self, key) for key in _FROM_PRESET}
        return SHEET[self.preset] | {key: value for key, value in given.items() if value is not None}

    # --- shape ------------------------------------------------------------------------------------------------------

    @property
    def num_servers(self) -> int:
        """Servers, the last of which may be partly filled [count]."""
        return -(-self.nodes // self.nodes_per_server)

    @property
    def _has_cards(self) -> bool:
        return self.num_servers > 1

    @property
    def _has_nvlink(self) -> bool:
        """A single node has a link too, so that it has a rate."""
        return self.nodes_per_server > 1 or self.nodes == 1

    @property
    def _nvlinks(self) -> int:
        """Directed links between nodes and NVSwitches [count]."""
        return 2 * self.nodes if self._has_nvlink else 0

    @cached_property
    def _tree(self) -> Clos:
        """InfiniBand switches; the cards of a rail are on neighbouring positions."""
        half = self.radix // 2
        server, rail = np.divmod(np.arange(self.nodes), self.nodes_per_server)
        leaf = server // half * self.nodes_per_server + rail
        depth = _layers(int(leaf.max()) + 1, half)
        children, parents = (half, *(half,) * (depth - 2), self.radix), (1, *(half,) * (depth - 1))
        return Clos(children, parents, leaf * half + server % half, self._nvlinks)

    @property
    def _rates(self) -> tuple[float, float]:
        """Of NVLink and of InfiniBand [bit/s]."""
        return self.nvlink_rate * self.rate_factor, self.card_rate * self.rate_factor

    # --- fabric -----------------------------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The rate is that of a node's NVLink and of its card together, where it has them."""
        fast, slow = self._rates
        rate = (fast if self._has_nvlink else 0) + (slow if self._has_cards else 0)
        return FabricNumbers(num_nodes=self.nodes, rate_bits_per_s=rate)

    @cached_property
    def network(self) -> Network:
        """Links of the NVSwitches, then those of InfiniBand, layer by layer; up before down."""
        v, node, (fast, slow) = self.values, np.arange(self.nodes), self._rates
        kinds: list[LinkGroup] = []
        if self._has_nvlink:
            switch = self.nodes + node // self.nodes_per_server
            kinds.append(LinkGroup(node, switch, fast, v["nvlink_latency"] + v["nvswitch_latency"]))
            kinds.append(LinkGroup(switch, node, fast, v["nvlink_latency"]))
        if self._has_cards:
            depth = len(self._tree.children)
            latencies = [v["leaf_latency"], v["spine_latency"], *[v["core_latency"]] * (depth - 2)]
            kinds += self._tree.links(self.nodes + self.num_servers, [slow] * depth, latencies, v["router_latency"])
        return Network.of(self.nodes, kinds)

    @property
    def server_switches(self) -> range:
        """NVSwitches."""
        return range(self.nodes, self.nodes + self.num_servers if self._has_nvlink else self.nodes)

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Through the NVSwitch within a server, else through both cards."""
        src, dst = np.asarray(src, np.int32), np.asarray(dst, np.int32)  # as links are numbered
        near = (src // self.nodes_per_server == dst // self.nodes_per_server) & (src != dst)
        columns = [np.where(near, src, NO_HOP)]
        if self._has_cards:
            columns += [np.where(near, NO_HOP, c) for c in self._tree.columns(src, dst, self.routing, self.seed)]
        return paths_of_columns([*columns, np.where(near, self.nodes + dst, NO_HOP)])

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Permutations of nodes that servers, switches and the choice of up-links follow."""
        server, n = nodes // self.nodes_per_server, np.arange(self.nodes)
        if (server != server[n // self.nodes_per_server * self.nodes_per_server]).any():
            return None
        hops = [nodes, self.nodes + nodes][: self._nvlinks // self.nodes]
        if self._has_cards:
            of_cards = self._tree.images(nodes, self.routing)
            if of_cards is None:
                return None
            hops.append(of_cards)
        return self.moved_by_nodes(nodes, np.concatenate(hops))

    def parts(self) -> tuple[Part, ...]:
        """NVSwitches with both ends of their links, InfiniBand switches with both ends of theirs."""
        fast, slow = self._rates
        parts: list[Part] = []
        if self._has_nvlink and self.nodes > 1:
            parts.append(Part("backplane_end", 2 * self.nodes, rate_bits_per_s=fast))
            parts.append(Part("nvlink_switch", self.num_servers, self.nodes_per_server, fast))
        if self._has_cards:
            parts += self._tree.parts([slow] * len(self._tree.children), "transceiver")
        return tuple(parts)

    def coordinates(self, node: int) -> str:
        """Number, server and rail of a node."""
        server, rail = divmod(node, self.nodes_per_server)
        return f"{node} (server {server}, rail {rail})"

    def vertex_kinds(self) -> tuple[IntArray, tuple[str, ...]]:
        """Nodes, layers of InfiniBand switches, NVSwitches; see `PacketFabric.vertex_kinds`."""
        tier, names = tree_tiers(self.network)
        tier[self.nodes : self.nodes + self.num_servers] = len(names)
        return tier, (*names, "NVSwitch")


def _layers(num_leaves: int, half: int) -> int:
    """Fewest layers of InfiniBand switches for that many leaves.

    Raises: FabricError: more than MOST_LAYERS.
    """
    for depth in range(2, MOST_LAYERS + 1):
        if num_leaves <= half ** (depth - 2) * 2 * half:
            return depth
    most = prod([half] * (MOST_LAYERS - 2)) * 2 * half
    raise FabricError(
        f"superpod: {num_leaves} leaves are more than {MOST_LAYERS} layers of radix={2 * half} connect; at most {most}"
    )
