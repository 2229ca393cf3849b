"""Comparisons and timelines in the terminal: as many columns as it is wide, the most wanted first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from opticcl.ir import Timeline
from opticcl.report._columns import Column, Fitting
from opticcl.report.words import PART_NAMES, busiest, efficiency, fabric_names, messages, ratio, shares, slower
from opticcl.units import format_quantity, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.comparison import Comparison

__all__ = ["comparison_table", "timeline_table"]


def comparison_table(comparison: Comparison) -> Table:
    """One row a plan, fastest first: how long it takes, where the time goes, and whether it is right.

    What all plans share (nodes, rate) stands below the table. It fits itself to the console: a narrow one loses algorithm
    bandwidth, rounds, steps and bus bandwidth first, and always keeps fabric, algorithm, time and verdict. The bottleneck
    is the part of the machine that is busy longest and its share of the time.
    """
    entries = comparison.entries
    steps = [f"{sum(t.num_steps for t in e.timelines):,}" for e in entries]
    rounds = [f"{sum(t.num_rounds for t in e.timelines):,}" for e in entries]
    parts = [_largest_shares(e.totals()) for e in entries]
    first_part = [part.partition(",")[0] for part in parts]
    whole, short = ([Text(busiest(e, short=cut)) for e in entries] for cut in (False, True))
    columns = [
        Column("fabric", [Text(name) for name in fabric_names(comparison)], justify="left"),
        Column("algorithm", [Text(e.plan.algorithm) for e in entries], justify="left"),
        Column("nodes", [f"{e.fabric.num_nodes:,}" for e in entries], 3),
        Column("node rate", [format_rate(e.fabric.node_rate_bits_per_s) for e in entries], 5),
        Column("steps", steps, 10),
        Column("rounds", rounds, 11),
        Column("time", [format_seconds(e.total_s) for e in entries]),
        Column("slower", [ratio(r) for r in slower(comparison)], 1),
        Column("where it goes, %", parts, 7, justify="left", short=first_part, short_rank=2),
        Column("bound/time", [f"{efficiency(e):.0%}" for e in entries], 6),
        Column("algbw", [format_quantity(e.algorithm_bytes_per_s, "byte/s") for e in entries], 12),
        Column("busbw", [format_quantity(e.bus_bytes_per_s, "byte/s") for e in entries], 9),
        Column("bottleneck", whole, 8, justify="left", short=short, short_rank=4),
        Column("verified", [_yes_no(e.verdict.ok) for e in entries], justify="left"),
    ]
    note, left_out = [messages(comparison)], set()
    for header, text in (
        ("nodes", "{} nodes each" if entries[0].fabric.num_nodes > 1 else "{} node"),
        ("node rate", "{} a node"),
    ):
        cells = next(c.cells for c in columns if c.header == header)
        if len(set(cells)) == 1:
            note.append(text.format(cells[0]))
            left_out.add(header)
    if steps == rounds:
        note.append("one round a step")
        left_out.add("rounds")
    return Fitting([c for c in columns if c.header not in left_out], ", ".join(note))


def timeline_table(timeline: Timeline, *, most_rows: int = 40) -> Table:
    """One row a run of equal steps, all its steps together, and one for the whole; parts without time are left out.

    Args: most_rows: of a longer timeline the rows in the middle are added up to one.
    """
    parts = [part for part in Timeline.PARTS if getattr(timeline, part).any()]
    rows = _folded([(_run(steps), rounds, times) for steps, rounds, times in timeline], most_rows)
    rows.append(("all", timeline.num_rounds, timeline.totals()))
    sums = [sum(times.values()) for _, _, times in rows]
    whole = sums[-1] or 1.0
    columns = [
        Column("steps", [label for label, _, _ in rows], justify="left"),
        Column("rounds", [f"{rounds:,}" for _, rounds, _ in rows], 2),
        *(Column(PART_NAMES[part], [format_seconds(times[part]) for _, _, times in rows], 1) for part in parts),
        Column("total", [format_seconds(s) for s in sums]),
        Column("share", [f"{s / whole:.0%}" for s in sums]),
    ]
    bound = f"lower bound {format_seconds(timeline.lower_bound_s)}" if timeline.lower_bound_s else ""
    return Fitting(columns, bound, has_total=True)


def _run(steps: range) -> str:
    return str(steps.start) if len(steps) == 1 else f"{steps.start}..{steps.stop - 1}"


def _folded(rows: list[tuple[str, int, dict[str, float]]], most: int) -> list[tuple[str, int, dict[str, float]]]:
    """The rows, with those in the middle added up to one if there are too many."""
    if len(rows) <= most:
        return rows
    head = most // 2
    tail = len(rows) - (most - head - 1)
    middle = rows[head:tail]
    times = {part: sum(t[part] for _, _, t in middle) for part in Timeline.PARTS}
    label = f"{len(middle):,} runs of steps"
    return [*rows[:head], (label, sum(rounds for _, rounds, _ in middle), times), *rows[tail:]]


def _largest_shares(totals: dict[str, float]) -> str:
    """The largest parts, until nine tenths are told.

    >>> _largest_shares({"latency_s": 6.2, "transfer_s": 3.1, "compute_s": 0.7})
    'latency 62, transfer 31'
    """
    told: list[str] = []
    left = 1.0
    for name, share in sorted(shares(totals).items(), key=lambda item: -item[1]):
        if left <= 0.1 or not share:
            break
        told.append(f"{'reconf.' if name == 'reconfiguration' else name} {100 * share:.0f}")
        left -= share
    return ", ".join(told)


def _yes_no(ok: bool) -> Text:
    return Text("yes", style="green") if ok else Text("NO", style="bold red")
