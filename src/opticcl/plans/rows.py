"""Rows of results as a DataFrame that prints quantities with their units."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars

from opticcl.units import format_value, html_table, in_columns

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison

__all__ = ["Rows"]

KEYS = 4
"""Leading columns that every print shows [count]."""

MOST_PRINTED = 60
"""Rows that a print shows [count]."""


class Rows(polars.DataFrame):
    """A DataFrame whose print shows quantities with their units, in as many columns as the terminal is wide.

    Attributes:
        notes: lines below the table, such as fabrics that were left out.
        comparison: that the rows are of; None: of none, or of a part of its rows.
    """

    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None

    def __str__(self) -> str:
        return "\n".join([self._text(shutil.get_terminal_size((120, 24)).columns), *self.notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self, *, _from_series: bool = False) -> str:
        return html_table(self.columns, self._cells(), self.notes)

    def _cells(self) -> list[list[str]]:
        """Texts of the rows that a print shows."""
        return [
            [format_value(name, value) for name, value in zip(self.columns, row, strict=True)]
            for row in self.head(MOST_PRINTED).iter_rows()
        ]

    def _text(self, width: int) -> str:
        table = [self.columns, *self._cells()]
        shown = _fitting([max(map(len, column)) for column in zip(*table, strict=True)], width)
        lines = [in_columns([[row[i] for i in shown] for row in table])] if shown else []
        if self.height > MOST_PRINTED:
            lines.append(f"... {self.height - MOST_PRINTED:,} more rows")
        if rest := [name for i, name in enumerate(self.columns) if i not in shown]:
            lines += textwrap.wrap(f"not shown at {width} columns: {', '.join(rest)}", width, break_on_hyphens=False)
        return "\n".join(lines)


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    """Columns that a print shows, two spaces apart: the keys, and each other column that still fits.

    >>> _fitting([4, 4, 4, 4, 90, 10], 40)
    [0, 1, 2, 3, 5]
    """
    shown: list[int] = []
    used = -2
    for i, wide in enumerate(widths):
        if i < KEYS or used + 2 + wide <= width:
            shown.append(i)
            used += 2 + wide
    return shown
