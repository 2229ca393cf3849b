"""Idle circuits: they stand and carry nothing in a round, are counted as light, and what stands is never set again."""

from dataclasses import replace

import numpy as np
import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.ir import Circuits
from opticcl.ir.circuit_plan import StoredRounds
from opticcl.ir.circuits import concatenate_circuits
from opticcl.plans.plan import Plan
from opticcl.simulate import programme, simulate
from opticcl.simulate.standing import circuit_numbers
from opticcl.verify import verify
from opticcl.verify.time.programme import check_programme, rules_of

ENGINES = [("closed_form", {}), ("flow", {}), ("flow", {"mode": "asynchronous"}), ("device", {})]
FIT = [
    ("terarack:nodes=8", "broadcast", "ring"),
    ("oddl:shape=2x3", "all_reduce", "torus2d"),
    ("lightpath:shape=2x4", "all_reduce", "rotated_rings"),
    ("sipac:radix=3,levels=2", "all_reduce", "dissemination"),
]
"""Plans whose circuits can all stand at the same time."""


def held(plan):
    """The plan with all of its circuits standing in every round; those that carry nothing there are idle."""
    rounds = [plan.rounds(i) for i in range(plan.schedule.num_steps)]
    every = concatenate_circuits([c for of_step in rounds for c in of_step])
    every = every.take(np.unique(circuit_numbers(every), return_index=True)[1])
    return with_rounds(plan, [tuple(beside(c, every) for c in of_step) for of_step in rounds])


def with_rounds(plan, steps):
    """The plan with other circuits."""
    return replace(plan, rounds=StoredRounds(tuple(steps)))


def beside(circuits, every):
    """Circuits of a round, and those of all rounds that are not among them, idle."""
    others = ~np.isin(circuit_numbers(every), circuit_numbers(circuits))
    idle = every.take(others)
    return concatenate_circuits([circuits, replace(idle, transfer=np.full(len(idle), -1, np.int32))])


def plans(case):
    """The plan of a case and the same with everything held."""
    fabric, collective, algorithm = case
    plan = opticcl.compile(fabric, collective, "1 MB", algorithm=algorithm).circuits
    return plan, held(plan)


@pytest.mark.parametrize("case", FIT, ids=lambda case: f"{case[0]}-{case[2]}")
def test_idle_circuits_change_neither_data_nor_transfer_times(case):
    """All is set once, and data moves as before; the judge of time agrees with every engine."""
    plan, holding = plans(case)
    verdict = verify(holding)
    assert verdict.ok, verdict
    assert verdict.circuits > verify(plan).circuits
    assumed = assumptions("common", compute="none", control_charge="on_change", reconfiguration_charge="on_change")
    for engine, options in ENGINES:
        before, after = (simulate(p, 10**6, assumed, engine=engine, **options).timeline for p in (plan, holding))
        if engine != "device" and not options:
            assert after.transfer_s.sum() == pytest.approx(before.transfer_s.sum(), rel=1e-9)
            assert after.reconfiguration_s.sum() == pytest.approx(plan.fabric.reconfiguration_s)
        assert after.total_s <= before.total_s * (1 + 1e-9)
        times = programme(holding, 10**6, assumed, engine=engine, **options)
        assert times.total_s == pytest.approx(after.total_s, rel=1e-9)
        judged = check_programme(holding, times, rules_of(times))
        assert judged.ok, f"{engine}: {judged}"


def test_a_held_graph_pays_one_reconfiguration():
    """A chain tunes the next circuit before each step, unless they all stand."""
    plan, holding = plans(FIT[0])
    assumed = assumptions("common", compute="none")
    changing, standing = (simulate(p, 1000, assumed).timeline for p in (plan, holding))
    assert changing.reconfiguration_s.sum() > 3 * standing.reconfiguration_s.sum()
    assert standing.reconfiguration_s.sum() == plan.fabric.reconfiguration_s


