"""Links of a grid whose sides are powers of two that make a wrapped butterfly, and shortest ways over them.

A node is a level l of L = 2^p and a polynomial w over GF(2) modulo t^m. One link leads to level l + 1 with the same w, the
other to level l + 1 with w + (1 + t)^l. Any m levels one after the other have independent powers, so m hops lead to every w
once. With s_l = (1 + t)^0 + ... + (1 + t)^(l-1), the first kind keeps w and the second w + s_l::

    place on the longer side     coefficients of w         without some that w + s_l has
    place on the shorter side    coefficients of w + s_l   without some that w has

so that links of the first kind stay in the lines of the shorter side, and the others in those of the longer. Both have the
coefficients t^0, t^1, t^3, t^7, ...: that of t^(2^j - 1) in s_l is bit j of l (Lucas), so together they give the level.

32 x 32 nodes are 8 levels of 128 and 9.5 hops apart on average, 14 at most; 16 x 16 are 7.6, 8 x 8 are 4.6.

Blocks for a node are numbered by the hops that they still need: in the basis (1 + t)^(k-1), (1 + t)^(k-2), ... before its
level k those that leave a node over one link are neighbours. Where more than m hops are left, one bit of the number says which
link.

Source: wrapped butterflies and their ways are known, Leighton 1992. Their lines on a grid are our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import xor

import numpy as np

from opticcl.ir import IntArray

__all__ = ["Butterfly", "levels_and_degree"]


@dataclass(frozen=True, eq=False)
class Butterfly:
    """Shortest ways to all nodes of a grid, on which the ways of all who pass a node to another agree.

    Args:
        links: node that each kind of link of every node leads to, int64 (2, nodes).
        owner: node that each block is for, int64 (nodes,).
        stage: hops from a node to the one that a block is for, int16 (nodes, blocks).
        link: kind of the first, int8 (nodes, blocks).
        size: blocks that are sent on there, the own one and others', int32 (nodes, blocks).
    """

    links: IntArray
    owner: IntArray
    stage: IntArray
    link: IntArray
    size: IntArray

    @property
    def num_steps(self) -> int:
        """Hops to the farthest node [count]."""
        return int(self.stage.max())

    @classmethod
    def of(cls, sides: tuple[int, ...]) -> Butterfly | None:
        """Ways on a grid; None where its sides are no powers of two, not two, or differ too much.

        Args: sides: of the grid.
        """
        counts = levels_and_degree(sides)
        if counts is None:
            return None
        levels, degree = counts
        level, word = np.divmod(np.arange(levels << degree), 1 << degree)
        powers = _powers(levels, degree)
        node = _nodes(sides, levels, degree)
        after = (level + 1) % levels << degree
        links = np.empty((2, len(node)), np.int64)
        links[:, node] = node[after | word], node[after | (word ^ powers[level])]

        number = np.array([_numbers(powers, to, degree) for to in range(levels)])  # of each word, before each level
        block = np.arange(levels)[:, None] << degree | (number & 1) << degree - 1 | number >> 1
        ordered = np.argsort(block.ravel())  # the level and word that each block is for
        at, to, low = np.argsort(node), level[ordered], number.ravel()[ordered]
        apart = (number.T[word[at]][:, to] ^ low).astype(np.int16)  # (nodes, blocks)
        stage = ((to - level[at, None]) % levels).astype(np.int16)
        stage += np.where(apart >> np.minimum(stage, degree), levels, 0).astype(np.int16)
        link = np.where(stage > degree, low & 1, apart >> np.clip(stage - 1, 0, degree) & 1).astype(np.int8)
        return cls(links, node[ordered], stage, link, _sizes(links, stage, link))

    def moved(self, stage: int) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """Sender, receiver, first block, number of neighbouring ones and of blocks for each, int64 (n,) each, of a stage.

        Args: stage: hops that are left.
        """
        n = len(self.owner)
        rows = np.flatnonzero(self.stage == stage)
        link, size = self.link.ravel()[rows], self.size.ravel()[rows]
        apart = (np.diff(rows) > 1) | (rows[1:] % n == 0) | (np.diff(link) != 0) | (np.diff(size) != 0)
        first = np.concatenate([[0], np.flatnonzero(apart) + 1])
        src, block = np.divmod(rows[first], n)
        many = np.diff(np.concatenate([first, [len(rows)]]))
        return src, self.links[link[first], src], block, many, size[first]


def levels_and_degree(sides: tuple[int, ...]) -> tuple[int, int] | None:
    """Levels and coefficients of a polynomial: as few levels as make them all independent.

    >>> levels_and_degree((32, 32)), levels_and_degree((8, 8)), levels_and_degree((4, 6)), levels_and_degree((2, 16))
    ((8, 7), (4, 4), None, None)
    """
    if len(sides) != 2 or any(side & side - 1 for side in sides):
        return None
    bits = sum(side.bit_length() - 1 for side in sides)
    levels, degree = 2, bits - 1
    while degree > levels:
        levels, degree = 2 * levels, degree - 1
    return (levels, degree) if 2**degree >= max(sides) else None


def _powers(levels: int, degree: int) -> IntArray:
    """(1 + t)^l of each level, bit i the coefficient of t^i, int64 (levels,)."""
    found = [1]
    for _ in range(levels - 1):
        found.append((found[-1] ^ found[-1] << 1) & (1 << degree) - 1)
    return np.array(found, np.int64)


def _nodes(sides: tuple[int, ...], levels: int, degree: int) -> IntArray:
    """Node of the grid of each level and polynomial, int64 (levels << degree,)."""
    common = [2**j - 1 for j in range(levels.bit_length() - 1)]
    free = [i for i in reversed(range(degree)) if i not in common]
    shorter = int(np.argmin(sides))
    lacking = degree + 1 - sides[shorter].bit_length()  # the last sum is 0, or the highest power, which is among these
    level, word = np.divmod(np.arange(levels << degree), 1 << degree)
    powers = _powers(levels, degree)
    summed = word ^ np.concatenate([[0], np.bitwise_xor.accumulate(powers)])[level]

    def packed(of: IntArray, without: list[int]) -> IntArray:
        kept = (i for i in range(degree) if i not in without)
        return reduce(xor, ((of >> i & 1) << at for at, i in enumerate(kept)), np.zeros_like(of))

    place = {shorter: packed(summed, free[:lacking]), 1 - shorter: packed(word, free[lacking:])}
    return place[0] * sides[1] + place[1]


def _numbers(powers: IntArray, level: int, degree: int) -> IntArray:
    """Number of each polynomial in the basis of the powers before a level, bit 0 for the last of them, int64 (polynomials,)."""
    sums = np.zeros(1, np.int64)
    for k in range(1, degree + 1):
        sums = np.concatenate([sums, sums ^ powers[level - k]])
    return np.argsort(sums)


def _sizes(links: IntArray, stage: IntArray, link: IntArray) -> IntArray:
    """Blocks that each node sends on for each other, the own one and those that reach it, int32 (nodes, blocks)."""
    size = np.ones(stage.shape, np.int32)
    for number in range(int(stage.max()), 0, -1):
        for kind, to in enumerate(links):
            src, block = np.nonzero((stage == number) & (link == kind))
            size[to[src], block] += size[src, block]  # a node is reached once over a kind of link
    return size
