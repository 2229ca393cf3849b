"""Kernels of a binary heap of numbers in an array: the one with the least key on top; of equal keys, the lower number."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["at", "drop_least", "lower_least", "push"]

at = np.uint64
"""Makes an index unsigned: kernels do not ask then whether it counts from the end, which takes a third of their time."""


@njit(cache=False, inline="always")
def _is_later(key, one, other):  # type: ignore[no-untyped-def]
    """Whether a number stands behind another one."""
    mine, its = key[at(one)], key[at(other)]
    return (mine > its) | ((mine == its) & (one > other))  # without a branch, which cannot be predicted


@njit(cache=False, _nrt=False)
def push(heap, size, key, number):  # type: ignore[no-untyped-def]
    """Add a number that is not in the heap.

    Args:
        heap: numbers; changed.
        size: of the heap, int64 (1,); changed.
        key: of each number.
        number: to be added.
    """
    place = size[0]
    size[0] += 1
    while place > 0:
        above = heap[at((place - 1) >> 1)]
        if not _is_later(key, above, number):
            break
        heap[at(place)] = above
        place = (place - 1) >> 1
    heap[at(place)] = number


@njit(cache=False, inline="always")
def _sink(heap, size, key, number):  # type: ignore[no-untyped-def]
    """Put a number where it belongs below the top, whose place is free; arguments as of `push`."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size[0]:
            break
        beside = min(below + 1, size[0] - 1)
        below += int(_is_later(key, heap[at(below)], heap[at(beside)]))
        if _is_later(key, heap[at(below)], number):
            break
        heap[at(place)] = heap[at(below)]
        place = below
    heap[at(place)] = number


@njit(cache=False, _nrt=False)
def drop_least(heap, size, key):  # type: ignore[no-untyped-def]
    """Remove the number on top; arguments as of `push`.

    Args:
        heap, size: changed.
        key: of each number.
    """
    size[0] -= 1
    _sink(heap, size, key, heap[size[0]])


@njit(cache=False, _nrt=False)
def lower_least(heap, size, key):  # type: ignore[no-untyped-def]
    """Put the number on top where it belongs, since its key is larger now; arguments as of `push`.

    Args:
        heap, size: changed.
        key: of each number.
    """
    _sink(heap, size, key, heap[0])
