"""Symmetries of a schedule that claims none: a few are tried, and those that hold are used like checked claims.

Tried as permutations of the ranks: what the first step does if every rank sends to one other (a ring in any order), the
rotation by one, one digit of the number of ranks at a time, and exclusive or with each power of two. The permutation of the
chunks follows from their holders, or from the rows of the first step. No other permutations are searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from opticcl.ir import Collective, IntArray, Op, Schedule, Transfers
from opticcl.ir.collective import Holders
from opticcl.ir.symmetry import Digits, Symmetry, Table, Xor
from opticcl.verify.chunk_rows import MOST_APART, chunks_unknown, num_apart, with_neighbours_alone
from opticcl.verify.symmetry import CheckedClaims, Claim, claims_of, end_runs, runs_of

__all__ = ["found_claims", "worth_searching"]

MOST_NAMED = 16  # times that distinct ranges of a step name a chunk, on average
LEAST_WIDTH = 16  # chunks followed for each row that is read: less, and following all chunks is as quick


def worth_searching(schedule: Schedule) -> bool:
    """Whether reading the base steps is likely to be quicker than following all chunks, by the first and the last of them."""
    for run in end_runs(schedule):
        step = run.first_step()
        if run.count * int(step.chunk_n.sum(dtype=np.int64)) >= LEAST_WIDTH * len(step) > 0:
            return True
    return False


def found_claims(schedule: Schedule) -> list[Claim]:
    """Symmetries that hold for all base steps; they are checked once more when chunks are followed."""
    c = schedule.collective
    bases = [run.first_step() for run in runs_of(schedule)[:1]]
    if not bases or _malformed(bases[0], c) or num_apart(bases[0]) > MOST_APART:
        return []
    bases = [with_neighbours_alone(base)[0] for base in bases]
    tried = []
    for ranks in _candidates(bases[0], c.num_ranks):
        chunks = _chunks_of(ranks, bases[0], c)
        if chunks is not None:
            tried.append(Symmetry(Table(ranks), Table(chunks)))
    claims, _ = claims_of(replace(schedule, symmetries=tuple(tried)))
    for at, run in enumerate(runs_of(schedule)):
        if not claims:
            break
        checked = CheckedClaims(claims, c)
        for member in run.members:
            step = member.base()
            if _malformed(step, c):
                return []
            checked.check(at, step)
        claims = [claim for claim in claims if claim.number not in checked.refuted]
    return claims


def _malformed(step: Transfers, c: Collective) -> bool:
    """Whether a row names a rank, chunk or operation that does not exist."""
    if not len(step):
        return False
    ends = np.concatenate([step.src, step.dst])
    wrong = ends.min() < 0 or ends.max() >= c.num_ranks or step.op.max() > max(Op)
    return bool(wrong or chunks_unknown(step, c.num_chunks).any())


def _candidates(step: Transfers, num_ranks: int) -> Iterator[IntArray]:
    """Permutations of the ranks to try."""
    if len(step) == num_ranks and len(np.unique(step.src)) == num_ranks == len(np.unique(step.dst)):
        images = np.empty(num_ranks, np.int64)
        images[step.src] = step.dst
        yield images
    yield Digits((num_ranks,), 0, 1).images(num_ranks)
    factors = _prime_factors(num_ranks)
    if len(factors) > 1:
        yield from (Digits(factors, digit, 1).images(num_ranks) for digit in range(len(factors)))
    if set(factors) == {2}:
        yield from (Xor(1 << bit).images(num_ranks) for bit in range(len(factors)))


def _prime_factors(number: int) -> tuple[int, ...]:
    """Ascending.

    >>> _prime_factors(12)
    (2, 2, 3)
    """
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return tuple(found + [number] * (number > 1))


def _chunks_of(ranks: IntArray, step: Transfers, c: Collective) -> IntArray | None:
    """The permutation of the chunks that belongs to one of the ranks, or None if none is found."""
    for holders in (c.before, c.after):
        if isinstance(holders, Holders) and holders.owners is not None:
            return _owned(ranks, holders.owners, c.num_chunks)
    images = np.full(c.num_chunks, -1, np.int64)
    key = step.src.astype(np.int64) * c.num_ranks + step.dst
    order = np.argsort(key, kind="stable")
    if (np.diff(key[order]) == 0).any():  # two rows of one pair: which is the image of which is not seen
        return None
    image = ranks[step.src] * c.num_ranks + ranks[step.dst]
    place = np.searchsorted(key[order], image)
    if (place >= len(order)).any() or (key[order][place] != image).any():
        return None
    other = order[place]
    if (step.chunk_n[other] != step.chunk_n).any():
        return None
    _, one = np.unique(step.chunk_lo * np.int64(c.num_chunks + 1) + step.chunk_n, return_index=True)
    # one row for each range of chunks: the others have the same image, or none
    count = step.chunk_n[one].astype(np.int64)
    if count.sum() > MOST_NAMED * c.num_chunks:
        return None
    rows = np.repeat(one, count)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    images[step.chunk_lo[rows] + within] = step.chunk_lo[other][rows] + within
    valid = images.min() >= 0 and len(np.unique(images)) == c.num_chunks
    return images if valid else None


def _owned(ranks: IntArray, owners: IntArray, num_chunks: int) -> IntArray:
    """The k-th chunk of each rank becomes the k-th chunk of its image."""
    of_rank = np.argsort(owners, kind="stable").reshape(len(ranks), -1)
    images = np.empty(num_chunks, np.int64)
    images[of_rank] = of_rank[ranks]
    return images
