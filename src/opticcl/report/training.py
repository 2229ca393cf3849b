"""Training results in the terminal: iteration time of each fabric and its parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from opticcl.plans.names import numbered
from opticcl.plans.ranks import is_tie, ranks
from opticcl.plans.sentences import not_tried_line, rates_line
from opticcl.report.beside import AS_BUILT, NO_CONTENDER, as_built_column, light_word, margin_word, other_times
from opticcl.report.kit.columns import Column, FittedTable, Shown, algorithm_column, columns_of, verdict_cell
from opticcl.report.kit.words import gap, ratio
from opticcl.training.runtime import num_streams
from opticcl.units import counted, format_bytes, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticcl.ir.task_graph import Bound, RecordedTimes, TaskGraph
    from opticcl.plans.plan import Plan
    from opticcl.training.communication import PlanUse
    from opticcl.training.iteration import Iteration
    from opticcl.training.train import TrainingResult, TrainingRow

__all__ = [
    "below_recorded",
    "communication_columns",
    "headline",
    "ranked_blocks",
    "row_names",
    "runtime_words",
    "training_blocks",
    "training_columns",
    "training_notes",
]


BOUNDS: dict[Bound, list[str]] = {
    "": [],
    "upper": ["an upper bound"],
    "lower": ["a lower bound"],
    "estimate": ["an estimate"],
}


def training_blocks(training: TrainingResult) -> list[FittedTable]:
    """The fabrics, those without a rank with the reason below the others, and the messages."""
    return [*ranked_blocks(training, training_columns(training)), *communication_tables(training)]


def ranked_blocks(training: TrainingResult, known: Sequence[Column]) -> list[FittedTable]:
    """The recorded step, the fabrics that have a rank, fastest first, and references; those without one with the reason below.

    Args:
        training: the results.
        known: columns, a row a fabric.
    """
    first = [i for i, row in enumerate(training.rows) if row.ranked]
    if any(one.header == "vs best" for one in known):  # which says that they are no contenders
        first += [i for i, row in enumerate(training.rows) if row.is_reference]
    others = [i for i in range(len(training.rows)) if i not in first]
    blocks = []
    if first:
        ranked = below_recorded(training, [one.of_rows(first) for one in known])
        legend = f";\n{AS_BUILT}" if any(one.header == "as built" for one in known) else ""
        blocks.append(FittedTable(ranked, heading=headline(training) + legend))
    if others:
        reasons = Column("why", [training.rows[i].no_rank for i in others], justify="left", wrap=True)
        listed = [one.of_rows(others) for one in known if one.header in UNRANKED_COLUMNS]
        blocks.append(FittedTable([*listed, reasons], heading="Without a rank"))
    return blocks


MOST_PLANS = 12
"""Of those that carry messages, the ones of the fastest fabrics [count]."""

UNRANKED_COLUMNS = ("fabric", "iteration", "step", "exposed comm", "light")
"""Headings of the columns of fabrics without a rank, before the reason."""


def training_notes(training: TrainingResult) -> list[str]:
    """What a reader must know beside the table, what decides most first."""
    said = [*_remarks_on_rows(training), *spread_of_steps(training), *together_lines(training)]
    below = [*said, *recording_lines(training), *map(str, training.left_out), *training.job.notes]
    return [*job_lines(training), *_remarks(training), *below]


def job_lines(training: TrainingResult) -> list[str]:
    """What a target loss chose, and the layout of its ranks."""
    made, rows = training.target, training.rows
    if made is None:
        return _layout_line(training)
    first = row_names(training)[0]
    return [
        f"target loss {made.cross_entropy:g}, {made.loss:.4g} by the scaling law: transformer of {made.layers} layers, "
        f"width {made.hidden:,}, {made.model.parameters:,} parameters",
        f"tensor {made.tensor:,} x data {made.data:,} = {counted(made.num_devices, 'device')}, batch {made.batch:,} of a "
        f"critical {made.critical_batch:,.0f}, {counted(made.steps, 'step')}",
        f"training {_duration(training.training_s(rows[0]))} on {first}, the fastest",
        *_layout_line(training),
    ]


def _remarks_on_rows(training: TrainingResult) -> list[str]:
    """Remarks on rows, each once with the fabrics that it is about."""
    about: dict[str, list[str]] = {}
    for name, row in zip(row_names(training), training.rows, strict=True):
        for remark in row.remarks:
            about.setdefault(remark, []).append(name)
    return [f"{', '.join(names)}: {remark}" for remark, names in about.items()]


def _layout_line(training: TrainingResult) -> list[str]:
    """Which ranks of a model sit where, or how that was chosen; none where it has one dimension."""
    layout, tried = training.job.layout, len(training.rows[0].layouts)
    if "," not in layout:
        return []
    if tried:
        return [f"layout: on each fabric the fastest of {tried} orders; ranks along the first dimension are neighbours"]
    return [f"layout: {layout}; ranks along the first dimension are neighbours"]


def training_columns(training: TrainingResult) -> list[Column]:
    """Columns of the results, a row a fabric.

    The columns that answer are always shown: of a model the iteration and its exposed communication, of a recorded step what is
    left of it and what is saved.

    The bound is the sum of the lower bounds of all messages, `x bound` their time, each alone, over it; both are always shown
    where the layout was chosen.
    """
    rows, gain = training.rows, training.gain
    iterations = [row.iteration for row in rows]
    idle = gain is not None and gain.step_s is not None
    total = Shown("iteration_s", "without idle time", 3) if idle else Shown("iteration_s", "iteration")
    placed = any(row.layouts for row in rows)
    columns = [
        Column("fabric", [Text(name) for name in row_names(training)], justify="left"),
        *(columns_of([one.job for one in iterations], Shown("layout")) if placed else []),
        *_saved(training),
        *columns_of(iterations, total._replace(key="total_s")),
        *([] if idle else [Column("vs best", _versus_best(training))]),
        *_parts(rows, idle),
        *_as_built(training, idle),
        *_together(rows),
        *(replace(one, rank=2) for one in other_times(rows)),
        *columns_of(
            rows, Shown("lower_bound_s", "bound", 8 * (not placed)), Shown("gap", "x bound", 8 * (not placed), ratio)
        ),
        *columns_of(rows, Shown("bandwidth_utilisation", "rate used", 6, ".0%")),
    ]
    columns.insert(
        len(columns) if idle else 1, Column("algorithms", [Text(_algorithms(row)) for row in rows], 3, justify="left")
    )
    for header, times in (("epoch", training.epoch_s), ("training", training.training_s)):
        cells = [_duration(times(row)) for row in rows]
        if all(cells):
            columns.append(Column(header, cells))
    if any(row.light.margin_db is not None for row in rows):
        margins = [margin_word(row.light) for row in rows]
        columns.append(Column("light", [light_word(row.light) for row in rows], 1, "left", short=margins))
    if not all(row.verified for row in rows):
        columns.append(Column("verified", [verdict_cell(row.verdict) for row in rows], justify="left"))
    return columns


def _parts(rows: Sequence[TrainingRow], idle: bool) -> list[Column]:
    """Parts of the iterations; without computation there is nothing that messages are exposed to.

    Args:
        rows: of the fabrics.
        idle: whether the step has idle time, so that what is saved answers.
    """
    iterations = [row.iteration for row in rows]
    counts = Shown("communication_s", "on the network", 4), Shown("num_messages", "messages", 7)
    if any(row.communication_share is None for row in rows):
        return columns_of(iterations, *counts)
    return [
        *columns_of(iterations, Shown("exposed_s", "exposed comm", 1 if idle else 0)),
        *columns_of(rows, Shown("communication_share", "share", 2, ".1%")),
        *columns_of(iterations, *counts, Shown("utilisation", "busy", 5, ".0%")),
        *_model_utilisation(rows),
    ]


def _saved(training: TrainingResult) -> list[Column]:
    """What the fabrics save of the recorded step; none for a model, or if no message has a recorded time."""
    gain = training.gain
    if gain is None or gain.recorded is None or gain.altered:
        return []
    rows = [gain.of_row(row.iteration) for row in training.rows]
    saved = Shown("saved_s", "saves", form=_signed)
    if gain.step_s is None:
        return columns_of(rows, saved)
    return columns_of(rows, Shown("step_s", "step"), saved, Shown("saved_share", "of the step", form=format_share))


def _signed(seconds: float) -> str:
    """A time, which may be less than 0."""
    return format_seconds(seconds) if seconds >= 0 else f"-{format_seconds(-seconds)}"


def below_recorded(training: TrainingResult, columns: Sequence[Column]) -> list[Column]:
    """The columns below a first row with the recorded step, if one is known.

    Args:
        training: the results.
        columns: a row a fabric.
    """
    recorded = training.gain.row() if training.gain else None
    if recorded is None:
        return list(columns)
    shown = columns_of(
        [recorded],
        Shown("fabric"),
        Shown("step_s"),
        Shown("iteration_s", "iteration"),
        Shown("iteration_s", "without idle time"),
        Shown("exposed_s", "exposed comm"),
        Shown("communication_share", "share", form=".1%"),
        Shown("communication_s", "on the network"),
        Shown("utilisation", "busy", form=".0%"),
    )
    cells = {column.header: column.cells[0] for column in shown}
    return [one.below(cells.get(one.header, "-")) for one in columns]


def communication_tables(training: TrainingResult) -> list[FittedTable]:
    """The plans that carry the messages of process groups, with their bounds; none where there is one group of all devices."""
    named = [(name, use) for name, row in zip(row_names(training), training.rows, strict=True) for use in row.plans]
    if not named or not _in_groups(training.job):
        return []
    shown = named[:MOST_PLANS]
    note = "time, bound and scaled: all messages of the group, one after the other; scaled: on a fabric of its size"
    if len(named) > len(shown):
        note += f"; {counted(len(named) - len(shown), 'more plan')}: --json, or -o page.html"
    return [FittedTable(communication_columns(shown), note, keys=2)]


def communication_columns(named: Sequence[tuple[str, PlanUse]]) -> list[Column]:
    """Columns of plans that carry messages, a row a plan.

    Args: named: name of the fabric, and the plan.
    """
    uses = [use for _, use in named]
    plans = [use.plan for use in uses]
    return [
        Column("fabric", [name for name, _ in named], justify="left"),
        *columns_of(uses, Shown("group")),
        Column("collective", [plan.schedule.collective.name for plan in plans], 2, justify="left"),
        algorithm_column([plan.algorithm for plan in plans]),
        Column("ranks", [_ranks(plan) for plan in plans], 3),
        *columns_of(uses, Shown("messages", "", 5), Shown("size_bytes", "bytes", 4), Shown("total_s", "time")),
        *columns_of(uses, Shown("lower_bound_s", "bound")),
        Column("x bound", [gap(use) for use in uses], 1, justify="left", short=[gap(use, short=True) for use in uses]),
        *columns_of(uses, Shown("scaled_s", "scaled")),
        Column("verified", [verdict_cell(use.verdict.verdict) for use in uses], 6, justify="left"),
    ]


def _ranks(plan: Plan) -> str:
    """Groups of a plan and ranks of each, and nodes of the machine where these are more."""
    fabric, ranks = plan.fabric, plan.schedule.collective.num_ranks
    several = f"{fabric.num_members:,} x " if fabric.num_members > 1 else ""
    part = fabric.num_machine_nodes
    return f"{several}{ranks:,}" + (f" of {part:,}" if part > fabric.num_nodes else "")


def _in_groups(job: TaskGraph) -> bool:
    """Whether a group of some of the devices communicates."""
    return any(1 < len(group.ranks) < job.num_ranks for group in job.groups.values())


def _remarks(training: TrainingResult) -> list[str]:
    """Why rows may differ for another reason than their networks, and what is optimistic."""
    left_out = {row.machine.name: row.not_tried for row in training.rows if row.not_tried}
    remarks = rates_line([row.machine for row in training.rows]), not_tried_line(left_out)
    job, lines = training.job, list(filter(None, remarks))
    if training.groups == "scaled" and _in_groups(job):
        lines.append("each process group is timed on a fabric of its own size; --groups machine uses its real nodes")
    return lines


def _model_utilisation(rows: Sequence[TrainingRow]) -> list[Column]:
    """Model FLOPs utilisation, of models alone."""
    shares = [row.model_utilisation for row in rows]
    known = [f"{share:.1%}" for share in shares if share is not None]
    return [Column("MFU", known, 4)] if len(known) == len(shares) else []


def _versus_best(training: TrainingResult) -> list[str]:
    """Iteration of each fabric over that of the fastest with a rank; ties by that word."""
    ranked = [row.iteration.total_s for row in training.rows if row.ranked]
    tied = [is_tie(row.iteration.total_s, ranked[0]) if row.ranked else False for row in training.rows]
    return [
        NO_CONTENDER if row.is_reference else ratio(factor) if not tie else "tie" if sum(tied) > 1 else "best"
        for row, tie, factor in zip(training.rows, tied, _slowness(training), strict=True)
    ]


def _as_built(training: TrainingResult, idle: bool) -> list[Column]:
    """Times and ranks of the fabrics as built, where that was evaluated.

    Args:
        training: the results.
        idle: whether they are of the recorded step, idle time included.
    """
    rows, gain = training.rows, training.gain
    if all(row.built is None for row in rows):
        return []
    known = [
        gain.step_as_built_s(row.iteration, row.built_s) if gain and idle and row.built_s is not None else row.built_s
        for row in rows
    ]
    ranked = [i for i, row in enumerate(rows) if row.ranked and known[i] is not None]
    placed = dict(zip(ranked, ranks([known[i] or 0.0 for i in ranked]), strict=True))
    return [as_built_column(known, [placed.get(i) for i in range(len(rows))], [row.rate_factor for row in rows])]


def _together(rows: Sequence[TrainingRow]) -> list[Column]:
    """Iterations with all messages planned together, if requested."""
    if not any(row.together for row in rows):
        return []
    known = [format_seconds(row.together.iteration.total_s) if row.together else "-" for row in rows]
    return [Column("together", known)]


def together_lines(training: TrainingResult) -> list[str]:
    """What planning together gained on each fabric; none unless requested."""
    return [
        f"{name}: {row.together}" for name, row in zip(row_names(training), training.rows, strict=True) if row.together
    ]


def headline(training: TrainingResult) -> str:
    """The job, and the values that all rows share."""

    job = training.job
    parts = [
        f"{job.name} on {counted(job.num_ranks, 'device')}",
        f"{format_bytes(job.network_bytes)} in {counted(job.num_calls, 'call')} per iteration{_groups_remark(job)}",
        f"computation {format_seconds(job.compute_s)}" if job.compute_s else "no computation recorded",
    ]
    if training.compute_scale != 1:
        parts[-1] += f" / {training.compute_scale:g}"
    rates = {row.machine.node_rate_bits_per_s for row in training.rows}
    if len(rates) == 1:
        parts.append(f"{format_rate(rates.pop())} per node")
    if job.samples:
        parts.append(f"{job.samples:,} samples per iteration")
    return ", ".join([*parts, runtime_words(training), *BOUNDS[job.bound]])


def recording_lines(training: TrainingResult) -> list[str]:
    """The recorded iteration beside its replay and its simulation on a model of the recorded network; none for a model."""
    recorded = training.job.recorded
    if recorded is None:
        return []
    step = f" ({training.job.step})" if training.job.step else ""
    parts = [
        f"computation {format_seconds(recorded.compute_s)}",
        f"messages {format_seconds(recorded.communication_s)}",
    ]
    if recorded.exposed_s is None or recorded.total_s is None or recorded.idle_s is None:
        return [f"recorded{step}: {', '.join(parts)}; starts are not recorded, so what overlapped is unknown"]
    parts.append(f"{recorded.hidden_share or 0:.0%} hidden")
    lines = [
        f"recorded{step}: {format_seconds(recorded.total_s)} per iteration: computation "
        f"{format_seconds(recorded.busy_s or 0.0)} + exposed messages {format_seconds(recorded.exposed_s)} + idle "
        f"{format_seconds(recorded.idle_s)}; kernels add up to {', '.join(parts)}"
    ]
    if training.gain is not None and training.gain.replayed is not None:
        lines.append(_beside("replayed with the recorded durations", training.gain.replayed, recorded))
    if row := training.recorded_on:
        lines.append(_beside(f"on {row.machine.name} as the recorded network", row.iteration, recorded))
    lines += training.gain.caveats() if training.gain else ()
    return lines


def _beside(what: str, iteration: Iteration, recorded: RecordedTimes) -> str:
    """An iteration beside the recorded one, and the part that differs most."""
    messages, exposed = iteration.messages_s, iteration.exposed_s
    hidden = f", {max(0.0, 1 - exposed / messages):.0%} hidden" if messages else ""
    differences = {
        "idle time of the device, which is not simulated": recorded.idle_s or 0.0,
        "messages, of which the recorded ones include waiting for slower ranks": abs(
            messages - recorded.communication_s
        ),
        "exposed messages": abs(exposed - (recorded.exposed_s or 0.0)),
        "overlapping kernels, which are simulated one after the other": recorded.compute_s - (recorded.busy_s or 0.0),
    }
    largest = max(differences, key=lambda name: differences[name])
    most = f"largest difference: {format_seconds(differences[largest])}, {largest}"
    if differences[largest] < 1e-6 * recorded.compute_s:
        most = "equal to the recorded iteration"
    return (
        f"{what}: {format_seconds(iteration.total_s)} per iteration, messages {format_seconds(messages)}, exposed "
        f"{format_seconds(exposed)}{hidden}; {most}"
    )


def spread_of_steps(training: TrainingResult) -> list[str]:
    """Which of several recorded steps each iteration is, and how long all take on the fastest fabric; none if there is one."""
    first = training.rows[0]
    if not first.steps:
        return []
    times = sorted(step.total_s for step in first.steps)
    return [
        f"each iteration is {first.iteration.job.step}, of {len(times)} steps that of median computation; on "
        f"{row_names(training)[0]} they take {format_seconds(times[0])} to {format_seconds(times[-1])}"
    ]


def _groups_remark(job: TaskGraph) -> str:
    """Remark if not every device takes part in each call."""
    return " over all groups of devices" if any(group.num_groups > 1 for group in job.groups.values()) else ""


def runtime_words(training: TrainingResult) -> str:
    """Fusion and overlap as text."""
    runtime = training.runtime
    fused = f"{runtime.fusion} fusion up to {format_bytes(runtime.threshold_bytes)}"
    if runtime.fusion == "none" or not runtime.threshold_bytes or not any(t.fusible for t in training.job.tasks):
        fused = "no fusion"
    streams = num_streams(training.job, runtime)
    source = " as recorded" if runtime.streams is None else ""
    shared = f", {streams} streams{source} share the rate of a node" if streams > 1 else ""
    return f"{fused}, {'communication overlaps computation' if runtime.overlap else 'no overlap'}{shared}"


def row_names(training: TrainingResult) -> list[str]:
    """Name of each row's fabric; duplicates are numbered in the order of the rows."""
    return numbered([row.machine.name for row in training.rows])


def _slowness(training: TrainingResult) -> list[float]:
    """Iteration time of each row relative to the fastest."""
    fastest = training.rows[0].iteration.total_s
    return [row.iteration.total_s / fastest if fastest else 1.0 for row in training.rows]


def _algorithms(row: TrainingRow) -> str:
    names = row.algorithms
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "") or "none needed"


def _duration(seconds: float | None) -> str:
    """A duration, in hours, days or years if long.

    >>> _duration(90.0), _duration(5400.0), _duration(2e6), _duration(1e9), _duration(None)
    ('90 s', '1.5 h', '23.15 d', '31.69 years', '')
    """
    if seconds is None:
        return ""
    for unit, name in ((365.25 * 86400.0, "years"), (86400.0, "d"), (3600.0, "h")):
        if seconds >= unit:
            return f"{seconds / unit:.4g} {name}"
    return format_seconds(seconds)
