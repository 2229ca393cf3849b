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

_NARROW = 100  # below so many columns cells stand closer


@dataclass(frozen=True)
class Column:
    """A column: the higher `rank`, the sooner it shrinks to its `short` cells and then is left out; rank 0 stays."""

    header: str
    cells: Sequence[str | Text]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    short: Sequence[str] = ()


class Fitting(Table):
    """A table that leaves out its least wanted columns until it fits.

    Args:
        note: told below.
        has_total: whether the last row sums up the others.
    """

    def __init__(self, columns: Sequence[Column], note: str, has_total: bool = False) -> None:
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
