"""Training on many machines in the terminal and as pictures: who is how fast, and what its queues do when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.text import Text

from opticcl.report._columns import Column, Fitting
from opticcl.report.colours import INK, MUTED, PART_COLOURS
from opticcl.report.svg import WIDTH, new_figure, to_svg
from opticcl.report.table import _yes_no
from opticcl.report.words import ratio
from opticcl.units import counted, format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

    from opticcl.evaluate.training import Row, Training
    from opticcl.workload.job import Job

__all__ = [
    "headline",
    "iteration_picture",
    "row_names",
    "runtime_words",
    "slowness",
    "timeline_figure",
    "timeline_label",
    "timeline_picture",
    "training_table",
]

COLOURS = {
    "computes": PART_COLOURS["transfer"],
    "waits for other stages": PART_COLOURS["latency"],
    "waits for messages": PART_COLOURS["reconfiguration"],
    "messages": PART_COLOURS["compute"],
}
MOST_TIMELINES = 6
MOST_STACKED = 25.0  # slowest over fastest up to which bars on one scale can be read


def training_table(training: Training) -> Table:
    """One row a fabric, fastest first: the iteration and where it goes, an epoch, the training.

    A narrow console loses the least wanted columns first.
    """
    rows = training.rows
    names = row_names(training)
    columns = [
        Column("fabric", [Text(name) for name in names], justify="left"),
        Column("algorithms", [Text(_algorithms(row)) for row in rows], 3, justify="left"),
        Column("iteration", [format_seconds(row.iteration.total_s) for row in rows]),
        Column("slower", [ratio(x) for x in slowness(training)], 2),
        Column("waits for messages", [format_seconds(row.iteration.exposed_s) for row in rows], 1),
        Column("share", [f"{row.communication_share:.1%}" for row in rows]),
        Column("on the network", [format_seconds(row.iteration.communication_s) for row in rows], 4),
        Column("messages", [f"{row.iteration.num_messages:,}" for row in rows], 7),
        Column("computes", [f"{row.iteration.utilisation:.0%}" for row in rows], 5),
        Column("rate used", [f"{row.bandwidth_utilisation:.0%}" for row in rows], 6),
    ]
    for header, times in (("epoch", training.epoch_s), ("training", training.training_s)):
        cells = [_duration(times(row)) for row in rows]
        if all(cells):
            columns.append(Column(header, cells, 1))
    columns.append(Column("verified", [_yes_no(row.verified) for row in rows], justify="left"))
    return Fitting(columns, headline(training))


def headline(training: Training) -> str:
    """What is trained, and what all rows share."""
    from opticcl.workload.trace_job import network_bytes, num_calls

    job = training.job
    said = [
        f"{job.name} on {counted(job.num_ranks, 'device')}",
        f"{format_bytes(network_bytes(job))} in {counted(num_calls(job), 'call')} an iteration{_of_whom(job)}",
        f"computation {format_seconds(job.compute_s)}" if job.compute_s else "no computation recorded",
    ]
    rates = {row.machine.node_rate_bits_per_s for row in training.rows}
    if len(rates) == 1:
        said.append(f"{format_rate(rates.pop())} a node")
    if job.samples:
        said.append(f"{job.samples:,} samples an iteration")
    return ", ".join([*said, runtime_words(training)])


def _of_whom(job: Job) -> str:
    """Whose calls those are, where not every device takes part in each."""
    return " over all groups of devices" if any(group.num_groups > 1 for group in job.groups.values()) else ""


def runtime_words(training: Training) -> str:
    """Fusion and overlap in words."""
    runtime = training.runtime
    fused = f"{runtime.fusion} fusion up to {format_bytes(runtime.threshold_bytes)}"
    if runtime.fusion == "none" or not runtime.threshold_bytes or not any(t.fusible for t in training.job.tasks):
        fused = "no fusion"
    return f"{fused}, {'communication beside computation' if runtime.overlap else 'no overlap'}"


def row_names(training: Training) -> list[str]:
    """Name of each row's fabric; one that stands there twice is numbered in the order of the rows."""
    plain = [row.machine.name for row in training.rows]
    total, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if total[name] > 1 else name)
    return names


def slowness(training: Training) -> list[float]:
    """How many times each row takes the time of the fastest."""
    fastest = training.rows[0].iteration.total_s
    return [row.iteration.total_s / fastest if fastest else 1.0 for row in training.rows]


def _algorithms(row: Row) -> str:
    names = row.algorithms
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "") or "none needed"


def _duration(seconds: float | None) -> str:
    """Long times in days, hours and minutes too.

    >>> _duration(90.0), _duration(5400.0), _duration(2e6), _duration(None)
    ('90 s', '1.5 h', '23.15 d', '')
    """
    if seconds is None:
        return ""
    for unit, name in ((86400.0, "d"), (3600.0, "h")):
        if seconds >= unit:
            return f"{seconds / unit:.4g} {name}"
    return format_seconds(seconds)


# --- pictures ---------------------------------------------------------------------------------------------------------


def iteration_picture(training: Training, name: str = "iterations") -> str:
    """Bars, one a fabric, fastest on top: what of the iteration is computation and what is waiting, as SVG."""
    first, last = training.rows[0], training.rows[-1]
    label = (
        f"Iterations of {training.job.name} on {len(training.rows)} fabrics, from {first.machine.name} with "
        f"{format_seconds(first.iteration.total_s)} to {last.machine.name} with {format_seconds(last.iteration.total_s)}"
    )
    return to_svg(lambda: _bars(training), name, label)


