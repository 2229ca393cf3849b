r"""BCube: the shape of SiPAC with electrical switches; nodes forward packets of others.

::

    level 1     [switch (1, 0)]        [switch (1, 1)]        a switch joins the r nodes that differ in one digit alone
                  |         \            /         |
    node         00         10         01         11          node x has L digits x_0 ... x_{L-1} below r, the number
                  |         /            \         |          Σ x_l r^l, and one port a level
    level 0     [switch (0, 0)]        [switch (0, 1)]

A packet corrects one digit after the other, each through one switch. Rotated routing begins with level (src + dst) mod L,
so that flows spread over the ports; dimension order always begins with level 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics._packet import (
    MAX_NODES,
    LinkGroup,
    Network,
    PacketFabric,
    at_least,
    positive_rates,
)
from opticcl.fabrics._walks import digit_by_digit
from opticcl.fabrics.sipac import checked_radices, shape_at_scale, strides_of
from opticcl.ir import FabricNumbers, IntArray, Part
from opticcl.ir.phase_rows import Space
from opticcl.ir.representatives import LightMove
from opticcl.units import Rate, Seconds, Shape

__all__ = ["BCube"]

SHEET = datasheet("bcube")


@register_fabric("bcube")
@dataclass(frozen=True, kw_only=True, repr=False)
class BCube(PacketFabric):
    """BCube of radix**levels nodes, or one with the product of its radices.

    Args:
        radix: ports of a switch r [count].
        levels: levels L, and ports of a node [count].
        radices: ports of the switches of each level, level 0 first, such as 8x16; None: `radix` at all `levels`. Where given,
            it replaces both.
        node_rate: of all ports of a node together, each direction [bit/s].
        link_latency: of a link [s].
        router_latency: of a switch [s].
        routing: rotated or dimension_order.
    Raises: FabricError: no such shape.
    Source: SiPAC section VI-A; Guo et al. 2009.
    """

    radix: int = SHEET["radix"]
    levels: int = SHEET["levels"]
    radices: Shape | None = None
    node_rate: Rate = SHEET["node_rate"]
    link_latency: Seconds = SHEET["link_latency"]
    router_latency: Seconds = SHEET["router_latency"]
    routing: Literal["rotated", "dimension_order"] = SHEET["routing"]

    rate_parameter = "node_rate"
    source = "SiPAC section VI-A; Guo et al. 2009"

    def __post_init__(self) -> None:
        at_least("bcube", 1, radix=self.radix, levels=self.levels)
        at_least("bcube", 0, link_latency=self.link_latency, router_latency=self.router_latency)
        positive_rates("bcube", node_rate=self.node_rate)
        if self.radices is not None:
            if prod(checked_radices("bcube", self.radices)) > MAX_NODES:
                raise FabricError(
                    f"bcube: radices={'x'.join(map(str, self.radices))} make more than {MAX_NODES} nodes; try radices=8x16"
                )
        elif self.levels > 22 or self.radix**self.levels > MAX_NODES:
            raise FabricError(
                f"bcube: radix={self.radix} to the power levels={self.levels} is more than {MAX_NODES} nodes; try levels=3"
            )

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """Radix and levels, or the radices, as for SiPAC, as its section VI-A requires."""
        return shape_at_scale(num_nodes)

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """Ports of the switches of each level, level 0 first."""
        return (self.radix,) * self.levels if self.radices is None else self.radices

    @cached_property
    def strides(self) -> IntArray:
        """By how much a node's number grows with each of its digits, int64 (levels,)."""
        return strides_of(self.sides)

    @cached_property
    def numbers(self) -> FabricNumbers:
        """A port a level, which share the node's rate; digits, the highest first, are the dimensions."""
        return FabricNumbers(
            num_nodes=prod(self.sides),
            ports_per_node=len(self.sides),
            rate_bits_per_s=self.node_rate / len(self.sides),
            dimensions=self.sides[::-1],
        )

    @cached_property
    def first_switches(self) -> IntArray:
        """Number of the first switch of each level, and of all, int64 (levels + 1,)."""
        counts = self.num_nodes // np.array(self.sides, np.int64)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def network(self) -> Network:
        """Links to the switches of a level, then those back, level by level; in each the links of all nodes."""
        n, rate, node = self.num_nodes, self.rate_bits_per_s, np.arange(self.num_nodes)
        kinds = []
        for radix, stride, first in zip(self.sides, self.strides, self.first_switches[:-1], strict=True):
            switch = n + first + node // (stride * radix) * stride + node % stride
            kinds.append(LinkGroup(node, switch, rate, self.link_latency + self.router_latency))
            kinds.append(LinkGroup(switch, node, rate, self.link_latency))
        return Network.of(n, kinds, relays=True)

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """One digit after the other: up to a switch, down to the node with the right digit."""
        src, dst = np.asarray(src, np.int32), np.asarray(dst, np.int32)
        hops, offsets = digit_by_digit(src, dst, self.routing == "rotated", self._digits, self.strides.astype(np.int32))
        return hops, offsets

    @cached_property
    def _digits(self) -> IntArray:
        """Digits of each node, level 0 first, int32 (nodes, levels)."""
        return (np.arange(self.num_nodes)[:, None] // self.strides % np.array(self.sides)).astype(np.int32)

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Translations of digits; with rotated routing those that keep the level with which each path begins."""
        if Space(self.dimensions).translation(nodes) is None:
            return None
        ahead = (nodes - np.arange(self.num_nodes)) % len(self.sides)
        if self.routing == "rotated" and ((ahead != ahead[0]).any() or 2 * ahead[0] % len(self.sides)):
            return None
        return self.moved_by_nodes(nodes)

    def parts(self) -> tuple[Part, ...]:
        """A transceiver at each end of every cable, and the switches."""
        rate, switches = self.rate_bits_per_s, Counter[int]()
        for radix in self.sides:
            switches[radix] += self.num_nodes // radix
        return (
            Part("transceiver", self.network.num_links, rate_bits_per_s=rate),
            *(Part("electrical_switch", count, radix, rate) for radix, count in switches.items()),
        )

    def coordinates(self, node: int) -> str:
        """Digits of a node."""
        digits = zip(self.strides.tolist(), self.sides, strict=True)
        return "(" + ", ".join(f"x{level}={node // stride % side}" for level, (stride, side) in enumerate(digits)) + ")"

    def switch_name(self, kind: str, number: int) -> str:
        """A switch by its level and its number within the level."""
        level = int(np.searchsorted(self.first_switches, number, side="right")) - 1
        return f"level-{level} {kind} {number - self.first_switches[level]}"
