"""Device tables as a directory: `settings.parquet`, `data.parquet` and `devices.json`, described in docs/tables.md.

Rows are written batch after batch, so that a table of any length takes little memory; the directory appears when it is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from opticcl.errors import OpticclError, PlanFileError, printable
from opticcl.files import program_version, write_whole, write_whole_folder
from opticcl.formats import Format, register_format
from opticcl.formats._number_columns import numbers_of
from opticcl.formats._polars_errors import first_line, panics_unprinted
from opticcl.formats._polars_sources import source_of
from opticcl.formats.nic_table import NicTable, write_nic_table
from opticcl.formats.plan_header import Header, check_claims, fabric_and_collective, header_of
from opticcl.ir import CircuitPlan, Op
from opticcl.ir.netlist import Netlist
from opticcl.ir.tables import DataRows, SettingRows, Tables

if TYPE_CHECKING:
    import polars

__all__ = ["MOST_ROWS", "DeviceHeader", "TablesHeader", "TablesToWrite", "read_tables", "tables_header", "write_tables"]

FORMAT, VERSION = "opticcl-tables", 2  # 1: without column step and without assumptions
HEADER, SETTINGS, DATA, NIC = "devices.json", "settings.parquet", "data.parquet", "nic.bin"
MOST_ROWS = 1 << 24
"""Rows of a table that are read [count]."""
MOST_HEADER_BYTES = 1 << 26
BATCH = 1 << 17
"""Rows that are written together [count]."""
ACTIONS = ("send", "receive")
OPS = tuple(op.name.lower() for op in Op)


class DeviceHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of devices.

    Args:
        device: name, as in the columns `device`.
        kind: of element.
        count: devices, numbered from 0 [count].
        does: "set": by settings.parquet; "send", "receive": by data.parquet.
        states: what a value means.
        index: what an index means; "" where it is always 0.
        parked: value of a device without a row.
        setting_time_s: from `from_s` until light may pass [s].
        once_per_job: set before the start, for the whole job.
        first, last: device 0 and the last one, in words.
    """

    device: str
    kind: str
    count: int
    does: str
    states: str
    index: str
    parked: int
    setting_time_s: float
    once_per_job: bool
    first: str
    last: str


class TablesHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """devices.json.

    Args:
        format, version: of the tables.
        opticcl: version of the program that wrote them; "" of another program.
        plan: fabric, collective and size, as in the header of a plan file.
        total_s: last event [s].
        slot_s: length of a time slot [s]; 0 without slots.
        initial: "cold": the first settings take their time; "warm": those of time 0 stand.
        settings, data: rows of the tables [count].
        devices: all groups of devices.
        nodes: whose devices have rows; None: all.
        only: groups that have rows; None: all.
        assumptions: of latency and sums, by name, which `ready_s` of what is received rests on; None: not stated.
    """

    format: str
    version: int
    opticcl: str
    plan: Header
    total_s: float
    slot_s: float
    initial: str
    settings: int
    data: int
    devices: list[DeviceHeader]
    nodes: list[int] | None = None
    only: list[str] | None = None
    assumptions: dict[str, str | float] | None = None


class TablesToWrite(NamedTuple):
    """Tables whose rows are made as they are written.

    Args:
        header: without counts of rows.
        netlist: that has the devices.
        settings, data: rows in the order of time.
        nic: -> tables for network interfaces, which are written as nic.bin; None: none.
    """

    header: TablesHeader
    netlist: Netlist
    settings: Iterator[SettingRows]
    data: Iterator[DataRows]
    nic: Callable[[], NicTable] | None = None


def tables_header(
    plan: CircuitPlan,
    size_bytes: int,
    algorithm: str,
    total_s: float,
    warm: bool,
    devices: Sequence[DeviceHeader],
    assumptions: Mapping[str, str | float],
) -> TablesHeader:
    """The header of the tables of a plan.

    Args:
        plan: that they are of.
        size_bytes: message of every rank [bytes].
        algorithm: what generated it, in words.
        total_s: last event [s].
        warm: whether the settings of time 0 stand.
        devices: all groups.
        assumptions: of latency and sums, by name.
    """
    about = msgspec.structs.replace(header_of(plan, size_bytes, algorithm), steps=None, version=1)
    initial = "warm" if warm else "cold"
    return TablesHeader(
        FORMAT, VERSION, program_version(), about, total_s, plan.fabric.slot_s, initial, 0, 0, list(devices),
        assumptions=dict(assumptions),
    )  # fmt: skip


# --- to a directory ---------------------------------------------------------------------------------------------------


def write_tables(path: Path | str, tables: TablesToWrite) -> tuple[int, int]:
    """Write a directory of tables, whole or not at all.

    Args:
        path: a new or empty directory.
        tables: rows and header.
    Returns: rows of settings and of data.
    Raises: OutputError: not writable, or not empty.
    """
    names = [group.name for group in tables.netlist.groups]
    with write_whole_folder(Path(path), ()) as folder:
        settings = _sink(
            folder / SETTINGS, (_setting_frame(rows, names) for rows in tables.settings), _setting_schema(names)
        )
        data = _sink(folder / DATA, (_data_frame(rows, names) for rows in tables.data), _data_schema(names))
        if tables.nic is not None:
            write_nic_table(folder / NIC, tables.nic())
        header = msgspec.structs.replace(tables.header, settings=settings, data=data)
        with write_whole(folder / HEADER) as file:
            file.write(msgspec.json.format(msgspec.json.encode(header), indent=1) + b"\n")
    return settings, data


