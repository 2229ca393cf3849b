"""The light of a small plan, step by step, as a picture that a person can follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from opticcl.errors import ParameterError
from opticcl.plan import Plan
from opticcl.report import _grid, _nodes, _ring
from opticcl.report._panels import Panel, panels
from opticcl.report.captions import ABOUT_ALGORITHM, ABOUT_FABRIC
from opticcl.report.svg import to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["light_caption", "light_figure", "light_picture"]


class _Layout(NamedTuple):
    draw: Callable[[Plan, list[Panel]], Figure]
    caption: Callable[[Plan], str]


def _layout(plan: Plan) -> _Layout:
    for special in (_ring, _grid):
        if special.fits(plan):
            return _Layout(special.draw, special.caption)
    return _Layout(_nodes.draw, _nodes.caption)


def light_figure(plan: Plan, steps: Iterable[int] | None = None) -> Figure:
    """The figure of `light_picture`; make and save it inside `svg.drawing_style()`."""
    shown, _ = panels(plan, steps)
    if not shown:
        raise ParameterError(
            f"light: {plan.schedule.name} on {plan.fabric.num_nodes} node(s) sends nothing, there is no light"
        )
    return _layout(plan).draw(plan, shown)


def light_picture(plan: Plan, steps: Iterable[int] | None = None, name: str | None = None) -> str:
    """The circuits of each step and round as SVG, coloured by wavelength.

    Args:
        steps: which; None: the first of each run of equal steps.
        name: begins the ids of the SVG; None: the fabric's name.
    Raises: ParameterError: nothing is sent.
    """
    chosen = None if steps is None else list(steps)
    return to_svg(lambda: light_figure(plan, chosen), name or f"light-{plan.fabric.name}", light_caption(plan))


def light_caption(plan: Plan) -> str:
    """What the picture shows, in plain words."""
    c, name = plan.schedule.collective, plan.schedule.name
    steps = f"{plan.schedule.num_steps} steps"
    what = f"{c.name} among {c.num_ranks} nodes of {plan.fabric.name} by {plan.algorithm}, in {steps}."
    about = (ABOUT_FABRIC.get(plan.fabric.name, ""), ABOUT_ALGORITHM.get(name, ""))
    return " ".join(filter(None, (what, _layout(plan).caption(plan), *about)))
