"""Kernels of a binary heap of numbers in an array: the one with the least key on top; of equal keys, the lower number."""

from __future__ import annotations

from opticcl.kernels import njit

__all__ = ["drop_least", "push"]


@njit(cache=False, inline="always")
def _is_later(key, one, other):  # type: ignore[no-untyped-def]
    """Whether a number stands behind another one."""
    return key[one] > key[other] or (key[one] == key[other] and one > other)


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
        above = heap[(place - 1) >> 1]
        if not _is_later(key, above, number):
            break
        heap[place] = above
        place = (place - 1) >> 1
    heap[place] = number


@njit(cache=False, _nrt=False)
def drop_least(heap, size, key):  # type: ignore[no-untyped-def]
    """Remove the number on top; arguments as of `push`.

    Args:
        heap, size: changed.
        key: of each number.
    """
    size[0] -= 1
    last, place = heap[size[0]], 0
    while True:
        below = 2 * place + 1
        if below >= size[0]:
            break
        if below + 1 < size[0] and _is_later(key, heap[below], heap[below + 1]):
            below += 1
        if _is_later(key, heap[below], last):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = last
