"""Plans of every fabric: bound, gap, segments, regret, break-evens, starts, limits of time, and bad input."""

import pytest
from tests.small_systems import SYSTEMS

import opticcl
from opticcl.errors import ParameterError
from opticcl.plans.compare import compare_plans
from opticcl.plans.planner import plan_collective
from opticcl.plans.search import Searches
from opticcl.plans.shift_laws import held_shifts
from opticcl.simulate.held_links import shift_law

OCS = "ocs:nodes=12,reconfiguration=10us"


@pytest.mark.parametrize("text", [*(text for text, _ in SYSTEMS.values()), "ocs:nodes=6,planes=2", "torus:shape=2x3"])
def test_every_fabric_answers(text):
    """With a plan that is right, a gap, the term that dominates, and segments that make up its time."""
    found = plan_collective(text, "all_reduce", "100 KB", break_evens=False)
    assert found.plan.verify().ok
    assert found.plan.simulate().total_s == pytest.approx(found.total_s, rel=1e-12)
    fastest = opticcl.compile(text, "all_reduce", "100 KB").simulate().total_s
    assert found.total_s <= fastest * (1 + 1e-9)
    assert found.gap >= 1
    assert found.finished
    assert sum(one.total_s for one in found.segments) == pytest.approx(found.total_s)
    assert sum(one.steps for one in found.segments) == found.plan.schedule.num_steps
    assert len(found.regrets) == (2 if found.plan.fabric.reconfiguration_s else 0)
    assert bool(found.regrets) != any("nothing to hold" in note for note in found.notes)
    assert found.record()["dominates"] == found.dominates


def test_regret_is_that_of_the_plan_on_the_changed_machine():
    """Compiled on machines whose changes take half and twice as long."""
    found = plan_collective(OCS, "all_to_all", "1 MB", break_evens=False)
    for regret in found.regrets:
        where = f"ocs:nodes=12,reconfiguration={regret.factor * 10}us"
        kept = opticcl.compile(where, "all_to_all", "1 MB", algorithm=found.plan.algorithm)
        assert regret.kept_s == pytest.approx(kept.simulate().total_s)
        best = opticcl.compile(where, "all_to_all", "1 MB", algorithm=regret.algorithm)
        assert regret.best_s == pytest.approx(best.simulate().total_s, rel=1e-6)
        assert regret.best_s <= regret.kept_s


@pytest.mark.deep
def test_at_a_break_even_both_plans_take_as_long():
    """Sizes and times of a change, within the ratio to which they are located."""
    found = plan_collective(OCS, "reduce_scatter", "100 KB")
    assert found.sizes
    for one in found.sizes:
        times = [
            opticcl.compile(OCS, "reduce_scatter", round(one.at), algorithm=name).simulate().total_s
            for name in (one.below, one.above)
        ]
        assert times[0] == pytest.approx(times[1], rel=0.03)
    assert found.delays
    assert all(one.below != one.above for one in (*found.sizes, *found.delays))


@pytest.mark.parametrize(
    "change",
    [
        {},
        pytest.param({"initial": "warm"}, marks=pytest.mark.deep),
        pytest.param({"reconfiguration_charge": "every_step"}, marks=pytest.mark.deep),
    ],
)
def test_auto_is_as_fast_as_the_planner(change):
    """Links to hold are planned by every search for the fastest: of one message, of several sizes, under other assumptions."""
    where, name = "ocs:nodes=16,reconfiguration=100us,planes=2", "all_to_all"
    assumed = opticcl.assumptions.assumptions("published", **change)
    for size in (1_000, 3_000_000):
        found = plan_collective(where, name, size, assumptions=assumed, break_evens=False)
        auto = opticcl.compile(where, name, size, assumptions=assumed).simulate(assumptions=assumed).total_s
        chosen = Searches(assumptions=assumed).of(opticcl.fabric(where), opticcl.collective.Request(name))
        assert auto == pytest.approx(found.total_s, rel=1e-9)
        assert chosen.timed(size)[0].total_s == pytest.approx(auto, rel=1e-9)
        assert chosen.under(opticcl.assumptions.assumptions("common")).timed(size)[0].total_s == pytest.approx(
            opticcl.compile(where, name, size).simulate().total_s
        )
    (row,) = compare_plans([opticcl.fabric(where)], name, [1_000, 3_000_000], assumptions=assumed).entries
    both = [opticcl.compile(where, name, size, algorithm=row.plan.algorithm) for size in (1_000, 3_000_000)]
    shifts = plan_collective(where, name, 1_500_500, assumptions=assumed, break_evens=False).plan.algorithm
    others = [opticcl.compile(where, name, size, algorithm=shifts) for size in (1_000, 3_000_000)]
    row_s, others_s = (sum(one.simulate(assumptions=assumed).total_s for one in plans) for plans in (both, others))
    assert row_s <= others_s * (1 + 1e-9)


