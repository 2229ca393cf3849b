"""Closed form: the steps one after the other, the rounds of a step one after the other, each as long as its slowest part.

    round    reconfiguration (if charged) + latency of the longest path + the longest transfer
    step     its rounds + adding up what arrived + control messages

A transfer takes its bytes over the sum of its circuits' rates; on packet fabrics the busiest shared link decides. Steps of a
class cost the same and are computed once.

Source: the alpha-beta model of all five papers; RAMP section 7.4 for head-to-head, head-to-tail and compute time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.errors import BoundError
from opticcl.ir import CircuitPlan, Circuits, Fabric, Op, Timeline, Transfers
from opticcl.simulate.assumptions import Assumptions, as_dict
from opticcl.simulate.bounds import lower_bound_s

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
    standing = _Standing(assumed, fabric.reconfiguration_s)
    for c, steps in enumerate(classes):
        transfers, rounds, repeats = schedule.step(steps.start), plan.rounds(steps.start), len(steps)
        num_rounds[c] = len(rounds) * repeats
        reconfiguration[c] = standing.charge(rounds, repeats)
        latency[c] = sum(_latency(fabric, circuits) for circuits in rounds) * repeats
        summed[c] = _summed_chunks(transfers, assumed) * repeats
        if assumed.control == "charged" and fabric.control_s is not None and len(transfers):
            control[c] = fabric.control_s(transfers.src, transfers.dst) * repeats
        round_class += [c] * len(rounds)
        slowest += [_slowest(fabric, transfers, circuits) for circuits in rounds]
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


def _latency(fabric: Fabric, circuits: Circuits) -> float:
    """Of the longest path [s]."""
    if fabric.hop_latency_s is None or not len(circuits.hops):
        return fabric.latency_s
    of_circuit = np.bincount(circuits.hop_owner(), fabric.hop_latency_s(circuits.hops), minlength=len(circuits))
    return fabric.latency_s + float(of_circuit.max())


def _slowest(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> float:
    """Most chunks on one wavelength, or on a packet fabric seconds a byte of chunk on the busiest link."""
    if fabric.is_packet_switched:
        return _busiest_link(fabric, transfers, circuits)
    wavelengths = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
    lit = wavelengths > 0
    return float((transfers.chunk_n[lit] / wavelengths[lit]).max(initial=0))


def _busiest_link(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> float:
    shares = np.bincount(circuits.transfer, minlength=len(transfers))
    chunks = transfers.chunk_n[circuits.transfer] / shares[circuits.transfer]
    slowest = 0.0
    for usage in fabric.usage(circuits):
        if usage.resource.shared:
            carried = np.bincount(usage.index, chunks if usage.circuit is None else chunks[usage.circuit])
            slowest = max(slowest, float(carried.max(initial=0)) * 8 / usage.resource.capacity)
    return slowest


def _summed_chunks(transfers: Transfers, assumed: Assumptions) -> float:
    """Chunks that memory moves to add up what arrived, on the rank that adds most."""
    adds = np.flatnonzero(transfers.op == Op.REDUCE)
    if assumed.compute == "none" or not len(adds):
        return 0.0
    dst, lo, n = (column[adds].astype(np.int64) for column in (transfers.dst, transfers.chunk_lo, transfers.chunk_n))
    arrived = np.bincount(dst, n)
    if assumed.compute == "chain":
        return 3 * float(arrived.max())
    # fused: read all arrivals and the own chunk, write the sum: each chunk counted twice however many arrive for it
    order = np.argsort(dst * (int(lo.max()) + 1) + lo, kind="stable")
    dst, lo, end = dst[order], lo[order], (lo + n)[order]
    return float((arrived + 2 * np.bincount(dst, _newly_covered(dst, lo, end), minlength=len(arrived))).max())


def _newly_covered(dst: np.ndarray, lo: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Chunks of each range that no earlier range of the same rank covers; rows sorted by (dst, lo)."""
    top = int(end.max()) + 1
    reached = np.maximum.accumulate(dst * top + end) - dst * top  # a new rank starts above all before it
    before = np.where(np.r_[False, dst[1:] == dst[:-1]], np.r_[0, reached[:-1]], 0)
    return np.maximum(end - np.maximum(lo, before), 0)


class _Standing:
    """Which circuits stand, to charge a reconfiguration where they change."""

    def __init__(self, assumed: Assumptions, reconfiguration_s: float) -> None:
        self._every = assumed.reconfiguration_charge == "every_step"
        self._free = assumed.initial == "warm"
        self._cost = reconfiguration_s
        self._keys: np.ndarray | None = None

    def charge(self, rounds: tuple[Circuits, ...], repeats: int) -> float:
        """Reconfiguration time of `repeats` equal steps of these rounds [s]."""
        if not self._cost or not rounds:
            return 0.0
        if self._every:
            return self._cost * len(rounds) * repeats
        first = sum(map(self._changed, rounds))
        again = sum(map(self._changed, rounds)) if repeats > 1 else 0
        return self._cost * (first + again * (repeats - 1))

    def _changed(self, circuits: Circuits) -> bool:
        keys = _keys(circuits)
        if self._keys is None and self._free:
            self._keys = keys
            return False
        stands = self._keys is not None and (
            np.array_equal(keys, self._keys) or bool(np.isin(keys, self._keys, assume_unique=True).all())
        )
        if not stands:
            self._keys = keys
        return not stands


def _keys(circuits: Circuits) -> np.ndarray:
    """One sortable record for each circuit: nodes, port and wavelengths."""
    columns = (circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n)
    rows = np.stack([np.asarray(c, np.int32) for c in columns], axis=1)
    return np.sort(np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel())
