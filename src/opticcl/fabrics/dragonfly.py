r"""Dragonfly: groups of routers, all joined within a group, and every two groups joined by one link.

::

    group 0                              group 1
    [router 0]--[router 1]   global     [router 0]--[router 1]      a routers a group, p nodes and h global ports a
     router; | |   \    /    | |  \-----------/  | |   \    /    | |        at most a h + 1 groups
     nodes  ----     nodes               nodes  ----     nodes

Global port q of group i (on its router q // h) leads to group (i + q + 1) mod g. Packets take the shortest path: to the
router with the right global link, over it, and to the receiver's router: at most one global link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
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
)
from opticcl.ir import FabricNumbers, IntArray, Part
from opticcl.ir.representatives import LightMove
from opticcl.units import Rate, Seconds

__all__ = ["Dragonfly"]

SHEET = datasheet("dragonfly")


@register_fabric("dragonfly")
@dataclass(frozen=True, kw_only=True, repr=False)
class Dragonfly(PacketFabric):
    """Dragonfly with one link between any two groups.

    Args:
        nodes: nodes, >= 1; the last group may be partly filled [count].
        nodes_per_router: p [count].
        routers_per_group: a [count].
        global_links: h of a router [count].
        rate: of every link, each direction [bit/s].
        rate_factor: multiplies `rate`; `with_node_rate` sets it.
        local_latency: of a link within a group, nodes' links included [s].
        global_latency: of a link between groups [s].
        router_latency: of a router [s].
    Raises: FabricError: no such network.
    Source: Kim et al. 2008; SiPAC section VI-A names it ("one inter-group link per EPS").
    """

    nodes: int = SHEET["nodes"]
    nodes_per_router: int = SHEET["nodes_per_router"]
    routers_per_group: int = SHEET["routers_per_group"]
    global_links: int = SHEET["global_links"]
    rate: Rate = SHEET["rate"]
    rate_factor: float = 1.0
    local_latency: Seconds = SHEET["local_latency"]
    global_latency: Seconds = SHEET["global_latency"]
    router_latency: Seconds = SHEET["router_latency"]

    rate_parameter = "rate_factor"
    source = "Kim et al. 2008; SiPAC section VI-A"

    def __post_init__(self) -> None:
        nodes, p, a, h = self.nodes, self.nodes_per_router, self.routers_per_group, self.global_links
        at_least("dragonfly", 1, nodes=nodes, nodes_per_router=p, routers_per_group=a)
        at_least("dragonfly", 0, global_links=h, local_latency=self.local_latency, global_latency=self.global_latency)
        at_least("dragonfly", 0, router_latency=self.router_latency)
        positive_rates("dragonfly", self.rate_factor, rate=self.rate)
        g = self.num_groups
        if g > a * h + 1:
            most = a * p * (a * h + 1)
            raise FabricError(
                f"dragonfly: nodes={nodes} need {g} groups, and {a} routers with {h} global links reach {a * h} "
                f"others; at most nodes={most}"
            )
        not_too_large("dragonfly", nodes, 2 * nodes + g * a * (a - 1) + g * (g - 1))

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """The smallest balanced dragonfly (a = 2p = 2h) with at least that many ports, partly filled."""
        p = next(p for p in count(1) if 2 * p * p * (2 * p * p + 1) >= num_nodes)
        return {"nodes": num_nodes, "nodes_per_router": p, "routers_per_group": 2 * p, "global_links": p}

    @property
    def num_groups(self) -> int:
        """Groups g that have nodes [count]."""
        return -(-self.nodes // (self.routers_per_group * self.nodes_per_router))

    @property
    def num_routers(self) -> int:
        """Routers of these groups [count]."""
        return self.num_groups * self.routers_per_group

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The rate is that of every link."""
        return FabricNumbers(num_nodes=self.nodes, rate_bits_per_s=self.rate * self.rate_factor)

    @cached_property
    def _global_links(self) -> tuple[IntArray, IntArray]:
        """Routers at both ends of each global link, by group and port."""
        g, a, h = self.num_groups, self.routers_per_group, max(1, self.global_links)
        group, port = np.divmod(np.arange(g * (g - 1)), max(1, g - 1))
        target = (group + port + 1) % g
        return group * a + port // h, target * a + (g - 2 - port) // h

    @property
    def _first_links(self) -> tuple[int, int, int, int]:
        """Number of the first link from nodes, to nodes, within groups and between groups."""
        local = 2 * self.nodes + self.num_routers * (self.routers_per_group - 1)
        return 0, self.nodes, 2 * self.nodes, local

    @cached_property
    def network(self) -> Network:
        """Links from nodes, to nodes, within groups, between groups."""
        n, a, rate, node = self.nodes, self.routers_per_group, self.rate_bits_per_s, np.arange(self.nodes)
        near, far = self.router_latency + self.local_latency, self.router_latency + self.global_latency
        own, place = np.repeat(np.arange(self.num_routers), a - 1), np.tile(np.arange(a - 1), self.num_routers)
        peer = own // a * a + place + (place >= own % a)  # every other router of the group
        begin, end = self._global_links
        kinds = [
            LinkGroup(node, n + node // self.nodes_per_router, rate, near),
            LinkGroup(n + node // self.nodes_per_router, node, rate, self.local_latency),
            LinkGroup(n + own, n + peer, rate, near),
            LinkGroup(n + begin, n + end, rate, far),
        ]
        return Network.of(n, kinds)

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Up, to the router with the global link, over it, to the receiver's router, down."""
        p, a, g = self.nodes_per_router, self.routers_per_group, self.num_groups
        src, dst = np.asarray(src, np.int32), np.asarray(dst, np.int32)  # as links are numbered
        moves, here, there = src != dst, src // p, dst // p
        up, down, local, between = self._first_links
        out, over, back = there.copy(), np.full_like(there, NO_HOP), there.copy()
        crosses = here // a != there // a
        group, target = here[crosses] // a, there[crosses] // a
        link = group * (g - 1) + (target - group - 1) % g
        begin, end = (router.astype(np.int32) for router in self._global_links)
        out[crosses], over[crosses], back[crosses] = begin[link], between + link, end[link]
        return paths_of_columns(
            [
                np.where(moves, up + src, NO_HOP),
                np.where(here != out, local + _link_within_group(here, out, a), NO_HOP),
                over,
                np.where(back != there, local + _link_within_group(back, there, a), NO_HOP),
                np.where(moves, down + dst, NO_HOP),
            ]
        )

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Groups are turned, and nodes of a router permuted."""
        p, a, g = self.nodes_per_router, self.routers_per_group, self.num_groups
        turn = int(nodes[0]) // p // a
        if ((np.arange(self.nodes) // p + turn * a) % self.num_routers != nodes // p).any():
            return None
        up, down, local, between = self._first_links
        of_group = [(local, a * (a - 1)), (between, g - 1)]
        hops = [first + np.roll(np.arange(g * each), -turn * each) for first, each in of_group]
        return self.moved_by_nodes(nodes, np.concatenate([up + nodes, down + nodes, *hops]))

    def parts(self) -> tuple[Part, ...]:
        """Routers and both ends of every cable: copper within groups, transceivers between them."""
        rate, num_local = self.rate_bits_per_s, self.num_routers * (self.routers_per_group - 1)
        ports = self.nodes_per_router + self.routers_per_group - 1 + self.global_links
        return (
            Part("copper_end", 2 * self.nodes + num_local, rate_bits_per_s=rate),
            Part("transceiver", self.num_groups * (self.num_groups - 1), rate_bits_per_s=rate),
            Part("electrical_switch", self.num_routers, ports, rate),
        )

    def coordinates(self, node: int) -> str:
        """Number, group and router of a node."""
        router = node // self.nodes_per_router
        group, router = divmod(router, self.routers_per_group)
        return f"{node} (group {group}, router {router})"

    def vertex_kinds(self) -> tuple[IntArray, tuple[str, ...]]:
        """Nodes and routers; see `PacketFabric.vertex_kinds`."""
        return super().vertex_kinds()[0], ("node", "router")

    def switch_name(self, kind: str, number: int) -> str:
        """A router by its number and its group."""
        return f"{kind} {number} (group {number // self.routers_per_group})"


def _link_within_group(here: IntArray, there: IntArray, routers_per_group: int) -> IntArray:
    """Number of the link between two routers of a group, among all such links."""
    place = there % routers_per_group
    link: IntArray = here * (routers_per_group - 1) + place - (place > here % routers_per_group)
    return link
