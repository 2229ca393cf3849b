"""Circuits to rounds where they do not all fit at once, in as few rounds as can be found.

A resource (a waveguide bundle, or one wavelength of it) takes so many circuits a round. Load over capacity, rounded up, is
a bound that no split can undercut. First fit, those with the most company first, mostly meets it; where it does not, each
circuit goes to the round in which its fullest resource stays emptiest, for as many rounds as the bound, one more, ...

Source: LUMORPH appendix C, which splits an overfull round into two and repeats: that makes a power of two of rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from opticcl.ir import IntArray

__all__ = ["Split", "split"]


class Split(NamedTuple):
    """Which round each request has, int32 (n,), how many rounds there are and how few there could be."""

    round_of: IntArray
    num_rounds: int
    bound: int


def split(resources: IntArray, offsets: IntArray, room: IntArray) -> Split:
    """Rounds of requests.

    Args:
        resources: indices of what all requests take, end to end, none twice in a request, int64.
        offsets: request i takes resources[offsets[i]:offsets[i + 1]], int64 (n + 1,).
        room: how many requests each resource takes in a round, int64 (num_resources,), >= 1 where any takes it [count].

    >>> split(np.array([1, 1, 1, 0]), np.arange(5), np.array([2, 2]))
    Split(round_of=array([0, 0, 1, 0], dtype=int32), num_rounds=2, bound=2)
    """
    n = len(offsets) - 1
    resources, offsets = np.asarray(resources, np.int64), np.asarray(offsets, np.int64)
    load = np.bincount(resources, minlength=len(room))
    room = np.maximum(room, 1)
    bound = int((-(-load // room)).max(initial=min(n, 1)))
    if bound <= 1:
        return Split(np.zeros(n, np.int32), bound, bound)
    company = np.bincount(np.repeat(np.arange(n), np.diff(offsets)), (load / room)[resources], minlength=n)
    order = np.argsort(-company, kind="stable")
    round_of = np.empty(n, np.int32)
    count = int(_first_fit(order, resources, offsets, room, bound, round_of))
    for few in range(bound, count):
        other = np.empty(n, np.int32)
        if _emptiest_fit(order, resources, offsets, room, few, other):
            return Split(other, few, bound)
    return Split(round_of, count, bound)


@numba.njit(cache=True, nogil=True)
def _first_fit(order, place, offsets, room, expected, round_of):  # type: ignore[no-untyped-def]
    """Each request to the first round that has room; returns how many rounds there are."""
    taken = np.zeros((expected + 1, len(room)), np.int32)
    count = 0
    for i in order:
        r = 0
        while not _fits(taken[r], place, offsets[i], offsets[i + 1], room):
            r += 1
            if r == len(taken):
                more = np.zeros((2 * len(taken), len(room)), np.int32)
                more[: len(taken)] = taken
                taken = more
        for k in range(offsets[i], offsets[i + 1]):
            taken[r, place[k]] += 1
        round_of[i] = r
        count = max(count, r + 1)
    return count


@numba.njit(cache=True, nogil=True)
def _emptiest_fit(order, place, offsets, room, count, round_of):  # type: ignore[no-untyped-def]
    """Each request to the round of `count` in which it meets least; False if one finds no room."""
    taken = np.zeros((count, len(room)), np.int32)
    for i in order:
        best, least = -1, np.inf
        for r in range(count):
            if not _fits(taken[r], place, offsets[i], offsets[i + 1], room):
                continue
            met = 0.0
            for k in range(offsets[i], offsets[i + 1]):
                full = (taken[r, place[k]] + 1) / room[place[k]]
                met += full**4
            if met < least:
                best, least = r, met
        if best < 0:
            return False
        for k in range(offsets[i], offsets[i + 1]):
            taken[best, place[k]] += 1
        round_of[i] = best
    return True


@numba.njit(cache=True, nogil=True)
def _fits(taken, place, start, stop, room):  # type: ignore[no-untyped-def]
    """Whether one more fits."""
    for k in range(start, stop):  # noqa: SIM110 (Numba)
        if taken[place[k]] >= room[place[k]]:
            return False
    return True
