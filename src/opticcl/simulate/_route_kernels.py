"""Kernel over very many routes; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["sums_of_paths"]


@njit(writes=())
def sums_of_paths(hops, offsets, rows, of_link):  # type: ignore[no-untyped-def]
    """Sum over the links of some routes, in their order, float64 (rows,).

    Args:
        hops, offsets: links of all routes, and where each route begins, int (routes + 1,).
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
