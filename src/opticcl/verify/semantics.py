"""Does every rank end with every contribution exactly once?

Each rank that holds a chunk at the start gets a random 128-bit label for it (two words, sums modulo 2**64). Playing the
transfers adds, copies and moves labels as the machine would its data; at the end a rank must hold the sum of all labels,
which a missing or doubled contribution misses but for a chance of about 2**-128. Sets would not do: a set cannot tell a
contribution that was added twice. Where a sum is wrong, the plan is played backwards from that rank and chunk, which gives
the exact number of times each contribution entered, and so the name of the error.

Chunks never meet, so a sample of chunks is judged as exactly as all of them. All sends of a step see the data as they were
before the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import Collective, IntArray, Op, Schedule, Transfers, Violation

__all__ = ["SemanticsReport", "check_semantics"]

ALL_CHUNKS_UP_TO = 1 << 22  # (rank, chunk) pairs that are followed without sampling: 64 MB of labels
SAMPLE = 64  # chunks followed of a larger plan
SHOWN = 8  # wrong chunks that are explained one by one
_NO_PARTS = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class SemanticsReport:
    """What was followed and what is wrong.

    Args:
        violations: broken rules.
        transfers: transfers played [count].
        chunks: chunks followed [count].
        exhaustive: whether these were all.
        notes: totals, a line each.
    """

    violations: tuple[Violation, ...]
    transfers: int
    chunks: int
    exhaustive: bool
    notes: tuple[str, ...]


def check_semantics(
    schedule: Schedule, *, num_chunks: int | None, seed: int, progress: Callable[[str, int, int], None]
) -> SemanticsReport:
    """Play the schedule on labels.

    Args:
        schedule: to be judged.
        num_chunks: chunks to follow; None: all of a small plan, a seeded sample of a large one.
        seed: of the sample and the labels.
        progress: told (what, done, total) after every step.
    """
    if num_chunks is not None and num_chunks < 1:
        raise ParameterError(f"verify: {num_chunks} chunks to follow; follow at least 1, or leave it out")
    if seed < 0:
        raise ParameterError(f"verify: seed={seed} is negative; try 0")
    c = schedule.collective
    random = np.random.default_rng(seed)
    chunks = _choose_chunks(c.num_ranks, c.num_chunks, num_chunks, random)
    ranks = np.arange(c.num_ranks)
    held = np.array(
        c.before(ranks[:, None], chunks[None, :]), np.int64
    )  # contributions that each rank has of each chunk
    labels = random.integers(0, 2**64, size=(c.num_ranks, 2), dtype=np.uint64)
    first = _first_holders(c, held)
    state = (labels[:, None, :] if first is None else labels[first][None]) * held[:, :, None].astype(np.uint64)
    expected = state.sum(axis=0) if first is None else labels[first]

    followed_below = np.searchsorted(chunks, np.arange(c.num_chunks + 1)).astype(np.int32)
    violations: list[Violation] = []
    stamps = np.full(held.shape, -1, np.int64)
    transfers = 0
    for i in range(schedule.num_steps):
        step = schedule.step(i)
        malformed = _malformed(step, i, c)
        if malformed:
            return SemanticsReport((malformed,), transfers, len(chunks), len(chunks) == c.num_chunks, ())
        transfers += len(step)
        parts = _parts(step) if c.keeps_apart else _NO_PARTS
        rows = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, parts)
        clashes, unheld, missized = _play(*rows, followed_below, state, held, stamps, i)
        violations += _step_violations(i, clashes, unheld, missized, step, chunks)
        progress("follow the data", i + 1, schedule.num_steps)

    wanted = np.broadcast_to(c.after(ranks[:, None], chunks[None, :]), held.shape)
    wrong = wanted & (state != expected[None]).any(axis=2)
    violations += _explain(schedule, chunks, wrong)
    notes = []
    if wrong.any():
        nodes = int(wrong.any(axis=1).sum())
        what = "sum" if c.reduces else "result"
        notes.append(f"{nodes} of {c.num_ranks} nodes end with a wrong {what}")
    return SemanticsReport(tuple(violations), transfers, len(chunks), len(chunks) == c.num_chunks, tuple(notes))


def _first_holders(c: Collective, held: IntArray) -> IntArray | None:
    """Whose label stands for each chunk where several ranks hold the same of it at the start; None where each has its own.

    Args: held: contributions that each rank has of each followed chunk, (num_ranks, chunks).
    """
    if c.reduces or c.keeps_apart or (held.sum(axis=0) <= 1).all():
        return None
    first: IntArray = np.argmax(held > 0, axis=0)
    return first


def _choose_chunks(num_ranks: int, num_chunks: int, wanted: int | None, random: np.random.Generator) -> IntArray:
    if wanted is None:
        wanted = num_chunks if num_ranks * num_chunks <= ALL_CHUNKS_UP_TO else SAMPLE
    if wanted >= num_chunks:
        return np.arange(num_chunks)
    return np.sort(random.choice(num_chunks, size=wanted, replace=False))


def _malformed(step: Transfers, i: int, c: Collective) -> Violation | None:
    """The first row whose rank, chunk or operation does not exist."""
    parts = _NO_PARTS if step.parts is None else step.parts
    columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, parts)
    if _well_formed(*columns, c.num_ranks, c.num_chunks, c.keeps_apart):  # nearly every step is
        return None
    num_ranks, num_chunks, lone = c.num_ranks, c.num_chunks, np.array(not c.keeps_apart)
    bad_rank = (np.minimum(step.src, step.dst) < 0) | (np.maximum(step.src, step.dst) >= num_ranks)
    bad_chunk = (step.chunk_lo < 0) | (step.chunk_n < 1) | (step.chunk_lo.astype(np.int64) + step.chunk_n > num_chunks)
    for rule, bad, expected in (
        ("rank_unknown", bad_rank, f"ranks 0..{num_ranks - 1}"),
        ("chunk_unknown", bad_chunk, f"chunks 0..{num_chunks - 1}"),
        ("operation_unknown", step.op > Op.MOVE, "copy (0), reduce (1) or move (2)"),
        ("operation_wrong", ~lone & (step.op == Op.REDUCE), "move (2): contributions stay apart"),
        ("operation_wrong", lone & (step.op == Op.MOVE), "copy (0) or reduce (1): nothing is kept apart"),
        ("size_wrong", lone & (_parts(step) != 1), "one part: contributions are not kept apart"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            return Violation(rule, i, -1, f"transfer {rows[0]}", expected, _row(step, int(rows[0])), len(rows))
    return None


def _parts(step: Transfers) -> IntArray:
    return np.ones(len(step), np.int32) if step.parts is None else step.parts


def _row(step: Transfers, row: int) -> str:
    lo, n = int(step.chunk_lo[row]), int(step.chunk_n[row])
    return f"{step.src[row]} -> {step.dst[row]} chunks {lo}..{lo + n - 1} op {step.op[row]}"


def _step_violations(
    i: int, clashes: IntArray, unheld: IntArray, missized: IntArray, step: Transfers, chunks: IntArray
) -> list[Violation]:
    """What the step's play counted, each as (count, first row, its chunk, what was there)."""
    out = []
    for rule, (count, row, k, there), who, expected in (
        ("chunk_overwritten", clashes, step.dst, "one copy, or sums alone"),
        ("sent_before_held", unheld, step.src, "data to send"),
        ("size_wrong", missized, step.src, "as many contributions as it has"),
    ):
        if count:
            found = {"chunk_overwritten": "several writes", "sent_before_held": "none yet"}.get(rule)
            found = found or f"{_parts(step)[row]} sent of {there}"
            out.append(Violation(rule, i, -1, f"chunk {chunks[k]} of rank {who[row]}", expected, found, int(count)))
    return out


