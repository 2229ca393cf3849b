"""All-to-all along all dimensions of a grid at the same time, each side in several levels.

Every block is cut into one part a dimension. Part q visits the dimensions q, q + 1, ..., cyclically, so that the parts are in
distinct dimensions at every time:

    2 x 3, part 0   columns, then rows        part 1   rows, then columns

A side n = b_1 ... b_L is visited level by level, as a grid of L digits of its own. A level is a ring of b nodes on circuits
that stand, b - 1 steps; or direct, a step in which every node sends to the b - 1 others. Every second dimension is visited
with its levels backwards, so it begins with the circuits with which the one before it ended. With k equal sides, one sender
and one receiver of w wavelengths of rate B a dimension, an all-to-all of V takes

    rings     (k (L - 1) + 1) R + k sum (b_l - 1) alpha + V / (floor(w / L) B) sum (b_l - 1) / 2
    direct    a change for every partner, and (1 - 1 / b_l) in place of (b_l - 1) / 2

The wavelengths are those of the whole job: floor(w / L) for each partner of a node, or floor(w / sum (b_l - 1)).

Source: ODDL section 6 for one dimension after the other; several radices are known from Bruck et al. 1997, rotated parts from
Sack and Gropp 2015. On circuits that stand they are our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.oddl import Oddl
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, long_sides, reason_not_linked
from opticcl.schedule._walk import Style, Visit, walk
from opticcl.units import Shape

MOST_ROWS_TRIED = limit("rotated_exchange.MOST_ROWS_TRIED")


def accepts(
    collective: Request, fabric: Fabric, radices: tuple[int, ...] | None = None, rings: bool = True
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radices: of the levels, those of the first side first.
        rings: whether a level is a ring.
    """
    if collective.name != "all_to_all":
        return "it does all_to_all only"
    sides, n = long_sides(fabric, None), fabric.num_nodes
    if len(sides) < 2:
        return "it needs a grid of two or more dimensions; try bruck or mesh"
    levels = _levels_of(sides, radices)
    if levels is None:
        written = "x".join(map(str, radices or ()))
        return f"radices={written} are not factors above 1 of the sides {'x'.join(map(str, sides))}, side by side"
    parts = _Parts(levels, rings)
    if (rows := n * parts.widest_step) > MOST_TRANSFERS:
        return SizeLimit(f"{rows:,} transfers a step are more than {MOST_TRANSFERS:,}; try rings=true")
    for digit, radix in enumerate(parts.radices):
        for ahead in range(1, 2 if rings else radix):
            if reason := reason_not_linked(fabric, np.arange(n), parts.ahead(digit, ahead)):
                return reason
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """On an ODDL: levels of which none has others with as few changes, steps and bytes on the wire."""
    sides, machine = long_sides(fabric, None), fabric.machine
    if collective.name != "all_to_all" or not isinstance(machine, Oddl) or len(sides) < 2:
        return []
    front: list[tuple[tuple[float, ...], tuple[int, ...], bool]] = []
    distinct, skipped = sorted(set(sides)), list[int]()
    for chosen in product(*(_factorisations(side) for side in distinct)):
        levels = tuple(chosen[distinct.index(side)] for side in sides)
        for rings in (True, False)[: 1 + (max(map(max, levels)) > 2)]:
            parts = _Parts(levels, rings)
            width = machine.num_wavelengths // max(map(parts.partners, levels))
            if not width:
                continue
            if (transfers := fabric.num_nodes * parts.rows_a_node) > MOST_ROWS_TRIED:
                skipped.append(transfers)
                continue
            key = (parts.changes, parts.steps_a_stage, max(map(parts.load, levels)) / width)
            if not any(all(x <= y for x, y in zip(other, key, strict=True)) for other, *_ in front):
                front = [one for one in front if not all(x <= y for x, y in zip(key, one[0], strict=True))]
                front.append((key, parts.radices, rings))
    tried: list[dict[str, object] | NotTried] = [
        {"radices": radices, "rings": rings} for _, radices, rings in sorted(front)
    ]
    more = f"{len(skipped):,} choices of radices"
    return tried + ([left_out(min(skipped), MOST_ROWS_TRIED, more)] if skipped else [])


