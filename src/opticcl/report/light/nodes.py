"""Light as lines from sender to receiver: one column a round, nodes one below the other. It suits every fabric."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from opticcl.ir import IntArray
from opticcl.plans.plan import Plan
from opticcl.report.kit.colours import BAND, FAINT, INK, MUTED
from opticcl.report.kit.drawing import WIDTH
from opticcl.report.light.panels import HEAD, Panel, balanced_rows, colours_of, headline, sheet, strands
from opticcl.report.light.pen import FOLLOWED, Look, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["caption", "draw"]

MOST_NODES = 40  # of more, neighbours are drawn as one
_TITLE, _WIDEST = 0.42, 4.2  # inches


def caption(plan: Plan) -> str:
    """How to read it."""
    what = "a transfer" if plan.fabric.is_packet_switched else "light, coloured by its wavelength,"
    return (
        "Each column is a step, read from left to right: senders are on its left, receivers on its right, and each "
        f"line is {what} from one to the other."
    )


def draw(plan: Plan, shown: list[Panel]) -> Figure:
    """One column a panel, a row a node; of many nodes a row a group of neighbours."""
    n = plan.fabric.num_nodes
    together = ceil(n / MOST_NODES)
    rows_of_nodes = ceil(n / together)
    names = _row_names(plan, together)
    left = 0.3 + max(len(a) + len(b) for a, b in names) * 0.063
    rows, across = balanced_rows(len(shown), 4)
    pitch = max(min(0.2, max(0.11, 2.6 / rows_of_nodes)), 0.068 * min(5, _most_at_a_node(shown)))
    tall = _TITLE + rows_of_nodes * pitch + 0.16
    height = HEAD + rows * tall
    wide = min(_WIDEST, (WIDTH - left - 0.1) / across)
    colours = colours_of(plan, shown)
    thick = f"what node {FOLLOWED} sends" if together == 1 else "many circuits"
    note = f"from the sender, left, to the receiver, right · thick: {thick}"
    figure, axes = sheet(plan, shown, colours, height, note)
    for number, panel in enumerate(shown):
        row, column = divmod(number, across)
        top = height - HEAD - row * tall - _TITLE
        x = left + column * wide
        places = top - (np.arange(rows_of_nodes) + 0.5) * pitch
        if column == 0:
            _ground(axes, plan, together, (left, left + across * wide), top, pitch, rows_of_nodes)
            for (number_text, coordinates), y in zip(names, places, strict=True):
                axes.text(left - 0.08, y, coordinates, ha="right", va="center", fontsize=7, color=MUTED)
                axes.text(left - 0.12 - len(coordinates) * 0.062, y, number_text, ha="right", va="center", fontsize=7.5)
        headline(axes, panel, x + 0.1, top + 0.25)
        _lines(axes, panel, places, together, (x + 0.12, x + wide - 0.18), pitch, colours)
    return figure


def _row_names(plan: Plan, together: int) -> list[tuple[str, str]]:
    """Number and coordinates of each row's node, or the numbers of its nodes."""
    n = plan.fabric.num_nodes
    if together > 1:
        return [("", f"nodes {i}-{min(n, i + together) - 1}") for i in range(0, n, together)]
    names = [plan.fabric.coordinates(i) for i in range(n)]
    return [(str(i), "" if name == str(i) else name) for i, name in enumerate(names)]


def _band(plan: Plan) -> int:
    """Neighbouring nodes with a common background; 0 for none [count]."""
    return plan.fabric.machine.nodes_per_group


def _ground(
    axes: Axes, plan: Plan, together: int, ends: tuple[float, float], top: float, pitch: float, rows: int
) -> None:
    """Grounds of the groups, and a faint line for each row."""
    from matplotlib.patches import Rectangle

    band, rest = divmod(_band(plan), together)
    for first in range(0, rows, 2 * band) if band > 1 and not rest else ():
        tall = min(band, rows - first) * pitch
        corner = (0.06, top - first * pitch - tall)
        axes.add_patch(Rectangle(corner, ends[1] - corner[0], tall, facecolor=BAND, linewidth=0, zorder=0))
    axes.hlines(top - (np.arange(rows) + 0.5) * pitch, *ends, color=FAINT, linewidth=0.5, zorder=0.5)


def _lines(
    axes: Axes,
    panel: Panel,
    places: np.ndarray,
    together: int,
    between: tuple[float, float],
    pitch: float,
    colours: dict[int, str],
) -> None:
    lines = strands(panel.circuits)
    src, dst = panel.circuits.src[lines.circuit] // together, panel.circuits.dst[lines.circuit] // together
    wavelength, weight = lines.wavelength, lines.weight
    if together > 1:  # one line for all between two groups of nodes
        _, first, count = np.unique(src * len(places) + dst, return_index=True, return_counts=True)
        src, dst, wavelength, weight = src[first], dst[first], wavelength[first], 1 + np.log2(count) / 2
    y0 = places[src] + _spread(src, dst, wavelength) * pitch
    y1 = places[dst] + _spread(dst, src, wavelength) * pitch
    x0, x1 = between
    bend = 0.45 * (x1 - x0)
    pen = Pen()
    for i in range(len(src)):
        look = Look(colours[int(wavelength[i])], float(weight[i]), bool(src[i] == FOLLOWED) and together == 1)
        pen.line(look, [(x0, y0[i]), (x0 + bend, y0[i]), (x1 - bend, y1[i]), (x1, y1[i])], curved=True)
        pen.mark(look, (x1 + 0.02, y1[i]), ">", 4.4 if look.followed else 3.2)
    pen.draw(axes)
    for x in (x0, x1 + 0.06):
        axes.plot([x, x], [places[0] + pitch / 2, places[-1] - pitch / 2], color=INK, linewidth=0.5)


def _spread(node: IntArray, other: IntArray, wavelength: IntArray) -> np.ndarray:
    """Where on its node each line ends, -0.3 to 0.3: those of one node side by side, ordered by their other ends."""
    order = np.lexsort((wavelength, other, node))
    first = np.searchsorted(node[order], node[order])
    count = np.bincount(node)[node[order]]
    place = np.empty(len(node))
    place[order] = 0.3 - 0.6 * (np.arange(len(node)) - first + 0.5) / count
    place[order[count == 1]] = 0.0
    return place


def _most_at_a_node(shown: list[Panel]) -> int:
    """The most lines that end at one side of a node."""
    most = 1
    for panel in shown:
        circuit = strands(panel.circuits).circuit
        for side in (panel.circuits.src, panel.circuits.dst):
            most = max(most, int(np.bincount(side[circuit]).max(initial=0)))
    return most
