"""The ideal electrical switch: one port a node, nothing in between ever blocks.

::

    node 0 ==tx/rx==+
    node 1 ==tx/rx==|  one non-blocking crossbar, packets of any size, no reconfiguration
    node 2 ==tx/rx==+

The rival that nobody can build: a bound for every electrical network with the same ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Resource, Usage
from opticcl.units import Rate, Seconds

SHEET = datasheet("ideal")


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes."""
    return {"nodes": num_nodes}


@register_fabric("ideal", at_scale, rate="rate")
def ideal(*, nodes: int = SHEET["nodes"], rate: Rate = SHEET["rate"], latency: Seconds = SHEET["latency"]) -> Fabric:
    """Ideal electrical switch.

    Args:
        nodes: nodes, >= 1 [count].
        rate: of a node's port, each direction [bit/s].
        latency: from the first bit sent to the first bit received [s].
    Raises: FabricError: no nodes, or a rate that is not positive.
    """
    if nodes < 1 or rate <= 0 or latency < 0:
        raise FabricError(
            f"ideal: nodes={nodes}, rate={rate:g}, latency={latency:g}; nodes >= 1, rate > 0, latency >= 0"
        )
    tx = Resource("tx_port", nodes, capacity=rate, per_wavelength=False, shared=True)
    rx = Resource("rx_port", nodes, capacity=rate, per_wavelength=False, shared=True)

    def usage(circuits: Circuits) -> Iterator[Usage]:
        yield Usage(tx, circuits.src)
        yield Usage(rx, circuits.dst)

    def route(src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Out of the sender's port, into the receiver's."""
        return np.stack([src, nodes + dst], axis=1).ravel(), np.arange(len(src) + 1) * 2

    def faults(circuits: Circuits) -> Iterator[Fault]:
        broken = circuits.num_hops() != 2
        if not broken.any():
            out, into = circuits.hops[::2], circuits.hops[1::2]
            broken = (out != circuits.src) | (into != nodes + circuits.dst)
        yield Fault("path_broken", np.flatnonzero(broken), "the sender's port, then the receiver's")

    return Fabric(
        name="ideal",
        num_nodes=nodes,
        num_wavelengths=1,
        ports_per_node=1,
        lasers_per_port=1,
        rate_bits_per_s=rate,
        latency_s=latency,
        resources=(tx, rx),
        usage=usage,
        faults=faults,
        route=route,
        source="ours: the bound of every switched network",
    )