def _explain(schedule: Schedule, chunks: IntArray, wrong: np.ndarray) -> list[Violation]:
    """Name what is wrong with one wrong sum of each of the first few wrong chunks, and count the rest with them."""
    pairs = np.argwhere(wrong)
    found: dict[str, Violation] = {}
    c = schedule.collective
    for k in np.flatnonzero(wrong.any(axis=0))[:SHOWN]:
        rank = np.flatnonzero(wrong[:, k])[0]
        counts = _contributions(schedule, int(rank), int(chunks[k]))
        due = c.before(np.arange(c.num_ranks), np.full(c.num_ranks, chunks[k])).astype(np.int64)
        first = _first_holders(c, due[:, None])
        if first is not None:  # from whom it came does not matter
            counts, due = (np.where(np.arange(c.num_ranks) == first[0], x, 0) for x in (counts.sum(), 1))
        where = f"chunk {chunks[k]} at rank {rank}"
        for rule, who in (("contribution_missing", counts < due), ("contribution_doubled", counts > due)):
            if who.any() and rule not in found:
                origins = np.flatnonzero(who)
                text = ", ".join(f"rank {o} x{counts[o]}" for o in origins[:4]) + (", ..." if len(origins) > 4 else "")
                found[rule] = Violation(rule, -1, -1, where, "each contribution once", text, len(pairs))
    return list(found.values())


