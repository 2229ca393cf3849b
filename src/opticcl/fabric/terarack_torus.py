r"""TeraRack nodes on a torus or a mesh: every row and every column is a double ring, or a double line, of fibres.

::

      port 3 ^ | port 2            a node as on the ring, with interfaces for its row (ports 0 and 1) and for its
             | v                   column (ports 2 and 3); port 0 leads to the next column, 2 to the next row,
    --------------------->         1 and 3 back; each has w modulators and w filters with photodiodes
     port 0 |  node  | port 0
    <---------------------         light passes the nodes of its row or column that it is not for; it does not turn
     port 1  ^ |     port 1        from a row into a column
             | v

Node (row, column) has the number row * columns + column. Segment p * N + i is the fibre of port p between node i and
the next one of its row (p = 0, 1) or column (p = 2, 3). On a torus the last is followed by the first; a mesh has no
such segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._light_terarack import terarack_light
from opticcl.fabric.oddl import ring_order
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.units import Rate, Seconds, Shape
from opticcl.units import shape as parse_shape

NODE = datasheet("terarack")
SHAPE = parse_shape(datasheet("terarack_torus")["shape"])
PORTS = 4


def at_scale(num_nodes: int) -> dict[str, Any]:
    """The shape of that many nodes that is most like a square; a prime has one row.

    >>> at_scale(12), at_scale(7)
    ({'shape': (3, 4)}, {'shape': (1, 7)})
    """
    rows = next(r for r in range(isqrt(num_nodes), 0, -1) if num_nodes % r == 0)
    return {"shape": (rows, num_nodes // rows)}


@register_fabric("terarack_torus", at_scale, rate="wavelength_rate")
def terarack_torus(
    *,
    shape: Shape = SHAPE,
    wavelengths: int = NODE["wavelengths"],
    wavelength_rate: Rate = NODE["wavelength_rate"],
    reconfiguration: Seconds = NODE["reconfiguration"],
    oeo: Seconds = NODE["oeo"],
    striping: bool = False,
    wrap: bool = True,
) -> Fabric:
    """TeraRack nodes on a torus or a mesh.

    Args:
        shape: rows x columns.
        wavelengths: wavelengths w of a fibre [count].
        wavelength_rate: of one wavelength [bit/s].
        reconfiguration: to retune the micro-rings [s].
        oeo: conversion to light and back of one packet [s].
        striping: whether a transfer may take wavelengths that would be idle, k of them at k times the rate.
        wrap: a torus; if not, a mesh.
    Raises: FabricError: no such shape.
    Source: WRHT section 6.1, which has n x n nodes and says no more of the hardware; the node is that of section 3.2.
    Reading: the four interfaces of that node, which the ring of the paper does not use up, serve a row and a column.
    """
    if len(shape) != 2:
        raise FabricError(f"terarack_torus: shape={'x'.join(map(str, shape))}; rows x columns, try {prod(shape)}x1")
    if wavelengths < 1:
        raise FabricError(f"terarack_torus: wavelengths={wavelengths}; at least 1")
    if wavelength_rate <= 0:
        raise FabricError(f"terarack_torus: wavelength_rate={wavelength_rate:g} bit/s; more than 0, try 40Gb/s")
    for name, seconds in (("reconfiguration", reconfiguration), ("oeo", oeo)):
        if seconds < 0:
            raise FabricError(f"terarack_torus: {name}={seconds:g} s; not negative, try 0s")

    rows, columns = shape
    nodes = rows * columns
    fibre = Resource("fibre", PORTS * nodes)
    modulator = Resource("laser", PORTS * nodes)
    photodiode = Resource("photodiode", PORTS * nodes)

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Modulator of the sender, filter and photodiode of the receiver, every segment between."""
        port = circuits.port.astype(np.int64)
        yield Usage(fibre, circuits.hops.astype(np.int64), circuits.hop_owner())
        yield Usage(modulator, circuits.src * np.int64(PORTS) + port)
        yield Usage(photodiode, circuits.dst * np.int64(PORTS) + port)

    def faults(circuits: Circuits) -> Iterator[Fault]:
        num_hops = circuits.num_hops()
        side = np.where(circuits.port < 2, columns, rows)
        lost = (num_hops < 1) | (num_hops > side)
        yield Fault("path_broken", np.flatnonzero(lost), "1 segment or more, at most once round the row or column")
        if lost.any():
            return
        owner = circuits.hop_owner()
        port, near = np.divmod(circuits.hops, nodes)  # what is no segment has no port
        row, column = near // columns, near % columns
        along_row = port < 2
        far = np.where(along_row, row * columns + (column + 1) % columns, (row + 1) % rows * columns + column)
        begin, end = np.where(port % 2 == 0, (near, far), (far, near))
        torn = port != circuits.port[owner]
        torn[1:] |= (begin[1:] != end[:-1]) & (owner[1:] == owner[:-1])
        if not wrap:
            torn |= np.where(along_row, column == columns - 1, row == rows - 1)
        broken = np.zeros(len(circuits), bool)
        broken[owner[torn]] = True
        broken |= begin[circuits.hop_offsets[:-1]] != circuits.src
        broken |= end[circuits.hop_offsets[1:] - 1] != circuits.dst
        yield Fault("path_broken", np.flatnonzero(broken), "segments from sender to receiver in the port's direction")

    def distance(src: IntArray, dst: IntArray) -> IntArray:
        """Along the row and the column, of which `linked` pairs need one."""
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        apart = [np.abs(src // columns - dst // columns), np.abs(src % columns - dst % columns)]
        if wrap:
            apart = [np.minimum(d, side - d) for d, side in zip(apart, shape, strict=True)]
        return apart[0] + apart[1]

    def linked(src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        src, dst = np.asarray(src), np.asarray(dst)
        return np.asarray((src // columns == dst // columns) | (src % columns == dst % columns))

    return Fabric(
        name="terarack_torus",
        num_nodes=nodes,
        num_wavelengths=wavelengths,
        ports_per_node=PORTS,
        lasers_per_port=wavelengths,
        rate_bits_per_s=wavelength_rate,
        reconfiguration_s=reconfiguration,
        latency_s=oeo,
        resources=(fibre, modulator, photodiode),
        usage=usage,
        faults=faults,
        distance=distance,
        linked=linked,
        ring_order=lambda: ring_order((rows, columns)),
        coordinates=lambda node: str((node // columns, node % columns)),
        source="WRHT section 6.1",
        light_path=terarack_light((columns, rows), wrap),
        parts=(
            Part("comb_transceiver", PORTS * nodes, wavelengths, wavelengths * wavelength_rate),
            Part("fibre", PORTS * nodes if wrap else 2 * (2 * nodes - rows - columns)),
        ),
    )
