"""What each collective promises: two predicates over (rank, chunk), one line each.

`num_chunks` is the algorithm's choice: how finely it cuts the message. Sizes are those of the whole buffer: what every rank
of an all_reduce holds, what an all_gather or a gather makes, what a reduce_scatter or a scatter starts from, what each rank of
an all_to_all sends in all (its own block included).

Source: the MPI standard; microsoft/msccl-tools showed that two predicates are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import Collective, IntArray
from opticcl.registry import as_text, canonical, nearest

__all__ = ["COLLECTIVES", "ROOTED", "Request", "as_request", "collective", "collective_name", "own_collective"]


class _Kind(NamedTuple):
    """Who holds what before and after: "all" ranks, the "owner" of the chunk, the "root", or the owner's "target"."""

    before: str
    after: str
    reduces: bool = False
    keeps_apart: bool = False


_KINDS = {
    "all_reduce": _Kind("all", "all", reduces=True),
    "reduce_scatter": _Kind("all", "owner", reduces=True),
    "all_gather": _Kind("owner", "all"),
    "all_to_all": _Kind("all", "owner", keeps_apart=True),
    "broadcast": _Kind("root", "all"),
    "reduce": _Kind("all", "root", reduces=True),
    "scatter": _Kind("root", "owner"),
    "gather": _Kind("owner", "root"),
    "barrier": _Kind("all", "all", reduces=True),
    "send_recv": _Kind("owner", "target"),
}
COLLECTIVES = tuple(_KINDS)
ROOTED = tuple(name for name, kind in _KINDS.items() if "root" in (kind.before, kind.after))


def collective(
    name: str, num_ranks: int, num_chunks: int = 1, *, root: int = 0, owner: IntArray | None = None, shift: int = 1
) -> Collective:
    """The collective of that name.

    Args:
        name: see `COLLECTIVES`.
        num_ranks: ranks that take part, >= 1 [count].
        num_chunks: equal pieces that the message is cut into, >= 1 [count].
        root: where a rooted collective starts or ends.
        owner: rank that each chunk belongs to, int (num_chunks,), as many chunks each; None: equal blocks in rank order.
        shift: send_recv: rank r sends its block to rank r + shift (mod num_ranks).
    Raises: ParameterError: unknown name, no ranks, a root that is no rank, or chunks that do not divide among the ranks.
    """
    key = collective_name(name)
    kind = _KINDS[key]
    if num_ranks < 1 or num_chunks < 1:
        raise ParameterError(f"{key}: {num_ranks} ranks and {num_chunks} chunks; both are 1 or more")
    if not 0 <= root < num_ranks:
        raise ParameterError(f"{key}: root={root} is no rank; try 0 to {num_ranks - 1}")
    owned = "owner" in (kind.before, kind.after)
    owners = _owners(key, num_ranks, num_chunks, owner) if owned else None

    def holds(who: str) -> Callable[[IntArray, IntArray], np.ndarray]:
        def held(rank: IntArray, chunk: IntArray) -> np.ndarray:
            if who == "all":
                return np.ones(np.broadcast(rank, chunk).shape, bool)
            if who == "root":
                return np.broadcast_to(np.asarray(rank) == root, np.broadcast(rank, chunk).shape)
            assert owners is not None
            due = owners[chunk] if who == "owner" else (owners[chunk] + shift) % num_ranks
            return np.asarray(rank) == due

        return held

    return Collective(
        name=key,
        num_ranks=num_ranks,
        num_chunks=num_chunks,
        reduces=kind.reduces,
        before=holds(kind.before),
        after=holds(kind.after),
        root=root,
        keeps_apart=kind.keeps_apart,
        owner=owners,
        shift=shift,
    )


def own_collective(name: str, before: np.ndarray, after: np.ndarray, reduces: bool) -> Collective:
    """A collective that is none of `COLLECTIVES`, from tables.

    Args:
        name: any other.
        before, after: who holds which chunk at the start and at the end, bool (num_chunks, num_ranks).
        reduces: whether what ranks hold of a chunk at the start is added; otherwise they all hold the same.
    Raises: ParameterError: the name is taken, or a chunk that nobody holds.
    """
    if canonical(name) in _KINDS:
        raise ParameterError(f"{name}: is a registered collective; give your own another name")
    before, after = np.array(before, bool), np.array(after, bool)
    if not len(before) or before.shape != after.shape or not before.any(axis=1).all():
        raise ParameterError(f"{name}: every chunk must be held by a rank at the start")
    num_chunks, num_ranks = before.shape
    return Collective(
        name=canonical(name),
        num_ranks=num_ranks,
        num_chunks=num_chunks,
        reduces=reduces,
        before=lambda rank, chunk: before[chunk, rank],
        after=lambda rank, chunk: after[chunk, rank],
    )


@dataclass(frozen=True, slots=True)
class Request:
    """What an algorithm is asked for; how many chunks it takes is its own choice.

    Args:
        name: canonical name of the collective.
        root: where a rooted collective starts or ends.
        shift: how far a send_recv reaches [ranks].
    """

    name: str
    root: int = 0
    shift: int = 1

    def on(self, num_ranks: int, num_chunks: int = 1, owner: IntArray | None = None) -> Collective:
        """The collective on that many ranks, cut into that many chunks; see `collective`."""
        return collective(self.name, num_ranks, num_chunks, root=self.root, owner=owner, shift=self.shift)


def as_request(collective: Request | str) -> Request:
    """A request as it is, or one for the collective of that name with root 0.

    Raises: ParameterError: unknown name.
    """
    return collective if isinstance(collective, Request) else Request(collective_name(collective))


def _owners(name: str, num_ranks: int, num_chunks: int, owner: IntArray | None) -> IntArray:
    if num_chunks % num_ranks:
        raise ParameterError(
            f"{name}: {num_chunks} chunks are no multiple of {num_ranks} ranks, so blocks would differ"
        )
    if owner is None:
        return np.repeat(np.arange(num_ranks, dtype=np.int32), num_chunks // num_ranks)
    owner = np.ascontiguousarray(owner, dtype=np.int32)
    fair = len(owner) == num_chunks and owner.min() >= 0 and owner.max() < num_ranks
    if not fair or (np.bincount(owner, minlength=num_ranks) != num_chunks // num_ranks).any():
        raise ParameterError(f"{name}: every rank must own {num_chunks // num_ranks} of the {num_chunks} chunks")
    return owner


def collective_name(name: str) -> str:
    """The canonical name.

    >>> collective_name("All-Reduce")
    'all_reduce'

    Raises: ParameterError: unknown, or no text.
    """
    key = canonical(as_text(name, "collective", "all_reduce"))
    if key not in _KINDS:
        raise ParameterError(f"unknown collective {name!r}; {nearest(key, COLLECTIVES)}")
    return key
