"""Constructed schedules for pieces that spread: what the search starts from, and the answer where there is no solver.

    offsets     straight from a holder to all who want it, receivers at distance 1, 2, ... one after the other
    colours     the same sends in the order of an edge colouring
    ring        from neighbour to neighbour, one way
    two rings   half of the way one way, half the other
    digits      LUMORPH-k: to those that differ in one digit of their number
    greedy      from any rank that has it by then, the rarest pieces first

The order in which a candidate asks for light is all that it says; `packing` lays the circuits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.routing.colouring import edge_colouring
from opticcl.schedule.lumorph import digits
from opticcl.synthesis.packing import Wish
from opticcl.synthesis.wafer import Wafer

__all__ = ["Candidate", "candidates", "ring_of", "straight"]

Flags = npt.NDArray[np.bool_]
Candidate = tuple[str, list[Wish]]
"""Its name, and the wishes in the order in which they get light."""


def candidates(wafer: Wafer, before: Flags, after: Flags, seed: int, bound: int) -> Iterator[Candidate]:
    """Orders of wishes that promise few rounds.

    Args:
        before, after: who holds which piece at the start and at the end, bool (pieces, ranks).
        seed: of the shuffles of the greedy ones.
        bound: rounds that are needed anyway [count].
    """
    n = wafer.num_ranks
    wishes = straight(wafer, before, after)
    if not wishes:
        return
    src, dst = (np.array(ends) for ends in zip(*((w.senders[0], w.dst) for w in wishes), strict=True))
    greedy = _greedy(wafer, before, after, seed) if (after & ~before).sum(axis=1).max() > 1 else iter(())
    if np.bincount(src).max() > bound * wafer.sends.sum(axis=1).max():  # those who hold it would be too busy
        yield from greedy
    yield "offsets", wishes
    most = max(int(np.bincount(ends).max()) for ends in (src, dst))
    colour = np.asarray(edge_colouring(src, dst, n, most))
    yield "colours", [wishes[i] for i in np.argsort(colour, kind="stable")]
    if after.all() and (before.sum(axis=1) == 1).all() and n > 2:
        owner = before.argmax(axis=1)
        ring = ring_of(wafer)
        yield "ring", _along(ring, owner, n - 1)
        yield "two rings", _along(ring, owner, n // 2)
        for radix in (2, 3, 4, 8, 16):
            ks = digits(n, radix)
            if len(ks) > 1 and max(ks) <= radix:
                yield f"digits {'x'.join(map(str, ks))}", _by_digits(ks, owner)
    yield from greedy


def straight(wafer: Wafer, before: Flags, after: Flags) -> list[Wish]:
    """Every piece from the holder that is asked least so far (of equals, the nearest); by distance of the numbers."""
    n = wafer.num_ranks
    asked = [0] * n
    found = []
    able = [np.flatnonzero(holders).tolist() for holders in before & wafer.sends.any(axis=1)]
    for p, d in np.argwhere(after & ~before).tolist():
        lit = [s for s in able[p] if wafer.routes[s, d]]
        src = min(lit, key=lambda s: (asked[s], len(wafer.routes[s, d][0]))) if len(lit) > 1 else lit[0]
        asked[src] += 1
        found.append(((d - src) % n, Wish(p, (src,), d)))
    return [wish for _, wish in sorted(found)]


def ring_of(wafer: Wafer) -> IntArray:
    """Ranks in an order in which neighbours are near: a Hamiltonian ring of the tiles where the job has a whole grid.

    To and fro through all columns but the first, row by row, and back along the first; on a grid with an odd number of rows
    the same with rows and columns exchanged. On other grids and parts of grids the last step leads back across it.
    """
    rows, columns = wafer.shape
    row, column = np.divmod(wafer.tile, columns)
    if rows % 2 and not columns % 2:
        row, column, rows, columns = column, row, columns, rows
    back = row % 2 == 0  # away from the first column on even rows
    along = np.where(back, column, columns - 1 - column)
    place = np.where(column == 0, rows * columns + rows - row, row * columns + along)
    return np.argsort(place, kind="stable")


def _along(ring: IntArray, owner: IntArray, forward: int) -> list[Wish]:
    """Each piece from neighbour to neighbour, `forward` hops one way and the rest the other way."""
    n = len(ring)
    place = np.argsort(ring)[owner]
    wishes = []
    for hop in range(max(forward, n - 1 - forward)):
        for piece, at in enumerate(place.tolist()):
            if hop < forward:
                here, there = ring[(at + hop) % n], ring[(at + hop + 1) % n]
                wishes.append(Wish(piece, (int(here),), int(there)))
            if hop < n - 1 - forward:
                here, there = ring[(at - hop) % n], ring[(at - hop - 1) % n]
                wishes.append(Wish(piece, (int(here),), int(there)))
    return wishes


def _by_digits(ks: tuple[int, ...], owner: IntArray) -> list[Wish]:
    """The all-gather of LUMORPH: the last digit first, all who have a piece hand it to all who differ in that digit."""
    wishes = []
    stride = int(np.prod(ks))
    have = [[int(rank)] for rank in owner]
    for k in reversed(ks):
        stride //= k
        for piece, holders in enumerate(have):
            reached = []
            for rank in holders:
                digit = rank // stride % k
                for value in range(1, k):
                    there = rank + ((digit + value) % k - digit) * stride
                    wishes.append(Wish(piece, (rank,), there))
                    reached.append(there)
            holders += reached
    return wishes


def _greedy(wafer: Wafer, before: Flags, after: Flags, seed: int, tries: int = 4) -> Iterator[Candidate]:
    """Any who has it may send; pieces with the fewest holders first, receivers in several seeded orders."""
    n = wafer.num_ranks
    random = np.random.default_rng(seed)
    piece, dst = np.nonzero(after & ~before)
    rarity = before.sum(axis=1)[piece]
    for number in range(tries if n <= 64 else 1):
        shuffle = random.random(len(piece))
        wishes = []
        for i in np.lexsort((shuffle, rarity)):
            p, d = int(piece[i]), int(dst[i])
            near = [s for s in np.flatnonzero(before[p] | after[p]).tolist() if s != d and wafer.routes[s, d]]
            near.sort(key=lambda s: (len(wafer.routes[s, d][0]), (s - p) % n))
            wishes.append(Wish(p, tuple(near), d))
        yield f"greedy {number}", wishes
