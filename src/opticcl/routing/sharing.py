"""Assignment of laser sets to circuits such that circuits on one edge have different sets and share its waveguides.

A waveguide carries one circuit of each wavelength. Circuits that a node sends, or receives, have different laser sets
already; the remaining choice is used here. Where an edge carries many circuits of one set and few of another, two sets are
swapped along the chain of circuits that their nodes tie to each other, if the sum of the fourth powers of all loads falls.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.kernels import njit

__all__ = ["balance_laser_sets"]

MAX_MOVES = limit("sharing.MAX_MOVES")


def balance_laser_sets(
    src: IntArray, dst: IntArray, chosen: IntArray, num_sets: int, hops: IntArray, offsets: IntArray
) -> IntArray:
    """Laser sets that load edges evenly, int64 (n,).

    Args:
        src, dst: nodes of each circuit; no two circuits of a sender, and of a receiver, have the same set, int (n,).
        chosen: initial set of each circuit, below num_sets, int (n,).
        num_sets: sets of lasers [count].
        hops, offsets: paths of the circuits.
    Returns: sets whose largest load is not above that of the initial sets.

    >>> balance_laser_sets(np.array([0, 1]), np.array([2, 3]), np.array([0, 0]), 2, np.array([8, 8]), np.arange(3)).tolist()
    [1, 0]
    """
    given = np.asarray(chosen, np.int64)
    chosen = given.copy()
    edges, place = np.unique(hops, return_inverse=True)
    nodes = int(max(src.max(initial=0), dst.max(initial=0))) + 1
    _balance(
        np.asarray(src, np.int64),
        np.asarray(dst, np.int64),
        chosen,
        num_sets,
        place.astype(np.int64),
        np.asarray(offsets, np.int64),
        len(edges),
        nodes,
        MAX_MOVES,
    )
    owner = np.repeat(np.arange(len(chosen)), np.diff(offsets))
    before, after = (np.bincount(place * num_sets + sets[owner]).max(initial=0) for sets in (given, chosen))
    return chosen if after <= before else given


@njit
def _balance(src, dst, chosen, num_sets, place, offsets, num_edges, nodes, most):  # type: ignore[no-untyped-def]
    n = len(src)
    sends, receives = np.full((nodes, num_sets), -1, np.int64), np.full((nodes, num_sets), -1, np.int64)
    load = np.zeros((num_edges, num_sets), np.int64)
    for i in range(n):
        sends[src[i], chosen[i]] = i
        receives[dst[i], chosen[i]] = i
        for k in range(offsets[i], offsets[i + 1]):
            load[place[k], chosen[i]] += 1
    chain, tied = np.empty(n, np.int64), np.zeros(n, np.bool_)
    moves, changed = 0, True
    while changed:
        changed = False
        for i in range(n):
            if moves > most:
                return
            for other in range(num_sets):
                a = chosen[i]
                if other == a:
                    continue
                size = _swap_chain(i, a, other, src, dst, sends, receives, chosen, chain, tied)
                gain = 0.0
                for c in range(size):
                    gain += _swap(chain[c], a, other, chosen, place, offsets, load)
                    moves += 2 * (offsets[chain[c] + 1] - offsets[chain[c]])
                if gain > 0:
                    _update_owners(chain, size, a, other, src, dst, chosen, sends, receives)
                    changed = True
                else:
                    for c in range(size):
                        _swap(chain[c], a, other, chosen, place, offsets, load)


@njit
def _swap_chain(start, a, b, src, dst, sends, receives, chosen, chain, tied):  # type: ignore[no-untyped-def]
    """The circuits of sets a and b that must swap if one does; returns their number."""
    chain[0], tied[start], size, done = start, True, 1, 0
    while done < size:
        i = chain[done]
        done += 1
        wanted = b if chosen[i] == a else a
        for j in (sends[src[i], wanted], receives[dst[i], wanted]):
            if j >= 0 and not tied[j]:
                tied[j] = True
                chain[size] = j
                size += 1
    for c in range(size):
        tied[chain[c]] = False
    return size


@njit
def _swap(i, a, b, chosen, place, offsets, load):  # type: ignore[no-untyped-def]
    """Give a circuit the other set; returns by how much the sum of the fourth powers of the loads falls."""
    old, new = (a, b) if chosen[i] == a else (b, a)
    gain = 0.0
    for k in range(offsets[i], offsets[i + 1]):
        before, after = load[place[k], old], load[place[k], new]
        gain += before**4 - (before - 1) ** 4 - (after + 1) ** 4 + after**4
        load[place[k], old] -= 1
        load[place[k], new] += 1
    chosen[i] = new
    return gain


@njit
def _update_owners(chain, size, a, b, src, dst, chosen, sends, receives):  # type: ignore[no-untyped-def]
    """Update the circuit of each node and set after a swap."""
    for c in range(size):
        sends[src[chain[c]], a] = sends[src[chain[c]], b] = -1
        receives[dst[chain[c]], a] = receives[dst[chain[c]], b] = -1
    for c in range(size):
        i = chain[c]
        sends[src[i], chosen[i]] = i
        receives[dst[i], chosen[i]] = i
