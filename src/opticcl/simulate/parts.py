"""Parts of the time that all engines charge identically: reconfiguration, control, latency, sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.ir import Circuits, Fabric, IntArray, Op, Transfers
from opticcl.simulate.latency import path_latency

__all__ = [
    "Reconfiguration",
    "all_within",
    "charged_control_s",
    "control_s",
    "latencies",
    "newly_covered",
    "same_circuits",
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


def summed_chunks(transfers: Transfers, assumed: Assumptions) -> float:
    """Memory traffic of the sums of a step, on the rank with the most of it [chunks]."""
    return float(_memory_chunks(transfers, assumed).max(initial=0))


def sums_s(transfers: Transfers, chunk_bytes: float, assumed: Assumptions) -> np.ndarray:
    """Time from the arrival of each transfer until its receiver has summed all arrivals of the step.

    Args:
        transfers: of the step.
        chunk_bytes: size of a chunk [bytes].
        assumed: time assumptions.
    Returns: float64 (transfers,) [s]; 0 where nothing is added.
    """
    seconds = np.zeros(len(transfers))
    adds = np.flatnonzero(transfers.op == Op.REDUCE)
    if assumed.compute != "none" and len(adds):
        chunks = _memory_chunks(transfers, assumed)[transfers.dst[adds]]
        seconds[adds] = chunks * chunk_bytes / assumed.memory_bytes_per_s
    return seconds


def _memory_chunks(transfers: Transfers, assumed: Assumptions) -> np.ndarray:
    """Memory traffic of the sums of a step on each rank, up to the last that adds [chunks]."""
    adds = np.flatnonzero(transfers.op == Op.REDUCE)
    if assumed.compute == "none" or not len(adds):
        return np.zeros(0)
    dst, lo, n = (column[adds].astype(np.int64) for column in (transfers.dst, transfers.chunk_lo, transfers.chunk_n))
    arrived = np.bincount(dst, n)
    if assumed.compute == "chain":
        return 3 * arrived
    # fused: read all arrivals and the rank's own chunk, write the sum: two more for each chunk, however many arrive
    order = np.argsort(dst * (int(lo.max()) + 1) + lo, kind="stable")
    dst, lo, end = dst[order], lo[order], (lo + n)[order]
    covered = np.bincount(dst, newly_covered(dst, lo, end), minlength=len(arrived))
    total: np.ndarray = arrived + 2 * covered
    return total


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
    wavelengths = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
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
        self.standing = None
        self._fabric = fabric
        self._last_set: tuple[npt.NDArray[np.uint64] | None, Circuits | None] = (None, None)

    @property
    def standing(self) -> npt.NDArray[np.uint64] | None:
        """Sorted numbers of the circuits that stand, None before the first round."""
        return self._standing

    @standing.setter
    def standing(self, numbers: npt.NDArray[np.uint64] | None) -> None:
        self._standing = numbers
        self._standing_rounds: list[Circuits] = []  # objects whose circuits stand: the same again need no comparison

    def of_round(self, circuits: Circuits, control_s: float = 0.0) -> tuple[float, float]:
        """Reconfiguration and control time of the next round, which waits until all of its circuits are set [s].

        Args:
            circuits: of the round.
            control_s: duration of its control exchange, `charged_control_s` [s].
        Returns: both; of an exchange beside the setting what is longer than the setting.
        """
        changes = not self._depends_on_changes(control_s) or self._changes(circuits)
        setting_s = self._cost_s * (self._every or changes)
        control_s *= self._control_every or changes
        return setting_s, max(0.0, control_s - setting_s) if self._beside else control_s

    def of_steps(
        self, rounds: tuple[Circuits, ...], repeats: int, control_s: Sequence[float] = ()
    ) -> tuple[float, float]:
        """Times of identical steps, where a round waits until all of its circuits are set.

        Args:
            rounds: of each of the steps.
            repeats: number of the steps [count].
            control_s: duration of the control exchange of each round, `charged_control_s`; none: no exchanges [s].
        Returns: reconfiguration and control, of all steps together [s].
        """
        runs = self.of_runs(rounds, repeats, control_s)
        setting, control = (sum(count * sum(one[at] for one in charged) for count, charged in runs) for at in (0, 1))
        return setting, control

    def of_runs(
        self, rounds: tuple[Circuits, ...], repeats: int, control_s: Sequence[float] = ()
    ) -> list[tuple[int, list[tuple[float, float]]]]:
        """Times of each round of identical steps: of the first step, which sets its circuits, and of the others.

        Args:
            rounds: of each of the steps.
            repeats: number of the steps [count].
            control_s: as in `of_steps` [s].
        Returns: (steps, reconfiguration and control of each round [s]), in order; one entry where all steps are equal.
        """
        exchanges = control_s or [0.0] * len(rounds)
        first = [self.of_round(*one) for one in zip(rounds, exchanges, strict=True)]
        if repeats == 1 or not any(map(self._depends_on_changes, exchanges)):
            return [(repeats, first)]
        again = [self.of_round(*one) for one in zip(rounds, exchanges, strict=True)]
        return [(repeats, first)] if again == first else [(1, first), (repeats - 1, again)]

    def of_circuits(self, circuits: Circuits, control_s: float = 0.0) -> tuple[np.ndarray, npt.NDArray[np.bool_]]:
        """What each circuit of the next round is charged.

        Args:
            circuits: of the round.
            control_s: duration of its control exchange [s].
        Returns: reconfiguration time, float64 (circuits,) [s]; whether a control exchange is needed, bool (circuits,).
        """
        setting, every = np.full(len(circuits), self._cost_s), np.ones(len(circuits), bool)
        if not self._depends_on_changes(control_s):
            return setting, every
        numbers, owner = set_numbers(self._fabric, circuits)
        if self.standing is None:
            changed = np.full(len(circuits), not self._initially_set)
            self.standing = np.sort(numbers)
        else:
            new = ~np.isin(numbers, self.standing)
            changed = new if owner is None else np.bincount(owner, new, minlength=len(circuits)) > 0
            if changed.any():
                self.standing = self._with_others(np.sort(numbers), owner is not None)
        return setting if self._every else setting * changed, every if self._control_every else changed

    def _depends_on_changes(self, control_s: float) -> bool:
        """Whether what a round is charged depends on what stands."""
        return bool((self._cost_s and not self._every) or (control_s and not self._control_every))

    def _changes(self, circuits: Circuits) -> bool:
        """Whether some circuit of the next round does not stand yet."""
        if any(circuits is one for one in self._standing_rounds):
            return False
        unsorted, owner = set_numbers(self._fabric, circuits)
        numbers = np.sort(unsorted)
        if self.standing is None:
            self.standing, self._last_set = numbers, (numbers, circuits)
            self._standing_rounds.append(circuits)
            return not self._initially_set
        few = numbers[:: max(1, len(numbers) // 64)]  # these suffice in most cases
        stand = all(all_within(some, self.standing) for some in (few, numbers))
        changes = not stand and not self._devices_stand(circuits)
        if changes:
            numbers = self._with_others(numbers, owner is not None)
            self.standing, self._last_set = numbers, (numbers, circuits)
        self._standing_rounds = [*self._standing_rounds[-3:], circuits]
        return changes

    def _with_others(self, numbers: npt.NDArray[np.uint64], of_links: bool) -> npt.NDArray[np.uint64]:
        """What stands after a change: the circuits of the round; with links, also those whose ends it does not use.

        Args:
            numbers: of the round, sorted.
            of_links: whether they are numbers of links.
        """
        before = self.standing
        if not of_links or before is None:
            return numbers
        low = np.uint64(0xFFFFFFFF)
        kept = ~np.isin(before >> np.uint64(32), numbers >> np.uint64(32)) & ~np.isin(before & low, numbers & low)
        return np.union1d(before[kept], numbers)

    def _devices_stand(self, circuits: Circuits) -> bool:
        """Whether light of the same paths is divided into other circuits, for which nothing has to be set."""
        numbers, last = self._last_set
        if numbers is not self.standing or last is None or not self._fabric.devices:
            return False
        ends = np.sort(path_numbers(last))
        paths = path_numbers(circuits)
        few = paths[:: max(1, len(paths) // 64)]
        if not all(all_within(some, ends) for some in (few, paths)):
            return False
        wanted, found = (_settings_of(self._fabric, one) for one in (circuits, last))
        return all(_covered(*pair) for pair in zip(wanted, found, strict=True))


def all_within(some: IntArray, numbers: IntArray) -> bool:
    """Whether all of some numbers are among sorted ones."""
    if not len(numbers) or not len(some):
        return not len(some)
    return bool((numbers[np.minimum(np.searchsorted(numbers, some), len(numbers) - 1)] == some).all())


def _settings_of(fabric: Fabric, circuits: Circuits) -> tuple[tuple[bool, IntArray], ...]:
    """For each kind of device that changes: whether it has pools, and a number for each device and its setting."""
    kinds = {device.kind: device for device in fabric.devices}
    return tuple(
        (kinds[use.kind].pool > 1, (np.asarray(use.index, np.int64) << 24) + np.asarray(use.setting, np.int64))
        for use in fabric.settings(circuits)
        if not kinds[use.kind].once_per_job
    )


def _covered(wanted: tuple[bool, IntArray], found: tuple[bool, IntArray]) -> bool:
    """Whether all settings are found; in pools as often as they are wanted."""
    pooled, numbers = wanted
    each, times = np.unique(numbers, return_counts=True)
    known, count = np.unique(found[1], return_counts=True)
    if not all_within(each, known):
        return False
    return not pooled or bool((times <= count[np.searchsorted(known, each)]).all())


def set_numbers(fabric: Fabric, circuits: Circuits) -> tuple[npt.NDArray[np.uint64], IntArray | None]:
    """Numbers of what is set for circuits: of the circuits, or of the links that they lead over and share.

    Returns: numbers, uint64 (m,), and the circuit of each, int64 (m,), or None if row i is that of circuit i.
    """
    links = fabric.links_set(circuits)
    if links is None:
        return circuit_numbers(circuits), None
    return (links[0].astype(np.uint64) << np.uint64(32)) + links[1].astype(np.uint64), links[2]


def circuit_numbers(circuits: Circuits) -> npt.NDArray[np.uint64]:
    """A 64-bit number for nodes, port, wavelengths and path, since another path needs other devices set, uint64 (circuits,)."""
    return _mixed(path_hashes(circuits), *_ends(circuits), circuits.wavelength_lo, circuits.wavelength_n)


def path_numbers(circuits: Circuits) -> npt.NDArray[np.uint64]:
    """A 64-bit number for nodes, port and path, uint64 (circuits,)."""
    return _mixed(path_hashes(circuits), *_ends(circuits))


def _ends(circuits: Circuits) -> tuple[IntArray, IntArray, IntArray]:
    return circuits.src, circuits.dst, circuits.port


def _mixed(found: npt.NDArray[np.uint64], *columns: IntArray) -> npt.NDArray[np.uint64]:
    """Numbers that further columns are mixed into."""
    for column in columns:
        found = (found ^ (found >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + np.asarray(column).astype(
            np.uint64
        )
    return np.asarray((found ^ (found >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9))


def path_hashes(circuits: Circuits) -> npt.NDArray[np.uint64]:
    """A 64-bit number for the path of each circuit, uint64 (circuits,); equal paths have equal numbers."""
    offsets = circuits.hop_offsets
    found = np.zeros(len(circuits), np.uint64)
    some = np.flatnonzero(np.diff(offsets))
    if len(some):
        position = np.arange(len(circuits.hops)) - np.repeat(offsets[:-1], np.diff(offsets))
        mixed = circuits.hops.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + position.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found[some] = np.add.reduceat(mixed ^ (mixed >> np.uint64(27)), offsets[:-1][some])
    return found


def same_circuits(rounds: tuple[Circuits, ...], others: tuple[Circuits, ...]) -> bool:
    """Whether both are the same objects, as circuit rules that cache their last result return them."""
    return len(rounds) == len(others) and all(one is other for one, other in zip(rounds, others, strict=True))
