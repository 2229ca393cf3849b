"""Where the fastest plan changes."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.report.fastest import Crossing, crossings, fastest, sizes_between


def plans(lines):
    """A comparison of invented plans whose times are (fixed, per byte)."""

    def entry(number, fixed, per_byte):
        profile = SimpleNamespace(timeline=lambda size: SimpleNamespace(total_s=fixed + per_byte * size))
        fabric, plan = SimpleNamespace(name="made", parameters={}), SimpleNamespace(algorithm=str(number))
        return SimpleNamespace(fabric=fabric, plan=plan, profile=profile)

    return SimpleNamespace(
        entries=tuple(entry(i, *line) for i, line in enumerate(lines)), stays_as_built=lambda entry: False
    )


@pytest.mark.parametrize("seed", range(8))
def test_crossings_agree_with_trying_every_size(seed):
    """For straight lines every change is found, at the right byte."""
    rng = np.random.default_rng(seed)
    made = plans(zip(rng.uniform(0, 100, 6), rng.uniform(0, 0.2, 6), strict=True))
    winners = [fastest(made.entries, size) for size in range(1, 3001)]
    expected = [
        Crossing(size, f"made · {before}", f"made · {after}")
        for size, (before, after) in enumerate(pairwise(winners), 2)
        if before != after
    ]
    assert crossings(made, 1, 3000) == expected


def test_a_plan_that_wins_between_two_grid_sizes_is_found():
    """The third plan is the fastest for some bytes only, fewer than lie between two sizes of the grid."""
    made = plans([(0.0, 1.0), (500.0, 0.5), (249.9, 0.75)])
    assert [(c.size_bytes, c.after) for c in crossings(made, 1, 10**6)] == [(1000, "made · 2"), (1001, "made · 1")]


def test_real_plans_change_where_it_says(comparison):
    """One byte below a crossing the one plan wins, from there on the other."""
    from opticcl.plans.names import labels

    names = labels(comparison)
    found = crossings(comparison)
    assert found
    for change in found:
        assert names[fastest(comparison.entries, change.size_bytes - 1)] == change.before
        assert names[fastest(comparison.entries, change.size_bytes)] == change.after
    assert [c.size_bytes for c in found] == sorted(c.size_bytes for c in found)
    assert found[-1].after == names[fastest(comparison.entries, sizes_between()[-1])]
