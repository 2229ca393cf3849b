"""Checks that every transfer has a circuit, that the hardware can make it, and that resources are within their capacity.

The law: in a round, the circuits that share an exclusive resource and a wavelength never exceed its capacity. The fabric
reports the resources that a circuit occupies; this file only counts, over every circuit of every round. Steps of one class
have the same circuits, so each class is counted once and its steps are compared with its first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from opticcl.ir import (
    CircuitPlan,
    Circuits,
    Fabric,
    IntArray,
    ProgressCallback,
    Resource,
    Schedule,
    Transfers,
    Usage,
    Violation,
    same_columns,
)
from opticcl.ir.circuit_plan import ClassRounds, same_circuits, same_light
from opticcl.ir.phases import PhaseRows
from opticcl.ir.recent import Last
from opticcl.ir.representatives import StepImages
from opticcl.ir.signals import signals_of
from opticcl.verify.light.circuit_rows import (
    RULE_OF_KIND,
    astray,
    circuit_name,
    out_of_range,
    part_faults,
    setting_of,
    transfers_without_circuit,
    violation_of,
)
from opticcl.verify.light.images import counts_by_orbits, light_violations, routed_violations
from opticcl.verify.sweep import cells_of, loads_of, runs_of

__all__ = ["CircuitsReport", "check_light", "check_slot", "distinct_signals"]

RULE_OF_SETTING = {"waveguide": "mzi_clash"}
"""Rule that circuits break which need one resource in two settings in a round."""


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

    def of_rounds(step: tuple[Transfers, tuple[Circuits, ...]]) -> list[Violation]:
        transfers, rounds = step
        return [
            replace(v, round=number)
            for number, circuits in enumerate(rounds)
            for v in _round_violations(plan.fabric, transfers, circuits, settings)
        ]

    of_step = Last(of_rounds, partial(same_light, plan.fabric))
    for steps in classes:
        if (some := _of_senders(plan, steps)) is not None:
            of_senders, count = some
            violations += of_senders
            total += len(steps) * count
            progress("count the light", steps.stop, plan.schedule.num_steps)
            continue
        first, rounds = plan.schedule.step(steps.start), plan.rounds(steps.start)
        violations += _steps_not_equal(plan, steps, first, rounds)
        total += len(steps) * sum(map(len, rounds))
        violations += transfers_without_circuit(plan.fabric, first, rounds, steps.start)
        wrong = [replace(v, step=steps.start) for v in of_step((first, rounds))]
        violations += wrong or _signals_of_others(plan, steps, rounds)
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
    routed = plan.routed(steps.start) if all(r.shared for r in plan.fabric.resources) else None
    if routed is not None and _of_one_phase(plan.schedule, steps):
        return routed_violations(plan.fabric, plan.schedule.steps, routed, steps.start)
    listed = plan.images(steps.start) is None
    if listed and not counts_by_orbits(plan.fabric):
        return None
    sets = plan.by_senders(steps.start)
    if listed and (not sets or not _of_one_phase(plan.schedule, steps)):
        return None
    step = StepImages(plan.schedule.steps, steps.start)
    if not sets:
        return [Violation("not_judged", steps.start, -1, f"{len(step):,} transfers", "circuits", "no rounds")], 0
    if not listed and len(steps) > 1:
        return [Violation("steps_unequal", steps.start, -1, f"class {steps}", "one step", "several", len(steps))], 0
    return light_violations(plan.fabric, step, sets, steps.start)


def check_slot(fabric: Fabric, transfers: Transfers, circuits: Circuits) -> Iterator[Violation]:
    """Violations of circuits that stand in one slot; every one carries a row of `transfers` between its nodes.

    Args:
        fabric: the machine; no resource of it may be set once a job.
        transfers: that the circuits carry; rows without a circuit are not checked.
        circuits: of the slot.
    """
    astray_ones = list(astray(fabric, transfers, circuits, 0, 0))
    yield from astray_ones
    if not astray_ones:
        yield from _round_violations(fabric, transfers, circuits, {})


def _classes_wrong(schedule: Schedule) -> Iterator[Violation]:
    """Classes that are not all steps, each once and in order."""
    due = 0
    for steps in (*schedule.step_classes(), range(schedule.num_steps, schedule.num_steps + 1)):
        if steps.start != due or steps.step != 1 or not len(steps):
            expected = f"every step of {schedule.num_steps} once and in order"
            yield Violation("steps_unequal", due, -1, "the classes of steps", expected, f"{steps} for step {due}", 1)
            return
        due = steps.stop


def _steps_not_equal(
    plan: CircuitPlan, steps: range, first: Transfers, rounds: tuple[Circuits, ...]
) -> Iterator[Violation]:
    """Steps that differ from the first of their class in their transfers, chunk numbers apart, or in their circuits.

    Args:
        plan: with the class.
        steps: the class.
        first, rounds: transfers and circuits of its first step.
    """
    defined = isinstance(plan.rounds, ClassRounds) and steps in plan.rounds.classes

    def same_transfers(i: int) -> bool:
        one_phase = _of_one_phase(plan.schedule, steps)
        return one_phase or same_columns(first, replace(plan.schedule.step(i), chunk_lo=first.chunk_lo))

    def same_rounds(i: int) -> bool:
        return defined or same_circuits(rounds, plan.rounds(i))

    for what, same in (("transfers", same_transfers), ("circuits", same_rounds)):
        for i in steps[1:]:
            if not same(i):
                due = f"the {what} of step {steps.start}"
                yield Violation("steps_unequal", i, -1, f"class {steps}", due, "others")
                return


def _signals_of_others(plan: CircuitPlan, steps: range, rounds: tuple[Circuits, ...]) -> list[Violation]:
    """Violations of a step whose circuits are more signals than those of the first of its class, whose chunks differ.

    Args:
        plan: with the class.
        steps: the class, whose first step is right.
        rounds: of each of its steps.
    """
    fabric, schedule = plan.fabric, plan.schedule
    if len(steps) == 1 or _of_one_phase(schedule, steps, one_shift=True):
        return []  # chunks that are equal in one step are equal in all
    split = [
        (number, circuits, usage)
        for number, circuits in enumerate(rounds)
        for usage in fabric.usage(circuits)
        if usage.resource.splits and _over_capacity(fabric, usage, circuits)
    ]
    for i in steps[1:] if split else ():
        transfers, violations = schedule.step(i), []
        for number, circuits, usage in split:
            signals = distinct_signals(usage, fabric, transfers, circuits)
            violations += [replace(v, step=i, round=number) for v in _over_capacity(fabric, signals, circuits)]
        if violations:
            return violations
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
    for usage in () if broken else fabric.usage(circuits):
        if usage.resource.shared:
            continue
        if usage.resource.once_per_job:
            yield from _conflicting_settings(fabric, usage, circuits, settings)
        else:
            overfull = _over_capacity(fabric, usage, circuits)
            if overfull and usage.resource.splits:  # counted again only where light may be split
                overfull = _over_capacity(fabric, distinct_signals(usage, fabric, transfers, circuits), circuits)
            yield from overfull
        if usage.resource.one_setting:
            yield from _different_settings(usage, circuits)


def _over_capacity(fabric: Fabric, usage: Usage, circuits: Circuits) -> list[Violation]:
    """Cells that circuits and stuck parts take more often than they may.

    Args:
        fabric: that the circuits are on.
        usage: rows of one resource.
        circuits: of the round.
    """
    resource = usage.resource
    stuck = len(fabric.occupied) > 0
    if usage.amount is None and not stuck and _combs_apart(usage, circuits):
        return []
    taken = loads_of(usage, circuits, fabric.num_wavelengths)
    used = taken > 0
    if stuck:
        at = next(k for k, other in enumerate(fabric.resources) if other is resource)
        fabric.occupied.add_to(at, len(taken) // resource.count, taken)
    over = np.flatnonzero((taken > resource.capacity) & used)
    if not len(over):
        return []
    cells = cells_of(usage, circuits, fabric.num_wavelengths)
    rows = cells.circuit[cells.cell == over[0]]
    names = ", ".join(circuit_name(circuits, int(r)) for r in rows[:4]) + (", ..." if len(rows) > 4 else "")
    found = f"{taken[over[0]]}: {names}"
    most = f"{resource.capacity:g} circuit(s)" if usage.amount is None else f"{resource.capacity:,.0f} shares"
    rule = RULE_OF_KIND[resource.kind]
    return [violation_of(rule, cells.name(int(over[0])), f"at most {most}", found, len(over))]


def _combs_apart(usage: Usage, circuits: Circuits) -> bool:
    """Whether no more circuits on one unit than it may carry have wavelengths with the same remainder by the distance between
    those of a circuit.

    Those of others have none in common with them, and no wavelength needs to be counted.

    Args:
        usage: rows of one resource.
        circuits: of the round.
    """
    if not usage.resource.per_wavelength or int(circuits.wavelength_n.max(initial=1)) == 1:
        return False
    step, owner = circuits.wavelength_step, usage.circuit
    comb = circuits.wavelength_lo % step if owner is None else circuits.wavelength_lo[owner] % step
    return bool((np.bincount(usage.index.astype(np.int64) * step + comb) <= usage.resource.capacity).all())


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
    order, new = runs_of((*(time_s[rows] for time_s in times[::-1]), signal[rows], usage.index))
    first = order[new]
    return replace(usage, index=usage.index[first], circuit=rows[first])


def _different_settings(usage: Usage, circuits: Circuits) -> Iterator[Violation]:
    """Resources that circuits of a round need in different settings, whatever their wavelengths.

    Args:
        usage: rows of the resource, with settings.
        circuits: of the round.
    """
    setting, owner = usage.setting, usage.circuit
    assert setting is not None
    order, new = runs_of((usage.index,))
    before, after = order[:-1], order[1:]
    other = np.flatnonzero(~new[1:] & (setting[before] != setting[after]))
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
    fabric: Fabric, usage: Usage, circuits: Circuits, settings: dict[Resource, IntArray]
) -> Iterator[Violation]:
    """Resources that are set once a job and would have to be set twice; `settings` holds the settings of earlier rounds.

    Args:
        fabric: that the circuits are on.
        usage: rows of the resource, with settings.
        circuits: of the round.
        settings: by resource, one entry for each cell, -1 where it is not set; updated.
    """
    assert usage.setting is not None
    cells = cells_of(usage, circuits, fabric.num_wavelengths)
    table = settings.setdefault(usage.resource, np.full(usage.resource.count * cells.depth, -1, np.int64))
    wanted = np.asarray(usage.setting, np.int64)[cells.row]
    unset = np.flatnonzero(table[cells.cell] < 0)[::-1]
    table[cells.cell[unset]] = wanted[unset]  # of rows that want one cell the first is written last
    standing = table[cells.cell]
    clashes = np.flatnonzero(wanted != standing)
    if len(clashes):
        at = clashes[0]
        where = (
            f"{usage.resource.kind} {usage.index[cells.row[at]]} for {circuit_name(circuits, int(cells.circuit[at]))}"
        )
        expected = f"its setting {standing[at]} for the whole job"
        yield violation_of(RULE_OF_KIND[usage.resource.kind], where, expected, f"{wanted[at]}", len(clashes))