def _contributions(schedule: Schedule, rank: int, chunk: int) -> IntArray:
    """How often each rank's contribution entered that chunk at that rank, int64 (num_ranks,).

    The result is linear in the contributions; running the steps backwards carries the coefficients to the start.
    """
    weight = np.zeros(schedule.collective.num_ranks, np.int64)
    weight[rank] = 1
    for i in range(schedule.num_steps - 1, -1, -1):
        step = schedule.step(i)
        rows = np.flatnonzero((step.chunk_lo <= chunk) & (chunk < step.chunk_lo.astype(np.int64) + step.chunk_n))
        src, dst, op = step.src[rows], step.dst[rows], step.op[rows]
        before = weight.copy()
        before[dst[op == Op.COPY]] = 0
        before[src[op == Op.MOVE]] = 0
        np.add.at(before, src, weight[dst])
        weight = before
    c = schedule.collective
    return weight * c.before(np.arange(c.num_ranks), np.full(c.num_ranks, chunk))


@numba.njit(cache=True, nogil=True)
def _well_formed(src, dst, chunk_lo, chunk_n, op, parts, num_ranks, num_chunks, keeps_apart):  # type: ignore[no-untyped-def]
    """Whether every row names ranks, chunks and an operation that exist, and parts only where they are kept apart.

    It looks at all rows whatever it finds: without a way out of the loop several are looked at in one instruction.
    """
    forbidden = Op.REDUCE if keeps_apart else Op.MOVE
    bad = False
    for t in range(len(src)):
        bad |= (src[t] < 0) | (dst[t] < 0) | (src[t] >= num_ranks) | (dst[t] >= num_ranks)
        bad |= (chunk_lo[t] < 0) | (chunk_n[t] < 1) | (np.int64(chunk_lo[t]) + chunk_n[t] > num_chunks)
        bad |= (op[t] > Op.MOVE) | (op[t] == forbidden)
    if not keeps_apart:
        for t in range(len(parts)):
            bad |= parts[t] != 1
    return not bad


@numba.njit(cache=True, nogil=True)
def _play(  # type: ignore[no-untyped-def]
    src, dst, chunk_lo, chunk_n, op, parts, followed_below, state, held, stamps, step
):
    """One step, in place: gather what is sent, let go of what is moved, then add or store it.

    `followed_below[c]` tells how many of the chunks below c are followed; rows that carry none of them are left out.
    A stamp of 2 step + (op is no copy) marks what was written in this step: a copy bears no other write beside it.
    Returns (count, row, k, what was there) of clashing writes, of sends of nothing, and of sends of a wrong size.
    """
    clashes, unheld, missized = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4, np.int64)
    row, first, last = _followed_rows(chunk_lo, chunk_n, followed_below)
    total = 0
    for i in range(len(row)):
        total += last[i] - first[i]
    sent = np.empty((total, 2), np.uint64)
    sent_held = np.empty(total, np.int64)
    at, moves = 0, False
    for i in range(len(row)):
        t = row[i]
        s = src[t]
        moves = moves or op[t] == Op.MOVE
        for k in range(first[i], last[i]):
            sent[at, 0] = state[s, k, 0]
            sent[at, 1] = state[s, k, 1]
            there = held[s, k]
            sent_held[at] = there
            if there == 0:
                unheld[0] += 1
                if unheld[0] == 1:
                    unheld[1], unheld[2] = t, k
            elif len(parts) and parts[t] != there:
                missized[0] += 1
                if missized[0] == 1:
                    missized[1], missized[2], missized[3] = t, k, there
            at += 1
    if moves:
        for i in range(len(row)):
            t = row[i]
            if op[t] == Op.MOVE:
                for k in range(first[i], last[i]):
                    state[src[t], k, :] = 0
                    held[src[t], k] = 0
    at = 0
    for i in range(len(row)):
        t = row[i]
        d = dst[t]
        for k in range(first[i], last[i]):
            stamp = stamps[d, k]
            if stamp >= 2 * step and (op[t] == Op.COPY or stamp == 2 * step):
                clashes[0] += 1
                if clashes[0] == 1:
                    clashes[1], clashes[2] = t, k
            stamps[d, k] = 2 * step + (op[t] != Op.COPY)
            if op[t] == Op.COPY:
                state[d, k, 0] = sent[at, 0]
                state[d, k, 1] = sent[at, 1]
                held[d, k] = sent_held[at]
            else:
                state[d, k, 0] += sent[at, 0]
                state[d, k, 1] += sent[at, 1]
                held[d, k] += sent_held[at]
            at += 1
    return clashes, unheld, missized


@numba.njit(cache=True, nogil=True)
def _followed_rows(chunk_lo, chunk_n, followed_below):  # type: ignore[no-untyped-def]
    """Rows that carry followed chunks, and which of these: from first up to last."""
    n, kept = len(chunk_lo), 0
    row, first, last = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    for t in range(n):
        # unsigned, since no chunk is negative and an index that may be is looked at twice
        begin = followed_below[np.uint32(chunk_lo[t])]
        end = followed_below[np.uint32(chunk_lo[t]) + np.uint32(chunk_n[t])]
        row[kept], first[kept], last[kept] = t, begin, end
        kept += begin < end
    return row[:kept], first[:kept], last[:kept]
