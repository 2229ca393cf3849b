"""Bounds: values by hand, and that no schedule is found below them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.synthesis.helpers import wafer

from opticcl.collective import Request
from opticcl.synthesis.bounds import multicast_bounds, reduction_bounds, tightest
from opticcl.synthesis.cuts import cuts
from opticcl.synthesis.model import solve_multicast
from opticcl.synthesis.problem import registered_problem
from opticcl.synthesis.reduction import solve_reduction
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.symmetric import translation_orbits


def spread_bound(light, name):
    """The tightest bound of a collective with one chunk a rank."""
    problem = registered_problem(Request(name), light.num_ranks, 1)
    return tightest(list(multicast_bounds(light, problem.before, problem.after)))


@pytest.mark.parametrize(
    ("shape", "lasers", "waveguides", "name", "bound", "rounds"),
    [
        ("2x4", 7, 1, "all_gather", "cut reach", 2),  # 4 right of the middle need 4 pieces each: 16 > 2 edges x 7
        ("2x4", 1, 1, "all_to_all", "cut", 8),  # 16 blocks over 2 edges
        ("2x4", 1, 2, "all_to_all", "receives", 7),
        ("4x4", 3, 1, "all_to_all", "cut", 6),  # 64 over 4 edges x 3
        ("4x4", 2, 40, "broadcast", "reach", 3),  # 1, 3, 9, 27
        ("2x4", 2, 40, "scatter", "sends", 4),
    ],
)
def test_by_hand(shape, lasers, waveguides, name, bound, rounds):
    """The tightest bound and its value."""
    found = spread_bound(wafer(shape, lasers, waveguides), name)
    assert (found.name, found.rounds) == (bound, rounds)


@pytest.mark.parametrize(
    ("ranks", "lasers", "rounds"), [(3, 1, 3), (5, 1, 4), (7, 2, 3), (8, 2, 3), (6, 1, 3), (9, 2, 2)]
)
def test_whole_sums(ranks, lasers, rounds):
    """One piece, all need the sum: where lasers + 1 does not divide the square of the ranks, it takes one round more."""
    light = wafer(f"1x{ranks}", lasers)
    everyone = np.ones((1, ranks), bool)
    assert tightest(list(reduction_bounds(light, everyone, everyone))).rounds == rounds


@pytest.mark.parametrize(("ranks", "lasers", "rounds"), [(3, 1, 2), (5, 1, 3), (7, 2, 2), (8, 2, 2)])
def test_the_solver_agrees_on_whole_sums(ranks, lasers, rounds):
    """One round fewer: the reduction model has no solution, waveguides or not."""
    light = wafer(f"1x{ranks}", lasers)
    everyone = np.ones((1, ranks), bool)
    answer, _ = solve_reduction(
        rounds, light, everyone, everyone, Clock(60), translation_orbits(1, ranks, 1), effort=20, seed=0
    )
    assert answer is False


@pytest.mark.parametrize(
    ("ranks", "lasers", "pieces", "rounds"),
    [(16, 6, 16, 6), (16, 10, 16, 4), (16, 3, 16, 10), (8, 2, 8, 7), (4, 2, 4, 3), (16, 3, 8, 6), (3, 4, 3, 2)],
)
def test_full_lasers(ranks, lasers, pieces, rounds):
    """Where every laser must send in every round, some numbers of rounds are impossible; others are possible and found."""
    light = wafer(f"1x{ranks}", lasers)
    everyone = np.ones((pieces, ranks), bool)
    assert tightest(list(reduction_bounds(light, everyone, everyone))).rounds == rounds


@pytest.mark.parametrize(
    ("shape", "waveguides", "rounds"), [("2x4", 1, 3), ("2x4", 2, 2), ("2x2", 1, 2), ("1x3", 1, 2)]
)
def test_two_full_rounds_need_a_cut_that_carries_all_pairs(shape, waveguides, rounds):
    """As many pieces as ranks, a laser for each other rank: all to all, which the middle of 2 x 4 tiles cannot carry."""
    ranks = wafer(shape, 1).num_ranks
    light, everyone = wafer(shape, ranks - 1, waveguides), np.ones((ranks, ranks), bool)
    assert tightest(list(reduction_bounds(light, everyone, everyone))).rounds == rounds


def test_nothing_to_do_needs_nothing():
    """Ranks that hold what they need take no round."""
    light = wafer("2x2", 1)
    everyone = np.ones((3, 4), bool)
    assert tightest(list(multicast_bounds(light, everyone, everyone))).rounds == 0
    alone = np.eye(4, dtype=bool)
    assert tightest(list(reduction_bounds(light, alone, alone))).rounds == 0


def test_both_sides_of_a_cut():
    """Edges out of a rectangle and into it are counted separately: one waveguide of three has failed, in one direction."""
    light = wafer("1x3", 2, 3, dead_waveguides="0-1:1")
    ways = {(cut.where, tuple(cut.inside)): cut.out for cut in cuts(light)}
    where = "the cut between columns 0 and 1"
    assert ways[where, (True, False, False)] == 4
    assert ways[where, (False, True, True)] == 6


@st.composite
def questions(draw):
    """Small multicasts on a small grid."""
    shape = draw(st.sampled_from(["1x2", "1x3", "2x2", "1x4"]))
    light = wafer(shape, draw(st.integers(1, 2)), 1)
    flags = st.lists(st.booleans(), min_size=light.num_ranks, max_size=light.num_ranks)
    pieces = draw(st.integers(1, 4))
    before = np.array([draw(flags.filter(any)) for _ in range(pieces)])
    return light, before, before | np.array([draw(flags) for _ in range(pieces)])


@given(questions())
@examples(40)
def test_nothing_is_found_below_the_bound(question):
    """With one round fewer than the bound the solver finds no schedule."""
    light, before, after = question
    bound = tightest(list(multicast_bounds(light, before, after)))
    if bound.rounds > 1:
        answer, _ = solve_multicast(bound.rounds - 1, light, before, after, Clock(60), effort=10, seed=0)
        assert answer is False, bound
