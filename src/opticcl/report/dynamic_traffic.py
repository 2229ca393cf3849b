"""Dynamic traffic: a row a run, as table, record and pictures.

The delays of a load that is inadmissible, unstable or undecided are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.report.kit.colours import MUTED, wavelength_colours
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure
from opticcl.report.kit.result import Result
from opticcl.units import counted, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.ir import Verdict
    from opticcl.operations.dynamic_traffic.beside import BesidePlan
    from opticcl.operations.dynamic_traffic.demand import Worst
    from opticcl.operations.dynamic_traffic.simulation import TrafficResult, TrafficSetup
    from opticcl.operations.dynamic_traffic.statistics import IntervalEstimate

__all__ = ["TrafficReport", "TrafficRow"]

QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True, slots=True, eq=False)
class TrafficRow:
    """A run, or a load that is not simulated because it is inadmissible.

    Args:
        setup: traffic and scheduler.
        limit: what limits the load.
        result: of the run; None: the load is inadmissible.
        verdict: on every epoch; None: not requested.
        alone: the same run without the plan beside it; None: there is no plan.
    """

    setup: TrafficSetup
    limit: Worst
    result: TrafficResult | None = None
    verdict: Verdict | None = None
    alone: TrafficResult | None = None

    @property
    def answer(self) -> str:
        """carried, unstable, inadmissible, or undecided where the run does not show whether the load is stable."""
        if self.result is None:
            return "inadmissible"
        return "carried" if self.result.stable else self.result.stability

    @property
    def ok(self) -> bool:
        """Whether the load is carried, and no epoch that was judged breaks a rule."""
        return self.answer == "carried" and (self.verdict is None or self.verdict.ok)

    @property
    def slow_down(self) -> float | None:
        """Mean delay over that without the plan; None where one of them has none."""
        if self.result is None or self.alone is None or not (self.result.stable and self.alone.stable):
            return None
        return self.result.counts.mean_delay().value / self.alone.counts.mean_delay().value

    def delays_s(self) -> dict[str, IntervalEstimate | None]:
        """Mean and quantiles of the delays of cells [s]; None where the load is not carried."""
        ran = self.result
        names = ("mean", *QUANTILES)
        if ran is None or not ran.stable or not ran.counts.delays.any():
            return dict.fromkeys(names)
        slot = self.setup.machine.slot
        delays = {"mean": ran.counts.mean_delay().scaled(slot)}
        return {**delays, **{name: ran.counts.delay(share).scaled(slot) for name, share in QUANTILES.items()}}

    def ratios(self) -> dict[str, IntervalEstimate | None]:
        """Mean and 99 % quantile of the times of flows over the ideal ones; None where the load is not carried."""
        ran = self.result
        if ran is None or not ran.stable or not ran.counts.ratios.any():
            return {"mean": None, "p99": None}
        return {"mean": ran.counts.mean_ratio(), "p99": ran.counts.ratio(0.99)}

    def record(self) -> dict[str, Any]:
        """Plain values."""
        setup, ran = self.setup, self.result
        row: dict[str, Any] = {
            "scheduler": setup.scheduler,
            "flows": setup.mix.name,
            "gap": setup.mix.gap,
            "load": setup.load,
            "skew": setup.mix.skew,
            "placement": setup.placement,
            "between_racks": setup.mix.between_racks,
            "slots": setup.slots,
            "seed": setup.seed,
            "answer": self.answer,
            "stability": None if self.result is None else self.result.stability,
            "largest_load": self.limit.largest_load,
            "limited_by": self.limit.name,
            "limit_cells_per_slot": self.limit.cells_per_slot,
        }
        if ran is None:
            return row
        counts = ran.counts
        row |= {
            "offered_cells": ran.offered_cells,
            "sent_cells": ran.sent_cells,
            "pending_cells": ran.pending_cells,
            "epochs": ran.epochs,
            "ended_early": ran.ended_early,
            **_pair("offered", ran.offered),
            **_pair("throughput", ran.throughput),
            **_pair("backlog_slope_cells_per_slot", ran.slope),
        }
        for name, value in self.delays_s().items():
            row |= _pair(f"delay_{name}_s", value)
        for name, value in self.ratios().items():
            row |= _pair(f"flow_over_ideal_{name}", value)
        row |= {
            "wavelength_use": ran.wavelength_use,
            "wavelengths_used": int(np.count_nonzero(counts.used)),
            "fairness": counts.fairness(),
            "rounds": float(counts.rounds.sum() / max(1, counts.epochs.sum())),
            "of_bound": ran.of_bound,
            "slow_down": self.slow_down,
            "verdict": None if self.verdict is None else self.verdict.record(),
        }
        return row


def _pair(name: str, value: IntervalEstimate | None) -> dict[str, float | None]:
    """A value and half its interval as two fields."""
    known = (None, None) if value is None else (value.value, value.half_width)
    return dict(zip((name, f"{name}_half_width"), known, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class TrafficReport(Result):
    """All runs of a call.

    Args:
        rows: in the order of the options.
        assumptions: what the times rest on.
        notes: remarks.
        beside: the plan that shares the machine, or None.
    """

    rows: Sequence[TrafficRow]
    assumptions: dict[str, Any]
    notes: Sequence[str] = ()
    beside: BesidePlan | None = field(default=None)

    @property
    def ok(self) -> bool:
        """Whether every load is carried and no epoch breaks a rule."""
        return all(row.ok for row in self.rows)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl machine traffic --json` prints them."""
        results = [row.result for row in self.rows if row.result is not None]
        judged = [row.verdict for row in self.rows if row.verdict is not None]
        return {
            "ok": self.ok,
            "rows": [row.record() for row in self.rows],
            "totals": {
                "runs": len(self.rows),
                "carried": sum(row.answer == "carried" for row in self.rows),
                "offered_cells": sum(result.offered_cells for result in results),
                "sent_cells": sum(result.sent_cells for result in results),
                "pending_cells": sum(result.pending_cells for result in results),
                "violations": sum(len(verdict.violations) for verdict in judged) if judged else None,
            },
            "beside": None if self.beside is None else self.beside.record(),
            "notes": [*self._remarks(), *self.notes],
            "assumptions": self.assumptions,
        }

    @property
    def headline(self) -> str:
        """How many of the loads are carried."""
        carried = sum(row.answer == "carried" for row in self.rows)
        if len(self.rows) == 1:
            return f"The load is {self.rows[0].answer}."
        return f"{carried} of {len(self.rows)} loads are carried."

    def table_rows(self) -> list[dict[str, Any]]:
        """The rows of the record without the verdicts, which are no plain values, each with the fields of all."""
        rows = [row.record() for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row if name != "verdict")
        return [{name: row.get(name) for name in names} for row in rows]

    def lines(self) -> list[str]:
        """Lines below the table."""
        judged = [row.verdict for row in self.rows if row.verdict is not None]
        lines = []
        if judged:
            circuits = sum(verdict.circuits for verdict in judged)
            wrong = [violation for verdict in judged for violation in verdict.violations]
            head = "verified" if not wrong else "refused"
            lines.append(f"{head}: {counted(circuits, 'circuit')} of every slot, {counted(len(wrong), 'violation')}")
            lines += [f"  {violation}" for violation in wrong]
        if self.beside is not None:
            lines += self.beside.lines()
        return [*lines, *self._remarks()]

    def _remarks(self) -> list[str]:
        remarks = []
        for row in self.rows:
            where = f"{row.setup.scheduler}, load {row.setup.load:g}, skew {row.setup.mix.skew:.3g}"
            if row.answer == "inadmissible":
                remarks.append(
                    f"{where}: {row.limit.name} would carry {row.limit.cells_per_slot * row.setup.load:.4g} of "
                    f"{row.limit.capacity:g} cells a slot; the largest load is {row.limit.largest_load:.4g}"
                )
            elif row.result is None:
                continue
            elif row.result.ended_early:
                remarks.append(
                    f"{where}: {row.answer}, ended after {counted(row.result.epochs, 'epoch')}, "
                    f"{row.result.pending_cells:,} cells wait"
                )
            elif row.answer == "unstable":
                remarks.append(
                    f"{where}: the backlog grows by {row.result.slope.value:.4g} cells a slot to "
                    f"{row.result.pending_cells:,} cells, so its delays are not reported"
                )
            elif row.answer == "undecided":
                remarks.append(
                    f"{where}: undecided, the run does not show whether the backlog of {row.result.pending_cells:,} cells "
                    f"still grows, so its delays are not reported; try --slots {4 * row.setup.slots}"
                )
        return remarks

    def table(self) -> FittedTable:
        """One row a run."""
        rows = [row.record() for row in self.rows]
        several = len({row["flows"] for row in rows}) > 1
        delays = (("mean", "mean", 0), ("p50", "p50", 5), ("p99", "p99", 0), ("p999", "p99.9", 2))
        columns = [
            *columns_of(
                rows,
                Shown("scheduler"),
                Shown("flows", rank=0 if several else 1),
                Shown("load", form="g"),
                Shown("skew", form=".3g"),
                Shown("answer"),
                Shown("throughput", "carried of ports", form=".4f"),
                Shown("offered", rank=4, form=".4f"),
            ),
            *(
                Column(header, [_time(row.delays_s()[name]) for row in self.rows], rank)
                for name, header, rank in delays
            ),
            *columns_of(
                rows,
                Shown("flow_over_ideal_mean", "flow / ideal", 6, ".4g"),
                Shown("flow_over_ideal_p99", "its p99", 7, ".4g"),
                Shown("wavelength_use", "wavelengths", 8, ".4f"),
                Shown("fairness", rank=9, form=".4f"),
                Shown("largest_load", rank=3, form=".4f"),
            ),
        ]
        if self.beside is not None:
            columns += columns_of(rows, Shown("slow_down", "slow-down", form=".3f"))
        if any(row.get("of_bound") is not None for row in rows):
            columns += columns_of(rows, Shown("of_bound", rank=10, form=".4f"))
        return FittedTable(columns, keys=3)

    @property
    def label(self) -> str:
        """What the picture shows, in words."""
        machine = self.rows[0].setup.machine
        names = ", ".join(dict.fromkeys(row.setup.scheduler for row in self.rows))
        return f"Dynamic traffic on {counted(machine.num_nodes, 'node')} of ramp: {names}"

    def figure(self) -> Figure:
        """Throughput and 99 % delay over load, a line for each scheduler and skew; below, the distribution of the delays.

        Draw and save it inside `svg.drawing_style()`.
        """
        figure = new_figure(6.4, self.label, "Solid: skew 1; broken: hot nodes. Open marks: the backlog grows.")
        lines: dict[tuple[str, str, float], list[TrafficRow]] = {}
        for row in self.rows:
            lines.setdefault((row.setup.scheduler, row.setup.mix.name, row.setup.mix.skew), []).append(row)
        colours = wavelength_colours(range(len(lines)))
        places = ((0.7, 3.45, 3.3), (4.8, 3.45, 3.3), (0.7, 0.55, 7.4))
        axes = [axes_at(figure, left, bottom, wide, 2.05) for left, bottom, wide in places]
        for number, (key, rows) in enumerate(lines.items()):
            style = {"color": colours[number], "linestyle": "-" if key[2] == 1 else (0, (5, 2)), "linewidth": 1.4}
            _draw_line(axes, sorted(rows, key=lambda row: row.setup.load), style, _name(key, self))
        _finish(axes)
        figure.legend(loc="upper left", bbox_to_anchor=(8.25 / WIDTH, 0.9), frameon=False, fontsize=7)
        return figure


