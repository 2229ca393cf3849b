"""RAMP's tables for network interfaces in binary: what the transcoder of each node looks up, slot by slot.

All numbers are little-endian. A file is a header of 64 bytes, `nodes + 1` unsigned 64-bit numbers (first row of each node, and
the number of rows), and rows of 32 bytes, those of a node in the order of slot, action and transceiver.

    header   magic "OPTICNIC"; version, nodes, transceivers, groups, wavelengths (uint32), 4 bytes of zero, slot_s (float64),
             rows (uint64), slots (uint64), CRC-32 of all that follows (uint32), 4 bytes of zero
    row      slot, slots (uint32), action, op (uint8), transceiver, wavelength (uint16), 2 bytes of zero, gates (uint64),
             chunk_lo, chunk_n (uint32)

Source: RAMP section 4, the look-up tables of the transcoder.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opticcl.errors import OutputError, PlanFileError
from opticcl.files import write_whole
from opticcl.ir import IntArray, Op
from opticcl.ir.netlist import Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.ir.tables import Tables

__all__ = ["HEADER_BYTES", "ROW", "NicShape", "NicTable", "nic_rows", "read_nic_table", "write_nic_table"]

MAGIC, VERSION = b"OPTICNIC", 1
HEADER = struct.Struct("<8s5I4xdQQI4x")
HEADER_BYTES = HEADER.size
ROW = np.dtype(
    [
        ("slot", "<u4"), ("slots", "<u4"), ("action", "u1"), ("op", "u1"), ("transceiver", "<u2"), ("wavelength", "<u2"),
        ("zero", "<u2"), ("gates", "<u8"), ("chunk_lo", "<u4"), ("chunk_n", "<u4"),
    ]
)  # fmt: skip
"""A row of the file: `action` 0 sends, 1 receives; bit g of `gates`: the gate of group g is open."""
MOST_GROUPS = 64
MOST_BYTES = 1 << 32
SEND, RECEIVE = 0, 1


@dataclass(frozen=True, slots=True)
class NicShape:
    """Sizes of the machine.

    Args:
        nodes: of the machine [count].
        transceivers: of a node [count].
        groups: communication groups [count].
        wavelengths: count.
        slot_s: length of a time slot [s].
    """

    nodes: int
    transceivers: int
    groups: int
    wavelengths: int
    slot_s: float


@dataclass(frozen=True, slots=True, eq=False)
class NicTable:
    """The tables of all nodes.

    Args:
        shape: of the machine.
        slots: in which any transceiver works, up to the last [count].
        first: first row of each node, and the number of rows, int64 (nodes + 1,).
        rows: structured as `ROW`.
    """

    shape: NicShape
    slots: int
    first: IntArray
    rows: np.ndarray

    def of_node(self, node: int) -> np.ndarray:
        """Rows of a node, in the order of slot, action and transceiver."""
        rows: np.ndarray = self.rows[self.first[node] : self.first[node + 1]]
        return rows


def nic_rows(shape: NicShape, netlist: Netlist, tables: Tables) -> NicTable:
    """The tables of all nodes from their device tables.

    Args:
        shape: of the machine.
        netlist: that has the devices.
        tables: whose settings are in the order of time.
    Raises: OutputError: more groups than a row has bits for gates.
    """
    if shape.groups > MOST_GROUPS:
        raise OutputError(f"nic.bin: {shape.groups} groups; a row has gates of up to {MOST_GROUPS}")
    d = tables.data
    node, transceiver = np.divmod(d.device, shape.transceivers)
    rows = np.zeros(len(d), ROW)
    rows["slot"] = np.rint(d.from_s / shape.slot_s)
    rows["slots"] = np.ceil((d.until_s - d.from_s) / shape.slot_s - 1e-6)
    rows["action"], rows["op"] = np.where(d.sends, SEND, RECEIVE), d.op
    rows["transceiver"], rows["wavelength"] = transceiver, d.wavelength
    rows["chunk_lo"], rows["chunk_n"] = d.chunk_lo, d.chunk_n
    group = node * shape.groups + transceiver // (shape.transceivers // shape.groups)
    for gate, own in (("tx_gate", d.sends), ("rx_gate", ~d.sends)):
        gates = tables.settings.take(tables.settings.kind == netlist.position[gate])
        rows["gates"][own] = _open_gates(shape, gates, group[own], d.from_s[own] + 1e-6 * shape.slot_s)
    order = np.lexsort((rows["transceiver"], rows["action"], rows["slot"], node))
    first = np.searchsorted(node[order], np.arange(shape.nodes + 1))
    last = int((rows["slot"].astype(np.int64) + rows["slots"]).max(initial=0))
    return NicTable(shape, last, first, rows[order])


def _open_gates(shape: NicShape, gates: DeviceTable, group: IntArray, time_s: np.ndarray) -> np.ndarray:
    """Gates that are open at a time, as bits, uint64 (n,).

    Args:
        shape: of the machine.
        gates: changes of gates, in the order of time.
        group: of gates, int64 (n,).
        time_s: float64 (n,) [s].
    """
    gate_bits = np.zeros(len(group), np.uint64)
    weights = np.uint64(1) << np.arange(shape.groups, dtype=np.uint64)
    is_open = np.zeros((shape.nodes * shape.groups, shape.groups), bool)
    order = np.argsort(time_s, kind="stable")
    moments, first = np.unique(time_s[order], return_index=True)
    begun = 0
    for rows, stop in zip(
        np.split(order, first)[1:], np.searchsorted(gates.begin_s, moments, "right").tolist(), strict=True
    ):
        is_open.reshape(-1)[gates.device[begun:stop]] = gates.setting[begun:stop] == 1
        begun = stop
        gate_bits[rows] = (is_open[group[rows]] * weights).sum(axis=1, dtype=np.uint64)
    return gate_bits


def write_nic_table(path: Path | str, table: NicTable) -> None:
    """Write a binary table, whole or not at all.

    Raises: OutputError: not writable.
    """
    shape = table.shape
    body = table.first.astype("<u8").tobytes() + table.rows.tobytes()
    header = HEADER.pack(
        MAGIC, VERSION, shape.nodes, shape.transceivers, shape.groups, shape.wavelengths, shape.slot_s, len(table.rows),
        table.slots, zlib.crc32(body),
    )  # fmt: skip
    with write_whole(Path(path)) as file:
        file.write(header + body)


def read_nic_table(path: Path | str) -> NicTable:
    """Read a binary table.

    Raises: PlanFileError: no such file, no such table, of another length than it says, damaged, or a row of what the machine
        does not have.
    """
    path = Path(path)
    try:
        size = os.stat(path).st_size
        if size > MOST_BYTES:
            raise PlanFileError(f"{path}: {size:,} bytes; tables of up to {MOST_BYTES:,} are read")
        raw = path.read_bytes()
    except OSError as error:
        raise PlanFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(raw) < HEADER_BYTES or raw[:8] != MAGIC:
        raise PlanFileError(f"{path}: does not begin with {MAGIC.decode()}; nic.bin of compile --out DIR/ does")
    _, version, nodes, transceivers, groups, wavelengths, slot_s, count, slots, crc = HEADER.unpack_from(raw)
    if version != VERSION:
        raise PlanFileError(f"{path}: version={version}; this program reads {VERSION}")
    due = HEADER_BYTES + 8 * (nodes + 1) + ROW.itemsize * count
    if len(raw) != due:
        raise PlanFileError(f"{path}: has {len(raw):,} bytes; {nodes:,} nodes with {count:,} rows take {due:,}")
    if zlib.crc32(memoryview(raw)[HEADER_BYTES:]) != crc:
        raise PlanFileError(f"{path}: is damaged: its CRC-32 is not {crc:#010x}")
    first = np.frombuffer(raw, "<u8", nodes + 1, HEADER_BYTES)
    if int(first[0]) or int(first[-1]) != count or (first[1:] < first[:-1]).any():
        raise PlanFileError(f"{path}: first rows of nodes that do not ascend from 0 to {count:,}")
    rows = np.frombuffer(raw, ROW, count, HEADER_BYTES + 8 * (nodes + 1))
    if not slot_s > 0:
        raise PlanFileError(f"{path}: slot_s={slot_s} is not the length of a slot")
    limits: dict[str, Any] = {"transceiver": transceivers, "wavelength": wavelengths, "action": 2, "op": len(Op)}
    for name, most in limits.items():
        bad = np.flatnonzero(rows[name] >= most)
        if len(bad):
            raise PlanFileError(f"{path}: row {bad[0]}: {name}={rows[name][bad[0]]} is none of 0 to {most - 1}")
    if (rows["gates"] >> np.uint64(groups)).any():
        raise PlanFileError(f"{path}: gates of more than {groups} groups are open")
    shape = NicShape(nodes, transceivers, groups, wavelengths, slot_s)
    return NicTable(shape, slots, first.astype(np.int64), rows)
