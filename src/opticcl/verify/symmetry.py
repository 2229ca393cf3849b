"""Checks claimed symmetries of a schedule, so that one chunk of each orbit proves all chunks of it.

Chunks do not interact, so the history of a chunk is determined by the transfers that carry it. If a permutation of the ranks,
together with a permutation of the chunks, maps the schedule and its collective onto themselves, it maps the history of a chunk
onto that of its image: a chunk ends right exactly if its image does. A claim holds if

1. both are permutations,
2. they map holders of chunks, before and after, onto holders,
3. the permutation of chunks commutes with the shift of every run, and
4. they leave the transfers of every base step unchanged, as a multiset of (sender, receiver, operation, parts, chunk).

The multisets are compared as polynomials Σ A[src] B[dst] O[op] Q[parts] X[chunk] at two random points of the field of 2^61 - 1
elements, drawn from the operating system's entropy when the claim is checked. Two different multisets agree at a point with
probability of at most 5 / (2^61 - 1), at both with less than 2^-117.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from opticcl.ir import Collective, IntArray, Op, Schedule, Transfers
from opticcl.ir.collective import Holders, HolderTable
from opticcl.ir.symmetry import Run, RunSteps, Symmetry
from opticcl.kernels import chosen, njit, worth_compiling
from opticcl.verify._field import PRIME, Field, evaluate, multiply, prefix_sums
from opticcl.verify.chunk_rows import with_neighbours_alone

__all__ = ["CheckedClaims", "claims_of", "end_runs", "orbits", "runs_of"]

DRAWS = 2
MOST_DISTANCES = 8  # of the chunks of a transfer, for each of which all chunks are sorted
MOST_PARTS = 1 << 24  # a table of random numbers is used up to this value of `parts`


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A claim whose permutations fit the collective and the runs.

    Args:
        number: position among the claims of the schedule, from 1.
        ranks: image of each rank, int64 (num_ranks,).
        chunks: image of each chunk, int64 (num_chunks,).
    """

    number: int
    ranks: IntArray
    chunks: IntArray


def runs_of(schedule: Schedule) -> tuple[Run, ...]:
    """Runs that define the steps of a schedule; where a function defines them, every step is a run."""
    inner = getattr(schedule.step, "function", schedule.step)
    if isinstance(inner, RunSteps) and inner.num_steps == schedule.num_steps:
        return inner.runs
    return tuple(Run(lambda i=i: schedule.step(i)) for i in range(schedule.num_steps))  # type: ignore[misc]


def end_runs(schedule: Schedule) -> tuple[Run, ...]:
    """The first and the last run of a schedule, without a list of all; none of one without steps."""
    inner = getattr(schedule.step, "function", schedule.step)
    if isinstance(inner, RunSteps) or not schedule.num_steps:
        runs = runs_of(schedule)
        return (runs[0], runs[-1]) if runs else ()
    return tuple(Run(lambda i=i: schedule.step(i)) for i in (0, schedule.num_steps - 1))  # type: ignore[misc]


def claims_of(schedule: Schedule) -> tuple[list[Claim], list[str]]:
    """Claims that fulfil conditions 1 to 3, and notes on those that do not.

    Raises: ParameterError: a claim that is no pair of permutations.
    """
    c, found, notes = schedule.collective, [], []
    if not schedule.symmetries:
        return [], []
    runs = [member for run in runs_of(schedule) for member in run.members]
    shifts = [shift.images(c.num_chunks) for shift in dict.fromkeys(run.shift for run in runs) if shift is not None]
    for number, claim in enumerate(schedule.symmetries, start=1):
        ranks, chunks = _images(claim, c)
        if not (_keeps_holders(c.before, ranks, chunks, c) and _keeps_holders(c.after, ranks, chunks, c)):
            notes.append(f"claim refused: symmetry {number} does not map holders of chunks onto holders")
        elif any((shift[chunks] != chunks[shift]).any() for shift in shifts):
            notes.append(f"claim refused: symmetry {number} does not commute with the shift of a run")
        else:
            found.append(Claim(number, ranks, chunks))
    return found, notes


def _images(claim: Symmetry, c: Collective) -> tuple[IntArray, IntArray]:
    return claim.ranks.images(c.num_ranks), claim.chunks.images(c.num_chunks)


def _keeps_holders(holders: Any, ranks: IntArray, chunks: IntArray, c: Collective) -> bool:
    """Whether the image of every holder of a chunk holds the image of the chunk."""
    if isinstance(holders, Holders):
        if holders.kind == "all":
            return True
        if holders.kind == "root":
            return bool(ranks[holders.root] == holders.root)
        assert holders.owners is not None
        return bool((holders.owners[chunks] == ranks[holders.owners]).all())
    if isinstance(holders, HolderTable):
        return bool((holders.table[chunks][:, ranks] == holders.table).all())
    return False  # a predicate that cannot be compared proves nothing


