"""Steps of a schedule as phases: transfers of representatives, and the translations of digits that make all others of them.

    place     a rank in coordinates: a vector of digits
    label     of a chunk: some of the same digits, and a unit
    row       a transfer: from a place to a place, the chunks whose labels lie in a box, an operation
    phase     rows, the digits that translations move, and a number of steps

A step has every image of every row: the digits of its places and of its labels moved by the same translation. From one step
of a phase to the next, boxes move by a shift. Translations are permutations and commute with each other, so nothing that a
phase states can be false: it is a definition. A ring of a million nodes is two rows, an exchange of all pairs one row a
distance. Where an algorithm has no symmetry, no digit moves, and the rows are the transfers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, TooLargeError
from opticcl.ir._common import IntArray, same_columns
from opticcl.ir.limits import TRANSFERS_LISTED
from opticcl.ir.recent import RECENT
from opticcl.ir.transfers import Op, Transfers

__all__ = ["UNIT", "ChunkEvents", "MessagePart", "Phase", "PhaseRows", "Space", "Steps", "join", "part"]

UNIT = -1
"""Number of the field of a chunk's unit, in place of a digit."""


@dataclass(frozen=True, eq=False)
class Space:
    """Ranks as vectors of digits.

    Args:
        radices: of the digits, the most significant first; their product is the number of ranks.
        order: rank at each place, a permutation, int (num_ranks,); None: the rank is the place, which an order
            that changes nothing becomes.
    Raises: ParameterError: a radix below 1, or an order that is no permutation.
    """

    radices: tuple[int, ...]
    order: IntArray | None = None

    def __post_init__(self) -> None:
        if not self.radices or min(self.radices) < 1:
            raise ParameterError(f"schedule: digits of radices {self.radices}; 1 or more each")
        if self.order is None:
            return
        every = np.arange(self.num_ranks)
        if not np.array_equal(np.sort(self.order), every):
            raise ParameterError(f"schedule: an order that is no permutation of {self.num_ranks:,} ranks")
        if np.array_equal(self.order, every):
            object.__setattr__(self, "order", None)

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
        found: IntArray = np.asarray(places, np.int64)[:, None] // np.array(self.strides) % np.array(self.radices)
        return found

    def ranks(self, places: IntArray) -> IntArray:
        """Rank at each place."""
        return places if self.order is None else self.order[places]

    @cached_property
    def places(self) -> IntArray | None:
        """Place of each rank, int64 (num_ranks,); None: the same number."""
        return None if self.order is None else np.argsort(self.order)

    def translations(self, moves: Sequence[bool]) -> IntArray:
        """Every translation of the digits that move, the last digit fastest, int64 (translations, digits)."""
        axes = [np.arange(radix if moved else 1) for radix, moved in zip(self.radices, moves, strict=True)]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def __eq__(self, other: object) -> bool:
        return same_columns(self, other) if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.radices)


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
        found = np.zeros(len(label), np.int64)
        for (digit, stride, radix), weight in zip(self.fields, self.weights, strict=True):
            found += (unit if digit == UNIT else label[:, digit]) // stride % radix * weight
        return found


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
        a, b, c, d, e, shifts = (np.broadcast_to(value, (n, num_digits)) for value in wide)
        p, u, v, w, o, q, x, y = (np.broadcast_to(value, (n,)) for value in narrow)
        return cls(a, b, p, c, d, e, u, v, w, o, q, shifts, x, y)

    def __len__(self) -> int:
        return len(self.op)

    def __repr__(self) -> str:
        return f"<Rows {len(self):,}>"

    def take(self, rows: Any) -> PhaseRows:
        """The given rows (indices, slice or mask)."""
        return PhaseRows(*(getattr(self, field.name)[rows] for field in fields(self)))


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
    """

    rows: PhaseRows | StepFunction
    moves: tuple[bool, ...] = ()
    count: int = 1
    bundles: tuple[int, ...] = (0,)
    same_but_chunks: bool = False

    @property
    def listed(self) -> bool:
        """Whether the rows are the transfers themselves."""
        return not any(self.moves)


@dataclass(frozen=True, slots=True)
class _Behind:
    """A step function from a later step on.

    Args:
        step: the function.
        first: step that is its step 0.
    """

    step: StepFunction
    first: int

    def __call__(self, k: int) -> Transfers:
        return self.step(self.first + k)


@dataclass(frozen=True, slots=True)
class ChunkEvents:
    """Transfers of one chunk, in the order of the steps, as columns; ranks are places.

    Args:
        step: number of the step, int64 (n,).
        src, dst: places, int64 (n,).
        op: `Op`, int64 (n,).
        parts: contributions carried, int64 (n,).
    """

    step: IntArray
    src: IntArray
    dst: IntArray
    op: IntArray
    parts: IntArray

    def __len__(self) -> int:
        return len(self.step)


class Steps:
    """The steps of a schedule.

    Args:
        space: digits of the ranks.
        parts: of the message; chunks are numbered part by part.
        phases: in order.
    Raises: ParameterError: rows that define nothing; the message names the phase and the rule.
    """

    def __init__(self, space: Space, parts: Sequence[MessagePart], phases: Sequence[Phase]) -> None:
        self.space, self.parts, self.phases = space, tuple(parts), tuple(phases)
        self._starts = np.cumsum([0, *(phase.count for phase in self.phases)])
        self._first_chunk = np.cumsum([0, *(one.size for one in self.parts)])
        self._last: tuple[int, tuple[Any, ...]] | None = None
        self._number: int | None = None
        for number, phase in enumerate(self.phases):
            if (broken := malformed(space, self.parts, phase)) is not None:
                raise ParameterError(f"schedule: phase {number}: {broken}")

    @classmethod
    def listed(
        cls, num_ranks: int, num_chunks: int, num_steps: int, step: StepFunction, classes: Sequence[range] = ()
    ) -> Steps:
        """Steps that a function lists.

        Args:
            num_ranks: ranks [count].
            num_chunks: chunks [count].
            num_steps: steps [count].
            step: the transfers of each step.
            classes: the steps in order, cut into ranges whose steps differ in the numbers of chunks alone; (): no two are known
                to be so.
        """
        phases = [
            Phase(_Behind(step, one.start) if one.start else step, (), len(one), same_but_chunks=True)
            for one in classes
        ]
        if not classes and num_steps:
            phases = [Phase(step, (), num_steps)]
        return cls(Space((num_ranks,)), (MessagePart(((UNIT, 1, num_chunks),), num_chunks),), phases)

    @classmethod
    def of_lists(cls, num_ranks: int, num_chunks: int, steps: Iterable[Transfers]) -> Steps:
        """Steps whose transfers are at hand.

        Args:
            num_ranks: ranks [count].
            num_chunks: chunks [count].
            steps: transfers of each step.
        """
        phases = [
            Phase(
                PhaseRows.of(
                    1,
                    t.src[:, None],
                    t.dst[:, None],
                    0,
                    unit_lo=t.chunk_lo,
                    unit_count=t.chunk_n,
                    unit_step=1 if t.chunk_step is None else t.chunk_step,
                    op=t.op,
                    parts=1 if t.parts is None else t.parts,
                )
            )
            for t in steps
        ]
        return cls(Space((num_ranks,)), (MessagePart(((UNIT, 1, num_chunks),), num_chunks),), phases)

    @property
    def num_steps(self) -> int:
        """Steps of all phases [count]."""
        return int(self._starts[-1])

    @property
    def num_chunks(self) -> int:
        """Chunks of all parts [count]."""
        return int(self._first_chunk[-1])

    @property
    def starts(self) -> tuple[int, ...]:
        """First step of each phase, and the number of steps."""
        return tuple(self._starts.tolist())

    @property
    def classes(self) -> tuple[range, ...]:
        """The steps in order, cut into ranges whose steps differ in the numbers of chunks alone."""
        found: list[range] = []
        before: Phase | None = None
        for phase, first in zip(self.phases, self.starts, strict=False):
            ranges = [range(first + a, first + b) for a, b in pairwise(self._changes(phase))]
            if before is not None and len(ranges) == 1 and _same_but_chunks(self.space, before, phase):
                found[-1] = range(found[-1].start, ranges[0].stop)
            else:
                found += ranges
            before = phase if len(ranges) == 1 else None
        return tuple(found)

    def changes_of(self, number: int) -> list[int]:
        """Steps in which more than the numbers of chunks is new in a phase, and the step behind it."""
        return [self.starts[number] + step for step in self._changes(self.phases[number])]

    def _changes(self, phase: Phase) -> list[int]:
        """Steps of a phase in which more than the numbers of chunks is new, and the number of steps."""
        rows = phase.rows
        if not isinstance(rows, PhaseRows):
            return [0, phase.count] if phase.same_but_chunks else list(range(phase.count + 1))
        wide = (rows.count > 1) & (rows.count * rows.step != np.array(self.space.radices))
        if rows.parts_step.any() or (wide.any(axis=1) & rows.shift.any(axis=1)).any():
            return list(range(phase.count + 1))
        moved = rows.unit_shift != 0
        if not moved.any():
            return [0, phase.count]
        lo, by = rows.unit_lo[moved], rows.unit_shift[moved]
        units = np.array([one.units for one in self.parts])[rows.part[moved]]
        begins = -(np.where(by > 0, lo, lo - units + 1) // by)  # the first step with a unit, and the first without
        ends = np.where(by > 0, units - 1 - lo, -lo) // by + 1
        edges = np.unique(np.concatenate([begins, ends, [0, phase.count]]))
        return [int(edge) for edge in edges if 0 <= edge <= phase.count]

    @cached_property
    def owners(self) -> IntArray:
        """Rank with the digits of each chunk's label, int32 (num_chunks,); every label has every digit."""
        found = []
        for one in self.parts:
            label, _ = one.labels(np.arange(one.size), len(self.space.radices))
            found.append(self.space.ranks(label @ np.array(self.space.strides)))
        return np.concatenate(found).astype(np.int32)

    def phase_of(self, i: int) -> tuple[int, int]:
        """Number of the phase of step i, and the step within it.

        Raises: IndexError: no such step.
        """
        if not 0 <= i < self.num_steps:
            raise IndexError(f"step {i} of {self.num_steps}")
        number = int(np.searchsorted(self._starts, i, side="right")) - 1
        return number, i - int(self._starts[number])

    def images(self, phase: Phase) -> int:
        """Translations of a phase [count]."""
        return prod(r for r, moved in zip(self.space.radices, phase.moves, strict=False) if moved)

    def __call__(self, i: int) -> Transfers:
        """The transfers of step i; the last ones are kept."""
        if self._number is None:
            self._number = RECENT.number_of(self)
        return RECENT.value(self._number, i, self._step)

    def _step(self, i: int) -> Transfers:
        number, k = self.phase_of(i)
        phase = self.phases[number]
        if not isinstance(phase.rows, PhaseRows):
            return phase.rows(k)
        if (count := len(phase.rows) * self.images(phase)) > TRANSFERS_LISTED:
            raise TooLargeError(
                f"step {i}: {count:,} transfers, which translations of {len(phase.rows):,} define, are not listed; at most "
                f"{TRANSFERS_LISTED:,} are; try fewer nodes, or an algorithm of more steps"
            )
        return self._listed(number, k, None)

    def sent_by(self, i: int, ranks: IntArray) -> Transfers:
        """The transfers of step i that some ranks send, without a list of all.

        Args:
            i: number of the step.
            ranks: senders.
        """
        number, k = self.phase_of(i)
        phase = self.phases[number]
        places = np.asarray(ranks if self.space.places is None else self.space.places[ranks])
        if phase.listed or not isinstance(phase.rows, PhaseRows):
            transfers = self(i)
        else:
            elements = np.unique(self.space.digits(places) * np.array(phase.moves), axis=0)
            transfers = self._listed(number, k, elements)
            if all(phase.moves):
                return transfers
        wanted = np.zeros(self.space.num_ranks, bool)
        wanted[ranks] = True
        return transfers.take(wanted[transfers.src])

    def received_by(self, i: int, rank: int) -> Transfers:
        """The transfers of step i that a rank receives, without a list of all.

        Args:
            i: number of the step.
            rank: receiver.
        """
        number, k = self.phase_of(i)
        phase = self.phases[number]
        rows = phase.rows
        if phase.listed or not isinstance(rows, PhaseRows):
            every = self(i)
            return every.take(every.dst == rank)
        place = rank if self.space.places is None else int(self.space.places[rank])
        digits, moves = self.space.digits(np.array([place]))[0], np.array(phase.moves)
        by = np.where(moves, (digits - rows.dst) % np.array(self.space.radices), 0)
        reach = np.flatnonzero((((rows.dst + by) % np.array(self.space.radices)) == digits).all(axis=1))
        moved = _translated(self.space, rows.take(reach), by[reach])
        return Steps(self.space, self.parts, [Phase(_shifted(moved, k, self.space), (), 1)])._step(0)

    def num_transfers(self, i: int) -> int:
        """Transfers of step i, without a list of them: images of rows, and of those that wrap around a digit twice [count]."""
        number, _ = self.phase_of(i)
        phase = self.phases[number]
        rows = phase.rows
        if phase.listed or not isinstance(rows, PhaseRows):
            return len(self(i))
        total, images = len(rows) * self.images(phase), self.images(phase)
        for at, one in enumerate(self.parts):
            mine = rows.part == at
            for d in one.digits:
                whole, count = self.space.radices[d], rows.count[mine, d]
                wraps = (count > 1) & (count * rows.step[mine, d] != whole)
                total += images // whole * int((count[wraps] - 1).sum()) if phase.moves[d] else 0
        return total

    def transfers_of(self, number: int) -> int:
        """Transfers of all steps of a phase, without a list where it has rows [count].

        Args: number: of the phase.
        """
        phase, first = self.phases[number], self.starts[number]
        rows = phase.rows
        if not isinstance(rows, PhaseRows):
            return sum([len(rows(k)) for k in range(phase.count)])
        if not rows.unit_shift.any():
            return phase.count * self.num_transfers(first)
        units = np.array([one.units for one in self.parts])[rows.part]
        by, last = rows.unit_shift, phase.count - 1
        still = by == 0
        step = np.where(still, 1, np.abs(by))
        low = np.where(by >= 0, -rows.unit_lo, rows.unit_lo - units + 1)  # the least number of steps times the shift
        high = np.where(by >= 0, units - 1 - rows.unit_lo, rows.unit_lo)
        times = np.minimum(last, high // step) - np.maximum(0, -(-low // step)) + 1
        return self.images(phase) * int(np.where(still, phase.count, np.maximum(0, times)).sum())

    def in_blocks(self, i: int, most: int) -> Iterator[Transfers]:
        """The transfers of step i, some at a time, in another order than that of the step.

        Args:
            i: number of the step.
            most: transfers at a time, or those of one translation where these are more [count].
        """
        number, k = self.phase_of(i)
        phase = self.phases[number]
        if not isinstance(phase.rows, PhaseRows) or phase.listed:
            yield self(i)
            return
        elements = self.space.translations(phase.moves)
        size = max(1, most // max(1, len(phase.rows)))
        for at in range(0, len(elements), size):
            yield self._listed(number, k, elements[at : at + size])

    def _listed(self, number: int, k: int, elements: IntArray | None) -> Transfers:
        """The images of the rows of a phase in its step k.

        Args:
            number: of the phase.
            k: step of the phase.
            elements: translations, int (n, digits); None: all.
        """
        phase = self.phases[number]
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        if elements is not None:
            images = self._images_of(phase, elements)
        elif self._last is not None and self._last[0] == number:
            images = self._last[1]
        else:
            images = self._images_of(phase, self.space.translations(phase.moves or (False,) * len(self.space.radices)))
            self._last = number, images
        elements, src, dst = images
        if rows.unit_shift.any():  # those of whose units the part has
            unit = rows.unit_lo + k * rows.unit_shift
            units = np.array([one.units for one in self.parts])[rows.part]
            there = np.flatnonzero((unit >= 0) & (unit < units))
            if len(there) < len(rows):
                phase = replace(phase, rows=rows.take(there), bundles=_kept_bundles(phase.bundles, there))
                rows = phase.rows
                assert isinstance(rows, PhaseRows)
                src, dst = src[:, there], dst[:, there]
        if not len(rows):
            return Transfers.of([], [], [], [], [])
        bundles = [slice(a, b) for a, b in pairwise((*phase.bundles, len(rows)))]
        widths = {bundle.stop - bundle.start for bundle in bundles}
        columns = self._columns(phase, elements, src, dst, k)
        if len(columns) == 1 and len(widths) == 1:  # rows in their order, every box a range
            (width,) = widths
            made = [_by_bundle(np.broadcast_to(column, src.shape), width) for column in columns[0][2]]
        else:
            made = _in_order(columns, bundles, len(rows))
        sender, receiver, lo, n, step, op, held = made
        differ = (sender != receiver) & (n > 0)
        if not differ.all():
            sender, receiver, lo, n, step, op, held = (c[differ] for c in (sender, receiver, lo, n, step, op, held))
        ranks = self.space.ranks
        apart = (
            None if not rows.parts_step.any() and (rows.parts == 1).all() and not (rows.op == Op.MOVE).any() else held
        )
        return Transfers(
            ranks(sender).astype(np.int32),
            ranks(receiver).astype(np.int32),
            lo.astype(np.int32),
            n.astype(np.int32),
            op.astype(np.uint8),
            None if apart is None else apart.astype(np.int32),
            None if (step == 1).all() else step.astype(np.int32),
        )

    def _images_of(self, phase: Phase, elements: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Translations, and places of sender and receiver of every image of every row, (translations, rows)."""
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        return elements, self._places(phase, elements, rows.src), self._places(phase, elements, rows.dst)

    def _places(self, phase: Phase, elements: IntArray, digits: IntArray) -> IntArray:
        """Numbers of the images of places.

        Args:
            phase: whose translations they are.
            elements: translations, int (n, digits).
            digits: of the places, int (rows, digits).
        Returns: int64 (n, rows).
        """
        found = np.zeros((len(elements), 1), np.int64)
        for d, (radix, stride) in enumerate(zip(self.space.radices, self.space.strides, strict=True)):
            values = digits[:, d]
            if len(values) and (values == values[0]).all():
                values = values[:1]
            moved = bool(phase.moves) and phase.moves[d]
            found = found + ((elements[:, d, None] + values) % radix if moved else values[None, :]) * stride
        return np.broadcast_to(found, (len(elements), len(digits)))

    def _columns(
        self, phase: Phase, elements: IntArray, src: IntArray, dst: IntArray, k: int
    ) -> list[tuple[IntArray, int, tuple[IntArray, ...]]]:
        """Rows of the phase with the columns of their images, a list for each kind of box.

        Args:
            phase: with rows.
            elements: translations, int (n, digits).
            src, dst: places, int (n, rows).
            k: step of the phase.
        Returns: row numbers, which of the ranges of a box it is, and (src, dst, chunk_lo, chunk_n, chunk_step, op, parts), that
            broadcast to (n, rows).
        """
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        parts = rows.parts + k * rows.parts_step
        found: list[tuple[IntArray, int, tuple[IntArray, ...]]] = []
        for one in dict.fromkeys(self.parts):  # parts of one kind together
            kind = np.array([part == one for part in self.parts])
            of_part = np.flatnonzero(kind[rows.part])
            if not len(of_part):
                continue
            mine = rows if len(of_part) == len(rows) else rows.take(of_part)
            firsts = self._first_chunk[mine.part]
            for some, nth, lo, n, step in _ranges(self.space, one, phase.moves, mine, elements, k):
                all_rows = len(some) == len(rows)
                at = of_part[some]
                found.append(
                    (
                        at,
                        nth,
                        (
                            src if all_rows else src[:, at],
                            dst if all_rows else dst[:, at],
                            lo + firsts[some],
                            n,
                            step,
                            rows.op[at],
                            parts[at],
                        ),
                    )
                )
        return found

    def events(
        self, number: int, unit: int, label: IntArray, phases: range, folded: Sequence[bool] | None = None
    ) -> ChunkEvents:
        """The transfers that carry one chunk, without a list of any step.

        Args:
            number: of the part of the chunk.
            unit: of the chunk.
            label: its digits, int (digits,); those that labels of the part do not have are ignored.
            phases: numbers of the phases.
            folded: digits in which all ranks count as the one of digit 0; None: none.
        """
        found = []
        for at in phases:
            columns = _events(self.space, self.parts[number], self.phases[at], number, unit, label, folded)
            if columns is not None:
                found.append((columns[0] + int(self._starts[at]), *columns[1:]))
        if not found:
            return ChunkEvents(*(np.zeros(0, np.int64) for _ in range(5)))
        return ChunkEvents(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Steps):
            return NotImplemented
        if (self.space, self.parts, len(self.phases)) != (other.space, other.parts, len(other.phases)):
            return False
        return all(map(_same_phase, self.phases, other.phases))

    def __hash__(self) -> int:
        return hash((self.space, self.parts, self.num_steps))

    def __reduce__(self) -> tuple[Any, ...]:
        return Steps, (self.space, self.parts, self.phases)


def _same_but_chunks(space: Space, one: Phase, other: Phase) -> bool:
    """Whether the steps of two phases differ in the numbers of chunks alone, and every box is a range."""
    mine, its = one.rows, other.rows
    if not isinstance(mine, PhaseRows) or not isinstance(its, PhaseRows) or len(mine) != len(its):
        return False
    if one.listed or (one.moves, one.bundles) != (other.moves, other.bundles):
        return False
    if any(not np.array_equal(getattr(mine, name), getattr(its, name)) for name in ("src", "dst", "op", "parts")):
        return False
    whole = (mine.unit_step == 1) & (its.unit_step == 1)
    for rows in (mine, its):
        whole &= ((rows.count == 1) | (rows.count * rows.step == np.array(space.radices))).all(axis=1)
    sizes = [rows.count.prod(axis=1) * rows.unit_count for rows in (mine, its)]
    return bool(whole.all() and np.array_equal(*sizes))


def _same_phase(one: Phase, other: Phase) -> bool:
    if (one.moves, one.count, one.bundles) != (other.moves, other.count, other.bundles):
        return False
    if isinstance(one.rows, PhaseRows) and isinstance(other.rows, PhaseRows):
        return same_columns(one.rows, other.rows)
    return bool(one.rows == other.rows)


def _translated(space: Space, rows: PhaseRows, by: IntArray) -> PhaseRows:
    """Images of rows, each under a translation of its own.

    Args:
        space: digits of the places.
        rows: any.
        by: added to the digits of each row, int (n, digits).
    """
    radices = np.array(space.radices)
    src, dst, lo = ((column + by) % radices for column in (rows.src, rows.dst, rows.lo))
    return replace(rows, src=src, dst=dst, lo=lo)


def _shifted(rows: PhaseRows, k: int, space: Space) -> PhaseRows:
    """Rows as they are in step k, of one step.

    Args:
        rows: of a phase.
        k: step of the phase.
        space: digits of the places.
    """
    lo = (rows.lo + k * rows.shift) % np.array(space.radices)
    zero = np.zeros(len(rows), np.int64)
    return replace(
        rows,
        lo=lo,
        unit_lo=rows.unit_lo + k * rows.unit_shift,
        parts=rows.parts + k * rows.parts_step,
        shift=np.zeros_like(lo),
        unit_shift=zero,
        parts_step=zero,
    )


def malformed(space: Space, parts: Sequence[MessagePart], phase: Phase) -> str | None:
    """The rule that a phase breaks, without which it defines no transfers; None where it breaks none.

    Args:
        space: digits of the places.
        parts: of the message.
        phase: to be checked.
    """
    if phase.count < 1:
        return f"{phase.count} steps; 1 or more"
    num_digits = len(space.radices)
    if phase.moves and len(phase.moves) != num_digits:
        return f"{len(phase.moves)} digits move or stay; there are {num_digits}"
    rows = phase.rows
    if not isinstance(rows, PhaseRows):
        return None if phase.listed else "a function of the step, of which no digit moves"
    radices, moves = np.array(space.radices), np.array(phase.moves or (False,) * num_digits)
    if any((ends < 0).any() or (ends >= radices).any() for ends in (rows.src, rows.dst)):
        return "a digit of a sender or a receiver is not below its radix"
    if rows.src[:, moves].any():
        return "a sender is not 0 in a digit that moves"
    if ((rows.op < 0) | (rows.op > max(Op))).any():
        return "an operation that does not exist"
    if ((rows.part < 0) | (rows.part >= len(parts))).any():
        return "a part of the message that does not exist"
    if ((rows.parts_step != 0) & (rows.unit_shift != 0)).any():
        return "contributions that grow in number, of units that shift"
    ends = rows.parts + (phase.count - 1) * rows.parts_step
    if (np.minimum(rows.parts, ends) < 1).any():
        return "fewer than one contribution"
    for number, one in enumerate(parts):
        mine = rows.part == number
        if not mine.any():
            continue
        inside = list(one.digits)
        lo, count, step = rows.lo[mine][:, inside], rows.count[mine][:, inside], rows.step[mine][:, inside]
        many = radices[inside]
        if ((lo < 0) | (lo >= many) | (count < 1) | (step < 1) | ((count - 1) * step >= many)).any():
            return "a box that is not within the radices of its digits"
        unit, units, apart = rows.unit_lo[mine], rows.unit_count[mine], rows.unit_step[mine]
        still = rows.unit_shift[mine] == 0
        if ((units < 1) | (apart < 1)).any() or (
            still & ((unit < 0) | (unit + (units - 1) * apart >= one.units))
        ).any():
            return "units that the part does not have"
        wide = (count > 1) & (count * step != many)
        whole = np.array([[d, 1, space.radices[d]] in [list(field) for field in one.fields] for d in inside], bool)
        if (wide & ((step > 1) | ~whole)).any() or (wide.sum(axis=1) > 1).any():
            return "a box whose chunks are no range; list its labels one by one"
        if (~still & (units > 1)).any():
            return "a shift of several units; shift one a row"
        if phase.count > 1 and rows.shift[mine][:, [d for d in inside if not moves[d]]].any():
            return "a shift of a digit that does not move"
    return None


def _kept_bundles(bundles: tuple[int, ...], rows: IntArray) -> tuple[int, ...]:
    """First row of each bundle among some rows, without bundles that have none of them."""
    of_bundle = np.searchsorted(bundles, rows, side="right")
    return (0, *(int(at) for at in np.flatnonzero(np.diff(of_bundle)) + 1))


def _by_bundle(column: IntArray, width: int) -> IntArray:
    """Images (n, rows) in the order of the list: bundles of that many rows, in a bundle the images, of an image the rows."""
    if width == column.shape[1]:
        return column.ravel()
    n = len(column)
    return column.reshape(n, -1, width).transpose(1, 0, 2).ravel()


def _in_order(
    columns: list[tuple[IntArray, int, tuple[IntArray, ...]]], bundles: Sequence[slice], num_rows: int
) -> list[IntArray]:
    """Images of rows in the order of the list, where boxes are of several kinds or bundles of several widths; ranges that go on
    from the first value of a digit stand behind all others.

    Args:
        columns: row numbers and columns, as of `Steps._columns`.
        bundles: rows of each bundle.
        num_rows: of the phase [count].
    """
    bundle = np.zeros(num_rows, np.int64)
    for number, rows in enumerate(bundles):
        bundle[rows] = number
    keys, flat = [], []
    for of_kind, number, some in columns:
        shape = np.broadcast_shapes(*(column.shape for column in some))
        image = np.arange(shape[0])[:, None]
        sort = (np.asarray(number), bundle[of_kind], image, of_kind)
        keys.append([np.broadcast_to(key, shape).ravel() for key in sort])
        flat.append([np.broadcast_to(column, shape).ravel() for column in some])
    joined = [np.concatenate(column) for column in zip(*flat, strict=True)]
    around, of_bundle, image, row = (np.concatenate(key) for key in zip(*keys, strict=True))
    order = np.lexsort((row, image, of_bundle, around))
    return [column[order] for column in joined]


def _ranges(
    space: Space, one: MessagePart, moves: tuple[bool, ...], rows: PhaseRows, elements: IntArray, k: int
) -> Iterator[tuple[IntArray, int, IntArray, IntArray, IntArray]]:
    """Chunks of the images of rows of a part, as ranges of numbers at equal distances.

    Args:
        space: digits of the places.
        one: the part.
        moves: digits that translations move.
        rows: of the part.
        elements: translations, int (n, digits).
        k: step of the phase.
    Yields: rows (some,), which of the ranges of a box it is, first chunk (n, some), number of chunks and their distance, which
        broadcast to that.
    """
    inside = list(one.digits)
    alone = (rows.count[:, inside] == 1).all(axis=1)  # one value of every digit: units are all that there is to list
    many = np.flatnonzero(~alone)
    if len(many) < len(rows):
        some = np.flatnonzero(alone)
        mine = rows if not len(many) else rows.take(some)
        weight = next((w for (digit, _, _), w in zip(one.fields, one.weights, strict=True) if digit == UNIT), 1)
        for lo, n, _ in _ranges_of_kind(space, one, moves, _one_unit(mine), elements, k):
            there = mine.unit_count if np.ndim(n) == 0 else np.where(n > 0, mine.unit_count, 0)
            yield (
                some,
                0,
                lo,
                there,
                mine.unit_step * weight if weight > 1 or (mine.unit_step > 1).any() else np.asarray(1),
            )
    if not len(many):
        return
    if len(many) < len(rows):
        for some, nth, lo, n, distance in _ranges(space, one, moves, rows.take(many), elements, k):
            yield many[some], nth, lo, n, distance
        return
    kinds = np.column_stack([rows.count[:, inside], rows.step[:, inside], rows.unit_count, rows.unit_step])
    if len(rows) and (kinds == kinds[0]).all():
        groups = [np.arange(len(rows))]
    else:
        _, group = np.unique(kinds, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
    for some in groups:
        mine = rows if len(some) == len(rows) else rows.take(some)
        for nth, (lo, n, apart) in enumerate(_ranges_of_kind(space, one, moves, mine, elements, k)):
            yield some, nth, lo, n, np.asarray(apart)


def _one_unit(rows: PhaseRows) -> PhaseRows:
    """Rows with the first of their units alone."""
    return replace(rows, unit_count=np.ones(len(rows), np.int64), unit_step=np.ones(len(rows), np.int64))


def _ranges_of_kind(
    space: Space, one: MessagePart, moves: tuple[bool, ...], rows: PhaseRows, elements: IntArray, k: int
) -> Iterator[tuple[IntArray, IntArray, int]]:
    """As `_ranges`, of rows whose boxes are equally large: first chunk, number of chunks and their distance.

    Args: space, one, moves, rows, elements, k: as of `_ranges`.
    """
    first = np.zeros((1, 1), np.int64)
    missing: npt.NDArray[np.bool_] | None = None
    progressions: list[
        tuple[int, int]
    ] = []  # of chunks with the same values of the other fields: how many, how far apart
    run: tuple[IntArray, int, int, int] | None = None
    for (digit, stride, radix), weight in zip(one.fields, one.weights, strict=True):
        if digit == UNIT:
            unit = rows.unit_lo + k * rows.unit_shift
            first = first + unit * weight
            progressions.append((int(rows.unit_count[0]), int(rows.unit_step[0]) * weight))
            if rows.unit_shift.any():
                missing = (unit < 0) | (unit >= one.units)
            continue
        whole, n, step = space.radices[digit], int(rows.count[0, digit]), int(rows.step[0, digit])
        lo = rows.lo[:, digit] + k * rows.shift[:, digit]
        if (lo == lo[0]).all():
            lo = lo[:1]
        value = (elements[:, digit, None] + lo if moves and moves[digit] else lo[None, :]) % whole
        if n > 1 and n * step != whole:
            first, run = first + value * weight, (value, n, whole, weight)
            continue
        per = 1 if n > 1 and stride >= step else min(radix, step // stride) if n > 1 else radix
        first = first + value // stride % per * weight
        progressions.append((radix // per, per * weight))
    merged: list[tuple[int, int]] = []
    for n, distance in sorted((one for one in progressions if one[0] > 1), key=lambda one: one[1]):
        if merged and merged[-1][0] * merged[-1][1] == distance:
            merged[-1] = merged[-1][0] * n, merged[-1][1]
        else:
            merged.append((n, distance))
    if run is None:
        many, distance = merged.pop(0) if merged else (1, 1)
        sizes: list[tuple[IntArray, IntArray]] = [(first, np.asarray(many))]
    else:
        value, length, whole, weight = run
        inner = merged.pop(0)[0] if merged and merged[0] == (weight, 1) else 1
        distance = 1 if inner == weight else weight
        before = np.minimum(length, whole - value)  # those that do not wrap around
        sizes = [(first, before * inner)]
        if (before < length).any():
            sizes.append((first - value * weight, (length - before) * inner))
    for many, apart in merged:
        sizes = [(lo + at * apart, n) for at in range(many) for lo, n in sizes]
    for lo, many_chunks in sizes:
        yield lo, many_chunks if missing is None else np.where(missing, 0, many_chunks), distance


def _events(
    space: Space, one: MessagePart, phase: Phase, number: int, unit: int, label: IntArray, folded: Sequence[bool] | None
) -> tuple[IntArray, ...] | None:
    """Transfers of a phase that carry a chunk: step of the phase, places of sender and receiver, operation, contributions.

    The image under the translation g of a row with the box lo, lo + step, ... carries the label c in step k from
    g = c - lo - k shift - t step, t = 0, 1, ... below count, in each moved digit that labels have; under every g in those that
    they lack.

    Args:
        space: digits of the places.
        one: part of the chunk.
        phase: with rows.
        number: of the part.
        unit: of the chunk.
        label: digits of the chunk, int (digits,).
        folded: digits in which all ranks count as one; None: none.
    Returns: columns in the order of the steps; None where there are no rows.
    """
    rows = phase.rows
    assert isinstance(rows, PhaseRows), "events of a function of the step"
    num_digits = len(space.radices)
    moves = phase.moves or (False,) * num_digits
    carries = rows.part == number
    still = rows.unit_shift == 0
    place = unit - rows.unit_lo
    within = (place >= 0) & (place % rows.unit_step == 0) & (place // rows.unit_step < rows.unit_count)
    moment = place // np.where(still, 1, rows.unit_shift)
    comes = (moment >= 0) & (moment < phase.count) & (moment * rows.unit_shift == place)
    carries &= np.where(still, within, comes)
    for d in one.digits:
        if not moves[d]:
            ahead = (label[d] - rows.lo[:, d]) % space.radices[d]
            carries &= (ahead % rows.step[:, d] == 0) & (ahead // rows.step[:, d] < rows.count[:, d])
    chosen = np.flatnonzero(carries)
    if not len(chosen):
        return None
    mine = rows.take(chosen)
    moving = [d for d in range(num_digits) if moves[d]]
    inside = [d for d in moving if d in one.digits]
    ranges_of_rows = np.column_stack([mine.count[:, inside], mine.step[:, inside], mine.unit_shift != 0])
    if (ranges_of_rows == ranges_of_rows[0]).all():
        groups = [np.arange(len(mine))]
    else:
        _, group = np.unique(ranges_of_rows, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
    found = []
    for some in groups:
        some_rows = mine.take(some)
        at_once = some_rows.unit_shift[0] != 0
        steps = (
            ((unit - some_rows.unit_lo) // some_rows.unit_shift)[:, None]
            if at_once
            else np.arange(phase.count, dtype=np.int64)[None, :]
        )
        src = dst = np.zeros((1, 1, 1), np.int64)
        for d, (radix, stride) in enumerate(zip(space.radices, space.strides, strict=True)):
            counts = 0 if folded is not None and folded[d] else stride
            if not moves[d]:
                src = src + some_rows.src[:, d, None, None] * counts
                dst = dst + some_rows.dst[:, d, None, None] * counts
                continue
            if d in inside:
                nth = np.arange(int(some_rows.count[0, d])) * int(some_rows.step[0, d])
                shift = some_rows.shift[:, d, None]
                moved = label[d] - some_rows.lo[:, d, None] - (steps * shift if shift.any() else 0)
                moved = (moved[:, :, None] - nth) % radix
            else:
                moved = np.arange(1 if folded is not None and folded[d] else radix)[None, None, :]
            src = _with_digit(src, moved * counts)
            dst = _with_digit(dst, (moved + some_rows.dst[:, d, None, None]) % radix * counts)
        shape = len(some), steps.shape[1], max(src.shape[2], dst.shape[2])
        held = some_rows.parts[:, None] + steps * some_rows.parts_step[:, None]
        columns = (steps[:, :, None], src, dst, some_rows.op[:, None, None], held[:, :, None])
        found.append([np.broadcast_to(column, shape).transpose(1, 0, 2).ravel() for column in columns])
    joined = [np.concatenate(column) for column in zip(*found, strict=True)] if len(found) > 1 else found[0]
    if phase.count > 1 and (np.diff(joined[0]) < 0).any():
        order = np.argsort(joined[0], kind="stable")
        joined = [column[order] for column in joined]
    return tuple(joined)


def _with_digit(places: IntArray, values: IntArray) -> IntArray:
    """Every place with every value of one more digit, (rows, steps, places x values).

    Args:
        places: so far, (rows or 1, steps or 1, places).
        values: of the digit, times its stride, (rows or 1, steps or 1, values).
    """
    both = places[:, :, :, None] + values[:, :, None, :]
    return both.reshape(*both.shape[:2], -1)
