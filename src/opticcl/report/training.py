"""Training on many machines in the terminal: who is how fast, and where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from opticcl.report._columns import Column, Fitting
from opticcl.report.table import _yes_no
from opticcl.report.words import numbered, ratio
from opticcl.units import counted, format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from rich.table import Table

    from opticcl.evaluate.training import Row, Training
    from opticcl.workload.job import Job

__all__ = [
    "headline",
    "row_names",
    "runtime_words",
    "slowness",
    "training_table",
]


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
    return numbered([row.machine.name for row in training.rows])


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
