"""A step of a schedule with one row for each chunk of each transfer, and the order in which rows that meet are added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, numbered
from opticcl.ir.chunk_rows import ChunkRows, by_chunk

if TYPE_CHECKING:
    from opticcl.ir import Collective, Schedule

__all__ = ["chunk_order", "chunk_rows", "disjoint_turns"]


def chunk_order(c: Collective) -> IntArray:
    """Chunks in the order of the message, int64 (num_chunks,): block after block, ascending within a block."""
    return np.arange(c.num_chunks) if c.owner is None else np.argsort(c.owner, kind="stable")


def chunk_rows(schedule: Schedule, i: int) -> ChunkRows:
    """(src, dst, chunk, op) of step i with one row for each chunk of each transfer.

    Raises: ParameterError: a rank or a chunk is out of range.
    """
    c, step = schedule.collective, schedule.step(i)
    n = step.chunk_n.astype(np.int64)
    apart = np.int64(1) if step.chunk_step is None else step.chunk_step.astype(np.int64)
    for what, low, high, count in (
        ("rank", np.minimum(step.src, step.dst), np.maximum(step.src, step.dst), c.num_ranks),
        ("chunk", np.minimum(step.chunk_lo, np.minimum(n, apart - 1)), step.chunk_lo + (n - 1) * apart, c.num_chunks),
    ):
        wrong = np.flatnonzero((low < 0) | (high >= count))
        if len(wrong):
            raise ParameterError(
                f"execute: step {i}: transfer {wrong[0]} has a {what} that is not 0 to {count - 1}; verify the plan first"
            )
    return by_chunk(step)


def disjoint_turns(places: IntArray) -> list[IntArray]:
    """Rows in turns, such that each place occurs at most once in a turn; rows of one place keep their order.

    >>> [turn.tolist() for turn in disjoint_turns(np.array([3, 1, 3, 3]))]
    [[1, 0], [2], [3]]
    """
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) != 0])
    if len(starts) == len(places):
        return [np.arange(len(places))]
    _, nth = numbered(np.diff(starts, append=len(order)))
    by_turn = np.argsort(nth, kind="stable")
    return np.split(order[by_turn], np.cumsum(np.bincount(nth))[:-1])
