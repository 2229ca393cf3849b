"""The interval programme: published cases, exhaustive search, monotony, its bound, and plans that the judge accepts."""

from itertools import combinations, pairwise
from math import inf, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.errors import ParameterError
from opticcl.plans.held_sets import factorisations
from opticcl.plans.held_shifts import fastest_held
from opticcl.schedule.digit_shifts import COLLECTIVES, shift_steps
from opticcl.simulate.held_links import ShiftLaw, bound_s

PORT = 8 / 800e9  # s/byte
KIB = 1024


def law(change_s: float, *, first_free: bool = True) -> ShiftLaw:
    """One port of 800 Gb/s, 0.5 us a step and 0.5 us a link."""
    return ShiftLaw(0.5e-6, 0.5e-6, PORT, change_s, first_free=first_free)


@pytest.mark.parametrize(
    ("size", "at_1us", "at_10us", "at_100us"),
    [
        (KIB, (9.55, 2), (20.07, 1), (34.82, 0)),
        (KIB**2, (40.59, 8), (74.69, 2), (183.4, 1)),
        (16 * KIB**2, (290.2, 62), (437.6, 13), (937.7, 3)),
        (256 * KIB**2, (2767, 62), (3325, 62), (6012, 13)),
    ],
)
def test_reference_values_of_64_nodes(size, at_1us, at_10us, at_100us):
    """All to all, the first links stand: time [us] and changes."""
    for change_us, (due_us, changes) in ((1, at_1us), (10, at_10us), (100, at_100us)):
        found = fastest_held("all_to_all", 64, size, law(change_us * 1e-6))
        assert found.seconds * 1e6 == pytest.approx(due_us, rel=1e-3)
        assert found.changes == changes
        assert found.proven


