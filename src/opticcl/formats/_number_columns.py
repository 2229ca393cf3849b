"""Columns of times and whole numbers of files that polars reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.errors import PlanFileError

if TYPE_CHECKING:
    import polars

__all__ = ["numbers_of"]


def numbers_of(cells: polars.Series, kind: type, file: object, table: str = "", endless: bool = False) -> np.ndarray:
    """A column as NumPy has it.

    Args:
        cells: of the column.
        kind: float64 for times, or a type of whole numbers.
        file: that they are of, for messages.
        table: in a file of several.
        endless: whether an empty cell is a time that does not exist.
    Raises: PlanFileError: cells of another type, an empty one, or a number that is out of range.
    """
    import polars as pl

    times, name = kind is np.float64, cells.name
    of, row = (f"{file}: {table}", f"{file}: {table} row") if table else (f"{file}", f"{file}: row")
    if len(cells) and not (cells.dtype.is_numeric() if times else cells.dtype.is_integer()):
        raise PlanFileError(f"{of}: column {name!r} holds {str(cells.dtype)[:80]}, not {np.dtype(kind).name}")
    empty = cells.is_null().arg_true()
    if len(empty) and not endless:
        raise PlanFileError(f"{row} {empty[0]}: {name} is empty")
    values: np.ndarray[Any, Any] = (cells.cast(pl.Float64()).fill_null(float("nan")) if times else cells).to_numpy()
    if len(values) and not times:
        limits = np.iinfo(kind)
        odd = np.flatnonzero((values < limits.min) | (values > limits.max))
        if len(odd):
            raise PlanFileError(f"{row} {odd[0]}: {name}={values[odd[0]]} is out of range")
    return values.astype(kind)
