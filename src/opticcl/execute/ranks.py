"""Rank schedules: what each rank of a verified schedule sends, receives and computes, step by step.

The state of a rank is a table of slots, one for each chunk of the message in the order of the message; where contributions
are kept apart (all_to_all), one for each contribution that the rank holds. A step has at most one message per ordered pair of
ranks, with the chunks in the order of the rows of the schedule:

    send       consecutive slots are sent in place, others are packed
    receive    into consecutive slots in place, where the message is only stored and this step sends none of them;
               otherwise into rows of a staging buffer
    copies     staging rows to slots, once all messages of the step have been sent and received
    turns      staging rows are added to slots, in the order of the rows of the schedule; a slot occurs at most once in a turn

So results are bit by bit those of `opticcl.execute`, sums of floats included, whatever the order of arrival.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.execute.rows import chunk_order, chunk_rows, disjoint_turns
from opticcl.ir import Collective, IntArray, Op
from opticcl.ir.chunk_rows import stored_first

if TYPE_CHECKING:
    from opticcl.ir import Schedule

__all__ = ["Message", "RankSchedule", "RankStep", "Rows", "rank_schedules"]

Rows = slice | IntArray
"""Rows of a table: a slice where they are consecutive, else their indices."""


class Message(NamedTuple):
    """One message of a step.

    Args:
        peer: the other rank.
        rows: slots that are sent, or slots or staging rows that are received into.
        staged: whether `rows` are staging rows.
    """

    peer: int
    rows: Rows
    staged: bool = False


class RankStep(NamedTuple):
    """One step of one rank.

    Args:
        sends, recvs: messages, in ascending order of the peer.
        stage_rows: rows of the staging buffer in use [count].
        copies: (staging rows, slots) that are stored.
        turns: (staging rows, slots) that are added, one after the other.
    """

    sends: tuple[Message, ...] = ()
    recvs: tuple[Message, ...] = ()
    stage_rows: int = 0
    copies: tuple[tuple[Rows, Rows], ...] = ()
    turns: tuple[tuple[Rows, Rows], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RankSchedule:
    """What one rank executes.

    Args:
        collective: its name.
        rank: this rank.
        num_ranks: ranks of the schedule [count].
        num_chunks: chunks of the message [count].
        blocks: blocks of the message: one, or one per rank [count].
        slots: rows of the state [count].
        before, after: chunks that the rank holds at the start and at the end, in the order of the message,
            bool (num_chunks,).
        final: slot of each chunk of the result, int64 (num_chunks,), where contributions are kept apart; else None.
        steps: one entry per step.
    """

    collective: str
    rank: int
    num_ranks: int
    num_chunks: int
    blocks: int
    slots: int
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]
    final: IntArray | None
    steps: tuple[RankStep, ...]

    @property
    def stage_rows(self) -> int:
        """Rows of the staging buffer [count]."""
        return max((step.stage_rows for step in self.steps), default=0)

    def __repr__(self) -> str:
        return f"<RankSchedule {self.collective}: rank {self.rank} of {self.num_ranks}, {len(self.steps)} steps>"


def rank_schedules(schedule: Schedule) -> list[RankSchedule]:
    """Cut a verified schedule into one schedule per rank.

    Raises: ParameterError: a rank or a chunk is out of range, or a contribution of an all_to_all does not arrive.
    """
    c = schedule.collective
    order = chunk_order(c)
    position = np.argsort(order)
    ranks = np.arange(c.num_ranks)[:, None]
    before, after = (
        np.array(np.broadcast_to(held(ranks, order[None, :]), (c.num_ranks, c.num_chunks)))
        for held in (c.before, c.after)
    )
    steps: list[list[RankStep]] = [[] for _ in range(c.num_ranks)]
    final: list[IntArray | None] = [None] * c.num_ranks
    slots = [c.num_chunks] * c.num_ranks
    if c.keeps_apart:
        moves = _Moves(c, position)
        for i in range(schedule.num_steps):
            moves.add(*chunk_rows(schedule, i)[:3], steps)
        final[:], slots = moves.final_slots(), moves.num_slots
    else:
        rows = (chunk_rows(schedule, i) for i in range(schedule.num_steps))
        for src, dst, chunk, op in stored_first(rows, c.num_ranks, c.num_chunks):
            _add_step(src, dst, position[chunk], op, steps)
    return [
        RankSchedule(
            c.name,
            rank,
            c.num_ranks,
            c.num_chunks,
            1 if c.owner is None else c.num_ranks,
            slots[rank],
            before[rank],
            after[rank],
            final[rank],
            tuple(steps[rank]),
        )
        for rank in range(c.num_ranks)
    ]


def _add_step(
    src: IntArray, dst: IntArray, slot: IntArray, op: npt.NDArray[np.uint8], steps: list[list[RankStep]]
) -> None:
    """Append one step of copies and reductions to the steps of each rank."""
    sends: dict[int, list[Message]] = defaultdict(list)
    arrivals: dict[int, list[tuple[int, IntArray]]] = defaultdict(list)
    for rows in _by_pair(src, dst, len(steps)):
        sender, receiver = int(src[rows[0]]), int(dst[rows[0]])
        sends[sender].append(Message(receiver, _compact(slot[rows])))
        arrivals[receiver].append((sender, rows))
    for rank, own in enumerate(steps):
        sent = {s for message in sends.get(rank, ()) for s in _indices(message.rows)}
        own.append(_receiving_step(tuple(sends.get(rank, ())), arrivals.get(rank, []), slot, op, sent))


def _receiving_step(
    sends: tuple[Message, ...],
    arrivals: list[tuple[int, IntArray]],
    slot: IntArray,
    op: npt.NDArray[np.uint8],
    sent: set[int],
) -> RankStep:
    """A step of one rank.

    Args:
        arrivals: (sender, rows of the step) of each message that it receives.
    """
    recvs: list[Message] = []
    staged: list[IntArray] = []
    stage_rows = 0
    for sender, rows in arrivals:
        place = _compact(slot[rows])
        if isinstance(place, slice) and (op[rows] == Op.COPY).all() and sent.isdisjoint(slot[rows].tolist()):
            recvs.append(Message(sender, place))
            continue
        recvs.append(Message(sender, slice(stage_rows, stage_rows + len(rows)), True))
        staged.append(rows)
        stage_rows += len(rows)
    if not staged:
        return RankStep(sends, tuple(recvs))
    row = np.concatenate(staged)  # of the step, for each staging row
    stage = np.arange(stage_rows)
    stored = op[row] == Op.COPY
    copies = _moves_of(stage[stored], slot[row[stored]])
    adds = np.flatnonzero(~stored)
    adds = adds[np.argsort(row[adds], kind="stable")]  # in the order of the schedule
    turns = [
        pair for turn in disjoint_turns(slot[row[adds]]) for pair in _moves_of(stage[adds[turn]], slot[row[adds[turn]]])
    ]
    return RankStep(sends, tuple(recvs), stage_rows, copies, tuple(turns))


def _by_pair(src: IntArray, dst: IntArray, num_ranks: int) -> list[IntArray]:
    """Rows of each ordered (src, dst) pair, in their order, pairs ascending."""
    if not len(src):
        return []
    key = src.astype(np.int64) * num_ranks + dst
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _moves_of(stage: IntArray, slot: IntArray) -> tuple[tuple[Rows, Rows], ...]:
    """(staging rows, slots) as runs of consecutive rows where these are few, else as one pair of indices."""
    if not len(stage):
        return ()
    order = np.argsort(slot, kind="stable")
    stage, slot = stage[order], slot[order]
    cuts = np.flatnonzero((np.diff(stage) != 1) | (np.diff(slot) != 1)) + 1
    if len(cuts) >= max(1, len(stage) // 4) and len(stage) > 4:
        return ((stage, slot),)
    ends = [0, *cuts.tolist(), len(stage)]
    return tuple(
        (slice(int(stage[a]), int(stage[a]) + b - a), slice(int(slot[a]), int(slot[a]) + b - a))
        for a, b in pairwise(ends)
    )


def _compact(rows: IntArray) -> Rows:
    """A slice where rows are consecutive, else the rows, int64."""
    first = int(rows[0])
    if len(rows) == 1 or (int(rows[-1]) - first == len(rows) - 1 and (np.diff(rows) == 1).all()):
        return slice(first, first + len(rows))
    return rows.astype(np.int64)


def _indices(rows: Rows) -> list[int]:
    return list(range(rows.start, rows.stop)) if isinstance(rows, slice) else rows.tolist()


class _Moves:
    """Slots of all contributions of an all_to_all while its steps are cut.

    A contribution (origin, chunk) is at one rank at a time. A step never receives into a slot that it sends from; such
    slots are free from the next step on.
    """

    def __init__(self, c: Collective, position: IntArray) -> None:
        assert c.owner is not None
        self._c, self._position = c, position
        self._at = np.repeat(np.arange(c.num_ranks)[:, None], c.num_chunks, axis=1)  # rank, by (origin, position)
        self._slot = np.tile(np.arange(c.num_chunks), (c.num_ranks, 1))
        self._free: list[list[int]] = [[] for _ in range(c.num_ranks)]
        self.num_slots = [c.num_chunks] * c.num_ranks

    def add(self, src: IntArray, dst: IntArray, chunk: IntArray, steps: list[list[RankStep]]) -> None:
        """Append one step to the steps of each rank."""
        sends: dict[int, list[Message]] = defaultdict(list)
        arrivals: dict[int, list[tuple[int, IntArray, IntArray]]] = defaultdict(list)
        freed: dict[int, list[int]] = defaultdict(list)
        for rows in _by_pair(src, dst, len(steps)):
            sender, receiver = int(src[rows[0]]), int(dst[rows[0]])
            places = self._position[chunk[rows]]
            pieces = [(o, p) for p in places.tolist() for o in np.flatnonzero(self._at[:, p] == sender).tolist()]
            if not pieces:
                continue
            origin, place = np.array(pieces).T
            slots = self._slot[origin, place]
            sends[sender].append(Message(receiver, _compact(slots)))
            arrivals[receiver].append((sender, origin, place))
            freed[sender] += slots.tolist()
        for rank, own in enumerate(steps):
            own.append(self._receive(rank, tuple(sends.get(rank, ())), arrivals.get(rank, [])))
        for rank, slots_sent in freed.items():
            self._free[rank] = sorted(self._free[rank] + slots_sent)

    def _receive(
        self, rank: int, sends: tuple[Message, ...], arrivals: list[tuple[int, IntArray, IntArray]]
    ) -> RankStep:
        """Place what one rank receives: consecutive free slots in place, scattered ones by way of the staging buffer."""
        recvs: list[Message] = []
        stage, slot = [], []
        stage_rows = 0
        for sender, origin, place in arrivals:
            slots = self._allocate(rank, len(origin))
            self._at[origin, place], self._slot[origin, place] = rank, slots
            rows = _compact(slots)
            if isinstance(rows, slice):
                recvs.append(Message(sender, rows))
                continue
            recvs.append(Message(sender, slice(stage_rows, stage_rows + len(slots)), True))
            stage.append(np.arange(stage_rows, stage_rows + len(slots)))
            slot.append(slots)
            stage_rows += len(slots)
        copies = _moves_of(np.concatenate(stage), np.concatenate(slot)) if stage else ()
        return RankStep(sends, tuple(recvs), stage_rows, copies)

    def _allocate(self, rank: int, count: int) -> IntArray:
        """Free slots, consecutive ones if possible; new ones where they do not suffice."""
        free = np.array(self._free[rank], np.int64)
        if len(free) >= count:
            starts = np.flatnonzero(free[count - 1 :] - free[: len(free) - count + 1] == count - 1)
            first = int(starts[0]) if len(starts) else 0
            self._free[rank] = [*free[:first].tolist(), *free[first + count :].tolist()]
            return free[first : first + count]
        first = self.num_slots[rank]
        self.num_slots[rank] += count
        return np.arange(first, first + count)

    def final_slots(self) -> list[IntArray | None]:
        """Slot of each contribution to the block of each rank, by origin.

        Raises: ParameterError: a contribution does not arrive.
        """
        n, per_block = self._c.num_ranks, self._c.num_chunks // self._c.num_ranks
        slots: list[IntArray | None] = []
        for rank in range(n):
            block = slice(rank * per_block, (rank + 1) * per_block)
            if (self._at[:, block] != rank).any():
                origin = int(np.flatnonzero((self._at[:, block] != rank).any(axis=1))[0])
                raise ParameterError(
                    f"execute: the block of rank {origin} for rank {rank} does not arrive; verify the plan first"
                )
            slots.append(self._slot[:, block].ravel())
        return slots
