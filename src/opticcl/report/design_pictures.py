"""Answers of a design space as pictures: map, Pareto front, tornado, breakeven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from opticcl.report.design_answers import Answer, axis_label, axis_text, title_of
from opticcl.report.kit.colours import DARK, FAINT, MUTED, PAPER, fabric_colours
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure, write_scale
from opticcl.report.kit.line_ends import End, label_ends, text_width
from opticcl.report.studies import study_figure
from opticcl.studies import Study
from opticcl.studies.space.answers import Breakeven, FastestMap, Pareto, Tornado
from opticcl.units import format_seconds, unit_suffix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["answer_figure"]

_LEFT = 0.8  # margin for the numbers [inches]


def answer_figure(answer: Answer) -> Figure:
    """Picture of an answer; draw and save it inside `svg.drawing_style()`."""
    if isinstance(answer, Study):
        return study_figure(answer)
    if isinstance(answer, FastestMap):
        return _map(answer)
    if isinstance(answer, Pareto):
        return _pareto(answer)
    return _tornado(answer) if isinstance(answer, Tornado) else _breakeven(answer)


def _map(answer: FastestMap) -> Figure:
    """Cells in the colours of the fastest; those of ties are white."""
    names = list(answer.wins)
    rows, columns = len(answer.ys), len(answer.xs)
    labels = {name: f"{name} ({answer.wins[name]})" for name in names}
    legend = 0.6 + text_width([*labels.values(), f"tie ({answer.ties})"])
    height = max(3.0, 1.25 + 0.42 * rows)
    remark = "number: how many times slower the runner-up is; white: a tie, within 5 %"
    figure = new_figure(height, title_of(answer), remark)
    axes = axes_at(figure, _LEFT, 0.5, WIDTH - _LEFT - legend - 0.2, height - 1.2)
    colours = fabric_colours(names)
    for cell in answer.cells:
        i, j = answer.xs.index(cell.x), answer.ys.index(cell.y)
        colour, alpha = (PAPER, 1.0) if cell.is_tie else (colours[cell.fabric], 0.75)
        axes.add_patch(_box(i, j, colour, alpha))
        if cell.lead is not None and columns <= 24:
            axes.text(i, j, f"{cell.lead:.2f}", ha="center", va="center", fontsize=7.5, color=DARK)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(-0.5, rows - 0.5)
    for axis, column, values in (("x", answer.x, answer.xs), ("y", answer.y, answer.ys)):
        shown = range(0, len(values), 1 + len(values) // 16)
        getattr(axes, f"set_{axis}ticks")(list(shown), [axis_text(column, values[i]) for i in shown])
        getattr(axes, f"set_{axis}label")(axis_label(column))
    axes.tick_params(length=0)
    ties = [(f"tie ({answer.ties})", PAPER)] if answer.ties else []
    _legend(figure, [*((labels[name], colours[name]) for name in names), *ties], legend, height)
    return figure


def _box(i: int, j: int, colour: str, alpha: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((i - 0.48, j - 0.46), 0.96, 0.92, facecolor=colour, alpha=alpha, edgecolor=FAINT, linewidth=0.6)


def _legend(figure: Figure, entries: Sequence[tuple[str, str]], width: float, height: float) -> None:
    """Names beside squares of their colours, in the right margin.

    Args:
        figure: to write on.
        entries: names and colours.
        width: of the margin [inches].
        height: of the figure [inches].
    """
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=colour, alpha=0.75, edgecolor=FAINT, label=name) for name, colour in entries]
    left = 1 - (width + 0.1) / WIDTH
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(left, 1 - 0.65 / height), frameon=False)


def _pareto(answer: Pareto) -> Figure:
    """Time against dollars, and against watts; the front of each pair is a line of steps."""
    from matplotlib.ticker import LogLocator

    height = 4.6
    remark = "filled: no other is better in time, dollars and watts; line: the front of the two values shown"
    figure = new_figure(height, title_of(answer), remark)
    colours = fabric_colours(one.fabric for one in answer.offers)
    for place, (column, label) in enumerate((("usd_per_node", "USD per node"), ("w_per_node", "W per node"))):
        axes = axes_at(figure, _LEFT + place * WIDTH / 2, 0.5, WIDTH / 2 - _LEFT - 0.3, height - 1.25)
        front = _front((one.total_s, getattr(one, column)) for one in answer.offers)
        axes.step(*zip(*front, strict=True), where="post", color=MUTED, linewidth=0.8)
        for one in answer.offers:
            fill = "none" if one.better else colours[one.fabric]
            value = getattr(one, column)
            axes.plot(one.total_s, value, "o", markersize=5, markeredgecolor=colours[one.fabric], markerfacecolor=fill)
        write_scale(axes, "x", "time", format_seconds, log=True)
        write_scale(axes, "y", label, "{:,.0f}".format, log=True)
        axes.margins(0.1)
        _name_points(axes, [(one.fabric, one.total_s, getattr(one, column)) for one in answer.offers])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.minorticks_off()
        axes.grid()
    return figure


def _name_points(axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Write names beside points, the longest first, each where it covers the least of other names and points.

    Args:
        axes: with its scales set.
        points: name and place of each.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    axes.autoscale_view()
    places = axes.transData.transform([(x, y) for _, x, y in points]) * 72 / figure.dpi  # points of 1/72 inch
    right = axes.bbox.x1 * 72 / figure.dpi
    boxes = [(x - 3, y - 3, x + 3, y + 3) for x, y in places.tolist()]
    high = 7.0
    ways = [(side, rise) for rise in (3.0, -high, 9.0, -high - 6.0) for side in (0.0, -1.0, -0.5)]
    for (name, x, y), (at_x, at_y) in sorted(
        zip(points, places.tolist(), strict=True), key=lambda one: -len(one[0][0])
    ):
        wide = 72 * text_width([name], 6.5)
        corners = [(side * wide + 4.0 * (1 + 2 * side), rise) for side, rise in ways]  # right, left or in the middle
        offered = [(dx, dy, (at_x + dx, at_y + dy, at_x + dx + wide, at_y + dy + high)) for dx, dy in corners]
        covers = [
            max(0.0, box[2] - right) * high + sum(_overlap(box, other) for other in boxes) for _, _, box in offered
        ]
        dx, dy, box = offered[covers.index(min(covers))]
        boxes.append(box)
        axes.annotate(name, (x, y), (dx, dy), textcoords="offset points", fontsize=6.5)


_Box = tuple[float, float, float, float]


def _overlap(one: _Box, other: _Box) -> float:
    """Common area of two boxes of left, bottom, right and top."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    return max(0.0, wide) * max(0.0, min(one[3], other[3]) - max(one[1], other[1]))


