"""Two binary trees for half of the message each."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engines import closed_form
from tests.schedule.oracle import check, requests

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.schedule import generate
from opticcl.schedule.double_tree import two_trees

SIZES = [1, 2, 3, 4, 5, 8, 13]


@pytest.mark.parametrize("collective", ["all_reduce", "broadcast", "reduce"])
@pytest.mark.parametrize("pipeline", [1, 2, 7])
def test_right_at_every_rank(collective: str, pipeline: int) -> None:
    """Any number of nodes, any root, pipelines shorter and longer than the trees are deep."""
    for nodes in SIZES:
        for request in requests(collective, nodes):
            check(f"double_tree:pipeline={pipeline}", request, fabric("ideal", nodes=nodes))


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 8, 16, 31, 64, 100, 1024])
def test_shape_of_the_trees(nodes: int) -> None:
    """All once below the root of each tree, at most two below each, all levels needed, the root alone inside both."""
    has_children = np.zeros((2, nodes), bool)
    for tree, (child, parent, level) in enumerate(two_trees(nodes, root=1)):
        assert sorted(child) == [node for node in range(nodes) if node != 1]
        below = np.bincount(parent, minlength=nodes)
        assert below[1] == 1
        assert below.max() <= 2
        assert level.max() == (nodes - 1).bit_length() - (nodes - 1 == 1 << (nodes - 1).bit_length())
        level_of = np.zeros(nodes, int)
        level_of[child] = level
        assert (level_of[child] == level_of[parent] + 1).all()
        has_children[tree, parent] = True
    inner_in_both = np.flatnonzero(has_children.all(axis=0))
    assert inner_in_both.tolist() == [1]  # the root alone


def test_trees_of_the_drawing() -> None:
    """Eight nodes, root 0."""
    (child, parent, _), (other_child, other_parent, _) = two_trees(8)
    assert dict(zip(child.tolist(), parent.tolist(), strict=True)) == {1: 2, 2: 4, 3: 2, 4: 0, 5: 6, 6: 4, 7: 6}
    drawn = {5: 0, 3: 5, 7: 5, 2: 3, 4: 3, 6: 7, 1: 7}
    assert dict(zip(other_child.tolist(), other_parent.tolist(), strict=True)) == drawn


def test_a_long_pipeline_is_twice_as_fast_as_one_tree() -> None:
    """Broadcast of a long message: the port sends each byte once, where a single binary tree sends it twice."""
    where = fabric("ideal:nodes=64,latency=0s")
    plan = lower(where, generate("double_tree:pipeline=4096", "broadcast", where))
    at_port_rate = 10**9 * 8 / where.rate_bits_per_s
    assert closed_form(plan, 10**9, assumptions("published", compute="none")).total_s == pytest.approx(
        at_port_rate, rel=0.02
    )
