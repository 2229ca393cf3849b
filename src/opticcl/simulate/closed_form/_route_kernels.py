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
def sums_of_paths(hops, offsets, of_link):  # type: ignore[no-untyped-def]
    """Sum over the links of each route, in their order, float64 (routes,).

    Args:
        hops, offsets: as of `add_loads`.
        of_link: value of each link, float64.
    """
    found = np.empty(len(offsets) - 1)
    for at in range(len(found)):
        total = 0.0
        for place in range(offsets[at], offsets[at + 1]):
            total += of_link[hops[place]]
        found[at] = total
    return found
