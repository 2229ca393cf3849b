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

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, TooLargeError
from opticcl.ir._common import IntArray, same_columns
from opticcl.ir._phase_events import events_of_phase
from opticcl.ir._phase_lists import Counted, chunks_of_rows, in_order, kept_bundles, of_digits, ranges_of_boxes
from opticcl.ir.limits import TRANSFERS_LISTED
from opticcl.ir.paths import paths_of_rows
from opticcl.ir.phase_rows import (
    UNIT,
    MessagePart,
    Phase,
    PhaseRows,
    Space,
    StepFunction,
    join,
    malformed,
    part,
    shifted,
    translated,
)
from opticcl.ir.recent import RECENT
from opticcl.ir.transfers import Op, Transfers

__all__ = [
    "UNIT",
    "ChunkEvents",
    "MessagePart",
    "Phase",
    "PhaseRows",
    "Space",
    "Steps",
    "StoredSteps",
    "TransferEnds",
    "chunks_of_rows",
    "join",
    "part",
]


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


@dataclass(frozen=True, slots=True, eq=False)
class StoredSteps:
    """A step function that looks its steps up.

    Args:
        steps: transfers of each step.
    """

    steps: tuple[Transfers, ...]

    def __call__(self, i: int) -> Transfers:
        """Transfers of step i."""
        return self.steps[i]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredSteps):
            return NotImplemented
        return len(self.steps) == len(other.steps) and all(map(same_columns, self.steps, other.steps))

    def __hash__(self) -> int:
        return hash(tuple(map(len, self.steps)))


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

    def take(self, rows: IntArray) -> ChunkEvents:
        """The given rows."""
        return ChunkEvents(*(column[rows] for column in (self.step, self.src, self.dst, self.op, self.parts)))


@dataclass(frozen=True, slots=True)
class TransferEnds:
    """Which ranks transfers join, and how large they are, whichever chunks they carry.

    Args:
        src, dst: sender and receiver, int (n,).
        chunks: size of each, int64 (n,) [chunks].
    """

    src: IntArray
    dst: IntArray
    chunks: IntArray

    def __len__(self) -> int:
        return len(self.src)


class _Spans(NamedTuple):
    """Steps of a phase in which the part has the first unit of each row.

    Args:
        begin: the first of them, int64 (rows,).
        end: the first behind them, int64 (rows,).
        in_order: whether rows begin, and end, one after the other, as stages of a pipeline do.
    """

    begin: IntArray
    end: IntArray
    in_order: bool


class _Wave(NamedTuple):
    """Rows of a phase that are carried in the same steps.

    Args:
        begin: the first of these.
        end: the first behind them.
        step: of these rows, see `Steps.waves`.
    """

    begin: int
    end: int
    step: Steps


