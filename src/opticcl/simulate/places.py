"""Parts of a machine in words: "link leaf 3 -> spine 1", "transmitter of port 1 of node 5 (x0=5, x1=0)".

Links and whatever stands at a node's ports are named for every fabric; the glass in the middle and the switches have the
names of their papers where one is known here, else a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np

from opticcl.ir import Fabric, IntArray

__all__ = ["Place", "kind_names", "node_name", "place_name", "place_names"]


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a machine.

    Args:
        resource: which of the fabric's `resources`.
        index: which one of its `count`.
    """

    resource: int
    index: int


def place_name(fabric: Fabric, place: Place) -> str:
    """A part in words.

    >>> from opticcl.fabric import fabric
    >>> place_name(fabric("torus:shape=2x2"), Place(0, 0))
    'link node 0 (0, 0) -> node 2 (1, 0)'
    >>> place_name(fabric("fat_tree:nodes=64,radix=16"), Place(0, 70))
    'link leaf 0 -> node 6 (leaf 0)'
    >>> place_name(fabric("sipac:radix=4,levels=2"), Place(0, 11))
    'lasers of port 1 of node 5 (x0=1, x1=1)'
    """
    return place_names(fabric, place.resource, [place.index])[0]


def place_names(fabric: Fabric, resource: int, index: Sequence[int] | IntArray) -> list[str]:
    """Parts of one kind in words.

    Args:
        resource: which of the fabric's `resources`.
        index: which ones of its `count`.
    """
    kind = fabric.resources[resource]
    ends = _ends(fabric)
    if ends is not None and kind.shared:
        vertex = _vertex_names(fabric, ends)
        link = np.asarray(index) + sum(r.count for r in fabric.resources[:resource])
        pairs = zip(ends.tail[link].tolist(), ends.head[link].tolist(), strict=True)
        return [f"link {vertex(tail)} -> {vertex(head)}" for tail, head in pairs]
    places = np.asarray(index).tolist()
    ports, apart = divmod(kind.count, fabric.num_machine_nodes)
    if kind.kind in _AT_PORTS and not apart:
        which = [f"port {i % ports} of " if ports > 1 else "" for i in places]
        return [
            f"{_AT_PORTS[kind.kind]} of {port}{node_name(fabric, i // ports)}"
            for port, i in zip(which, places, strict=True)
        ]
    named = _IN_THE_MIDDLE.get(fabric.name)
    return [named(fabric, i) if named else f"{kind.kind} {i}" for i in places]


def node_name(fabric: Fabric, node: int) -> str:
    """A node of the machine with what its paper calls it.

    >>> from opticcl.fabric import fabric
    >>> node_name(fabric("ideal:nodes=4"), 3), node_name(fabric("oddl:shape=2x2"), 3)
    ('node 3', 'node 3 (1, 1)')
    """
    called = fabric.coordinates(node)
    return f"node {called}" if called.startswith(str(node)) else f"node {node} {called}"


