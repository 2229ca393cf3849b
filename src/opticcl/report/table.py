"""Comparisons and timelines in the terminal: as many columns as it is wide, the most wanted first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from opticcl.ir import Timeline
from opticcl.report.words import PART_NAMES, efficiency, fabric_names, messages, ratio, shares, slower
from opticcl.units import format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.comparison import Comparison

__all__ = ["comparison_table", "timeline_table"]

_NARROW = 100  # below so many columns cells stand closer


@dataclass(frozen=True)
class _Column:
    """A column: the higher `rank`, the sooner it shrinks to its `short` cells and then is left out; rank 0 stays."""

    header: str
    cells: Sequence[str | Text]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    short: Sequence[str] = ()


class _Fitting(Table):
    """A table that leaves out its least wanted columns until it fits.

    Args:
        note: told below.
        has_total: whether the last row sums up the others.
    """

    def __init__(self, columns: Sequence[_Column], note: str, has_total: bool = False) -> None:
        super().__init__()
        self._wanted, self._note, self._has_total = columns, note, has_total
        self._fill(self, columns)

    def _fitted(self, console: Console, options: ConsoleOptions) -> Table:
        columns = list(self._wanted)
        unbound = options.update(width=10_000)
        while True:
            table = Table(
                box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=options.max_width < _NARROW
            )
            self._fill(table, columns)
            spare = max(columns, key=lambda c: c.rank)
            if not spare.rank or Measurement.get(console, unbound, table).maximum <= options.max_width:
                table.caption, table.caption_justify = self._note or None, "left"
                return table
            place = columns.index(spare)
            columns[place : place + 1] = (
                [dataclasses.replace(spare, cells=spare.short, short=())] if spare.short else []
            )

    def _fill(self, table: Table, columns: Iterable[_Column]) -> None:
        for column in columns:
            table.add_column(column.header, justify=column.justify, overflow="fold")
        rows = list(zip(*(column.cells for column in columns), strict=True))
        for i, cells in enumerate(rows, 1):
            table.add_row(*cells, end_section=self._has_total and i == len(rows) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._fitted(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._fitted(console, options))


def comparison_table(comparison: Comparison) -> Table:
    """One row a plan, fastest first: how long it takes, where the time goes, and whether it is right.

    What all plans share (nodes, rate) stands below the table. It fits itself to the console: a narrow one loses rounds
    and steps first, and always keeps fabric, algorithm, time and verdict.
    """
    entries = comparison.entries
    steps = [f"{sum(t.num_steps for t in e.timelines):,}" for e in entries]
    rounds = [f"{sum(t.num_rounds for t in e.timelines):,}" for e in entries]
    parts = [_largest_shares(e.totals()) for e in entries]
    columns = [
        _Column("fabric", [Text(name) for name in fabric_names(comparison)], justify="left"),
        _Column("algorithm", [Text(e.plan.algorithm) for e in entries], justify="left"),
        _Column("nodes", [f"{e.fabric.num_nodes:,}" for e in entries], 3),
        _Column("node rate", [format_rate(e.fabric.node_rate_bits_per_s) for e in entries], 4),
        _Column("steps", steps, 6),
        _Column("rounds", rounds, 7),
        _Column("time", [format_seconds(e.total_s) for e in entries]),
        _Column("slower", [ratio(r) for r in slower(comparison)], 1),
        _Column("where it goes, %", parts, 2, justify="left", short=[p.partition(",")[0] for p in parts]),
        _Column("bound/time", [f"{efficiency(e):.0%}" for e in entries], 5),
        _Column("verified", [_yes_no(e.verdict.ok) for e in entries], justify="left"),
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
    return _Fitting([c for c in columns if c.header not in left_out], ", ".join(note))


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
        _Column("steps", [label for label, _, _ in rows], justify="left"),
        _Column("rounds", [f"{rounds:,}" for _, rounds, _ in rows], 2),
        *(_Column(PART_NAMES[part], [format_seconds(times[part]) for _, _, times in rows], 1) for part in parts),
        _Column("total", [format_seconds(s) for s in sums]),
        _Column("share", [f"{s / whole:.0%}" for s in sums]),
    ]
    bound = f"lower bound {format_seconds(timeline.lower_bound_s)}" if timeline.lower_bound_s else ""
    return _Fitting(columns, bound, has_total=True)


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
