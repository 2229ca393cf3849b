"""Checks of jobs that arrive at one machine and leave it: after every change, all that run.

    (rules of `verify`)     the job that arrives, by itself
    shared_between_jobs     all running jobs together, as `isolation` judges them
    job_disturbed           circuits of a running job are no longer those that it arrived with
    cells_not_released      nodes that the machine calls taken are not those of the running jobs

The judge keeps the circuits of every job as it arrives, and generates them again at every change.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from opticcl.ir import CircuitPlan, Circuits, IntArray, Verdict, Violation
from opticcl.ir.circuit_plan import same_circuits
from opticcl.verify import verify
from opticcl.verify.time.isolation import verify_together

__all__ = ["JobsJudge"]

MOST_REPORTED = 20
"""Violations that a verdict names [count]."""


def _circuits_of(plan: CircuitPlan) -> list[tuple[Circuits, ...]]:
    """Rounds of each run of equal steps."""
    return [plan.rounds(steps.start) for steps in plan.schedule.step_classes()]


class JobsJudge:
    """Judges the jobs of a machine, change by change.

    Args: usable: nodes that some job may use, bool (nodes,).
    """

    def __init__(self, usable: npt.NDArray[np.bool_]) -> None:
        self._usable = usable.copy()
        self._plans: dict[str, CircuitPlan] = {}
        self._arrived_with: dict[str, list[tuple[Circuits, ...]]] = {}
        self._violations: list[Violation] = []
        self._transfers = self._circuits = 0
        self.changes = 0
        """Arrivals and departures that were judged [count]."""
        self.disturbed = 0
        """Runs of equal steps of running jobs whose circuits changed [count]."""

    @property
    def verdict(self) -> Verdict:
        """On all changes so far."""
        note = f"{self.changes} arrivals and departures, all running jobs together at each"
        return Verdict(tuple(self._violations[:MOST_REPORTED]), self._transfers, self._circuits, 0, True, (note,))

    def admissible(self, name: str, plan: CircuitPlan) -> Verdict:
        """Verdict on a job that would arrive: by itself, then together with all that run; nothing is remembered.

        Args:
            name: of the job.
            plan: its circuits on the machine.
        """
        alone = verify(plan)
        if not alone.ok:
            return alone
        return verify_together([*self._plans.values(), plan], [*self._plans, name])

    def arrive(self, name: str, plan: CircuitPlan, held: Mapping[str, IntArray], free: npt.NDArray[np.bool_]) -> None:
        """Judge the machine after a job arrived.

        Args:
            name: of the job.
            plan: its circuits on the machine.
            held: nodes of each running job that no other may use, this one's included.
            free: nodes that the machine calls free, bool (nodes,).
        """
        alone = verify(plan)
        self._transfers += alone.transfers
        self._violations += alone.violations
        self._plans[name] = plan
        self._arrived_with[name] = _circuits_of(plan)
        self._judge(held, free)

    def leave(self, name: str, held: Mapping[str, IntArray], free: npt.NDArray[np.bool_]) -> None:
        """Judge the machine after a job left.

        Args:
            name: of the job.
            held: as of `arrive`, without this job.
            free: as of `arrive`.
        """
        del self._plans[name], self._arrived_with[name]
        self._judge(held, free)

    def _judge(self, held: Mapping[str, IntArray], free: npt.NDArray[np.bool_]) -> None:
        self.changes += 1
        if self._plans:
            together = verify_together(list(self._plans.values()), list(self._plans))
            self._violations += together.violations
            self._circuits += together.circuits
        for name, plan in self._plans.items():
            pairs = zip(self._arrived_with[name], _circuits_of(plan), strict=True)
            changed = [step for step, (before, now) in enumerate(pairs) if not same_circuits(before, now)]
            if changed:
                self.disturbed += len(changed)
                where = f"{name}, run {changed[0]} of equal steps"
                found = "others"
                self._violations.append(
                    Violation(
                        "job_disturbed", changed[0], -1, where, "the circuits of its arrival", found, len(changed)
                    )
                )
        taken = np.zeros(len(self._usable), bool)
        for name in self._plans:
            taken[held[name]] = True
        wrong = np.flatnonzero(self._usable & (taken == free))
        if len(wrong) or held.keys() != self._plans.keys():
            node = int(wrong[0]) if len(wrong) else -1
            expected, found = ("taken", "free") if node >= 0 and taken[node] else ("free", "taken")
            self._violations.append(
                Violation("cells_not_released", -1, -1, f"node {node}", expected, found, max(1, len(wrong)))
            )
