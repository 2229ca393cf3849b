"""Light through a wafer of tiles: one small grid a round, every circuit along its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticcl.plans.plan import Plan
from opticcl.report.kit.colours import BAND, INK, MUTED
from opticcl.report.kit.drawing import WIDTH
from opticcl.report.light.panels import HEAD, Panel, balanced_rows, colours_of, headline, sheet, strands
from opticcl.report.light.pen import FOLLOWED, Look, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["caption", "corners", "draw", "fits", "free_lanes", "straight_runs"]

_TITLE, _MARGIN = 0.45, 0.12  # inches
_STEP = {0: (1, 0), 1: (-1, 0), 2: (0, -1), 3: (0, 1)}  # way out of a tile -> right, up


def fits(plan: Plan) -> bool:
    """Whether this drawing suits the plan."""
    return plan.fabric.machine.drawing == "grid" and plan.fabric.num_nodes <= 64


def caption(plan: Plan) -> str:
    """How to read it."""
    return (
        "Each square is a tile with its GPU, seen from above; each small grid is a step. A line is a circuit from "
        "the dot in the sender's tile to the arrow in the receiver's, through the switches of the tiles between, "
        "coloured by its wavelength. Lines of one colour side by side run in waveguides of their own."
    )


def draw(plan: Plan, shown: list[Panel]) -> Figure:
    """One grid a panel."""
    rows, columns = plan.fabric.machine.dimensions
    down, across = balanced_rows(len(shown), 4 if columns <= 2 else 2 if columns <= 5 else 1)
    wide = (WIDTH - 0.1) / across
    pitch = min((wide - 2 * _MARGIN) / columns, 0.8)
    wide = min(wide, columns * pitch + 1.0)
    tall = _TITLE + rows * pitch + _MARGIN
    height = HEAD + down * tall
    colours = colours_of(plan, shown)
    note = f"from the dot to the arrow · thick: what node {FOLLOWED} sends"
    figure, axes = sheet(plan, shown, colours, height, note)
    for number, panel in enumerate(shown):
        row, column = divmod(number, across)
        left, top = 0.05 + column * wide + _MARGIN, height - HEAD - row * tall
        headline(axes, panel, left, top - 0.15)
        _tiles(axes, _numbers(plan), columns, pitch, left, top - _TITLE)
        _light(axes, panel, columns, pitch, (left, top - _TITLE), colours)
    return figure


def _numbers(plan: Plan) -> list[int]:
    """Node on each tile."""
    grid = plan.fabric.machine.cell_grid()
    return [int(node) for node in grid.cells.ravel()]


def _tiles(axes: Axes, numbers: list[int], columns: int, pitch: float, left: float, top: float) -> None:
    from matplotlib.patches import Rectangle

    side = 0.66 * pitch
    for tile, node in enumerate(numbers):
        x, y = left + (tile % columns + 0.5) * pitch, top - (tile // columns + 0.5) * pitch
        corner = (x - side / 2, y - side / 2)
        axes.add_patch(Rectangle(corner, side, side, facecolor=BAND, edgecolor=MUTED, linewidth=0.5, zorder=0.5))
        style: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 7.5, "color": INK}
        axes.text(corner[0] + 0.01, corner[1] + side + 0.03, str(node), **style)  # beside all lanes


def _light(
    axes: Axes, panel: Panel, columns: int, pitch: float, corner: tuple[float, float], colours: dict[int, str]
) -> None:
    circuits, lines = panel.circuits, strands(panel.circuits)
    runs = [straight_runs(circuits.path(int(c)).tolist()) for c in lines.circuit]
    lanes = free_lanes(runs)
    most = max((lane for each in lanes for lane in each), default=0)
    gap = min(0.08, 0.29 / (most + 1)) * pitch
    pen = Pen()
    for i, circuit in enumerate(lines.circuit.tolist()):
        look = Look(colours[int(lines.wavelength[i])], float(lines.weight[i]), int(circuits.src[circuit]) == FOLLOWED)
        points = [(corner[0] + x, corner[1] + y) for x, y in corners(runs[i], lanes[i], columns, pitch, gap)]
        pen.line(look, points)
        pen.mark(look, points[0], "o", 3.4)
        pen.mark(look, points[-1], "><v^"[runs[i][-1][0] % 4], 4.4)
    pen.draw(axes)


def straight_runs(path: list[int]) -> list[list[int]]:
    """A path cut where it turns.

    >>> straight_runs([0, 4, 10])
    [[0, 4], [10]]
    """
    runs: list[list[int]] = []
    for hop in path:
        if runs and runs[-1][-1] % 4 == hop % 4:
            runs[-1].append(hop)
        else:
            runs.append([hop])
    return runs


def free_lanes(runs: list[list[list[int]]]) -> list[list[int]]:
    """A lane for each straight run, the first that is free on all its edges; long runs first, to lie inside."""
    taken: dict[int, set[int]] = {}
    lanes = [[0] * len(each) for each in runs]
    order = sorted(
        ((i, j) for i, each in enumerate(runs) for j in range(len(each))), key=lambda ij: -len(runs[ij[0]][ij[1]])
    )
    for i, j in order:
        busy = set().union(*(taken.get(hop, set()) for hop in runs[i][j]))
        lane = next(k for k in range(len(busy) + 1) if k not in busy)
        lanes[i][j] = lane
        for hop in runs[i][j]:
            taken.setdefault(hop, set()).add(lane)
    return lanes


def corners(
    runs: list[list[int]], lanes: list[int], columns: int, pitch: float, gap: float
) -> list[tuple[float, float]]:
    """Points of a circuit from the upper left corner of the grid on; every direction keeps to its right.

    Args:
        runs: straight runs of its path.
        lanes: one for each run.
        columns: of the grid [count].
        pitch: from one tile to the next [inches].
        gap: between lanes [inches].
    Returns: x to the right and y up, of each end and turn [inches].
    """
    points: list[tuple[float, float]] = []
    for k, (run, lane) in enumerate(zip(runs, lanes, strict=True)):
        right, up = _STEP[run[0] % 4]
        aside = gap * (lane + 0.6)
        first, last = (_centre(hop // 4, columns, pitch) for hop in (run[0], run[-1]))
        last = (last[0] + right * pitch, last[1] + up * pitch)
        (x0, y0), (x1, y1) = ((x + up * aside, y - right * aside) for x, y in (first, last))
        inward = 0.12 * pitch
        if k == 0:
            points.append((x0 + right * inward, y0 + up * inward))
        else:  # turn where the two runs cross
            points[-1] = (x0, points[-1][1]) if right == 0 else (points[-1][0], y0)
        points.append((x1 - right * inward, y1 - up * inward))
    return points


def _centre(tile: int, columns: int, pitch: float) -> tuple[float, float]:
    return (tile % columns + 0.5) * pitch, -(tile // columns + 0.5) * pitch
