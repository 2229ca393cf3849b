"""Names the error of a wrong result: which contributions are missing, and which are there more than once."""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray, Op, Schedule, Violation
from opticcl.verify.cells import first_holders
from opticcl.verify.chunk_rows import with_followed_alone

__all__ = ["contributions", "explain"]

SHOWN = 8  # wrong chunks that are explained one by one
_MANY = 1 << 40  # multiplicities above it are not distinguished; sums of those of all ranks fit in 64 bits


def explain(schedule: Schedule, chunks: IntArray, wrong: np.ndarray) -> list[Violation]:
    """Name the error of one wrong sum of each of the first few wrong chunks, and count the others with them.

    Args:
        schedule: that was followed.
        chunks: that were followed, ascending.
        wrong: whether a rank ends with a wrong result in a chunk, bool (num_ranks, chunks).
    """
    pairs = np.argwhere(wrong)
    found: dict[str, Violation] = {}
    c = schedule.collective
    for k in np.flatnonzero(wrong.any(axis=0))[:SHOWN]:
        rank = np.flatnonzero(wrong[:, k])[0]
        counts = contributions(schedule, int(rank), int(chunks[k]))
        due = c.before(np.arange(c.num_ranks), np.full(c.num_ranks, chunks[k])).astype(np.int64)
        first = first_holders(c, due[:, None])
        if first is not None:  # any holder may be the source
            counts, due = (np.where(np.arange(c.num_ranks) == first[0], x, 0) for x in (counts.sum(), 1))
        where = f"chunk {chunks[k]} at rank {rank}"
        for rule, who in (("contribution_missing", counts < due), ("contribution_doubled", counts > due)):
            if who.any() and rule not in found:
                origins = np.flatnonzero(who)
                text = ", ".join(f"rank {o} x{counts[o]}" for o in origins[:4]) + (", ..." if len(origins) > 4 else "")
                found[rule] = Violation(rule, -1, -1, where, "each contribution once", text, len(pairs))
    if len(pairs) and not found:  # a wrong result is never accepted, whatever its explanation
        where = f"chunk {chunks[pairs[0, 1]]} at rank {pairs[0, 0]}"
        found["other"] = Violation(
            "contribution_missing", -1, -1, where, "each contribution once", "others", len(pairs)
        )
    return list(found.values())


def contributions(schedule: Schedule, rank: int, chunk: int) -> IntArray:
    """Multiplicity of each rank's contribution in a chunk at a rank at the end, up to 2**40, int64 (num_ranks,).

    The result is linear in the contributions; replaying the steps backwards carries the coefficients to the start.

    Args:
        schedule: to be checked.
        rank, chunk: whose result.
    """
    weight = np.zeros(schedule.collective.num_ranks, np.int64)
    weight[rank] = 1
    for i in range(schedule.num_steps - 1, -1, -1):
        step = with_followed_alone(schedule.step(i), np.array([chunk]))
        rows = np.flatnonzero((step.chunk_lo <= chunk) & (chunk < step.chunk_lo.astype(np.int64) + step.chunk_n))
        src, dst, op = step.src[rows], step.dst[rows], step.op[rows]
        before = weight.copy()
        before[dst[op == Op.COPY]] = 0
        before[src[op & Op.MOVE > 0]] = 0
        np.add.at(before, src, weight[dst])
        weight = np.minimum(before, _MANY)
    c = schedule.collective
    return weight * c.before(np.arange(c.num_ranks), np.full(c.num_ranks, chunk))
