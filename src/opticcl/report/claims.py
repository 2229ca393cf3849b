"""The papers' claims as a list: numbers in columns, and below each what is claimed and why it does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from opticcl.papers import ALL_VERDICTS
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.papers import Row

__all__ = ["claims_list", "claims_summary"]

_MOST = 22  # letters of a value; a longer list or text is cut
_INDENT = 4


def claims_list(rows: Sequence[Row]) -> Group:
    """Two or three lines a claim, paper by paper, with the counts of all verdicts before and after them.

    The first line has the id, the verdict, the published value, ours, how far they are apart, and where the claim stands.
    A verdict on file that is not the true one is marked.
    """
    summary = Text(claims_summary(rows), style="bold")
    papers = (block for name, those in groupby(rows, lambda row: row.paper) for block in _paper(name, [*those]))
    return Group(summary, *papers, *([Text(), summary] if rows else []))


def claims_summary(rows: Sequence[Row]) -> str:
    """How many claims have which verdict, and which verdicts are not true."""
    counts = Counter(row.verdict for row in rows)
    told = [f"{counts[verdict]:,} {_WORDS.get(verdict, verdict)}" for verdict in ALL_VERDICTS if counts[verdict]]
    bad = [row.id for row in rows if not row.ok]
    judged = f"; the verdict on file is not true of {len(bad)}: {', '.join(bad)}" if bad else "; every verdict is true"
    return counted(len(rows), "claim") + (": " + ", ".join(told) + judged if rows else "")


_WORDS = {"5 %": "within 5 %", "20 %": "within 20 %"}


def _paper(name: str, rows: Sequence[Row]) -> Iterator[RenderableType]:
    cells = [_cells(row) for row in rows]
    head = ("id", "verdict", "published", "ours", "apart", "where")
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    yield Text(f"\n{name}", style="bold")
    yield _line(head, widths, "underline")
    for row, columns in zip(rows, cells, strict=True):
        about = Text(row.claim)
        if row.reason:
            about.append(f" · {row.reason}", style="dim")
        yield _line(columns, widths, "" if row.ok else "bold red")
        yield Padding(about, (0, 0, 0, _INDENT))


def _cells(row: Row) -> tuple[str, ...]:
    verdict = row.verdict if row.ok else f"{row.verdict}: NOT TRUE"
    apart = "" if row.relative_error is None else f"{row.relative_error:.2%}"
    return row.id, verdict, _text(row.published), _text(row.ours), apart, row.where


def _line(cells: Sequence[str], widths: Sequence[int], style: str) -> Text:
    """Cells under each other; numbers are the third to the fifth."""
    aligned = [
        cell.rjust(width) if 2 <= i <= 4 else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return Text("  ".join(aligned).rstrip(), style=style)


def _text(value: Any) -> str:
    """A value in few letters; what is cut stands whole in the JSON."""
    whole = _whole(value)
    return whole if len(whole) <= _MOST else whole[: _MOST - 1] + "…"


def _whole(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(_whole, value))
    return str(value)
