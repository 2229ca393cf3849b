r"""TeraRack ring: micro-ring modulators and filters on a double ring of fibres.

::

    node i                                                           node i + 1
    port 0 (clockwise)          --- fibre segment i, w wavelengths -->
      comb laser ~> w modulators ~~> ))                             (( ~~> w filters ~> w photodiodes
                                                                        what is not filtered out passes on
    port 1 (counter-clockwise)  <-- fibre segment N + i -------------

Clockwise segment i joins node i to node i + 1, counter-clockwise segment N + i joins node i + 1 to node i (modulo N). A
circuit is the segments from its sender on in the direction of its port, up to its receiver; its light passes the nodes
between untouched. Each port has a modulator and a filter for every wavelength. With more rings everything is there
again: port 2 r + direction belongs to ring r.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._light_terarack import terarack_light
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.units import Rate, Seconds

SHEET = datasheet("terarack")


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes: a ring has any number."""
    return {"nodes": num_nodes}


@register_fabric("terarack", at_scale, rate="wavelength_rate", own="wrht")
def terarack(
    *,
    nodes: int = SHEET["nodes"],
    wavelengths: int = SHEET["wavelengths"],
    wavelength_rate: Rate = SHEET["wavelength_rate"],
    rings: int = SHEET["rings"],
    reconfiguration: Seconds = SHEET["reconfiguration"],
    oeo: Seconds = SHEET["oeo"],
    striping: bool = False,
) -> Fabric:
    """TeraRack's double ring of fibres.

    Args:
        nodes: nodes N on the ring, >= 1 [count].
        wavelengths: wavelengths w of a fibre [count].
        wavelength_rate: of one wavelength [bit/s].
        rings: double rings; the paper uses 1, the node of section 3.2 has 2 [count].
        reconfiguration: to retune the micro-rings [s].
        oeo: conversion to light and back of one packet [s].
        striping: whether a transfer may take wavelengths that would be idle, k of them at k times the rate. The paper
            gives each transfer one wavelength, so by default it may not.
    Raises: FabricError: no such shape.
    Source: WRHT sections 3.2, 4.3, table 2.
    Reading: the conversion delay is "per packet"; packets follow each other through the converter, so a transfer waits
        for one. Added up over all packets of the paper's largest model it would be 8.5 us in 246 ms.
    """
    for name, number in (("nodes", nodes), ("wavelengths", wavelengths), ("rings", rings)):
        if number < 1:
            raise FabricError(f"terarack: {name}={number}; at least 1")
    if wavelength_rate <= 0:
        raise FabricError(f"terarack: wavelength_rate={wavelength_rate:g} bit/s; more than 0, try 40Gb/s")
    for name, seconds in (("reconfiguration", reconfiguration), ("oeo", oeo)):
        if seconds < 0:
            raise FabricError(f"terarack: {name}={seconds:g} s; not negative, try 0s")

    num_ports = 2 * rings
    fibre = Resource("fibre", nodes * num_ports)
    modulator = Resource("laser", nodes * num_ports)
    photodiode = Resource("photodiode", nodes * num_ports)

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Modulator of the sender, filter and photodiode of the receiver, every segment of the port's fibre between."""
        owner = circuits.hop_owner()
        port = circuits.port.astype(np.int64)
        yield Usage(fibre, port[owner] // 2 * (2 * nodes) + circuits.hops, owner)
        yield Usage(modulator, circuits.src * np.int64(num_ports) + port)
        yield Usage(photodiode, circuits.dst * np.int64(num_ports) + port)

    def faults(circuits: Circuits) -> Iterator[Fault]:
        num_hops = circuits.num_hops()
        lost = (num_hops < 1) | (num_hops > nodes)
        yield Fault("path_broken", np.flatnonzero(lost), f"1 to {nodes} segments, at most once round the ring")
        if lost.any():
            return
        owner, hops = circuits.hop_owner(), circuits.hops
        way, segment = np.divmod(hops, nodes)  # 0 clockwise, 1 counter-clockwise; anything else is no segment
        begin, end = (segment + way) % nodes, (segment + 1 - way) % nodes
        torn = way != circuits.port[owner] % 2
        torn[1:] |= (begin[1:] != end[:-1]) & (owner[1:] == owner[:-1])
        broken = np.zeros(len(circuits), bool)
        broken[owner[torn]] = True
        broken |= begin[circuits.hop_offsets[:-1]] != circuits.src
        broken |= end[circuits.hop_offsets[1:] - 1] != circuits.dst
        yield Fault("path_broken", np.flatnonzero(broken), "segments from sender to receiver in the port's direction")

    def distance(src: IntArray, dst: IntArray) -> IntArray:
        ahead = (np.asarray(dst, np.int64) - src) % nodes
        return np.minimum(ahead, nodes - ahead)

    return Fabric(
        name="terarack",
        num_nodes=nodes,
        num_wavelengths=wavelengths,
        ports_per_node=num_ports,
        lasers_per_port=wavelengths,
        rate_bits_per_s=wavelength_rate,
        reconfiguration_s=reconfiguration,
        latency_s=oeo,
        resources=(fibre, modulator, photodiode),
        usage=usage,
        faults=faults,
        distance=distance,
        source="WRHT sections 3.2, 4.3, table 2",
        light_path=terarack_light((nodes,)),
        parts=(
            Part("comb_transceiver", nodes * num_ports, wavelengths, wavelengths * wavelength_rate),
            Part("fibre", nodes * num_ports),
        ),
    )
