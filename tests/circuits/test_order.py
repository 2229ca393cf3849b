"""Light does not depend on the order in which a step lists its transfers, on any optical fabric, by any algorithm."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.schedule import ALGORITHMS, generate
from opticcl.verify import verify

FABRICS = [
    "lightpath:shape=3x3", "oddl:shape=3x3", "oddl:shape=4x2", "ramp:groups=3,racks=2,wavelengths=6",
    "ramp:groups=3,racks=3,wavelengths=6,subnet=route_switch", "sip_ring:nodes=7,wavelengths=3", "sipac:radix=3,levels=2",
    "terarack:nodes=9,wavelengths=4", "terarack:nodes=8,rings=2,striping=yes", "terarack_torus:shape=3x4",
]  # fmt: skip
COLLECTIVES = ["all_reduce", "all_to_all"]


def light(circuits):
    """Nodes, ports, wavelengths and path of every circuit of a round, in any order."""
    paths = [tuple(circuits.path(i).tolist()) for i in range(len(circuits))]
    columns = (circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n)
    return sorted(zip(*(column.tolist() for column in columns), paths, strict=True))


@pytest.mark.parametrize("where", FABRICS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_shuffled_steps_get_the_same_light(where, collective):
    """The same rounds of the same circuits; each transfer has circuits of its own pair, so the plan is still right."""
    machine, rng, tried = fabric(where), np.random.default_rng(7), 0
    for algorithm in ALGORITHMS.names():
        try:
            schedule = generate(algorithm, collective, machine)
            plan = lower(machine, schedule)
        except UnsupportedError:
            continue
        steps = [schedule.step(i) for i in range(min(schedule.num_steps, 8))]
        mixed = [step.take(rng.permutation(len(step))) for step in steps]
        some = replace(schedule, num_steps=len(steps), step=mixed.__getitem__, classes=())
        other = lower(machine, some)
        for i in range(len(steps)):
            where_from = f"{algorithm}, step {i}"
            assert [light(c) for c in other.rounds(i)] == [light(c) for c in plan.rounds(i)], where_from
        refused = {violation.rule for violation in verify(other).violations}
        assert not refused & {"circuit_astray", "transfer_not_carried", "wavelength_clash"}, algorithm
        tried += 1
    assert tried >= 3