def _bars(training: Training) -> Figure:
    names = row_names(training)
    parts = [(row.iteration.compute_s, row.iteration.bubble_s, row.iteration.exposed_s) for row in training.rows]
    totals = [sum(times) for times in parts]
    height = 0.85 + 0.27 * len(names)
    figure = new_figure(height)
    left = 0.05 * max(map(len, names)) + 0.5
    axes = figure.add_axes((left / WIDTH, 0.45 / height, (WIDTH - left - 1.3) / WIDTH, 0.27 * len(names) / height))
    stacked = max(totals) <= MOST_STACKED * min(totals)
    if stacked:
        axes.set_xlim(0, max(totals) or 1.0)
    else:
        axes.set_xscale("log")
        axes.set_xlim(0.5 * min(t for t in totals if t), 1.2 * max(totals))
    for at, (times, total) in enumerate(zip(parts, totals, strict=True)):
        begin = 0.0
        for seconds, colour in zip(times, COLOURS.values(), strict=False):
            if stacked and seconds:
                axes.barh(at, seconds, left=begin, height=0.66, color=colour, linewidth=0)
            begin += seconds
        if not stacked:
            axes.plot(total, at, "o", color=INK, markersize=5)
        said = f"{format_seconds(total)}  ({ratio(total / totals[0]) if totals[0] else '1.00x'})"
        axes.annotate(said, (total, at), (5, 0), textcoords="offset points", va="center", fontsize=7.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(lambda value, _: format_seconds(value))
    axes.set_xlabel("iteration" if stacked else "iteration, logarithmic")
    _finish(axes)
    shown = [key for key, column in zip(COLOURS, zip(*parts, strict=True), strict=False) if any(column)]
    _key(figure, shown if stacked else [], left, height)
    return figure


def timeline_picture(training: Training, name: str = "timelines") -> str:
    """What computation and network do when, for the fastest fabrics, as SVG."""
    return to_svg(lambda: timeline_figure(training), name, timeline_label(training))


def timeline_label(training: Training) -> str:
    """What `timeline_figure` shows, in words."""
    names = ", ".join(row.machine.name for row in training.rows[:MOST_TIMELINES])
    return f"Timelines of an iteration of {training.job.name} on {names}"


def timeline_figure(training: Training) -> Figure:
    """The figure of `timeline_picture`."""
    shown = training.rows[:MOST_TIMELINES]
    names = row_names(training)[: len(shown)]
    height = 0.85 + 0.5 * len(shown)
    figure = new_figure(height)
    left = 0.05 * max(map(len, names)) + 0.5
    axes = figure.add_axes((left / WIDTH, 0.45 / height, (WIDTH - left - 0.2) / WIDTH, 0.5 * len(shown) / height))
    latest_s = max(row.iteration.total_s for row in shown)
    divided_s = latest_s / 200  # between shorter neighbours a white line would hide them
    for at, row in enumerate(shown):
        spans = row.iteration.spans
        for queue, offset in ((0, -0.2), (1, 0.2)):
            mine = [s for s in spans if min(s.queue, 1) == queue and s.end_s > s.start_s]
            for colour, some in _coloured(row, mine, queue):
                bars = [(s.start_s, s.end_s - s.start_s) for s in some]
                # Edges of their own colour, so that the shortest message can be seen.
                axes.broken_barh(bars, (at + offset - 0.17, 0.34), facecolors=colour, edgecolors=colour, linewidth=0.6)
            edges = [b.start_s for a, b in pairwise(mine) if min(a.end_s - a.start_s, b.end_s - b.start_s) > divided_s]
            axes.vlines(edges, at + offset - 0.17, at + offset + 0.17, color="white", linewidth=0.6)
        axes.plot([row.iteration.total_s] * 2, [at - 0.42, at + 0.42], color=INK, linewidth=0.9)
    axes.set_xlim(0, latest_s * 1.01 or 1.0)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), names)
    axes.xaxis.set_major_formatter(lambda value, _: format_seconds(value))
    axes.set_xlabel("time since the start of the iteration")
    _finish(axes)
    keys = ["computes", "messages"]
    if any(row.iteration.bubble_s for row in shown):
        keys.insert(1, "waits for other stages")
    _key(figure, keys, left, height)
    return figure


def _coloured(row: Row, spans: Sequence[Any], queue: int) -> list[tuple[str, list[Any]]]:
    """Spans by colour: messages, own computation, and that of other stages."""
    if queue:
        return [(COLOURS["messages"], list(spans))]
    own = [s for s in spans if not row.iteration.waits_in(s)]
    others = [s for s in spans if row.iteration.waits_in(s)]
    return [(COLOURS["computes"], own), (COLOURS["waits for other stages"], others)]


def _finish(axes: Axes) -> None:
    axes.minorticks_off()
    axes.tick_params(left=False, length=2)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def _key(figure: Figure, keys: Sequence[str], left: float, height: float) -> None:
    """Coloured squares with names, above everything [inches]."""
    from matplotlib.patches import Rectangle

    x, y = left, height - 0.2
    for key in keys:
        size = (0.11 / WIDTH, 0.11 / height)
        figure.add_artist(
            Rectangle((x / WIDTH, (y - 0.055) / height), *size, facecolor=COLOURS[key], edgecolor=MUTED, linewidth=0)
        )
        figure.text((x + 0.16) / WIDTH, y / height, key, va="center_baseline", fontsize=7.5)
        x += 0.42 + 0.055 * len(key)
