"""What a plan and a programme list, and digests of it.

A digest is of content alone: numbers of chunks, rows, classes of steps and versions of files do not enter it, so that another
representation of the same plan has the same digest. `listed_steps` and `listed_events` are all that knows how the library holds
plans and programmes; a change of that changes these two functions and no record.
"""

import hashlib
from collections.abc import Iterator
from math import lcm
from typing import NamedTuple

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Transfers
from opticcl.ir.programme import Programme

IDLE = -1
"""The operation of a circuit that carries nothing."""


class Round(NamedTuple):
    """What one round of a step lists, as integer rows in any order.

    sends: sender, receiver, operation, and the share of the message as a fraction in lowest terms, (n, 5); a row each.
    circuits: sender, receiver, operation, port, first wavelength, wavelengths, distance of wavelengths, waveguide, hops of the
    path, and after the last hop -1, (n, 8 + hops of the longest path); each once.
    """

    sends: np.ndarray
    circuits: np.ndarray


def listed_steps(plan: CircuitPlan) -> Iterator[tuple[int, list[Round]]]:
    """Runs of equal steps of a plan, in order: their number and the rounds of each."""
    for steps in plan.schedule.step_classes():
        transfers = plan.schedule.step(steps.start)
        yield len(steps), listed_rounds(transfers, plan.rounds(steps.start), plan.schedule.collective.num_chunks)


def listed_rounds(transfers: Transfers, rounds: tuple[Circuits, ...], num_chunks: int) -> list[Round]:
    """The rounds of a step; transfers that have no circuit come last, as a round without circuits.

    Args:
        transfers: of the step.
        rounds: circuits of each round.
        num_chunks: equal parts of the message.
    """
    width = np.zeros(len(transfers), np.int64)  # wavelengths of all circuits of a transfer, which share its bytes
    for circuits in rounds:
        carries = circuits.transfer >= 0
        np.add.at(width, circuits.transfer[carries], circuits.wavelength_n[carries])
    common = lcm(*map(int, np.unique(width[width > 0])))
    amount = transfers.size_chunks() * common
    found = []
    for circuits in rounds:
        row, carries = circuits.transfer, circuits.transfer >= 0
        op = np.where(carries, transfers.op[row] if len(transfers) else 0, IDLE)
        part = np.where(carries, amount[row] // np.maximum(width[row], 1) * circuits.wavelength_n, 0)
        ends = np.column_stack([circuits.src, circuits.dst, op]).astype(np.int64)
        found.append(
            Round(shares(ends, part, num_chunks * common), distinct(np.hstack([ends, listed_light(circuits)])))
        )
    left = width == 0
    if left.any():
        ends = np.column_stack([transfers.src, transfers.dst, transfers.op]).astype(np.int64)[left]
        found.append(Round(shares(ends, amount[left], num_chunks * common), np.zeros((0, 8), np.int64)))
    return found


def listed_light(circuits: Circuits) -> np.ndarray:
    """Port, wavelengths, waveguide and path of circuits, int64 (n, 5 + hops of the longest path)."""
    hops, n = circuits.num_hops(), len(circuits)
    path = np.full((n, int(hops.max(initial=0))), -1, np.int64)
    place = np.arange(len(circuits.hops)) - np.repeat(circuits.hop_offsets[:-1], hops)
    path[np.repeat(np.arange(n), hops), place] = circuits.hops
    guide = np.full(n, -1) if circuits.waveguide is None else circuits.waveguide
    apart = np.where(circuits.wavelength_n > 1, circuits.wavelength_step, 1)
    return np.column_stack([circuits.port, circuits.wavelength_lo, circuits.wavelength_n, apart, guide, path])


def shares(ends: np.ndarray, part: np.ndarray, whole: int) -> np.ndarray:
    """Each end once, with the sum of its parts of the message as a fraction in lowest terms.

    Args:
        ends: sender, receiver, operation, int64 (n, 3).
        part: of each, int64 (n,).
        whole: the message in the same unit.
    """
    if not len(ends):
        return np.zeros((0, 5), np.int64)
    key, number = np.unique(numbered(ends), return_inverse=True)
    first = np.zeros(len(key), np.int64)
    first[number] = np.arange(len(ends))
    total = np.zeros(len(key), np.int64)
    np.add.at(total, number, part)
    divisor = np.gcd(total, whole)
    return np.column_stack([ends[first], total // divisor, whole // divisor])


def numbered(rows: np.ndarray) -> np.ndarray:
    """Rows as one value each, equal for equal rows."""
    return np.ascontiguousarray(rows).view([("", np.int64)] * rows.shape[1]).ravel()


def distinct(rows: np.ndarray) -> np.ndarray:
    """Every row once, sorted."""
    if not len(rows):
        return rows
    rows = rows[np.lexsort(rows.T[::-1])]
    return rows[np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)])]


def digest_of_plan(plan: CircuitPlan) -> str:
    """Of all that the steps and rounds of a plan list, 8 digits."""
    whole = hashlib.sha256()
    for count, rounds in listed_steps(plan):
        step = hashlib.sha256()
        for one in rounds:
            for table in (distinct(one.sends), distinct(one.circuits)):
                step.update(repr(table.shape).encode())
                step.update(table.astype("<i8").tobytes())
        for _ in range(count):  # whether equal steps are one run must not matter
            whole.update(step.digest())
    return whole.hexdigest()[:8]


