"""Parts that work at a share of their rate, and switches of LIGHTPATH that stand still."""

from __future__ import annotations

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Condition, Fabric
from opticcl.ir.occupied import conditions_as_text, parse_conditions
from opticcl.operations.faults.answers import Healthy, answer, recovery_parameters
from opticcl.operations.faults.residual import closed_set, residual
from opticcl.plans.plan import Plan, compile
from opticcl.verify.data.cut import check_cut
from opticcl.verify.time.programme import check_programme, rules_of

PUBLISHED = assumptions("published", compute="none")


def on(where: Fabric, plan: Plan) -> Plan:
    """The circuits of a plan on another fabric."""
    return Plan(CircuitPlan(where, plan.schedule, plan.circuits.rounds), plan.size_bytes)


# --- texts ------------------------------------------------------------------------------------------------------------


def test_a_text_names_the_share() -> None:
    """And is read again; a fabric with weak parts is equal by value, and weak parts add up with dead ones."""
    where = fabric("sipac:radix=3,levels=2")
    weak = [Condition("switch", 1, "weak", 0.25), Condition("switch", 2, "weak", 0.0625)]
    assert conditions_as_text(weak) == "switch:1:weak=0.25+switch:2:weak=0.0625"
    assert parse_conditions("switch:2:weak=0.0625+switch:1:weak=.25", where.inventory(), "test") == tuple(weak)
    both = where.without(weak).without([Condition("comb_laser", 3)])
    assert both == where.without([Condition("comb_laser", 3), *weak])


# --- times ------------------------------------------------------------------------------------------------------------


WEAK = {
    "terarack:nodes=4,wavelengths=2": "fibre:0",
    "sipac:radix=3,levels=2": "switch:0",
    "oddl:shape=4x4": "transmitter:1",
    "lightpath:shape=3x3": "laser:0",
    "ramp:groups=2,racks=2,wavelengths=2": "node:0",
}


@pytest.mark.parametrize("spec", WEAK)
def test_what_passes_a_weak_part_takes_longer(spec: str) -> None:
    """A plan of which one circuit passes a part at a quarter: its data take four times as long."""
    whole = fabric(spec)
    where = fabric(spec, failed=f"{WEAK[spec]}:weak=0.25")
    plan = compile(whole, "all_gather", 76_000_000, algorithm="ring")
    slow = on(where, plan)
    slow.verify().raise_if_bad()
    carried = [
        where.wavelengths_carried(circuits) / circuits.wavelength_n
        for i in range(3)
        for circuits in plan.circuits.rounds(i)
    ]
    shares = np.concatenate(carried)
    assert set(shares.tolist()) == {0.25, 1.0}
    for engine in ("closed_form", "flow"):
        once, late = (one.simulate(engine=engine, assumptions=PUBLISHED).total_s for one in (plan, slow))
        assert 3.5 < late / once <= 4, engine


def test_the_time_of_a_plan_that_does_not_know_a_weak_part_is_refused() -> None:
    """Mutant: times of the whole machine on one with a weak fibre. By name; its own times are accepted."""
    whole = fabric("terarack:nodes=4,wavelengths=2")
    weak = fabric("terarack:nodes=4,wavelengths=2", failed="fibre:1:weak=0.5")
    plan = compile(whole, "all_reduce", 4_000_000, algorithm="ring")
    slow = on(weak, plan)
    for other, laws in ((plan, {"too_short"}), (slow, set())):
        programme = other.programme(assumptions=PUBLISHED)
        found = {
            violation.law for violation in check_programme(slow.circuits, programme, rules_of(programme)).violations
        }
        assert found & {"too_short"} == laws


