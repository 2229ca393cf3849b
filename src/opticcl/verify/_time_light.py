"""Light over time: circuits stand long enough, and never exceed the capacity of a resource."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray, Resource
from opticcl.verify._time_rows import Copy, StoredRound, StoredStep, TimeRows
from opticcl.verify.light import distinct_signals
from opticcl.verify.sweep import Cells, cells_of, exceeding, largest_so_far, runs_of, slack

__all__ = ["Overlap", "busy_between", "overlaps", "too_short"]

FloatArray = npt.NDArray[Any]  # float64


def too_short(
    fabric: Fabric, stored: StoredStep, chunk_bytes: float
) -> Iterator[tuple[str, StoredRound, IntArray, FloatArray]]:
    """Circuits of a step that do not stand for their latency and bytes, or do not start with their slot.

    Args:
        fabric: of the circuits.
        stored: the step.
        chunk_bytes: size of a chunk [bytes].
    Returns: law, round, circuits and missing times [s].
    """
    wavelengths = np.zeros(len(stored.transfers))
    for one in stored.rounds:
        carried = one.circuits.transfer[one.carries]
        many = one.circuits.wavelength_n * _shares(fabric, one.circuits)
        np.add.at(wavelengths, carried, many[one.carries])
    with np.errstate(divide="ignore", invalid="ignore"):
        share_bytes = stored.transfers.size_chunks() * chunk_bytes / wavelengths
    for one in stored.rounds:
        rows = np.flatnonzero(one.carries)
        share = share_bytes[one.circuits.transfer[rows]]
        if fabric.slot_s:
            slots = np.ceil(share / fabric.slot_payload_bytes * (1 - 1e-12))
            due = one.slot[rows] * fabric.slot_s
            off = np.abs(one.start_s[rows] - due)
            bad = (one.slot[rows] < 0) | (off > slack(due))
            yield "off_slot", one, rows[bad], off[bad]
            duration = slots * fabric.slot_s
            few = np.flatnonzero(one.slots[rows] < slots)
            yield "too_short", one, rows[few], (slots - one.slots[rows])[few] * fabric.slot_s
        else:
            duration = share * 8 / fabric.rate_bits_per_s
        missing = one.latency_s[rows] + duration - (one.end_s[rows] - one.start_s[rows])
        bad = missing > slack(one.end_s[rows])
        yield "too_short", one, rows[bad], missing[bad]


def _shares(fabric: Fabric, circuits: Circuits) -> FloatArray:
    """Share of its rate that the weakest part on its way leaves each circuit, float64 (n,)."""
    found = np.ones(len(circuits))
    weak = [condition for condition in fabric.conditions if condition.mode == "weak"]
    for use in fabric.parts_used(circuits) if weak else ():
        for each in weak:
            if each.kind == use.kind:
                hit = use.owners()[use.part == each.index]
                found[hit] = np.minimum(found[hit], each.value)
    return found


@dataclass(frozen=True, slots=True)
class Overlap:
    """Circuits that exceed the capacity of a resource together.

    Args:
        copy: unrolled step of the circuit that comes last.
        round: in that step.
        row: circuit of that round.
        resource: kind of resource.
        index: instance.
        missing_s: until one of them has left, it or another [s].
        count: instances and wavelengths that are exceeded in that round.
    """

    copy: Copy
    round: int
    row: int
    resource: Resource
    index: int
    missing_s: float
    count: int


class _Placed(NamedTuple):
    """An unrolled round in time: number, step, round, and when each circuit occupies its resources."""

    number: int
    copy: Copy
    round: StoredRound
    start_s: FloatArray
    left_s: FloatArray


def overlaps(
    rows: TimeRows, idle_until_s: Mapping[int, tuple[IntArray, FloatArray]], total_s: float
) -> Iterator[Overlap]:
    """Find circuits that overlap.

    Rounds that do not meet in time are counted one by one, as if all their circuits existed at the same time. Only where that
    exceeds a capacity are the times of the circuits compared.

    Args:
        rows: of the programme.
        idle_until_s: unrolled round -> idle circuits, and when each ceases to stand, the first time if there are several [s];
            others stand to the end.
        total_s: of the plan [s].
    """
    placed = list(_placed(rows, idle_until_s, total_s))
    spans = [(float(one.start_s.min()), float(one.left_s.max()), i) for i, one in enumerate(placed) if len(one.start_s)]
    spans.sort()
    fabric = rows.plan.fabric
    known: dict[tuple[tuple[int, int], ...], bool] = {}
    together: list[_Placed] = []
    until = -np.inf
    for begin, end, i in (*spans, (np.inf, np.inf, -1)):
        if begin >= until - slack(until):
            key = tuple((one.copy.stored.step, one.round.number) for one in together)
            if key not in known:
                known[key] = _fits_at_once(fabric, together)
            if not known[key]:
                yield from _exceeded(fabric, together)
            together, until = [], -np.inf
        if i >= 0:
            together.append(placed[i])
            until = max(until, end)


def _placed(
    rows: TimeRows, idle_until_s: Mapping[int, tuple[IntArray, FloatArray]], total_s: float
) -> Iterator[_Placed]:
    number = 0
    for copy in rows.copies:
        for one in copy.stored.rounds:
            start = one.start_s + copy.shift_s
            stands = np.full(len(start), total_s)
            if number in idle_until_s:
                np.minimum.at(stands, *idle_until_s[number])
            left = np.where(one.carries, one.left_s + copy.shift_s, np.maximum(start, stands))
            yield _Placed(number, copy, one, start, left)
            number += 1


def _cells(fabric: Fabric, placed: _Placed) -> Iterator[Cells]:
    """Exclusive cells that circuits of a round take over time; circuits of one signal that start and end together are one."""
    circuits, times = placed.round.circuits, (placed.start_s, placed.left_s)
    for usage in fabric.usage(circuits):
        if not (usage.resource.shared or usage.resource.once_per_job):
            if usage.resource.splits:
                usage = distinct_signals(usage, fabric, placed.copy.stored.transfers, circuits, times)
            yield cells_of(usage, circuits, fabric.num_wavelengths)


def _fits_at_once(fabric: Fabric, together: list[_Placed]) -> bool:
    """Whether all circuits of these rounds could exist at the same time."""
    taken: dict[Resource, IntArray] = {}
    for placed in together:
        for cells in _cells(fabric, placed):
            if cells.resource in taken:
                cells.add_to(taken[cells.resource])
            else:
                taken[cells.resource] = cells.loads()
    return all((loads <= resource.capacity).all() for resource, loads in taken.items())


def _exceeded(fabric: Fabric, together: list[_Placed]) -> Iterator[Overlap]:
    """Compare the times of circuits on every resource and wavelength."""
    for resource in fabric.resources:
        parts = [
            (cells, _columns(placed, at, cells))
            for at, placed in enumerate(together)
            for cells in _cells(fabric, placed)
            if cells.resource == resource
        ]
        if not parts:
            continue
        cell, start, left, number, row, idle, light, amount = map(
            np.concatenate, zip(*(columns for _, columns in parts), strict=True)
        )
        if idle.any():
            start, left = _until_used(cell, light, idle, start, left, amount)
            stands = ~idle | (left > start)
            cell, start, left, number, row, amount = (
                column[stands] for column in (cell, start, left, number, row, amount)
            )
        over, missing = exceeding(cell, start, left, amount, resource.capacity)
        for at in np.unique(number[over]):
            mine = over[number[over] == at]
            worst = mine[int(np.argmax(missing[mine]))]
            placed = together[at]
            yield Overlap(
                placed.copy, placed.round.number, int(row[worst]), resource, int(cell[worst] // parts[0][0].depth),
                float(missing[worst]), len(np.unique(cell[mine])),
            )  # fmt: skip


def _columns(placed: _Placed, at: int, cells: Cells) -> tuple[npt.NDArray[Any], ...]:
    """Cell, start, end, round, circuit, idle, light and amount of every row of cells.

    Rows of equal light on a cell are one: of one sender on one path to one receiver, however its wavelengths are divided into
    circuits; where one signal may have many receivers, of one transmitter.
    """
    circuits, row = placed.round.circuits, cells.circuit
    whole = cells.depth == 1 and cells.amount is None
    light = _identities(circuits, paths=not cells.resource.splits, wavelengths=whole)[row]
    amount = np.ones(len(row), np.int64) if cells.amount is None else cells.amount
    times = placed.start_s[row], placed.left_s[row]
    return cells.cell, *times, np.full(len(row), at), row, ~placed.round.carries[row], light, amount


_FACTOR = np.uint64(int.from_bytes(os.urandom(8), "big") | 1)
"""Of `_identities`: odd, from the entropy of the operating system, so that no plan can know it."""


def _identities(circuits: Circuits, *, paths: bool = True, wavelengths: bool = True) -> npt.NDArray[np.uint64]:
    """A number for each circuit, the same for circuits of the same sender and port.

    Args:
        circuits: of a round.
        paths: whether receivers, paths and waveguides count too.
        wavelengths: whether wavelengths do.
    """
    found = np.full(len(circuits), circuits.wavelength_step if wavelengths else 1, np.uint64)
    columns = [circuits.src, circuits.port]
    columns += [circuits.dst] if paths else []
    columns += [circuits.wavelength_lo, circuits.wavelength_n] if wavelengths else []
    columns += [circuits.waveguide] if paths and circuits.waveguide is not None else []
    for column in columns:
        found = found * _FACTOR + column.astype(np.uint64)
    length = circuits.num_hops()
    for place in range(int(length.max(initial=0)) if paths else 0):
        longer = np.flatnonzero(length > place)
        hop = circuits.hops[circuits.hop_offsets[longer] + place].astype(np.uint64)
        found[longer] = found[longer] * _FACTOR + hop + np.uint64(1)
    return found


def _until_used(
    unit: IntArray,
    circuit: npt.NDArray[Any],
    idle: npt.NDArray[np.bool_],
    start: FloatArray,
    left: FloatArray,
    amount: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Starts and ends of occupations, where an idle circuit ends as another row of the same light begins on its unit [s].

    It begins once data of that light has left. Of idle circuits that begin together one is left, with the largest amount.

    Args:
        unit, circuit, idle, amount: of each occupation; `circuit` is equal for rows of one light.
        start, left: its times [s].
    """
    order, new = runs_of((unit, circuit), (start, ~idle, amount))
    until = largest_so_far(new, np.where(idle, -np.inf, left)[order])
    mine = np.flatnonzero(idle[order])
    begins, ends = start.copy(), left.copy()
    begins[order[mine]] = np.maximum(start[order], until)[mine]
    followed = mine[~np.append(new, True)[mine + 1]]
    ends[order[followed]] = np.minimum(left[order[followed]], start[order[followed + 1]])
    return begins, ends


def busy_between(start: FloatArray, end: FloatArray, begin_s: float, end_s: float) -> float:
    """Time between two times that some of these spans cover [s].

    Args:
        start, end: of the spans, float64 (n,) [s].
        begin_s, end_s: limits [s].
    """
    start, end = np.clip(start, begin_s, end_s), np.clip(end, begin_s, end_s)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    covered = np.maximum(end[1:] - np.maximum(start[1:], end[:-1]), 0.0).sum()
    return float(covered + (end[0] - start[0])) if len(start) else 0.0
