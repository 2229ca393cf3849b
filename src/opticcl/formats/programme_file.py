"""Programme files: the tables of a programme, as Parquet, JSON or a directory of CSV, bound to their plan by a digest.

`docs/time.md` describes the columns. A file is read as far as its header and its number of rows allow it to be right; whether
its times are possible is for `opticcl.verify.time.programme`.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np

from opticcl.errors import OutputError, PlanFileError, printable
from opticcl.files import program_version, write_whole
from opticcl.formats import Format, register_format
from opticcl.formats._json_columns import cells_as_series
from opticcl.formats._number_columns import numbers_of
from opticcl.formats._polars_errors import reading
from opticcl.formats._polars_sources import source_of
from opticcl.formats.plan_header import header_of
from opticcl.formats.programme_csv import read_folder, write_folder
from opticcl.ir import CircuitPlan, IntArray
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns

if TYPE_CHECKING:
    import polars

__all__ = ["MOST_ROWS", "SUFFIXES", "plan_digest", "read_programme_file", "write_programme_file"]

FORMAT, VERSION, KEY = "opticcl-programme", 1, "opticcl.programme"
SUFFIXES = (".parquet", ".json", ".csv")
MOST_ROWS = 1 << 24
"""Rows of all tables of a programme file [count]."""

MOST_JSON_BYTES = 1 << 30

TABLES: dict[str, Any] = {
    "runs": StepRuns, "circuits": CircuitTimes, "data": DataTimes, "devices": DeviceTable, "control": ControlTimes
}  # fmt: skip

Tables = StepRuns | CircuitTimes | DataTimes | DeviceTable | ControlTimes


class ProgrammeHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Header of a programme file.

    Args:
        format, version: of the file.
        opticcl: version of the program that wrote it.
        engine: that made the times.
        size_bytes: message of every rank [bytes].
        total_s: last event [s].
        plan: digest of the plan.
        assumptions: by name.
    """

    format: str
    version: int
    opticcl: str
    engine: str
    size_bytes: int
    total_s: float
    plan: str
    assumptions: dict[str, str | int | float | bool | None]


def plan_digest(plan: CircuitPlan) -> str:
    """A digest of fabric, collective, transfers and circuits of a plan, as text.

    Equal plans have equal digests, whether their steps are listed or in runs, and whether a column that holds its default in
    every row is there or not. Transfers and circuits count in their order, since a programme names them by it.
    """
    defined = plan.has_images
    about = header_of(listed_plan(plan) if defined else plan, 0, "")
    found = blake2b(digest_size=16)
    found.update(repr((about.fabric, about.nodes, about.num_steps, about.collective)).encode())
    if defined:
        for step in range(plan.schedule.num_steps):
            for move in (move for one in plan.symmetric(step) for move in one.moves):
                found.update(b"".join(column.tobytes() for column in move.columns))
        plan = listed_plan(plan)
    for step in range(plan.schedule.num_steps):
        t = plan.schedule.step(step)
        for column in (t.src, t.dst, t.chunk_lo, t.chunk_n, t.op):
            found.update(np.asarray(column, np.int32).tobytes())
        found.update(_unless(1, t.chunk_step))
        if parts := _unless(1, t.parts):
            found.update(b"parts" + parts)
        for c in plan.rounds(step):
            found.update(np.array([len(c), c.wavelength_step], np.int64).tobytes())
            for column in (c.transfer, c.src, c.dst, c.port, c.wavelength_lo, c.wavelength_n, c.hops, c.num_hops()):
                found.update(np.asarray(column, np.int32).tobytes())
            found.update(_unless(-1, c.waveguide))
    return found.hexdigest()


def _unless(default: int, column: IntArray | None) -> bytes:
    """A column, or nothing where it is absent or holds its default in every row."""
    return b"" if column is None or (column == default).all() else np.asarray(column, np.int32).tobytes()


# --- to a file --------------------------------------------------------------------------------------------------------


