"""Kernels of a binary heap of numbers: the one with the least key on top; of equal keys, the lower number.

The heap is two arrays by place, the numbers and their keys, so that keys that are compared stand side by side.
"""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["at", "drop_least", "lower_least", "push"]

at = np.uint64
"""Makes an index unsigned: kernels do not ask then whether it counts from the end, which takes a quarter of their time."""


@njit(cache=False, _nrt=False)
def push(heap, keys, size, number, key):  # type: ignore[no-untyped-def]
    """Add a number that is not in the heap.

    Args:
        heap, keys: numbers and their keys, by place; changed.
        size: of the heap, int64 (1,); changed.
        number, key: to be added.
    """
    place = size[0]
    size[0] += 1
    while place > 0:
        above = at((place - 1) >> 1)
        if keys[above] < key or (keys[above] == key and heap[above] < number):
            break
        heap[at(place)], keys[at(place)] = heap[above], keys[above]
        place = (place - 1) >> 1
    heap[at(place)], keys[at(place)] = number, key


@njit(cache=False, inline="always")
def _sink(heap, keys, size, number, key):  # type: ignore[no-untyped-def]
    """Put a number where it belongs below the top, whose place is free; arguments as of `push`."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size[0]:
            break
        one, other = at(below), at(min(below + 1, size[0] - 1))
        later = keys[one] > keys[other]
        if keys[one] == keys[other]:
            later = heap[one] > heap[other]
        below += int(later)  # without a branch, which cannot be predicted
        first = at(below)
        if keys[first] > key or (keys[first] == key and heap[first] > number):
            break
        heap[at(place)], keys[at(place)] = heap[first], keys[first]
        place = below
    heap[at(place)], keys[at(place)] = number, key


@njit(cache=False, _nrt=False)
def drop_least(heap, keys, size):  # type: ignore[no-untyped-def]
    """Remove the number on top; arguments as of `push`.

    Args: heap, keys, size: changed.
    """
    size[0] -= 1
    _sink(heap, keys, size, heap[size[0]], keys[size[0]])


@njit(cache=False, _nrt=False)
def lower_least(heap, keys, size, key):  # type: ignore[no-untyped-def]
    """Put the number on top where it belongs with a larger key; arguments as of `push`.

    Args:
        heap, keys, size: changed.
        key: its key from now on.
    """
    _sink(heap, keys, size, heap[0], key)
