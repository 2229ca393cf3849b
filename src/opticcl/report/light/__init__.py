"""Circuits of a small plan, step by step, as a picture."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics import FABRICS
from opticcl.plans.plan import Plan, compile
from opticcl.report.kit.svg import to_svg
from opticcl.report.light import chords as _chords
from opticcl.report.light import grid as _grid
from opticcl.report.light import nodes as _nodes
from opticcl.report.light import ring as _ring
from opticcl.report.light.panels import Panel, panels
from opticcl.schedule import ALGORITHMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["light_caption", "light_figure", "light_picture", "small_instance", "thinned_picture"]


class _Layout(NamedTuple):
    draw: Callable[[Plan, list[Panel]], Figure]
    caption: Callable[[Plan], str]


def _layout(plan: Plan) -> _Layout:
    for special in (_ring, _grid, _chords):
        if special.fits(plan):
            return _Layout(special.draw, special.caption)
    return _Layout(_nodes.draw, _nodes.caption)


def small_instance(fabric_name: str) -> Plan:
    """An all-reduce of 1 MB on a small instance of that system, small enough to draw and follow.

    Raises: UnknownNameError: no such fabric. FabricError: a system without such an instance.
    """
    fabric, algorithm = FABRICS.get(fabric_name).example()
    return compile(fabric, "all_reduce", "1 MB", algorithm=algorithm)


def light_figure(plan: Plan, steps: Iterable[int] | None = None) -> Figure:
    """The figure of `light_picture`; draw and save it inside `svg.drawing_style()`."""
    shown, _ = panels(plan, steps)
    if not shown:
        raise ParameterError(
            f"light: {plan.schedule.name} on {plan.fabric.num_nodes} node(s) sends nothing, so there are no circuits"
        )
    return _layout(plan).draw(plan, shown)


def light_picture(plan: Plan, steps: Iterable[int] | None = None, name: str | None = None) -> str:
    """The circuits of each step and round as SVG, coloured by wavelength.

    Args:
        plan: to draw.
        steps: indices; None: the first of each run of equal steps.
        name: prefix of the ids in the SVG; None: from the name of the fabric.
    Raises: ParameterError: nothing is sent.
    """
    chosen = None if steps is None else list(steps)
    return to_svg(lambda: light_figure(plan, chosen), name or f"light-{plan.fabric.name}", light_caption(plan))


MOST_CIRCUITS = 96
"""Of a thinned picture [count]."""


def thinned_picture(plan: Plan, name: str | None = None) -> tuple[str, str]:
    """The first round of the first step of a plan as SVG, without most of the senders where it has many circuits; its caption.

    Args:
        plan: to draw.
        name: prefix of the ids in the SVG; None: from the name of the fabric.
    Raises: ParameterError: nothing is sent.
    """
    shown, _ = panels(plan, [0] if plan.schedule.num_steps else [])
    if not shown:
        raise ParameterError(f"light: {plan.schedule.name} on {plan.fabric.num_nodes} node(s) sends nothing")
    panel = shown[0]
    senders = np.unique(panel.circuits.src)
    every = min(len(senders), -(-len(panel.circuits) // MOST_CIRCUITS))
    kept = senders[::every]
    few = Panel(panel.title, panel.what, panel.circuits.take(np.isin(panel.circuits.src, kept)))
    which = f"the circuits of {len(kept)} of {len(senders)} senders" if every > 1 else "all circuits"
    n = plan.fabric.num_nodes
    caption = f"{plan.fabric.name}, {n:,} nodes, {plan.algorithm}: {which} of {panel.title}."
    return to_svg(lambda: _layout(plan).draw(plan, [few]), name or f"machine-{plan.fabric.name}", caption), caption


def light_caption(plan: Plan) -> str:
    """Text of the picture: plan, how to read it, and the system."""
    c = plan.schedule.collective
    steps = f"{plan.schedule.num_steps} steps"
    what = f"{c.name} among {c.num_ranks} nodes of {plan.fabric.name} by {plan.algorithm}, in {steps}."
    about = (plan.fabric.machine.about, _about_algorithm(plan.schedule.name))
    return " ".join(filter(None, (what, _layout(plan).caption(plan), *about)))


def _about_algorithm(name: str) -> str:
    """First line of the docstring of an algorithm; "" for a plan file of another program."""
    if name not in ALGORITHMS.names():
        return ""
    return (inspect.getdoc(ALGORITHMS.get(name).generate) or "").partition("\n")[0]
