"""Common parts of the pictures of circuits: panels, one a round, and the legend of wavelengths.

Every picture is drawn on axes whose coordinates are inches from the lower left corner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.ir import Circuits, IntArray, Op, Transfers, numbered
from opticcl.plans.plan import Plan
from opticcl.report.kit.colours import INK, MUTED, wavelength_colours
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["HEAD", "Panel", "balanced_rows", "colours_of", "headline", "panels", "sheet", "strands"]

HEAD = 0.42
"""Height of the legend above everything [inches]."""

MOST_PANELS = 24
MOST_STRANDS = 4  # wavelengths of one circuit that are drawn as separate lines


@dataclass(frozen=True)
class Panel:
    """The circuits of one round.

    Args:
        title: steps and round.
        what: the transfers, in words.
        circuits: of the round.
    """

    title: str
    what: str
    circuits: Circuits


def panels(plan: Plan, steps: Iterable[int] | None = None) -> tuple[list[Panel], int]:
    """A panel for each round of the given steps, or of the first of each run of equal steps.

    Returns: at most `MOST_PANELS` panels, and the number of all rounds [count].
    """
    runs = plan.schedule.step_classes() if steps is None else [range(i, i + 1) for i in steps]
    made: list[Panel] = []
    total = 0
    for run in runs:
        rounds = plan.circuits.rounds(run.start)
        total += len(rounds)
        if len(made) >= MOST_PANELS:
            continue
        transfers = plan.schedule.step(run.start)
        what = _what(transfers, plan.schedule.collective.num_chunks)
        for number, circuits in enumerate(rounds):
            part = f", round {number} of {len(rounds)}" if len(rounds) > 1 else ""
            made.append(Panel(_steps(run) + part, what, circuits))
    return made[:MOST_PANELS], total


def _steps(run: range) -> str:
    if len(run) == 1:
        return f"step {run.start}"
    return (
        f"steps {run.start} and {run.stop - 1}, equal"
        if len(run) == 2
        else f"steps {run.start} to {run.stop - 1}, equal"
    )


def _what(transfers: Transfers, num_chunks: int) -> str:
    """Share of the message that a transfer carries, and the operation at the receiver."""
    if not len(transfers):
        return "nothing is sent"
    pieces = transfers.chunk_n if transfers.parts is None else transfers.chunk_n * transfers.parts
    least, most = (Fraction(int(n), num_chunks) for n in (pieces.min(), pieces.max()))
    if least != most:
        share = f"{least} to {most} of the message"
    else:
        share = "the whole message each" if most == 1 else f"{most} of the message each"
    return f"{share}, {' or '.join(_VERBS[op] for op in np.unique(transfers.op).tolist())}"


_VERBS = {Op.COPY: "stored", Op.REDUCE: "added", Op.MOVE: "handed over", Op.REDUCE_MOVE: "added and handed over"}


# --- lines of circuits -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strands:
    """Lines that are drawn for circuits: one for each wavelength, or a thick one for a circuit of many wavelengths.

    Args:
        circuit: row of the circuits that each line belongs to, int64 (n,).
        wavelength: that gives its colour, int64 (n,).
        weight: thickness, 1 for a single wavelength, float64 (n,).
    """

    circuit: IntArray
    wavelength: IntArray
    weight: np.ndarray


def strands(circuits: Circuits) -> Strands:
    """The lines to draw for circuits."""
    many = circuits.wavelength_n > MOST_STRANDS
    count = np.where(many, 1, circuits.wavelength_n)
    circuit, nth = numbered(count)
    wavelength = circuits.wavelength_lo[circuit] + nth * circuits.wavelength_step
    return Strands(circuit, wavelength, np.where(many[circuit], 2.0, 1.0))


def colours_of(plan: Plan, shown: Sequence[Panel]) -> dict[int, str]:
    """Colour of each wavelength that a picture shows; packets have none and a single muted colour."""
    if plan.fabric.is_packet_switched:
        return {0: MUTED}
    return wavelength_colours(np.unique(np.concatenate([strands(p.circuits).wavelength for p in shown])).tolist())


# --- the sheet --------------------------------------------------------------------------------------------------------


def sheet(plan: Plan, shown: Sequence[Panel], colours: dict[int, str], height: float, note: str) -> tuple[Figure, Axes]:
    """A figure with axes in inches, and above them the colours of the wavelengths.

    Args:
        plan: of the picture.
        shown: its panels.
        colours: by wavelength.
        height: of the figure [inches].
        note: how to read the picture.
    """
    figure = new_figure(height)
    axes = axes_at(figure, 0, 0, WIDTH, height)
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, height)
    axes.set_axis_off()
    if any((panel.circuits.wavelength_n > MOST_STRANDS).any() for panel in shown):
        note += " · colour: the first of many wavelengths"
    y = height - 0.17
    style: dict[str, Any] = {"va": "center_baseline", "fontsize": 7.5}
    x = _write_wavelengths(axes, plan, colours, y, style)
    axes.text(x, y, note, color=MUTED, **style)
    axes.plot([0.12, WIDTH - 0.12], [height - 0.32] * 2, color=INK, linewidth=0.4, alpha=0.35)
    return figure, axes


def _write_wavelengths(axes: Axes, plan: Plan, colours: dict[int, str], y: float, style: dict[str, Any]) -> float:
    """Draw the colours of the wavelengths in a line, and return its right end [inches]."""
    if plan.fabric.is_packet_switched:
        axes.text(0.12, y, "electrical packets, no wavelengths", **style)
        return 2.42
    axes.text(0.12, y, "wavelength", **style)
    x, few = 0.84, len(colours) <= 8
    for i, (wavelength, colour) in enumerate(colours.items()):
        wide = 0.22 if few else min(0.12, 3.0 / len(colours))
        if not few and i in (0, len(colours) - 1):
            axes.text(x if i == 0 else x + wide + 0.05, y, f"λ{wavelength}", ha="left", **style)
            x += 0.28 if i == 0 else 0.0
        axes.plot([x, x + wide], [y, y], color=colour, linewidth=3.2, solid_capstyle="butt")
        if few:
            axes.text(x + wide + 0.05, y, f"λ{wavelength}", **style)
        x += wide + (0.36 if few else 0)
    return x + (0.2 if few else 0.55)


def balanced_rows(count: int, most: int) -> tuple[int, int]:
    """Number of rows, and of panels in each, for `count` panels with at most `most` in a row.

    >>> balanced_rows(6, 4), balanced_rows(8, 4), balanced_rows(2, 4)
    ((2, 3), (2, 4), (1, 2))
    """
    rows = max(1, ceil(count / most))
    return rows, max(1, ceil(count / rows))


def headline(axes: Axes, panel: Panel, x: float, y: float) -> None:
    """Write the title of a panel and its transfers.

    Args:
        axes: to write on.
        panel: whose title it is.
        x: left end [inches].
        y: baseline of the title [inches].
    """
    axes.text(x, y, panel.title, fontsize=8.5, fontweight="bold", va="baseline")
    axes.text(x, y - 0.155, panel.what, fontsize=7.5, color=MUTED, va="baseline")
