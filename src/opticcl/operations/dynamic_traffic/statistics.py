"""Statistics of a run: delays, intervals by batch means, growth of the backlog.

The measured part of a run is divided into batches of equal length. A value is computed of each batch; the interval is that
of the mean of the batches by Student's t. Whether a load is stable follows from the growth of the backlog in the first and in
the second half of these batches, each measured against its noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.operations.dynamic_traffic._delay_kernels import BINS, value_of_bin
from opticcl.operations.dynamic_traffic.flows import run_values

__all__ = [
    "RATIO_SCALE",
    "Counts",
    "Growth",
    "IntervalEstimate",
    "Stability",
    "delay_distribution",
    "growth",
    "quantile",
    "stability",
]

Stability = Literal["stable", "unstable", "undecided"]
"""What a run shows of a load."""

RATIO_SCALE = 100
"""Bins of the ratio of a flow's time to the ideal one [per unit]."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A value and half its 95 % interval; None where there are too few batches."""

    value: float
    half_width: float | None

    def scaled(self, factor: float) -> IntervalEstimate:
        """In another unit."""
        return IntervalEstimate(self.value * factor, None if self.half_width is None else self.half_width * factor)


class Counts:
    """What is counted in each batch.

    Args:
        batches: number of batches [count].
        num_nodes, num_wavelengths: of the machine [count].
    """

    def __init__(self, batches: int, num_nodes: int, num_wavelengths: int) -> None:
        self.delays = np.zeros((batches, BINS), np.int64)
        self.delay_sums = np.zeros((batches, 2), np.int64)
        self.ratios = np.zeros((batches, BINS), np.int64)
        self.ratio_sums = np.zeros((batches, 2), np.float64)
        self.offered = np.zeros(batches, np.int64)
        self.backlog = np.zeros(batches, np.float64)
        self.epochs = np.zeros(batches, np.int64)
        self.circuits = np.zeros(batches, np.int64)
        self.rounds = np.zeros(batches, np.int64)
        self.sent_by, self.offered_by = np.zeros((2, num_nodes), np.int64)
        self.used = np.zeros(num_wavelengths, np.int64)

    def mean_delay(self) -> IntervalEstimate:
        """Mean delay of a cell [slots]."""
        return self._of([sums[0] / sums[1] if sums[1] else np.nan for sums in self.delay_sums], self._total_mean())

    def delay(self, share: float) -> IntervalEstimate:
        """Quantile of the delays [slots]. Args: share: of the cells that are not later."""
        return self._of([quantile(row, share) for row in self.delays], quantile(self.delays.sum(axis=0), share))

    def mean_ratio(self) -> IntervalEstimate:
        """Mean time of a flow over the ideal one."""
        ratio = self.ratio_sums
        total = ratio[:, 0].sum() / max(1.0, ratio[:, 1].sum())
        return self._of([row[0] / row[1] if row[1] else np.nan for row in ratio], float(total))

    def ratio(self, share: float) -> IntervalEstimate:
        """Quantile of the times of flows over the ideal ones."""
        estimate = self._of([quantile(row, share) for row in self.ratios], quantile(self.ratios.sum(axis=0), share))
        return estimate.scaled(1 / RATIO_SCALE)

    def per_epoch(self, counts: IntArray) -> IntervalEstimate:
        """A count an epoch, such as that of the cells that are sent."""
        return self._of(counts / np.maximum(1, self.epochs), float(counts.sum() / max(1, self.epochs.sum())))

    def fairness(self) -> float:
        """Jain's index of the share of its offered cells that each sender sent: 1 if all have the same share."""
        some = self.offered_by > 0
        if not some.any() or not self.sent_by.any():
            return 0.0
        share = self.sent_by[some] / self.offered_by[some]
        return float(share.sum() ** 2 / (len(share) * (share**2).sum()))

    def _total_mean(self) -> float:
        total, cells = self.delay_sums.sum(axis=0)
        return float(total / max(1, cells))

    def _of(self, batches: Any, total: float) -> IntervalEstimate:
        values = np.asarray(batches, float)
        if len(values) < run_values()["batches"] or np.isnan(values).any():
            return IntervalEstimate(total, None)
        spread = float(values.std(ddof=1)) / len(values) ** 0.5
        return IntervalEstimate(total, run_values()["student_t"] * spread)


