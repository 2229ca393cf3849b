"""Constructed schedules for multicasts: starting points of the search, and its result where no solver is installed.

    offsets     directly from a holder to all receivers, in ascending distance of the rank numbers
    colours     the same sends in the order of an edge colouring
    ring        from neighbour to neighbour in one direction
    two rings   half of the hops in one direction, half in the other
    digits      LUMORPH-k: to the ranks that differ in one digit of their number
    greedy      from any rank that holds the piece by then, pieces with the fewest holders first

A candidate is only an order in which circuits are assigned; `packing` assigns them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.routing.colouring import edge_colouring
from opticcl.schedule.lumorph import digits
from opticcl.synthesis.packing import Demand
from opticcl.synthesis.wafer import Wafer

__all__ = ["Candidate", "candidates", "direct_demands", "ring_of"]

Flags = npt.NDArray[np.bool_]
Candidate = tuple[str, list[Demand]]
"""Its name, and the demands in the order in which circuits are assigned to them."""

GREEDY_TRIES = 4
"""Orders of the receivers that are tried, up to 64 ranks [count]."""


def candidates(wafer: Wafer, before: Flags, after: Flags, seed: int, bound: int) -> Iterator[Candidate]:
    """Orders of demands that are likely to take few rounds.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
        seed: seed of the shuffles of the greedy candidates.
        bound: lower bound on the rounds [count].
    """
    n = wafer.num_ranks
    demands = direct_demands(wafer, before, after)
    if not demands:
        return
    src, dst = (np.array(ends) for ends in zip(*((w.senders[0], w.dst) for w in demands), strict=True))
    greedy = _greedy(wafer, before, after, seed) if (after & ~before).sum(axis=1).max() > 1 else iter(())
    if np.bincount(src).max() > bound * wafer.lasers.sum(axis=1).max():  # direct sends would overload the holders
        yield from greedy
    yield "offsets", demands
    most = max(int(np.bincount(ends).max()) for ends in (src, dst))
    colour = np.asarray(edge_colouring(src, dst, n, most))
    yield "colours", [demands[i] for i in np.argsort(colour, kind="stable")]
    if after.all() and (before.sum(axis=1) == 1).all() and n > 2:
        owner = before.argmax(axis=1)
        ring = ring_of(wafer)
        yield "ring", _ring_demands(ring, owner, n - 1)
        yield "two rings", _ring_demands(ring, owner, n // 2)
        for radix in (2, 3, 4, 8, 16):
            ks = digits(n, radix)
            if len(ks) > 1 and max(ks) <= radix:
                yield f"digits {'x'.join(map(str, ks))}", _digit_demands(ks, owner)
    yield from greedy


def direct_demands(wafer: Wafer, before: Flags, after: Flags) -> list[Demand]:
    """Every piece from the holder with the fewest sends so far (of equal ones the nearest), by distance of the rank numbers.

    Args:
        wafer: lasers and routes.
        before: holders of each piece at the start.
        after: holders of each piece at the end.
    """
    n = wafer.num_ranks
    num_sends = [0] * n
    found = []
    able = [np.flatnonzero(holders).tolist() for holders in before & wafer.lasers.any(axis=1)]
    for p, d in np.argwhere(after & ~before).tolist():
        reachable = [s for s in able[p] if wafer.routes[s, d]]
        src = reachable[0]
        if len(reachable) > 1:
            src = min(reachable, key=lambda s: (num_sends[s], len(wafer.routes[s, d][0])))
        num_sends[src] += 1
        found.append(((d - src) % n, Demand(p, (src,), d)))
    return [demand for _, demand in sorted(found)]


def ring_of(wafer: Wafer) -> IntArray:
    """Ranks in an order in which neighbours are near: a Hamiltonian ring of the tiles where the job has the whole grid.

    Boustrophedon through all columns but the first, row by row, and back along the first column; with rows and columns
    exchanged where the number of rows is odd. On other grids and on parts of a grid the last hop leads back across it.
    """
    rows, columns = wafer.shape
    row, column = np.divmod(wafer.tile, columns)
    if rows % 2 and not columns % 2:
        row, column, rows, columns = column, row, columns, rows
    back = row % 2 == 0  # away from the first column on even rows
    along = np.where(back, column, columns - 1 - column)
    place = np.where(column == 0, rows * columns + rows - row, row * columns + along)
    return np.argsort(place, kind="stable")


def _ring_demands(ring: IntArray, owner: IntArray, forward: int) -> list[Demand]:
    """Each piece from neighbour to neighbour, `forward` hops in one direction and the others in the other direction."""
    n = len(ring)
    place = np.argsort(ring)[owner]
    demands = []
    for hop in range(max(forward, n - 1 - forward)):
        for piece, at in enumerate(place.tolist()):
            if hop < forward:
                here, there = ring[(at + hop) % n], ring[(at + hop + 1) % n]
                demands.append(Demand(piece, (int(here),), int(there)))
            if hop < n - 1 - forward:
                here, there = ring[(at - hop) % n], ring[(at - hop - 1) % n]
                demands.append(Demand(piece, (int(here),), int(there)))
    return demands


def _digit_demands(ks: tuple[int, ...], owner: IntArray) -> list[Demand]:
    """The all-gather of LUMORPH, last digit first: all holders of a piece send it to all ranks that differ in that digit."""
    demands = []
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
                    demands.append(Demand(piece, (rank,), there))
                    reached.append(there)
            holders += reached
    return demands


def _greedy(wafer: Wafer, before: Flags, after: Flags, seed: int) -> Iterator[Candidate]:
    """Any holder may send; pieces with the fewest holders first, receivers in several seeded orders."""
    n = wafer.num_ranks
    random = np.random.default_rng(seed)
    piece, dst = np.nonzero(after & ~before)
    rarity = before.sum(axis=1)[piece]
    for number in range(GREEDY_TRIES if n <= 64 else 1):
        shuffle = random.random(len(piece))
        demands = []
        for i in np.lexsort((shuffle, rarity)):
            p, d = int(piece[i]), int(dst[i])
            near = [s for s in np.flatnonzero(before[p] | after[p]).tolist() if s != d and wafer.routes[s, d]]
            near.sort(key=lambda s: (len(wafer.routes[s, d][0]), (s - p) % n))
            demands.append(Demand(p, tuple(near), d))
        yield f"greedy {number}", demands
