"""Least length of the trees that join all positions of a ring, by the number of their levels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from opticcl.ir.limits import limit
from opticcl.kernels import njit

__all__ = ["MOST_POSITIONS", "ring_tree_lengths"]

MOST_POSITIONS = limit("ring_trees.MOST_POSITIONS")
FAR = 1 << 40  # segments, more than any tree has
MOST_WORK = limit("ring_trees.MOST_WORK")


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
    place = np.arange(near + 1)
    side = place * (place + 1) // 2
    lengths = []
    for _ in range(MOST_WORK // len(side)):
        lengths.append(side[near] + side[far])
        if lengths[-1] == positions - 1:
            return np.array(lengths, np.float64)
        side = _one_more_level(side)
    return np.array([*lengths, positions - 1], np.float64)


@njit
def _one_more_level(side):  # type: ignore[no-untyped-def]
    """f of one level more, int64 (m + 1,), in linear time.

    f of one level is convex in m. If f of a level is, so is h of the next, the least sum of two convex functions: of the two
    parts of a branch the one grows that costs less. Then f of the next is the least sum of two convex functions too: f itself
    up to there and h, so it is convex one position further. The best y never falls as m grows, and the first y behind which
    the sum grows is the best.
    """
    branch, deeper = np.full_like(side, FAR), np.zeros_like(side)
    before = behind = first = 0
    for m in range(1, len(side)):
        branch[m] = side[before] + before + 1 + side[behind]
        if side[before + 1] + 1 - side[before] <= side[behind + 1] - side[behind]:
            before += 1
        else:
            behind += 1
        # a branch of no positions is far, so that this ends at m
        while deeper[first + 1] + 1 + branch[m - first - 1] <= deeper[first] + branch[m - first]:
            first += 1
        deeper[m] = deeper[first] + first + branch[m - first]
    return deeper
