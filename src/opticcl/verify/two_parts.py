"""A reduce in two parts: steps that add up every chunk at one rank, then steps that copy the sums to the root.

The first part may have symmetries that the second, which has a root, cannot have. So each is judged for itself: the first as a
reduce-scatter to the ranks that the second copies from, the second as a gather from these. In the second part nothing is added,
and a rank to which the first does not promise the whole sum of a chunk counts as one without it, so no partial sum is accepted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opticcl.ir import IntArray, Op, Schedule, Transfers
from opticcl.ir.collective import Holders
from opticcl.verify.chunk_rows import chunks_unknown, with_neighbours_alone

__all__ = ["two_parts"]

MOST_STEPS = 1 << 10  # of the second part, which are kept
MOST_COPIES = 1 << 22  # chunks that the second part carries


def two_parts(schedule: Schedule) -> tuple[Schedule, Schedule] | None:
    """A reduce-scatter and a gather, one after the other; None for a schedule that does not consist of these.

    Args: schedule: to be checked.
    """
    c = schedule.collective
    to_root = isinstance(c.after, Holders) and c.after.kind == "root"
    if not (c.reduces and to_root and isinstance(c.before, Holders) and c.before.kind == "all"):
        return None
    copies: list[Transfers] = []
    carried, split = 0, schedule.num_steps
    while split and len(copies) < MOST_STEPS:
        rows = schedule.step(split - 1)
        if not len(rows) or (rows.op != Op.COPY).any():
            break
        carried += int(rows.chunk_n.sum(dtype=np.int64))
        ends = np.concatenate([rows.src, rows.dst])
        unknown = ends.min() < 0 or ends.max() >= c.num_ranks or chunks_unknown(rows, c.num_chunks).any()
        if unknown or carried > MOST_COPIES:
            return None
        copies.insert(0, with_neighbours_alone(rows)[0])
        split -= 1
    if not split or not copies:
        return None
    owners = Holders("owner", owners=_first_senders(copies, c.root, c.num_chunks))
    step = schedule.step
    first = replace(
        schedule, collective=replace(c, after=owners), num_steps=split, step=lambda i: step(i), classes=()
    )  # a function of its own: what defines the steps defines all of them
    second = replace(
        schedule,
        collective=replace(c, before=owners, reduces=False),
        num_steps=len(copies),
        step=lambda i: step(split + i),
        classes=(),
        symmetries=(),
    )
    return first, second


def _first_senders(copies: list[Transfers], root: int, num_chunks: int) -> IntArray:
    """The rank that sends each chunk first; the root, where none does, int32 (num_chunks,).

    Args:
        copies: steps, with neighbouring chunks alone.
        root: of the collective.
        num_chunks: of the message [count].
    """
    senders = np.full(num_chunks, root, np.int32)
    for step in reversed(copies):
        many = step.chunk_n.astype(np.int64)
        chunk = np.repeat(step.chunk_lo - np.cumsum(many) + many, many) + np.arange(many.sum())
        senders[chunk] = np.repeat(step.src, many)
    return senders
