"""Light on a ring of fibres, unrolled: one strip a round, clockwise light above the nodes, counter-clockwise below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.plans.plan import Plan
from opticcl.report.kit.colours import FAINT, INK, MUTED, PAPER
from opticcl.report.kit.drawing import WIDTH
from opticcl.report.light.panels import HEAD, Panel, colours_of, headline, sheet, strands
from opticcl.report.light.pen import FOLLOWED, Look, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["caption", "draw", "fits", "unrolled"]

_LEFT, _TITLE, _LANE, _TALLEST, _BOX = 0.45, 0.36, 0.14, 2.0, 0.085  # inches


def fits(plan: Plan) -> bool:
    """Whether this drawing suits the plan."""
    return plan.fabric.machine.drawing == "ring" and 2 <= plan.fabric.num_nodes <= 40


def caption(plan: Plan) -> str:
    """How to read it."""
    return (
        "The ring is unrolled, so node 0 is at both ends. Each strip is a step, from top to bottom: light that "
        "runs clockwise is drawn above the nodes, counter-clockwise below, each wavelength at a height of its own, "
        "along exactly those pieces of fibre that it occupies. Two lines at one height never overlap, as the "
        "verifier checks. Filled nodes receive."
    )


def draw(plan: Plan, shown: list[Panel]) -> Figure:
    """One strip a panel."""
    n = plan.fabric.num_nodes
    colours = colours_of(plan, shown)
    lanes = 1 + max(int(_lanes(colours, panel).max(initial=0)) for panel in shown)
    lane_tall = min(_LANE, _TALLEST / lanes)
    half = _BOX + 0.1 + lanes * lane_tall
    tall = _TITLE + 2 * half + 0.1
    height = HEAD + len(shown) * tall
    pitch = (WIDTH - 2 * _LEFT) / n
    note = f"above: clockwise, below: counter-clockwise · filled: receives · thick: what node {FOLLOWED} sends"
    figure, axes = sheet(plan, shown, colours, height, note)
    for number, panel in enumerate(shown):
        top = height - HEAD - number * tall
        middle = top - _TITLE - half + 0.04
        headline(axes, panel, 0.12, top - 0.15)
        _nodes(axes, n, set(panel.circuits.dst.tolist()), pitch, middle)
        _light(axes, plan, panel, (pitch, lane_tall), middle, colours)
    return figure


def _lanes(colours: dict[int, str], panel: Panel) -> np.ndarray:
    """Height of each line above or below the nodes: one for each wavelength in use, ring after ring."""
    lines = strands(panel.circuits)
    rank = {wavelength: i for i, wavelength in enumerate(colours)}
    ring = panel.circuits.port[lines.circuit] // 2
    lanes: np.ndarray = np.array([rank[int(w)] for w in lines.wavelength], int) + ring * len(colours)
    return lanes


def _nodes(axes: Axes, n: int, receivers: set[int], pitch: float, middle: float) -> None:
    from matplotlib.patches import Rectangle

    axes.plot([_LEFT - 0.25, WIDTH - _LEFT + 0.25], [middle, middle], color=FAINT, linewidth=3.0, zorder=0.5)
    for place in range(n + 1):
        node, again = place % n, place == n
        filled = node in receivers
        corner = (_LEFT + place * pitch - 0.13, middle - _BOX)
        dash = (0, (2, 1.5)) if again else "-"
        face = MUTED if filled else PAPER
        box = Rectangle(corner, 0.26, 2 * _BOX, facecolor=face, edgecolor=INK, linewidth=0.7, linestyle=dash, zorder=2)
        axes.add_patch(box)
        colour = PAPER if filled else INK
        style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 7.5, "color": colour, "zorder": 3}
        axes.text(_LEFT + place * pitch, middle, str(node), **style)


def _light(
    axes: Axes, plan: Plan, panel: Panel, grid: tuple[float, float], middle: float, colours: dict[int, str]
) -> None:
    pitch, lane_tall = grid
    lines, circuits, n = strands(panel.circuits), panel.circuits, plan.fabric.num_nodes
    lanes, pen = _lanes(colours, panel), Pen()
    for i, circuit in enumerate(lines.circuit.tolist()):
        src, dst = int(circuits.src[circuit]), int(circuits.dst[circuit])
        way = int(circuits.port[circuit]) % 2  # 0 clockwise, 1 counter-clockwise
        up = 1 - 2 * way
        look = Look(colours[int(lines.wavelength[i])], 1.3 * float(lines.weight[i]), src == FOLLOWED)
        base, level = middle + up * _BOX, middle + up * (_BOX + 0.1 + int(lanes[i]) * lane_tall)
        for first, last in unrolled(circuits.path(circuit) % n, way, n):
            begins, ends = first % n == src, last % n == dst
            x0 = _LEFT + first * pitch + up * (0.05 if begins else -0.3)
            x1 = _LEFT + last * pitch - up * (0.05 if ends else -0.3)
            pen.line(look, [(x0, base)] * begins + [(x0, level), (x1, level)] + [(x1, base)] * ends)
            if ends:
                pen.mark(look, (x1, base + up * 0.02), "v" if up > 0 else "^", 4.5)
    pen.draw(axes)


def unrolled(segments: np.ndarray, way: int, n: int) -> list[tuple[int, int]]:
    """Beginnings and ends of the light of a path on the unrolled ring, cut where it passes from one end to the other.

    >>> unrolled(np.array([3, 4, 0]), 0, 5), unrolled(np.array([0, 4]), 1, 5)
    ([(3, 5), (0, 1)], [(1, 0), (5, 4)])

    Args:
        segments: of the path, in order.
        way: 0 clockwise, 1 counter-clockwise.
        n: nodes of the ring [count].
    """
    cuts = np.flatnonzero(np.abs(np.diff(segments)) > 1) + 1
    parts = [part.tolist() for part in np.split(segments, cuts)] if n > 2 else [[s] for s in segments.tolist()]
    return [(part[0] + way, part[-1] + 1 - way) for part in parts]
