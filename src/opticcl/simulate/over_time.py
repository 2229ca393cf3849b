"""How busy parts of a machine are over the time of a plan, from what an engine recorded.

A transfer's bytes are spread evenly from its start to its end; the engines may vary its rate in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, IntArray, Transfers
from opticcl.simulate.bottleneck import full_rate, uses
from opticcl.simulate.traffic import Runs

__all__ = ["busy_over_time"]

MOST_TIMES = 1 << 21  # times of steps that repeat which are told apart


def busy_over_time(
    plan: CircuitPlan,
    runs: Runs,
    total_s: float,
    row_of: Callable[[int, IntArray], IntArray],
    num_rows: int,
    bins: int,
) -> np.ndarray:
    """Time that parts are busy in each slice of the plan's time, float64 (rows, bins) [s].

    Args:
        runs: when transfers ran.
        total_s: time of the plan [s].
        row_of: (number of a resource of the fabric, which ones of its count) -> row that they are added up in, or -1.
        num_rows, bins: of the answer; the slices are equal.
    """
    spans = _Spans(num_rows, bins, total_s)
    rates = [full_rate(plan.fabric, resource) for resource in plan.fabric.resources]
    for steps in plan.schedule.step_classes():
        transfers, rounds = plan.schedule.step(steps.start), plan.rounds(steps.start)
        times = _times(runs, steps, transfers, rounds)
        for circuits in rounds:
            used = []
            for number, index, owner, share in uses(plan.fabric, transfers, circuits, np.ones(len(transfers))):
                row = row_of(number, index)
                kept = np.flatnonzero((row >= 0) & (share > 0))
                of = circuits.transfer[kept if owner is None else owner[kept]]
                used.append((row[kept], of, share[kept] / rates[number]))
            for start_s, end_s, size in times:
                for row, of, seconds_a_byte in used:
                    spans.add(row, start_s[of], end_s[of], seconds_a_byte * size[of])
    return spans.sliced()


def _times(
    runs: Runs, steps: range, transfers: Transfers, rounds: tuple[Circuits, ...]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(start, end, bytes) of every transfer, once for each time that a step of the class was played."""
    rows = np.flatnonzero((runs.step >= steps.start) & (runs.step < steps.stop))
    n = len(transfers)
    if not len(rows) or not n:
        return []
    runs = _rows(runs, rows)
    if (runs.src < 0).any() or len(runs) % n:  # told together: spread over the time of all of them
        chunks = transfers.size_chunks()
        size = chunks / chunks.sum() * float((runs.size_bytes * runs.repeats).sum())
        last = float((runs.end_s + (runs.repeats - 1) * runs.period_s).max())
        return [(np.full(n, runs.start_s.min()), np.full(n, last), size)]
    told = np.concatenate([np.unique(circuits.transfer) for circuits in rounds])  # as `Recorder.round` writes them
    if len(told) != len(runs) or (transfers.src[told] != runs.src).any() or (transfers.dst[told] != runs.dst).any():
        told = np.lexsort((transfers.size_chunks(), transfers.dst, transfers.src))
        runs = _rows(runs, np.lexsort((runs.size_bytes, runs.dst, runs.src, runs.step)))
    place = np.empty(n, np.int64)
    place[told] = np.arange(n)
    found = []
    for first in range(0, len(runs), n):
        start_s, end_s, size = (column[first + place] for column in (runs.start_s, runs.end_s, runs.size_bytes))
        repeats, period_s = int(runs.repeats[first]), float(runs.period_s[first])
        if repeats * n <= MOST_TIMES:
            found += [(start_s + k * period_s, end_s + k * period_s, size) for k in range(repeats)]
        else:
            found.append((start_s, end_s + (repeats - 1) * period_s, size * repeats))
    return found


def _rows(runs: Runs, rows: IntArray) -> Runs:
    return Runs(*(getattr(runs, field.name)[rows] for field in fields(Runs)))


class _Spans:
    """Adds up work that is spread evenly over spans of time."""

    def __init__(self, num_rows: int, bins: int, total_s: float) -> None:
        self._bins, self._edges = bins, np.linspace(0.0, total_s, bins + 1)
        self._width = total_s / bins
        self._rate, self._moment = np.zeros((2, num_rows * bins))  # changes of rate in a slice, and rate x time of them
        self._rows = num_rows

    def add(self, row: IntArray, start_s: np.ndarray, end_s: np.ndarray, work: np.ndarray) -> None:
        """Work of spans; a span without duration counts as a short one."""
        end_s = np.maximum(end_s, start_s + 1e-6 * self._width)
        rate = work / (end_s - start_s)
        for at, change in ((start_s, rate), (end_s, -rate)):
            cell = row * self._bins + np.clip(at / self._width, 0, self._bins - 1).astype(np.int64)
            self._rate += np.bincount(cell, change, minlength=len(self._rate))
            self._moment += np.bincount(cell, change * at, minlength=len(self._rate))

    def sliced(self) -> np.ndarray:
        """Work in each slice, float64 (rows, bins)."""
        rate = np.cumsum(self._rate.reshape(self._rows, self._bins), axis=1)
        moment = np.cumsum(self._moment.reshape(self._rows, self._bins), axis=1)
        done = rate * self._edges[1:] - moment
        return np.maximum(np.diff(done, axis=1, prepend=0.0), 0.0)
