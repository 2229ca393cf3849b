"""Where the parts of a machine stand, and what a signal passes on its way: metres of fibre, receivers, switches.

::

    row 0    [rack 0] [rack 1] [rack 2]      racks side by side, `rack_width_m` apart; rows `row_pitch_m` apart
    row 1    [rack 5] [rack 4] [rack 3]      in snake order: consecutive racks are neighbours

A floor plan has about as many metres along a row as across the rows. Shared switches and couplers stand at its centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir._common import IntArray

__all__ = ["FloorPlan", "Passage"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """What a signal passes: numbers for all circuits, or one entry a hop, float64 (hops,).

    Args:
        fibre_m: fibre or cable [m].
        waveguide_m: waveguide on a chip or a wafer [m].
        receivers: receivers with error correction [count].
        switches: switches, or nodes, that forward it; below 0 apart from hops where these count one that forwards nothing
            [count].
        server_switches: switches within a server [count].
    """

    fibre_m: FloatArray | float = 0.0
    waveguide_m: FloatArray | float = 0.0
    receivers: FloatArray | float = 0.0
    switches: FloatArray | float = 0.0
    server_switches: FloatArray | float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorPlan:
    """Distances of a machine room.

    Args:
        nodes_per_rack: nodes of a rack [count].
        rack_width_m: from a rack to its neighbour in the row [m].
        row_pitch_m: from a row to the next [m].
        in_rack_m: length of a link within a rack [m].
        overhead_m: of a link between racks, up to the trays and down again, besides the distance of the racks [m].
        segment_m: segment of a ring between neighbouring nodes of a rack [m].
        tile_m: waveguide through a tile of a wafer [m].
        between_wafers_m: fibre between two wafers of a rack [m].
        wafers_per_rack: wafers of a rack [count].
    Raises: ParameterError: no nodes in a rack, or a negative length.
    """

    nodes_per_rack: int
    rack_width_m: float
    row_pitch_m: float
    in_rack_m: float
    overhead_m: float
    segment_m: float
    tile_m: float
    between_wafers_m: float
    wafers_per_rack: int

    def __post_init__(self) -> None:
        if min(self.nodes_per_rack, self.wafers_per_rack) < 1:
            raise ParameterError(
                f"floor plan: nodes_per_rack={self.nodes_per_rack}, wafers_per_rack={self.wafers_per_rack}; at least 1"
            )
        lengths = (self.in_rack_m, self.overhead_m, self.segment_m, self.tile_m, self.between_wafers_m)
        if min(*lengths, self.rack_width_m, self.row_pitch_m) < 0 or not self.rack_width_m:
            raise ParameterError("floor plan: lengths are not negative, and racks have a width; try rack_width_m=0.6")

    def racks(self, num_nodes: int) -> int:
        """Racks that hold the nodes [count]."""
        return max(1, -(-num_nodes // self.nodes_per_rack))

    def rack_of(self, nodes: IntArray) -> IntArray:
        """Rack of each node, in the order of the node numbers."""
        return np.asarray(nodes, np.int64) // self.nodes_per_rack

    def places_m(self, num_racks: int) -> FloatArray:
        """Place of each rack: along its row, across the rows; float64 (num_racks, 2) [m]."""
        per_row = ceil(sqrt(num_racks * self.row_pitch_m / self.rack_width_m)) if self.row_pitch_m else num_racks
        row, along = np.divmod(np.arange(num_racks), max(1, per_row))
        along = np.where(row % 2, per_row - 1 - along, along)
        return np.stack([along * self.rack_width_m, row * self.row_pitch_m], axis=1)

    def between_m(self, num_racks: int, one: IntArray, other: IntArray) -> FloatArray:
        """Length of links between racks, float64 (n,) [m].

        Args:
            num_racks: of the machine [count].
            one, other: racks at both ends, (n,).
        """
        places = self.places_m(num_racks)
        apart = np.abs(places[one] - places[other]).sum(axis=1)
        return np.where(one == other, self.in_rack_m, self.overhead_m + apart)

    def to_centre_m(self, num_racks: int) -> FloatArray:
        """Length of a link from each rack to the centre, float64 (num_racks,) [m]; a single rack is the centre."""
        if num_racks == 1:
            return np.full(1, self.in_rack_m)
        places = self.places_m(num_racks)
        centre = (places.min(axis=0) + places.max(axis=0)) / 2
        apart: FloatArray = self.overhead_m + np.abs(places - centre).sum(axis=1)
        return apart

    def through_centre_m(self, num_nodes: int) -> float:
        """From a node to the centre and on to another one, all of them as long as the longest [m].

        A machine of 64 nodes has one rack, one of 1,024 has 16 in two rows.
        """
        return 2 * float(self.to_centre_m(self.racks(num_nodes)).max())

    def segments_m(self, num_nodes: int, begin: IntArray, end: IntArray) -> FloatArray:
        """Length of fibre segments between neighbours on a ring or a line, float64 (n,) [m].

        Args:
            num_nodes: of the machine [count].
            begin, end: nodes at both ends, (n,).
        """
        one, other = self.rack_of(begin), self.rack_of(end)
        return np.where(one == other, self.segment_m, self.between_m(self.racks(num_nodes), one, other))

    def lines_m(self, num_nodes: int, stride: int, side: int) -> float:
        """Length through the switch of a line of nodes: within a rack where all lines are, else through the centre [m].

        Args:
            num_nodes: of the machine [count].
            stride: from a node of a line to the next.
            side: nodes of a line [count].
        """
        racks = self.rack_of(np.arange(num_nodes)).reshape(-1, side, stride)
        return 2 * self.in_rack_m if (racks == racks[:, :1]).all() else self.through_centre_m(num_nodes)
