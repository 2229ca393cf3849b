"""Distinct pairs of sender and receiver, as numbers in ascending order: one of each orbit of translations of digits."""

from __future__ import annotations

from dataclasses import dataclass
from operator import or_

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.phases import Space

__all__ = ["PairOrbits", "among", "distinct", "first_of_equal"]


@dataclass(frozen=True, slots=True, eq=False)
class PairOrbits:
    """Distinct pairs of ranks, one of each orbit of translations: that whose sender is 0 in the digits that move.

    Args:
        space: digits of the ranks.
        moves: whether translations move each digit.
        numbers: place of the sender, times ranks, and that of the receiver, ascending, int64 (orbits,).
    """

    space: Space
    moves: tuple[bool, ...]
    numbers: IntArray

    @classmethod
    def of(cls, space: Space, moves: tuple[bool, ...], src: IntArray, dst: IntArray) -> PairOrbits:
        """The pairs of some transfers.

        Args:
            space: digits of the ranks.
            moves: whether translations move each digit.
            src, dst: places, int64 (n,); senders are 0 in the digits that move.
        """
        return cls(space, moves, distinct(src * space.num_ranks + dst))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def ends(self) -> tuple[IntArray, IntArray]:
        """Place of the sender, and place of its orbit that the receiver is in, int64 (orbits,) each."""
        src, dst = np.divmod(self.numbers, self.space.num_ranks)
        return src, self.space.without(dst, self.moves)

    def closed(self, moves: tuple[bool, ...]) -> PairOrbits:
        """These and all their images under translations of more digits.

        Args: moves: whether they move each digit; all that these move among them.
        """
        if moves == self.moves:
            return self
        space, strides = self.space, np.array(self.space.strides)
        src, dst = map(space.digits, np.divmod(self.numbers, space.num_ranks))
        by = src * np.array(moves)
        ahead = (dst - by) % np.array(space.radices)
        return PairOrbits(space, moves, distinct((src - by) @ strides * space.num_ranks + ahead @ strides))

    def together(self, other: PairOrbits) -> tuple[PairOrbits, PairOrbits]:
        """Both, with all images under the translations of either."""
        moves = tuple(map(or_, self.moves, other.moves))
        return self.closed(moves), other.closed(moves)

    def may_be_within(self, other: PairOrbits) -> bool:
        """Whether all pairs are among others; where both have other translations, among all images of these."""
        mine, its = self.together(other)
        return bool(among(mine.numbers, its.numbers).all())

    def beside(self, old: PairOrbits, one_port: bool) -> PairOrbits:
        """These and those that may stand beside them.

        Args:
            old: that stood before.
            one_port: whether a node has one port, so that others that have an end in common with these do not stand.
        """
        mine, its = self.together(old)
        kept = its.numbers
        if one_port and self.moves == old.moves:
            (src, dst), (old_src, old_dst) = mine.ends, its.ends
            kept = kept[~(np.isin(old_src, src) | np.isin(old_dst, dst))]
        return PairOrbits(self.space, mine.moves, distinct(np.concatenate([kept, mine.numbers])))


def distinct(numbers: IntArray) -> IntArray:
    """Distinct numbers, ascending; quicker than a table of hashes where they are nearly in order."""
    ascending = numbers if (numbers[1:] >= numbers[:-1]).all() else np.sort(numbers)
    again = ascending[1:] == ascending[:-1]
    return ascending[np.append(True, ~again)] if again.any() else ascending


def first_of_equal(numbers: IntArray) -> npt.NDArray[np.bool_]:
    """Which numbers do not stand before, bool (numbers,); without a sort where they ascend."""
    first = np.ones(len(numbers), bool)
    if not (numbers[1:] > numbers[:-1]).all():
        first[:] = False
        first[np.unique(numbers, return_index=True)[1]] = True
    return first


def among(numbers: IntArray, ascending: IntArray) -> np.ndarray:
    """Which numbers are among ascending ones, bool (numbers,)."""
    if not len(ascending):
        return np.zeros(len(numbers), bool)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.asarray(ascending[place] == numbers)
