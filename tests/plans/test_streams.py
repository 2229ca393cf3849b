"""Messages in pieces that are forwarded while further ones arrive: closed form, judge of time, search, bad input."""

from math import ceil

import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.plans.streams import plan_streamed
from opticcl.verify.time.programme import check_programme, rules_of

ASSUMED = assumptions("published", compute="none", rounds="in_line")


@pytest.mark.parametrize("shape", [(3, 2, 6), (4, 4, 8), (5, 3, 10)])
def test_a_broadcast_slot_by_slot_takes_its_closed_form(shape):
    """Two latencies of 70 slots, the message on x planes of 950 bytes a slot, one slot behind; with barriers more."""
    where = opticcl.fabric("ramp:groups={},racks={},wavelengths={}".format(*shape))
    for size in (5_000, 23_456):
        slots = ceil(size / shape[0] / 950)
        plan = opticcl.compile(where, "broadcast", size, algorithm=f"ramp:stages={slots}")
        due_s = (2 * 70 + slots + 1) * 20e-9
        for engine in ("device", "flow:mode=asynchronous"):
            assert plan.simulate(engine, assumptions=ASSUMED).total_s == pytest.approx(due_s, rel=1e-9)
        times = plan.programme("device", assumptions=ASSUMED)
        assert check_programme(plan.circuits, times, rules_of(times)).ok
    assert plan.verify().ok


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("ramp:groups=3,racks=2,wavelengths=6", 30_000),
        pytest.param("sipac:radix=2,levels=3,wavelengths=4", 1_000_000, marks=pytest.mark.deep),
    ],
)
def test_streams_are_no_slower_than_barriers(text, size):
    """Nor than any power of two of pieces; the plan is right, and the device engine repeats its time."""
    found = plan_streamed(text, "broadcast", size, root=1, assumptions=ASSUMED)
    assert found.finished
    assert found.gap >= 1
    assert found.plan.verify().ok
    assert found.plan.simulate("device", assumptions=ASSUMED).total_s == pytest.approx(found.total_s)
    barriers = opticcl.compile(text, "broadcast", size, root=1, assumptions=ASSUMED)
    assert found.total_s < barriers.simulate(assumptions=ASSUMED).total_s
    assert "with barriers takes" in found.notes[0]
    for pieces in (1, 2, 4, 8):
        one = opticcl.compile(text, "broadcast", size, root=1, algorithm=f"tree:pipeline={pieces}")
        assert found.total_s <= one.simulate("device", assumptions=ASSUMED).total_s * (1 + 1e-9)
    assert sum(one.total_s for one in found.segments) == pytest.approx(found.total_s)


def test_too_many_devices_are_not_followed_one_by_one(monkeypatch):
    """The plan with a long run of equal steps, a piece a slot, is found without."""
    text, size, tried = "ramp:groups=3,racks=2,wavelengths=6", 30_000, []
    monkeypatch.setattr("opticcl.plans.streams.LARGE_NODES", 1)
    monkeypatch.setattr("opticcl.simulate.device.engine.LARGE_RANKS", 1)
    every = plan_streamed(text, "broadcast", size, assumptions=ASSUMED)
    monkeypatch.setattr("opticcl.plans.streams._started", lambda plan, assumed: tried.append(plan))
    devices = sum(device.count * device.pool for device in opticcl.fabric(text).devices)
    monkeypatch.setattr("opticcl.plans.streams.MOST_DEVICES", devices)
    plan_streamed(text, "broadcast", size, assumptions=ASSUMED)
    assert len(tried) > 1
    tried.clear()
    monkeypatch.setattr("opticcl.plans.streams.MOST_DEVICES", devices - 1)
    found = plan_streamed(text, "broadcast", size, assumptions=ASSUMED)
    assert not tried
    assert found.total_s == pytest.approx(every.total_s)
    assert found.plan.algorithm == every.plan.algorithm


def test_work_is_limited_and_named(monkeypatch):
    """The algorithm of the fastest with barriers comes first; what is not timed has its name and the gap."""

    def found_of(most):
        monkeypatch.setattr("opticcl.plans.streams.MOST_TIMED", most)
        return plan_streamed("ramp:groups=3,racks=2,wavelengths=6", "broadcast", 300_000, root=1, assumptions=ASSUMED)

    every, some, none = map(found_of, (1 << 20, 800, 1))
    assert not any("are timed" in note for note in every.notes)
    due = "800 transfers together are timed, 256 settings of devices for one; not "
    assert any(due in note for note in some.notes)
    assert some.finished
    barriers = opticcl.compile("ramp:groups=3,racks=2,wavelengths=6", "broadcast", 300_000, root=1, assumptions=ASSUMED)
    assert every.total_s <= some.total_s <= none.total_s <= barriers.simulate(assumptions=ASSUMED).total_s
    assert every.total_s < none.total_s


def test_settings_of_devices_are_work(monkeypatch):
    """The fastest with barriers is followed where 256 settings for each transfer that is timed suffice for its own."""
    whole = opticcl.compile("terarack:nodes=16", "broadcast", 1_000_000)
    rounds = [circuits for step in range(whole.schedule.num_steps) for circuits in whole.circuits.rounds(step)]
    settings = sum(len(use.index) for circuits in rounds for use in whole.fabric.settings(circuits))
    for most, is_named in ((settings // 256 - 1, True), (settings // 256, False)):
        monkeypatch.setattr("opticcl.plans.streams.MOST_TIMED", most)
        notes = plan_streamed("terarack:nodes=16", "broadcast", 1_000_000).notes
        assert any(f"; not {whole.algorithm}" in note for note in notes) == is_named


def test_what_cannot_be_streamed():
    """In one line; a limit of time returns the plan with barriers at least."""
    with pytest.raises(UnsupportedError, match="fat_tree has packets"):
        plan_streamed("fat_tree:nodes=8", "broadcast", 1000)
    with pytest.raises(UnsupportedError, match="no algorithm cuts all_to_all on oddl"):
        plan_streamed("oddl:shape=2x2", "all_to_all", 1000)
    with pytest.raises(ParameterError, match="time_limit_s=-1 is negative"):
        plan_streamed("oddl:shape=2x2", "broadcast", 1000, time_limit_s=-1)
    found = plan_streamed("oddl:shape=2x2", "broadcast", 1000, time_limit_s=0)
    assert not found.finished
    assert found.plan.verify().ok
    assert any("time limit" in note for note in found.notes)
