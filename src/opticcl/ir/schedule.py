"""Who sends which piece to whom in which step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import NO_PARAMETERS, IntArray, first_rows
from opticcl.ir.collective import Collective

__all__ = ["Op", "Schedule", "Transfers", "concatenate_transfers"]


class Op(IntEnum):
    """What becomes of a piece: the receiver stores it, adds it to its own, or puts it beside its own and the sender gives
    it away (only where contributions are kept apart, as in all_to_all)."""

    COPY = 0
    REDUCE = 1
    MOVE = 2


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers that may start together, as columns of equal length.

    Args:
        src: sending rank, int32 (n,).
        dst: receiving rank, int32 (n,).
        chunk_lo: first chunk carried, int32 (n,).
        chunk_n: number of consecutive chunks carried, int32 (n,).
        op: `Op` as uint8 (n,).
        parts: contributions carried of each chunk, int32 (n,), where the collective keeps them apart; else None, one.
    """

    src: IntArray
    dst: IntArray
    chunk_lo: IntArray
    chunk_n: IntArray
    op: npt.NDArray[np.uint8]
    parts: IntArray | None = None

    @classmethod
    def of(cls, src: Any, dst: Any, chunk_lo: Any, chunk_n: Any, op: Any, parts: Any = None) -> Transfers:
        """Columns from anything that broadcasts, without the rows that stay where they are (src == dst).

        Args: src, dst, chunk_lo, chunk_n, op, parts: array-likes of a common shape after broadcasting.
        """
        given = [np.asarray(c) for c in (src, dst, chunk_lo, chunk_n, op, *(() if parts is None else (parts,)))]
        shapes = {c.shape for c in given if c.ndim}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast(*given).shape  # the usual case needs no broadcasting
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
        apart = None if parts is None else column(given[5])
        return cls(ints[0], ints[1], ints[2], ints[3], column(given[4], np.uint8), apart)

    def __len__(self) -> int:
        return len(self.src)

    def __repr__(self) -> str:
        return f"<Transfers {len(self):,}>"

    def __str__(self) -> str:
        columns = {name: getattr(self, name) for name in ("src", "dst", "chunk_lo", "chunk_n")}
        return first_rows({**columns, "op": np.array([op.name for op in Op])[self.op]})

    def size_chunks(self) -> IntArray:
        """How much each transfer carries, in chunks, int64 (n,)."""
        return self.chunk_n.astype(np.int64) * (1 if self.parts is None else self.parts)

    def take(self, rows: Any) -> Transfers:
        """The given rows (indices, slice or mask)."""
        kept = {name: getattr(self, name)[rows] for name in ("src", "dst", "chunk_lo", "chunk_n", "op")}
        return Transfers(**kept, parts=None if self.parts is None else self.parts[rows])


def concatenate_transfers(parts: Iterable[Transfers]) -> Transfers:
    """Several lists of transfers as one, in order."""
    lists = list(parts)
    columns = {f: np.concatenate([getattr(p, f) for p in lists]) for f in ("src", "dst", "chunk_lo", "chunk_n", "op")}
    apart = [p.parts for p in lists if p.parts is not None]
    return Transfers(**columns, parts=np.concatenate(apart) if apart else None)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Who sends which piece to whom in which step.

    Args:
        name: algorithm that made it.
        collective: what it claims to do.
        num_steps: number of steps [count].
        step: pure function of the step's index.
        classes: the steps in order, cut into runs. Steps of a run are alike: same senders, receivers, number of chunks
            and operation, only the chunk numbers differ. So a ring of 65,536 ranks has 131,070 steps and two classes.
            By default every step is a run of its own.
        parameters: the algorithm's parameters, as it was called with.
    """

    name: str
    collective: Collective
    num_steps: int
    step: Callable[[int], Transfers]
    classes: tuple[range, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=lambda: NO_PARAMETERS)

    def __repr__(self) -> str:
        from opticcl.units import counted

        c = self.collective
        return (
            f"<Schedule {self.name}: {c.name} among {counted(c.num_ranks, 'rank')}, {counted(self.num_steps, 'step')}>"
        )

    def step_classes(self) -> tuple[range, ...]:
        """The steps in order, cut into runs of equal steps."""
        return self.classes or tuple(range(i, i + 1) for i in range(self.num_steps))
