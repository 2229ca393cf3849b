"""Comparisons and timelines as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from opticcl.ir import Timeline
from opticcl.report.beside import (
    beside_columns,
    light_word,
    not_tried_line,
    rank_lines,
    rates_line,
    unranked,
    unranked_line,
    usd_word,
)
from opticcl.report.kit.columns import Column, FittedTable, Shown, algorithm_column, columns_of, verdict_cell
from opticcl.report.kit.words import PART_NAMES, busiest, fabric_names, gap, messages, ratio, run_of, shares, slower
from opticcl.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison

__all__ = ["comparison_columns", "comparison_table", "remarks", "timeline_table"]


def comparison_table(comparison: Comparison) -> FittedTable:
    """One row a plan, those without a rank last: its time, the parts of that time, and whether it is right.

    What all plans share (nodes, rate, verdict) is below the table; so is a remark where node rates differ, since times
    then depend on transceivers as much as on architectures. Fabric, algorithm, time and, if a plan is wrong, the verdict are
    always shown; a narrow console drops algorithm bandwidth, rounds, steps and bus bandwidth first.
    """
    columns, shared = comparison_columns(comparison)
    below = [", ".join([messages(comparison), *shared.values()]), *remarks(comparison)]
    return FittedTable([one for one in columns if one.header not in shared], "\n".join(below), keys=2)


def comparison_columns(comparison: Comparison) -> tuple[list[Column], dict[str, str]]:
    """Columns of a comparison, a row a plan; of those whose cells are equal, the heading and what they say.

    The gap is the time over its lower bound, with what determines that bound. The bottleneck is the busiest part of the
    machine, with the share of the time in which it is busy. Beside the time stands that under the other set of
    assumptions, with its rank; beside the verdict, the margin of the light budget and the price of a node.
    """
    entries = comparison.entries
    steps = [f"{sum(t.num_steps for t in e.timelines):,}" for e in entries]
    rounds = [f"{sum(t.num_rounds for t in e.timelines):,}" for e in entries]
    parts = [_largest_shares(e.totals()) for e in entries]
    main_parts = [_largest_shares(e.totals(), covered=0.75, most=2) for e in entries]
    whole, short = ([Text(busiest(e, short=cut)) for e in entries] for cut in (False, True))
    whole_gaps = [Text(gap(e)) for e in entries]
    nodes = [e.fabric.num_nodes for e in entries]
    rates = [format_rate(e.fabric.node_rate_bits_per_s) for e in entries]
    columns = [
        Column("fabric", [Text(name) for name in fabric_names(comparison)], justify="left"),
        algorithm_column([e.plan.algorithm for e in entries]),
        Column("nodes", [f"{count:,}" for count in nodes], 4),
        Column("node rate", rates, 2),
        Column("steps", steps, 11),
        Column("rounds", rounds, 12),
        *columns_of(entries, Shown("total_s", "time")),
        *beside_columns(comparison),
        Column("gap", whole_gaps, 10, justify="left", short=[gap(e, short=True) for e in entries], short_rank=2),
        Column("slower", [ratio(r) for r in slower(comparison)], 1),
        Column("parts (%)", parts, 8, justify="left", short=main_parts, short_rank=3),
        *columns_of(entries, Shown("algorithm_bytes_per_s", "algbw", 13), Shown("bus_bytes_per_s", "busbw", 10)),
        Column("bottleneck", whole, 9, justify="left", short=short, short_rank=5),
        Column("light", [light_word(e.light) for e in entries], 5, justify="left"),
        Column("USD per node", [usd_word(e) for e in entries], 6),
        Column("verified", [verdict_cell(e.verdict.verdict) for e in entries], justify="left"),
    ]
    shared = {}
    if len(set(nodes)) == 1:
        many = entries[0].fabric.num_members
        in_groups = f" in {many:,} groups" if many > 1 else ""
        shared["nodes"] = counted(nodes[0], "node") + in_groups + " each" * (nodes[0] > 1)
    if len(set(rates)) == 1:
        shared["node rate"] = f"{rates[0]} per node"
    if steps == rounds:
        shared["rounds"] = "one round per step"
    if comparison.ok:
        shared["verified"] = "all plans verified" if len(entries) > 1 else "the plan is verified"
    return columns, shared


def remarks(comparison: Comparison) -> list[str]:
    """Why times may differ for another reason than their networks, plans without a rank, and ranks that differ."""
    lines = (
        rates_line([e.fabric for e in comparison.entries]),
        unranked_line(unranked(comparison)),
        *rank_lines(comparison),
        not_tried_line(comparison.not_tried),
    )
    return [line for line in lines if line]


def timeline_table(timeline: Timeline, *, most_rows: int = 40) -> FittedTable:
    """One row a run of equal steps and one for all of them; parts that take no time are omitted.

    Args:
        timeline: of a plan.
        most_rows: of a longer timeline the rows in the middle are summed to one [count].
    """
    parts = [part for part in Timeline.PARTS if getattr(timeline, part).any()]
    rows = _folded(
        [(run_of(steps.start, steps.stop - 1), rounds, times) for steps, rounds, times in timeline], most_rows
    )
    rows.append(("all", timeline.num_rounds, timeline.totals()))
    sums = [sum(times.values()) for _, _, times in rows]
    whole = sums[-1] or 1.0
    columns = [
        Column("steps", [label for label, _, _ in rows], justify="left"),
        Column("rounds", [f"{rounds:,}" for _, rounds, _ in rows], 1),
        *(Column(PART_NAMES[part], [format_seconds(times[part]) for _, _, times in rows]) for part in parts),
        Column("total", [format_seconds(s) for s in sums]),
        Column("share", [f"{s / whole:.0%}" for s in sums]),
    ]
    bound = ""
    if timeline.lower_bound_s:
        bound = f"lower bound {format_seconds(timeline.lower_bound_s)}, time/bound {gap(timeline)}"
    return FittedTable(columns, bound, has_total=True)


def _folded(rows: list[tuple[str, int, dict[str, float]]], most: int) -> list[tuple[str, int, dict[str, float]]]:
    """The rows; those in the middle are summed to one if there are more than `most`."""
    if len(rows) <= most:
        return rows
    head = most // 2
    tail = len(rows) - (most - head - 1)
    middle = rows[head:tail]
    times = {part: sum(t[part] for _, _, t in middle) for part in Timeline.PARTS}
    label = f"{len(middle):,} runs of steps"
    return [*rows[:head], (label, sum(rounds for _, rounds, _ in middle), times), *rows[tail:]]


def _largest_shares(totals: dict[str, float], covered: float = 0.9, most: int = len(Timeline.PARTS)) -> str:
    """The largest parts until they cover a share of the whole, in percent.

    >>> parts = {"latency_s": 6.2, "transfer_s": 2.5, "compute_s": 1.3}
    >>> _largest_shares(parts), _largest_shares(parts, covered=0.75, most=2), _largest_shares(parts, covered=0.6)
    ('latency 62, transfer 25, compute 13', 'latency 62, transfer 25', 'latency 62')

    Args:
        totals: time of each part, by name [s].
        covered: share of the whole at which to stop.
        most: parts at most [count].
    """
    shown: list[str] = []
    sum_shown = 0.0
    for name, share in sorted(shares(totals).items(), key=lambda item: -item[1])[:most]:
        if sum_shown >= covered or not share:
            break
        shown.append(f"{'reconf.' if name == 'reconfiguration' else name} {100 * share:.0f}")
        sum_shown += share
    return ", ".join(shown)
