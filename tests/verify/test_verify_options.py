"""What `verify` does by default, before it begins, and with what it has said before."""

import pytest

from opticcl.circuits import lower
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric, light_table
from opticcl.ir import CircuitPlan, Circuits
from opticcl.optics.values import optics
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.light import emulated


def ring(specification):
    """An all_reduce around it."""
    made = fabric(specification)
    return lower(made, generate("ring", "all_reduce", made))


def never(*_):
    """Work that must not begin."""
    raise AssertionError("it has begun")


def test_options_of_former_versions_do_nothing():
    """Every verdict is exact, and on all chunks; it says how they were judged."""
    plan = ring("terarack:nodes=256")
    assert verify(plan) == verify(plan, every_chunk=True) == verify(plan, exact=True)
    assert verify(plan).how == "one of 256 chunks played, which stand for all by translation"


def test_light_that_no_one_can_follow_is_refused_first():
    """Before data or light is looked at."""
    with pytest.raises(UnsupportedError):
        verify(ring("torus:shape=2x2"), emulate=True, progress=never)


def test_notes_of_the_judges_before_stay():
    """Of the data, beside those of the power budget and of the second judge of light, which judge nothing here."""
    plan = ring("lightpath:shape=2x2")
    values = optics(light_table("lightpath"), "typical")

    def broken(step):
        return tuple(Circuits.of(c.transfer, c.src, c.dst, c.port, c.wavelength_lo, 1) for c in plan.rounds(step))

    wrong = CircuitPlan(plan.fabric, plan.schedule, broken)
    before = verify(wrong, num_chunks=1).notes
    assert before[0] == "sample of seed 0"
    assert verify(wrong, num_chunks=1, budget=values).notes == (
        *before, "power budget: not checked, since circuits are wrong"
    )  # fmt: skip
    assert verify(wrong, num_chunks=1, emulate=True).notes == (
        *before, "emulated: no light, since circuits do not exist"
    )  # fmt: skip


def test_light_of_few_signals_is_followed_in_passing(monkeypatch):
    """By plans, not by the judge of a search; exactly up to the number of signals, and whatever the notes."""
    plan = compile("lightpath:shape=2x2", "all_gather", "1 KB", algorithm="ring")
    signals = sum(
        int(c.wavelength_n.sum()) for s in plan.schedule.step_classes() for c in plan.circuits.rounds(s.start)
    )
    assert signals > sum(len(plan.schedule.step(s.start)) for s in plan.schedule.step_classes())
    assert not verify(plan.circuits).emulated
    for most, due in ((signals, True), (signals - 1, False)):
        monkeypatch.setattr(emulated, "FEW_SIGNALS", most)
        found = plan.verify()
        assert (found.ok, found.emulated, found.record()["checked"]["emulated"]) == (True, due, due)
        assert found.notes == verify(plan.circuits).notes
        assert plan.verify(emulate="always").emulated
        assert plan.verify(emulate=True) == plan.verify(emulate="always")
        assert not plan.verify(emulate="never").emulated
        assert plan.verify(emulate=False) == plan.verify(emulate="never")
    with pytest.raises(ParameterError, match="emulate='often'; try auto, always or never"):
        plan.verify(emulate="often")


def test_a_circuit_that_takes_a_share_of_a_port_is_one_signal():
    """Of an optical circuit switch, whose circuits of a round share the links that they pass."""
    assert compile("ocs:nodes=8,planes=2", "all_to_all", "1 KB", algorithm="digit_shifts").verify().emulated


@pytest.mark.parametrize("specification", ["torus:shape=2x2", "sip_ring:nodes=4", "ideal:nodes=4"])
def test_a_machine_without_elements_is_verified_all_the_same(specification):
    """In passing; who asks for it is refused."""
    plan = compile(specification, "all_gather", "1 KB", algorithm="ring")
    found = plan.verify()
    assert found.ok
    assert not found.emulated
    with pytest.raises(UnsupportedError):
        plan.verify(emulate="always")


def test_large_machines_are_not_followed_in_passing(monkeypatch):
    """However few signals a plan has."""
    plan = compile("terarack:nodes=4", "all_gather", "1 KB", algorithm="ring")
    ports = plan.fabric.netlist().num_inputs
    for most, due in ((ports, True), (ports - 1, False)):
        monkeypatch.setattr(emulated, "FEW_INPUTS", most)
        assert plan.verify().emulated is due


def test_what_the_first_judge_refuses_is_not_followed_in_passing():
    """And what he accepts is refused if light does not arrive."""
    plan = compile("terarack:nodes=4,wavelengths=4", "all_gather", "1 KB", algorithm="ring")

    def broken(step):
        return tuple(
            Circuits.of(c.transfer, c.src, c.dst, c.port, c.wavelength_lo, 9) for c in plan.circuits.rounds(step)
        )

    wrong = CircuitPlan(plan.fabric, plan.schedule, broken)
    assert verify(wrong, emulate="auto") == verify(wrong)


def test_the_second_judge_refuses_in_passing(monkeypatch):
    """A plan that the first one would let pass."""
    from tests.verify.test_one_signal import plan_of

    from opticcl.verify.light.circuits import CircuitsReport

    wrong = plan_of([(0, 0), (1, 0)], chunks=(0, 1))
    monkeypatch.setattr("opticcl.verify.check_light", lambda *_, **__: CircuitsReport((), 2, ()))
    found = verify(wrong, emulate="auto")
    assert "setting_clash" in {violation.rule for violation in found.violations}
    assert found.emulated
