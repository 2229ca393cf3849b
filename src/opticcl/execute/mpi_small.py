"""Calls of few bytes over MPI: memory and messages that are made once and started at every call.

Before data move, every pair of ranks compares what it calls, by a message of one size for all calls. It has room for what a
rank sends to the other in the first step of a small call: the receiver takes it once all ranks agree. Later steps are messages
of their own, to be started. Which calls are small is a function of what all ranks agree on.

Source: MPI 4.1, section 3.9 (persistent communication).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opticcl.execute.loop import Reduction, chunk_width, fill_state, store_result
from opticcl.execute.mpi import TAGS, MpiTransport, load_mpi
from opticcl.execute.prepared import PreparedStep, prepare
from opticcl.execute.ranks import RankSchedule

__all__ = ["SMALL_BYTES", "CallCheck", "SmallCall"]

SMALL_BYTES = 1 << 17
"""Largest message of a call that is kept [bytes]."""
ROOM_BYTES = 1 << 14
"""Room for data of the first step in the messages of a rank to all others together [bytes]."""
SHARE_BYTES = 1 << 11
"""Most room in one of them [bytes]."""
HEAD = 3


class CallCheck:
    """Compares what all ranks call, by one message between every pair.

    Args:
        comm: mpi4py communicator that nothing else uses.
        transport: of the same ranks.
    """

    def __init__(self, comm: Any, transport: MpiTransport) -> None:
        self._transport, self._rank = transport, comm.rank
        others = [other for other in range(comm.size) if other != comm.rank]
        room = min(SHARE_BYTES, ROOM_BYTES // max(1, len(others))) // 8
        self._given, self._found = np.zeros((2, comm.size, HEAD + room), np.int64)
        self._heads = self._found[:, :HEAD]
        self._requests = [comm.Recv_init(self._found[other], other, TAGS) for other in others]
        self._requests += [comm.Send_init(self._given[other], other, TAGS) for other in others]

    def heads(self, head: np.ndarray) -> np.ndarray:
        """The heads of all ranks, int64 (ranks, HEAD), until the next call.

        Args: head: of this rank, int64 (HEAD,), none negative.
        """
        self._found[:, 0] = -1
        self._given[:, :HEAD] = head
        self._heads[self._rank] = head
        self._transport.start(self._requests, self._where)
        return self._heads

    def room(self, peer: int, like: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Arrays of that shape in the messages to and from a rank; None if there is no room.

        Args:
            peer: the other rank.
            like: rows that are sent or received.
        """
        if like.nbytes > 8 * (self._given.shape[1] - HEAD):
            return None
        rows = (table[peer, HEAD:].view(np.uint8)[: like.nbytes] for table in (self._given, self._found))
        to, of = (row.view(like.dtype).reshape(like.shape) for row in rows)
        return to, of

    def free(self) -> None:
        """Free the messages."""
        for request in self._requests:
            request.Free()

    def _where(self) -> str:
        missing = ", ".join(map(str, np.flatnonzero(self._found[:, 0] < 0)[:8]))
        return f"{self._transport.label}, before step 0, waiting for rank {missing}"


class SmallCall:
    """One collective of few bytes, for all its calls of one length and type.

    Args:
        schedule: of this rank.
        length: elements of the whole message, at least one [count].
        dtype: of the elements.
        reduce: reduces one table of rows into another.
        comparison: of the calls of all ranks.
        comm, transport: that carry the messages.
    """

    def __init__(
        self,
        schedule: RankSchedule,
        length: int,
        dtype: np.dtype,
        reduce: Reduction,
        comparison: CallCheck,
        comm: Any,
        transport: MpiTransport,
    ) -> None:
        self._schedule, self._length, self._transport = schedule, length, transport
        width = chunk_width(schedule, length)
        state, staging = (np.zeros((rows, width), dtype) for rows in (schedule.slots, schedule.stage_rows))
        self._state = state
        chunks = state[: schedule.num_chunks]
        whole = chunks.reshape(-1) if chunks.size == length and schedule.final is None else None
        self._before = whole if schedule.before.all() else None
        self._after = whole if schedule.after.all() else None
        byte = load_mpi().BYTE
        self._steps: list[tuple[PreparedStep, list[Any], Callable[[], str]]] = []
        for step in prepare(schedule, state, staging, reduce, comparison.room):
            number, sends, recvs = step.exchange
            tag = number % TAGS
            requests = [comm.Recv_init([rows.view(np.uint8), byte], peer, tag) for peer, rows in recvs]
            requests += [comm.Send_init([rows.view(np.uint8), byte], peer, tag) for peer, rows in sends]
            peers = ", ".join(map(str, sorted({peer for peer, _ in (*recvs, *sends)})[:8]))
            self._steps.append((step, requests, partial(self._where, f"step {number}, with ranks {peers}")))

    def load(self, given: np.ndarray | None) -> None:
        """Take the input, and write what the comparison carries.

        Args: given: what the rank holds, flat; None if nothing.
        """
        if self._before is not None and given is not None and len(given) == self._length:
            self._before[:] = given
        else:
            fill_state(self._schedule, given, self._length, self._state)
        for step, _, _ in self._steps[:1]:
            for operation in step.before:
                operation()

    def finish(self, result: np.ndarray | None) -> None:
        """Execute all steps, once all ranks agree on the call.

        Args: result: filled, flat; None if the rank gets nothing.
        """
        for number, (step, requests, where) in enumerate(self._steps):
            if number:
                for operation in step.before:
                    operation()
            if requests:
                self._transport.start(requests, where)
            for operation in step.after:
                operation()
        if result is None:
            return
        if self._after is not None and len(result) == self._length:
            result[:] = self._after
        else:
            stored = store_result(self._schedule, self._state, self._length)
            assert stored is not None
            result[:] = stored

    def free(self) -> None:
        """Free the messages."""
        for _, requests, _ in self._steps:
            for request in requests:
                request.Free()

    def _where(self, names: str) -> str:
        return f"{self._transport.label}, {names}"
