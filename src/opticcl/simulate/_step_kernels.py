"""Kernels that count what the ranks of a step send, receive and add, in one pass over its transfers."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["add_loads", "busiest_ends", "first_of_messages", "path_sums", "ranges_apart"]

MOST_RANGES = 8  # of a rank, which are compared with each other


@njit(writes=())
def busiest_ends(src, dst, amount, ranks):  # type: ignore[no-untyped-def]
    """Most transfers that a rank sends, and receives; and most chunks of each.

    Args:
        src, dst: of each transfer, 0 to ranks - 1, int32.
        amount: size of each, int64 [chunks].
        ranks: number of them [count].
    """
    sent, received = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    chunks_sent, chunks_received = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    most_sent, most_received, most_chunks_sent, most_chunks_received = 0, 0, 0, 0
    for i in range(len(src)):
        sent[src[i]] += 1
        received[dst[i]] += 1
        chunks_sent[src[i]] += amount[i]
        chunks_received[dst[i]] += amount[i]
    for rank in range(ranks):
        most_sent, most_received = max(most_sent, sent[rank]), max(most_received, received[rank])
        most_chunks_sent = max(most_chunks_sent, chunks_sent[rank])
        most_chunks_received = max(most_chunks_received, chunks_received[rank])
    return most_sent, most_received, most_chunks_sent, most_chunks_received


@njit(writes=("first",))
def first_of_messages(src, dst, op, ranks, ops, first):  # type: ignore[no-untyped-def]
    """Mark the first transfer of each message: each sender, receiver and operation.

    Args:
        src, dst: of each transfer, 0 to ranks - 1, int32.
        op: of each, 0 to ops - 1, uint8.
        ranks: number of them [count].
        ops: number of operations [count].
        first: whether it is the first, bool (transfers,), all False, written.
    """
    ends = np.zeros(ranks + 1, np.int64)
    for i in range(len(src)):
        ends[src[i] + 1] += 1
    for rank in range(ranks):
        ends[rank + 1] += ends[rank]
    by_sender = np.empty(len(src), np.int64)
    for i in range(len(src)):
        by_sender[ends[src[i]]] = i
        ends[src[i]] += 1
    seen_by = np.full(ranks * ops, -1, np.int32)  # the last sender of each receiver and operation
    for row in by_sender:
        message = np.int64(dst[row]) * ops + op[row]
        if seen_by[message] != src[row]:
            seen_by[message] = src[row]
            first[row] = True


@njit(writes=("covered",))
def ranges_apart(dst, lo, count, covered):  # type: ignore[no-untyped-def]
    """Whether the ranges that arrive at a rank are equal or have no chunk in common, at most `MOST_RANGES` different ones.

    Args:
        dst: of each transfer, int64.
        lo, count: chunks of each, int64.
        covered: chunks of the different ranges of each rank, zeros, int64 (ranks,), written [chunks].
    """
    first, length = np.empty((len(covered), MOST_RANGES), np.int64), np.empty((len(covered), MOST_RANGES), np.int64)
    known = np.zeros(len(covered), np.int64)
    for i in range(len(dst)):
        at, again = dst[i], False
        for k in range(known[at]):
            if first[at, k] == lo[i] and length[at, k] == count[i]:
                again = True
                break
            if lo[i] < first[at, k] + length[at, k] and first[at, k] < lo[i] + count[i]:
                return False
        if not again:
            if known[at] == MOST_RANGES:
                return False
            first[at, known[at]], length[at, known[at]] = lo[i], count[i]
            known[at] += 1
            covered[at] += count[i]
    return True


@njit(writes=())
def path_sums(table, hops, offsets):  # type: ignore[no-untyped-def]
    """Sum of the values of the hops of each path, float64 (paths,).

    Args:
        table: value of each hop that there is, float64.
        hops: of all paths, places in the table.
        offsets: where each path begins, int64 (paths + 1,).
    """
    found = np.zeros(len(offsets) - 1)
    for i in range(len(found)):
        for k in range(offsets[i], offsets[i + 1]):
            found[i] += table[hops[k]]
    return found


@njit(writes=("carried",))
def add_loads(carried, hops, offsets, chunks):  # type: ignore[no-untyped-def]
    """Add what each path carries to the links on it.

    Args:
        carried: by each link so far, float64 (links,) [chunks]; changed.
        hops: of all paths, places in `carried`.
        offsets: where each path begins, int64 (paths + 1,).
        chunks: of each path, float64 (paths,).
    """
    for i in range(len(chunks)):
        for k in range(offsets[i], offsets[i + 1]):
            carried[hops[k]] += chunks[i]
