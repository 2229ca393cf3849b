"""RAMP's network transcoder: transceivers, wavelength and gates of every transfer.

Wavelength and gates follow from the hardware: the receiver's wavelength, the TX gate at the receiver's group, the RX gate at
the sender's. What is chosen is the transceiver group; sums are those of the schedule's variant (field or modulo x):

    steps 1, 2   g_src + g_dst + j_src
    step 3       g_dst + j_src; where J = 2^m < x = 2^k, x / J each: (j_dst XOR 2 j_src) + r J
    step 4       floor(x / (D-1)) each: (e-1) n + r, with e = d_src XOR d_dst or (d_dst - d_src) mod D
                 modular: g_src + g_dst + j_src + r J, r < floor(x / J), since all racks of a group share its subnets

Source: RAMP section 6.2.1, equations 2 to 5.
Reading: equation 2 in step 3 uses receivers twice for even x, and equations 3 to 5 count from the wrong base; the forms above
are the corrected ones. variant=published keeps equation 2 in all steps and formulation 4.1's x transceivers.
"""

from __future__ import annotations

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits.assign import first_fit, width_that_fits
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.schedule._field import galois_field
from opticcl.schedule.ramp import Geometry, geometry, phase_of_step


@register_rule("ramp")
def ramp(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The transcoder for RAMP-x, first fit for any other schedule."""
    if schedule.name == "ramp":
        maps = geometry(fabric, schedule.parameters.get("variant", "auto"))

        def transcode(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
            transceivers = _transceivers(maps, phase_of_step(maps, step), transfers.src, transfers.dst)
            return (_circuits(fabric, transfers, transceivers),)

        return transcode

    def fit(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        return _first_fit(fabric, transfers)

    return fit


def _transceivers(maps: Geometry, phase: int, src: IntArray, dst: IntArray) -> IntArray:
    """Transceiver groups of each transfer, int32 (n, transceivers a peer)."""
    x, racks, device_groups = maps.groups, maps.racks, maps.radices[3]
    add = maps.arithmetic.add
    (g_src, j_src, _, d_src), (g_dst, j_dst, _, d_dst) = maps.split(src), maps.split(dst)
    equation_2 = add(add(g_src, g_dst), j_src)
    if phase == 3 and maps.variant != "published":
        if maps.variant == "field" and x.bit_count() == 1 and 4 <= racks < x and racks.bit_count() == 1:
            base = j_dst ^ galois_field(racks).mul(np.full_like(j_src, 2), j_src)
            return base[:, None] + _every(racks, x // racks)
        base = add(g_dst, j_src)
        if maps.variant == "modular":
            return (base[:, None] + _every(racks, x // racks)) % x
        return base[:, None]
    if phase == 4 and maps.variant == "modular":
        each = x // racks if device_groups <= racks else 1
        return (equation_2[:, None] + _every(racks, each)) % x
    if phase == 4:
        each = x // (device_groups - 1)
        distance = d_src ^ d_dst if device_groups.bit_count() == 1 else (d_dst - d_src) % device_groups
        return (distance[:, None] - 1) * each + _every(1, each)
    return equation_2[:, None]


def _every(stride: int, count: int) -> IntArray:
    return np.arange(count, dtype=np.int32)[None, :] * np.int32(stride)


def _circuits(fabric: Fabric, transfers: Transfers, transceivers: IntArray) -> Circuits:
    """One circuit for each transfer, transceiver group and transceiver of the group."""
    b = fabric.parameters["transceivers_per_group"]
    port = (transceivers[:, :, None] * b + np.arange(b, dtype=np.int32)).reshape(len(transfers), -1)
    row = np.repeat(np.arange(len(transfers), dtype=np.int32), port.shape[1])
    return _lit(fabric, transfers, row, port.ravel())


def _lit(fabric: Fabric, transfers: Transfers, row: IntArray, port: IntArray) -> Circuits:
    """Circuits of the given transfers on the given ports: wavelength and gates follow from the hardware."""
    devices = fabric.parameters["wavelengths"]
    nodes_per_group = fabric.parameters["racks"] * devices
    src, dst = transfers.src[row], transfers.dst[row]
    gates = np.stack([dst // nodes_per_group, src // nodes_per_group], axis=1)
    return Circuits.of(row, src, dst, port, dst % devices, 1, gates)


def _first_fit(fabric: Fabric, transfers: Transfers) -> tuple[Circuits, ...]:
    """Any transfers: the first free ports of sender, receiver and of the wavelength between their groups."""
    devices = fabric.parameters["wavelengths"]
    nodes_per_group = fabric.parameters["racks"] * devices
    n, groups = fabric.num_nodes, fabric.parameters["groups"]
    pair = transfers.src // nodes_per_group * groups + transfers.dst // nodes_per_group
    wavelength = pair * np.int64(devices) + transfers.dst % devices
    occupied = np.stack([transfers.src, n + transfers.dst, 2 * n + wavelength], axis=1).astype(np.int64).ravel()
    offsets = np.arange(len(transfers) + 1, dtype=np.int64) * 3
    kinds, ports = 2 * n + groups * groups * devices, fabric.ports_per_node
    width = width_that_fits(occupied, offsets, kinds, ports)
    first, number = first_fit(occupied, offsets, kinds, ports, width)
    rounds = []
    for r in range(int(number.max(initial=-1)) + 1):
        row = np.repeat(np.flatnonzero(number == r), width)
        port = first[row] + np.tile(np.arange(width), len(row) // width)
        rounds.append(_lit(fabric, transfers, row, port))
    return tuple(rounds)
