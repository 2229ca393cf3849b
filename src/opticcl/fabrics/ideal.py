"""The ideal electrical switch: one port per node and a non-blocking crossbar.

::

    node 0 ==tx/rx==+
    node 1 ==tx/rx==|  one non-blocking crossbar, packets of any size, no reconfiguration
    node 2 ==tx/rx==+

It cannot be built at scale; its times are lower bounds for every electrical network with the same ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import datasheet
from opticcl.ir import Circuits, Fabric, FabricNumbers, Fault, IntArray, Resource, Usage
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.representatives import LightMove
from opticcl.units import Rate, Seconds, format_rate, format_seconds

__all__ = ["Ideal"]

SHEET = datasheet("ideal")


@register_fabric("ideal")
@dataclass(frozen=True, kw_only=True, repr=False)
class Ideal(Fabric):
    """Ideal electrical switch.

    Args:
        nodes: nodes, >= 1 [count].
        rate: of a node's port, each direction [bit/s].
        latency: from the first bit sent to the first bit received [s].
    Raises: FabricError: no nodes, or a rate that is not positive.
    """

    nodes: int = SHEET["nodes"]
    rate: Rate = SHEET["rate"]
    latency: Seconds = SHEET["latency"]

    rate_parameter = "rate"
    is_reference = True
    hops_are_links = True  # ports that send come first
    source = "ours: the bound of every switched network"
    about = "The electrical rival that cannot be built: a switch that never blocks and passes packets instead of light."

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise FabricError(f"ideal: nodes={self.nodes}; at least 1")
        if self.rate <= 0:
            raise FabricError(f"ideal: rate={format_rate(self.rate)} is not positive; try rate=400Gb/s")
        if self.latency < 0:
            raise FabricError(f"ideal: latency={format_seconds(self.latency)} is negative; try latency=1us")

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Six nodes and a ring."""
        return cls(nodes=6), "ring"

    @cached_property
    def numbers(self) -> FabricNumbers:
        """The rate is that of a port, the latency that of the switch."""
        return FabricNumbers(num_nodes=self.nodes, rate_bits_per_s=self.rate, latency_s=self.latency)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Ports, sending and receiving."""
        return (
            Resource("tx_port", self.nodes, capacity=self.rate, per_wavelength=False, shared=True),
            Resource("rx_port", self.nodes, capacity=self.rate, per_wavelength=False, shared=True),
        )

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """The sender's port and the receiver's."""
        tx, rx = self.resources
        yield Usage(tx, circuits.src)
        yield Usage(rx, circuits.dst)

    def passage(self, floor: FloorPlan) -> Passage:
        """Through the switch at the centre: two links, each with its receiver."""
        return Passage(fibre_m=floor.through_centre_m(self.nodes), receivers=2, switches=1)

    def route(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Out of the sender's port, into the receiver's."""
        return np.stack([src, self.nodes + dst], axis=1).ravel(), np.arange(len(src) + 1) * 2

    def move_of(self, nodes: IntArray) -> LightMove:
        """Any, with the ports of the nodes."""
        return LightMove(nodes, np.arange(1), np.arange(1), np.concatenate([nodes, self.nodes + nodes]))

    def resource_images(self, move: LightMove) -> tuple[IntArray, ...] | None:
        """A node takes its ports along."""
        kept = np.array_equal(move.hops, np.concatenate([move.nodes, self.nodes + move.nodes]))
        return (move.nodes, move.nodes) if kept else None

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Paths that are not these two ports."""
        broken = circuits.num_hops() != 2
        if not broken.any():
            out, into = circuits.hops[::2], circuits.hops[1::2]
            broken = (out != circuits.src) | (into != self.nodes + circuits.dst)
        yield Fault("path_broken", np.flatnonzero(broken), "the sender's port, then the receiver's")
