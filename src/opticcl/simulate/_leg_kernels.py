"""Kernels over the legs of very many routes; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["longest_rows", "sum_of_legs"]


@njit
def sum_of_legs(src, dst, amount, of_src, of_dst, found):  # type: ignore[no-untyped-def]
    """Add the amount of each route to those of its legs.

    Args:
        src, dst: nodes, (routes,).
        amount: of each route, int64 (routes,).
        of_src, of_dst: addends of the number of a leg in each dimension, int64 (nodes, dimensions).
        found: amount of each leg, int64, changed.
    """
    for i in range(len(src)):
        for k in range(of_src.shape[1]):
            # unsigned, since no number is negative and an index that may be needs a second check
            found[np.uint64(of_src[src[i], k] + of_dst[dst[i], k])] += amount[i]


@njit
def longest_rows(src, dst, seconds, most, of_src, of_dst, rounding, rows):  # type: ignore[no-untyped-def]
    """Write the first routes whose sum over their legs is the largest to `rows`; returns how many are written.

    Args:
        src, dst, of_src, of_dst: as of `sum_of_legs`.
        seconds: value of each leg, float64.
        most: sum over its legs that no route exceeds: where `rows` is full of such routes, the others are left out.
        rounding: relative difference of sums that count as equal.
        rows: numbers of routes, changed.
    """
    longest, count = 0.0, 0
    for i in range(len(src)):
        total = 0.0
        for k in range(of_src.shape[1]):
            total += seconds[np.uint64(of_src[src[i], k] + of_dst[dst[i], k])]
        if total > longest * (1 + rounding):
            longest, count = total, 0
        if total >= longest * (1 - rounding) and count < len(rows):
            rows[count] = i
            count += 1
            if count == len(rows) and longest * (1 + rounding) >= most:
                break
    return count
