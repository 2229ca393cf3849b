"""The order in which rules see the transfers of a step, so that light does not depend on how the step lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from opticcl.circuits import Rounds
from opticcl.ir import Circuits, IntArray, Transfers

__all__ = ["as_listed", "by_pair", "farthest_first", "recalled"]

RULES_RECALLED = 4  # of two candidates, which each may have one within another
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


@dataclass(eq=False)
class _Recalled:
    """A rule that returns the last circuits again.

    Args: rule: whose circuits depend on senders and receivers alone.
    """

    rule: Rounds

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        kept = _KEPT.pop(self, [])
        ends = transfers.src, transfers.dst
        found = next((one for before, one in kept if all(map(np.array_equal, before, ends))), None)
        if found is None:
            found = self.rule(step, transfers)
            kept = [*kept[1 - RECALLED :], (ends, found)]
        _KEPT[self] = kept
        while len(_KEPT) > RULES_RECALLED:
            del _KEPT[next(iter(_KEPT))]
        return found


_KEPT: WeakKeyDictionary[_Recalled, list[tuple[tuple[IntArray, IntArray], tuple[Circuits, ...]]]] = WeakKeyDictionary()
"""What the rules return again that were asked last, as long as they live."""


def recalled(rule: Rounds) -> Rounds:
    """A rule that returns the last circuits again for transfers between the same nodes in the same order.

    Args: rule: whose circuits depend on senders and receivers alone.
    """
    return _Recalled(rule)
