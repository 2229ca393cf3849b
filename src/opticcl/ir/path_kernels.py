"""Kernels over the hops of very many paths; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["add_loads", "copy_paths", "count_hops", "sums_of_paths"]


@njit
def add_loads(hops, offsets, amount, carried):  # type: ignore[no-untyped-def]
    """Add the amount of each route to what its links carry.

    Args:
        hops, offsets: links of all routes, and where each route begins, int (routes + 1,).
        amount: of each route, int64 (routes,).
        carried: by each link, int64, changed.
    """
    for route in range(len(amount)):
        for place in range(offsets[route], offsets[route + 1]):
            carried[hops[place]] += amount[route]


@njit(writes=("copied",))
def copy_paths(hops, offsets, rows, ends, copied):  # type: ignore[no-untyped-def]
    """Copy the hops of some paths, one after the other.

    Args:
        hops, offsets: as of `add_loads`, of all paths.
        rows: numbers of the paths to copy, int (some,).
        ends: where each of them begins among the copies, and the end, int64 (some + 1,).
        copied: for the result, int32 (hops of these paths,).
    """
    for at in range(len(rows)):
        begin, shift = offsets[rows[at]], ends[at]
        for place in range(ends[at + 1] - shift):
            copied[shift + place] = hops[begin + place]


@njit(writes=("counted",))
def count_hops(hops, counted):  # type: ignore[no-untyped-def]
    """Add to each number how often it occurs among hops, without the copy of 64 bits that `np.bincount` makes.

    Args:
        hops: numbers, int32 or int64.
        counted: for the result, int64, longer than the largest of them.
    """
    for place in range(len(hops)):
        counted[hops[place]] += 1


@njit(writes=())
def sums_of_paths(hops, offsets, of_link):  # type: ignore[no-untyped-def]
    """Sum over the links of each route, in their order, float64 (routes,).

    Args:
        hops, offsets: as of `add_loads`.
        of_link: value of each link, float64.
    """
    sums = np.empty(len(offsets) - 1)
    for at in range(len(sums)):
        total = 0.0
        for place in range(offsets[at], offsets[at + 1]):
            total += of_link[hops[place]]
        sums[at] = total
    return sums
