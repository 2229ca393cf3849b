"""Paced runs: measured times beside those of the circuits, as lines and as a Gantt picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticcl.report.kit.colours import MUTED, PART_COLOURS
from opticcl.report.kit.drawing import axes_at, new_figure
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.execute.paced import PacedRun

__all__ = ["gantt", "paced_lines"]

MAX_STEPS = 64  # of the table and of the picture


def paced_lines(found: PacedRun) -> list[str]:
    """A table of steps, the sums, and a hint where messages were late."""
    lines = [f"{'step':>5}  {'circuits':>22}  {'measured / ' + format(found.factor, 'g'):>22}"]
    begins = (0.0, *found.rows_end_s)
    measured = (0.0, *(end / found.factor for end in found.end_s))
    for i in range(min(MAX_STEPS, len(found.rows_end_s))):
        of_rows, of_clock = (
            f"{format_seconds(times[i])} to {format_seconds(times[i + 1])}" for times in (begins, measured)
        )
        lines.append(f"{i:>5}  {of_rows:>22}  {of_clock:>22}")
    if len(found.rows_end_s) > MAX_STEPS:
        lines.append(f"{len(found.rows_end_s) - MAX_STEPS:,} more steps: --json has all")
    transfer_s = found.rows_s - found.reconfiguration_s - found.latency_s
    lines += [
        f"{format_bytes(found.size_bytes)}, held back {found.factor:g} times, {found.mode}",
        f"circuits    {format_seconds(found.rows_s)}: reconfiguration {format_seconds(found.reconfiguration_s)}, "
        f"latency {format_seconds(found.latency_s)}, transfer {format_seconds(transfer_s)}",
        f"measured    {format_seconds(found.measured_s)} ({found.deviation:+.1%}) of {format_seconds(found.total_s)}; "
        f"{found.late:,} of {counted(found.messages, 'message')} late",
        f"simulated   {format_seconds(sum(found.simulated_s.values()))}, of which the circuits lack "
        f"compute {format_seconds(found.simulated_s.get('compute_s', 0.0))} and "
        f"control {format_seconds(found.simulated_s.get('control_s', 0.0))}",
        f"this host   {format_seconds(found.overhead_s)} for the longest step at full speed",
    ]
    if found.late:
        lines.append(f"too fast for this machine; try --pace {found.slower_factor:.2g}")
    return lines


def gantt(found: PacedRun, title: str) -> Figure:
    """Steps as bars over time, those of the circuits above the measured ones.

    Args:
        found: the paced run.
        title: what ran.
    """
    steps = min(MAX_STEPS, len(found.rows_end_s))
    height, remark = 1.4 + 0.28 * steps, f"circuits (blue) and measured time / {found.factor:g} (green), {found.mode}"
    figure = new_figure(height, title, remark)
    axes = axes_at(figure, 0.6, 0.42, 9.2, height - 1.1)
    colours = PART_COLOURS[next(k for k in PART_COLOURS if "transfer" in k)], "#228833"
    measured = [end / found.factor for end in found.end_s]
    for row, (ends, colour) in enumerate(zip((list(found.rows_end_s), measured), colours, strict=True)):
        begins = [0.0, *ends][:steps]
        for i, (begin, end) in enumerate(zip(begins, ends[:steps], strict=True)):
            axes.barh(i + 0.36 * row - 0.18, (end - begin) * 1e6, left=begin * 1e6, height=0.32, color=colour)
    axes.set_yticks(range(steps), [f"step {i}" for i in range(steps)], color=MUTED)
    axes.invert_yaxis()
    axes.set_xlabel("us")
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    return figure
