"""Directed graphs with whole capacities, of which some vertices compute and the others are switches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray
from opticcl.ir.limits import limit

__all__ = ["CapacityGraph"]

MOST_OVER_UNIT = limit("graph.MOST_OVER_UNIT")
MOST_PARTS_OF_RATE = 255
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class CapacityGraph:
    """Arcs between vertices, any number from one to another.

    Args:
        num_compute: vertices below compute: they have data and need that of others; the others are switches [count].
        num_vertices: [count].
        tail, head: of each arc, int64 (arcs,).
        capacity: of each arc, int64 (arcs,) [units].
        unit_bits_per_s: what a unit of capacity is [bit/s].
    """

    num_compute: int
    num_vertices: int
    tail: IntArray
    head: IntArray
    capacity: IntArray
    unit_bits_per_s: float = 1.0

    @classmethod
    def of_rates(
        cls, num_compute: int, num_vertices: int, tail: IntArray, head: IntArray, rate: npt.NDArray[np.float64]
    ) -> CapacityGraph:
        """The graph of links with these rates.

        Every rate is read as a multiple of a fraction of the lowest rate with a denominator of at most 255, where that is the
        rate to one part in 10^12.

        Args:
            num_compute, num_vertices: as of the class.
            tail, head: of each link, int (links,).
            rate: of each link, float64 (links,) [bit/s].
        Raises: UnsupportedError: rates that have no such unit.
        """
        lowest = float(rate.min(initial=np.inf))
        different, which = np.unique(rate, return_inverse=True)
        parts = [Fraction(value / lowest).limit_denominator(MOST_PARTS_OF_RATE) for value in different.tolist()]
        whole = lcm(*(part.denominator for part in parts))
        units = [int(part * whole) for part in parts]
        for value, part in zip(different.tolist(), parts, strict=True):
            if abs(float(part) * lowest - value) > ROUNDING * value:
                raise UnsupportedError(
                    f"a link of {value:g} bit/s beside one of {lowest:g}: rates must be fractions of each other with "
                    f"denominators up to {MOST_PARTS_OF_RATE}; round them"
                )
        if sum(np.array(units, object)[which]) > MOST_OVER_UNIT:
            raise UnsupportedError(
                f"links of {lowest:g} to {different[-1]:g} bit/s have the common unit {lowest / whole:g} bit/s; at most "
                f"{MOST_OVER_UNIT:,} of it in all links together, round the rates"
            )
        capacity = np.array(units, np.int64)[which]
        return cls(num_compute, num_vertices, tail.astype(np.int64), head.astype(np.int64), capacity, lowest / whole)

    def leaving(self, inside: npt.NDArray[np.bool_]) -> int:
        """Capacity of the arcs that leave a set of vertices, bool (vertices,) [units]."""
        return int(self.capacity[inside[self.tail] & ~inside[self.head]].sum())
