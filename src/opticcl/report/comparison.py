"""Comparisons and timelines as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from opticcl.errors import ParameterError
from opticcl.ir import Timeline
from opticcl.plans.names import fabric_names, messages, short_algorithms
from opticcl.report.beside import (
    AS_BUILT,
    as_built_column,
    beside_cells,
    light_word,
    margin_word,
    usd_word,
    versus_best,
)
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of, verdict_cell
from opticcl.report.kit.words import PART_NAMES, busiest, gap, run_of, shares
from opticcl.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison

__all__ = ["comparison_blocks", "comparison_columns", "timeline_rows", "timeline_table"]


DEFAULT_COLUMNS = ("fabric", "algorithm", "time", "vs best", "as built", "light")
"""Headings of the columns that say which fabric is the fastest; "node rate" replaces "as built" where nothing is equal."""

UNRANKED_COLUMNS = ("fabric", "algorithm", "time", "light")
"""Headings of the columns of plans without a rank, before the reason."""


def comparison_blocks(
    comparison: Comparison, columns: Sequence[str] = (), rows: Sequence[int] | None = None
) -> list[FittedTable]:
    """The plans that have a rank, fastest first, and references; those that have none with the reason, in a table of their own.

    Args:
        comparison: of plans.
        columns: headings of the columns to show; "all": every one; empty: those that answer the question.
        rows: positions of the plans to show; None: all.
    Raises: ParameterError: no such column.
    """
    known = {one.header: one for one in comparison_columns(comparison)}
    shown = list(columns or (one for one in _default_columns(comparison) if one in known))
    if shown == ["all"]:
        shown = [*known]
    for wanted in shown:
        if wanted not in known:
            raise ParameterError(f"--columns: no column {wanted!r}; there are {', '.join(known)}, and all")
    keys = sum(header in ("fabric", "algorithm") for header in shown)
    listed_rows = range(len(comparison.entries)) if rows is None else rows
    first = [i for i in listed_rows if comparison.entries[i].ranked]
    first += [i for i in listed_rows if comparison.entries[i].is_reference]
    others = [i for i in listed_rows if i not in first]
    blocks = []
    if first:
        blocks.append(
            FittedTable([known[header].of_rows(first) for header in shown], keys=keys, heading=_about(comparison))
        )
    if others:
        reasons = Column("why", [comparison.entries[i].no_rank for i in others], justify="left", wrap=True)
        listed = [known[header].of_rows(others) for header in (shown if columns else UNRANKED_COLUMNS)]
        blocks.append(FittedTable([*listed, reasons], keys=max(keys, 1), heading="Without a rank"))
    return blocks


def _default_columns(comparison: Comparison) -> tuple[str, ...]:
    """Headings of the columns that answer the question."""
    if comparison.as_built is not None:
        return DEFAULT_COLUMNS
    return tuple("node rate" if header == "as built" else header for header in DEFAULT_COLUMNS)


def _about(comparison: Comparison) -> str:
    """What was asked, "all_reduce of 100 MB on 64 nodes, fastest first", and what a column means."""
    first = comparison.entries[0].fabric
    nodes = {entry.fabric.num_nodes for entry in comparison.entries}
    many = f" in {first.num_members:,} groups" if first.num_members > 1 else ""
    where = f" on {counted(nodes.pop(), 'node')}{many}" if len(nodes) == 1 else ""
    order = ", fastest first" if len(comparison.ranked) > 1 else ""
    return f"{messages(comparison)}{where}{order}" + (f";\n{AS_BUILT}" if comparison.as_built is not None else "")


def comparison_columns(comparison: Comparison) -> list[Column]:
    """Columns of a comparison, a row a plan.

    `x bound` is the time over its lower bound, with what determines that bound. The bottleneck is the busiest part of the
    machine, with the share of the time in which it is busy.
    """
    entries = comparison.entries
    parts = [_largest_shares(e.totals()) for e in entries]
    main_parts = [_largest_shares(e.totals(), covered=0.75, most=2) for e in entries]
    whole, short = ([Text(busiest(e, short=cut)) for e in entries] for cut in (False, True))
    algorithms = short_algorithms([e.plan.algorithm for e in entries])
    names = [one.partition(":")[0].partition(" ")[0] for one in algorithms]
    return [
        Column("fabric", [Text(name) for name in fabric_names(comparison)], justify="left"),
        Column("algorithm", [Text(one) for one in algorithms], 1, "left", short=[Text(one) for one in names]),
        Column("nodes", [f"{e.fabric.num_nodes:,}" for e in entries]),
        Column("node rate", [format_rate(e.fabric.node_rate_bits_per_s) for e in entries]),
        *columns_of(entries, Shown("total_s", "time")),
        Column("vs best", versus_best(comparison)),
        *_as_built_column(comparison),
        Column(
            "light", [light_word(e.light) for e in entries], 3, "left", short=[margin_word(e.light) for e in entries]
        ),
        *_beside_column(comparison),
        Column("x bound", [Text(gap(e)) for e in entries], 3, "left", short=[gap(e, short=True) for e in entries]),
        Column("parts (%)", parts, 4, "left", short=main_parts),
        *columns_of(entries, Shown("algorithm_bytes_per_s", "algbw"), Shown("bus_bytes_per_s", "busbw")),
        Column("bottleneck", whole, 5, "left", short=short),
        Column("steps", [f"{sum(t.num_steps for t in e.timelines):,}" for e in entries]),
        Column("rounds", [f"{sum(t.num_rounds for t in e.timelines):,}" for e in entries]),
        Column("USD per node", [usd_word(e) for e in entries]),
        Column("verified", [verdict_cell(e.verdict.verdict) for e in entries], justify="left"),
        Column("command", [Text(e.command) for e in entries], justify="left"),
    ]


def _as_built_column(comparison: Comparison) -> list[Column]:
    """Time and rank of each fabric as built; none if it was not evaluated."""
    times, placed = comparison.times_under(comparison.as_built), comparison.ranks_under(comparison.as_built)
    return [as_built_column(times, placed, [one.rate_factor for one in comparison.entries])] if times else []


def _beside_column(comparison: Comparison) -> list[Column]:
    """Time and rank under the set of assumptions beside; none if it was not evaluated."""
    cells = beside_cells(comparison, comparison.beside)
    return [Column(comparison.beside.name, cells)] if comparison.beside and cells else []


def timeline_table(timeline: Timeline, *, most_rows: int = 40) -> FittedTable:
    """One row a run of equal steps and one for all of them; parts that take no time are omitted.

    Args:
        timeline: of a plan.
        most_rows: of a longer timeline the rows in the middle are summed to one [count].
    """
    parts = [part for part in Timeline.PARTS if getattr(timeline, part).any()]
    rows = timeline_rows(timeline, most_rows)
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
        over = gap(timeline, short=True)
        bound = f"lower bound {format_seconds(timeline.lower_bound_s)} by {timeline.bound_by}; the time is {over} that"
    return FittedTable(columns, bound, has_total=True)


def timeline_rows(timeline: Timeline, most_rows: int) -> list[tuple[str, int, dict[str, float]]]:
    """Steps, rounds and the time of each part [s] of each run of equal steps.

    Args:
        timeline: of a plan.
        most_rows: of a longer timeline the rows in the middle are summed to one [count].
    """
    runs = [(run_of(steps.start, steps.stop - 1), rounds, times) for steps, rounds, times in timeline]
    return _folded(runs, most_rows)


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
