"""Tables of a plan: counts of its steps, and the instructions of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.words import run_of
from opticcl.units import format_bytes

if TYPE_CHECKING:
    from opticcl.plans.summary import PlanSummary

__all__ = ["instructions_table", "summary_table"]

MOST_NUMBERS = 8
"""Numbers that a cell shows [count]."""


def summary_table(summary: PlanSummary) -> FittedTable:
    """One row a run of equal steps: rounds, transfers, circuits, wavelengths, longest path."""
    runs = summary.runs
    labels = [run_of(run.first, run.first + run.count - 1) for run in runs]
    counts = columns_of(
        runs,
        Shown("rounds", "rounds per step"),
        Shown("transfers", "transfers per step"),
        Shown("circuits", "circuits per step"),
        Shown("wavelengths", rank=1),
        Shown("longest_path", rank=2),
    )
    return FittedTable([Column("steps", labels, justify="left"), *counts])


def instructions_table(rows: Sequence[Mapping[str, Any]]) -> FittedTable:
    """One row a send or receive of a node, in order.

    Args: rows: as `opticcl.formats.device_tables.instructions_of_node` returns them.
    """
    fields = (
        Shown("node", form="d"),
        Shown("step", form="d"),
        Shown("round", form="d"),
        Shown("action"),
        Shown("peer", form="d"),
        Shown("bytes", form=format_bytes),
        Shown("op"),
        Shown("chunks", form=lambda ends: run_of(*ends), justify="right"),
        Shown("port", form="d"),
        Shown("wavelengths", form=_numbers, justify="right"),
        Shown("waveguide", form="d"),
        Shown("path", form=_numbers, justify="right"),
        Shown("from_s"),
        Shown("end_s"),
        Shown("first_slot", form="d"),
        Shown("slots"),
    )
    optional = {"node", "waveguide", "from_s", "end_s", "first_slot", "slots"}
    known = [field for field in fields if field.key not in optional or any(field.key in row for row in rows)]
    return FittedTable(columns_of(rows, *known), keys=4 + (known[0].key == "node"))


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values[:MOST_NUMBERS])) + (" ..." if len(values) > MOST_NUMBERS else "")
