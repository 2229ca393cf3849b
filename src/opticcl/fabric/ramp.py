r"""RAMP: tunable transmitters, star couplers, 20 ns slots.

::

    node (g, j, l)                 subnet (g, g', t): one star coupler               node (g', j', l')
    laser t  ~~wavelength l'~~> [TX gate: 1 of x groups] ~~> )=====( ~~> [RX gate: 1 of x groups] ~~> filter l' -> photodiode t
      x transceiver groups             picks g'          J L in, J L out        picks g

A node is (communication group g, rack j, device l) with number (g J + j) L + l. Transceiver group t of every node of group
g reaches, through a gate of x branches, the subnets (g, 0, t), ..., (g, x-1, t). Three kinds of subnet::

    broadcast         one star coupler, J L x J L: all nodes of the destination group hear all of it. A receiver is fixed to
                      its device's wavelength, which one sender of the group may use at a time
    route_broadcast   a wavelength router (AWGR, L x L) for each source rack: light from device l comes out at device l'
                      on wavelength l' - l; then, for each l', a star coupler over the racks
    route_switch      the same routers; then, for each l', a J x J crossbar: in a round a source rack meets one destination
                      rack and conversely

Light may be split: a sender may open several gates, and couplers hand a signal to all racks. A receiver's gate listens to one
group at a time. The b transceivers of a group have their own fibres and subnets, but one laser and one instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, Literal

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import nearest_sizes, register_fabric
from opticcl.fabric._control import every_round
from opticcl.fabric._light_ramp import ramp_light
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.units import Rate, Seconds

SHEET = datasheet("ramp")

Subnet = Literal["broadcast", "route_broadcast", "route_switch"]


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


def wavelength_between(subnet: str, num_devices: int, src: IntArray, dst: IntArray) -> IntArray:
    """The one wavelength on which light gets from src to dst.

    Source: RAMP sections 3.1, 6.2.1.
    Reading: the paper says that routers force the wavelength by the pair; we take the cyclic router's l_dst - l_src mod L.
    """
    if subnet == "broadcast":
        return dst % num_devices
    return (dst % num_devices - src % num_devices) % num_devices


@register_fabric("ramp", at_scale, rate="line_rate", own="ramp")
def ramp(
    *,
    groups: int = SHEET["groups"],
    racks: int = SHEET["racks"],
    wavelengths: int = SHEET["wavelengths"],
    transceivers_per_group: int = SHEET["transceivers_per_group"],
    subnet: Subnet = SHEET["subnet"],
    line_rate: Rate = SHEET["line_rate"],
    slot: Seconds = SHEET["slot"],
    switching: Seconds = SHEET["switching"],
    propagation: Seconds = SHEET["propagation"],
    io: Seconds = SHEET["io"],
    synchronisation: Seconds = SHEET["synchronisation"],
    control_hidden: float = SHEET["control_hidden"],
) -> Fabric:
    """RAMP with one of its three kinds of subnet.

    Args:
        groups: communication groups x [count].
        racks: racks a group J, at most x [count].
        wavelengths: devices a rack L, a multiple of x [count].
        transceivers_per_group: transceivers b of a node in each of its x transceiver groups [count].
        subnet: broadcast, route_broadcast or route_switch.
        line_rate: of one transceiver [bit/s].
        slot: time slot [s]; 0 for none, then circuits change in `switching`.
        switching: part of a slot that is lost to switching [s].
        propagation: between any two nodes [s].
        io: memory to transceiver and back [s].
        synchronisation: that control adds before a round; the paper needs none beyond its slots [s].
        control_hidden: share of it that hides behind computing, 0 to 1.
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
    # A laser has one colour at a time, but its light may go through several gates.
    tx = Resource("tx_port", num_nodes * num_ports, per_wavelength=False, splits=True)
    rx = Resource("rx_port", num_nodes * num_ports, per_wavelength=False)
    star = Resource("subnet", x * x * num_ports, splits=True)
    stars = Resource("subnet", x * x * num_ports * num_devices, splits=True)
    # A crossbar's output leads to one receiver, so one circuit an input is all that the matching demands besides rx_port.
    crossbars = Resource("switch_port", x * num_racks * x * num_ports * num_devices, per_wavelength=False)
    middle = {"broadcast": star, "route_broadcast": stars, "route_switch": crossbars}[subnet]

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Laser of the sender, photodiode of the receiver, and what lies between the two gates."""
        src, dst, port = (np.asarray(c, np.int64) for c in (circuits.src, circuits.dst, circuits.port))
        yield Usage(tx, src * num_ports + port)
        yield Usage(rx, dst * num_ports + port)
        tx_gate = circuits.hops[::2]
        if subnet == "broadcast":
            yield Usage(star, (src // nodes_per_group * x + tx_gate) * num_ports + port)
            return
        origin = src // num_devices if subnet == "route_switch" else src // nodes_per_group  # rack, or group
        yield Usage(middle, ((origin * x + tx_gate) * num_ports + port) * num_devices + dst % num_devices)

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
        if wrong.any():
            return
        due = wavelength_between(subnet, num_devices, circuits.src, circuits.dst)
        unheard = (circuits.wavelength_lo != due) | (circuits.wavelength_n != 1)
        yield Fault("wavelength_unheard", np.flatnonzero(unheard), "the one wavelength from the sender to the receiver")
        if b > 1:
            torn = _torn_groups(circuits, x, b)
            yield Fault("control_shared", torn, f"one wavelength and the same gates on all {b} transceivers of a group")

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
        control_s=every_round("ramp", synchronisation, control_hidden),
        resources=(tx, rx, middle),
        usage=usage,
        faults=faults,
        coordinates=coordinates,
        source="RAMP sections 3.1, 4.1, 6.2",
        light_path=ramp_light(x, num_racks, num_devices, subnet),
        parts=_parts(x, num_racks, num_devices, b, subnet, line_rate),
    )


def _parts(x: int, num_racks: int, num_devices: int, b: int, subnet: str, line_rate: float) -> tuple[Part, ...]:
    """What the machine is built of. Source: section 3.1, which counts b x^3 subnets and 2 b J x^3 fibres."""
    subnets, num_nodes = b * x**3, x * num_racks * num_devices
    transceivers = Part("tunable_transceiver", num_nodes * x * b, rate_bits_per_s=line_rate)
    fibres = Part("fibre", 2 * num_racks * subnets)
    if subnet == "broadcast":
        return transceivers, Part("star_coupler", subnets, ports=num_racks * num_devices), fibres
    behind = "star_coupler" if subnet == "route_broadcast" else "soa_crossbar"
    gratings = Part("awgr", subnets * num_racks, ports=num_devices)
    return transceivers, gratings, Part(behind, subnets * num_devices, ports=num_racks), fibres


def _torn_groups(circuits: Circuits, groups: int, b: int) -> IntArray:
    """Circuits whose transceiver group would need two instructions at once, int64 (k,).

    A group of transmitters has one wavelength, and what one of its transceivers in use has open all have open; a group of
    receivers has one wavelength and listens to one group.
    Source: RAMP section 3.1: the b transceivers share light source and control instruction.
    """
    group, plane = np.divmod(circuits.port.astype(np.int64), b)
    tx_gate, rx_gate = circuits.hops[::2], circuits.hops[1::2]
    sender, receiver = circuits.src * np.int64(groups) + group, circuits.dst * np.int64(groups) + group
    uneven = _varies(sender, circuits.wavelength_lo) | _varies(receiver, circuits.wavelength_lo)
    uneven |= _varies(receiver, rx_gate)
    opened = sender * groups + tx_gate
    return np.flatnonzero(uneven | (_distinct(sender, plane, b) != _distinct(opened, plane, b)))


def _varies(key: IntArray, value: IntArray) -> IntArray:
    """Whether rows with the same key have different values, bool (n,)."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    differs = np.zeros(len(first), bool)
    differs[which[value != value[first][which]]] = True
    return differs[which]


def _distinct(key: IntArray, value: IntArray, limit: int) -> IntArray:
    """Different values, each below `limit`, among the rows of each row's key, int64 (n,)."""
    keys, which = np.unique(key, return_inverse=True)
    pairs = np.unique(which * np.int64(limit) + value)
    return np.bincount(pairs // limit, minlength=len(keys))[which]
