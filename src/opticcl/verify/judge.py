"""Verification of many plans: schedules that several fabrics share are judged once."""

from __future__ import annotations

from opticcl.ir import CircuitPlan, Schedule, Verdict, no_progress
from opticcl.verify.data.contributions import DataReport, check_data, never_too_large
from opticcl.verify.light.circuits import CircuitsReport, check_light

__all__ = ["Judge", "combined_verdict"]


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
    """Verifies plans as `verify` does, and keeps the reports on their data: fabrics share schedules."""

    def __init__(self) -> None:
        self._reports: dict[tuple[object, ...], DataReport] = {}

    def __call__(self, plan: CircuitPlan) -> Verdict:
        """The verdict on a plan."""
        return combined_verdict(self._data(plan.schedule), check_light(plan, progress=no_progress))

    def can_judge(self, plan: CircuitPlan) -> bool:
        """Whether the verdict on a plan is right or wrong, not that it is too large to be judged."""
        return never_too_large(plan.schedule) or self._data(plan.schedule).judged

    def _data(self, schedule: Schedule) -> DataReport:
        key = schedule.steps, schedule.collective, schedule.cut
        if key not in self._reports:
            self._reports[key] = check_data(schedule)
        return self._reports[key]
