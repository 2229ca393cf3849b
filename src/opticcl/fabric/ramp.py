r"""RAMP: tunable transmitters, star couplers, 20 ns slots.

::

    node (g, j, l)                 subnet (g, g', t): one star coupler               node (g', j', l')
    laser t  ~~wavelength l'~~> [TX gate: 1 of x groups] ~~> )=====( ~~> [RX gate: 1 of x groups] ~~> filter l' -> photodiode t
      x transceiver groups             picks g'          J L in, J L out        picks g

A node is (communication group g, rack j, device l) with number (g J + j) L + l. Transceiver group t of every node of group
g reaches, through a gate of x branches, the subnets (g, 0, t), ..., (g, x-1, t). A subnet is a passive coupler: all J L nodes
of the destination group hear all of it, so each wavelength may be used once. A receiver is fixed to its device's wavelength
and its gate listens to one group at a time. With b transceivers a group everything is there b times.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import nearest_sizes, register_fabric
from opticcl.ir import Circuits, Fabric, Fault, Resource, Usage
from opticcl.units import Rate, Seconds

SHEET = datasheet("ramp")


def shape_at_scale(num_nodes: int) -> tuple[int, int, int] | None:
    """Groups, racks and wavelengths of a RAMP with that many nodes, or None.

    Reading: the paper scales x = J with L = 64. We take the most groups whose square the nodes allow, since x sets how
    many peers a node reaches in a step, then the most racks, with J <= x, x | L and at most x - 1 device groups.
    """
    if num_nodes == 1:
        return 1, 1, 1
    largest: int = SHEET["groups"]
    for groups in range(min(largest, num_nodes), 1, -1):
        for racks in range(min(groups, num_nodes // groups), 0, -1):
            wavelengths, rest = divmod(num_nodes, groups * racks)
            if not rest and wavelengths % groups == 0 and wavelengths // groups <= max(1, groups - 1):
                return groups, racks, wavelengths
    return None


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes; a small RAMP keeps the 32 transceivers of a node by b = 32 / x.

    Raises: FabricError: num_nodes is no x J L with J <= x and x | L.
    """
    shape = shape_at_scale(num_nodes)
    if shape is None:
        near = nearest_sizes(num_nodes, lambda n: shape_at_scale(n) is not None)
        raise FabricError(
            f"ramp: {num_nodes} nodes are no groups x racks x wavelengths with racks <= groups dividing wavelengths; {near}"
        )
    groups, racks, wavelengths = shape
    b = ceil(SHEET["groups"] / groups)
    return {"groups": groups, "racks": racks, "wavelengths": wavelengths, "transceivers_per_group": b}


@register_fabric("ramp", at_scale, rate="line_rate")
def ramp(
    *,
    groups: int = SHEET["groups"],
    racks: int = SHEET["racks"],
    wavelengths: int = SHEET["wavelengths"],
    transceivers_per_group: int = SHEET["transceivers_per_group"],
    line_rate: Rate = SHEET["line_rate"],
    slot: Seconds = SHEET["slot"],
    switching: Seconds = SHEET["switching"],
    propagation: Seconds = SHEET["propagation"],
    io: Seconds = SHEET["io"],
) -> Fabric:
    """RAMP with broadcast-and-select subnets.

    Args:
        groups: communication groups x [count].
        racks: racks a group J, at most x [count].
        wavelengths: devices a rack L, a multiple of x [count].
        transceivers_per_group: transceivers b of a node in each of its x transceiver groups [count].
        line_rate: of one transceiver [bit/s].
        slot: time slot [s]; 0 for none, then circuits change in `switching`.
        switching: part of a slot that is lost to switching [s].
        propagation: between any two nodes [s].
        io: memory to transceiver and back [s].
    Raises: FabricError: no such shape.
    Source: RAMP sections 3.1, 4.1, 6.2.
    """
    x, num_racks, num_devices, b = groups, racks, wavelengths, transceivers_per_group
    if min(x, num_racks, num_devices, b) < 1:
        raise FabricError(
            f"ramp: groups={x}, racks={num_racks}, wavelengths={num_devices}, transceivers_per_group={b}; all are 1 or more"
        )
    if num_racks > x:
        raise FabricError(
            f"ramp: racks={num_racks} is more than groups={x}; at most one rack a transceiver group, try racks={x}"
        )
    if num_devices % x:
        below = max(x, num_devices // x * x)
        raise FabricError(
            f"ramp: groups={x} does not divide wavelengths={num_devices}; nearest: wavelengths={below} or {below + x}"
        )
    if line_rate <= 0 or slot < 0 or switching < 0 or propagation < 0 or io < 0:
        raise FabricError("ramp: line_rate must be positive; slot, switching, propagation and io not negative")
    if 0 < slot <= switching:
        raise FabricError(
            f"ramp: slot={slot:g} s leaves no time for data after switching={switching:g} s; try slot={20 * switching:g}"
        )

    num_nodes, num_ports = x * num_racks * num_devices, x * b
    nodes_per_group = num_racks * num_devices
    tx = Resource("tx_port", num_nodes * num_ports, per_wavelength=False)  # a laser has one colour at a time
    rx = Resource("rx_port", num_nodes * num_ports, per_wavelength=False)
    subnet = Resource("subnet", x * x * num_ports)

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Laser of the sender, photodiode of the receiver, and the coupler that both gates lead to."""
        tx_gate = circuits.hops[::2]
        port = circuits.port.astype(np.int64)
        yield Usage(tx, circuits.src * np.int64(num_ports) + port)
        yield Usage(rx, circuits.dst * np.int64(num_ports) + port)
        yield Usage(subnet, (circuits.src // nodes_per_group * np.int64(x) + tx_gate) * num_ports + port)

    def faults(circuits: Circuits) -> Iterator[Fault]:
        bad_path = circuits.num_hops() != 2
        yield Fault("path_broken", np.flatnonzero(bad_path), "two gates, of the sender and of the receiver")
        if bad_path.any():
            return
        tx_gate, rx_gate = circuits.hops[::2], circuits.hops[1::2]
        wrong = (tx_gate != circuits.dst // nodes_per_group) | (rx_gate != circuits.src // nodes_per_group)
        yield Fault(
            "path_broken", np.flatnonzero(wrong), "TX gate at the receiver's group, RX gate at the sender's group"
        )
        unheard = (circuits.wavelength_lo != circuits.dst % num_devices) | (circuits.wavelength_n != 1)
        yield Fault("wavelength_unheard", np.flatnonzero(unheard), "the one wavelength of the receiving device")

    def coordinates(node: int) -> str:
        return f"(g={node // nodes_per_group}, j={node // num_devices % num_racks}, l={node % num_devices})"

    return Fabric(
        name="ramp",
        num_nodes=num_nodes,
        num_wavelengths=num_devices,
        ports_per_node=num_ports,
        lasers_per_port=1,
        rate_bits_per_s=line_rate,
        reconfiguration_s=0.0 if slot else switching,
        slot_s=slot,
        slot_payload_bytes=(slot - switching) * line_rate / 8 if slot else 0.0,
        latency_s=propagation + io,
        resources=(tx, rx, subnet),
        usage=usage,
        faults=faults,
        coordinates=coordinates,
        source="RAMP sections 3.1, 4.1, 6.2",
    )
