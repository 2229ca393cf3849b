r"""TopoOpt: every node has a few circuits of its own through a patch panel that is set once a job; nodes pass packets on.

::

    node i, degree d = 2, strides 1 and p                       N = 8, strides 1 and 3

    interface 0 ==> [       ] ==> node i + 1                    0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 0
    interface 1 ==> [ panel ] ==> node i + p  (modulo N)        0 -> 3 -> 6 -> 1 -> 4 -> 7 -> 2 -> 5 -> 0

A stride that has no divisor in common with N makes one ring of all nodes. An interface sends towards the next node of
its ring and listens to the one before. To any other node packets go over several circuits and through the nodes between
them: on the fewest, which is how to change an amount (the distance, modulo N) into the fewest coins (the strides).
A circuit may so carry many flows, which share it: these are links, and circuits cannot be refused for being full. The
panel takes seconds and never moves within a job, so nothing is ever reconfigured.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import gcd
from typing import Any, Literal

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabric import register_fabric
from opticcl.fabric._light_topoopt import topoopt_light
from opticcl.fabric._packet import MAX_NODES, Links, Network, at_least, positive_rates
from opticcl.ir import Fabric, IntArray, Part
from opticcl.units import Rate, Seconds, Shape

__all__ = ["fewest_circuits", "strides_of", "topoopt"]

SHEET = datasheet("topoopt")

MAX_DEGREE = 64
MAX_HOPS = 2**22  # of the routes of one step, as much light as first fit takes on; one ring may lead past all nodes


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: rings have any number."""
    return {"nodes": num_nodes}


def strides_of(num_nodes: int, degree: int) -> tuple[int, ...]:
    """Strides of the rings: 1 first, then as near to a geometric series as numbers without a divisor in common with N are.

    Stride k is the one nearest to N^(k / d) that is still free, the smaller of two; so no node is much farther than
    d N^(1/d) circuits. Where there are fewer strides than interfaces they begin anew, and circuits lie side by side.

    >>> strides_of(64, 3), strides_of(12, 3), strides_of(4, 3)
    ((1, 3, 15), (1, 5, 7), (1, 3, 1))

    Source: TopoOpt's TotientPerms (rings of strides prime to N) and SelectPermutations (near a geometric series).
    Reading: how ties are broken, and what happens where strides run out, is ours.
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
    """For each distance (dst - src modulo N): how many circuits lead there, and which stride is the last of them.

    Args: strides: different ones, each makes a ring of all nodes.
    Returns: circuits, row of the last stride, int32 (num_nodes,) each; both 0 for distance 0.

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
        count, news = count + 1, []
        for row, stride in enumerate(strides):
            onward = (reached + stride) % num_nodes
            onward = onward[circuits[onward] < 0]
            circuits[onward], last[onward] = count, row
            news.append(onward)
        reached = np.concatenate(news)
    return circuits, last


