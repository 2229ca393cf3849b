"""The papers' claims as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from opticcl.papers import Row

__all__ = ["claims_table"]


def claims_table(rows: Iterable[Row]) -> Table:
    """One row a claim; those whose verdict is not true are marked."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name in ("published", "ours", "error"):
        table.add_column(name, justify="right", overflow="fold", max_width=24)
    table.add_column("claim, and why it does not hold", overflow="fold", ratio=1)
    for row in rows:
        error = "" if row.relative_error is None else f"{row.relative_error:.2%}"
        verdict = Text(row.verdict) if row.ok else Text(f"{row.verdict}: NOT TRUE", style="bold red")
        about = Text(f"{row.paper} {row.where}: {row.claim}")
        if row.reason:
            about.append(f"\n{row.reason}", style="dim")
        table.add_row(row.id, verdict, _text(row.published), _text(row.ours), error, about)
    return table


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(_text, value))
    return str(value)
