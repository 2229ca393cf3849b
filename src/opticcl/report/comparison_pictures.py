"""Pictures of a comparison: where the time goes, and time against message size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.plans.names import labels, messages
from opticcl.report.beside import beside_cells, versus_best
from opticcl.report.fastest import Crossing, crossings, fastest, sizes_between
from opticcl.report.kit.colours import DARK, INK, MUTED, PAPER, PART_COLOURS, fabric_colours
from opticcl.report.kit.drawing import (
    WIDTH,
    axes_at,
    name_rows,
    new_figure,
    stack_bars,
    time_bars,
    write_key,
    write_scale,
)
from opticcl.report.kit.line_ends import End, label_ends, text_width
from opticcl.report.kit.svg import to_svg
from opticcl.report.kit.words import shares
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
    names, entries = labels(comparison, short=True), comparison.entries
    height = 0.85 + 0.27 * len(names)
    figure = new_figure(height)
    left = text_width(names) + 0.15
    width = WIDTH - left - 0.2
    time = axes_at(figure, left, 0.45, 0.48 * width, 0.27 * len(names))
    share = axes_at(figure, left + 0.64 * width, 0.45, 0.36 * width, 0.27 * len(names), sharey=time)
    beside = beside_cells(comparison, comparison.as_built) or [""] * len(names)
    written = [
        format_seconds(entry.total_s)
        + (f"  ({words})" if words != "best" else "")
        + (f"  [as built {other}]" if other else "")
        for entry, words, other in zip(entries, versus_best(comparison), beside, strict=True)
    ]
    parts = np.array([list(shares(entry.totals()).values()) for entry in entries])
    colours, by_fabric = list(PART_COLOURS.values()), fabric_colours(entry.fabric.name for entry in entries)
    times = parts * np.array([[entry.total_s] for entry in entries])
    points = [by_fabric[entry.fabric.name] for entry in entries]
    stacked = time_bars(time, times, colours, points, written, 0.55 * width)
    stack_bars(share, 100 * parts, colours)
    _write_shares(share, 100 * parts)
    write_scale(time, "x", "time" if stacked else "time, logarithmic", format_seconds)
    time.xaxis.set_major_locator(_ticks(stacked))
    share.set_xlim(0, 100)
    write_scale(share, "x", "share of the plan's time, %")
    name_rows(time, names)
    name_rows(share, ())
    share.tick_params(labelleft=False)
    present = zip(PART_COLOURS.items(), parts.sum(axis=0).tolist(), strict=True)
    write_key(figure, [named for named, takes_time in present if takes_time], left, height - 0.2)
    return figure


def _write_shares(axes: Axes, shares: np.ndarray) -> None:
    """Write the longer parts into their bars. Args: shares: float64 (bars, parts) [%]."""
    ends = np.cumsum(shares, axis=1)
    for row, part in np.argwhere(shares >= 8).tolist():
        ink = DARK if list(PART_COLOURS)[part] == "latency" else "white"
        middle = ends[row, part] - shares[row, part] / 2
        axes.text(middle, row, f"{shares[row, part]:.0f}", color=ink, ha="center", va="center", fontsize=7)


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
    axes = axes_at(figure, 0.75, 0.5, WIDTH - 0.75 - right, height - 0.7)
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
    write_scale(axes, "x", "message of every node", format_bytes, log=True)
    write_scale(axes, "y", "time", format_seconds, log=True)
    axes.set_xlim(sizes[0], sizes[-1])
    axes.minorticks_off()
    axes.tick_params(length=2)
    axes.grid(zorder=0)
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


_DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 3)),
)


def _ticks(linear: bool) -> Any:
    from matplotlib.ticker import LogLocator, MaxNLocator

    return MaxNLocator(4) if linear else LogLocator(10, numticks=6)
