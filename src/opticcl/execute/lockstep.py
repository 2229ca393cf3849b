"""The rank schedules of all ranks in this process, step by step: copied (the reference of the transports), or as light."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from opticcl.execute.buffers import read_inputs
from opticcl.execute.loop import Exchange, chunk_width, load_state, play, store_result
from opticcl.execute.ranks import rank_schedules
from opticcl.ir import Schedule

__all__ = ["execute_by_ranks", "run_in_lockstep"]


Carry = Callable[[list[Exchange]], None]
"""Carries the messages of a step: the exchanges of all ranks."""


def _copied(exchanges: list[Exchange]) -> None:
    """Copy what each rank sends to where it is received."""
    sent = {(rank, peer): buffer for rank, exchange in enumerate(exchanges) for peer, buffer in exchange.sends}
    for rank, exchange in enumerate(exchanges):
        for peer, buffer in exchange.recvs:
            buffer[...] = sent[peer, rank]


def run_in_lockstep(players: Iterable[Iterator[Exchange]], carry: Carry = _copied) -> None:
    """Execute all ranks in this process, step by step.

    Args:
        players: of `play`, one per rank.
        carry: of the messages of a step.
    """
    running = list(players)
    while exchanges := [exchange for player in running if (exchange := next(player, None))]:
        carry(exchanges)


def execute_by_ranks(
    schedule: Schedule, arrays: Sequence[npt.ArrayLike | None] | np.ndarray, carry: Carry = _copied
) -> list[np.ndarray | None]:
    """Run a verified schedule as its rank schedules; bit by bit the results of `opticcl.execute.execute`.

    Args:
        schedule: the schedule.
        arrays: as for `execute`.
        carry: of the messages of a step.
    Raises: ParameterError: see `execute`.
    """
    layout, given = read_inputs(schedule.collective, arrays)
    schedules = rank_schedules(schedule)
    length = int(np.prod(layout.shape, dtype=np.int64))
    width = chunk_width(schedules[0], length)
    states = [
        load_state(cut, given[cut.rank].ravel() if cut.rank in given else None, length, layout.dtype)
        for cut in schedules
    ]

    def add(target: np.ndarray, source: np.ndarray) -> None:
        target += source

    run_in_lockstep(
        (
            play(cut, state, np.empty((cut.stage_rows, width), layout.dtype), add)
            for cut, state in zip(schedules, states, strict=True)
        ),
        carry,
    )
    results: list[np.ndarray | None] = []
    for cut, state in zip(schedules, states, strict=True):
        flat = store_result(cut, state, length)
        shape = layout.shape if flat is None or flat.size == length else layout.block_shape
        results.append(None if flat is None else flat.reshape(shape))
    return results
