"""Calls of few bytes over MPI: what is the same in all of them is made once.

A collective begins with one message between every pair of ranks, by which each knows what the other calls. That of a call
that is kept carries the data of its first step, from where they lie in the memory of the caller, and its tag is a digest of the
call; no two calls that are kept have the same one. That of any other call carries digests of more bits, and one tag for all. A
receiver takes any tag and as many bytes as the largest of them has, and uses the data once all ranks agree. Later steps are
messages of their own, to be started.

Source: MPI 4.1, sections 3.5 (messages of a pair do not overtake each other) and 3.9 (persistent communication).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from opticcl.execute.loop import chunk_width, fill_state, store_result
from opticcl.execute.mpi import TAGS, MpiTransport, load_mpi
from opticcl.execute.prepared import PreparedStep, prepare
from opticcl.execute.ranks import Message, RankSchedule, RankStep, Rows

__all__ = ["CallCheck", "SmallCall", "is_small"]

SMALL_BYTES = 1 << 17
"""Largest message of a call that is kept, with what its chunks are filled up with [bytes]."""
UNKNOWN = (-1, -1, 0)
"""Head of a call that another rank keeps and this one does not, as after an exception on one of them."""


def is_small(schedule: RankSchedule, length: int, dtype: np.dtype) -> bool:
    """Whether calls of that length and type are kept.

    Args:
        schedule: of any rank.
        length: elements of the whole message [count].
        dtype: of the elements.
    """
    return 0 < schedule.num_chunks * chunk_width(schedule, length) * dtype.itemsize <= SMALL_BYTES


class CallCheck:
    """Compares what all ranks call, by one message between every pair.

    Args:
        comm: mpi4py communicator that nothing else uses.
        transport: of the same ranks.
    """

    def __init__(self, comm: Any, transport: MpiTransport) -> None:
        mpi = load_mpi()
        self._comm, self._transport, self._byte, self._waitall = comm, transport, mpi.BYTE, mpi.Request.Waitall
        self.others = [other for other in range(comm.size) if other != comm.rank]
        # pages that nothing is received into take no memory
        self._received = np.zeros((len(self.others), SMALL_BYTES), np.uint8)
        self._arrivals = [
            (other, comm.Recv_init([row, mpi.BYTE], other, mpi.ANY_TAG), mpi.Status())
            for other, row in zip(self.others, self._received, strict=True)
        ]
        self._starts = [arrival.Start for _, arrival, _ in self._arrivals]
        self._early = range(len(self.others) - 1)  # all but the last are sent without waiting
        self._tags = comm.Get_attr(mpi.TAG_UB) - TAGS
        self._heads: dict[int, np.ndarray] = {}  # of the calls that are kept, by tag
        self._awaited = -1

    def keep(self, head: np.ndarray) -> int | None:
        """The tag of a call that is kept from now on; None if another one has it.

        Args: head: of the call, int64 (3,), whose first number is a digest.
        """
        tag = TAGS + 1 + int(head[0]) % self._tags
        return tag if self._heads.setdefault(tag, head) is head else None

    def forget(self) -> None:
        """Keep no call any longer."""
        self._heads.clear()

    def exchange(self, messages: Sequence[Any], tag: int) -> bool:
        """Send the first messages of a call, and receive those of all others.

        Args:
            messages: contiguous memory, one for each of the others.
            tag: of the call.
        Returns: whether all send that tag.
        """
        self._awaited = self.others[-1] if self.others else -1
        self._transport.begin(self._where)
        for start in self._starts:
            start()
        sends = [self._comm.Isend([messages[at], self._byte], self.others[at], tag) for at in self._early]
        if messages:
            self._comm.Send([messages[-1], self._byte], self.others[-1], tag)
        agreed = True
        for other, arrival, status in self._arrivals:
            self._awaited = other
            arrival.Wait(status)
            agreed = agreed and status.tag == tag
        if sends:
            self._waitall(sends)
        self._transport.end()
        return agreed

    def heads(self, head: np.ndarray) -> np.ndarray:
        """Exchange the head of a call that is not kept.

        Args: head: of this rank, int64 (3,).
        Returns: those of all ranks, int64 (ranks, 3).
        """
        self.exchange([head] * len(self.others), TAGS)
        return self.received_heads(head)

    def received_heads(self, head: np.ndarray) -> np.ndarray:
        """The heads of what all ranks called in the last exchange, int64 (ranks, 3).

        Args: head: of this rank.
        """
        heads = np.tile(head, (self._comm.size, 1))
        for row, (other, _, status) in zip(self._received, self._arrivals, strict=True):
            if status.tag == TAGS:
                heads[other] = row[: head.nbytes].view(head.dtype)
            else:
                heads[other] = self._heads.get(status.tag, UNKNOWN)
        return heads

    def received(self, message: Message, width: int, dtype: np.dtype) -> np.ndarray:
        """The rows of a message of the first step, where they are received.

        Args:
            message: of a rank.
            width: elements of a row [count].
            dtype: of the elements.
        """
        rows = message.rows
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        row = self._received[self.others.index(message.peer), : count * width * dtype.itemsize]
        return row.view(dtype).reshape(count, width)

    def free(self) -> None:
        """Free the messages."""
        for _, arrival, _ in self._arrivals:
            arrival.Free()

    def _where(self) -> str:
        return f"{self._transport.label}, before step 0, waiting for rank {self._awaited}"


class SmallCall:
    """One collective of few bytes, for all its calls of one length and type.

    The state of the rank is the memory of the result where one step fills it, and it is loaded only with what is read before it
    is written.

    Args:
        schedule: of this rank.
        length: elements of the whole message, at least one [count].
        dtype: of the elements.
        reduce: (a, b, into): reduces two tables of rows into a third one.
        head, tag: what the ranks compare.
        comparison: of the calls of all ranks.
        comm, transport: that carry the messages.
    """

    def __init__(
        self,
        schedule: RankSchedule,
        length: int,
        dtype: np.dtype,
        reduce: Callable[..., None],
        head: np.ndarray,
        tag: int,
        comparison: CallCheck,
        comm: Any,
        transport: MpiTransport,
    ) -> None:
        self._schedule, self._length, self._reduce, self._transport = schedule, length, reduce, transport
        self._comparison, self._head, self._tag = comparison, head, tag
        width = chunk_width(schedule, length)
        state, staging = (np.zeros((rows, width), dtype) for rows in (schedule.slots, schedule.stage_rows))
        self._state, self._shape = state, (schedule.num_chunks, width)
        whole = (
            schedule.num_chunks * width == length and schedule.slots == schedule.num_chunks and schedule.final is None
        )
        self._from_caller = whole and bool(schedule.before.all())
        self._to_caller = whole and bool(schedule.after.all())
        self._in_result = (
            self._to_caller and len(schedule.steps) <= 1 and (self._from_caller or not schedule.before.any())
        )
        first = schedule.steps[0] if schedule.steps else RankStep()
        rows_of = {message.peer: message.rows for message in first.sends}
        self._sends = [rows_of.get(other, slice(0, 0)) for other in comparison.others]
        received = {message.peer: comparison.received(message, width, dtype) for message in first.recvs}
        staged = [message for message in first.recvs if message.staged]
        self._staged = [(staging[message.rows], received[message.peer]) for message in staged if len(staged) > 1]
        self._rows = received[staged[0].peer] if len(staged) == 1 else staging
        self._stores = [
            *((message.rows, received[message.peer], slice(None)) for message in first.recvs if not message.staged),
            *((slots, self._rows, rows) for rows, slots in first.copies),
        ]
        fresh, self._loaded = _first_reads(schedule)
        self._turns = [  # the rows themselves where they are consecutive, as the slots then are
            (slots, self._rows[rows] if isinstance(rows, slice) else rows, is_fresh)
            for (rows, slots), is_fresh in zip(first.turns, fresh, strict=True)
        ]
        byte = load_mpi().BYTE
        self._later: list[tuple[PreparedStep, list[Any], Callable[[], str]]] = []
        for step in prepare(replace(schedule, steps=schedule.steps[1:]), state, staging, reduce, _no_room):
            number, sends, recvs = step.exchange
            tag = number % TAGS
            requests = [comm.Recv_init([rows.view(np.uint8), byte], peer, tag) for peer, rows in recvs]
            requests += [comm.Send_init([rows.view(np.uint8), byte], peer, tag) for peer, rows in sends]
            peers = ", ".join(map(str, sorted({peer for peer, _ in (*recvs, *sends)})[:8]))
            self._later.append((step, requests, partial(self._where, f"step {number + 1}, with ranks {peers}")))

    def run(self, given: np.ndarray | None, result: np.ndarray | None) -> np.ndarray | None:
        """Execute a call of this rank, if all ranks call the same.

        Args:
            given: what the rank holds, contiguous; None if nothing.
            result: filled, contiguous; None if the rank gets nothing.
        Returns: None; where the ranks call different things, their heads, as of `CallCheck`, and no result is written.
        """
        state = source = self._state
        if self._from_caller:
            assert given is not None
            source = given.reshape(self._shape)
        elif not self._in_result:
            fill_state(self._schedule, None if given is None else given.reshape(-1), self._length, state)
        if not self._comparison.exchange([source[rows] for rows in self._sends], self._tag):
            return self._comparison.received_heads(self._head)
        if self._in_result and result is not None:
            state = result.reshape(self._shape)
        if self._from_caller and self._loaded is not None and not (self._in_result and given is result):
            state[self._loaded] = source[self._loaded]
        self._finish_first(source, state)
        for step, requests, where in self._later:
            for operation in step.before:
                operation()
            if requests:
                self._transport.start(requests, where)
            for operation in step.after:
                operation()
        if result is not None and not self._in_result:
            stored = state if self._to_caller else store_result(self._schedule, state, self._length)
            assert stored is not None
            result.reshape(-1)[:] = stored.reshape(-1)
        return None

    def _finish_first(self, source: np.ndarray, state: np.ndarray) -> None:
        """Copy and add what was received in the first step.

        Args:
            source: what the rank held at the start.
            state: with what is read of it before it is written.
        """
        for target, message in self._staged:
            target[:] = message
        for slots, table, rows in self._stores:
            state[slots] = table[rows]
        for slots, rows, fresh in self._turns:
            terms = (source if fresh else state)[slots]
            if isinstance(slots, slice):
                self._reduce(terms, rows, state[slots])
            else:
                self._reduce(terms, self._rows[rows], terms)
                state[slots] = terms

    def free(self) -> None:
        """Free the messages."""
        for _, requests, _ in self._later:
            for request in requests:
                request.Free()

    def _where(self, names: str) -> str:
        return f"{self._transport.label}, {names}"


def _no_room(peer: int, rows: np.ndarray) -> None:
    """Later steps have messages of their own."""


def _first_reads(schedule: RankSchedule) -> tuple[list[bool], Rows | None]:
    """What is read of the state that a rank has at the start, before it is written.

    Args: schedule: of the rank.
    Returns: for each turn of the first step, whether all its slots are as they were at the start; the slots that anything else
        reads, None where there are none.
    """
    written, read = np.zeros((2, schedule.slots), np.bool_)
    fresh = []
    for number, step in enumerate(schedule.steps):
        for message in step.sends if number else ():
            read[message.rows] |= ~written[message.rows]
        for message in step.recvs:
            if not message.staged:
                written[message.rows] = True
        for _, slots in step.copies:
            written[slots] = True
        for _, slots in step.turns:
            if number == 0:
                fresh.append(not written[slots].any())
            if number or not fresh[-1]:
                read[slots] |= ~written[slots]
            written[slots] = True
    due = np.flatnonzero(schedule.after) if schedule.final is None else schedule.final
    read[due] |= ~written[due]
    return fresh, None if not read.any() else slice(None) if read.all() else np.flatnonzero(read)