def _sink(path: Path, frames: Iterator[polars.DataFrame], schema: polars.Schema) -> int:
    """Write frames as one Parquet file, batch after batch; returns the number of rows."""
    import polars as pl
    from polars.io.plugins import register_io_source

    count = 0
    failed: list[Exception] = []

    def source(
        with_columns: list[str] | None, predicate: object, n_rows: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        nonlocal count
        try:
            for frame in _batches(frames, schema):
                count += len(frame)
                yield frame if with_columns is None else frame.select(with_columns)
        except OpticclError as error:  # the engine would wrap it
            failed.append(error)
            raise

    rows = register_io_source(io_source=source, schema=schema)
    try:
        with path.open("wb") as file:
            rows.sink_parquet(file, compression="zstd", row_group_size=1 << 20, maintain_order=True)
    except (pl.exceptions.PolarsError, OpticclError) as error:
        raise failed[0] if failed else error from None
    return count


def _batches(frames: Iterator[polars.DataFrame], schema: polars.Schema) -> Iterator[polars.DataFrame]:
    import polars as pl

    kept: list[polars.DataFrame] = []
    rows = 0
    for frame in frames:
        kept.append(frame)
        rows += len(frame)
        if rows >= BATCH:
            yield pl.concat(kept)
            kept, rows = [], 0
    yield pl.concat(kept) if kept else pl.DataFrame(schema=schema)


def _setting_schema(names: Sequence[str]) -> polars.Schema:
    import polars as pl

    whole = dict.fromkeys(("number", "index", "value"), pl.Int64())
    return pl.Schema({"from_s": pl.Float64(), "slot": pl.Int64(), "device": pl.Enum(names), **whole})


def _data_schema(names: Sequence[str]) -> polars.Schema:
    import polars as pl

    times: dict[str, pl.DataType] = dict.fromkeys(("from_s", "until_s", "ready_s"), pl.Float64())
    times |= {"step": pl.Int64()}
    whole = dict.fromkeys(("chunk_lo", "chunk_n", "parts", "share", "shares"), pl.Int64())
    place = {"device": pl.Enum(names), "number": pl.Int64(), "wavelength": pl.Int64()}
    return pl.Schema({**times, **place, "action": pl.Enum(ACTIONS), "op": pl.Enum(OPS), **whole})


def _setting_frame(rows: SettingRows, names: Sequence[str]) -> polars.DataFrame:
    import polars as pl

    columns = {name: getattr(rows, name) for name in SettingRows.KINDS}
    return pl.DataFrame({**columns, "device": _words(rows.device, names)}, schema=_setting_schema(names))


def _data_frame(rows: DataRows, names: Sequence[str]) -> polars.DataFrame:
    import polars as pl

    columns = {name: getattr(rows, name) for name in DataRows.KINDS if name != "sends"}
    words = {
        "device": _words(rows.device, names),
        "action": _words(np.where(rows.sends, 0, 1), ACTIONS),
        "op": _words(rows.op, OPS),
    }
    return pl.DataFrame({**columns, **words}).select(_data_schema(names).names())


def _words(numbers: Any, names: Sequence[str]) -> polars.Series:
    import polars as pl

    return pl.Series(names, dtype=pl.Enum(names)).gather(np.asarray(numbers, np.uint32))


# --- from a directory -------------------------------------------------------------------------------------------------


def read_tables(path: Path | str) -> Tables:
    """Read a directory of tables, whichever program wrote it.

    Raises: PlanFileError: a file is missing, damaged, too large, of another fabric, or names devices that the fabric does not
        have.
    """
    path = Path(path)
    if not path.is_dir():
        raise PlanFileError(f"{path}: is no directory of tables; it has {HEADER}, {SETTINGS}, {DATA}")
    header = _header(path / HEADER)
    expected = ((SETTINGS, header.settings, _setting_schema(())), (DATA, header.data, _data_schema(())))
    frames = {name: _frame(path / name, count, known) for name, count, known in expected}
    where = str(path / HEADER)
    about = msgspec.structs.replace(header.plan, runs=[], symmetries=[], steps=None, num_steps=0)
    check_claims(about, len(frames[DATA]), where)
    fabric, collective = fabric_and_collective(about, where)
    try:
        netlist = fabric.netlist()
    except OpticclError as error:
        raise PlanFileError(f"{where}: {error}") from None
    if netlist is None:
        raise PlanFileError(f"{where}: {fabric.name} has no netlist, so no devices")
    _check_devices(header, netlist, where)
    names = [group.name for group in netlist.groups]
    s, d = (_Cells(frames[name], path / name) for name in (SETTINGS, DATA))
    numbers = {name: s.numbers(name, kind) for name, kind in SettingRows.KINDS.items() if name != "device"}
    settings = SettingRows.of(device=s.words("device", names), **numbers)
    words = {
        "device": d.words("device", names), "sends": d.words("action", ACTIONS) == 0, "op": d.words("op", OPS)
    }  # fmt: skip
    if header.version == 1:
        words["step"] = np.full(len(frames[DATA]), -1)
    data = DataRows.of(
        **words, **{name: d.numbers(name, kind) for name, kind in DataRows.KINDS.items() if name not in words}
    )
    if not (np.isfinite(header.total_s) and header.total_s >= 0):
        raise PlanFileError(f"{where}: total_s={header.total_s} is no time")
    whole = header.nodes is None and header.only is None
    return Tables(
        fabric, collective, header.plan.size_bytes, header.total_s, header.initial == "warm", settings, data, whole,
        header.assumptions,
    )  # fmt: skip


def _header(path: Path) -> TablesHeader:
    try:
        if path.stat().st_size > MOST_HEADER_BYTES:
            raise PlanFileError(f"{path}: is larger than {MOST_HEADER_BYTES:,} bytes")
        header = msgspec.json.decode(path.read_bytes(), type=TablesHeader)
    except OSError as error:
        raise PlanFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlanFileError(f"{path}: is no {FORMAT} of version {VERSION}: {error}") from None
    if header.format != FORMAT:
        raise PlanFileError(f"{path}: format={printable(header.format)!r} is not {FORMAT!r}")
    if not 1 <= header.version <= VERSION:
        raise PlanFileError(f"{path}: version={header.version}; this program reads 1 to {VERSION}")
    if header.initial not in ("cold", "warm"):
        raise PlanFileError(f"{path}: initial={printable(header.initial)!r} is neither 'cold' nor 'warm'")
    for name, count in (("settings", header.settings), ("data", header.data)):
        if not 0 <= count <= MOST_ROWS:
            raise PlanFileError(f"{path}: {name}={count:,} rows; tables of up to {MOST_ROWS:,} are read")
    return header


@panics_unprinted()
def _frame(path: Path, count: int, known: polars.Schema) -> polars.DataFrame:
    """A table with as many rows as the header says; columns that are not known are not read."""
    import polars as pl

    if not path.is_file():
        raise PlanFileError(f"{path}: there is no such file")
    try:
        rows = pl.scan_parquet(source_of(path))
        found = int(rows.select(pl.len()).collect().item())
        if found != count:
            raise PlanFileError(f"{path}: has {found:,} rows, and {HEADER} says {count:,}")
        return rows.select([name for name in rows.collect_schema() if name in known]).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise PlanFileError(f"{path}: cannot be read as a table: {first_line(error)}") from None


def _check_devices(header: TablesHeader, netlist: Netlist, where: str) -> None:
    """Refuse tables of devices that the fabric of their header does not have."""
    groups = {group.name: group for group in netlist.groups}
    for one in header.devices:
        group = groups.get(one.device)
        if group is None:
            known = ", ".join(groups)
            raise PlanFileError(f"{where}: {netlist.name} has no devices {printable(one.device)!r}; known: {known}")
        if (one.kind, one.count) != (group.kind, group.num_devices):
            raise PlanFileError(
                f"{where}: tables of another fabric: {one.count:,} {printable(one.device)} of kind {printable(one.kind)}, and "
                f"{printable(header.plan.fabric)} has {group.num_devices:,} of kind {group.kind}"
            )


class _Cells:
    """Columns of a frame.

    Args:
        frame: as it was read.
        path: of the file, for messages.
    """

    def __init__(self, frame: polars.DataFrame, path: Path) -> None:
        self.frame, self.path = frame, path

    def _column(self, name: str) -> polars.Series:
        if name not in self.frame.columns:
            raise PlanFileError(f"{self.path}: column {name!r} is missing")
        cells = self.frame[name]
        empty = cells.is_null().arg_true()
        if len(empty):
            raise PlanFileError(f"{self.path}: row {empty[0]}: {name} is empty")
        return cells

    def words(self, name: str, known: Sequence[str]) -> np.ndarray:
        """Positions of words among those that are known, int64 (rows,)."""
        import polars as pl

        cells = self._column(name)
        if not isinstance(cells.dtype, (pl.String, pl.Categorical, pl.Enum)):
            raise PlanFileError(f"{self.path}: column {name!r} holds {cells.dtype}, not words")
        text = cells.cast(pl.String)
        odd = (~text.is_in(list(known))).arg_true()
        if len(odd):
            given = printable(str(text[int(odd[0])])[:80])
            raise PlanFileError(f"{self.path}: row {odd[0]}: {name}={given!r} is none of {', '.join(known)}")
        return text.cast(pl.Enum(list(known))).to_physical().to_numpy().astype(np.int64)

    def numbers(self, name: str, kind: type) -> np.ndarray:
        """Times or whole numbers."""
        return numbers_of(self._column(name), kind, self.path)


register_format(
    Format(
        "tables",
        ("/",),
        "a directory: settings of devices and data of transmitters and photodiodes over time",
        writes="device tables of a plan",
    )
)
