"""The worst set of ranks by maximum flow, against all sets counted one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import Condition
from opticcl.operations.faults.least_cuts import (
    LinksOfRanks,
    largest_linear,
    largest_of_all_sets,
)
from opticcl.operations.faults.residual import residual, residual_bound_s

MACHINES = (
    "ramp:groups=2,racks=2,wavelengths=2",
    "sipac:radix=3,levels=2",
    "terarack:nodes=5,wavelengths=4",
    "oddl:shape=2x4,control_radix=2",
)


def worst_set(links: LinksOfRanks, need: Callable[[int, bool], float]) -> float:
    """The largest of what a set needs over the wavelengths that leave it.

    Args:
        links: of all ranks.
        need: by the ranks of a set, and whether rank 0 is one of them.
    """
    p = links.reaches.shape[1]
    worst = 0.0
    for chosen in range(1, (1 << p) - 1):
        inside = (chosen >> np.arange(p) & 1).astype(bool)
        leaves = links.number[inside[links.sender] & (links.reaches & ~inside).any(axis=1)].sum()
        needed = need(int(inside.sum()), bool(inside[0]))
        if needed:
            worst = max(worst, needed / leaves if leaves else float("inf"))
    return worst


def drawn(seed: int) -> LinksOfRanks:
    """LinksOfRanks of 2 to 7 ranks, some of them weak; of half of the draws some ranks may be out of reach."""
    random = np.random.default_rng(seed)
    p, rows = int(random.integers(2, 8)), int(random.integers(4, 24))
    sender = random.integers(p, size=rows)
    if seed % 2:
        sender[: min(p, rows)] = np.arange(p)[: min(p, rows)]
    reaches = random.random((rows, p)) < random.choice([0.2, 0.5])
    reaches[np.arange(rows), random.integers(p, size=rows)] = True
    reaches[np.arange(rows), sender] = False
    number = random.choice([1.0, 2.0, 0.5, 5.0, 0.3], rows)
    kept = reaches.any(axis=1)
    return LinksOfRanks(sender[kept], reaches[kept], number[kept])


def compared(links: LinksOfRanks) -> None:
    """Every function against all sets."""
    p = links.reaches.shape[1]
    assert largest_linear(links, 0, inside=True) == pytest.approx(worst_set(links, lambda s, root: root))
    assert largest_linear(links, 0, inside=False) == pytest.approx(worst_set(links, lambda s, root: not root))
    assert largest_linear(links, inside=True) == pytest.approx(worst_set(links, lambda s, root: s))
    assert largest_linear(links, inside=False) == pytest.approx(worst_set(links, lambda s, root: p - s))
    assert largest_of_all_sets(links) == pytest.approx(worst_set(links, lambda s, root: s * (p - s) / p))


@pytest.mark.parametrize("seed", range(60))
def test_drawn_links(seed: int) -> None:
    """Whatever they are, weak ones and ranks out of reach among them."""
    compared(drawn(seed))


@pytest.mark.parametrize("spec", MACHINES)
def test_links_of_machines(spec: str) -> None:
    """Whole, and with dead and weak parts."""
    whole = fabric(spec)
    kinds = [kind for kind in whole.inventory() if kind.kind not in ("node", "control_switch")]
    random = np.random.default_rng(0)
    for number in range(4):
        chosen = {random.integers(len(kinds)) for _ in range(number)}
        parts = [Condition(kinds[k].kind, int(random.integers(kinds[k].count))) for k in sorted(chosen)]
        parts[:1] = [Condition(each.kind, each.index, "weak", 0.4) for each in parts[:1]]
        links = residual(whole.without(parts) if parts else whole).links
        assert links is not None
        compared(links)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"])
def test_bounds_hold_for_sets_of_ranks(collective: str) -> None:
    """A node that lost both ways to one half of the machine: more than any node alone needs."""
    whole = fabric("sipac:radix=2,levels=2,wavelengths=4")
    left = whole.without([Condition("comb_laser", 0), Condition("comb_laser", 3)])
    known, wanted = residual(left), Request(collective)
    assert known.links is not None
    p, size = left.num_nodes, 1_000_000_000
    need = {
        "all_reduce": lambda s, root: 1,
        "broadcast": lambda s, root: root,
        "all_gather": lambda s, root: s / p,
        "reduce_scatter": lambda s, root: 1 - s / p,
        "all_to_all": lambda s, root: s * (p - s) / p,
    }[collective]
    worst_s = worst_set(known.links, need) * size * 8 / known.rate_bits_per_s
    assert residual_bound_s(left, wanted, size, assumptions("published")) >= worst_s * (1 - 1e-9)


def test_more_than_single_nodes() -> None:
    """64 nodes in two halves joined by one link each way: the cut is that link, which no node alone shows."""
    p = 64
    reaches = np.zeros((p, p), bool)
    half = np.arange(p) < p // 2
    reaches[half[:, None] == half[None, :]] = True
    np.fill_diagonal(reaches, False)
    between = np.zeros((2, p), bool)
    between[0, 40], between[1, 3] = True, True
    links = LinksOfRanks(
        np.append(np.arange(p), [5, 50]), np.concatenate([reaches, between]), np.append(np.full(p, 10.0), [1, 2])
    )
    assert largest_linear(links, 0, inside=True) == 1
    assert largest_linear(links, 50, inside=True) == 1 / 2
    assert largest_linear(links, inside=True) == pytest.approx(32)
    assert largest_linear(links, inside=False) == pytest.approx(32)
