"""Studies: a table of the rows, and a line chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.colours import wavelength_colours
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure, write_scale
from opticcl.report.kit.line_ends import text_width
from opticcl.report.kit.words import heading
from opticcl.studies import Chart, Study
from opticcl.units import format_value, unit_suffix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["study_figure", "study_table"]

_LEAST_LEGEND = 2.1  # inches
_SHAPES = "os^Dv<>P"


def study_table(study: Study) -> FittedTable:
    """One row a row of the study, quantities with their units.

    Where the rows have only the columns of the chart, its lines are columns, one row for each x.
    """
    chart, rows = study.chart, study.rows
    if set(rows[0]) == {chart.x, chart.y, *chart.lines}:
        at: dict[Any, dict[str, str]] = {}
        for row in rows:
            at.setdefault(row[chart.x], {})[_name(chart, row)] = format_value(chart.y, row[chart.y])
        names = list(dict.fromkeys(_name(chart, row) for row in rows))
        lines = [Column(name, [cells.get(name, "") for cells in at.values()]) for name in names]
        return FittedTable([Column(heading(chart.x), [format_value(chart.x, x) for x in at]), *lines])
    return FittedTable(columns_of(rows, *map(Shown, rows[0])))


def study_figure(study: Study) -> Figure:
    """Line chart of a study, each line with its own marker; draw and save it inside `svg.drawing_style()`."""
    chart = study.chart
    height = 4.4
    figure = new_figure(height)
    lines = _lines(study)
    legend = max(_LEAST_LEGEND, 0.65 + text_width([part for name in lines for part in name.split("\n")]))
    axes = axes_at(figure, 0.75, 0.55, WIDTH - 0.75 - legend, height - 0.95)
    colours = wavelength_colours(range(len(lines)))
    for number, (name, points) in enumerate(lines.items()):
        x, y = zip(*points, strict=True)
        style: dict[str, Any] = {"drawstyle": "steps-post"} if chart.steps else {}
        many = len(points) > 40
        axes.plot(
            x,
            y,
            color=colours[number],
            linewidth=1.5,
            linestyle=("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))[number % 4],
            marker="" if many else _SHAPES[number % len(_SHAPES)],
            markersize=3.5,
            label=name,
            **style,
        )
    axes.set_title(study.title, loc="left", fontsize=9, fontweight="bold")
    _scale(axes, chart, [x for points in lines.values() for x, _ in points])
    if any(lines):  # a single line may have no name
        figure.legend(loc="center left", bbox_to_anchor=(1 - (legend - 0.15) / WIDTH, 0.55), frameon=False)
    return figure


def _lines(study: Study) -> dict[str, list[tuple[float, float]]]:
    """Points of each line, by its name; coinciding lines are merged under both names."""
    by_name: dict[str, list[tuple[float, float]]] = {}
    for row in study.rows:
        by_name.setdefault(_name(study.chart, row), []).append((row[study.chart.x], row[study.chart.y]))
    shared: dict[tuple[tuple[float, float], ...], str] = {}
    for name, points in by_name.items():
        key = tuple(points)
        shared[key] = f"{shared[key]},\n{name}" if key in shared else name
    return {name: list(points) for points, name in shared.items()}


def _name(chart: Chart, row: Mapping[str, Any]) -> str:
    return " ".join(format_value(key, row[key]) for key in chart.lines)


def _scale(axes: Axes, chart: Chart, places: list[float]) -> None:
    write_scale(axes, "x", chart.x_label, _text_of(chart.x), log="x" in chart.logarithmic)
    write_scale(axes, "y", chart.y_label, _text_of(chart.y), log="y" in chart.logarithmic)
    if "x" in chart.logarithmic and not unit_suffix(chart.x):
        axes.set_xticks(sorted(set(places)))
    if "y" not in chart.logarithmic:
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.tick_params(length=2)
    axes.grid(zorder=0)


def _text_of(key: str) -> Callable[[float], str]:
    return partial(format_value, key) if unit_suffix(key) else "{:,.6g}".format
