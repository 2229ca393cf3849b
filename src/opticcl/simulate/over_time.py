"""Busy time of the parts of a machine over the time of a plan, from the traffic that an engine recorded.

A transfer's bytes are spread evenly from its start to its end; the engines may vary its rate in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, IntArray, Transfers
from opticcl.ir.limits import limit
from opticcl.simulate.bottleneck import full_rate, uses
from opticcl.simulate.traffic import TransferTimes

__all__ = ["busy_over_time"]

MAX_TIMES = limit("over_time.MAX_TIMES")


def busy_over_time(
    plan: CircuitPlan,
    times: TransferTimes,
    total_s: float,
    row_of: Callable[[int, IntArray], IntArray],
    num_rows: int,
    bins: int,
) -> np.ndarray:
    """Busy time of parts in each slice of the plan's time, float64 (rows, bins) [s].

    Args:
        plan: schedule, fabric and circuits.
        times: of its transfers.
        total_s: time of the plan [s].
        row_of: (index of a kind in the fabric's `resources`, parts of that kind) -> row in which each is summed, or -1.
        num_rows, bins: shape of the result; the slices are equal.
    """
    spans = _Spans(num_rows, bins, total_s)
    rates = [full_rate(plan.fabric, resource) for resource in plan.fabric.resources]
    for steps in plan.schedule.step_classes():
        transfers, rounds = plan.schedule.step(steps.start), plan.rounds(steps.start)
        spans_of_step = _step_spans(times, steps, transfers, rounds)
        for circuits in (c.carrying() for c in rounds):
            used = []
            for number, index, owner, share in uses(plan.fabric, transfers, circuits, np.ones(len(transfers))):
                row = row_of(number, index)
                kept = np.flatnonzero((row >= 0) & (share > 0))
                of = circuits.transfer[kept if owner is None else owner[kept]]
                used.append((row[kept], of, share[kept] / rates[number]))
            for start_s, end_s, size in spans_of_step:
                for row, of, seconds_a_byte in used:
                    spans.add(row, start_s[of], end_s[of], seconds_a_byte * size[of])
    return spans.sliced()


def _step_spans(
    times: TransferTimes, steps: range, transfers: Transfers, rounds: tuple[Circuits, ...]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(start, end, bytes) of every transfer of a class of steps, once for each of the steps.

    Args:
        times: of all transfers of the plan.
        steps: of the class.
        transfers, rounds: of its first step.
    """
    rows = np.flatnonzero((times.step >= steps.start) & (times.step < steps.stop))
    n = len(transfers)
    if not len(rows) or not n:
        return []
    times = _rows(times, rows)
    if (times.src < 0).any() or len(times) % n:  # recorded as one row: spread over the time of all of them
        chunks = transfers.size_chunks()
        size = chunks / chunks.sum() * float((times.size_bytes * times.repeats).sum())
        last = float((times.end_s + (times.repeats - 1) * times.period_s).max())
        return [(np.full(n, times.start_s.min()), np.full(n, last), size)]
    order = np.concatenate(
        [np.unique(circuits.carrying().transfer) for circuits in rounds]
    )  # in the order of `Recorder.add_round`
    if (
        len(order) != len(times)
        or (transfers.src[order] != times.src).any()
        or (transfers.dst[order] != times.dst).any()
    ):
        order = np.lexsort((transfers.size_chunks(), transfers.dst, transfers.src))
        times = _rows(times, np.lexsort((times.size_bytes, times.dst, times.src, times.step)))
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    spans = []
    for first in range(0, len(times), n):
        start_s, end_s, size = (column[first + place] for column in (times.start_s, times.end_s, times.size_bytes))
        repeats, period_s = int(times.repeats[first]), float(times.period_s[first])
        if repeats * n <= MAX_TIMES:
            spans += [(start_s + k * period_s, end_s + k * period_s, size) for k in range(repeats)]
        else:
            spans.append((start_s, end_s + (repeats - 1) * period_s, size * repeats))
    return spans


def _rows(times: TransferTimes, rows: IntArray) -> TransferTimes:
    return TransferTimes(*(getattr(times, field.name)[rows] for field in fields(TransferTimes)))


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
