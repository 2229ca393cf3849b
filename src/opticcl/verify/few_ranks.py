"""Parts of a schedule whose chunks few ranks ever hold, as those of a gather.

A rank that does not hold any of some chunks at the start, does not need them at the end, and neither sends nor receives them,
cannot end with a wrong result of them. So those chunks are followed at the other ranks alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from opticcl.ir import Collective, IntArray, Schedule, Transfers
from opticcl.ir.collective import Holders
from opticcl.ir.step_blocks import step_blocks
from opticcl.verify.chunk_rows import chunks_unknown, num_apart, with_neighbours_alone
from opticcl.verify.symmetry import runs_of

__all__ = ["FewRanks", "few_ranks"]

MOST_ROWS = 1 << 22  # of all steps, which are kept
CHUNKS_AT_ONCE = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class FewRanks:
    """A schedule with one or no rank that holds a chunk at the start, and that needs it at the end.

    Args:
        schedule: without runs of several steps.
        steps: its rows, with neighbouring chunks alone.
        transfers: of all steps [count].
    """

    schedule: Schedule
    steps: tuple[Transfers, ...]
    transfers: int

    def parts(self, chunks: IntArray, most_cells: int) -> Iterator[tuple[IntArray, IntArray, Schedule]]:
        """Some of the chunks at a time, the ranks that may hold them, and the schedule of these.

        Ranks get numbers from 0 on, in the same order; chunks keep theirs.

        Args:
            chunks: ascending.
            most_cells: ranks times chunks of a part that has more than one chunk [count].
        """
        waiting = [chunks[at : at + CHUNKS_AT_ONCE] for at in range(0, len(chunks), CHUNKS_AT_ONCE)][::-1]
        while waiting:
            some = waiting.pop()
            below = np.searchsorted(some, np.arange(self.schedule.collective.num_chunks + 1))
            steps = [rows.take(below[rows.chunk_lo + rows.chunk_n] > below[rows.chunk_lo]) for rows in self.steps]
            ranks = self._ranks(some, steps)
            if len(ranks) * len(some) > most_cells and len(some) > 1:
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
                continue
            yield some, ranks, self._among(ranks, steps)

    def _ranks(self, chunks: IntArray, steps: list[Transfers]) -> IntArray:
        """Ranks that hold, send, receive or need any of these chunks, ascending.

        Args:
            chunks: ascending.
            steps: rows that carry them.
        """
        c = self.schedule.collective
        seen = np.zeros(c.num_ranks, bool)
        for holders in (c.before, c.after):
            assert isinstance(holders, Holders)
            seen[holders.root if holders.owners is None else holders.owners[chunks]] = True
        for rows in steps:
            seen[rows.src] = seen[rows.dst] = True
        return np.flatnonzero(seen)

    def _among(self, ranks: IntArray, steps: list[Transfers]) -> Schedule:
        """The schedule among some ranks.

        Args:
            ranks: all that occur in the steps, ascending.
            steps: rows.
        """
        c = self.schedule.collective
        number = np.zeros(c.num_ranks, np.int32)
        number[ranks] = np.arange(len(ranks))
        rows = [replace(step, src=number[step.src], dst=number[step.dst]) for step in steps]
        few = replace(
            c,
            num_ranks=len(ranks),
            before=lambda rank, chunk: c.before(ranks[rank], chunk),
            after=lambda rank, chunk: c.after(ranks[rank], chunk),
        )
        return Schedule(self.schedule.name, few, len(rows), rows.__getitem__)


def few_ranks(schedule: Schedule) -> FewRanks | None:
    """The schedule, if at the start and at the end one rank has each chunk, and if all of its rows exist and can be kept.

    None where not, or where steps are evaluated many at a time.

    Args: schedule: to be checked.
    """
    c, transfers = schedule.collective, 0
    if not (_of_one_rank(c.before) and _of_one_rank(c.after)) or step_blocks(schedule) is not None:
        return None
    steps: list[Transfers] = []
    for run in runs_of(schedule):
        if run.count > 1 or len(run.members) > 1:
            return None
        step = run.base()
        transfers += len(step)
        if num_apart(step) > MOST_ROWS or not _exist(step, c):
            return None
        steps.append(with_neighbours_alone(step)[0])
        if sum(map(len, steps)) > MOST_ROWS:
            return None
    return FewRanks(schedule, tuple(steps), transfers)


def _of_one_rank(holders: object) -> bool:
    return isinstance(holders, Holders) and holders.kind != "all"


def _exist(step: Transfers, c: Collective) -> bool:
    """Whether all ranks and chunks of a step exist.

    Args:
        step: rows.
        c: collective.
    """
    if not len(step):
        return True
    ends = np.minimum(step.src, step.dst), np.maximum(step.src, step.dst)
    return bool(ends[0].min() >= 0 and ends[1].max() < c.num_ranks and not chunks_unknown(step, c.num_chunks).any())
