"""Device tables as CSV, with inputs, outputs and wavelengths in place of `index` and `value`, and a text that explains them.

Both are derived from the Parquet files of a directory, which alone are read again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticcl.formats._polars_sources import source_of
from opticcl.ir import IntArray
from opticcl.ir.netlist import ElementGroup, Netlist

if TYPE_CHECKING:
    import polars

__all__ = ["readme", "write_csv"]

NOTHING = -(1 << 62)
"""Number of a cell that is empty."""

SETTINGS_COLUMNS = {
    "from_s": "when the change begins [s]; light may pass setting_time_s of the group later",
    "slot": "time slot that begins then; empty on fabrics without slots and for devices that are set once a job",
    "device": "group of the device, of those below",
    "number": "of the device in its group, from 0",
    "node": "node of the machine that the device is part of; empty for devices between nodes",
    "wavelength": "that the setting is for or, of a laser or a filter, that it is set to; the first of several; from 0",
    "wavelengths": "number of neighbouring wavelengths that a laser is set to; empty for other devices",
    "input": "of a switch, joined to the output, from 0; -1: none. A switch that absorbs has a row for each of both ends",
    "output": "of a switch, joined to the input, from 0; -1: none, the light is absorbed",
    "from_node": "node whose data a receiver is set to",
    "setting": "number that is set, of devices of other kinds",
    "state": "on or off, of gates and rings; dark, of a laser or a filter without a wavelength",
}
SETTING_CELLS = ("wavelength", "wavelengths", "input", "output", "from_node", "setting", "state")
STATES = ("off", "on", "dark")
DATA_COLUMNS = {
    "from_s": "first bit leaves the sender [s]",
    "until_s": "last bit leaves the sender [s]",
    "ready_s": "received data is stored or added, and may be sent on; of a sender until_s [s]",
    "step": "of the plan, from 0",
    "device": "transmitters or photodiodes, of the groups below",
    "number": "of the device in its group, from 0",
    "node": "node of the machine that the device is part of",
    "wavelength": "of its light, from 0",
    "action": "send or receive",
    "op": "what the receiver does: copy, reduce (adds), move or reduce_move (the sender gives its contributions up)",
    "chunk_lo": "first chunk of the message",
    "chunk_n": "neighbouring chunks from there",
    "parts": "contributions to each chunk that a move carries; else 1",
    "share": "which of the equal parts of these chunks this wavelength carries, from 0",
    "shares": "number of these parts",
}
"""Column of each file -> its meaning."""


def write_csv(parquet: Path, netlist: Netlist, rows_at_once: int) -> None:
    """Write the CSV file beside a Parquet file of tables, some rows at a time.

    Args:
        parquet: settings.parquet or data.parquet.
        netlist: that has the devices.
        rows_at_once: that are in memory [count].
    """
    import polars as pl

    scanned = pl.scan_parquet(source_of(parquet))
    settings = "value" in scanned.collect_schema()
    shown = SETTINGS_COLUMNS if settings else DATA_COLUMNS
    count = int(scanned.select(pl.len()).collect().item())
    with parquet.with_suffix(".csv").open("wb") as file:
        for first in range(0, max(1, count), rows_at_once):
            rows = scanned.slice(first, rows_at_once).collect()
            cells = {"node": _of_groups(rows, netlist, _node)} | (_decoded(rows, netlist) if settings else {})
            named = rows.with_columns(pl.Series(name, values) for name, values in cells.items())
            missing = dict.fromkeys(cells, NOTHING) | ({"slot": -1} if settings else {})
            blank = named.with_columns(pl.when(pl.col(name) != none).then(name) for name, none in missing.items())
            if settings:
                words = pl.col("state").replace_strict(range(len(STATES)), STATES, return_dtype=pl.String)
                blank = blank.with_columns(words)
            blank.select(*shown).write_csv(file, include_header=not first)


def _node(group: ElementGroup, number: IntArray) -> IntArray:
    """Node of each device; `NOTHING` where it is part of none."""
    return np.full(len(number), NOTHING) if group.node_of is None else group.node_of(number)


def _groups(rows: polars.DataFrame, netlist: Netlist) -> Iterator[tuple[ElementGroup, np.ndarray]]:
    """Groups with rows, and which rows are theirs."""
    import polars as pl

    position = rows["device"].cast(pl.Enum([group.name for group in netlist.groups])).to_physical().to_numpy()
    for number in np.unique(position).tolist():
        yield netlist.groups[number], position == number


def _of_groups(rows: polars.DataFrame, netlist: Netlist, of: Callable[[ElementGroup, IntArray], IntArray]) -> IntArray:
    """A number of each row by its group and device, int64 (rows,)."""
    found = np.full(len(rows), NOTHING)
    number = rows["number"].to_numpy()
    for group, mine in _groups(rows, netlist):
        found[mine] = of(group, number[mine])
    return found


def _decoded(rows: polars.DataFrame, netlist: Netlist) -> dict[str, IntArray]:
    """What `index` and `value` of settings mean, by the kind of the element; `state` is a position in `STATES`.

    Args:
        rows: of settings.parquet.
        netlist: that has the devices.
    """
    w, index, value = netlist.num_wavelengths, rows["index"].to_numpy(), rows["value"].to_numpy()
    found: dict[str, IntArray] = {name: np.full(len(rows), NOTHING) for name in SETTING_CELLS}
    for group, mine in _groups(rows, netlist):
        part, number, kind = index[mine], value[mine], group.kind
        if kind in ("wss", "matrix"):
            port, wavelength = np.divmod(part, w if group.per_wavelength else 1)
            found["wavelength"][mine] = wavelength if group.per_wavelength else NOTHING
            of_output = port >= group.n_in
            found["input"][mine] = np.where(of_output, number, port)
            found["output"][mine] = np.where(of_output, port - group.n_in, number)
        elif kind in ("laser", "filter"):
            found["wavelength"][mine] = np.where(number < 0, NOTHING, number)
            found["state"][mine] = np.where(number < 0, STATES.index("dark"), NOTHING)
        elif kind in ("gate", "ringbank"):
            found["wavelength"][mine] = part if group.per_wavelength else NOTHING
            found["state"][mine] = np.where(number == 1, STATES.index("on"), STATES.index("off"))
        elif kind == "relay":
            found["wavelength"][mine], found["output"][mine] = part, number
        elif kind == "mzi":
            found["output"][mine] = number
        elif kind == "select":
            found["input"][mine] = number
        elif "tunes" in group.parameters:
            found["wavelength"][mine], found["wavelengths"][mine] = np.divmod(np.maximum(number, 0), w + 1)
            found["state"][mine] = np.where(number < 0, STATES.index("dark"), NOTHING)
        elif "receives" in group.parameters:
            found["from_node"][mine] = number
        else:
            found["setting"][mine] = number
    return found


def readme(title: str, devices: list[tuple[str, str]], files: dict[str, str]) -> str:
    """The text that explains a directory of tables.

    Args:
        title: what the tables are of.
        devices: name of each group, and the number and place of its devices in words.
        files: name of each file, and what it holds.
    """
    parts = [title, "All times are seconds in the clock of the sender; counting begins at 0.", "Files"]
    parts.append(_listed(files.items()))
    for name, columns in (("settings.csv", SETTINGS_COLUMNS), ("data.csv", DATA_COLUMNS)):
        parts += [f"Columns of {name}", _listed(columns.items())]
    return "\n\n".join([*parts, "Devices", _listed(devices)]) + "\n"


def _listed(rows: Iterable[tuple[str, str]]) -> str:
    """Names in a column, their texts beside them, 100 columns wide."""
    pairs = list(rows)
    wide = max(len(name) for name, _ in pairs)
    return "\n".join(
        textwrap.fill(text, 100, initial_indent=f"  {name:<{wide}}  ", subsequent_indent=" " * (wide + 4))
        for name, text in pairs
    )