def exhaustive_s(collective: str, n: int, size: int, of: ShiftLaw) -> float:
    """Over all factorisations, all segmentations and all shifts."""
    best = inf
    for radices in factorisations(n):
        weights = [prod(radices[:i]) for i in range(len(radices) + 1)]
        digit, value = shift_steps(collective, radices)
        adding = {"reduce_scatter": len(digit), "all_reduce": len(digit) // 2}.get(collective, 0)

        def step_s(i, shift, *, digit=digit, value=value, weights=weights, radices=radices, adding=adding):
            due = int(value[i] * weights[digit[i]])
            h = next((h for h in range(1, n) if h * shift % n == due), 0)
            moved = size / (radices[digit[i]] if collective == "all_to_all" else weights[digit[i] + 1])
            sums = moved * of.sums_s_per_byte * (i < adding)
            return of.alpha_s + (of.delta_s + of.s_per_byte * moved) * h + sums if h else inf

        steps = len(digit)
        assert steps <= 8
        for number in range(steps):
            for cuts in combinations(range(1, steps), number):
                ends = (0, *cuts, steps)
                whole = (len(ends) - 1 - of.first_free) * of.change_s if len(ends) - 1 - of.first_free else 0.0
                for first, last in pairwise(ends):
                    whole += min(sum(step_s(i, s) for i in range(first, last)) for s in range(1, n))
                best = min(best, whole)
    return best


@pytest.mark.parametrize(
    ("collective", "n"),
    [("all_to_all", 8), ("all_to_all", 9), ("reduce_scatter", 6), ("all_gather", 7), ("all_reduce", 5)],
)
@examples(6)
@given(
    size=st.sampled_from([1, 1000, 10**6, 10**8]), change=st.sampled_from([0.0, 1e-6, 2e-5, 1e-3]), cold=st.booleans()
)
def test_as_fast_as_exhaustive_search(collective, n, size, change, cold):
    """8 steps or fewer."""
    of = ShiftLaw(0.7e-6, 0.4e-6, PORT, change, 3 / 1.5e12, not cold)
    assert fastest_held(collective, n, size, of).seconds == pytest.approx(
        exhaustive_s(collective, n, size, of), rel=1e-12
    )


@examples(12)
@given(
    collective=st.sampled_from(COLLECTIVES),
    n=st.sampled_from([2, 6, 12, 16, 30]),
    size=st.integers(1, 10**9),
    change=st.floats(0, 1e-3),
    more=st.floats(1, 100),
)  # fmt: skip
def test_monotone_in_the_change_and_cold_is_one_change_more_at_most(collective, n, size, change, more):
    """And never below the bound."""
    slow = fastest_held(collective, n, size, law(change * more)).seconds
    warm = fastest_held(collective, n, size, law(change))
    cold = fastest_held(collective, n, size, law(change, first_free=False)).seconds
    assert warm.seconds <= slow * (1 + 1e-12)
    assert warm.seconds <= cold <= (warm.seconds + change) * (1 + 1e-12)
    assert warm.seconds >= bound_s(collective, n, size, law(change))[0] * (1 - 1e-12)


@pytest.mark.parametrize("change", ["0s", "1us", "100us"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_judge_accepts_the_plan_at_the_time_that_was_computed(collective, change):
    """Data, light and the closed form on 24 nodes with two planes, with sums."""
    where = opticcl.fabric(f"ocs:nodes=24,planes=2,reconfiguration={change}")
    of = ShiftLaw(0.5e-6, 0.5e-6, PORT / 2, where.reconfiguration_s, 3 / 1.555e12)
    for size in (1000, 10**7):
        found = fastest_held(collective, 24, size, of)
        plan = opticcl.compile(where, collective, size, algorithm=found.algorithm)
        assert plan.verify().ok
        assert plan.simulate(assumptions="published").total_s == pytest.approx(found.seconds, rel=1e-6)


def test_how_far_the_bound_is():
    """7 nodes: a standing ring passes 21 links in 6 steps, the bound 6 in one; direct pairs take a step each, or a round."""
    ring, direct = law(inf), law(0.0)
    found = fastest_held("all_to_all", 7, 10**6, ring)
    assert found.seconds - bound_s("all_to_all", 7, 10**6, ring)[0] == pytest.approx(
        5 * ring.alpha_s + 15 * ring.delta_s
    )
    seconds, what, changes = bound_s("all_to_all", 7, 10**9, direct)
    assert fastest_held("all_to_all", 7, 10**9, direct).seconds == pytest.approx(
        seconds + 5 * (direct.alpha_s + direct.delta_s)
    )
    assert (what, changes) == ("bytes through a port", 5)


def test_what_stands_is_not_charged():
    """A ring that another collective has left."""
    cold, stands = law(1e-3, first_free=False), ShiftLaw(0.5e-6, 0.5e-6, PORT, 1e-3, stands=(1,))
    one, other = (fastest_held("all_to_all", 16, 10**5, of) for of in (cold, stands))
    assert one.seconds - other.seconds == pytest.approx(1e-3)
    assert other.shifts[0] == 1


def test_a_delay_without_end():
    """Warm: one set of links; cold, or not a number: one line."""
    assert fastest_held("all_gather", 12, 1000, law(inf)).changes == 0
    with pytest.raises(ParameterError, match="take forever to set"):
        fastest_held("all_gather", 12, 1000, law(inf, first_free=False))
    for value in (-1.0, np.nan):
        with pytest.raises(ParameterError, match="change_s"):
            law(value)
    with pytest.raises(ParameterError, match="broadcast has no shifts to hold"):
        fastest_held("broadcast", 8, 1000, law(0.0))


def test_a_limit_of_time_returns_the_best_so_far():
    """With its gap, and not called proven."""
    found = fastest_held("all_to_all", 4096, 2**24, law(1e-5), time_limit_s=0.0)
    assert not found.proven
    assert found.seconds >= bound_s("all_to_all", 4096, 2**24, law(1e-5))[0]


def test_a_limit_of_time_that_is_not_met_changes_nothing():
    """Factorisations are tried some at a time then, and what was best among earlier ones is remembered."""
    for collective in COLLECTIVES:
        for size in (0, KIB**2):
            limited = fastest_held(collective, 256, size, law(3e-6), time_limit_s=1e6)
            assert limited == fastest_held(collective, 256, size, law(3e-6))
