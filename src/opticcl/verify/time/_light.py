"""Light over time: circuits stand long enough, and never exceed the capacity of a resource."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray, Resource, concatenate_circuits
from opticcl.verify.light.circuits import distinct_signals
from opticcl.verify.light.images import Loads
from opticcl.verify.sweep import cells_of, exceeding, largest_so_far, runs_of, slack
from opticcl.verify.time._rows import Round, StoredRound, StoredStep, TimeRows

__all__ = ["Overlap", "busy_between", "overlaps", "overlaps_of_images", "too_short"]

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
    many = [one.circuits.wavelength_n * _shares(fabric, one.circuits) for one in stored.rounds]
    wavelengths = stored.of_transfers(np.add, 0.0, many)
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
    shares = np.ones(len(circuits))
    weak = [condition for condition in fabric.conditions if condition.mode == "weak"]
    for use in fabric.parts_used(circuits) if weak else ():
        for each in weak:
            if each.kind == use.kind:
                hit = use.owners()[use.part == each.index]
                shares[hit] = np.minimum(shares[hit], each.value)
    return shares


class Overlap(NamedTuple):
    """Circuits that exceed the capacity of a resource together.

    Args:
        round: of the circuit that comes last.
        where: unit of the resource and that circuit, in words.
        missing_s: until one of them has left, it or another [s].
        times: units and wavelengths that are exceeded in that round.
    """

    round: Round
    where: str
    missing_s: float
    times: int


class _Occupied(NamedTuple):
    """Cells of a resource that circuits of some rounds take, a row for each cell and circuit.

    Args:
        cell: number of the cell, or of the first of its orbit, int64 (n,).
        circuit: among all unrolled ones, int64 (n,).
        amount: of the capacity, int64 (n,).
        whole: whether a circuit takes one cell of a unit, whatever its wavelengths.
    """

    cell: IntArray
    circuit: IntArray
    amount: IntArray
    whole: bool

    def take(self, rows: npt.NDArray[Any]) -> _Occupied:
        """The given rows (indices or mask)."""
        return _Occupied(self.cell[rows], self.circuit[rows], self.amount[rows], self.whole)


def overlaps(rows: TimeRows, rounds: Sequence[Round], left_s: FloatArray) -> Iterator[Overlap]:
    """Find circuits that overlap.

    Rounds that do not meet in time are judged apart. Only where all circuits of a cell exceed its capacity together are their
    times compared.

    Args:
        rows: of the programme.
        rounds: unrolled ones that are judged.
        left_s: when each unrolled circuit ceases to take its resources, float64 (circuits,) [s].
    """
    fits: set[tuple[tuple[int, int], ...]] = set()
    together: list[Round] = []
    until = -np.inf
    some = (one for one in rounds if len(one.stored.circuits))
    spans = ((float(rows.start_s[one.circuits].min()), float(left_s[one.circuits].max()), one) for one in some)
    for begin, end, one in (*sorted(spans, key=lambda span: span[:2]), (np.inf, np.inf, None)):
        if begin >= until - slack(until):
            key = tuple((at.step.step, at.stored.number) for at in together)
            if key not in fits:
                crowded = _crowded(rows, together, left_s)
                if not crowded:
                    fits.add(key)
                for resource, taken in crowded.items():
                    yield from _exceeded(rows, together, left_s, resource, taken)
            together, until = [], -np.inf
        if one is not None:
            together.append(one)
            until = max(until, end)


def overlaps_of_images(
    rows: TimeRows, rounds: Sequence[Round], left_s: FloatArray, orbits: Mapping[Resource, Loads]
) -> Iterator[Overlap]:
    """As `overlaps`, of circuits that define others: all images take of a unit what these take of its orbit.

    Args: rows, rounds, left_s: as of `overlaps`, of one step; orbits: of the units of each resource.
    """
    circuits, fabric = concatenate_circuits(one.stored.circuits for one in rounds), rows.plan.fabric
    for usage in fabric.usage(circuits):
        cells, load = cells_of(usage, circuits, fabric.num_wavelengths), orbits[usage.resource]
        orbit = load.orbits(cells.cell)
        circuit = rounds[0].circuits.start + cells.circuit
        taken = _Occupied(orbit, circuit, load.products // load.sizes(orbit), whole=False)
        yield from _exceeded(rows, rounds, left_s, usage.resource, taken)


def _crowded(rows: TimeRows, together: Sequence[Round], left_s: FloatArray) -> dict[Resource, _Occupied]:
    """Cells that could not take all circuits of some rounds at the same time; circuits of one signal and time are one.

    Args: rows, together, left_s: as of `overlaps`.
    """
    fabric = rows.plan.fabric
    taken_of: dict[Resource, list[_Occupied]] = {}
    for one in together:
        circuits, times = one.stored.circuits, (rows.start_s[one.circuits], left_s[one.circuits])
        for usage in fabric.usage(circuits):
            if usage.resource.shared or usage.resource.once_per_job:
                continue
            if usage.resource.splits:
                usage = distinct_signals(usage, fabric, one.step.transfers, circuits, times)
            cells = cells_of(usage, circuits, fabric.num_wavelengths)
            amount = np.ones(len(cells.cell), np.int64) if cells.amount is None else cells.amount
            whole = cells.depth == 1 and cells.amount is None
            taken = _Occupied(cells.cell, one.circuits.start + cells.circuit, amount, whole)
            taken_of.setdefault(usage.resource, []).append(taken)
    crowded = {}
    for resource, parts in taken_of.items():
        cell, circuit, amount = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:3])
        over = (np.bincount(cell, amount) > resource.capacity)[cell]
        if over.any():
            crowded[resource] = _Occupied(cell, circuit, amount, parts[0].whole).take(over)
    return crowded


def _exceeded(
    rows: TimeRows, together: Sequence[Round], left_s: FloatArray, resource: Resource, taken: _Occupied
) -> Iterator[Overlap]:
    """Compare the times of circuits on every cell.

    Args:
        rows, together, left_s: as of `overlaps`.
        resource: that they take.
        taken: its crowded cells.
    """
    start, left, idle = rows.start_s[taken.circuit], left_s[taken.circuit], ~rows.carries[taken.circuit]
    if idle.any():
        light = _light_of(together, taken, paths=not resource.splits)
        start, left = _until_used(taken.cell, light, idle, start, left, taken.amount)
        stands = ~idle | (left > start)
        taken, start, left = taken.take(stands), start[stands], left[stands]
    over, missing = exceeding(taken.cell, start, left, taken.amount, resource.capacity)
    number, depth = rows.round_of[taken.circuit], rows.plan.fabric.num_wavelengths if resource.per_wavelength else 1
    exceeded = set(number[over].tolist())
    for one in together:
        if one.number in exceeded:
            mine = over[number[over] == one.number]
            worst = mine[int(np.argmax(missing[mine]))]
            unit, circuit = int(taken.cell[worst] // depth), one.circuit_name(int(taken.circuit[worst]))
            where = f"{resource.kind} {unit}, {circuit}"
            yield Overlap(one, where, float(missing[worst]), len(np.unique(taken.cell[mine])))


def _light_of(together: Sequence[Round], taken: _Occupied, *, paths: bool) -> npt.NDArray[np.uint64]:
    """A number for each row, the same for rows of equal light on a cell, of which idle circuits are one with others.

    It is that of one sender on one path to one receiver, however its wavelengths are divided into circuits; where one signal
    may have many receivers, of one transmitter.

    Args:
        together: rounds.
        taken: cells that their circuits take.
        paths: whether receivers and paths count.
    """
    numbers = np.zeros(len(taken.circuit), np.uint64)
    for one in together:
        mine = (taken.circuit >= one.circuits.start) & (taken.circuit < one.circuits.stop)
        light = _identities(one.stored.circuits, paths=paths, wavelengths=taken.whole)
        numbers[mine] = light[taken.circuit[mine] - one.circuits.start]
    return numbers


_FACTOR = np.uint64(int.from_bytes(os.urandom(8), "big") | 1)
"""Of `_identities`: odd, from the entropy of the operating system, so that no plan can know it."""


def _identities(circuits: Circuits, *, paths: bool, wavelengths: bool) -> npt.NDArray[np.uint64]:
    """A number for each circuit, the same for circuits of the same sender and port.

    Args:
        circuits: of a round.
        paths: whether receivers, paths and waveguides count too.
        wavelengths: whether wavelengths do.
    """
    identities = np.full(len(circuits), circuits.wavelength_step if wavelengths else 1, np.uint64)
    columns = [circuits.src, circuits.port]
    columns += [circuits.dst] if paths else []
    columns += [circuits.wavelength_lo, circuits.wavelength_n] if wavelengths else []
    columns += [circuits.waveguide] if paths and circuits.waveguide is not None else []
    for column in columns:
        identities = identities * _FACTOR + column.astype(np.uint64)
    length = circuits.num_hops()
    for place in range(int(length.max(initial=0)) if paths else 0):
        longer = np.flatnonzero(length > place)
        hop = circuits.hops[circuits.hop_offsets[longer] + place].astype(np.uint64)
        identities[longer] = identities[longer] * _FACTOR + hop + np.uint64(1)
    return identities


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
