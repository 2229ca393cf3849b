"""The fastest plan at each message size, and the sizes at which it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticcl.plans.names import labels

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison, Entry

__all__ = ["LARGEST", "SMALLEST", "Crossing", "crossings", "fastest", "sizes_between"]

SMALLEST, LARGEST = 1_000, 1_000_000_000
"""Range of message sizes in pictures [bytes]."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A message size from which another plan is the fastest.

    Args:
        size_bytes: smallest message of the new plan [bytes].
        before: label of the plan that is the fastest one byte below.
        after: label of the plan that is the fastest from there.
    """

    size_bytes: int
    before: str
    after: str


def sizes_between(smallest: int = SMALLEST, largest: int = LARGEST, count: int = 49) -> list[int]:
    """Whole sizes in equal ratios, both ends included [bytes].

    >>> sizes_between(1_000, 1_000_000, 4)
    [1000, 10000, 100000, 1000000]

    Args:
        smallest: first size [bytes].
        largest: last size [bytes].
        count: of sizes before rounding [count].
    """
    return sorted({round(smallest * (largest / smallest) ** (i / (count - 1))) for i in range(count)})


def fastest(entries: Sequence[Entry], size_bytes: int) -> int:
    """Index of the entry with the least time for a message of that size; the first among equals."""
    times = [entry.profile.timeline(size_bytes).total_s for entry in entries]
    return times.index(min(times))


def crossings(comparison: Comparison, smallest: int = SMALLEST, largest: int = LARGEST) -> list[Crossing]:
    """Where the fastest plan changes, by bisection on whole bytes.

    Affine times cross once, and that byte is found. Where slots or packets make a time a staircase, two plans may change
    places several times within a stair; then one of these changes is returned.

    Args:
        comparison: whose plans are compared.
        smallest: lower end of the search [bytes].
        largest: upper end of the search [bytes].
    """
    names, entries = labels(comparison), comparison.entries
    grid = sizes_between(smallest, largest)
    winners = [fastest(entries, size) for size in grid]
    crossed = []
    for lo, hi, first, last in zip(grid, grid[1:], winners, winners[1:], strict=False):
        while first != last:
            below, above, after = lo, hi, last
            while above - below > 1:
                middle = (below + above) // 2
                winner = fastest(entries, middle)
                if winner == first:
                    below = middle
                else:
                    above, after = middle, winner
            crossed.append(Crossing(above, names[first], names[after]))
            lo, first = above, after
    return crossed
