"""The order in which rules see the transfers of a step, so that light does not depend on how the step lists them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from opticcl.circuits import Rounds
from opticcl.ir import Circuits, IntArray, Transfers

__all__ = ["as_listed", "by_pair", "farthest_first", "recalled"]

RECALLED = 2  # steps that add and steps that store, or first and further ones, have the same pairs


def by_pair(transfers: Transfers) -> IntArray:
    """Rows by sender, receiver and chunks, int64 (n,)."""
    return _ascending(transfers.src, transfers.dst, transfers.chunk_lo, transfers.chunk_n)


def _ascending(*columns: IntArray) -> IntArray:
    """Rows by the first column, then by the second, ...; equal rows in their order.

    Args: columns: 0 or more each; as one number where their product fits, which takes a fifth of the time.
    """
    sides = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(sides) >= 1 << 63:
        return np.lexsort(columns[::-1])
    number = columns[0].astype(np.int64)
    for column, side in zip(columns[1:], sides[1:], strict=True):
        number = number * side + column
    return np.argsort(number, kind="stable")


def farthest_first(num_nodes: int, rule: Callable[[Transfers], tuple[Circuits, ...]]) -> Rounds:
    """A rule that sees transfers between nodes far apart on the ring of all node numbers first, then in the order of `by_pair`.

    First fit that takes long paths first needs fewer rounds.

    Args:
        num_nodes: of the machine [count].
        rule: transfers of a step in that order -> circuits of each round.
    Returns: rule for transfers in any order, whose circuits are in the order of the transfers.
    """

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        ahead = (transfers.dst.astype(np.int64) - transfers.src) % num_nodes
        nearer = np.maximum(ahead, num_nodes - ahead)
        order = _ascending(nearer, transfers.src, transfers.dst, transfers.chunk_lo, transfers.chunk_n)
        return tuple(as_listed(circuits, order) for circuits in rule(transfers.take(order)))

    return rounds


def as_listed(circuits: Circuits, order: IntArray) -> Circuits:
    """Circuits of transfers in some order as those of the step's own, in its order.

    Args:
        circuits: of a round; their transfers are places in `order`.
        order: row of the step at each place.
    """
    transfer = order[circuits.transfer].astype(np.int32)
    renumbered = circuits.carrying_others(transfer)
    if (transfer[1:] >= transfer[:-1]).all():
        return renumbered
    return renumbered.take(np.argsort(transfer, kind="stable"))


def recalled(rule: Rounds) -> Rounds:
    """A rule that returns the last circuits again for transfers between the same nodes in the same order.

    Args: rule: whose circuits depend on senders and receivers alone.
    """
    kept: list[tuple[Transfers, tuple[Circuits, ...]]] = []

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        for before, found in kept:
            if np.array_equal(before.src, transfers.src) and np.array_equal(before.dst, transfers.dst):
                return found
        found = rule(step, transfers)
        kept[:] = [*kept[1 - RECALLED :], (transfers, found)]
        return found

    return rounds
