"""Circuits around failed parts and cells that are taken: those that work stay, the others are chosen again.

    kept       rounds of the fabric's own rule that no failed part touches stay as they are
    repaired   in the other rounds circuits that work stay; transfers that lost some take further ways that are free, by turns,
               until they are as wide as before; those that find none go to rounds of their own
    fresh      the whole step by first fit over all ways that work; then every transfer of a round takes a further way, by
               turns, as long as there are any

Of the last two the one whose rounds take less time is used: the sum over the rounds of the largest size / width.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.circuits import Rounds
from opticcl.circuits._order import farthest_first
from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray, Transfers, concatenate_circuits
from opticcl.ir.limits import limit
from opticcl.kernels import njit

__all__ = ["around", "cells_of", "cells_start"]

MOST_CELLS = limit("around.MOST_CELLS")
WIDEST = limit("around.WIDEST")


class _Ways(NamedTuple):
    """Ways to join the transfers of a step, and the cells that each takes.

    Args:
        circuits: of all ways that work, one wavelength each.
        way: of each circuit.
        transfer: of each way.
        first: of each transfer's ways, int64 (transfers + 1,).
        cells: of all ways end to end; offsets: where those of each begin.
        offsets: int64 (ways + 1,).
        width: circuits of each way [count].
        ganged: whether circuits of a way share a laser, so that those which are lost leave light behind.
    """

    circuits: Circuits
    way: IntArray
    transfer: IntArray
    first: IntArray
    cells: IntArray
    offsets: IntArray
    width: IntArray
    ganged: bool


def around(fabric: Fabric, rule: Rounds, *, widens: bool) -> Rounds:
    """A rule for a fabric of which parts have failed.

    Args:
        fabric: whose `options` list the ways to join a pair.
        rule: of the fabric, as if nothing had failed.
        widens: whether a transfer may use several wavelengths.
    """

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        given = rule(step, transfers)
        works = [_works(fabric, circuits) & _fits(fabric, circuits) for circuits in given]
        if all(each.all() for each in works):
            return given
        candidates = [
            rounds
            for rounds in (_repaired(fabric, transfers, given, works, widens), fresh(step, transfers))
            if rounds is not None
        ]
        if not candidates:
            raise UnsupportedError(
                f"{fabric.name}: step {step} has too many ways to join its transfers around what failed"
            )
        return min(candidates, key=lambda circuits: _duration(circuits, transfers))

    def fresh_of(transfers: Transfers) -> tuple[Circuits, ...]:
        ways = _ways(fabric, transfers, np.arange(len(transfers)))
        return () if ways is None else _first_fit(fabric, ways, np.arange(len(transfers)), len(transfers), widens)

    by_distance = farthest_first(fabric.num_machine_nodes, fresh_of)

    def fresh(step: int, transfers: Transfers) -> tuple[Circuits, ...] | None:
        return by_distance(step, transfers) or None

    return rounds


def _works(fabric: Fabric, circuits: Circuits) -> npt.NDArray[np.bool_]:
    """Whether each circuit passes no failed part and no cell that is taken."""
    works = np.ones(len(circuits), bool)
    for fault in fabric.part_faults(circuits):
        works[fault.circuits] = False
    if len(fabric.occupied):
        cells, owner = cells_of(fabric, circuits)
        full = _table(fabric)
        works[owner[full[cells] >= _capacity(fabric)[cells]]] = False
    return works


def _fits(fabric: Fabric, circuits: Circuits) -> npt.NDArray[np.bool_]:
    """Whether each circuit fits beside what is taken and the circuits of its round that stand before it."""
    fits = np.ones(len(circuits), bool)
    if len(fabric.occupied):
        cells, owner = cells_of(fabric, circuits)
        taken = _table(fabric)
        shared = taken[cells] > 0
        cells, owner = cells[shared], owner[shared]
        order = np.lexsort((owner, cells))
        cells, owner = cells[order], owner[order]
        before = np.arange(len(cells)) - np.searchsorted(cells, cells)
        fits[owner[taken[cells] + before >= _capacity(fabric)[cells]]] = False
    return fits


def cells_start(fabric: Fabric) -> tuple[IntArray, IntArray]:
    """Where the cells of each resource begin in a table of all, with the end; wavelengths counted apart of each."""
    depth = np.array([fabric.num_wavelengths if r.per_wavelength else 1 for r in fabric.resources], np.int64)
    counts = np.array([r.count for r in fabric.resources], np.int64) * depth
    return np.concatenate([[0], np.cumsum(counts)]), depth


def _capacity(fabric: Fabric) -> IntArray:
    """Of every cell."""
    starts, _ = cells_start(fabric)
    return np.repeat([int(r.capacity) for r in fabric.resources], np.diff(starts))


def _table(fabric: Fabric) -> IntArray:
    """What is taken of every cell before the first circuit, int64 (cells,)."""
    starts, depth = cells_start(fabric)
    table = np.zeros(starts[-1], np.int64)
    for position in range(len(depth)):
        fabric.occupied.add_to(position, int(depth[position]), table[starts[position] : starts[position + 1]])
    return table


def cells_of(fabric: Fabric, circuits: Circuits) -> tuple[IntArray, IntArray]:
    """Cells of all circuits, and the circuit of each, int64 (m,) each."""
    starts, depth = cells_start(fabric)
    cells, owners = [], []
    for usage in fabric.usage(circuits):
        position = next(k for k, other in enumerate(fabric.resources) if other is usage.resource)
        if usage.resource.one_setting:  # other wavelengths of it are of no use to circuits on another path
            owner = np.arange(len(circuits)) if usage.circuit is None else np.asarray(usage.circuit, np.int64)
            index = (usage.index[:, None] * depth[position] + np.arange(depth[position])).ravel()
            owner = np.repeat(owner, depth[position])
        else:
            _, owner, index = usage.cells(circuits, fabric.num_wavelengths)
        cells.append(starts[position] + index)
        owners.append(owner)
    return np.concatenate(cells), np.concatenate(owners)


def _ways(fabric: Fabric, transfers: Transfers, rows: IntArray) -> _Ways | None:
    """All ways that work for some transfers; None if they are too many.

    Args:
        fabric: that lights them.
        transfers: of the step.
        rows: of the transfers; others have no way.
    Raises: UnsupportedError: a transfer has none.
    """
    options = fabric.options(transfers.src[rows], transfers.dst[rows])
    single, choice = options.circuits, options.choice
    if len(single) + len(single.hops) > MOST_CELLS:
        return None
    names, choice = np.unique(choice, return_inverse=True)
    works = _works(fabric, single)
    cells, owner = cells_of(fabric, single)  # light of a way fills its cells also where a part of it is not received
    number = np.bincount(choice[works], minlength=len(names))
    usable = number[choice[owner]] > 0
    place, size = np.cumsum(number > 0) - 1, cells_start(fabric)[0][-1]
    distinct = np.unique(place[choice[owner[usable]]] * size + cells[usable])
    way_of_cell, cells = np.divmod(distinct, size)
    kept = single.take(works)
    way = place[choice[works]]
    kept = replace(kept, transfer=rows[kept.transfer].astype(np.int32))
    width = number[number > 0]
    transfer = np.zeros(len(width), np.int64)
    transfer[way] = kept.transfer
    assert (np.diff(transfer) >= 0).all()  # ways come transfer by transfer
    first = np.searchsorted(transfer, np.arange(len(transfers) + 1))
    dark = rows[np.diff(first)[rows] == 0]
    if len(dark):
        ends = " and ".join(fabric.coordinates(int(end[dark[0]])) for end in (transfers.src, transfers.dst))
        raise UnsupportedError(
            f"{fabric.name}: every way to join nodes {ends} needs a part that has failed or is taken"
        )
    offsets = np.searchsorted(way_of_cell, np.arange(len(width) + 1))
    return _Ways(kept, way, transfer, first, cells, offsets, width, ganged=len(names) < len(single))


def _first_fit(
    fabric: Fabric, ways: _Ways, waiting: IntArray, num_transfers: int, widens: bool
) -> tuple[Circuits, ...]:
    """Transfers, each in the first round in which one of its ways is free.

    Args:
        fabric: that lights them.
        ways: of these transfers.
        waiting: rows of the transfers.
        num_transfers: of the step [count].
        widens: whether a transfer may take further ways of its round.
    """
    rounds = []
    capacity = _capacity(fabric)
    while len(waiting):
        taken, used = _table(fabric), np.zeros(len(ways.transfer), np.bool_)
        have = np.zeros(num_transfers, np.int64)
        _take(waiting, np.ones(num_transfers, np.int64), have, ways, taken, capacity, used)
        placed = waiting[have[waiting] > 0]
        if not len(placed):
            raise UnsupportedError(f"{fabric.name}: all ways to join a transfer are taken by stuck parts or other jobs")
        if widens:
            _take(placed, np.full(num_transfers, WIDEST), have, ways, taken, capacity, used)
        rounds.append(_merged(ways.circuits.take(used[ways.way])))
        waiting = waiting[have[waiting] == 0]
    return tuple(rounds)


def _repaired(
    fabric: Fabric,
    transfers: Transfers,
    given: tuple[Circuits, ...],
    works: list[npt.NDArray[np.bool_]],
    widens: bool,
) -> tuple[Circuits, ...] | None:
    """The given rounds, where transfers that lost circuits take other ways; None if there are too many ways.

    Args:
        fabric: that lights them.
        transfers: of the step.
        given: rounds of the rule.
        works: of each round, whether each circuit works.
        widens: whether a transfer may take several ways.
    """
    hurt = np.unique(np.concatenate([c.transfer[~w] for c, w in zip(given, works, strict=True)]))
    hurt = hurt[hurt >= 0].astype(np.int64)
    ways = _ways(fabric, transfers, hurt)
    if ways is None or any(circuits.wavelength_step != ways.circuits.wavelength_step for circuits in given):
        return None
    capacity = _capacity(fabric)
    rounds, late = [], []
    for circuits, good in zip(given, works, strict=True):
        kept = circuits.take(good)
        lost = np.unique(circuits.transfer[~good]).astype(np.int64)
        lost = lost[lost >= 0]
        wanted, have = (_widths(of, len(transfers)) for of in (circuits, kept))
        taken, used = _table(fabric), np.zeros(len(ways.transfer), np.bool_)
        cells, _ = cells_of(fabric, circuits if ways.ganged else kept)
        np.add.at(taken, cells, 1)
        _take(lost, wanted if widens else np.minimum(wanted, 1), have, ways, taken, capacity, used)
        parts = [part for part in (kept, _merged(ways.circuits.take(used[ways.way]))) if len(part)]
        if parts:
            joined = concatenate_circuits(parts)
            rounds.append(joined.take(np.argsort(joined.transfer, kind="stable")))
        late += lost[have[lost] == 0].tolist()
    rounds += _first_fit(fabric, ways, np.array(sorted(set(late)), np.int64), len(transfers), widens)
    return tuple(rounds)


def _duration(rounds: tuple[Circuits, ...], transfers: Transfers) -> float:
    """Sum over the rounds of the largest size / width [chunks]."""
    size, total = transfers.size_chunks(), 0.0
    for circuits in rounds:
        width = _widths(circuits, len(transfers))
        wide = width > 0
        total += float((size[wide] / width[wide]).max(initial=0.0))
    return total


def _widths(circuits: Circuits, num_transfers: int) -> IntArray:
    """Wavelengths of each transfer on all its circuits, int64 (transfers,)."""
    busy = circuits.carrying()
    return np.bincount(busy.transfer, busy.wavelength_n, num_transfers).astype(np.int64)


def _take(
    rows: IntArray,
    wanted: IntArray,
    have: IntArray,
    ways: _Ways,
    taken: IntArray,
    capacity: IntArray,
    used: npt.NDArray[np.bool_],
) -> None:
    """Each of the transfers takes a free way, by turns, until it is as wide as wanted or none is free.

    Args:
        rows: of the transfers.
        wanted: width of every transfer [count].
        have: the same that it has, changed.
        ways: to choose from.
        taken: of every cell, changed.
        capacity: of every cell.
        used: whether each way is taken, changed.
    """
    _by_turns(
        np.asarray(rows, np.int64),
        wanted,
        have,
        ways.first,
        ways.cells,
        ways.offsets,
        ways.width,
        taken,
        capacity,
        used,
    )


@njit
def _by_turns(rows, wanted, have, first, cells, offsets, width, taken, capacity, used):  # type: ignore[no-untyped-def]
    begin = first[rows].copy()
    progress = True
    while progress:
        progress = False
        for i in range(len(rows)):
            row = rows[i]
            if have[row] >= wanted[row]:
                continue
            for way in range(begin[i], first[row + 1]):
                begin[i] = way + 1  # cells are never given back, so a way that is taken stays taken
                if used[way]:
                    continue
                free = True
                for c in range(offsets[way], offsets[way + 1]):
                    if taken[cells[c]] >= capacity[cells[c]]:
                        free = False
                        break
                if free:
                    for c in range(offsets[way], offsets[way + 1]):
                        taken[cells[c]] += 1
                    used[way], progress = True, True
                    have[row] += width[way]
                    break


def _merged(circuits: Circuits) -> Circuits:
    """Circuits of one wavelength each as circuits of neighbouring ones, where transfer, port, path and waveguide agree.

    In the order of transfer, port and waveguide, then those a step apart one after the other.
    """
    step, lo = circuits.wavelength_step, circuits.wavelength_lo
    guide = np.zeros(len(circuits), np.int32) if circuits.waveguide is None else circuits.waveguide
    order = np.lexsort((lo, lo % step, guide, circuits.port, circuits.transfer))
    sorted_, rows = circuits.take(order), np.arange(len(circuits))
    begins = np.ones(len(circuits), bool)
    begins[1:] = (np.diff(sorted_.wavelength_lo) != step) | ~sorted_.same_path(rows[1:], rows[:-1])
    for column in (circuits.transfer, circuits.port, guide):
        begins[1:] |= np.diff(column[order]) != 0
    first = np.flatnonzero(begins)
    count = np.diff(np.r_[first, len(circuits)]).astype(np.int32)
    return replace(sorted_.take(first), wavelength_n=count)
