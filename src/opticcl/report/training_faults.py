"""Training while recorded faults come and go: samples a day on each fabric, by policy, with and without spares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.result import Result
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.operations.fault_replay.fault_trace import FaultTrace
    from opticcl.operations.fault_replay.replay import ReplayRun

__all__ = ["TrainingFaults", "TrainingFaultsRow"]

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, eq=False)
class TrainingFaultsRow:
    """A job on one machine.

    Args:
        fabric: its name.
        devices: of the machine [count].
        spares: devices that are kept as spares in the second replay [count].
        iterations_per_day: of all devices when nothing fails.
        samples: of an iteration on all devices; 0: unknown [count].
        communication: share of the iteration in which devices wait for messages.
        collective: that stands for the messages of the job.
        without: replay of a job on all devices, by policy.
        with_spares: replay of a job on all devices but the spares, by policy; empty without spares.
        reason: why there is no replay; "" where there is one.
    """

    fabric: str
    devices: int
    spares: int
    iterations_per_day: float
    samples: int
    communication: float
    collective: str
    without: dict[str, ReplayRun]
    with_spares: dict[str, ReplayRun]
    reason: str = ""

    def per_day(self, policy: str, *, spares: bool) -> float | None:
        """Samples (iterations where samples are unknown) a day by a policy; None: not replayed.

        Args:
            policy: replan, restart or best.
            spares: whether the spares are kept.
        """
        runs = self.with_spares if spares else self.without
        if policy not in runs:
            return None
        share = (self.devices - self.spares) / self.devices if spares else 1.0
        return self.iterations_per_day * max(1, self.samples) * share * runs[policy].goodput

    def worth_of_a_spare(self, policy: str) -> float | None:
        """Samples a day that each spare adds (less than 0: that it costs) by a policy; None without spares."""
        with_them, without = self.per_day(policy, spares=True), self.per_day(policy, spares=False)
        return None if with_them is None or without is None else (with_them - without) / self.spares

    def record(self) -> dict[str, Any]:
        """Plain values."""
        row: dict[str, Any] = {
            "fabric": self.fabric,
            "devices": self.devices,
            "spares": self.spares,
            "iterations_per_day": self.iterations_per_day,
            "samples": self.samples,
            "communication": self.communication,
            "collective": self.collective,
            "reason": self.reason,
        }
        for policy in self.without:
            row |= {
                f"{policy}_goodput": self.without[policy].goodput,
                f"{policy}_per_day": self.per_day(policy, spares=False),
                f"{policy}_with_spares_goodput": self.with_spares[policy].goodput if self.with_spares else None,
                f"{policy}_with_spares_per_day": self.per_day(policy, spares=True),
                f"{policy}_worth_of_a_spare": self.worth_of_a_spare(policy),
            }
        return row


@dataclass(frozen=True, slots=True, eq=False)
class TrainingFaults(Result):
    """A job on several machines during the same faults.

    Args:
        rows: one a machine.
        trace: the faults.
    """

    rows: Sequence[TrainingFaultsRow]
    trace: FaultTrace

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {"rows": [row.record() for row in self.rows], "notes": self.lines()}

    def lines(self) -> list[str]:
        """Lines below the table."""
        what = "samples" if all(row.samples for row in self.rows) else "iterations"
        known = [
            f"{what} a day during {counted(self.trace.faults, 'fault')} in {self.trace.end_s / DAY_S:.4g} days; with spares "
            "the job has fewer devices and the same work for each; its largest collective stands for its messages",
        ]
        return known + [f"{row.fabric}: {row.reason}" for row in self.rows if row.reason]

    def table(self) -> FittedTable:
        """One row a machine."""
        rows, all_day = [row.record() for row in self.rows], ",.0f"
        without = [f"{row.iterations_per_day * max(1, row.samples):{all_day}}" for row in self.rows]
        fields = (
            Shown("restart_per_day", "restart", form=all_day),
            Shown("replan_per_day", "replan", form=all_day),
            Shown("best_per_day", "best", 2, all_day),
            Shown("spares", rank=1),
            Shown("restart_with_spares_per_day", "restart, spares", form=all_day),
            Shown("replan_with_spares_per_day", "replan, spares", form=all_day),
            Shown("best_with_spares_per_day", "best, spares", 3, all_day),
            Shown("replan_worth_of_a_spare", "worth of a spare", 1, all_day),
        )
        return FittedTable(
            [*columns_of(rows, Shown("fabric")), Column("no faults", without), *columns_of(rows, *fields)]
        )
