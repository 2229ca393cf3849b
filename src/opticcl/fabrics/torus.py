r"""Torus: every node is joined to the next and to the previous one in each dimension; nodes forward packets of others.

::

     ... (0,0) === (0,1) === (0,2) ... back to (0,0)       ===  one link each way
           |         |         |
     ... (1,0) === (1,1) === (1,2) ... back to (1,0)       a node has two ports a dimension; one where a side is 2,
           |         |         |                           as the next node is also the previous one; none where it is 1

Nodes are numbered row by row, the last dimension first. A packet is routed dimension by dimension, the first dimension
first, in the shorter direction. Where both directions are equally long, nodes with an even coordinate in that dimension
send up and the others down, so that both directions carry equal load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabrics import near_square, register_fabric
from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics._packet import MAX_NODES, LinkGroup, Network, PacketFabric, at_least, positive_rates
from opticcl.fabrics._walks import slices
from opticcl.ir import CellGrid, FabricNumbers, IntArray, Part
from opticcl.ir.phase_rows import Space
from opticcl.ir.representatives import LightMove
from opticcl.units import Rate, Seconds, Shape
from opticcl.units import shape as shape_of

__all__ = ["Torus"]

SHEET = datasheet("torus")
SHAPE = shape_of(SHEET["shape"])


@register_fabric("torus")
@dataclass(frozen=True, kw_only=True, repr=False)
class Torus(PacketFabric):
    """Torus of any number of dimensions.

    Args:
        shape: nodes along each dimension [count].
        rate: of every link, each direction [bit/s].
        link_latency: of a link and the node at its end [s].
    Raises: FabricError: no such torus.
    Source: SiPAC section VI-A, RAMP section 7.5.
    """

    shape: Shape = SHAPE
    rate: Rate = SHEET["rate"]
    link_latency: Seconds = SHEET["link_latency"]

    rate_parameter = "rate"
    source = "SiPAC section VI-A, RAMP section 7.5"

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1 or self.num_nodes > MAX_NODES:
            written = "x".join(map(str, self.shape))
            raise FabricError(f"torus: shape={written}; sides of 1 or more, at most {MAX_NODES} nodes")
        positive_rates("torus", rate=self.rate)
        at_least("torus", 0, link_latency=self.link_latency)

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """Two dimensions with the least difference (SiPAC VI-A), or a ring."""
        rows, columns = near_square(num_nodes)
        return {"shape": (rows, columns) if rows > 1 else (num_nodes,)}

    @cached_property
    def numbers(self) -> FabricNumbers:
        """Ports of a node, one if it is the only node, with the rate of a link each."""
        return FabricNumbers(
            num_nodes=prod(self.shape),
            ports_per_node=max(1, len(self._ways)),
            rate_bits_per_s=self.rate,
            dimensions=self.shape,
        )

    @cached_property
    def _sides(self) -> tuple[tuple[int, int], ...]:
        """Side of each dimension, and difference of the numbers of neighbours in it."""
        return tuple((side, prod(self.shape[k + 1 :])) for k, side in enumerate(self.shape))

    @cached_property
    def _ways(self) -> tuple[tuple[int, int], ...]:
        """(dimension, +1 or -1) of each port of a node; each has one link a node."""
        return tuple((k, way) for k, side in enumerate(self.shape) for way in (1, -1)[: min(side - 1, 2)])

    @cached_property
    def network(self) -> Network:
        """Links by dimension, first up, then down; in each the links of all nodes."""
        node = np.arange(self.num_nodes)
        kinds = [
            LinkGroup(node, _moved(node, *self._sides[k], way), self.rate, self.link_latency) for k, way in self._ways
        ]
        none = LinkGroup(node[:0], node[:0], self.rate, self.link_latency)
        return Network.of(self.num_nodes, kinds or [none], relays=True)

    @cached_property
    def _lines(self) -> tuple[IntArray, list[int]]:
        """Links of the line of node 0 in each dimension, so that every path along it is a slice.

        Returns: links up, twice round, then links down, twice round, int32; and where each dimension begins.
        """
        first = {way: port * self.num_nodes for port, way in enumerate(self._ways)}
        parts = []
        for k, (side, stride) in enumerate(self._sides):
            for way in (1, -1):
                link = first.get((k, way), first.get((k, 1), 0))  # a side of 2 has links up alone, of 1 none
                parts.append(np.tile(link + np.arange(side)[::way] * stride, 2))
        return np.concatenate(parts).astype(np.int32), np.cumsum([0, *(4 * side for side, _ in self._sides)]).tolist()

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Dimension by dimension, in the shorter direction: a slice of the links of one line each."""
        src, dst = np.asarray(src, np.int32), np.asarray(dst, np.int32)
        counts, start, base = np.empty((3, len(src), len(self._sides)), np.int32)
        lines, first = self._lines
        at = src
        for k, (side, stride) in enumerate(self._sides):
            here, there = src // stride % side, dst // stride % side
            steps = _steps(here, there, side)
            counts[:, k] = np.abs(steps)
            start[:, k] = first[k] + np.where(steps >= 0, here, 3 * side - 1 - here)
            base[:, k] = at - here * stride
            at = at + (there - here) * stride
        end = np.cumsum(counts.ravel(), dtype=np.int64)
        hops = slices(lines, start.ravel(), base.ravel(), end) if len(end) else np.zeros(0, np.int32)
        return hops, np.concatenate([[0], end[len(self._sides) - 1 :: len(self._sides)]])

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Translations of coordinates; by even numbers on even sides, where opposite nodes choose by parity."""
        by = Space(self.shape).translation(nodes)
        if by is None or any(
            side > 2 and side % 2 == 0 and ahead % 2 for side, ahead in zip(self.shape, by, strict=True)
        ):
            return None
        return self.moved_by_nodes(nodes)

    @cached_property
    def _coordinates(self) -> list[IntArray]:
        """Coordinate of each node in each dimension, int32 (nodes,)."""
        node = np.arange(self.num_nodes, dtype=np.int32)
        return [node // stride % side for side, stride in self._sides]

    def distance(self, src: IntArray, dst: IntArray) -> IntArray:
        """Links on the shortest path."""
        links = np.zeros(np.shape(src), np.int64)
        for (side, _), coordinate in zip(self._sides, self._coordinates, strict=True):
            apart = np.abs(coordinate[src] - coordinate[dst])
            links += np.minimum(apart, side - apart)
        return links

    def ring_order(self) -> IntArray:
        """Back and forth along the last dimension (a reflected Gray code): neighbours in the order share a link."""
        node = np.arange(self.num_nodes)
        order, before = np.zeros(self.num_nodes, np.int64), np.zeros(self.num_nodes, np.int64)
        for side, stride in self._sides:
            digit = node // stride % side
            order += np.where(before % 2 == 1, side - 1 - digit, digit) * stride
            before = before * side + digit
        return order

    def cell_grid(self) -> CellGrid:
        """Nodes by their coordinates; a block is contiguous, as the slices of a torus are."""
        return CellGrid(np.arange(self.num_nodes).reshape(*self.shape, 1), contiguous=True)

    def parts(self) -> tuple[Part, ...]:
        """One transceiver a link: a cable has one link each way and a transceiver at each end."""
        return (Part("transceiver", self.network.num_links, rate_bits_per_s=self.rate),)

    def coordinates(self, node: int) -> str:
        """Coordinates of a node."""
        return "(" + ", ".join(str(node // stride % side) for side, stride in self._sides) + ")"


def _moved(node: IntArray, side: int, stride: int, way: int) -> IntArray:
    """Neighbour of each node in a dimension, up (way 1) or down (-1)."""
    digit = node // stride % side
    moved: IntArray = node + ((digit + way) % side - digit) * stride
    return moved


def _steps(here: IntArray, there: IntArray, side: int) -> IntArray:
    """Signed steps from coordinate to coordinate in the shorter direction.

    >>> _steps(np.array([0, 0, 0, 1]), np.array([1, 3, 2, 3]), 4)
    array([ 1, -1,  2, -2])
    """
    up = (there - here) % side
    down = (2 * up > side) | ((2 * up == side) & (here % 2 == 1))
    return np.where(down, up - side, up)
