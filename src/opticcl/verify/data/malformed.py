"""Rows of a schedule that name ranks, chunks or operations that do not exist, or that the collective does not allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opticcl.ir import Collective, IntArray, Op, Transfers, Violation

__all__ = ["first_malformed", "first_malformed_row", "parts_of"]


def first_malformed(step: Transfers, i: int, c: Collective) -> Violation | None:
    """The first row whose rank, chunk or operation does not exist.

    Args:
        step: transfers.
        i: its number.
        c: collective.
    """
    bad_rank = (np.minimum(step.src, step.dst) < 0) | (np.maximum(step.src, step.dst) >= c.num_ranks)
    distance = np.ones(len(step), np.int64) if step.chunk_step is None else step.chunk_step.astype(np.int64)
    last = step.chunk_lo + (step.chunk_n.astype(np.int64) - 1) * distance
    bad_chunk = (step.chunk_lo < 0) | (step.chunk_n < 1) | (distance < 1) | (last >= c.num_chunks)
    for rule, bad, expected in (
        ("rank_unknown", bad_rank, f"ranks 0..{c.num_ranks - 1}"),
        ("chunk_unknown", bad_chunk, f"chunks 0..{c.num_chunks - 1}"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            return Violation(rule, i, -1, f"transfer {rows[0]}", expected, _row(step, int(rows[0])), len(rows))
    return first_malformed_row(step.op, parts_of(step), i, c, lambda row: _row(step, row))


def first_malformed_row(
    op: IntArray, parts: IntArray, i: int, c: Collective, name: Callable[[int], str] = "row {}".format
) -> Violation | None:
    """The first row whose operation, or number of contributions, the collective does not allow.

    Args:
        op: `Op` of each row.
        parts: contributions of each chunk that it carries.
        i: number of the step.
        c: collective.
        name: row -> what it is, in words.
    """
    apart = np.array(c.keeps_apart)
    for rule, bad, expected in (
        ("operation_unknown", op > Op.REDUCE_MOVE, "copy (0), reduce (1), move (2) or reduce_move (3)"),
        ("operation_wrong", apart & (op & 1 > 0), "move (2): contributions are kept apart"),
        (
            "operation_wrong",
            ~apart & (op == Op.MOVE),
            "copy (0), reduce (1) or reduce_move (3): contributions are not kept apart",
        ),
        ("size_wrong", ~apart & (parts != 1), "one part: contributions are not kept apart"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            return Violation(rule, i, -1, f"transfer {rows[0]}", expected, name(int(rows[0])), len(rows))
    return None


def parts_of(step: Transfers) -> IntArray:
    """Contributions that each transfer carries side by side, int32 (n,): 1 where none are named [count]."""
    return np.ones(len(step), np.int32) if step.parts is None else step.parts


def _row(step: Transfers, row: int) -> str:
    lo, n = int(step.chunk_lo[row]), int(step.chunk_n[row])
    apart = 1 if step.chunk_step is None else int(step.chunk_step[row])
    every = "" if apart == 1 else f" every {apart}"
    return f"{step.src[row]} -> {step.dst[row]} chunks {lo}..{lo + (n - 1) * apart}{every} op {step.op[row]}"