def orbits(claims: Sequence[Claim], num_chunks: int) -> tuple[IntArray, int]:
    """The first chunk of each orbit, ascending, int64 (orbits,), and the size of the largest orbit."""
    images = np.stack([claim.chunks for claim in claims]) if claims else np.arange(num_chunks)[None]
    first, largest = chosen(_orbits, images.size)(images)
    return first, int(largest)


class CheckedClaims:
    """Evaluates the transfers of base steps at random points, and remembers the claims that they refute.

    Args:
        claims: to be checked.
        collective: of the schedule.
    """

    def __init__(self, claims: Sequence[Claim], collective: Collective) -> None:
        self._claims = list(claims)
        random = np.random.default_rng()  # entropy of the operating system: a plan cannot know the points
        size = {"A": collective.num_ranks, "B": collective.num_ranks, "O": len(Op), "X": collective.num_chunks}
        self._points = [
            {name: random.integers(1, PRIME, count, dtype=np.uint64) for name, count in size.items()}
            for _ in range(DRAWS)
        ]
        self._random = random
        self._parts = [np.ones(1, np.uint64) for _ in range(DRAWS)]
        self._prefix = [self._sums_of(np.arange(collective.num_chunks), draw) for draw in range(DRAWS)]
        self._senders = [_senders(p["A"], p["O"]) for p in self._points]
        self._permuted = [
            [(np.ascontiguousarray(senders[:, claim.ranks]), p["B"][claim.ranks]) for claim in self._claims]
            for p, senders in zip(self._points, self._senders, strict=True)
        ]
        self.refuted: dict[int, int] = {}

    def _sums_of(self, order: IntArray, draw: int) -> list[Field]:
        """Sums of the values of the first chunks in some order: of the chunks, then of their images under each claim.

        Args:
            order: of the chunks, int64 (num_chunks,).
            draw: number of the point.
        """
        of_chunk = self._points[draw]["X"]
        return [_sums(of_chunk[order]), *(_sums(of_chunk[claim.chunks[order]]) for claim in self._claims)]

    def check(self, step: int, transfers: Transfers) -> None:
        """Compare a base step with its images under every claim; `refuted` maps the numbers of false claims to the step."""
        t = transfers
        if t.chunk_step is not None and len(np.unique(t.chunk_step)) > MOST_DISTANCES:
            t, _ = with_neighbours_alone(t)
        parts = t.parts
        if parts is not None and len(parts) and int(parts.max()) >= MOST_PARTS:
            parts = np.unique(parts, return_inverse=True)[1]
        most = 0 if parts is None or not len(parts) else int(parts.max())
        compiled = worth_compiling(len(t) * (1 + len(self._claims)), _evaluate)
        value = _evaluate if compiled else evaluate
        by_distance = list(_by_distance(t, len(self._points[0]["X"])))
        for draw, point in enumerate(self._points):
            if most >= len(self._parts[draw]):
                more = self._random.integers(1, PRIME, most + 1 - len(self._parts[draw]), dtype=np.uint64)
                self._parts[draw] = np.concatenate([self._parts[draw], more])
            q = self._parts[draw]
            due, found = 0, [0] * len(self._claims)
            for rows, lo, order in by_distance:
                held = np.zeros(0, np.int32) if parts is None else parts[rows]
                some = (t.src[rows], t.dst[rows], t.op[rows], held, lo, t.chunk_n[rows])
                sums = self._prefix[draw] if order is None else self._sums_of(order, draw)
                due += int(value(*some, self._senders[draw], point["B"], q, sums[0]))
                for k, (a, b) in enumerate(self._permuted[draw]):
                    found[k] += int(value(*some, a, b, q, sums[k + 1]))
            for claim, sum_of_rows in zip(self._claims, found, strict=True):
                if (sum_of_rows - due) % PRIME and claim.number not in self.refuted:
                    self.refuted[claim.number] = step


