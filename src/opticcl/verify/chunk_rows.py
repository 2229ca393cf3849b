"""Which rows of a step, or of the base of a run, carry the chunks that are followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import Collective, IntArray, Transfers
from opticcl.ir.symmetry import Run
from opticcl.kernels import chosen, njit, worth_compiling

__all__ = [
    "MOST_APART",
    "chunks_unknown",
    "followed_rows",
    "indexed_by_chunk",
    "num_apart",
    "with_followed_alone",
    "with_neighbours_alone",
]

MOSTLY_REACHED = 4
"""Share of the chunks that a run carries from those that are followed: one of that many."""

FEW_FOLLOWED = 64
"""Chunks that are looked for in every transfer whose chunks are no neighbours [count]."""

MOST_APART = 1 << 25
"""Chunks of the transfers of a step that carry chunks which are no neighbours [count]."""


def num_apart(step: Transfers) -> int:
    """Chunks that transfers carry which carry no neighbours [count]."""
    return 0 if step.chunk_step is None else int(step.chunk_n[step.chunk_step != 1].sum(dtype=np.int64))


def with_neighbours_alone(step: Transfers) -> tuple[Transfers, IntArray]:
    """Transfers whose chunks are neighbours, one for each chunk of those whose chunks are apart, and the row of each.

    Raises: UnsupportedError: more than `MOST_APART` chunks.
    """
    every = np.arange(len(step))
    if step.chunk_step is None:
        return step, every
    if (total := num_apart(step)) > MOST_APART:
        raise UnsupportedError(
            f"verify: a step carries {total:,} chunks that are no neighbours; at most {MOST_APART:,}"
        )
    many = np.where(step.chunk_step == 1, 1, step.chunk_n.astype(np.int64))
    ends = np.cumsum(many)
    row = np.repeat(every, many)
    turn = np.arange(len(row)) - (ends - many)[row]
    one = step.take(row)
    lo = one.chunk_lo.astype(np.int64) + turn * step.chunk_step[row]
    count = np.where(step.chunk_step[row] == 1, one.chunk_n, 1)
    return replace(one, chunk_lo=lo.astype(np.int32), chunk_n=count.astype(np.int32), chunk_step=None), row


def with_followed_alone(step: Transfers, chunks: IntArray) -> Transfers:
    """The same, as far as followed chunks are concerned, without chunks that are apart.

    Where the distance of all followed chunks is a multiple of that of the chunks of a row, the row is a range of neighbours, of
    which it carries all that are followed, or it carries none of them. Else it is a row for each of its followed chunks.

    Args:
        step: transfers.
        chunks: followed, ascending.
    Raises: UnsupportedError: as `with_neighbours_alone`, where more than `FEW_FOLLOWED` chunks are followed.
    """
    if step.chunk_step is None:
        return step
    apart = (step.chunk_step > 1) & (step.chunk_n > 1)
    if len(chunks) and not (np.gcd.reduce(np.diff(chunks)) % step.chunk_step[apart]).any():
        reached = np.where(apart, (step.chunk_n - 1) * step.chunk_step + 1, step.chunk_n)
        carries = ~apart | ((chunks[0] - step.chunk_lo) % step.chunk_step == 0)
        return replace(step, chunk_n=reached.astype(np.int32), chunk_step=None).take(np.flatnonzero(carries))
    if len(chunks) > FEW_FOLLOWED:
        return with_neighbours_alone(step)[0]
    rows, near = np.flatnonzero(apart), np.flatnonzero(~apart)
    lo, distance = step.chunk_lo[rows].astype(np.int64), step.chunk_step[rows]
    last = lo + (step.chunk_n[rows].astype(np.int64) - 1) * distance
    carrying = [rows[(lo <= chunk) & (chunk <= last) & ((chunk - lo) % distance == 0)] for chunk in chunks.tolist()]
    row = np.concatenate([near, *carrying])
    one = step.take(row)
    many = [len(of_chunk) for of_chunk in carrying]
    first = np.concatenate([step.chunk_lo[near], np.repeat(chunks, many)])
    count = np.concatenate([step.chunk_n[near], np.ones(sum(many), np.int64)])
    alone = replace(one, chunk_lo=first.astype(np.int32), chunk_n=count.astype(np.int32), chunk_step=None)
    return alone.take(np.argsort(row, kind="stable"))


def chunks_unknown(step: Transfers, num_chunks: int) -> npt.NDArray[np.bool_]:
    """Rows that carry no chunk, one that does not exist, or one of them twice, bool (rows,)."""
    apart = np.int64(1) if step.chunk_step is None else step.chunk_step.astype(np.int64)
    last = step.chunk_lo.astype(np.int64) + (step.chunk_n.astype(np.int64) - 1) * apart
    wrong: npt.NDArray[np.bool_] = (step.chunk_lo < 0) | (step.chunk_n < 1) | (apart < 1) | (last >= num_chunks)
    return wrong


def indexed_by_chunk(
    run: Run, bases: Sequence[Transfers], chunks: IntArray, c: Collective
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The rows of the bases of a run by member and chunk.

    Args:
        run: with those beside it.
        bases: first steps of its members.
        chunks: followed, ascending.
        c: collective.
    Returns: rows, numbered through all bases; where those of each place (member, chunk) begin; the place that takes the place
        of each in the next step; the place of each followed chunk in the first step, (members, chunks).
    """
    before = np.stack([_earlier(member, c) for member in run.members])
    needed = chunks if len(chunks) == c.num_chunks else np.flatnonzero(_reached(before, chunks))
    below = np.searchsorted(needed, np.arange(c.num_chunks + 1)).astype(np.int32)
    rows, places, first_row = [], [], 0
    for number, base in enumerate(bases):
        carrying, first, last = followed_rows(base.chunk_lo, base.chunk_n, below)
        counts = (last - first).astype(np.int64)
        rows.append(first_row + np.repeat(carrying.astype(np.int64), counts))
        ends = np.cumsum(counts)
        places.append(number * len(needed) + np.repeat(first - ends + counts, counts) + np.arange(counts.sum()))
        first_row += len(base)
    row, place = np.concatenate(rows), np.concatenate(places)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(bases) * len(needed) + 1))
    behind = len(needed) * np.arange(len(bases))[:, None]
    inverse = np.searchsorted(needed, before[:, needed]) + behind
    source = np.searchsorted(needed, chunks)[None] + behind
    return row[order], starts, inverse.ravel(), source.astype(np.int64)