def test_the_law_is_that_of_the_closed_form():
    """Under every set of assumptions."""
    where = opticcl.fabric("ocs:nodes=12,planes=2,control=1us")
    for name in ("common", "published", "wrht", "oddl"):
        for collective in ("all_reduce", "all_to_all"):
            for change in ({"initial": "warm"}, {"control_order": "beside_setting"}, {"compute": "chain"}):
                assumed = opticcl.assumptions.assumptions(name, **change)
                held = held_shifts(where, opticcl.collective.Request(collective), 10**6, assumed)
                plan = opticcl.compile(where, collective, 10**6, algorithm=held.algorithm)
                assert plan.simulate(assumptions=assumed).total_s == pytest.approx(held.seconds, rel=1e-6)


def test_a_start_whose_circuits_stand():
    """An all-gather behind a reduce-scatter saves a change; the last round of a direct exchange serves nothing."""
    before = opticcl.compile(OCS, "reduce_scatter", "1 KB", algorithm="digit_shifts:shifts=1")
    cold, after = (plan_collective(OCS, "all_gather", "1 KB", start=one, break_evens=False) for one in (None, before))
    assert after.total_s <= cold.total_s - 9e-6
    assert "its first circuits stand at the start" in after.notes
    with pytest.raises(ParameterError, match="the start is of ocs with 8 nodes, not of this ocs with 12"):
        plan_collective(OCS, "all_gather", "1 KB", start=opticcl.compile("ocs:nodes=8", "all_gather", "1 KB"))
    other = opticcl.compile("ideal:nodes=12", "all_gather", "1 KB")
    with pytest.raises(ParameterError, match="the start is of ideal"):
        plan_collective(OCS, "all_gather", "1 KB", start=other)


def test_free_changes_and_single_nodes():
    """Every step has its own links; nothing to send takes no time."""
    free = plan_collective("ocs:nodes=9,reconfiguration=0s", "all_to_all", "1 MB", break_evens=False)
    assert any("nothing to hold on ocs" in note for note in free.notes)
    assert free.gap < 1.5
    assert plan_collective("ocs:nodes=1", "all_to_all", "1 MB").total_s == 0


@pytest.mark.parametrize("text", ["ocs:nodes=24", "terarack:nodes=32"])
def test_a_limit_of_time_returns_a_plan_with_its_gap(text):
    """Never nothing."""
    found = plan_collective(text, "all_reduce", "10 MB", time_limit_s=0.0)
    assert found.plan.verify().ok
    assert found.gap >= 1
    assert not found.finished
    assert any("time limit" in note for note in found.notes)
    with pytest.raises(ParameterError, match="time_limit_s=-1"):
        plan_collective(text, "all_reduce", "10 MB", time_limit_s=-1)


def test_never_below_the_bound_of_relays():
    """Neither shifts nor any registered algorithm, with sums that add many arrivals at once."""
    for planes in (1, 3):
        where = opticcl.fabric("ocs", nodes=10, planes=planes)
        for size in (100, 10**9):
            found = plan_collective(where, "all_reduce", size, break_evens=False)
            assert found.total_s >= found.bound_s
    assert shift_law(where, opticcl.assumptions.assumptions("common")).delta_s > 0


@pytest.mark.parametrize("collective", ["all_to_all", "all_gather", "all_reduce"])
@pytest.mark.parametrize("machine", ["nodes=16", "nodes=6,planes=2", "nodes=9,endpoint_latency=5us"])
def test_free_changes_are_rounds_in_line(machine, collective):
    """Where a change takes no time, the rounds of one step have its latency once, and the bound says no more."""
    for assumed in ("common", "published"):
        found = plan_collective(
            f"ocs:{machine},reconfiguration=0s", collective, "1 MB", assumptions=assumed, break_evens=False
        )
        assert 1 <= found.gap < 4
