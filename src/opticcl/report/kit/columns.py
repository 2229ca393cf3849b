"""Tables that fit the terminal: optional columns are dropped and named, required columns continue in a table below."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from opticcl.ir.verdict import VERDICTS, Judgement
from opticcl.plans.names import short_algorithms
from opticcl.report.kit.words import heading
from opticcl.units import format_value

__all__ = [
    "Column",
    "FittedTable",
    "RowByRow",
    "Shown",
    "StreamedColumn",
    "algorithm_column",
    "columns_of",
    "verdict_cell",
]

_NARROW = 125  # columns of the terminal below which cells are closer
_LEAST_WRAPPED = 24  # columns that a wrapped column has at least
_UNLIMITED = 10_000  # columns


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        header: above the cells.
        cells: one a row.
        rank: 0: required; other columns are added in the order of their ranks while they fit.
        justify: alignment of the cells.
        short: shorter cells, shown where the others do not fit; empty if there are none.
        short_rank: rank of the short cells; less than `rank`. 0: short cells at least are always shown.
        short_note: text below a table that shows the short cells.
        wrap: whether cells are prose, which may wrap at spaces.
    """

    header: str
    cells: Sequence[str | Text]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    short: Sequence[str | Text] = ()
    short_rank: int = 0
    short_note: str = ""
    wrap: bool = False

    def cut(self) -> Column:
        """The column with its short cells."""
        return dataclasses.replace(self, cells=self.short)

    def below(self, cell: str | Text) -> Column:
        """The column below one more cell."""
        short = [cell, *self.short] if self.short else ()
        return dataclasses.replace(self, cells=[cell, *self.cells], short=short)

    def of_rows(self, rows: Sequence[int]) -> Column:
        """The column with some of its rows.

        Args: rows: their positions.
        """
        short = [self.short[i] for i in rows] if self.short else ()
        return dataclasses.replace(self, cells=[self.cells[i] for i in rows], short=short)


class Shown(NamedTuple):
    """A value of records as a column of a table.

    Args:
        key: of the value; the unit at its end is that of its values.
        header: above the cells; "": the key in words.
        rank: as of `Column`.
        form: format of the values, or a function that writes them; "": by their unit.
        justify: as of `Column`; "": numbers on the right.
        wrap: as of `Column`.
        none: text where a value is None or missing.
    """

    key: str
    header: str = ""
    rank: int = 0
    form: str | Callable[[Any], str] = ""
    justify: Literal["left", "right", ""] = ""
    wrap: bool = False
    none: str = "-"

    def column(self, rows: Sequence[Any]) -> Column:
        """The column of records or objects."""
        values = [row.get(self.key) if isinstance(row, Mapping) else getattr(row, self.key) for row in rows]
        words = any(isinstance(value, (str, list, tuple)) for value in values)
        cells = [self.none if value is None else self._text(value) for value in values]
        side = self.justify or ("left" if words else "right")
        return Column(self.header or heading(self.key), cells, self.rank, side, wrap=self.wrap)

    def _text(self, value: Any) -> str:
        if callable(self.form):
            return self.form(value)
        return format(value, self.form) if self.form else format_value(self.key, value)


def columns_of(rows: Sequence[Any], *values: Shown) -> list[Column]:
    """A column for each value, a row for each record.

    >>> [(one.header, one.cells) for one in columns_of([{"total_s": 2e-6}, {}], Shown("total_s"))]
    [('total', ['2 us', '-'])]

    Args:
        rows: records, or objects with attributes of these names.
        values: in the order of the columns.
    """
    return [value.column(rows) for value in values]


_NARROWEST = Column("a", ())


