"""WRHT: representatives, number of steps, and that every sum is right."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.collective import COLLECTIVES, ROOTED, Request
from opticcl.fabrics import fabric
from opticcl.ir import Fabric, Schedule
from opticcl.schedule import generate, reason_declined
from opticcl.schedule.wrht import tree
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
    levels = tree(ring(nodes, 128), Request("all_reduce"), group_size, "published").lines[0].levels
    assert [len(level) for level in levels] == [-(-nodes // group_size**i) for i in range(len(levels))]
    assert len(levels[-1]) == 1


def test_sums_of_the_exchange_are_the_old_ones() -> None:
    """A representative that adds to what it has just received counts twice: the exchange in two steps is refused."""
    made = schedule(15, 2)
    exchange = made.step(1)
    late = exchange.src == 12
    halves = [exchange.take(rows) for rows in (~late, late)]
    steps = [made.step(0), *halves, made.step(2)]
    plan = lower(ring(15, 2), replace(made, name="by hand", num_steps=4, step=steps.__getitem__))
    assert "contribution_doubled" in {v.rule for v in verify(plan).violations}


def test_no_group_size_beats_the_largest() -> None:
    """m = 2w + 1 takes the fewest steps of all m."""
    for wavelengths, nodes in ((2, 15), (3, 100), (4, 1024), (8, 1021), (16, 4096)):
        where = ring(nodes, wavelengths)
        steps = [len(tree(where, Request("all_reduce"), m).steps) for m in range(2, 2 * wavelengths + 2)]
        assert steps[-1] == min(steps), f"{nodes} nodes, {wavelengths} wavelengths: {steps}"


SIZES = (1, 2, 3, 5, 7, 9, 16, 26, 31)


@pytest.mark.parametrize("algorithm", ["wrht", "wrht:group_size=3", "wrht:variant=published"])
@pytest.mark.parametrize("name", [c for c in COLLECTIVES if c != "send_recv"])
def test_every_collective_is_right(name: str, algorithm: str) -> None:
    """Any root on small rings; primes, powers of m, short last groups."""
    for nodes in SIZES:
        for root in {0, nodes // 2, nodes - 1} if name in ROOTED else (0,):
            check(algorithm, Request(name, root), ring(nodes, 2))


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("name", [c for c in COLLECTIVES if c != "send_recv"])
def test_torus_and_mesh(name: str, wrap: bool) -> None:
    """Rows first, then the column of their tops, then back; any root where the rows close."""
    for shape, algorithm in (
        ((1, 1), "wrht"),
        ((1, 5), "wrht"),
        ((7, 1), "wrht"),
        ((4, 4), "wrht:group_size=2"),
        ((5, 7), "wrht"),
    ):
        where = fabric("terarack_torus", shape=shape, wrap=wrap, wavelengths=2)
        if name in ROOTED and not wrap:
            assert "tree" in str(reason_declined(algorithm, name, where))
            continue
        for root in {0, where.num_nodes // 2, where.num_nodes - 1} if name in ROOTED else (0,):
            check(algorithm, Request(name, root), where)


@pytest.mark.parametrize(
    ("shape", "wrap", "steps"), [("32x32", True, 4), ("22x22", True, 3), ("22x22", False, 4), ("16x16", False, 3)]
)
def test_steps_on_a_torus_and_a_mesh(shape: str, wrap: bool, steps: int) -> None:
    """64 wavelengths: a column of 22 exchanges on a torus (61), one of 16 on a mesh (64), and no more."""
    where = fabric("terarack_torus", shape=shape, wrap=wrap)
    made = generate("wrht", "all_reduce", where)
    assert made.num_steps == steps
    assert verify(lower(where, made)).ok


@pytest.mark.parametrize(("wavelengths", "nodes", "steps"), [(2, 25, 2), (2, 26, 3), (64, 129, 1), (64, 4096, 2)])
def test_rooted_steps(wavelengths: int, nodes: int, steps: int) -> None:
    """ceil(log_m N) steps to or from one root, wherever it is: no node receives from more than 2w others at once."""
    for name in ROOTED:
        for root in (0, nodes // 3):
            assert generate("wrht", Request(name, root), ring(nodes, wavelengths)).num_steps == steps


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("reduce", [1, 1]),
        ("gather", [1, 5]),
        ("scatter", [5, 1]),
        ("all_gather", [1, 5, 15]),
        ("reduce_scatter", [15, 5, 1]),
        ("all_to_all", [15, 25, 15]),
    ],
)
def test_how_much_is_carried(name: str, most: list[int]) -> None:
    """15 nodes in groups of 5: a representative stands for 5 blocks; of an all_to_all it has 5 nodes' blocks for 5."""
    made = generate("wrht:group_size=5", name, ring(15, 2))
    assert [int(made.step(i).size_chunks().max()) for i in range(made.num_steps)] == most