class Events(NamedTuple):
    """Events of one kind of a programme.

    what: what happens, as integer rows, int64 (n, k).
    when: times of each, float64 (n, m) [s].
    """

    what: np.ndarray
    when: np.ndarray


def listed_events(plan: CircuitPlan, programme: Programme) -> dict[str, Events]:
    """Events of a programme by kind, each step by itself: circuits, data, control, and devices by their names.

    Several rows of one circuit, or of one message (step, sender, receiver, operation), are one event from the first begin to
    the last end. Changes of one device to one setting are numbered in the order of time.
    """
    found = {}
    runs = [
        (int(f), int(n), float(p)) for f, n, p in zip(*_columns(programme.runs, "first repeats period_s"), strict=True)
    ]
    table = programme.circuits
    steps = {first: plan.schedule.step(first) for first, _, _ in runs}
    light, data = [], []
    for first, repeats, period_s in runs:
        transfers = steps[first]
        for number, circuits in enumerate(plan.rounds(first)):
            rows = np.flatnonzero((table.step == first) & (table.round == number))
            row = table.row[rows]
            op = np.where(circuits.transfer < 0, IDLE, transfers.op[circuits.transfer] if len(transfers) else 0)
            what = np.column_stack([circuits.src, circuits.dst, op, listed_light(circuits)])[row]
            when = np.column_stack([table.start_s[rows], np.nan_to_num(table.end_s[rows])])
            what = np.column_stack([np.full(len(row), number), table.slots[rows], what])
            light += _repeated(first, repeats, period_s, what, when)
        rows = np.flatnonzero(programme.data.step == first)
        row = programme.data.transfer[rows]
        what = np.column_stack([transfers.src[row], transfers.dst[row], transfers.op[row]])
        when = np.column_stack([programme.data.arrived_s[rows], programme.data.summed_s[rows]])
        data += _repeated(first, repeats, period_s, what, when)
    period_of = {first: (repeats, period_s) for first, repeats, period_s in runs}
    control = []
    for step, number, *times in zip(*_columns(programme.control, "step round begin_s end_s"), strict=True):
        control += _repeated(int(step), *period_of[int(step)], np.array([[number]]), np.array([times]))
    found = {"circuits": _gathered(light), "data": _gathered(data), "control": _gathered(control)}
    devices = programme.devices
    for kind, device in enumerate(plan.fabric.devices):
        changes = []
        rows = np.flatnonzero(devices.kind == kind)
        for step, *setting, begin_s, done_s in zip(
            *(column[rows] for column in _columns(devices, "step device setting begin_s done_s")), strict=True
        ):
            repeats, period_s = period_of[int(step)] if step >= 0 else (1, 0.0)
            for k in range(repeats):
                changes.append((*map(int, setting), begin_s + k * period_s, done_s + k * period_s))
        if changes:
            found[f"device {device.kind}"] = _in_turn(sorted(changes))
    return found


def _columns(table, names):
    """Columns of a table by their names."""
    return [getattr(table, name) for name in names.split()]


def _repeated(first, repeats, period_s, what, when):
    """Events of the first step of a run as those of all its steps: pairs of rows and times.

    Args:
        first: step of the run.
        repeats: steps of the run.
        period_s: from one step to the next.
        what: of the first step, without its number.
        when: times of the first step.
    """
    return [(np.insert(what, 0, first + k, axis=1), when + k * period_s) for k in range(repeats)]


def _gathered(parts):
    """Events of one kind, equal ones joined: from the first begin to the last end."""
    parts = [(what, when) for what, when in parts if len(what)]
    if not parts:
        return Events(np.zeros((0, 1), np.int64), np.zeros((0, 1)))
    width = max(what.shape[1] for what, _ in parts)
    what = np.vstack([np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=-1) for one, _ in parts])
    what = what.astype(np.int64)
    when = np.vstack([when for _, when in parts])
    _, first, number = np.unique(numbered(what), return_index=True, return_inverse=True)
    begin, end = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(begin, number, when[:, 0])
    np.maximum.at(end, number, when[:, -1])
    return Events(what[first], np.column_stack([begin, end]))


def _in_turn(changes):
    """Changes (device, setting, begin, end), sorted, as events numbered for each device and setting."""
    what = np.array([change[:2] for change in changes], np.int64)
    same = np.concatenate([[False], (what[1:] == what[:-1]).all(axis=1)])
    turn = np.arange(len(what)) - np.maximum.accumulate(np.where(same, 0, np.arange(len(what))))
    return Events(np.column_stack([what, turn]), np.array([change[2:] for change in changes]))


def digest_of_programme(plan: CircuitPlan, programme: Programme) -> tuple[str, float]:
    """A digest of what happens in a programme, and a sum that stands for all its times [s].

    The sum weighs each time by a number from 1 to 2 that follows from the event, so that neither the order of rows nor a
    difference in the last digits of a time matters, and an exchange of two times does.
    """
    whole, total_s = hashlib.sha256(), 0.0
    for kind, events in sorted(listed_events(plan, programme).items()):
        keys = distinct(events.what)
        whole.update(f"{kind} {keys.shape}".encode())
        whole.update(keys.astype("<i8").tobytes())
        drawn = (
            hashlib.blake2b(kind.encode() + row.tobytes(), digest_size=4).digest() for row in events.what.astype("<i8")
        )
        weight = 1 + np.array([int.from_bytes(one, "little") for one in drawn]) / 2**32
        total_s += float((weight @ events.when).sum())
    return whole.hexdigest()[:8], total_s
