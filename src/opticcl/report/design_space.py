"""Studies of a design space as text: their progress, an estimate of their time, and queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opticcl.report.kit.columns import FittedTable, Shown, columns_of
from opticcl.studies.space.design import DesignSpace
from opticcl.studies.space.runner import Progressed, StudyEstimate
from opticcl.units import format_seconds

__all__ = ["estimate_text", "progressed_text", "query_table"]

MOST_REASONS = 8
"""Reasons that are printed [count]."""


def estimate_text(space: DesignSpace, expected: StudyEstimate) -> str:
    """Points and time of a study that has not run."""
    several = {axis: values for axis, values in space.axes.items() if len(values) > 1} or space.axes
    sizes = " x ".join(f"{len(values):,} {axis}" for axis, values in several.items())
    varied = f", {len(space.vary)} assumptions halved and doubled" if space.vary else ""
    lines = [f"{space.title}: {expected.points:,} points ({sizes}{varied})"]
    if expected.finished:
        lines.append(f"{expected.finished:,} of them are finished")
    if expected.machines:
        times = " to ".join(format_seconds(value) for value in (expected.least_s, expected.most_s))
        lines.append(
            f"about {times} in {expected.jobs} processes, from {expected.sampled} points: as if larger machines took no "
            "longer than these, and in proportion to their nodes"
        )
    return "\n".join(lines)


def progressed_text(space: DesignSpace, found: Progressed) -> str:
    """Points of a study in each state, with the reasons of those that have no values."""
    states = ", ".join(f"{count:,} {state}" for state, count in found.states.items())
    lines = [f"{space.title}: {found.num_points:,} points: {states}; {found.computed:,} of them now"]
    if found.wrong:
        lines.append(
            f"NOT RIGHT: the plans of {found.wrong:,} points are wrong or not judged; opticcl verify shows why"
        )
    lines += [f"set aside: {key}: {reason}" for key, reason in list(found.aside.items())[:MOST_REASONS]]
    lines += [f"refused: {count:,}: {reason}" for reason, count in list(found.refusals.items())[:MOST_REASONS]]
    more = max(0, len(found.refusals) - MOST_REASONS) + max(0, len(found.aside) - MOST_REASONS)
    return "\n".join([*lines, *([f"{more} reasons more in the column `reason`"] if more else [])])


def query_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> FittedTable:
    """Rows of a query, quantities with their units.

    Args:
        rows: plain values by column.
        columns: in their order.
    """
    return FittedTable(columns_of(rows, *map(Shown, columns)), f"{len(rows):,} rows")
