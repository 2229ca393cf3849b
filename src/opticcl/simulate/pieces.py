"""Loads and latencies of very many routes by their legs: a leg is what a route passes of one line of links.

A route goes dimension by dimension, so its leg in a dimension joins two nodes of one line. There are few legs: those of
16.8 million routes on a torus of 64 x 64 are 0.5 million. What the routes carry is summed up by legs, and spread over the links
by a difference at each end of a leg and one cumulative sum. Where there are fewer routes than legs, each route has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.simulate._leg_kernels import longest_rows, sum_of_legs
from opticcl.simulate.latency import PathLatency

__all__ = ["link_loads", "longest_route_s"]

LONGEST = 1 << 8  # routes that are evaluated link by link, of those that take longest
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


class _Legs:
    """All legs on a fabric: from every node to every node of its line, dimension by dimension.

    Args: fabric: whose routes have legs.

    Attributes:
        place: coordinate of each node in each dimension, int32 (nodes, dimensions).
        stride: difference of the numbers of neighbours in each dimension, int64 (dimensions,).
        first: number of the first leg of each dimension, and the legs of a node in it, int64 (dimensions, 2).
        count: legs [count].
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, shape, nodes = fabric, fabric.dimensions, fabric.num_machine_nodes
        node = np.arange(nodes)
        self.stride = np.array([prod(shape[k + 1 :]) for k in range(len(shape))], np.int64)
        place = [node // stride % side for stride, side in zip(self.stride, shape, strict=True)]
        self.place = np.stack(place, axis=1).astype(np.int32)
        starts = np.cumsum([0, *(nodes * side for side in shape)])
        self.first, self.count = np.stack([starts[:-1], np.array(shape)], axis=1), int(starts[-1])

    def parts(self) -> Iterator[tuple[slice, _Part]]:
        """Legs of each dimension by their numbers, and their links."""
        node = np.arange(len(self.place))
        for k, (begin, side) in enumerate(self.first.tolist()):
            src, there = np.repeat(node, side), np.tile(np.arange(side), len(node))
            dst = src + (there - self.place[src, k]) * self.stride[k]
            yield slice(begin, begin + len(src)), _parts(self._fabric, src, dst)[k]


def _num_legs(fabric: Fabric) -> int:
    """Legs of all routes [count]."""
    return fabric.num_machine_nodes * sum(fabric.dimensions)


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


def link_loads(fabric: Fabric, src: IntArray, dst: IntArray, amount: IntArray) -> np.ndarray:
    """What each link carries, float64 (links,), in the unit of `amount`; exact for whole numbers below 2^53 in all.

    Args:
        fabric: whose routes have legs.
        src, dst: nodes, (routes,).
        amount: that each route carries, int (routes,).
    """
    lines = fabric.lines
    change = np.zeros(len(lines) + 1)
    if len(src) < _num_legs(fabric):
        for part in _parts(fabric, src, dst):
            _spread(change, np.asarray(amount, np.float64), part)
    else:
        legs = _Legs(fabric)
        sums = np.zeros(legs.count, np.int64)
        sum_of_legs(src, dst, np.asarray(amount, np.int64), legs.place, legs.stride, legs.first, sums)
        for rows, part in legs.parts():
            _spread(change, sums[rows].astype(np.float64), part)
    found = np.zeros(len(lines))
    found[lines] = np.cumsum(change)[:-1]
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


def longest_route_s(fabric: Fabric, law: PathLatency, src: IntArray, dst: IntArray) -> float:
    """Latency of the longest route [s].

    Args:
        fabric: whose routes have legs.
        law: of the latency of hops.
        src, dst: nodes, (routes,).
    """
    of_link = law.of_hops(fabric.lines)
    if of_link is None or not len(src):
        return law.base_s
    before = np.concatenate([[0.0], np.cumsum(of_link)])
    numbers = np.zeros(LONGEST, np.int64)
    if len(src) < _num_legs(fabric):
        total = sum((_latency_s(before, part) for part in _parts(fabric, src, dst)), np.zeros(len(src)))
        numbers = np.flatnonzero(total >= total.max() * (1 - ROUNDING))[:LONGEST]
    else:
        legs = _Legs(fabric)
        seconds, most = np.zeros(legs.count), 0.0
        for rows, part in legs.parts():
            seconds[rows] = _latency_s(before, part)
            most += seconds[rows].max()
        count = longest_rows(src, dst, seconds, most, legs.place, legs.stride, legs.first, ROUNDING, numbers)
        numbers = numbers[:count]
    src, dst = (np.asarray(column)[numbers] for column in (src, dst))
    return law.longest_s(Circuits.of(np.arange(len(numbers)), src, dst, path=fabric.route(src, dst)))


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