def _time(value: IntervalEstimate | None) -> str:
    if value is None:
        return "-"
    width = "" if value.half_width is None else f" ±{value.half_width / value.value:.1%}" if value.value else ""
    return format_seconds(value.value) + width


def _name(key: tuple[str, str, float], report: TrafficReport) -> str:
    flows = f", {key[1]}" if len({row.setup.mix.name for row in report.rows}) > 1 else ""
    return f"{key[0]}{flows}, {key[2]:.3g}:1"


def _draw_line(axes: Sequence[Axes], rows: Sequence[TrafficRow], style: dict[str, Any], name: str) -> None:
    """A scheduler at one skew in all three pictures.

    Args:
        axes: throughput, 99 % delay, distribution.
        rows: by load.
        style: of the line.
        name: for the legend.
    """
    simulated = [row for row in rows if row.result is not None]
    slot_ns = rows[0].setup.machine.slot * 1e9
    carried = [row.result.throughput.value / row.result.offered.value for row in simulated if row.result]
    loads = [row.setup.load for row in simulated]
    axes[0].plot(loads, [load * c for load, c in zip(loads, carried, strict=True)], label=name, **style)
    for row, y in zip(simulated, carried, strict=True):
        filled = style["color"] if row.answer == "carried" else "none"
        axes[0].plot([row.setup.load], [row.setup.load * y], "o", ms=3.5, mec=style["color"], mfc=filled)
    tails = [(row.setup.load, row.delays_s()["p99"]) for row in simulated]
    points = [(load, tail.value * 1e9, (tail.half_width or 0) * 1e9) for load, tail in tails if tail is not None]
    if points:
        at, values, errors = zip(*points, strict=True)
        axes[1].errorbar(at, values, errors, marker="o", ms=3.5, capsize=2, **style)
    shown = [row for row in simulated if row.result is not None and row.result.stable]
    if shown and shown[-1].result is not None:
        from opticcl.operations.dynamic_traffic.statistics import delay_distribution

        delay, later = delay_distribution(shown[-1].result.counts)
        if len(delay):
            axes[2].step(delay * slot_ns, later, where="post", **style)
            label = f"load {shown[-1].setup.load:g}"
            axes[2].annotate(label, (delay[-1] * slot_ns, later[-1]), fontsize=6.5, color=style["color"])


def _finish(axes: Sequence[Axes]) -> None:
    from matplotlib.ticker import NullFormatter

    axes[0].plot([0, 1], [0, 1], color=MUTED, linewidth=0.6, linestyle=":")
    axes[0].set(xlabel="load of the busiest port", ylabel="carried load", xlim=(0, 1.02), ylim=(0, 1.02))
    axes[1].set(xlabel="load of the busiest port", ylabel="99 % delay [ns]", xlim=(0, 1.02), yscale="log")
    axes[2].set(xlabel="delay of a cell [ns]", ylabel="share of later cells", xscale="log", yscale="log")
    axes[2].set_title("Delays at the largest load that is carried", loc="left", fontsize=8, fontweight="bold")
    for axis in (axes[1].yaxis, axes[2].xaxis, axes[2].yaxis):  # numbers without the markup of powers of ten
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter() if axis is axes[2].yaxis else "{x:g}")
    for one in axes:
        one.grid(visible=True)
