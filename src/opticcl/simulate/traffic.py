"""Traffic that engines record: bytes carried by each shared link, and when each transfer ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.ir.limits import limit
from opticcl.simulate.links import Links

__all__ = ["Recorder", "Traffic", "TransferTimes"]

MAX_ROWS = limit("traffic.MAX_ROWS")


@dataclass(frozen=True, slots=True)
class TransferTimes:
    """When transfers ran, as columns of equal length.

    Args:
        step: step of each, int64 (n,).
        repeats: identical steps that follow each other from that one on, int64 (n,); their transfers run the same way.
        period_s: time from one of these steps to the next, float64 (n,) [s]; reconfigurations are averaged over them.
        src, dst: ranks, int64 (n,); -1: all transfers of the step as one row, where they are too many.
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
    """Load of the shared links during a plan, and times of its transfers.

    Args:
        link: numbers of the links that carried data, int64 (m,); `links.link_names` names them.
        carried_bytes: bytes sent over each, retransmissions included, float64 (m,).
        busy_s: how long each was sending, float64 (m,) [s].
        largest_queue_bytes: largest queue in front of each (behind each, with input queues), float64 (m,); 0 at flow
            level, which has no queues.
        dropped_bytes: bytes dropped at full queues, float64 (m,).
        transfers: one row a transfer; of identical steps the first with its repeats. Beyond 2**20 rows, one row for each
            class of steps.
        critical: asynchronously, the critical path: the chain of transfers that ends last, in order; else empty.
    """

    link: IntArray
    carried_bytes: np.ndarray
    busy_s: np.ndarray
    largest_queue_bytes: np.ndarray
    dropped_bytes: np.ndarray
    transfers: TransferTimes
    critical: TransferTimes


class Recorder:
    """Collects traffic while an engine runs.

    Args: fabric: its shared links are recorded; circuits have none.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._capacity = Links(fabric).capacity
        self._carried, self._busy, self._queue, self._dropped = np.zeros((4, len(self._capacity)))
        self._parts: list[TransferTimes] = []
        self._critical: list[TransferTimes] = []
        self._rows = 0

    def add_flows(self, hops: IntArray, offsets: IntArray, amount: np.ndarray, repeats: int = 1) -> None:
        """Add the bytes of flows to all links of their paths; a link sends at its capacity or not at all.

        Args:
            hops, offsets: links of flow i are hops[offsets[i]:offsets[i + 1]].
            amount: of each flow, float64 (flows,) [bytes].
            repeats: times that this happens [count].
        """
        carried = np.bincount(hops, np.repeat(amount, np.diff(offsets)), minlength=len(self._capacity))
        self._carried += carried * repeats
        self._busy += carried / self._capacity * repeats

    def add_links(
        self, carried: np.ndarray, busy_s: np.ndarray, queue: np.ndarray, dropped: np.ndarray, repeats: int = 1
    ) -> None:
        """Add what cells did on each link.

        Args:
            carried: bytes sent, float64 (links,).
            busy_s: time spent sending, float64 (links,) [s].
            queue: largest queue, float64 (links,) [bytes].
            dropped: bytes dropped, float64 (links,).
            repeats: times that this happens [count].
        """
        self._carried += carried * repeats
        self._busy += busy_s * repeats
        self._dropped += dropped * repeats
        np.maximum(self._queue, queue, out=self._queue)

    def add_round(
        self,
        steps: range,
        begin_s: float,
        transfers: Transfers,
        circuits: Circuits,
        chunk_bytes: float,
        end_s: np.ndarray,
    ) -> None:
        """Add a round of the first of identical steps.

        Args:
            steps: these steps.
            begin_s: start of the round [s].
            transfers: of the step.
            circuits: of the round.
            chunk_bytes: size of a chunk [bytes].
            end_s: end of each circuit, counted from `begin_s`, float64 (circuits,) [s].
        """
        carries = circuits.transfer >= 0
        rows, row = np.unique(circuits.transfer[carries], return_inverse=True)
        end_s = end_s[carries]
        last = np.zeros(len(rows))
        np.maximum.at(last, row, end_s)
        kept = transfers.take(rows)
        self._add(
            np.full(len(rows), steps.start), np.full(len(rows), len(steps)), np.zeros(len(rows)), kept.src, kept.dst,
            kept.size_chunks() * chunk_bytes, np.full(len(rows), begin_s), begin_s + last,
        )  # fmt: skip

    def end_step(self, num_rounds: int, period_s: float) -> None:
        """The last `num_rounds` rounds make one step, which takes `period_s` [s]."""
        for part in self._parts[len(self._parts) - num_rounds :]:
            part.period_s[:] = period_s

    def add_transfers(self, columns: Sequence[np.ndarray], classes: Sequence[range], chain: IntArray) -> None:
        """Add all transfers of a plan that was simulated without barriers.

        Args:
            columns: step, src, dst, size_bytes, start_s and end_s of each.
            classes: of steps; one row for each where there are too many transfers.
            chain: rows of the critical path.
        """
        step, src, dst, size, start, end = columns
        once = np.ones(len(step), np.int64)
        no_period = np.zeros(len(step))
        picked = [column[chain] for column in (step, once, no_period, src, dst, size, start, end)]
        self._critical.append(TransferTimes(*picked))
        if len(step) <= MAX_ROWS:
            self._add(step, once, no_period, src, dst, size, start, end)
            return
        at = np.searchsorted(step, [steps.start for steps in classes])
        for steps, rows in zip(classes, np.split(np.arange(len(step)), at[1:]), strict=True):
            if len(rows):
                self._summarise(steps.start, 1, size[rows], start[rows], end[rows])

    def traffic(self) -> Traffic:
        """Everything that was collected."""
        link = np.flatnonzero((self._carried > 0) | (self._dropped > 0))
        return Traffic(
            link,
            self._carried[link],
            self._busy[link],
            self._queue[link],
            self._dropped[link],
            _joined(self._parts),
            _joined(self._critical),
        )

    def _add(self, *columns: np.ndarray) -> None:
        part = TransferTimes(*columns)
        self._rows += len(part)
        if self._rows <= MAX_ROWS or not len(part):
            self._parts.append(part)
            return
        self._summarise(int(part.step[0]), int(part.repeats[0]), part.size_bytes, part.start_s, part.end_s)

    def _summarise(self, step: int, repeats: int, size: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        values = (step, repeats, 0.0, -1, -1, size.sum(), start.min(), end.max())
        self._parts.append(TransferTimes(*(np.array([v]) for v in values)))


def _joined(parts: Sequence[TransferTimes]) -> TransferTimes:
    """Several lists as one, in order."""
    empty = TransferTimes(*(np.zeros(0, kind) for kind in (int, int, float, int, int, float, float, float)))
    names = TransferTimes.__slots__
    return TransferTimes(*(np.concatenate([getattr(p, name) for p in (empty, *parts)]) for name in names))
