"""Light between nodes on a circle, and the matrix of senders and receivers beside it: a pair of drawings a round.

Source: RAMP, figure 8.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.ir import Circuits
from opticcl.plans.plan import Plan
from opticcl.report.kit.colours import BAND, FAINT, INK, MUTED
from opticcl.report.kit.drawing import WIDTH
from opticcl.report.light.panels import HEAD, Panel, balanced_rows, colours_of, headline, sheet, strands
from opticcl.report.light.pen import FOLLOWED, Look, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["caption", "draw", "fits", "joined"]

MOST_NODES = 128
_TITLE, _ROOM, _SIDE = 0.42, 0.3, 2.0  # inches: above a pair of drawings, around each, and its side
_GAP = 0.35  # nodes: between the grounds of two groups


def fits(plan: Plan) -> bool:
    """Whether this drawing suits the plan."""
    return plan.fabric.machine.drawing == "chords" and 2 <= plan.fabric.num_nodes <= MOST_NODES


def caption(plan: Plan) -> str:
    """How to read it."""
    return (
        "Each pair of drawings is a step. On the left the nodes stand on a circle, clockwise from the top, on the ground of "
        "their group, and each line is light, coloured by its wavelength. On the right each field is light from the "
        f"node of its row to the node of its column. Thick lines: nodes that node {FOLLOWED} exchanges data with, directly "
        "or through others."
    )


def draw(plan: Plan, shown: list[Panel]) -> Figure:
    """A circle and a matrix a panel, two panels side by side."""
    rows, across = balanced_rows(len(shown), 2)
    wide, tall = (WIDTH - 0.1) / across, _TITLE + _SIDE + 2 * _ROOM
    height = HEAD + rows * tall
    colours = colours_of(plan, shown)
    note = f"left: circle of nodes, right: sender down, receiver across · thick: the subgroup of node {FOLLOWED}"
    figure, axes = sheet(plan, shown, colours, height, note)
    for number, panel in enumerate(shown):
        row, column = divmod(number, across)
        left, top = 0.05 + column * wide, height - HEAD - row * tall
        headline(axes, panel, left + 0.1, top - 0.17)
        bottom = top - tall + _ROOM
        _circle(axes, plan, panel, (left + _ROOM + _SIDE / 2, bottom + _SIDE / 2), colours)
        _matrix(axes, plan, panel, (left + 2.6 * _ROOM + _SIDE, bottom + _SIDE), colours)
    return figure


def joined(circuits: Circuits, node: int) -> set[int]:
    """Nodes that a node is joined to by circuits, directly or through others, itself among them.

    Args:
        circuits: of a round.
        node: where to begin.
    """
    beside: dict[int, set[int]] = defaultdict(set)
    for src, dst in zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True):
        beside[src].add(dst)
        beside[dst].add(src)
    reached, left = {node}, [node]
    while left:
        new = beside[left.pop()] - reached
        reached |= new
        left += new
    return reached


def _circle(axes: Axes, plan: Plan, panel: Panel, middle: tuple[float, float], colours: dict[int, str]) -> None:
    from matplotlib.patches import Wedge

    n, band = plan.fabric.num_nodes, plan.fabric.machine.nodes_per_group
    angle = 2 * np.pi * (np.arange(n) + 0.5) / n
    places = np.array(middle) + _SIDE / 2 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    for first in range(0, n, band) if 1 < band < n else ():
        ends = 90 - 360 * np.array([min(first + band, n) - _GAP, first + _GAP]) / n
        ground = Wedge(middle, _SIDE / 2 + 0.16, *ends, width=0.3, facecolor=BAND, linewidth=0, zorder=0)
        axes.add_patch(ground)
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center_baseline",
        "fontsize": 7.0 if n <= 24 else 5.0,
        "color": MUTED,
    }
    for node in range(0, n, 1 + n // 65):
        x, y = places[node] + 0.2 / _SIDE * (places[node] - middle)
        axes.text(x, y, str(node), **style)
    lines, pen, followed = strands(panel.circuits), Pen(), joined(panel.circuits, FOLLOWED)
    for circuit, wavelength, weight in zip(
        lines.circuit.tolist(), lines.wavelength.tolist(), lines.weight, strict=True
    ):
        src, dst = int(panel.circuits.src[circuit]), int(panel.circuits.dst[circuit])
        if src != dst:
            bends = [middle + 0.35 * (places[node] - middle) for node in (src, dst)]
            points = [(float(x), float(y)) for x, y in (places[src], *bends, places[dst])]
            pen.line(Look(colours[wavelength], 0.7 * float(weight), src in followed), points, curved=True)
    pen.draw(axes)


def _matrix(axes: Axes, plan: Plan, panel: Panel, corner: tuple[float, float], colours: dict[int, str]) -> None:
    """Fields, with a frame and lines between groups. Args: corner: the upper left one [inches]."""
    from matplotlib.collections import PolyCollection

    n, band = plan.fabric.num_nodes, plan.fabric.machine.nodes_per_group
    x, y, field = *corner, _SIDE / n
    lines = strands(panel.circuits)
    rows, columns = panel.circuits.src[lines.circuit], panel.circuits.dst[lines.circuit]
    at = np.array(corner) + field * np.stack([columns, -rows], axis=1)
    square = field * np.array([(0, 0), (1, 0), (1, -1), (0, -1)])
    filled = [colours[int(wavelength)] for wavelength in lines.wavelength]
    axes.add_collection(
        PolyCollection(list(at[:, None] + square), facecolors=filled, linewidths=0, zorder=2), autolim=False
    )
    for place in np.arange(0, n + 1, band if 1 < band < n else n) * field:
        axes.plot([x, x + _SIDE], [y - place] * 2, color=FAINT, linewidth=0.5, zorder=1)
        axes.plot([x + place] * 2, [y, y - _SIDE], color=FAINT, linewidth=0.5, zorder=1)
    style: dict[str, Any] = {"fontsize": 6.0, "color": INK}
    axes.text(x - 0.05, y - field / 2, "0", ha="right", va="center", **style)
    axes.text(x - 0.05, y - _SIDE + field / 2, str(n - 1), ha="right", va="center", **style)
    axes.text(x + field / 2, y + 0.05, "0", ha="center", va="bottom", **style)
    axes.text(x + _SIDE - field / 2, y + 0.05, str(n - 1), ha="center", va="bottom", **style)
