"""Answers of a design space as tables and sentences: map, Pareto front, tornado, breakeven, lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.words import heading
from opticcl.report.studies import study_table
from opticcl.studies import Study
from opticcl.studies.space.answers import Breakeven, FastestMap, Pareto, Tornado
from opticcl.units import format_rate, format_seconds, format_value

__all__ = ["Answer", "answer_parts", "axis_label", "axis_text", "place_text", "table_rows", "title_of"]

MOST_NAMED = 3
"""Fabrics that a title names one by one [count]."""

Answer = FastestMap | Pareto | Tornado | Breakeven | Study


def answer_parts(answer: Answer) -> list[FittedTable | str]:
    """What is printed: a title, a table, sentences."""
    if isinstance(answer, Study):
        return [answer.title, study_table(answer), *answer.notes]
    if isinstance(answer, FastestMap):
        parts: list[FittedTable | str] = [_map_table(answer)]
    elif isinstance(answer, Pareto):
        parts = [_pareto_table(answer), *_left_out(answer)]
    elif isinstance(answer, Tornado):
        parts = [_tornado_table(answer), *_flips(answer)]
    else:
        parts = list(_sentences(answer))
    return [title_of(answer), *parts]


def title_of(answer: Answer) -> str:
    """What an answer shows, in a line."""
    if isinstance(answer, Study):
        return answer.title
    if isinstance(answer, FastestMap):
        what = f"Fastest fabric over {axis_label(answer.x)} x {axis_label(answer.y)}"
    elif isinstance(answer, Pareto):
        what = "Time against dollars and watts"
    elif isinstance(answer, Tornado):
        what = f"Lead of {answer.fabric} as each assumption is halved and doubled"
    else:
        few = len(answer.fabrics) <= MOST_NAMED
        what = f"Fastest {'of ' + ', '.join(answer.fabrics) if few else 'fabric'} over {axis_label(answer.over)}"
    return f"{what} ({place_text(answer.where)})"


def axis_label(column: str) -> str:
    """Name of a column without its unit.

    >>> axis_label("size_bytes"), axis_label("num_nodes"), axis_label("parameter_reconfiguration")
    ('size', 'nodes', 'reconfiguration')
    """
    return heading(column.removeprefix("num_").removeprefix("parameter_").removeprefix("assume_"))


def axis_text(column: str, value: Any) -> str:
    """Value of an axis with its unit; times of assumptions and parameters are written without one in their columns."""
    if column == "node_rate" and isinstance(value, float):
        return format_rate(value)
    if column.startswith(("parameter_", "assume_")) and isinstance(value, float) and 0 < value < 1:
        return format_seconds(value)
    return format_value(column, value)


def place_text(where: Mapping[str, Any]) -> str:
    """Values of the other axes: "64 nodes, all_reduce"."""
    texts = (
        f"{axis_text(column, value)} nodes" if column == "num_nodes" else axis_text(column, value)
        for column, value in where.items()
    )
    return ", ".join(texts) or "all axes shown"


def _map_table(answer: FastestMap) -> FittedTable:
    at = {(cell.x, cell.y): cell for cell in answer.cells}

    def text(x: Any, y: Any) -> str:
        cell = at.get((x, y))
        if cell is None:
            return "-"
        return ("tie" if cell.is_tie else cell.fabric) + (f" {cell.lead:.3g}x" if cell.lead is not None else "")

    columns = [Column(axis_label(answer.y), [axis_text(answer.y, y) for y in answer.ys])]
    columns += [Column(axis_text(answer.x, x), [text(x, y) for y in answer.ys], justify="left") for x in answer.xs]
    wins = ", ".join(f"{name} {count}" for name, count in answer.wins.items())
    ties = f"; {answer.ties} are ties, within 5 %" if answer.ties else ""
    return FittedTable(columns, f"number: how many times slower the runner-up is; fastest at: {wins or 'none'}{ties}")


def _pareto_table(answer: Pareto) -> FittedTable:
    offers = answer.offers
    return FittedTable(
        columns_of(
            offers,
            Shown("fabric"),
            Shown("algorithm", rank=1),
            Shown("total_s", "time"),
            Shown("usd_per_node", "USD per node", form=",.0f"),
            Shown("w_per_node", "W per node", form=",.4g"),
            Shown("better", "on the front", form=lambda other: "no" if other else "yes"),
            Shown("better", "worse than", 1),
        ),
        f"{len(answer.front)} of {len(offers)} are on the front: no other is better in time, dollars and watts",
    )


def _left_out(answer: Pareto) -> list[str]:
    lines = [f"left out, without a price or power: {', '.join(answer.unpriced)}"] if answer.unpriced else []
    return lines + ([f"left out, light does not close: {', '.join(answer.dark)}"] if answer.dark else [])


def _tornado_table(answer: Tornado) -> FittedTable:
    bars = (answer.base, *answer.bars)
    named = Column("assumption", ["as given", *(one.variation for one in answer.bars)], justify="left")
    times = Shown("total_s", "time"), Shown("rival"), Shown("rival_s", "its time"), Shown("lead", form=".3f")
    about = "lead: time of the fastest rival over that of the fabric; below 1 the answer is another"
    return FittedTable([named, *columns_of(bars, *times)], about)


def _flips(answer: Tornado) -> list[str]:
    flips = [bar for bar in answer.bars if bar.flips]
    if not flips:
        return [f"{answer.fabric} stays the fastest under every one of them"]
    return [f"{bar.variation}: {bar.rival} is the fastest" for bar in flips]


def _sentences(answer: Breakeven) -> list[str]:
    if not answer.crossovers:
        others = ", ".join(name for name in answer.fabrics if name != answer.stretches[0].fabric)
        ends = " to ".join(axis_text(answer.over, at) for at in (answer.stretches[0].first, answer.stretches[0].last))
        return [f"{answer.stretches[0].fabric} is the fastest from {ends}, before {others}"]
    label = axis_label(answer.over)
    sentences = []
    for one in answer.crossovers:
        at, below, above = (axis_text(answer.over, _rounded(v)) for v in (one.at, one.below, one.above))
        sentences.append(
            f"{one.before} is the fastest below {at} of {label}, {one.after} above (between {below} and {above})"
        )
    return sentences


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def table_rows(answer: Answer) -> Sequence[Mapping[str, Any]]:
    """Rows of an answer for a file."""
    record = answer.record()
    return list(next(record[key] for key in ("cells", "rows", "bars", "crossovers") if key in record))
