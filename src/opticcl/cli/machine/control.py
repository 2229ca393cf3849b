"""opticcl machine control"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._output import PICTURE, RECORD
from opticcl.cli._request import FabricRequest, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import Result

if TYPE_CHECKING:
    from opticcl.operations.oddl_control.simulation import Channel
    from opticcl.operations.oddl_control.state_space import Exploration
    from opticcl.plans.plan import Plan
    from opticcl.report.control_plane import ControlReport, ProcessesReport, SimulatedControl

MOST_EXPLORED = 4
"""Largest machine whose states are all visited [nodes]."""

MOST_SHOWN = 64
"""Largest machine whose switch settings are shown as a table of senders and receivers [nodes]."""

PROCESS_SLOWDOWN = 1000
"""Message delays between processes, relative to those between switches."""

MAX_PROCESS_DELAY_S = 0.05

MAX_ELEMENTS = 1 << 17
"""Integers of each rank in real processes [count]."""


@dataclass(frozen=True, kw_only=True)
class ControlRequest(FabricRequest):
    """What `opticcl machine control` is asked: values of its options."""

    OPTIONS = "fabric nodes collective algorithm optics ignore_light size job loss duplicate jitter seed * json"

    loss: float = option("--loss", default=0.0, help="Share of control messages that are lost, such as 0.2.")
    duplicate: float = option("--duplicate", default=0.0, help="Share of control messages that arrive twice.")
    jitter: str = option(
        "--jitter",
        metavar="<time>",
        default="0s",
        help="Largest extra delay of a message, such as 20us; with --processes a thousand times this.",
    )
    from_rest: bool = option(
        "--from-rest",
        default=False,
        help="No collective ran before: the first step does not wait for the end of another.",
    )
    memory: str | None = option(
        "--memory",
        metavar="<rate>",
        default=None,
        help="Memory bandwidth for reductions, such as 1.5TB/s; default: reductions take no time.",
    )
    overlap: float = option("--overlap", default=1.0, help="Share of the reductions that overlaps control, 0 to 1.")
    exchange: int | None = option(
        "--exchange", default=None, help="Number of the exchange that the picture shows; default: the first."
    )
    explore: bool = option(
        "--explore", default=False, help="Visit every state of the protocol, on at most 4 nodes with a faulty network."
    )
    table: bool = option(
        "--table",
        default=False,
        help=f"How the switches are set for the job: the wavelength from each sender to each receiver, of at most {MOST_SHOWN} "
        "nodes; with --json of any number.",
    )
    processes: bool = option(
        "--processes", default=False, help="Run the protocol over UDP, one process per node, on random integers."
    )
    timeout: str = option(
        "--timeout", metavar="<time>", default="10s", help="Time after which a process ends with an error."
    )
    out: tuple[Path, ...] = out_option(PICTURE, RECORD)

    def channel(self) -> Channel:
        """Faults of the control network.

        Raises: ParameterError, UnitError: wrong values.
        """
        from opticcl.operations.oddl_control.simulation import Channel
        from opticcl.units import quantity

        jitter_s = quantity(self.jitter, "s", "--jitter")
        return Channel(loss=self.loss, duplicate=self.duplicate, jitter=jitter_s, seed=self.seed)


def run(request: ControlRequest) -> Result:
    """Compute the control messages of a plan and their time. Exit code 1 if the protocol or a process fails."""
    drawn = bool(request.outputs.of(PICTURE))
    if request.exchange is not None and not drawn:
        raise ParameterError("control: --exchange selects what the picture shows; give --out FILE.svg too")
    return _report(request, request.compiled(), request.channel(), draws=drawn)


def _report(request: ControlRequest, plan: Plan, channel: Channel, *, draws: bool) -> ControlReport:
    """The control plane of a plan, simulated, explored and run as the options say.

    Args:
        request: of the call.
        plan: whose control plane it is.
        channel: faults of the control network.
        draws: whether a picture is drawn.
    """
    from opticcl.fabrics.oddl import Oddl
    from opticcl.report.control_plane import ControlReport
    from opticcl.units import quantity

    rate = None if request.memory is None else quantity(request.memory, "byte/s", "--memory")
    timeout_s = quantity(request.timeout, "s", "--timeout")
    report = ControlReport(
        plan,
        plan.fabric.control_plane(),
        plan.simulate().totals()["control_s"],
        channel=channel,
        exchange=request.exchange or 0,
    )
    if isinstance(plan.fabric.machine, Oddl):
        if request.explore and plan.fabric.num_nodes > MOST_EXPLORED:
            raise ParameterError(
                f"control: {plan.fabric.num_nodes} nodes have too many states to visit; try --nodes {MOST_EXPLORED}"
            )
        if request.table and not request.json and plan.fabric.num_machine_nodes > MOST_SHOWN:
            nodes = f"{plan.fabric.num_machine_nodes:,}"
            raise ParameterError(f"control: --table shows at most {MOST_SHOWN} nodes, not {nodes}; try --json")
        report = replace(report, shows_setting=request.table, simulated=_simulate(request, plan, channel, rate))
    elif any((draws, request.explore, request.table, request.processes, request.memory, request.from_rest)) or any(
        (channel.loss, channel.duplicate, channel.jitter)
    ):
        raise ParameterError(f"control: {plan.fabric.name} has no control units; only oddl has them")
    if request.explore:
        report = replace(report, explored=_explore(plan))
    if request.processes:
        report = replace(report, processes=_run_processes(request, plan, channel, timeout_s))
    return report


def _simulate(
    request: ControlRequest, plan: Plan, channel: Channel, memory_bytes_per_s: float | None
) -> SimulatedControl:
    """The protocol in simulated time, exchange by exchange, beside equation 1 of the paper.

    Args:
        request: of the call.
        plan: on ODDL.
        channel: faults of the control network.
        memory_bytes_per_s: memory rate of the device that sums; None: summing is free.
    """
    from opticcl.fabrics.oddl import Oddl
    from opticcl.operations.oddl_control.script import exchanges_of
    from opticcl.operations.oddl_control.simulation import simulate
    from opticcl.report.control_plane import SimulatedControl

    request.progress(f"simulate the control units of {plan.fabric.num_nodes:,} nodes")
    run = simulate(
        plan.circuits,
        plan.size_bytes,
        channel,
        follows=not request.from_rest,
        memory_bytes_per_s=memory_bytes_per_s,
        overlap=request.overlap,
    )
    equation_s = tuple(plan.fabric.control_s(src, dst) for src, dst in exchanges_of(plan.circuits))
    return SimulatedControl(run, equation_s, plan.fabric.machine_as(Oddl).control_hidden)


def _explore(plan: Plan) -> Exploration:
    """All states of the protocol on a network that loses, duplicates, delays and reorders messages."""
    from opticcl.operations.oddl_control.script import scripts
    from opticcl.operations.oddl_control.state_space import explore

    return explore(scripts(plan.circuits), "any")


def _run_processes(request: ControlRequest, plan: Plan, channel: Channel, timeout_s: float) -> ProcessesReport:
    """Real processes on random integers, compared with NumPy's sum.

    Args:
        request: of the call.
        plan: on ODDL.
        channel: faults of the control network.
        timeout_s: time until a process gives up [s].
    """
    import numpy as np

    from opticcl.operations.oddl_control.processes import Faults, run
    from opticcl.report.control_plane import ProcessesReport

    elements = min(max(1, plan.size_bytes // 8), MAX_ELEMENTS)
    arrays = np.random.default_rng(channel.seed).integers(-(10**9), 10**9, (plan.fabric.num_nodes, elements))
    delay_s = min(channel.jitter * PROCESS_SLOWDOWN, MAX_PROCESS_DELAY_S)
    faults = Faults(loss=channel.loss, duplicate=channel.duplicate, delay_s=delay_s, seed=channel.seed)
    request.progress(f"run {plan.fabric.num_nodes} processes")
    ran = run(plan.circuits, arrays, faults, timeout_s=timeout_s)
    exact = all(np.array_equal(result, arrays.sum(axis=0)) for result in ran.results)
    return ProcessesReport(
        nodes=len(ran.results),
        elements=elements,
        exact=exact,
        messages=ran.messages,
        repeated=ran.repeated,
        lost=ran.lost,
        seconds=ran.seconds,
    )
