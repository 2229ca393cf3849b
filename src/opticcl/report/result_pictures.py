"""Pictures of single results for notebooks: the parts of a time, and what a verdict rests on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from opticcl.ir import Timeline
from opticcl.report.comparison import timeline_rows
from opticcl.report.kit.colours import MUTED, PART_COLOURS
from opticcl.report.kit.drawing import (
    WIDTH,
    axes_at,
    name_rows,
    new_figure,
    stack_bars,
    time_rows,
    write_beside,
    write_scale,
)
from opticcl.report.kit.line_ends import text_width
from opticcl.report.kit.words import PART_NAMES
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.ir import Verdict

__all__ = ["timeline_figure", "verdict_figure"]

MOST_ROWS = 24
"""Of a picture [count]."""

BROKEN = "#b3261e"
"""Colour of what is wrong."""


def timeline_figure(timeline: Timeline) -> Figure:
    """The parts of the time of each run of equal steps, as stacked bars, or points where they differ too much for bars."""
    rows = timeline_rows(timeline, MOST_ROWS) or [("none", 0, dict.fromkeys(Timeline.PARTS, 0.0))]
    names = [f"steps {steps}" if " " not in steps else steps for steps, _, _ in rows]
    parts = np.array([[times[part] for part in Timeline.PARTS] for _, _, times in rows])
    texts = [format_seconds(total) for total in parts.sum(axis=1).tolist()]
    named = [(PART_NAMES[part], PART_COLOURS[PART_NAMES[part]]) for part in Timeline.PARTS]
    return time_rows(names, parts, named, texts, "time")


def verdict_figure(verdict: Verdict) -> Figure:
    """How often each rule is broken, or, where none is, how much was checked."""
    broken = Counter[str]()
    for one in verdict.violations:
        broken[one.rule] += one.count
    checked = {"transfers": verdict.transfers, "circuits": verdict.circuits, "chunks": verdict.chunks}
    counts = dict(broken) or {f"{name} checked": count for name, count in checked.items()}
    names, texts = [*counts], [f"{count:,}" for count in counts.values()]
    left = text_width(names) + 0.15
    figure = new_figure(0.85 + 0.27 * len(names))
    axes = axes_at(figure, left, 0.45, WIDTH - left - text_width(texts, 7.5) - 0.2, 0.27 * len(names))
    lengths = np.array([*counts.values()], np.float64)
    axes.set_xlim(0, 1.02 * lengths.max() or 1.0)
    titles = [[f"{name}: {text}"] for name, text in zip(names, texts, strict=True)]
    stack_bars(axes, lengths[:, None], [BROKEN if broken else MUTED], titles)
    write_beside(axes, texts)
    name_rows(axes, names)
    write_scale(axes, "x", "violations" if broken else "count", "{:,.0f}".format)
    return figure
