"""What phases are made of: digits of ranks, parts of the message, rows of representatives.

The terms are those of `opticcl.ir.phases`, which has the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir._common import IntArray
from opticcl.ir.transfers import Op, Transfers

__all__ = [
    "UNIT",
    "MessagePart",
    "Phase",
    "PhaseRows",
    "Space",
    "StepFunction",
    "join",
    "malformed",
    "part",
    "shifted",
    "translated",
]

UNIT = -1
"""Number of the field of a chunk's unit, in place of a digit."""

ROWS_AT_ONCE = 1 << 16
"""Of phases that are checked together [count]."""


class Space:
    """Ranks as vectors of digits.

    Args:
        radices: of the digits, the most significant first; their product is the number of ranks.
        order: rank at each place, a permutation, int (num_ranks,); None: the rank is the place, which an order
            that changes nothing becomes.
    Raises: ParameterError: a radix below 1, or an order that is no permutation.
    """

    def __init__(self, radices: tuple[int, ...], order: IntArray | None = None) -> None:
        if not radices or min(radices) < 1:
            raise ParameterError(f"schedule: digits of radices {radices}; 1 or more each")
        self.radices = radices
        if order is not None:
            every = np.arange(self.num_ranks)
            if not np.array_equal(np.sort(order), every):
                raise ParameterError(f"schedule: an order that is not a permutation of {self.num_ranks:,} ranks")
            order = None if np.array_equal(order, every) else order
        self.order = order

    def __repr__(self) -> str:
        return f"Space({self.radices}{'' if self.order is None else ', order'})"

    @cached_property
    def num_ranks(self) -> int:
        """Product of the radices [count]."""
        return prod(self.radices)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Places between two that differ by one in a digit, of each digit."""
        return tuple(prod(self.radices[d + 1 :]) for d in range(len(self.radices)))

    def digits(self, places: IntArray) -> IntArray:
        """Digits of places, int64 (n, digits)."""
        digits_of_place: IntArray = (
            np.asarray(places, np.int64)[:, None] // np.array(self.strides) % np.array(self.radices)
        )
        return digits_of_place

    def numbers(self, digits: IntArray) -> IntArray:
        """Places with these digits, int64 (n,).

        Args: digits: int (n, digits).
        """
        places: IntArray = digits[:, 0] if len(self.radices) == 1 else digits @ np.array(self.strides)
        return places

    def ranks(self, places: IntArray) -> IntArray:
        """Rank at each place."""
        return places if self.order is None else self.order[places]

    @cached_property
    def places(self) -> IntArray | None:
        """Place of each rank, int64 (num_ranks,); None: the same number."""
        return None if self.order is None else np.argsort(self.order)

    def without(self, places: IntArray, moves: Sequence[bool]) -> IntArray:
        """Places with 0 in some digits.

        Args:
            places: any.
            moves: whether each digit becomes 0.
        """
        if not any(moves):
            return places
        return np.zeros_like(places) if all(moves) else self.digits(places) * ~np.array(moves) @ np.array(self.strides)

    def images(self, src: int, dst: int, moves: Sequence[bool]) -> tuple[IntArray, IntArray]:
        """Ranks of a pair under all translations of some digits, int (translations,) each.

        Args:
            src, dst: places of the pair.
            moves: whether translations move each digit.
        """
        grid, (begin, end) = np.arange(self.num_ranks).reshape(self.radices), self.digits(np.array([src, dst])).tolist()
        senders, receivers = (
            grid[tuple(slice(None) if moved else at for moved, at in zip(moves, digits, strict=True))]
            for digits in (begin, end)
        )
        by = [a - b for moved, a, b in zip(moves, begin, end, strict=True) if moved]
        ahead = np.roll(receivers, tuple(by), tuple(range(len(by))))
        return self.ranks(senders.ravel()), self.ranks(ahead.ravel())

    def images_of_pairs(self, src: IntArray, dst: IntArray, moves: Sequence[bool]) -> tuple[IntArray, IntArray]:
        """Ranks of several pairs under all translations of some digits, int (pairs, translations) each.

        Args: src, dst, moves: as of `images`, places of each pair.
        """
        if not any(moves):
            return self.ranks(src)[:, None], self.ranks(dst)[:, None]
        images = []
        for digits in map(self.digits, (src, dst)):
            image = np.zeros((len(digits), 1), np.int64)
            for d, (radix, stride) in enumerate(zip(self.radices, self.strides, strict=True)):
                values = (digits[:, d, None] + np.arange(radix if moves[d] else 1)) % radix
                image = (image[:, :, None] + values[:, None, :] * stride).reshape(len(digits), -1)
            images.append(self.ranks(image))
        return images[0], images[1]

    def translation(self, images: IntArray) -> IntArray | None:
        """By how much a permutation translates each digit, int64 (digits,); None where it is no translation.

        Args: images: rank that each rank is taken to, int (num_ranks,).
        """
        first = images[:1] if self.order is None or self.places is None else self.places[images[self.order[:1]]]
        by: IntArray = self.digits(first)[0]
        ranks, ahead = self.images(0, int(first[0]), (True,) * len(self.radices))
        return by if np.array_equal(images[ranks], ahead) else None

    def translations(self, moves: Sequence[bool]) -> IntArray:
        """Every translation of the digits that move, the last digit fastest, int64 (translations, digits)."""
        return _all_values(tuple(radix if moved else 1 for radix, moved in zip(self.radices, moves, strict=True)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        mine, its = self.order, other.order
        same = mine is its or (mine is not None and its is not None and np.array_equal(mine, its))
        return self.radices == other.radices and same

    def __hash__(self) -> int:
        return hash(self.radices)


@lru_cache(2)
def _all_values(radices: tuple[int, ...]) -> IntArray:
    """All values of digits, the last one fastest, int64 (values, digits); those of a digit are contiguous."""
    values = np.indices(radices, np.int64).reshape(len(radices), -1).T
    values.flags.writeable = False
    return values


@dataclass(frozen=True)
class MessagePart:
    """Chunks with labels of their own.

    Args:
        fields: (digit, stride, radix) of each place value of a chunk's number, the most significant first: its number has
            digit // stride % radix there. The digit -1 is the unit. A digit may be split into several fields.
        units: chunks with equal digits [count].
    """

    fields: tuple[tuple[int, int, int], ...]
    units: int = 1

    @cached_property
    def size(self) -> int:
        """Chunks of the part [count]."""
        return prod(radix for _, _, radix in self.fields)

    @cached_property
    def digits(self) -> tuple[int, ...]:
        """Digits that labels have, ascending."""
        return tuple(sorted({digit for digit, _, _ in self.fields if digit != UNIT}))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """What a value of one counts in the number of a chunk, of each field."""
        return tuple(prod(radix for _, _, radix in self.fields[at + 1 :]) for at in range(len(self.fields)))

    def labels(self, numbers: IntArray, num_digits: int) -> tuple[IntArray, IntArray]:
        """Digits of chunks, int64 (n, digits), 0 where the label has none, and their units, int64 (n,).

        Args:
            numbers: of chunks of the part.
            num_digits: of places [count].
        """
        label = np.zeros((len(numbers), num_digits + 1), np.int64)
        for (digit, stride, radix), weight in zip(self.fields, self.weights, strict=True):
            label[:, digit] += numbers // weight % radix * stride
        return label[:, :num_digits], label[:, num_digits]

    def numbers(self, label: IntArray, unit: IntArray | int = 0) -> IntArray:
        """Numbers of chunks of the part, int64 (n,); the inverse of `labels`.

        Args:
            label: digits, int (n, digits).
            unit: of each.
        """
        chunk = np.zeros(len(label), np.int64)
        for (digit, stride, radix), weight in zip(self.fields, self.weights, strict=True):
            chunk += (unit if digit == UNIT else label[:, digit]) // stride % radix * weight
        return chunk


def part(radices: Sequence[int], order: Sequence[int], units: int = 1, *, units_first: bool = False) -> MessagePart:
    """A part whose chunks are numbered by whole digits.

    Args:
        radices: of all digits of places.
        order: digits of the label, the most significant first.
        units: chunks with equal digits [count].
        units_first: whether the unit is the most significant; else it is the least.
    """
    whole = tuple((digit, 1, radices[digit]) for digit in order)
    unit = ((UNIT, 1, units),)
    return MessagePart((*unit, *whole) if units_first else (*whole, *unit), units)


@dataclass(frozen=True, eq=False)
class PhaseRows:
    """Transfers of representatives, as columns; those of digits have a value for each digit of a place.

    Boxes of labels are progressions: `lo`, lo + step, ..., `count` of them, modulo the radix, in every digit; units likewise
    without the modulo. A label has only the digits of its part; the others are ignored.

    Args:
        src, dst: places of sender and receiver, digits (n, digits); src is 0 in digits that the phase moves.
        part: number of the part, (n,).
        lo, count, step: of the box, (n, digits).
        unit_lo, unit_count, unit_step: of the units, (n,).
        op: `Op`, (n,).
        parts: contributions of each chunk carried, (n,).
        shift: added to `lo` from step to step, (n, digits).
        unit_shift: added to `unit_lo` from step to step, (n,); a unit that the part does not have is not carried.
        parts_step: added to `parts` from step to step, (n,).
    """

    src: IntArray
    dst: IntArray
    part: IntArray
    lo: IntArray
    count: IntArray
    step: IntArray
    unit_lo: IntArray
    unit_count: IntArray
    unit_step: IntArray
    op: IntArray
    parts: IntArray
    shift: IntArray
    unit_shift: IntArray
    parts_step: IntArray

    @classmethod
    def of(
        cls,
        num_digits: int,
        src: Any,
        dst: Any,
        lo: Any,
        count: Any = 1,
        step: Any = 1,
        *,
        part: Any = 0,
        unit_lo: Any = 0,
        unit_count: Any = 1,
        unit_step: Any = 1,
        op: Any = Op.COPY,
        parts: Any = 1,
        shift: Any = 0,
        unit_shift: Any = 0,
        parts_step: Any = 0,
    ) -> PhaseRows:
        """Rows from values that broadcast: columns of digits to (n, num_digits), others to (n,).

        Args:
            num_digits: of places [count].
            src, dst, lo, count, step, shift: of every digit: scalars, (digits,) or (n, digits).
            part, unit_lo, unit_count, unit_step, op, parts, unit_shift, parts_step: scalars or (n,).
        """
        wide = [np.asarray(value, np.int64) for value in (src, dst, lo, count, step, shift)]
        narrow = [
            np.asarray(value, np.int64)
            for value in (part, unit_lo, unit_count, unit_step, op, parts, unit_shift, parts_step)
        ]
        lengths = {len(value) for value in wide if value.ndim == 2} | {len(value) for value in narrow if value.ndim}
        n = max(lengths, default=1) if 0 not in lengths else 0
        a, b, c, d, e, shifts = (_column(value, (n, num_digits)) for value in wide)
        p, u, v, w, o, q, x, y = (_column(value, (n,)) for value in narrow)
        return cls(a, b, p, c, d, e, u, v, w, o, q, shifts, x, y)

    def __len__(self) -> int:
        return len(self.op)

    def __repr__(self) -> str:
        return f"<Rows {len(self):,}>"

    @property
    def apart(self) -> IntArray:
        """Whether sender and receiver of each row differ, bool (n,); else it is no transfer, and steps do not list it."""
        differ: IntArray = (self.src != self.dst).any(axis=1)
        return differ

    def take(self, rows: Any) -> PhaseRows:
        """The given rows (indices, slice or mask); of columns whose rows are one value, that remains the only one stored."""
        src, columns = self.src[rows], (getattr(self, field.name) for field in fields(self)[1:])
        return PhaseRows(
            src, *(c[rows] if c.strides[0] else np.broadcast_to(c[:1], (len(src), *c.shape[1:])) for c in columns)
        )


def _column(value: IntArray, shape: tuple[int, ...]) -> IntArray:
    """A value as a column of that shape."""
    if value.shape == shape:
        return value
    return np.broadcast_to(value, shape) if value.ndim else _equal_values(int(value), shape)


@lru_cache(1 << 10)
def _equal_values(value: int, shape: tuple[int, ...]) -> IntArray:
    """A column of equal values, of which one is stored."""
    return np.broadcast_to(np.int64(value), shape)


def join(many: Sequence[PhaseRows]) -> PhaseRows:
    """Several lists of rows as one, in order."""
    if len(many) == 1:
        return many[0]
    return PhaseRows(*(np.concatenate([getattr(rows, field.name) for rows in many]) for field in fields(PhaseRows)))


StepFunction = Callable[[int], Transfers]
"""The transfers of each step of a phase, for phases whose transfers follow from a formula that is no translation."""


@dataclass(frozen=True, eq=False)
class Phase:
    """Consecutive steps that one list of rows defines.

    Args:
        rows: of representatives; or a function of the step of the phase, of which no digit moves.
        moves: whether translations move each digit; all others stay. (): none moves.
        count: steps, 1 or more [count].
        bundles: first row of each bundle, ascending, the first one 0: in the list of a step bundles follow each other, in a
            bundle the senders, and of a sender the rows.
        same_but_chunks: of a function of the step, whether its steps differ in the numbers of chunks alone.
        sends: of a function of the step, whether every step is known to have transfers.
        paths: that rows state, where no digit moves: links end to end, and where the path of each row begins, int (rows + 1,);
            an empty one states none. None: no row states a path. Those of a function are in its transfers.
    """

    rows: PhaseRows | StepFunction
    moves: tuple[bool, ...] = ()
    count: int = 1
    bundles: tuple[int, ...] = (0,)
    same_but_chunks: bool = False
    sends: bool = False
    paths: tuple[IntArray, IntArray] | None = None

    @cached_property
    def digest(self) -> bytes | None:
        """Of all that defines the steps, beside the digits of the ranks and the parts of the message; None for a function."""
        rows = self.rows
        if not isinstance(rows, PhaseRows):
            return None
        hashed = blake2b(repr((len(rows), self.moves, self.count, len(self.bundles))).encode(), digest_size=16)
        hashed.update(np.array(self.bundles, np.int64).tobytes())
        for column in self.paths or ():
            hashed.update(b"path" + np.asarray(column, np.int64).tobytes())
        for column in (getattr(rows, field.name) for field in fields(rows)):
            equal = column.size > 0 and (not any(column.strides) or (column == column.flat[0]).all())
            hashed.update(b"equal" if equal else b"each")
            hashed.update((column.flat[:1] if equal else column).astype(np.int64, copy=False).tobytes())
        return hashed.digest()

    @property
    def listed(self) -> bool:
        """Whether the rows are the transfers themselves."""
        return not any(self.moves)

    def in_groups(self, count: int, num_ranks: int) -> Phase:
        """The same with a digit before the others that counts groups; see `Steps.in_groups`.

        Args:
            count: of the groups.
            num_ranks: of a group [count].
        """
        rows = self.rows
        if self.paths is not None:
            raise _paths_of_one_group()
        if not isinstance(rows, PhaseRows):
            return replace(self, rows=_InGroups(rows, count, num_ranks))
        columns = {name: np.insert(getattr(rows, name), 0, 0, axis=1) for name in ("src", "dst", "lo", "shift")}
        ones = {name: np.insert(getattr(rows, name), 0, 1, axis=1) for name in ("count", "step")}
        moves = self.moves or (False,) * rows.src.shape[1]
        return replace(self, rows=replace(rows, **columns, **ones), moves=(True, *moves))


def _paths_of_one_group() -> UnsupportedError:
    """The error for stated paths in several groups."""
    return UnsupportedError("groups: transfers that state paths have those of one group; take an algorithm without")


@dataclass(frozen=True)
class _InGroups:
    """The transfers of a step function in several groups of ranks, group by group.

    Args:
        function: of one group.
        count: of the groups.
        num_ranks: of a group [count].
    """

    function: StepFunction
    count: int
    num_ranks: int

    def __call__(self, k: int) -> Transfers:
        one = self.function(k)
        if one.path is not None:
            raise _paths_of_one_group()
        first = np.repeat(np.arange(self.count) * self.num_ranks, len(one))
        every = one.take(np.tile(np.arange(len(one)), self.count))
        return replace(every, src=(every.src + first).astype(np.int32), dst=(every.dst + first).astype(np.int32))


def translated(space: Space, rows: PhaseRows, by: IntArray) -> PhaseRows:
    """Images of rows, each under a translation of its own.

    Args:
        space: digits of the places.
        rows: any.
        by: added to the digits of each row, int (n, digits).
    """
    radices = np.array(space.radices)
    src, dst, lo = ((column + by) % radices for column in (rows.src, rows.dst, rows.lo))
    return replace(rows, src=src, dst=dst, lo=lo)


def shifted(rows: PhaseRows, k: int, space: Space) -> PhaseRows:
    """Rows as they are in step k, of one step.

    Args:
        rows: of a phase.
        k: step of the phase.
        space: digits of the places.
    """
    wide, narrow = _equal_values(0, rows.lo.shape), _equal_values(0, rows.op.shape)
    return replace(
        rows,
        lo=(rows.lo + k * rows.shift) % np.array(space.radices) if rows.shift.any() else rows.lo,
        unit_lo=rows.unit_lo + k * rows.unit_shift,
        parts=rows.parts + k * rows.parts_step if rows.parts_step.any() else rows.parts,
        shift=wide,
        unit_shift=narrow,
        parts_step=narrow,
    )


def malformed(space: Space, parts: Sequence[MessagePart], phases: Sequence[Phase]) -> str | None:
    """The first phase that breaks a rule, without which it defines no transfers, and the rule; None where none breaks any.

    Args:
        space: digits of the places.
        parts: of the message.
        phases: to be checked.
    """
    num_digits = len(space.radices)
    for number, phase in enumerate(phases):
        if phase.count < 1:
            return f"phase {number}: {phase.count} steps; 1 or more"
        if phase.moves and len(phase.moves) != num_digits:
            return f"phase {number}: {len(phase.moves)} digits move or stay; there are {num_digits}"
        if not isinstance(phase.rows, PhaseRows) and not phase.listed:
            return f"phase {number}: a function of the step, of which no digit moves"
        if phase.paths is not None and not _a_path_for_each(phase):
            return f"phase {number}: paths of rows that translations move, or not one for each row"
    with_rows = [(number, phase.rows) for number, phase in enumerate(phases) if isinstance(phase.rows, PhaseRows)]
    before = np.cumsum([0, *(len(rows) for _, rows in with_rows)])
    moves = np.array([phase.moves or (False,) * num_digits for phase in phases])
    steps = np.array([phase.count for phase in phases])
    at = 0
    while at < len(with_rows) and before[at] < before[-1]:
        end = max(at + 1, int(np.searchsorted(before, before[at] + ROWS_AT_ONCE, "right")) - 1)
        rows = join([rows for _, rows in with_rows[at:end]])
        of_phase = np.repeat([number for number, _ in with_rows[at:end]], np.diff(before[at : end + 1]))
        for broken, rule in _rules(space, parts, rows, moves[of_phase], steps[of_phase]):
            if broken.any():
                return f"phase {of_phase[broken.argmax()]}: {rule}"
        at = end
    return None


def _a_path_for_each(phase: Phase) -> bool:
    """Whether a phase has rows that do not move, and its paths are one for each of them."""
    assert phase.paths is not None
    hops, offsets = phase.paths
    if not isinstance(phase.rows, PhaseRows) or not phase.listed or len(offsets) != len(phase.rows) + 1:
        return False
    return offsets[0] == 0 and offsets[-1] == len(hops) and not (np.diff(offsets) < 0).any()


def _rules(
    space: Space, parts: Sequence[MessagePart], rows: PhaseRows, moves: IntArray, steps: IntArray
) -> Iterator[tuple[Any, str]]:
    """Whether each row breaks a rule, bool (n,), and the rule.

    Args:
        space: digits of the places.
        parts: of the message.
        rows: of some phases.
        moves: whether the phase of each row moves each digit, bool (n, digits).
        steps: of the phase of each row, int (n,).
    """
    radices = np.array(space.radices)
    outside = [(ends < 0) | (ends >= radices) for ends in (rows.src, rows.dst)]
    yield (outside[0] | outside[1]).any(axis=1), "a digit of a sender or a receiver is not below its radix"
    yield ((rows.src != 0) & moves).any(axis=1), "a sender is not 0 in a digit that moves"
    yield (rows.op < 0) | (rows.op > max(Op)), "an operation that does not exist"
    yield (rows.part < 0) | (rows.part >= len(parts)), "a part of the message that does not exist"
    still = rows.unit_shift == 0
    yield (rows.parts_step != 0) & ~still, "contributions that grow in number, of units that shift"
    ends = rows.parts + (steps - 1) * rows.parts_step
    yield np.minimum(rows.parts, ends) < 1, "fewer than one contribution"
    inside = np.array([[d in one.digits for d in range(len(radices))] for one in parts])[rows.part]
    whole = np.array([[(d, 1, r) in one.fields for d, r in enumerate(space.radices)] for one in parts])[rows.part]
    units = np.array([one.units for one in parts])[rows.part]
    count, step = rows.count, rows.step
    odd: IntArray = (rows.lo < 0) | (rows.lo >= radices) | (count < 1) | (step < 1) | ((count - 1) * step >= radices)
    yield (odd & inside).any(axis=1), "a box that is not within the radices of its digits"
    last = rows.unit_lo + (rows.unit_count - 1) * rows.unit_step
    missing = still & ((rows.unit_lo < 0) | (last >= units))
    yield (rows.unit_count < 1) | (rows.unit_step < 1) | missing, "units that the part does not have"
    wide = inside & (count > 1) & (count * step != radices)
    no_range = (wide & ((step > 1) | ~whole)).any(axis=1) | (wide.sum(axis=1) > 1)
    yield no_range, "a box whose chunks are not a range; list its labels one by one"
    yield ~still & (rows.unit_count > 1), "a shift of several units; shift one a row"
    turned = (steps > 1) & ((rows.shift != 0) & inside & ~moves).any(axis=1)
    yield turned, "a shift of a digit that does not move"
