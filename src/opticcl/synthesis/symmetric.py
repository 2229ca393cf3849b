"""What is alike in an all-reduce: sends, sums and parts that a group of translations carries into each other.

The ranks stand in blocks of q, one after the other. The translation by h, 0 <= h < q, takes the i-th rank of every block to
the i xor h-th where q is a power of two, to the i + h-th (mod q) otherwise, and the chunks likewise, in blocks of
gcd(C, q). A schedule that looks the same after each of them has q times fewer unknowns. What is found among these is a
schedule like any other; what is not found may still exist, with less symmetry.

Source: ours; LUMORPH section 3.2 uses the symmetry of squares of four.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from opticcl.ir import IntArray

__all__ = ["Orbits", "all_alone", "translations"]


@dataclass(frozen=True, slots=True, eq=False)
class Orbits:
    """Numbers that are equal where things are carried into each other.

    Args:
        send: of piece p from s to d, int64 (pieces, ranks, ranks).
        sum: of what rank d has of piece p, int64 (pieces, ranks).
        part: of what is in it from rank o, int64 (pieces, ranks, ranks).
    """

    send: IntArray
    sum: IntArray
    part: IntArray

    @property
    def one_of_each_sum(self) -> IntArray:
        """A (piece, rank) of every orbit of sums, int64 (orbits, 2)."""
        _, first = np.unique(self.sum, return_index=True)
        return np.stack(np.unravel_index(first, self.sum.shape), axis=1)


def all_alone(num_pieces: int, num_ranks: int) -> Orbits:
    """No two things alike."""
    return translations(num_pieces, num_ranks, 1)


def translations(num_pieces: int, num_ranks: int, order: int) -> Orbits:
    """The ranks of each block alike.

    Args: order: q, ranks of a block; it divides the number of ranks.

    >>> len(set(translations(8, 8, 8).send.ravel().tolist()))  # 7 others and oneself times 8 chunks
    64
    """
    rank, piece = (_translated(count, gcd(count, order), order) for count in (num_ranks, num_pieces))
    pairs = (piece[:, :, None, None] * num_ranks + rank[:, None, :, None]) * num_ranks + rank[:, None, None, :]
    sums = piece[:, :, None] * num_ranks + rank[:, None, :]
    alike = _numbered(pairs.min(axis=0))
    return Orbits(alike, _numbered(sums.min(axis=0)), alike)


def _translated(count: int, block: int, order: int) -> IntArray:
    """To what each translation takes each of `count` things in blocks, int64 (order, count)."""
    thing, shift = np.arange(count), np.arange(order)[:, None] % block
    place = thing % block
    return thing - place + (place ^ shift if order & (order - 1) == 0 else (place + shift) % block)


def _numbered(keys: IntArray) -> IntArray:
    """0, 1, ... for the different keys, in an array of the same shape."""
    return np.unique(keys, return_inverse=True)[1].reshape(keys.shape)
