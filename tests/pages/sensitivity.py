"""What each assumption about time changes: times of an all_reduce of 1 KB with one value doubled."""

from collections.abc import Iterator
from dataclasses import replace

from opticcl.assumptions import assumptions, values
from opticcl.fabrics import fabric_at_scale
from opticcl.plans.compare import compare_plans
from opticcl.plans.plan import compile

ALGORITHMS = {
    "ramp": "ramp", "sipac": "sipco", "lightpath": "lumorph", "oddl": "halving_doubling", "terarack": "wrht",
    "fat_tree": "mesh", "superpod": "mesh", "ideal": "mesh",
}  # fmt: skip
"""Algorithms of the papers, so that a new algorithm does not change the page."""


def page() -> str:
    """Both tables."""
    return "\n".join(["# What an assumption changes\n", *values_doubled(64), "", *distances_doubled(256), ""])


def values_doubled(num_nodes: int) -> Iterator[str]:
    """Lines of the table of values.

    Args: num_nodes: of every fabric [count].
    """
    yield f"A value that is doubled adds this to the time of an all_reduce of 1 KB on {num_nodes} nodes, by the algorithm of"
    yield "each paper (`mesh` on electrical networks). `control` and `reconfiguration` are each system's own.\n"
    entries, keys = [], []
    for name, algorithm in ALGORITHMS.items():
        compared = compare_plans(
            [fabric_at_scale(name, num_nodes)], "all_reduce", [1000], algorithm=algorithm, vary=True
        )
        entries.append(compared.entries[0])
        keys = [one.variation.key for one in compared.sensitivity or () if one.variation.name.endswith(" x 2")]
    yield from _head()
    yield _row("time", [f"{1e6 * entry.total_s:.2f} us" for entry in entries])
    for key in keys:
        yield _row(f"`{key}`", [growth(entry.under[f"{key} x 2"].total_s, entry.total_s) for entry in entries])


def distances_doubled(num_nodes: int) -> Iterator[str]:
    """Lines of the table of distances.

    Args: num_nodes: of every fabric [count].
    """
    yield f"A distance of the floor plan that is doubled adds this on {num_nodes} nodes.\n"
    common = assumptions("common")
    plans = [
        compile(fabric_at_scale(name, num_nodes), "all_reduce", 1000, algorithm=algorithm)
        for name, algorithm in ALGORITHMS.items()
    ]
    times = [plan.simulate(assumptions=common).total_s for plan in plans]
    yield from _head()
    for one in values("floor"):
        twice = replace(common, floor=replace(common.floor, **{one.key: 2 * one.value}))
        longer = [plan.simulate(assumptions=twice).total_s for plan in plans]
        yield _row(one.about, [growth(new, old) for new, old in zip(longer, times, strict=True)])


def growth(new_s: float, old_s: float) -> str:
    """How much more a time is, 0 below a twentieth of a percent."""
    share = new_s / old_s - 1
    return f"{share:+.1%}" if abs(share) >= 5e-4 else "0"


def _head() -> list[str]:
    return [_row("doubled", list(ALGORITHMS)), "|---" * (1 + len(ALGORITHMS)) + "|"]


def _row(first: str, cells: list[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"
