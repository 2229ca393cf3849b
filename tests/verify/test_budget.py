"""The power budget: a plan whose light does not close is refused by its own rule, and by no other."""

import pytest

from opticcl import compile
from opticcl.circuits import lower
from opticcl.errors import ParameterError, UnknownNameError, UnsupportedError, VerificationError
from opticcl.fabrics import fabric, job, light_table
from opticcl.ir import CircuitPlan, Circuits
from opticcl.optics.values import optics
from opticcl.plans.plan import Plan
from opticcl.schedule import generate
from opticcl.verify.light.budget import RULE, check_budget


def test_light_that_closes_is_accepted():
    """ODDL with switches of 8 ports needs no amplifier (section 3.C); the margin is reported."""
    verdict = compile("oddl:shape=8x8", "all_reduce", "1MB", algorithm="halving_doubling").verify(budget="literal")
    assert verdict.ok
    assert any("least margin 8.1 dB" in note for note in verdict.notes)


def test_light_that_does_not_close_is_refused():
    """Switches of 32 ports need an amplifier; no other rule is broken."""
    plan = compile("oddl:shape=32x32", "all_reduce", "1MB", algorithm="halving_doubling")
    assert plan.verify().ok
    verdict = plan.verify(budget="literal")
    assert {v.rule for v in verdict.violations} == {RULE}
    first = verdict.violations[0]
    assert (first.step, first.round, first.count) == (0, 0, 1024)
    assert "10.1 dB short" in first.found
    with pytest.raises(VerificationError, match=RULE):
        verdict.raise_if_bad()
    assert plan.verify(budget="amplified").ok


def test_only_the_long_paths_are_refused():
    """A mutant: one circuit takes the long way round the ring; only its power is too low."""
    made = fabric("terarack:nodes=16")
    plan = lower(made, generate("ring", "all_reduce", made))
    values = optics(light_table("terarack"), "typical")
    assert not check_budget(plan, values).violations

    def rounds(step):
        (right,) = plan.rounds(step)
        row = 3
        back = [(int(right.src[row]) - 1 - k) % 16 + 16 for k in range(15)]  # counter-clockwise, all but one segment
        hops = [back if i == row else right.path(i).tolist() for i in range(len(right))]
        ends = [sum(map(len, hops[:i])) for i in range(len(hops) + 1)]
        port = right.port.copy()
        port[row] = 1
        flat = [hop for path in hops for hop in path]
        return (Circuits.of(right.transfer, right.src, right.dst, port, right.wavelength_lo, 1, (flat, ends)),)

    mutant = Plan(CircuitPlan(made, plan.schedule, rounds), 1000)
    assert mutant.verify().ok  # the ring is free for it
    verdict = mutant.verify(budget=values)
    assert {(v.rule, v.count) for v in verdict.violations} == {(RULE, 1)}
    assert "through 1 modulator, 15 interface" in verdict.violations[0].where


def test_the_floor_on_the_path_is_a_rule_too():
    """RAMP: enough power at the detector, too little behind the filter; the place is reported."""
    plan = compile("ramp", "send_recv", "1MB")
    (violation,) = check_budget(plan.circuits, optics(light_table("ramp"), "typical")).violations
    assert "-20 dBm all along the path" in violation.expected
    assert violation.found.startswith("-21.2 dBm behind the filter")
    assert not check_budget(plan.circuits, optics(light_table("ramp"), "fitted")).violations


def test_circuits_that_cannot_be_are_not_followed():
    """A broken path has no power to add up: its own rule is reported."""
    made = fabric("lightpath:shape=2x2")
    plan = lower(made, generate("ring", "all_reduce", made))

    def rounds(step):
        return tuple(Circuits.of(c.transfer, c.src, c.dst, c.port, c.wavelength_lo, 1) for c in plan.rounds(step))

    verdict = Plan(CircuitPlan(made, plan.schedule, rounds), 1000).verify(budget="typical")
    assert {v.rule for v in verdict.violations} == {"path_broken"}
    assert any("not checked" in note for note in verdict.notes)


def test_jobs_are_followed_on_the_machines_nodes():
    """Two neighbours close, two opposite corners do not."""
    machine = fabric("lightpath:shape=4x8")
    values = optics(light_table("lightpath"), "typical", {"launch": 0.0})

    def violations(nodes):
        part = job(machine, nodes)
        return check_budget(lower(part, generate("ring", "all_reduce", part)), values).violations

    assert not violations([0, 1])
    assert {v.rule for v in violations([0, 31])} == {RULE}


def test_steps_of_a_class_are_counted_and_followed_once():
    """The steps of a ring are identical; the circuits of all of them are counted."""
    made = fabric("terarack:nodes=16")
    report = check_budget(lower(made, generate("ring", "all_reduce", made)), optics(light_table("terarack"), "typical"))
    assert report.circuits == 2 * 15 * 16


@pytest.mark.parametrize(
    ("spec", "preset", "error", "says"),
    [
        ("ramp:groups=2,racks=2,wavelengths=2", "literal", ParameterError, "no launch"),
        ("oddl:shape=4", "best", UnknownNameError, "known: literal"),
        ("ideal:nodes=4", "literal", UnsupportedError, "no light path"),
    ],
)
def test_a_budget_that_cannot_be_reckoned_is_refused(spec, preset, error, says):
    """Missing values, unknown presets, electrical networks."""
    with pytest.raises(error, match=says):
        compile(spec, "all_reduce", "1MB").verify(budget=preset)
