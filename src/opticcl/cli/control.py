"""opticcl control"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from opticcl.cli._options import (
    AlgorithmOption,
    CollectiveOption,
    FabricOption,
    IgnoreLightOption,
    JobOption,
    JsonOption,
    NodesOption,
    OpticsOption,
    SeedOption,
    SizeOption,
    make_plan,
)
from opticcl.cli._output import PICTURE, RECORD, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.operations.oddl_control.simulation import Channel
    from opticcl.operations.oddl_control.state_space import Exploration
    from opticcl.plans.plan import Plan
    from opticcl.report.control_plane import ProcessesReport, SimulatedControl

MOST_EXPLORED = 4
"""Largest machine whose states are all visited [nodes]."""

PROCESS_SLOWDOWN = 1000
"""Message delays between processes, relative to those between switches."""

MAX_PROCESS_DELAY_S = 0.05

MAX_ELEMENTS = 1 << 17
"""Integers of each rank in real processes [count]."""


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: SizeOption = "100MB",
    job: JobOption = None,
    loss: Annotated[float, option("--loss", help="Share of control messages that are lost, such as 0.2.")] = 0.0,
    duplicate: Annotated[float, option("--duplicate", help="Share of control messages that arrive twice.")] = 0.0,
    jitter: Annotated[
        str,
        option(
            "--jitter", help="Largest extra delay of a message, such as 20us; with --processes a thousand times this."
        ),
    ] = "0s",
    seed: SeedOption = 0,
    from_rest: Annotated[
        bool,
        option("--from-rest", help="No collective ran before: the first step does not wait for the end of another."),
    ] = False,
    memory: Annotated[
        str | None,
        option("--memory", help="Memory bandwidth for reductions, such as 1.5TB/s; default: reductions take no time."),
    ] = None,
    overlap: Annotated[float, option("--overlap", help="Share of the reductions that overlaps control, 0 to 1.")] = 1.0,
    exchange: Annotated[
        int | None,
        option("--exchange", help="Number of the exchange that the picture shows; default: the first."),
    ] = None,
    explore: Annotated[
        bool,
        option("--explore", help="Visit every state of the protocol, on at most 4 nodes with a faulty network."),
    ] = False,
    processes: Annotated[
        bool, option("--processes", help="Run the protocol over UDP, one process per node, on random integers.")
    ] = False,
    timeout: Annotated[str, option("--timeout", help="Time after which a process ends with an error.")] = "10s",
    out: Annotated[list[Path], out_option(PICTURE, RECORD)] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """Control plane of a plan: messages and time. Exit code 1 if the protocol or a process fails."""
    from opticcl.report.control import control_figure, control_label
    from opticcl.report.control_plane import ControlReport

    outputs = Outputs(out, PICTURE, RECORD)
    draws = bool(outputs.of(PICTURE))
    if exchange is not None and not draws:
        raise ParameterError("control: --exchange selects what the picture shows; give --out FILE.svg too")
    plan = make_plan(
        fabric, nodes, None, collective, algorithm, size, job=job, optics=optics, ignore_light=ignore_light
    )
    from opticcl.fabrics.oddl import Oddl
    from opticcl.operations.oddl_control.simulation import Channel
    from opticcl.units import quantity

    channel = Channel(loss=loss, duplicate=duplicate, jitter=quantity(jitter, "s", "--jitter"), seed=seed)
    rate = None if memory is None else quantity(memory, "byte/s", "--memory")
    timeout_s = quantity(timeout, "s", "--timeout")
    report = ControlReport(plan, plan.fabric.control_plane(), plan.simulate().totals()["control_s"])
    if isinstance(plan.fabric.machine, Oddl):
        if explore and plan.fabric.num_nodes > MOST_EXPLORED:
            raise ParameterError(
                f"control: {plan.fabric.num_nodes} nodes have too many states to visit; try --nodes {MOST_EXPLORED}"
            )
        report = replace(report, simulated=_simulate(plan, channel, not from_rest, rate, overlap))
    elif any((draws, explore, processes, memory, from_rest, loss, duplicate, channel.jitter)):
        raise ParameterError(f"control: {plan.fabric.name} has no control units; only oddl has them")
    if explore:
        report = replace(report, explored=_explore(plan))
    if processes:
        report = replace(report, processes=_run_processes(plan, channel, timeout_s))
    number = exchange or 0
    outputs.write_pictures(lambda: control_figure(plan, number, channel), control_label(plan, number))
    outputs.write_record(report.record)
    if json:
        print_json(report.record())
    else:
        print_table(*report.blocks())
        outputs.print_lines()
    raise click.exceptions.Exit(0 if report.ok else 1)


def _simulate(
    plan: Plan, channel: Channel, follows: bool, memory_bytes_per_s: float | None, overlap: float
) -> SimulatedControl:
    """The protocol in simulated time, exchange by exchange, beside equation 1 of the paper.

    Args:
        plan: on ODDL.
        channel: faults of the control network.
        follows: whether a collective ran before.
        memory_bytes_per_s: memory rate of the device that sums; None: summing is free.
        overlap: share of summing that overlaps control.
    """
    from opticcl.fabrics.oddl import Oddl
    from opticcl.operations.oddl_control.script import exchanges_of
    from opticcl.operations.oddl_control.simulation import simulate
    from opticcl.report.control_plane import SimulatedControl

    with ProgressLine() as progress:
        progress(f"simulate the control units of {plan.fabric.num_nodes:,} nodes")
        run = simulate(
            plan.circuits,
            plan.size_bytes,
            channel,
            follows=follows,
            memory_bytes_per_s=memory_bytes_per_s,
            overlap=overlap,
        )
    equation_s = tuple(plan.fabric.control_s(src, dst) for src, dst in exchanges_of(plan.circuits))
    return SimulatedControl(run, equation_s, plan.fabric.machine_as(Oddl).control_hidden)


def _explore(plan: Plan) -> Exploration:
    """All states of the protocol on a network that loses, duplicates, delays and reorders messages."""
    from opticcl.operations.oddl_control.script import scripts
    from opticcl.operations.oddl_control.state_space import explore

    return explore(scripts(plan.circuits), "any")


def _run_processes(plan: Plan, channel: Channel, timeout_s: float) -> ProcessesReport:
    """Real processes on random integers, compared with NumPy's sum.

    Args:
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
    with ProgressLine() as progress:
        progress(f"run {plan.fabric.num_nodes} processes")
        found = run(plan.circuits, arrays, faults, timeout_s=timeout_s)
    exact = all(np.array_equal(result, arrays.sum(axis=0)) for result in found.results)
    return ProcessesReport(
        nodes=len(found.results),
        elements=elements,
        exact=exact,
        messages=found.messages,
        repeated=found.repeated,
        lost=found.lost,
        seconds=found.seconds,
    )
