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

    What all plans share (nodes, rate, verdict) stands below the table; where rates differ, that too, since times then tell of
    transceivers as much as of architectures. It fits itself to the console: a narrow one loses algorithm bandwidth, rounds,
    steps and bus bandwidth first, and always keeps fabric, algorithm, time and, if a plan is wrong, verdict. The bottleneck
    is the part of the machine that is busy longest and its share of the time.
    """
    entries = comparison.entries
    steps = [f"{sum(t.num_steps for t in e.timelines):,}" for e in entries]
    rounds = [f"{sum(t.num_rounds for t in e.timelines):,}" for e in entries]
    parts = [_largest_shares(e.totals()) for e in entries]
    first_parts = [_largest_shares(e.totals(), told=0.75, most=2) for e in entries]
    whole, short = ([Text(busiest(e, short=cut)) for e in entries] for cut in (False, True))
    columns = [
        Column("fabric", [Text(name) for name in fabric_names(comparison)], justify="left"),
        Column("algorithm", [Text(e.plan.algorithm) for e in entries], justify="left"),
        Column("nodes", [f"{e.fabric.num_nodes:,}" for e in entries], 4),
        Column("node rate", [format_rate(e.fabric.node_rate_bits_per_s) for e in entries], 2),
        Column("steps", steps, 11),
        Column("rounds", rounds, 12),
        Column("time", [format_seconds(e.total_s) for e in entries]),
        Column("slower", [ratio(r) for r in slower(comparison)], 1),
        Column("where it goes, %", parts, 8, justify="left", short=first_parts, short_rank=3),
        Column("bound/time", [f"{efficiency(e):.0%}" for e in entries], 7),
        Column("algbw", [format_quantity(e.algorithm_bytes_per_s, "byte/s") for e in entries], 13),
        Column("busbw", [format_quantity(e.bus_bytes_per_s, "byte/s") for e in entries], 10),
        Column("bottleneck", whole, 9, justify="left", short=short, short_rank=5),
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
    if all(e.verdict.ok for e in entries):
        note.append("all plans verified" if len(entries) > 1 else "the plan is verified")
        left_out.add("verified")
    below = [", ".join(note)]
    if "node rate" not in left_out:
        below.append("nodes have different rates; --node-rate 800Gb/s compares them alike")
    return Fitting([c for c in columns if c.header not in left_out], "\n".join(below))


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


def _largest_shares(totals: dict[str, float], told: float = 0.9, most: int = len(Timeline.PARTS)) -> str:
    """The largest parts, until that share of the whole is told, or that many of them.

    >>> parts = {"latency_s": 6.2, "transfer_s": 2.5, "compute_s": 1.3}
    >>> _largest_shares(parts), _largest_shares(parts, told=0.75, most=2), _largest_shares(parts, told=0.6)
    ('latency 62, transfer 25, compute 13', 'latency 62, transfer 25', 'latency 62')
    """
    said: list[str] = []
    sum_told = 0.0
    for name, share in sorted(shares(totals).items(), key=lambda item: -item[1])[:most]:
        if sum_told >= told or not share:
            break
        said.append(f"{'reconf.' if name == 'reconfiguration' else name} {100 * share:.0f}")
        sum_told += share
    return ", ".join(said)


def _yes_no(ok: bool) -> Text:
    return Text("yes", style="green") if ok else Text("NO", style="bold red")
