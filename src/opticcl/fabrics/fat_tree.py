r"""Fat tree: nodes at the leaves of a folded Clos network of switches of one radix.

::

    layer 3                  [core] ... [core]                  all ports down
                              ||          ||
    layer 2         [switch] [switch]    [switch] [switch]      half of the ports up, half down
                       | \  / |             | \  / |
    layer 1         [ leaf ] [ leaf ]    [ leaf ] [ leaf ]      down : up = oversubscription : 1
                      ||||     ||||        ||||     ||||
                      nodes    nodes       nodes    nodes       one port a node

Every cable is two directed links. A packet goes up to the lowest layer that both nodes share and down from there; the
routing chooses among equal up-links:

    dmodk     by the number of the receiver: paths to different receivers use different down-links
    smodk     by the number of the sender
    ecmp      at random, drawn once for each pair of nodes and layer
    dstedge   by the receiver's leaf: one path a leaf, as with routes by subnet
    single    always the first
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isclose, prod
from typing import Any, Literal

import numpy as np

from opticcl.errors import FabricError
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

__all__ = ["FatTree", "Shape", "num_switches", "shape_of"]

SHEET = datasheet("fat_tree")

MOST_LAYERS = 4

_FROM_PRESET = ("radix", "layers", "oversubscription", "rate", "link_latency", "router_latency", "routing")


@register_fabric("fat_tree")
@dataclass(frozen=True, kw_only=True, repr=False)
class FatTree(PacketFabric):
    """Fat tree, filled from the first leaf on.

    Parameters that are None are taken from the preset, or else from fat_tree.toml; `values` has them all.

    Args:
        nodes: nodes, >= 1 [count].
        radix: ports of a switch [count].
        layers: 2 to 4 [count]; None: the fewest that have enough ports.
        oversubscription: links down per link up of a leaf [ratio]; all layers above have as many up as down.
        rate: of every link, each direction [bit/s].
        rate_factor: multiplies `rate`; `with_node_rate` sets it.
        link_latency: of a link [s].
        router_latency: of a switch [s].
        routing: dmodk, smodk, ecmp, dstedge or single.
        seed: of ecmp.
        preset: wrht (two layers, 40 Gb/s, 25 us a router) or oddl (radix 16, 1:1, 100 Gb/s, 1 us a switch).
    Raises: FabricError: no such tree.
    Source: WRHT table 2, ODDL section 5.A and table 2.
    Reading: WRHT's "32 port routers" connect 512 nodes at full bisection; its 1024 nodes need 32 ports down and 32 up at a
        leaf, as SimGrid counts. The preset has radix 64.
    """

    nodes: int = SHEET["nodes"]
    radix: int | None = None
    layers: int | None = None
    oversubscription: float | None = None
    rate: Rate | None = None
    rate_factor: float = 1.0
    link_latency: Seconds | None = None
    router_latency: Seconds | None = None
    routing: Routing | None = None
    seed: int = 0
    preset: Literal["wrht", "oddl"] | None = None

    rate_parameter = "rate_factor"
    source = "WRHT table 2; ODDL section 5.A; SiPAC section VI-A"

    def __post_init__(self) -> None:
        values = self.values
        at_least("fat_tree", 1, nodes=self.nodes)
        latencies = {key: values[key] for key in ("link_latency", "router_latency")}
        at_least("fat_tree", 0, **latencies, seed=self.seed)
        positive_rates("fat_tree", self.rate_factor, rate=values["rate"])
        not_too_large("fat_tree", self.nodes)
        not_too_large("fat_tree", self.nodes, self._tree.num_links())

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Parameters that a preset may set, by name: as given, else from the preset, else from fat_tree.toml."""
        defaults = {key: SHEET[key] for key in _FROM_PRESET if key in SHEET} | (
            SHEET[self.preset] if self.preset else {}
        )
        given = {key: getattr(self, key) for key in _FROM_PRESET}
        return defaults | {key: value for key, value in given.items() if value is not None}

    @cached_property
    def shape(self) -> Shape:
        """Layers of switches."""
        v = self.values
        return shape_of(self.nodes, v["radix"], v.get("layers"), v["oversubscription"])

    @cached_property
    def _tree(self) -> Clos:
        return Clos(self.shape.children, self.shape.parents, np.arange(self.nodes))

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The rate is that of every link."""
        return FabricNumbers(num_nodes=self.nodes, rate_bits_per_s=self.values["rate"] * self.rate_factor)

    @cached_property
    def network(self) -> Network:
        """Links up and down, layer by layer."""
        v, layers = self.values, len(self.shape.children)
        rates, latencies = [self.rate_bits_per_s] * layers, [v["link_latency"]] * layers
        return Network.of(self.nodes, self._tree.links(self.nodes, rates, latencies, v["router_latency"]))

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Up to the lowest layer that both nodes share, and down."""
        return paths_of_columns(self._tree.columns(src, dst, self.values["routing"], self.seed))

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Permutations of nodes that switches and the choice of up-links follow."""
        hops = self._tree.images(nodes, self.values["routing"])
        return None if hops is None else self.moved_by_nodes(nodes, hops)

    def parts(self) -> tuple[Part, ...]:
        """Switches and both ends of every link; links of nodes are copper."""
        return self._tree.parts([self.rate_bits_per_s] * len(self.shape.children), "copper_end")

    def coordinates(self, node: int) -> str:
        """Number and leaf of a node."""
        return f"{node} (leaf {node // self.shape.children[0]})"

    def vertex_kinds(self) -> tuple[IntArray, tuple[str, ...]]:
        """Nodes, leaves, spines and higher layers; see `PacketFabric.vertex_kinds`."""
        return tree_tiers(self.network)


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a tree.

    Args:
        children: links down of a switch of each layer, the lowest first [count].
        parents: links up from each node or switch below each layer, the lowest first [count].
    """

    children: tuple[int, ...]
    parents: tuple[int, ...]


