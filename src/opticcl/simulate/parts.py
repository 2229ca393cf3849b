"""What all engines charge alike: setting circuits, agreeing on them, adding up what arrived."""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits, Fabric, Op, Transfers
from opticcl.simulate.assumptions import Assumptions

__all__ = ["Standing", "control_s", "newly_covered", "summed_chunks"]


def control_s(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> float:
    """Messages that agree on the circuits of a round [s]."""
    if fabric.control_s is None or not len(circuits):
        return 0.0
    return fabric.control_s(transfers.src[circuits.transfer], transfers.dst[circuits.transfer])


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
