"""Legs of routes beside a walk along each route."""

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.fabrics import fabric
from opticcl.simulate import _leg_kernels as kernels
from opticcl.simulate.pieces import _Legs

SHAPES = [(5,), (3, 4), (2, 3, 4)]


def legs_of(shape, src, dst):
    """Number of each leg of a route: dimensions one after the other, in each the nodes, of each where it may lead to."""
    found, begin, at = [], 0, list(np.unravel_index(src, shape))
    to = np.unravel_index(dst, shape)
    for k, side in enumerate(shape):
        found.append(begin + int(np.ravel_multi_index(at, shape)) * side + int(to[k]))
        begin += int(np.prod(shape)) * side
        at[k] = to[k]
    return found, begin


def tables(shape):
    """Addends of the numbers of legs: of sources, and of destinations."""
    legs = _Legs(fabric(f"torus:shape={'x'.join(map(str, shape))}"))
    return legs.of_src, legs.of_dst


@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_of_legs(shape):
    """The sum of an addend of each end is the number of the leg, for all pairs of nodes."""
    of_src, of_dst = tables(shape)
    nodes = int(np.prod(shape))
    for src in range(nodes):
        for dst in range(nodes):
            assert (of_src[src] + of_dst[dst]).tolist() == legs_of(shape, src, dst)[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_amounts_are_added_leg_by_leg(shape):
    """Some routes twice; what was there before stays."""
    draw = np.random.default_rng(len(shape))
    src, dst = draw.integers(0, np.prod(shape), (2, 40))
    amount = draw.integers(1, 1000, 40)
    due = np.arange(legs_of(shape, 0, 0)[1])
    found = due.copy()
    for s, d, carried in zip(src, dst, amount, strict=True):
        due[legs_of(shape, s, d)[0]] += carried
    with interpreted(kernels):
        kernels.sum_of_legs(src, dst, amount, *tables(shape), found)
    assert found.tolist() == due.tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("room", [0, 2, 100])
def test_the_longest_routes(shape, room):
    """The first of them, as many as there is room for; rounding makes no difference."""
    draw = np.random.default_rng(len(shape))
    src, dst = draw.integers(0, np.prod(shape), (2, 60))
    for values in (1, 2, 3):
        seconds = draw.integers(0, values, legs_of(shape, 0, 0)[1]) * 1.0
        total = [seconds[legs_of(shape, s, d)[0]].sum() for s, d in zip(src, dst, strict=True)]
        due = [row for row, value in enumerate(total) if value == max(total)]
        rows = np.full(room, -1)
        with interpreted(kernels):
            count = kernels.longest_rows(src, dst, seconds, np.inf, *tables(shape), 1e-9, rows)
        assert rows[:count].tolist() == due[:room]
        assert (rows[count:] == -1).all()


@pytest.mark.parametrize(("most", "due"), [(7.5, [1, 4]), (6.5, [0, 1]), (5.5, [0, 1])])
def test_routes_that_cannot_be_longer_are_left_out(most, due):
    """Two of the longest sum that there may be are enough; with a larger sum all are compared."""
    seconds, rows = np.array([6.5, 6.5, 1.0, 0.0, 7.5]), np.zeros(2, int)
    seconds[1] = 7.5 if most == 7.5 else 6.5
    of_src, of_dst = np.zeros((5, 1), int), np.arange(5)[:, None]
    with interpreted(kernels):
        count = kernels.longest_rows(np.zeros(5, int), np.arange(5), seconds, most, of_src, of_dst, 0.0, rows)
    assert rows[:count].tolist() == due


@pytest.mark.parametrize(
    ("routes", "due"), [(1, [0]), (4, [0, 1, 2]), (5, [4]), (8, [4, 5, 7]), (9, [8]), (11, [8, 9])]
)
def test_sums_that_differ_by_rounding_count_as_equal(routes, due):
    """By a quarter of the first of the longest, up or down; one that is longer by more is the only one."""
    seconds = np.array([2, 2.5, 1.5, 1.25, 4, 3, 2.9, 5, 5.25, 4, 3.9])
    of_src, of_dst, rows = np.zeros((11, 1), int), np.arange(11)[:, None], np.zeros(11, int)
    src, dst = np.zeros(routes, int), np.arange(routes)
    with interpreted(kernels):
        count = kernels.longest_rows(src, dst, seconds, np.inf, of_src, of_dst, 0.25, rows)
    assert rows[:count].tolist() == due
