"""Kernels over the legs of very many routes; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["longest_rows", "sum_of_legs"]


@numba.njit(cache=True, nogil=True)
def sum_of_legs(src, dst, amount, place, stride, first, found):  # type: ignore[no-untyped-def]
    """Add the amount of each route to those of its legs.

    Args:
        src, dst: nodes, (routes,).
        amount: of each route, int64 (routes,).
        place: coordinate of each node in each dimension, int32 (nodes, dimensions).
        stride: difference of the numbers of neighbours in each dimension.
        first: row of node 0 in each dimension, and the nodes that one row is for: sides.
        found: amount of each leg, int64, changed.
    """
    for i in range(len(src)):
        at = np.int64(src[i])
        for k in range(len(stride)):
            there = np.int64(place[dst[i], k])
            found[first[k, 0] + at * first[k, 1] + there] += amount[i]
            if k + 1 < len(stride):
                at += (there - place[at, k]) * stride[k]


@numba.njit(cache=True, nogil=True)
def longest_rows(src, dst, seconds, most, place, stride, first, rounding, rows):  # type: ignore[no-untyped-def]
    """Write the first routes whose sum over their legs is the largest to `rows`; returns how many are written.

    Args:
        src, dst, place, stride, first: as of `sum_of_legs`.
        seconds: value of each leg, float64.
        most: sum over its legs that no route exceeds: where `rows` is full of such routes, the others are left out.
        rounding: relative difference of sums that count as equal.
        rows: numbers of routes, changed.
    """
    longest, count = 0.0, 0
    for i in range(len(src)):
        at = np.int64(src[i])
        total = 0.0
        for k in range(len(stride)):
            there = np.int64(place[dst[i], k])
            total += seconds[first[k, 0] + at * first[k, 1] + there]
            if k + 1 < len(stride):
                at += (there - place[at, k]) * stride[k]
        if total > longest * (1 + rounding):
            longest, count = total, 0
        if total >= longest * (1 - rounding) and count < len(rows):
            rows[count] = i
            count += 1
            if count == len(rows) and longest * (1 + rounding) >= most:
                break
    return count