def _front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points that no other is better than in both values, by the first value."""
    front, least = [], inf
    for x, y in sorted(points):
        if y < least:
            front.append((x, y))
            least = y
    return front


def _tornado(answer: Tornado) -> Figure:
    """Bars from the lead as given to that with each assumption halved and doubled."""
    keys = list(dict.fromkeys(bar.key for bar in answer.bars))
    height = 1.4 + 0.34 * len(keys)
    remark = "time of the fastest rival over its own; below 1 (dashed) the rival is faster"
    figure = new_figure(height, title_of(answer), remark)
    left = 0.3 + text_width(keys)
    axes = axes_at(figure, left, 0.5, WIDTH - left - 1.3, height - 1.2)
    base = answer.base.lead
    for place, key in enumerate(reversed(keys)):
        for bar in answer.bars:
            if bar.key == key:
                doubled = bar.variation.endswith("x 2")
                beside = place - 0.18 if doubled else place + 0.18
                axes.barh(beside, bar.lead - base, 0.34, base, color="#d55e00" if doubled else "#0072b2", alpha=0.75)
    axes.axvline(base, color=MUTED, linewidth=0.8)
    axes.axvline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(keys)), [key.replace("_", " ") for key in reversed(keys)])
    axes.set_xlabel(f"lead of {answer.fabric}")
    axes.tick_params(length=0)
    axes.grid(axis="x", color=FAINT)
    axes.set_axisbelow(True)
    _legend(figure, [("halved", "#0072b2"), ("doubled", "#d55e00")], 1.0, height)
    return figure


def _breakeven(answer: Breakeven) -> Figure:
    """Time of every fabric over the axis, with the crossovers as vertical lines."""
    height = max(4.4, 1.2 + 0.16 * len(answer.fabrics))
    figure = new_figure(height, title_of(answer), "vertical lines: another fabric becomes the fastest")
    right = 0.4 + text_width(answer.fabrics, 7.5)
    axes = axes_at(figure, _LEFT, 0.5, WIDTH - _LEFT - right, height - 1.25)
    colours = fabric_colours(answer.fabrics)
    ends = []
    for name, (places, times) in answer.times.items():
        axes.plot(places, times, color=colours[name], linewidth=1.5, marker="o", markersize=2.5)
        ends.append(End(name, places[-1], times[-1], colours[name]))
    for one in answer.crossovers:
        axes.axvline(one.at, color=MUTED, linewidth=0.8, linestyle="--")

    def place_text(value: float) -> str:
        return axis_text(answer.over, value if unit_suffix(answer.over) else round(value))

    positive = min(at for places, _ in answer.times.values() for at in places) > 0
    write_scale(axes, "x", axis_label(answer.over), place_text, log=positive)
    write_scale(axes, "y", "time", format_seconds, log=True)
    axes.minorticks_off()
    axes.grid()
    label_ends(axes, ends)
    return figure
