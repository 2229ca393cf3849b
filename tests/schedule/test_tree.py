"""Binomial tree: any number of nodes, any root, in pieces or whole, on fabrics of several kinds."""

from __future__ import annotations

import pytest
from tests.schedule.oracle import check, requests

from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.schedule import generate, reason_declined


def test_each_node_sends_one_sum_up_and_hears_one_result() -> None:
    """Every node but the root sends once on the way up and receives once on the way down, all in one chunk."""
    schedule = generate("tree", "all_reduce", fabric("ideal:nodes=11"))
    steps = [schedule.step(i) for i in range(schedule.num_steps)]
    up, down = steps[: len(steps) // 2], steps[len(steps) // 2 :]
    assert sorted(int(node) for step in up for node in step.src) == list(range(1, 11))
    assert sorted(int(node) for step in down for node in step.dst) == list(range(1, 11))
    assert schedule.collective.num_chunks == 1


COLLECTIVES = ["broadcast", "reduce", "scatter", "gather", "all_reduce", "barrier"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(collective: str) -> None:
    """Verified and executed, all roots of small numbers, three of larger ones; ceil(log2 N) steps each way."""
    for nodes in (1, 2, 3, 5, 8, 13, 37):
        for request in requests(collective, nodes):
            schedule = check("tree", request, fabric("ideal", nodes=nodes))
            ways = 2 if collective in ("all_reduce", "barrier") else 1
            assert schedule.num_steps == ways * (nodes - 1).bit_length()


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "all_reduce"])
@pytest.mark.parametrize("pipeline", [2, 5, 17])
def test_pipelined(collective: str, pipeline: int) -> None:
    """k - 1 steps more; where all levels are busy the steps are identical."""
    for nodes in (1, 2, 3, 8, 13):
        for request in requests(collective, nodes):
            schedule = check(f"tree:pipeline={pipeline}", request, fabric("ideal", nodes=nodes))
            stages = (nodes - 1).bit_length() * (2 if collective == "all_reduce" else 1)
            assert schedule.num_steps == (stages + pipeline - 1 if stages else 0)
            assert max(map(len, schedule.step_classes()), default=0) == (max(1, pipeline - stages + 1) if stages else 0)


@pytest.mark.parametrize("name", ["oddl:shape=3x5", "oddl:shape=2x3x2", "oddl:shape=4x8", "sipac:radix=3,levels=2"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_grid_has_a_tree_on_every_line(name: str, collective: str) -> None:
    """Any root of a grid whose lines alone are linked, with no more wavelengths than ODDL's log2(side)."""
    where = fabric(name)
    for root in (0, 1, where.num_nodes - 1):
        check("tree", Request(collective, root), where)


def test_blocks_halve_on_the_way_down() -> None:
    """Scatter among eight: the root sends four blocks, then two, then one."""
    schedule = generate("tree", "scatter", fabric("ideal:nodes=8"))
    assert [schedule.step(i).chunk_n.max() for i in range(3)] == [4, 2, 1]
    assert [len(schedule.step(i)) for i in range(3)] == [1, 2, 4]


def test_nodes_that_are_not_linked_are_declined() -> None:
    """Two of the job's nodes differ in both coordinates; the first such pair is named, as nodes of the machine."""
    where = job(fabric("oddl:shape=3x5"), [0, 6, 1])
    assert reason_declined("tree", "all_reduce", where) == "no single circuit joins nodes (0, 0) and (1, 1)"
    with pytest.raises(UnsupportedError, match="tree cannot do all_reduce on oddl: no single circuit joins"):
        generate("tree", "all_reduce", where)
