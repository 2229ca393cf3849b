"""Records and rows as text and files: the one form in which results become JSON, CSV and Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opticcl.errors import OutputError
from opticcl.files import write_whole

__all__ = ["json_text", "write_record", "write_rows"]

TABLES = (".csv", ".parquet", ".json")


def json_text(value: Any) -> str:
    """A plain value as JSON text.

    >>> print(json_text({"ok": True}))
    {
      "ok": true
    }

    Raises: ValueError: a number that is not finite.
    """
    return json.dumps(value, indent=2, allow_nan=False)


def write_record(path: Path, value: Any) -> None:
    """Write a plain value as a JSON file, whole or not at all.

    Raises: OutputError: the file cannot be written.
    """
    with write_whole(path) as file:
        file.write((json_text(value) + "\n").encode())


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV.

    Args: rows: plain values by column, one mapping a row.
    """
    import polars

    return polars.DataFrame(rows, infer_schema_length=None).write_csv().rstrip("\n")


def write_rows(
    path: Path, rows: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]], types: Mapping[str, Any] | None = None
) -> int:
    """Write a table as .json, .csv or .parquet by its suffix, whole or not at all.

    Args:
        path: of the file.
        rows: plain values by column, one mapping a row; or all values of each column.
        types: of columns whose values do not determine them, such as columns that may be empty; the others are inferred.
    Returns: rows written [count].
    Raises: OutputError: another suffix, or the file cannot be written.
    """
    import polars

    kind = path.suffix.lower()
    if kind not in TABLES:
        raise OutputError(f"cannot write {path}: its name must end in {', '.join(TABLES)}")
    frame = polars.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    with write_whole(path) as file:
        if kind == ".json":
            file.write((json_text(frame.to_dicts()) + "\n").encode())
        elif kind == ".csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file, compression="zstd")
    return frame.height
