"""A closed order of ranks in which neighbours are linked, repaired from one in which only a few are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit

__all__ = ["closed_order"]

Linked = Callable[[IntArray, IntArray], npt.NDArray[np.bool_]]

MOST_GAPS = 8
"""Gaps at which the order is cut, in both directions, before the search gives up."""
MOST_PATHS = limit("closed_order.MOST_PATHS")


def closed_order(order: IntArray, linked: Linked) -> IntArray | None:
    """The same ranks in a closed order in which each is linked to the next, the last to the first.

    Gaps are closed one by one: the order is cut at a gap into a path, and a part of the path at its end is reversed so that
    both new pairs of neighbours are linked; if no part will do, the end of the path is rotated first (Pósa 1976). Every
    change leaves fewer gaps, so the search ends.

    Args:
        order: each rank once, int64 (n,).
        linked: (src, dst) -> whether two ranks are linked, arrays that broadcast. Reversed parts need links both ways;
            links one way alone are not used.
    Returns: int64 (n,), the lowest rank first, or None if no such order was found; one may exist nevertheless.

    >>> closed_order(np.array([0, 2, 1, 3]), lambda a, b: np.isin(np.abs(a - b), (1, 3))).tolist()
    [0, 3, 2, 1]
    """

    def both_ways(src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        there: npt.NDArray[np.bool_] = linked(src, dst) & linked(dst, src)
        return there

    while len(order) > 1:
        gaps = np.flatnonzero(~both_ways(order, np.roll(order, -1)))
        if not len(gaps):
            break
        paths = (np.roll(order, -int(gap) - 1)[::way] for gap in gaps[:MOST_GAPS] for way in (1, -1))
        closed = next((found for path in paths if (found := _with_fewer_gaps(path, both_ways)) is not None), None)
        if closed is None:
            return None
        order = closed
    return np.roll(order, -int(order.argmin()))


def _with_fewer_gaps(path: IntArray, linked: Linked) -> IntArray | None:
    """The ranks of a path whose ends are not linked, in a closed order with fewer gaps; None if none was found."""
    waiting, seen = deque([path]), {int(path[-1])}
    for _ in range(MOST_PATHS):
        if not waiting:
            return None
        path = waiting.popleft()
        before, after = path[:-1], path[1:]
        to_end, to_next = linked(before, path[-1]), linked(before, after)
        fewer = np.flatnonzero(to_end & (linked(after, path[0]) | ~to_next))
        if len(fewer):
            first = int(fewer[0])
            return np.concatenate([path[: first + 1], path[:first:-1]])
        for j in np.flatnonzero(to_end & to_next).tolist():
            end = int(path[j + 1])
            if end not in seen:
                seen.add(end)
                waiting.append(np.concatenate([path[: j + 1], path[:j:-1]]))
    return None
