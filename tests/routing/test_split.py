"""Rounds of a step over capacity, and laser sets that share an edge."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.routing.sharing import balance_laser_sets
from opticcl.routing.split import split


@st.composite
def requests(draw, most: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Resources of each request, offsets, and capacities."""
    room = np.array(draw(st.lists(st.integers(1, 3), min_size=1, max_size=6)))
    wanted = draw(st.lists(st.sets(st.integers(0, len(room) - 1), min_size=1, max_size=3), min_size=1, max_size=most))
    resources = np.array([r for request in wanted for r in sorted(request)], np.int64)
    return resources, np.cumsum([0, *map(len, wanted)]), room


def rounds_fit(round_of: np.ndarray, resources: np.ndarray, offsets: np.ndarray, room: np.ndarray) -> bool:
    """Whether no round exceeds the capacity of a resource."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return all(
        (np.bincount(resources[round_of[owner] == r], minlength=len(room)) <= room).all()
        for r in set(round_of.tolist())
    )


@examples(100)
@given(requests())
def test_rounds_fit_and_bound_holds(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Every request has a round, none is over capacity, and there are at least load / capacity of them."""
    resources, offsets, room = drawn
    found = split(resources, offsets, room)
    assert rounds_fit(found.round_of, resources, offsets, room)
    assert set(found.round_of.tolist()) == set(range(found.num_rounds))
    load = np.bincount(resources, minlength=len(room))
    assert found.bound == max(-(-load // room))
    assert found.bound <= found.num_rounds


@examples(12)
@given(requests(6))
def test_few_more_rounds_than_the_fewest(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """All ways of up to six requests: the split has at most one round more than the best."""
    resources, offsets, room = drawn
    found = split(resources, offsets, room)
    n = len(offsets) - 1
    ways = product(range(found.num_rounds), repeat=n)
    fewest = min(max(way) + 1 for way in ways if rounds_fit(np.array(way), resources, offsets, room))
    assert found.bound <= fewest <= found.num_rounds <= fewest + 1


def test_three_times_the_load_is_three_rounds() -> None:
    """Halving would make four (appendix C)."""
    assert split(np.zeros(30, int), np.arange(31), np.array([10])).num_rounds == 3


def test_nothing_takes_no_round() -> None:
    """No requests."""
    assert split(np.zeros(0, int), np.zeros(1, int), np.ones(1, int))[1:] == (0, 0)


@pytest.mark.parametrize("sets", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_sets_stay_apart_and_no_edge_gets_fuller(sets: int, seed: int) -> None:
    """Shifts by different offsets along a ring of 12 nodes and edges, all set by offset to begin with."""
    n = 12
    src = np.tile(np.arange(n), sets)
    offset = np.repeat(np.random.default_rng(seed).permutation(np.arange(1, n))[:sets], n)
    dst, chosen = (src + offset) % n, np.repeat(np.arange(sets), n)
    hops = np.concatenate([(s + np.arange(k)) % n for s, k in zip(src, offset, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(offset)])
    spread = balance_laser_sets(src, dst, chosen, sets, hops, offsets)
    owner = np.repeat(np.arange(len(src)), offset)
    before, after = (np.bincount(hops * sets + c[owner]).max() for c in (chosen, spread))
    assert after <= before
    for ends in (src, dst):
        assert len(np.unique(ends * sets + spread)) == len(src)
    assert spread.min() >= 0
    assert spread.max() < sets


def test_two_circuits_of_one_set_part() -> None:
    """On one edge, two sets: one each."""
    spread = balance_laser_sets(np.array([0, 1]), np.array([2, 3]), np.array([1, 1]), 2, np.array([5, 5]), np.arange(3))
    assert sorted(spread.tolist()) == [0, 1]


def test_a_chain_swaps_as_a_whole() -> None:
    """0 -> 2 and 0 -> 3 have both sets of node 0; the first can differ from 1 -> 3 on its edge only together with them."""
    src, dst = np.array([0, 0, 1]), np.array([2, 3, 4])
    hops, offsets = np.array([7, 8, 7]), np.arange(4)
    spread = balance_laser_sets(src, dst, np.array([0, 1, 0]), 2, hops, offsets)
    assert spread[0] != spread[1]
    assert spread[0] != spread[2]
