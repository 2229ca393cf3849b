"""Tables of a plan: counts of its steps, and the instructions of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.columns import Column, FittedTable
from opticcl.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from opticcl.plans.summary import PlanSummary

__all__ = ["instructions_table", "summary_table"]

MOST_NUMBERS = 8
"""Numbers that a cell shows [count]."""


def summary_table(summary: PlanSummary) -> FittedTable:
    """One row a run of equal steps: rounds, transfers, circuits, wavelengths, longest path."""
    runs = summary.runs
    labels = [str(run.first) if run.count == 1 else f"{run.first}..{run.first + run.count - 1}" for run in runs]
    return FittedTable(
        [
            Column("steps", labels, justify="left"),
            Column("rounds per step", [f"{run.rounds:,}" for run in runs]),
            Column("transfers per step", [f"{run.transfers:,}" for run in runs]),
            Column("circuits per step", [f"{run.circuits:,}" for run in runs]),
            Column("wavelengths", [f"{run.wavelengths:,}" for run in runs], 1),
            Column("longest path", [f"{run.longest_path:,}" for run in runs], 2),
        ]
    )


def instructions_table(rows: Sequence[Mapping[str, Any]]) -> FittedTable:
    """One row a send or receive of a node, in order.

    Args: rows: as `opticcl.formats.device_tables.instructions_of_node` returns them.
    """
    chunks = [f"{low}" if low == high else f"{low}..{high}" for low, high in (row["chunks"] for row in rows)]
    several = any("node" in row for row in rows)
    columns = [
        *([Column("node", [str(row["node"]) for row in rows])] if several else []),
        Column("step", [str(row["step"]) for row in rows]),
        Column("round", [str(row["round"]) for row in rows]),
        Column("action", [row["action"] for row in rows], justify="left"),
        Column("peer", [str(row["peer"]) for row in rows]),
        Column("bytes", [format_bytes(row["bytes"]) for row in rows]),
        Column("op", [row["op"] for row in rows], justify="left"),
        Column("chunks", chunks),
        Column("port", [str(row["port"]) for row in rows]),
        Column("wavelengths", [_numbers(row["wavelengths"]) for row in rows]),
        *([Column("waveguide", [str(row["waveguide"]) for row in rows])] if rows and "waveguide" in rows[0] else []),
        Column("path", [_numbers(row["path"]) for row in rows]),
    ]
    if any("from_s" in row for row in rows):
        columns.append(Column("from", [format_seconds(row["from_s"]) for row in rows]))
        columns.append(Column("end", [format_seconds(row["end_s"]) for row in rows]))
    if any("slots" in row for row in rows):
        columns.append(Column("first slot", [str(row["first_slot"]) for row in rows]))
        columns.append(Column("slots", [f"{row['slots']:,}" for row in rows]))
    return FittedTable(columns, keys=4 + several)


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values[:MOST_NUMBERS])) + (" ..." if len(values) > MOST_NUMBERS else "")
