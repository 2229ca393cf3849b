"""All ranks in this process, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opticcl.execute.buffers import read_inputs, write_outputs
from opticcl.ir import IntArray, Op, Schedule, Transfers

__all__ = ["execute"]


def execute(schedule: Schedule, arrays: Sequence[npt.ArrayLike | None] | np.ndarray) -> list[np.ndarray | None]:
    """Run a schedule on one array a rank.

    Args:
        schedule: what to run.
        arrays: one array for each rank, all of one shape and of one numeric type: the whole message where a rank holds all
            of it at the start, its block where it holds that (all_gather, gather, send_recv); ignored, and None will do,
            where it holds nothing (all but the root of a broadcast or scatter). Blocks lie along the first axis.
    Returns: one array for each rank, None where the collective gives it nothing; the arrays given stay as they are.
    Raises: ParameterError: wrong number of arrays, shapes or types that differ, not numbers, a first axis that the ranks do
        not divide, or more than 8 GiB.

    Sums are taken in the order of the schedule, in the arrays' own type: integers come out exactly as numpy's sum of that
    type, floats up to the order of additions.
    """
    layout, state = read_inputs(schedule.collective, arrays)
    if schedule.collective.keeps_apart:
        return write_outputs(layout, _carry(schedule, state))
    for i in range(schedule.num_steps):
        _play(state, schedule.step(i))
    return write_outputs(layout, state)


def _play(state: np.ndarray, step: Transfers) -> None:
    """One step in place on (ranks, chunks, elements); all sends see the data as they were before."""
    src, dst, chunk, op = _chunk_by_chunk(step)
    sent = state[src, chunk]
    copies = op == Op.COPY
    state[dst[copies], chunk[copies]] = sent[copies]
    adds = ~copies
    if adds.any():
        _add(state, dst[adds], chunk[adds], sent[adds])


def _add(state: np.ndarray, dst: IntArray, chunk: IntArray, sent: np.ndarray) -> None:
    """Add each piece to its place; pieces for the same place in the order of the schedule."""
    place = dst.astype(np.int64) * state.shape[1] + chunk
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(place[order]) != 0])
    nth = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    by_turn = np.argsort(nth, kind="stable")
    turns = np.split(order[by_turn], np.cumsum(np.bincount(nth))[:-1])
    for rows in turns:  # in one turn every place is met at most once
        state[dst[rows], chunk[rows]] += sent[rows]


def _carry(schedule: Schedule, pieces: np.ndarray) -> np.ndarray:
    """Contributions that stay side by side: follow where each (origin, chunk) lies, and hand over what arrived.

    Args: pieces: (origins, chunks, elements).
    Returns: the same, with zeros for what did not reach the owner of its chunk.
    """
    c = schedule.collective
    at = np.repeat(np.arange(c.num_ranks)[:, None], c.num_chunks, axis=1)
    chunks = np.arange(c.num_chunks)[None, :]
    for i in range(schedule.num_steps):
        src, dst, chunk, _ = _chunk_by_chunk(schedule.step(i))
        following = np.repeat(np.arange(c.num_ranks)[:, None], c.num_chunks, axis=1)
        following[src, chunk] = dst
        at = following[at, chunks]
    assert c.owner is not None
    return np.where((at == c.owner[None, :])[:, :, None], pieces, np.zeros((), pieces.dtype))


def _chunk_by_chunk(step: Transfers) -> tuple[IntArray, IntArray, IntArray, np.ndarray]:
    """(src, dst, chunk, op) with one row for each chunk of each transfer."""
    n = step.chunk_n.astype(np.int64)
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    chunk = np.repeat(step.chunk_lo, n) + within
    return np.repeat(step.src, n), np.repeat(step.dst, n), chunk, np.repeat(step.op, n)
