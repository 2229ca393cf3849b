"""Parts of the time that all engines charge identically: reconfiguration, control, latency, sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import TypeVar

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.ir import Circuits, Fabric, IntArray, Op, Transfers
from opticcl.simulate.latency import path_latency
from opticcl.simulate.standing import Standing

Counts = TypeVar("Counts", int, np.ndarray)

__all__ = [
    "Reconfiguration",
    "charged_control_s",
    "control_s",
    "latencies",
    "memory_traffic",
    "newly_covered",
    "slot_wait_s",
    "summed_chunks",
    "sums_s",
    "transfer_times",
]


def control_s(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> float:
    """Duration of the control exchange that sets up the circuits of a round [s].

    Args:
        fabric: with or without a control plane.
        transfers: of the step.
        circuits: of the round.
    """
    if not len(circuits):
        return 0.0
    if (circuits.transfer < 0).any():  # idle circuits are agreed on too
        return fabric.control_s(fabric.ranks_at(circuits.src), fabric.ranks_at(circuits.dst))
    return fabric.control_s(transfers.src[circuits.transfer], transfers.dst[circuits.transfer])


def charged_control_s(fabric: Fabric, transfers: Transfers, circuits: Circuits, assumed: Assumptions) -> float:
    """`control_s`, or 0 under control=none [s].

    Args:
        fabric: with or without a control plane.
        transfers: of the step.
        circuits: of the round.
        assumed: time assumptions.
    """
    return control_s(fabric, transfers, circuits) if assumed.control == "charged" else 0.0


def summed_chunks(transfers: Transfers, compute: str) -> float:
    """Memory traffic of the sums of a step, on the rank with the most of it [chunks].

    Args:
        transfers: of the step.
        compute: as in `Assumptions`.
    """
    return float(_memory_chunks(transfers, compute).max(initial=0))


def memory_traffic(compute: str, arrived: Counts, covered: Counts) -> Counts:
    """Memory traffic of sums [chunks].

    Args:
        compute: as in `Assumptions`.
        arrived: chunks that arrive to be added [chunks].
        covered: different ones among them [chunks].
    """
    if compute == "none":
        return 0 * arrived
    # fused: read all arrivals and the rank's own chunk, write the sum: two more for each chunk, however many arrive
    return 3 * arrived if compute == "chain" else arrived + 2 * covered


def sums_s(transfers: Transfers, chunk_bytes: float, assumed: Assumptions) -> np.ndarray:
    """Time from the arrival of each transfer until its receiver has summed all arrivals of the step.

    Args:
        transfers: of the step.
        chunk_bytes: size of a chunk [bytes].
        assumed: time assumptions.
    Returns: float64 (transfers,) [s]; 0 where nothing is added.
    """
    seconds = np.zeros(len(transfers))
    adds = np.flatnonzero(transfers.op & Op.REDUCE)
    if assumed.compute != "none" and len(adds):
        chunks = _memory_chunks(transfers, assumed.compute)[transfers.dst[adds]]
        seconds[adds] = chunks * chunk_bytes / assumed.memory_bytes_per_s
    return seconds


def _memory_chunks(transfers: Transfers, compute: str) -> np.ndarray:
    """Memory traffic of the sums of a step on each rank, up to the last that adds [chunks]."""
    adds = np.flatnonzero(transfers.op & Op.REDUCE)
    if compute == "none" or not len(adds):
        return np.zeros(0)
    dst, lo, n = _ranges(transfers if len(adds) == len(transfers) else transfers.take(adds))
    arrived = np.bincount(dst, n)
    if compute == "chain":
        return memory_traffic("chain", arrived, arrived)
    covered = arrived
    if np.bincount(dst).max() > 1:
        order = np.argsort(dst * (int(lo.max()) + 1) + lo, kind="stable")
        dst, lo, end = dst[order], lo[order], (lo + n)[order]
        covered = np.bincount(dst, newly_covered(dst, lo, end), minlength=len(arrived))
    return memory_traffic("fused", arrived, covered)


def _ranges(summed: Transfers) -> tuple[IntArray, IntArray, IntArray]:
    """Rank, first chunk and number of chunks of ranges, int64; where all transfers carry every k-th chunk, chunks have other
    numbers, by which those are neighbours."""
    apart = summed.chunk_step
    if apart is not None and len(np.unique(apart)) > 1:
        summed, _ = summed.ranges()
        apart = None
    dst, lo, n = (column.astype(np.int64) for column in (summed.dst, summed.chunk_lo, summed.chunk_n))
    if apart is not None and len(apart):
        k = int(apart[0])
        lo = lo % k * int((lo // k + n).max()) + lo // k
    return dst, lo, n


def newly_covered(dst: np.ndarray, lo: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Chunks of each range that no earlier range of the same rank covers.

    Args:
        dst: rank of each range; rows are sorted by (dst, lo).
        lo, end: first chunk and the one behind the last.
    Returns: int64 (ranges,).
    """
    top = int(end.max()) + 1
    reached = np.maximum.accumulate(dst * top + end) - dst * top  # a new rank starts above all before it
    before = np.where(np.r_[False, dst[1:] == dst[:-1]], np.r_[0, reached[:-1]], 0)
    return np.maximum(end - np.maximum(lo, before), 0)


def latencies(fabric: Fabric, circuits: Circuits, assumed: Assumptions) -> np.ndarray:
    """Latency of each circuit's path, float64 (circuits,) [s].

    Args:
        fabric: that the circuits are on.
        circuits: of a round.
        assumed: time assumptions.
    """
    return path_latency(fabric, assumed).of_circuits(circuits)


