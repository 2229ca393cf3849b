"""Verdicts on many plans: the data of a schedule that several fabrics carry are followed once."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from opticcl.ir import CircuitPlan, IntArray, Schedule, Verdict
from opticcl.verify.optics import OpticsReport, check_optics
from opticcl.verify.semantics import ALL_CHUNKS_UP_TO, SAMPLE, SemanticsReport, check_semantics

__all__ = ["Judge", "verdict_on"]

COMPARED_ROWS = 1 << 26  # transfers of a ring above which it is quicker to follow its data again than to compare it


def verdict_on(data: SemanticsReport, light: OpticsReport) -> Verdict:
    """What was found about the data and about the light, in one."""
    return Verdict(
        violations=data.violations + light.violations,
        transfers=data.transfers,
        circuits=light.circuits,
        chunks=data.chunks,
        exhaustive=data.exhaustive,
        notes=data.notes + light.notes,
    )


class Judge:
    """Says of each plan what `verify` says.

    Args: all_up_to: (rank, chunk) pairs of a plan of which every chunk is followed, and not a sample [count].
    """

    def __init__(self, all_up_to: int = ALL_CHUNKS_UP_TO) -> None:
        self._all_up_to = all_up_to
        self._followed: dict[bytes, SemanticsReport] = {}

    def __call__(self, plan: CircuitPlan) -> Verdict:
        """The verdict on a plan."""
        return verdict_on(self._data(plan.schedule), check_optics(plan, progress=_silent))

    def _data(self, schedule: Schedule) -> SemanticsReport:
        if schedule.collective.num_ranks * schedule.num_steps > COMPARED_ROWS:
            return self._follow(schedule)
        key = _fingerprint(schedule)
        if key not in self._followed:
            self._followed[key] = self._follow(schedule)
        return self._followed[key]

    def _follow(self, schedule: Schedule) -> SemanticsReport:
        c = schedule.collective
        chunks = c.num_chunks if c.num_ranks * c.num_chunks <= self._all_up_to else SAMPLE
        return check_semantics(schedule, num_chunks=chunks, seed=0, progress=_silent)


def _silent(what: str, done: int, total: int) -> None:
    """Nobody wants to know step by step."""


def _fingerprint(schedule: Schedule) -> bytes:
    """The same for two schedules only if what they promise and every transfer of every step are."""
    c = schedule.collective
    digest = blake2b(repr((c.name, c.num_ranks, c.num_chunks, c.root, c.shift, schedule.num_steps)).encode())
    if c.owner is not None:
        digest.update(c.owner.tobytes())
    before: tuple[IntArray | None, ...] = (None,) * 6
    for i in range(schedule.num_steps):
        step = schedule.step(i)
        columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, step.parts)
        for column, last in zip(columns, before, strict=True):
            if column is None or column is last:  # most columns of a long schedule are those of the step before
                digest.update(b"-" if column is None else b"=")
            else:
                digest.update(f"{len(column)}{column.dtype.str}".encode())
                digest.update(np.ascontiguousarray(column).data)
        before = columns
    return digest.digest()