class FittedTable:
    """A table as wide as the console allows.

    Required columns are always shown: those that do not fit continue in another table below, beside the key columns. Optional
    columns that do not fit are named in a line below the table.

    Args:
        columns: in the order in which they are shown.
        note: text below the table.
        has_total: whether the last row sums up the others.
        keys: leading columns that identify a row, repeated in every table [count].
        heading: text above the table.
    """

    def __init__(
        self, columns: Sequence[Column], note: str = "", *, has_total: bool = False, keys: int = 1, heading: str = ""
    ) -> None:
        self.columns, self._note, self._has_total = columns, note, has_total
        self._keys, self.heading = keys, heading
        self._widths: dict[tuple[str, int, bool], int] = {}
        self._between: dict[bool, int] = {}  # by whether cells are close

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.heading:
            yield Text(self.heading, style="bold")
        for number, columns in enumerate(self._tables(console, options)):
            if number:
                yield ""
            yield self._table(columns, options, fits=self._width(columns, console, options) <= options.max_width)
        if notes := "\n".join(
            filter(None, (*self._cut_notes(console, options), self._note, self._dropped(console, options)))
        ):
            yield Text(notes, style="dim")

    def markdown(self) -> str:
        """The table in Markdown, every column with its long cells."""
        rows = [[one.header for one in self.columns], *zip(*(one.cells for one in self.columns), strict=True)]
        lines = [f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |" for cells in rows]
        sides = [":---" if one.justify == "left" else "---:" for one in self.columns]
        head = [f"**{self.heading}**", ""] if self.heading else []
        return "\n".join(
            [*head, lines[0], f"| {' | '.join(sides)} |", *lines[1:], *(["", self._note] * bool(self._note))]
        )

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = min(options.max_width, self._width(self.columns, console, options))
        return Measurement(width, width)

    def _tables(self, console: Console, options: ConsoleOptions) -> Iterator[list[Column]]:
        """Columns of each table, all of them within the width as far as possible."""
        shown = self._shown(console, options)
        keys, rest = shown[: self._keys], shown[self._keys :]
        while True:
            fitting = keys + rest[:1]
            while len(fitting) < len(keys) + len(rest):
                wider = keys + rest[: len(fitting) - len(keys) + 1]
                if self._width(wider, console, options) > options.max_width:
                    break
                fitting = wider
            yield fitting
            rest = rest[len(fitting) - len(keys) :]
            if not rest:
                return

    def _shown(self, console: Console, options: ConsoleOptions) -> list[Column]:
        """Required columns, and the optional ones that fit beside them."""
        wishes = [(c.rank, i, c) for i, c in enumerate(self.columns) if c.rank]
        wishes += [(c.short_rank, i, c.cut()) for i, c in enumerate(self.columns) if c.short and c.short_rank]
        shown = {i: c for i, c in enumerate(self.columns) if not c.rank}
        shown |= {i: c.cut() for i, c in enumerate(self.columns) if c.short and not c.short_rank}
        for _, i, column in sorted(wishes, key=lambda wish: wish[:2]):
            wider = shown | {i: column}
            if self._width([wider[k] for k in sorted(wider)], console, options) <= options.max_width:
                shown = wider
        return [shown[i] for i in sorted(shown)]

    def _cut_notes(self, console: Console, options: ConsoleOptions) -> list[str]:
        """Notes of the columns whose short cells are shown."""
        return [one.short_note for one in self._shown(console, options) if one.short and one.cells is one.short]

    def _dropped(self, console: Console, options: ConsoleOptions) -> str:
        """Names of the columns that are not shown, and the width that shows them; "" if all are."""
        headers = {column.header for column in self._shown(console, options)}
        dropped = [column.header for column in self.columns if column.header not in headers]
        if not dropped:
            return ""
        wide = options.update(width=_UNLIMITED)
        return (
            f"not shown at {options.max_width} columns: {', '.join(dropped)}; "
            f"COLUMNS={self._width(self.columns, console, wide)} shows all"
        )

    def _width(self, columns: Sequence[Column], console: Console, options: ConsoleOptions) -> int:
        """Natural width of a table of these columns; wrapped ones count with their least width."""
        close = options.max_width < _NARROW
        if close not in self._between:
            self._between[close] = self._measured([_NARROWEST, _NARROWEST], console, options) - 2
        alone = sum(self._width_alone(column, console, options) for column in columns)
        return alone + self._between[close] * max(0, len(columns) - 1)

    def _width_alone(self, column: Column, console: Console, options: ConsoleOptions) -> int:
        """Natural width of a table of one column, which is measured once."""
        key = (column.header, id(column.cells), column.wrap)
        if key not in self._widths:
            cells = [str(cell)[:_LEAST_WRAPPED] for cell in column.cells] if column.wrap else column.cells
            widest = sorted(cells, key=_cell_width)[-1:]
            self._widths[key] = self._measured([dataclasses.replace(column, cells=widest)], console, options)
        return self._widths[key]

    def _measured(self, columns: Sequence[Column], console: Console, options: ConsoleOptions) -> int:
        table = self._table(columns, options)
        return Measurement.get(console, options.update(width=_UNLIMITED), table).maximum

    def _table(self, columns: Sequence[Column], options: ConsoleOptions, fits: bool = True) -> Table:
        close = options.max_width < _NARROW
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=close)
        for column in columns:
            nowrap = fits and not column.wrap
            table.add_column(column.header, justify=column.justify, overflow="fold", no_wrap=nowrap)
        rows = list(zip(*(column.cells for column in columns), strict=True))
        for i, cells in enumerate(rows, 1):
            table.add_row(*cells, end_section=self._has_total and i == len(rows) - 1)
        return table


