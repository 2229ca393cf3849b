r"""TopoOpt: every node has a few circuits through a patch panel that is set once a job; nodes forward packets of others.

::

    node i, degree d = 2, strides 1 and p                       N = 8, strides 1 and 3

    interface 0 ==> [       ] ==> node i + 1                    0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 0
    interface 1 ==> [ panel ] ==> node i + p  (modulo N)        0 -> 3 -> 6 -> 1 -> 4 -> 7 -> 2 -> 5 -> 0

A stride coprime to N makes one ring of all nodes. An interface sends to the next node of its ring and receives from the
previous one. To any other node packets pass several circuits and the nodes between them. The fewest circuits follow from
how to change an amount (the distance, modulo N) into the fewest coins (the strides). A circuit carries packets of many
flows, which share it; so circuits are modelled as shared links. The panel takes seconds and is never set within a job: there
is no reconfiguration.

What its light passes::

    interface ~~ fibre ~~ [patch panel] ~~ fibre ~~ interface of the next node of the ring

Every node on a path receives a packet and sends it again, so all circuits have the same losses, which never add up.
Source: RAMP section 2: patch panels, or 3-D MEMS switches in their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, Literal

import numpy as np

from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._packet import MAX_NODES, LinkGroup, Network, PacketFabric, at_least, positive_rates
from opticcl.ir import Circuits, ControlPlane, Fabric, FabricNumbers, IntArray, Part
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import Counts, Element, LightPath, Limit, Optics
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds, Shape

__all__ = ["TopoOpt", "fewest_circuits", "strides_of"]

SHEET = datasheet("topoopt")

MAX_DEGREE = 64
MAX_HOPS = 2**22  # of the paths of one step, as many as first fit accepts; a path may pass all nodes

_FROM_PRESET = ("degree", "node_rate", "link_latency", "node_latency")


@register_fabric("topoopt")
@dataclass(frozen=True, kw_only=True, repr=False)
class TopoOpt(PacketFabric):
    """Static circuits of a given degree, joined into rings.

    Parameters that are None are taken from the preset, or else from topoopt.toml; `values` has them all.

    Args:
        nodes: nodes N, >= 1 [count].
        degree: interfaces, and so circuits, of a node d [count].
        strides: of each interface's ring, written 1x5x17; None: those of `strides_of`. Equal ones run in parallel.
        node_rate: of all interfaces of a node together, each direction; an interface has 1/d of it [bit/s].
        rate_factor: multiplies `node_rate`; `with_node_rate` sets it.
        link_latency: of a circuit [s].
        node_latency: in and out of a node, charged for each circuit of a path [s].
        preset: ramp (degree 1, 1.6 Tb/s) or topoopt (4 interfaces of 100 Gb/s).
    Raises: FabricError: no such shape.
    Source: RAMP sections 7.4, 7.5; Wang et al. 2023 (TopoOpt).
    Reading: RAMP compares with one ring that has a node's whole rate, which is the default here. With more interfaces
        a node reaches others sooner, but a ring algorithm, which has one next node, uses 1/d of the rate.
    """

    nodes: int = SHEET["nodes"]
    degree: int | None = None
    strides: Shape | None = None
    node_rate: Rate | None = None
    rate_factor: float = 1.0
    link_latency: Seconds | None = None
    node_latency: Seconds | None = None
    preset: Literal["ramp", "topoopt"] | None = None

    rate_parameter = "rate_factor"
    source = "RAMP sections 7.4, 7.5; Wang et al. 2023"
    about = (
        "A patch panel joins each node with a few others for the whole job; packets for any other node pass through the "
        "nodes between."
    )

    def __post_init__(self) -> None:
        v = self.values
        at_least("topoopt", 1, nodes=self.nodes, degree=v["degree"])
        at_least("topoopt", 0, link_latency=v["link_latency"], node_latency=v["node_latency"])
        positive_rates("topoopt", self.rate_factor, node_rate=v["node_rate"])
        if self.nodes > MAX_NODES or v["degree"] > MAX_DEGREE:
            raise FabricError(
                f"topoopt: nodes={self.nodes}, degree={v['degree']}; at most {MAX_NODES} nodes of degree {MAX_DEGREE}"
            )
        if self.strides:
            _check_strides(self.strides, self.nodes, v["degree"])

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Eight nodes with two interfaces each, and a ring."""
        return cls(nodes=8, degree=2), "ring"

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Parameters that a preset may set, by name: as given, else from the preset, else from topoopt.toml."""
        values = {key: SHEET[key] for key in _FROM_PRESET} | (SHEET[self.preset] if self.preset else {})
        given = {key: getattr(self, key) for key in _FROM_PRESET}
        values |= {key: value for key, value in given.items() if value is not None}
        if self.strides and self.degree is None:
            values["degree"] = len(self.strides)
        return values

    @cached_property
    def interfaces_of_stride(self) -> Mapping[int, int]:
        """Number of interfaces of a node on the ring of each stride, the ring with the most first."""
        if self.nodes == 1:
            return {}
        return dict(Counter(self.strides or strides_of(self.nodes, self.values["degree"])).most_common())

    @cached_property
    def _fewest(self) -> tuple[IntArray, IntArray]:
        return fewest_circuits(self.nodes, tuple(self.interfaces_of_stride))

    @cached_property
    def _first_ring(self) -> IntArray:
        """Nodes in the order of the first ring from node 0 on, twice round, int32 (2 N,)."""
        stride = next(iter(self.interfaces_of_stride), 0)
        return np.tile(np.arange(self.nodes) * stride % self.nodes, 2).astype(np.int32)

    @cached_property
    def numbers(self) -> FabricNumbers:
        """A port is an interface, which has its share of the node's rate."""
        degree = self.values["degree"]
        rate = self.values["node_rate"] * self.rate_factor / degree
        return FabricNumbers(num_nodes=self.nodes, ports_per_node=degree, rate_bits_per_s=rate)

    @cached_property
    def network(self) -> Network:
        """Circuits ring by ring, the ring with the most interfaces first; in each the circuits of all nodes."""
        n, rate, node = self.nodes, self.rate_bits_per_s, np.arange(self.nodes)
        latency = self.values["link_latency"] + self.values["node_latency"]
        rings = self.interfaces_of_stride.items()
        kinds = [LinkGroup(node, (node + stride) % n, rate * count, latency) for stride, count in rings]
        return Network.of(n, kinds or [LinkGroup(node[:0], node[:0], rate, latency)], relays=True)

    def distance(self, src: IntArray, dst: IntArray) -> IntArray:
        """Circuits on the shortest path."""
        ahead = (np.asarray(dst, np.int64) - src) % self.nodes
        return self._fewest[0][ahead] if self.nodes > 1 else ahead

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Along the fewest circuits.

        Raises: UnsupportedError: the paths have more than MAX_HOPS circuits together.
        """
        at, ahead = np.asarray(src, np.int64), (np.asarray(dst, np.int64) - src) % self.nodes
        if self.nodes == 1:
            return np.zeros(0, np.int32), np.zeros(len(at) + 1, np.int64)
        circuits, last = self._fewest
        offsets = np.concatenate([[0], np.cumsum(circuits[ahead], dtype=np.int64)])
        if offsets[-1] > MAX_HOPS:
            raise UnsupportedError(
                f"topoopt: the paths of one step have {offsets[-1]:,} circuits, at most {MAX_HOPS:,} are supported; "
                "try a larger degree or fewer nodes"
            )
        strides = tuple(self.interfaces_of_stride)
        if len(strides) == 1:  # paths are slices of the only ring
            ring = self._first_ring
            behind = (np.argsort(ring[: self.nodes])[at] - offsets[:-1]).astype(np.int32)
            return ring[np.arange(offsets[-1], dtype=np.int32) + np.repeat(behind, circuits[ahead])], offsets
        return _walk(at, ahead, offsets, last, np.array(strides)), offsets

    def ring_order(self) -> IntArray:
        """The ring with the most interfaces."""
        return self._first_ring[: self.nodes].astype(np.int64)

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Through the panel at the centre to a receiver; the node there counts as a switch, but for the last of a path."""
        fibre = np.full(self.network.num_links, floor.through_centre_m(self.nodes))
        return Passage(fibre_m=fibre, receivers=1, switches=1)

    def control_plane(self) -> ControlPlane:
        """The panel is set before the job."""
        return control_plane("topoopt", "circuits are patched", "nothing")

    @cached_property
    def light_path(self) -> LightPath:
        """Through the patch panel; the same for all circuits."""
        once = np.ones((1, len(_ELEMENTS)))

        def counts(circuits: Circuits) -> Counts:
            return np.broadcast_to(once, (len(circuits), len(_ELEMENTS)))

        return LightPath(optics_of("topoopt"), _ELEMENTS, counts, once, ("every circuit",), once[0])

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """The largest loss of a panel with which the budget closes."""
        path = self.light_path
        most = float(chain_of(path, values).margin_db(path.extremes)[0]) + values.loss_db("patch_panel")
        text = f"the panel may lose up to {most:.2f} dB" if most >= 0 else "not even a panel without loss closes"
        return (Limit("largest_panel_loss_db", most if most >= 0 else None, text),)

    def parts(self) -> tuple[Part, ...]:
        """A transceiver an interface, the panel, and two fibres a circuit."""
        interfaces = self.nodes * self.ports_per_node
        return (
            Part("transceiver", interfaces, rate_bits_per_s=self.rate_bits_per_s),
            Part("patch_panel", 1, ports=interfaces),
            Part("fibre", 2 * interfaces),
        )