def _reached(images: IntArray, chunks: IntArray) -> npt.NDArray[np.bool_]:
    """Which chunks are reached from some chunks by any of the permutations, these included, bool (chunks,).

    Args:
        images: of each chunk under each permutation, int64 (permutations, chunks).
        chunks: ascending.
    """
    few = images.size // MOSTLY_REACHED
    return np.asarray(chosen(_chunks_reached, few)(images, chunks))


def _earlier(run: Run, c: Collective) -> IntArray:
    """The chunk of the base that becomes each chunk in the next step, int64 (num_chunks,)."""
    before = np.arange(c.num_chunks)
    if run.shift is not None:
        before[run.shift.images(c.num_chunks)] = np.arange(c.num_chunks)
    return before


def followed_rows(
    chunk_lo: IntArray, chunk_n: IntArray, followed_below: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Rows that carry followed chunks, and the range of these: from first up to last, int32.

    Args:
        chunk_lo, chunk_n: first chunk and number of chunks of each row, int (rows,).
        followed_below: followed chunks below each chunk, int32 (chunks + 1,).
    """
    if worth_compiling(len(chunk_lo), _followed_rows):
        row, first, last = _followed_rows(chunk_lo, chunk_n, followed_below)
        return row, first, last
    first, last = followed_below[chunk_lo], followed_below[chunk_lo + chunk_n]
    row = np.flatnonzero(first < last).astype(np.int32)
    return row, first[row], last[row]


@njit
def _followed_rows(chunk_lo, chunk_n, followed_below):  # type: ignore[no-untyped-def]
    """As `followed_rows`."""
    n, kept = len(chunk_lo), 0
    row, first, last = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    for t in range(n):
        # unsigned, since no chunk is negative and an index that may be needs a second check
        begin = followed_below[np.uint32(chunk_lo[t])]
        end = followed_below[np.uint32(chunk_lo[t]) + np.uint32(chunk_n[t])]
        row[kept], first[kept], last[kept] = t, begin, end
        kept += begin < end
    return row[:kept], first[:kept], last[:kept]


@njit
def _chunks_reached(images, chunks):  # type: ignore[no-untyped-def]
    """As `_reached`."""
    reached = np.zeros(images.shape[1], np.bool_)
    stack = np.empty(images.shape[1], np.int64)
    for start in chunks:
        if reached[start]:
            continue
        reached[start] = True
        stack[0] = start
        top = 1
        while top:
            top -= 1
            at = stack[top]
            for g in range(len(images)):
                to = images[g, at]
                if not reached[to]:
                    reached[to] = True
                    stack[top] = to
                    top += 1
    return reached
