"""Flow level: packets share links fairly, circuits have their wavelengths to themselves; every start and end at its exact
    time.

    packets    a flow waits for its path's latency, then gets its max-min fair share of every link on the way; shares
               change when a flow starts or ends, and only then
    circuits   a transfer has wavelengths x rate from the moment its circuits stand

Two modes decide when a transfer may start:

    barrier         when the whole step before has ended, as in the closed form
    asynchronous    when the chunks that it sends have arrived (and been summed) and its ports are free: on packet
                    fabrics a rank has one step's sends in flight at a time; on circuits every occupied resource is
                    passed on in the order of the plan, and a circuit that stands already is not set again

Asynchronously, receive buffers are unlimited: a receiver never keeps a sender waiting.

With a `tolerance`, an end that comes at most that much later than an event happens with it. Every transfer is then simulated to
all of its bytes but that part, so the result is the exact one for messages that are shorter by at most the tolerance, each by a
part of its own; the largest part is reported with the result as `left_out`.

Shares are those of SimGrid's exact model (no correction factors, no cross traffic, no window) as long as latencies are
equal: SimGrid weighs a flow by one over its latency, here all weigh the same. With a barrier, identical steps are simulated
once; in a large step equivalent flows (same bytes and latency, on equivalent links all the way) are found by colour
refinement and simulated as one, which is exact because max-min fairness gives them equal rates.

Source: Bertsekas and Gallager 1992, section 6.5.2 (max-min by progressive filling); Velho et al. 2013 (SimGrid's flow
    model).
"""

from __future__ import annotations

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, ProgressCallback
from opticcl.ir.programme import Programme
from opticcl.simulate.engines import SimulationResult, register_engine
from opticcl.simulate.guards import refuse_below_bound
from opticcl.simulate.options import FlowOptions
from opticcl.simulate.traffic import Recorder

__all__ = ["run_flow"]


def make_programme(
    plan: CircuitPlan, size_bytes: int, assumed: Assumptions, options: FlowOptions, /, *, progress: ProgressCallback
) -> Programme:
    """Times of a plan on circuits.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called after every class of steps.
    """
    from opticcl.simulate.flow.rounds import flow_programme  # Numba takes long to import

    return flow_programme(plan, size_bytes, assumed, options, "flow", progress)


@register_engine("flow", options=FlowOptions, programme=make_programme)
def run_flow(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: FlowOptions,
    /,
    *,
    progress: ProgressCallback,
    record: bool,
) -> SimulationResult:
    """Simulate a plan at flow level.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of this engine.
        progress: called during the simulation and after every class of steps.
        record: whether to record what links carry and when transfers run.
    Returns: a timeline whose rows are the classes of steps. Asynchronously a row holds what its steps contribute to the
        critical path, the chain of transfers that ends last; the rows add up to the total.
    Raises: ParameterError: more events than allowed. UnsupportedError: asynchronously, a transfer on several routes.
        BoundError: the time is below the lower bound.
    """
    from opticcl.simulate.flow.rounds import simulate_flows  # Numba takes long to import

    recorder = Recorder(plan.fabric) if record else None
    timeline = simulate_flows(plan, size_bytes, assumed, options, "flow", progress, recorder)
    refuse_below_bound(plan, timeline, "flow", options.tolerance)
    return SimulationResult(timeline, recorder.traffic() if recorder else None)
