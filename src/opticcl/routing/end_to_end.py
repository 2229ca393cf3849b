"""Assignment of waveguides to paths that keep theirs from end to end, in as few rounds as can be found.

Paths that share an edge need different waveguides in a round: a round with its waveguide is a colour of the graph in which
paths with a common edge are joined. Load over waveguides of the most congested edge, rounded up, bounds the rounds from below.

    first fit   the first colour that is free on all edges, in three orders: the longest path first, paths of the most
                congested edges first, paths that meet most others first
    ejection    paths that found no colour of the rounds wanted take one in turn from the fewest others, which then look for
                another; a path does not take the colour back that it has just lost

Ejection is tried for as few rounds as the bound, then for one more, ... as long as first fit needs more than that.

Source: first fit, longest path first, is a usual rule of wavelength assignment. Ejection is partial colouring with a
tabu list: Bloechliger and Zufferey, A graph coloring heuristic using partial solutions and a reactive tabu scheme, 2008.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.kernels import njit

__all__ = ["EndToEnd", "end_to_end"]

MOST_MOVES = limit("end_to_end.MOST_MOVES")

TENURE = 40
"""Least number of moves for which a path does not take back a colour that it lost [count]."""

CLOSED = -2
"""Holder of a waveguide that does not work."""


class EndToEnd(NamedTuple):
    """Round and waveguide of each path, int32 (n,) each, -1 for one that fits on none; number of rounds, and a lower bound."""

    round_of: IntArray
    waveguide: IntArray
    num_rounds: int
    bound: int


def end_to_end(hops: IntArray, offsets: IntArray, works: npt.NDArray[np.bool_]) -> EndToEnd:
    """Rounds and waveguides of paths.

    Args:
        hops: edges of all paths end to end, distinct within a path.
        offsets: path i is hops[offsets[i]:offsets[i + 1]], int64 (n + 1,).
        works: whether each waveguide of each edge works, bool (edges, waveguides).

    >>> end_to_end(np.array([0, 1, 1, 0]), np.array([0, 2, 3, 4]), np.ones((2, 1), bool))
    EndToEnd(round_of=array([0, 1, 1], dtype=int32), waveguide=array([0, 0, 0], dtype=int32), num_rounds=2, bound=2)
    """
    n, offsets = len(offsets) - 1, np.asarray(offsets, np.int64)
    edges, place = np.unique(hops, return_inverse=True)
    works, place = works[edges], place.ravel().astype(np.int64)
    if works.all():
        works = works[:, : max(1, min(works.shape[1], n))]  # no colouring takes more
    owner = np.repeat(np.arange(n), np.diff(offsets))
    fits = np.ones((n, works.shape[1]), bool)
    if not works.all():
        np.logical_and.at(fits, owner, works[place])
    load = np.bincount(place, minlength=len(edges))
    bound = int((-(-load // np.maximum(works.sum(axis=1), 1))).max(initial=min(n, 1)))
    given = np.flatnonzero(fits.any(axis=1))
    chosen, count = np.full(n, -1, np.int64), 0
    if len(given):
        count = _coloured(given, place, offsets, owner, load, works, bound, chosen)
    round_of, guide = np.divmod(chosen, works.shape[1])
    guide[chosen < 0] = -1
    return EndToEnd(round_of.astype(np.int32), guide.astype(np.int32), count, bound)


def _coloured(
    given: IntArray,
    place: IntArray,
    offsets: IntArray,
    owner: IntArray,
    load: IntArray,
    works: npt.NDArray[np.bool_],
    bound: int,
    chosen: IntArray,
) -> int:
    """Fill the colours of paths; returns the number of rounds.

    Args:
        given: paths that some waveguide can carry.
        place: edge of each hop.
        offsets: of the paths.
        owner: path of each hop.
        load: paths of each edge.
        works: waveguides of each edge.
        bound: on the rounds.
        chosen: round x waveguides + waveguide of each path; filled.
    """
    num_paths, width = len(offsets) - 1, works.shape[1]
    length = np.diff(offsets)
    crowded = np.zeros(num_paths, np.int64)
    np.maximum.at(crowded, owner, load[place])
    meets = np.bincount(owner, load[place], minlength=num_paths)
    orders = (np.argsort(-length, kind="stable"), np.lexsort((-length, -crowded)), np.argsort(-meets, kind="stable"))
    count = -1
    for order in orders:
        found = np.full(num_paths, -1, np.int64)
        taken = _first_fit(order[np.isin(order, given)], place, offsets, works, bound, found)
        if count < 0 or taken < count:
            count, chosen[:] = int(taken), found
        if count <= bound:
            return count
    for few in range(bound, count):
        found = np.where(chosen < few * width, chosen, -1)
        if _by_ejection(given, place, offsets, works, few, found, MOST_MOVES, TENURE):
            chosen[:] = found
            return few
    return count


@njit
def _first_fit(order, place, offsets, works, expected, chosen):  # type: ignore[no-untyped-def]
    """Each path to the first colour that is free on all its edges; returns the number of rounds."""
    edges, width = works.shape
    taken = np.zeros((expected + 1, width, edges), np.bool_)
    count = 0
    for i in order:
        at = 0
        while True:
            r, w = at // width, at % width
            if r == len(taken):
                taken = np.concatenate((taken, np.zeros_like(taken)))
            free = True
            for k in range(offsets[i], offsets[i + 1]):
                if taken[r, w, place[k]] or not works[place[k], w]:
                    free = False
                    break
            if free:
                break
            at += 1
        for k in range(offsets[i], offsets[i + 1]):
            taken[r, w, place[k]] = True
        chosen[i] = at
        count = max(count, r + 1)
    return count


@njit
def _by_ejection(given, place, offsets, works, rounds, chosen, most, tenure):  # type: ignore[no-untyped-def]
    """Complete a partial colouring of the given paths; returns whether all found a colour."""
    edges, width = works.shape
    colours = rounds * width
    holder = np.full((colours, edges), -1, np.int64)
    for c in range(colours):
        for e in range(edges):
            if not works[e, c % width]:
                holder[c, e] = CLOSED
    waiting, size = np.empty(len(given), np.int64), 0
    for i in given:
        if chosen[i] < 0:
            waiting[size] = i
            size += 1
        else:
            for k in range(offsets[i], offsets[i + 1]):
                holder[chosen[i], place[k]] = i
    until, seen, head = np.zeros((len(chosen), colours), np.int32), np.full(len(chosen), -1, np.int64), 0
    state, stamp = np.uint64(1), 0
    for move in range(most):
        if size == 0:
            return True
        i = waiting[head % len(waiting)]
        best, fewest = -1, len(chosen) + 1
        state = (state * np.uint64(6364136223846793005)) + np.uint64(1442695040888963407)
        first = np.int64(state >> np.uint64(33)) % colours
        for step in range(colours):
            c = (first + step) % colours
            if until[i, c] > move:
                continue
            met, stamp = 0, stamp + 1
            for k in range(offsets[i], offsets[i + 1]):
                other = holder[c, place[k]]
                if other == CLOSED:
                    met = fewest
                    break
                if other >= 0 and seen[other] != stamp:
                    seen[other] = stamp
                    met += 1
            if met < fewest:
                best, fewest = c, met
                if met == 0:
                    break
        head, size = head + 1, size - 1
        if best < 0:  # all colours are barred for the moment
            waiting[(head + size) % len(waiting)] = i
            size += 1
            continue
        for k in range(offsets[i], offsets[i + 1]):
            other = holder[best, place[k]]
            if other >= 0:
                for m in range(offsets[other], offsets[other + 1]):
                    holder[best, place[m]] = -1
                chosen[other] = -1
                until[other, best] = move + tenure + size
                waiting[(head + size) % len(waiting)] = other
                size += 1
        for k in range(offsets[i], offsets[i + 1]):
            holder[best, place[k]] = i
        chosen[i] = best
    return size == 0
