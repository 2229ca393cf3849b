"""Device level: each circuit starts as soon as its data is summed, its resources are free and its devices are set.

Nothing that stands is charged: a device whose setting a circuit needs is not changed, and devices are set while data is
awaited (assumption `prepare=early`). Circuits of a plan are placed one after the other, in its order (list scheduling); where
the asynchronous order of the flow engine ends sooner, that is taken. Packet fabrics have nothing to set: their times are those
of the flow engine without barriers. Of large plans with a long run of equal steps, few steps and one circuit of each kind are
followed, with the same result (`opticcl.simulate.device.long_runs`).

Source: the laws of `opticcl.verify.time.programme`; Graham 1966 (list scheduling).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticcl.assumptions import Assumptions
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, ProgressCallback, Timeline
from opticcl.ir.limits import limit
from opticcl.ir.programme import Programme
from opticcl.simulate.engines import SimulationResult, register_engine
from opticcl.simulate.guards import EventLimit, refuse_below_bound
from opticcl.simulate.options import DeviceOptions, FlowOptions
from opticcl.simulate.traffic import Recorder

if TYPE_CHECKING:
    from opticcl.simulate.device.list_times import ListTimes

__all__ = ["run_device", "timeline_of_long_run"]

LARGE_CHUNKS = limit("engine.LARGE_CHUNKS")
LARGE_RANKS = limit("engine.LARGE_RANKS")


def make_programme(
    plan: CircuitPlan, size_bytes: int, assumed: Assumptions, options: DeviceOptions, /, *, progress: ProgressCallback
) -> Programme:
    """Times of a plan by its devices.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called after every class of steps.
    """
    times = _schedule(plan, size_bytes, assumed, options, progress)
    return times.programme(plan, size_bytes, "device", assumed)


@register_engine("device", options=DeviceOptions, programme=make_programme)
def run_device(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: DeviceOptions,
    /,
    *,
    progress: ProgressCallback,
    record: bool,
) -> SimulationResult:
    """Simulate a plan by its devices.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called after every class of steps.
        record: whether to record when transfers run.
    Returns: a timeline whose rows hold what each class of steps contributes to the critical path; the rows add up.
    Raises: UnsupportedError: a fabric that is set and does not name its devices; a transfer on several routes. ParameterError:
        more events than allowed. BoundError: the time is below the lower bound.
    """
    if plan.fabric.is_packet_switched:
        from opticcl.simulate.flow.engine import run_flow

        on_links = FlowOptions(mode="asynchronous", max_events=options.max_events)
        return run_flow(plan, size_bytes, assumed, on_links, progress=progress, record=record)
    recorder = Recorder(plan.fabric) if record else None
    timeline = None if record else timeline_of_long_run(plan, size_bytes, assumed)
    if timeline is None:
        times = _schedule(plan, size_bytes, assumed, options, progress)
        timeline = times.timeline(plan, size_bytes, assumed)
        refuse_below_bound(plan, timeline, "device")
        if recorder is not None:
            times.record(recorder, plan.schedule.step_classes())
    return SimulationResult(timeline, recorder.traffic() if recorder else None)


def timeline_of_long_run(plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> Timeline | None:
    """The timeline by few steps and one circuit of each kind, where a plan is large; None where that is not possible.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
    Raises: BoundError: the time is below the lower bound.
    """
    collective = plan.schedule.collective
    if collective.num_ranks * collective.num_chunks < LARGE_CHUNKS and collective.num_ranks < LARGE_RANKS:
        return None
    if plan.schedule.member is not None:  # several groups at once
        return None
    from opticcl.simulate.device.long_runs import has_long_run, long_run_timeline

    try:
        timeline = long_run_timeline(plan, size_bytes, assumed) if has_long_run(plan) else None
    except UnsupportedError:
        return None
    if timeline:
        refuse_below_bound(plan, timeline, "device")
    return timeline


def _schedule(
    plan: CircuitPlan, size_bytes: int, assumed: Assumptions, options: DeviceOptions, progress: ProgressCallback
) -> ListTimes:
    """The better of the order of the plan, with all waits for devices, and the asynchronous times.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called after every class of steps.
    """
    from opticcl.simulate.device.list_schedule import list_schedule  # Numba takes long to import
    from opticcl.simulate.device.list_times import asynchronous, by_device

    if plan.fabric.reconfiguration_s and not plan.fabric.devices:
        raise UnsupportedError(
            f"device: {plan.fabric.name} names no devices, so that its settings cannot be followed; try --engine flow"
        )
    candidates = [
        list_schedule(plan, size_bytes, assumed, waits, EventLimit("device", options.max_events, 2), progress)
        for waits in (by_device(assumed), asynchronous(plan.fabric, assumed))
    ]
    return min(candidates, key=lambda times: times.total_s)
