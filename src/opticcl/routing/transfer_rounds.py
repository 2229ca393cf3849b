"""Algorithm 3: assignment of arbitrary transfers to rounds under a limited number of lasers and photodiodes per tile.

    greedy      round by round, each receiver in turn takes random transfers while it has photodiodes left
      printed   without another condition: a sender may need more lasers than it has
      corrected and while the sender has lasers left
    optimum     edge colouring (Koenig): the transfers are edges between senders and receivers; with as many colours as
                the largest degree no two edges of a colour meet, and every round takes `lasers` colours. So
                ceil(degree / lasers) rounds are enough and necessary; the colour within the round is the wavelength

Source: LUMORPH appendix C, algorithm 3.
Reading: "picked has less than lasers elements" counts at the receiver only; the prose of section 3 limits both ends. The
loop adds one to its counter after the last round, so its number of rounds is one too high.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.routing.colouring import edge_colouring

__all__ = ["TransferRounds", "greedy_rounds", "max_degree", "optimal_rounds"]

Variant = Literal["corrected", "printed"]


class TransferRounds(NamedTuple):
    """Rounds of transfers, each a circuit of one laser.

    Args:
        round_of: round of each transfer, int64 (n,).
        wavelength: int64 (n,); -1 in rounds that need more lasers of a sender than it has.
        num_rounds: rounds [count].
        bound: lower bound on the rounds [count].
    """

    round_of: IntArray
    wavelength: IntArray
    num_rounds: int
    bound: int


def max_degree(src: IntArray, dst: IntArray) -> int:
    """The largest number of rows of one sender or one receiver."""
    return max((int(np.bincount(ends).max(initial=0)) for ends in (src, dst)), default=0)


def optimal_rounds(src: IntArray, dst: IntArray, lasers: int) -> TransferRounds:
    """The fewest rounds.

    Args:
        src, dst: nodes, int (n,).
        lasers: lasers, and photodiodes, of each node [count].

    >>> optimal_rounds(np.array([0, 0, 0]), np.array([1, 2, 3]), 2)[2:]
    (2, 2)
    """
    most = max_degree(src, dst)
    if not most:
        return TransferRounds(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0)
    nodes = int(max(src.max(), dst.max())) + 1
    colour = np.asarray(edge_colouring(src, dst, nodes, most), np.int64)
    round_of, wavelength = np.divmod(colour, lasers)
    rounds = -(-most // lasers)
    return TransferRounds(round_of, wavelength, rounds, rounds)


def greedy_rounds(
    src: IntArray,
    dst: IntArray,
    lasers: int,
    *,
    seed: int = 0,
    variant: Variant = "corrected",
) -> TransferRounds:
    """Rounds of algorithm 3.

    Args:
        src, dst: nodes, int (n,).
        lasers: lasers, and photodiodes, of each node [count].
        seed: seed of the order of a receiver's transfers.
        variant: corrected, or as printed.
    """
    most = max_degree(src, dst)
    if not most:
        return TransferRounds(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0)
    src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    chance = np.random.default_rng(seed).random(len(src))
    order = np.lexsort((chance, dst))  # receiver after receiver, its transfers in random order
    nodes = int(max(src.max(), dst.max())) + 1
    round_of = np.full(len(src), -1, np.int64)
    rounds = int(_assign_rounds(src, dst, order, nodes, lasers, variant == "printed", round_of))
    wavelength = np.full(len(src), -1, np.int64)
    for r in range(rounds):
        rows = np.flatnonzero(round_of == r)
        if max_degree(src[rows], dst[rows]) <= lasers:
            wavelength[rows] = edge_colouring(src[rows], dst[rows], nodes, lasers)
    return TransferRounds(round_of, wavelength, rounds, -(-most // lasers))


@njit
def _assign_rounds(src, dst, order, nodes, lasers, printed, round_of):  # type: ignore[no-untyped-def]
    """Fill round_of; returns the number of rounds."""
    left, rounds = len(order), 0
    while left:
        sent, received = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        for i in order:
            if round_of[i] < 0 and received[dst[i]] < lasers and (printed or sent[src[i]] < lasers):
                round_of[i] = rounds
                sent[src[i]] += 1
                received[dst[i]] += 1
                left -= 1
        rounds += 1
    return rounds
