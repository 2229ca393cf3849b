"""What `verify` does by default, before it begins, and with what it has said before."""

import pytest

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, light_table
from opticcl.ir import CircuitPlan, Circuits
from opticcl.optics.values import optics
from opticcl.schedule import generate
from opticcl.verify import data, verify


def ring(specification):
    """An all_reduce around it."""
    made = fabric(specification)
    return lower(made, generate("ring", "all_reduce", made))


def never(*_):
    """Work that must not begin."""
    raise AssertionError("it has begun")


def test_symmetries_are_used_and_sets_are_not_compared_unless_asked(monkeypatch):
    """The verdict says how the chunks were judged."""
    monkeypatch.setattr(data, "SYMMETRY_FROM", 0)
    plan = ring("terarack:nodes=16")
    assert verify(plan) == verify(plan, every_chunk=False, exact=False)
    assert verify(plan) != verify(plan, every_chunk=True)
    assert verify(plan) != verify(plan, exact=True)


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
    assert before
    assert verify(wrong, num_chunks=1, budget=values).notes == (
        *before, "power budget: not checked, since circuits are wrong"
    )  # fmt: skip
    assert verify(wrong, num_chunks=1, emulate=True).notes == (
        *before, "emulated: no light, since circuits do not exist"
    )  # fmt: skip
