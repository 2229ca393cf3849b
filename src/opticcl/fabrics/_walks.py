"""Kernels for very many routes; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["breaks_off", "slices"]


@numba.njit(cache=True, nogil=True)
def breaks_off(hops, offsets, src, dst, tail, head, not_through):  # type: ignore[no-untyped-def]
    """Whether a path is no walk along links from its sender to its receiver, or passes a vertex below `not_through`.

    Args:
        hops, offsets: links of all paths, and where each path begins, int (circuits + 1,).
        src, dst: vertices of sender and receiver, int (circuits,).
        tail, head: vertices that each link joins, int (links,).
        not_through: vertices below this number forward nothing [count].
    """
    for circuit in range(len(src)):
        first, last = offsets[circuit], offsets[circuit + 1]
        if first >= last:
            return True
        at = np.int64(src[circuit])
        for place in range(first, last):
            link = hops[place]
            if link < 0 or link >= len(tail) or tail[link] != at or (place > first and at < not_through):
                return True
            at = head[link]
        if at != dst[circuit]:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def slices(lines, start, base, end):  # type: ignore[no-untyped-def]
    """Slices of `lines` end to end, int32 (end[-1],).

    Args:
        lines: links, int32.
        start: of each slice in `lines`.
        base: added to the links of each slice.
        end: of each slice in the result, ascending.
    """
    found = np.empty(end[-1], np.int32)
    at = 0
    for number in range(len(end)):
        place, more = start[number], base[number]
        while at < end[number]:
            found[at] = lines[place] + more
            at += 1
            place += 1
    return found
