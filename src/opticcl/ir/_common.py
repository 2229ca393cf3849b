"""What all types share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "NO_PARAMETERS",
    "IntArray",
    "first_rows",
    "is_value",
    "mixed_bits",
    "numbered",
    "row_keys",
    "row_numbers",
    "same_columns",
]

IntArray = npt.NDArray[Any]
"""Array of integers; columns are int32 where two million rows make it matter."""

NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


def first_rows(columns: Mapping[str, npt.NDArray[Any]], most: int = 10) -> str:
    """The first rows of columns as a small table, with the number of those that are left out."""
    from opticcl.units import in_columns

    total = len(next(iter(columns.values())))
    cells = [[str(value) for value in column[:most]] for column in columns.values()]
    table = in_columns([tuple(columns), *zip(*cells, strict=True)])
    return table if total <= most else f"{table}\n... and {total - most:,} more"


def mixed_bits(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers that look random, another one for each value, uint64.

    Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators": splitmix64.
    """
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))


def numbered(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Row of every entry where each row has a count of them, and its number in the row, int64 (entries,) each.

    >>> [column.tolist() for column in numbered(np.array([1, 0, 3]))]
    [[0, 2, 2, 2], [0, 0, 1, 2]]
    """
    rows = np.arange(len(counts))
    if (counts == 1).all():
        return rows, np.zeros_like(rows)
    row = np.repeat(rows, counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)


def row_numbers(columns: Sequence[IntArray]) -> IntArray:
    """Numbers from 0, equal for rows that are equal in all columns, int64 (n,)."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), np.int64)
    new[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def row_keys(columns: Sequence[IntArray]) -> IntArray:
    """Numbers, equal for rows that are equal in all columns, int64 (n,); without a sort where their product fits."""
    low = [int(column.min(initial=0)) for column in columns]
    sides = [int(column.max(initial=0)) - least + 1 for column, least in zip(columns, low, strict=True)]
    if prod(sides) >= 1 << 63:
        return row_numbers(columns)
    keys = np.zeros(len(columns[0]), np.int64)
    for column, least, side in zip(columns, low, sides, strict=True):
        keys *= side
        keys += column
        keys -= least
    return keys


def same_columns(one: Any, other: Any) -> bool:
    """Whether two objects with columns, of one dataclass, have equal columns; None equals None alone."""
    for field in fields(one):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if mine is its:
            continue
        if mine is None or its is None or not np.array_equal(mine, its):
            return False
    return True


def is_value(function: Any) -> bool:
    """Whether a callable is an object that compares and pickles by value, not a function defined inside another."""
    return is_dataclass(function)
