"""Answers to failed parts: a row a part or a class of equal parts, as table, record and picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.colours import MUTED, wavelength_colours
from opticcl.report.kit.columns import Column, FittedTable
from opticcl.report.kit.svg import WIDTH, new_figure, write_heading
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.operations.faults.answers import FaultReport, Healthy

__all__ = ["FaultsReport", "faults_figure", "faults_label", "faults_table"]

MOST_BARS = 60


@dataclass(frozen=True, slots=True, eq=False)
class FaultsReport:
    """All rows of a call.

    Args:
        healthy: the collective where nothing has failed.
        rows: answers, in the order of the parts.
        notes: remarks.
    """

    healthy: Healthy
    rows: Sequence[FaultReport]
    notes: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Whether all ranks that are alive go on in every row."""
        return all(row.ok for row in self.rows)

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

    def lines(self) -> list[str]:
        """Lines below the table."""
        healthy, totals = self.healthy, self.totals()
        parts = ", ".join(f"{name} {count:,}" for name, count in totals["by_answer"].items())
        lines = [
            f"healthy: {healthy.plan.algorithm}, {format_seconds(healthy.time_s)}; parts by answer: {parts}",
            *(f"cut: {row.record()['parts']}: no data leave {_nodes(row.cut)}" for row in self.rows if row.cut),
        ]
        if self.single_points:
            lines.append(f"nothing replaces one: {', '.join(self.single_points)}")
        if healthy.streamed:
            lines.append("pieces go on as they arrive: all times are those of the device engine")
        recovery = ", ".join(f"{name} {value:g}" for name, value in healthy.parameters.items())
        return [*lines, f"recovery assumes: {recovery}", *self.notes]


def _nodes(nodes: Sequence[int]) -> str:
    listed = ", ".join(map(str, nodes[:8])) + (", ..." if len(nodes) > 8 else "")
    return f"{'node' if len(nodes) == 1 else 'nodes'} {listed}"


def faults_table(report: FaultsReport) -> FittedTable:
    """One row an answer: what failed, what is done, times, bound, and the restart beside it."""
    rows = report.rows

    def ratio(values: list[float | None]) -> list[str]:
        return ["-" if value is None else f"{value:.3f}" for value in values]

    restart = [f"{r.restart_work:.3f} ({r.restart_ranks})" if r.restart_ranks else "-" for r in rows]
    columns = [
        Column("part", [r.record()["parts"] for r in rows], justify="left"),
        Column("parts", [f"{r.equal_parts:,}" for r in rows]),
        Column("answer", [r.answer for r in rows], justify="left"),
        Column("algorithm", [r.algorithm or "-" for r in rows], 4, "left"),
        Column("ranks", [f"{r.ranks:,}" for r in rows], 2),
        Column("time", ["-" if r.time_s is None else format_seconds(r.time_s) for r in rows], 3),
        Column(
            report.healthy.other.name, ["-" if r.beside[1] is None else format_seconds(r.beside[1]) for r in rows], 4
        ),
        Column("slow-down", ratio([r.slow_down for r in rows])),
        Column("over bound", ratio([r.ratio for r in rows])),
        Column("recovery", [format_seconds(r.recovery.total_s) for r in rows], 6),
        Column("work", [f"{r.work:.3f}" for r in rows], 1),
        Column("restart (ranks)", restart, 5),
    ]
    return FittedTable(columns, keys=1)


def faults_label(report: FaultsReport) -> str:
    """What the picture shows, in words."""
    healthy = report.healthy
    what = f"{healthy.wanted.name} of {format_bytes(healthy.size_bytes)}"
    return f"{what} on {healthy.fabric.name} with {counted(healthy.fabric.num_nodes, 'node')} without a part"


def faults_figure(report: FaultsReport) -> Figure:
    """Slow-down of every row, the slowest first, coloured by answer; the mark is the bound.

    Draw and save it inside `svg.drawing_style()`.
    """
    rows = sorted(report.rows, key=lambda row: -(row.slow_down or float("inf")))[:MOST_BARS]
    height = 1.3 + 0.17 * max(len(rows), 4)
    figure = new_figure(height)
    write_heading(
        figure, faults_label(report), "Time over that of the whole machine; marks: the bound on what is left."
    )
    axes = figure.add_axes((2.2 / WIDTH, 0.45 / height, 5.6 / WIDTH, 1 - 1.15 / height))
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
    axes.set_yticks(range(len(rows)), [f"{row.record()['parts']} ({row.equal_parts:,})" for row in rows], fontsize=6.5)
    axes.axvline(1.0, color=MUTED, linewidth=0.6, linestyle=":")
    axes.set(xlabel="slow-down", ylim=(len(rows) - 0.4, -0.6))
    figure.legend(loc="upper left", bbox_to_anchor=(8.0 / WIDTH, 0.9), frameon=False, fontsize=7)
    return figure
