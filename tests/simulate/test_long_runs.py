"""Long runs of equal steps: the same times as step by step, circuit by circuit."""

from dataclasses import replace
from itertools import pairwise
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collectives import nothing_required
from tests.profiles import examples

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.ir import Op, Schedule, Timeline, Transfers
from opticcl.ir.device_settings import DeviceSettings
from opticcl.plans.streams import plan_streamed
from opticcl.simulate import simulate
from opticcl.simulate.device import engine as device
from opticcl.simulate.device import long_runs
from opticcl.simulate.device.long_runs import (
    _run,
    has_long_run,
    long_run_timeline,
)
from opticcl.verify.time.programme import check_programme

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
    found = plan.simulate("device", assumptions=ASSUMED)
    assert same(found, before)
    assert found.lower_bound_s == before.lower_bound_s


@pytest.mark.parametrize(
    ("text", "algorithm", "reason"),
    [
        ("ramp:groups=2,racks=1,wavelengths=8", "ramp:stages=40", "do not become periodic"),  # relays fall behind
        ("ramp:groups=3,racks=1,wavelengths=3,slot=0", "ramp:stages=40", "no long run of equal steps in slots"),
        ("ramp:groups=3,racks=1,wavelengths=3", "ramp:stages=1", "no long run"),
    ],
)
def test_what_has_no_period_is_refused(text, algorithm, reason, monkeypatch):
    """In one line; the engine has another way."""
    monkeypatch.setattr(device, "LARGE_CHUNKS", 1)
    plan = opticcl.compile(text, "broadcast", 30_000, algorithm=algorithm)
    with pytest.raises(UnsupportedError, match=reason):
        long_run_timeline(plan.circuits, plan.size_bytes, ASSUMED)
    assert device.timeline_of_long_run(plan.circuits, plan.size_bytes, ASSUMED) is None


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

    wrong = replace(plan.circuits, schedule=replace(schedule, step=step, classes=schedule.step_classes()))
    with pytest.raises(UnsupportedError, match="do not move evenly"):
        long_run_timeline(wrong, plan.size_bytes, ASSUMED)


def steps_of(*classes):
    """A plan of classes of steps, each a list of rows (src, dst, chunk_lo, chunk_n, chunk_step) for each step."""
    rows = [step for one in classes for step in one]
    starts = np.cumsum([0, *map(len, classes)]).tolist()
    ranges = tuple(range(*ends) for ends in pairwise(starts))

    def step(i):
        src, dst, lo, n, by = np.array(rows[i], int).reshape(-1, 5).T
        return Transfers.of(src, dst, lo, n, Op.COPY, chunk_step=by)

    return SimpleNamespace(schedule=SimpleNamespace(name="hand", step=step, step_classes=lambda: ranges))


def moved(rows, by):
    """The same of other chunks."""
    return [(*row[:2], row[2] + by, *row[3:]) for row in rows]


def drawn(seed):
    """A plan with a run of steps of one or two transfers, which move, between few steps that do or do not."""
    draw, n = np.random.default_rng(seed), (8, 8, 9)[seed % 3]
    shape = ("groups=2,racks=2,wavelengths=2", "groups=2,racks=1,wavelengths=4", "groups=3,racks=1,wavelengths=3")
    shift, length = int(draw.integers(1, 4)), int(draw.integers(8, 40))

    def rows(lo, hi):
        found = []
        for pair in draw.permutation(n * (n - 1))[: draw.integers(1, 3)].tolist():
            src, other = divmod(pair, n - 1)
            chunks = int(draw.integers(lo, hi)), int(draw.integers(1, 3)), int(draw.integers(1, 3))
            found.append((src, other + (other >= src), *chunks))
        return found

    def steps(lo, hi):
        one, by = rows(lo, hi), int(draw.integers(0, 2))
        return [moved(one, k * by) for k in range(draw.integers(1, 4))]

    first, end = rows(6, 9), 6 + shift * length
    early = [steps(0, 9) for _ in range(draw.integers(0, 3))]
    late = [steps(end - 3, end + 6) for _ in range(draw.integers(0, 3))]
    classes = [*early, [moved(first, shift * k) for k in range(length)], *late]
    made, where = steps_of(*classes).schedule, opticcl.fabric(f"ramp:{shape[seed % 3]}")
    total = sum(map(len, classes))
    wanted = nothing_required(where.num_nodes, end + 20)
    return lower(where, Schedule("hand", wanted, total, made.step, classes=made.step_classes()))


HAVE_PERIODS = (2, 7, 8, 10, 13, 16, 18, 21, 24, 25, 29, 32, 35, 39, 40, 45, 46, 47)


@pytest.mark.parametrize("first", range(0, 48, 4))
def test_drawn_runs_are_as_all_of_their_steps(first):
    """Whatever moves how far and is before and behind; or the plan is refused."""
    followed = []
    for seed in range(first, first + 4):
        warm = {"initial": "warm", "receive_buffers": "separate"}
        assumed = (ASSUMED, assumptions("common"), assumptions("published", **warm))[seed // 3 % 3]
        plan = drawn(seed)
        try:
            found = long_run_timeline(plan, 200_000, assumed)
        except UnsupportedError:
            continue
        assert same(found, simulate(plan, 200_000, assumed, engine="device").timeline)
        run, text = _run(plan), found.assumptions["followed"]
        if text.startswith("all"):
            assert len(run.steps) < run.alone + 2 * run.held + 8
        else:
            times = (int(text.split()[0]) - 1) / (run.alone + 2 * run.held + 7)
            assert times in (1, 2, 4, 8, 16)
        followed.append(seed)
    assert followed == [seed for seed in range(first, first + 4) if seed in HAVE_PERIODS]


def test_plans_that_begin_with_circuits_are_refused():
    """Where a start is given, all steps are followed."""
    plan = opticcl.compile("ramp:groups=3,racks=1,wavelengths=3", "broadcast", 30_000, algorithm="ramp:stages=40")
    start = DeviceSettings.of_circuits(plan.fabric, plan.circuits.rounds(0)[0])
    with pytest.raises(UnsupportedError, match="leave --start out"):
        long_run_timeline(plan.circuits, plan.size_bytes, assumptions("common", initial=start))


@pytest.mark.parametrize("least", [True, False])
def test_the_sooner_order_is_taken(least, monkeypatch):
    """By devices, or asynchronously."""
    plan = opticcl.compile("ramp:groups=3,racks=1,wavelengths=3", "broadcast", 30_000, algorithm="ramp:stages=40")
    monkeypatch.setattr(
        long_runs,
        "_extended",
        lambda folding, run, waits: SimpleNamespace(total_s=1.0 + (waits.devices == least), waits=waits),
    )
    assert long_run_timeline(plan.circuits, 30_000, ASSUMED).waits.devices != least


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
