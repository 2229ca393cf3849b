"""Least length of the trees that join all positions of a ring, by the number of their levels."""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["MOST_POSITIONS", "ring_tree_lengths"]

MOST_POSITIONS = 4096  # the work grows with their square
MOST_WORK = 1 << 26  # with more levels than this allows, the least length is taken


@lru_cache(maxsize=16)
def ring_tree_lengths(positions: int) -> npt.NDArray[np.float64]:
    """Least total length of a tree that joins all positions of a ring, for 1, 2, ... levels, float64 (levels,) [segments].

    With f(t, m) the length of t levels on one side of the root with m positions, and h(t, m) that of a branch that holds m
    positions in a row: f(t, m) = min over y of f(t, y) + y + h(t, m - y), where the branch begins behind y positions;
    h(t, m) = min over l of f(t - 1, l) + f(t - 1, m - 1 - l) + l + 1, where its root has l positions before it.
    The last of the levels is the least that any number of them can reach, a segment a position.

    >>> ring_tree_lengths(8)
    array([16., 10.,  8.,  7.])

    Args: positions: on the ring, at least 2 [count].
    """
    near, far = positions // 2, positions - 1 - positions // 2
    found = []
    side = np.full(near + 1, np.inf)
    side[0] = 0.0
    for _ in range(max(8, MOST_WORK // near**2)):
        side = _one_more_level(side)
        found.append(side[near] + side[far])
        if found[-1] <= positions - 1:
            return np.array(found)
    return np.array([*found, positions - 1])


@numba.njit(cache=True)
def _one_more_level(side):  # type: ignore[no-untyped-def]
    """f of one level more, float64 (m + 1,)."""
    most = len(side) - 1
    branch = np.full(most + 1, np.inf)
    for m in range(1, most + 1):
        for before in range(m):
            length = side[before] + side[m - 1 - before] + before + 1
            branch[m] = min(branch[m], length)
    found = np.full(most + 1, np.inf)
    found[0] = 0.0
    for m in range(1, most + 1):
        for y in range(m):
            found[m] = min(found[m], found[y] + y + branch[m - y])
    return found
