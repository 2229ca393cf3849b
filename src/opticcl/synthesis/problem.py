"""What must be synthesised, as plain data: pieces, who holds each at the start and who must have it at the end.

A piece is what one laser carries in one round. It is a chunk of the message; in an all_to_all it is what one rank has for a
chunk, since these stay apart.

    copies   who wants a piece gets it from any rank that holds it           all_gather, broadcast, scatter, gather
    moves    the same, each piece has one holder and one receiver            all_to_all, send_recv
    sums     who wants a piece gets the sum of what its holders have         reduce, reduce_scatter, all_reduce
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.collective import Request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Collective, IntArray
from opticcl.synthesis.wafer import Wafer

__all__ = ["MOST_PIECES", "Problem", "asked_for", "given_by", "refuse_what_light_cannot_do"]

MOST_PIECES = 1 << 18
OF_BLOCKS = ("all_gather", "all_to_all", "reduce_scatter", "scatter", "gather", "send_recv")

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What must be true before and after, piece by piece.

    Args:
        collective: the same for the judge.
        chunk: of each piece, int32 (pieces,).
        before, after: who holds (a part of) each piece at the start, and who must have it at the end, bool (pieces, ranks).
    """

    collective: Collective
    chunk: IntArray
    before: Flags
    after: Flags

    @property
    def adds(self) -> bool:
        """Whether what ranks hold of a piece is added up."""
        return self.collective.reduces

    @property
    def num_sends(self) -> int:
        """Sends that every schedule needs at least [count]."""
        return int((self.after & ~self.before).sum())


def asked_for(collective: Request, num_ranks: int, chunks: int) -> Problem:
    """A registered collective.

    Args:
        num_ranks: ranks of the job [count].
        chunks: parts of each rank's block where ranks have blocks (all_gather, all_to_all, reduce_scatter, scatter,
            gather, send_recv), of the message where they have none (all_reduce, broadcast, reduce) [count].
    Raises: ParameterError: no chunks, or too many; a root that is no rank.
    """
    if chunks < 1:
        raise ParameterError(f"{collective.name}: chunks={chunks}; there is at least 1, try 1")
    if collective.name == "barrier" and chunks > 1:
        raise ParameterError(f"barrier: chunks={chunks}; it carries nothing, try 1")
    num_chunks = chunks * num_ranks if collective.name in OF_BLOCKS else chunks
    if num_chunks * num_ranks > MOST_PIECES:
        most = max(1, MOST_PIECES * chunks // (num_chunks * num_ranks))
        raise ParameterError(
            f"{collective.name}: chunks={chunks} on {num_ranks} ranks are too many to decide on one by one; try {most}"
        )
    return given_by(collective.on(num_ranks, num_chunks))


def given_by(c: Collective) -> Problem:
    """The pieces of a collective."""
    ranks, chunks = np.arange(c.num_ranks), np.arange(c.num_chunks)
    before, after = (
        np.array(np.broadcast_to(held(ranks[None, :], chunks[:, None]), (c.num_chunks, c.num_ranks)))
        for held in (c.before, c.after)
    )
    if c.keeps_apart:
        chunk, holder = np.nonzero(before & ~after)
        before = ranks[None, :] == holder[:, None]
        return Problem(c, chunk.astype(np.int32), before, after[chunk])
    return Problem(c, chunks.astype(np.int32), before, after)


def refuse_what_light_cannot_do(problem: Problem, wafer: Wafer) -> None:
    """Tell why no schedule exists: a rank that no light leads to from those who have what it wants.

    Light goes on wherever edges are open, so what a rank cannot get straight from a holder it cannot get at all.

    Raises: UnsupportedError: with the certificate.
    """
    lit = np.eye(wafer.num_ranks, dtype=bool)
    for (src, dst), paths in wafer.routes.items():
        lit[src, dst] = bool(paths)
    lit &= (wafer.sends.astype(np.int64) @ wafer.hears.T.astype(np.int64) > 0) | np.eye(wafer.num_ranks, dtype=bool)
    if problem.adds:  # all parts must arrive
        apart = problem.after & ((problem.before.astype(np.int64) @ (~lit).astype(np.int64)) > 0)
    else:
        apart = problem.after & ((problem.before.astype(np.int64) @ lit.astype(np.int64)) == 0)
    if not apart.any():
        return
    piece, rank = (int(i) for i in np.argwhere(apart)[0])
    holders = np.flatnonzero(problem.before[piece] & ~lit[:, rank])
    dark = [int(h) for h in holders if not wafer.sends[h].any()]
    if dark:
        why = f"all lasers of rank {dark[0]} (tile {wafer.tile[dark[0]]}) are dead"
    else:
        why = f"the grid is cut between tile {wafer.tile[holders[0]]} and tile {wafer.tile[rank]}"
    who = f"rank {holders[0]}" if len(holders) == 1 else f"ranks {', '.join(map(str, holders[:8]))}"
    raise UnsupportedError(
        f"{problem.collective.name}: no schedule exists: no light leads from {who} to rank {rank}, which wants "
        f"chunk {problem.chunk[piece]}: {why}"
    )
