"""The loop that executes a rank schedule, and the buffers of a rank. Transports carry the messages that it yields.

`play` is a generator of exchanges: it yields the messages of a step, and a transport resumes it once all of them have been
sent and received. It works on NumPy arrays and on torch tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from opticcl.execute.ranks import RankSchedule, Rows

__all__ = [
    "Buffer",
    "Exchange",
    "Reduction",
    "Scratch",
    "chunk_width",
    "fill_state",
    "load_state",
    "play",
    "rows_of",
    "run_rank",
    "store_result",
]

Buffer = Any
"""A two-dimensional NumPy array or torch tensor."""
Reduction = Callable[[Buffer, Buffer], None]
"""(target, source): reduces the source into the target, in place."""


class Exchange(NamedTuple):
    """Messages of one step of one rank.

    Args:
        step: index of the step.
        sends: (peer, contiguous rows to be sent).
        recvs: (peer, contiguous rows to receive into).
    """

    step: int
    sends: list[tuple[int, Buffer]]
    recvs: list[tuple[int, Buffer]]


def play(schedule: RankSchedule, state: Buffer, staging: Buffer, reduce: Reduction) -> Iterator[Exchange]:
    """Execute a rank schedule in place.

    Args:
        schedule: of this rank.
        state: (slots, width), contiguous.
        staging: (stage_rows, width), contiguous.
        reduce: reduces one table of rows into another.
    """
    for number, step in enumerate(schedule.steps):
        yield Exchange(
            number,
            [(message.peer, rows_of(state, message.rows)) for message in step.sends],
            [(message.peer, rows_of(staging if message.staged else state, message.rows)) for message in step.recvs],
        )
        for rows, slots in step.copies:
            state[slots] = staging[rows]
        for rows, slots in step.turns:
            sums = rows_of(state, slots)
            reduce(sums, rows_of(staging, rows))
            if not isinstance(slots, slice):
                state[slots] = sums


def rows_of(table: Buffer, rows: Rows) -> Buffer:
    """Rows of a table: the table itself where they are all of it, a view where they are consecutive, else a copy.

    Args: table, rows: as those of a step.
    """
    return table if isinstance(rows, slice) and rows.stop - rows.start == table.shape[0] else table[rows]


def chunk_width(schedule: RankSchedule, message_length: int) -> int:
    """Elements of a chunk, rounded up.

    Args:
        schedule: of a rank.
        message_length: elements of the whole message, a multiple of the blocks [count].
    """
    return -(-(message_length // schedule.blocks) // (schedule.num_chunks // schedule.blocks))


def load_state(schedule: RankSchedule, given: np.ndarray | None, message_length: int, dtype: Any) -> np.ndarray:
    """The state of a rank at the start, (slots, width), padded with zeros.

    Args:
        schedule: of the rank.
        given: what it holds, flat: the whole message or its block; None where it holds nothing.
        message_length: elements of the whole message [count].
        dtype: of the elements.
    """
    state = np.empty((schedule.slots, chunk_width(schedule, message_length)), dtype)
    fill_state(schedule, given, message_length, state)
    return state


def fill_state(schedule: RankSchedule, given: Buffer | None, message_length: int, state: Buffer) -> None:
    """Fill a state with what a rank holds at the start, and with zeros elsewhere.

    Args:
        schedule: of the rank.
        given: what it holds, flat: the whole message or its block; None where it holds nothing.
        message_length: elements of the whole message [count].
        state: (slots, width).
    """
    length = message_length // schedule.blocks
    by_block = state[: schedule.num_chunks].reshape(schedule.blocks, -1)
    whole = given is not None and len(given) == message_length and bool(schedule.before.all())
    if not whole or by_block.shape[1] != length:
        state[:] = 0
    if given is None or not schedule.before.any() or not length:
        return
    if len(given) != message_length:
        by_block[schedule.rank, :length] = given
        return
    by_block[:, :length] = given.reshape(schedule.blocks, length)
    if not whole:
        state[: schedule.num_chunks][~schedule.before] = 0


def store_result(schedule: RankSchedule, state: np.ndarray, message_length: int) -> np.ndarray | None:
    """The result of a rank, flat: the message, its block, or None where the collective gives it nothing.

    Args:
        schedule: of the rank.
        state: at the end, (slots, width).
        message_length: elements of the whole message [count].
    """
    if not schedule.after.any():
        return None
    length = message_length // schedule.blocks
    if schedule.final is not None:
        return state[schedule.final].reshape(schedule.num_ranks, -1)[:, :length].ravel()
    chunks = state[: schedule.num_chunks]
    by_block = chunks.reshape(schedule.blocks, -1)[:, :length]
    if schedule.after.all():
        return by_block.ravel()
    if schedule.blocks > 1:
        return by_block[schedule.after.reshape(schedule.blocks, -1).any(axis=1)].ravel()
    stored = by_block.ravel()
    due = np.repeat(schedule.after, state.shape[1])[:length]
    return np.where(due, stored, np.zeros(1, stored.dtype))


class Scratch:
    """Buffers that are allocated once and reused by later calls of the same size or less."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def table(self, name: str, rows: int, width: int, dtype: np.dtype) -> np.ndarray:
        """An uninitialised (rows, width) table.

        Args:
            name: which buffer; tables of one name share their memory.
            rows, width: its shape [count].
            dtype: of its elements.
        """
        size = rows * width * dtype.itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.nbytes < size:
            buffer = self._buffers[name] = np.empty(size, np.uint8)
        return buffer[:size].view(dtype).reshape(rows, width)


def run_rank(
    schedule: RankSchedule,
    transport: Callable[[Iterator[Exchange]], None],
    given: np.ndarray | None,
    result: np.ndarray | None,
    message_length: int,
    reduce: Reduction,
    scratch: Scratch,
) -> None:
    """Execute a rank schedule on the arrays of a user, in the memory of the result where the chunks divide the message.

    Args:
        schedule: of this rank.
        transport: sends and receives the messages of every exchange.
        given: what the rank holds at the start, flat and contiguous: the whole message or its block; None if nothing.
        result: filled with its result, flat and contiguous; None if it gets nothing. It may be `given`.
        message_length: elements of the whole message [count].
        reduce: reduces one table of rows into another.
        scratch: buffers for the state where it cannot be the result, and for staging.
    """
    some = given if given is not None else result
    dtype = np.dtype(np.uint8) if some is None else some.dtype
    width = chunk_width(schedule, message_length)
    staging = scratch.table("staging", schedule.stage_rows, width, dtype)
    in_result = (
        result is not None
        and schedule.slots == schedule.num_chunks
        and len(result) == message_length == schedule.num_chunks * width
        and schedule.final is None
        and bool(schedule.after.all())
    )
    if in_result:
        assert result is not None
        state = result.reshape(schedule.num_chunks, width)
        if given is not None and given is not result:
            if len(given) == message_length:
                result[:] = given
            else:
                result.reshape(schedule.blocks, -1)[schedule.rank] = given
    else:
        state = scratch.table("state", schedule.slots, width, dtype)
        fill_state(schedule, given, message_length, state)
    transport(play(schedule, state, staging, reduce))
    if result is not None and not in_result:
        stored = store_result(schedule, state, message_length)
        assert stored is not None
        result[:] = stored
