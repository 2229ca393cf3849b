"""Jobs on random nodes of one machine: their circuits go around each other, or the later one is refused."""

import numpy as np
import pytest

import opticcl
from opticcl.circuits.beside import taken_by
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.verify.isolation import verify_together


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
    for seed in range(4):
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
