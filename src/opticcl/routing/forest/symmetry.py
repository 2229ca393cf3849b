"""Translations of a network: digits for the vertices that compute, of which adding one to any takes every link to another.

Some order of the vertices that compute is tried: a vertex at place p has digit p // stride % radix. Rotating a digit is a
symmetry if the switches can be permuted so that every link leads to one of its capacity. Switches are matched by what hangs
from them, with every vertex that computes distinct, and where that leaves several equal by naming one of them; each link
is checked.

Source: ours; for digits of places, Cayley graphs of products of cyclic groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.routing.forest.graph import CapacityGraph

__all__ = ["Translations", "translations"]

MOST_SINGLED = limit("symmetry.MOST_SINGLED")
MIXED = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of splitmix64


class Translations(NamedTuple):
    """Digits of places, and what a step of each digit does to links.

    Args:
        radices: of the digits, the last one fastest.
        order: vertex at each place, int64 (num_compute,).
        arcs: arc that each one is taken to by a step of each digit, int64 (digits, arcs).
    """

    radices: tuple[int, ...]
    order: IntArray
    arcs: IntArray


def translations(graph: CapacityGraph, order: IntArray) -> Translations | None:
    """The fewest digits of which every one can be rotated; None where there are none with this order.

    Args:
        graph: the network.
        order: of the vertices that compute, int64 (num_compute,).
    """
    n = graph.num_compute
    strides = [d for d in range(1, n + 1) if n % d == 0]
    before: dict[int, tuple[int, IntArray]] = {1: (0, order)}  # stride below each one that was reached, and its step
    reached = [1]
    for stride in reached:  # breadth first
        for above in strides:
            if (
                above % stride == 0
                and above not in before
                and (arcs := _rotated(graph, order, stride, above)) is not None
            ):
                before[above] = (stride, arcs)
                reached.append(above)
    if n not in before or n == 1:
        return None
    radices, steps, at = [], [], n
    while at > 1:
        below, arcs = before[at]
        radices.append(at // below)
        steps.append(arcs)
        at = below
    return Translations(tuple(radices), order, np.stack(steps))


def _rotated(graph: CapacityGraph, order: IntArray, stride: int, above: int) -> IntArray | None:
    """Images of the arcs where places within each block are moved on by a stride, int64 (arcs,); None: it is no symmetry.

    Args:
        graph, order: as of `translations`.
        stride: places by which each vertex is moved.
        above: places of a block, a multiple of the stride.
    """
    place = np.arange(graph.num_compute)
    image = np.arange(graph.num_vertices)
    image[order] = order[place // above * above + (place + stride) % above]
    names = np.arange(1, graph.num_vertices + 1, dtype=np.uint64)
    names[graph.num_compute :] = 0
    moved = names.copy()
    moved[image[: graph.num_compute]] = names[: graph.num_compute]
    for singled in range(MOST_SINGLED):
        names, moved = (_names_of_switches(graph, some) for some in (names, moved))
        here, there = (
            graph.num_compute + np.argsort(some[graph.num_compute :], kind="stable") for some in (names, moved)
        )
        if not np.array_equal(names[here], moved[there]):
            return None
        image[here] = there
        if (arcs := _images_of_arcs(graph, image)) is not None:
            return arcs
        equal = np.flatnonzero(names[here][1:] == names[here][:-1])
        if not len(equal):
            return None
        names[here[equal[0]]] = moved[there[equal[0]]] = (
            singled  # any of these to any; the next round says what follows
        )
    return None


def _images_of_arcs(graph: CapacityGraph, image: IntArray) -> IntArray | None:
    """Arc between the images of the ends of each arc, of its capacity, int64 (arcs,); None where some arc has none.

    Args:
        graph: the network.
        image: of each vertex, int64 (vertices,).
    """
    keys = (graph.tail, graph.head, graph.capacity), (image[graph.tail], image[graph.head], graph.capacity)
    first, second = (np.lexsort(columns) for columns in keys)
    if not all(np.array_equal(one[first], other[second]) for one, other in zip(*keys, strict=True)):
        return None
    arcs = np.empty(len(first), np.int64)
    arcs[second] = first
    return arcs


def _names_of_switches(graph: CapacityGraph, names: IntArray) -> IntArray:
    """Names of which those of switches follow from their links and the names of the vertices around them, uint64 (vertices,).

    Args:
        graph: the network.
        names: of the vertices, uint64 (vertices,).
    """
    known, width = names, graph.capacity.astype(np.uint64)
    different = 0
    while True:
        further = _mixed(known)
        for k, (end, other) in enumerate(((graph.tail, graph.head), (graph.head, graph.tail))):
            np.add.at(further, end, _mixed(known[other] + MIXED[k] * width))
        further[: graph.num_compute] = names[: graph.num_compute]
        known = further
        count = len(np.unique(known[graph.num_compute :]))
        if count <= different:
            return known
        different = count


def _mixed(words: IntArray) -> IntArray:
    """Words of 64 bits that look random (splitmix64)."""
    mixed = words + MIXED[0]
    for shift, factor in ((30, MIXED[1]), (27, MIXED[2])):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    return mixed ^ (mixed >> np.uint64(31))
