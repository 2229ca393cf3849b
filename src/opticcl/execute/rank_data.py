"""Test data of single ranks: the input of a rank and its expected result, without the arrays of all ranks in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.reference import LARGEST_VALUE, OWN_BLOCK_FIRST, least_length

__all__ = ["expected_row", "given_length", "message_length", "random_row", "result_length"]


def message_length(schedule: RankSchedule, size_bytes: int, itemsize: int) -> int:
    """Elements of the smallest message of at least `size_bytes` whose blocks are equal and whose chunks are not empty.

    Args:
        schedule: of any rank.
        size_bytes: size of the whole message [bytes].
        itemsize: size of an element [bytes].
    """
    return least_length(schedule.num_chunks, schedule.blocks, size_bytes, itemsize)


def given_length(schedule: RankSchedule, length: int) -> int:
    """Elements that the rank holds at the start [count].

    Args:
        schedule: of the rank.
        length: elements of the whole message [count].
    """
    if not schedule.before.any():
        return 0
    return length // schedule.blocks if schedule.collective in OWN_BLOCK_FIRST else length


def result_length(schedule: RankSchedule, length: int) -> int:
    """Elements of the result of the rank [count].

    Args:
        schedule: of the rank.
        length: elements of the whole message [count].
    """
    if not schedule.after.any():
        return 0
    whole = schedule.after.all() or schedule.blocks == 1 or schedule.final is not None
    return length if whole else length // schedule.blocks


def random_row(rank: int, length: int, dtype: np.dtype, seed: int) -> np.ndarray:
    """Seeded data of one rank: small whole numbers, so that sums of floats are exact.

    Args:
        rank: whose data.
        length: elements [count].
        dtype: of the elements.
        seed: seed of the data.
    """
    return np.random.default_rng([seed, rank]).integers(0, LARGEST_VALUE, length, endpoint=True).astype(dtype)


def expected_row(schedule: RankSchedule, root: int, shift: int, row: Callable[[int], np.ndarray]) -> np.ndarray | None:
    """What the rank must hold at the end, by NumPy; None where the collective gives it nothing.

    Args:
        schedule: of the rank.
        root, shift: of the collective.
        row: data of each rank at the start.
    Raises: UnsupportedError: a custom collective.
    """
    name, rank, n = schedule.collective, schedule.rank, schedule.num_ranks
    if name in ("all_reduce", "barrier", "reduce", "reduce_scatter"):
        if name == "reduce" and rank != root:
            return None
        total = row(0).copy()
        for other in range(1, n):
            total += row(other)
        return np.split(total, n)[rank] if name == "reduce_scatter" else total
    if name == "broadcast":
        return row(root)
    if name == "scatter":
        return np.split(row(root), n)[rank]
    if name == "send_recv":
        return row((rank - shift) % n)
    if name == "all_to_all":
        return np.concatenate([np.split(row(other), n)[rank] for other in range(n)])
    if name in ("all_gather", "gather"):
        return np.concatenate([row(other) for other in range(n)]) if name == "all_gather" or rank == root else None
    raise UnsupportedError(
        f"execute: {name} is a custom collective, for which NumPy has no reference; leave --transport out"
    )
