"""Columns of JSON files, whose cells are checked before polars sees them: it follows lists within lists for minutes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from opticcl.errors import printable

if TYPE_CHECKING:
    import polars

__all__ = ["cells_as_series"]

_WHOLE = frozenset((int, type(None)))
_NUMBER = frozenset((int, float, type(None)))
_LIST = frozenset((list, type(None)))
_DUE = {
    "whole": "a whole number of 64 bits",
    "number": "a number",
    "list": "a list of whole numbers",
}


def cells_as_series(name: str, cells: object, kind: str) -> polars.Series:
    """A column as polars keeps it.

    Args:
        name: of the column, for the message.
        cells: in the order of the rows; None: empty.
        kind: "whole" numbers of 64 bits, "number"s or "list"s of whole numbers.
    Raises: ValueError: no list, or a cell of another kind, with its row.
    """
    import polars as pl

    if not isinstance(cells, list):
        raise ValueError(f"column {name!r} is not a list of its values")
    flat: Sequence[Any] = cells
    fitting = set(map(type, cells)) <= (_LIST if kind == "list" else _NUMBER if kind == "number" else _WHOLE)
    if fitting and kind == "list":
        flat = list(chain.from_iterable(cell for cell in cells if cell is not None))
        fitting = set(map(type, flat)) <= _WHOLE
    dtype = {"whole": pl.Int64(), "number": pl.Float64(), "list": pl.List(pl.Int64)}[kind]
    try:
        if fitting:
            return pl.Series(name, cells, dtype, strict=kind != "number")
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):  # a number of more bits
        pass
    row = next((i for i, cell in enumerate(cells) if not _fits(cell, kind)), 0)
    raise ValueError(f"row {row}: {name}={_shown(cells[row])} is not {_DUE[kind]}")


def _shown(cell: Any) -> str:
    """The beginning of a cell, however deep it is nested."""
    try:
        return printable(str(cell)[:40])
    except RecursionError:
        return "a nested value"


def _fits(cell: object, kind: str) -> bool:
    """Whether a cell is empty or of its kind."""
    if cell is None:
        return True
    if kind == "list":
        return isinstance(cell, list) and all(_fits(hop, "whole") for hop in cell)
    if kind == "number" and type(cell) is float:
        return True
    limit = 2**1023 if kind == "number" else 2**63
    return type(cell) is int and -limit <= cell < limit
