"""What all types share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

__all__ = ["NO_PARAMETERS", "IntArray", "first_rows"]

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
