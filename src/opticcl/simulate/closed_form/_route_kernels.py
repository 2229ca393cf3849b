"""Kernels over very many routes; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["add_loads", "sums_of_paths"]


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


@njit(writes=())
def sums_of_paths(hops, offsets, rows, of_link):  # type: ignore[no-untyped-def]
    """Sum over the links of some routes, in their order, float64 (rows,).

    Args:
        hops, offsets: as of `add_loads`.
        rows: numbers of routes, int64 (rows,).
        of_link: value of each link, float64.
    """
    found = np.empty(len(rows))
    for at in range(len(rows)):
        total = 0.0
        for place in range(offsets[rows[at]], offsets[rows[at] + 1]):
            total += of_link[hops[place]]
        found[at] = total
    return found
