"""Checks that every transfer has a circuit, that the hardware can make it, and that resources are within their capacity.

The law: in a round, the circuits that share an exclusive resource and a wavelength never exceed its capacity. The fabric
reports the resources that a circuit occupies; this file only counts, over every circuit of every round. Steps of one class
have the same circuits, so each class is counted once and its steps are compared with its first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from opticcl.ir import (
    CircuitPlan,
    Circuits,
    Fabric,
    IntArray,
    Occupied,
    ProgressCallback,
    Resource,
    Schedule,
    Transfers,
    Usage,
    Violation,
    same_columns,
)
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.phases import PhaseRows
from opticcl.ir.representatives import StepImages
from opticcl.ir.signals import signals_of
from opticcl.kernels import njit, worth_compiling
from opticcl.verify.circuit_rows import (
    RULE_OF_KIND,
    astray,
    circuit_name,
    not_carried,
    out_of_range,
    part_faults,
    setting_of,
    transfers_without_circuit,
    violation_of,
)
from opticcl.verify.images import counts_by_orbits, light_violations

__all__ = ["CircuitsReport", "add_usage", "check_light", "check_slot"]

RULE_OF_SETTING = {"waveguide": "mzi_clash"}
"""Rule that circuits break which need one resource in two settings in a round."""

_SAME_IN_A_CLASS = ("src", "dst", "chunk_n", "chunk_step", "op", "parts")


@dataclass(frozen=True, slots=True)
class CircuitsReport:
    """Result of the check: violations, number of circuits checked [count], notes."""

    violations: tuple[Violation, ...]
    circuits: int
    notes: tuple[str, ...]


def check_light(plan: CircuitPlan, *, progress: ProgressCallback) -> CircuitsReport:
    """Check every circuit of every round of the plan; `progress` is called after every class of steps."""
    violations = list(_classes_wrong(plan.schedule))
    settings: dict[Resource, IntArray] = {}
    classes: Iterable[range] = plan.schedule.step_classes()
    if violations:
        classes = (range(i, i + 1) for i in range(plan.schedule.num_steps))
    total = 0
    for steps in classes:
        if (some := _of_senders(plan, steps)) is not None:
            found, count = some
            violations += found
            total += len(steps) * count
            progress("count the light", steps.stop, plan.schedule.num_steps)
            continue
        first = plan.schedule.step(steps.start)
        violations += _steps_not_equal(plan, steps, first)
        streamed = plan.stream(steps.start) if all(r.shared for r in plan.fabric.resources) else None
        if streamed is not None:
            found, count = _streamed_violations(plan.fabric, first, streamed, steps.start)
            violations += found
            total += len(steps) * count
            progress("count the light", steps.stop, plan.schedule.num_steps)
            continue
        rounds = plan.rounds(steps.start)
        total += len(steps) * sum(map(len, rounds))
        violations += transfers_without_circuit(plan.fabric, first, rounds, steps.start)
        known = len(violations)
        for number, circuits in enumerate(rounds):
            found = list(_round_violations(plan.fabric, first, circuits, settings))
            violations += [replace(v, step=steps.start, round=number) for v in found]
        if len(violations) == known:
            violations += _signals_of_others(plan, steps, rounds)
        progress("count the light", steps.stop, plan.schedule.num_steps)
    notes = [f"step {v.step}: {v.count} receivers used twice" for v in violations if v.rule == "receiver_shared"]
    return CircuitsReport(tuple(violations), total, tuple(notes))


def _of_senders(plan: CircuitPlan, steps: range) -> tuple[list[Violation], int] | None:
    """Violations of steps whose circuits follow from those of some senders, and the number of circuits of one; None where all
    circuits are listed.

    Args:
        plan: with the steps.
        steps: of one class.
    """
    listed = plan.images(steps.start) is None
    if listed and not counts_by_orbits(plan.fabric):
        return None
    rounds = plan.by_senders(steps.start)
    if listed and (rounds is None or not _of_one_phase(plan.schedule, steps)):
        return None
    step = StepImages(plan.schedule.steps, steps.start)
    if rounds is None:
        return [Violation("not_judged", steps.start, -1, f"{len(step):,} transfers", "circuits", "no rounds")], 0
    if not listed and len(steps) > 1:
        return [Violation("steps_unequal", steps.start, -1, f"class {steps}", "one step", "several", len(steps))], 0
    return light_violations(plan.fabric, step, rounds, steps.start)


def check_slot(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> Iterator[Violation]:
    """Violations of circuits that stand in one slot; every one carries a row of `transfers` between its nodes.

    Args:
        fabric: the machine; no resource of it may be set once a job.
        transfers: that the circuits carry; rows without a circuit are not checked.
        circuits: of the slot.
    """
    found = list(astray(fabric, transfers, circuits, 0, 0))
    yield from found
    if not found:
        yield from _round_violations(fabric, transfers, circuits, {})


def _streamed_violations(
    fabric: Fabric, transfers: Transfers, streamed: Iterator[Circuits], step: int
) -> tuple[list[Violation], int]:
    """Violations of the routes of a step of packets, of each rule those found first, and the number of routes.

    Args:
        fabric: whose links are shared, so that routes need no counting.
        transfers: of the step.
        streamed: its routes, as `CircuitPlan.stream` returns them.
        step: its number.
    """
    found: dict[str, Violation] = {}
    counted = 0

    def add(violations: Iterable[Violation]) -> None:
        for violation in violations:
            before = found.get(violation.rule)
            found[violation.rule] = before or replace(violation, step=step, round=0)
            if before:
                found[violation.rule] = replace(before, count=before.count + violation.count)

    carried = np.zeros(len(transfers), bool)
    for circuits in streamed:
        add(astray(fabric, transfers, circuits, step, 0))
        add(_round_violations(fabric, transfers, circuits, {}))
        known = circuits.transfer[(circuits.transfer >= 0) & (circuits.transfer < len(transfers))]
        carried[known] = True
        counted += len(circuits)
    add(not_carried(transfers, carried == 0, step))
    return list(found.values()), counted


def _classes_wrong(schedule: Schedule) -> Iterator[Violation]:
    """Classes that are not all steps, each once and in order."""
    if not schedule.classes:  # every step is a class
        return
    due = 0
    for steps in (*schedule.step_classes(), range(schedule.num_steps, schedule.num_steps + 1)):
        if steps.start != due or steps.step != 1 or not len(steps):
            expected = f"every step of {schedule.num_steps} once and in order"
            yield Violation("steps_unequal", due, -1, "the classes of steps", expected, f"{steps} for step {due}", 1)
            return
        due = steps.stop


def _steps_not_equal(plan: CircuitPlan, steps: range, first: Transfers) -> Iterator[Violation]:
    """Steps that differ from the first of their class in their transfers or in their circuits."""
    if len(steps) == 1:
        return
    if not _of_one_phase(plan.schedule, steps):
        for i in steps[1:]:
            other = plan.schedule.step(i)
            if not all(_equal(getattr(first, c), getattr(other, c)) for c in _SAME_IN_A_CLASS):
                yield Violation(
                    "steps_unequal", i, -1, f"class {steps}", f"the transfers of step {steps.start}", "others"
                )
                return
    if isinstance(plan.rounds, ClassRounds) and steps in plan.rounds.classes:
        return  # the same circuits by definition
    rounds = plan.rounds(steps.start)
    for i in steps[1:]:
        others = plan.rounds(i)
        if others is not rounds and (len(others) != len(rounds) or not all(map(same_columns, rounds, others))):
            yield Violation("steps_unequal", i, -1, f"class {steps}", f"the circuits of step {steps.start}", "others")
            return


def _signals_of_others(plan: CircuitPlan, steps: range, rounds: tuple[Circuits, ...]) -> list[Violation]:
    """Violations of a step whose circuits are more signals than those of the first of its class, whose chunks differ.

    Args:
        plan: with the class.
        steps: the class, whose first step is right.
        rounds: of each of its steps.
    """
    fabric, schedule = plan.fabric, plan.schedule
    if len(steps) == 1 or not any(resource.splits for resource in fabric.resources):
        return []
    if _of_one_phase(schedule, steps, one_shift=True):
        return []  # chunks that are equal in one step are equal in all
    split = [
        (number, circuits, usage)
        for number, circuits in enumerate(rounds)
        for usage in fabric.usage(circuits)
        if usage.resource.splits and _over_capacity_of(fabric, usage, circuits)
    ]
    for i in steps[1:] if split else ():
        transfers, found = schedule.step(i), []
        for number, circuits, usage in split:
            signals = distinct_signals(usage, fabric, transfers, circuits)
            found += [replace(v, step=i, round=number) for v in _over_capacity_of(fabric, signals, circuits)]
        if found:
            return found
    return []


def _of_one_phase(schedule: Schedule, steps: range, *, one_shift: bool = False) -> bool:
    """Whether steps of a class are equal by definition, but for the chunk numbers.

    Args:
        schedule: with the steps.
        steps: of one class.
        one_shift: whether chunks that are equal in one step must be equal in all.
    """
    number, _ = schedule.steps.phase_of(steps.start)
    rows = schedule.steps.phases[number].rows
    if not isinstance(rows, PhaseRows) or schedule.steps.phase_of(steps.stop - 1)[0] != number or rows.parts_step.any():
        return False
    shifts = np.column_stack([rows.shift, rows.unit_shift])
    return not one_shift or bool((shifts == shifts[:1]).all())


def _equal(one: IntArray | None, other: IntArray | None) -> bool:
    """Whether two columns are equal; usually they are the same object."""
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def _round_violations(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, settings: dict[Resource, IntArray]
) -> Iterator[Violation]:
    outside = out_of_range(fabric, circuits)
    if outside:  # the usage of circuits that do not exist is undefined
        yield outside
        return
    broken = False
    for fault in chain(fabric.faults(circuits), part_faults(fabric, circuits)):
        if len(fault.circuits):
            broken = True
            row = int(fault.circuits[0])
            yield violation_of(
                fault.rule, circuit_name(circuits, row), fault.expected, setting_of(circuits, row), len(fault.circuits)
            )
    if broken or all(resource.shared for resource in fabric.resources):
        return
    for usage in fabric.usage(circuits):
        if usage.resource.shared:
            continue
        if usage.resource.once_per_job:
            rule = RULE_OF_KIND[usage.resource.kind]
            yield from _conflicting_settings(rule, usage, circuits, settings, fabric.num_wavelengths)
        else:
            overfull = _over_capacity_of(fabric, usage, circuits)
            if overfull and usage.resource.splits:  # counted again only where light may be split
                overfull = _over_capacity_of(fabric, distinct_signals(usage, fabric, transfers, circuits), circuits)
            yield from overfull
        if usage.resource.one_setting:
            yield from _different_settings(usage, circuits)


def _taken(fabric: Fabric, resource: Resource) -> tuple[int, Occupied] | None:
    """Position of a resource, and the cells that stuck parts take; None where none do."""
    if not fabric.conditions or not len(fabric.occupied):
        return None
    return next(k for k, other in enumerate(fabric.resources) if other is resource), fabric.occupied


def _over_capacity_of(fabric: Fabric, usage: Usage, circuits: Circuits) -> list[Violation]:
    """As `_over_capacity`, with the cells of the fabric.

    Args:
        fabric: that the circuits are on.
        usage: rows of one resource.
        circuits: of the round.
    """
    rule, taken = RULE_OF_KIND[usage.resource.kind], _taken(fabric, usage.resource)
    return list(_over_capacity(rule, usage, circuits, fabric.num_wavelengths, taken))


def _over_capacity(
    rule: str, usage: Usage, circuits: Circuits, num_wavelengths: int, taken: tuple[int, Occupied] | None = None
) -> Iterator[Violation]:
    """Cells that circuits and stuck parts take more often than they may.

    Args:
        rule: name of the rule.
        usage: rows of one resource.
        circuits: of the round.
        num_wavelengths: of the fabric [count].
        taken: position of the resource and cells that are occupied before.
    """
    resource = usage.resource
    depth = num_wavelengths if resource.per_wavelength else 1
    owner = _owner(usage)
    if usage.amount is None and taken is None and _combs_apart(usage, circuits, depth):
        return
    counts: IntArray = np.zeros(resource.count * depth, np.int32 if usage.amount is None else np.int64)
    add_usage(usage, circuits, depth, counts)
    used = counts > 0
    if taken is not None:
        taken[1].add_to(taken[0], depth, counts)
    over = np.flatnonzero((counts > resource.capacity) & used)
    if len(over):
        index, wavelength = divmod(int(over[0]), depth)
        mine = np.flatnonzero(usage.index == index)
        rows = mine if owner is None else owner[mine]
        if resource.per_wavelength:
            step = circuits.wavelength_step
            behind = wavelength - circuits.wavelength_lo[rows]
            rows = rows[(behind >= 0) & (behind % step == 0) & (behind // step < circuits.wavelength_n[rows])]
        where = f"{resource.kind} {index}" + (f" wavelength {wavelength}" if resource.per_wavelength else "")
        names = ", ".join(circuit_name(circuits, int(r)) for r in rows[:4]) + (", ..." if len(rows) > 4 else "")
        found = f"{counts[over[0]]}: {names}"
        most = f"{resource.capacity:g} circuit(s)" if usage.amount is None else f"{resource.capacity:,.0f} shares"
        yield violation_of(rule, where, f"at most {most}", found, len(over))


def _combs_apart(usage: Usage, circuits: Circuits, depth: int) -> bool:
    """Whether no two circuits on one unit have wavelengths with the same remainder by the distance between those of a circuit.

    Then they have none in common, and no wavelength needs to be counted.

    Args:
        usage: rows of one resource.
        circuits: of the round.
        depth: wavelengths counted apart [count].
    """
    if depth == 1 or int(circuits.wavelength_n.max(initial=1)) == 1:
        return False
    step, owner = circuits.wavelength_step, _owner(usage)
    comb = circuits.wavelength_lo % step if owner is None else circuits.wavelength_lo[owner] % step
    used = np.bincount(usage.index.astype(np.int64) * step + comb, minlength=1)
    return bool(used.max() <= 1 <= usage.resource.capacity)


def distinct_signals(
    usage: Usage,
    fabric: Fabric,
    transfers: Transfers,
    circuits: Circuits,
    times: tuple[npt.NDArray[np.float64], ...] = (),
) -> Usage:
    """The usage with one row for each signal on each resource, however many circuits receive it.

    Args:
        usage: rows of a resource whose signals may be split.
        fabric: that the circuits are on.
        transfers: of the step.
        circuits: of the round.
        times: of each circuit, where one signal has one time [s].
    """
    rows = np.arange(len(circuits)) if usage.circuit is None else np.asarray(usage.circuit, np.int64)
    signal = signals_of(fabric, circuits, transfers).of_circuits()
    columns = (usage.index, signal[rows], *(time_s[rows] for time_s in times))
    order = np.lexsort(columns)
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    first = order[new]
    return replace(usage, index=usage.index[first], circuit=rows[first])


def _different_settings(usage: Usage, circuits: Circuits) -> Iterator[Violation]:
    """Resources that circuits of a round need in different settings, whatever their wavelengths.

    Args:
        usage: rows of the resource, with settings.
        circuits: of the round.
    """
    setting, owner = usage.setting, _owner(usage)
    assert setting is not None
    order = np.argsort(usage.index, kind="stable")
    before, after = order[:-1], order[1:]
    other = np.flatnonzero((usage.index[before] == usage.index[after]) & (setting[before] != setting[after]))
    if len(other):
        rows = [int(r if owner is None else owner[r]) for r in (before[other[0]], after[other[0]])]
        index = int(usage.index[before[other[0]]])
        one, two = (circuit_name(circuits, row) for row in rows)
        yield violation_of(
            RULE_OF_SETTING[usage.resource.kind],
            f"{usage.resource.kind} {index}",
            f"one setting of its switches, as {one} needs it",
            f"another for {two}",
            len(np.unique(usage.index[before[other]])),
        )


def _conflicting_settings(
    rule: str, usage: Usage, circuits: Circuits, settings: dict[Resource, IntArray], num_wavelengths: int
) -> Iterator[Violation]:
    """Resources that are set once a job and would have to be set twice; `settings` holds the settings of earlier rounds.

    Args:
        rule: name of the rule.
        usage: rows of the resource, with settings.
        circuits: of the round.
        settings: by resource, one entry for each (resource, wavelength); updated.
        num_wavelengths: of the fabric [count].
    """
    resource = usage.resource
    depth = num_wavelengths if resource.per_wavelength else 1
    if resource not in settings:
        settings[resource] = np.full(resource.count * depth, -1, np.int64)
    assert usage.setting is not None
    clash = _write_settings(
        usage.index,
        _owner(usage),
        usage.setting,
        circuits.wavelength_lo,
        circuits.wavelength_n,
        circuits.wavelength_step,
        depth,
        settings[resource],
    )
    if clash[0]:
        row = int(clash[1]) if usage.circuit is None else int(usage.circuit[clash[1]])
        where = f"{resource.kind} {usage.index[clash[1]]} for {circuit_name(circuits, row)}"
        yield violation_of(rule, where, f"its setting {clash[2]} for the whole job", f"{clash[3]}", int(clash[0]))


def _owner(usage: Usage) -> IntArray | None:
    return None if usage.circuit is None else np.asarray(usage.circuit, np.int64)


def add_usage(usage: Usage, circuits: Circuits, depth: int, counts: IntArray) -> None:
    """Add what circuits take of each (resource, wavelength) to `counts`.

    Args:
        usage: of one kind of resource.
        circuits: of the usage.
        depth: wavelengths counted apart [count].
        counts: (resource, wavelength) -> circuits, or what they take of the capacity; changed.
    """
    if usage.amount is not None:
        np.add.at(counts, usage.index, usage.amount)
        return
    lo, n, step = circuits.wavelength_lo, circuits.wavelength_n, circuits.wavelength_step
    count_usage(usage.index, _owner(usage), lo, n, step, depth, counts)


SPARSE = 256
"""Entries of a table for each row from which it is quicker to count in place than in a table of its own."""


def count_usage(
    index: IntArray, owner: IntArray | None, lo: IntArray, n: IntArray, step: int, depth: int, counts: IntArray
) -> None:
    """Add the circuits on each (resource, wavelength) to `counts`.

    Args:
        index: resource of each row.
        owner: circuit of each row, or None if row i is circuit i's.
        lo, n, step: wavelengths of the circuits.
        depth: wavelengths counted apart [count].
        counts: (resource, wavelength) -> circuits, changed.
    """
    if depth == 1 or not worth_compiling(len(index)):
        places = _places(index, owner, lo, n, step, depth)[0]
        if len(counts) > SPARSE * len(places):
            np.add.at(counts, places, 1)
        else:
            counts += np.bincount(places, minlength=len(counts)).astype(counts.dtype)
    else:
        _count_usage(*_columns(index, owner), lo, n, step, depth, counts)


def _places(
    index: IntArray, owner: IntArray | None, lo: IntArray, n: IntArray, step: int, depth: int
) -> tuple[IntArray, IntArray]:
    """Place in a table (resource, wavelength) of each row and wavelength, and the row.

    Args:
        index, owner, lo, n, step, depth: as of `count_usage`.
    """
    rows = np.arange(len(index))
    if depth == 1:
        return np.asarray(index, np.int64), rows
    circuit = rows if owner is None else owner
    many = np.asarray(n, np.int64)[circuit]
    row = np.repeat(rows, many)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    return np.asarray(index, np.int64)[row] * depth + np.asarray(lo, np.int64)[circuit[row]] + nth * step, row


def _columns(index: IntArray, owner: IntArray | None) -> tuple[IntArray, IntArray]:
    """Resource and circuit of each row as int64, for which the kernels are compiled once."""
    return np.asarray(index, np.int64), np.arange(len(index)) if owner is None else owner


@njit(writes=("counts",))
def _count_usage(index, owner, lo, n, step, depth, counts):  # type: ignore[no-untyped-def]
    for i in range(len(index)):
        for w in range(n[owner[i]]):
            counts[index[i] * depth + lo[owner[i]] + w * step] += 1


def _write_settings(
    index: IntArray,
    owner: IntArray | None,
    setting: IntArray,
    lo: IntArray,
    n: IntArray,
    step: int,
    depth: int,
    table: IntArray,
) -> IntArray:
    """Write each setting into the table; returns (count, usage row, previous setting, new setting) of the first conflict.

    Args:
        index, owner, lo, n, step, depth: as of `count_usage`.
        setting: of each row.
        table: (resource, wavelength) -> setting, or -1; changed.
    """
    if worth_compiling(len(index)):
        return np.asarray(_write_all(*_columns(index, owner), np.asarray(setting, np.int64), lo, n, step, depth, table))
    place, row = _places(index, owner, lo, n, step, depth)
    places, first, which = np.unique(place, return_index=True, return_inverse=True)
    wanted = np.asarray(setting, np.int64)[row]
    table[places] = np.where(table[places] < 0, wanted[first], table[places])
    standing = table[places][which]
    clashes = np.flatnonzero(wanted != standing)
    if not len(clashes):
        return np.zeros(4, np.int64)
    at = clashes[0]
    return np.array([len(clashes), row[at], standing[at], wanted[at]])


@njit(writes=("table",))
def _write_all(index, owner, setting, lo, n, step, depth, table):  # type: ignore[no-untyped-def]
    clash = np.zeros(4, np.int64)
    for i in range(len(index)):
        for w in range(n[owner[i]] if depth > 1 else 1):
            at = index[i] * depth + (lo[owner[i]] + w * step if depth > 1 else 0)
            if table[at] < 0:
                table[at] = setting[i]
            elif table[at] != setting[i]:
                clash[0] += 1
                if clash[0] == 1:
                    clash[1], clash[2], clash[3] = i, table[at], setting[i]
    return clash
