"""Numbering of SiPCO's chunks: by group, and within a group by digits that belong to levels of the SiPAC.

Group g visits the levels g, g-1, ..., g-L+1 (mod L). Digit j of a chunk's number within the group, the most significant
first, belongs to the j-th level visited, for k digits. So the chunks with given leading digits are adjacent.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import lcm, prod
from operator import mul

import numpy as np
import numpy.typing as npt

from opticcl.fabrics.sipac import strides_of
from opticcl.ir import IntArray

__all__ = ["ChunkGroups"]


def _chunks_of_group(radices: tuple[int, ...], k: int) -> int:
    """Chunks of every group: r^k, or with mixed radices the least common multiple over all groups.

    >>> _chunks_of_group((8, 8, 8), 2), _chunks_of_group((4, 8, 2), 1), _chunks_of_group((4, 8, 2), 0)
    (64, 8, 1)
    """
    levels = range(len(radices))
    return lcm(*(prod(radices[group - j] for j in range(k)) for group in levels))  # level -1 is the last one


@dataclass(frozen=True, slots=True, eq=False)
class ChunkGroups:
    """The groups of a message on a SiPAC.

    Args:
        radices: radix of each level, level 0 first.
        size: chunks of a group [count].
        k: digits of a chunk's number [count].
        digit: digit of each node at each level, int32 (levels, nodes).
        walks: products of the radices of the first levels that each group visits, of none to all of them.
    """

    radices: tuple[int, ...]
    size: int
    k: int
    digit: IntArray
    walks: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, radices: tuple[int, ...], k: int) -> ChunkGroups:
        """The groups by k digits."""
        node = np.arange(prod(radices))
        digits = node // strides_of(radices)[:, None] % np.array(radices)[:, None]
        levels = len(radices)
        visited = [[radices[group - j] for j in range(levels)] for group in range(levels)]
        walks = tuple(tuple(accumulate(one, mul, initial=1)) for one in visited)
        return cls(radices, _chunks_of_group(radices, k), k, digits.astype(np.int32), walks)

    def level(self, group: int, j: int) -> int:
        """The j-th level that the group visits."""
        return (group - j) % len(self.radices)

    def walked(self, group: int, j: int) -> int:
        """Product of the radices of the first j levels that the group visits."""
        return self.walks[group][j]

    def width(self, group: int, digits: int) -> int:
        """Chunks of the group with given leading digits [count]."""
        return self.size // self.walked(group, digits)

    def first(self, group: int, digits: int) -> IntArray:
        """First chunk of the group whose leading digits are the node's own, int32 (nodes,)."""
        first = np.full(self.digit.shape[1], group * self.size, np.int32)
        for j in range(digits):
            level = self.level(group, j)
            own = self.radices[level] - 1 - self.digit[level]
            first += own * np.int32(self.width(group, j + 1))
        return first

    def pairs(self, level: int) -> tuple[IntArray, IntArray]:
        """All (src, dst) that share a switch of that level, int32 (nodes, radix - 1) each."""
        radix, mine = self.radices[level], self.digit[level][:, None]
        node = np.arange(len(mine), dtype=np.int32)[:, None]
        other = (mine + np.arange(1, radix, dtype=np.int32)) % np.int32(radix)
        dst = node + (other - mine) * np.int32(strides_of(self.radices)[level])
        return np.broadcast_to(node, dst.shape), dst

    def like(self, root: int, group: int, walk: range) -> npt.NDArray[np.bool_]:
        """Nodes with the root's digits at those positions of the group's walk, bool (nodes,).

        Args:
            root: node.
            group: index of the group.
            walk: positions in its walk.
        """
        levels = [self.level(group, j) for j in walk]
        equal: npt.NDArray[np.bool_] = (self.digit[levels] == self.digit[levels, root][:, None]).all(axis=0)
        return equal