def slot_wait_s(fabric: Fabric, time_s: float) -> float:
    """From a time until the next slot begins, 0 on fabrics without slots [s].

    Args:
        fabric: with or without slots.
        time_s: since the beginning of a slot [s].
    """
    if not fabric.slot_s:
        return 0.0
    return max(0.0, ceil(time_s / fabric.slot_s * (1 - 1e-9)) * fabric.slot_s - time_s)


def transfer_times(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, chunk_bytes: float, assumed: Assumptions
) -> tuple[IntArray, np.ndarray, np.ndarray]:
    """Times of the transfers that have circuits in a round; each has its wavelengths to itself.

    Args:
        fabric: an optical fabric.
        transfers: of the step.
        circuits: of the round.
        chunk_bytes: size of a chunk [bytes].
        assumed: time assumptions.
    Returns: rows of the transfers (m,), their latencies float64 (m,) [s], and the durations of their data float64 (m,) [s].
    """
    circuits = circuits.carrying()
    wavelengths = np.bincount(circuits.transfer, fabric.wavelengths_carried(circuits), minlength=len(transfers))
    latency = np.zeros(len(transfers))
    law = path_latency(fabric, assumed)
    late = law.of_circuits(circuits) + law.gaps_s(transfers, circuits)
    np.maximum.at(latency, circuits.transfer, late)
    rows = np.flatnonzero(wavelengths)
    share_bytes = transfers.size_chunks()[rows] * chunk_bytes / wavelengths[rows]
    if fabric.slot_s:
        return rows, latency[rows], np.ceil(share_bytes / fabric.slot_payload_bytes) * fabric.slot_s
    return rows, latency[rows], share_bytes * 8 / fabric.rate_bits_per_s


class Reconfiguration:
    """Charges reconfigurations and control exchanges, where the circuits of consecutive rounds differ or on every round.

    Args:
        fabric: with its reconfiguration time.
        assumed: time assumptions.
    """

    def __init__(self, fabric: Fabric, assumed: Assumptions) -> None:
        self._every = assumed.reconfiguration_charge == "every_step"
        self._control_every = assumed.control_charge == "every_step"
        self._beside = assumed.control_order == "beside_setting"
        self._initially_set = assumed.initial == "warm"
        self._cost_s = fabric.reconfiguration_s
        self.standing = Standing(fabric, assumed.configuration)

    def of_round(self, circuits: Circuits, control_s: float = 0.0) -> tuple[float, float]:
        """Reconfiguration and control time of the next round, which waits until all of its circuits are set [s].

        Args:
            circuits: of the round.
            control_s: duration of its control exchange, `charged_control_s` [s].
        Returns: both; of an exchange beside the setting what is longer than the setting.
        """
        changes = self.standing.changes(circuits) if self.depends_on_changes(control_s) else True
        return self._charged(changes, control_s)

    def of_runs(
        self, rounds: tuple[Circuits, ...], repeats: int, control_s: Sequence[float] = ()
    ) -> list[tuple[int, list[tuple[float, float]]]]:
        """Times of each round of identical steps: of the first step, which sets its circuits, and of the others.

        Args:
            rounds: of each of the steps.
            repeats: number of the steps [count].
            control_s: duration of the control exchange of each round, `charged_control_s`; none: no exchanges [s].
        Returns: (steps, reconfiguration and control of each round [s]), in order; one entry where all steps are equal.
        """
        exchanges = control_s or [0.0] * len(rounds)

        def changes() -> list[bool | None]:
            return [
                self.standing.changes(circuits) if self.depends_on_changes(one) else True
                for circuits, one in zip(rounds, exchanges, strict=True)
            ]

        return self.of_changes(lambda again: changes(), repeats, exchanges)

    def of_changes(
        self, changes: Callable[[bool], Sequence[bool | None]], repeats: int, control_s: Sequence[float]
    ) -> list[tuple[int, list[tuple[float, float]]]]:
        """As `of_runs`, of rounds whose changes are known.

        Args:
            changes: whether each round of the first step (False) or of the next one (True) has circuits that do not stand
                yet, None for the first round of a plan; called only if a charge depends on it.
            repeats: number of the steps [count].
            control_s: duration of the control exchange of each round [s].
        """
        if not any(map(self.depends_on_changes, control_s)):
            return [(repeats, [self._charged(True, one) for one in control_s])]
        first = list(map(self._charged, changes(False), control_s))
        if repeats == 1:
            return [(1, first)]
        again = list(map(self._charged, changes(True), control_s))
        return [(repeats, first)] if again == first else [(1, first), (repeats - 1, again)]

    @property
    def on_change(self) -> bool:
        """Whether a reconfiguration is charged where circuits change, else always."""
        return not self._every

    def changes(self, circuits: Circuits) -> bool:
        """Whether the next round has circuits that do not stand yet; those of the first stand if the start is warm.

        Args: circuits: of the round.
        """
        changes = self.standing.changes(circuits)
        return not self._initially_set if changes is None else changes

    def depends_on_changes(self, control_s: float) -> bool:
        """Whether what a round is charged depends on what stands.

        Args: control_s: duration of its control exchange [s].
        """
        return bool(self._cost_s and not self._every) or bool(control_s and not self._control_every)

    def _charged(self, changes: bool | None, control_s: float) -> tuple[float, float]:
        """Reconfiguration and control time of a round [s].

        Args:
            changes: whether some of its circuits do not stand yet; None: it is the first round, cold or warm.
            control_s: duration of its control exchange [s].
        """
        if not self.depends_on_changes(control_s):
            changes = True
        elif changes is None:
            changes = not self._initially_set
        setting_s = self._cost_s * (self._every or changes)
        control_s *= self._control_every or changes
        return setting_s, max(0.0, control_s - setting_s) if self._beside else control_s