def quantile(histogram: IntArray, share: float) -> float:
    """Value that a share of the counted ones does not exceed; not a number of an empty histogram."""
    ends = np.cumsum(histogram)
    if not ends[-1]:
        return float("nan")
    return value_of_bin(int(np.searchsorted(ends, share * ends[-1])))


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of the backlog and half its 95 % interval, in two ways.

    Args:
        value: slope of the line of least squares [cells a slot].
        by_scatter: by the scatter of the batches about the line, as if they were independent [cells a slot].
        by_changes: by the changes from batch to batch, as if these were independent [cells a slot].
    """

    value: float
    by_scatter: float
    by_changes: float


def growth(backlog: npt.NDArray[np.float64], slots_per_batch: float) -> Growth:
    """Growth of the backlog over some batches; the interval of one or two is without bounds.

    Args:
        backlog: mean of each batch, float64 (batches,) [cells].
        slots_per_batch: length of a batch [slots].
    """
    n = len(backlog)
    if n < 3:
        return Growth(0.0, np.inf, np.inf)
    time = (np.arange(n) - (n - 1) / 2) * slots_per_batch
    slope = float((time * backlog).sum() / (time**2).sum())
    left = backlog - backlog.mean() - slope * time
    scatter = float(np.sqrt((left**2).sum() / (n - 2) / (time**2).sum()))
    changes = float(np.diff(backlog).std(ddof=1)) / slots_per_batch / (n - 1) ** 0.5
    t = run_values()["student_t_of_half" if n < run_values()["batches"] else "student_t"]
    return Growth(slope, t * scatter, t * changes)


def stability(backlog: npt.NDArray[np.float64], slots_per_batch: float, offered: float) -> Stability:
    """Whether the backlog stays, by its growth in the first half of the batches and in the second.

    unstable    it grows in the second half, beyond noise by more than a share of the offered cells, and beyond noise by more
                than `fading` of its growth in the first half: the growth does not die out
    stable      it does not grow in the second half beyond noise, and its line there excludes a growth of more than a share of
                the offered cells
    undecided   neither: it still fills, or the run is too short

    A backlog that fills up to its mean grows at most as the square root of time, 0.69 times as much in the second half as in
    the first; one that grows without end approaches a line. Noise of growth is that of the mean change from batch to batch:
    changes are independent where the backlog has no bound. Where it stays, they cancel, and the scatter of the batches about
    their line is what limits it.

    Args:
        backlog: mean of each batch, float64 (batches,) [cells].
        slots_per_batch: length of a batch [slots].
        offered: cells that arrive [cells a slot].
    """
    values, half = run_values(), len(backlog) // 2
    if half < values["batches"] // 4:
        return "undecided"
    early, late = (growth(part, slots_per_batch) for part in (backlog[:half], backlog[half:]))
    fading = values["fading"]
    fades = late.value - fading * early.value <= float(np.hypot(late.by_changes, fading * early.by_changes))
    if late.value - late.by_changes > values["unstable_growth"] * offered and not fades:
        return "unstable"
    most = max(0.0, late.value) + late.by_scatter
    stays = late.value <= late.by_changes and most <= values["most_growth"] * offered
    return "stable" if stays else "undecided"


def delay_distribution(counts: Counts) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Delays that occur, float64 (k,) [slots], and the share of the cells that are later than each, float64 (k,).

    The largest delay, than which no cell is later, is left out.
    """
    histogram = counts.delays.sum(axis=0)
    bins = np.flatnonzero(histogram)
    later = 1 - np.cumsum(histogram[bins]) / max(1, histogram.sum())
    return np.array([value_of_bin(int(number)) for number in bins])[:-1], later[:-1]
