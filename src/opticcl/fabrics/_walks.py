"""Kernels that make and check many routes."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["breaks_off", "digit_by_digit", "joined", "leaves_grid", "slices"]


@njit(writes=())
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


@njit
def leaves_grid(hops, offsets, start, goal, rows, columns):  # type: ignore[no-untyped-def]
    """Whether a path is no walk over neighbouring tiles of a grid from its start to its goal, or goes straight back.

    Args:
        hops, offsets: edges of all paths, 4 tile + 0 east, 1 west, 2 south or 3 north, and where each path begins.
        start, goal: tiles of each path, int (paths,).
        rows, columns: of the grid.
    """
    for path in range(len(start)):
        first, last = offsets[path], offsets[path + 1]
        if first >= last:
            return True
        at, before = np.int64(start[path]), -1
        for place in range(first, last):
            way = hops[place] - 4 * at
            if way < 0 or way > 3 or way == before ^ 1:
                return True
            row, column = at // columns, at % columns
            if way == 0:
                column += 1
            elif way == 1:
                column -= 1
            elif way == 2:
                row += 1
            else:
                row -= 1
            if row < 0 or row >= rows or column < 0 or column >= columns:
                return True
            at, before = row * columns + column, way
        if at != goal[path]:
            return True
    return False


@njit
def slices(lines, start, base, end):  # type: ignore[no-untyped-def]
    """Slices of `lines` end to end, int32 (end[-1],).

    Args:
        lines: links, int32.
        start: of each slice in `lines`.
        base: added to the links of each slice.
        end: of each slice in the result, ascending.
    """
    joined = np.empty(end[-1], np.int32)
    at = 0
    for number in range(len(end)):
        place, more = start[number], base[number]
        while at < end[number]:
            joined[at] = lines[place] + more
            at += 1
            place += 1
    return joined


@njit(writes=())
def joined(table):  # type: ignore[no-untyped-def]
    """(hops, offsets) of paths given hop by hop, int32 (hops,) and int64 (paths + 1,).

    Args: table: number of each hop of each path, negative where a path has none there, int32 (hops, paths).
    """
    most, paths = table.shape
    hops, offsets = np.empty(most * paths, np.int32), np.zeros(paths + 1, np.int64)
    at = 0
    for path in range(paths):
        for nth in range(most):
            if table[nth, path] >= 0:
                hops[at] = table[nth, path]
                at += 1
        offsets[path + 1] = at
    return hops[:at], offsets


@njit(writes=())
def digit_by_digit(src, dst, rotated, digits, stride):  # type: ignore[no-untyped-def]
    """(hops, offsets) of paths that correct one digit after the other: up to a switch, down to the node with that digit.

    Links 2 k n to (2 k + 1) n - 1 lead from the n nodes to switches of level k, the n that follow lead back.

    Args:
        src, dst: nodes, int32 (paths,).
        rotated: whether paths begin with the level (src + dst) mod levels, else with level 0.
        digits: of each node, the lowest first, int32 (n, levels).
        stride: difference of nodes whose digits of a level differ by 1, int32 (levels,).
    """
    n, levels = digits.shape
    offsets = np.zeros(len(src) + 1, np.int64)
    for i in range(len(src)):
        wrong, before, after = 0, digits[src[i]], digits[dst[i]]
        for level in range(levels):
            wrong += before[level] != after[level]
        offsets[i + 1] = offsets[i] + 2 * wrong
    hops = np.empty(offsets[-1], np.int32)
    for i in range(len(src)):
        before, after = digits[src[i]], digits[dst[i]]
        at, level, place = src[i], (src[i] + dst[i]) % levels if rotated else 0, offsets[i]
        while place < offsets[i + 1]:
            if before[level] != after[level]:
                hops[place] = 2 * level * n + at
                at += (after[level] - before[level]) * stride[level]
                hops[place + 1] = (2 * level + 1) * n + at
                place += 2
            level = level + 1 if level + 1 < levels else 0
    return hops, offsets
