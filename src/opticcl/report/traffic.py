"""What the parts of a machine carry during a plan, as a file, and the critical path in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.simulate.bottleneck import Load
from opticcl.simulate.places import kind_names, node_name, place_names
from opticcl.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.simulate.traffic import Runs

__all__ = ["LINK_FILES", "critical_path_lines", "critical_path_rows", "link_columns", "write_links"]

LINK_FILES = (".csv", ".parquet", ".json")
MOST_LINKS = 1 << 20
FIRST_AND_LAST = 4  # transfers of a critical path that are told at each end


def link_columns(fabric: Fabric, found: Sequence[Load], total_s: float) -> dict[str, list[Any]]:
    """One row a part that carries something, as columns of equal length.

    kind          what it joins, "leaf -> spine", or what it is, "transmitter"
    number        among the parts of its resource
    name          in words
    bytes         carried during the plan; what was sent again counts again
    busy_s        what that takes at its full rate
    utilisation   busy over the time of the plan, 0 to 1
    largest_queue_bytes, dropped_bytes    of the packet engine; else 0

    Args: total_s: time of the plan [s].
    """
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "kind", "number", "name", "bytes", "busy_s", "utilisation", "largest_queue_bytes", "dropped_bytes"
        )
    }  # fmt: skip
    for load in found:
        kinds, which = kind_names(fabric, load.resource, load.index)
        columns["kind"] += [kinds[k] for k in which.tolist()]
        columns["number"] += load.index.tolist()
        columns["name"] += place_names(fabric, load.resource, load.index)
        columns["bytes"] += load.carried_bytes.tolist()
        columns["busy_s"] += load.busy_s.tolist()
        columns["utilisation"] += (load.busy_s / total_s if total_s else np.zeros(len(load.busy_s))).tolist()
        columns["largest_queue_bytes"] += load.largest_queue_bytes.tolist()
        columns["dropped_bytes"] += load.dropped_bytes.tolist()
    return columns


def write_links(path: Path, fabric: Fabric, found: Sequence[Load], total_s: float) -> int:
    """Write `link_columns` to a .csv, .parquet or .json file, whole or not at all.

    Returns: rows written.
    Raises: OutputError: another suffix, more than 2**20 rows, or not writable.
    """
    check_suffix(path, LINK_FILES, "--links")
    rows = sum(len(load.index) for load in found)
    if rows > MOST_LINKS:
        raise OutputError(
            f"cannot write {path}: {rows:,} links and ports are more than {MOST_LINKS:,}; try fewer nodes"
        )
    with write_whole(path) as file:
        columns = link_columns(fabric, found, total_s)
        if path.suffix.lower() == ".json":
            names = list(columns)
            told = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            file.write(json.dumps(told, indent=1, allow_nan=False).encode())
        else:
            import polars

            kinds = dict.fromkeys(("kind", "name"), polars.String) | {"number": polars.Int64}
            frame = polars.DataFrame(columns, schema={n: kinds.get(n, polars.Float64) for n in columns})
            if path.suffix.lower() == ".csv":
                frame.write_csv(file)
            else:
                frame.write_parquet(file, compression="zstd")
    return rows


def check_suffix(path: Path, known: Sequence[str], option: str) -> None:
    """Refuse a file of a kind that is not written.

    Raises: OutputError.
    """
    if path.suffix.lower() not in known:
        raise OutputError(f"{option}: cannot write {path}: it is none of {', '.join(known)}")


def critical_path_rows(critical: Runs) -> list[dict[str, Any]]:
    """The chain of transfers that ends last, in order, as plain records."""
    names = ("step", "src", "dst", "size_bytes", "start_s", "end_s")
    columns = [getattr(critical, name).tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def critical_path_lines(fabric: Fabric, critical: Runs) -> list[str]:
    """The chain of transfers that ends last in words; of a long one its beginning and its end."""
    if not len(critical):
        return []
    src, dst = (fabric.machine_nodes(column) for column in (critical.src, critical.dst))
    waits = np.diff(critical.end_s, prepend=0.0)
    number = np.arange(len(critical))
    told = (
        number if len(critical) <= 2 * FIRST_AND_LAST + 1 else np.r_[number[:FIRST_AND_LAST], number[-FIRST_AND_LAST:]]
    )
    many = f"{len(critical):,} transfers; each waits for the one before" if len(critical) > 1 else "one transfer"
    lines = [f"critical path, {many}:"]
    for i in told.tolist():
        if i and i - 1 not in told:
            lines.append(f"  ... {len(critical) - len(told):,} more")
        who = f"{node_name(fabric, int(src[i]))} -> {node_name(fabric, int(dst[i]))}"
        lines.append(
            f"  step {critical.step[i]}: {who}, {format_bytes(float(critical.size_bytes[i]))}, ends at "
            f"{format_seconds(float(critical.end_s[i]))}, {format_seconds(float(waits[i]))} later"
        )
    return lines
