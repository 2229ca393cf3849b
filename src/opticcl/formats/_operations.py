"""Sends, receives and additions of each rank with what they wait for, for formats that know dependencies and no chunks.

| operation | waits for |
|---|---|
| send | the last write of its chunks |
| receive | the sends and the last write of the chunks that it replaces; nothing if it is added |
| add | its receive, and the sends and the last write of its chunks |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from opticcl.errors import OutputError
from opticcl.formats._flows import transfer_bytes
from opticcl.ir import CircuitPlan, Op, ProgressCallback

__all__ = ["Operation", "rank_operations"]

MOST_OPERATIONS = 1 << 22


class Operation(NamedTuple):
    """An operation of a rank.

    Args:
        kind: what it does; "add" adds what was received.
        step: of the plan.
        src, dst: ranks.
        size_bytes: of the transfer [bytes].
        tag: number of the transfer among those of the two ranks.
        causes: numbers of earlier operations of the rank, ascending.
    """

    kind: Literal["send", "receive", "add"]
    step: int
    src: int
    dst: int
    size_bytes: int
    tag: int
    causes: tuple[int, ...]


def rank_operations(
    path: Path, plan: CircuitPlan, size_bytes: int, progress: ProgressCallback
) -> list[list[Operation]]:
    """The operations of each rank; a transfer of no bytes has none.

    Args:
        path: of the file that is written, for the message.
        plan: any plan.
        size_bytes: message of every rank [bytes].
        progress: called with (what, done, total) after every step.
    Raises: OutputError: more than `MOST_OPERATIONS`.
    """
    schedule = plan.schedule
    c = schedule.collective
    ranks = [_Rank() for _ in range(c.num_ranks)]
    tags: dict[tuple[int, int], int] = {}
    total = 0
    for i in range(schedule.num_steps):
        step = schedule.step(i)
        size = transfer_bytes(step, c.num_chunks, size_bytes)
        kept = np.flatnonzero(size)
        apart = np.ones(len(step), np.int32) if step.chunk_step is None else step.chunk_step
        columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, apart, step.op, size)
        rows = list(zip(*(column[kept].tolist() for column in columns), strict=True))
        total += 3 * len(rows)
        if total > MOST_OPERATIONS:
            raise OutputError(f"cannot write {path}: more than {MOST_OPERATIONS:,} nodes; take a smaller fabric")
        named = []
        for src, dst, lo, n, by, op, amount in rows:  # sends see the data before the step
            tag = tags[src, dst] = tags.get((src, dst), -1) + 1
            chunks = range(lo, lo + n * by, by)
            named.append((chunks, op, (i, src, dst, amount, tag)))
            ranks[src].send(chunks, *named[-1][2])
        for chunks, op, about in named:
            ranks[about[2]].receive(chunks, Op(op), *about)
        progress("write the operations of the ranks", i + 1, schedule.num_steps)
    return [mine.operations for mine in ranks]


class _Rank:
    """Operations of a rank, and the last of them that used each chunk."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._written: dict[int, int] = {}  # chunk -> operation
        self._read: dict[int, set[int]] = {}  # chunk -> operations since then

    def send(self, chunks: Iterable[int], *about: int) -> None:
        node = self._add("send", {self._written[k] for k in chunks if k in self._written}, about)
        for k in chunks:
            self._read.setdefault(k, set()).add(node)

    def receive(self, chunks: Iterable[int], op: Op, *about: int) -> None:
        causes = {node for k in chunks for node in self._read.get(k, ())}
        causes |= {self._written[k] for k in chunks if k in self._written}
        reduces = bool(op & Op.REDUCE)
        node = self._add("receive", set() if reduces else causes, about)
        if reduces:
            node = self._add("add", causes | {node}, about)
        for k in chunks:
            self._written[k] = node
            self._read.pop(k, None)

    def _add(self, kind: Literal["send", "receive", "add"], causes: set[int], about: tuple[int, ...]) -> int:
        step, src, dst, size_bytes, tag = about
        self.operations.append(Operation(kind, step, src, dst, size_bytes, tag, tuple(sorted(causes))))
        return len(self.operations) - 1
