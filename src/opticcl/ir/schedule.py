"""Schedules: which rank sends which chunks to which rank in which step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import NO_PARAMETERS, IntArray, first_rows, is_value, same_columns
from opticcl.ir.collective import Collective

__all__ = ["Op", "Schedule", "Transfers", "concatenate_transfers"]


class Op(IntEnum):
    """What the receiver does with a transfer: store it, add it to its own, or (only where contributions are kept apart, as in
    all_to_all) put it beside its own, while the sender gives it up. With REDUCE_MOVE the receiver adds and the sender gives up:
    on directed circuits a node would otherwise count what it holds twice.

    A sum has bit 0 set, a transfer after which the sender has the chunk no more bit 1. All sends of a step see the data
    before it, so one chunk can be given to several receivers.
    """

    COPY = 0
    REDUCE = 1
    MOVE = 2
    REDUCE_MOVE = 3


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers that may start together, as columns of equal length.

    Args:
        src: sending rank, int32 (n,).
        dst: receiving rank, int32 (n,).
        chunk_lo: first chunk carried, int32 (n,).
        chunk_n: number of chunks carried, int32 (n,): chunk_lo, chunk_lo + chunk_step, ...
        op: `Op` as uint8 (n,).
        parts: contributions carried of each chunk, int32 (n,), where the collective keeps them apart; else None, one.
        chunk_step: distance between the chunks carried, int32 (n,); None: 1, they are neighbours.
    """

    src: IntArray
    dst: IntArray
    chunk_lo: IntArray
    chunk_n: IntArray
    op: npt.NDArray[np.uint8]
    parts: IntArray | None = None
    chunk_step: IntArray | None = None

    @classmethod
    def of(
        cls, src: Any, dst: Any, chunk_lo: Any, chunk_n: Any, op: Any, parts: Any = None, chunk_step: Any = None
    ) -> Transfers:
        """Columns from array-likes, without the rows whose source is their destination (src == dst).

        Args: src, dst, chunk_lo, chunk_n, op, parts, chunk_step: array-likes of a common shape after broadcasting.
        """
        given = [np.asarray(c) for c in (src, dst, chunk_lo, chunk_n, op)]
        more = [None if c is None else np.asarray(c) for c in (parts, chunk_step)]
        given += [c for c in more if c is not None]
        shapes = {c.shape for c in given if c.ndim}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast(*given).shape  # usually without broadcasting
        differ = given[0] != given[1]
        moves = np.ravel(differ if differ.shape == shape else np.broadcast_to(differ, shape))
        all_move = bool(moves.all())
        n = len(moves) if all_move else int(np.count_nonzero(moves))

        def column(values: IntArray, kind: type = np.int32) -> IntArray:
            if not values.ndim:
                return np.full(n, values, kind)
            flat = np.ravel(values if values.shape == shape else np.broadcast_to(values, shape))
            return np.ascontiguousarray(flat if all_move else flat[moves], dtype=kind)

        ints = [column(c) for c in given[:4]]
        apart, step = (None if c is None else column(c) for c in more)
        return cls(ints[0], ints[1], ints[2], ints[3], column(given[4], np.uint8), apart, step)

    def __len__(self) -> int:
        return len(self.src)

    def __repr__(self) -> str:
        return f"<Transfers {len(self):,}>"

    def __str__(self) -> str:
        columns = {name: getattr(self, name) for name in ("src", "dst", "chunk_lo", "chunk_n")}
        columns |= {} if self.chunk_step is None else {"chunk_step": self.chunk_step}
        return first_rows({**columns, "op": np.array([op.name for op in Op])[self.op]})

    def size_chunks(self) -> IntArray:
        """Size of each transfer in chunks, int64 (n,)."""
        amount = self.chunk_n.astype(np.int64)
        return amount if self.parts is None else amount * self.parts

    def take(self, rows: Any) -> Transfers:
        """The given rows (indices, slice or mask)."""
        kept = {name: getattr(self, name)[rows] for name in ("src", "dst", "chunk_lo", "chunk_n", "op")}
        more = (None if column is None else column[rows] for column in (self.parts, self.chunk_step))
        return Transfers(*kept.values(), *more)

    def ranges(self) -> tuple[Transfers, IntArray]:
        """The same with neighbouring chunks alone, a row for each chunk of those that carry others, and the row of each."""
        every = np.arange(len(self))
        if self.chunk_step is None:
            return self, every
        apart = self.chunk_step != 1
        many = np.where(apart, self.chunk_n, 1)
        row = np.repeat(every, many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        lo = (self.chunk_lo[row] + nth * self.chunk_step[row]).astype(np.int32)
        count = np.where(apart[row], 1, self.chunk_n[row]).astype(np.int32)
        parts = None if self.parts is None else self.parts[row]
        return Transfers(self.src[row], self.dst[row], lo, count, self.op[row], parts), row


def concatenate_transfers(parts: Iterable[Transfers]) -> Transfers:
    """Several lists of transfers as one, in order."""
    lists = list(parts)
    if len(lists) == 1:
        return lists[0]
    columns = {f: np.concatenate([getattr(p, f) for p in lists]) for f in ("src", "dst", "chunk_lo", "chunk_n", "op")}
    apart = [p.parts for p in lists if p.parts is not None]
    steps = None
    if any(p.chunk_step is not None for p in lists):
        steps = np.concatenate([np.ones(len(p), np.int32) if p.chunk_step is None else p.chunk_step for p in lists])
    return Transfers(**columns, parts=np.concatenate(apart) if apart else None, chunk_step=steps)


@dataclass(frozen=True, slots=True)
class StoredSteps:
    """A step function that looks its steps up.

    Args:
        steps: transfers of each step.
    """

    steps: tuple[Transfers, ...]

    def __call__(self, i: int) -> Transfers:
        return self.steps[i]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Steps of transfers.

    Args:
        name: algorithm that made it.
        collective: what it claims to do.
        num_steps: number of steps [count].
        step: pure function of the step's index.
        classes: the steps in order, cut into runs. Steps of a run are identical (same senders, receivers, number of chunks
            and operation) but for the chunk numbers. So a ring of 65,536 ranks has 131,070 steps and two classes.
            By default every step is a run of its own.
        parameters: parameters of the algorithm.
        stands: whether a rule may set circuits before a step uses them, so that pairs may change where circuits do not.
        symmetries: claims of `opticcl.ir.symmetry.Symmetry` under which the schedule is what it was; of a reduce, the steps up
            to its last sum. The verifier checks them.
        steps_of: stated by an algorithm: values and arrays that the steps follow from, whatever the fabric. Schedules of one
            algorithm and equal values have equal steps, which are cached once; `generate` hands them to the step function.
            None: not stated.
    """

    name: str
    collective: Collective
    num_steps: int
    step: Callable[[int], Transfers]
    classes: tuple[range, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=lambda: NO_PARAMETERS)
    symmetries: tuple[Any, ...] = ()
    stands: bool = False
    steps_of: tuple[Any, ...] | None = None

    def __repr__(self) -> str:
        from opticcl.units import counted

        c = self.collective
        return (
            f"<Schedule {self.name}: {c.name} among {counted(c.num_ranks, 'rank')}, {counted(self.num_steps, 'step')}>"
        )

    def step_classes(self) -> tuple[range, ...]:
        """The steps in order, cut into runs of equal steps."""
        return self.classes or tuple(range(i, i + 1) for i in range(self.num_steps))

    def __eq__(self, other: object) -> bool:
        """Equal in all fields; step functions by their own equality, else by the transfers of every step."""
        if not isinstance(other, Schedule):
            return NotImplemented
        mine, its = ((s.name, s.num_steps, s.step_classes(), dict(s.parameters), s.collective) for s in (self, other))
        if mine != its:
            return False
        return self.step == other.step or all(same_columns(self.step(i), other.step(i)) for i in range(self.num_steps))

    def __hash__(self) -> int:
        return hash((self.name, self.num_steps, self.collective))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles with its step function if that can be pickled, else with the transfers of every step."""
        step = self.step
        if not is_value(step):
            step = StoredSteps(tuple(self.step(i) for i in range(self.num_steps)))
        fields = (
            self.name,
            self.collective,
            self.num_steps,
            step,
            self.classes,
            dict(self.parameters),
            self.symmetries,
            self.stands,
        )
        return _schedule_of, fields


def _schedule_of(
    name: str,
    collective: Collective,
    num_steps: int,
    step: Callable[[int], Transfers],
    classes: tuple[range, ...],
    parameters: dict[str, Any],
    symmetries: tuple[Any, ...],
    stands: bool,
) -> Schedule:
    return Schedule(name, collective, num_steps, step, classes, MappingProxyType(parameters), symmetries, stands)
