"""Edge colouring of bipartite graphs: assigns transfers to rounds or lasers, none twice at a sender or a receiver."""

from __future__ import annotations

import numba
import numpy as np

from opticcl.ir import IntArray

__all__ = ["edge_colouring"]


def edge_colouring(left: IntArray, right: IntArray, num_vertices: int, num_colours: int) -> IntArray:
    """Colours of the edges of a bipartite graph, distinct at every vertex, int32 (n,).

    Args:
        left, right: ends of each edge, each below num_vertices.
        num_vertices: vertices of each side [count].
        num_colours: at least the largest degree; by Koenig's theorem no more are needed [count].

    Each edge finds a colour a that is free at its left end and one, b, that is free at its right end. If they differ,
    the path that leaves the right end by a, b, a, ... swaps the two; it never reaches the left end, where a is free.
    """
    return np.asarray(_colours(np.asarray(left, np.int64), np.asarray(right, np.int64), num_vertices, num_colours))


@numba.njit(cache=True, nogil=True)
def _colours(left, right, num_vertices, num_colours):  # type: ignore[no-untyped-def]
    at_left = np.full((num_vertices, num_colours), -1, np.int32)
    at_right = np.full((num_vertices, num_colours), -1, np.int32)
    colour = np.empty(len(left), np.int32)
    path = np.empty(2 * num_vertices, np.int32)
    for edge in range(len(left)):
        a = b = 0
        while at_left[left[edge], a] >= 0:
            a += 1
        while at_right[right[edge], b] >= 0:
            b += 1
        length, vertex = 0, right[edge]
        while a != b:
            along = at_right[vertex, a] if length % 2 == 0 else at_left[vertex, b]
            if along < 0:
                break
            path[length] = along
            vertex = left[along] if length % 2 == 0 else right[along]
            length += 1
        for k in range(length):
            at_left[left[path[k]], colour[path[k]]] = -1
            at_right[right[path[k]], colour[path[k]]] = -1
        for k in range(length):
            swapped = b if k % 2 == 0 else a
            colour[path[k]] = swapped
            at_left[left[path[k]], swapped] = path[k]
            at_right[right[path[k]], swapped] = path[k]
        colour[edge] = a
        at_left[left[edge], a] = edge
        at_right[right[edge], a] = edge
    return colour
