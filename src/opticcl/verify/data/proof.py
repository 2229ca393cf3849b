"""Which chunks have one history, so that one of them proves the others, and the history of each.

A phase consists of images under translations of digits. A digit that every phase translates moves chunks whose labels differ
in it onto each other, with all transfers that carry them: they end right or wrong together. So one chunk is played of

    each part of the message
    each set of units that no row distinguishes; of pieces that all rows pass on one a step, one for all
    each value of the digits of labels that some phase does not translate

The holders of a chunk must move with it, which is checked for every chunk. Where a label lacks digits that all phases
translate, ranks that differ in these alone hold images of one value: the chunk is played on one of each, and the contributions
to each result are found by following it backwards through the transfers that reach it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from opticcl.ir import IntArray, Op
from opticcl.ir.collective import Holders
from opticcl.ir.phases import ChunkEvents, MessagePart, Phase, PhaseRows, Steps

__all__ = ["Orbit", "contributors", "copied_from", "free_digits", "holders_move", "num_orbits", "orbits"]


@dataclass(frozen=True, eq=False)
class Orbit:
    """Chunks that end right or wrong together.

    Args:
        part: number of their part.
        unit, label: of the chunk that is played.
        chunk: its number among all.
    """

    part: int
    unit: int
    label: IntArray
    chunk: int


def moving_digits(steps: Steps, phases: range) -> tuple[bool, ...]:
    """Whether every one of the phases translates each digit; a digit of one value stays."""
    radices = steps.space.radices
    every = [steps.phases[at].moves or (False,) * len(radices) for at in phases]
    return tuple(radix > 1 and all(moves) for radix, *moves in zip(radices, *every, strict=True))


def num_orbits(steps: Steps, phases: range) -> int:
    """Chunks that are played to prove all, as `orbits` gives them [count]."""
    moving, total = moving_digits(steps, phases), 0
    for number, part in enumerate(steps.parts):
        still = prod(steps.space.radices[d] for d in part.digits if not moving[d])
        total += len(np.unique(units_in_classes(steps, phases, number))) * still
    return total


def orbits(steps: Steps, phases: range) -> Iterator[Orbit]:
    """Chunks with one history in the given phases, by the first of them."""
    moving, first_chunk, num_digits = moving_digits(steps, phases), 0, len(steps.space.radices)
    for number, part in enumerate(steps.parts):
        still = [d for d in part.digits if not moving[d]]
        for unit in np.unique(units_in_classes(steps, phases, number)).tolist():
            for values in product(*(range(steps.space.radices[d]) for d in still)):
                label = np.zeros(num_digits, np.int64)
                label[still] = values
                chunk = first_chunk + int(part.numbers(label[None, :], unit)[0])
                yield Orbit(number, unit, label, chunk)
        first_chunk += part.size


def units_in_classes(steps: Steps, phases: range, number: int) -> IntArray:
    """Of each unit of a part the first one with the same history, int64 (units,).

    Args:
        steps: of the schedule.
        phases: that are played.
        number: of the part.
    """
    part = steps.parts[number]
    every = np.arange(part.units)
    some = [
        (phase, phase.rows.take(phase.rows.part == number))
        for phase in (steps.phases[at] for at in phases)
        if isinstance(phase.rows, PhaseRows)
    ]
    if part.units == 1 or (some and all(_passes_one_a_step(phase, rows, part) for phase, rows in some)):
        return 0 * every
    seen = []
    for _, rows in some:
        if rows.unit_shift.any():
            return every
        box = np.unique(np.column_stack([rows.unit_lo, rows.unit_count, rows.unit_step]), axis=0)
        ahead = every - box[:, :1]
        seen.append((ahead >= 0) & (ahead % box[:, 2:] == 0) & (ahead // box[:, 2:] < box[:, 1:2]))
    if not seen:
        return 0 * every
    _, first, kind = np.unique(np.concatenate(seen), axis=1, return_index=True, return_inverse=True)
    classes: IntArray = first[kind.ravel()]
    return classes


def _passes_one_a_step(phase: Phase, rows: PhaseRows, part: MessagePart) -> bool:
    """Whether every row carries every unit, each a step after the one before: units are pieces that follow each other."""
    last = part.units - 1 - rows.unit_lo
    passes = (rows.unit_shift == 1) & (rows.unit_lo <= 0) & (last < phase.count)
    return bool(passes.all() and not rows.shift.any())


def free_digits(steps: Steps, phases: range, part: MessagePart) -> tuple[bool, ...]:
    """Digits that every phase translates and that labels of a part do not have: their translations leave a chunk as it is.

    Args:
        steps: of the schedule.
        phases: that are played.
        part: of the message.
    """
    return tuple(moved and d not in part.digits for d, moved in enumerate(moving_digits(steps, phases)))


def holders_move(steps: Steps, phases: range, holders: Holders) -> bool:
    """Whether the translations of the digits that all phases move map holders of every chunk onto holders of its image.

    Args:
        steps: of the schedule.
        phases: that are played.
        holders: of each chunk.
    """
    if holders.kind == "all":
        return True
    moving = np.array(moving_digits(steps, phases))
    if holders.kind == "root":
        return not moving.any()  # the root stays where it is
    assert holders.owners is not None
    space, first_chunk = steps.space, 0
    for number, part in enumerate(steps.parts):
        owners = holders.owners[first_chunk : first_chunk + part.size]
        first_chunk += part.size
        places = owners if space.places is None else space.places[owners]
        label, unit = part.labels(np.arange(part.size), len(space.radices))
        if not all(d in part.digits for d in np.flatnonzero(moving)):
            return False
        away = places.astype(np.int64)
        key = units_in_classes(steps, phases, number)[unit]
        for d, (radix, stride) in enumerate(zip(space.radices, space.strides, strict=True)):
            if moving[d]:
                digit = places // stride % radix
                away = away + ((digit - label[:, d]) % radix - digit) * stride
            else:  # 0 where labels have it not
                key = key * radix + label[:, d]
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        if (away != away[first][group.ravel()]).any():
            return False
    return True


def contributors(steps: Steps, orbit: Orbit, until: int, place: int, most: int) -> IntArray | None:
    """Places whose contributions a place holds in front of a step; None where there are more than `most`, each time counted.

    Args:
        steps: of the schedule.
        orbit: of the chunk.
        until: number of the step; all phases in front of it have rows.
        place: whose result it is.
        most: contributions of a right result [count].
    """
    at, times = np.array([place], np.int64), np.ones(1, np.int64)
    for number in reversed(range(len(steps.phases))):
        phase = steps.phases[number]
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        mine = rows.take(np.flatnonzero((rows.part == orbit.part) & rows.apart))
        gives_up = mine.take(np.flatnonzero(mine.op & Op.MOVE > 0))
        for k in reversed(range(min(phase.count, until - steps.starts[number]))):
            receiver, sender, op = _transfers_at(steps, phase, mine, orbit, at, k, mine.dst)
            kept = np.ones(len(at), bool)
            kept[receiver[op == Op.COPY]] = False
            if len(gives_up):
                kept[_transfers_at(steps, phase, gives_up, orbit, at, k, gives_up.src)[0]] = False
            joined = np.concatenate([times[kept], times[receiver]])
            at, place_of = np.unique(np.concatenate([at[kept], sender]), return_inverse=True)
            times = np.bincount(place_of.ravel(), joined).astype(np.int64)
            if int(times.sum()) > most:
                return None
    return at


def _transfers_at(
    steps: Steps, phase: Phase, rows: PhaseRows, orbit: Orbit, at: IntArray, k: int, ends: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Transfers of a step that carry a chunk and have an end at one of some places.

    Args:
        steps: of the schedule.
        phase: of the rows.
        rows: of the part of the chunk.
        orbit: of the chunk.
        at: places.
        k: step of the phase.
        ends: senders or receivers of the rows, int (rows, digits).
    Returns: index of the place of each, place of its sender, operation.
    """
    space, digits = steps.space, steps.parts[orbit.part].digits
    ahead = orbit.unit - rows.unit_lo - k * rows.unit_shift
    carries = (ahead >= 0) & (ahead % rows.unit_step == 0) & (ahead // rows.unit_step < rows.unit_count)
    there = np.broadcast_to(carries, (len(at), len(rows))).copy()
    src = np.zeros((len(at), len(rows)), np.int64)
    for d, (radix, stride) in enumerate(zip(space.radices, space.strides, strict=True)):
        digit = at[:, None] // stride % radix
        if phase.moves and phase.moves[d]:
            by = (digit - ends[:, d]) % radix
        else:
            by = np.zeros((1, len(rows)), np.int64)
            there &= digit == ends[:, d]
        src += (by + rows.src[:, d]) % radix * stride
        if d in digits:
            far = (orbit.label[d] - by - rows.lo[:, d] - k * rows.shift[:, d]) % radix
            there &= (far % rows.step[:, d] == 0) & (far // rows.step[:, d] < rows.count[:, d])
    place, row = np.nonzero(there)
    return place, src[place, row], rows.op[row]


def copied_from(events: ChunkEvents, num_places: int) -> tuple[int, IntArray]:
    """The step from which on a chunk is only copied, and the place whose value there each place has at the end, int64 (n,).

    Args:
        events: of the chunk.
        num_places: places [count].
    """
    others = np.flatnonzero(events.op != Op.COPY)
    until = int(events.step[others[-1]]) + 1 if len(others) else 0
    origin = np.arange(num_places)
    late = np.flatnonzero(events.step >= until)
    for some in np.split(late, np.flatnonzero(np.diff(events.step[late])) + 1):
        origin[events.dst[some]] = origin[events.src[some]]
    return until, origin
