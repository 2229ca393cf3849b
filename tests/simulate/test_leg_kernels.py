"""Legs of routes beside a walk along each route."""

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.simulate import _leg_kernels as kernels

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
    """Coordinates of the nodes, differences of the numbers of neighbours, first legs."""
    nodes = int(np.prod(shape))
    place = np.stack(np.unravel_index(np.arange(nodes), shape), axis=1).astype(np.int32)
    stride = np.array([np.prod(shape[k + 1 :], dtype=int) for k in range(len(shape))])
    return place, stride, np.array([(nodes * sum(shape[:k]), shape[k]) for k in range(len(shape))])


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
    place = np.arange(5)[:, None].astype(np.int32)
    with interpreted(kernels):
        count = kernels.longest_rows(
            np.zeros(5, int), np.arange(5), seconds, most, place, np.ones(1, int), np.zeros((1, 2), int), 0.0, rows
        )
    assert rows[:count].tolist() == due


@pytest.mark.parametrize(
    ("routes", "due"), [(1, [0]), (4, [0, 1, 2]), (5, [4]), (8, [4, 5, 7]), (9, [8]), (11, [8, 9])]
)
def test_sums_that_differ_by_rounding_count_as_equal(routes, due):
    """By a quarter of the first of the longest, up or down; one that is longer by more is the only one."""
    seconds = np.array([2, 2.5, 1.5, 1.25, 4, 3, 2.9, 5, 5.25, 4, 3.9])
    place, rows = np.arange(11)[:, None].astype(np.int32), np.zeros(11, int)
    with interpreted(kernels):
        count = kernels.longest_rows(
            np.zeros(routes, int),
            np.arange(routes),
            seconds,
            np.inf,
            place,
            np.ones(1, int),
            np.zeros((1, 2), int),
            0.25,
            rows,
        )
    assert rows[:count].tolist() == due
