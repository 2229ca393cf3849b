"""Steps of a rank schedule on memory that is kept: what each call would look up again is looked up once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opticcl.execute.loop import Buffer, Exchange, Reduction
from opticcl.execute.ranks import RankSchedule, Rows

__all__ = ["PreparedStep", "Room", "prepare"]

Room = Callable[[int, Buffer], tuple[Buffer, Buffer] | None]
"""(peer, rows): arrays like these rows in the messages to and from that rank; None if there is no room."""


class PreparedStep(NamedTuple):
    """One step of one rank.

    Args:
        exchange: its messages.
        before: packs rows that are sent and do not lie side by side.
        after: copies and adds what was received.
    """

    exchange: Exchange
    before: list[Callable[[], Any]]
    after: list[Callable[[], Any]]


def prepare(
    schedule: RankSchedule, state: Buffer, staging: Buffer, reduce: Reduction, room: Room
) -> list[PreparedStep]:
    """The steps of a rank schedule, as `opticcl.execute.loop.play` executes them.

    Args:
        schedule: of this rank.
        state: (slots, width), contiguous.
        staging: (stage_rows, width), contiguous.
        reduce: reduces one table of rows into another.
        room: in messages that are sent and received before the first step, which then carry those of that step.
    """
    prepared = []
    for number, step in enumerate(schedule.steps):
        before, after = list[Callable[[], Any]](), list[Callable[[], Any]]()
        sends, recvs = list[tuple[int, Buffer]](), list[tuple[int, Buffer]]()
        for message in step.recvs:
            place = (staging if message.staged else state)[message.rows]
            if number == 0 and (carried := room(message.peer, place)) is not None:
                after.append(_copying(place, carried[1]))
            else:
                recvs.append((message.peer, place))
        for message in step.sends:
            rows = state[message.rows]
            carried = room(message.peer, rows) if number == 0 else None
            if carried is not None:
                before.append(_taking(state, message.rows, carried[0]))
            else:
                sends.append((message.peer, rows))
                if not isinstance(message.rows, slice):  # they are packed
                    before.append(_taking(state, message.rows, rows))
        after += [partial(_store, state, slots, staging, rows) for rows, slots in step.copies]
        for rows, slots in step.turns:
            if isinstance(slots, slice) and isinstance(rows, slice):
                after.append(partial(reduce, state[slots], staging[rows]))
            else:
                after.append(partial(_add, state, slots, staging, rows, reduce))
        prepared.append(PreparedStep(Exchange(number, sends, recvs), before, after))
    return prepared


def _copying(target: Buffer, source: Buffer) -> Callable[[], Any]:
    """Copies an array or a tensor into another."""
    return partial(np.copyto, target, source) if isinstance(target, np.ndarray) else partial(target.copy_, source)


def _taking(table: Buffer, rows: Rows, target: Buffer) -> Callable[[], Any]:
    """Copies rows of a table into another one."""
    return _copying(target, table[rows]) if isinstance(rows, slice) else partial(_take, table, rows, target)


def _take(table: Buffer, rows: Rows, target: Buffer) -> None:
    target[:] = table[rows]


def _store(state: Buffer, slots: Rows, staging: Buffer, rows: Rows) -> None:
    state[slots] = staging[rows]


def _add(state: Buffer, slots: Rows, staging: Buffer, rows: Rows, reduce: Reduction) -> None:
    sums = state[slots]
    reduce(sums, staging[rows])
    state[slots] = sums
