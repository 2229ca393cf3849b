"""Circuits of a job beside running jobs: around the cells that these ever take, whatever round they are in.

Jobs are not synchronised, so a cell (resource, index, wavelength) that a running job takes in any round is taken in all of
them: as often as the job takes it at most, and wholly where it is set once for a job. The rounds of the fabric's own rule stay
where they touch none of these cells; other rounds are made again, see `_around`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from opticcl.circuits import lower
from opticcl.circuits._around import around, cells_of, cells_start
from opticcl.fabrics.job import Job
from opticcl.fabrics.terarack import Terarack
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Occupied, Schedule, Transfers
from opticcl.ir.circuit_plan import ClassRounds

__all__ = ["lower_beside", "taken_by"]


@dataclass(frozen=True, eq=False, repr=False)
class _SharedJob(Job):
    """A job on a machine of which other jobs take cells. Args: taken: by them."""

    taken: Occupied

    @property
    def occupied(self) -> Occupied:
        """Of the machine, and what other jobs take."""
        return self.whole.occupied + self.taken


@dataclass(frozen=True, eq=False)
class _RoundsOfClasses:
    """Circuits of the first step of each class. Args: of_step: by its index."""

    of_step: dict[int, tuple[Circuits, ...]]

    def __call__(self, i: int) -> tuple[Circuits, ...]:
        """Circuits of each round of step i."""
        return self.of_step[i]


def taken_by(plans: Iterable[CircuitPlan]) -> Occupied:
    """Cells that running jobs take in any of their rounds, the counts of different jobs added."""
    total = Occupied.none()
    for plan in plans:
        fabric = plan.fabric
        starts, depth = cells_start(fabric)
        most: IntArray = np.zeros(starts[-1], np.int64)
        for steps in plan.schedule.step_classes():
            for circuits in plan.rounds(steps.start):
                np.maximum(most, np.bincount(cells_of(fabric, circuits)[0], minlength=len(most)), out=most)
        capacity = np.repeat([int(r.capacity) for r in fabric.resources], np.diff(starts))
        once = np.repeat([r.once_per_job for r in fabric.resources], np.diff(starts))
        most = np.where(once & (most > 0), capacity, np.minimum(most, capacity))
        cell = np.flatnonzero(most)
        resource = np.searchsorted(starts, cell, side="right") - 1
        index, wavelength = np.divmod(cell - starts[resource], depth[resource])
        total += Occupied(resource, index, wavelength, most[cell], "other jobs")
    return total


def lower_beside(fabric: Fabric, schedule: Schedule, taken: Occupied) -> CircuitPlan:
    """Circuits for a schedule around cells that other jobs take; made at once, so that they stay as they are.

    Args:
        fabric: a job on some nodes of the machine.
        schedule: between its ranks.
        taken: by running jobs.
    Raises: UnsupportedError: no way is left for some transfer, or the fabric does not list its ways.
    """
    plan = lower(fabric, schedule)
    nodes = fabric.machine_nodes(np.arange(fabric.num_nodes)).astype(np.int32)
    machine = fabric.machine
    widens = machine.striping if isinstance(machine, Terarack) else True
    rounds = around(_SharedJob(machine, nodes, taken), lambda step, _: plan.rounds(step), widens=widens)
    by_start = {}
    for steps in schedule.step_classes():
        transfers = schedule.step(steps.start)
        on_machine = Transfers(
            fabric.machine_nodes(transfers.src),
            fabric.machine_nodes(transfers.dst),
            transfers.chunk_lo,
            transfers.chunk_n,
            transfers.op,
            chunk_step=transfers.chunk_step,
        )
        by_start[steps.start] = rounds(steps.start, on_machine) if len(transfers) else ()
    return CircuitPlan(fabric, schedule, ClassRounds(schedule.step_classes(), _RoundsOfClasses(by_start)))
