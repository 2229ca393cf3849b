"""Calls of few bytes on tensors: memory and messages that are made once, and used by every call of one length and type."""

from __future__ import annotations

import torch

from opticcl.execute.loop import Exchange, Reduction, chunk_width, fill_state
from opticcl.execute.prepared import PreparedStep, prepare
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.torch.agreement import Agreement, GroupCall
from opticcl.execute.torch.connections import Connections, bytes_of
from opticcl.execute.torch.tables import store_table

__all__ = ["SMALL_BYTES", "SmallTensorCall"]

SMALL_BYTES = 1 << 15
"""Largest message of a call that is kept [bytes]."""


class SmallTensorCall:
    """One collective of few bytes, for all its calls of one length and type.

    Args:
        schedule: of this rank.
        asked: what is compared with the calls of other ranks.
        length: elements of the whole message, at least one [count].
        dtype: of the elements.
        reduce: reduces one table of rows into another.
        agreement, transport: of the group.
    """

    def __init__(
        self,
        schedule: RankSchedule,
        asked: GroupCall,
        length: int,
        dtype: torch.dtype,
        reduce: Reduction,
        agreement: Agreement,
        transport: Connections,
    ) -> None:
        self._schedule, self._asked, self._length = schedule, asked, length
        self._agreement, self._transport = agreement, transport
        width = chunk_width(schedule, length)
        state, staging = (torch.zeros((rows, width), dtype=dtype) for rows in (schedule.slots, schedule.stage_rows))
        self._state = state
        chunks = state[: schedule.num_chunks]
        whole = chunks.view(-1) if chunks.numel() == length and schedule.final is None else None
        self._before = whole if schedule.before.all() else None
        self._after = whole if schedule.after.all() else None
        self._steps = [
            PreparedStep(Exchange(number, _memory_of(sends), _memory_of(recvs)), before, after)
            for (number, sends, recvs), before, after in prepare(schedule, state, staging, reduce, agreement.room)
        ]

    def run(self, given: torch.Tensor | None, result: torch.Tensor | None) -> None:
        """Execute a call, once all ranks agree on it; the result is written at the end.

        Args:
            given: what the rank holds, flat; None if nothing.
            result: filled, flat; None if the rank gets nothing.
        """
        if self._before is not None and given is not None and given.numel() == self._length:
            self._before.copy_(given)
        else:
            fill_state(self._schedule, given, self._length, self._state)
        tag = 0
        for number, (exchange, before, after) in enumerate(self._steps):
            for operation in before:
                operation()
            if number:
                self._transport.post(exchange, tag)()
            else:
                tag = self._agreement.agree(self._asked, exchange)
                self._transport.underway = True
            for operation in after:
                operation()
        self._transport.underway = False
        if result is None:
            return
        if self._after is not None and result.numel() == self._length:
            result.copy_(self._after)
        else:
            store_table(self._schedule, self._state, self._length, result)


def _memory_of(messages: list[tuple[int, torch.Tensor]]) -> list[tuple[int, memoryview]]:
    return [(peer, bytes_of(rows)) for peer, rows in messages]
