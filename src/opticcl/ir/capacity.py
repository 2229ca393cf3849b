"""What lower bounds rest on: the directions in which circuits lead, and what can cross a cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray

__all__ = ["Axis", "Cut", "thresholds"]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A direction in which circuits lead: each changes one coordinate alone, by transmitters of that direction.

    Args:
        name: in words, such as "dimension 1".
        coordinate: of each of the nodes, int64 (nodes,).
        rate_bits_per_s: of a node towards others in this direction [bit/s].
        partners: that a node can have in it at once [count].
        routes: wavelengths of a node, each of which leads to one partner for the whole job [count]; 0: circuits change.
    """

    name: str
    coordinate: IntArray
    rate_bits_per_s: float
    partners: int
    routes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Two sides of a machine and what can pass from one to the other.

    Args:
        where: in words, such as "bisection of the ring".
        inside: which of the nodes are on the first side, bool (nodes,).
        out_bits_per_s: from the first side to the second [bit/s].
        in_bits_per_s: from the second side to the first [bit/s].
        parts: sets that all nodes divide into, from each of which and to each of which no more can pass [count].
    """

    where: str
    inside: npt.NDArray[np.bool_]
    out_bits_per_s: float
    in_bits_per_s: float
    parts: int = 2


def thresholds(coordinate: IntArray) -> list[int]:
    """Values that divide coordinates in two, each with some below and some not: at the ends, quarters and the middle.

    >>> thresholds(np.arange(8)), thresholds(np.array([3, 3, 9])), thresholds(np.array([5, 5]))
    ([1, 2, 4, 6, 7], [9], [])
    """
    values = np.unique(coordinate)
    below = {1, *(len(values) * quarter // 4 for quarter in (1, 2, 3)), len(values) - 1}
    chosen: list[int] = values[sorted(k for k in below if 0 < k < len(values))].tolist()
    return chosen
