"""All ranks in this process, on NumPy arrays.

Every element of a chunk goes the same way, so the whole schedule is played on a slice of all chunks that stays in the
cache, then on the next: memory sees each input once and each result once, however many steps there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.execute.buffers import Given, Layout, empty_results, load, read_inputs, store
from opticcl.ir import IntArray, Op, Schedule

__all__ = ["Progress", "execute"]

STATE_BYTES = 1 << 22  # of all ranks' chunks that are in work at a time: what a cache holds
LEAST_ROW_BYTES = 1 << 9  # of one chunk among them: below, the work is in the rows and not in their elements
MOST_ROWS_KEPT = 1 << 24  # transfers that are looked up once and kept for the next slices

Progress = Callable[[str, int, int], None]
"""Told (what, done, total)."""


def _silent(what: str, done: int, total: int) -> None:
    """Progress that nobody asked for."""


def execute(
    schedule: Schedule, arrays: Sequence[npt.ArrayLike | None] | np.ndarray, *, progress: Progress = _silent
) -> list[np.ndarray | None]:
    """Run a schedule on one array a rank.

    Args:
        schedule: what to run.
        arrays: one array for each rank, all of one shape and of one numeric type: the whole message where a rank holds all
            of it at the start, its block where it holds that (all_gather, gather, send_recv); ignored, and None will do,
            where it holds nothing (all but the root of a broadcast or scatter). Blocks lie along the first axis.
        progress: told (what, done, total) after every step on every slice of the message.
    Returns: one array for each rank, None where the collective gives it nothing; the arrays given stay as they are.
    Raises: ParameterError: wrong number of arrays, shapes or types that differ, not numbers, a first axis that the ranks do
        not divide, more than 8 GiB, or a schedule that speaks of ranks or chunks that are not there.

    Sums are taken in the order of the schedule, in the arrays' own type: integers come out exactly as numpy's sum of that
    type, floats up to the order of additions.
    """
    layout, given = read_inputs(schedule.collective, arrays)
    if schedule.collective.keeps_apart:
        return _exchange(layout, given, _lost(schedule, layout, progress))
    results = empty_results(layout)
    if not layout.width:
        return results
    shape = layout.before.shape
    fits = STATE_BYTES // (layout.before.size * layout.dtype.itemsize)
    slices = -(-layout.width // max(fits, LEAST_ROW_BYTES // layout.dtype.itemsize))
    width = -(-layout.width // slices)
    prepared, add = _prepared(schedule, layout), _adding(layout.dtype)
    for number, first in enumerate(range(0, layout.width, width)):
        state = np.empty((*shape, min(width, layout.width - first)), layout.dtype)
        load(layout, given, first, state)
        places = state.reshape(-1, state.shape[2])
        for i in range(schedule.num_steps):
            _play(places, prepared(i), add)
            progress("run the steps", number * schedule.num_steps + i + 1, slices * schedule.num_steps)
        store(layout, state, first, results)
    return results


class _Step(NamedTuple):
    """A step as rows, one for each chunk of each transfer; a place is a chunk of a rank.

    Args:
        source: place that each row comes from, int64 (rows,).
        copies: (rows, places that they are stored at), or None.
        turns: (rows, places that they are added to); in one turn every place is met at most once.
    """

    source: IntArray
    copies: tuple[IntArray | slice, IntArray] | None
    turns: list[tuple[IntArray | slice, IntArray]]


Add = Callable[[np.ndarray, IntArray, np.ndarray], None]
"""(places, which of them, rows to be added to those), in place."""


def _adding(dtype: np.dtype) -> Add:
    if dtype == np.float16:
        from opticcl.execute.halves import add_halves

        return add_halves

    def add(places: np.ndarray, to: IntArray, sent: np.ndarray) -> None:
        places[to] += sent

    return add


def _play(places: np.ndarray, step: _Step, add: Add) -> None:
    """One step in place on (places, elements); all sends see the data as they were before."""
    sent = places[step.source]
    if step.copies:
        rows, to = step.copies
        places[to] = sent[rows]
    for rows, to in step.turns:
        add(places, to, sent[rows])


def _prepared(schedule: Schedule, layout: Layout) -> Callable[[int], _Step]:
    """The steps by number, kept for the next slice as long as they are not too many."""
    kept: dict[int, _Step] = {}
    room = MOST_ROWS_KEPT
    position = np.argsort(layout.chunk_order)  # of each chunk in the message

    def prepared(i: int) -> _Step:
        nonlocal room
        found = kept.get(i)
        if found is None:
            found = _prepare(schedule, position, i)
            room -= len(found.source)
            if room >= 0:
                kept[i] = found
        return found

    return prepared


def _prepare(schedule: Schedule, position: IntArray, i: int) -> _Step:
    src, dst, chunk, op = _chunk_by_chunk(schedule, i)
    source, to = (rank.astype(np.int64) * len(position) + position[chunk] for rank in (src, dst))
    copies = op == Op.COPY
    if copies.all():
        return _Step(source, (slice(None), to), [])
    adds = np.flatnonzero(~copies)
    stored = (np.flatnonzero(copies), to[copies]) if len(adds) < len(to) else None
    turns = [adds[rows] for rows in _turns(to[adds])]
    if stored is None and len(turns) == 1:
        return _Step(source, None, [(slice(None), to)])
    return _Step(source, stored, [(rows, to[rows]) for rows in turns])


def _turns(places: IntArray) -> list[IntArray]:
    """Rows in turns, so that each place is met at most once in a turn; rows of one place in the order given."""
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) != 0])
    if len(starts) == len(places):
        return [np.arange(len(places))]
    nth = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    by_turn = np.argsort(nth, kind="stable")
    return np.split(order[by_turn], np.cumsum(np.bincount(nth))[:-1])


def _lost(schedule: Schedule, layout: Layout, progress: Progress) -> npt.NDArray[np.bool_]:
    """Which contributions do not reach the owner of their chunk, bool (origins, chunks), chunks in the order of the message.

    Contributions stay side by side, so it is enough to follow where each (origin, chunk) lies.
    """
    c = schedule.collective
    assert c.owner is not None
    stays = np.repeat(np.arange(c.num_ranks, dtype=np.int32)[:, None], c.num_chunks, axis=1)
    at, following, chunks = stays.copy(), stays.copy(), np.arange(c.num_chunks)[None, :]
    for i in range(schedule.num_steps):
        src, dst, chunk, _ = _chunk_by_chunk(schedule, i)
        following[src, chunk] = dst
        at = following[at, chunks]
        following[src, chunk] = src
        progress("follow the pieces", i + 1, schedule.num_steps)
    return (at != c.owner[None, :])[:, layout.chunk_order]


def _exchange(layout: Layout, given: Given, lost: npt.NDArray[np.bool_]) -> list[np.ndarray | None]:
    """What each rank has at the end, origin by origin; zeros for what was lost."""
    n, length = layout.blocks, layout.block_length
    sent = np.stack([array.reshape(n, length) for array in given.values()])
    lost = lost.reshape(n, n, -1)
    results: list[np.ndarray | None] = []
    for rank in range(n):
        pieces = sent[:, rank].copy()
        if lost[:, rank].any():
            pieces[np.repeat(lost[:, rank], layout.width, axis=1)[:, :length]] = 0
        results.append(pieces.reshape(layout.shape))
    return results


def _chunk_by_chunk(schedule: Schedule, i: int) -> tuple[IntArray, IntArray, IntArray, npt.NDArray[np.uint8]]:
    """(src, dst, chunk, op) of a step with one row for each chunk of each transfer.

    Raises: ParameterError: a rank or a chunk that is not there.
    """
    c, step = schedule.collective, schedule.step(i)
    n = step.chunk_n.astype(np.int64)
    for what, low, high, count in (
        ("rank", np.minimum(step.src, step.dst), np.maximum(step.src, step.dst), c.num_ranks),
        ("chunk", np.minimum(step.chunk_lo, n), step.chunk_lo + n - 1, c.num_chunks),
    ):
        wrong = np.flatnonzero((low < 0) | (high >= count))
        if len(wrong):
            raise ParameterError(
                f"execute: step {i}: transfer {wrong[0]} speaks of a {what} that is none of 0 to {count - 1}; "
                "verify the plan first"
            )
    if (n == 1).all():
        return step.src, step.dst, step.chunk_lo, step.op
    within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    chunk = np.repeat(step.chunk_lo, n) + within
    return np.repeat(step.src, n), np.repeat(step.dst, n), chunk, np.repeat(step.op, n)
