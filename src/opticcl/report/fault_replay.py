"""A replay of recorded faults: a row a policy, as table, record and picture of the work over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.colours import wavelength_colours
from opticcl.report.kit.columns import FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure
from opticcl.report.kit.result import Result
from opticcl.units import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.operations.fault_replay.replay import ReplayRun, ReplaySetup

__all__ = ["ReplayReport"]

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, eq=False)
class ReplayReport(Result):
    """A job by all policies.

    Args:
        setup: of the replay.
        runs: one a policy.
        notes: remarks.
    """

    setup: ReplaySetup
    runs: Sequence[ReplayRun]
    notes: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl faults --replay --json` prints them."""
        setup, trace, times = self.setup, self.setup.trace, self.setup.times
        reprogram_s = setup.machine.reconfiguration_s if times.reprogram is None else times.reprogram
        return {
            "rows": [run.record() for run in self.runs],
            "totals": {
                "ranks": setup.ranks,
                "spares": setup.spares,
                "days": trace.end_s / DAY_S,
                "servers_with_faults": len(trace.servers),
                "faults": trace.faults,
                "overlapping": trace.overlapping,
                "open_at_the_end": trace.open,
            },
            "notes": [*self.lines(), *self.notes],
            "assumptions": {
                "detect_s": times.detect,
                "replan_s": "measured" if times.replan is None else times.replan,
                "reprogram_s": reprogram_s,
                "spare_s": times.spare,
                "restart_s": times.restart,
                "checkpoint_s": times.checkpoint,
                "communication": times.communication,
                "weak": times.weak,
                "collective": setup.collective,
                "size": setup.size,
                "seed": setup.seed,
                **setup.assumptions.record(),
            },
        }

    @property
    def headline(self) -> str:
        """Which policy does most of the work of a job without faults."""
        best = max(self.runs, key=lambda run: run.goodput)
        return f"{best.policy} does most of the work that a job without faults does: {best.goodput:.1%}."

    def lines(self) -> list[str]:
        """Lines below the table."""
        trace = self.setup.trace
        notes = [
            f"{counted(trace.faults, 'fault')} of {counted(len(trace.servers), 'server')} in {trace.end_s / DAY_S:.4g} days; "
            f"{trace.overlapping:,} began beside another of the same server, {trace.open:,} end with the record",
            "goodput is the work over that of a job that nothing happens to; best knows the time of the next change",
        ]
        if any(run.goodput > 1 for run in self.runs):
            notes.append("goodput above 1: fewer ranks on a block are faster than all ranks, which fill no block")
        follows = next((run.by for run in self.runs if run.policy == "best" and run.by != "best"), None)
        if follows is not None:
            notes.append(f"best is {follows} here: the choice change by change ended below it")
        return notes

    def table(self) -> FittedTable:
        """One row a policy."""
        return FittedTable(
            columns_of(
                [run.record() for run in self.runs],
                Shown("policy"),
                Shown("goodput", form=".4f"),
                Shown("longest_outage_s"),
                Shown("stopped_s", rank=1),
                Shown("plans"),
                Shown("replans", rank=2),
                Shown("restarts", rank=2),
                Shown("ranks_mean", "mean ranks", 3, ".1f"),
                Shown("ranks_least", "fewest", 4),
                Shown("slow_down_mean", "mean slow-down", 5, ".3f"),
                Shown("slow_down_max", "largest", 6, ".3f"),
            )
        )

    @property
    def label(self) -> str:
        """What the picture shows, in words."""
        setup = self.setup
        job = f"{counted(setup.ranks, 'rank')} and {counted(setup.spares, 'spare')}"
        return f"{job} on {setup.machine.name} during recorded faults"

    def figure(self) -> Figure:
        """Rate of work over time, and work that is missing so far, a line a policy; draw it inside `svg.drawing_style()`."""
        figure = new_figure(5.0, self.label, "Above: rate of work. Below: days of work that are missing so far.")
        rate = axes_at(figure, 0.75, 2.75, 7.9, 1.6)
        lost = axes_at(figure, 0.75, 0.5, 7.9, 1.9, sharex=rate)
        colours = wavelength_colours(range(len(self.runs)))
        for number, run in enumerate(self.runs):
            style: dict[str, Any] = {"color": colours[number], "linewidth": 1.2}
            edges = [one.start_s / DAY_S for one in run.stretches] + [run.stretches[-1].end_s / DAY_S]
            rate.stairs([one.rate for one in run.stretches], edges, baseline=None, label=run.policy, **style)
            missing, so_far = [0.0], 0.0
            for one in run.stretches:
                so_far += (one.end_s - one.start_s - one.work_s) / DAY_S
                missing.append(so_far)
            lost.plot(edges, missing, **style)
        rate.set_ylabel("rate of work")
        rate.tick_params(labelbottom=False)
        lost.set_ylabel("missing [days]")
        lost.set_xlabel("time [days]")
        for axes in (rate, lost):
            axes.grid(visible=True)
            axes.set_xlim(0, edges[-1])
        figure.legend(loc="upper left", bbox_to_anchor=(8.75 / WIDTH, 0.88), frameon=False, fontsize=7)
        return figure