class Steps:
    """The steps of a schedule.

    Args:
        space: digits of the ranks.
        parts: of the message; chunks are numbered part by part.
        phases: in order.

    Attributes:
        starts: first step of each phase, and the number of steps.
    Raises: ParameterError: rows that define nothing; the message names the phase and the rule.
    """

    def __init__(self, space: Space, parts: Sequence[MessagePart], phases: Sequence[Phase]) -> None:
        self.space, self.parts, self.phases = space, tuple(parts), tuple(phases)
        self.starts = tuple(accumulate((phase.count for phase in self.phases), initial=0))
        self._first_chunk = np.cumsum([0, *(one.size for one in self.parts)])
        self._number: int | None = None
        self._groups: dict[int, tuple[bool, ...]] = {}  # by number of the phase
        self._known_spans: dict[int, _Spans | None] = {}  # likewise
        self._known_waves: dict[int, tuple[_Wave, ...]] = {}  # likewise
        if (broken := malformed(space, self.parts, self.phases)) is not None:
            raise ParameterError(f"schedule: {broken}")

    @classmethod
    def listed(
        cls,
        num_ranks: int,
        num_chunks: int,
        num_steps: int,
        step: StepFunction,
        classes: Sequence[range] = (),
        *,
        sends: bool = False,
    ) -> Steps:
        """Steps that a function lists.

        Args:
            num_ranks: ranks [count].
            num_chunks: chunks [count].
            num_steps: steps [count].
            step: the transfers of each step.
            classes: the steps in order, cut into ranges whose steps differ in the numbers of chunks alone; (): no two are known
                to be so.
            sends: whether every step is known to have transfers.
        """
        phases = [
            Phase(_Behind(step, one.start) if one.start else step, (), len(one), same_but_chunks=True, sends=sends)
            for one in classes
        ]
        if not classes and num_steps:
            phases = [Phase(step, (), num_steps, sends=sends)]
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
                ),
                paths=t.path,
            )
            for t in steps
        ]
        return cls(Space((num_ranks,)), (MessagePart(((UNIT, 1, num_chunks),), num_chunks),), phases)

    def in_groups(self, count: int) -> Steps:
        """The same among several groups of ranks at once, which carry chunks of one number each for itself.

        Translations of a digit that counts the groups take one to the other.

        Args: count: of the groups.
        """
        n, order = self.space.num_ranks, self.space.order
        every = None if order is None else (np.arange(count)[:, None] * n + order).ravel()
        parts = [
            MessagePart(tuple((d if d == UNIT else d + 1, stride, radix) for d, stride, radix in one.fields), one.units)
            for one in self.parts
        ]
        return Steps(
            Space((count, *self.space.radices), every), parts, [one.in_groups(count, n) for one in self.phases]
        )

    @property
    def num_steps(self) -> int:
        """Steps of all phases [count]."""
        return self.starts[-1]

    @property
    def num_chunks(self) -> int:
        """Chunks of all parts [count]."""
        return int(self._first_chunk[-1])

    @cached_property
    def classes(self) -> tuple[range, ...]:
        """The steps in order, cut into ranges whose steps differ in the numbers of chunks alone."""
        joined: list[range] = []
        before: Phase | None = None
        for number, (phase, first) in enumerate(zip(self.phases, self.starts, strict=False)):
            ranges = [range(first + a, first + b) for a, b in pairwise(self._changes(number))]
            if before is not None and len(ranges) == 1 and _same_but_chunks(self.space, before, phase):
                joined[-1] = range(joined[-1].start, ranges[0].stop)
            else:
                joined += ranges
            before = phase if len(ranges) == 1 else None
        return tuple(joined)

    def changes_of(self, number: int) -> list[int]:
        """Steps in which more than the numbers of chunks is new in a phase, and the step behind it."""
        return [self.starts[number] + step for step in self._changes(number)]

    def _changes(self, number: int) -> list[int]:
        """Steps of a phase in which more than the numbers of chunks is new, and the number of steps."""
        phase = self.phases[number]
        rows = phase.rows
        if not isinstance(rows, PhaseRows):
            return [0, phase.count] if phase.same_but_chunks else list(range(phase.count + 1))
        wide = (rows.count > 1) & (rows.count * rows.step != np.array(self.space.radices))
        if rows.parts_step.any() or (wide.any(axis=1) & rows.shift.any(axis=1)).any():
            return list(range(phase.count + 1))
        spans = self._spans(number)
        if spans is None:
            return [0, phase.count]
        changes = np.zeros(phase.count + 1, bool)
        for steps in (0, phase.count, spans.begin, spans.end):
            changes[steps] = True
        return [*map(int, np.flatnonzero(changes))]

    def _spans(self, number: int) -> _Spans | None:
        """In which steps of a phase its rows are carried; None where all are in all, since their units do not shift."""
        if number not in self._known_spans:
            phase = self.phases[number]
            rows = phase.rows
            self._known_spans[number] = None
            if isinstance(rows, PhaseRows) and rows.unit_shift.any():
                units, still = np.array([one.units for one in self.parts])[rows.part], rows.unit_shift == 0
                by = np.where(still, 1, rows.unit_shift)
                begin = -(np.where(by > 0, rows.unit_lo, rows.unit_lo - units + 1) // by)
                end = np.where(by > 0, units - 1 - rows.unit_lo, -rows.unit_lo) // by + 1
                begin = np.where(still, 0, np.clip(begin, 0, phase.count))
                end = np.maximum(begin, np.where(still, phase.count, np.clip(end, 0, phase.count)))
                in_order = bool((begin[1:] >= begin[:-1]).all() and (end[1:] >= end[:-1]).all())
                self._known_spans[number] = _Spans(begin, end, in_order)
        return self._known_spans[number]

    def waves(self, i: int) -> tuple[Steps, ...]:
        """Step i as steps of their own, each of rows that are carried in the same steps; none where all rows are in all steps.

        Nor where rows state their paths.

        They have the pairs of ranks and the sizes of step i, of chunks without units: waves of schedules that differ in the
        number of units are equal.

        Args: i: number of the step.
        """
        number, k = self.phase_of(i)
        if number not in self._known_waves:
            self._known_waves[number] = tuple(self._waves(number))
        return tuple(wave.step for wave in self._known_waves[number] if wave.begin <= k < wave.end)

    def _waves(self, number: int) -> Iterator[_Wave]:
        spans, phase = self._spans(number), self.phases[number]
        rows = phase.rows
        if spans is None or phase.paths is not None or not isinstance(rows, PhaseRows) or not rows.unit_shift.all():
            return
        parts = [
            MessagePart(tuple((digit, stride, 1 if digit == UNIT else radix) for digit, stride, radix in one.fields))
            for one in self.parts
        ]
        none = np.zeros(len(rows), np.int64)
        still = replace(rows, shift=np.zeros_like(rows.lo), unit_lo=none, unit_step=none + 1, unit_shift=none)
        every, which = np.unique(np.stack([spans.begin, spans.end]), axis=1, return_inverse=True)
        for at, (begin, end) in enumerate(every.T.tolist()):
            mine = Phase(still.take(np.flatnonzero(which.ravel() == at)), phase.moves)
            yield _Wave(begin, end, Steps(self.space, parts, [mine]))

    @cached_property
    def owners(self) -> IntArray:
        """Rank with the digits of each chunk's label, int32 (num_chunks,); every label has every digit."""
        ranks = []
        for one in self.parts:
            label, _ = one.labels(np.arange(one.size), len(self.space.radices))
            ranks.append(self.space.ranks(label @ np.array(self.space.strides)))
        return np.concatenate(ranks).astype(np.int32)

    @cached_property
    def sends(self) -> npt.NDArray[np.bool_]:
        """Whether each step is known to have transfers, without a list of it, bool (num_steps,)."""
        sending = np.zeros(self.num_steps, bool)
        for number, (phase, first) in enumerate(zip(self.phases, self.starts, strict=False)):
            rows = phase.rows
            if not isinstance(rows, PhaseRows):
                sending[first : first + phase.count] = phase.sends
                continue
            apart, spans = rows.apart, self._spans(number)
            if spans is None:
                sending[first : first + phase.count] = apart.any()
                continue
            comes, goes = (np.bincount(steps[apart], minlength=phase.count + 1) for steps in (spans.begin, spans.end))
            sending[first : first + phase.count] = np.cumsum(comes - goes)[:-1] > 0
        return sending

    def phase_of(self, i: int) -> tuple[int, int]:
        """Number of the phase of step i, and the step within it.

        Raises: IndexError: no such step.
        """
        if not 0 <= i < self.num_steps:
            raise IndexError(f"step {i} of {self.num_steps}")
        number = bisect_right(self.starts, i) - 1
        return number, i - self.starts[number]

    def images(self, phase: Phase) -> int:
        """Translations of a phase [count]."""
        return prod(r for r, moved in zip(self.space.radices, phase.moves, strict=False) if moved)

    def __call__(self, i: int) -> Transfers:
        """The transfers of step i; the last ones are kept, for all schedules with an equal phase."""
        number, k = self.phase_of(i)
        key = self.key(number)
        if key is None:
            self._number = self._number or RECENT.number_of(self)
            return RECENT.value(self._number, i, lambda i: self._step(number, k))
        return RECENT.value(RECENT.number(key), k, lambda k: self._step(number, k))

    def _step(self, number: int, k: int) -> Transfers:
        phase = self.phases[number]
        if not isinstance(phase.rows, PhaseRows):
            return phase.rows(k)
        if (count := len(phase.rows) * self.images(phase)) > TRANSFERS_LISTED:
            raise TooLargeError(
                f"step {self.starts[number] + k}: {count:,} transfers, which translations of {len(phase.rows):,} define, are "
                f"not listed; at most {TRANSFERS_LISTED:,} are; try fewer nodes, or an algorithm of more steps"
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
        if (there := self._carried(number, k)) is not None:
            rows = rows.take(there)
        place = rank if self.space.places is None else int(self.space.places[rank])
        digits, moves = self.space.digits(np.array([place]))[0], np.array(phase.moves)
        by = np.where(moves, (digits - rows.dst) % np.array(self.space.radices), 0)
        reach = np.flatnonzero((((rows.dst + by) % np.array(self.space.radices)) == digits).all(axis=1))
        moved = translated(self.space, rows.take(reach), by[reach])
        alone = Phase(shifted(moved, k, self.space))
        return Steps(self.space, self.parts, [alone])._listed(0, 0, np.zeros((1, len(digits)), np.int64))

    def num_transfers(self, i: int) -> int:
        """Transfers of step i, without a list of them: images of rows, and of those that wrap around a digit twice [count]."""
        number, k = self.phase_of(i)
        phase = self.phases[number]
        rows = phase.rows
        if phase.listed or not isinstance(rows, PhaseRows):
            return len(self(i))
        if (there := self._carried(number, k)) is not None:
            rows = rows.take(there)
        if not (apart := rows.apart).all():
            rows = rows.take(np.flatnonzero(apart))
        total, images = len(rows) * self.images(phase), self.images(phase)
        for at, one in enumerate(self.parts):
            mine = rows.part == at
            for d in one.digits:
                whole, count = self.space.radices[d], rows.count[mine, d]
                wraps = (count > 1) & (count * rows.step[mine, d] != whole)
                total += images // whole * int((count[wraps] - 1).sum()) if phase.moves[d] else 0
        return total

    def states_paths(self, i: int) -> bool:
        """Whether transfers of step i state paths."""
        phase = self.phases[self.phase_of(i)[0]]
        return phase.paths is not None if isinstance(phase.rows, PhaseRows) else self(i).path is not None

    def joins_all(self, i: int) -> bool:
        """Whether every rank sends one transfer to every other in step i, of equal sizes and operations.

        Then any permutation of the ranks takes pairs and sizes of the step to themselves.

        Args: i: number of the step.
        """
        n = self.space.num_ranks
        if n == 1 or self.num_transfers(i) != n * (n - 1) or not all(self.group(i)):
            return False
        first = self.sent_by(i, np.zeros(1, np.int64))
        equal = (first.size_chunks() == first.size_chunks()[0]).all() and (first.op == first.op[0]).all()
        return bool(equal) and len(np.unique(first.dst)) == n - 1

    def group(self, i: int) -> tuple[bool, ...]:
        """Digits whose translations take ranges of chunks of step i to ranges: those that move and in which no box is cut."""
        number, _ = self.phase_of(i)
        if number not in self._groups:
            self._groups[number] = self._group(self.phases[number])
        return self._groups[number]

    def _group(self, phase: Phase) -> tuple[bool, ...]:
        rows, radices = phase.rows, np.array(self.space.radices)
        if phase.listed or not isinstance(rows, PhaseRows):
            return (False,) * len(radices)
        inside = np.array([[d in one.digits for d in range(len(radices))] for one in self.parts])
        cut = (rows.count > 1) & (rows.count * rows.step != radices) & inside[rows.part]
        return tuple((np.array(phase.moves) & ~cut.any(axis=0)).tolist())

    def moves(self, i: int) -> tuple[bool, ...]:
        """Whether translations move each digit in step i."""
        return self.phases[self.phase_of(i)[0]].moves or (False,) * len(self.space.radices)

    def rows_of(self, i: int) -> PhaseRows | None:
        """Rows as they are in step i; None where a function lists the step, or a box is cut in a digit that moves, so that
        images of a row differ in their ranges of chunks.

        Args: i: number of the step.
        """
        number, k = self.phase_of(i)
        rows = self.phases[number].rows
        if not isinstance(rows, PhaseRows) or self.group(i) != self.moves(i):
            return None
        if (there := self._carried(number, k)) is not None:
            rows = rows.take(there)
        return shifted(rows, k, self.space) if k else rows

    def representatives(self, i: int, *, received: bool = False) -> Transfers:
        """Transfers of step i of which translations of the digits of `group` make all others; they are kept as steps are.

        Args:
            i: number of the step.
            received: whether receivers are 0 in these digits; else senders are.
        """
        number, k = self.phase_of(i)
        moves, rows = np.array(self.group(i)), self.phases[number].rows
        if not moves.any() or not isinstance(rows, PhaseRows):
            return self(i)
        others = np.array(self.moves(i)) & ~moves
        elements = self.space.translations(others.tolist()) if others.any() else np.zeros((1, len(moves)), np.int64)
        some = translated(self.space, rows, -rows.dst * moves) if received else None
        return RECENT.value(
            RECENT.number((self.key(number), received)), k, lambda k: self._listed(number, k, elements, some)
        )

    def transfers_of(self, number: int) -> int:
        """Transfers of all steps of a phase, without a list where it has rows [count].

        Args: number: of the phase.
        """
        phase, first = self.phases[number], self.starts[number]
        rows = phase.rows
        if not isinstance(rows, PhaseRows):
            return sum([len(rows(k)) for k in range(phase.count)])
        spans = self._spans(number)
        if spans is None:
            return phase.count * self.num_transfers(first)
        return self.images(phase) * int((spans.end - spans.begin)[rows.apart].sum())

    def ends(self, i: int, most: int, ranks: IntArray) -> Iterator[TransferEnds]:
        """Ends of the transfers of step i that some ranks send, some at a time, in another order than that of the step.

        Where all ranks do the same and there are more, those of one rank say which: no transfer is listed.

        Args:
            i: number of the step.
            most: transfers at a time, or those of one rank, or of one distance, where these are more [count].
            ranks: senders.
        """
        if all(self.group(i)) and len(ranks) * self.num_transfers(i) > most * self.space.num_ranks:
            first = self.representatives(i)
            ahead = (first.dst if self.space.places is None else self.space.places[first.dst]).tolist()
            places, chunks = ranks if self.space.places is None else self.space.places[ranks], first.size_chunks()
            size = max(1, most // max(1, len(ranks)))
            for at in range(0, len(ahead), size):
                dst = [self.space.images(0, one, self.group(i))[1][places] for one in ahead[at : at + size]]
                yield TransferEnds(
                    np.tile(ranks, len(dst)), np.concatenate(dst), np.repeat(chunks[at : at + size], len(ranks))
                )
            return
        every = self(i) if len(ranks) == self.space.num_ranks else self.sent_by(i, ranks)
        for at in range(0, len(every), most):
            some = every.take(slice(at, at + most))
            yield TransferEnds(some.src, some.dst, some.size_chunks())

    def _listed(self, number: int, k: int, elements: IntArray | None, some: PhaseRows | None = None) -> Transfers:
        """The images of the rows of a phase in its step k.

        Args:
            number: of the phase.
            k: step of the phase.
            elements: translations, int (n, digits); None: all.
            some: in place of its rows.
        """
        phase = self.phases[number] if some is None else replace(self.phases[number], rows=some, bundles=(0,))
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        if elements is None:
            elements, src, dst = _images_of_all(self, number)
        else:
            elements, src, dst = self._images_of(phase, elements)
        row_of = np.arange(len(rows))
        if (there := self._carried(number, k)) is not None:
            phase = replace(phase, rows=rows.take(there), bundles=kept_bundles(phase.bundles, there), paths=None)
            rows, row_of = phase.rows, row_of[there]
            assert isinstance(rows, PhaseRows)
            src, dst = src[:, there], dst[:, there]
        if not len(rows):
            return Transfers.of([], [], [], [], [])
        columns = self._columns(phase, elements, src, dst, k)
        if (paths := self.phases[number].paths) is not None:
            columns = [(at, nth, (*values, row_of[at])) for at, nth, values in columns]
        sender, receiver, lo, n, step, op, held, *row = in_order(columns, phase.bundles, len(elements))
        differ = (sender != receiver) & (n > 0)
        if not differ.all():
            sender, receiver, lo, n, step, op, held = (c[differ] for c in (sender, receiver, lo, n, step, op, held))
            row = [column[differ] for column in row]
        ranks = self.space.ranks
        apart = (
            None if not rows.parts_step.any() and (rows.parts == 1).all() and not (rows.op == Op.MOVE).any() else held
        )
        return Transfers(
            ranks(sender).astype(np.int32, copy=False),
            ranks(receiver).astype(np.int32, copy=False),
            lo.astype(np.int32, copy=False),
            n.astype(np.int32, copy=False),
            op.astype(np.uint8, copy=False),
            None if apart is None else apart.astype(np.int32, copy=False),
            None if (step == 1).all() else step.astype(np.int32),
            *(() if paths is None else paths_of_rows(*paths, row[0])),
        )

    def _carried(self, number: int, k: int) -> slice | IntArray | None:
        """The rows of a phase whose first unit the part has in its step k; None where that holds of all rows in all steps."""
        spans = self._spans(number)
        if spans is None:
            return None
        if spans.in_order:
            first, last = (int(np.searchsorted(steps, k, "right")) for steps in (spans.end, spans.begin))
            return slice(first, last)
        return np.flatnonzero((spans.begin <= k) & (k < spans.end))

    def _images_of(self, phase: Phase, elements: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Translations, and places of sender and receiver of every image of every row, (translations, rows)."""
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        strides = np.array(self.space.strides)
        places = (elements @ strides).astype(np.int32)
        src, dst = (self._places(phase, elements, places, ends) for ends in (rows.src, rows.dst))
        return elements, src, dst

    def _places(self, phase: Phase, elements: IntArray, places: IntArray, digits: IntArray) -> IntArray:
        """Numbers of the images of places.

        Args:
            phase: whose translations they are.
            elements: translations, int (n, digits).
            places: of the images of the place of digits 0, int32 (n,).
            digits: of the places, int (rows, digits).
        Returns: int32 (n, rows).
        """
        counted, moves = [], np.array(phase.moves or (False,) * len(self.space.radices))
        for d in np.flatnonzero(moves & digits.any(axis=0)).tolist():
            stride = self.space.strides[d]

            def farther(before: IntArray, after: IntArray, stride: int = stride) -> IntArray:
                return (after - before) * stride

            counted.append(Counted.of(elements[:, d], self.space.radices[d], digits[:, d], farther))
        numbers = of_digits(places, counted, digits @ (np.array(self.space.strides) * ~moves))
        return np.broadcast_to(numbers, (len(elements), len(digits)))

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
        parts, op = (rows.parts + k * rows.parts_step).astype(np.int32), rows.op.astype(np.uint8)
        columns: list[tuple[IntArray, int, tuple[IntArray, ...]]] = []
        for one in dict.fromkeys(self.parts):  # parts of one kind together
            kind = np.array([part == one for part in self.parts])
            of_part = np.flatnonzero(kind[rows.part])
            if not len(of_part):
                continue
            mine = rows if len(of_part) == len(rows) else rows.take(of_part)
            firsts = self._first_chunk[mine.part].astype(np.int32)
            for some, nth, lo, n, step in ranges_of_boxes(self.space, one, phase.moves, mine, elements, k):
                all_rows = len(some) == len(rows)
                at = of_part[some]
                columns.append(
                    (
                        at,
                        nth,
                        (
                            src if all_rows else src[:, at],
                            dst if all_rows else dst[:, at],
                            lo + firsts[some],
                            n,
                            step,
                            op[at],
                            parts[at],
                        ),
                    )
                )
        return columns

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
        columns_of_phase = []
        for at in phases:
            columns = events_of_phase(self.space, self.parts[number], self.phases[at], number, unit, label, folded)
            if columns is not None:
                columns_of_phase.append((columns[0] + self.starts[at], *columns[1:]))
        if not columns_of_phase:
            return ChunkEvents(*(np.zeros(0, np.int64) for _ in range(5)))
        return ChunkEvents(*(np.concatenate(column) for column in zip(*columns_of_phase, strict=True)))

    def key(self, number: int) -> tuple[bytes, bytes] | None:
        """Equal for phases that define the same steps, of whatever schedule; None where a function lists them.

        Args: number: of the phase.
        """
        digest = self.phases[number].digest
        return None if digest is None else (self._frame, digest)

    @cached_property
    def _frame(self) -> bytes:
        """Digest of digits of the ranks and parts of the message."""
        digest = blake2b(repr((self.space.radices, self.parts)).encode(), digest_size=16)
        digest.update(b"" if self.space.order is None else self.space.order.astype(np.int64).tobytes())
        return digest.digest()

    @cached_property
    def digest(self) -> bytes | None:
        """Of all that defines the steps; None where a function lists some of them."""
        each = [phase.digest for phase in self.phases]
        return None if None in each else blake2b(b"".join([self._frame, *filter(None, each)]), digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Steps):
            return NotImplemented
        if self is other or self.digest is not None or other.digest is not None:
            return self is other or self.digest == other.digest
        if (self.space, self.parts, len(self.phases)) != (other.space, other.parts, len(other.phases)):
            return False
        return all(map(_same_phase, self.phases, other.phases))

    def __hash__(self) -> int:
        return hash(self.digest or (self.space, self.parts, self.starts))

    def __reduce__(self) -> tuple[Any, ...]:
        return Steps, (self.space, self.parts, self.phases)


@lru_cache(2)
def _images_of_all(steps: Steps, number: int) -> tuple[IntArray, IntArray, IntArray]:
    """Translations of a phase, and places of sender and receiver of every image of every row; kept while steps are listed."""
    phase = steps.phases[number]
    moves = phase.moves or (False,) * len(steps.space.radices)
    return steps._images_of(phase, steps.space.translations(moves))


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
    if (one.paths is None) != (other.paths is None):
        return False
    if any(not np.array_equal(*both) for both in zip(one.paths or (), other.paths or (), strict=True)):
        return False
    if isinstance(one.rows, PhaseRows) and isinstance(other.rows, PhaseRows):
        return same_columns(one.rows, other.rows)
    return bool(one.rows == other.rows)
