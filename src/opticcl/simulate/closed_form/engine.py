"""Closed form: the steps one after the other, the rounds of a step one after the other, each as long as its slowest part.

    round    reconfiguration (if charged) + latency of the longest path + the longest transfer
             + control messages
    step     its rounds + adding up what arrived
    slots    light begins with a slot: after latencies, control and sums that end within one, it waits for the next

A transfer takes its bytes over the sum of its circuits' rates; on packet fabrics the busiest shared link decides. Identical
steps are evaluated once.

Source: the alpha-beta model of all five papers; RAMP section 7.4 for head-to-head, head-to-tail and compute time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, Fabric, ProgressCallback, Timeline
from opticcl.ir.programme import Programme
from opticcl.simulate.barrier_programme import programme_with_barriers
from opticcl.simulate.bounds import LowerBound, lower_bound
from opticcl.simulate.closed_form.facts import PlanFacts
from opticcl.simulate.engines import SimulationResult, register_engine
from opticcl.simulate.guards import refuse_below_bound
from opticcl.simulate.latency import in_line_on, path_latency, step_latency_s
from opticcl.simulate.options import ClosedFormOptions
from opticcl.simulate.parts import Reconfiguration, slot_wait_s

__all__ = ["Cost", "Profile", "costs", "profile", "rounds_s", "run_closed_form"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a run of identical steps as a function of the message size; all steps of the run together.

    Args:
        num_steps: in the run [count].
        num_rounds: of all of them [count].
        reconfiguration_s, latency_s, control_s: [s].
        summed_chunks: memory traffic of the sums on the busiest rank [chunks].
        slowest: for each round of one step, the load of one wavelength by the slowest transfer [chunks]; on a packet
            fabric the time of the busiest link [s for each byte of a chunk].
        slot_wait_s: waits for slots within the steps [s].
        last_latency_s: from the last bit of the last round of a step until its end [s].
        is_last: whether the run ends the plan.
    """

    num_steps: int
    num_rounds: int
    reconfiguration_s: float
    latency_s: float
    control_s: float
    summed_chunks: float
    slowest: tuple[float, ...]
    slot_wait_s: float = 0.0
    last_latency_s: float = 0.0
    is_last: bool = False

    def waits_s(self, fabric: Fabric, assumed: Assumptions, chunk_bytes: float) -> float:
        """Waits for slots within the run and, unless it ends the plan, behind its last step [s].

        Args:
            fabric: that the cost is for.
            assumed: time assumptions.
            chunk_bytes: size of a chunk [bytes].
        """
        if not fabric.slot_s or not self.num_steps:
            return 0.0
        sum_s = self.summed_chunks * chunk_bytes / assumed.memory_bytes_per_s / self.num_steps
        behind_s = slot_wait_s(fabric, self.last_latency_s + sum_s)
        return self.slot_wait_s + behind_s * (self.num_steps - self.is_last)

    def total_s(self, fabric: Fabric, assumed: Assumptions, chunk_bytes: float) -> float:
        """Time of the run [s].

        Args:
            fabric: that the cost is for.
            assumed: time assumptions.
            chunk_bytes: size of a chunk [bytes].
        """
        return self.still_s(fabric, assumed, chunk_bytes) + self.moving_s(fabric, chunk_bytes)

    def still_s(self, fabric: Fabric, assumed: Assumptions, chunk_bytes: float) -> float:
        """Time of the run in which no data moves [s].

        Args:
            fabric: that the cost is for.
            assumed: time assumptions.
            chunk_bytes: size of a chunk [bytes].
        """
        fixed = self.reconfiguration_s + self.latency_s + self.control_s
        if fabric.slot_s:
            fixed += self.waits_s(fabric, assumed, chunk_bytes)
        return fixed + self.summed_chunks * chunk_bytes / assumed.memory_bytes_per_s

    def moving_s(self, fabric: Fabric, chunk_bytes: float) -> float:
        """Time of the run in which data moves [s].

        Args:
            fabric: that the cost is for.
            chunk_bytes: size of a chunk [bytes].
        """
        return self.num_steps * rounds_s(fabric, self.slowest, chunk_bytes)


@dataclass(frozen=True, slots=True)
class Profile:
    """Cost of a plan as a function of the message size.

    Args:
        plan: schedule, fabric and circuits.
        assumed: time assumptions.
        costs: one for each run of identical steps.
    """

    plan: CircuitPlan
    assumed: Assumptions
    costs: tuple[Cost, ...]

    def __repr__(self) -> str:
        return f"<Profile of {self.plan!r}>"

    def timeline(self, size_bytes: int, *, bounded: bool = True) -> Timeline:
        """Time for a message of `size_bytes` on every rank.

        Args:
            size_bytes: message of every rank [bytes].
            bounded: whether it is compared with the lower bound, which takes most of the time; else its bound is 0.
        Raises: BoundError: the time is below the lower bound.
        """
        schedule, fabric = self.plan.schedule, self.plan.fabric
        chunk_bytes = size_bytes / schedule.collective.num_chunks

        def column(name: str) -> np.ndarray:
            return np.array([getattr(cost, name) for cost in self.costs], np.float64)

        bound = LowerBound(0.0, "not computed")
        if bounded:
            bound = lower_bound(schedule.collective, fabric, size_bytes, self.assumed, overlap=False)
        moving = [cost.num_steps * rounds_s(fabric, cost.slowest, chunk_bytes) for cost in self.costs]
        timeline = Timeline(
            schedule.step_classes(),
            np.array([cost.num_rounds for cost in self.costs], np.int64),
            column("reconfiguration_s"),
            column("latency_s") + [cost.waits_s(fabric, self.assumed, chunk_bytes) for cost in self.costs],
            np.array(moving, np.float64),
            column("summed_chunks") * chunk_bytes / self.assumed.memory_bytes_per_s,
            column("control_s"),
            lower_bound_s=bound.seconds,
            bound_by=bound.name,
            assumptions=self.assumed.record(),
        )
        refuse_below_bound(self.plan, timeline, "closed_form")
        if timeline.total_s < bound.seconds:  # by rounding
            return replace(timeline, lower_bound_s=timeline.total_s)
        return timeline


