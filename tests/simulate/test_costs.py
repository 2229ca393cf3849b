"""Costs of runs by hand, and beside rounds that an engine plays one by one."""

from dataclasses import replace

import numpy as np
import pytest
from tests.collectives import nothing_required
from tests.engines import flow

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers
from opticcl.plans.plan import compile
from opticcl.simulate import simulate
from opticcl.simulate.closed_form.engine import profile

NS = 1e-9


@pytest.mark.parametrize(
    ("where", "collective", "algorithm"),
    [
        ("ramp:groups=2,racks=2,wavelengths=4", "all_reduce", "ramp"),
        ("ramp:groups=3,racks=1,wavelengths=3", "all_to_all", "mesh"),
        ("ramp:groups=2,racks=2,wavelengths=2", "all_reduce", "lumorph"),
        ("ramp:groups=2,racks=1,wavelengths=2,slot=0s", "reduce_scatter", "mesh"),
        ("terarack:nodes=6,wavelengths=2", "all_reduce", "mesh"),
        ("oddl:shape=2x4", "all_reduce", "halving_doubling"),
        ("lightpath:shape=2x3,lasers=2", "all_to_all", "mesh"),
        ("ideal:nodes=5", "all_reduce", "ring"),
    ],
)
def test_rounds_that_are_played_take_the_same_parts(where, collective, algorithm):
    """With a barrier, on circuits: every part of every run, in line too, with gaps of messages and sums within slots."""
    plan = compile(where, collective, "1 MB", algorithm=algorithm)
    for name, more in (
        ("common", {"message_gap": 3 * NS}), ("common", {"rounds": "apart", "message_gap": 3 * NS}),
        ("published", {"compute": "chain"}),
        ("common", {"initial": "warm", "control_order": "beside_setting"}), ("common", {"control": "none", "compute": "none"}),
        ("oddl", {}),
    ):  # fmt: skip
        assumed = assumptions(name, **more)
        times = profile(plan.circuits, assumed)
        for size in (0, 1, 12_345, 3_000_000):
            due, found = flow(plan.circuits, size, assumed), times.timeline(size)
            for part in ("reconfiguration_s", "latency_s", "transfer_s", "compute_s", "control_s", "num_rounds"):
                one, other = getattr(found, part), getattr(due, part)
                assert one == pytest.approx(other, rel=1e-9, abs=1e-18), (name, more, size, part)
            chunk_bytes = size / plan.schedule.collective.num_chunks
            totals = [cost.total_s(plan.fabric, assumed, chunk_bytes) for cost in times.costs]
            assert sum(totals) == pytest.approx(found.total_s, rel=1e-9)
        assert times.timeline(1, bounded=False).lower_bound_s == 0
        assert times.timeline(1).lower_bound_s > 0


def test_an_idle_round_takes_nothing_but_its_setting():
    """LIGHTPATH, played: a circuit stands one round longer without data; without that round, the closed form takes the same."""
    where = fabric("lightpath:shape=2x2,lasers=1")
    transfers = Transfers.of([0, 2], [1, 3], [0, 1], [1, 4], [Op.COPY, Op.REDUCE])
    schedule = Schedule("by hand", nothing_required(4, 8), 3, lambda i: transfers, classes=(range(2), range(2, 3)))
    (both,) = lower(where, schedule).rounds(0)
    first, second = (both.take(np.array([row])) for row in (0, 1))
    idle = replace(first, transfer=np.array([-1], np.int32))
    assumed, calls, found = assumptions("common", message_gap=1e-7), [], []
    for rounds in ((first, idle, second), (first, second)):
        plan = CircuitPlan(where, schedule, lambda i, rounds=rounds: rounds if i < 2 else (both,))
        run = simulate(plan, 10**6, assumed, engine="flow", progress=lambda *told: calls.append(told))
        found.append(run.timeline)
    assert [one.num_rounds for one in found] == [7, 5]
    due = profile(plan, assumed).timeline(10**6)
    for part in ("reconfiguration_s", "latency_s", "transfer_s", "compute_s"):
        for one in found:
            assert getattr(one, part) == pytest.approx(getattr(due, part), rel=1e-9)
    assert [told[1:] for told in calls] == [(2, 3), (3, 3)] * 2
