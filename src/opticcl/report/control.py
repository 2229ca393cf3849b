"""Picture of ODDL's control messages in one exchange, between two payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticcl.errors import ParameterError
from opticcl.operations.oddl_control.protocol import MessageKind
from opticcl.operations.oddl_control.script import scripts
from opticcl.operations.oddl_control.simulation import Channel, ControlRun, simulate
from opticcl.report.kit.colours import INK, MUTED, PART_COLOURS
from opticcl.report.kit.drawing import axes_at, name_rows, new_figure, write_scale
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.plans.plan import Plan

__all__ = ["control_figure", "control_label"]

MOST_NODES = 8
_KINDS = {
    MessageKind.COMPLETION: ("previous completion", "#66ccee"),
    MessageKind.READY: ("transceiver ready", "#228833"),
}
_WORK = {"tune": ("retuning", PART_COLOURS["reconfiguration"]), "payload": ("payload", PART_COLOURS["transfer"])}
_LOST: dict[str, Any] = {"marker": "x", "color": MUTED, "markersize": 4, "linestyle": "none"}


def control_label(plan: Plan, exchange: int = 0) -> str:
    """The picture in words."""
    return f"Control messages of exchange {exchange} of {plan.schedule.name} on {plan.fabric.name}"


def control_figure(plan: Plan, exchange: int = 0, channel: Channel | None = None) -> Figure:
    """Messages, retuning and payloads of the nodes around one exchange.

    Args:
        plan: on ODDL.
        exchange: which; an exchange is a round of a step.
        channel: the control network; lost messages end in a cross.
    Raises: ParameterError: there is no such exchange.
    """
    watched = _watched(plan, exchange)
    run = simulate(plan.circuits, plan.size_bytes, channel, watch=frozenset(watched))
    row = {node: i for i, node in enumerate(watched)}
    begin, end = _window(run, exchange)
    figure = new_figure(1.1 + 0.42 * len(watched))
    axes = axes_at(figure, 0.8, 0.5, 9.05, 0.05 + 0.42 * len(watched))
    for bar in run.busy_intervals:
        if bar.node in row and bar.end_s > begin and bar.begin_s < end:
            lo, hi = max(bar.begin_s, begin), min(bar.end_s, end)
            axes.barh(
                row[bar.node], (hi - lo) * 1e6, left=lo * 1e6, height=0.34, color=_WORK[bar.activity][1], linewidth=0
            )
    _arrows(axes, run, row, begin, end)
    name_rows(axes, [f"node {node}" for node in watched])
    axes.set_xlim(begin * 1e6, end * 1e6)
    write_scale(axes, "x", "time since the job began", "{:g} us".format)
    _legend(figure, axes)
    waited, mean = (format_seconds(float(of[exchange])) for of in (run.control_s, run.mean_control_s))
    axes.set_title(
        f"exchange {exchange}, step {int(run.step[exchange])}: {waited} of control for the node that waits longest, "
        f"{mean} in the mean of all",
        loc="left",
        fontsize=8.5,
        color=INK,
        pad=20,
    )
    return figure


def _watched(plan: Plan, exchange: int) -> list[int]:
    """The first node, its partners in that exchange and the one before, and their partners; at most `MOST_NODES`.

    Args:
        plan: on ODDL.
        exchange: index of the exchange.
    """
    units = {unit.address: unit for unit in scripts(plan.circuits)}
    first = next(iter(units.values()))
    if not 0 <= exchange < len(first.exchanges):
        last = len(first.exchanges) - 1
        raise ParameterError(
            f"control: there is no exchange {exchange}; try 0 to {last}"
            if last >= 0
            else "control: one node alone exchanges nothing"
        )
    active = [u for u in units.values() if u.meets[exchange]]
    shown: list[int] = [active[0].address] if active else [first.address]
    for node in shown:  # grows while it is read
        for near in (exchange, exchange - 1):
            for place in units[node].meets[near] if near >= 0 else ():
                if units[node].peers[place] not in shown and len(shown) < MOST_NODES:
                    shown.append(units[node].peers[place])
    return sorted(shown)


def _window(run: ControlRun, exchange: int) -> tuple[float, float]:
    """From a little before the messages of an exchange to a little after the last payload has begun [s]."""
    tuning, payloads = (
        [b for b in run.busy_intervals if b.exchange == exchange and b.activity == kind] for kind in ("tune", "payload")
    )
    begins = [m.sent_s for m in run.message_log if m.exchange == exchange] + [b.begin_s for b in tuning]
    ends = [b.begin_s for b in payloads] + [b.end_s for b in tuning]
    lo, hi = min(begins, default=0.0), max(ends, default=1e-6)
    margin = 0.12 * (hi - lo) or 1e-6
    return max(0.0, lo - margin), hi + margin


def _arrows(axes: Axes, run: ControlRun, row: dict[int, int], begin: float, end: float) -> None:
    for t in run.message_log:
        if t.src not in row or t.dst not in row or t.sent_s > end or (t.arrived_s or t.sent_s) < begin:
            continue
        colour = _KINDS[t.kind][1]
        down = 0.17 if row[t.dst] > row[t.src] else -0.17
        tail = (t.sent_s * 1e6, row[t.src] + down)
        if t.arrived_s is None:
            middle = ((t.sent_s + 0.05 * (end - begin)) * 1e6, row[t.src] + 2.2 * down)
            axes.plot(*zip(tail, middle, strict=True), color=colour, linewidth=1.0)
            axes.plot(*middle, **_LOST)
            continue
        style = {
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.2,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 8,
        }
        arrow = axes.annotate("", (t.arrived_s * 1e6, row[t.dst] - down), tail, arrowprops=style, annotation_clip=False)
        assert arrow.arrow_patch is not None
        arrow.arrow_patch.set_clip_path(axes.patch)


def _legend(figure: Figure, axes: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown: list[Any] = [Patch(color=colour, label=label) for label, colour in _WORK.values()]
    shown += [Line2D([], [], color=colour, label=label) for label, colour in _KINDS.values()]
    if any(line.get_marker() == _LOST["marker"] for line in axes.lines):
        shown.append(Line2D([], [], label="lost message", **_LOST))
    box = (1.0, 1.0 + 0.06 / axes.get_position().height / figure.get_figheight())
    axes.legend(
        handles=shown,
        loc="lower right",
        bbox_to_anchor=box,
        ncols=len(shown),
        frameon=False,
        fontsize=7.5,
        borderaxespad=0,
    )
