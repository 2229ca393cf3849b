"""Jobs on random nodes of one machine: their circuits go around each other, or the later one is refused."""

import dataclasses

import numpy as np
import pytest

import opticcl
from opticcl.circuits import lower
from opticcl.circuits.beside import lower_beside, taken_by
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import Occupied
from opticcl.schedule import generate
from opticcl.verify.time.isolation import verify_together


def three_jobs(machine, seed, **given):
    """Plans of 8, 6 and 8 random nodes: each by itself, and each beside those before it, without the refused ones."""
    made = fabric(machine)
    nodes = np.random.default_rng(seed).permutation(made.num_nodes)
    alone, beside, refused = [], [], 0
    for part in (nodes[:8], nodes[8:14], nodes[14:22]):
        where = job(made, np.sort(part))
        alone.append(opticcl.compile(where, "all_reduce", "1MB", **given))
        try:
            beside.append(opticcl.compile(where, "all_reduce", "1MB", beside=beside, **given))
        except UnsupportedError:
            refused += 1
    return alone, beside, refused


@pytest.mark.parametrize(
    ("machine", "algorithm", "most_refused"),
    [
        ("terarack:nodes=32", "ring", 0),
        ("ramp:groups=4,racks=2,wavelengths=8", "ring", 3),
        ("ramp:groups=4,racks=2,wavelengths=8,subnet=route_switch", "lumorph", 4),
        ("lightpath:shape=6x6,waveguides=2", "lumorph", 2),
        ("lightpath:shape=6x6,waveguides=2,switch_unit=waveguide", "ring", 4),
    ],
)
def test_jobs_on_random_nodes_do_not_collide(machine, algorithm, most_refused):
    """By themselves some collide; beside each other none, and every plan is right."""
    collide = refused_jobs = 0
    for seed in range(2):
        alone, beside, refused = three_jobs(machine, seed, algorithm=algorithm)
        collide += not verify_together([plan.circuits for plan in alone]).ok
        refused_jobs += refused
        for plan in beside:
            plan.verify().raise_if_bad()
        verify_together([plan.circuits for plan in beside]).raise_if_bad()
    assert collide > 0
    assert refused_jobs <= most_refused


def test_cells_of_running_jobs_are_taken_in_every_round():
    """The most that a job takes in a round, added over jobs; a plan that takes none of them stays as it is."""
    machine = fabric("terarack:nodes=12")
    first = opticcl.compile(job(machine, [0, 1, 2]), "all_reduce", "1MB", algorithm="ring")
    second = opticcl.compile(job(machine, [6, 7]), "all_reduce", "1MB", algorithm="ring", beside=[first])
    assert second.circuits == opticcl.compile(job(machine, [6, 7]), "all_reduce", "1MB", algorithm="ring").circuits
    taken = taken_by([first.circuits])
    assert len(taken) > 0
    assert (taken.count == 1).all()
    twice = taken_by([first.circuits, first.circuits])
    assert (twice.count == 2).all()
    assert np.array_equal(twice.index, taken.index)


def test_a_job_without_a_way_is_refused():
    """One wavelength each way, taken all around the ring; and plans of another machine."""
    machine = fabric("terarack:nodes=8,wavelengths=1,rings=1")
    first = opticcl.compile(job(machine, [0, 2, 4, 6]), "all_reduce", "1MB", algorithm="two_sided_ring")
    with pytest.raises(UnsupportedError, match="or is taken"):
        opticcl.compile(job(machine, [1, 3, 5, 7]), "all_reduce", "1MB", beside=[first])
    with pytest.raises(FabricError, match="another machine"):
        opticcl.compile("terarack:nodes=9", "all_reduce", "1MB", nodes=[0, 1], beside=[first])


def test_packets_share_their_links():
    """There is nothing to go around."""
    machine = fabric("torus:shape=4x4")
    first = opticcl.compile(job(machine, [0, 1, 2, 3]), "all_reduce", "1MB", algorithm="ring")
    second = opticcl.compile(job(machine, [4, 5]), "all_reduce", "1MB", algorithm="ring", beside=[first])
    assert second.verify().ok


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    ("specification", "algorithm"),
    [
        ("lightpath:shape=2x3,lasers=3,waveguides=2", "lumorph"),
        ("lightpath:shape=2x3,lasers=3,waveguides=2,switch_unit=waveguide", "ring"),
        ("terarack:nodes=5,wavelengths=4,striping=true", "mesh"),
        ("oddl:shape=4,wavelengths=3", "mesh"),
    ],
)
def test_taken_cells_are_counted_one_by_one(specification, algorithm, once):
    """Of each resource, index and wavelength the most in a round; the capacity where it is set once for a job."""
    machine = fabric(specification)
    vars(machine)["resources"] = tuple(dataclasses.replace(r, once_per_job=once) for r in machine.resources)
    plan = lower(machine, generate(algorithm, "all_to_all" if algorithm == "mesh" else "all_reduce", machine))
    most = {}
    for step in range(plan.schedule.num_steps):
        for circuits in plan.rounds(step):
            counts = {}
            for usage in machine.usage(circuits):
                k = next(k for k, resource in enumerate(machine.resources) if resource is usage.resource)
                owners = range(len(circuits)) if usage.circuit is None else usage.circuit.tolist()
                for index, row in zip(usage.index.tolist(), owners, strict=True):
                    lo, many = int(circuits.wavelength_lo[row]), int(circuits.wavelength_n[row])
                    lit = range(lo, lo + many * circuits.wavelength_step, circuits.wavelength_step)
                    if not usage.resource.per_wavelength:
                        lit = [0]
                    elif usage.resource.one_setting:
                        lit = range(machine.num_wavelengths)
                    for wavelength in lit:
                        counts[k, index, wavelength] = counts.get((k, index, wavelength), 0) + 1
            most = {cell: max(most.get(cell, 0), counts.get(cell, 0)) for cell in most.keys() | counts.keys()}
    capacity = [int(resource.capacity) for resource in machine.resources]
    due = {cell: capacity[cell[0]] if once else min(count, capacity[cell[0]]) for cell, count in most.items()}
    taken = taken_by([plan])
    cells = zip(taken.resource.tolist(), taken.index.tolist(), taken.wavelength.tolist(), strict=True)
    assert dict(zip(cells, taken.count.tolist(), strict=True)) == due


@pytest.mark.parametrize(
    ("specification", "widest"),
    [
        ("terarack:nodes=8,wavelengths=6", 1),
        ("terarack:nodes=8,wavelengths=6,striping=true", 6),
        ("ramp:groups=2,racks=2,wavelengths=4", 2),
    ],
)
def test_a_transfer_takes_further_ways_unless_the_fabric_does_not_stripe(specification, widest):
    """A cell of the first circuit is taken; what is chosen anew is as wide as the fabric allows."""
    machine = fabric(specification)
    plan = lower(machine, generate("ring", "all_reduce", machine))
    (circuits,) = plan.rounds(0)
    usage = next(iter(machine.usage(circuits)))
    wavelength = int(circuits.wavelength_lo[0]) if usage.resource.per_wavelength else 0
    beside = lower_beside(machine, plan.schedule, Occupied.of([(0, int(usage.index[0]), wavelength, 1)]))
    assert beside != plan
    widths = [np.bincount(one.transfer, one.wavelength_n) for one in beside.rounds(0)]
    assert max(width.max() for width in widths) == widest
