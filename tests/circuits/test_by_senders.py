"""Circuits of some senders, of which moves of the machine make those of all others: against the circuits of all."""

from collections import Counter
from contextlib import suppress
from itertools import product

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import as_request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, no_progress
from opticcl.plans.light import light_of_plan
from opticcl.schedule import all_variants, generate
from opticcl.simulate import profile
from opticcl.simulate.bottleneck import loads
from opticcl.verify.light import check_light

MACHINES = (
    "sipac:radix=3,levels=2",
    "sipac:radix=4,levels=2",
    "sipac:radices=3x4x2",
    "sipac:radices=2x6,channels=retuned",
    "sipac:radices=4x3,channels=ring",
    "sipac:radix=5,levels=1,wavelengths=7",
    "ramp:groups=4,racks=2,wavelengths=4",
    "ramp:groups=3,racks=2,wavelengths=6",
)
MORE = ("reduce_scatter", "all_gather", "barrier", "broadcast")
COLLECTIVES = ("all_reduce", "all_to_all", *(pytest.param(name, marks=pytest.mark.deep) for name in MORE))


def plans(where, collective):
    """Of every algorithm that a machine runs."""
    for algorithm in all_variants(as_request(collective), where):
        with suppress(UnsupportedError):
            yield lower(where, generate(algorithm, as_request(collective), where))


def columns_of(circuits):
    """What makes each circuit, without the number of its transfer."""
    names = ("src", "dst", "port", "wavelength_lo", "wavelength_n")
    rows = np.column_stack([getattr(circuits, name) for name in names])
    paths = [tuple(circuits.path(i).tolist()) for i in range(len(circuits))]
    return [(*row, circuits.wavelength_step, *path) for row, path in zip(rows.tolist(), paths, strict=True)]


def powers(columns):
    """Every power of a permutation of several tables."""
    found, now = [], [np.arange(len(column)) for column in columns]
    while not found or any((column != np.arange(len(column))).any() for column in now):
        found.append(now)
        now = [column[before] for column, before in zip(columns, now, strict=True)]
    return found


def images(rounds):
    """Circuits of all senders, by products of powers of the moves, round by round."""
    found = []
    for circuits in rounds.rounds:
        every = Counter()
        for one in product(*(powers(move.columns) for move in rounds.moves)):
            moved = circuits
            for columns in one:
                moved = type(rounds.moves[0])(*columns).of(moved)
            every.update(columns_of(moved))
        found.append(every)
    return found


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("text", MACHINES)
def test_they_are_those_of_all(text, collective):
    """Images are the circuits of all senders; times and light follow from some."""
    for plan in plans(fabric(text), collective):
        for i in range(plan.schedule.num_steps):
            some = plan.by_senders(i)
            if some is not None:
                assert images(some) == [Counter(columns_of(circuits)) for circuits in plan.rounds(i)]
        every = CircuitPlan(plan.fabric, plan.schedule, lambda i, plan=plan: plan.rounds(i))
        assert all(every.by_senders(i) is None for i in range(plan.schedule.num_steps))
        for one, other in zip(loads(plan, 10**6), loads(every, 10**6), strict=True):
            assert (one.resource, one.index.tolist()) == (other.resource, other.index.tolist())
            assert one.carried_bytes == pytest.approx(other.carried_bytes, rel=1e-9)
        verdicts = [check_light(each, progress=no_progress) for each in (plan, every)]
        assert not verdicts[0].violations
        assert verdicts[0].circuits == verdicts[1].circuits
        assert light_of_plan(plan).margin_db == pytest.approx(light_of_plan(every).margin_db, rel=1e-12)
        for assumed in map(assumptions, ("common", "published")):
            one, other = profile(plan, assumed), profile(every, assumed)
            for size in (1, 1000, 10**8):
                assert one.timeline(size).total_s == pytest.approx(other.timeline(size).total_s, rel=1e-12)


@pytest.mark.parametrize("text", MACHINES)
def test_moves_keep_the_machine(text):
    """Moved circuits occupy the images of what they occupied, can be made if they could be, and take as long."""
    where = fabric(text)
    tried = 0
    for plan in plans(where, "all_to_all"):
        for i in range(plan.schedule.num_steps):
            some = plan.by_senders(i)
            for move, circuits in product(some.moves, plan.rounds(i)) if some else ():
                tried += 1
                moved = move.of(circuits)
                assert not any(len(fault.circuits) for fault in where.faults(moved))
                of_units = where.resource_images(move)
                for image, before, after in zip(of_units, where.usage(circuits), where.usage(moved), strict=True):
                    assert (image[before.index] == after.index).all()
    assert tried
