"""Trees whose translations serve all roots: classes, levels, and what they use."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.routing.forest.translation import TranslatedTree, translated_tree


def steps_of(tree: TranslatedTree) -> Counter[tuple[int, ...]]:
    """How often each difference of digits leads from a parent to a child; every vertex leads back to vertex 0."""
    digits = list(np.ndindex(*tree.radices))
    steps: Counter[tuple[int, ...]] = Counter()
    for child in range(1, len(digits)):
        ends = digits[int(tree.parent[child])], digits[child]
        steps[tuple((b - a) % radix for a, b, radix in zip(*ends, tree.radices, strict=True))] += 1
        vertex, above = child, 0
        while vertex:
            vertex, above = int(tree.parent[vertex]), above + 1
            assert above < len(digits)
        assert above == tree.depth[child]
    return steps


def costs(radices: tuple[int, ...], of_steps: dict[tuple[int, ...], float]) -> np.ndarray:
    """Cost of each class: as given, else infinite."""
    cost = np.full(prod(radices), np.inf)
    for step, price in of_steps.items():
        cost[np.ravel_multi_index([digit % radix for digit, radix in zip(step, radices, strict=True)], radices)] = price
    return cost


@examples(40)
@given(sides=st.lists(st.integers(3, 7), min_size=1, max_size=3).map(tuple))
def test_a_torus_breadth_first(sides: tuple[int, ...]) -> None:
    """Neighbours alone; every node as near to the root as it can be."""
    units = np.eye(len(sides), dtype=int).tolist()
    near = {tuple(sign * digit for digit in unit): 1.0 for unit in units for sign in (1, -1)}
    tree = translated_tree(sides, costs(sides, near), np.ones(prod(sides), np.int64))
    assert tree is not None
    steps = steps_of(tree)
    assert set(steps) <= {tuple(digit % radix for digit, radix in zip(step, sides, strict=True)) for step in near}
    away = [
        sum(min(digit, radix - digit) for digit, radix in zip(node, sides, strict=True)) for node in np.ndindex(*sides)
    ]
    assert tree.depth.tolist() == away


@pytest.mark.parametrize(("sides", "most"), [((16, 16), 64), ((32, 32), 256), ((8, 8, 8), 86)])
def test_directions_of_a_torus_are_used_evenly(sides: tuple[int, ...], most: int) -> None:
    """The busiest one no more than rounding makes it."""
    units = np.eye(len(sides), dtype=int).tolist()
    near = {tuple(sign * digit for digit in unit): 1.0 for unit in units for sign in (1, -1)}
    tree = translated_tree(sides, costs(sides, near), np.ones(prod(sides), np.int64))
    assert tree is not None
    assert max(steps_of(tree).values()) == most


def test_cheap_classes_join_boxes_and_few_dear_ones_the_boxes() -> None:
    """Four boxes of eight: three links between boxes, all from the root, and seven within each."""
    prices = {(box, gpu): 12.0 if box else 1.0 for box in range(4) for gpu in range(8) if box or gpu}
    length = np.array([3 if box and gpu else 2 for box in range(4) for gpu in range(8)])
    tree = translated_tree((4, 8), costs((4, 8), prices), length)
    assert tree is not None
    steps = steps_of(tree)
    assert {step: count for step, count in steps.items() if step[0]} == {(box, 0): 1 for box in (1, 2, 3)}
    assert sum(count for step, count in steps.items() if not step[0]) == 28
    assert tree.depth.max() == 2


@pytest.mark.parametrize("wide", [2, 3, 4])
def test_classes_that_reach_a_part_alone(wide: int) -> None:
    """Steps of two or four of eight vertices reach every second or fourth; steps of three all."""
    cost = costs((8,), {(wide,): 1.0})
    tree = translated_tree((8,), cost, np.ones(8, np.int64))
    assert (tree is not None) == (wide == 3)
