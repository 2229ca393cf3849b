"""Circuits that stand all the time.

`standing`: those of given sets, in every round. `hold`: where no step joins nodes that the first does not join, nothing is
set for the others. A step may need more circuits than the first between the same nodes; they are set with the first, and idle
until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opticcl.circuits import Rounds
from opticcl.ir import Circuits, Fabric, IntArray, Op, Schedule, Transfers, concatenate_circuits, numbered
from opticcl.ir.limits import limit
from opticcl.pairs import among, distinct

__all__ = ["hold", "pairs_of", "standing", "union_of"]

MOST_HELD = limit("hold.MOST_HELD")


def hold(fabric: Fabric, schedule: Schedule, assign: Rounds) -> Rounds:
    """Rounds in which every circuit of the schedule stands, if its first step joins all pairs and all circuits fit at once.

    Args:
        fabric: whose reconfiguration takes time; the path of a circuit follows from its nodes and its port.
        schedule: between nodes of the machine.
        assign: circuits of each round of a step.
    Returns: `assign` itself, or rounds with idle circuits.
    """
    if not fabric.reconfiguration_s or len(schedule.step_classes()) < 2:
        return assign
    return _Held(fabric, schedule, assign)


def standing(
    num_nodes: int, sets: list[Circuits], walk: Callable[[Circuits], tuple[IntArray, IntArray]] | None = None
) -> Rounds:
    """Rounds in which all circuits of a set stand, and those of the pairs of a step carry its transfers.

    Args:
        num_nodes: of the machine [count].
        sets: circuits that stand at once; the pairs of each step are in one of them.
        walk: paths of circuits whose nodes and port say them, end to end, and where each begins, so that none is kept; None:
            the sets have them.
    """
    pools = [_Pool.of(every.take(np.lexsort((every.port, every.dst, every.src))), num_nodes) for every in sets]

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        wanted = transfers.src.astype(np.int64) * num_nodes + transfers.dst
        order = np.argsort(wanted, kind="stable")
        pair = wanted[order]
        first = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]])) if len(pair) else order
        pair, many = pair[first], np.diff(first, append=len(order))
        fitting = next(((pool, at) for pool in pools if (at := pool.places(pair, many)) is not None), None)
        if fitting is None:
            raise AssertionError(f"step {step} has pairs for which no circuits stand")
        pool, at = fitting
        has = pool.counts[at]
        one, nth = numbered(has)
        row = pool.starts[at][one] + nth  # circuits of all pairs
        carried = order[first[one] + nth * many[one] // has[one]]
        by_transfer = np.argsort(carried, kind="stable")
        idle = np.ones(len(pool.circuits), bool)
        idle[row] = False
        rows = np.concatenate([row[by_transfer], np.flatnonzero(idle)])
        transfer = np.full(len(rows), -1, np.int32)
        transfer[: len(carried)] = carried[by_transfer]
        circuits = pool.circuits.take(rows).carrying_others(transfer)
        if walk is not None:
            hops, offsets = walk(circuits)
            circuits = replace(circuits, hops=hops, hop_offsets=offsets)
        return (circuits,)

    return rounds


class _Pool(NamedTuple):
    """Circuits that stand at once, by their pairs.

    Args:
        circuits: by sender, receiver and port.
        pairs: number of each pair, ascending, int64 (pairs,).
        starts: first circuit of each pair.
        counts: circuits of each pair.
    """

    circuits: Circuits
    pairs: IntArray
    starts: IntArray
    counts: IntArray

    @classmethod
    def of(cls, circuits: Circuits, num_nodes: int) -> _Pool:
        """Of circuits by sender, receiver and port.

        Args:
            circuits: in that order.
            num_nodes: of the machine [count].
        """
        numbers = circuits.src.astype(np.int64) * num_nodes + circuits.dst
        return cls(circuits, *np.unique(numbers, return_index=True, return_counts=True))

    def places(self, pair: IntArray, many: IntArray) -> IntArray | None:
        """Place of each pair, int64 (n,); None where some pair has fewer circuits than are wanted.

        Args:
            pair: numbers, ascending.
            many: circuits wanted of each.
        """
        for some in (slice(None, None, max(1, len(pair) // 16)), slice(None)):  # a few suffice in most cases
            at = np.searchsorted(self.pairs, pair[some])
            at = np.minimum(at, len(self.pairs) - 1)
            if not len(self.pairs) or ((self.pairs[at] != pair[some]) | (self.counts[at] < many[some])).any():
                return None if len(pair) else at
        return at


def union_of(schedule: Schedule, num_nodes: int) -> Transfers:
    """A transfer for every pair of a schedule, by sender and receiver.

    Args:
        schedule: between nodes of the machine.
        num_nodes: of the machine [count].
    """
    pairs = pairs_of(schedule, num_nodes)
    return Transfers.of(pairs // num_nodes, pairs % num_nodes, 0, 1, Op.COPY)


def pairs_of(schedule: Schedule, num_nodes: int) -> IntArray:
    """Number sender * num_nodes + receiver of every pair of a schedule, ascending, int64 (pairs,).

    Args:
        schedule: between nodes of the machine.
        num_nodes: of the machine [count].
    """
    pairs = np.zeros(0, np.int64)
    for steps in schedule.step_classes():
        transfers = schedule.step(steps.start)
        numbers = transfers.src.astype(np.int64) * num_nodes + transfers.dst
        if not (known := among(numbers, pairs)).all():
            pairs = distinct(np.concatenate([pairs, numbers[~known]]))
    return pairs


@dataclass(frozen=True, eq=False)
class _Held:
    """Rounds with idle circuits, found when the first of them is wanted.

    Args: as of `hold`.
    """

    fabric: Fabric
    schedule: Schedule
    assign: Rounds
    _found: dict[int, tuple[Circuits, ...]] = field(default_factory=dict)  # of steps that are wanted soon

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        every = self.every
        rounds = self._found.pop(step, None) or self.assign(step, transfers)
        if every is None or len(rounds) != 1:
            return rounds
        (circuits,) = rounds
        idle = every.take(~among(_identity(self.fabric, every), distinct(_identity(self.fabric, circuits))))
        if not len(idle):
            return rounds
        return (concatenate_circuits([circuits, replace(idle, transfer=np.full(len(idle), -1, np.int32))]),)

    @cached_property
    def every(self) -> Circuits | None:
        """All circuits of the schedule, or None if they are too many, do not fit or change nothing."""
        classes, changed = self.schedule.step_classes(), False
        largest = max(len(self.schedule.step(steps.start)) for steps in classes)  # a circuit each, or more
        if largest * len(classes) > MOST_HELD or not self._first_joins_all():
            return None
        parts: list[Circuits] = []
        known = np.zeros(0, np.int64)
        for steps in classes:
            transfers = self.schedule.step(steps.start)
            rounds = self.assign(steps.start, transfers) if len(transfers) else ()
            self._found[steps.start] = rounds
            if len(rounds) > 1 or any(circuits.wavelength_step != 1 for circuits in rounds):
                return None
            for circuits in rounds:
                numbers = _identity(self.fabric, circuits)
                new = ~among(numbers, known)
                changed = changed or (len(known) > 0 and bool(new.any()))
                parts.append(circuits.take(new))
                known = distinct(np.concatenate([known, numbers[new]])) if new.any() else known
            if len(known) * len(classes) > MOST_HELD:
                return None
        if not changed:
            return None
        every = concatenate_circuits(parts)
        return every if _fit_at_once(self.fabric, every) else None

    def _first_joins_all(self) -> bool:
        """Whether no step has a pair that the first has not."""
        first: IntArray | None = None
        for steps in self.schedule.step_classes():
            transfers = self.schedule.step(steps.start)
            pairs = distinct(transfers.src.astype(np.int64) * self.fabric.num_machine_nodes + transfers.dst)
            if first is None:
                first = pairs
            elif not among(pairs, first).all():
                return False
        return True


def _fit_at_once(fabric: Fabric, circuits: Circuits) -> bool:
    """Whether circuits can stand at the same time on the fabric."""
    for usage in fabric.usage(circuits):
        *_, place = usage.cells(circuits, fabric.num_wavelengths)
        if len(place) and np.unique(place, return_counts=True)[1].max() > usage.resource.capacity:
            return False
    return True


def _identity(fabric: Fabric, circuits: Circuits) -> IntArray:
    """One number for each circuit by its nodes, port and wavelengths, int64 (n,)."""
    n, w = fabric.num_machine_nodes, fabric.num_wavelengths
    columns: Sequence[tuple[IntArray, int]] = (
        (circuits.dst, n), (circuits.port, fabric.ports_per_node), (circuits.wavelength_lo, w),
        (circuits.wavelength_n, w + 1),
    )  # fmt: skip
    number = circuits.src.astype(np.int64)
    for column, size in columns:
        number = number * size + column
    return number