_ELEMENTS = tuple(map(Element, ("fibre", "patch_panel", "fibre")))


def strides_of(num_nodes: int, degree: int) -> tuple[int, ...]:
    """Strides of the rings: 1 first, then numbers coprime to N as near as possible to a geometric series.

    Stride k is the unused one nearest to N^(k / d), the smaller of two; so no node is much farther than d N^(1/d) circuits.
    With fewer strides than interfaces they repeat, and circuits run in parallel.

    Args:
        num_nodes: nodes N [count].
        degree: interfaces of a node d [count].
    Returns: one stride for each interface; empty for a single node.

    >>> strides_of(64, 3), strides_of(12, 3), strides_of(4, 3)
    ((1, 3, 15), (1, 5, 7), (1, 3, 1))

    Source: TopoOpt's TotientPerms (rings of strides prime to N) and SelectPermutations (near a geometric series).
    Reading: how ties are broken, and that strides repeat, is ours.
    """
    if num_nodes == 1:
        return ()
    rings = np.flatnonzero(np.gcd(np.arange(num_nodes), num_nodes) == 1)
    chosen: list[int] = []
    for k in range(min(degree, len(rings))):
        nearest = int(np.abs(rings - num_nodes ** (k / degree)).argmin())
        chosen.append(int(rings[nearest]))
        rings = np.delete(rings, nearest)
    return tuple(chosen[k % len(chosen)] for k in range(degree))