def _factorisations(side: int, largest: int | None = None) -> Iterable[tuple[int, ...]]:
    """Factors above 1 whose product that is, the largest first.

    >>> list(_factorisations(8))
    [(8,), (4, 2), (2, 2, 2)]
    """
    for first in range(min(side, largest or side), 1, -1):
        if first == side:
            yield (side,)
        elif side % first == 0:
            yield from ((first, *rest) for rest in _factorisations(side // first, first))


def _levels_of(sides: tuple[int, ...], radices: tuple[int, ...] | None) -> tuple[tuple[int, ...], ...] | None:
    """Radices of each side, or None if they are no factors of the sides.

    >>> _levels_of((4, 6), (2, 2, 6)), _levels_of((4, 6), None), _levels_of((4, 6), (8, 3))
    (((2, 2), (6,)), ((4,), (6,)), None)
    """
    if radices is None:
        return tuple((side,) for side in sides)
    left, levels = list(radices), list[tuple[int, ...]]()
    for side in sides:
        mine: list[int] = []
        while prod(mine) < side and left and left[0] > 1:
            mine.append(left.pop(0))
        if prod(mine) != side:
            return None
        levels.append(tuple(mine))
    return None if left else tuple(levels)


@register_algorithm("rotated_exchange", accepts, variants)
def rotated_exchange(
    collective: Request, fabric: Fabric, *, radices: Shape | None = None, rings: bool = True
) -> Schedule:
    """All-to-all in a stage for each side: sum (b - 1) steps of rings, or one direct step for each b of the largest side.

    Args:
        collective: all_to_all.
        fabric: the fabric.
        radices: b of the levels, those of the first side first; None: each side is one level.
        rings: whether a level is a ring; else a node sends to all others of the level.
    """
    levels = _levels_of(long_sides(fabric, None), radices)
    assert levels is not None, "accepts has refused them"
    parts = _Parts(levels, rings)
    space = Space(parts.radices)
    style: Style = "ring" if rings else "direct"
    orders = [
        [[Visit((digit,), parts.radices[digit], style=style) for digit in stage] for stage in parts.stages(part)]
        for part in range(len(levels))
    ]
    steps, _ = walk(collective, space, orders, listed="row")
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=steps.owners)
    return Schedule.of("rotated_exchange", chunks, steps, stands=rings and max(map(len, levels)) == 1)


@dataclass(frozen=True)
class _Parts:
    """The parts of all blocks on a grid.

    Args:
        levels: radices of each side, 2 or more each.
        rings: whether a level is a ring.
    """

    levels: tuple[tuple[int, ...], ...]
    rings: bool

    @property
    def radices(self) -> tuple[int, ...]:
        """Of all digits of a node, the first side first."""
        return tuple(b for side in self.levels for b in side)

    @property
    def num_nodes(self) -> int:
        """Product of the radices [count]."""
        return prod(self.radices)

    @property
    def num_chunks(self) -> int:
        """One a node and part [count]."""
        return len(self.levels) * self.num_nodes

    @property
    def widest_step(self) -> int:
        """Transfers of a node in a step, at most [count]."""
        return len(self.levels) * (1 if self.rings else max(self.radices) - 1)

    @property
    def rows_a_node(self) -> int:
        """Transfers of a node in all steps [count]."""
        return len(self.levels) * sum(b - 1 for b in self.radices)

    @property
    def steps_a_stage(self) -> int:
        """Of the longest side [count]."""
        return max(sum(b - 1 for b in side) if self.rings else len(side) for side in self.levels)

    @property
    def changes(self) -> int:
        """Settings of the circuits [count]."""
        if self.rings:
            return len(self.levels) * (max(map(len, self.levels)) - 1) + 1
        return len(self.levels) * max(map(self.partners, self.levels))

    def partners(self, side: tuple[int, ...]) -> int:
        """That a node sends to along a side [count].

        Args: side: radices of its levels.
        """
        return len(side) if self.rings else sum(b - 1 for b in side)

    def load(self, side: tuple[int, ...]) -> float:
        """Messages that a circuit of each level carries, of all parts.

        Args: side: radices of its levels.
        """
        return sum((b - 1) / (2 if self.rings else b) for b in side)

    @cached_property
    def first_digits(self) -> tuple[int, ...]:
        """Number of the first digit of each side."""
        return tuple(int(first) for first in np.cumsum([0, *map(len, self.levels)])[:-1])

    def stages(self, part: int) -> list[tuple[int, ...]]:
        """Digits of each side in the order in which a part visits them; those of every second side backwards."""
        k, orders = len(self.levels), list[tuple[int, ...]]()
        for stage in range(k):
            side = (part + stage) % k
            digits = range(self.first_digits[side], self.first_digits[side] + len(self.levels[side]))
            orders.append(tuple(digits if stage % 2 == 0 else digits[::-1]))
        return orders

    def ahead(self, digit: int, count: int) -> IntArray:
        """The node so far ahead of each along a digit, int64 (nodes,).

        Args:
            digit: number.
            count: nodes ahead.
        """
        node, stride, radix = np.arange(self.num_nodes), prod(self.radices[digit + 1 :]), self.radices[digit]
        at = node // stride % radix
        nodes: IntArray = node + ((at + count) % radix - at) * stride
        return nodes
