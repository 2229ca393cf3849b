"""Loads and latencies of very many routes by their legs: a leg is what a route passes of one line of links.

A route goes dimension by dimension, so its leg in a dimension joins two nodes of one line. There are few legs: those of
16.8 million routes on a torus of 64 x 64 are 0.5 million. What the routes carry is summed up by legs, and spread over the links
by a difference at each end of a leg and one cumulative sum. Where there are fewer routes than legs, each route has its own.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.ir.limits import limit
from opticcl.simulate._leg_kernels import longest_rows, sum_of_legs
from opticcl.simulate.latency import PathLatency

__all__ = ["RouteLegs"]

LONGEST = limit("pieces.LONGEST")
ROUNDING = 1e-9  # relative; sums in another order differ by less


class _Part(NamedTuple):
    """The links of each leg of a dimension, by their places in `Fabric.lines`; int64 (legs,) each.

    Args:
        start, end: first place, and the one behind the last; those from the end of the line on are at its beginning.
        first, last: places of the line, the one behind its last.
    """

    start: IntArray
    end: IntArray
    first: IntArray
    last: IntArray


class RouteLegs:
    """Routes by their legs: by those of the machine, or where it has more legs than there are routes, by their own.

    Args:
        fabric: whose routes have legs.
        src, dst: nodes, (routes,).
    """

    def __init__(self, fabric: Fabric, src: IntArray, dst: IntArray) -> None:
        self._fabric, self._src, self._dst = fabric, src, dst
        every = len(src) >= fabric.num_machine_nodes * sum(fabric.dimensions)
        self._legs = _Legs(fabric) if every else None

    @cached_property
    def _parts(self) -> list[_Part]:
        """Links of the legs of each dimension."""
        return _parts(self._fabric, self._src, self._dst) if self._legs is None else self._legs.parts()

    def loads(self, amount: IntArray) -> np.ndarray:
        """What each link carries, float64 (links,), in the unit of `amount`; exact for whole numbers below 2^53 in all.

        Args: amount: that each route carries, int (routes,).
        """
        lines = self._fabric.lines
        change = np.zeros(len(lines) + 1)
        if self._legs is None:
            for part in self._parts:
                _spread(change, np.asarray(amount, np.float64), part)
        else:
            sums = np.zeros(self._legs.count, np.int64)
            sum_of_legs(self._src, self._dst, np.asarray(amount, np.int64), self._legs.of_src, self._legs.of_dst, sums)
            for rows, part in zip(self._legs.rows, self._parts, strict=True):
                _spread(change, sums[rows].astype(np.float64), part)
        found = np.zeros(len(lines))
        found[lines] = np.cumsum(change)[:-1]
        return found

    def longest_s(self, law: PathLatency) -> float:
        """Latency of the longest route [s].

        Args: law: of the latency of hops.
        """
        of_link = law.of_hops(self._fabric.lines)
        if of_link is None or not len(self._src):
            return law.base_s
        before = np.concatenate([[0.0], np.cumsum(of_link)])
        of_legs = [_latency_s(before, part) for part in self._parts]
        if self._legs is None:
            total = sum(of_legs, np.zeros(len(self._src)))
            numbers = np.flatnonzero(total >= total.max() * (1 - ROUNDING))[:LONGEST]
        else:
            numbers, most = np.zeros(LONGEST, np.int64), sum(float(seconds.max()) for seconds in of_legs)
            seconds, legs = np.concatenate(of_legs), self._legs
            count = longest_rows(self._src, self._dst, seconds, most, legs.of_src, legs.of_dst, ROUNDING, numbers)
            numbers = numbers[:count]
        src, dst = (np.asarray(column)[numbers] for column in (self._src, self._dst))
        return law.longest_s(Circuits.of(np.arange(len(numbers)), src, dst, path=self._fabric.route(src, dst)))


class _Legs:
    """All legs on a fabric: from every node to every node of its line, dimension by dimension.

    Legs are numbered by the node where they begin and the coordinate where they end. A route begins its leg in a dimension with
    the coordinates of its destination in those before, so that the number is one addend for its source and one for its
    destination.

    Args: fabric: whose routes have legs.

    Attributes:
        of_src, of_dst: addends of each node in each dimension, int64 (nodes, dimensions).
        rows: numbers of the legs of each dimension.
        count: legs [count].
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, shape, nodes = fabric, fabric.dimensions, fabric.num_machine_nodes
        self._node = node = np.arange(nodes)
        self._strides = [prod(shape[k + 1 :]) for k in range(len(shape))]
        self.of_src, self.of_dst = np.empty((2, nodes, len(shape)), np.int64)
        self.rows: list[slice] = []
        self.count = 0
        before = np.zeros(nodes, np.int64)  # what the coordinates in the dimensions so far add to the number of a node
        for k, (side, stride) in enumerate(zip(shape, self._strides, strict=True)):
            place = node // stride % side
            self.of_src[:, k] = self.count + (node - before) * side
            self.of_dst[:, k] = before * side + place
            before += place * stride
            self.rows.append(slice(self.count, self.count + nodes * side))
            self.count += nodes * side

    def parts(self) -> list[_Part]:
        """Links of the legs of each dimension."""
        found = []
        for k, (side, stride) in enumerate(zip(self._fabric.dimensions, self._strides, strict=True)):
            src, there = np.repeat(self._node, side), np.tile(np.arange(side), len(self._node))
            dst = src + (there - src // stride % side) * stride
            found.append(_parts(self._fabric, src, dst)[k])
        return found


def _parts(fabric: Fabric, src: IntArray, dst: IntArray) -> list[_Part]:
    """Links of the leg of each route in each dimension.

    Args:
        fabric: whose routes have legs.
        src, dst: nodes, (routes,).
    """
    pieces = fabric.pieces(src, dst)
    assert pieces is not None
    found = []
    for k in range(pieces.first.shape[1]):
        first, start = pieces.first[:, k], pieces.first[:, k] + pieces.start[:, k]
        found.append(_Part(start, start + pieces.length[:, k], first, first + pieces.side[:, k]))
    return found


def _spread(change: np.ndarray, carried: np.ndarray, part: _Part) -> None:
    """Add what legs carry to the differences at their ends.

    Args:
        change: of what each place of `Fabric.lines` carries against the place before, float64 (links + 1,), changed.
        carried: by each leg, float64 (legs,).
        part: its links.
    """
    around = part.end > part.last
    ends = ((part.start, 1), (np.minimum(part.end, part.last), -1))
    behind = ((part.first[around], 1), ((part.end - part.last + part.first)[around], -1))
    for place, sign in ends:
        change += sign * np.bincount(place, carried, minlength=len(change))
    for place, sign in behind:
        change += sign * np.bincount(place, carried[around], minlength=len(change))


def _latency_s(before: np.ndarray, part: _Part) -> np.ndarray:
    """Latency of each leg, float64 (legs,) [s].

    Args:
        before: latency of all links before each place of `Fabric.lines`, float64 (links + 1,) [s].
        part: links of the legs.
    """
    around = part.end > part.last
    ahead: np.ndarray = before[np.minimum(part.end, part.last)] - before[part.start]
    ahead[around] += before[(part.end - part.last + part.first)[around]] - before[part.first[around]]
    return ahead
