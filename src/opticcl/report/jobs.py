"""Jobs on one machine: the plan and verdict of each, and the verdict on all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.columns import FittedTable, Shown, columns_of
from opticcl.report.kit.result import Result
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.ir import Fabric, Verdict
    from opticcl.operations.arbiter import RunningJob

__all__ = ["JobReport", "JobsReport"]

MOST_RANGES = 6
"""Ranges of node numbers that a cell shows [count]."""


@dataclass(frozen=True, slots=True, eq=False)
class JobReport:
    """A job and its plan.

    Args:
        job: name and nodes.
        switch_ports: ports that are set for it [count].
        algorithm: of the plan.
        num_steps: of the plan [count].
        total_s: time of the plan [s].
        ok: whether the plan is right.
        beside: another set of assumptions, and the time of the plan under it [s].
    """

    job: RunningJob
    switch_ports: int
    algorithm: str
    num_steps: int
    total_s: float
    ok: bool
    beside: tuple[str, float]

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **self.job.record(),
            "switch_ports": self.switch_ports,
            "algorithm": self.algorithm,
            "num_steps": self.num_steps,
            "total_s": self.total_s,
            f"{self.beside[0]}_s": self.beside[1],
            "ok": self.ok,
        }


@dataclass(frozen=True, slots=True, eq=False)
class JobsReport(Result):
    """All jobs of a machine.

    Args:
        machine: that they share.
        num_free: nodes that no job holds [count].
        jobs: in the order of their arrival.
        together: verdict on all plans at the same time; None without jobs.
    """

    machine: Fabric
    num_free: int
    jobs: tuple[JobReport, ...] = ()
    together: Verdict | None = None

    @property
    def ok(self) -> bool:
        """Whether every plan is right, alone and beside the others."""
        return all(job.ok for job in self.jobs) and (self.together is None or self.together.ok)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl jobs --json` prints them."""
        together = {} if self.together is None else {"together": self.together.record()}
        return {"ok": self.ok, "free": self.num_free, "jobs": [job.record() for job in self.jobs], **together}

    @property
    def headline(self) -> str:
        """Whether all jobs run beside each other."""
        if not self.jobs:
            return f"No job runs on {self.machine.name}."
        jobs, refused = counted(len(self.jobs), "job"), sum(not job.ok for job in self.jobs)
        if refused:
            return f"{refused} of {jobs} on {self.machine.name} have a wrong plan."
        if len(self.jobs) == 1:
            return f"The plan of the job is verified on {self.machine.name}."
        if not self.ok:
            return f"{jobs} on {self.machine.name} disturb each other, though each plan is right."
        return (
            f"{jobs} run on {self.machine.name} at the same time without disturbing each other; each plan is verified."
        )

    def lines(self) -> list[str]:
        """Lines below the table: the verdict on all jobs together, and the free nodes."""
        free = f"{self.num_free} of {self.machine.num_nodes} nodes of {self.machine.name} are free"
        if self.together is None:
            return [f"no jobs; {free}"]
        circuits = counted(self.together.circuits, "circuit")
        return [
            f"together: {counted(len(self.jobs), 'job')}, {circuits}, {self._isolation(self.together)}",
            *(f"  {violation}" for violation in self.together.violations),
            free,
        ]

    def blocks(self) -> list[FittedTable | str]:
        """The table, if there are jobs, and the lines."""
        return [*([self.table()] if self.jobs else []), *self.lines()]

    def _isolation(self, together: Verdict) -> str:
        if not together.ok:
            return "not isolated:"
        if self.machine.is_packet_switched:
            return "no node in common; their packets may share links"
        return "isolated: no combination of their rounds conflicts"

    def table(self) -> FittedTable:
        """One row a job."""
        return FittedTable(
            columns_of(
                [job.record() for job in self.jobs],
                Shown("job"),
                Shown("nodes", form=lambda nodes: str(len(nodes)), justify="right"),
                Shown("held", rank=3),
                Shown("switch_ports", "ports set", 4),
                Shown("algorithm", rank=1),
                Shown("num_steps", "steps", 2),
                Shown("total_s", "time"),
                Shown(f"{self.jobs[0].beside[0]}_s", rank=1),
                Shown("ok", "verdict", form=lambda ok: "verified" if ok else "refused", justify="left"),
                Shown("nodes", "place", form=_ranges),
            )
        )


def _ranges(nodes: Sequence[int]) -> str:
    """Node numbers in ranges.

    >>> _ranges([0, 1, 2, 3, 16, 18, 17])
    '0-3,16-18'
    """
    ranges: list[list[int]] = []
    for node in sorted(nodes):
        if ranges and ranges[-1][1] == node - 1:
            ranges[-1][1] = node
        else:
            ranges.append([node, node])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MOST_RANGES])
    return text + (f",... ({len(ranges)} ranges)" if len(ranges) > MOST_RANGES else "")
