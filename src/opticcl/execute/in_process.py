"""All ranks in this process, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, Op, Schedule, Transfers

__all__ = ["execute"]

MAX_BYTES = 1 << 33  # of all ranks' arrays together


def execute(schedule: Schedule, arrays: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]) -> list[np.ndarray]:
    """Run a schedule on one array a rank.

    Args:
        schedule: what to run.
        arrays: one array for each rank, all of one shape and of one numeric type.
    Returns: one array for each rank; the arrays given stay as they are.
    Raises: ParameterError: wrong number of arrays, shapes or types that differ, not numbers, or more than 8 GiB.

    Sums are taken in the order of the schedule, in the arrays' own type: integers come out exactly as numpy's sum of that
    type, floats up to the order of additions.
    """
    given = [np.asarray(a) for a in arrays]
    c = schedule.collective
    if len(given) != c.num_ranks:
        raise ParameterError(f"execute: {len(given)} arrays for {c.num_ranks} ranks; give one each")
    first = given[0]
    for rank, array in enumerate(given):
        if array.shape != first.shape or array.dtype != first.dtype:
            raise ParameterError(
                f"execute: rank {rank} has {array.dtype}{array.shape}, rank 0 {first.dtype}{first.shape}; all must be alike"
            )
    if first.dtype.kind not in "biufc":
        raise ParameterError(
            f"execute: arrays of {first.dtype} cannot be added; use integers, floats or complex numbers"
        )
    if first.nbytes * len(given) > MAX_BYTES:
        raise ParameterError(
            f"execute: {first.nbytes * len(given)} bytes in all are more than {MAX_BYTES}; use a smaller size"
        )
    state = _cut(given, c.num_chunks)
    for i in range(schedule.num_steps):
        _play(state, schedule.step(i))
    flat = state.reshape(c.num_ranks, -1)[:, : first.size]
    return [row.reshape(first.shape).copy() for row in flat]


def _cut(arrays: list[np.ndarray], num_chunks: int) -> np.ndarray:
    """Ranks' arrays as (ranks, chunks, elements a chunk), the last chunk filled up with zeros."""
    size = arrays[0].size
    each = -(-size // num_chunks)
    state = np.zeros((len(arrays), num_chunks, each), arrays[0].dtype)
    flat = state.reshape(len(arrays), -1)
    for rank, array in enumerate(arrays):
        flat[rank, :size] = array.ravel()
    return state


def _play(state: np.ndarray, step: Transfers) -> None:
    """One step in place; all sends see the data as they were before."""
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


def _chunk_by_chunk(step: Transfers) -> tuple[IntArray, IntArray, IntArray, np.ndarray]:
    """(src, dst, chunk, op) with one row for each chunk of each transfer."""
    n = step.chunk_n.astype(np.int64)
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    chunk = np.repeat(step.chunk_lo, n) + within
    return np.repeat(step.src, n), np.repeat(step.dst, n), chunk, np.repeat(step.op, n)
