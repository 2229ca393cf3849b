r"""Leaf-spine: two layers of switches, every leaf joined to every spine.

::

    [spine 0]     [spine 1]     [spine 2]      a leaf has one link of `uplink_rate` to each spine
        |  \     /   |   \     /   |
    [ leaf 0 ]    [ leaf 1 ]    [ leaf 2 ]
      | | | |       | | | |       | | | |      a node has one port of `rate`
      nodes         nodes         nodes

Other than in a fat tree, its two kinds of links may have different rates, and the number of spines is arbitrary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opticcl.fabrics import register_fabric
from opticcl.fabrics._clos import Clos, Routing
from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics._packet import (
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

__all__ = ["LeafSpine"]

SHEET = datasheet("leaf_spine")


@register_fabric("leaf_spine")
@dataclass(frozen=True, kw_only=True, repr=False)
class LeafSpine(PacketFabric):
    """Leaf-spine network with as many leaves as the nodes need.

    Args:
        nodes: nodes, >= 1 [count].
        nodes_per_leaf: ports of a leaf that lead to nodes [count].
        spines: spine switches [count].
        rate: of a node's link, each direction [bit/s].
        uplink_rate: of a link between leaf and spine, each direction [bit/s].
        rate_factor: multiplies both rates; `with_node_rate` sets it.
        link_latency: of a link [s].
        router_latency: of a switch [s].
        routing: dmodk, smodk, ecmp, dstedge or single; see `FatTree`.
        seed: of ecmp.
    Raises: FabricError: no such network.
    """

    nodes: int = SHEET["nodes"]
    nodes_per_leaf: int = SHEET["nodes_per_leaf"]
    spines: int = SHEET["spines"]
    rate: Rate = SHEET["rate"]
    uplink_rate: Rate = SHEET["uplink_rate"]
    rate_factor: float = 1.0
    link_latency: Seconds = SHEET["link_latency"]
    router_latency: Seconds = SHEET["router_latency"]
    routing: Routing = SHEET["routing"]
    seed: int = 0

    rate_parameter = "rate_factor"
    source = "ours: the usual data-centre network; SiPAC section VI-A names it for the SuperPod"

    def __post_init__(self) -> None:
        at_least("leaf_spine", 1, nodes=self.nodes, nodes_per_leaf=self.nodes_per_leaf, spines=self.spines)
        at_least("leaf_spine", 0, link_latency=self.link_latency, router_latency=self.router_latency, seed=self.seed)
        positive_rates("leaf_spine", self.rate_factor, rate=self.rate, uplink_rate=self.uplink_rate)
        not_too_large("leaf_spine", self.nodes, 2 * (self.nodes + self.num_leaves * self.spines))

    @property
    def num_leaves(self) -> int:
        """Leaf switches [count]."""
        return -(-self.nodes // self.nodes_per_leaf)

    @cached_property
    def _tree(self) -> Clos:
        return Clos((self.nodes_per_leaf, self.num_leaves), (1, self.spines), np.arange(self.nodes))

    @property
    def _rates(self) -> list[float]:
        """Of links below leaves and below spines [bit/s]."""
        return [self.rate * self.rate_factor, self.uplink_rate * self.rate_factor]

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The rate is that of a node's link."""
        return FabricNumbers(num_nodes=self.nodes, rate_bits_per_s=self._rates[0])

    @cached_property
    def network(self) -> Network:
        """Links between nodes and leaves, then between leaves and spines; up before down."""
        links = self._tree.links(self.nodes, self._rates, [self.link_latency] * 2, self.router_latency)
        return Network.of(self.nodes, links)

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Through the leaf that both nodes share, else through a spine."""
        return paths_of_columns(self._tree.columns(src, dst, self.routing, self.seed))

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Permutations of nodes that switches and the choice of up-links follow."""
        hops = self._tree.images(nodes, self.routing)
        return None if hops is None else self.moved_by_nodes(nodes, hops)

    def parts(self) -> tuple[Part, ...]:
        """Switches and both ends of every link; links of nodes are copper."""
        return self._tree.parts(self._rates, "copper_end")

    def coordinates(self, node: int) -> str:
        """Number and leaf of a node."""
        return f"{node} (leaf {node // self.nodes_per_leaf})"

    def vertex_kinds(self) -> tuple[IntArray, tuple[str, ...]]:
        """Nodes, leaves and spines; see `PacketFabric.vertex_kinds`."""
        return tree_tiers(self.network)
