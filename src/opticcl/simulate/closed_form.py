"""Closed form: the steps one after the other, the rounds of a step one after the other, each as long as its slowest part.

    round    reconfiguration (if charged) + latency of the longest path + the longest transfer
             + control messages
    step     its rounds + adding up what arrived

A transfer takes its bytes over the sum of its circuits' rates; on packet fabrics the busiest shared link decides. Steps of a
class cost the same and are computed once.

Source: the alpha-beta model of all five papers; RAMP section 7.4 for head-to-head, head-to-tail and compute time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from opticcl.errors import BoundError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Timeline
from opticcl.simulate.assumptions import Assumptions, as_dict
from opticcl.simulate.bounds import lower_bound_s
from opticcl.simulate.parts import Standing, charged_control_s, summed_chunks

__all__ = ["Cost", "Profile", "closed_form", "costs", "profile"]

_ROUNDING = 1e-9  # relative; sums of many equal steps may end that far below the bound


@dataclass(frozen=True, slots=True)
class Cost:
    """What the time of a run of equal steps is made of, for any message size; all its steps together.

    Args:
        num_steps: in the run [count].
        num_rounds: of all of them [count].
        reconfiguration_s, latency_s, control_s: [s].
        summed_chunks: chunks that the memory of the busiest rank moves.
        slowest: of each round of one step: what its slowest transfer puts on one wavelength [chunks], or, on a packet
            fabric, what the busiest link takes [s a byte of chunk].
    """

    num_steps: int
    num_rounds: int
    reconfiguration_s: float
    latency_s: float
    control_s: float
    summed_chunks: float
    slowest: tuple[float, ...]

    def total_s(self, fabric: Fabric, assumed: Assumptions, chunk_bytes: float) -> float:
        """Time of the run where a chunk has so many bytes [s]."""
        fixed = self.reconfiguration_s + self.latency_s + self.control_s
        sums = self.summed_chunks * chunk_bytes / assumed.memory_bytes_per_s
        return fixed + sums + self.num_steps * _rounds_s(fabric, self.slowest, chunk_bytes)


@dataclass(frozen=True, slots=True)
class Profile:
    """What the time of a plan is made of, for any message size.

    Args:
        plan: what was looked at.
        assumed: and under which assumptions.
        costs: one for each run of equal steps.
    """

    plan: CircuitPlan
    assumed: Assumptions
    costs: tuple[Cost, ...]

    def __repr__(self) -> str:
        return f"<Profile of {self.plan!r}>"

    def timeline(self, size_bytes: int) -> Timeline:
        """Time for a message of `size_bytes` on every rank.

        Raises: BoundError: the time is below the alpha-beta lower bound.
        """
        schedule, fabric = self.plan.schedule, self.plan.fabric
        chunk_bytes = size_bytes / schedule.collective.num_chunks

        def column(name: str) -> np.ndarray:
            return np.array([getattr(cost, name) for cost in self.costs], np.float64)

        moving = [cost.num_steps * _rounds_s(fabric, cost.slowest, chunk_bytes) for cost in self.costs]
        timeline = Timeline(
            schedule.step_classes(),
            np.array([cost.num_rounds for cost in self.costs], np.int64),
            column("reconfiguration_s"),
            column("latency_s"),
            np.array(moving, np.float64),
            column("summed_chunks") * chunk_bytes / self.assumed.memory_bytes_per_s,
            column("control_s"),
            lower_bound_s=lower_bound_s(schedule.collective, fabric, size_bytes),
            assumptions=as_dict(self.assumed),
        )
        if timeline.total_s < timeline.lower_bound_s * (1 - _ROUNDING):
            raise BoundError(
                f"{schedule.name} on {fabric.name}: {timeline.total_s:.6g} s is below the lower bound of "
                f"{timeline.lower_bound_s:.6g} s; please report this with the command that you ran"
            )
        return timeline


def closed_form(plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> Timeline:
    """Time of a plan for a message of `size_bytes` on every rank.

    Raises: BoundError: the time is below the alpha-beta lower bound.
    """
    return profile(plan, assumed).timeline(size_bytes)


def profile(plan: CircuitPlan, assumed: Assumptions) -> Profile:
    """Look at every run of equal steps once; the times for any size follow without looking again."""
    return Profile(plan, assumed, tuple(costs(plan, assumed)))


def costs(plan: CircuitPlan, assumed: Assumptions) -> Iterator[Cost]:
    """What each run of equal steps is made of, one after the other, as far as somebody asks."""
    schedule, fabric = plan.schedule, plan.fabric
    seen: tuple[tuple[Circuits, ...], IntArray, list[tuple[float, float]]] | None = None
    standing = Standing(assumed, fabric.reconfiguration_s)
    for steps in schedule.step_classes():
        transfers, rounds, repeats = schedule.step(steps.start), plan.rounds(steps.start), len(steps)
        amount = transfers.size_chunks()
        if not (
            seen and _same(seen[0], rounds) and np.array_equal(seen[1], amount)
        ):  # a turning point repeats its circuits
            seen = (rounds, amount, [(_latency(fabric, c), _slowest(fabric, amount, c)) for c in rounds])
        control = (charged_control_s(fabric, transfers, circuits, assumed) for circuits in rounds)
        yield Cost(
            num_steps=repeats,
            num_rounds=len(rounds) * repeats,
            reconfiguration_s=standing.charge(rounds, repeats),
            latency_s=sum(wait for wait, _ in seen[2]) * repeats,
            control_s=sum(control) * repeats,
            summed_chunks=summed_chunks(transfers, assumed) * repeats,
            slowest=tuple(most for _, most in seen[2]),
        )


def _rounds_s(fabric: Fabric, slowest: tuple[float, ...], chunk_bytes: float) -> float:
    """What the slowest transfers of rounds, as `Cost` tells them, take one after the other [s]."""
    if fabric.is_packet_switched:
        return sum(slowest) * chunk_bytes
    if fabric.slot_s:
        return sum(ceil(most * chunk_bytes / fabric.slot_payload_bytes) for most in slowest) * fabric.slot_s
    return sum(slowest) * chunk_bytes * 8 / fabric.rate_bits_per_s


def _same(rounds: tuple[Circuits, ...], others: tuple[Circuits, ...]) -> bool:
    """Whether these are the very same circuits, which rules that remember their last answer give again."""
    return len(rounds) == len(others) and all(one is other for one, other in zip(rounds, others, strict=True))


def _latency(fabric: Fabric, circuits: Circuits) -> float:
    """Of the longest path [s]."""
    if fabric.hop_latency_s is None or not len(circuits.hops):
        return fabric.latency_s
    of_circuit = np.bincount(circuits.hop_owner(), fabric.hop_latency_s(circuits.hops), minlength=len(circuits))
    return fabric.latency_s + float(of_circuit.max())


def _slowest(fabric: Fabric, amount: IntArray, circuits: Circuits) -> float:
    """Most chunks on one wavelength, or on a packet fabric seconds a byte of chunk on the busiest link.

    Args: amount: chunks that each transfer of the step carries.
    """
    if 4 * len(circuits) > len(amount):  # a large part of the step: count in a table of all transfers
        carried, row = np.arange(len(amount)), circuits.transfer
    else:
        carried, row = np.unique(circuits.transfer, return_inverse=True)
    if fabric.is_packet_switched:
        return _busiest_link(fabric, amount[circuits.transfer] / np.bincount(row)[row], circuits)
    wavelengths = np.bincount(row, circuits.wavelength_n, minlength=len(carried))
    lit = wavelengths > 0
    return float((amount[carried][lit] / wavelengths[lit]).max(initial=0))


def _busiest_link(fabric: Fabric, chunks: np.ndarray, circuits: Circuits) -> float:
    """Seconds a byte of chunk on the busiest shared link, where circuit i carries chunks[i]."""
    slowest = 0.0
    for usage in fabric.usage(circuits):
        if usage.resource.shared:
            carried = np.bincount(usage.index, chunks if usage.circuit is None else chunks[usage.circuit])
            slowest = max(slowest, float(carried.max(initial=0)) * 8 / usage.resource.capacity)
    return slowest
