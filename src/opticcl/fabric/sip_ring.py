r"""SiP-Ring: micro-rings on a ring of fibre, and one tunable transmitter and receiver a node and direction.

::

    node i                                                     node i + 1
    transmitter ~~ one wavelength ~> ))                       (( ~~> receiver takes one wavelength off
                                     --- fibre segment i, w wavelengths --->
                                              (a second fibre runs the other way if directions = 2)

A circuit is the segments from its sender on, in the direction of its port, up to its receiver; its light passes the
nodes between untouched, and its wavelength is free again behind the receiver. Port 0 is clockwise: segment i joins node
i to node i + 1. Port 1 is counter-clockwise: segment N + i joins node i + 1 to node i (modulo N).

The glass is that of `terarack`. What differs is the node: TeraRack lights all wavelengths of a port at once, a NIC of
SiP-Ring one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._light_terarack import terarack_light
from opticcl.fabric._packet import at_least, not_too_large, positive_rates
from opticcl.fabric.terarack import terarack
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.units import Rate, Seconds

__all__ = ["sip_ring"]

SHEET = datasheet("sip_ring")


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: a ring has any number."""
    return {"nodes": num_nodes}


@register_fabric("sip_ring", at_scale, rate="nic_rate")
def sip_ring(
    *,
    nodes: int = SHEET["nodes"],
    wavelengths: int = SHEET["wavelengths"],
    nic_rate: Rate = SHEET["nic_rate"],
    directions: int = SHEET["directions"],
    reconfiguration: Seconds = SHEET["reconfiguration"],
) -> Fabric:
    """Ring of wavelength-routed silicon-photonic nodes.

    Args:
        nodes: nodes N on the ring, >= 1 [count].
        wavelengths: wavelengths w of a fibre [count].
        nic_rate: of a transmitter, on the one wavelength that it is tuned to [bit/s].
        directions: 1, or 2 for a second fibre the other way with transmitters and receivers of its own.
        reconfiguration: to tune to another wavelength and another partner [s].
    Raises: FabricError: no such ring.
    Source: ODDL sections 2, 5.A, figure 9b, table 2.
    Reading: ODDL tells only that the ring needs N/2 - 1 wavelengths for halving-doubling (they are N/2, or N/4 with two
        directions) and runs a ring all-reduce on it; how many wavelengths there are, and the node, are as above.
    """
    at_least("sip_ring", 1, nodes=nodes, wavelengths=wavelengths, directions=directions)
    at_least("sip_ring", 0, reconfiguration=reconfiguration)
    positive_rates("sip_ring", nic_rate=nic_rate)
    not_too_large("sip_ring", nodes)
    if directions > 2:
        raise FabricError(f"sip_ring: directions={directions}; light runs round a ring in 1 or 2")

    glass = terarack(nodes=nodes, wavelengths=wavelengths)
    fibre = Resource("fibre", nodes * directions)
    tx = Resource("tx_port", nodes * directions, per_wavelength=False)  # tuned to one wavelength at a time
    rx = Resource("rx_port", nodes * directions, per_wavelength=False)

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Every segment between, and the transmitter and the receiver of the port."""
        yield Usage(fibre, circuits.hops, circuits.hop_owner())
        yield Usage(tx, circuits.src * np.int64(directions) + circuits.port)
        yield Usage(rx, circuits.dst * np.int64(directions) + circuits.port)

    def faults(circuits: Circuits) -> Iterator[Fault]:
        """What the glass cannot lead and the transmitter cannot light."""
        yield from glass.faults(circuits)
        yield Fault("wavelength_unheard", np.flatnonzero(circuits.wavelength_n > 1), "one wavelength a transmitter")

    def distance(src: IntArray, dst: IntArray) -> IntArray:
        ahead = (np.asarray(dst, np.int64) - src) % nodes
        return ahead if directions == 1 else np.minimum(ahead, nodes - ahead)

    return Fabric(
        name="sip_ring",
        num_nodes=nodes,
        num_wavelengths=wavelengths,
        ports_per_node=directions,
        lasers_per_port=1,
        rate_bits_per_s=nic_rate,
        reconfiguration_s=reconfiguration,
        resources=(fibre, tx, rx),
        usage=usage,
        faults=faults,
        distance=distance,
        source="ODDL sections 2, 5.A, figure 9b, table 2",
        light_path=terarack_light((nodes,), directions=directions, sheet="sip_ring"),
        parts=(
            Part("tunable_transceiver", nodes * directions, rate_bits_per_s=nic_rate),
            Part("fibre", nodes * directions),
        ),
    )