def test_an_idle_circuit_that_clashes_is_refused():
    """Its light is there, whether it carries data or not."""
    plan, holding = plans(FIT[0])
    rounds = holding.rounds(0)[0]
    carried, idle = np.flatnonzero(rounds.transfer >= 0)[0], np.flatnonzero(rounds.transfer < 0)[0]
    twin = rounds.take([carried])
    clash = concatenate_circuits([rounds, replace(twin, transfer=np.full(1, -1, np.int32))])
    steps = [holding.rounds(i) for i in range(plan.schedule.num_steps)]
    wrong = verify(with_rounds(holding, [(clash,), *steps[1:]]))
    assert "wavelength_clash" in {violation.rule for violation in wrong.violations}
    assert idle != carried


def test_an_idle_route_on_a_packet_fabric_is_refused():
    """A route that carries nothing is no light that stands."""
    plan = opticcl.compile("torus:shape=2x2", "all_reduce", "1 MB", algorithm="ring").circuits
    steps = [plan.rounds(i) for i in range(plan.schedule.num_steps)]
    dark = replace(steps[0][0], transfer=np.full(len(steps[0][0]), -1, np.int32))
    wrong = verify(with_rounds(plan, [(dark,), *steps[1:]]))
    assert "transfer_unknown" in {violation.rule for violation in wrong.violations}


def test_transfers_whose_circuits_are_all_idle_are_not_carried():
    """An idle circuit between the same nodes is not one that carries."""
    plan, holding = plans(FIT[2])
    steps = [holding.rounds(i) for i in range(plan.schedule.num_steps)]
    dark = replace(steps[0][0], transfer=np.full(len(steps[0][0]), -1, np.int32))
    wrong = verify(with_rounds(holding, [(dark,), *steps[1:]]))
    assert "transfer_not_carried" in {violation.rule for violation in wrong.violations}


@pytest.mark.parametrize("suffix", [".parquet", ".json", ".csv"])
def test_plan_files_keep_idle_circuits(tmp_path, suffix):
    """Written and read, they are the same circuits."""
    _, holding = plans(FIT[3])
    Plan(holding, 10**6).save(tmp_path / f"plan{suffix}")
    read = opticcl.load(tmp_path / f"plan{suffix}")
    assert read.verify().ok
    read = read.circuits
    for i in range(holding.schedule.num_steps):
        for one, other in zip(holding.rounds(i), read.rounds(i), strict=True):
            assert all(np.array_equal(getattr(one, c), getattr(other, c)) for c in ("transfer", "src", "dst", "hops"))


def test_carrying():
    """Without idle circuits it is the same object."""
    circuits = Circuits.of([0, -1, 1], [0, 1, 2], [1, 2, 0], path=[[0], [1], [2]])
    assert circuits.carrying().transfer.tolist() == [0, 1]
    assert circuits.carrying().hops.tolist() == [0, 2]
    assert circuits.carrying().carrying() is not circuits
    full = circuits.take([0, 2])
    assert full.carrying() is full


@pytest.mark.parametrize("where", ["terarack:nodes=8", "terarack:nodes=9,wavelengths=4", "terarack_torus:shape=4x4"])
def test_a_rule_holds_what_the_first_step_joins(where):
    """Both halves of a chunk of a two-sided ring have circuits from the first step on, and nothing is set again."""
    plan = opticcl.compile(where, "all_reduce", "1 MB", algorithm="two_sided_ring").circuits
    assert verify(plan).ok
    idle = [c for i in range(plan.schedule.num_steps) for c in plan.rounds(i) if (c.transfer < 0).any()]
    assert bool(idle) == (plan.fabric.num_nodes % 2 == 0)
    assumed = assumptions("published", compute="none")
    timeline = simulate(plan, 1000, assumed).timeline
    assert timeline.reconfiguration_s.sum() == plan.fabric.reconfiguration_s
    times = programme(plan, 1000, assumed)
    assert times.total_s == pytest.approx(timeline.total_s, rel=1e-9)
    assert check_programme(plan, times, rules_of(times)).ok


def test_new_pairs_are_not_held():
    """A chain joins other nodes in every step: its circuits are those of the step."""
    plan = opticcl.compile("terarack:nodes=8", "broadcast", "1 MB", algorithm="ring").circuits
    assert all((c.transfer >= 0).all() for i in range(plan.schedule.num_steps) for c in plan.rounds(i))
