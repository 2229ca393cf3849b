"""Verification of many plans: schedules that several fabrics share are replayed once."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from opticcl.ir import CircuitPlan, IntArray, Schedule, Verdict, no_progress
from opticcl.ir.collective import Holders, HolderTable
from opticcl.ir.symmetric_steps import symmetric_steps
from opticcl.ir.symmetry import Run
from opticcl.verify.data import DataReport, check_data, never_too_large
from opticcl.verify.light import CircuitsReport, check_light
from opticcl.verify.symmetry import runs_of

__all__ = ["Judge", "combined_verdict"]

COMPARED_ROWS = 1 << 26  # (rank, run) pairs above which replaying is quicker than comparing


def combined_verdict(data: DataReport, light: CircuitsReport) -> Verdict:
    """The reports on data and light as one verdict."""
    return Verdict(
        violations=data.violations + light.violations,
        transfers=data.transfers,
        circuits=light.circuits,
        chunks=data.chunks,
        exhaustive=data.exhaustive,
        how=data.how,
        notes=data.notes + light.notes,
    )


class Judge:
    """Verifies plans as `verify` does, and caches the reports on their data."""

    def __init__(self) -> None:
        self._followed: dict[bytes, DataReport] = {}
        self._alone: dict[tuple[object, ...], tuple[Schedule, DataReport] | None] = {}
        self._collectives: list[object] = []

    def __call__(self, plan: CircuitPlan) -> Verdict:
        """The verdict on a plan."""
        return combined_verdict(self._data(plan.schedule), check_light(plan, progress=no_progress))

    def can_judge(self, plan: CircuitPlan) -> bool:
        """Whether the verdict on a plan is right or wrong, not that it is too large to be judged."""
        return never_too_large(plan.schedule) or self._data(plan.schedule).judged

    def _data(self, schedule: Schedule) -> DataReport:
        if symmetric_steps(schedule) is not None:
            return check_data(schedule)
        runs = runs_of(schedule)
        if schedule.collective.num_ranks * len(runs) > COMPARED_ROWS:
            return check_data(schedule)
        form = _form(schedule), len(runs)
        if form not in self._alone:  # nothing to compare with: its rows are read when a second one comes
            self._alone[form] = schedule, check_data(schedule)
        first = self._alone[form]
        if first is not None:
            earlier, report = first
            if earlier is schedule:
                return report
            self._alone[form] = None
            self._keep(_fingerprint(earlier, runs_of(earlier)), earlier, report)
        key = _fingerprint(schedule, runs)
        if key not in self._followed:
            self._keep(key, schedule, check_data(schedule))
        return self._followed[key]

    def _keep(self, key: bytes, schedule: Schedule, report: DataReport) -> None:
        """Keep the report on a schedule.

        Args:
            key: its fingerprint.
            schedule: that it is of.
            report: on its data.
        """
        self._followed[key] = report
        self._collectives.append(schedule.collective)  # predicates are known by their addresses


def _form(schedule: Schedule) -> tuple[object, ...]:
    """What two schedules have in common that may be equal."""
    c = schedule.collective
    return schedule.name, schedule.num_steps, c.name, c.num_ranks, c.num_chunks, c.root, c.shift


def _fingerprint(schedule: Schedule, runs: tuple[Run, ...]) -> bytes:
    """Equal for two schedules only if their collectives, their claims and every transfer of every step are equal."""
    c = schedule.collective
    sizes = (c.name, c.num_ranks, c.num_chunks, c.root, c.shift, c.reduces, c.keeps_apart)
    digest = sha256(repr(sizes).encode())  # quicker than blake2b where the processor has instructions for it
    for holders in (c.before, c.after):
        digest.update(_described(holders))
    for symmetry in schedule.symmetries:
        digest.update(symmetry.ranks.images(c.num_ranks).tobytes())
        digest.update(symmetry.chunks.images(c.num_chunks).tobytes())
    before: tuple[IntArray | None, ...] = (None,) * 7
    for run in (member for one in runs for member in one.members):
        digest.update(repr((run.count, run.parts_step, len(run.beside))).encode())
        digest.update(b"-" if run.shift is None else run.shift.images(c.num_chunks).tobytes())
        step = run.base()
        columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, step.parts, step.chunk_step)
        for column, last in zip(columns, before, strict=True):
            if column is None or column is last:  # most columns of a long schedule are those of the step before
                digest.update(b"-" if column is None else b"=")
            else:
                digest.update(f"{len(column)}{column.dtype.str}".encode())
                digest.update(np.ascontiguousarray(column).data)
        before = columns
    return digest.digest()


def _described(holders: object) -> bytes:
    """Bytes that are equal for equal predicates; a predicate that cannot be compared is equal to itself alone."""
    if isinstance(holders, Holders):
        owners = b"" if holders.owners is None else holders.owners.tobytes()
        return f"{holders.kind} {holders.root} ".encode() + owners
    if isinstance(holders, HolderTable):
        return f"{holders.table.shape} ".encode() + np.packbits(holders.table).tobytes()
    return f"object {id(holders)}".encode()
