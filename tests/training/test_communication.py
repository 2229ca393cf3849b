"""Times of messages from compiled and judged plans."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.strategies import fabrics

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, UnknownNameError, UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale, groups, job
from opticcl.ir.task_graph import ProcessGroup
from opticcl.plans import candidate as candidates
from opticcl.plans.search import Searches
from opticcl.training.communication import CommunicationTimes, moved_bytes
from opticcl.verify import judge, verify

SIZES = (0, 1, 4096, 1_000_000, 400_000_000)


def everybody(n):
    """The group of all ranks."""
    return ProcessGroup("all", range(n))


@examples(8)
@given(where=fabrics(16), collective=st.sampled_from(["all_reduce", "all_gather", "all_to_all", "broadcast"]))
def test_every_size_has_the_fastest_plan(where, collective):
    """What `opticcl.compile` finds for each size alone, whatever was asked before."""
    times = CommunicationTimes(where)
    for size in SIZES:
        if where.num_nodes == 1:
            assert times(collective, everybody(1), size) == 0
            continue
        try:
            due = opticcl.compile(where, collective, size).simulate().total_s
        except UnsupportedError:
            with pytest.raises(UnsupportedError):
                times(collective, everybody(where.num_nodes), size)
            return
        assert times(collective, everybody(where.num_nodes), size) == pytest.approx(due, rel=1e-12)


def test_a_larger_message_never_takes_less():
    """The least of lines that rise."""
    times = CommunicationTimes(fabric("oddl", shape=(4, 4)))
    took = [times("all_reduce", everybody(16), size) for size in sorted((*range(0, 10**6, 99_991), 10**8, 10**9))]
    assert took == sorted(took)


@pytest.fixture
def looked(monkeypatch):
    """Runs of steps that were looked at with their circuits: algorithm, parameters, which of its runs."""
    seen, look = [], candidates.costs

    def count_looks(facts, where, assumed):
        for number, cost in enumerate(look(facts, where, assumed)):
            seen.append((facts.plan.schedule.name, str(facts.plan.schedule.parameters), number))
            yield cost

    monkeypatch.setattr(candidates, "costs", count_looks)
    return seen


def test_every_plan_is_looked_at_and_judged_once(looked, monkeypatch):
    """However many messages it carries; the verdict is that of the judge."""
    judged, check = [], judge.check_light
    monkeypatch.setattr(judge, "check_light", lambda plan, **k: judged.append(plan) or check(plan, **k))

    times = CommunicationTimes(fabric("ideal", nodes=8))
    for size in (10, 1000, 10, 10**6, 10**9):
        times("all_reduce", everybody(8), size)
    used = times.used()
    assert looked
    assert len(looked) == len(set(looked))
    assert len(judged) == len(used)
    assert sum(one.messages for one in used) == 5
    assert sum(one.size_bytes for one in used) == 10 + 1000 + 10 + 10**6 + 10**9
    for one in used:
        assert one.verdict == verify(one.plan.circuits)
    assert times.used() == ()


def test_a_wrong_plan_is_told(monkeypatch):
    """The printed RAMP tables do not sum up: the message has a time, the plan is not right."""
    times = CommunicationTimes(
        fabric("ramp:groups=3,racks=3,wavelengths=6"), Searches("ramp:variant=published", assumptions="published")
    )
    assert times("all_reduce", everybody(54), 10**6) > 0
    (used,) = times.used()
    assert not used.verdict.ok


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ideal", "ramp", "sipac", "oddl", "lightpath", "terarack"])
def test_a_group_has_a_fabric_of_its_own_size_and_the_same_rate(name):
    """As the papers count; or a part of the next larger machine."""
    machine = fabric_at_scale(name, 64, 400e9)
    for n in (2, 3, 8, 13, 32):
        home = CommunicationTimes(machine).home(ProcessGroup("part", range(n)))
        assert home.num_nodes == n
        assert home.name == name
        assert home.node_rate_bits_per_s == pytest.approx(400e9)
        assert home.num_machine_nodes < 64
    assert CommunicationTimes(machine).home(everybody(64)) is machine


def test_a_group_keeps_what_is_special_about_the_machine():
    """Parameters that are not its shape."""
    machine = fabric_at_scale("terarack:reconfiguration=1ms", 16)
    assert CommunicationTimes(machine).home(ProcessGroup("part", range(4))).reconfiguration_s == 1e-3


def test_a_group_on_the_machine_is_the_nodes_of_its_ranks():
    """One plan of all columns at once, which share nothing: the time is that of a job on the nodes of one."""
    machine = fabric("torus", shape=(4, 4))
    group = ProcessGroup("column", range(1, 16, 4), 4)
    times = CommunicationTimes(machine, groups="machine")
    due = opticcl.compile(job(machine, group.ranks), "all_reduce", 10**6).simulate().total_s
    assert times("all_reduce", group, 10**6) == pytest.approx(due)
    (used,) = times.used()
    assert used.plan.fabric.node_of_rank.reshape(4, 4).tolist() == np.arange(16).reshape(4, 4).T.tolist()
    assert used.record()["ranks"] == used.record()["groups"] == 4
    with pytest.raises(FabricError, match="has rank 16, but the machine has 16 nodes"):
        times("all_reduce", ProcessGroup("part", (0, 16)), 1)


@pytest.mark.parametrize("name", ["ramp", "sipac", "terarack", "oddl", "lightpath"])
@pytest.mark.parametrize("apart", [1, 8])
def test_groups_of_two_call_at_the_same_time(name, apart):
    """All pairs of 16 nodes have one plan and its time, as neighbours or far apart; a transfer in a pipeline stays alone."""
    machine = fabric_at_scale(name, 16)
    pairs = np.arange(16).reshape(-1, 2, apart).swapaxes(1, 2).reshape(8, 2)
    group = ProcessGroup("data", tuple(pairs[0].tolist()), 8)
    times = CommunicationTimes(machine, groups="machine")
    due = opticcl.compile(groups(machine, pairs), "all_reduce", 10**7).simulate().total_s
    assert times("all_reduce", group, 10**7) == pytest.approx(due)
    times("send_recv", group, 10**7)
    both = {use.record()["collective"]: use for use in times.used()}
    assert {name: use.record()["groups"] for name, use in both.items()} == {"all_reduce": 8, "send_recv": 1}
    assert both["all_reduce"].plan.fabric.node_of_rank.reshape(8, 2).tolist() == pairs.tolist()
    assert all(use.verdict.ok for use in both.values())


@pytest.mark.parametrize("name", ["ramp", "sipac", "terarack"])
def test_a_group_has_a_bound_and_the_time_on_a_fabric_of_its_size(name):
    """The bound is that of a plan on the nodes of one group alone, the other the time that scaled groups take."""
    machine, group, sizes = fabric_at_scale(name, 16), ProcessGroup("row", range(4), 4), (10**4, 10**6, 10**6)
    times, alone = CommunicationTimes(machine, groups="machine"), CommunicationTimes(machine)
    total_s, scaled_s = (sum(each("all_reduce", group, size) for size in sizes) for each in (times, alone))
    bounds = [opticcl.compile(job(machine, range(4)), "all_reduce", size).simulate().lower_bound_s for size in sizes]
    uses = times.used()
    assert {use.group for use in uses} == {"row"}
    assert sum(use.total_s for use in uses) == pytest.approx(total_s)
    assert sum(use.lower_bound_s for use in uses) == pytest.approx(sum(bounds))
    assert sum(use.scaled_s for use in uses) == pytest.approx(scaled_s)
    assert sum(use.scaled_s for use in alone.used()) == pytest.approx(scaled_s)
    assert all(use.gap >= 1 - 1e-9 for use in uses)


def test_a_transfer_moves_what_is_sent():
    """The buffer of a send_recv has a block for each rank: two ranks that send 1 MB share one of 2 MB."""
    machine = fabric("ideal", nodes=4)
    times = CommunicationTimes(machine, Searches(assumptions=assumptions("published", compute="none")))
    rate = machine.node_rate_bits_per_s
    assert times("send_recv", ProcessGroup("pair", (2, 1)), 10**6) >= 8e6 / rate
    assert times("send_recv", ProcessGroup("pair", (2, 1)), 10**9) == pytest.approx(8e9 / rate, rel=1e-2)
    assert times("barrier", everybody(4), 10**9) == times("barrier", everybody(4), 0)


def test_what_must_be_moved():
    """Shares of a message that one rank must send."""
    assert moved_bytes("all_reduce", 4, 100) == 150
    assert moved_bytes("send_recv", 2, 100) == 100
    assert moved_bytes("all_reduce", 1, 100) == 0


# --- algorithms -------------------------------------------------------------------------------------------------------


def test_a_named_algorithm_does_what_it_can():
    """And the fastest does the rest, with the reason told."""
    times = CommunicationTimes(fabric("ideal", nodes=8), Searches("tree", assumptions="published"))
    times("all_reduce", everybody(8), 10**6)
    times("all_to_all", everybody(8), 10**6)
    (reason,) = times.declined()
    assert reason.startswith("all_to_all: ")
    names = {one.plan.schedule.collective.name: one.plan.algorithm for one in times.used()}
    assert names["all_reduce"] == "tree"
    assert names["all_to_all"] != "tree"
    with pytest.raises(UnknownNameError, match="halfing"):
        Searches("halfing_doubling", assumptions="published")


def test_resolution_saves_looking_and_costs_no_more_than_it_says(looked):
    """Plans that could save less than that are not looked at."""
    machine = fabric_at_scale("lightpath", 64)
    exact = [
        CommunicationTimes(machine, Searches(assumptions="published"))("all_reduce", everybody(64), size)
        for size in SIZES
    ]
    num_looks = len(looked)
    coarse = Searches(resolution_s=1e-5, assumptions="published")
    near = [CommunicationTimes(machine, coarse)("all_reduce", everybody(64), size) for size in SIZES]
    for best, found in zip(exact, near, strict=True):
        assert best <= found <= best + 1e-5
    assert len(looked) - num_looks < num_looks
