"""Load of the parts of a machine during a plan, as a file, and the critical path as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.errors import OutputError
from opticcl.report.kit.records import write_rows
from opticcl.simulate.bottleneck import Load
from opticcl.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.simulate.traffic import TransferTimes

__all__ = ["critical_path_lines", "critical_path_rows", "link_columns", "write_links"]

MOST_LINKS = 1 << 20
"""Rows of the file [count]."""

FIRST_AND_LAST = 4
"""Transfers at each end of a long critical path that are shown [count]."""


def link_columns(fabric: Fabric, found: Sequence[Load], total_s: float) -> dict[str, list[Any]]:
    """One row a part that carries something, as columns of equal length.

    kind          its ends, "leaf -> spine", or its function, "transmitter"
    number        index within its resource
    name          as messages name it
    bytes         carried during the plan; retransmissions count again
    busy_s        time of these bytes at its full rate
    utilisation   busy time over the time of the plan, 0 to 1
    largest_queue_bytes, dropped_bytes    recorded by the packet engine; else 0

    Args:
        fabric: the machine.
        found: load of each resource.
        total_s: time of the plan [s].
    """
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "kind", "number", "name", "bytes", "busy_s", "utilisation", "largest_queue_bytes", "dropped_bytes"
        )
    }  # fmt: skip
    for load in found:
        kinds, which = fabric.kind_names(load.resource, load.index)
        columns["kind"] += [kinds[k] for k in which.tolist()]
        columns["number"] += load.index.tolist()
        columns["name"] += fabric.place_names(load.resource, load.index)
        columns["bytes"] += load.carried_bytes.tolist()
        columns["busy_s"] += load.busy_s.tolist()
        columns["utilisation"] += (load.busy_s / total_s if total_s else np.zeros(len(load.busy_s))).tolist()
        columns["largest_queue_bytes"] += load.largest_queue_bytes.tolist()
        columns["dropped_bytes"] += load.dropped_bytes.tolist()
    return columns


def write_links(path: Path, fabric: Fabric, found: Sequence[Load], total_s: float) -> int:
    """Write `link_columns` to a .csv, .parquet or .json file, whole or not at all.

    Args:
        path: of the file.
        fabric: the machine.
        found: load of each resource.
        total_s: time of the plan [s].
    Returns: rows written [count].
    Raises: OutputError: another suffix, more than 2**20 rows, or not writable.
    """
    rows = sum(len(load.index) for load in found)
    if rows > MOST_LINKS:
        raise OutputError(
            f"cannot write {path}: {rows:,} links and ports are more than {MOST_LINKS:,}; try fewer nodes"
        )
    return write_rows(path, link_columns(fabric, found, total_s), {"kind": str, "name": str, "number": int})


def critical_path_rows(critical: TransferTimes) -> list[dict[str, Any]]:
    """The chain of transfers that ends last, in order, as plain values."""
    names = ("step", "src", "dst", "size_bytes", "start_s", "end_s")
    columns = [getattr(critical, name).tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def critical_path_lines(fabric: Fabric, critical: TransferTimes) -> list[str]:
    """The chain of transfers that ends last as lines of text; of a long chain its beginning and its end."""
    if not len(critical):
        return []
    src, dst = (fabric.machine_nodes(column) for column in (critical.src, critical.dst))
    waits = np.diff(critical.end_s, prepend=0.0)
    number = np.arange(len(critical))
    shown = (
        number if len(critical) <= 2 * FIRST_AND_LAST + 1 else np.r_[number[:FIRST_AND_LAST], number[-FIRST_AND_LAST:]]
    )
    many = f"{len(critical):,} transfers; each waits for the one before" if len(critical) > 1 else "one transfer"
    lines = [f"critical path, {many}:"]
    for i in shown.tolist():
        if i and i - 1 not in shown:
            lines.append(f"  ... {len(critical) - len(shown):,} more")
        ends = f"{fabric.node_name(int(src[i]))} -> {fabric.node_name(int(dst[i]))}"
        lines.append(
            f"  step {critical.step[i]}: {ends}, {format_bytes(float(critical.size_bytes[i]))}, ends at "
            f"{format_seconds(float(critical.end_s[i]))}, {format_seconds(float(waits[i]))} later"
        )
    return lines
