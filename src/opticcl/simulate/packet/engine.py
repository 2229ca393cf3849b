"""Packet level: every transfer is divided into cells that wait for the links of their path; shows the queues of a plan.

    packets    a cell takes bytes / rate to be sent over a link, then the link's latency; cells that need one link wait in
               the order of their arrival
    circuits   cells have their wavelengths to themselves, one behind the other: latency + bytes / rate, whole slots where
               there are slots, as at flow level; nothing waits

The paced transport evaluates a schedule: nothing is lost, and a node sends as fast as its link takes cells. The windowed
transport shows what a transport protocol adds. Modes are those of the flow engine, options those of `PacketOptions`.

Time is whole femtoseconds (picoseconds where a plan takes more than 1.2 hours); nothing is random but `shuffled`. Events of
one time are ordered by the numbers of their links, on each the end of a sending before an arrival, and then by transfers in
the order of their senders.

Source: Kermani and Kleinrock 1979 (virtual cut-through); Karol, Hluchyj and Morgan 1987 (queues at inputs and outputs).
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, ProgressCallback
from opticcl.ir.programme import Programme
from opticcl.simulate.engines import SimulationResult, register_engine
from opticcl.simulate.guards import refuse_below_bound
from opticcl.simulate.options import PacketOptions
from opticcl.simulate.traffic import Recorder

__all__ = ["run_packet"]


def make_programme(
    plan: CircuitPlan, size_bytes: int, assumed: Assumptions, options: PacketOptions, /, *, progress: ProgressCallback
) -> Programme:
    """Times of a plan on circuits, which are those of the flow engine.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called after every class of steps.
    """
    from opticcl.simulate.flow.rounds import flow_programme  # Numba takes long to import

    return flow_programme(plan, size_bytes, assumed, options, "packet", progress)


@register_engine("packet", options=PacketOptions, records="queues", programme=make_programme)
def run_packet(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: PacketOptions,
    /,
    *,
    progress: ProgressCallback,
    record: bool,
) -> SimulationResult:
    """Simulate a plan cell by cell.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called during the simulation and after every class of steps.
        record: whether to record what links carry, how long cells queue for them, and when transfers run.
    Returns: a timeline with the rows of the flow engine's.
    Raises: ParameterError: more events than allowed, or a deadlock of cells that wait for each other's buffers.
        UnsupportedError: asynchronously, a transfer on several routes. BoundError: the time is below the lower bound.
    """
    recorder = Recorder(plan.fabric) if record else None
    if plan.fabric.is_packet_switched:
        from opticcl.simulate.packet._rounds import simulate_cells  # Numba takes long to import

        timeline = simulate_cells(plan, size_bytes, assumed, options, progress, recorder)
    else:
        from opticcl.simulate.flow.rounds import simulate_flows

        timeline = simulate_flows(plan, size_bytes, assumed, options, "packet", progress, recorder)
    refuse_below_bound(plan, timeline, "packet")
    about = {**timeline.assumptions, **_record(options)}
    return SimulationResult(replace(timeline, assumptions=about), recorder.traffic() if recorder else None)


def _record(options: PacketOptions) -> dict[str, Any]:
    """The options that had an effect, for the timeline."""
    values = asdict(options)
    del values["mode"], values["max_events"]
    if options.transport == "windowed":
        values["window"] = options.window_cells
    if options.order == "shuffled":
        values["seed"] = options.random_seed
    return {
        name: round(value) if name.endswith("_bytes") else value for name, value in values.items() if value is not None
    }
