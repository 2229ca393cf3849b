"""Costs of runs by hand, and beside rounds that an engine plays one by one."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.collectives import nothing_required
from tests.engines import flow
from tests.simulate.plans import by_hand

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers
from opticcl.plans.plan import compile
from opticcl.simulate import programme, simulate
from opticcl.simulate.closed_form import Cost, profile

NS = 1e-9


@pytest.mark.parametrize("is_last", [False, True])
def test_a_run_of_three_steps_by_hand(is_last):
    """Slots of 20 ns for 950 bytes: a step's latency of 30 ns and sums of 6 ns wait 4 ns; data takes 2 + 1 slots."""
    where = SimpleNamespace(slot_s=20 * NS, slot_payload_bytes=950, is_packet_switched=False, rate_bits_per_s=400e9)
    assumed = assumptions("common", memory_bytes_per_s=1e12)
    cost = Cost(
        3, 6, 100 * NS, 90 * NS, 7 * NS, 18.0, (2.0, 0.5), slot_wait_s=11 * NS, last_latency_s=30 * NS, is_last=is_last
    )
    chunk_bytes = 1000.0  # 18 of them in 18 ns of memory traffic, 6 in each step
    waits_s = (11 + 4 * (2 if is_last else 3)) * NS
    assert cost.waits_s(where, assumed, chunk_bytes) == pytest.approx(waits_s)
    assert cost.still_s(where, assumed, chunk_bytes) == pytest.approx(197 * NS + waits_s + 18 * NS)
    assert cost.moving_s(where, chunk_bytes) == pytest.approx(3 * (3 + 1) * 20 * NS)
    assert cost.total_s(where, assumed, chunk_bytes) == pytest.approx(197 * NS + waits_s + 18 * NS + 240 * NS)
    lanes = SimpleNamespace(slot_s=0.0, is_packet_switched=False, rate_bits_per_s=400e9)
    assert cost.waits_s(lanes, assumed, chunk_bytes) == 0
    assert cost.total_s(lanes, assumed, chunk_bytes) == pytest.approx(215 * NS + 3 * 2.5 * 8000 / 400e9)
    packets = SimpleNamespace(slot_s=0.0, is_packet_switched=True)
    assert cost.moving_s(packets, 1e-9) == pytest.approx(3 * 2.5 * NS)
    nothing = Cost(0, 0, 0.0, 0.0, 0.0, 0.0, (), last_latency_s=30 * NS)
    assert nothing.total_s(where, assumed, chunk_bytes) == 0


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


def test_data_of_a_round_arrives_when_it_ends():
    """In a programme of the closed form; a shorter transfer arrives earlier where rounds are played."""
    plan = by_hand(fabric("terarack:nodes=4"), [(0, 0, 1, 0, 1, Op.COPY), (0, 2, 3, 0, 4, Op.COPY)])
    assumed = assumptions("published")
    at_the_end, played = (
        programme(plan, 10**6, assumed, engine=name).data.arrived_s for name in ("closed_form", "flow")
    )
    assert at_the_end[0] == at_the_end[1] == played[1]
    assert played[0] < played[1]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_rounds_that_replace_each_other_are_set_in_every_step(steps):
    """LIGHTPATH, one laser: 0 -> 1 and 0 -> 2 in each of equal steps, all in one run."""
    where = fabric("lightpath:shape=2x2,lasers=1")
    transfers = Transfers.of([0, 0], [1, 2], [0, 1], 1, Op.COPY)
    schedule = Schedule("by hand", nothing_required(4, 2), steps, lambda i: transfers, classes=(range(steps),))
    for initial, due in (("cold", 2 * steps), ("warm", 2 * steps - 1)):
        (cost,) = profile(lower(where, schedule), assumptions("common", initial=initial)).costs
        assert cost.reconfiguration_s == pytest.approx(due * where.reconfiguration_s)


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


@pytest.mark.parametrize("where", ["terarack:nodes=4", "oddl:shape=4", "ramp:groups=2,racks=1,wavelengths=2"])
def test_what_is_recorded_arrives_as_in_a_programme(where):
    """Each transfer of three steps, behind settings, control exchanges and latencies in line."""
    rows = [(0, 0, 1, 0, 1, Op.COPY), (0, 2, 3, 0, 4, Op.COPY), (1, 1, 2, 0, 2, Op.COPY), (2, 3, 0, 0, 1, Op.COPY)]
    plan = by_hand(fabric(where), rows, num_steps=3)
    assumed = assumptions("common", message_gap=1e-8)
    found = simulate(plan, 10**6, assumed, engine="flow", record=True).traffic.transfers
    due = programme(plan, 10**6, assumed, engine="flow").data.arrived_s
    assert np.sort(found.end_s) == pytest.approx(np.sort(due), rel=1e-9)
