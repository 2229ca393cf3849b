"""Device tables as a directory: `settings.parquet`, `data.parquet` and `devices.json`, described in docs/tables.md.

Rows are written batch after batch, so that a table of any length takes little memory; the directory appears when it is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from opticcl.errors import OpticclError, PlanFileError, printable
from opticcl.files import program_version, write_whole, write_whole_folder
from opticcl.formats import Format, register_format
from opticcl.formats._number_columns import numbers_of
from opticcl.formats._polars_errors import reading
from opticcl.formats._polars_sources import sink_parquet, source_of
from opticcl.formats._table_csv import readme, write_csv
from opticcl.formats.nic_table import NicTable, write_nic_table
from opticcl.formats.plan_header import Header, check_claims, fabric_and_collective, header_of
from opticcl.ir import CircuitPlan, Op
from opticcl.ir.netlist import Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.ir.tables import DataRows, Tables
from opticcl.units import format_bytes

if TYPE_CHECKING:
    import polars

__all__ = ["MOST_ROWS", "DeviceHeader", "TablesHeader", "read_tables", "tables_header", "write_tables"]

FORMAT, VERSION = "opticcl-tables", 2  # 1: without column step and without assumptions
HEADER, SETTINGS, DATA, NIC = "devices.json", "settings.parquet", "data.parquet", "nic.bin"
README = "README.txt"
FILES = {
    SETTINGS: "changes of devices, in numbers as docs/tables.md describes; `opticcl verify --tables` reads it",
    DATA: "data of transmitters and photodiodes; `opticcl verify --tables` reads it",
    "settings.csv": "settings.parquet with names in place of numbers; derived, never read",
    "data.csv": "data.parquet as text; derived, never read",
    HEADER: "the plan, the groups of devices, their setting times, the assumptions",
    NIC: "RAMP alone: look-up tables of the network interfaces, in binary",
}
"""File of a directory -> what it holds."""
MOST_ROWS = 1 << 24
"""Rows of a table that are read [count]."""
MOST_HEADER_BYTES = 1 << 26
BATCH = 1 << 17
"""Rows that are written together [count]."""
ACTIONS = ("send", "receive")
OPS = tuple(op.name.lower() for op in Op)
KINDS: dict[str, Any] = {SETTINGS: DeviceTable, DATA: DataRows}
COLUMNS = {
    SETTINGS: {
        "begin_s": "from_s", "done_s": "from_s", "step": "slot", "kind": "device", "device": "number", "index": "index",
        "setting": "value",
    },
    DATA: {name: {"kind": "device", "device": "number", "sends": "action"}.get(name, name) for name in DataRows.KINDS},
}  # fmt: skip
"""Column of each file for each column of `DeviceTable` and `DataRows`."""


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


def tables_header(
    plan: CircuitPlan,
    size_bytes: int,
    algorithm: str,
    total_s: float,
    warm: bool,
    devices: Sequence[DeviceHeader],
    assumptions: Mapping[str, str | float],
    nodes: Collection[int] | None,
    only: Collection[str] | None,
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
        nodes, only: as of `TablesHeader`.
    """
    about = msgspec.structs.replace(header_of(plan, size_bytes, algorithm), steps=None, version=1)
    initial = "warm" if warm else "cold"
    return TablesHeader(
        FORMAT, VERSION, program_version(), about, total_s, plan.fabric.slot_s, initial, 0, 0, list(devices),
        None if nodes is None else list(nodes), None if only is None else list(only), dict(assumptions),
    )  # fmt: skip


# --- to a directory ---------------------------------------------------------------------------------------------------


def write_tables(
    path: Path | str,
    header: TablesHeader,
    netlist: Netlist,
    settings: Iterator[DeviceTable],
    data: Iterator[DataRows],
    nic: Callable[[], NicTable] | None = None,
) -> tuple[int, int]:
    """Write a directory of tables, whole or not at all; rows are made as they are written.

    Args:
        path: a new or empty directory.
        header: without counts of rows.
        netlist: that has the devices.
        settings, data: rows in the order of time.
        nic: -> tables for network interfaces, which are written as nic.bin; None: none.
    Returns: rows of settings and of data.
    Raises: OutputError: not writable, or not empty.
    """
    with write_whole_folder(Path(path), ()) as folder:
        count = _sink(folder / SETTINGS, settings, netlist), _sink(folder / DATA, data, netlist)
        if nic is not None:
            write_nic_table(folder / NIC, nic())
        with write_whole(folder / HEADER) as file:
            header = msgspec.structs.replace(header, settings=count[0], data=count[1])
            file.write(msgspec.json.format(msgspec.json.encode(header), indent=1) + b"\n")
        for name in (SETTINGS, DATA):
            write_csv(folder / name, netlist, BATCH)
        with write_whole(folder / README) as file:
            file.write(_explained(header, nic is not None).encode())
    return count


def _explained(header: TablesHeader, nic: bool) -> str:
    """The text that explains a directory.

    Args:
        header: of its tables.
        nic: whether it has nic.bin.
    """
    plan = header.plan
    title = (
        f"Device tables of {plan.collective.name} of {format_bytes(plan.size_bytes)} by {plan.algorithm}.\n"
        f"The machine: {plan.fabric}.\nThe last event is at {header.total_s:.9g} s."
    )
    setting = "{:,} devices that are set, in {:.9g} s, from {} to {}"
    devices = [
        (
            one.device,
            setting.format(one.count, one.setting_time_s, one.first, one.last)
            if one.does == "set"
            else f"{one.count:,} devices that {one.does}, from {one.first} to {one.last}",
        )
        for one in header.devices
    ]
    return readme(title, devices, {name: text for name, text in FILES.items() if nic or name != NIC})


