"""Files that polars reads and writes: names that are no UTF-8, which it cannot take, and frames that are made on demand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from opticcl.errors import OpticclError

if TYPE_CHECKING:
    import polars

__all__ = ["sink_parquet", "source_of"]


def source_of(path: Path) -> Path | BytesIO:
    """What polars can read: the path, or for a name that is no UTF-8 the content of the file."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return BytesIO(path.read_bytes())
    return path


def sink_parquet(
    file: IO[bytes], frames: Iterable[polars.DataFrame], schema: polars.Schema, metadata: dict[str, str] | None = None
) -> int:
    """Write frames as one Parquet file while they are made; returns the number of rows.

    Args:
        file: to be written.
        frames: of the schema.
        schema: columns and their types.
        metadata: of the file.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    count, failed = 0, []

    def source(
        with_columns: list[str] | None, predicate: object, n_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        nonlocal count
        try:
            for frame in frames:
                count += len(frame)
                yield frame if with_columns is None else frame.select(with_columns)
        except OpticclError as error:  # the engine would wrap it
            failed.append(error)
            raise

    rows = register_io_source(io_source=source, schema=schema)
    try:
        rows.sink_parquet(file, compression="zstd", metadata=metadata, row_group_size=1 << 20, maintain_order=True)
    except (pl.exceptions.PolarsError, OpticclError) as error:
        raise failed[0] if failed else error from None
    return count
