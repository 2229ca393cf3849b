"""Policies: what they place, and what they could place at most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.fabrics import fabric
from opticcl.operations.policies import POLICIES, check_policy, largest_job, place_by

MACHINES = ("lightpath:shape=4x5", "oddl:shape=4x4", "ramp:groups=3,racks=2,wavelengths=6", "sipac:radix=3,levels=2",
            "terarack:nodes=11")  # fmt: skip


@examples(30)
@given(st.sampled_from(MACHINES), st.sampled_from(POLICIES), st.integers(0, 2**32), st.integers(1, 9))
def test_a_place_is_free_and_has_the_nodes_requested(machine, policy, seed, num_nodes):
    """Any free nodes, any policy; a job of the largest size finds a place."""
    made = fabric(machine)
    grid = made.cell_grid()
    free = np.random.default_rng(seed).random(made.num_nodes) < 0.6
    place = place_by(policy, grid, free, num_nodes)
    if place is not None:
        assert len(np.unique(place.nodes)) == num_nodes
        assert set(place.nodes.tolist()) <= set(place.held.tolist())
        assert free[place.held].all()
    largest = largest_job(policy, grid, free)
    assert largest <= free.sum()
    if largest:
        assert place_by(policy, grid, free, largest) is not None


def test_best_leaves_the_fewest_free_neighbours():
    """Two nodes fit into a hole of two; the first place would cut the longer run."""
    machine = fabric("terarack:nodes=12")
    free = np.ones(12, bool)
    free[[4, 7]] = False  # runs of 4, 2 and 4 nodes
    assert place_by("first", machine.cell_grid(), free, 2).nodes.tolist() == [0, 1]
    assert place_by("best", machine.cell_grid(), free, 2).nodes.tolist() == [5, 6]


def test_buddies_are_halves_of_halves():
    """5 nodes hold 8 of 16, at a multiple of 8; with nodes 0 and 9 taken, 4 nodes fit and 8 do not."""
    grid = fabric("terarack:nodes=16").cell_grid()
    free = np.arange(16) > 0
    place = place_by("buddy", grid, free, 5)
    assert (place.nodes.tolist(), place.held.tolist()) == ([8, 9, 10, 11, 12], list(range(8, 16)))
    free[9] = False
    assert place_by("buddy", grid, free, 8) is None
    assert largest_job("buddy", grid, free) == 4


def test_exact_finds_the_lines_that_the_greedy_search_misses():
    """On 6 x 6 nodes of ODDL, 9 of them: what the greedy search finds, the programme finds too, and more."""
    grid = fabric("oddl:shape=6x6").cell_grid()
    missed = 0
    for seed in range(60):
        free = np.random.default_rng(seed).random(36) < 0.6
        exact, greedy = (place_by(policy, grid, free, 9) for policy in ("exact", "first"))
        assert greedy is None or exact is not None
        missed += greedy is None and exact is not None
        assert exact is None or free[exact.held].all()
    assert missed


def test_fragmentation_of_a_chess_board():
    """8 of 16 tiles are free and none has a free neighbour: blocks of one tile, scattered nodes of all."""
    machine = fabric("lightpath:shape=4x4")
    free = (np.indices((4, 4)).sum(axis=0) % 2 == 0).ravel()
    assert [largest_job(policy, machine.cell_grid(), free) for policy in POLICIES] == [1, 1, 1, 8, 1]


def test_wrong_policies_are_refused():
    """With the nearest name, or another policy."""
    with pytest.raises(UnknownNameError, match="did you mean 'buddy'"):
        check_policy("budy", fabric("oddl:shape=4x4").cell_grid())
    with pytest.raises(ParameterError, match="256 nodes are more than 64; try --policy best"):
        check_policy("exact", fabric("oddl:shape=16x16").cell_grid())
