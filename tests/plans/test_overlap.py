"""Steps on switches: published cases, the exact programme, bounds, and plans that the judges of light and time accept."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.plans.overlap import SwitchLaw, overlap, plan_on_switches, settings_of
from opticcl.plans.plan import Plan
from opticcl.plans.planner import plan_collective
from opticcl.plans.switch_plans import plan_overlapped
from opticcl.schedule import generate
from opticcl.verify.time.programme import check_programme, rules_of

SWOT = SwitchLaw(2, 50e9, 0.2e-3, 0.02e-3)


def test_halving_doubling_on_two_switches():
    """8 nodes, 32 MB, 2 switches of 50 GB/s, first setting charged: 1.340 ms, proven."""
    where = opticcl.fabric("ocs:nodes=8,planes=2,rate=400Gb/s,reconfiguration=0.2ms,endpoint_latency=20us,hop_delay=0s")
    schedule = generate("halving_doubling", "all_reduce", where)
    settings, amounts = settings_of(schedule)
    assert settings == [0, 1, 2, 2, 1, 0]
    found = overlap(settings, [4e6 * chunks for chunks in amounts], SWOT)
    assert found.seconds == pytest.approx(1.340e-3, rel=1e-6)
    assert found.proven
    plan = Plan(plan_on_switches(where, schedule, found), 32_000_000)
    assert plan.verify().ok
    law = {"assumptions": "published", "compute": "none", "prepare": "early"}
    total_s = plan.simulate("device", **law).total_s
    assert 1.28e-3 < total_s <= 1.340e-3 * (1 + 1e-6)  # parts of a step start once their own data is there
    times = plan.programme("device", **law)
    assert check_programme(plan.circuits, times, rules_of(times)).ok


def test_pairwise_exchange_on_eight_switches():
    """256 nodes, 0.25 MB, 8 switches of 12.5 GB/s: at most 7.2 ms, the bound is 7.015."""
    found = overlap(range(255), [0.25e6 / 256] * 255, SwitchLaw(8, 12.5e9, 0.2e-3, 0.02e-3))
    assert found.bound_s == pytest.approx(7.015e-3, rel=1e-4)
    assert found.seconds <= 7.2e-3


@examples(15)
@given(
    settings=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    switches=st.integers(1, 3),
    change=st.sampled_from([0.0, 1e-5, 1e-3]),
    size=st.integers(0, 10**7),
    free=st.booleans(),
)  # fmt: skip
def test_every_schedule_keeps_the_rules(settings, switches, change, size, free):
    """All bytes, steps in order, a change between settings, never below the bound; more switches are no slower."""
    law = SwitchLaw(switches, 1e10, change, 1e-6, free)
    sizes = [size * (i + 1) for i in range(len(settings))]
    found = overlap(settings, sizes, law)
    tolerance = 1e-6 * (found.seconds + 1e-9)
    assert found.bound_s <= found.seconds * (1 + 1e-9)
    ends = [max(use.end_s for use in found.uses if use.step == i) for i in range(len(settings))]
    for i, whole in enumerate(sizes):
        uses = [use for use in found.uses if use.step == i]
        assert sum(use.size_bytes for use in uses) == pytest.approx(whole, rel=1e-6, abs=1e-3)
        for use in uses:
            assert use.end_s - use.start_s >= use.size_bytes / 1e10 + 1e-6 - tolerance
            assert use.start_s >= (ends[i - 1] if i else 0.0) - tolerance
    for switch in range(switches):
        mine = [use for use in found.uses if use.switch == switch]
        if mine and not free:
            assert mine[0].start_s >= change - tolerance
        for one, other in pairwise(mine):
            gap = change if settings[one.step] != settings[other.step] else 0.0
            assert other.start_s >= one.end_s + gap - tolerance
    more = overlap(settings, sizes, SwitchLaw(switches + 1, 1e10, change, 1e-6, free))
    if found.proven and more.proven:
        assert more.seconds <= found.seconds * (1 + 1e-6)


def test_a_switch_keeps_a_setting_that_it_sits_out():
    """a, b, a on two switches: one holds a throughout, the other b; nothing waits for a third change."""
    found = overlap([0, 1, 0], [1000.0] * 3, SwitchLaw(2, 1e9, 1e-3, 1e-6))
    assert found.seconds == pytest.approx(1e-3 + 3 * 2e-6)
    assert found.proven


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SwitchLaw(0, 1e9, 0, 0), "switches=0"),
        (lambda: SwitchLaw(1, 1e9, float("inf"), 0), "change_s=inf"),
        (lambda: overlap([0, 1], [1.0], SWOT), "2 settings and 1 sizes"),
        (lambda: overlap([0], [-1.0], SWOT), "size -1 of step 0"),
    ],
)
def test_bad_input_is_one_line(call, said):
    """Field and value."""
    with pytest.raises(ParameterError, match=said):
        call()


def test_what_cannot_be_divided():
    """A node with two partners; more switches than planes; nothing to do."""
    where = opticcl.fabric("ocs:nodes=4")
    with pytest.raises(UnsupportedError, match="several partners in step 0"):
        settings_of(generate("mesh", "all_to_all", where))
    schedule = generate("halving_doubling", "all_reduce", where)
    settings, amounts = settings_of(schedule)
    with pytest.raises(UnsupportedError, match="more switches than the 1 planes"):
        plan_on_switches(where, schedule, overlap(settings, amounts, SWOT))
    assert overlap([], [], SWOT).seconds == 0


@pytest.mark.parametrize("algorithm", ["halving_doubling", "digit_shifts:radices=2x4"])
def test_plans_on_three_switches_are_right_and_possible(algorithm):
    """Divided all_to_alls: data, light, time; not slower than the schedule by more than the rounding of its shares."""
    where = opticcl.fabric("ocs:nodes=8,planes=3,rate=80Gb/s,endpoint_latency=1us,hop_delay=0s")
    schedule = generate(algorithm, "all_to_all", where)
    settings, amounts = settings_of(schedule)
    law = SwitchLaw(3, 1e10, where.reconfiguration_s, 1e-6)
    found = overlap(settings, [10**5 * chunks for chunks in amounts], law)
    plan = Plan(plan_on_switches(where, schedule, found), 800_000)
    assert plan.verify().ok
    times = plan.programme("device", assumptions="published", prepare="early")
    assert check_programme(plan.circuits, times, rules_of(times)).ok
    assert times.total_s <= found.seconds * 1.03


def test_planned_with_switches_that_change_meanwhile():
    """Not slower than all switches together, judged for data, light and time; other fabrics are refused."""
    text = "ocs:nodes=8,planes=4,reconfiguration=20us"
    found = plan_overlapped(text, "all_to_all", "100 KB")
    assert found.plan.verify().ok
    assert found.total_s <= plan_collective(text, "all_to_all", "100 KB", break_evens=False).total_s
    assert found.gap >= 1
    assert "switches that change together are faster" in found.notes[0]
    divided = plan_overlapped("ocs:nodes=9,planes=3,reconfiguration=5us", "all_reduce", "10 MB")
    assert divided.plan.verify().ok
    assert "switch" in divided.segments[0].holds
    assert len(found.regrets) == 2
    assert all(regret.kept_s >= regret.best_s for regret in found.regrets)
    times = found.plan.programme("device")
    assert check_programme(found.plan.circuits, times, rules_of(times)).ok
    with pytest.raises(UnsupportedError, match="--overlap is for a whole ocs"):
        plan_overlapped("ideal:nodes=4", "all_to_all", "1 KB")
