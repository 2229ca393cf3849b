"""Tables that fit the terminal: as many columns as it is wide, the most wanted first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

__all__ = ["Column", "Fitting"]

_NARROW = 125  # below so many columns cells stand closer


@dataclass(frozen=True)
class Column:
    """A column: the lower `rank`, the more wanted; rank 0 is always there.

    Where `short` cells are given, they are wanted at `short_rank` (below `rank`) and the whole ones at `rank`.
    """

    header: str
    cells: Sequence[str | Text]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    short: Sequence[str | Text] = ()
    short_rank: int = 0


class Fitting(Table):
    """A table that takes its columns in the order in which they are wanted, each if it still fits.

    Args:
        note: told below.
        has_total: whether the last row sums up the others.
    """

    def __init__(self, columns: Sequence[Column], note: str, has_total: bool = False) -> None:
        super().__init__()
        self._wanted, self._note, self._has_total = columns, note, has_total
        self._fill(self, columns)

    def _fitted(self, console: Console, options: ConsoleOptions) -> Table:
        wishes = [(c.rank, i, c) for i, c in enumerate(self._wanted) if c.rank]
        wishes += [
            (c.short_rank, i, dataclasses.replace(c, cells=c.short)) for i, c in enumerate(self._wanted) if c.short
        ]
        shown = {i: c for i, c in enumerate(self._wanted) if not c.rank}
        table = self._table(shown, options)
        for _, i, column in sorted(wishes, key=lambda wish: wish[0]):
            wider = shown | {i: column}
            tried = self._table(wider, options)
            if Measurement.get(console, options.update(width=10_000), tried).maximum <= options.max_width:
                shown, table = wider, tried
        table.caption, table.caption_justify = self._note or None, "left"
        return table

    def _table(self, columns: dict[int, Column], options: ConsoleOptions) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=options.max_width < _NARROW
        )
        self._fill(table, [columns[i] for i in sorted(columns)])
        return table

    def _fill(self, table: Table, columns: Iterable[Column]) -> None:
        for column in columns:
            table.add_column(column.header, justify=column.justify, overflow="fold")
        rows = list(zip(*(column.cells for column in columns), strict=True))
        for i, cells in enumerate(rows, 1):
            table.add_row(*cells, end_section=self._has_total and i == len(rows) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._fitted(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._fitted(console, options))
