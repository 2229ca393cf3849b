"""What must be true before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray

__all__ = ["Collective"]


@dataclass(frozen=True, slots=True)
class Collective:
    """What must be true before and after, chunk by chunk.

    The message is cut into `num_chunks` equal chunks. `before(rank, chunk)` tells who holds a contribution to a chunk at
    the start, `after(rank, chunk)` who must hold the result at the end; the result is made of all contributions, each
    exactly once: their sum, or, where `keeps_apart`, all of them side by side (a chunk of an all_to_all is what all ranks
    send to one; each contribution is as large as a chunk). Where nothing is added or kept apart, all who hold a chunk at the
    start hold the same, and the result is that. Both take arrays and broadcast, so 65,536 ranks cost nothing.

    Args:
        num_ranks: ranks that take part [count].
        num_chunks: equal pieces of the message [count].
        reduces: whether contributions are added (all_reduce) or only moved (all_gather).
        before: predicate over (rank, chunk) arrays.
        after: predicate over (rank, chunk) arrays.
        root: the rank that a rooted collective starts or ends at.
        keeps_apart: whether contributions to one chunk stay side by side.
        owner: rank that each chunk is for or from, int32 (num_chunks,); a rank's chunks lie in its block of the user's
            buffer in ascending order. None where no chunk belongs to anybody.
        shift: how far a send_recv reaches [ranks].
    """

    name: str
    num_ranks: int
    num_chunks: int
    reduces: bool
    before: Callable[[IntArray, IntArray], npt.NDArray[np.bool_]]
    after: Callable[[IntArray, IntArray], npt.NDArray[np.bool_]]
    root: int = 0
    keeps_apart: bool = False
    owner: IntArray | None = None
    shift: int = 1

    def __repr__(self) -> str:
        from opticcl.units import counted

        return f"<Collective {self.name}: {counted(self.num_ranks, 'rank')}, {counted(self.num_chunks, 'chunk')}>"