def _sink(path: Path, parts: Iterator[DeviceTable] | Iterator[DataRows], netlist: Netlist) -> int:
    """Write rows as one Parquet file, batch after batch; returns their number.

    Args:
        path: of the file.
        parts: rows.
        netlist: that has the devices.
    """
    kind, columns, words = KINDS[path.name], COLUMNS[path.name], _words(netlist)
    frames = (_frame(rows, columns, words) for rows in _batches(parts, kind))
    with path.open("wb") as file:
        return sink_parquet(file, frames, _frame(kind.empty(), columns, words).schema)


def _batches(parts: Iterator[Any], kind: Any) -> Iterator[Any]:
    """Rows in tables of about `BATCH`; one at least."""
    kept: list[Any] = []
    rows = 0
    for part in parts:
        kept.append(part)
        rows += len(part)
        if rows >= BATCH:
            yield kind.joined(kept)
            kept, rows = [], 0
    yield kind.joined(kept)


def _words(netlist: Netlist) -> dict[str, Sequence[str]]:
    """Words of columns that hold some."""
    return {"device": [group.name for group in netlist.groups], "action": ACTIONS, "op": OPS}


def _frame(rows: Any, columns: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> polars.DataFrame:
    """Rows as a file has them.

    Args:
        rows: settings or data.
        columns: column of the file for each of theirs.
        words: of columns that hold some.
    """
    import polars as pl

    cells: dict[str, Any] = {}
    for own, name in columns.items():
        cells[name] = getattr(rows, own)
        if name in words:
            numbers = (~rows.sends if name == "action" else cells[name]).astype(np.uint32)
            cells[name] = pl.Series(words[name], dtype=pl.Enum(words[name])).gather(numbers)
    return pl.DataFrame(cells)


# --- from a directory -------------------------------------------------------------------------------------------------


def read_tables(path: Path | str) -> Tables:
    """Read a directory of tables, whichever program wrote it.

    Raises: PlanFileError: a file is missing, damaged, too large, of another fabric, or names devices that the fabric does not
        have.
    """
    path = Path(path)
    if not path.is_dir():
        raise PlanFileError(f"{path}: is not a directory of tables; it has {HEADER}, {SETTINGS}, {DATA}")
    header = _header(path / HEADER)
    frames = {name: _scanned(path / name, count) for name, count in ((SETTINGS, header.settings), (DATA, header.data))}
    if header.version == 1:
        frames[DATA] = frames[DATA].with_columns(step=-1)
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
    settings, data = (_rows(frame, KINDS[name], _words(netlist), path / name) for name, frame in frames.items())
    if not (np.isfinite(header.total_s) and header.total_s >= 0):
        raise PlanFileError(f"{where}: total_s={header.total_s} is not a time")
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
        raise PlanFileError(f"{path}: is not {FORMAT} of version {VERSION}: {error}") from None
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


def _scanned(path: Path, count: int) -> polars.DataFrame:
    """A table with as many rows as the header says; columns that are not known are not read."""
    import polars as pl

    if not path.is_file():
        raise PlanFileError(f"{path}: there is no such file")
    with reading(path, "cannot be read as a table"):
        rows = pl.scan_parquet(source_of(path))
        found = int(rows.select(pl.len()).collect().item())
        if found != count:
            raise PlanFileError(f"{path}: has {found:,} rows, and {HEADER} says {count:,}")
        return rows.select([name for name in rows.collect_schema() if name in COLUMNS[path.name].values()]).collect()


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


def _rows(frame: polars.DataFrame, kind: Any, words: Mapping[str, Sequence[str]], path: Path) -> Any:
    """Rows of a file.

    Args:
        frame: as it was read.
        kind: `DeviceTable` or `DataRows`.
        words: of columns that hold some.
        path: of the file.
    Raises: PlanFileError: a column is missing or of another type, or a cell is empty or out of range.
    """
    columns: dict[str, np.ndarray] = {}
    for own, name in COLUMNS[path.name].items():
        if name not in frame.columns:
            raise PlanFileError(f"{path}: column {name!r} is missing")
        if name in words:
            columns[own] = _positions(frame[name], words[name], path)
        else:
            columns[own] = numbers_of(frame[name], kind.KINDS[own], path)
    if kind is DataRows:
        columns["sends"] = columns["sends"] == 0
    return kind.of(**columns)


def _positions(cells: polars.Series, known: Sequence[str], path: Path) -> np.ndarray:
    """Positions of words among those that are known, int64 (rows,)."""
    import polars as pl

    name, empty = cells.name, cells.is_null().arg_true()
    if len(empty):
        raise PlanFileError(f"{path}: row {empty[0]}: {name} is empty")
    if not isinstance(cells.dtype, (pl.String, pl.Categorical, pl.Enum)):
        raise PlanFileError(f"{path}: column {name!r} holds {cells.dtype}, not words")
    text = cells.cast(pl.String)
    odd = (~text.is_in(list(known))).arg_true()
    if len(odd):
        given = printable(str(text[int(odd[0])])[:80])
        raise PlanFileError(f"{path}: row {odd[0]}: {name}={given!r} is none of {', '.join(known)}")
    return text.cast(pl.Enum(list(known))).to_physical().to_numpy().astype(np.int64)


register_format(
    Format(
        "tables",
        ("/",),
        "a directory: settings of devices and data of transmitters and photodiodes over time",
        writes="device tables of a plan",
    )
)
