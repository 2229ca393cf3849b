"""The order in which rules see the transfers of a step, so that light does not depend on how the step lists them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from opticcl.circuits import Rounds
from opticcl.ir import Circuits, IntArray, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.recent import num_bytes

__all__ = ["Recalled", "as_listed", "by_pair", "farthest_first", "recalled"]

T = TypeVar("T")

MOST_BYTES = limit("order.MOST_BYTES")
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


class Recalled(Generic[T]):
    """The last values of a function of some columns, which the next step often needs again; those of few rules are kept.

    Args: most: values that are kept [count].
    """

    def __init__(self, most: int = RECALLED) -> None:
        self._most = most

    def value(self, columns: tuple[IntArray, ...], make: Callable[[], T]) -> T:
        """The value for these columns.

        Args:
            columns: that it depends on.
            make: computes it.
        """
        kept = _KEPT.pop(self, [])
        value: T | None = next((one for before, one in kept if all(map(np.array_equal, before, columns))), None)
        if value is None:
            value = make()
            kept = [*kept[1 - self._most :], (columns, value)] if self._most > 1 else [(columns, value)]
        _KEPT[self] = kept
        while len(_KEPT) > RULES_RECALLED or (len(_KEPT) > 1 and _recalled_bytes() > MOST_BYTES):
            del _KEPT[next(iter(_KEPT))]
        return value


def _recalled_bytes() -> int:
    """Of all values that are kept, without the columns that they are for [bytes]."""
    return sum(num_bytes(value) for kept in _KEPT.values() for _, value in kept)


_KEPT: WeakKeyDictionary[Recalled[Any], list[tuple[tuple[IntArray, ...], Any]]] = WeakKeyDictionary()
"""What was computed last, as long as the rules live."""


def recalled(rule: Rounds) -> Rounds:
    """A rule that returns the last circuits again for transfers between the same nodes in the same order.

    Args: rule: whose circuits depend on senders and receivers alone.
    """
    kept = Recalled[tuple[Circuits, ...]]()

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        return kept.value((transfers.src, transfers.dst), lambda: rule(step, transfers))

    return rounds
