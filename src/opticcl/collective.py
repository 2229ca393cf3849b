"""Definitions of the collectives: two predicates over (rank, chunk), one line each.

`num_chunks` is chosen by the algorithm: the number of equal parts of the message. Sizes are those of the whole buffer: the
input of every rank of an all_reduce, the result of an all_gather or a gather, the input of a reduce_scatter or a scatter, the
input of each rank of an all_to_all (its own block included).

Source: the MPI standard; microsoft/msccl-tools showed that two predicates are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import Collective, IntArray
from opticcl.ir.collective import Holders, HolderTable
from opticcl.registry import as_text, canonical, nearest

__all__ = ["COLLECTIVES", "ROOTED", "Request", "as_request", "collective", "collective_name", "custom_collective"]


class _Conditions(NamedTuple):
    """Which ranks hold a chunk before and after: "all" ranks, its "owner", the "root", or the owner's "target"."""

    before: str
    after: str
    reduces: bool = False
    keeps_apart: bool = False


_CONDITIONS = {
    "all_reduce": _Conditions("all", "all", reduces=True),
    "reduce_scatter": _Conditions("all", "owner", reduces=True),
    "all_gather": _Conditions("owner", "all"),
    "all_to_all": _Conditions("all", "owner", keeps_apart=True),
    "broadcast": _Conditions("root", "all"),
    "reduce": _Conditions("all", "root", reduces=True),
    "scatter": _Conditions("root", "owner"),
    "gather": _Conditions("owner", "root"),
    "barrier": _Conditions("all", "all", reduces=True),
    "send_recv": _Conditions("owner", "target"),
}
COLLECTIVES = tuple(_CONDITIONS)
ROOTED = tuple(name for name, conditions in _CONDITIONS.items() if "root" in (conditions.before, conditions.after))


def collective(
    name: str, num_ranks: int, num_chunks: int = 1, *, root: int = 0, owner: IntArray | None = None, shift: int = 1
) -> Collective:
    """The collective of that name.

    Args:
        name: see `COLLECTIVES`.
        num_ranks: ranks that take part, >= 1 [count].
        num_chunks: equal parts of the message, >= 1 [count].
        root: rank that a rooted collective starts or ends at.
        owner: rank that each chunk belongs to, int (num_chunks,), equally many chunks each; None: equal blocks in rank order.
        shift: send_recv: rank r sends its block to rank r + shift (mod num_ranks).
    Raises: ParameterError: unknown name, no ranks, a root that is not a rank, or chunks that do not divide among the ranks.
    """
    key = collective_name(name)
    conditions = _CONDITIONS[key]
    if num_ranks < 1 or num_chunks < 1:
        raise ParameterError(f"{key}: {num_ranks} ranks and {num_chunks} chunks; both are 1 or more")
    if not 0 <= root < num_ranks:
        raise ParameterError(f"{key}: root={root} is not a rank; try 0 to {num_ranks - 1}")
    owned = "owner" in (conditions.before, conditions.after)
    owners = _owners(key, num_ranks, num_chunks, owner) if owned else None

    def holds(who: str) -> Holders:
        if who in ("all", "root"):
            return Holders(who, root)
        assert owners is not None
        return Holders("owner", owners=owners if who == "owner" else (owners + shift) % num_ranks)

    return Collective(
        name=key,
        num_ranks=num_ranks,
        num_chunks=num_chunks,
        reduces=conditions.reduces,
        before=holds(conditions.before),
        after=holds(conditions.after),
        root=root,
        keeps_apart=conditions.keeps_apart,
        owner=owners,
        shift=shift,
    )


def custom_collective(name: str, before: np.ndarray, after: np.ndarray, reduces: bool) -> Collective:
    """A collective that is none of `COLLECTIVES`, from tables.

    Args:
        name: any other name.
        before, after: which rank holds which chunk at the start and at the end, bool (num_chunks, num_ranks).
        reduces: whether contributions to a chunk are summed; otherwise all holders of a chunk hold the same data.
    Raises: ParameterError: the name is registered, or no rank holds a chunk.
    """
    if canonical(name) in _CONDITIONS:
        raise ParameterError(f"{name}: is a registered collective; give a custom collective another name")
    before, after = np.array(before, bool), np.array(after, bool)
    if not len(before) or before.shape != after.shape or not before.any(axis=1).all():
        raise ParameterError(f"{name}: every chunk must be held by a rank at the start")
    num_chunks, num_ranks = before.shape
    return Collective(
        name=canonical(name),
        num_ranks=num_ranks,
        num_chunks=num_chunks,
        reduces=reduces,
        before=HolderTable(before),
        after=HolderTable(after),
    )


@dataclass(frozen=True, slots=True)
class Request:
    """A collective as it is requested from an algorithm, which chooses the number of chunks.

    Args:
        name: canonical name of the collective.
        root: rank that a rooted collective starts or ends at.
        shift: distance from sender to receiver of a send_recv [ranks].
    """

    name: str
    root: int = 0
    shift: int = 1

    def on(self, num_ranks: int, num_chunks: int = 1, owner: IntArray | None = None) -> Collective:
        """The collective on `num_ranks` ranks, cut into `num_chunks` chunks; see `collective`.

        Args:
            num_ranks: ranks that take part [count].
            num_chunks: equal parts of the message [count].
            owner: rank that each chunk belongs to.
        """
        return collective(self.name, num_ranks, num_chunks, root=self.root, owner=owner, shift=self.shift)


def as_request(collective: Request | str, root: int = 0) -> Request:
    """The request itself, or one for the collective of that name.

    Args:
        collective: a request, or a name.
        root: rank that the collective of a name starts or ends at.
    Raises: ParameterError: unknown name.
    """
    return collective if isinstance(collective, Request) else Request(collective_name(collective), root)


def _owners(name: str, num_ranks: int, num_chunks: int, owner: IntArray | None) -> IntArray:
    if num_chunks % num_ranks:
        raise ParameterError(
            f"{name}: {num_chunks} chunks are not a multiple of {num_ranks} ranks, so blocks would differ"
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

    Raises: ParameterError: unknown, or not a text.
    """
    key = canonical(as_text(name, "collective", "all_reduce"))
    if key not in _CONDITIONS:
        raise ParameterError(f"unknown collective {name!r}; {nearest(key, COLLECTIVES)}")
    return key
