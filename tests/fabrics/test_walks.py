"""Kernels of paths, compared on small graphs and grids with what a walk is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from opticcl.fabrics import _walks
from opticcl.routing.grid import EAST, NORTH, SOUTH

breaks_off, leaves_grid, slices, digit_by_digit, one_digit_apart = (
    getattr(kernel, "py_func", kernel)
    for kernel in (
        _walks.breaks_off, _walks.leaves_grid, _walks.slices, _walks.digit_by_digit, _walks.one_digit_apart,
    )
)  # fmt: skip

Ends = dict[int, tuple[int, int]]
"""Vertices that each link joins."""


def is_walk(path: Sequence[int], start: int, goal: int, ends: Ends) -> bool:
    """Whether the links exist, and lead from one to the next."""
    if not path or any(link not in ends for link in path):
        return False
    steps = [ends[link] for link in path]
    return (
        steps[0][0] == start
        and steps[-1][1] == goal
        and all(before[1] == after[0] for before, after in pairwise(steps))
    )


def walks(ends: Ends, most: int) -> Iterator[list[int]]:
    """All walks of at most that many links."""
    found = [[link] for link in ends]
    for _ in range(most):
        yield from found
        found = [[*path, link] for path in found for link in ends if ends[link][0] == ends[path[-1]][1]]


def almost(path: list[int], numbers: Sequence[int]) -> Iterator[list[int]]:
    """The path with any number in one place, and without one of its ends."""
    yield from ([*path[:i], number, *path[i + 1 :]] for i in range(len(path)) for number in numbers)
    yield from (path[1:], path[:-1])


def listed(paths: Sequence[tuple[Sequence[int], int, int]]) -> tuple[np.ndarray, ...]:
    """Columns of paths with their first and last vertices."""
    lengths = [len(path) for path, _, _ in paths]
    hops = np.array([link for path, _, _ in paths for link in path], np.int32)
    start, goal = np.array([(a, b) for _, a, b in paths], np.int32).reshape(-1, 2).T
    return hops, np.cumsum([0, *lengths]), start, goal


def judged(kernel, ends: Ends, most: int, numbers: Sequence[int], vertices: int, good, *arguments) -> None:
    """The kernel accepts all good walks together, and finds each that is not good beside two that are."""
    every = [(path, ends[path[0]][0], ends[path[-1]][1]) for path in walks(ends, most)]
    right = [one for one in every if good(one[0])]
    assert len(right) > len(ends) / 2
    assert not kernel(*listed(right), *arguments)
    assert not kernel(*listed([]), *arguments)
    tried = {(tuple(path), a, b) for path, a, b in every}
    tried |= {(tuple(other), a, b) for path, a, b in every for other in almost(path, numbers)}
    tried |= {(tuple(path), a, b) for path in ([], *walks(ends, 2)) for a, b in product(range(vertices), repeat=2)}
    for path, a, b in tried:
        fits = is_walk(path, a, b, ends) and good(path)
        assert kernel(*listed([right[0], (path, a, b), right[-1]]), *arguments) == (not fits), (path, a, b)


@pytest.mark.parametrize("not_through", [0, 2, 3])
def test_walks_along_links(not_through: int) -> None:
    """Nodes 0 and 1, switches 2 and 3: vertices below a number begin and end walks, and are not passed."""
    ends = dict(enumerate([(0, 2), (2, 1), (1, 3), (3, 0), (2, 3), (0, 3), (3, 2)]))
    tail, head = np.array(list(ends.values()), np.int32).T

    def good(path: Sequence[int]) -> bool:
        return all(ends[link][0] >= not_through for link in path[1:])

    judged(breaks_off, ends, 3, range(-1, 8), 4, good, tail, head, not_through)


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 1)])
def test_walks_on_a_grid(rows: int, columns: int) -> None:
    """Edge 4 tile + way leads to the neighbour in that direction; no walk leaves the grid or goes straight back."""
    ways = [(0, 1), (0, -1), (1, 0), (-1, 0)]
    ends = {
        4 * (r * columns + c) + way: (r * columns + c, (r + down) * columns + c + right)
        for r, c in product(range(rows), range(columns))
        for way, (down, right) in enumerate(ways)
        if 0 <= r + down < rows and 0 <= c + right < columns
    }

    def good(path: Sequence[int]) -> bool:
        return not any(ends[before] == ends[after][::-1] for before, after in pairwise(path))

    judged(leaves_grid, ends, 2, range(-1, 4 * rows * columns + 1), rows * columns, good, rows, columns)


def test_no_walk_returns_from_outside() -> None:
    """Above the first row and below the last of 2 x 3 tiles, where edges would have the numbers of further rows."""
    for first, way in ((0, NORTH), (3, SOUTH)):
        outside = first + {NORTH: -3, SOUTH: 3}[way]
        path = [4 * first + way, 4 * outside + EAST, 4 * (outside + 1) + (way ^ 1)]
        assert leaves_grid(*listed([(path, first, first + 1)]), 2, 3)


def test_slices_are_laid_end_to_end() -> None:
    """Slices of three, no and two links, each moved by a number of its own."""
    lines = np.array([0, 10, 20, 30, 40], np.int32)
    found = slices(lines, np.array([1, 4, 3]), np.array([5, 7, 100]), np.array([3, 3, 5]))
    assert found.tolist() == [15, 25, 35, 130, 140]
    assert found.dtype == np.int32


def test_paths_correct_one_digit_after_the_other() -> None:
    """Nodes a + 2 b + 6 c: every pair from every level, up to a switch of the level and down to the node with that digit."""
    radices, stride = (2, 3, 2), np.array([1, 2, 6], np.int32)
    digits = np.array([(a, b, c) for c in range(2) for b in range(3) for a in range(2)], np.int32)
    n, levels = digits.shape
    pairs = [(a, b, first) for a, b, first in product(range(n), range(n), range(levels))]
    pairs.append((0, n - 1, 0))
    src, dst, start = np.array(pairs).T
    expected = []
    for a, b, first in pairs:
        links, at = [], list(digits[a])
        for level in ((first + turn) % levels for turn in range(levels)):
            if at[level] != digits[b][level]:
                links.append(2 * level * n + int(np.ravel_multi_index(at[::-1], radices[::-1])))
                at[level] = digits[b][level]
                links.append((2 * level + 1) * n + int(np.ravel_multi_index(at[::-1], radices[::-1])))
        expected.append(links)
    hops, offsets = digit_by_digit(src, dst, start, digits, stride)
    assert [hops[i:j].tolist() for i, j in pairwise(offsets)] == expected
    assert (offsets[0], offsets[-1]) == (0, len(hops))


def test_numbers_that_differ_in_one_digit_alone() -> None:
    """Digits below 2, 3, 1 and 2, and numbers with a fifth that no side is given for."""
    sides = np.array([2, 3, 1, 2], np.int32)
    digits = {number: (*np.unravel_index(number % 12, (2, 1, 3, 2)), number // 12) for number in range(36)}
    pairs = np.array(list(product(digits, repeat=2)), np.int32)
    found = one_digit_apart(*pairs.T, sides)
    assert found.dtype == np.bool_
    for (one, other), apart in zip(pairs.tolist(), found.tolist(), strict=True):
        differ = [a != b for a, b in zip(digits[one], digits[other], strict=True)]
        assert apart == (sum(differ) == 1 and not differ[-1]), (one, other)
