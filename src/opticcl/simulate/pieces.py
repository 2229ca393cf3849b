"""Loads and latencies of very many routes by their straight parts: a difference at each end of a part, and one cumulative sum.

A torus of 64 x 64 has 16.8 million routes of 32 links on average, and twice as many parts as routes.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import Fabric, IntArray
from opticcl.simulate.latency import PathLatency

__all__ = ["link_loads", "longest_route_s"]

AT_ONCE = 1 << 18  # routes


def link_loads(fabric: Fabric, src: IntArray, dst: IntArray, amount: IntArray) -> np.ndarray:
    """What each link carries, float64 (links,), in the unit of `amount`; exact for whole numbers below 2^53 in all.

    Args:
        fabric: whose routes have straight parts.
        src, dst: nodes, (routes,).
        amount: that each route carries, (routes,).
    """
    lines = fabric.lines
    change = np.zeros(len(lines) + 1)
    for begin in range(0, len(src), AT_ONCE):
        rows = slice(begin, begin + AT_ONCE)
        parts = fabric.pieces(src[rows], dst[rows])
        assert parts is not None
        carried = np.broadcast_to(amount[rows, None], parts.start.shape).astype(np.float64)
        start, end = parts.first + parts.start, parts.first + parts.start + parts.length
        around = end > parts.first + parts.side
        stop = np.where(around, parts.first + parts.side, end)
        for place, sign in ((start, 1), (stop, -1)):
            change += sign * np.bincount(place.ravel(), carried.ravel(), minlength=len(change))
        for place, sign in ((parts.first[around], 1), ((end - parts.side)[around], -1)):
            change += sign * np.bincount(place, carried[around], minlength=len(change))
    found = np.zeros(len(lines))
    found[lines] = np.cumsum(change)[:-1]
    return found


def longest_route_s(fabric: Fabric, law: PathLatency, src: IntArray, dst: IntArray) -> float:
    """Latency of the longest route [s].

    Args:
        fabric: whose routes have straight parts.
        law: of the latency of hops.
        src, dst: nodes, (routes,).
    """
    of_link = law.of_hops(fabric.lines)
    if of_link is None:
        return law.base_s
    before = np.concatenate([[0.0], np.cumsum(of_link)])
    longest = 0.0
    for begin in range(0, len(src), AT_ONCE):
        rows = slice(begin, begin + AT_ONCE)
        parts = fabric.pieces(src[rows], dst[rows])
        assert parts is not None
        start, end = parts.first + parts.start, parts.first + parts.start + parts.length
        last = parts.first + parts.side
        seconds = before[np.minimum(end, last)] - before[start]
        seconds += np.where(end > last, before[np.maximum(end - parts.side, 0)] - before[parts.first], 0.0)
        longest = max(longest, float(seconds.sum(axis=1).max(initial=0)))
    return law.base_s + longest
