"""What an engine saw while it played: how much each shared link carried, and when each transfer ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray, Timeline, Transfers
from opticcl.simulate.links import Links

__all__ = ["Played", "Recorder", "Runs", "Traffic"]

MOST_ROWS = 1 << 20  # transfers that are told one by one


@dataclass(frozen=True, slots=True)
class Runs:
    """When transfers ran, as columns of equal length.

    Args:
        step: step of each, int64 (n,).
        repeats: steps alike that follow each other from that one on, int64 (n,); their transfers run the same way.
        period_s: time from one of them to the next, float64 (n,) [s]; what setting circuits costs is spread evenly.
        src, dst: ranks, int64 (n,); -1: all transfers of the step, where they are too many to tell.
        size_bytes: float64 (n,).
        start_s, end_s: first bit sent and last bit received, from the start of the plan, float64 (n,) [s].
    """

    step: IntArray
    repeats: IntArray
    period_s: np.ndarray
    src: IntArray
    dst: IntArray
    size_bytes: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a plan put on the shared links, and when its transfers ran.

    Args:
        link: links that carried something, by number, int64 (m,); `links.link_names` says them in words.
        carried_bytes: what was sent over each, what was sent again included, float64 (m,).
        busy_s: how long each was sending, float64 (m,) [s].
        largest_queue_bytes: most bytes that waited in front of each (behind each, with queues at the inputs), float64
            (m,); 0 at flow level, which knows no queues.
        dropped_bytes: what found that queue full, float64 (m,).
        runs: a row a transfer; of steps that are alike the first with its repeats. More than 2**20 rows become one a
            class of steps.
        critical: asynchronously, the chain of transfers that ends last, in order; else empty.
    """

    link: IntArray
    carried_bytes: np.ndarray
    busy_s: np.ndarray
    largest_queue_bytes: np.ndarray
    dropped_bytes: np.ndarray
    runs: Runs
    critical: Runs


@dataclass(frozen=True, slots=True)
class Played:
    """A timeline, and the traffic if it was recorded."""

    timeline: Timeline
    traffic: Traffic | None = None


class Recorder:
    """Collects what an engine sees.

    Args: fabric: whose links; circuits have none that are shared.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._capacity = Links(fabric).capacity
        self._carried, self._busy, self._queue, self._dropped = np.zeros((4, len(self._capacity)))
        self._runs: list[Runs] = []
        self._critical: list[Runs] = []
        self._rows = 0

    def carry(self, hops: IntArray, offsets: IntArray, amount: np.ndarray, repeats: int = 1) -> None:
        """Flows of `amount` bytes over their paths; each link sends at its capacity or not at all."""
        carried = np.bincount(hops, np.repeat(amount, np.diff(offsets)), minlength=len(self._capacity))
        self._carried += carried * repeats
        self._busy += carried / self._capacity * repeats

    def sent(
        self, carried: np.ndarray, busy_s: np.ndarray, queue: np.ndarray, dropped: np.ndarray, repeats: int = 1
    ) -> None:
        """What cells did on each link."""
        self._carried += carried * repeats
        self._busy += busy_s * repeats
        self._dropped += dropped * repeats
        np.maximum(self._queue, queue, out=self._queue)

    def round(
        self,
        steps: range,
        begin_s: float,
        transfers: Transfers,
        circuits: Circuits,
        chunk_bytes: float,
        end_s: np.ndarray,
    ) -> None:
        """A round of the first of these steps: `end_s` of each circuit from `begin_s` on."""
        rows, row = np.unique(circuits.transfer, return_inverse=True)
        last = np.zeros(len(rows))
        np.maximum.at(last, row, end_s)
        kept = transfers.take(rows)
        self._add(
            np.full(len(rows), steps.start), np.full(len(rows), len(steps)), np.zeros(len(rows)), kept.src, kept.dst,
            kept.size_chunks() * chunk_bytes, np.full(len(rows), begin_s), begin_s + last,
        )  # fmt: skip

    def step_ended(self, rounds: int, period_s: float) -> None:
        """The last `rounds` rounds make one step, which takes that long."""
        for runs in self._runs[len(self._runs) - rounds :]:
            runs.period_s[:] = period_s

    def played(self, columns: Sequence[np.ndarray], classes: Sequence[range], chain: IntArray) -> None:
        """All transfers of a plan.

        Args:
            columns: step, src, dst, size_bytes, start_s and end_s of each.
            classes: of steps, for what is too long to tell.
            chain: rows of the critical path.
        """
        step, src, dst, size, start, end = columns
        once = np.ones(len(step), np.int64)
        no_period = np.zeros(len(step))
        picked = [column[chain] for column in (step, once, no_period, src, dst, size, start, end)]
        self._critical.append(Runs(*picked))
        if len(step) <= MOST_ROWS:
            self._add(step, once, no_period, src, dst, size, start, end)
            return
        at = np.searchsorted(step, [steps.start for steps in classes])
        for steps, rows in zip(classes, np.split(np.arange(len(step)), at[1:]), strict=True):
            if len(rows):
                self._summarise(steps.start, 1, size[rows], start[rows], end[rows])

    def traffic(self) -> Traffic:
        """What was collected."""
        link = np.flatnonzero((self._carried > 0) | (self._dropped > 0))
        return Traffic(
            link,
            self._carried[link],
            self._busy[link],
            self._queue[link],
            self._dropped[link],
            _joined(self._runs),
            _joined(self._critical),
        )

    def _add(self, *columns: np.ndarray) -> None:
        runs = Runs(*columns)
        self._rows += len(runs)
        if self._rows <= MOST_ROWS or not len(runs):
            self._runs.append(runs)
            return
        self._summarise(int(runs.step[0]), int(runs.repeats[0]), runs.size_bytes, runs.start_s, runs.end_s)

    def _summarise(self, step: int, repeats: int, size: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        values = (step, repeats, 0.0, -1, -1, size.sum(), start.min(), end.max())
        self._runs.append(Runs(*(np.array([v]) for v in values)))


def _joined(parts: Sequence[Runs]) -> Runs:
    """Several lists as one, in order."""
    empty = Runs(*(np.zeros(0, kind) for kind in (int, int, float, int, int, float, float, float)))
    names = Runs.__slots__
    return Runs(*(np.concatenate([getattr(p, name) for p in (empty, *parts)]) for name in names))
