"""Drawing of circuits: lines of one style are drawn as one collection, which keeps pictures small."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FOLLOWED", "Look", "Pen"]

FOLLOWED = 0
"""Node whose circuits are drawn thick, so that the eye can follow them."""

Point = tuple[float, float]


class Look(NamedTuple):
    """Style of a line.

    Args:
        colour: of its wavelength.
        weight: thickness, 1 for a single wavelength.
        followed: whether it is drawn thick and on top.
    """

    colour: str
    weight: float
    followed: bool


class Pen:
    """Collects lines and marks; `draw` adds them to the axes."""

    def __init__(self) -> None:
        self._lines: dict[Look, list[tuple[list[Point], bool]]] = defaultdict(list)
        self._marks: dict[tuple[Look, str, float], list[Point]] = defaultdict(list)

    def line(self, look: Look, points: Sequence[Point], *, curved: bool = False) -> None:
        """Add a line.

        Args:
            look: its style.
            points: that it passes [inches].
            curved: a Bezier curve from the first of four points to the last, controlled by the middle two.
        """
        self._lines[look].append((list(points), curved))

    def mark(self, look: Look, point: Point, shape: str, size: float) -> None:
        """Add a mark.

        Args:
            look: its style.
            point: its place [inches].
            shape: one of matplotlib's markers.
            size: of the mark [points].
        """
        self._marks[look, shape, size].append(point)

    def draw(self, axes: Axes) -> None:
        """Draw all lines and marks, those of the followed node on top."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        for look, lines in self._lines.items():
            corners = [point for points, _ in lines for point in points]
            codes = [
                Path.MOVETO if i == 0 else Path.CURVE4 if curved else Path.LINETO
                for points, curved in lines
                for i in range(len(points))
            ]
            path = PathPatch(
                Path(corners, codes),
                facecolor="none",
                edgecolor=look.colour,
                linewidth=1.1 * look.weight + (1.2 if look.followed else 0.0),
                alpha=1.0 if look.followed else 0.75,
                zorder=_height(look),
                joinstyle="round",
                capstyle="butt",
            )
            axes.add_artist(path)  # `add_patch` would measure every curve for limits, which the sheet has fixed
        for (look, shape, size), points in self._marks.items():
            x, y = zip(*points, strict=True)
            marks = Line2D(
                x,
                y,
                linestyle="none",
                marker=shape,
                color=look.colour,
                markersize=size,
                markeredgewidth=0,
                zorder=_height(look) + 0.5,
            )
            axes.add_artist(marks)


def _height(look: Look) -> float:
    return 4.0 if look.followed else 3.0
