"""Long runs of equal steps: the same times as step by step, circuit by circuit."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import UnsupportedError
from opticcl.ir import Timeline
from opticcl.plans.streams import plan_streamed
from opticcl.simulate import device
from opticcl.simulate.long_runs import has_long_run, long_run_timeline
from opticcl.verify.time import check_programme

ASSUMED = assumptions("published", compute="none", rounds="in_line")
SHAPES = [(3, 2, 6), (4, 4, 8), (5, 3, 10), (2, 1, 8), (3, 1, 3), (2, 2, 2), (1, 1, 4), (4, 1, 12), (3, 3, 9)]


def same(one: Timeline, two: Timeline) -> bool:
    """Equal rows, and times to rounding."""
    parts = all(np.allclose(getattr(one, p), getattr(two, p), rtol=1e-9, atol=1e-15) for p in Timeline.PARTS)
    return one.steps == two.steps and one.rounds.tolist() == two.rounds.tolist() and parts


@examples(25)
@given(data=st.data())
def test_times_are_those_of_all_steps_and_circuits(data):
    """Whatever the shape, the subnet, the root, the pieces and the assumptions; or the plan is refused."""
    shape = data.draw(st.sampled_from(SHAPES))
    subnet = data.draw(st.sampled_from(["broadcast", "route_broadcast", "route_switch"]))
    where = opticcl.fabric("ramp:groups={},racks={},wavelengths={},subnet={}".format(*shape, subnet))
    pieces = data.draw(st.integers(3, 40))
    algorithm = data.draw(
        st.sampled_from([f"ramp:stages={pieces}", f"ramp:stages={pieces}", f"tree:pipeline={pieces}"])
    )
    size, root = data.draw(st.integers(1000, 200_000)), data.draw(st.integers(0, where.num_nodes - 1))
    warm = {"initial": "warm", "receive_buffers": "separate"}
    assumed = data.draw(st.sampled_from([ASSUMED, assumptions("common"), assumptions("published", **warm)]))
    plan = opticcl.compile(where, "broadcast", size, root=root, algorithm=algorithm)
    try:
        found = long_run_timeline(plan.circuits, size, assumed)
    except UnsupportedError:
        return
    assert same(found, plan.simulate("device", assumptions=assumed))


def test_relays_as_fast_as_the_root_have_a_period():
    """400 steps, of which few are followed; the engine takes them for large plans."""
    where = opticcl.fabric("ramp:groups=3,racks=2,wavelengths=6")
    plan = opticcl.compile(where, "broadcast", 400 * 3 * 950, root=5, algorithm="ramp:stages=400")
    found = long_run_timeline(plan.circuits, plan.size_bytes, ASSUMED)
    assert same(found, plan.simulate("device", assumptions=ASSUMED))
    assert found.total_s == pytest.approx((2 * 70 + 401) * 20e-9, rel=1e-12)


def test_the_engine_takes_long_runs_of_large_plans(monkeypatch):
    """With the same result; none of the list schedule's programmes is made."""
    where = opticcl.fabric("ramp:groups=3,racks=2,wavelengths=6")
    plan = opticcl.compile(where, "broadcast", 90_000, algorithm="ramp:stages=30")
    before = plan.simulate("device", assumptions=ASSUMED)
    monkeypatch.setattr(device, "LARGE_CHUNKS", 1)
    monkeypatch.setattr(device, "_schedule", None)
    assert same(plan.simulate("device", assumptions=ASSUMED), before)


@pytest.mark.parametrize(
    ("text", "algorithm", "reason"),
    [
        ("ramp:groups=2,racks=1,wavelengths=8", "ramp:stages=40", "do not become periodic"),  # relays fall behind
        ("ramp:groups=3,racks=1,wavelengths=3,slot=0", "ramp:stages=40", "no long run of equal steps in slots"),
        ("ramp:groups=3,racks=1,wavelengths=3", "ramp:stages=1", "no long run"),
    ],
)
def test_what_has_no_period_is_refused(text, algorithm, reason):
    """In one line."""
    plan = opticcl.compile(text, "broadcast", 30_000, algorithm=algorithm)
    with pytest.raises(UnsupportedError, match=reason):
        long_run_timeline(plan.circuits, plan.size_bytes, ASSUMED)


def test_sums_and_uneven_chunks_are_refused():
    """Equal ranks count as often as there are in a sum; the chunks of a ring come round again."""
    where = "ramp:groups=3,racks=1,wavelengths=3"
    for collective, reason in (("reduce_scatter", "sums count"), ("all_gather", "do not move evenly")):
        plan = opticcl.compile(where, collective, 30_000, algorithm="ring")
        assert has_long_run(plan.circuits)
        with pytest.raises(UnsupportedError, match=reason):
            long_run_timeline(plan.circuits, plan.size_bytes, ASSUMED)


def test_a_step_that_differs_in_the_middle_of_a_run_is_seen():
    """All steps of the run are compared, not its ends alone."""
    plan = opticcl.compile("ramp:groups=3,racks=1,wavelengths=3", "broadcast", 90_000, algorithm="ramp:stages=30")
    schedule = plan.schedule

    def step(i):
        found = schedule.step(i)
        return replace(found, chunk_lo=found.chunk_lo - 1) if i == 17 else found

    wrong = replace(plan.circuits, schedule=replace(schedule, step=step))
    with pytest.raises(UnsupportedError, match="do not move evenly"):
        long_run_timeline(wrong, plan.size_bytes, ASSUMED)


@pytest.mark.deep
@pytest.mark.parametrize("size", [100_000, 1_000_000, 10_000_000, 100_000_000])
def test_a_broadcast_on_65536_nodes_takes_its_closed_form(size):
    """Two latencies, the message on 32 planes, and a piece; data and light of all pieces are judged."""
    found = plan_streamed("ramp", "broadcast", size, assumptions=ASSUMED)
    slots = ceil(size / 32 / 950)
    due_s = (2 * 70 + slots + 1) * 20e-9
    assert any("one circuit of each kind" in note for note in found.notes)
    assert due_s * (1 - 1e-9) <= found.total_s <= due_s * 1.001
    assert found.plan.verify().ok


@pytest.mark.deep
def test_all_times_of_a_broadcast_on_65536_nodes():
    """Every circuit and every gate of four pieces, by the laws of time; the time is what few of the circuits give."""
    plan = opticcl.compile("ramp", "broadcast", 4 * 32 * 950, algorithm="ramp:stages=4")
    assert plan.fabric.num_nodes == 65_536
    assert plan.verify().ok
    programme = plan.programme(engine="device", assumptions=ASSUMED)
    assert programme.total_s == pytest.approx((2 * 70 + 4 + 1) * 20e-9, rel=1e-9)
    assert programme.total_s == pytest.approx(plan.simulate("device", assumptions=ASSUMED).total_s, rel=1e-9)
    verdict = check_programme(plan.circuits, programme)
    assert verdict.ok
    assert verdict.circuits == 4 * 32 * 65_535