def _cell_width(cell: str | Text) -> int:
    """Columns of the terminal that the widest line of a cell takes."""
    return max(map(cell_len, str(cell).splitlines()), default=0)


@dataclass(frozen=True)
class StreamedColumn:
    """A column of a table whose rows are printed as they come.

    Args:
        header: above the cells.
        width: of its cells, at least; a longer one moves the rest of its row [columns].
        rank: as of `Column`.
        justify: alignment of the cells.
    """

    header: str
    width: int
    rank: int = 0
    justify: Literal["left", "right"] = "right"


class RowByRow:
    """A table that is printed row by row, before its last row is known.

    Optional columns that do not fit are left out. Required columns are always shown.

    Args:
        columns: in the order in which they are shown.
        width: of the output [columns].
    """

    def __init__(self, columns: Sequence[StreamedColumn], width: int) -> None:
        self.columns = columns
        self._shown = [column for column in columns if not column.rank]
        for column in sorted((column for column in columns if column.rank), key=lambda column: column.rank):
            if self._width([*self._shown, column]) <= width:
                self._shown.append(column)

    def heading(self) -> str:
        """Headers and a line below them."""
        headers = self.row([column.header for column in self.columns])
        return f"{headers}\n{'─' * len(headers)}"

    def row(self, cells: Sequence[str]) -> str:
        """One line.

        Args: cells: of all columns, shown or not.
        """
        fitted = [
            cell.ljust(self._of(column)) if column.justify == "left" else cell.rjust(self._of(column))
            for column, cell in zip(self.columns, cells, strict=True)
            if column in self._shown
        ]
        return "  ".join(fitted).rstrip()

    def dropped(self) -> str:
        """Names of the columns that are not shown, and the width that shows them; "" if all are."""
        headers = [column.header for column in self.columns if column not in self._shown]
        return f"not shown: {', '.join(headers)}; COLUMNS={self._width(self.columns)} shows all" if headers else ""

    @staticmethod
    def _of(column: StreamedColumn) -> int:
        return max(column.width, len(column.header))

    def _width(self, columns: Sequence[StreamedColumn]) -> int:
        return sum(map(self._of, columns)) + 2 * (len(columns) - 1)


def algorithm_column(algorithms: Sequence[str], header: str = "algorithm") -> Column:
    """A column of algorithms: as a whole where there is room, else short, with what was cut below the table.

    Args:
        algorithms: one a row.
        header: above them.
    """
    short = short_algorithms(algorithms)
    cut = {s: whole for s, whole in zip(short, algorithms, strict=True) if s != whole}
    if not cut:
        return Column(header, [Text(one) for one in algorithms], justify="left")
    note = "\n".join(f"{s} is {whole}" for s, whole in cut.items())
    return Column(
        header, [Text(one) for one in algorithms], 14, "left", short=[Text(one) for one in short], short_note=note
    )


def verdict_cell(verdict: Judgement) -> Text:
    """Cell of a verdict: right, wrong or not_judged."""
    return Text(VERDICTS[verdict], style={"right": "green", "wrong": "bold red"}.get(verdict, "yellow"))
