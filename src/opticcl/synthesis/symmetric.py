"""Orbits of an all-reduce under a group of translations: sends, sums and parts that are identical up to symmetry.

The ranks form blocks of q, one after the other. The translation by h, 0 <= h < q, takes the i-th rank of every block to
the (i xor h)-th where q is a power of two, to the (i + h)-th (mod q) otherwise, and the chunks likewise, in blocks of
gcd(C, q). A schedule that is invariant under all of them has q times fewer unknowns. A schedule found among these is valid
as any other; if none is found, one with less symmetry may still exist.

Source: own construction; LUMORPH section 3.2 uses the symmetry of squares of four.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from opticcl.ir import IntArray

__all__ = ["Orbits", "translation_orbits"]


@dataclass(frozen=True, slots=True, eq=False)
class Orbits:
    """Orbit numbers, equal where a translation takes one thing to the other.

    Args:
        send: of piece p from s to d, int64 (pieces, ranks, ranks).
        sum: of the partial sum of piece p on rank d, int64 (pieces, ranks).
        part: of the part of rank o in that sum, int64 (pieces, ranks, ranks).
    """

    send: IntArray
    sum: IntArray
    part: IntArray

    @property
    def one_of_each_sum(self) -> IntArray:
        """One (piece, rank) of every orbit of sums, int64 (orbits, 2)."""
        _, first = np.unique(self.sum, return_index=True)
        return np.stack(np.unravel_index(first, self.sum.shape), axis=1)


def translation_orbits(num_pieces: int, num_ranks: int, order: int) -> Orbits:
    """Orbits of the translations within blocks of ranks.

    Args:
        num_pieces, num_ranks: of the all-reduce [count].
        order: q, ranks of a block; it divides the number of ranks.

    >>> len(set(translation_orbits(8, 8, 8).send.ravel().tolist()))  # 7 others and the rank itself times 8 chunks
    64
    """
    rank, piece = (_translate(count, gcd(count, order), order) for count in (num_ranks, num_pieces))
    pairs = (piece[:, :, None, None] * num_ranks + rank[:, None, :, None]) * num_ranks + rank[:, None, None, :]
    sums = piece[:, :, None] * num_ranks + rank[:, None, :]
    pair_orbits = _renumber(pairs.min(axis=0))
    return Orbits(pair_orbits, _renumber(sums.min(axis=0)), pair_orbits)


def _translate(count: int, block: int, order: int) -> IntArray:
    """Image of each of `count` things in blocks under each translation, int64 (order, count)."""
    thing, shift = np.arange(count), np.arange(order)[:, None] % block
    place = thing % block
    return thing - place + (place ^ shift if order & (order - 1) == 0 else (place + shift) % block)


def _renumber(keys: IntArray) -> IntArray:
    """Distinct keys numbered 0, 1, ..., in an array of the same shape."""
    return np.unique(keys, return_inverse=True)[1].reshape(keys.shape)
