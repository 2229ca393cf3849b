"""Answers to failed parts: a row a part or a class of equal parts, as lines, record and picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.colours import MUTED, wavelength_colours
from opticcl.report.kit.columns import StreamedColumn
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure
from opticcl.report.kit.result import Result
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.operations.faults.answers import FaultReport, Healthy

__all__ = ["FaultsReport", "fault_cells", "fault_columns"]

MOST_BARS = 60


@dataclass(frozen=True, slots=True, eq=False)
class FaultsReport(Result):
    """All rows of a call.

    Args:
        healthy: the collective where nothing has failed.
        rows: answers, in the order of the parts.
        notes: remarks.
        to_try: rows that were wanted; None: as many as there are [count].
        dropped: columns that the terminal did not show with the rows.
    """

    healthy: Healthy
    rows: Sequence[FaultReport]
    notes: Sequence[str] = ()
    to_try: int | None = None
    dropped: str = ""

    @property
    def ok(self) -> bool:
        """Whether all ranks that are alive go on in every row."""
        return all(row.ok for row in self.rows)

    @property
    def finished(self) -> bool:
        """Whether no row is missing."""
        return self.to_try in (None, len(self.rows))

    @property
    def single_points(self) -> list[str]:
        """Kinds of parts of which one alone cuts ranks off."""
        cut = [row.conditions[0].kind for row in self.rows if row.answer == "cut" and len(row.conditions) == 1]
        return list(dict.fromkeys(cut))

    def totals(self) -> dict[str, Any]:
        """Parts by answer, the largest slow-down, and the kinds that nothing replaces."""
        by_answer: dict[str, int] = {}
        for row in self.rows:
            by_answer[row.answer] = by_answer.get(row.answer, 0) + row.equal_parts
        slow = [row.slow_down for row in self.rows if row.slow_down is not None]
        ratios = [row.ratio for row in self.rows if row.ratio is not None]
        return {
            "rows": len(self.rows),
            "parts": sum(row.equal_parts for row in self.rows),
            "by_answer": by_answer,
            "largest_slow_down": max(slow, default=None),
            "largest_ratio": max(ratios, default=None),
            "single_points_of_failure": self.single_points,
        }

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl faults --json` prints them."""
        healthy = self.healthy
        return {
            "ok": self.ok,
            "finished": self.finished,
            "collective": healthy.wanted.name,
            "size_bytes": healthy.size_bytes,
            "algorithm": healthy.plan.algorithm,
            "engine": healthy.engine,
            "healthy_s": healthy.time_s,
            f"healthy_{healthy.beside[0]}_s": healthy.beside[1],
            "rows": [row.record() for row in self.rows],
            "totals": self.totals(),
            "notes": list(self.notes),
            "assumptions": healthy.parameters,
        }

    def table_rows(self) -> list[dict[str, Any]]:
        """The rows of the record, with the number of ranks that are cut off."""
        return [{**row.record(), "cut": len(row.cut)} for row in self.rows]

    def opening(self) -> str:
        """The answer, where one failure is requested; of several, what the collective takes where nothing has failed."""
        healthy, row = self.healthy, self.rows[0]
        what = f"{healthy.wanted.name} of {format_bytes(healthy.size_bytes)}"
        whole, where = format_seconds(healthy.time_s), healthy.fabric.name
        if self.to_try != 1:
            return f"Without failures {where} takes {whole} for {what} by {healthy.plan.algorithm}."
        if row.cut:
            return f"Without {row.label}, no data of {what} leave {_nodes(row.cut)} of {where}."
        if row.time_s is None:
            return f"Without {row.label}, {where} has no plan for {what}; without failures it takes {whole}."
        restart = (
            f", after a restart on {row.restart_ranks:,} ranks with {row.restart_work:.0%}" if row.restart_ranks else ""
        )
        return (
            f"Without {row.label}, {where} takes {format_seconds(row.time_s)} for {what}, {row.slow_down:.4g} times as long as "
            f"without failures ({whole}); a job goes on with {row.work:.0%} of its speed{restart}."
        )

    def blocks(self) -> list[str]:
        """Lines below the rows, which are printed as they come."""
        return ["", *filter(None, (*self.lines(), self.dropped))]

    def _slowest(self) -> list[str]:
        """The failure that slows the collective down most, where there are several."""
        slow_downs = {row.label: row.slow_down for row in self.rows if row.slow_down is not None}
        if self.to_try == 1 or not slow_downs:
            return []
        label = max(slow_downs, key=slow_downs.__getitem__)
        return [f"slowest: {slow_downs[label]:.4g} times as long, without {label}"]

    def lines(self) -> list[str]:
        """Lines below the table."""
        healthy, totals = self.healthy, self.totals()
        parts = ", ".join(f"{name} {count:,}" for name, count in totals["by_answer"].items())
        lines = [
            *self._slowest(),
            f"without failures: {healthy.plan.algorithm}, {format_seconds(healthy.time_s)}; number of parts by answer: {parts}",
            *(f"cut: {row.label}: no data leave {_nodes(row.cut)}" for row in self.rows if row.cut),
        ]
        if self.single_points:
            lines.append(f"single points of failure: {', '.join(self.single_points)}")
        if healthy.streamed:
            lines.append("pieces are forwarded as they arrive; all times are those of the device engine")
        detect, restart, share = (healthy.parameters[name] for name in ("detect", "restart", "communication"))
        times = f"{format_seconds(detect)} to detect a failure, {format_seconds(restart)} to restart"
        return [*lines, f"assumed: {times}, {share:.0%} of a step is communication"]

    @property
    def label(self) -> str:
        """What the picture shows, in words."""
        healthy = self.healthy
        what = f"{healthy.wanted.name} of {format_bytes(healthy.size_bytes)}"
        return f"{what} on {healthy.fabric.name} with {counted(healthy.fabric.num_nodes, 'node')} without a part"

    def figure(self) -> Figure:
        """Slow-down of every row, the slowest first, coloured by answer; the mark is the bound.

        Draw and save it inside `svg.drawing_style()`.
        """
        rows = sorted(self.rows, key=lambda row: -(row.slow_down or float("inf")))[:MOST_BARS]
        height = 1.3 + 0.17 * max(len(rows), 4)
        remark = "Time over that of the whole machine; marks: the bound on what is left."
        figure = new_figure(height, self.label, remark)
        axes = axes_at(figure, 2.2, 0.45, 5.6, height - 1.15)
        answers = list(dict.fromkeys(row.answer for row in rows))
        numbered = wavelength_colours(range(len(answers)))
        colours = {name: numbered[place] for place, name in enumerate(answers)}
        for place, row in enumerate(rows):
            wide = 0.0 if row.slow_down is None else row.slow_down
            label = row.answer if row.answer in answers else None
            if label is not None:
                answers.remove(label)
            axes.barh(place, wide, height=0.7, color=colours[row.answer], label=label)
            if row.bound_s:
                axes.plot([row.bound_s / row.healthy_s] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1)
        axes.set_yticks(range(len(rows)), [f"{row.label} ({row.equal_parts:,})" for row in rows], fontsize=6.5)
        axes.axvline(1.0, color=MUTED, linewidth=0.6, linestyle=":")
        axes.set(xlabel="slow-down", ylim=(len(rows) - 0.4, -0.6))
        figure.legend(loc="upper left", bbox_to_anchor=(8.0 / WIDTH, 0.9), frameon=False, fontsize=7)
        return figure


