"""Sums of a step, in the order in which list scheduling gives them to the memories of their ranks."""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray, Op, Transfers, numbered

__all__ = ["sums_of_step"]


def sums_of_step(transfers: Transfers, compute: str) -> tuple[IntArray, IntArray, IntArray, np.ndarray]:
    """Sums of a step, one for each range of chunks of a rank. Ranges that overlap in part are summed chunk by chunk.

    Args:
        transfers: of the step.
        compute: as in `Assumptions`.
    Returns: where the transfers of each sum begin, and the end, int64 (sums + 1,); these transfers; the rank of each sum, int64
        (sums,), and the chunks that it moves, float64 (sums,).
    """
    adds = np.flatnonzero(transfers.op & Op.REDUCE)
    none = np.zeros(0, np.int64)
    if compute == "none" or not len(adds):
        return np.zeros(1, np.int64), none, none, np.zeros(0)
    summed, row = transfers.take(adds).ranges()
    rank, lo, n = (c.astype(np.int64) for c in (summed.dst, summed.chunk_lo, summed.chunk_n))
    adds = adds[row]
    if compute == "chain":
        return np.arange(len(adds) + 1), adds, rank, 3.0 * n
    order = np.lexsort((n, lo, rank))
    rank, lo, n, adds = rank[order], lo[order], n[order], adds[order]
    end = lo + n
    top = int(end.max()) + 1
    reached = np.maximum.accumulate(rank * top + end)
    same = rank[1:] == rank[:-1]
    equal = same & (lo[1:] == lo[:-1]) & (end[1:] == end[:-1])
    if (same & ~equal & (rank[1:] * top + lo[1:] < reached[:-1])).any():
        owner, nth = numbered(n)
        lo = lo[owner] + nth
        order = np.lexsort((lo, rank[owner]))
        owner = owner[order]
        rank, lo, adds, n = rank[owner], lo[order], adds[owner], np.ones(len(owner), np.int64)
    new = np.ones(len(rank), bool)
    new[1:] = (np.diff(rank) != 0) | (np.diff(lo) != 0)
    first = np.flatnonzero(new)
    offsets = np.append(first, len(rank))
    return offsets, adds, rank[first], (np.diff(offsets) + 2.0) * n[first]
