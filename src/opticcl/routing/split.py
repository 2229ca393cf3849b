"""Assignment of circuits to as few rounds as possible, where they do not all fit into one.

A resource (a waveguide bundle, or one wavelength of it) accepts a number of circuits per round. Load over capacity, rounded
up, is a lower bound on the rounds. First fit, most contended circuits first, usually meets it; where it does not, each
circuit goes to the round that keeps its most loaded resource emptiest, for as many rounds as the bound, one more, ...

Source: LUMORPH appendix C, which repeatedly splits a round that exceeds the waveguides into two: the number is a power of two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.path_kernels import count_hops
from opticcl.kernels import njit

__all__ = ["Split", "loads", "split"]


class Split(NamedTuple):
    """Round of each request, int32 (n,), number of rounds and lower bound on it."""

    round_of: IntArray
    num_rounds: int
    bound: int


def split(resources: IntArray, offsets: IntArray, capacity: IntArray) -> Split:
    """Rounds of requests.

    Args:
        resources: indices of the resources of all requests, end to end, distinct within a request, int32 or int64.
        offsets: request i takes resources[offsets[i]:offsets[i + 1]], int64 (n + 1,).
        capacity: requests that each resource accepts in a round, int64 (num_resources,), >= 1 for resources in use [count].

    >>> split(np.array([1, 1, 1, 0]), np.arange(5), np.array([2, 2]))
    Split(round_of=array([0, 0, 1, 0], dtype=int32), num_rounds=2, bound=2)
    """
    n = len(offsets) - 1
    resources, offsets = np.asarray(resources, np.int32), np.asarray(offsets, np.int64)  # half the memory of 64 bits
    load = loads(resources, len(capacity))
    capacity = np.clip(capacity, 1, np.iinfo(np.int32).max).astype(np.int32)
    bound = int((-(-load // capacity)).max(initial=min(n, 1)))
    if bound <= 1:
        return Split(np.zeros(n, np.int32), bound, bound)
    order = np.argsort(-_contention(resources, offsets, load / capacity), kind="stable")
    round_of = np.empty(n, np.int32)
    count = int(_first_fit(order, resources, offsets, capacity, bound, round_of))
    for few in range(bound, count):
        other = np.empty(n, np.int32)
        if _least_loaded_fit(order, resources, offsets, capacity, few, other):
            return Split(other, few, bound)
    return Split(round_of, count, bound)


def loads(resources: IntArray, count: int) -> IntArray:
    """Requests for each resource, int64 (count,).

    Args:
        resources: requested, int32 or int64, below `count`.
        count: of resources.

    >>> loads(np.array([2, 0, 2]), 4).tolist()
    [1, 0, 2, 0]
    """
    counts = np.zeros(count, np.int64)
    count_hops(resources, counts)
    return counts


@njit
def _contention(place, offsets, full):  # type: ignore[no-untyped-def]
    """Sum of the loads, in capacities, of the resources of each request, float64 (n,)."""
    uses = np.zeros(len(offsets) - 1)
    for i in range(len(uses)):
        for k in range(offsets[i], offsets[i + 1]):
            uses[i] += full[place[k]]
    return uses


@njit
def _unused(rounds, capacity):  # type: ignore[no-untyped-def]
    """What rounds have of each resource before any request, int32 (rounds, resources)."""
    left = np.empty((rounds, len(capacity)), np.int32)
    for r in range(rounds):
        for c in range(len(capacity)):
            left[r, c] = capacity[c]
    return left


@njit
def _first_fit(order, place, offsets, capacity, expected, round_of):  # type: ignore[no-untyped-def]
    """Each request to the first round with capacity; returns the number of rounds."""
    left = _unused(expected + 1, capacity)
    count = 0
    for i in order:
        r = 0
        while not _has_room(left[r], place, offsets[i], offsets[i + 1]):
            r += 1
            if r == len(left):
                left = np.concatenate((left, _unused(len(left), capacity)))
        for k in range(offsets[i], offsets[i + 1]):
            left[r, place[k]] -= 1
        round_of[i] = r
        count = max(count, r + 1)
    return count


@njit
def _least_loaded_fit(order, place, offsets, capacity, count, round_of):  # type: ignore[no-untyped-def]
    """Each request to the round of `count` with the least load; False if one fits in none."""
    left = _unused(count, capacity)
    for i in order:
        best, least = -1, np.inf
        for r in range(count):
            if not _has_room(left[r], place, offsets[i], offsets[i + 1]):
                continue
            met = 0.0
            for k in range(offsets[i], offsets[i + 1]):
                full = (capacity[place[k]] - left[r, place[k]] + 1) / capacity[place[k]]
                met += full**4
            if met < least:
                best, least = r, met
        if best < 0:
            return False
        for k in range(offsets[i], offsets[i + 1]):
            left[best, place[k]] -= 1
        round_of[i] = best
    return True


@njit
def _has_room(left, place, start, stop):  # type: ignore[no-untyped-def]
    """Whether one more request fits into what is left of each resource."""
    for k in range(start, stop):  # noqa: SIM110 (Numba)
        if left[place[k]] < 1:
            return False
    return True
