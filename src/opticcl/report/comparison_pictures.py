"""Pictures of a comparison: where the time goes, and time against message size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.report.beside import beside_cells
from opticcl.report.fastest import Crossing, crossings, fastest, sizes_between
from opticcl.report.kit.colours import DARK, INK, MUTED, PAPER, PART_COLOURS, fabric_colours
from opticcl.report.kit.line_ends import End, label_ends, text_width
from opticcl.report.kit.svg import WIDTH, new_figure, to_svg
from opticcl.report.kit.words import labels, messages, ratio, shares, slower
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.plans.comparison import Comparison

__all__ = ["breakdown_figure", "breakdown_picture", "line_names", "size_figure", "size_picture"]


def breakdown_picture(comparison: Comparison, name: str = "breakdown") -> str:
    """Stacked bars as SVG, one a plan, fastest on top: its time and the share of each part.

    Args:
        comparison: to draw.
        name: prefix of the ids in the SVG.
    """
    return to_svg(lambda: breakdown_figure(comparison), name, breakdown_label(comparison))


def breakdown_label(comparison: Comparison) -> str:
    """Text of `breakdown_picture` for readers who cannot see it."""
    names, entries = labels(comparison, short=True), comparison.entries
    first, last = (f"{names[i]} with {format_seconds(entries[i].total_s)}" for i in (0, -1))
    return f"Times of {counted(len(entries), 'plan')} for {messages(comparison)}, from {first} to {last}"


def breakdown_figure(comparison: Comparison) -> Figure:
    """The figure of `breakdown_picture`: times on the left, shares on the right.

    Times are stacked bars on a linear scale, or points on a logarithmic one where they differ too much for bars.
    """
    names, totals = labels(comparison, short=True), [e.total_s for e in comparison.entries]
    height = 0.85 + 0.27 * len(names)
    figure = new_figure(height)
    left = text_width(names) + 0.15
    width = WIDTH - left - 0.2
    box = (0.45 / height, 0.27 * len(names) / height)
    time = figure.add_axes((left / WIDTH, box[0], 0.48 * width / WIDTH, box[1]))
    share = figure.add_axes(((left + 0.64 * width) / WIDTH, box[0], 0.36 * width / WIDTH, box[1]), sharey=time)
    stacked = max(totals) <= MOST_STACKED * min(totals)
    beside = beside_cells(comparison) or [""] * len(names)
    written = []
    for row, (total, times_slower) in enumerate(zip(totals, slower(comparison), strict=True)):
        text = format_seconds(total) + (f"  ({ratio(times_slower)})" if times_slower > 1 else "")
        written.append(
            text + (f"  [{comparison.beside.name} {beside[row]}]" if comparison.beside and beside[row] else "")
        )
    free = max(0.3, 1 - text_width(written, 7.5) / (0.55 * width))  # the longest text stands right of the slowest plan
    if stacked:
        time.set_xlim(0, (max(totals) or 1.0) / free)
    else:
        time.set_xscale("log")
        least = 0.5 * min(t for t in totals if t)
        time.set_xlim(least, least * (1.2 * max(totals) / least) ** (1 / free))
    parts = np.array([list(shares(e.totals()).values()) for e in comparison.entries])
    _stack(share, 100 * parts, numbers=True)
    if stacked:
        _stack(time, parts * np.array(totals)[:, None])
    else:
        colours = fabric_colours(e.fabric.name for e in comparison.entries)
        time.scatter(totals, range(len(names)), s=42, c=[colours[e.fabric.name] for e in comparison.entries])
    for row, (total, text) in enumerate(zip(totals, written, strict=True)):
        at = (total or time.get_xlim()[0], row)
        time.annotate(text, at, (4 if stacked else 7, 0), textcoords="offset points", va="center", fontsize=7.5)
    time.set_yticks(range(len(names)), names)
    time.set_ylim(len(names) - 0.5, -0.5)
    time.xaxis.set_major_locator(_ticks(stacked))
    time.xaxis.set_major_formatter(lambda value, _: format_seconds(value))
    time.set_xlabel("time" if stacked else "time, logarithmic")
    share.set_xlim(0, 100)
    share.set_xlabel("share of the plan's time, %")
    for axes in (time, share):
        axes.minorticks_off()
        axes.tick_params(left=False, length=2)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
    share.tick_params(labelleft=False)
    present = zip(PART_COLOURS.items(), parts.sum(axis=0).tolist(), strict=True)
    _swatches(figure, [named for named, takes_time in present if takes_time], left, height)
    return figure


MOST_STACKED = 25.0
"""Ratio of slowest to fastest up to which bars on one scale are legible."""


def _stack(axes: Axes, lengths: np.ndarray, numbers: bool = False) -> None:
    """Draw stacked bars.

    Args:
        axes: to draw on.
        lengths: of the parts of each bar, float64 (bars, parts).
        numbers: whether the longer parts show their length.
    """
    rows = np.arange(len(lengths))
    ends = np.cumsum(lengths, axis=1)
    for p, (part, colour) in enumerate(PART_COLOURS.items()):
        if lengths[:, p].any():
            axes.barh(rows, lengths[:, p], left=ends[:, p] - lengths[:, p], height=0.66, color=colour, linewidth=0)
        for row in np.flatnonzero(lengths[:, p] >= 8) if numbers else ():
            ink = DARK if part == "latency" else "white"
            middle = float(ends[row, p] - lengths[row, p] / 2)
            axes.text(middle, float(row), f"{lengths[row, p]:.0f}", color=ink, ha="center", va="center", fontsize=7)


def size_picture(comparison: Comparison, name: str = "by-size", found: Sequence[Crossing] | None = None) -> str:
    """Time against message size as SVG, one line a plan, with rings where the fastest plan changes.

    Args:
        comparison: to draw.
        name: prefix of the ids in the SVG.
        found: result of `crossings(comparison)`; None: computed here.
    """
    changes = crossings(comparison) if found is None else found
    label = f"Time against message size for {counted(len(comparison.entries), 'plan')}. " + (
        "; ".join(
            f"from {format_bytes(c.size_bytes)} on {c.after} is the fastest, below it {c.before}" for c in changes
        )
        or f"{comparison.entries[0].fabric.name} is the fastest at every size"
    )
    return to_svg(lambda: size_figure(comparison, changes), name, label)


def line_names(comparison: Comparison) -> list[str]:
    """Names of the lines of `size_picture`, in the order of their numbers."""
    entries = zip(labels(comparison, short=True), comparison.entries, strict=True)
    return [name for name, entry in entries if entry.profile.timeline(sizes_between()[0]).total_s > 0]


def size_figure(comparison: Comparison, changes: Sequence[Crossing]) -> Figure:
    """The figure of `size_picture`; a plan without any time, on a single node, has no line.

    Args:
        comparison: to draw.
        changes: result of `crossings(comparison)`.
    """
    sizes = sizes_between()
    colours = fabric_colours(e.fabric.name for e in comparison.entries)
    lines = [
        (name, entry.fabric.name, [entry.profile.timeline(size).total_s for size in sizes])
        for name, entry in zip(labels(comparison, short=True), comparison.entries, strict=True)
    ]
    lines = [line for line in lines if line[2][0] > 0]
    height = max(4.2, 0.9 + 0.155 * len(lines))
    figure = new_figure(height)
    right = text_width(["", *(name for name, _, _ in lines)], 7.5) + 0.3
    axes = figure.add_axes((0.75 / WIDTH, 0.5 / height, (WIDTH - 0.75 - right) / WIDTH, (height - 0.7) / height))
    if not lines:
        axes.text(0.5, 0.5, "every plan takes 0 s", transform=axes.transAxes, ha="center")
        return figure
    seen: Counter[str] = Counter()
    width = 1.5 if len(lines) <= 12 else 1.0
    for number, (_, fabric, times) in enumerate(lines):
        dash = _DASHES[seen[fabric] % len(_DASHES)]
        seen[fabric] += 1
        axes.plot(
            sizes,
            times,
            color=colours[fabric],
            linewidth=width,
            linestyle=dash,
            solid_capstyle="round",
            gid=f"line-{number}",
        )
    _scales(axes, sizes)
    offset: dict[str, Any] = {"textcoords": "offset points"}
    if len(comparison.sizes) == 1 and sizes[0] <= comparison.sizes[0] <= sizes[-1]:
        at_foot: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "rotation": 90, "ha": "right", "va": "bottom"}
        axes.axvline(comparison.sizes[0], color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.annotate("compared here", (comparison.sizes[0], 0), (-3, 4), color=MUTED, fontsize=7, **at_foot, **offset)
    for change in changes:
        now = comparison.entries[fastest(comparison.entries, change.size_bytes)]
        at = (change.size_bytes, now.profile.timeline(change.size_bytes).total_s)
        axes.plot(*at, "o", color=PAPER, markeredgecolor=INK, markersize=6, zorder=5)
        below: dict[str, Any] = {"ha": "center", "va": "top", "zorder": 6}
        axes.annotate(format_bytes(at[0]), at, (0, -9), fontsize=7.5, fontweight="bold", **below, **offset)
    label_ends(axes, [End(name, sizes[-1], times[-1], colours[fabric]) for name, fabric, times in lines])
    return figure


def _scales(axes: Axes, sizes: Sequence[int]) -> None:
    """Both axes logarithmic, in readable units."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes[0], sizes[-1])
    axes.xaxis.set_major_formatter(lambda value, _: format_bytes(value))
    axes.yaxis.set_major_formatter(lambda value, _: format_seconds(value))
    axes.minorticks_off()
    axes.tick_params(length=2)
    axes.grid(zorder=0)
    axes.set_xlabel("message of every node")
    axes.set_ylabel("time")


_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
)


def _swatches(figure: Figure, named: Sequence[tuple[str, str]], left: float, height: float) -> None:
    """Draw a key of coloured squares with names above the axes.

    Args:
        figure: to draw on.
        named: name and colour of each square.
        left: of the first square, or less if they are too wide [inches].
        height: of the figure [inches].
    """
    from matplotlib.patches import Rectangle

    steps = [0.42 + text_width([name], 7.5) for name, _ in named]
    x, y = min(left, max(0.1, WIDTH - sum(steps))), height - 0.2
    for (name, colour), step in zip(named, steps, strict=True):
        size = (0.11 / WIDTH, 0.11 / height)
        figure.add_artist(Rectangle((x / WIDTH, (y - 0.055) / height), *size, facecolor=colour, linewidth=0))
        figure.text((x + 0.16) / WIDTH, y / height, name, va="center_baseline", fontsize=7.5)
        x += step


def _ticks(linear: bool) -> Any:
    from matplotlib.ticker import LogLocator, MaxNLocator

    return MaxNLocator(4) if linear else LogLocator(10, numticks=6)
