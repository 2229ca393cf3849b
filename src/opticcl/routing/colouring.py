"""Edge colouring of bipartite graphs: assigns transfers to rounds or lasers, none twice at a sender or a receiver."""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit

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


@njit(writes=())
def _colours(left, right, num_vertices, num_colours):  # type: ignore[no-untyped-def]
    # vertex at the other end of the edge of each colour, -1 for none
    at_left = np.full((num_vertices, num_colours), -1, np.int32)
    at_right = np.full((num_vertices, num_colours), -1, np.int32)
    for edge in range(len(left)):
        a = b = 0
        while at_left[left[edge], a] >= 0:
            a += 1
        while at_right[right[edge], b] >= 0:
            b += 1
        vertex, right_side = right[edge], True
        while a != b and vertex >= 0:  # every vertex of the path swaps what it has in both colours
            if right_side:
                along = at_right[vertex, a]
                at_right[vertex, a] = at_right[vertex, b]
                at_right[vertex, b] = along
            else:
                along = at_left[vertex, b]
                at_left[vertex, b] = at_left[vertex, a]
                at_left[vertex, a] = along
            vertex, right_side = np.int64(along), not right_side
        at_left[left[edge], a] = right[edge]
        at_right[right[edge], a] = left[edge]
    colour = np.zeros(len(left), np.int32)
    for edge in range(len(left)):  # edges with the same ends take their colours in ascending order
        while at_left[left[edge], colour[edge]] != right[edge]:
            colour[edge] += 1
        at_left[left[edge], colour[edge]] = -1
    return colour