def test_rates_of_weak_parts_are_bounds() -> None:
    """A comb at 0.4 leaves its port 0.4 of its lines, and those who hear them; a weak laser its share of one."""
    whole = fabric("sipac:radix=3,levels=2")
    left = residual(whole.without([Condition("comb_laser", 2, "weak", 0.4)]))
    assert np.allclose(left.sent, residual(whole).sent * np.where(np.arange(9) == 1, 0.7, 1.0))
    heard = np.where(
        np.isin(np.arange(9), [0, 2]), 1 - 0.6 * 53 / 212, 1.0
    )  # lines of one channel come from node 1 alone
    assert np.allclose(left.received, residual(whole).received * heard)
    tiles = residual(fabric("lightpath:shape=2x3,lasers=4,failed=laser:5:weak=0.25+photodiode:8"))
    assert tiles.sent.tolist() == [4, 3.25, 4, 4, 4, 4]
    assert tiles.received.tolist() == [4, 4, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("part", "answers"),
    [
        pytest.param("comb_laser:3:weak=0.9", {"kept"}, marks=pytest.mark.deep),
        ("comb_laser:3:weak=0.2", {"reassigned", "rescheduled", "packed", "shrunk"}),
    ],
)
def test_a_weak_part_is_kept_or_left_out(part: str, answers: set[str]) -> None:
    """The plan goes on where little is lost, without any recovery; else one that does without the part."""
    whole = fabric("sipac:radix=3,levels=2,wavelengths=12")
    before = Healthy(whole, Request("all_reduce"), 10**8, "auto", assumptions("common"), recovery_parameters())
    report = answer(before, parse_conditions(part, whole.inventory(), "test"))
    assert report.answer in answers
    assert report.ok
    assert report.ratio is not None
    assert report.ratio >= 1
    assert (report.recovery.total_s == 0) == (report.answer == "kept")
    dead = answer(before, [Condition("comb_laser", 3)])
    assert report.work >= dead.work


# --- switches of LIGHTPATH that are stuck -----------------------------------------------------------------------------


def test_a_stuck_switch_of_a_tile_passes_what_agrees_with_it() -> None:
    """The switches from tile 1 east stand for light that comes from the west, or for the lasers of their tile."""
    edge = 2  # of those that do not leave the grid: tile 0 east and south, then tile 1 east
    east, own = ([0, 4], [4])
    circuits = Circuits.of([0, 1], [0, 1], [2, 2], 0, 0, 1, (np.array(east + own), np.array([0, 2, 3])))
    refused = {}
    for setting in range(5):
        where = fabric(f"lightpath:shape=3x3,waveguides=4,failed=mzi:{edge}:stuck={setting}")
        refused[setting] = [row for fault in where.part_faults(circuits) for row in fault.circuits.tolist()]
    assert refused == {0: [1], 1: [0, 1], 2: [0, 1], 3: [0, 1], 4: [0]}


@pytest.mark.parametrize("setting", [0, 4])
def test_plans_go_around_a_stuck_switch(setting: int) -> None:
    """Circuits that agree with it stay; a plan of the whole machine is refused by name."""
    spec = "lightpath:shape=3x3,waveguides=4"
    where = fabric(spec, failed=f"mzi:2:stuck={setting}")
    plan = compile(where, "all_to_all", "1 MB", algorithm="mesh")
    plan.verify().raise_if_bad()
    before = compile(spec, "all_to_all", "1 MB", algorithm="mesh")
    found = on(where, before).verify()
    assert {violation.rule for violation in found.violations} == {"part_failed"}
    hops = plan.circuits.rounds(0)[0].hops
    assert (hops == 4).any()  # a switch that is dead would carry none


def test_a_stuck_switch_cuts_a_line_only_where_nothing_passes() -> None:
    """On a line of tiles: light of tile 0 passes the switch of tile 1, that of tile 1 does not; the judge agrees."""
    passes = fabric("lightpath:shape=1x4,waveguides=2,lasers=2,failed=mzi:1:stuck=0")
    assert closed_set(passes) is None
    assert passes.linked(np.array([0, 1]), np.array([2, 2])).tolist() == [True, False]
    shut = fabric("lightpath:shape=1x4,waveguides=2,lasers=2,failed=mzi:1:stuck=1")
    closed = closed_set(shut)
    assert closed is not None
    assert not check_cut(shut, closed)
    assert [violation.rule for violation in check_cut(passes, closed)] == ["cut_open"]
