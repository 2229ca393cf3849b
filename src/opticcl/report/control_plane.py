"""Output of `opticcl control`: the control plane of a fabric, and the protocol of ODDL simulated, explored and executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.columns import Column, FittedTable
from opticcl.report.kit.result import Result
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.ir.fabric import ControlPlane
    from opticcl.operations.oddl_control.simulation import Channel, ControlRun
    from opticcl.operations.oddl_control.state_space import Exploration
    from opticcl.plans.plan import Plan

__all__ = ["ControlReport", "ProcessesReport", "SimulatedControl", "waits_table"]

_SAME_S = 1e-12


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
        Column("exchanges", [*map(_range, starts, ends), "all"], justify="left"),
        Column("steps", [*(_range(step[a], step[b]) for a, b in zip(starts, ends, strict=True)), ""], justify="left"),
        Column("longest wait", [format_seconds(value) for value in longest]),
        Column("mean wait", [format_seconds(value) for value in mean]),
        Column(title, [format_seconds(value) for value in equation]),
    ]
    note = (
        f"{run.messages:,} messages ({run.repeated:,} repeated, {run.lost:,} lost); all nodes are done after "
        f"{format_seconds(run.total_s)}"
    )
    return FittedTable(columns, note, has_total=True)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


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
    """

    plan: Plan
    plane: ControlPlane
    control_s: float
    simulated: SimulatedControl | None = None
    explored: Exploration | None = None
    processes: ProcessesReport | None = None
    channel: Channel | None = None
    exchange: int = 0

    @property
    def ok(self) -> bool:
        """Whether no state violates the protocol and the processes computed the right sums."""
        return (self.explored is None or self.explored.ok) and (self.processes is None or self.processes.exact)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl control --json` prints them."""
        found: dict[str, Any] = {**self.plane.record(), "control_s": self.control_s}
        if self.simulated is not None:
            found |= self.simulated.record()
        if self.explored is not None:
            found["explored"] = self.explored.record()
        if self.processes is not None:
            found["processes"] = self.processes.record()
        return found

    def blocks(self) -> list[FittedTable | str]:
        """Lines and tables, in the order in which they are printed."""
        plane = self.plane
        source = f" ({plane.source.partition(':')[0]})" if plane.once_a_job_s else ""
        found: list[FittedTable | str] = [
            str(self.plan),
            f"once per job  {plane.once_a_job}, {format_seconds(plane.once_a_job_s)}{source}",
            f"for rounds    {plane.every_round}, {format_seconds(self.control_s)} in all",
        ]
        if self.simulated is not None:
            found += ["", self.simulated.table()]
        if self.explored is not None:
            states = f"{self.explored.states:,} states, {self.explored.transitions:,} transitions"
            found.append(f"explored: {states}, {self.explored.problem or 'no violation'}")
            found += [f"  {event}" for event in self.explored.trace]
        if self.processes is not None:
            found.append(str(self.processes))
        return found

    @property
    def label(self) -> str:
        """The picture in words."""
        from opticcl.report.control import control_label

        return control_label(self.plan, self.exchange)

    def figure(self) -> Figure:
        """Control messages of one exchange."""
        from opticcl.report.control import control_figure

        return control_figure(self.plan, self.exchange, self.channel)
