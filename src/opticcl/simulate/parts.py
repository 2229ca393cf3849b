"""What all engines charge alike: setting circuits, agreeing on them, adding up what arrived."""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray, Op, Transfers
from opticcl.simulate.assumptions import Assumptions

__all__ = [
    "Standing",
    "charged_control_s",
    "control_s",
    "latencies",
    "lit",
    "newly_covered",
    "summed_chunks",
    "sums_s",
    "whole_ticks",
]


def control_s(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> float:
    """Messages that agree on the circuits of a round [s]."""
    if fabric.control_s is None or not len(circuits):
        return 0.0
    return fabric.control_s(transfers.src[circuits.transfer], transfers.dst[circuits.transfer])


def charged_control_s(fabric: Fabric, transfers: Transfers, circuits: Circuits, assumed: Assumptions) -> float:
    """The same, or nothing if control is not charged [s]."""
    return control_s(fabric, transfers, circuits) if assumed.control == "charged" else 0.0


def summed_chunks(transfers: Transfers, assumed: Assumptions) -> float:
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
    return float((arrived + 2 * np.bincount(dst, newly_covered(dst, lo, end), minlength=len(arrived))).max())


def newly_covered(dst: np.ndarray, lo: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Chunks of each range that no earlier range of the same rank covers; rows sorted by (dst, lo)."""
    top = int(end.max()) + 1
    reached = np.maximum.accumulate(dst * top + end) - dst * top  # a new rank starts above all before it
    before = np.where(np.r_[False, dst[1:] == dst[:-1]], np.r_[0, reached[:-1]], 0)
    return np.maximum(end - np.maximum(lo, before), 0)


def latencies(fabric: Fabric, circuits: Circuits) -> np.ndarray:
    """Of each circuit's path, float64 (circuits,) [s]."""
    if fabric.hop_latency_s is None or not len(circuits.hops):
        return np.full(len(circuits), fabric.latency_s)
    hops_s = np.bincount(circuits.hop_owner(), fabric.hop_latency_s(circuits.hops), minlength=len(circuits))
    return fabric.latency_s + hops_s


def lit(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, chunk_bytes: float
) -> tuple[IntArray, np.ndarray, np.ndarray]:
    """Transfers that have light in a round, their latencies and durations [s]."""
    wavelengths = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
    latency = np.zeros(len(transfers))
    np.maximum.at(latency, circuits.transfer, latencies(fabric, circuits))
    rows = np.flatnonzero(wavelengths)
    share_bytes = transfers.size_chunks()[rows] * chunk_bytes / wavelengths[rows]
    if fabric.slot_s:
        return rows, latency[rows], np.ceil(share_bytes / fabric.slot_payload_bytes) * fabric.slot_s
    return rows, latency[rows], share_bytes * 8 / fabric.rate_bits_per_s


def sums_s(transfers: Transfers, chunk_bytes: float, assumed: Assumptions) -> np.ndarray:
    """Time from the arrival of each transfer until its receiver has added up what this step brings it [s]."""
    seconds = np.zeros(len(transfers))
    adds = np.flatnonzero(transfers.op == Op.REDUCE)
    if assumed.compute == "none" or not len(adds):
        return seconds
    dst, lo, n = (column[adds].astype(np.int64) for column in (transfers.dst, transfers.chunk_lo, transfers.chunk_n))
    moved = np.bincount(dst, n)
    if assumed.compute == "chain":
        moved = 3 * moved
    else:
        order = np.argsort(dst * (int(lo.max()) + 1) + lo, kind="stable")
        new = newly_covered(dst[order], lo[order], (lo + n)[order])
        moved = moved + 2 * np.bincount(dst[order], new, minlength=len(moved))
    seconds[adds] = moved[dst] * chunk_bytes / assumed.memory_bytes_per_s
    return seconds


def whole_ticks(seconds: np.ndarray, tick_s: float) -> IntArray:
    """Times as whole ticks, rounded up, int64; a thousandth of a tick is rounding."""
    ticks: IntArray = np.ceil(seconds / tick_s - 1e-3).astype(np.int64)
    return ticks


class Standing:
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
