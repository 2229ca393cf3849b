"""What ranks hold once everything that arrives by device tables is stored or added, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import Collective, IntArray, Op
from opticcl.ir.tables import Tables
from opticcl.verify.sweep import slack
from opticcl.verify.time import TimeRules

__all__ = ["Arrived", "arrived_transfers", "check_result", "due_ready_s", "replay"]

FloatArray = npt.NDArray[np.float64]
Report = Callable[..., None]

MOST_CHUNKS = 1 << 24
"""(rank, chunk) pairs whose data is followed [count]."""
MOST_CHUNK_ROWS = 1 << 26
"""Chunks that all transfers carry [count]."""


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


def arrived_transfers(tables: Tables, ranks: IntArray, sender: IntArray, report: Report) -> Arrived:
    """Put shares together. A rank reads all that it sends in a step as the first of it leaves: it is the data before the step.

    Args:
        tables: whose light arrives.
        ranks: of each row of data, int64 (rows,).
        sender: row that sends what each row receives, int64 (rows,).
        report: takes violations.
    """
    d = tables.data
    rows = np.flatnonzero(~d.sends)
    names = (
        ranks[sender[rows]],
        ranks[rows],
        d.chunk_lo[rows],
        d.chunk_n[rows],
        d.parts[rows],
        d.op[rows],
        d.shares[rows],
        d.step[rows],
    )
    order = np.lexsort((d.from_s[rows], d.share[rows], *names[::-1]))
    rows = rows[order]
    key = np.stack([np.asarray(column, np.int64)[order] for column in names])
    nth = _nth(np.concatenate([key, d.share[rows][None]]))  # of equal transfers, one after the other
    key = np.concatenate([key, nth[None]])
    regrouped = np.lexsort((d.share[rows], *key[::-1]))
    rows, key = rows[regrouped], key[:, regrouped]
    new = np.ones(len(rows), bool)
    new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    count = np.diff(np.append(first, len(rows)))
    short = np.flatnonzero(count != d.shares[rows[first]])
    if len(short):
        row = int(rows[first[short[0]]])
        report(
            "share_missing", d.from_s[row], f"rank {ranks[row]}", f"{d.shares[row]} shares of chunk {d.chunk_lo[row]}",
            f"{count[short[0]]}", len(short),
        )  # fmt: skip
    whole = first[count == d.shares[rows[first]]]
    src, dst, chunk_lo, chunk_n, op, step = (key[i][whole] for i in (0, 1, 2, 3, 5, 7))
    if not len(first):
        none = np.zeros(0)
        return Arrived(src, dst, chunk_lo, chunk_n, op, none, none, none)
    kept = count == d.shares[rows[first]]
    from_s = np.minimum.reduceat(d.from_s[rows], first)[kept]
    until_s, ready_s = (np.maximum.reduceat(column[rows], first)[kept] for column in (d.until_s, d.ready_s))
    _, place = np.unique(np.stack([src, step]), axis=1, return_inverse=True)
    read_s = np.full(len(src), np.inf)
    np.minimum.at(read_s, place.reshape(-1), from_s)
    from_s = np.where(step < 0, from_s, read_s[place.reshape(-1)])
    return Arrived(src, dst, chunk_lo, chunk_n, op, from_s, until_s, ready_s)


def _nth(key: IntArray) -> IntArray:
    """Number of each column among equal ones, which follow each other, int64 (n,)."""
    n = key.shape[1]
    new = np.ones(n, bool)
    new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    found: IntArray = np.arange(n) - first[np.cumsum(new) - 1] if n else np.zeros(0, np.int64)
    return found


def replay(t: Arrived, state: np.ndarray, report: Report | None = None, chunks: slice = slice(None)) -> None:
    """Play transfers on what ranks hold: read as the first bit leaves, store or add when they are ready.

    Args:
        t: transfers.
        state: (ranks, chunks, ...); changed.
        report: takes violations: a chunk that is overwritten while it leaves; None: not reported.
        chunks: that `state` has; others are left out.
    """
    many = t.chunk_n
    owner = np.repeat(np.arange(len(t.src)), many)
    chunk = t.chunk_lo[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)
    start, stop, _ = chunks.indices(1 << 40 if chunks.stop is None else chunks.stop)
    inside = (chunk >= start) & (chunk < stop)
    owner, chunk = owner[inside], chunk[inside] - start
    begin = np.searchsorted(owner, np.arange(len(t.src) + 1))
    sent = np.zeros((len(owner), *state.shape[2:]), state.dtype)
    busy_s = np.full(state.shape[:2], -np.inf)
    for time_s, writes, which in _events(t):
        rows = np.concatenate([np.arange(begin[i], begin[i + 1]) for i in which.tolist()]) if len(which) < 64 else (
            np.flatnonzero(np.isin(owner, which)))  # fmt: skip
        if not writes:
            src = t.src[owner[rows]]
            sent[rows] = state[src, chunk[rows]]
            moves = t.op[owner[rows]] & Op.MOVE > 0
            state[src[moves], chunk[rows[moves]]] = 0
            np.maximum.at(busy_s, (src, chunk[rows]), t.until_s[owner[rows]])
            continue
        dst, op = t.dst[owner[rows]], t.op[owner[rows]]
        alters = op != Op.MOVE
        late = alters & (busy_s[dst, chunk[rows]] - time_s > slack(time_s))
        if report is not None and late.any():
            at = int(np.flatnonzero(late)[0])
            where = f"rank {dst[at]} chunk {chunk[rows[at]] + start}"
            report(
                "overwritten_before_sent", time_s, where, "no change while it leaves",
                "data that is stored or added", int(late.sum()),
            )  # fmt: skip
        stores = op == Op.COPY
        state[dst[stores], chunk[rows[stores]]] = sent[rows[stores]]
        np.add.at(state, (dst[~stores], chunk[rows[~stores]]), sent[rows[~stores]])


def _events(t: Arrived) -> Iterator[tuple[float, bool, IntArray]]:
    """Time, whether transfers are written (else read), and which; of one time those that are written come first."""
    n = len(t.src)
    if not n:
        return
    time_s = np.concatenate([t.ready_s, t.from_s])
    order = np.argsort(time_s, kind="stable")
    near = np.zeros(len(order), np.int64)
    near[1:] = np.cumsum(np.diff(time_s[order]) > slack(time_s[order][1:]))
    order = order[np.lexsort((order >= n, near))]
    near = np.sort(near)
    new = np.ones(len(order), bool)
    new[1:] = (near[1:] != near[:-1]) | ((order[1:] >= n) != (order[:-1] >= n))
    first = np.flatnonzero(new)
    for lo, hi in zip(first.tolist(), np.append(first[1:], len(order)).tolist(), strict=True):
        which = order[lo:hi]
        writes = bool(which[0] < n)
        yield float(time_s[which[0]]), writes, np.sort(which if writes else which - n)


def check_result(tables: Tables, ranks: IntArray, sender: IntArray, report: Report) -> None:
    """Each rank must end with each contribution exactly once: sums of random labels of 128 bits, modulo 2**64 a word.

    Args:
        tables: whose light arrives.
        ranks: of each row of data, int64 (rows,).
        sender: row that sends what each row receives, int64 (rows,).
        report: takes violations.
    Raises: ParameterError: too many chunks.
    """
    c = tables.collective
    t = arrived_transfers(tables, ranks, sender, report)
    for what, count, most in (
        ("ranks x chunks", c.num_ranks * c.num_chunks, MOST_CHUNKS), ("chunks carried", int(t.chunk_n.sum()), MOST_CHUNK_ROWS)
    ):  # fmt: skip
        if count > most:
            raise ParameterError(
                f"verify: {count:,} {what}; the data of tables is followed up to {most:,}, take fewer nodes"
            )
    rank, chunk = np.arange(c.num_ranks)[:, None], np.arange(c.num_chunks)
    before, after = (np.broadcast_to(held(rank, chunk), (c.num_ranks, c.num_chunks)) for held in (c.before, c.after))
    labels = np.random.default_rng(17).integers(1, 1 << 63, (c.num_ranks, c.num_chunks, 2), np.uint64)
    if not (c.reduces or c.keeps_apart):
        labels[:] = labels[:1]
    state = np.where(before[..., None], labels, np.uint64(0))
    due = state.sum(axis=0) if c.reduces or c.keeps_apart else labels[0]
    replay(t, state, report)
    wrong = after & (state != due).any(axis=2)
    if wrong.any():
        at, of = (int(i) for i in np.argwhere(wrong)[0])
        found = _multiplicity(t, c, at, of, before[:, of])
        expected = "each contribution once" if c.reduces or c.keeps_apart else "the data"
        report("data_wrong", tables.total_s, f"rank {at} chunk {of}", expected, found, int(wrong.sum()))


def _multiplicity(t: Arrived, c: Collective, rank: int, chunk: int, before: npt.NDArray[np.bool_]) -> str:
    """How often a rank holds each contribution to a chunk at the end, in words.

    Args:
        t: transfers.
        c: collective.
        rank, chunk: that are wrong.
        before: ranks that contribute, bool (ranks,).
    """
    counts = np.zeros((c.num_ranks, 1, c.num_ranks), np.int64)
    counts[before, 0, np.flatnonzero(before) if c.reduces or c.keeps_apart else 0] = 1
    replay(t, counts, chunks=slice(chunk, chunk + 1))
    held = counts[rank, 0]
    if not (c.reduces or c.keeps_apart):
        return "other data, or none"
    odd = np.flatnonzero(held != before)
    if not len(odd):
        return "another sum"
    return f"that of rank {odd[0]} {held[odd[0]]} times" + (
        f", and {len(odd) - 1} others wrong" if len(odd) > 1 else ""
    )
