"""Names at the right ends of lines, moved apart where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["End", "apart", "label_ends", "text_width"]

SIZE = 7.5  # of the letters [points]


@dataclass(frozen=True, slots=True)
class End:
    """Right end of a line.

    Args:
        name: text beside the end; may have several lines.
        x, y: of the end, in data coordinates.
        colour: of the line.
    """

    name: str
    x: float
    y: float
    colour: str


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write the names right of the axes, each with a leader to the end of its line; scales and limits must be set."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    tall = axes.get_position().height * figure.get_figheight() * 72  # points
    marks = axes.transAxes.inverted().transform(axes.transData.transform([(end.x, end.y) for end in ends]))
    most_lines = max(1 + end.name.count("\n") for end in ends)
    places = apart(marks[:, 1] * tall, gap=1.4 * SIZE * most_lines, top=tall) / tall
    for number, (end, mark, place) in enumerate(zip(ends, marks.tolist(), places.tolist(), strict=True)):
        leader = {"arrowstyle": "-", "color": end.colour, "linewidth": 1.1, "shrinkA": 1, "shrinkB": 1}
        style: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
        style["arrowprops"] = leader | {"relpos": (0, 0.5)}
        text = axes.annotate(end.name, tuple(mark), (1.03, place), va="center", fontsize=SIZE, **style)
        text.set_gid(f"end-{number}")
        if text.arrow_patch is not None:
            text.arrow_patch.set_gid(f"end-{number}")


def apart(wanted: Sequence[float] | np.ndarray, gap: float, top: float) -> np.ndarray:
    """Places nearest to the wanted ones that are at least `gap` apart, within 0 and `top` if possible.

    >>> apart([10.0, 11.0, 50.0], 5, 100).tolist()
    [8.0, 13.0, 50.0]

    Args:
        wanted: places before they are moved, float64 (n,).
        gap: least distance between two places.
        top: largest place.
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    pools: list[list[float]] = []  # least squares under an order: pool neighbours that are out of it
    for value in np.asarray(wanted)[order] - steps:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    level = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools])
    places = np.empty(len(order))
    places[order] = np.clip(level, 0, max(0.0, top - gap * (len(order) - 1))) + steps
    return places


def text_width(texts: Sequence[str], size: float = 8.0) -> float:
    """Of the longest line of the texts, about [inches]."""
    return max(len(line) for text in texts for line in text.split("\n")) * 0.6 * size / 72
