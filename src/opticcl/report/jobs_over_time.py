"""Jobs over time: a row a policy, as table, record and picture of the nodes over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.report.kit.colours import DARK, FAINT, wavelength_colours
from opticcl.report.kit.columns import FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import axes_at, new_figure
from opticcl.report.kit.result import Result
from opticcl.units import counted, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.operations.jobs_over_time.simulation import JobsRun

__all__ = ["JobsOverTimeReport"]

COLOURS = 6
"""Of jobs in the picture; jobs with one colour differ by their place [count]."""


@dataclass(frozen=True, slots=True, eq=False)
class JobsOverTimeReport(Result):
    """Runs of the same jobs by several policies.

    Args:
        runs: one a policy.
        assumptions: what the times rest on.
        notes: remarks.
    """

    runs: Sequence[JobsRun]
    assumptions: dict[str, Any]
    notes: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Whether no judge found anything wrong."""
        return all(run.verdict.ok and not run.disturbed for run in self.runs)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl jobs --arrivals --json` prints them."""
        return {
            "ok": self.ok,
            "rows": [
                {**_summary(run), "jobs": [job.record() for job in run.jobs], "verdict": run.verdict.record()}
                for run in self.runs
            ],
            "totals": {
                "policies": len(self.runs),
                "jobs": len(self.runs[0].jobs),
                "violations": sum(len(run.verdict.violations) for run in self.runs),
                "disturbed": sum(run.disturbed for run in self.runs),
            },
            "notes": [*self._refusals(), *self.notes],
            "assumptions": self.assumptions,
        }

    @property
    def headline(self) -> str:
        """Which policy lets jobs wait least."""
        waits = {run.setup.policy: _summary(run)["wait_mean_s"] for run in self.runs}
        known = {policy: seconds for policy, seconds in waits.items() if seconds is not None}
        if not known:
            return "No job was placed."
        least = min(known, key=lambda policy: known[policy])
        return f"Jobs wait {format_seconds(known[least])} on average by {least}" + (
            ", the least." if len(known) > 1 else "."
        )

    def table_rows(self) -> list[dict[str, Any]]:
        """A row a job and policy, plain values."""
        return [
            {"policy": run.setup.policy, **{k: v for k, v in job.record().items() if k != "nodes"}}
            for run in self.runs
            for job in run.jobs
        ]

    def lines(self) -> list[str]:
        """Lines below the table."""
        changes = sum(run.changes for run in self.runs)
        circuits = sum(run.verdict.circuits for run in self.runs)
        wrong = [violation for run in self.runs for violation in run.verdict.violations]
        disturbed = sum(run.disturbed for run in self.runs)
        head = "verified" if self.ok else "refused"
        return [
            f"{head}: all running jobs together at {changes:,} arrivals and departures, {counted(circuits, 'circuit')}, "
            f"{counted(len(wrong), 'violation')}, {disturbed:,} circuits of other jobs disturbed",
            *(f"  {violation}" for violation in wrong),
            *self._refusals(),
        ]

    def _refusals(self) -> list[str]:
        reasons = []
        for run in self.runs:
            refused = [job for job in run.jobs if job.start_s is None]
            if refused:
                first = refused[0]
                reasons.append(
                    f"{run.setup.policy}: {counted(len(refused), 'job')} refused; {first.arrival.name}: {first.reason}"
                )
        return reasons

    def table(self) -> FittedTable:
        """One row a policy."""
        return FittedTable(
            columns_of(
                [_summary(run) for run in self.runs],
                Shown("policy"),
                Shown("accepted", rank=3, form=".3f"),
                Shown("at_once", "on arrival", form=".3f"),
                Shown("wait_mean_s", "mean wait"),
                Shown("wait_p99_s", "99 % wait", 4),
                Shown("slow_down_mean", "slow-down", form=".3f"),
                Shown("utilisation", form=".3f"),
                Shown("fragmentation", form=".3f"),
                Shown("blocked", rank=1, form=".3f"),
                Shown("blocked_jobs", rank=5),
                Shown("held_per_asked", "held / requested", 2, ".3f"),
                Shown("disturbed", rank=6),
                Shown("violations", rank=7),
                Shown("placement_mean_s", "placement", 8),
            )
        )

    @property
    def label(self) -> str:
        """What the picture shows, in words."""
        setup = self.runs[0].setup
        policies = ", ".join(run.setup.policy for run in self.runs)
        nodes = counted(setup.machine.num_nodes, "node")
        return f"{counted(len(self.runs[0].jobs), 'job')} on {nodes} of {setup.machine.name}: {policies}"

    def figure(self) -> Figure:
        """Nodes over time coloured by job, below it the waiting jobs, for each policy; draw it inside `svg.drawing_style()`."""
        each = 3.0
        height = 0.75 + each * len(self.runs)
        remark = "Rectangles: nodes of a job from its start to its end. Below: jobs that wait."
        figure = new_figure(height, self.label, remark)
        end_s = max((job.end_s or 0.0 for run in self.runs for job in run.jobs), default=0.0)
        scale, unit = (3600.0, "h") if end_s >= 7200 else (1.0, "s")
        for number, run in enumerate(self.runs):
            top = height - 0.75 - each * number
            nodes = axes_at(figure, 0.75, top - 1.9, 9.0, 1.85)
            queue = axes_at(figure, 0.75, top - 2.5, 9.0, 0.5, sharex=nodes)
            _draw_jobs(nodes, run, scale)
            times = [state.time_s / scale for state in run.states]
            queue.step(times, [state.waiting for state in run.states], where="post", color=DARK, linewidth=0.8)
            queue.set_ylabel("waiting")
            queue.set_xlabel(f"time [{unit}]")
            queue.set_ylim(bottom=0)
            nodes.set_xlim(0, end_s / scale if end_s else 1)
            nodes.tick_params(labelbottom=False)
            nodes.set_ylabel(f"{run.setup.policy}: node")
            nodes.set_ylim(-0.5, run.setup.machine.num_machine_nodes - 0.5)
        return figure


def _summary(run: JobsRun) -> dict[str, Any]:
    """Values of a run."""
    started = [job for job in run.jobs if job.wait_s is not None]
    waits = np.array([job.wait_s for job in started])
    slow = [job.slow_down for job in started]
    return {
        "policy": run.setup.policy,
        "accepted": len(started) / len(run.jobs),
        "at_once": int((waits == 0).sum()) / len(run.jobs) if started else 0.0,
        "wait_mean_s": float(waits.mean()) if started else None,
        "wait_p99_s": float(np.quantile(waits, 0.99)) if started else None,
        "slow_down_mean": float(np.mean(slow)) if started else None,
        "slow_down_max": float(np.max(slow)) if started else None,
        **run.over_time(),
        "blocked_jobs": sum(job.blocked for job in run.jobs),
        "changes": run.changes,
        "disturbed": run.disturbed,
        "violations": len(run.verdict.violations),
        "placement_mean_s": float(np.mean([job.placement_s for job in started])) if started else None,
        "ends_s": max((job.end_s or 0.0 for job in run.jobs), default=0.0),
    }


def _draw_jobs(axes: Axes, run: JobsRun, scale: float) -> None:
    """A rectangle for each run of neighbouring nodes of each job.

    Args:
        axes: to draw on.
        run: the jobs.
        scale: seconds of a unit of the axis.
    """
    from matplotlib.collections import PolyCollection

    colours = wavelength_colours(range(COLOURS))
    boxes, fill = [], []
    for number, job in enumerate(run.jobs):
        if job.start_s is None or job.end_s is None:
            continue
        nodes = np.sort(job.nodes)
        cuts = np.flatnonzero(np.diff(nodes) > 1) + 1
        for part in np.split(nodes, cuts):
            low, high = part[0] - 0.5, part[-1] + 0.5
            start, end = job.start_s / scale, job.end_s / scale
            boxes.append([(start, low), (end, low), (end, high), (start, high)])
            fill.append(colours[number % COLOURS])
    axes.add_collection(PolyCollection(boxes, facecolors=fill, edgecolors=FAINT, linewidths=0.2))
