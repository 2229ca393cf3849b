"""What is alike in an all-reduce: sends, sums and parts that a group of translations carries into each other.

For N = 2^k ranks the translation by h takes rank s to s xor h, and chunk c to c xor (h mod C). A schedule that looks the same
to every rank is then x[r, delta, a]: in round r every rank g sends chunk g xor a to rank g xor delta. It has N times
fewer unknowns, and what it finds is a schedule like any other; what it does not find may still exist.

Source: ours; LUMORPH section 3.2 uses the symmetry of squares of four.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    pairs = np.arange(num_pieces * num_ranks**2).reshape(num_pieces, num_ranks, num_ranks)
    return Orbits(pairs, np.arange(num_pieces * num_ranks).reshape(num_pieces, num_ranks), pairs)


def translations(num_pieces: int, num_ranks: int) -> Orbits | None:
    """All ranks alike, or None: the ranks must be a power of two, and so must be the pieces, or a multiple of the ranks.

    >>> len(set(translations(8, 8).send.ravel().tolist()))  # 7 others and oneself times 8 chunks
    64
    """
    power = num_ranks & (num_ranks - 1) == 0
    fits = num_pieces & (num_pieces - 1) == 0 if num_pieces < num_ranks else num_pieces % num_ranks == 0
    if not power or not fits or num_ranks < 2:
        return None
    period = min(num_pieces, num_ranks)
    shift, rank, piece = np.arange(num_ranks), np.arange(num_ranks), np.arange(num_pieces)
    moved_rank = rank ^ shift[:, None]
    moved_piece = piece - piece % period + (piece % period ^ shift[:, None] % period)
    pairs = moved_piece[:, :, None, None] * num_ranks**2 + (
        moved_rank[:, None, :, None] * num_ranks + moved_rank[:, None, None, :]
    )
    sums = moved_piece[:, :, None] * num_ranks + moved_rank[:, None, :]
    alike = _numbered(pairs.min(axis=0))
    return Orbits(alike, _numbered(sums.min(axis=0)), alike)


def _numbered(keys: IntArray) -> IntArray:
    """0, 1, ... for the different keys, in an array of the same shape."""
    return np.unique(keys, return_inverse=True)[1].reshape(keys.shape)
