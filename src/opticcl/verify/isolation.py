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
from dataclasses import dataclass

import numpy as np

from opticcl.errors import FabricError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Resource, Transfers, Verdict, Violation
from opticcl.verify.light import distinct_signals
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
    tables: dict[Resource, _Table] = {}
    transfers = circuits = 0
    for number, plan in enumerate(plans):
        most = _most_at_once(plan)
        transfers, circuits = transfers + most.transfers, circuits + most.circuits
        for resource, counts in most.of_resource.items():
            table = tables.setdefault(resource, _Table(np.zeros_like(counts), np.zeros(counts.shape, np.int32)))
            if not table.clash:
                table.clash = _clash(resource, table, counts, number, plan, called)
            table.total += counts
            table.owner[counts > 0] = number
    violations += [table.clash for table in tables.values() if table.clash]
    return Verdict(tuple(violations), transfers, circuits, 0, True)


@dataclass(slots=True)
class _Table:
    """For one kind of resource: circuits of all jobs on each (resource, wavelength), the last job on it, the violation."""

    total: IntArray
    owner: IntArray
    clash: Violation | None = None


@dataclass(slots=True)
class _Most:
    """The most circuits that a job ever has on each (resource, wavelength) in one round, by kind of resource."""

    of_resource: dict[Resource, IntArray]
    transfers: int = 0
    circuits: int = 0


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


def _most_at_once(plan: CircuitPlan) -> _Most:
    most = _Most({})
    for steps in plan.schedule.step_classes():
        transfers = plan.schedule.step(steps.start)
        most.transfers += len(transfers) * len(steps)
        for circuits in plan.rounds(steps.start):
            most.circuits += len(circuits) * len(steps)
            for resource, counts in _at_once(plan, transfers, circuits).items():
                if resource in most.of_resource:
                    np.maximum(most.of_resource[resource], counts, out=most.of_resource[resource])
                else:
                    most.of_resource[resource] = counts
    return most


def _at_once(plan: CircuitPlan, transfers: Transfers, circuits: Circuits) -> dict[Resource, IntArray]:
    """Circuits (signals where light splits) of one round on each cell, by kind of resource that packets do not share."""
    fabric = plan.fabric
    now: dict[Resource, IntArray] = {}  # a kind may occur in several usages
    if all(resource.shared for resource in fabric.resources):
        return now
    for usage in fabric.usage(circuits):
        if not usage.resource.shared:
            one = distinct_signals(usage, fabric, transfers, circuits) if usage.resource.splits else usage
            taken = cells_of(one, circuits, fabric.num_wavelengths).loads()
            now[usage.resource] = now.get(usage.resource, 0) + taken
    return now


def _clash(
    resource: Resource, table: _Table, counts: IntArray, number: int, plan: CircuitPlan, names: Sequence[str]
) -> Violation | None:
    """The violation of a further job and the round in which it first occurs, or None.

    Args:
        resource: kind of resource.
        table: circuits of the jobs before it.
        counts: most circuits of the further job, by (resource, wavelength).
        number: index of the further job.
        plan: its plan.
        names: names of all jobs.
    """
    both = (table.total > 0) & (counts > 0)
    over = np.flatnonzero(both & (resource.once_per_job | (table.total + counts > resource.capacity)))
    if not len(over) and resource.one_setting:
        return _two_settings(resource, table, counts, number, plan, names)
    if not len(over):
        return None
    at = int(over[0])
    index, wavelength = divmod(at, plan.fabric.num_wavelengths if resource.per_wavelength else 1)
    where = f"{resource.kind} {index}" + (f" wavelength {wavelength}" if resource.per_wavelength else "")
    found = (
        f"{int(table.total[at])} up to {names[int(table.owner[at])]} and {int(counts[at])} of {names[number]} in one round"
        if not resource.once_per_job
        else f"settings of {names[int(table.owner[at])]} and {names[number]}"
    )
    expected = (
        "the setting of one job" if resource.once_per_job else f"at most {resource.capacity:g} circuit(s) of all jobs"
    )
    step, number_of_round = _first_use(plan, resource, at)
    return Violation(RULE, step, number_of_round, where, expected, found, len(over))


def _two_settings(
    resource: Resource, table: _Table, counts: IntArray, number: int, plan: CircuitPlan, names: Sequence[str]
) -> Violation | None:
    """The violation of a job that uses an instance which has one setting beside another job, on any wavelengths, or None.

    Args: resource, table, counts, number, plan, names: as in `_clash`.
    """
    theirs, mine = (of.reshape(resource.count, -1) for of in (table.total, counts))
    both = np.flatnonzero((theirs > 0).any(axis=1) & (mine > 0).any(axis=1))
    if not len(both):
        return None
    index, depth = int(both[0]), mine.shape[1]
    other = names[int(table.owner.reshape(resource.count, -1)[index].max())]
    step, number_of_round = _first_use(plan, resource, index * depth + int(np.flatnonzero(mine[index])[0]))
    found = f"settings of {other} and {names[number]}"
    return Violation(
        RULE, step, number_of_round, f"{resource.kind} {index}", "the setting of one job", found, len(both)
    )


def _first_use(plan: CircuitPlan, resource: Resource, at: int) -> tuple[int, int]:
    """Step and round in which a job first uses a (resource, wavelength)."""
    return next(
        (steps.start, number)
        for steps in plan.schedule.step_classes()
        for number, circuits in enumerate(plan.rounds(steps.start))
        for other, counts in _at_once(plan, plan.schedule.step(steps.start), circuits).items()
        if other == resource and counts[at]
    )