def shape_of(nodes: int, radix: int, layers: int | None, oversubscription: float) -> Shape:
    """Shape of a tree with that many nodes.

    Args:
        nodes: nodes [count].
        radix: ports of a switch [count].
        layers: 2 to 4 [count]; None: the fewest that have enough ports.
        oversubscription: links down per link up of a leaf [ratio].
    Raises: FabricError: ports that cannot be divided in this ratio, or more nodes than the layers have ports for.

    >>> shape_of(1024, 16, 3, 1)
    Shape(children=(8, 8, 16), parents=(1, 8, 8))
    """
    at_least("fat_tree", 2, radix=radix)
    up = round(radix / (1 + max(0, oversubscription)))
    if up == radix or not isclose(up * (1 + oversubscription), radix):
        near = min(range(1, radix), key=lambda u: abs((radix - u) / u - oversubscription))
        raise FabricError(
            f"fat_tree: radix={radix} cannot be split oversubscription={oversubscription:g} to 1; "
            f"nearest: oversubscription={(radix - near) / near:g} ({radix - near} down, {near} up)"
        )
    if layers is not None and not 2 <= layers <= MOST_LAYERS:
        raise FabricError(f"fat_tree: layers={layers}; 2 to {MOST_LAYERS}")
    for depth in range(2, MOST_LAYERS + 1) if layers is None else (layers,):
        if depth > 2 and radix % 2:
            raise FabricError(
                f"fat_tree: radix={radix} is odd; switches between leaves and top need as many ports up as down; "
                f"try radix={radix + 1}"
            )
        half = radix // 2
        children = (radix - up, *(half,) * (depth - 2), radix)
        if nodes <= prod(children):
            return Shape(children, (1, up, *(half,) * (depth - 2)))
    raise FabricError(
        f"fat_tree: nodes={nodes} are more than {depth} layers of radix={radix} hold; at most nodes={prod(children)}"
    )


def num_switches(nodes: int, radix: int, layers: int, oversubscription: float = 1) -> int:
    """Switches of a full or partly filled tree [count].

    Args:
        nodes: nodes [count].
        radix: ports of a switch [count].
        layers: layers of switches [count].
        oversubscription: links down per link up of a leaf [ratio].

    >>> num_switches(1024, 16, 3)
    320
    """
    shape = shape_of(nodes, radix, layers, oversubscription)
    return sum(Clos(shape.children, shape.parents, np.arange(nodes)).switches())
