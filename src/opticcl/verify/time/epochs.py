"""Checks of the epochs of dynamic traffic: the law of light in every slot, and the rules between requests and cells.

    wavelength_clash, transmitter_shared, ...   the rules of `light`, on the circuits of every slot
    grant_unrequested                           more cells of a pair are sent than were requested and not yet sent
    grant_too_early                             a cell is sent in an epoch before its request could be known
    cells_not_released                          a request waits although a circuit for it could have stood in the epoch
    cells_lost                                  offered cells are neither sent nor waiting

A scheduler may claim that no request waits while a circuit is free; only then is cells_not_released checked, for every pair
that waits and every cell (slot, port) of the epoch. Where cells go by way of other nodes, pairs are not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from opticcl.ir import (
    Circuits,
    Fabric,
    IntArray,
    Op,
    Transfers,
    Verdict,
    Violation,
    concatenate_circuits,
    concatenate_transfers,
)
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.ir.limits import limit
from opticcl.verify.light.circuits import check_slot
from opticcl.verify.sweep import Cells, cells_of

__all__ = ["EpochJudge"]

MOST_CANDIDATES = limit("epochs.MOST_CANDIDATES")

MOST_REPORTED = 20
"""Violations that a verdict names [count]."""

Candidates = Callable[[IntArray, IntArray], Sequence[Circuits]]
"""Senders and receivers -> every circuit that could carry a cell of each pair in a slot; `transfer` is the row of the pair."""


class EpochJudge:
    """Judges epochs one after the other.

    Args:
        fabric: the machine.
        lead: epochs from the request of a cell to the first in which it may be sent.
        follows_pairs: whether cells go straight to their receivers.
        candidates: where the scheduler claims that no request waits in vain; else None.
    """

    def __init__(self, fabric: Fabric, lead: int, follows_pairs: bool, candidates: Candidates | None) -> None:
        self._fabric, self._lead, self._follows, self._candidates = fabric, lead, follows_pairs, candidates
        self._keys, self._waiting = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._violations: list[Violation] = []
        self._epochs = self._circuits = 0

    def epoch(
        self,
        number: int,
        due: EpochRequest,
        grants: EpochGrants,
        slots: Sequence[Circuits],
        reserved: Sequence[tuple[Transfers, Circuits]] | None = None,
    ) -> None:
        """Judge an epoch.

        Args:
            number: of the epoch.
            due: requests whose cells may be sent from this epoch on.
            grants: what the scheduler says that it sends.
            slots: circuits of each slot; `transfer` is the row of the grant.
            reserved: light of each slot that is not this traffic's, with the transfers that it carries.
        """
        self._epochs += 1
        self._judge_light(number, grants, slots, reserved)
        if not self._follows:
            return
        known = (number - self._lead + 1) * len(slots)
        early = np.flatnonzero((grants.arrival >= known) | (due.arrival.max(initial=-1) >= known))
        if len(early):
            row = int(early[0])
            self._add("grant_too_early", number, -1, self._pair(grants, row), f"arrival before slot {known}",
                      f"slot {grants.arrival[row]}", len(early))  # fmt: skip
        n = self._fabric.num_machine_nodes
        keys = np.concatenate([self._keys, due.src.astype(np.int64) * n + due.dst])
        cells = np.concatenate([self._waiting, due.cells.astype(np.int64)])
        sent = grants.src.astype(np.int64) * n + grants.dst
        pairs, where = np.unique(np.concatenate([keys, sent]), return_inverse=True)
        left = np.bincount(where[: len(keys)], cells, len(pairs)) - np.bincount(
            where[len(keys) :], grants.cells, len(pairs)
        )
        wrong = np.flatnonzero(left < 0)
        if len(wrong):
            src, dst = divmod(int(pairs[wrong[0]]), n)
            self._add("grant_unrequested", number, -1, f"{src} -> {dst}", "cells that are waiting",
                      f"{-int(left[wrong[0]])} more", len(wrong))  # fmt: skip
        some = left > 0
        self._keys, self._waiting = pairs[some], left[some].astype(np.int64)
        if self._candidates is not None and some.any():
            self._judge_idle(number, slots, reserved)

    def _judge_light(
        self,
        number: int,
        grants: EpochGrants,
        slots: Sequence[Circuits],
        reserved: Sequence[tuple[Transfers, Circuits]] | None,
    ) -> None:
        """The law of light in every slot, other light included, and that every grant has its circuits."""
        rows = np.arange(len(grants), dtype=np.int32)
        mine = Transfers(grants.src, grants.dst, rows, np.ones_like(rows), np.full(len(rows), Op.MOVE, np.uint8))
        has_circuit = np.zeros(len(grants), bool)
        for slot, circuits in enumerate(slots):
            carried = circuits.transfer
            has_circuit[carried[(carried >= 0) & (carried < len(grants))]] = True
            transfers, light = mine, circuits
            if reserved is not None and len(reserved[slot][1]):
                transfers, light = _together(mine, circuits, *reserved[slot])
            self._circuits += len(circuits)
            for violation in check_slot(self._fabric, transfers, light):
                self._violations_of(replace(violation, step=number, round=slot))
        if not has_circuit.all():
            row = int(np.flatnonzero(~has_circuit)[0])
            self._add("transfer_not_carried", number, -1, self._pair(grants, row), "a circuit", "none", 1)

    def _judge_idle(
        self,
        number: int,
        slots: Sequence[Circuits],
        reserved: Sequence[tuple[Transfers, Circuits]] | None,
    ) -> None:
        """Pairs that wait although a circuit of theirs could stand in some slot beside all others."""
        src, dst = np.divmod(self._keys, self._fabric.num_machine_nodes)
        taken: list[list[np.ndarray]] = []
        for slot, circuits in enumerate(slots):
            others = circuits if reserved is None else concatenate_circuits([circuits, reserved[slot][1]])
            taken.append([cells.loads() > 0 for cells in self._cells(others)])
        assert self._candidates is not None
        for start in range(0, len(src), MOST_CANDIDATES):
            rows = slice(start, start + MOST_CANDIDATES)
            for circuits in self._candidates(src[rows], dst[rows]):
                used = list(self._cells(circuits))
                for slot, tables in enumerate(taken):
                    free = np.ones(len(circuits), bool)
                    for table, cells in zip(tables, used, strict=True):
                        free[cells.circuit[table[cells.cell]]] = False
                    if free.any():
                        row = int(np.flatnonzero(free)[0])
                        waiting = self._waiting[start + circuits.transfer[row]]
                        where = f"{circuits.src[row]} -> {circuits.dst[row]} on port {circuits.port[row]}"
                        expected = "a circuit, since its cells are free"
                        found = f"{waiting} cells that wait"
                        self._add("cells_not_released", number, slot, where, expected, found, int(free.sum()))
                        return

    def _cells(self, circuits: Circuits) -> Iterator[Cells]:
        """What circuits take of each kind of resource."""
        for usage in self._fabric.usage(circuits):
            yield cells_of(usage, circuits, self._fabric.num_wavelengths)

    def end(self, offered: int, sent: int, pending: int) -> Verdict:
        """The verdict on all epochs.

        Args:
            offered: cells of all flows [count].
            sent: cells that reached their receivers [count].
            pending: cells that wait [count].
        """
        if offered != sent + pending:
            self._add(
                "cells_lost", self._epochs - 1, -1, "all nodes", f"{offered} = sent + pending", f"{sent} + {pending}", 1
            )
        pairs = "" if self._follows else "; two hops: pairs are not followed"
        idle = "" if self._candidates is None else "; no request waits while its cells are free"
        note = f"{self._epochs} epochs, every slot of each{pairs}{idle}"
        return Verdict(tuple(self._violations), sent, self._circuits, 0, True, (note,))

    def _pair(self, grants: EpochGrants, row: int) -> str:
        return f"{grants.src[row]} -> {grants.dst[row]}"

    def _add(self, rule: str, epoch: int, slot: int, where: str, expected: str, found: str, count: int) -> None:
        """Add a violation.

        Args:
            rule: its name.
            epoch, slot: where it is broken; slot -1: in the whole epoch.
            where, expected, found: as of a `Violation`.
            count: how often.
        """
        self._violations_of(Violation(rule, epoch, slot, where, expected, found, count))

    def _violations_of(self, violation: Violation) -> None:
        if len(self._violations) < MOST_REPORTED:
            self._violations.append(violation)


def _together(mine: Transfers, circuits: Circuits, transfers: Transfers, light: Circuits) -> tuple[Transfers, Circuits]:
    """Two lists of transfers and their circuits as one.

    Args:
        mine, circuits: of this traffic.
        transfers, light: of the other.
    """
    apart = (transfers.chunk_lo + len(mine)).astype(np.int32)  # behind the rows of `mine`, which number its cells
    both = concatenate_transfers([mine, replace(transfers, chunk_lo=apart, parts=None)])
    carried = np.where(light.transfer < 0, -1, light.transfer + len(mine)).astype(np.int32)
    moved = replace(light, transfer=carried)
    return both, concatenate_circuits([circuits, moved])
