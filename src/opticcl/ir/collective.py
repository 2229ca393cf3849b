"""Collectives: the state before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray

__all__ = ["Collective", "HolderTable", "Holders"]


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """Predicate over (rank, chunk) arrays: ranks that hold a chunk of a registered collective.

    Args:
        kind: all ranks, the root, or the owner of the chunk.
        root: the root.
        owners: rank that holds each chunk, int32 (num_chunks,).
    """

    kind: str
    root: int = 0
    owners: IntArray | None = None

    def __call__(self, rank: IntArray, chunk: IntArray) -> npt.NDArray[np.bool_]:
        """Whether each rank holds each chunk; arrays that broadcast."""
        if self.kind == "all":
            return np.ones(np.broadcast(rank, chunk).shape, bool)
        if self.kind == "root":
            return np.broadcast_to(np.asarray(rank) == self.root, np.broadcast(rank, chunk).shape)
        assert self.owners is not None
        return np.asarray(rank) == self.owners[chunk]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Holders):
            return NotImplemented
        same = (self.kind, self.root) == (other.kind, other.root)
        if self.owners is None or other.owners is None:
            return same and self.owners is other.owners
        return same and np.array_equal(self.owners, other.owners)

    def __hash__(self) -> int:
        return hash((self.kind, self.root, None if self.owners is None else self.owners.tobytes()))


@dataclass(frozen=True, slots=True, eq=False)
class HolderTable:
    """Predicate over (rank, chunk) arrays from a table.

    Args:
        table: which rank holds which chunk, bool (num_chunks, num_ranks).
    """

    table: npt.NDArray[np.bool_]

    def __call__(self, rank: IntArray, chunk: IntArray) -> npt.NDArray[np.bool_]:
        """Whether each rank holds each chunk; arrays that broadcast."""
        held: npt.NDArray[np.bool_] = self.table[chunk, rank]
        return held

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.table, other.table) if isinstance(other, HolderTable) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.table.tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """What must be true before and after, chunk by chunk.

    The message is cut into `num_chunks` equal chunks. `before(rank, chunk)` is true for ranks that hold a contribution to a
    chunk at the start, `after(rank, chunk)` for ranks that must hold the result at the end. The result consists of all
    contributions, each exactly once: their sum, or, where `keeps_apart`, all of them side by side (a chunk of an all_to_all is
    what all ranks send to one; each contribution is as large as a chunk). Where contributions are neither added nor kept apart,
    all holders of a chunk hold the same data at the start, which is the result. Both predicates take arrays and broadcast, so
    that they need no memory for 65,536 ranks.

    Args:
        name: canonical name.
        num_ranks: ranks that take part [count].
        num_chunks: equal chunks of the message [count].
        reduces: whether contributions are added (all_reduce) or only moved (all_gather).
        before: predicate over (rank, chunk) arrays.
        after: predicate over (rank, chunk) arrays.
        root: the rank that a rooted collective starts or ends at.
        keeps_apart: whether contributions to one chunk stay side by side.
        owner: rank that each chunk is for or from, int32 (num_chunks,); a rank's chunks lie in its block of the user's
            buffer in ascending order. None where chunks have no owner.
        shift: distance from sender to receiver of a send_recv [ranks].
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

    def __eq__(self, other: object) -> bool:
        """Equal in all fields; predicates by their own equality."""
        if not isinstance(other, Collective):
            return NotImplemented
        if self.owner is None or other.owner is None:
            owned = self.owner is other.owner
        else:
            owned = np.array_equal(self.owner, other.owner)
        return owned and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.name, self.num_ranks, self.num_chunks, self.root))

    def _identity(self) -> tuple[object, ...]:
        sizes = (self.name, self.num_ranks, self.num_chunks, self.reduces, self.root, self.keeps_apart, self.shift)
        return (*sizes, self.before, self.after)
