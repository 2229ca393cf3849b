"""Pictures of training results: parts of the iteration on each fabric, and timelines of its queues."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.report.kit.colours import INK, PART_COLOURS
from opticcl.report.kit.drawing import WIDTH, axes_at, name_rows, new_figure, time_rows, write_key, write_scale
from opticcl.report.kit.line_ends import text_width
from opticcl.report.kit.svg import to_svg
from opticcl.report.kit.words import ratio
from opticcl.report.training import row_names
from opticcl.units import counted, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.training.train import TrainingResult, TrainingRow

__all__ = ["iteration_picture", "timeline_figure", "timeline_label", "timeline_picture"]

COLOURS = {
    "computes": PART_COLOURS["transfer"],
    "waits for other stages": PART_COLOURS["latency"],
    "waits for messages": PART_COLOURS["reconfiguration"],
    "messages": PART_COLOURS["compute"],
}
MOST_TIMELINES = 6


def iteration_picture(training: TrainingResult) -> str:
    """Bars, one per fabric, fastest on top: computation and waiting in the iteration, as SVG."""
    first, last = training.rows[0], training.rows[-1]
    label = (
        f"Iterations of {training.job.name} on {len(training.rows)} fabrics, from {first.machine.name} with "
        f"{format_seconds(first.iteration.total_s)} to {last.machine.name} with {format_seconds(last.iteration.total_s)}"
    )
    return to_svg(lambda: _bars(training), "iterations", label)


def _bars(training: TrainingResult) -> Figure:
    names = row_names(training)
    parts = np.array(
        [[row.iteration.compute_s, row.iteration.bubble_s, row.iteration.exposed_s] for row in training.rows]
    )
    totals = parts.sum(axis=1).tolist()
    texts = [_time_and_ratio(total, totals[0]) for total in totals]
    return time_rows(names, parts, list(COLOURS.items())[: parts.shape[1]], texts, "iteration")


def timeline_picture(training: TrainingResult) -> str:
    """Timelines of computation and messages for the fastest fabrics, as SVG."""
    return to_svg(lambda: timeline_figure(training), "timelines", timeline_label(training))


def timeline_label(training: TrainingResult) -> str:
    """Text alternative of `timeline_figure`."""
    names = ", ".join(row.machine.name for row in training.rows[:MOST_TIMELINES])
    return f"Timelines of an iteration of {training.job.name} on {names}"


def timeline_figure(training: TrainingResult) -> Figure:
    """The figure of `timeline_picture`."""
    shown = training.rows[:MOST_TIMELINES]
    names = row_names(training)[: len(shown)]
    height = 1.4 + 0.5 * len(shown)
    figure = new_figure(height, *_timeline_heading(training))
    left = text_width(names) + 0.15
    axes = axes_at(figure, left, 0.45, WIDTH - left - 1.3, 0.5 * len(shown))
    latest_s = max(row.iteration.total_s for row in shown)
    divided_s = latest_s / 200  # a white line would hide shorter neighbours
    for at, row in enumerate(shown):
        spans = row.iteration.spans_of(row.iteration.device)
        for queue, offset in ((0, -0.2), (1, 0.2)):
            mine = [s for s in spans if min(s.queue, 1) == queue and s.end_s > s.start_s]
            for colour, some in _coloured(row, mine, queue):
                bars = [(s.start_s, s.end_s - s.start_s) for s in some]
                # Edges in the same colour keep the shortest message visible.
                axes.broken_barh(bars, (at + offset - 0.17, 0.34), facecolors=colour, edgecolors=colour, linewidth=0.6)
            edges = [b.start_s for a, b in pairwise(mine) if min(a.end_s - a.start_s, b.end_s - b.start_s) > divided_s]
            axes.vlines(edges, at + offset - 0.17, at + offset + 0.17, color="white", linewidth=0.6)
        axes.plot([row.iteration.total_s] * 2, [at - 0.42, at + 0.42], color=INK, linewidth=0.9)
        text = _time_and_ratio(row.iteration.total_s, shown[0].iteration.total_s)
        beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(text, (1, at), (5, 0), va="center", fontsize=7.5, **beside)
    axes.set_xlim(0, latest_s * 1.01 or 1.0)
    write_scale(axes, "x", "time since the start of the iteration", format_seconds)
    name_rows(axes, names)
    keys = ["computes", "messages"]
    if any(row.iteration.bubble_s for row in shown):
        keys.insert(1, "waits for other stages")
    right = write_key(figure, [(key, COLOURS[key]) for key in keys], left, height - 0.75)
    _key_of_end(figure, right, height - 0.75)
    return figure


def _timeline_heading(training: TrainingResult) -> tuple[str, str]:
    """Title and remark."""
    shown, rows = min(MOST_TIMELINES, len(training.rows)), len(training.rows)
    job = training.job
    which = f"the {shown} fastest of {rows} fabrics" if shown < rows else counted(rows, "fabric") + ", fastest first"
    title = f"An iteration of {job.name} on {counted(job.num_ranks, 'device')}: {which}"
    remark = "above: computation, below: messages; white lines separate tasks; at the right the iteration time"
    return title, remark


def _time_and_ratio(seconds: float, fastest_s: float) -> str:
    """A time, and its ratio to the fastest."""
    return f"{format_seconds(seconds)}  ({ratio(seconds / fastest_s) if fastest_s else '1.00x'})"


def _coloured(row: TrainingRow, spans: Sequence[Any], queue: int) -> list[tuple[str, list[Any]]]:
    """Spans by colour: messages, own computation, and that of other stages."""
    if queue:
        return [(COLOURS["messages"], list(spans))]
    own = [s for s in spans if not row.iteration.waits_in(s)]
    others = [s for s in spans if row.iteration.waits_in(s)]
    return [(COLOURS["computes"], own), (COLOURS["waits for other stages"], others)]


def _key_of_end(figure: Figure, left: float, above: float) -> None:
    """Legend of the mark at the end of a row.

    Args:
        figure: to draw on.
        left, above: position [inches].
    """
    from matplotlib.lines import Line2D

    height = figure.get_figheight()
    figure.add_artist(
        Line2D([left / WIDTH] * 2, [(above - 0.08) / height, (above + 0.08) / height], color=INK, linewidth=0.9)
    )
    figure.text((left + 0.08) / WIDTH, above / height, "end of the iteration", va="center_baseline", fontsize=7.5)