@register_fabric("topoopt", at_scale, rate="rate_factor")
def topoopt(
    *,
    nodes: int = SHEET["nodes"],
    degree: int | None = None,
    strides: Shape | None = None,
    node_rate: Rate | None = None,
    rate_factor: float = 1.0,
    link_latency: Seconds | None = None,
    node_latency: Seconds | None = None,
    preset: Literal["ramp", "topoopt"] | None = None,
) -> Fabric:
    """Static circuits of a given degree, joined into rings.

    What is left out comes from the preset, or from the data sheet.

    Args:
        nodes: nodes N, >= 1 [count].
        degree: interfaces, and so circuits, of a node d [count].
        strides: of each interface's ring, written 1x5x17; None: those of `strides_of`. Equal ones lie side by side.
        node_rate: of all interfaces of a node together, each direction; an interface has 1/d of it [bit/s].
        rate_factor: by which `node_rate` is multiplied; a comparison at equal rates of the nodes sets it.
        link_latency: of a circuit [s].
        node_latency: in and out of a node, charged for each circuit on the way [s].
        preset: ramp (degree 1, 1.6 Tb/s) or topoopt (4 interfaces of 100 Gb/s).
    Raises: FabricError: no such shape.
    Source: RAMP sections 7.4, 7.5; Wang et al. 2023 (TopoOpt).
    Reading: RAMP compares with one ring that has a node's whole rate, which is the default here. With more interfaces
        a node reaches others sooner, but a ring algorithm, which has one next node, uses 1/d of the rate.
    """
    given = {"degree": degree, "node_rate": node_rate, "link_latency": link_latency, "node_latency": node_latency}
    values = {key: SHEET[key] for key in given} | (SHEET[preset] if preset else {})
    values |= {key: value for key, value in given.items() if value is not None}
    if strides and degree is None:
        values["degree"] = len(strides)
    at_least("topoopt", 1, nodes=nodes, degree=values["degree"])
    at_least("topoopt", 0, link_latency=values["link_latency"], node_latency=values["node_latency"])
    positive_rates("topoopt", rate_factor, node_rate=values["node_rate"])
    values["node_rate"] *= rate_factor
    if nodes > MAX_NODES or values["degree"] > MAX_DEGREE:
        raise FabricError(
            f"topoopt: nodes={nodes}, degree={values['degree']}; at most {MAX_NODES} nodes of degree {MAX_DEGREE}"
        )
    chosen = _checked(strides, nodes, values["degree"]) if strides else strides_of(nodes, values["degree"])

    node = np.arange(nodes)
    beside = dict(Counter(chosen).most_common())  # interfaces of each stride, the widest ring first
    rings, rate = tuple(beside), values["node_rate"] / values["degree"]
    latency = values["link_latency"] + values["node_latency"]
    kinds = [Links(node, (node + stride) % nodes, rate * beside[stride], latency) for stride in rings]
    network = Network.of(nodes, kinds or [Links(node[:0], node[:0], rate, latency)], relays=True)
    around = np.tile(node * (rings[0] if rings else 0) % nodes, 2).astype(np.int32)  # the first ring, twice round

    @cache
    def table() -> tuple[IntArray, IntArray]:
        return fewest_circuits(nodes, rings)

    def distance(src: IntArray, dst: IntArray) -> IntArray:
        ahead = (np.asarray(dst, np.int64) - src) % nodes
        return table()[0][ahead] if nodes > 1 else ahead

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Over the fewest circuits to the node that is so far ahead."""
        at, ahead = np.asarray(src, np.int64), (np.asarray(dst, np.int64) - src) % nodes
        if nodes == 1:
            return np.zeros(0, np.int32), np.zeros(len(at) + 1, np.int64)
        circuits, last = table()
        offsets = np.concatenate([[0], np.cumsum(circuits[ahead], dtype=np.int64)])
        if offsets[-1] > MAX_HOPS:
            raise UnsupportedError(
                f"topoopt: the paths of one step have {offsets[-1]:,} circuits, at most {MAX_HOPS:,} are taken on; "
                "try a larger degree or fewer nodes"
            )
        if len(rings) == 1:  # a slice of the only ring; its circuits follow each other in `around`
            behind = (np.argsort(around[:nodes])[at] - offsets[:-1]).astype(np.int32)
            return around[np.arange(offsets[-1], dtype=np.int32) + np.repeat(behind, circuits[ahead])], offsets
        return _walk(at, ahead, offsets, last, np.array(rings)), offsets

    return Fabric(
        name="topoopt",
        num_nodes=nodes,
        num_wavelengths=1,
        ports_per_node=values["degree"],
        lasers_per_port=1,
        rate_bits_per_s=rate,
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        distance=distance,
        route=route,
        ring_order=lambda: around[:nodes].astype(np.int64),
        source="RAMP sections 7.4, 7.5; Wang et al. 2023",
        light_path=topoopt_light(),
        parts=(
            Part("transceiver", nodes * values["degree"], rate_bits_per_s=rate),
            Part("patch_panel", 1, ports=nodes * values["degree"]),
            Part("fibre", 2 * nodes * values["degree"]),
        ),
    )


def _walk(at: IntArray, ahead: IntArray, offsets: IntArray, last: IntArray, strides: IntArray) -> IntArray:
    """Circuits of all paths end to end; each turn of the loop moves all that have not arrived by one.

    Args:
        at: where each path begins.
        ahead: how far it leads.
        offsets: where its circuits stand in the answer, (n + 1,).
        last: row of the stride to take at each distance, (num_nodes,).
        strides: by row.
    """
    hops = np.empty(offsets[-1], np.int32)
    place, nodes = offsets[:-1], len(last)
    while len(going := np.flatnonzero(ahead)):
        at, ahead, place = at[going], ahead[going], place[going]
        row = last[ahead]
        hops[place] = row * nodes + at
        at, ahead, place = (at + strides[row]) % nodes, (ahead - strides[row]) % nodes, place + 1
    return hops


def _checked(strides: tuple[int, ...], nodes: int, degree: int) -> tuple[int, ...]:
    """Strides that were given, if each makes a ring.

    Raises: FabricError: not one an interface, or one that does not reach all nodes.
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
                f"topoopt: strides={written}: {stride} makes no ring of {nodes} nodes; below it and without a divisor "
                f"in common with it, such as strides={near}"
            )
    return strides if nodes > 1 else ()
