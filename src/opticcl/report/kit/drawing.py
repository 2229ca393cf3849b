"""Parts of all pictures: a figure with its heading, axes placed in inches, scales with units, bars, keys of colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.report.kit.colours import MUTED
from opticcl.report.kit.line_ends import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WIDTH", "axes_at", "name_rows", "new_figure", "stack_bars", "time_bars", "write_key", "write_scale"]

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
    axes: Axes, parts: np.ndarray, colours: Sequence[str], points: Sequence[str], texts: Sequence[str], wide: float
) -> bool:
    """Draw times as rows of stacked bars, or as points on a logarithmic scale where they differ too much for bars.

    Args:
        axes: to draw on.
        parts: of each time, float64 (rows, parts) [s].
        colours: of the parts.
        points: colours of the points.
        texts: right of each bar or point.
        wide: room of a bar and its text [inches].
    Returns: whether they are bars.
    """
    totals = parts.sum(axis=1)
    bars = bool(totals.max() <= MOST_STACKED * totals.min())
    free = max(0.3, 1 - text_width(texts, 7.5) / wide)  # the longest text stands right of the slowest
    if bars:
        axes.set_xlim(0, (totals.max() or 1.0) / free)
        stack_bars(axes, parts, colours)
    else:
        axes.set_xscale("log")
        least = 0.5 * totals[totals > 0].min()
        axes.set_xlim(least, least * (1.2 * totals.max() / least) ** (1 / free))
        axes.scatter(totals, range(len(totals)), s=42, c=list(points))
    for row, (total, text) in enumerate(zip(totals.tolist(), texts, strict=True)):
        at = (total or axes.get_xlim()[0], row)
        axes.annotate(text, at, (4 if bars else 7, 0), textcoords="offset points", va="center", fontsize=7.5)
    return bars


def stack_bars(axes: Axes, lengths: np.ndarray, colours: Sequence[str]) -> None:
    """Draw rows of bars, each divided into parts.

    Args:
        axes: to draw on.
        lengths: of the parts, float64 (rows, parts).
        colours: of the parts.
    """
    begins = np.cumsum(lengths, axis=1) - lengths
    for part, colour in enumerate(colours):
        if lengths[:, part].any():
            rows = np.arange(len(lengths))
            axes.barh(rows, lengths[:, part], left=begins[:, part], height=0.66, color=colour, linewidth=0)


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
