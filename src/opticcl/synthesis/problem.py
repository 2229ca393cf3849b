"""The synthesis problem as plain data: pieces, who holds each at the start and who must hold it at the end.

A piece is what one laser carries in one round. It is a chunk of the message; in an all_to_all it is the contribution of one
rank to a chunk, since contributions are kept apart.

    copies       all_gather, broadcast, scatter, gather     a rank receives a piece from any rank that holds it
    moves        all_to_all, send_recv                      the same, each piece has one holder and one receiver
    reductions   reduce, reduce_scatter, all_reduce         a rank receives the sum of the parts of all holders
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.collective import Request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Collective, IntArray
from opticcl.synthesis.wafer import Wafer

__all__ = ["MOST_PIECES", "Problem", "problem_of", "registered_problem", "require_reachable"]

MOST_PIECES = 1 << 18
OF_BLOCKS = ("all_gather", "all_to_all", "reduce_scatter", "scatter", "gather", "send_recv")

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Initial and final state, piece by piece.

    Args:
        collective: the same for the verifier.
        chunk: chunk of each piece, int32 (pieces,).
        before, after: who holds (a part of) each piece at the start, and who must hold it at the end, bool (pieces, ranks).
    """

    collective: Collective
    chunk: IntArray
    before: Flags
    after: Flags

    @property
    def adds(self) -> bool:
        """Whether the parts of a piece are summed."""
        return self.collective.reduces

    @property
    def num_sends(self) -> int:
        """Lower bound on the sends of every schedule [count]."""
        return int((self.after & ~self.before).sum())


def registered_problem(collective: Request, num_ranks: int, chunks: int) -> Problem:
    """The problem of a registered collective.

    Args:
        collective: name and root.
        num_ranks: ranks of the job [count].
        chunks: parts of each rank's block where ranks have blocks (all_gather, all_to_all, reduce_scatter, scatter,
            gather, send_recv), of the message where they have none (all_reduce, broadcast, reduce) [count].
    Raises: ParameterError: no chunks, or too many; a root that is not a rank.
    """
    if chunks < 1:
        raise ParameterError(f"{collective.name}: chunks={chunks} is below 1; try 1")
    if collective.name == "barrier" and chunks > 1:
        raise ParameterError(f"barrier: chunks={chunks}; a barrier carries no data, try 1")
    num_chunks = chunks * num_ranks if collective.name in OF_BLOCKS else chunks
    if num_chunks * num_ranks > MOST_PIECES:
        most = max(1, MOST_PIECES * chunks // (num_chunks * num_ranks))
        raise ParameterError(
            f"{collective.name}: chunks={chunks} on {num_ranks} ranks are too many pieces to synthesize; try {most}"
        )
    return problem_of(collective.on(num_ranks, num_chunks))


def problem_of(c: Collective) -> Problem:
    """The problem of a collective."""
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


def require_reachable(problem: Problem, wafer: Wafer) -> None:
    """Refuse a problem for which no schedule exists, because no light path leads to a rank from the holders of what it needs.

    Light passes wherever edges are open, so what a rank cannot receive directly from a holder it cannot receive at all.

    Raises: UnsupportedError: with the certificate.
    """
    reaches = np.eye(wafer.num_ranks, dtype=bool)
    for (src, dst), paths in wafer.routes.items():
        reaches[src, dst] = bool(paths)
    reaches &= (wafer.lasers.astype(np.int64) @ wafer.photodiodes.T.astype(np.int64) > 0) | np.eye(
        wafer.num_ranks, dtype=bool
    )
    if problem.adds:  # all parts must arrive
        unreachable = problem.after & ((problem.before.astype(np.int64) @ (~reaches).astype(np.int64)) > 0)
    else:
        unreachable = problem.after & ((problem.before.astype(np.int64) @ reaches.astype(np.int64)) == 0)
    if not unreachable.any():
        return
    piece, rank = (int(i) for i in np.argwhere(unreachable)[0])
    holders = np.flatnonzero(problem.before[piece] & ~reaches[:, rank])
    dark = [int(h) for h in holders if not wafer.lasers[h].any()]
    if dark:
        why = f"all lasers of rank {dark[0]} (tile {wafer.tile[dark[0]]}) are dead"
    else:
        why = f"the grid is cut between tile {wafer.tile[holders[0]]} and tile {wafer.tile[rank]}"
    who = f"rank {holders[0]}" if len(holders) == 1 else f"ranks {', '.join(map(str, holders[:8]))}"
    raise UnsupportedError(
        f"{problem.collective.name}: no schedule exists: no light path leads from {who} to rank {rank}, which needs "
        f"chunk {problem.chunk[piece]}: {why}"
    )