def make_programme(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: ClosedFormOptions,
    /,
    *,
    progress: ProgressCallback,
) -> Programme:
    """Programme of a plan by the closed form: all data of a round arrives when the round ends.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: none.
        progress: called after every class of steps.
    """
    return programme_with_barriers(plan, size_bytes, assumed, "closed_form", progress=progress, at_the_end=True)


@register_engine("closed_form", options=ClosedFormOptions, records="nothing", programme=make_programme)
def run_closed_form(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: ClosedFormOptions,
    /,
    *,
    progress: ProgressCallback,
    record: bool,
) -> SimulationResult:
    """Time of a plan by the closed form, which simulates no transfers and records no traffic.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: none.
        progress, record: not used.
    Raises: BoundError: the time is below the lower bound.
    """
    return SimulationResult(profile(plan, assumed).timeline(size_bytes))


def profile(plan: CircuitPlan, assumed: Assumptions, facts: PlanFacts | None = None) -> Profile:
    """Evaluate every run of identical steps once; the times for all message sizes follow from the result.

    Args:
        plan: schedule, fabric and circuits.
        assumed: time assumptions.
        facts: of the plan, where it is costed several times; or of the same plan at another node rate.
    """
    return Profile(plan, assumed, tuple(costs(facts or PlanFacts(plan), plan.fabric, assumed)))


def costs(facts: PlanFacts, fabric: Fabric, assumed: Assumptions) -> Iterator[Cost]:
    """Cost of each run of identical steps, computed one after the other on demand.

    Args:
        facts: of the plan.
        fabric: of the plan, or the same at another node rate.
        assumed: time assumptions.
    """
    schedule, faster = facts.plan.schedule, fabric.node_rate_bits_per_s / facts.plan.fabric.node_rate_bits_per_s
    settings, law = Reconfiguration(fabric, assumed), path_latency(facts.plan.fabric, assumed)
    in_line = in_line_on(fabric, assumed)
    try:
        for number, steps in enumerate(schedule.step_classes()):
            run, repeats = facts.of_run(number), len(steps)
            late, slowest = run.longest_s(law), run.slowest
            if fabric.is_packet_switched and faster != 1:  # times of links, of which all are faster
                slowest = tuple(each / faster for each in slowest)
            gaps = [law.message_gap_s * most for most in run.messages] if law.message_gap_s else [0.0] * len(late)
            control = run.control_s if assumed.control == "charged" else [0.0] * len(late)
            if run.routes is not None:  # packets: nothing is set
                runs = [(repeats, [(0.0, control[0])])]
            else:
                runs = settings.of_changes(facts.changes(number, assumed.configuration), repeats, control)
            setting_s, control_s = (sum(n * sum(one[at] for one in charged) for n, charged in runs) for at in (0, 1))
            before = [0.0, *(gap + (0.0 if in_line else seconds) for gap, seconds in zip(gaps, late, strict=True))]
            waits = sum(
                n * sum(slot_wait_s(fabric, seconds + sum(one)) for seconds, one in zip(before, charged, strict=False))
                for n, charged in runs
            )
            yield Cost(
                num_steps=repeats,
                num_rounds=len(late) * repeats,
                reconfiguration_s=setting_s,
                latency_s=step_latency_s(fabric, assumed, late, gaps) * repeats,
                control_s=control_s,
                summed_chunks=run.summed_chunks(assumed) * repeats,
                slowest=slowest,
                slot_wait_s=waits,
                last_latency_s=gaps[-1] + (max(late) if in_line else late[-1]) if late else 0.0,
                is_last=steps.stop == schedule.num_steps,
            )
    finally:  # also where a search ends early
        facts.release()


def rounds_s(fabric: Fabric, slowest: tuple[float, ...], chunk_bytes: float) -> float:
    """Time of the slowest transfers of rounds, one after the other [s].

    Args:
        fabric: that the cost is for.
        slowest: as in `Cost`.
        chunk_bytes: size of a chunk [bytes].
    """
    if fabric.is_packet_switched:
        return sum(slowest) * chunk_bytes
    if fabric.slot_s:
        return sum(ceil(most * chunk_bytes / fabric.slot_payload_bytes) for most in slowest) * fabric.slot_s
    return sum(slowest) * chunk_bytes * 8 / fabric.rate_bits_per_s
