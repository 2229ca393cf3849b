"""Programmes as CSV: a directory with a file for each table and a header.

header.json     as of a programme file
runs.csv, circuits.csv, data.csv, devices.csv, control.csv     columns as in docs/time.md; no number: does not exist
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.errors import PlanFileError, printable
from opticcl.files import write_whole_folder
from opticcl.formats._polars_sources import source_of

if TYPE_CHECKING:
    import polars

__all__ = ["read_folder", "write_folder"]

HEADER = "header.json"
MOST_HEADER_BYTES = 1 << 20


def write_folder(path: Path, tables: Mapping[str, Any], header: bytes) -> None:
    """Write a programme, whole or not at all.

    Args:
        path: of the directory.
        tables: by name.
        header: as JSON.
    Raises: OutputError: not writable, or a directory of other files.
    """
    import polars as pl

    with write_whole_folder(path, (HEADER, *(f"{name}.csv" for name in tables))) as folder:
        (folder / HEADER).write_bytes(header + b"\n")
        for name, table in tables.items():
            frame = pl.DataFrame(table.as_stored())
            with (folder / f"{name}.csv").open("wb") as file:
                frame.with_columns(pl.col(pl.Float64).fill_nan(None)).write_csv(file)


def read_folder(
    path: Path, tables: Mapping[str, Any], most_rows: int, most_bytes: int
) -> tuple[bytes, dict[str, polars.DataFrame]]:
    """Read the header and the tables of a directory.

    Args:
        path: of the directory.
        tables: name and class of each table.
        most_rows: that all tables may have together [count].
        most_bytes: that a file may have [bytes].
    Raises: PlanFileError: a file is missing, too large or damaged, or has other columns.
    """
    import polars as pl

    frames: dict[str, polars.DataFrame] = {}
    left = most_rows
    header = _bytes_of(path / HEADER, MOST_HEADER_BYTES, MOST_HEADER_BYTES)
    for name, kind in tables.items():
        file = path / f"{name}.csv"
        first, _, _ = _bytes_of(file, most_bytes, 1 << 12).partition(b"\n")
        found = printable(first.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip())
        if found != ",".join(kind.stored()):
            raise PlanFileError(f"{file}: its first line is {found[:200]!r}, not {','.join(kind.stored())!r}")
        schema = {
            column: pl.Float64() if dtype is np.float64 else pl.Int64() for column, dtype in kind.stored().items()
        }
        try:
            frame = pl.read_csv(source_of(file), schema=schema, n_rows=left + 1)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise PlanFileError(f"{file}: {(str(error) or 'is damaged').splitlines()[0][:200]}") from None
        left -= len(frame)
        if left < 0:
            raise PlanFileError(f"{path}: its tables have more than {most_rows:,} rows")
        frames[name] = frame
    return header, frames


def _bytes_of(file: Path, most_bytes: int, wanted: int) -> bytes:
    """The first bytes of a file that is not too large."""
    if not file.is_file():
        raise PlanFileError(f"{file}: there is no such file; a programme as CSV is a directory with one for each table")
    try:
        if file.stat().st_size > most_bytes:
            raise PlanFileError(f"{file}: is larger than {most_bytes:,} bytes; write .parquet")
        with file.open("rb") as opened:
            return opened.read(wanted)
    except OSError as error:
        raise PlanFileError(f"{file}: {error.strerror}") from None
