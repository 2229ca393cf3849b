"""What ranks hold once everything that arrives by device tables is stored or added, in the order of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, Op, numbered
from opticcl.ir.limits import limit
from opticcl.ir.phases import ChunkEvents
from opticcl.ir.tables import Tables, TableViolation
from opticcl.verify.data.explain import contributions_of
from opticcl.verify.data.player import columns_of, play_events, rows_by_chunk
from opticcl.verify.sweep import largest_so_far, runs_of, slack
from opticcl.verify.tables._rows import broken
from opticcl.verify.time.programme import TimeRules

__all__ = ["Arrived", "arrived_transfers", "check_result", "due_ready_s"]

FloatArray = npt.NDArray[np.float64]

MOST_CHUNKS = limit("data.MOST_CHUNKS")
MOST_CHUNK_ROWS = limit("data.MOST_CHUNK_ROWS")


class Arrived(NamedTuple):
    """Transfers that arrived with all of their shares, as columns of equal length.

    Args:
        src, dst: ranks, int64 (n,).
        chunk_lo, chunk_n, op: int64 (n,).
        from_s, until_s, ready_s: read, last bit leaves, stored or added, float64 (n,) [s].
    """

    src: IntArray
    dst: IntArray
    chunk_lo: IntArray
    chunk_n: IntArray
    op: IntArray
    from_s: FloatArray
    until_s: FloatArray
    ready_s: FloatArray


def due_ready_s(tables: Tables, ranks: IntArray, flight_s: FloatArray, rules: TimeRules) -> FloatArray:
    """When each row of data is stored or added, float64 (rows,) [s]; what is sent is ready as its last bit leaves.

    Data is there once its last bit has arrived. It waits in a buffer until its rank has sent what it sends in the step. What a
    rank adds in a step, its memory adds in one pass, once the last of it is there.

    Args:
        tables: with the step of each row.
        ranks: of each row, int64 (rows,).
        flight_s: latency of the path of the light that each row receives, float64 (rows,) [s].
        rules: of latency and sums.
    """
    d, c = tables.data, tables.collective
    _, place = np.unique(d.step * c.num_ranks + ranks, return_inverse=True)  # of each step on each rank
    sent_s, there_s = np.full((2, len(ranks)), -np.inf)
    np.maximum.at(sent_s, place[d.sends], d.until_s[d.sends])
    due_s = np.where(d.sends, d.until_s, np.maximum(d.until_s + flight_s, sent_s[place]))
    adds = np.flatnonzero(~d.sends & (d.op & Op.REDUCE > 0))
    np.maximum.at(there_s, place[adds], due_s[adds])
    chunks = np.zeros(len(ranks))
    if rules.compute != "none" and len(adds):
        chunks += np.bincount(place[adds], d.chunk_n[adds] / d.shares[adds], minlength=len(ranks))
        chunks *= 3 if rules.compute == "chain" else 1
        if rules.compute == "fused":
            chunks += 2 * _covered(place[adds], d.chunk_lo[adds], d.chunk_n[adds], len(ranks))
    sums_s = chunks * (tables.size_bytes / c.num_chunks / rules.memory_bytes_per_s)
    due_s[adds] = (there_s + sums_s)[place[adds]]
    return due_s


def _covered(place: IntArray, lo: IntArray, n: IntArray, places: int) -> IntArray:
    """Different chunks of ranges at each place, int64 (places,).

    Args:
        place: of each range, int64 (ranges,).
        lo, n: first chunk and chunks of each range, int64 (ranges,).
        places: number of places [count].
    """
    top = int((lo + n).max()) + 1
    begin = place * top + lo
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], (begin + n)[order]
    reached = np.maximum.accumulate(np.append(0, end[:-1]))
    new = np.maximum(end - np.maximum(begin, reached), 0)
    return np.bincount(place[order], new, minlength=places).astype(np.int64)


def arrived_transfers(tables: Tables, ranks: IntArray, sender: IntArray) -> tuple[Arrived, list[TableViolation]]:
    """Put shares together. A rank reads all that it sends in a step as the first of it leaves: it is the data before the step.

    Args:
        tables: whose light arrives.
        ranks: of each row of data, int64 (rows,).
        sender: row that sends what each row receives, int64 (rows,).
    Returns: transfers; transfers that lack shares.
    """
    d = tables.data
    rows = np.flatnonzero(~d.sends)
    numbers = (column[rows] for column in (ranks, d.chunk_lo, d.chunk_n, d.parts, d.op, d.shares, d.step))
    names = tuple(np.asarray(column, np.int64) for column in (ranks[sender[rows]], *numbers))
    order, new = runs_of((*names, d.share[rows]), (d.from_s[rows],))
    started = np.flatnonzero(new)
    nth = np.empty(len(rows), np.int64)  # of equal transfers, one after the other
    nth[order] = np.arange(len(rows)) - started[np.cumsum(new) - 1]
    order, new = runs_of((*names, nth), (d.share[rows],))
    rows, key = rows[order], [column[order] for column in names]
    first = np.flatnonzero(new)
    count = np.diff(np.append(first, len(rows)))
    short = np.flatnonzero(count != d.shares[rows[first]])
    missing = broken("share_missing", short, lambda i: (
        d.from_s[rows[first[i]]], f"rank {ranks[rows[first[i]]]}",
        f"{d.shares[rows[first[i]]]} shares of chunk {d.chunk_lo[rows[first[i]]]}", f"{count[i]}",
    ))  # fmt: skip
    whole = np.flatnonzero(count == d.shares[rows[first]])
    src, dst, chunk_lo, chunk_n, op, step = (key[i][first[whole]] for i in (0, 1, 2, 3, 5, 7))
    from_s, until_s, ready_s = (
        bound.reduceat(column[rows], first)[whole] if len(first) else np.zeros(0)
        for bound, column in ((np.minimum, d.from_s), (np.maximum, d.until_s), (np.maximum, d.ready_s))
    )
    place = np.unique(np.stack([src, step]), axis=1, return_inverse=True)[1].reshape(-1)
    read_s = np.full(len(src), np.inf)
    np.minimum.at(read_s, place, from_s)
    from_s = np.where(step < 0, from_s, read_s[place])
    return Arrived(src, dst, chunk_lo, chunk_n, op, from_s, until_s, ready_s), missing


def _overwritten(t: Arrived, order: _Order) -> list[TableViolation]:
    """Chunks that are stored or added while an earlier transfer of them still leaves.

    Args:
        t: transfers.
        order: in which they read and write.
    """
    owner, nth = numbered(t.chunk_n)
    chunk, n = t.chunk_lo[owner] + nth, len(owner)
    rank = np.concatenate([t.src[owner], t.dst[owner]])
    at = np.concatenate([order.read[owner], order.write[owner]])
    busy_s = np.concatenate([t.until_s[owner], np.full(n, -np.inf)])
    rows, new = runs_of((rank, np.tile(chunk, 2)), (at,))
    until_s = np.empty(2 * n)
    until_s[rows] = largest_so_far(new, busy_s[rows])
    time_s = order.write_s[owner]
    late = np.flatnonzero((t.op[owner] != Op.MOVE) & (until_s[n:] - time_s > slack(time_s)))
    return broken("overwritten_before_sent", late[np.lexsort((late, time_s[late]))], lambda row: (
        time_s[row], f"rank {t.dst[owner[row]]} chunk {chunk[row]}", "no change while it leaves",
        "data that is stored or added",
    ))  # fmt: skip


class _Order(NamedTuple):
    """The order in which transfers read and write: numbers that grow, int64 (n,) each, and the time of the writes [s].

    Of one time those that write come first, one after the other, copies before sums; all that read see the same data.
    """

    read: IntArray
    write: IntArray
    write_s: FloatArray


def _order_of(t: Arrived) -> _Order:
    """When each transfer reads, and when it is stored or added."""
    n = len(t.src)
    time_s = np.concatenate([t.ready_s, t.from_s])
    by_time = np.argsort(time_s, kind="stable")
    new = np.ones(2 * n, bool)
    new[1:] = np.diff(time_s[by_time]) > slack(time_s[by_time][1:])
    moment = np.empty(2 * n, np.int64)
    moment[by_time] = np.cumsum(new) - 1
    reads = np.arange(2 * n) >= n
    adds = np.concatenate([t.op != Op.COPY, np.zeros(n, bool)])
    ordered = np.lexsort((adds, reads, moment))
    place = np.empty(2 * n, np.int64)
    place[ordered] = np.arange(2 * n)
    first_read = np.full(2 * n, 2 * n)
    np.minimum.at(first_read, moment[n:], place[n:])  # all that read at a moment do so together
    write_s = np.full(2 * n, np.inf)
    np.minimum.at(write_s, moment[:n], t.ready_s)
    return _Order(first_read[moment[n:]], place[:n], write_s[moment[:n]])


def _events(t: Arrived, order: _Order, num_ranks: int) -> tuple[ChunkEvents, IntArray]:
    """What a player of steps takes: each transfer reads into a buffer of its own, and is stored or added from there.

    Args:
        t: transfers.
        order: in which they read and write.
        num_ranks: ranks, behind which buffers are numbered [count].
    Returns: events, and the transfer of each, in their order.
    """
    buffer = num_ranks + np.arange(len(t.src))
    step = np.concatenate([order.read, order.write])
    at = np.argsort(step, kind="stable")
    src, dst = np.concatenate([t.src, buffer])[at], np.concatenate([buffer, t.dst])[at]
    reads, writes = np.where(t.op & Op.MOVE, Op.MOVE, Op.COPY), np.where(t.op == Op.COPY, Op.COPY, Op.REDUCE)
    events = ChunkEvents(step[at], src, dst, np.concatenate([reads, writes])[at], np.ones(len(at), np.int64))
    return events, np.tile(np.arange(len(t.src)), 2)[at]


def check_result(tables: Tables, ranks: IntArray, sender: IntArray) -> list[TableViolation]:
    """What is wrong with the result: each rank must end with each contribution exactly once.

    Args:
        tables: whose light arrives.
        ranks: of each row of data, int64 (rows,).
        sender: row that sends what each row receives, int64 (rows,).
    Raises: ParameterError: too many chunks.
    """
    c = tables.collective
    t, violations = arrived_transfers(tables, ranks, sender)
    for what, count, most in (
        ("ranks x chunks", c.num_ranks * c.num_chunks, MOST_CHUNKS), ("chunks carried", int(t.chunk_n.sum()), MOST_CHUNK_ROWS)
    ):  # fmt: skip
        if count > most:
            raise ParameterError(
                f"verify: {count:,} {what}; the data of tables is followed up to {most:,}, take fewer nodes"
            )
    order = _order_of(t)
    violations += _overwritten(t, order)
    events, transfer = _events(t, order, c.num_ranks)
    lo, n = (column[transfer].astype(np.int32) for column in (t.chunk_lo, t.chunk_n))
    starts, rows = rows_by_chunk(lo, n, np.ones(len(n), np.int32), 0, c.num_chunks)
    before, after = (columns_of(who, np.arange(c.num_chunks), c.num_ranks) for who in (c.before, c.after))
    sums, places = c.reduces or c.keeps_apart, c.num_ranks + len(t.src)
    _, wrong, results, _ = play_events(
        events, starts, rows, before, after, sums=sums, num_ranks=c.num_ranks, num_places=places
    )
    if results:
        rank = int(wrong[wrong >= 0].min())
        chunk = int(np.flatnonzero(wrong == rank)[0])
        mine = rows[starts[chunk] : starts[chunk + 1]]
        holds = np.broadcast_to(c.before(np.arange(c.num_ranks), np.array(chunk)), c.num_ranks)
        times = contributions_of(events.take(mine), rank, places)[: c.num_ranks] * holds
        expected, found = (
            ("each contribution once", _odd(times, holds)) if sums else ("the data", "other data, or none")
        )
        where = f"rank {rank} chunk {chunk}"
        violations.append(TableViolation("data_wrong", tables.total_s, where, expected, found, int(results)))
    return violations


def _odd(times: IntArray, due: npt.NDArray[np.bool_]) -> str:
    """What is wrong with how often a rank has the contribution of each, in words."""
    odd = np.flatnonzero(times != due)
    if not len(odd):
        return "another sum"
    others = f", and {len(odd) - 1} others wrong" if len(odd) > 1 else ""
    return f"that of rank {odd[0]} {times[odd[0]]} times{others}"
