"""A plan and how good it is, as tables and as a picture: what is the fastest over size and time of a change, and the front."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from opticcl.fabrics.ocs import Ocs
from opticcl.plans.names import short_algorithm
from opticcl.plans.planner import SIZES, with_change
from opticcl.plans.shift_laws import held_shifts
from opticcl.report.kit.colours import DARK, INK, MUTED, PART_COLOURS
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import new_figure, write_scale
from opticcl.report.kit.words import run_of, shares
from opticcl.schedule.digit_shifts import COLLECTIVES
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.plans.held_shifts import HeldShifts
    from opticcl.plans.overlap import Overlapped
    from opticcl.plans.planner import BreakEven, Planned
    from opticcl.plans.published import SwitchCase

__all__ = ["matrix_table", "plan_figure", "plan_label", "plan_tables"]

SHOWN = 8
"""Segments and break-evens that a table shows [count]."""

CELLS = 16
"""Sizes and times of a change in the map, along each side [count]."""


def plan_answer(found: Planned) -> str:
    """Time of the plan beside its lower bound, in a sentence."""
    bound = f", {found.gap:.2f} times the bound of {format_seconds(found.bound_s)} ({found.bound_by})"
    return (
        f"{short_algorithm(found.plan.algorithm)} takes {format_seconds(found.total_s)}"
        f"{bound if isfinite(found.gap) else ''}; {found.dominates} dominates."
    )


def plan_tables(found: Planned) -> list[Any]:
    """Lines and tables for the terminal."""
    tables: list[Any] = [str(found.plan), _segment_table(found)]
    if found.regrets:
        tables.append(_regret_table(found))
    tables += [_break_even_table(found.sizes, "message", format_bytes)] if found.sizes else []
    tables += [_break_even_table(found.delays, "reconfiguration", format_seconds)] if found.delays else []
    parts = [part for table in tables for part in (table, "")]
    named = [found.plan.algorithm, *(one.algorithm for one in found.regrets)]
    named += [name for one in (*found.sizes, *found.delays) for name in (one.below, one.above)]
    short = {short_algorithm(name): name for name in named if short_algorithm(name) != name}
    if not short:
        return parts[:-1]
    return [*parts, "specifications, for --algorithm:", *(f"  {name}: {whole}" for name, whole in short.items())]


def matrix_table(listed: Sequence[SwitchCase], found: Sequence[Overlapped]) -> FittedTable:
    """One row a case of switches that change while others send."""
    laws = [case.law for case in listed]
    columns = [
        *columns_of(listed, Shown("algorithm"), Shown("nodes"), Shown("size_bytes")),
        *columns_of(
            laws,
            Shown("switches"),
            Shown("bytes_per_s", "rate", form=lambda rate: f"{rate / 1e9:g} GB/s"),
            Shown("change_s", "a change"),
        ),
        *columns_of(
            found,
            Shown("seconds", "time", form=format_seconds),
            Shown("bound_s"),
            Shown("proven", form=lambda proven: "yes" if proven else "no"),
        ),
    ]
    return FittedTable(columns, "proven: no schedule of the same steps is faster", keys=3)


def _segment_table(found: Planned) -> FittedTable:
    """One row a segment."""
    segments, hidden = found.segments[:SHOWN], found.segments[SHOWN:]
    columns = [
        Column("steps", [run_of(one.first, one.first + one.steps - 1) for one in segments]),
        *columns_of(segments, Shown("holds", wrap=True), Shown("changes"), Shown("total_s", "time")),
    ]
    changes, charged = sum(one.changes for one in found.segments), found.timeline.totals()["reconfiguration_s"]
    rest = (
        f"{len(hidden):,} more segments take {format_seconds(sum(one.total_s for one in hidden))}; " if hidden else ""
    )
    return FittedTable(columns, f"{rest}{counted(changes, 'change')} in all, {format_seconds(charged)}")


def _regret_table(found: Planned) -> FittedTable:
    """What the plan takes if a change takes half or twice as long."""
    regrets = found.regrets
    columns = [
        Column("reconfiguration", [{0.5: "half", 2.0: "double"}.get(r.factor, f"x {r.factor:g}") for r in regrets]),
        *columns_of(regrets, Shown("kept_s", "this plan"), Shown("best_s", "fastest")),
        Column("regret", [f"{100 * (r.kept_s / r.best_s - 1):.1f} %" if r.best_s else "0 %" for r in regrets]),
        Column("by", [Text(short_algorithm(r.algorithm)) for r in regrets], justify="left"),
    ]
    return FittedTable(columns, heading="If a reconfiguration took half or twice as long")


def _break_even_table(found: Sequence[BreakEven], what: str, written: Any) -> FittedTable:
    """The fastest plan from one break-even to the next.

    Args:
        found: ascending, at least one.
        what: size, or time of a change.
        written: value -> text.
    """
    shown = found[:SHOWN]
    columns = [
        Column(f"{what} up to", [*(written(float(f"{one.at:.3g}")) for one in shown), "above" * (shown == found)]),
        Column(
            "fastest",
            [Text(short_algorithm(name)) for name in (*(one.below for one in shown), shown[-1].above)],
            justify="left",
        ),
    ]
    return FittedTable(columns, f"{len(found) - SHOWN} more" if len(found) > SHOWN else "")


# --- picture -----------------------------------------------------------------------------------------------------------


def plan_label(found: Planned) -> str:
    """Text of the picture for readers who cannot see it."""
    return (
        f"{found.plan}; {format_seconds(found.total_s)}, {found.gap:.2f} times the bound; "
        f"{counted(sum(one.changes for one in found.segments), 'change')} of circuits"
    )


def plan_figure(found: Planned) -> Figure:
    """On optical circuit switches, changes of the fastest plan over size and time of a change, and the plans of the front;
    elsewhere time against size with its parts, and the bound."""
    fabric, name = found.plan.fabric, found.plan.schedule.collective.name
    title = f"{name} on {fabric.name}, {fabric.num_nodes:,} nodes"
    if isinstance(fabric, Ocs) and name in COLLECTIVES and found.delays:
        remark = "fastest segments of shifts; the ring marks the plan, numbers are changes of links"
        figure = new_figure(4.6, title, remark)
        sizes = np.geomspace(SIZES[0], SIZES[1] / 10, CELLS)
        delays = fabric.reconfiguration_s * np.geomspace(1e-2, 1e2, CELLS)
        machines, wanted = [with_change(fabric, float(delay)) for delay in delays], _request(found)
        plans = [[held_shifts(one, wanted, round(size), found.assumed) for size in sizes] for one in machines]
        _map(figure.add_axes((0.09, 0.13, 0.47, 0.7)), sizes, delays, plans, found)
        _front(figure.add_axes((0.66, 0.13, 0.31, 0.7)), [one for row in plans for one in row])
    else:
        figure = new_figure(4.6, title, "parts of the time; circle: lower bound")
        _parts(figure.add_axes((0.12, 0.2, 0.8, 0.55)), found)
    return figure


def _request(found: Planned) -> Any:
    from opticcl.collective import Request

    collective = found.plan.schedule.collective
    return Request(collective.name, collective.root, collective.shift)


def _map(
    axes: Axes, sizes: np.ndarray, delays: np.ndarray, plans: list[list[HeldShifts | None]], found: Planned
) -> None:
    """Changes of the fastest plan in each cell.

    Args:
        axes: to draw on.
        sizes: along the axis [bytes].
        delays: of a change [s].
        plans: rows of delays, columns of sizes.
        found: whose plan is marked.
    """
    changes = np.array([[0 if one is None else one.changes for one in row] for row in plans])
    axes.pcolormesh(sizes, delays, np.log2(changes + 1.0), cmap="cividis", shading="nearest", rasterized=False)
    for i in range(0, CELLS, 3):
        for j in range(0, CELLS, 3):
            ink = DARK if 2 * np.log2(changes[i, j] + 1) > np.log2(changes.max() + 1) else "white"
            axes.text(sizes[j], delays[i], f"{changes[i, j]}", ha="center", va="center", fontsize=7, color=ink)
    axes.plot(found.plan.size_bytes, found.plan.fabric.reconfiguration_s, "o", ms=10, mfc="none", mec="#d55e00", mew=2)
    write_scale(axes, "x", "size", lambda value: format_bytes(round(value)), log=True)
    write_scale(axes, "y", "time of a change", format_seconds, log=True)


def _front(axes: Axes, plans: list[HeldShifts | None]) -> None:
    """Changes and bytes of the plans that are the fastest anywhere on the map, marked by their steps."""
    points = sorted({(one.changes, one.moved, one.steps) for one in plans if one is not None})
    for changes, moved, steps in points:
        axes.plot(changes + 1, moved, "o", ms=4, color="#0072b2")
        axes.annotate(f"{steps}", (changes + 1, moved), (3, 3), textcoords="offset points", fontsize=7, color=MUTED)
    write_scale(axes, "x", "sets of links", "{:g}".format, log=True)
    write_scale(axes, "y", "messages through a port; numbers: steps", "{:g}".format, log=True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter("")


def _parts(axes: Axes, found: Planned) -> None:
    """Parts of the time beside the bound."""
    left = 0.0
    parts = shares(found.timeline.totals())
    for name, share in parts.items():
        length = share * found.total_s
        if length:
            axes.barh([0], [length], left=[left], height=0.5, color=PART_COLOURS[name], linewidth=0, label=name)
            left += length
    axes.plot([found.bound_s], [0], "o", ms=9, mfc="none", mec=INK, mew=1.5)
    write_scale(axes, "x", "time", format_seconds)
    axes.set_yticks([0], [short_algorithm(found.plan.algorithm)[:24]])
    axes.set_xlim(0, (found.total_s or 1.0) * 1.05)
    axes.set_ylim(-0.6, 0.9)
    axes.legend(loc="upper left", ncols=5, frameon=False, fontsize=7.5)
