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
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.fabrics import near_square, register_fabric
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._ring_light import ring_light
from opticcl.fabrics._ring_settings import lanes_at_ends, ring_settings
from opticcl.fabrics._terarack_netlist import Segments, terarack_netlist, terarack_states
from opticcl.fabrics.oddl import ring_order
from opticcl.fabrics.terarack import check_node, in_ring_order, lost_on_the_way, ring_cuts, terarack_limits
from opticcl.ir import Circuits, ControlPlane, Fabric, FabricNumbers, Fault, IntArray, Resource, Usage
from opticcl.ir.capacity import Axis, Cut, thresholds
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import LightPath, Limit, Optics
from opticcl.ir.netlist import Netlist
from opticcl.ir.sub_grid import sub_grid
from opticcl.units import Rate, Seconds, Shape
from opticcl.units import shape as parse_shape

__all__ = ["TerarackTorus"]

NODE = datasheet("terarack")
SHAPE = parse_shape(datasheet("terarack_torus")["shape"])
PORTS = 4


@register_fabric("terarack_torus")
@dataclass(frozen=True, kw_only=True, repr=False)
class TerarackTorus(Fabric):
    """TeraRack nodes on a torus or a mesh.

    Args:
        shape: rows x columns.
        wavelengths: wavelengths w of a fibre [count].
        wavelength_rate: of one wavelength [bit/s].
        reconfiguration: to retune the micro-rings [s].
        oeo: conversion to light and back of one packet [s].
        striping: whether a transfer may use wavelengths that would be idle, k of them at k times the rate.
        wrap: a torus; if not, a mesh.
    Raises: FabricError: no such shape.
    Source: WRHT section 6.1, which has n x n nodes and says no more of the hardware; the node is that of section 3.2.
    Reading: the four interfaces of that node, which the ring of the paper does not use up, serve a row and a column.
    """

    shape: Shape = SHAPE
    wavelengths: int = NODE["wavelengths"]
    wavelength_rate: Rate = NODE["wavelength_rate"]
    reconfiguration: Seconds = NODE["reconfiguration"]
    oeo: Seconds = NODE["oeo"]
    striping: bool = False
    wrap: bool = True

    rate_parameter = "wavelength_rate"
    alternatives = MappingProxyType({"striping": True})
    source = "WRHT section 6.1"

    def __post_init__(self) -> None:
        if len(self.shape) != 2:
            written = "x".join(map(str, self.shape))
            raise FabricError(f"terarack_torus: shape={written}; rows x columns, try {prod(self.shape)}x1")
        if self.wavelengths < 1:
            raise FabricError(f"terarack_torus: wavelengths={self.wavelengths}; at least 1")
        check_node("terarack_torus", self.wavelength_rate, reconfiguration=self.reconfiguration, oeo=self.oeo)

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """The shape of that many nodes that is nearest to a square; a prime has one row.

        >>> TerarackTorus.parameters_at_scale(12), TerarackTorus.parameters_at_scale(7)
        ({'shape': (3, 4)}, {'shape': (1, 7)})
        """
        return {"shape": near_square(num_nodes)}

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Nine nodes with two wavelengths, each a piece of a block."""
        return cls(shape=(3, 3), wavelengths=2), "torus_all_ports:pieces=2"

    @cached_property
    def numbers(self) -> FabricNumbers:
        """Two directions of the row and of the column, with all wavelengths of the comb each."""
        return FabricNumbers(
            num_nodes=prod(self.shape),
            num_wavelengths=self.wavelengths,
            ports_per_node=PORTS,
            lasers_per_port=self.wavelengths,
            rate_bits_per_s=self.wavelength_rate,
            reconfiguration_s=self.reconfiguration,
            latency_s=self.oeo,
            dimensions=self.shape,
        )

    def sub_machine(self, nodes: IntArray) -> TerarackTorus | None:
        """A torus of the rows and columns that cross in the nodes, in the order of their rings.

        Args: nodes: as of `Fabric.sub_machine`.
        """
        values = sub_grid(self.shape, nodes)
        if values is None or not all(map(in_ring_order, values)):
            return None
        rows, columns = map(len, values)
        return replace(self, shape=(rows, columns))

    def shared(self, num_members: int) -> TerarackTorus:
        """Rows and columns with an equal share of the wavelengths, at least one, since groups may have any of them in common.

        Args: num_members: of nodes [count].
        """
        return replace(self, wavelengths=max(1, self.wavelengths // num_members))

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Fibre segments, modulators and filters with photodiodes."""
        count = PORTS * self.num_nodes
        return Resource("fibre", count), Resource("laser", count), Resource("photodiode", count)

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Modulator of the sender, filter and photodiode of the receiver, every segment between."""
        fibre, modulator, photodiode = self.resources
        port = circuits.port.astype(np.int64)
        yield Usage(fibre, circuits.hops.astype(np.int64), circuits.hop_owner())
        yield Usage(modulator, circuits.src * np.int64(PORTS) + port)
        yield Usage(photodiode, circuits.dst * np.int64(PORTS) + port)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Modulator and drop ring of every port and wavelength."""
        count = self.num_nodes * PORTS * self.wavelengths
        return Device("modulator", count, self.reconfiguration), Device("ring", count, self.reconfiguration)

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """The sender's modulator, the rings of the nodes between, the receiver's ring."""
        yield from ring_settings(circuits, self._segments(circuits.hops)[2], PORTS, self.wavelengths)

    def _segments(self, hops: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Port of each segment, and the nodes that it leads from and to, int64 (n,) each."""
        rows, columns = self.shape
        port, near = np.divmod(np.asarray(hops, np.int64), self.num_nodes)
        row, column = np.divmod(near, columns)
        far = np.where(port < 2, row * columns + (column + 1) % columns, (row + 1) % rows * columns + column)
        begin, end = np.where(port % 2 == 0, (near, far), (far, near))
        return port, begin, end

    def _onward(self) -> IntArray:
        """Node and port that the fibre of each node and port leads to, -1 without one; see `Segments`."""
        rows, columns = self.shape
        node, port = np.divmod(np.arange(PORTS * self.num_nodes), PORTS)
        row, column = np.divmod(node, columns)
        step = 1 - 2 * (port % 2)
        row, column = row + np.where(port < 2, 0, step), column + np.where(port < 2, step, 0)
        onward: IntArray = (row % rows * columns + column % columns) * PORTS + port
        if not self.wrap:
            onward[(row < 0) | (row == rows) | (column < 0) | (column == columns)] = -1
        return onward

    def _fibre_name(self, fibre: int) -> str:
        """A fibre by its ends."""
        onward = self._onward()
        side = int(np.flatnonzero(onward >= 0)[fibre])
        return self._between(side, int(onward[side]))

    def _between(self, side: int, reached: int) -> str:
        begin, end = (self.node_name(one // PORTS) for one in (side, reached))
        return f"fibre from {begin} to {end} (port {side % PORTS})"

    def netlist(self) -> Netlist:
        """Banks of rings, fibres and photodiodes of every node and direction."""
        (rows, columns), nodes = self.shape, self.num_nodes
        fibres = PORTS * nodes if self.wrap else 2 * (2 * nodes - rows - columns)
        segments = Segments(fibres, self._onward, self._fibre_name, PORTS)
        sides = PORTS * nodes, PORTS
        return terarack_netlist("terarack_torus", *sides, self.wavelengths, self.wavelength_rate, segments)

    def states(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Rings that add at the sender, those that drop at the receiver and are off at the nodes between."""
        yield from terarack_states(self.settings(circuits), self.wavelengths)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Comb of the sender's port, photodiode of the receiver's port and the wavelength."""
        return lanes_at_ends(circuits, PORTS, self.wavelengths)

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Segments that do not lead from the sender to the receiver."""
        (rows, columns), num_hops = self.shape, circuits.num_hops()
        side = np.where(circuits.port < 2, columns, rows)
        lost = (num_hops < 1) | (num_hops > side)
        yield Fault("path_broken", np.flatnonzero(lost), "1 segment or more, at most once round the row or column")
        if lost.any():
            return
        port, begin, end = self._segments(circuits.hops)  # what is no segment has no port
        apart = port != circuits.port[circuits.hop_owner()]
        if not self.wrap:
            apart |= np.where(port % 2 == 0, begin >= end, begin <= end)
        yield lost_on_the_way(circuits, begin, end, apart)

    def distance(self, src: IntArray, dst: IntArray) -> IntArray:
        """Along the row and the column, of which `linked` pairs need one."""
        columns = self.shape[1]
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        apart = [np.abs(src // columns - dst // columns), np.abs(src % columns - dst % columns)]
        if self.wrap:
            apart = [np.minimum(d, side - d) for d, side in zip(apart, self.shape, strict=True)]
        return apart[0] + apart[1]

    @property
    def links_all(self) -> bool:
        """Light does not turn from a row into a column."""
        return False

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether two nodes are in one row or one column."""
        columns = self.shape[1]
        src, dst = np.asarray(src), np.asarray(dst)
        return np.asarray((src // columns == dst // columns) | (src % columns == dst % columns))

    def axes(self, nodes: IntArray) -> Iterator[Axis]:
        """Columns, then rows, each with two ports a node."""
        rate = 2 * self.lasers_per_port * self.rate_bits_per_s
        for name, values in zip(("columns", "rows"), np.divmod(nodes.astype(np.int64), self.shape[1]), strict=True):
            yield Axis(f"the {name}", values, rate, 2 * self.lasers_per_port)

    def cuts(self, nodes: IntArray) -> Iterator[Cut]:
        """Through all columns, then through all rows: two fibres of each ring, one of each line."""
        rate = self.wavelengths * self.rate_bits_per_s
        values = np.divmod(nodes.astype(np.int64), self.shape[1])
        for number, name, place in zip(self.shape[::-1], ("columns", "rows"), values, strict=True):
            if self.wrap:
                yield from ring_cuts(place, out=number * rate, back=number * rate, where=f"the {name}")
                continue
            for first in thresholds(place):
                yield Cut(f"bisection of the {name}", place < first, number * rate, number * rate)

    def ring_order(self) -> IntArray:
        """Row by row; see `oddl.ring_order`."""
        return ring_order(self.shape)

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Fibre of each segment, port by port: along the row both ways, along the column both ways."""
        (rows, columns), node = self.shape, np.arange(self.num_nodes)
        row, column = np.divmod(node, columns)
        along_row, along_column = row * columns + (column + 1) % columns, (row + 1) % rows * columns + column
        lengths = [floor.segments_m(self.num_nodes, node, far) for far in (along_row, along_column)]
        return Passage(fibre_m=np.repeat(lengths, 2, axis=0).ravel())

    def control_plane(self) -> ControlPlane:
        """None."""
        return control_plane("terarack_torus", "nothing", "nothing: retuning is a reconfiguration")

    @cached_property
    def light_path(self) -> LightPath:
        """Modulator and the interfaces of the nodes passed."""
        rows, columns = self.shape
        pieces = {kind: number for group in self.netlist().groups for kind, number in group.loss.items()}
        return ring_light(optics_of("terarack"), (columns, rows), self.distance, self.wrap, pieces=pieces)

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Interfaces that light may pass, by power and by crosstalk."""
        return terarack_limits(self.light_path, values)

    def coordinates(self, node: int) -> str:
        """Row and column."""
        return str((node // self.shape[1], node % self.shape[1]))

    def place_name(self, resource: Resource, index: int) -> str:
        """A fibre segment by its ends."""
        port, begin, end = (int(one) for one in self._segments(np.array(index)))
        return self._between(begin * PORTS + port, end * PORTS)