def _nodes(nodes: Sequence[int]) -> str:
    listed = ", ".join(map(str, nodes[:8])) + (", ..." if len(nodes) > 8 else "")
    return f"{'node' if len(nodes) == 1 else 'nodes'} {listed}"


def fault_columns(labels: Sequence[str], beside: str) -> list[StreamedColumn]:
    """Columns of the rows: what failed, what is done, times, bound, and the restart beside it.

    Args:
        labels: of all failures to come.
        beside: name of the other set of assumptions.
    """
    return [
        StreamedColumn("failed", min(40, max(map(len, labels), default=0)), justify="left"),
        StreamedColumn("equal", 5),
        StreamedColumn("answer", 11, justify="left"),
        StreamedColumn("plan from", 11, 4, "left"),
        StreamedColumn("algorithm", 27, 6, "left"),
        StreamedColumn("ranks", 5, 3),
        StreamedColumn("time", 8),
        StreamedColumn(beside, 8, 7),
        StreamedColumn("slow-down", 9),
        StreamedColumn("x bound", 7),
        StreamedColumn("recovery", 8, 8),
        StreamedColumn("job speed", 9, 1),
        StreamedColumn("restart (ranks)", 15, 2),
    ]


def fault_cells(row: FaultReport) -> list[str]:
    """Cells of `fault_columns`."""
    times = [None if row.time_s is None else format_seconds(row.time_s)]
    times.append(None if row.beside[1] is None else format_seconds(row.beside[1]))
    ratios = [None if value is None else f"{value:.3f}" for value in (row.slow_down, row.ratio)]
    restart = f"{row.restart_work:.3f} ({row.restart_ranks})" if row.restart_ranks else None
    cells = [
        row.label, f"{row.equal_parts:,}", row.answer, row.plan_from, row.algorithm, f"{row.ranks:,}", *times, *ratios,
        format_seconds(row.recovery.total_s), f"{row.work:.3f}", restart,
    ]  # fmt: skip
    return [cell or "-" for cell in cells]
