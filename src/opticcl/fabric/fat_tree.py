r"""Fat tree: nodes at the leaves of a folded Clos network of switches of one radix.

::

    layer 3                  [core] ... [core]                  all ports down
                              ||          ||
    layer 2         [switch] [switch]    [switch] [switch]      half of the ports up, half down
                       | \  / |             | \  / |
    layer 1         [ leaf ] [ leaf ]    [ leaf ] [ leaf ]      down : up = oversubscription : 1
                      ||||     ||||        ||||     ||||
                      nodes    nodes       nodes    nodes       one port a node

Every link carries packets both ways at once, one directed link each way. A packet climbs to the lowest layer that both
nodes share and comes down; which of the equal up-links it takes is the routing:

    dmodk     by the number of the receiver: all ways down are kept apart
    smodk     by the number of the sender
    ecmp      at random, one draw a pair of nodes and layer
    dstedge   by the receiver's leaf: one path a leaf, as subnet routes give
    single    always the first
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._clos import Clos, Routing
from opticcl.fabric._packet import Network, at_least, not_too_large, paths_of_columns, positive_rates
from opticcl.ir import Fabric, IntArray
from opticcl.units import Rate, Seconds

SHEET = datasheet("fat_tree")

MOST_LAYERS = 4


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: a tree is filled as far as needed, with the fewest layers that hold them."""
    return {"nodes": num_nodes}


@register_fabric("fat_tree", at_scale, rate="rate_factor")
def fat_tree(
    *,
    nodes: int = SHEET["nodes"],
    radix: int | None = None,
    layers: int | None = None,
    oversubscription: float | None = None,
    rate: Rate | None = None,
    rate_factor: float = 1.0,
    link_latency: Seconds | None = None,
    router_latency: Seconds | None = None,
    routing: Routing | None = None,
    seed: int = 0,
    preset: Literal["wrht", "oddl"] | None = None,
) -> Fabric:
    """Fat tree.

    What is left out comes from the preset, or from the data sheet.

    Args:
        nodes: nodes, >= 1 [count].
        radix: ports of a switch [count].
        layers: 2 to 4 [count]; None: the fewest that hold the nodes.
        oversubscription: down-links a up-link of a leaf [ratio]; all layers above have as many up as down.
        rate: of every link, each direction [bit/s].
        rate_factor: by which `rate` is multiplied; a comparison at equal rates of the nodes sets it.
        link_latency: of a link [s].
        router_latency: of a switch [s].
        routing: dmodk, smodk, ecmp, dstedge or single.
        seed: of ecmp.
        preset: wrht (two layers, 40 Gb/s, 25 us a router) or oddl (radix 16, 1:1, 100 Gb/s, 1 us a switch).
    Raises: FabricError: no such tree.
    Source: WRHT table 2, ODDL section 5.A and table 2.
    Reading: WRHT's "32 port routers" hold 512 nodes at full bisection; its 1024 nodes need 32 ports down and 32 up at a
        leaf, as SimGrid counts. The preset has radix 64.
    """
    given = {
        "radix": radix,
        "layers": layers,
        "oversubscription": oversubscription,
        "rate": rate,
        "link_latency": link_latency,
        "router_latency": router_latency,
        "routing": routing,
    }
    values = {key: SHEET[key] for key in given if key in SHEET} | (SHEET[preset] if preset else {})
    values |= {key: value for key, value in given.items() if value is not None}
    at_least("fat_tree", 1, nodes=nodes)
    at_least("fat_tree", 0, link_latency=values["link_latency"], router_latency=values["router_latency"], seed=seed)
    positive_rates("fat_tree", rate_factor, rate=values["rate"])
    values["rate"] *= rate_factor
    not_too_large("fat_tree", nodes)
    shape = shape_of(nodes, values["radix"], values.get("layers"), values["oversubscription"])
    return _build(nodes, shape, values, seed)


@dataclass(frozen=True, slots=True)
class Shape:
    """Switches of a tree: lower and upper neighbours by layer, lowest first."""

    children: tuple[int, ...]
    parents: tuple[int, ...]


def shape_of(nodes: int, radix: int, layers: int | None, oversubscription: float) -> Shape:
    """The tree for that many nodes.

    >>> shape_of(1024, 16, 3, 1)
    Shape(children=(8, 8, 16), parents=(1, 8, 8))

    Raises: FabricError: ports that cannot be split so, or too many nodes for it.
    """
    at_least("fat_tree", 2, radix=radix)
    up = round(radix / (1 + oversubscription)) if oversubscription > 0 else 0
    if up < 1 or up >= radix or abs(up * (1 + oversubscription) - radix) > 1e-9 * radix:
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
                f"fat_tree: radix={radix} is odd, the switches between need as many ports up as down; try {radix + 1}"
            )
        half = radix // 2
        children = (radix - up, *(half,) * (depth - 2), radix)
        if nodes <= prod(children):
            return Shape(children, (1, up, *(half,) * (depth - 2)))
    raise FabricError(
        f"fat_tree: nodes={nodes} are more than {depth} layers of radix={radix} hold; at most nodes={prod(children)}"
    )


def _build(nodes: int, shape: Shape, values: dict[str, Any], seed: int) -> Fabric:
    depth = len(shape.children)
    tree = Clos(shape.children, shape.parents, np.arange(nodes))
    not_too_large("fat_tree", nodes, tree.num_links())
    rate, latency, routing = values["rate"], values["link_latency"], values["routing"]
    kinds = tree.links(nodes, [rate] * depth, [latency] * depth, values["router_latency"])
    network = Network.of(nodes, kinds)

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        return paths_of_columns(tree.columns(src, dst, routing, seed))

    def coordinates(node: int) -> str:
        return f"{node} (leaf {node // shape.children[0]})"

    return Fabric(
        name="fat_tree",
        num_nodes=nodes,
        num_wavelengths=1,
        ports_per_node=1,
        lasers_per_port=1,
        rate_bits_per_s=rate,
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        route=route,
        coordinates=coordinates,
        source="WRHT table 2; ODDL section 5.A; SiPAC section VI-A",
        parts=tree.parts([rate] * depth, "copper_end"),
    )


def num_switches(nodes: int, radix: int, layers: int, oversubscription: float = 1) -> int:
    """Switches of a full or part-filled tree [count].

    >>> num_switches(1024, 16, 3)
    320
    """
    shape = shape_of(nodes, radix, layers, oversubscription)
    return sum(Clos(shape.children, shape.parents, np.arange(nodes)).switches())
