"""Collectives as walks over digits.

Ranks are vectors of digits. Each part of the message visits digits in an order of its own; a visit to a digit of radix r is

    direct   one step: to each of the r - 1 others what is theirs
    ring     r - 1 steps to the next one
    both     floor(r / 2) steps to the next and the previous one, which are r / 2 apart from the farthest; for an even r that
             gets half of its chunks from each side
    serial   r - 1 steps, one distance each
    balanced one step: to each of the r - 1 others, those in front ahead and those behind back; what is for the node r / 2 away
             goes half ahead and half back, to two nodes that a later visit leads to the same one

A reduce-scatter visits in order and adds; each visit leaves a node with the chunks that have its digit. An all-gather is the
reversal. An all-to-all visits with contributions kept apart, an all-reduce is a reduce-scatter and an all-gather. Parts visit
different digits at the same time: stages begin together.

    halving and doubling      digits 2, 2, ..., 2        direct
    all pairs                 one digit                  direct
    a ring                    one digit                  ring
    rings on a grid           a digit a side             ring, a part a side
    SiPCO                     a digit a level            direct, a part a level

`depth` visits divide the chunks of a part; in the visits behind them whole chunks are exchanged and added, and not gathered.
A visit may pass its blocks on in pieces, some of the units of each chunk at a time: where sides differ, blocks on the shorter
ones are longer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import lcm, prod
from operator import itemgetter
from typing import Literal

import numpy as np

from opticcl.collective import Request
from opticcl.ir import IntArray, Op
from opticcl.ir.limits import limit
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps, join

__all__ = ["Visit", "levels", "visits", "walk"]

Style = Literal["direct", "ring", "both", "serial", "balanced"]

GATHERS = ("all_reduce", "all_gather", "barrier")


@dataclass(frozen=True)
class Visit:
    """A visit of a part of the message to a digit, or to several at once.

    Args:
        digits: visited at once, direct; one, but for fields of several digits.
        radix: values of the digits together, or of the part of one digit that is visited [count].
        stride: of the values of one digit, where it is visited in several levels; sums carry, as along a ring.
        style: how.
        also: digits that a sender and its receiver differ in by as much, of each of `digits`.
    """

    digits: tuple[int, ...]
    radix: int
    stride: int = 1
    style: Style = "direct"
    also: tuple[int, ...] = ()

    def fields(self, radices: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
        """Fields of the numbers of chunks that are divided in this visit."""
        if len(self.digits) == 1:
            return ((self.digits[0], self.stride, self.radix),)
        return tuple((digit, 1, radices[digit]) for digit in self.digits)


Order = Sequence[Sequence[Visit]]
"""Visits of a part, stage by stage; the parts begin a stage together."""


def visits(radices: Sequence[int], order: Sequence[int], style: Style = "direct") -> Order:
    """A visit a stage, to whole digits in an order, without those of radix 1.

    Args:
        radices: of the digits.
        order: digits, as they are visited.
        style: of every visit.
    """
    return tuple((Visit((digit,), radices[digit], style=style),) for digit in order if radices[digit] > 1)


def levels(digit: int, radices: Sequence[int], style: Style = "direct") -> Order:
    """A visit a stage, to one digit in several levels, the one of the least stride first.

    Args:
        digit: visited.
        radices: of its levels.
        style: of every visit.
    """
    possible = (Visit((digit,), radix, prod(radices[:at]), style) for at, radix in enumerate(radices))
    return tuple((visit,) for visit in possible if visit.radix > 1)


Listed = Literal["part", "digit", "row"]

Pieces = Callable[[int, int], int]
"""(part, stage) -> pieces that its blocks are cut into [count]."""

KEPT_RANKS = limit("walk.KEPT_RANKS")


def walk(
    collective: Request,
    space: Space,
    orders: Sequence[Order],
    *,
    depth: int | None = None,
    units: int | Sequence[int] = 1,
    pieces: Pieces | None = None,
    slices: bool = False,
    listed: Listed = "part",
) -> tuple[Steps, int | None]:
    """The steps of a collective whose parts visit digits.

    Args:
        collective: all_reduce, reduce_scatter, all_gather, all_to_all or barrier; of a reduce, the sums at the owners.
        space: digits of the ranks.
        orders: visits of each part, stage by stage, in the order of a reduce-scatter.
        depth: visits of each part that divide its chunks [count]; None: all.
        units: chunks of a part with equal digits, at least, of every part or of each; all numbers of pieces divide it [count].
        pieces: that blocks are cut into; None: none is.
        slices: whether every unit is a transfer of its own; they are numbered first.
        listed: what stands together in the list of a step: what all ranks send of a part, or along a digit, the last digit
            first; or in one row.
    Returns: the steps, and the phase in front of which owners have the sums; None where no chunk has an owner.
    """
    many = units if isinstance(units, int) else tuple(units)
    given = tuple(tuple(tuple(stage) for stage in order) for order in orders)
    make = _walked if pieces is None and space.num_ranks <= KEPT_RANKS else _walked.__wrapped__
    return make(collective.name, space, given, depth, many, pieces, slices, listed)


@lru_cache(256)
def _walked(
    name: str,
    space: Space,
    orders: Sequence[Order],
    depth: int | None,
    units: int | Sequence[int],
    pieces: Pieces | None,
    slices: bool,
    listed: Listed,
) -> tuple[Steps, int | None]:
    """As `walk`, which other machines of as many nodes ask again."""
    flat = [[visit for stage in order for visit in stage] for order in orders]
    deep = [len(order) if depth is None else min(depth, len(order)) for order in flat]
    divided = [prod(visit.radix for visit in order[:many]) for order, many in zip(flat, deep, strict=True)]
    each = [units] * len(flat) if isinstance(units, int) else units
    chunks = lcm(*divided)  # parts of as many units are equally large
    parts = tuple(
        _part(space, order[:many], count * chunks // one, slices)
        for order, many, one, count in zip(flat, deep, divided, each, strict=True)
    )
    made = _Walk(space, parts, orders, flat, deep, pieces or (lambda part, stage: 1), slices, listed)
    phases, cut = list[Phase](), None
    stages = range(max(map(len, orders), default=0))
    if name != "all_gather":
        for stage in stages:
            phases += made.stage(stage, Op.MOVE if name == "all_to_all" else Op.REDUCE)
        cut = len(phases)
    if name in GATHERS:
        for stage in reversed(stages):
            phases += made.stage(stage, Op.COPY)
    owned = all(many == len(order) for order, many in zip(flat, deep, strict=True))
    return Steps(space, parts, phases), cut if owned and name in ("all_reduce", "reduce") else None


def _part(space: Space, order: Sequence[Visit], units: int, slices: bool) -> MessagePart:
    """A part whose chunks are numbered as they are divided, so that what a node passes on is a range.

    Args:
        space: digits of the ranks.
        order: visits that divide the chunks.
        units: chunks with equal digits [count].
        slices: whether units are numbered first.
    """
    fields = tuple(field for visit in order for field in visit.fields(space.radices))
    unit = (UNIT, 1, units)
    return MessagePart((unit, *fields) if slices else (*fields, unit), units)


@dataclass(frozen=True)
class _Moment:
    """Equal steps of a visit.

    Args:
        count: steps.
        move: of each row, values from sender to receiver, int64 (n,).
        target: of each row, values from the sender to the node that the chunks are for, or from, in the first of the steps.
        shift: added to `target` from step to step.
        met: nodes of the digit whose contributions are carried in the first of the steps [count].
        meets: added to `met` from step to step.
        piece, pieces: which of how many pieces.
    """

    count: int
    move: IntArray
    target: IntArray
    shift: int = 0
    met: int = 1
    meets: int = 0
    piece: int = 0
    pieces: int = 1

    def behind(self, steps: int, count: int) -> _Moment:
        """Some of its steps: that many, behind others."""
        met = self.met + steps * self.meets
        return replace(self, count=count, target=self.target + steps * self.shift, met=met)


def _moments(visit: Visit, pieces: int, gathers: bool) -> list[tuple[_Moment, ...]]:
    """What a visit does, towards the owners of chunks or from them: one after the other, and what takes place side by side.

    Args:
        visit: to a digit.
        pieces: that blocks are cut into [count].
        gathers: whether from the owners.
    """
    r = visit.radix
    others, one = np.arange(1, r), np.ones(1, np.int64)
    if visit.style == "ring" and pieces == 1:
        return [(_Moment(r - 1, one, one * (0 if gathers else -1), -1, meets=1),)]
    if visit.style == "ring":
        turns = [divmod(step, pieces) for step in range((r - 1) * pieces)]
        return [
            (_Moment(1, one, one * (-turn if gathers else -turn - 1), piece=piece, pieces=pieces),)
            for turn, piece in turns
        ]
    if visit.style == "serial":
        distances = others[::-1] if gathers else others
        return [(_Moment(1, one * v, one * (0 if gathers else v)),) for v in distances.tolist()]
    if visit.style == "balanced":
        return [_balanced(r, gathers)]
    if visit.style == "both":
        moments = _both_ways(r, pieces)
        return moments if gathers else [tuple(map(_backwards, ways)) for ways in reversed(moments)]
    return [(_Moment(1, others, np.zeros_like(others) if gathers else others),)]


def _balanced(r: int, gathers: bool) -> tuple[_Moment, ...]:
    """One step to all others, to the farther half of them back; the opposite of an even number gets half from each side.

    Args:
        r: values of the digit [count].
        gathers: whether from the owners.
    """
    values = np.arange(1, r)
    values, opposite = values[2 * values != r], values[2 * values == r]
    ways = [(values, np.where(2 * values < r, values, values - r), 0, 1)] if len(values) else []
    ways += [(opposite, way * opposite, piece, 2) for piece, way in enumerate((1, -1)) if len(opposite)]
    return tuple(
        _Moment(1, move, np.zeros_like(to) if gathers else to, piece=piece, pieces=pieces)
        for to, move, piece, pieces in ways
    )


def _both_ways(r: int, pieces: int) -> list[tuple[_Moment, ...]]:
    """An all-gather along a ring of r nodes: blocks go to the next node, and to the previous one.

    Args:
        r: nodes [count].
        pieces: that blocks are cut into, 1 or an even number [count].
    """
    one, whole = np.ones(1, np.int64), (r - 1) * pieces // 2
    if pieces > 1:  # the pieces that go back are counted from the last
        turns = [divmod(step, pieces) for step in range(whole)]
        return [
            (
                _Moment(1, one, -turn * one, piece=piece, pieces=pieces),
                _Moment(1, -one, turn * one, piece=pieces - 1 - piece, pieces=pieces),
            )
            for turn, piece in turns
        ]
    moments: list[tuple[_Moment, ...]]
    moments = [(_Moment(whole, one, 0 * one, -1), _Moment(whole, -one, 0 * one, 1))] if whole else []
    if r % 2 == 0:  # the opposite node: one half from each side
        moments.append(
            (_Moment(1, one, -whole * one, piece=0, pieces=2), _Moment(1, -one, whole * one, piece=1, pieces=2))
        )
    return moments


def _backwards(moment: _Moment) -> _Moment:
    """The reversal: the receiver sends what it got, the last step first."""
    last = moment.target + (moment.count - 1) * moment.shift
    return replace(moment, move=-moment.move, target=last - moment.move, shift=-moment.shift)


@dataclass(frozen=True)
class _Walk:
    """Parts that visit digits.

    Args:
        space: digits of the ranks.
        parts: of the message.
        orders: visits of each part, stage by stage.
        flat: visits of each part.
        deep: visits of each part that divide its chunks [count].
        pieces: that blocks are cut into.
        slices: whether every unit is a transfer of its own.
        listed: what stands together in the list of a step.
    """

    space: Space
    parts: tuple[MessagePart, ...]
    orders: Sequence[Order]
    flat: Sequence[Sequence[Visit]]
    deep: Sequence[int]
    pieces: Pieces
    slices: bool
    listed: Listed

    def stage(self, stage: int, op: Op) -> Iterator[Phase]:
        """The phases of a stage, which end where what a part does changes.

        Args:
            stage: its number.
            op: REDUCE or MOVE towards owners, COPY from them.
        """
        begins: dict[int, list[tuple[int, int, tuple[_Moment, ...]]]] = {}
        for number, order in enumerate(self.orders):
            if stage < len(order) and (timed := self._in_time(number, stage, op == Op.COPY)):
                begins[number] = timed
        longest = max((some[-1][0] + some[-1][2][0].count for some in begins.values()), default=0)
        for number, some in begins.items():  # what is a reversal ends with the stage, as its original begins with it
            if op != Op.COPY and self.orders[number][stage][0].style == "both":
                rest = longest - some[-1][0] - some[-1][2][0].count
                begins[number] = [(at + rest, visit, ways) for at, visit, ways in some]
        ends = {at + more for some in begins.values() for at, _, ways in some for more in (0, ways[0].count)} - {0}
        for first, end in pairwise([0, *sorted(ends)]):
            rows: list[tuple[int, PhaseRows]] = []
            for number, some in begins.items():  # one after the other in each part
                at, visit, ways = some[bisect_right(some, first, key=itemgetter(0)) - 1]
                if at <= first < at + ways[0].count:
                    mine = [way.behind(first - at, end - first) for way in ways]
                    place = -self.flat[number][visit].digits[0] if self.listed == "digit" else 0
                    rows += [(place + way, self.rows(number, visit, one, op)) for way, one in enumerate(mine)]
            in_order = [one for _, one in sorted(rows, key=lambda row: row[0])]
            bundles = tuple(int(at) for at in np.cumsum([0, *map(len, in_order)])[:-1])
            joined = join(in_order)
            moves = (True,) * len(self.space.radices)
            yield Phase(joined, moves, end - first, tuple(range(len(joined))) if self.listed == "row" else bundles)

    def _in_time(self, number: int, stage: int, gathers: bool) -> list[tuple[int, int, tuple[_Moment, ...]]]:
        """What a part does in a stage: first step, number of the visit, what takes place side by side.

        Args:
            number: of the part.
            stage: its number.
            gathers: whether from the owners.
        """
        before = sum(len(visits) for visits in self.orders[number][:stage])
        numbers = range(before, before + len(self.orders[number][stage]))
        timed_visits, at = [], 0
        for visit in reversed(numbers) if gathers else numbers:
            if gathers and visit >= self.deep[number]:
                continue
            for ways in _moments(self.flat[number][visit], self.pieces(number, stage), gathers):
                timed_visits.append((at, visit, ways))
                at += ways[0].count
        return timed_visits

    def rows(self, number: int, at: int, moment: _Moment, op: Op) -> PhaseRows:
        """Transfers of the node of digits 0 for one part.

        Args:
            number: of the part.
            at: number of its visit.
            moment: steps of the visit.
            op: of the receivers.
        """
        radices, units = np.array(self.space.radices), self.parts[number].units
        order, deep, n = self.flat[number], self.deep[number], len(moment.move)
        visit = order[at]
        dst, lo, shift = (np.zeros((n, len(radices)), np.int64) for _ in range(3))
        fixed = np.ones(len(radices), np.int64)  # values of each digit that earlier visits, and this one, distinguish
        for earlier in order[: min(deep, at + 1)]:
            for digit in earlier.digits:
                fixed[digit] *= radices[digit] if len(earlier.digits) > 1 else earlier.radix
        for place, digit in enumerate(visit.digits):
            together = len(visit.digits) > 1  # values count all of the digits
            below = prod(int(radices[one]) for one in visit.digits[place + 1 :])
            for column, values in ((dst, moment.move), (lo, moment.target)):
                column[:, digit] = values // below % radices[digit] if together else values * visit.stride
            if visit.also:
                dst[:, visit.also[place]] = dst[:, digit]
            shift[:, digit] = 0 if together else moment.shift * visit.stride
        if at >= deep:  # whole chunks
            lo[:], shift[:] = 0, 0
        met = prod(one.radix for one in order[:at]) if op == Op.MOVE else 0
        some, step, first = units // moment.pieces, moment.pieces, np.full(1, moment.piece)
        if self.slices:  # neighbours, each a transfer
            piece = moment.piece * some + np.arange(some)
            dst, lo, shift = (np.repeat(column, some, axis=0) for column in (dst, lo, shift))
            some, step, first = 1, 1, np.tile(piece, n)
        return PhaseRows.of(
            len(radices),
            0,
            dst % radices,
            lo % radices,
            radices // fixed,
            np.where(radices // fixed > 1, fixed, 1),
            part=number,
            unit_lo=first if len(first) > 1 else first[0],
            unit_count=some,
            unit_step=step,
            op=int(op),
            parts=met * moment.met if met else 1,
            shift=shift,
            parts_step=met * moment.meets,
        )
