"""A job whose nodes form a part of a machine runs the system's own algorithms, on the circuits of that machine."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

import opticcl
from opticcl.collective import COLLECTIVES, Request
from opticcl.fabrics import fabric, job
from opticcl.schedule import AlgorithmCall, generate
from opticcl.verify import verify
from opticcl.verify.time.isolation import verify_together


class System(NamedTuple):
    """A machine, and how nodes of a part are numbered.

    Args:
        machine: its description.
        sides: of the grid of its nodes.
        whole: number of values along each side -> the whole machine of that shape, or None.
        algorithms: its own.
        rings: whether values must be in the order of a ring.
    """

    machine: str
    sides: tuple[int, ...]
    whole: object
    algorithms: tuple[str, ...]
    rings: bool = False


def whole_ramp(groups, racks, places):
    """Equation 2 has parameters where racks are no more than groups, which divide the places."""
    return None if racks > groups or places % groups else f"ramp:groups={groups},racks={racks},wavelengths={places}"


def whole_sipac(*many):
    """Level 0 has the last coordinate."""
    radices = [str(one) for one in many[::-1] if one > 1]
    return f"sipac:radices={'x'.join(radices)}" if radices else None


RING = ("wrht", "optree", "circulant_rings", "standing_tree", "rails", "spaced_hubs", "wavelength_exchange")
SYSTEMS = {
    "ramp": System("ramp:groups=3,racks=2,wavelengths=6", (3, 2, 6), whole_ramp, ("ramp", "skewed_exchange")),
    "ramp-large": System("ramp:groups=4,racks=4,wavelengths=8", (4, 4, 8), whole_ramp, ("ramp", "skewed_exchange")),
    "ramp-routers": System(
        "ramp:groups=4,racks=3,wavelengths=8,subnet=route_switch", (4, 3, 8), whole_ramp, ("ramp", "skewed_exchange")
    ),
    "sipac": System("sipac:radices=3x2x4", (4, 2, 3), whole_sipac, ("sipco", "loop_back_rings")),
    "sipac-ring": System("sipac:radix=4,levels=3,channels=ring", (4, 4, 4), whole_sipac, ("sipco", "loop_back_rings")),
    "sipac-large": System("sipac:radices=8x4x3", (3, 4, 8), whole_sipac, ("sipco", "loop_back_rings")),
    "terarack": System("terarack:nodes=16,wavelengths=8", (16,), "terarack:nodes={},wavelengths=8".format, RING, True),
    "terarack-large": System("terarack:nodes=64,wavelengths=64", (64,), "terarack:nodes={}".format, RING, True),
    "terarack_torus": System("terarack_torus:shape=5x6", (5, 6), "terarack_torus:shape={}x{}".format, ("wrht",), True),
    "ocs": System("ocs:nodes=24,planes=2", (24,), "ocs:nodes={},planes=2".format, ("digit_shifts",)),
    "oddl": System(
        "oddl:shape=4x4x2",
        (4, 4, 2),
        "oddl:shape={}x{}x{}".format,
        ("halving_doubling", "twisted_grid", "rotated_rings"),
    ),
    "lightpath": System("lightpath:shape=4x4", (4, 4), "lightpath:shape={}x{}".format, ("lumorph", "halving_doubling")),
}
RUNNING = dict.fromkeys(("ramp", "ramp-large", "ramp-routers"), "ramp") | dict.fromkeys(
    ("terarack", "terarack-large"), "ring"
)
"""Algorithms of running jobs that leave the other some light; else the fastest does."""
SMALL = ("ramp", "sipac", "terarack_torus", "oddl", "lightpath")
LARGE = ("ocs", "ramp-large", "ramp-routers", "sipac-ring", "sipac-large", "terarack", "terarack-large")
LISTS_WAYS = [name for name in (*SMALL, *LARGE) if name not in ("terarack_torus", "ocs")]
"""Those on which light may go around that of other jobs."""


@cache
def machine(name):
    """Of a system."""
    return fabric(SYSTEMS[name].machine)


def part_of(name, many, random):
    """A job on a part with that many values along each side, drawn, and in any order where the system has none."""
    system = SYSTEMS[name]
    values = [random.sample(range(side), count) for side, count in zip(system.sides, many, strict=True)]
    values = [sorted(some) if system.rings else some for some in values]
    return job(machine(name), [int(np.ravel_multi_index(at, system.sides)) for at in product(*values)])


def due(name, many, algorithm, request):
    """Steps and parameters of the same schedule on the whole machine that the part is like; None where it has none."""
    whole = SYSTEMS[name].whole(*many)
    if whole is None or AlgorithmCall.of(algorithm).reason_declined(request, fabric(whole)):
        return None
    return generate(algorithm, request, fabric(whole))


def judged(name, many, random, count):
    """Number of right plans of the own algorithms on a part, each for that many collectives, which are drawn."""
    where, plans = part_of(name, many, random), 0
    for algorithm, collective in product(SYSTEMS[name].algorithms, random.sample([*COLLECTIVES], count)):
        request = Request(collective, root=random.randrange(where.num_nodes) if collective != "send_recv" else 0)
        whole = due(name, many, algorithm, request)
        if whole is None:
            continue
        plan = opticcl.compile(where, collective, "1MB", algorithm=algorithm, root=request.root)
        assert plan.schedule.num_steps == whole.num_steps, (name, many, algorithm, collective)
        verdict = plan.verify()
        assert verdict.ok, (name, where.machine_nodes(np.arange(where.num_nodes)), algorithm, collective, str(verdict))
        plans += 1
    return plans


def shapes(name):
    """Numbers of values along each side of all parts of two nodes or more."""
    return [many for many in product(*(range(1, side + 1) for side in SYSTEMS[name].sides)) if prod(many) > 1]


@pytest.mark.parametrize("count", [2, pytest.param(len(COLLECTIVES), marks=pytest.mark.deep)])
@pytest.mark.parametrize("name", SMALL)
def test_every_part_of_a_small_machine(name, count):
    """One of each shape; values and collectives are drawn."""
    random = Random(name)
    assert sum(judged(name, many, random, count) for many in shapes(name)) > 4 * count


@pytest.mark.parametrize(
    ("count", "collectives"), [(3, 4), pytest.param(500, len(COLLECTIVES), marks=pytest.mark.deep)]
)
@pytest.mark.parametrize("name", LARGE)
def test_drawn_parts(name, count, collectives):
    """Any values of any number of them."""
    random, every = Random(f"{name} {count}"), [many for many in shapes(name) if SYSTEMS[name].whole(*many)]
    assert sum(judged(name, random.choice(every), random, collectives) for _ in range(count)) >= count


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_every_other_part_has_a_plan(name):
    """Where its own algorithms have no form, another one does it; those that decline name a part that they would take."""
    random, others = Random(name), 0
    for many in shapes(name):
        where = part_of(name, many, random)
        for algorithm in SYSTEMS[name].algorithms:
            reason = AlgorithmCall.of(algorithm).reason_declined(Request("all_reduce"), where)
            if reason and "no part" in reason and "the first" in reason:
                first = int(reason.split("the first ")[1].split()[0])
                assert machine(name).sub_machine(where.machine_nodes(np.arange(first))) is not None
        if SYSTEMS[name].whole(*many) is None and prod(many) <= 16 and random.random() < 0.2:
            assert opticcl.compile(where, "all_reduce", "1MB", ignore_light=True).verify().ok
            others += 1
    assert others or "ramp" not in name


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.deep if name == "terarack-large" else ()) for name in LISTS_WAYS],
)
def test_beside_a_running_job(name):
    """The own algorithm of a part goes around what another job takes; together they are right."""
    made, sides = machine(name), SYSTEMS[name].sides
    axis = 2 if "ramp" in name else 0
    cut = sides[axis] // 2
    parts = []
    for some in (range(cut), range(cut, sides[axis])):
        values = product(*(some if at == axis else range(side) for at, side in enumerate(sides)))
        parts.append(job(made, [int(np.ravel_multi_index(at, sides)) for at in values]))
    running = [opticcl.compile(parts[0], "all_reduce", "1MB", algorithm=RUNNING.get(name, "auto"))]
    judged_together = 0
    for algorithm in SYSTEMS[name].algorithms:
        if AlgorithmCall.of(algorithm).reason_declined(Request("all_reduce"), parts[1]):
            continue
        plan = opticcl.compile(parts[1], "all_reduce", "1MB", algorithm=algorithm, beside=running)
        plan.verify().raise_if_bad()
        verify_together([one.circuits for one in (*running, plan)]).raise_if_bad()
        judged_together += 1
    assert judged_together


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_mutants_are_refused(name):
    """A circuit of one step leads to another receiver, or a transfer of it carries another chunk."""
    random, refused = Random(name), 0
    for _ in range(4):
        many = random.choice([many for many in shapes(name) if prod(many) > 3 and SYSTEMS[name].whole(*many)])
        where = part_of(name, many, random)
        for algorithm in SYSTEMS[name].algorithms:
            if due(name, many, algorithm, Request("all_reduce")) is None:
                continue
            plan = opticcl.compile(where, "all_reduce", "1MB", algorithm=algorithm).circuits
            changed = random.randrange(plan.schedule.num_steps)
            first, *others = plan.rounds(changed)
            row = random.randrange(len(first))
            dst = first.dst.copy()
            dst[row] = next(
                node
                for node in where.machine_nodes(np.arange(where.num_nodes))
                if node not in (dst[row], first.src[row])
            )
            wrong = replace(first, dst=dst)
            bad = replace(
                plan,
                rounds=lambda i, k=changed, plan=plan, wrong=wrong, others=others: (
                    (wrong, *others) if i == k else plan.rounds(i)
                ),
            )
            assert not verify(bad).ok, (name, many, algorithm)
            refused += 1
    assert refused


@pytest.mark.parametrize(
    ("part", "nodes", "whole", "algorithm"),
    [
        ("sipac:radix=8,levels=3,node_rate=3.072Tb/s", range(64), "sipac:radix=8,levels=2,node_rate=2.048Tb/s", "auto"),
        (
            "ramp:groups=4,racks=4,wavelengths=8",
            [g * 32 + j * 8 + place for g in range(4) for j in (1, 3) for place in (0, 2, 5, 7)],
            "ramp:groups=4,racks=2,wavelengths=4",
            "ramp",
        ),
    ],
)
def test_time_is_that_of_a_machine_with_the_same_links(part, nodes, whole, algorithm):
    """100 MB, within 2 %: light passes more parts of the larger machine."""
    times = [
        opticcl.compile(where, "all_reduce", "100MB", algorithm=algorithm).simulate().total_s
        for where in (job(fabric(part), nodes), fabric(whole))
    ]
    assert times[0] <= 1.02 * times[1]
