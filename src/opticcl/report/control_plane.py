"""Output of `opticcl machine control`: the control plane of a fabric; ODDL's simulated, explored, executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from opticcl.circuits.oddl import RoutingTable, routing_table
from opticcl.errors import ParameterError
from opticcl.operations.oddl_control.protocol import MessageKind
from opticcl.operations.oddl_control.script import scripts
from opticcl.operations.oddl_control.simulation import Channel, ControlRun, simulate
from opticcl.report.kit.colours import INK, MUTED, PART_COLOURS
from opticcl.report.kit.columns import Column, FittedTable
from opticcl.report.kit.drawing import axes_at, name_rows, new_figure, write_scale
from opticcl.report.kit.result import Result
from opticcl.report.kit.words import run_of
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.ir.fabric import ControlPlane
    from opticcl.operations.oddl_control.state_space import Exploration
    from opticcl.plans.plan import Plan

__all__ = ["ControlReport", "ProcessesReport", "SimulatedControl", "control_figure", "control_label"]

_SAME_S = 1e-12
MOST_NODES = 8
_KINDS = {
    MessageKind.COMPLETION: ("previous completion", "#66ccee"),
    MessageKind.READY: ("transceiver ready", "#228833"),
}
_WORK = {"tune": ("retuning", PART_COLOURS["reconfiguration"]), "payload": ("payload", PART_COLOURS["transfer"])}
_LOST: dict[str, Any] = {"marker": "x", "color": MUTED, "markersize": 4, "linestyle": "none"}


def settings_table(routing: RoutingTable, num_nodes: int) -> FittedTable:
    """Wavelengths from each sender, a row, to each receiver, a column, in the form of ODDL's table 1.

    Args:
        routing: the setting of the switches.
        num_nodes: of the machine [count].
    """
    cells = [[""] * num_nodes for _ in range(num_nodes)]
    for src, dst, _, first, count in zip(*(column.tolist() for column in routing), strict=True):
        cells[dst][src] = run_of(first, first + count - 1)
    columns = [Column(str(dst), cells[dst]) for dst in range(num_nodes)]
    senders = Column("sender", [str(src) for src in range(num_nodes)], justify="left")
    return FittedTable([senders, *columns], "wavelengths, from 0, that lead to the receiver of each column")


def waits_table(run: ControlRun, equation_s: Sequence[float], title: str) -> FittedTable:
    """One row a run of exchanges with equal waits, and one for all of them.

    Args:
        run: the simulated protocol.
        equation_s: time of each exchange by equation 1 of the paper [s].
        title: heading of that column.
    """
    step = run.step.tolist()
    waits = list(zip(run.control_s.tolist(), run.mean_control_s.tolist(), equation_s, strict=True))
    starts = [
        i
        for i in range(len(waits))
        if i == 0 or any(abs(a - b) >= _SAME_S for a, b in zip(waits[i - 1], waits[i], strict=True))
    ]
    ends = [after - 1 for after in [*starts[1:], len(waits)]][: len(starts)]
    longest, mean, equation = (
        [*(waits[i][column] for i in starts), sum(wait[column] for wait in waits)] for column in range(3)
    )
    columns = [
        Column("exchanges", [*map(run_of, starts, ends), "all"], justify="left"),
        Column("steps", [*(run_of(step[a], step[b]) for a, b in zip(starts, ends, strict=True)), ""], justify="left"),
        Column("longest wait", [format_seconds(value) for value in longest]),
        Column("mean wait", [format_seconds(value) for value in mean]),
        Column(title, [format_seconds(value) for value in equation]),
    ]
    note = (
        f"{run.messages:,} messages ({run.repeated:,} repeated, {run.lost:,} lost); all nodes are done after "
        f"{format_seconds(run.total_s)}"
    )
    return FittedTable(columns, note, has_total=True)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedControl:
    """The protocol in simulated time, beside equation 1 of the paper.

    Args:
        run: the simulated protocol.
        equation_s: time of each exchange by equation 1 [s].
        hidden: share of the control time that equation 1 hides behind computing, 0 to 1.
    """

    run: ControlRun
    equation_s: tuple[float, ...]
    hidden: float

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.run.record(), "equation_1_s": list(self.equation_s)}

    def table(self) -> FittedTable:
        """Waits of all exchanges."""
        return waits_table(self.run, self.equation_s, f"{self.hidden:.0%} hidden" if self.hidden else "equation 1")


@dataclass(frozen=True, slots=True)
class ProcessesReport:
    """The protocol in one process a node.

    Args:
        nodes: processes [count].
        elements: integers of each rank [count].
        exact: whether every result is NumPy's sum.
        messages: control messages that were sent [count].
        repeated: messages that were sent again [count].
        lost: messages that were dropped on purpose [count].
        seconds: duration [s].
    """

    nodes: int
    elements: int
    exact: bool
    messages: int
    repeated: int
    lost: int
    seconds: float

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        sum_is = "exactly" if self.exact else "NOT"
        return (
            f"processes: {self.nodes} nodes, {self.elements:,} integers each, {sum_is} NumPy's sum; "
            f"{self.messages:,} messages ({self.repeated:,} repeated, {self.lost:,} lost) in {self.seconds:.2f} s"
        )


@dataclass(frozen=True, slots=True, eq=False)
class ControlReport(Result):
    """The control plane of a plan.

    Args:
        plan: whose control plane it is.
        plane: actions once per job and before rounds.
        control_s: control time in the timeline of the plan [s].
        simulated: the protocol in simulated time; None: not simulated.
        explored: all states of the protocol; None: not explored.
        processes: the protocol in real processes; None: not executed.
        channel: faults of the control network in the picture.
        exchange: that the picture shows.
        shows_setting: whether it has the setting of the switches for the job.
    """

    plan: Plan
    plane: ControlPlane
    control_s: float
    simulated: SimulatedControl | None = None
    explored: Exploration | None = None
    processes: ProcessesReport | None = None
    channel: Channel | None = None
    exchange: int = 0
    shows_setting: bool = False

    @property
    def ok(self) -> bool:
        """Whether no state violates the protocol and the processes computed the right sums."""
        return (self.explored is None or self.explored.ok) and (self.processes is None or self.processes.exact)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl machine control --json` prints them."""
        values: dict[str, Any] = {**self.plane.record(), "control_s": self.control_s}
        if self.simulated is not None:
            values |= self.simulated.record()
        if self.shows_setting:
            setting = routing_table(self.plan)
            values["routing_table"] = {name: column.tolist() for name, column in setting._asdict().items()}
        if self.explored is not None:
            values["explored"] = self.explored.record()
        if self.processes is not None:
            values["processes"] = self.processes.record()
        return values

    @property
    def headline(self) -> str:
        """How long control takes, and whether the protocol is right where that was asked."""
        text = f"Control messages take {format_seconds(self.control_s)} of the plan on {self.plan.fabric.name}"
        if self.simulated is not None and self.channel is not None and self.channel.loss:
            taken_s = format_seconds(float(self.simulated.run.mean_control_s.sum()))
            text += f"; where {self.channel.loss:.0%} of them are lost, nodes wait {taken_s} in the mean"
        if self.explored is not None:
            text += f"; {self.explored.problem or 'no order of messages violates the protocol'}"
        return f"{text}."

    def blocks(self) -> list[FittedTable | str]:
        """Lines and tables, in the order in which they are printed."""
        plane = self.plane
        source = f" ({plane.source.partition(':')[0]})" if plane.once_a_job_s else ""
        parts: list[FittedTable | str] = [
            str(self.plan),
            f"once per job  {plane.once_a_job}, {format_seconds(plane.once_a_job_s)}{source}",
            f"for rounds    {plane.every_round}, {format_seconds(self.control_s)} in all",
        ]
        if self.shows_setting:
            parts += ["", settings_table(routing_table(self.plan), self.plan.fabric.num_machine_nodes)]
        if self.simulated is not None:
            parts += ["", self.simulated.table()]
        if self.explored is not None:
            states = f"{self.explored.states:,} states, {self.explored.transitions:,} transitions"
            parts.append(f"explored: {states}, {self.explored.problem or 'no violation'}")
            parts += [f"  {event}" for event in self.explored.trace]
        if self.processes is not None:
            parts.append(str(self.processes))
        return parts

    @property
    def label(self) -> str:
        """The picture in words."""
        return control_label(self.plan, self.exchange)

    def figure(self) -> Figure:
        """Control messages of one exchange."""
        return control_figure(self.plan, self.exchange, self.channel)


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
