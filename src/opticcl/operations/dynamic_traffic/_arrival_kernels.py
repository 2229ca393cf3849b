"""Compiled kernel of random arrivals: the flows of an epoch, by a generator of its own."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["draw_epoch"]


@njit(inline="always")
def _random(state):  # type: ignore[no-untyped-def]
    """Next 64 random bits: the generator xoroshiro128+ of Blackman and Vigna; `state` has two words."""
    one, two = state[0], state[1]
    drawn = one + two
    two ^= one
    state[0] = ((one << np.uint64(24)) | (one >> np.uint64(40))) ^ two ^ (two << np.uint64(16))
    state[1] = (two << np.uint64(37)) | (two >> np.uint64(27))
    return drawn


@njit(inline="always")
def _uniform(state):  # type: ignore[no-untyped-def]
    """A number in [0, 1)."""
    return np.float64(_random(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def _pick(state, chance, other):  # type: ignore[no-untyped-def]
    """A node by the method of aliases: one column, then the column itself or its alias."""
    drawn = _uniform(state) * len(chance)
    column = np.int64(drawn)
    return column if drawn - column < chance[column] else np.int64(other[column])


@njit
def draw_epoch(  # type: ignore[no-untyped-def]
    state, clock, end, gaps, mean_gap, sizes, chance, other, weights, rack_nodes, share, arrival, src, dst, cells
):
    """Flows that arrive before `end`; returns their number and their cells. Full columns end it before clock[0] reaches `end`.

    Args:
        state: of the generator of random numbers, changed.
        clock: [0]: time of the next arrival [slots], changed.
        end: of the epoch [slots].
        gaps: equally likely gaps over their mean; one: exponential.
        mean_gap: between arrivals [slots].
        sizes: equally likely sizes [cells].
        chance, other: aliases of the nodes by weight.
        weights: sums of the weights of the nodes before each.
        rack_nodes: nodes of a rack [count].
        share: of the flows that goes to other racks; negative: any other node.
        arrival, src, dst, cells: columns that are written.
    """
    n = len(chance)
    count, total = 0, 0
    while clock[0] < end and count < len(arrival):
        source = _pick(state, chance, other)
        first = source // rack_nodes * rack_nodes
        if share < 0:
            target = _pick(state, chance, other)
            while target == source:
                target = _pick(state, chance, other)
        elif _uniform(state) < share:
            target = _pick(state, chance, other)
            while target // rack_nodes * rack_nodes == first:
                target = _pick(state, chance, other)
        else:
            low = weights[first]
            width = weights[min(first + rack_nodes, n)] - low
            target = source
            while target == source:
                wanted = low + _uniform(state) * width
                target = np.searchsorted(weights[first + 1 : first + rack_nodes], wanted, side="right") + first
        arrival[count] = np.int32(clock[0])
        src[count], dst[count] = source, target
        cells[count] = sizes[0] if len(sizes) == 1 else sizes[_random(state) >> np.uint64(48)]
        total += cells[count]
        count += 1
        if len(gaps) == 1:
            clock[0] -= np.log(1.0 - _uniform(state)) * mean_gap
        else:
            clock[0] += gaps[_random(state) >> np.uint64(48)] * mean_gap
    return count, total
