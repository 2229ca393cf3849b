"""All-gather and reduce-scatter along the lines of a grid, both ways round each line at the same time.

The message is cut into one part a dimension. Part q visits the dimensions q, q + 1, ..., cyclically, so that at every time the
parts are in distinct dimensions. A part visits a dimension as follows: each node of a line of n holds a block, and passes

    blocks p, p - 1, p - 2, ...  to the next node         n / 2 blocks each way: the node opposite on an even line gets
    blocks p, p + 1, p + 2, ...  to the previous node     one half from each side

A part is cut into slices, and the chunks of a slice are numbered by the coordinates in the order of the visits, the first
visited least significant. So a block is a range of chunks of each slice, half a block is half of the slices, and all nodes do
the same. Reduce-scatter is the reversal: every transfer backwards, in the opposite order, added.

Visits of one stage last as long as that of the longest side. On a shorter side the blocks are longer, so they are sent in
pieces, some of the slices at a time; `pieces` chooses their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm, prod

import numpy as np

from opticcl.collective import Request
from opticcl.ir import IntArray, Op, Schedule, Transfers
from opticcl.ir.symmetry import Digits, Permutation, Run, RunSteps, Symmetry, Table, Through
from opticcl.schedule import NotTried

__all__ = ["COLLECTIVES", "BothWays", "variants_in_pieces"]

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "barrier")
MOST_SLICES = 128  # of a part


@dataclass(frozen=True)
class BothWays:
    """Collectives on the lines of a grid.

    Args:
        sides: of the grid, 2 or more each; none for a single node.
        node: rank at each position of the grid, row by row, int32 (product of the sides,).
        cut: slices of a part at least; each slice of a block is a transfer of its own [count].
    """

    sides: tuple[int, ...]
    node: IntArray
    cut: int = 1

    @property
    def num_nodes(self) -> int:
        """Product of the sides [count]."""
        return prod(self.sides)

    def order(self, part: int) -> tuple[int, ...]:
        """Dimensions in the order in which a part visits them."""
        k = len(self.sides)
        return tuple((part + j) % k for j in range(k))

    @cached_property
    def _pieces(self) -> tuple[tuple[int, ...], ...]:
        """Pieces of a block by stage and part."""
        k = len(self.sides)
        lines = [[self.sides[self.order(part)[stage]] for part in range(k)] for stage in range(k)]
        twice = [
            [1 + (side == 2) for side in row] for row in lines
        ]  # the next node is the previous one: one link for both ways
        blocks = [[twice[stage][part] * self._block(part, stage) for part in range(k)] for stage in range(k)]
        halves, found = self._halves, []
        for stage in range(k):
            found.append(pieces(lines[stage], blocks[stage], halves))
            halves = lcm(halves, *found[-1])
        return tuple(found)

    @property
    def _halves(self) -> int:
        """2 where a node has an opposite one, which gets a half from each side."""
        return 1 + any(side % 2 == 0 for side in self.sides)

    @cached_property
    def num_slices(self) -> int:
        """Slices of a part; all numbers of pieces divide it [count]."""
        return lcm(self.cut, self._halves, *(count for stage in self._pieces for count in stage))

    def _block(self, part: int, stage: int) -> int:
        """Nodes whose chunks a block of that stage holds [count]."""
        return prod(self.sides[d] for d in self.order(part)[:stage])

    @property
    def num_chunks(self) -> int:
        """Of all parts together [count]."""
        return max(1, len(self.sides)) * self.num_slices * self.num_nodes

    def _coordinates(self, position: IntArray) -> list[IntArray]:
        return [position // prod(self.sides[d + 1 :]) % side for d, side in enumerate(self.sides)]

    @cached_property
    def owner(self) -> IntArray:
        """Rank that each chunk belongs to, int32 (num_chunks,)."""
        local = np.arange(self.num_nodes)
        parts = []
        for part in range(len(self.sides)):
            position, at = np.zeros(self.num_nodes, np.int64), 1
            for d in self.order(part):
                position += local // at % self.sides[d] * prod(self.sides[d + 1 :])
                at *= self.sides[d]
            parts.append(np.tile(self.node[position], self.num_slices))
        owners: IntArray = np.concatenate(parts) if parts else np.repeat(self.node.astype(np.int32), self.num_chunks)
        return owners

    def _lengths(self, stage: int, part: int) -> tuple[int, int]:
        """Steps of whole pieces of a part in a stage, and all its steps, a last one with half a block included."""
        side, count = self.sides[self.order(part)[stage]], self._pieces[stage][part]
        whole = (side - 1) * count // 2
        return whole, whole + (count == 1 and side % 2 == 0)

    def _rows(self, stage: int, moment: int, way: int, adds: bool) -> Transfers:
        """Transfers of one direction.

        Args:
            stage: how many dimensions each part has visited.
            moment: step of the stage.
            way: 1 to the next node, -1 to the previous one.
            adds: the reversal, for reduce-scatter.
        """
        position = np.arange(self.num_nodes)
        coordinates = self._coordinates(position)
        columns: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
        for part in range(len(self.sides)):
            whole, end = self._lengths(stage, part)
            if moment >= end:
                continue
            order, count = self.order(part), self._pieces[stage][part]
            d, n = order[stage], self.num_nodes
            side, stride = self.sides[d], prod(self.sides[d + 1 :])
            far, piece = divmod(moment, count)
            count = max(count, 2) if moment >= whole else count  # the opposite node: one half from each side
            size = self.num_slices // count
            slices = np.arange(size) + size * (piece if way == 1 else count - 1 - piece)
            lo = np.full(n, part * self.num_slices * n)
            for number, visited in enumerate(order[stage:]):
                behind = way * far if not number else 0
                digit = (coordinates[visited] - behind) % self.sides[visited]
                lo = lo + digit * self._block(part, stage + number)
            to = position + ((coordinates[d] + way) % side - coordinates[d]) * stride
            length = np.full(n * size, self._block(part, stage))
            columns.append((np.repeat(self.node, size), np.repeat(self.node[to], size), _each(lo, slices * n), length))
        src, dst, first, length = (np.concatenate(column) for column in zip(*columns, strict=True))
        return (
            Transfers.of(dst, src, first, length, Op.REDUCE) if adds else Transfers.of(src, dst, first, length, Op.COPY)
        )

    def _shift(self, stage: int, way: int) -> Permutation:
        """From step to step: the block before where blocks go to the next node (way 1), the block behind where to the previous;
        where blocks are sent in pieces, the next piece first.
        """
        n, k, counts = self.num_nodes, len(self.sides), self._pieces[stage]
        lines = [self.sides[self.order(part)[stage]] for part in range(k)]
        if len(set(lines)) == 1:  # no block is cut, and all parts number their chunks in the same way
            block = self._block(0, stage)
            return Digits((k * self.num_slices, n // (lines[0] * block), lines[0], block), 2, -way)
        images = []
        chunk = np.arange(self.num_slices * n)
        for part, (side, count) in enumerate(zip(lines, counts, strict=True)):
            block, size = self._block(part, stage), self.num_slices // count
            piece, digit = chunk // n // size, chunk // block % side
            carries = piece == (count - 1 if way == 1 else 0)
            moved = (digit - way * carries) % side
            to = (piece + way) % count
            images.append(part * len(chunk) + chunk + (to - piece) * size * n + (moved - digit) * block)
        return Table(np.concatenate(images))

    def _runs(self, stage: int, adds: bool) -> Iterator[Run]:
        """Runs of a stage: cut where a part has nothing left to send, or half a block."""
        ends = {end for part in range(len(self.sides)) for end in self._lengths(stage, part)} - {0}
        segments = list(zip([0, *sorted(ends)], sorted(ends), strict=False))
        shift = {way: self._shift(stage, way) for way in (1, -1)}
        for start, stop in reversed(segments) if adds else segments:
            count, first = stop - start, stop - 1 if adds else start
            members = [
                Run(
                    lambda way=way, first=first: self._rows(stage, first, way, adds),  # type: ignore[misc]
                    count,
                    (_inverse(shift[way]) if adds else shift[way]) if count > 1 else None,
                )
                for way in (1, -1)
            ]
            yield Run(members[0].base, count, members[0].shift, beside=(members[1],))

    @property
    def _symmetries(self) -> tuple[Symmetry, ...]:
        """One node further in each dimension."""
        label, of_part = np.argsort(self.node), self.num_slices * self.num_nodes
        found = []
        for d in range(len(self.sides)):
            moved = []
            for part in range(len(self.sides)):
                order = self.order(part)
                radices = (self.num_slices, *(self.sides[one] for one in reversed(order)))
                images = Digits(radices, len(order) - order.index(d), 1).images(of_part)
                moved.append(part * of_part + images)
            found.append(Symmetry(Through(label, Digits(self.sides, d, 1)), Table(np.concatenate(moved))))
        return tuple(found)

    def schedule(self, name: str, collective: Request) -> Schedule:
        """The schedule.

        Args:
            name: of the algorithm.
            collective: one of `COLLECTIVES`.
        """
        stages, runs = range(len(self.sides)), []
        if collective.name != "all_gather":
            runs += [run for stage in reversed(stages) for run in self._runs(stage, adds=True)]
        if collective.name != "reduce_scatter":
            runs += [run for stage in stages for run in self._runs(stage, adds=False)]
        step = RunSteps(tuple(runs), self.num_chunks)
        chunks = collective.on(self.num_nodes, self.num_chunks, owner=self.owner)
        steps_of = collective, self.sides, self.node, self.cut
        return Schedule(
            name, chunks, step.num_steps, step, step.classes, symmetries=self._symmetries, steps_of=steps_of
        )


def _each(lo: IntArray, behind: IntArray) -> IntArray:
    """Every number with every offset, the offsets fastest."""
    return np.ravel(lo[:, None] + behind)


def _inverse(shift: Permutation) -> Permutation:
    """The permutation backwards, of those that `_shift` returns."""
    if isinstance(shift, Digits):
        return Digits(shift.radices, shift.digit, -shift.add)
    assert isinstance(shift, Table)
    return Table(np.argsort(shift.values))


def pieces(lines: Sequence[int], blocks: Sequence[int], slices: int) -> tuple[int, ...]:
    """Pieces that each part cuts its blocks into during a stage: 1 or an even number.

    A line that is not the longest has time to spare. Its blocks are cut so that its steps move no more than those of the
    longest, if possible.

    Args:
        lines: nodes of the line of each part [count].
        blocks: length of the blocks of each part, doubled where both ways use one link.
        slices: that parts have so far; the numbers of pieces divide a multiple of it, at most `MOST_SLICES`.

    >>> pieces([32, 32], [32, 32], 2), pieces([32, 8], [8, 32], 2), pieces([31, 7], [7, 31], 1)
    ((1, 1), (1, 4), (1, 4))
    """
    steps = max(side // 2 for side in lines)
    due = max(block for side, block in zip(lines, blocks, strict=True) if side // 2 == steps)
    chosen = []
    for side, block in zip(lines, blocks, strict=True):
        most = 2 * steps // (side - 1)
        possible = [count for count in range(2, most + 1, 2) if lcm(slices, count) <= MOST_SLICES]
        enough = [count for count in possible if block <= due * count]
        count = 1 if block <= due or not possible else min(enough or [possible[-1]])
        slices = lcm(slices, count)
        chosen.append(count)
    return tuple(chosen)


def variants_in_pieces(pieces: int, most: int) -> list[dict[str, int] | NotTried]:
    """Whole blocks, and blocks in that many pieces, halved until they are at most as many as allowed.

    >>> variants_in_pieces(128, 1000), variants_in_pieces(128, 64)[:-1], variants_in_pieces(128, 1)[:-1]
    ([{}, {'pieces': 128}], [{}, {'pieces': 64}], [{}])
    """
    wanted = pieces
    while pieces > most:
        pieces //= 2
    found: list[dict[str, int] | NotTried] = [{}, {"pieces": pieces}] if pieces > 1 else [{}]
    if pieces < wanted:
        found.append(NotTried(f"pieces={wanted}", f"a search cuts blocks of these nodes into {max(most, 1)} at most"))
    return found
