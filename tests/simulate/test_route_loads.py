"""Loads that are kept for equal steps: which steps are equal, whatever the order of their transfers."""

from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

from opticcl.ir import Op, Transfers
from opticcl.simulate import route_loads as route_loads_module
from opticcl.simulate.route_loads import RouteLoads


def step_of(rows):
    """Transfers (src, dst, chunks), and their sizes."""
    src, dst, size = np.array(rows).reshape(-1, 3).T
    return Transfers.of(src, dst, 0, size, Op.MOVE), size


@pytest.mark.parametrize(("at_once", "longest"), [(1, 2), (2, 3), (1 << 16, 2)])
def test_steps_are_equal_where_they_send_the_same(monkeypatch, at_once, longest):
    """All steps of few transfers among three ranks: each is one step in any order, and no two are one."""
    monkeypatch.setattr(route_loads_module, "AT_ONCE", at_once)
    rows = [(*pair, size) for pair, size in product(permutations(range(3), 2), (1, 2))]
    loads, found = RouteLoads(), {}
    for count in range(1, longest + 1):
        for step in combinations_with_replacement(rows, count):
            kept = {id(loads.of(*step_of(order))) for order in (step, step[::-1], (*step[1:], step[0]))}
            assert len(kept) == 1
            found[step] = kept.pop()
    assert len(found) == len(set(found.values())) == {2: 12 + 78, 3: 12 + 78 + 364}[longest]


def test_ranks_and_sizes_are_told_apart_to_their_last_bit():
    """Large ranks and large sizes, the two ends of a transfer exchanged, a transfer that is there twice."""
    top = (1 << 31) - 1
    steps = [
        [(0, 1, 1)], [(1, 0, 1)], [(top, 1, 1)], [(1, top, 1)], [(top - 1, 1, 1)], [(0, 1, 1 << 40)], [(0, 1, (1 << 40) + 1)],
        [(0, 1, 1)] * 2, [(0, 1, 2)], [(0, 1, 1), (1, 0, 1)], [(0, 1, 2), (2, 3, 1)], [(0, 1, 1), (2, 3, 2)],
    ]  # fmt: skip
    loads = RouteLoads()
    kept = [loads.of(_pairs(step), np.array([n for *_, n in step])) for step in steps]
    assert len(set(map(id, kept))) == len(steps)


def _pairs(step):
    """Transfers of the ends alone: the sizes are told apart from them."""
    return step_of([(src, dst, 1) for src, dst, _ in step])[0]


def test_what_is_known_is_kept_for_the_search_alone():
    """What was completed is found again; another search begins with nothing."""
    loads, (transfers, size) = RouteLoads(), step_of([(0, 1, 1)])
    loads.of(transfers, size).slowest = 3.0
    assert loads.of(transfers, size).slowest == 3.0
    assert RouteLoads().of(transfers, size).slowest is None


def test_one_sum_tells_steps_apart():
    """Each of the two words does so alone: twice a transfer of half the words is not the whole one, whatever was drawn."""
    pairs = [((2, 0, 2), (1, 0, 1)), ((4, 2, 6), (2, 1, 3)), ((2, 4, 4), (1, 2, 2))]
    for draw, number in product(range(40), (0, 1)):
        words = np.random.default_rng(draw).integers(0, 1 << 64, (2, 2), dtype=np.uint64) | np.uint64(1)
        loads = RouteLoads()
        loads._words = words[[number, number]]
        found = {id(loads.of(*step_of(step))) for whole, half in pairs for step in ([whole], [half, half])}
        assert len(found) == 6
