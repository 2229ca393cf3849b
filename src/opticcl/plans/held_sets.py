"""Sets of shifts that k planes may hold for the steps of `balanced_digits`, with what each step costs on them.

Sides are all products of up to k numbers, radices all ordered factorisations of the sides, as many of each side. Sets that may
be held: all of k shifts, where they are few; else for each choice of a level a side, or of two levels of one side, planes
divided evenly among them, on each the first multiples of its weight both ways, or the weight alone both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from math import comb, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.schedule.balanced_digits import DigitStep, digit_steps, links_to, own_shifts, shortest

__all__ = ["SetTable", "factorisations", "set_families"]

FloatArray = npt.NDArray[np.float64]

ALL_SETS = limit("held_sets.ALL_SETS")

MOST_FAMILIES = limit("held_sets.MOST_FAMILIES")


class SetTable(NamedTuple):
    """Steps of one choice of sides and radices, and their costs on the sets that may be held.

    Args:
        sides, radices: as of `balanced_digits`.
        moved: what a node sends in each step, in messages, float64 (steps,).
        arrived: what a node gets to add in each step, in messages, float64 (steps,).
        covered: what it adds to, the same.
        messages: that a node sends in each step, int64 (steps,).
        shifts: of each set, int64 (sets, planes).
        links: most that a circuit of each step passes on each set, 0 where some block has no way, int32 (steps, sets).
        weights: over the busiest link, for each of `links`, times the planes, in messages, float64 (steps, sets).
    """

    sides: tuple[int, ...]
    radices: tuple[int, ...]
    moved: FloatArray
    arrived: FloatArray
    covered: FloatArray
    messages: IntArray
    shifts: IntArray
    links: IntArray
    weights: FloatArray


@lru_cache(maxsize=16)
def factorisations(number: int) -> tuple[tuple[int, ...], ...]:
    """All ordered products of numbers above 1.

    >>> factorisations(8)
    ((8,), (2, 4), (4, 2), (2, 2, 2))
    """

    def parts(rest: int) -> Iterator[tuple[int, ...]]:
        if rest == 1:
            yield ()
        for factor in range(2, rest + 1):
            if rest % factor == 0:
                yield from ((factor, *others) for others in parts(rest // factor))

    return tuple(sorted(parts(number), key=lambda radices: (len(radices), radices))) if number > 1 else ((),)


def set_families(collective: str, num_nodes: int, planes: int) -> tuple[list[SetTable], str]:
    """All choices of sides and radices with the sets that may be held, and what is left out, in words.

    Args:
        collective: one that `balanced_digits` does.
        num_nodes: nodes N [count].
        planes: switches k [count].
    """
    if num_nodes < 2:
        return [], ""
    choices = sorted(set(_choices(num_nodes, planes)), key=lambda one: (len(one[1]), one))
    skipped = len(choices) - MOST_FAMILIES
    untried = (
        f"{skipped:,} of {len(choices):,} choices of sides and radices, those of most digits" if skipped > 0 else ""
    )
    return [_table(collective, *choice, planes) for choice in choices[:MOST_FAMILIES]], untried


def _choices(num_nodes: int, planes: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sides and radices."""
    for sides in factorisations(num_nodes):
        if len(sides) > planes or list(sides) != sorted(sides):
            continue
        of_side = [factorisations(side) for side in sides]
        for count in range(1, min(len(one[-1]) for one in of_side) + 1):
            for chosen in product(*([some for some in one if len(some) == count] for one in of_side)):
                yield sides, tuple(radix for some in chosen for radix in some)


def _table(collective: str, sides: tuple[int, ...], radices: tuple[int, ...], planes: int) -> SetTable:
    """Costs of the steps of one choice."""
    steps = digit_steps(collective, sides, radices)
    shifts = np.array(_sets(sides, radices, planes), np.int64)
    distinct, at = np.unique(shifts, return_inverse=True)
    every = np.stack([links_to(shift, sides) for shift in distinct.tolist()])
    costs = [_costs(step, every, at.reshape(shifts.shape)) for step in steps]
    return SetTable(
        sides,
        radices,
        np.array([step.moved.sum() for step in steps]),
        np.array([step.moved.sum() if step.covered else 0.0 for step in steps]),
        np.array([step.covered for step in steps]),
        np.array([len(np.unique(step.distance)) for step in steps]),
        shifts,
        np.array([links for links, _ in costs], np.int32),
        np.array([loads for _, loads in costs]) * planes,
    )


def _costs(step: DigitStep, every: IntArray, sets: IntArray) -> tuple[IntArray, FloatArray]:
    """Most links of a circuit on each set, 0 where a block has no way, and messages over the busiest link for each of them.

    Args:
        step: its blocks.
        every: links of each shift to each node, int32 (shifts, nodes).
        sets: places of shifts, int64 (sets, planes).
    """
    links, parts = shortest(every[:, step.distance][sets])
    most = np.where(links.all(axis=1), links.max(axis=1), 0)
    load = np.einsum("spb,sb,b->sp", parts, links, step.moved).max(axis=1)
    return most, load / np.maximum(1, most)


def _sets(sides: tuple[int, ...], radices: tuple[int, ...], planes: int) -> list[tuple[int, ...]]:
    """Sets of shifts that may be held, each once."""
    n, each = prod(sides), len(radices) // len(sides)
    if comb(n - 2 + planes, planes) <= ALL_SETS:
        return list(combinations_with_replacement(range(1, n), planes))
    levels = [
        [(radices[at * each + level], prod(radices[at * each : at * each + level]), at) for level in range(each)]
        for at in range(len(sides))
    ]
    some: Iterable[tuple[tuple[int, int, int], ...]] = product(*levels)
    if len(sides) == 1:
        some = [*some, *combinations(levels[0], 2)]
    sets = list[tuple[int, ...]]()
    for chosen in some:
        for first in range(len(chosen)):  # the first has a plane more where they are not divided evenly
            turned = chosen[first:] + chosen[:first]
            counts = [planes // len(chosen) + (place < planes % len(chosen)) for place in range(len(chosen))]
            for both in (False, True):
                sets.append(
                    tuple(
                        shift
                        for (radix, weight, side), count in zip(turned, counts, strict=True)
                        for shift in _multiples(radix, weight, side, sides, count, both)
                    )
                )
    return list(dict.fromkeys(sets))


@lru_cache(maxsize=4096)
def _multiples(radix: int, weight: int, side: int, sides: tuple[int, ...], planes: int, both: bool) -> tuple[int, ...]:
    """Shifts of one level of a side: the first multiples of its weight both ways, or the weight alone both ways.

    Args:
        radix, weight: of the digit.
        side: its number.
        sides: of the grid.
        planes: that hold them [count].
        both: whether the weight alone.
    """
    stride, many = prod(sides[side + 1 :]), 1 if both else min(planes, radix // 2)
    values = [*range(1, many + 1), *range(-many, 0)]
    return own_shifts(np.array([value * weight % sides[side] * stride for value in values]), planes)