def write_programme_file(path: Path, plan: CircuitPlan, programme: Programme) -> int:
    """Write a programme, whole or not at all.

    Args:
        path: ends in .parquet, .json, or .csv, which is a directory.
        plan: that it times.
        programme: to be written.
    Returns: number of rows.
    Raises: OutputError: another suffix, too many rows, or not writable.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"cannot write {path}: a programme file ends in " + ", ".join(SUFFIXES))
    tables = {name: getattr(programme, name) for name in TABLES}
    rows = sum(map(len, tables.values()))
    if rows > MOST_ROWS:
        raise OutputError(f"cannot write {path}: {rows:,} rows are more than {MOST_ROWS:,}; take fewer nodes")
    header = ProgrammeHeader(
        FORMAT, VERSION, program_version(), programme.engine, programme.size_bytes, programme.total_s, plan_digest(plan),
        {name: value if isinstance(value, (int, float, bool)) else str(value) for name, value in programme.assumptions.items()},
    )  # fmt: skip
    encoded = msgspec.json.encode(header)
    if path.suffix.lower() == ".csv":
        write_folder(path, tables, encoded)
        return rows
    with write_whole(path) as file:
        {".parquet": _write_parquet, ".json": _write_json}[path.suffix.lower()](file, tables, encoded)
    return rows


def _write_parquet(file: IO[bytes], tables: dict[str, Tables], header: bytes) -> None:
    import polars as pl

    frames = [
        pl.DataFrame({"table": pl.Series([name] * len(table), dtype=pl.String), **table.as_stored()})
        for name, table in tables.items()
    ]
    whole = pl.concat(frames, how="diagonal")
    whole.lazy().sink_parquet(file, compression="zstd", metadata={KEY: header.decode()}, maintain_order=True)


def _write_json(file: IO[bytes], tables: dict[str, Tables], header: bytes) -> None:
    file.write(b'{"header": ' + header + b',\n"tables": ')
    plain = {name: table.record() for name, table in tables.items()}
    file.write(json.dumps(plain, separators=(",", ":"), allow_nan=False).encode() + b"}\n")


# --- from a file ------------------------------------------------------------------------------------------------------


def read_programme_file(path: Path, plan: CircuitPlan) -> Programme:
    """Read a programme of a plan.

    Args:
        path: ends in .parquet, .json or .csv.
        plan: that it must time.
    Raises: PlanFileError: no such file, damaged, too large, of another plan, or a column that is missing or of another type.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise PlanFileError(f"{path}: a programme file ends in " + ", ".join(SUFFIXES))
    text: str | bytes
    if path.suffix.lower() == ".csv":
        if path.is_file():
            raise PlanFileError(f"{path}: a programme as CSV is a directory; this is a file")
        text, frames = read_folder(path, TABLES, MOST_ROWS, MOST_JSON_BYTES)
    else:
        if not path.is_file():
            raise PlanFileError(f"{path}: there is no such file")
        text, frames = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_json(path)
    header = _header(text, path)
    due = plan_digest(plan)
    if header.plan != due:
        raise PlanFileError(
            f"{path}: is the programme of another plan: its header says plan={printable(header.plan)}, and this plan is {due}"
        )
    tables: dict[str, Any] = {name: _table(frames[name], kind, name, path) for name, kind in TABLES.items()}
    return Programme(
        engine=printable(header.engine),
        size_bytes=header.size_bytes,
        total_s=header.total_s,
        assumptions=header.assumptions,
        **tables,
    )


def _header(text: str | bytes, path: Path) -> ProgrammeHeader:
    try:
        header = msgspec.json.decode(text, type=ProgrammeHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlanFileError(f"{path}: its header is not {FORMAT} of version {VERSION}: {error}") from None
    if header.format != FORMAT:
        raise PlanFileError(f"{path}: is a {printable(header.format)!r} file, not {FORMAT!r}")
    if not 1 <= header.version <= VERSION:
        raise PlanFileError(f"{path}: is version {header.version}, this program reads 1 to {VERSION}; update opticcl")
    if not 0 <= header.size_bytes <= 1 << 60:
        raise PlanFileError(f"{path}: header: size_bytes={header.size_bytes} is none of 0 to 2**60")
    return header


def _read_parquet(path: Path) -> tuple[str | bytes, dict[str, polars.DataFrame]]:
    import polars as pl

    with reading(path, "cannot be read as a programme"):
        text = pl.read_parquet_metadata(source_of(path)).get(KEY)
        if text is None:
            raise PlanFileError(f"{path}: is a Parquet file without the header of a programme")
        rows = pl.scan_parquet(source_of(path))
        count = int(rows.select(pl.len()).collect().item())
        if count > MOST_ROWS:
            raise PlanFileError(f"{path}: {count:,} rows are more than {MOST_ROWS:,}")
        schema = rows.collect_schema()
        known = [name for kind in TABLES.values() for name in kind.stored()]
        missing = [name for name in ("table", *known) if name not in schema]
        if missing:
            raise PlanFileError(f"{path}: column {missing[0]!r} is missing")
        names = rows.select(pl.col("table").cast(pl.String)).collect()["table"]
        odd = (~names.is_in(list(TABLES)).fill_null(False)).arg_true()
        if len(odd):
            given = printable(str(names[int(odd[0])]))
            raise PlanFileError(f"{path}: row {odd[0]}: table={given!r} is none of {', '.join(TABLES)}")
        return text, {
            name: rows.filter(pl.col("table").cast(pl.String) == name).select(list(kind.stored())).collect()
            for name, kind in TABLES.items()
        }


def _read_json(path: Path) -> tuple[str | bytes, dict[str, polars.DataFrame]]:
    import polars as pl

    if path.stat().st_size > MOST_JSON_BYTES:
        raise PlanFileError(f"{path}: is larger than {MOST_JSON_BYTES:,} bytes; write .parquet")
    with reading(path, "cannot be read as a programme", ValueError, RecursionError):
        whole = json.loads(path.read_text("utf-8-sig"))
    if not isinstance(whole, dict) or set(whole) != {"header", "tables"} or not isinstance(whole["tables"], dict):
        raise PlanFileError(f"{path}: is JSON, but not an object of header and tables")
    frames = {}
    for table, kind in TABLES.items():
        columns = whole["tables"].get(table)
        if not isinstance(columns, dict) or set(columns) != set(kind.stored()):
            raise PlanFileError(f"{path}: table {table!r} must have the columns {', '.join(kind.stored())}")
        with reading(path, f"table {table!r}", ValueError):  # columns of different lengths too
            frames[table] = pl.DataFrame(
                cells_as_series(name, columns[name], "number" if dtype is np.float64 else "whole")
                for name, dtype in kind.stored().items()
            )
    return json.dumps(whole["header"]).encode(), frames


def _table(frame: polars.DataFrame, kind: Any, name: str, path: Path) -> Any:
    """A table from its columns; idle circuits have no end."""
    return kind.of(**{
        column: numbers_of(frame[column], dtype, path, name, endless=(name, column) == ("circuits", "end_s"))
        for column, dtype in kind.stored().items()
    })  # fmt: skip


register_format(
    Format(
        "programme",
        SUFFIXES,
        "absolute times of a plan: circuits, data, control, device settings",
        writes="a programme",
    )
)