def fewest_circuits(num_nodes: int, strides: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """For each distance (dst - src modulo N): the fewest circuits that lead there, and which stride is the last of them.

    Args:
        num_nodes: nodes N [count].
        strides: distinct, each makes a ring of all nodes.
    Returns: number of circuits, position of the last stride, int32 (num_nodes,) each; both 0 for distance 0.

    >>> fewest_circuits(8, (1, 3))[0]
    array([0, 1, 2, 1, 2, 3, 2, 3], dtype=int32)
    """
    circuits = np.full(num_nodes, -1, np.int32)
    last = np.zeros(num_nodes, np.int32)
    circuits[0] = 0
    if len(strides) == 1:
        circuits[np.arange(num_nodes) * strides[0] % num_nodes] = np.arange(num_nodes)
        return circuits, last
    reached, count = np.zeros(1, np.int64), 0
    while len(reached):
        count, newly_reached = count + 1, []
        for row, stride in enumerate(strides):
            onward = (reached + stride) % num_nodes
            onward = onward[circuits[onward] < 0]
            circuits[onward], last[onward] = count, row
            newly_reached.append(onward)
        reached = np.concatenate(newly_reached)
    return circuits, last


def _walk(at: IntArray, ahead: IntArray, offsets: IntArray, last: IntArray, strides: IntArray) -> IntArray:
    """Circuits of all paths, concatenated; each iteration extends all unfinished paths by one circuit.

    Args:
        at: first node of each path, (n,).
        ahead: distance to its last node, (n,).
        offsets: position of its circuits in the result, (n + 1,).
        last: position in `strides` of the stride to take at each distance, (num_nodes,).
        strides: distinct strides of the rings.
    """
    hops = np.empty(offsets[-1], np.int32)
    place, nodes = offsets[:-1], len(last)
    while len(going := np.flatnonzero(ahead)):
        at, ahead, place = at[going], ahead[going], place[going]
        row = last[ahead]
        hops[place] = row * nodes + at
        at, ahead, place = (at + strides[row]) % nodes, (ahead - strides[row]) % nodes, place + 1
    return hops


def _check_strides(strides: tuple[int, ...], nodes: int, degree: int) -> None:
    """Check that there is a stride for each interface and that each makes a ring of all nodes.

    Raises: FabricError: another number of them, or one that does not reach all nodes.
    """
    written = "x".join(map(str, strides))
    if len(strides) != degree:
        raise FabricError(
            f"topoopt: strides={written} are {len(strides)}, degree={degree}; give one an interface, or leave degree out"
        )
    for stride in strides:
        if nodes > 1 and (stride >= nodes or gcd(stride, nodes) > 1):
            near = "x".join(map(str, strides_of(nodes, degree)))
            raise FabricError(
                f"topoopt: strides={written}: {stride} makes no ring of {nodes} nodes; strides are below the number of "
                f"nodes and coprime to it, such as strides={near}"
            )
