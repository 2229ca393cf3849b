"""Closed form: the steps one after the other, the rounds of a step one after the other, each as long as its slowest part.

    round    reconfiguration (if charged) + latency of the longest path + the longest transfer
             + control messages
    step     its rounds + adding up what arrived

A transfer takes its bytes over the sum of its circuits' rates; on packet fabrics the busiest shared link decides. Steps of a
class cost the same and are computed once.

Source: the alpha-beta model of all five papers; RAMP section 7.4 for head-to-head, head-to-tail and compute time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.errors import BoundError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Timeline
from opticcl.simulate.assumptions import Assumptions, as_dict
from opticcl.simulate.bounds import lower_bound_s
from opticcl.simulate.parts import Standing, control_s, summed_chunks

__all__ = ["Profile", "closed_form", "profile"]

_ROUNDING = 1e-9  # relative; sums of many equal steps may end that far below the bound


@dataclass(frozen=True, slots=True)
class Profile:
    """What the time of a plan is made of, for any message size: one row a class of steps, all its steps together.

    Args:
        plan: what was looked at.
        assumed: and under which assumptions.
        num_rounds: int64 (classes,).
        reconfiguration_s, latency_s, control_s: float64 (classes,) [s].
        summed_chunks: chunks that the memory of the busiest rank moves, float64 (classes,).
        round_class: class of each round of a class's first step, int64 (rounds,).
        slowest: what the slowest transfer of each round puts on one wavelength [chunks], or, on a packet fabric, what the
            busiest link takes [s a byte of chunk], float64 (rounds,).
    """

    plan: CircuitPlan
    assumed: Assumptions
    num_rounds: np.ndarray
    reconfiguration_s: np.ndarray
    latency_s: np.ndarray
    control_s: np.ndarray
    summed_chunks: np.ndarray
    round_class: np.ndarray
    slowest: np.ndarray

    def timeline(self, size_bytes: int) -> Timeline:
        """Time for a message of `size_bytes` on every rank.

        Raises: BoundError: the time is below the alpha-beta lower bound.
        """
        schedule, fabric = self.plan.schedule, self.plan.fabric
        classes = schedule.step_classes()
        chunk_bytes = size_bytes / schedule.collective.num_chunks
        one_step = np.bincount(self.round_class, self._transfer_s(chunk_bytes), minlength=len(classes))
        timeline = Timeline(
            classes,
            self.num_rounds,
            self.reconfiguration_s,
            self.latency_s,
            one_step * [len(steps) for steps in classes],
            self.summed_chunks * chunk_bytes / self.assumed.memory_bytes_per_s,
            self.control_s,
            lower_bound_s=lower_bound_s(schedule.collective, fabric, size_bytes),
            assumptions=as_dict(self.assumed),
        )
        if timeline.total_s < timeline.lower_bound_s * (1 - _ROUNDING):
            raise BoundError(
                f"{schedule.name} on {fabric.name}: {timeline.total_s:.6g} s is below the lower bound of "
                f"{timeline.lower_bound_s:.6g} s; please report this with the command that you ran"
            )
        return timeline

    def _transfer_s(self, chunk_bytes: float) -> np.ndarray:
        fabric = self.plan.fabric
        if fabric.is_packet_switched:
            return self.slowest * chunk_bytes
        if fabric.slot_s:
            return np.ceil(self.slowest * chunk_bytes / fabric.slot_payload_bytes) * fabric.slot_s
        return self.slowest * chunk_bytes * 8 / fabric.rate_bits_per_s


def closed_form(plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> Timeline:
    """Time of a plan for a message of `size_bytes` on every rank.

    Raises: BoundError: the time is below the alpha-beta lower bound.
    """
    return profile(plan, assumed).timeline(size_bytes)


def profile(plan: CircuitPlan, assumed: Assumptions) -> Profile:
    """Look at every class of steps once; the times for any size follow without looking again."""
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    num_rounds = np.zeros(len(classes), np.int64)
    reconfiguration, latency, control, summed = np.zeros((4, len(classes)))
    round_class: list[int] = []
    slowest: list[float] = []
    seen: tuple[tuple[Circuits, ...], IntArray, list[tuple[float, float]]] | None = None
    standing = Standing(assumed, fabric.reconfiguration_s)
    for c, steps in enumerate(classes):
        transfers, rounds, repeats = schedule.step(steps.start), plan.rounds(steps.start), len(steps)
        num_rounds[c] = len(rounds) * repeats
        reconfiguration[c] = standing.charge(rounds, repeats)
        amount = transfers.size_chunks()
        if not (
            seen and _same(seen[0], rounds) and np.array_equal(seen[1], amount)
        ):  # a turning point repeats its circuits
            seen = (rounds, amount, [(_latency(fabric, c), _slowest(fabric, amount, c)) for c in rounds])
        latency[c] = sum(wait for wait, _ in seen[2]) * repeats
        summed[c] = summed_chunks(transfers, assumed) * repeats
        if assumed.control == "charged":
            control[c] = sum(control_s(fabric, transfers, circuits) for circuits in rounds) * repeats
        round_class += [c] * len(rounds)
        slowest += [most for _, most in seen[2]]
    return Profile(
        plan,
        assumed,
        num_rounds,
        reconfiguration,
        latency,
        control,
        summed,
        np.array(round_class, int),
        np.array(slowest),
    )


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
