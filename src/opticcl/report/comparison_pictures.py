"""Pictures of a comparison: times with price and power beside them, and time against message size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.plans.hardware import bill_per_node
from opticcl.plans.names import labels, messages
from opticcl.report.beside import versus_best
from opticcl.report.fastest import Crossing, crossings, fastest, sizes_between
from opticcl.report.kit.colours import INK, MUTED, PAPER, PART_COLOURS, fabric_colours
from opticcl.report.kit.drawing import (
    WIDTH,
    axes_at,
    name_rows,
    new_figure,
    stack_bars,
    time_bars,
    write_beside,
    write_key,
    write_scale,
)
from opticcl.report.kit.line_ends import End, label_ends, text_width
from opticcl.report.kit.svg import titled, to_svg
from opticcl.report.kit.words import shares
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.plans.comparison import Comparison

__all__ = ["breakdown_figure", "breakdown_label", "breakdown_picture", "size_figure", "size_picture"]


def breakdown_picture(comparison: Comparison) -> str:
    """Stacked bars as SVG, one a plan, fastest on top: its time, and price and power of a node."""
    return to_svg(lambda: breakdown_figure(comparison), "breakdown", breakdown_label(comparison))


def breakdown_label(comparison: Comparison) -> str:
    """Text of `breakdown_picture` for readers who cannot see it."""
    names, entries = labels(comparison, short=True), comparison.entries
    first, last = (f"{names[i]} with {format_seconds(entries[i].total_s)}" for i in (0, -1))
    return f"Times of {counted(len(entries), 'plan')} for {messages(comparison)}, from {first} to {last}"


def breakdown_figure(comparison: Comparison) -> Figure:
    """The figure of `breakdown_picture`: the time of each plan, and beside it price and power of a node where they are known.

    Times are stacked bars on a linear scale, or points on a logarithmic one where they differ too much for bars.
    """
    names, entries = labels(comparison, short=True), comparison.entries
    bills = np.array([bill_per_node(entry.fabric) for entry in entries], np.float64)  # NaN where the parts are unknown
    height, left = 0.85 + 0.27 * len(names), text_width(names) + 0.15
    figure = new_figure(height)
    written = [
        format_seconds(entry.total_s) + (f"  {words}" if words != "best" else "")
        for entry, words in zip(entries, versus_best(comparison), strict=True)
    ]
    right = WIDTH - (2 * BESIDE_WIDE if np.isfinite(bills).any() else 0.0)
    time = axes_at(figure, left, 0.45, max(1.0, right - left - text_width(written, 7.5) - 0.25), 0.27 * len(names))
    parts = np.array([list(shares(entry.totals()).values()) for entry in entries])
    times = parts * np.array([[entry.total_s] for entry in entries])
    by_fabric = fabric_colours(entry.fabric.name for entry in entries)
    points = [by_fabric[entry.fabric.name] for entry in entries]
    titles = [_part_titles(name, row, share) for name, row, share in zip(names, times, parts, strict=True)]
    stacked = time_bars(time, times, list(PART_COLOURS.values()), points, written, titles)
    write_scale(time, "x", "time" if stacked else "time, logarithmic", format_seconds)
    time.xaxis.set_major_locator(_ticks(stacked))
    name_rows(time, names)
    if right < WIDTH:
        _bars_beside(figure, right, "price of a node", bills[:, 0], "{:,.0f} USD".format, names)
        _bars_beside(figure, right + BESIDE_WIDE, "power of a node", bills[:, 1], "{:,.0f} W".format, names)
    if stacked:
        present = zip(PART_COLOURS.items(), parts.sum(axis=0).tolist(), strict=True)
        write_key(figure, [named for named, takes_time in present if takes_time], left, height - 0.2)
    return figure


BESIDE_WIDE = 1.65
"""Width of the bars of price or power with their texts [inches]."""


def _bars_beside(
    figure: Figure, left: float, label: str, values: np.ndarray, text: Callable[[float], str], names: Sequence[str]
) -> None:
    """Bars of a value in the rows of the plans, with the value right of them.

    Args:
        figure: to draw on.
        left: of the bars [inches].
        label: of their scale.
        values: one a row, float64 (rows,); NaN where unknown.
        text: writes a value.
        names: of the rows.
    """
    axes = axes_at(figure, left, 0.45, BESIDE_WIDE - 0.85, 0.27 * len(names))
    written = ["-" if np.isnan(value) else text(value) for value in values.tolist()]
    lengths = np.nan_to_num(values)
    axes.set_xlim(0, 1.02 * lengths.max() or 1.0)
    stack_bars(axes, lengths[:, None], [MUTED], [[f"{name}: {one}"] for name, one in zip(names, written, strict=True)])
    write_beside(axes, written)
    name_rows(axes, names)
    write_scale(axes, "x", label)
    axes.set_xticks([0])
    axes.tick_params(labelleft=False)


def _part_titles(name: str, times: np.ndarray, shares: np.ndarray) -> list[str]:
    """What a pointer shows on the parts of a bar; "" for parts that take no time.

    Args:
        name: of the plan.
        times: of its parts, float64 (parts,) [s].
        shares: of its parts, float64 (parts,).
    """
    return [
        f"{name}: {part} {format_seconds(seconds)}, {share:.0%}" if seconds else ""
        for part, seconds, share in zip(PART_COLOURS, times.tolist(), shares.tolist(), strict=True)
    ]


def size_picture(comparison: Comparison, found: Sequence[Crossing] | None = None) -> str:
    """Time against message size as SVG, one line a plan, with rings where the fastest plan changes.

    Args:
        comparison: to draw.
        found: result of `crossings(comparison)`; None: computed here.
    """
    changes = crossings(comparison) if found is None else found
    label = f"Time against message size for {counted(len(comparison.entries), 'plan')}. " + (
        "; ".join(
            f"from {format_bytes(c.size_bytes)} on {c.after} is the fastest, below it {c.before}" for c in changes
        )
        or f"{comparison.entries[0].fabric.name} is the fastest at every size"
    )
    return to_svg(lambda: size_figure(comparison, changes), "by-size", label)


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
    for number, (name, fabric, times) in enumerate(lines):
        dash = _DASHES[seen[fabric] % len(_DASHES)]
        seen[fabric] += 1
        style: dict[str, Any] = {"color": colours[fabric], "linewidth": width, "linestyle": dash}
        (line,) = axes.plot(sizes, times, solid_capstyle="round", gid=f"line-{number}", **style)
        titled(line, name)
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
