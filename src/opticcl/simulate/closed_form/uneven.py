"""Time of an all_to_all whose ranks send unequal parts, by the schedule and the circuits of an even one.

    pair       the bytes from one rank to another, in as many equal pieces as the schedule cuts a block into
    transfer   the pieces that its sender holds of the chunks that it carries: its own, and those that it forwards
    round      as long as its slowest transfer, or on packets as its busiest link

Latencies, changes of circuits and control messages are those of the even exchange. No schedule is made for the parts, and no
bytes are sent twice: with equal parts the time is that of the even exchange.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, IntArray, Schedule, Timeline, Transfers, numbered
from opticcl.simulate.closed_form.engine import Profile, rounds_s
from opticcl.simulate.closed_form.facts import slowest_load
from opticcl.simulate.guards import refuse_below_bound

__all__ = ["UnevenExchange", "port_bytes"]


@dataclass(frozen=True, slots=True)
class _Step:
    """Pieces that a step moves.

    Args:
        transfers: of the step [count].
        transfer, pair: row of the transfer and number of the pair (sender * ranks + receiver) of each piece, int32 (pieces,).
    """

    transfers: int
    transfer: IntArray
    pair: IntArray


class UnevenExchange:
    """All_to_alls of any parts by the plan of an even one.

    Args: plan: of an all_to_all.
    """

    def __init__(self, plan: CircuitPlan) -> None:
        schedule = plan.schedule
        self._plan = plan
        self._pieces = schedule.collective.num_chunks // schedule.collective.num_ranks
        self._steps = _pieces_of_steps(schedule)
        self._rounds: list[tuple[Circuits, ...]] = [
            tuple(circuits.carrying() for circuits in plan.rounds(steps.start)) for steps in schedule.step_classes()
        ]

    def timeline(self, even: Profile, matrix: IntArray) -> Timeline:
        """Time of an exchange.

        Args:
            even: profile of the plan.
            matrix: bytes that each rank of the group (row) sends to each (column), int (ranks, ranks) [bytes].
        Raises: BoundError: a node would move more than its rate.
        """
        fabric, chunk_bytes = self._plan.fabric, np.asarray(matrix, np.float64).ravel() / self._pieces
        moving = []
        for steps, rounds in zip(self._plan.schedule.step_classes(), self._rounds, strict=True):
            took_s = 0.0
            for one in self._steps[steps.start : steps.stop]:
                carried = np.bincount(one.transfer, chunk_bytes[one.pair], one.transfers)
                took_s += rounds_s(fabric, tuple(slowest_load(fabric, carried, circuits) for circuits in rounds), 1.0)
            moving.append(took_s)
        still = even.timeline(0, bounded=False)
        bound_s = float(port_bytes(matrix).max()) * 8 / fabric.node_rate_bits_per_s
        timeline = replace(
            still, transfer_s=np.array(moving), lower_bound_s=bound_s, bound_by="bytes of the busiest port"
        )
        refuse_below_bound(self._plan, timeline, "closed_form")
        return timeline


def port_bytes(matrix: IntArray) -> IntArray:
    """Bytes that each rank sends to others and receives from others, int64 (2, ranks) [bytes].

    Args: matrix: bytes that each rank (row) sends to each (column), int (ranks, ranks) [bytes].
    """
    others = np.array(matrix, np.int64)
    np.fill_diagonal(others, 0)
    return np.stack([others.sum(axis=1), others.sum(axis=0)])


def _pieces_of_steps(schedule: Schedule) -> list[_Step]:
    """What each step moves: every piece is at one rank at a time, which gives it up as it sends it."""
    collective, ranks = schedule.collective, schedule.num_ranks
    n, chunks = collective.num_ranks, collective.num_chunks
    assert collective.owner is not None
    holder = np.repeat(
        np.arange(ranks, dtype=np.int32)[:, None], chunks, axis=1
    )  # by the rank a piece is from, and chunk
    pair = (np.arange(ranks, dtype=np.int32) % n * n)[:, None] + collective.owner
    every, pieces = np.arange(chunks), list[_Step]()
    for i in range(schedule.num_steps):
        transfers = schedule.step(i)
        row, chunk = _carried(transfers)
        row_of = np.full((ranks, chunks), -1, np.int32)
        row_of[transfers.src[row], chunk] = row
        sent = row_of[holder, every]
        moved = sent >= 0
        pieces.append(_Step(len(transfers), sent[moved], pair[moved]))
        holder[moved] = transfers.dst[sent[moved]]
    return pieces


def _carried(transfers: Transfers) -> tuple[IntArray, IntArray]:
    """Row and chunk of every chunk that transfers carry."""
    row, nth = numbered(transfers.chunk_n)
    return row, transfers.chunk_lo[row] + nth * (1 if transfers.chunk_step is None else transfers.chunk_step[row])
