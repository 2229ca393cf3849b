"""What each collective promises: two predicates over (rank, chunk), one line each.

`num_chunks` is the algorithm's choice: how finely it cuts the message. Source: the MPI standard; microsoft/msccl-tools
showed that two predicates are enough.
"""

from __future__ import annotations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import Collective, IntArray
from opticcl.registry import canonical, nearest

__all__ = ["COLLECTIVES", "collective", "collective_name"]

COLLECTIVES = ("all_reduce",)


def everyone(rank: IntArray, chunk: IntArray) -> np.ndarray:
    """Every rank, every chunk."""
    return np.ones(np.broadcast(rank, chunk).shape, bool)


def collective(name: str, num_ranks: int, num_chunks: int = 1) -> Collective:
    """The collective of that name.

    Args:
        name: see `COLLECTIVES`.
        num_ranks: ranks that take part, >= 1 [count].
        num_chunks: equal pieces that the message is cut into, >= 1 [count].
    Raises: ParameterError: unknown name or no ranks.
    """
    key = collective_name(name)
    if num_ranks < 1 or num_chunks < 1:
        raise ParameterError(f"{key}: {num_ranks} ranks and {num_chunks} chunks; both are 1 or more")
    return Collective(key, num_ranks, num_chunks, reduces=True, before=everyone, after=everyone)


def collective_name(name: str) -> str:
    """The canonical name.

    >>> collective_name("All-Reduce")
    'all_reduce'

    Raises: ParameterError: unknown.
    """
    key = canonical(name)
    if key not in COLLECTIVES:
        raise ParameterError(f"unknown collective {name!r}; {nearest(key, COLLECTIVES)}")
    return key
