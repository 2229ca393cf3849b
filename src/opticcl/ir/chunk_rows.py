"""Transfers with one row for each chunk, and chunks that their senders give up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray, numbered
from opticcl.ir.transfers import Op, Transfers

__all__ = ["ChunkRows", "by_chunk", "stored_first"]

ChunkRows = tuple[IntArray, IntArray, IntArray, npt.NDArray[np.uint8]]
"""Source, destination, chunk and operation, one row for each chunk of each transfer."""


def by_chunk(step: Transfers) -> ChunkRows:
    """A step with one row for each chunk of each transfer."""
    n = step.chunk_n.astype(np.int64)
    if (n == 1).all():
        return step.src, step.dst, step.chunk_lo, step.op
    row, nth = numbered(n)
    chunk = step.chunk_lo[row] + nth * (1 if step.chunk_step is None else step.chunk_step[row])
    return step.src[row], step.dst[row], chunk, step.op[row]


def stored_first(steps: Iterable[ChunkRows], num_ranks: int, num_chunks: int) -> Iterator[ChunkRows]:
    """The same with copies and sums alone: of what reaches a chunk that its rank has given up, the first row is stored, and the
    others are added to it.

    Args:
        steps: in order, of a collective that does not keep contributions apart.
        num_ranks, num_chunks: of the collective [count].
    """
    given_up = np.zeros(num_ranks * num_chunks, np.bool_)
    for src, dst, chunk, op in steps:
        given_up[(src.astype(np.int64) * num_chunks + chunk)[op & Op.MOVE > 0]] = True
        reached, first = np.unique(dst.astype(np.int64) * num_chunks + chunk, return_index=True)
        plain = op & np.uint8(Op.REDUCE)
        plain[first[given_up[reached]]] = Op.COPY
        given_up[reached] = False
        yield src, dst, chunk, plain
