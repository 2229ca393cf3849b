"""WRHT: who represents whom, how many steps, and that every sum is right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabric import fabric
from opticcl.ir import Fabric, Schedule, Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.schedule.wrht import exchange_wavelengths, tree
from opticcl.verify import verify


def ring(nodes: int, wavelengths: int) -> Fabric:
    """A TeraRack ring."""
    return fabric("terarack", nodes=nodes, wavelengths=wavelengths)


def schedule(nodes: int, wavelengths: int, algorithm: str = "wrht") -> Schedule:
    """WRHT on that ring."""
    return generate(algorithm, "all_reduce", ring(nodes, wavelengths))


@pytest.mark.parametrize(
    ("wavelengths", "nodes", "steps"),
    [
        *((64, n, s) for n, s in ((1, 0), (2, 1), (15, 1), (22, 1), (23, 2), (64, 2), (128, 2), (256, 3), (512, 3))),
        *((64, n, s) for n, s in ((1000, 3), (1021, 3), (1024, 3), (2048, 3), (2838, 3), (3072, 4), (4096, 4))),
        *((4, 1024, 7), (16, 1024, 4), (256, 1024, 3), (2, 15, 3), (8, 1021, 5), (16, 4096, 5)),
    ],
)
def test_fewest_steps(wavelengths: int, nodes: int, steps: int) -> None:
    """Table 1 (3 steps for 1024 nodes), figure 2b (3 for 15) and the corrected bound elsewhere."""
    assert schedule(nodes, wavelengths).num_steps == steps


@pytest.mark.parametrize(
    ("wavelengths", "nodes", "steps"),
    [(4, 1024, 8), (64, 1024, 4), (64, 129, 2), (64, 130, 4), (2, 125, 6), (64, 1, 0)],
)
def test_published_steps(wavelengths: int, nodes: int, steps: int) -> None:
    """Lemma 1, 2 ceil(log_m N), on whole numbers: 129 and 125 are exact powers of m."""
    assert schedule(nodes, wavelengths, "wrht:variant=published").num_steps == steps


def test_exchange_on_an_early_level() -> None:
    """With m = 9 of possible 129 the exchange comes before the last level: 5 steps where the paper's formula says 7."""
    assert schedule(1024, 64, "wrht:group_size=9").num_steps == 5


def test_representatives_of_figure_2() -> None:
    """15 nodes, 2 wavelengths: groups of 5 around nodes 2, 7 and 12, which exchange in the middle step."""
    made = schedule(15, 2)
    assert sorted(set(made.step(0).dst)) == [2, 7, 12]
    assert [len(made.step(i)) for i in range(3)] == [12, 6, 12]
    assert sorted(zip(made.step(1).src, made.step(1).dst, strict=True)) == [
        (a, b) for a in (2, 7, 12) for b in (2, 7, 12) if a != b
    ]


@pytest.mark.parametrize(("nodes", "group_size"), [(3000, 7), (1021, 17), (4096, 64), (100, 2), (139, 139)])
def test_groups_of_each_level(nodes: int, group_size: int) -> None:
    """Section 4.1.1: level i has ceil(N / m^i) nodes, whatever is left over."""
    levels = tree(ring(nodes, 128), group_size, "published").levels
    assert [len(level) for level in levels] == [-(-nodes // group_size**i) for i in range(len(levels))]
    assert len(levels[-1]) == 1


@pytest.mark.parametrize("algorithm", ["wrht", "wrht:group_size=4", "wrht:group_size=5,variant=published"])
def test_every_sum_is_right(algorithm: str) -> None:
    """Each contribution once at every node; primes, powers of m, short last groups."""
    for nodes in (1, 2, 3, 4, 5, 13, 16, 25, 26, 97, 125, 139):
        where = ring(nodes, 2)
        verdict = verify(lower(where, generate(algorithm, "all_reduce", where)))
        assert verdict.ok, f"{nodes} nodes: {verdict}"


def test_sums_of_the_exchange_are_the_old_ones() -> None:
    """A representative that adds to what it has just received counts twice: the exchange in two steps is refused."""
    made = schedule(15, 2)
    exchange = made.step(1)
    late = exchange.src == 12
    halves = [Transfers(*(getattr(exchange, c)[rows] for c in Transfers.__slots__)) for rows in (~late, late)]
    steps = [made.step(0), *halves, made.step(2)]
    plan = lower(ring(15, 2), replace(made, name="by hand", num_steps=4, step=steps.__getitem__))
    assert "contribution_doubled" in {v.rule for v in verify(plan).violations}


def test_no_group_size_beats_the_largest() -> None:
    """m = 2w + 1 takes the fewest steps of all m."""
    for wavelengths, nodes in ((2, 15), (3, 100), (4, 1024), (8, 1021), (16, 4096)):
        where = ring(nodes, wavelengths)
        steps = [tree(where, m).num_steps for m in range(2, 2 * wavelengths + 2)]
        assert steps[-1] == min(steps), f"{nodes} nodes, {wavelengths} wavelengths: {steps}"


def test_exchange_wavelengths() -> None:
    """The most nodes that 1, 2, 4, ..., 256 wavelengths let talk to each other."""
    most = [max(r for r in range(1, 64) if exchange_wavelengths(r) <= 2**k) for k in range(9)]
    assert most == [3, 4, 5, 8, 11, 16, 22, 32, 45]


@pytest.mark.parametrize(("size", "reason"), [(1, "at least 2"), (10, "at most 9"), (-3, "at least 2")])
def test_bad_group_size_is_declined(size: int, reason: str) -> None:
    """4 wavelengths serve groups of 2 to 9."""
    assert reason_declined("wrht:group_size=9", "all_reduce", ring(20, 4)) is None
    with pytest.raises(UnsupportedError, match=reason):
        schedule(20, 4, f"wrht:group_size={size}")


def test_other_fabrics_are_declined() -> None:
    """The tree is laid along a ring of fibres."""
    assert reason_declined("wrht", "all_reduce", fabric("ideal:nodes=8")) == "it needs a terarack fabric"
