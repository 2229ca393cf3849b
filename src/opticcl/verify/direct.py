"""Exchanges whose data go straight from the rank that has them to the rank that they are for.

Where each rank sends its contribution to each chunk straight to the rank of the chunk, once, the result is right, and nothing
else has to be followed: only the ranks of the chunks are written to, and they send nothing of their chunks, so that a sender
has its own contribution and no other until it sends it, and a rank ends with one of each. That is one bit for each rank and
chunk, and no label has to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.ir import Op, ProgressCallback, Schedule, Transfers
from opticcl.ir.collective import Holders
from opticcl.ir.step_blocks import step_blocks
from opticcl.kernels import njit

__all__ = ["sent_directly"]

MOST_BITS = 1 << 33
"""Ranks times chunks whose bits are kept: 1 GiB [count]."""

_NONE = np.zeros(0, np.int32)


def sent_directly(schedule: Schedule, progress: ProgressCallback) -> int | None:
    """The number of transfers, if each rank sends each chunk that is for another rank straight to it, once; None otherwise.

    None says nothing about the schedule: it may be right in another way, or too large.

    Args:
        schedule: of a collective that keeps contributions apart.
        progress: called after every step, or block of steps.
    """
    c = schedule.collective
    before, after = c.before, c.after
    if not (c.keeps_apart and isinstance(before, Holders) and isinstance(after, Holders)):
        return None
    if (before.kind, after.kind) != ("all", "owner") or c.num_ranks * c.num_chunks > MOST_BITS:
        return None
    if after.owners is None or len(after.owners) != c.num_chunks:
        return None
    sent = np.zeros((c.num_ranks, -(-c.num_chunks // 8)), np.uint8)
    transfers, pairs = 0, 0
    for done, rows in _steps(schedule):
        parts, apart = (_NONE if column is None else column for column in (rows.parts, rows.chunk_step))
        found = _sent_once(
            rows.src, rows.dst, rows.chunk_lo, rows.chunk_n, apart, rows.op, parts, after.owners, c.num_ranks, sent
        )
        if found < 0:
            return None
        transfers, pairs = transfers + len(rows), pairs + found
        progress("follow the data", done, schedule.num_steps)
    return transfers if pairs == (c.num_ranks - 1) * c.num_chunks else None


def _steps(schedule: Schedule) -> Iterator[tuple[int, Transfers]]:
    """Transfers of the steps in order, and the number of steps up to there."""
    blocks = step_blocks(schedule)
    if blocks is not None:
        yield from ((block.first + len(block), block.transfers) for block in blocks)
    else:
        yield from ((i + 1, schedule.step(i)) for i in range(schedule.num_steps))


@njit
def _sent_once(  # type: ignore[no-untyped-def]
    src, dst, chunk_lo, chunk_n, chunk_step, op, parts, owner, num_ranks, sent
):
    """The number of (rank, chunk) pairs that rows send, each straight to the rank of the chunk, and not before; -1 where a row
    does anything else. A bit of `sent` is set for each pair."""
    pairs = 0
    for t in range(len(src)):
        s, d, lo, n = src[t], dst[t], np.int64(chunk_lo[t]), np.int64(chunk_n[t])
        apart = np.int64(chunk_step[t]) if len(chunk_step) else 1
        if s < 0 or s >= num_ranks or d < 0 or d >= num_ranks or s == d or op[t] != Op.MOVE:
            return -1
        if lo < 0 or n < 1 or apart < 1 or lo + (n - 1) * apart >= len(owner) or (len(parts) and parts[t] != 1):
            return -1
        for k in range(lo, lo + n * apart, apart):
            bit = np.uint8(1 << (k & 7))
            if owner[k] != d or sent[s, k >> 3] & bit:
                return -1
            sent[s, k >> 3] |= bit
            pairs += 1
    return pairs
