"""Where an all_to_all on a RAMP is cut: shares of whole slots go directly, the rest in two steps."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.assumptions import assumptions
from opticcl.circuits import ramp as rule
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.plans.compare import compare_plans
from opticcl.plans.direct_parts import NEAR, algorithm_in_parts, cut_of
from opticcl.plans.plan import compile
from opticcl.plans.planner import plan_collective

IN_LINE = replace(assumptions("published"), rounds="in_line", compute="none")
SHAPES = [(3, 2, 6), (5, 3, 10), (4, 4, 8), (2, 1, 4), (32, 32, 64)]


def ramp(shape, **more):
    """A machine of x groups, J racks and L places."""
    return fabric("ramp", **dict(zip(("groups", "racks", "wavelengths"), shape, strict=True)), **more)


def slots(shape, size, direct, rest):
    """Slots of shares of a message, with the block that takes fewest, by whole numbers alone."""
    x, racks, places = shape
    n = x * racks * places
    relayed = [
        p * ceil(size * rest / (950 * x * p)) + racks // p * places // x * ceil(size * rest * x * p / (950 * n))
        for p in range(1, racks + 1)
        if racks % p == 0
    ]
    return n // x * ceil(size * direct / (950 * n)) + min(relayed)


@examples(40)
@given(st.sampled_from(SHAPES), st.floats(0.3, 200), st.integers(2, 40))
def test_the_largest_share_of_whole_slots(shape, full, most):
    """The least number of parts that is near the exact cut, or else that of fewest slots; every other number tried."""
    machine = ramp(shape)
    n = machine.num_nodes
    size = round(full * 950 * n)
    whole, cut = size // (950 * n), cut_of(machine, size, most)
    if not whole:
        assert cut is None
        return
    exact = slots(shape, size, Fraction(950 * n * whole, size), 1 - Fraction(950 * n * whole, size))
    due = {}
    for parts in range(2, most + 1):
        direct = 950 * n * whole * parts // size
        if 0 < direct < parts:
            due[parts] = direct, slots(shape, size, Fraction(direct, parts), 1 - Fraction(direct, parts))
    if not due:
        assert cut is None
        return
    near = [parts for parts, (_, many) in due.items() if many <= exact * (1 + NEAR)]
    best = near[0] if near else min(due, key=lambda parts: due[parts][1])
    assert (cut.parts, cut.direct, cut.slots, cut.exact_slots) == (best, *due[best], exact)


@pytest.mark.parametrize("full", [0.99, 1, 3])
def test_no_cut(full):
    """Where no slot is filled, or all are."""
    assert cut_of(ramp((4, 4, 8)), 950 * 128 * full) is None
    assert cut_of(ramp((4, 4, 8), slot=0.0), 950 * 128 * 1.5) is None


@pytest.mark.parametrize(("size", "parts", "due_us"), [(63e6, 70, 44.92), (316e6, 62, 213.92), (1e9, 206, 663.26)])
def test_the_largest_machine_is_near_the_exact_cut(size, parts, due_us):
    """65,536 nodes: at most 0.2 % slower than blocks that are cut at any byte."""
    cut = cut_of(ramp((32, 32, 64)), size)
    assert cut.parts == parts
    assert (cut.exact_slots + 140) * 0.02 == pytest.approx(due_us)
    assert (cut.slots + 140) * 0.02 == pytest.approx(due_us, rel=NEAR)


WHERE = ramp((4, 4, 8), slot=2e-6)  # slots so long that a step costs less than what they round up
SIZE = round(1.03 * WHERE.slot_payload_bytes * 128)


def test_a_search_finds_the_cut():
    """`auto`, a comparison and `plan` take it where it is the fastest, at the time of its slots."""
    name = algorithm_in_parts(WHERE, Request("all_to_all"), SIZE, IN_LINE)
    plan = compile(WHERE, "all_to_all", SIZE, assumptions=IN_LINE)
    assert plan.algorithm == name
    assert plan.verify().ok
    seconds = plan.simulate(assumptions=IN_LINE).total_s
    others = [compile(WHERE, "all_to_all", SIZE, algorithm=f"skewed_exchange:{call}") for call in
              ("steps=1", "block=1", "block=2", "block=4", "classes=2", "classes=4")]  # fmt: skip
    assert all(seconds < other.simulate(assumptions=IN_LINE).total_s for other in others)
    (entry,) = compare_plans([WHERE], "all_to_all", [SIZE], assumptions=IN_LINE).entries
    assert entry.plan.algorithm == name
    assert plan_collective(WHERE, "all_to_all", SIZE, assumptions=IN_LINE, break_evens=False).plan.algorithm == name


def test_a_cut_that_does_not_pay():
    """Rounds that wait for each other, or a rest that takes more than a slot in one step, leave the block whole."""
    apart, wanted = replace(IN_LINE, rounds="apart"), Request("all_to_all")
    assert algorithm_in_parts(ramp((32, 32, 64)), wanted, 63e6, apart) is None
    assert algorithm_in_parts(ramp((32, 32, 64)), wanted, 63e6, assumptions("common")) is None
    assert algorithm_in_parts(ramp((32, 32, 64)), wanted, 100e6, IN_LINE) is None
    assert algorithm_in_parts(ramp((32, 32, 64)), Request("all_gather"), 63e6, IN_LINE) is None
    assert algorithm_in_parts(fabric("sipac"), wanted, 63e6, IN_LINE) is None


def test_a_plan_of_steps_that_are_not_listed(monkeypatch):
    """`plan` says how many circuits they have, as of those that are."""
    listed = plan_collective(WHERE, "all_to_all", SIZE, assumptions=IN_LINE, break_evens=False)
    monkeypatch.setattr(rule, "MOST_LISTED", 0)
    defined = plan_collective(WHERE, "all_to_all", SIZE, assumptions=IN_LINE, break_evens=False)
    assert [one.holds for one in listed.segments] == [one.holds for one in defined.segments]


def test_break_evens_are_of_families():
    """The cut changes with every size, so it is no break-even."""
    found = plan_collective(WHERE, "all_to_all", SIZE, assumptions=IN_LINE)
    names = [name for one in found.sizes for name in (one.below, one.above)]
    assert "skewed_exchange:parts=..." in names
    assert not [name for name in names if "direct=" in name]