def _by_distance(t: Transfers, num_chunks: int) -> Iterator[tuple[IntArray | slice, IntArray, IntArray | None]]:
    """Rows whose chunks have the same distance, in an order of the chunks in which those of a row are neighbours.

    Args:
        t: transfers.
        num_chunks: of the message [count].
    Yields: rows; the place of the first chunk of each; the order, int64 (num_chunks,), None where chunks are neighbours.
    """
    if t.chunk_step is None:
        yield slice(None), t.chunk_lo, None
        return
    distance = np.where(t.chunk_n == 1, 1, t.chunk_step)
    for apart in np.unique(distance).tolist():
        rows = np.flatnonzero(distance == apart)
        if apart == 1:
            yield rows, t.chunk_lo[rows], None
            continue
        order = np.argsort(np.arange(num_chunks) % apart, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(num_chunks)
        yield rows, place[t.chunk_lo[rows]], order


def _sums(values: Field) -> Field:
    """Sums of the first values, (n + 1,)."""
    return np.asarray((_prefix_sums if worth_compiling(len(values), _prefix_sums) else prefix_sums)(values))


def _senders(a: Field, o: Field) -> Field:
    """Product of each of `o` with each of `a`, (len(o), len(a))."""
    if worth_compiling(len(a) * len(o), _products):
        return np.asarray(_products(a, o))
    return multiply(o[:, None], a)


@intrinsic
def _folded(typing_context, a, b):  # type: ignore[no-untyped-def]
    """Low 61 bits of a product of two numbers below 2^61, plus the bits above: the same modulo 2^61 - 1, and below twice it."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(one, wide) for one in arguments))
        low = builder.trunc(builder.and_(product, wide(PRIME)), word)
        return builder.add(low, builder.trunc(builder.lshr(product, wide(61)), word))

    return types.uint64(types.uint64, types.uint64), generate


@njit
def _multiply(a, b):  # type: ignore[no-untyped-def]
    """Product modulo 2^61 - 1 of two smaller numbers."""
    prime = np.uint64(PRIME)
    total: np.uint64 = _folded(a, b)  # type: ignore[call-arg]
    return total - prime if total >= prime else total


@njit
def _products(a, o):  # type: ignore[no-untyped-def]
    """Product of each of `o` with each of `a`, (len(o), len(a))."""
    found = np.empty((len(o), len(a)), np.uint64)
    for i in range(len(o)):
        for k in range(len(a)):
            found[i, k] = _multiply(o[i], a[k])
    return found


@njit
def _prefix_sums(values):  # type: ignore[no-untyped-def]
    """Sums of the first values modulo 2^61 - 1, (n + 1,)."""
    prime = np.uint64(PRIME)
    sums = np.zeros(len(values) + 1, np.uint64)
    for i in range(len(values)):
        total = sums[i] + values[i]
        sums[i + 1] = total - prime if total >= prime else total
    return sums


@njit
def _evaluate(src, dst, op, parts, lo, n, a, b, q, prefix):  # type: ignore[no-untyped-def]
    """The polynomial of the rows at a point; `a` is of (operation, sender), `prefix` are sums of the values of chunks.

    Chunks of adjacent rows that differ in nothing else are added before they are multiplied, and so is what adjacent rows of
    one sender and operation have besides these.
    """
    prime = np.uint64(PRIME)
    total, sent, chunks = np.uint64(0), np.uint64(0), np.uint64(0)
    rows, apart = len(src), len(parts) > 0
    for t in range(rows):
        chunks += prefix[lo[t] + n[t]] + prime - prefix[lo[t]]
        chunks = (chunks & prime) + (chunks >> np.uint64(61))
        continues = t + 1 < rows and src[t + 1] == src[t] and op[t + 1] == op[t]
        if continues and dst[t + 1] == dst[t] and (not apart or parts[t + 1] == parts[t]):
            continue
        if chunks >= prime:
            chunks -= prime
        value = _multiply(b[dst[t]], chunks)
        if apart:
            value = _multiply(value, q[parts[t]])
        sent += value
        if sent >= prime:
            sent -= prime
        chunks = np.uint64(0)
        if not continues:
            total += _multiply(a[op[t], src[t]], sent)
            if total >= prime:
                total -= prime
            sent = np.uint64(0)
    return total


@njit
def _orbits(images):  # type: ignore[no-untyped-def]
    """First element of each orbit under all permutations, ascending, and the size of the largest orbit."""
    count = images.shape[1]
    seen = np.zeros(count, np.bool_)
    first = np.empty(count, np.int64)
    stack = np.empty(count, np.int64)
    found, largest = 0, 0
    for start in range(count):
        if seen[start]:
            continue
        first[found] = start
        found += 1
        seen[start] = True
        stack[0] = start
        top, size = 1, 0
        while top:
            top -= 1
            at = stack[top]
            size += 1
            for g in range(len(images)):
                to = images[g, at]
                if not seen[to]:
                    seen[to] = True
                    stack[top] = to
                    top += 1
        largest = max(largest, size)
    return first[:found].copy(), largest
