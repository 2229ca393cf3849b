"""Algorithm 3: arbitrary transfers to rounds, where a tile has only so many lasers and photodiodes.

    greedy      round by round, each receiver in turn takes transfers by chance while it has photodiodes left
      printed   and nothing else: a sender may be asked for more lasers than it has
      corrected and while the sender has lasers left
    optimum     edge colouring (Koenig): the transfers are edges between senders and receivers; with as many colours as
                the most edges at one end no two of a colour meet, and every round takes `lasers` colours. So
                ceil(most / lasers) rounds are enough, and no fewer can be; the colour within the round is the wavelength

Source: LUMORPH appendix C, algorithm 3.
Reading: "picked has less than lasers elements" counts at the receiver alone; the prose of section 3 limits both ends. The
loop adds one to its counter after the last round, so what it calls the number of rounds is one too many.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numba
import numpy as np

from opticcl.ir import IntArray
from opticcl.routing.colouring import edge_colouring

__all__ = ["TransferRounds", "greedy_rounds", "most_at_one_end", "optimal_rounds"]

Variant = Literal["corrected", "printed"]


class TransferRounds(NamedTuple):
    """Rounds of thin circuits, one laser each.

    Args:
        pair: row of the transfers that each circuit belongs to, int64 (circuits,).
        round_of: int64 (circuits,).
        wavelength: int64 (circuits,); -1 in rounds that ask a sender for more lasers than it has.
        num_rounds: [count].
        bound: rounds that are needed at least [count].
    """

    pair: IntArray
    round_of: IntArray
    wavelength: IntArray
    num_rounds: int
    bound: int


def most_at_one_end(src: IntArray, dst: IntArray) -> int:
    """The most rows that one sender or one receiver has."""
    return max((int(np.bincount(ends).max(initial=0)) for ends in (src, dst)), default=0)


def optimal_rounds(src: IntArray, dst: IntArray, count: IntArray | int, lasers: int) -> TransferRounds:
    """The fewest rounds there can be.

    Args:
        src, dst: nodes, int (n,).
        count: circuits that each pair needs, int (n,) or one number for all.
        lasers: of each node, and photodiodes [count].

    >>> optimal_rounds(np.array([0, 0, 1]), np.array([1, 2, 2]), 3, 4)[3:]  # node 0 sends six
    (2, 2)
    """
    pair, src, dst = _circuits(src, dst, count)
    most = most_at_one_end(src, dst)
    if not most:
        return TransferRounds(pair, pair, pair, 0, 0)
    nodes = int(max(src.max(), dst.max())) + 1
    colour = np.asarray(edge_colouring(src, dst, nodes, most), np.int64)
    round_of, wavelength = np.divmod(colour, lasers)
    rounds = -(-most // lasers)
    return TransferRounds(pair, round_of, wavelength, rounds, rounds)


def greedy_rounds(
    src: IntArray,
    dst: IntArray,
    count: IntArray | int,
    lasers: int,
    *,
    seed: int = 0,
    variant: Variant = "corrected",
) -> TransferRounds:
    """What algorithm 3 finds.

    Args:
        src, dst: nodes, int (n,).
        count: circuits that each pair needs, int (n,) or one number for all.
        lasers: of each node, and photodiodes [count].
        seed: of the order in which a receiver's transfers are looked at.
        variant: corrected, or as printed.
    """
    pair, src, dst = _circuits(src, dst, count)
    most = most_at_one_end(src, dst)
    if not most:
        return TransferRounds(pair, pair, pair, 0, 0)
    chance = np.random.default_rng(seed).random(len(src))
    order = np.lexsort((chance, dst))  # receiver after receiver, its transfers by chance
    nodes = int(max(src.max(), dst.max())) + 1
    round_of = np.full(len(src), -1, np.int64)
    rounds = int(_pick(src, dst, order, nodes, lasers, variant == "printed", round_of))
    wavelength = np.full(len(src), -1, np.int64)
    for r in range(rounds):
        rows = np.flatnonzero(round_of == r)
        if most_at_one_end(src[rows], dst[rows]) <= lasers:
            wavelength[rows] = edge_colouring(src[rows], dst[rows], nodes, lasers)
    return TransferRounds(pair, round_of, wavelength, rounds, -(-most // lasers))


def _circuits(src: IntArray, dst: IntArray, count: IntArray | int) -> tuple[IntArray, IntArray, IntArray]:
    """Transfer, sender and receiver of every single circuit."""
    pair = np.repeat(np.arange(len(src)), count)
    return pair, np.asarray(src, np.int64)[pair], np.asarray(dst, np.int64)[pair]


@numba.njit(cache=True, nogil=True)
def _pick(src, dst, order, nodes, lasers, printed, round_of):  # type: ignore[no-untyped-def]
    """Fill round_of; returns the number of rounds."""
    left, rounds = len(order), 0
    while left:
        sent, heard = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        for i in order:
            if round_of[i] < 0 and heard[dst[i]] < lasers and (printed or sent[src[i]] < lasers):
                round_of[i] = rounds
                sent[src[i]] += 1
                heard[dst[i]] += 1
                left -= 1
        rounds += 1
    return rounds
