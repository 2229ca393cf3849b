"""All ranks in this process, on NumPy arrays.

All elements of a chunk take the same path, so the whole schedule is executed on a slice of all chunks that stays in the
cache, then on the next: each input and each result passes through memory once, however many steps there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.execute.buffers import Given, MessageLayout, empty_results, load, read_inputs, store
from opticcl.execute.rows import chunk_rows, disjoint_turns
from opticcl.ir import IntArray, Op, no_progress

if TYPE_CHECKING:
    from opticcl.ir import ProgressCallback, Schedule

__all__ = ["execute"]

STATE_BYTES = 1 << 22  # slice of all ranks' chunks that is executed at a time: fits into a cache
LEAST_ROW_BYTES = 1 << 9  # of one chunk of a slice: below, overhead per row dominates
MOST_ROWS_KEPT = 1 << 24  # rows of prepared steps that are cached


def execute(
    schedule: Schedule, arrays: Sequence[npt.ArrayLike | None] | np.ndarray, *, progress: ProgressCallback = no_progress
) -> list[np.ndarray | None]:
    """Run a schedule on one array per rank.

    Args:
        schedule: the schedule.
        arrays: one array for each rank, all of one shape and of one numeric type: the whole message where a rank holds all
            of it at the start, its block where it holds that (all_gather, gather, send_recv); ignored, and None is accepted,
            where it holds nothing (all but the root of a broadcast or scatter). Blocks lie along the first axis.
        progress: called after every step on every slice of the message.
    Returns: one array for each rank, None where the collective gives it nothing; the input arrays are not changed.
    Raises: ParameterError: wrong number of arrays, different shapes or types, not numbers, a first axis that the ranks do not
        divide, more than 8 GiB, or ranks or chunks out of range.

    Sums are taken in the order of the schedule, in the arrays' own type: integers are exactly numpy's sum of that type, floats
    equal it up to the order of additions.
    """
    layout, given = read_inputs(schedule.collective, arrays)
    if schedule.collective.keeps_apart:
        return _exchange(layout, given, _missing(schedule, layout, progress))
    results = empty_results(layout)
    if not layout.width:
        return results
    shape = layout.before.shape
    fits = STATE_BYTES // (layout.before.size * layout.dtype.itemsize)
    slices = -(-layout.width // max(fits, LEAST_ROW_BYTES // layout.dtype.itemsize))
    width = -(-layout.width // slices)
    prepared = _prepared(schedule, layout)
    for number, first in enumerate(range(0, layout.width, width)):
        state = np.empty((*shape, min(width, layout.width - first)), layout.dtype)
        load(layout, given, first, state)
        places = state.reshape(-1, state.shape[2])
        for i in range(schedule.num_steps):
            _run_step(places, prepared(i))
            progress("run the steps", number * schedule.num_steps + i + 1, slices * schedule.num_steps)
        store(layout, state, first, results)
    return results


class _PreparedStep(NamedTuple):
    """A step as rows, one for each chunk of each transfer; a place is a chunk of a rank.

    Args:
        source: place that each row is read from, int64 (rows,).
        copies: (rows, places that they are stored at), or None.
        turns: (rows, places that they are added to); every place occurs at most once in a turn.
        given_up: places that are empty once they are read, int64 (places,), or None.
    """

    source: IntArray
    copies: tuple[IntArray | slice, IntArray] | None
    turns: list[tuple[IntArray | slice, IntArray]]
    given_up: IntArray | None = None


def _run_step(places: np.ndarray, step: _PreparedStep) -> None:
    """One step in place on (places, elements); all sends see the data before the step."""
    sent = places[step.source]
    if step.given_up is not None:
        places[step.given_up] = 0
    if step.copies:
        rows, to = step.copies
        places[to] = sent[rows]
    for rows, to in step.turns:
        places[to] += sent[rows]


def _prepared(schedule: Schedule, layout: MessageLayout) -> Callable[[int], _PreparedStep]:
    """The steps by number, cached for the next slice up to a limit."""
    kept: dict[int, _PreparedStep] = {}
    room = MOST_ROWS_KEPT
    position = np.argsort(layout.chunk_order)  # of each chunk in the message

    def prepared(i: int) -> _PreparedStep:
        nonlocal room
        step = kept.get(i)
        if step is None:
            step = _prepare(schedule, position, i)
            room -= len(step.source)
            if room >= 0:
                kept[i] = step
        return step

    return prepared


def _prepare(schedule: Schedule, position: IntArray, i: int) -> _PreparedStep:
    src, dst, chunk, op = chunk_rows(schedule, i)
    source, to = (rank.astype(np.int64) * len(position) + position[chunk] for rank in (src, dst))
    copies = op == Op.COPY
    if copies.all():
        return _PreparedStep(source, (slice(None), to), [])
    adds = np.flatnonzero(~copies)
    moves = op & Op.MOVE > 0
    given_up = np.unique(source[moves]) if moves.any() else None
    stored = (np.flatnonzero(copies), to[copies]) if len(adds) < len(to) else None
    turns = [adds[rows] for rows in disjoint_turns(to[adds])]
    if stored is None and len(turns) == 1:
        return _PreparedStep(source, None, [(slice(None), to)], given_up)
    return _PreparedStep(source, stored, [(rows, to[rows]) for rows in turns], given_up)


def _missing(schedule: Schedule, layout: MessageLayout, progress: ProgressCallback) -> npt.NDArray[np.bool_]:
    """Contributions that do not reach the owner of their chunk, bool (origins, chunks), chunks in the order of the message.

    Contributions stay side by side, so it is enough to follow the rank that holds each (origin, chunk).
    """
    c = schedule.collective
    assert c.owner is not None
    stays = np.repeat(np.arange(c.num_ranks, dtype=np.int32)[:, None], c.num_chunks, axis=1)
    at, following, chunks = stays.copy(), stays.copy(), np.arange(c.num_chunks)[None, :]
    for i in range(schedule.num_steps):
        src, dst, chunk, _ = chunk_rows(schedule, i)
        following[src, chunk] = dst
        at = following[at, chunks]
        following[src, chunk] = src
        progress("follow the pieces", i + 1, schedule.num_steps)
    return (at != c.owner[None, :])[:, layout.chunk_order]


def _exchange(layout: MessageLayout, given: Given, missing: npt.NDArray[np.bool_]) -> list[np.ndarray | None]:
    """Result of each rank, origin by origin; zeros for missing contributions."""
    n, length = layout.blocks, layout.block_length
    sent = np.stack([array.reshape(n, length) for array in given.values()])
    missing = missing.reshape(n, n, -1)
    results: list[np.ndarray | None] = []
    for rank in range(n):
        pieces = sent[:, rank].copy()
        if missing[:, rank].any():
            pieces[np.repeat(missing[:, rank], layout.width, axis=1)[:, :length]] = 0
        results.append(pieces.reshape(layout.shape))
    return results
