"""Light over time: circuits stand long enough, and never exceed the capacity of a resource."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray, Resource, Usage
from opticcl.kernels import njit
from opticcl.verify._time_rows import Copy, StoredRound, StoredStep, TimeRows, slack
from opticcl.verify.light import add_usage, distinct_signals

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
    exceeds a capacity are circuits that several rounds have counted once, and where that exceeds a capacity too, the
    times of the circuits compared.

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
            if not known[key] and not _fits_once_each(fabric, together):
                yield from _sweep(fabric, together)
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


def _counted(fabric: Fabric, circuits: Circuits) -> Iterator[Usage]:
    """Exclusive usage that changes over time."""
    for usage in fabric.usage(circuits):
        if not (usage.resource.shared or usage.resource.once_per_job):
            yield usage


def _fits_at_once(fabric: Fabric, together: list[_Placed]) -> bool:
    """Whether all circuits of these rounds could exist at the same time."""
    return _within_capacity(
        fabric,
        (
            (placed.round.circuits, _signals(fabric, placed, usage) if usage.resource.splits else usage)
            for placed in together
            for usage in _counted(fabric, placed.round.circuits)
        ),
    )


def _within_capacity(fabric: Fabric, taken: Iterable[tuple[Circuits, Usage]]) -> bool:
    """Whether all capacities suffice for what circuits use, each usage with its circuits."""
    counts: dict[Resource, IntArray] = {}
    for circuits, usage in taken:
        resource = usage.resource
        depth = fabric.num_wavelengths if resource.per_wavelength else 1
        if resource not in counts:
            counts[resource] = np.zeros(resource.count * depth, np.int64)
        add_usage(usage, circuits, depth, counts[resource])
    return all((count <= resource.capacity).all() for resource, count in counts.items())


def _fits_once_each(fabric: Fabric, together: list[_Placed]) -> bool:
    """Whether all circuits of these rounds could exist at the same time, each counted once; none carries data twice at once.

    A circuit that stands while another round uses it is one circuit at any time. Circuits of one signal are counted one by one,
    which is never less than they take.
    """
    identity = np.concatenate([_identities(placed.round.circuits) for placed in together])
    carries = np.concatenate([placed.round.carries for placed in together])
    start = np.concatenate([placed.start_s for placed in together])[carries]
    left = np.concatenate([placed.left_s for placed in together])[carries]
    order = np.lexsort((start, identity[carries]))
    same = np.diff(identity[carries][order]) == 0
    if (same & (start[order[1:]] < (left - slack(left))[order[:-1]])).any():
        return False
    rows = np.sort(np.unique(identity, return_index=True)[1])
    ends = np.cumsum([len(placed.start_s) for placed in together])
    of_round = np.split(rows, np.searchsorted(rows, ends[:-1]))
    chosen_circuits = [
        placed.round.circuits.take(mine - (end - len(placed.start_s)))
        for placed, mine, end in zip(together, of_round, ends, strict=True)
    ]
    return _within_capacity(
        fabric, ((circuits, usage) for circuits in chosen_circuits for usage in _counted(fabric, circuits))
    )


def _signals(fabric: Fabric, placed: _Placed, usage: Usage) -> Usage:
    """The usage with one row for each signal; circuits of one signal start and end together."""
    times = (placed.start_s, placed.left_s)
    return distinct_signals(usage, fabric, placed.copy.stored.transfers, placed.round.circuits, times)


def _sweep(fabric: Fabric, together: list[_Placed]) -> Iterator[Overlap]:
    """Compare the times of circuits on every resource and wavelength."""
    for resource in fabric.resources:
        depth = fabric.num_wavelengths if resource.per_wavelength else 1
        parts = []
        for at, placed in enumerate(together):
            for usage in _counted(fabric, placed.round.circuits):
                if usage.resource == resource:
                    parts.append(_occupied(fabric, placed, at, usage, depth))
        if not parts:
            continue
        columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        unit, start, left, number, row, idle, circuit, amount = columns
        if idle.any():
            start, left = _until_used(unit, circuit, idle, start, left, amount)
            stands = ~idle | (left > start)
            unit, start, left, number, row, amount = (
                column[stands] for column in (unit, start, left, number, row, amount)
            )
        over, missing = _exceeding(unit, start, left, amount, resource.capacity)
        for at in np.unique(number[over]):
            mine = over[number[over] == at]
            worst = mine[int(np.argmax(missing[mine]))]
            placed = together[at]
            yield Overlap(
                placed.copy, placed.round.number, int(row[worst]), resource, int(unit[worst] // depth),
                float(missing[worst]), len(np.unique(unit[mine])),
            )  # fmt: skip


def _occupied(fabric: Fabric, placed: _Placed, at: int, usage: Usage, depth: int) -> tuple[npt.NDArray[Any], ...]:
    """Unit (instance and wavelength), start, end, round, row, idle, identity and amount of every occupation of a resource.

    Rows of equal identity on a unit are one light: of one sender on one path to one receiver, however its wavelengths are
    divided into circuits; where one signal may have many receivers, of one transmitter.
    """
    circuits, resource = placed.round.circuits, usage.resource
    if resource.splits:
        usage = _signals(fabric, placed, usage)
    owner = np.arange(len(circuits)) if usage.circuit is None else np.asarray(usage.circuit, np.int64)
    index = np.asarray(usage.index, np.int64)
    same = _identities(circuits, paths=not resource.splits, wavelengths=depth == 1 and usage.amount is None)
    if depth > 1 and usage.amount is None:
        n = circuits.wavelength_n[owner].astype(np.int64)
        within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        owner = np.repeat(owner, n)
        index = np.repeat(index, n) * depth + circuits.wavelength_lo[owner] + within * circuits.wavelength_step
    idle = ~placed.round.carries[owner]
    amount = np.ones(len(owner), np.int64) if usage.amount is None else usage.amount
    times = placed.start_s[owner], placed.left_s[owner]
    return index, *times, np.full(len(owner), at), owner, idle, same[owner], amount


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
    order = np.lexsort((amount, ~idle, start, circuit, unit))
    new = np.ones(len(order) + 1, bool)
    new[1:-1] = (unit[order[1:]] != unit[order[:-1]]) | (circuit[order[1:]] != circuit[order[:-1]])
    begins, ends = _spans_of_idle(order, new, idle, start, left)
    return begins, ends


@njit(writes=())
def _spans_of_idle(order, new, idle, start, left):  # type: ignore[no-untyped-def]
    """Starts and ends of all rows; see `_until_used`.

    Args:
        order: rows by light on a unit, then by start, int64 (n,).
        new: whether each in that order is the first of its light on the unit, and True behind the last, bool (n + 1,).
        idle: of each row, bool (n,).
        start, left: of each row, float64 (n,).
    """
    begins, ends = start.copy(), left.copy()
    until = -np.inf
    for at in range(len(order)):
        row = order[at]
        if new[at]:
            until = -np.inf
        if not idle[row]:
            until = max(until, left[row])
            continue
        begins[row] = max(start[row], until)
        if not new[at + 1]:
            ends[row] = min(left[row], start[order[at + 1]])
    return begins, ends


def _exceeding(
    unit: IntArray, start: FloatArray, left: FloatArray, amount: IntArray, capacity: float
) -> tuple[IntArray, FloatArray]:
    """Occupations that begin where the capacity is used up, and for all occupations the time until one of them ends [s].

    Args:
        unit: of each occupation.
        start, left: its times [s].
        amount: of the capacity that it takes.
        capacity: of every unit.
    """
    n = len(unit)
    end = np.maximum(left - slack(left), start)
    time = np.concatenate([start, end])
    change = np.concatenate([amount, -amount])
    units = np.concatenate([unit, unit])
    order = np.lexsort((change, time, units))  # at one time ends come first
    count = np.cumsum(change[order].astype(np.int64))  # every unit ends with as many as it began with
    over = (count > capacity) & (change[order] > 0)
    rows = order[over]
    missing = np.zeros(n)
    ends = np.flatnonzero(change[order] < 0)
    following = ends[np.searchsorted(ends, np.flatnonzero(over))]  # there is one: every unit ends with none
    missing[rows] = np.maximum(time[order[following]] - start[rows], 2e-15)
    return rows, missing


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
