"""What fabrics whose parts can fail share: they are the same class with a text that names the failed parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.fabrics.job import survivors
from opticcl.ir import Circuits, Condition, Fabric, IntArray, Options, PartUse
from opticcl.ir.occupied import conditions_as_text, parse_conditions, unique_parts
from opticcl.routing.closed_order import closed_order

__all__ = ["FailingFabric", "options_of_pairs"]

PAIRS_AT_ONCE = 1 << 12
MOST_NODES_OF_TABLE = 256
"""Up to which the table of all pairs is made at once, since algorithms request the same ones again and again."""


class FailingFabric(Fabric):
    """A fabric with a parameter `failed`: its failed parts as text, see `opticcl.ir.occupied`.

    Its `parts_used` has the uses of a kind one after the other; what follows the kinds that failed is not computed.
    """

    failed: Any

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Failed parts, sorted."""
        if self.failed is None:
            return ()
        return parse_conditions(self.failed, self.inventory(), f"{self.name}: failed={self.failed}")

    def without(self, conditions: Iterable[Condition]) -> Fabric:
        """The fabric with further failed parts; where nodes are dead, a job on the others.

        Raises: FabricError: no such part, one that has failed already, or no node is left.
        """
        both = unique_parts([*self.conditions, *conditions], f"{self.name}: failed")
        return survivors(replace(self, failed=conditions_as_text(both)))  # type: ignore[type-var]

    def parts_of_kinds(self, kinds: Collection[str], circuits: Circuits) -> Iterator[PartUse]:
        """Those of `parts_used` that are of some kinds, up to the last of them."""
        left = set(kinds)
        for use in self.parts_used(circuits):
            if use.kind in kinds:
                left.discard(use.kind)
                yield use
            elif not left:
                return

    def joined_around(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether one of the ways to light each pair of nodes passes no failed part; arrays that broadcast.

        Args:
            src, dst: nodes.
        """
        if self.conditions and self.num_nodes <= MOST_NODES_OF_TABLE:
            return self._table_of_joins[src, dst]
        senders, receivers = np.broadcast_arrays(src, dst)
        works_for = np.ones(senders.size, bool)
        if self.conditions:
            flat = senders.ravel().astype(np.int64), receivers.ravel().astype(np.int64)
            for first in range(0, senders.size, PAIRS_AT_ONCE):
                rows = slice(first, first + PAIRS_AT_ONCE)
                works_for[rows] = self._joins(flat[0][rows], flat[1][rows])
        return works_for.reshape(senders.shape)

    @cached_property
    def _table_of_joins(self) -> npt.NDArray[np.bool_]:
        """The same for all pairs, bool (nodes, nodes)."""
        n = self.num_nodes
        src, dst = np.divmod(np.arange(n * n), n)
        parts = (slice(first, first + PAIRS_AT_ONCE) for first in range(0, n * n, PAIRS_AT_ONCE))
        return np.concatenate([self._joins(src[rows], dst[rows]) for rows in parts]).reshape(n, n)

    def _joins(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """The same for lists of pairs."""
        works_for = src == dst
        apart = np.flatnonzero(~works_for)
        circuits = self.options(src[apart], dst[apart]).circuits
        works = np.ones(len(circuits), bool)
        for fault in self.part_faults(circuits):
            works[fault.circuits] = False
        works_for[apart[circuits.transfer[works]]] = True
        return works_for

    def order_around(self, order: IntArray) -> IntArray:
        """A closed order of neighbours, repaired where links have failed; the same one if none was found."""
        if not self.conditions or self.linked(order, np.roll(order, -1)).all():
            return order
        repaired = closed_order(order, self.linked)
        return order if repaired is None else repaired


def options_of_pairs(circuits: Circuits, width: int = 1) -> Options:
    """Options of which every `width` neighbouring rows are used together.

    Args:
        circuits: as `Options` has them.
        width: rows of a choice [count].
    """
    return Options(circuits, np.arange(len(circuits)) // width)
