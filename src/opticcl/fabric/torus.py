r"""Torus: every node is joined to the next and to the one before in each dimension; nodes pass on what is not for them.

::

     ... (0,0) === (0,1) === (0,2) ... back to (0,0)       ===  one link each way
           |         |         |
     ... (1,0) === (1,1) === (1,2) ... back to (1,0)       a node has two ports a dimension; one where a side is 2,
           |         |         |                           as the next node is also the one before; none where it is 1

Nodes are numbered row by row, the last dimension first. A packet sets its coordinates right one after the other, the
first dimension first, the shorter way round. Where both ways are equally long, nodes with an even coordinate in that
dimension go up and the others down, so that both ways carry as much.
"""

from __future__ import annotations

from math import isqrt, prod
from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._packet import MAX_NODES, Links, Network, at_least, positive_rates
from opticcl.ir import Fabric, IntArray, Part
from opticcl.units import Rate, Seconds, Shape
from opticcl.units import shape as shape_of

SHEET = datasheet("torus")
SHAPE = shape_of(SHEET["shape"])


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: two dimensions with the least difference (SiPAC VI-A), or a ring."""
    rows = next(r for r in range(isqrt(num_nodes), 0, -1) if num_nodes % r == 0)
    return {"shape": (rows, num_nodes // rows) if rows > 1 else (num_nodes,)}


@register_fabric("torus", at_scale, rate="rate")
def torus(
    *,
    shape: Shape = SHAPE,
    rate: Rate = SHEET["rate"],
    link_latency: Seconds = SHEET["link_latency"],
) -> Fabric:
    """Torus of any dimensions.

    Args:
        shape: nodes along each dimension [count].
        rate: of every link, each direction [bit/s].
        link_latency: of a link and the node at its end [s].
    Raises: FabricError: no such torus.
    Source: SiPAC section VI-A, RAMP section 7.5.
    """
    num_nodes = prod(shape)
    if not shape or min(shape) < 1 or num_nodes > MAX_NODES:
        raise FabricError(f"torus: shape={'x'.join(map(str, shape))}; sides of 1 or more, at most {MAX_NODES} nodes")
    positive_rates("torus", rate=rate)
    at_least("torus", 0, link_latency=link_latency)
    sides = [
        (side, prod(shape[k + 1 :])) for k, side in enumerate(shape)
    ]  # side and how far apart neighbours are numbered
    node = np.arange(num_nodes)

    kinds: list[Links] = []
    first_link: dict[tuple[int, int], int] = {}  # (dimension, +1 or -1) -> link of node 0
    for k, (side, stride) in enumerate(sides):
        for way in (1, -1) if side > 2 else (1,) if side == 2 else ():
            first_link[k, way] = len(kinds) * num_nodes
            kinds.append(Links(node, _moved(node, side, stride, way), rate, link_latency))
        if side == 2:
            first_link[k, -1] = first_link[k, 1]
    network = Network.of(num_nodes, kinds or [Links(node[:0], node[:0], rate, link_latency)], relays=True)

    # links of a line one after the other, twice round, so that every way along it is a slice: up, then down
    slices = [
        np.concatenate([np.tile(first_link.get((k, way), 0) + np.arange(side)[::way] * stride, 2) for way in (1, -1)])
        for k, (side, stride) in enumerate(sides)
    ]
    table = np.concatenate(slices).astype(np.int32)
    table_at = np.cumsum([0, *map(len, slices)]).tolist()

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Dimension by dimension, the shorter way: a slice of a line's links each."""
        src, dst = np.asarray(src, np.int32), np.asarray(dst, np.int32)
        counts, start, base = np.empty((3, len(src), len(sides)), np.int32)
        at = src
        for k, (side, stride) in enumerate(sides):
            here, there = src // stride % side, dst // stride % side
            steps = _steps(here, there, side)
            counts[:, k] = np.abs(steps)
            start[:, k] = table_at[k] + np.where(steps >= 0, here, 3 * side - 1 - here)
            base[:, k] = at - here * stride
            at = at + (there - here) * stride
        end = np.cumsum(counts.ravel(), dtype=np.int64)
        behind = (start.ravel() - (end - counts.ravel())).astype(np.int32)
        hops = np.arange(end[-1] if len(end) else 0, dtype=np.int32)
        hops += np.repeat(behind, counts.ravel())
        hops = table[hops]
        hops += np.repeat(base.ravel(), counts.ravel())
        return hops, np.concatenate([[0], end[len(sides) - 1 :: len(sides)]])

    def distance(src: IntArray, dst: IntArray) -> IntArray:
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        steps = (np.abs(_steps(src // stride % side, dst // stride % side, side)) for side, stride in sides)
        return sum(steps, np.zeros(src.shape, np.int64))

    def ring_order() -> IntArray:
        """Back and forth along the last dimension (a reflected Gray code): neighbours in the order share a link."""
        order, before = np.zeros(num_nodes, np.int64), np.zeros(num_nodes, np.int64)
        for side, stride in sides:
            digit = node // stride % side
            order += np.where(before % 2 == 1, side - 1 - digit, digit) * stride
            before = before * side + digit
        return order

    def coordinates(number: int) -> str:
        return "(" + ", ".join(str(number // stride % side) for side, stride in sides) + ")"

    return Fabric(
        name="torus",
        num_nodes=num_nodes,
        num_wavelengths=1,
        ports_per_node=max(1, len(kinds)),
        lasers_per_port=1,
        rate_bits_per_s=rate,
        hop_latency_s=network.hop_latency_s,
        resources=network.resources,
        usage=network.usage,
        faults=network.faults,
        distance=distance,
        route=route,
        ring_order=ring_order,
        coordinates=coordinates,
        source="SiPAC section VI-A, RAMP section 7.5",
        parts=(Part("transceiver", network.num_links, rate_bits_per_s=rate),),
    )


def _moved(node: IntArray, side: int, stride: int, way: int) -> IntArray:
    """Neighbour of each node in a dimension."""
    digit = node // stride % side
    moved: IntArray = node + ((digit + way) % side - digit) * stride
    return moved


def _steps(here: IntArray, there: IntArray, side: int) -> IntArray:
    """Signed steps from coordinate to coordinate, the shorter way round.

    >>> _steps(np.array([0, 0, 0, 1]), np.array([1, 3, 2, 3]), 4)
    array([ 1, -1,  2, -2])
    """
    up = (there - here) % side
    down = (2 * up > side) | ((2 * up == side) & (here % 2 == 1))
    return np.where(down, up - side, up)
