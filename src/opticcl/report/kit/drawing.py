"""Parts of all pictures: a figure with its heading, axes placed in inches, scales with units, bars, keys of colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.report.kit.colours import INK, MUTED
from opticcl.report.kit.line_ends import text_width
from opticcl.report.kit.svg import titled
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "WIDTH",
    "axes_at",
    "name_rows",
    "new_figure",
    "stack_bars",
    "time_bars",
    "time_rows",
    "write_beside",
    "write_key",
    "write_scale",
]

WIDTH = 10.0
"""Width of every picture [inches of 72 points]; a page scales it to its column."""

MOST_STACKED = 25.0
"""Ratio of slowest to fastest up to which bars on one scale are legible."""


def new_figure(height: float, title: str = "", remark: str = "") -> Figure:
    """A figure of the common width that pyplot does not manage.

    Args:
        height: of the figure [inches].
        title: what the figure shows, in the first 0.55 inches from the top; "": no heading.
        remark: how to read it, below the title.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    if title:
        left = 0.12 / WIDTH
        figure.text(left, 1 - 0.22 / height, title, fontsize=9.5, fontweight="bold", va="center_baseline")
        figure.text(left, 1 - 0.44 / height, remark, fontsize=8, color=MUTED, va="center_baseline")
    return figure


def axes_at(figure: Figure, left: float, bottom: float, wide: float, high: float, **shared: Any) -> Axes:
    """New axes.

    Args:
        figure: to draw on.
        left, bottom: place of the lower left corner [inches].
        wide, high: size [inches].
        shared: other axes with the same scale, as `sharex` or `sharey`.
    """
    height = figure.get_figheight()
    return figure.add_axes((left / WIDTH, bottom / height, wide / WIDTH, high / height), **shared)


def write_scale(
    axes: Axes, axis: str, label: str, text: Callable[[float], str] | None = None, *, log: bool = False
) -> None:
    """Write what an axis shows.

    Args:
        axes: to write on.
        axis: x or y.
        label: name of the quantity.
        text: value -> text of a tick with its unit; None: plain numbers.
        log: whether the scale is logarithmic.
    """
    axes.set(**{f"{axis}label": label}, **({f"{axis}scale": "log"} if log else {}))
    if text is not None:
        getattr(axes, f"{axis}axis").set_major_formatter(lambda value, _: text(value))


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of rows, the first on top, with a grid across them.

    Args:
        axes: to write on.
        names: left of the rows; () where axes with the same rows have them.
    """
    if names:
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
    axes.minorticks_off()
    axes.tick_params(left=False, length=2)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def time_bars(
    axes: Axes,
    parts: np.ndarray,
    colours: Sequence[str],
    points: Sequence[str],
    texts: Sequence[str],
    titles: Sequence[Sequence[str]],
) -> bool:
    """Draw times as rows of stacked bars, or as points on a logarithmic scale where they differ too much for bars.

    The scale ends with the data; the texts stand right of the axes.

    Args:
        axes: to draw on.
        parts: of each time, float64 (rows, parts) [s].
        colours: of the parts.
        points: colours of the points.
        texts: one a row.
        titles: of each part of each row, which a pointer shows.
    Returns: whether they are bars.
    """
    totals = parts.sum(axis=1)
    bars = bool(totals.max() <= MOST_STACKED * totals.min())
    if bars:
        axes.set_xlim(0, 1.02 * totals.max() or 1.0)
        stack_bars(axes, parts, colours, titles)
    else:
        axes.set_xscale("log")
        least = totals[totals > 0].min()
        axes.set_xlim(least / 1.3, 1.3 * totals.max())
        for row, total in enumerate(totals.tolist()):
            point = axes.scatter([total or least / 1.3], [row], s=42, c=[points[row]], clip_on=False)
            titled(point, ", ".join(filter(None, titles[row])))
    write_beside(axes, texts)
    return bars


def time_rows(
    names: Sequence[str],
    parts: np.ndarray,
    named: Sequence[tuple[str, str]],
    texts: Sequence[str],
    what: str,
) -> Figure:
    """A figure of times by `time_bars`, with a key of the parts of bars.

    Args:
        names: of the rows, the first on top.
        parts: of each time, float64 (rows, parts) [s].
        named: names and colours of the parts.
        texts: one a row, right of it.
        what: name of the scale.
    """
    height, left = 0.85 + 0.27 * len(names), text_width(names) + 0.15
    figure = new_figure(height)
    axes = axes_at(figure, left, 0.45, WIDTH - left - text_width(texts, 7.5) - 0.2, 0.27 * len(names))
    titles = [
        [
            f"{name}: {part} {format_seconds(value)}" if value else ""
            for (part, _), value in zip(named, row, strict=True)
        ]
        for name, row in zip(names, parts.tolist(), strict=True)
    ]
    stacked = time_bars(axes, parts, [colour for _, colour in named], [INK] * len(names), texts, titles)
    write_scale(axes, "x", what if stacked else f"{what}, logarithmic", format_seconds)
    name_rows(axes, names)
    shown = [one for one, seconds in zip(named, parts.sum(axis=0).tolist(), strict=True) if seconds and stacked]
    write_key(figure, shown, left, height - 0.2)
    return figure


def write_beside(axes: Axes, texts: Sequence[str]) -> None:
    """Write one text a row right of the axes."""
    for row, text in enumerate(texts):
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(text, (1.0, row), (5, 0), va="center", fontsize=7.5, annotation_clip=False, **place)


def stack_bars(axes: Axes, lengths: np.ndarray, colours: Sequence[str], titles: Sequence[Sequence[str]]) -> None:
    """Draw rows of bars, each divided into parts.

    Args:
        axes: to draw on.
        lengths: of the parts, float64 (rows, parts).
        colours: of the parts.
        titles: of each part of each row, which a pointer shows.
    """
    begins = np.cumsum(lengths, axis=1) - lengths
    for part, colour in enumerate(colours):
        if lengths[:, part].any():
            rows = np.arange(len(lengths))
            bars = axes.barh(rows, lengths[:, part], left=begins[:, part], height=0.66, color=colour, linewidth=0)
            for row, bar in enumerate(bars):
                titled(bar, titles[row][part])


def write_key(figure: Figure, named: Sequence[tuple[str, str]], left: float, above: float) -> float:
    """Write names beside squares of their colours in one line.

    Args:
        figure: to write on.
        named: names and colours.
        left: of the first square, or less where they are too wide [inches].
        above: middle of the line, from the bottom of the figure [inches].
    Returns: right end of the line [inches].
    """
    from matplotlib.patches import Rectangle

    steps = [0.42 + text_width([name], 7.5) for name, _ in named]
    x, height = min(left, max(0.1, WIDTH - sum(steps))), figure.get_figheight()
    for (name, colour), step in zip(named, steps, strict=True):
        size: dict[str, Any] = {"width": 0.11 / WIDTH, "height": 0.11 / height}
        figure.add_artist(Rectangle((x / WIDTH, (above - 0.055) / height), **size, facecolor=colour, linewidth=0))
        figure.text((x + 0.16) / WIDTH, above / height, name, va="center_baseline", fontsize=7.5)
        x += step
    return x
