"""Checks that jobs on one machine share no exclusive resource.

Jobs are not synchronised: any round of one may coincide with any round of another. The condition for every pairing is
therefore a sum of maxima: on each resource and wavelength, the largest number of circuits that each job ever has there in a
round, summed over the jobs, must not exceed the capacity. (The round of each job is arbitrary, so the largest sum over
all pairings is the sum of the largest.) With capacity one, no resource and wavelength is ever used by two jobs.

A signal that is split counts once within its job; two jobs never share a signal. A setting that is made once per job, such
as a port of ODDL's switches, belongs to the job that set it, on that wavelength, whatever the setting; one that holds for all
wavelengths, as of a waveguide that is switched as a whole, on all of them. Links that packets
share are not checked. A node belongs to one job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from opticcl.errors import FabricError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Resource, Verdict, Violation
from opticcl.verify.light.circuits import distinct_signals
from opticcl.verify.sweep import cells_of

__all__ = ["verify_together"]

RULE = "shared_between_jobs"


def verify_together(plans: Sequence[CircuitPlan], names: Sequence[str] | None = None) -> Verdict:
    """Check that jobs which run at the same time share no exclusive resource; `verify` checks each job by itself.

    Args:
        plans: plans on one machine, each compiled for the nodes of its job.
        names: names of the jobs, for messages; None: job 0, job 1, ...
    Returns: a verdict whose violations all have the rule shared_between_jobs, at most one for each kind of resource.
    Raises: FabricError: no plans, or of different machines.
    """
    if not plans:
        raise FabricError("verify together: give at least one plan")
    called = [f"job {i}" for i in range(len(plans))] if names is None else list(names)
    machine = plans[0].fabric
    for plan in plans[1:]:
        if plan.fabric.name != machine.name or dict(plan.fabric.parameters) != dict(machine.parameters):
            mine, its = ({"name": fabric.name, **fabric.parameters} for fabric in (machine, plan.fabric))
            key = next(key for key in mine if mine[key] != its.get(key))
            raise FabricError(f"verify together: {key}={mine[key]} and {key}={its[key]} are not the same machine")
    violations = list(_shared_nodes(plans, called))
    taken: dict[Resource, _Taken] = {}
    clashes: dict[Resource, Violation] = {}
    transfers = circuits = 0
    for number, plan in enumerate(plans):
        transfers += sum(len(plan.schedule.step(steps.start)) * len(steps) for steps in plan.schedule.step_classes())
        most, number_of_circuits = _most_at_once(plan)
        circuits += number_of_circuits
        for resource, counts in most.items():
            before = taken.setdefault(resource, _Taken(np.zeros_like(counts), np.zeros(counts.shape, np.int32)))
            if resource not in clashes and (clash := _clash(resource, before, counts, called, number, plan)):
                clashes[resource] = clash
            before.total[:] += counts
            before.owner[counts > 0] = number
    return Verdict((*violations, *clashes.values()), transfers, circuits, 0, True)


class _Taken(NamedTuple):
    """Of one kind of resource: circuits of all jobs so far on each (resource, wavelength), and the last job on it."""

    total: IntArray
    owner: IntArray


def _shared_nodes(plans: Sequence[CircuitPlan], names: Sequence[str]) -> Iterator[Violation]:
    owner = np.full(plans[0].fabric.num_machine_nodes, -1)
    for number, plan in enumerate(plans):
        nodes = plan.fabric.machine_nodes(np.arange(plan.fabric.num_nodes))
        taken = nodes[owner[nodes] >= 0]
        if len(taken):
            node = int(taken[0])
            found = f"{names[owner[node]]} and {names[number]}"
            where = f"node {plan.fabric.coordinates(node)}"
            yield Violation(RULE, 0, -1, where, "one job", found, len(taken))
        owner[nodes] = number


def _rounds(plan: CircuitPlan) -> Iterator[tuple[range, int, Circuits, dict[Resource, IntArray]]]:
    """Steps, number and circuits of every round, and how many (signals where light splits) take each cell, by kind."""
    fabric = plan.fabric
    shared = all(resource.shared for resource in fabric.resources)
    for steps in plan.schedule.step_classes():
        transfers = plan.schedule.step(steps.start)
        for number, circuits in enumerate(plan.rounds(steps.start)):
            now: dict[Resource, IntArray] = {}  # a kind may occur in several usages
            for usage in () if shared else fabric.usage(circuits):
                if not usage.resource.shared:
                    one = distinct_signals(usage, fabric, transfers, circuits) if usage.resource.splits else usage
                    taken = cells_of(one, circuits, fabric.num_wavelengths).loads()
                    now[usage.resource] = now.get(usage.resource, 0) + taken
            yield steps, number, circuits, now


def _most_at_once(plan: CircuitPlan) -> tuple[dict[Resource, IntArray], int]:
    """The most circuits that a job ever has on each (resource, wavelength) in one round, by kind; and all circuits [count]."""
    most: dict[Resource, IntArray] = {}
    total = 0
    for steps, _, circuits, now in _rounds(plan):
        total += len(steps) * len(circuits)
        for resource, counts in now.items():
            most[resource] = np.maximum(most[resource], counts) if resource in most else counts
    return most, total


def _clash(
    resource: Resource, before: _Taken, counts: IntArray, names: Sequence[str], number: int, plan: CircuitPlan
) -> Violation | None:
    """The violation of a further job and the round in which it first occurs, or None.

    Args:
        resource: kind of resource.
        before: what the jobs before it take.
        counts: most circuits of the further job, by (resource, wavelength).
        names: names of all jobs.
        number: index of the further job.
        plan: its plan.
    """
    both = (before.total > 0) & (counts > 0)
    over = np.flatnonzero(both & (resource.once_per_job | (before.total + counts > resource.capacity)))
    total, owner, mine = (one.reshape(resource.count, -1) for one in (before.total, before.owner, counts))
    whole_unit = not len(over) and resource.one_setting  # one setting on all wavelengths
    if whole_unit:
        over = np.flatnonzero((total > 0).any(axis=1) & (mine > 0).any(axis=1)) * mine.shape[1]
    if not len(over):
        return None
    unit, wavelength = divmod(int(over[0]), mine.shape[1])
    where = f"{resource.kind} {unit}"
    if whole_unit:
        other, wavelength = names[owner[unit].max()], int(np.flatnonzero(mine[unit])[0])
    else:
        other = names[owner[unit, wavelength]]
        where += f" wavelength {wavelength}" if resource.per_wavelength else ""
    expected, found = "the setting of one job", f"settings of {other} and {names[number]}"
    if not (whole_unit or resource.once_per_job):
        expected = f"at most {resource.capacity:g} circuit(s) of all jobs"
        found = f"{total[unit, wavelength]} up to {other} and {mine[unit, wavelength]} of {names[number]} in one round"
    cell = unit * mine.shape[1] + wavelength
    first = ((steps.start, at) for steps, at, _, now in _rounds(plan) if resource in now and now[resource][cell])
    return Violation(RULE, *next(first), where, expected, found, len(over))
