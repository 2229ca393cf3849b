"""Least length of the trees that join all positions of a ring, by the number of their levels."""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
import numpy.typing as npt

from opticcl.kernels import ROWS_OF_A_CALL, worth_compiling

__all__ = ["MOST_POSITIONS", "ring_tree_lengths"]

MOST_POSITIONS = 4096  # the work grows with their square
FAR = 1 << 40  # segments, more than any tree has
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
    side = np.full(near + 1, FAR)
    side[0] = 0
    for _ in range(max(8, MOST_WORK // near**2)):
        compiled = worth_compiling(len(side) * (ROWS_OF_A_CALL + len(side)), _one_more_level)
        side = _one_more_level(side) if compiled else _one_more_level_columns(side)
        found.append(side[near] + side[far])
        if found[-1] <= positions - 1:
            return np.array(found, np.float64)
    return np.array([*found, positions - 1], np.float64)


def _one_more_level_columns(side: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """As `_one_more_level`, with NumPy."""
    most = len(side) - 1
    behind, near, branch = side[::-1], side + np.arange(1, most + 2), np.full_like(side, FAR)
    for m in range(1, most + 1):
        half = (m + 1) // 2
        branch[most - m] = (near[:half] + behind[most + 1 - m : most + 1 - m + half]).min()
    found = np.zeros_like(side)
    for m in range(1, most + 1):
        found[m] = (found[:m] + branch[most - m : most]).min() + m
    return found - np.arange(most + 1)


@numba.njit(cache=True)
def _one_more_level(side):  # type: ignore[no-untyped-def]
    """f of one level more, int64 (m + 1,).

    Of two places of the root of a branch that leave the same parts, the nearer one is shorter, so half of them are tried. Parts
    are read from the front of one array and from the front of a reversed one, so that several are added at once.
    """
    most = len(side) - 1
    behind, near, branch = np.empty_like(side), np.empty_like(side), np.empty_like(side)
    for m in range(most + 1):
        behind[m], near[m], branch[m] = side[most - m], side[m] + m + 1, FAR
    for m in range(1, most + 1):
        branch[most - m] = _least_sum(near[: (m + 1) // 2], behind[most + 1 - m : most + 1 - m + (m + 1) // 2])
    found = np.empty_like(side)  # with the way to the branch: found[y] + y
    found[0] = 0
    for m in range(1, most + 1):
        found[m] = _least_sum(found[:m], branch[most - m : most]) + m
    for m in range(most + 1):
        found[m] -= m
    return found


@numba.njit(cache=True)
def _least_sum(a, b):  # type: ignore[no-untyped-def]
    """Least of a[i] + b[i]."""
    least = 2 * FAR
    for i in range(len(a)):
        least = min(least, a[i] + b[i])
    return least