def kind_names(fabric: Fabric, resource: int, index: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """What kinds of parts these are, such as "node -> leaf", and which kind each is.

    Returns: the kinds, and one of them for each of `index`, int64 (m,).
    """
    kind = fabric.resources[resource]
    ends = _ends(fabric)
    if ends is None or not kind.shared:
        return (_AT_PORTS.get(kind.kind, kind.kind.replace("_", " ")),), np.zeros(len(index), np.int64)
    tier, sorts = _sorts(fabric, ends)
    link = np.asarray(index) + sum(r.count for r in fabric.resources[:resource])
    pair = tier[ends.tail[link]] * len(sorts) + tier[ends.head[link]]
    kinds, of_link = np.unique(pair, return_inverse=True)
    return tuple(f"{sorts[k // len(sorts)]} -> {sorts[k % len(sorts)]}" for k in kinds.tolist()), of_link


_AT_PORTS = {"tx_port": "transmitter", "rx_port": "receiver", "laser": "lasers", "photodiode": "photodiodes"}


# --- vertices of packet networks --------------------------------------------------------------------------------------


@runtime_checkable
class _HasEnds(Protocol):
    """What knows both ends of every link: vertices below `num_nodes` are nodes, the others switches."""

    num_nodes: int
    tail: IntArray
    head: IntArray


def _ends(fabric: Fabric) -> _HasEnds | None:
    """The network of a packet fabric, of which its physics is a method, or None where it has no such thing."""
    network = getattr(fabric.usage, "__self__", None)
    return network if isinstance(network, _HasEnds) else None


def _vertex_names(fabric: Fabric, ends: _HasEnds) -> Callable[[int], str]:
    """Vertex -> its name."""
    sort, sorts = _sorts(fabric, ends)
    number = np.zeros(len(sort), np.int64)  # of each switch among those of its sort
    for s in range(1, len(sorts)):
        mine = np.flatnonzero(sort == s)
        number[mine] = np.arange(len(mine))
    parameters = fabric.parameters

    def name(vertex: int) -> str:
        if vertex < ends.num_nodes:
            return node_name(fabric, vertex)
        if fabric.name == "dragonfly":
            return f"router {number[vertex]} (group {number[vertex] // parameters['routers_per_group']})"
        if fabric.name == "bcube":
            level, place = divmod(int(number[vertex]), parameters["radix"] ** (parameters["levels"] - 1))
            return f"level-{level} switch {place}"
        return f"{sorts[sort[vertex]]} {number[vertex]}"

    return name


_TIERS = ("leaf", "spine", "core", "top switch")
_HAS_TIERS = ("fat_tree", "leaf_spine", "superpod")


def _sorts(fabric: Fabric, ends: _HasEnds) -> tuple[IntArray, tuple[str, ...]]:
    """Sort of each vertex, int64 (vertices,), and what the sorts are called; sort 0 are the nodes.

    Switches of a tree are of a sort if packets need as many links from them down to a node; the switch within a server
    is a sort of its own.
    """
    nodes = ends.num_nodes
    vertices = max(nodes, *(int(np.max(side, initial=-1)) + 1 for side in (ends.tail, ends.head)))
    if fabric.name not in _HAS_TIERS:
        sort = np.zeros(vertices, np.int64)
        sort[nodes:] = 1
        return sort, ("node", "router" if fabric.name == "dragonfly" else "switch")
    tier = _links_to_a_node(nodes, vertices, ends)
    sorts = ("node", *_TIERS[: int(tier.max())])
    if fabric.name == "superpod":
        tier[nodes : nodes + -(-nodes // fabric.parameters["nodes_per_server"])] = len(sorts)
        sorts = (*sorts, "NVSwitch")
    return tier, sorts


def _links_to_a_node(num_nodes: int, vertices: int, ends: _HasEnds) -> IntArray:
    """Fewest links from each vertex down to a node, int64 (vertices,); 0 for nodes."""
    distance = np.full(vertices, -1)
    distance[:num_nodes] = 0
    away = 0
    while True:
        next_out = ends.tail[(distance[ends.head] == away) & (distance[ends.tail] < 0)]
        if not len(next_out):
            return np.where(distance < 0, away + 1, distance)
        away += 1
        distance[next_out] = away


# --- the glass in the middle ------------------------------------------------------------------------------------------


def _ring_fibre(fabric: Fabric, index: int) -> str:
    """Segments of a ring: clockwise ones first."""
    nodes = fabric.parameters["nodes"]
    ring, rest = divmod(index, 2 * nodes)
    way, near = divmod(rest, nodes)
    begin, end = (near + way) % nodes, (near + 1 - way) % nodes
    which = f"ring {ring}, " if fabric.parameters.get("rings", 1) > 1 else ""
    return f"fibre from node {begin} to node {end} ({which}{'counter-' if way else ''}clockwise)"


def _torus_fibre(fabric: Fabric, index: int) -> str:
    rows, columns = fabric.parameters["shape"]
    port, near = divmod(index, rows * columns)
    row, column = divmod(near, columns)
    far = row * columns + (column + 1) % columns if port < 2 else (row + 1) % rows * columns + column
    begin, end = (near, far) if port % 2 == 0 else (far, near)
    return f"fibre from {node_name(fabric, begin)} to {node_name(fabric, end)} (port {port})"


def _waveguides(fabric: Fabric, index: int) -> str:
    tile, way = divmod(index, 4)
    row, column = divmod(tile, fabric.parameters["shape"][1])
    return f"waveguides {('east', 'west', 'south', 'north')[way]} of tile (row={row}, column={column})"


def _oddl_switch(fabric: Fabric, index: int) -> str:
    sides = len(fabric.parameters["shape"])
    half, port = divmod(index, prod(fabric.parameters["shape"]) * sides)
    node, side = divmod(port, sides)
    return f"{'output' if half else 'input'} for {node_name(fabric, node)} of its switch of dimension {side}"


def _subnet(fabric: Fabric, index: int) -> str:
    p = fabric.parameters
    where = []
    if p["subnet"] != "broadcast":
        index, device = divmod(index, p["wavelengths"])
        where = [f"outputs to devices {device}"]
    index, port = divmod(index, p["groups"] * p["transceivers_per_group"])
    origin, group = divmod(index, p["groups"])
    behind = ", ".join([f"port {port}", *where])
    if p["subnet"] == "route_switch":
        sender, rack = divmod(origin, p["racks"])
        return f"crossbar group {sender} rack {rack} -> group {group} ({behind})"
    return f"star coupler group {origin} -> group {group} ({behind})"


_IN_THE_MIDDLE: dict[str, Callable[[Fabric, int], str]] = {
    "lightpath": _waveguides,
    "oddl": _oddl_switch,
    "ramp": _subnet,
    "sip_ring": _ring_fibre,
    "terarack": _ring_fibre,
    "terarack_torus": _torus_fibre,
}
