"""Rows of a schedule that name ranks, chunks or operations that do not exist, and runs that cut ranges of chunks apart."""

from __future__ import annotations

import numpy as np

from opticcl.ir import Collective, IntArray, Op, Transfers, Violation
from opticcl.ir.step_blocks import StepBlock
from opticcl.ir.symmetry import Run
from opticcl.kernels import njit, worth_compiling
from opticcl.verify.chunk_rows import chunks_unknown

__all__ = ["MALFORMED", "NO_PARTS", "cut_ranges", "first_malformed", "first_malformed_step", "parts_of"]

MALFORMED = ("rank_unknown", "chunk_unknown", "operation_unknown", "operation_wrong", "run_cuts_ranges")
"""Rules without which a step cannot be followed."""

NO_PARTS = np.zeros(0, np.int32)
"""In place of parts, where contributions are added."""


def first_malformed(step: Transfers, i: int, c: Collective) -> Violation | None:
    """The first row whose rank, chunk or operation does not exist.

    Args:
        step: transfers.
        i: its number.
        c: collective.
    """
    parts = NO_PARTS if step.parts is None else step.parts
    columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, parts)
    quick = step.chunk_step is None and worth_compiling(len(step), _well_formed)
    if quick and _well_formed(*columns, c.num_ranks, c.num_chunks, c.keeps_apart):  # nearly every step is
        return None
    num_ranks, num_chunks, lone = c.num_ranks, c.num_chunks, np.array(not c.keeps_apart)
    bad_rank = (np.minimum(step.src, step.dst) < 0) | (np.maximum(step.src, step.dst) >= num_ranks)
    bad_chunk = chunks_unknown(step, num_chunks)
    for rule, bad, expected in (
        ("rank_unknown", bad_rank, f"ranks 0..{num_ranks - 1}"),
        ("chunk_unknown", bad_chunk, f"chunks 0..{num_chunks - 1}"),
        ("operation_unknown", step.op > Op.REDUCE_MOVE, "copy (0), reduce (1), move (2) or reduce_move (3)"),
        ("operation_wrong", ~lone & (step.op & 1 > 0), "move (2): contributions are kept apart"),
        (
            "operation_wrong",
            lone & (step.op == Op.MOVE),
            "copy (0), reduce (1) or reduce_move (3): contributions are not kept apart",
        ),
        ("size_wrong", lone & (parts_of(step) != 1), "one part: contributions are not kept apart"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            return Violation(rule, i, -1, f"transfer {rows[0]}", expected, _row(step, int(rows[0])), len(rows))
    return None


def first_malformed_step(block: StepBlock, transfers: int, c: Collective) -> tuple[list[Violation], int]:
    """The first row of a block whose rank, chunk or operation does not exist, and the transfers before its step.

    Args:
        block: with such a row.
        transfers: before the block [count].
        c: collective.
    """
    for at in range(len(block)):
        step = block.transfers.take(slice(block.starts[at], block.starts[at + 1]))
        if malformed := first_malformed(step, block.first + at, c):
            return [malformed], transfers + int(block.starts[at])
    raise AssertionError("a block without such a row")


def cut_ranges(run: Run, step: Transfers, i: int, c: Collective) -> Violation | None:
    """A run whose shift does not map the ranges of chunks of its steps onto ranges.

    Args:
        run: one member.
        step: its base.
        i: number of its first step.
        c: collective.
    """
    if run.shift is None or not len(step) or int(step.chunk_n.max()) == 1:
        return None
    if step.chunk_step is not None:
        return Violation(
            "run_cuts_ranges", i, -1, f"run from step {i}", "neighbouring chunks", "chunks apart", len(step)
        )
    shift = run.shift.images(c.num_chunks)
    breaks = np.concatenate([[0], np.cumsum(shift[1:] != shift[:-1] + 1)])
    known = ranges = np.unique(step.chunk_lo.astype(np.int64) * (c.num_chunks + 1) + step.chunk_n)
    for turn in range(1, run.count):
        lo, n = np.divmod(ranges, c.num_chunks + 1)
        bad = np.flatnonzero(breaks[lo + n - 1] != breaks[lo])
        if len(bad):
            first, last = int(lo[bad[0]]), int(lo[bad[0]] + n[bad[0]] - 1)
            found = f"chunks {first}..{last} become {shift[first]} to {shift[last]}"
            return Violation("run_cuts_ranges", i + turn, -1, f"run from step {i}", "a range", found, len(bad))
        images = shift[lo] * (c.num_chunks + 1) + n
        ranges = np.setdiff1d(images, known, assume_unique=True)
        if not len(ranges):
            break
        known = np.union1d(known, ranges)
    return None


def parts_of(step: Transfers) -> IntArray:
    """Contributions that each transfer carries side by side, int32 (n,): 1 where none are named [count]."""
    return np.ones(len(step), np.int32) if step.parts is None else step.parts


def _row(step: Transfers, row: int) -> str:
    lo, n = int(step.chunk_lo[row]), int(step.chunk_n[row])
    apart = 1 if step.chunk_step is None else int(step.chunk_step[row])
    every = "" if apart == 1 else f" every {apart}"
    return f"{step.src[row]} -> {step.dst[row]} chunks {lo}..{lo + (n - 1) * apart}{every} op {step.op[row]}"


@njit
def _well_formed(src, dst, chunk_lo, chunk_n, op, parts, num_ranks, num_chunks, keeps_apart):  # type: ignore[no-untyped-def]
    """Whether every row names ranks, chunks and an operation that exist, and parts only where contributions are kept apart.

    The loop has no early exit, so that it is vectorised.
    """
    forbidden, other = (Op.REDUCE, Op.REDUCE_MOVE) if keeps_apart else (Op.MOVE, Op.MOVE)
    bad = False
    for t in range(len(src)):
        bad |= (src[t] < 0) | (dst[t] < 0) | (src[t] >= num_ranks) | (dst[t] >= num_ranks)
        bad |= (chunk_lo[t] < 0) | (chunk_n[t] < 1) | (np.int64(chunk_lo[t]) + chunk_n[t] > num_chunks)
        bad |= (op[t] > Op.REDUCE_MOVE) | (op[t] == forbidden) | (op[t] == other)
    if not keeps_apart:
        for t in range(len(parts)):
            bad |= parts[t] != 1
    return not bad
