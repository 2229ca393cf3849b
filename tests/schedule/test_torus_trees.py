"""Spanning trees of a torus without common links."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.schedule.oracle import check, requests

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.schedule.torus_trees import torus_spanning_trees
from opticcl.verify import verify


@examples(25)
@given(sides=st.lists(st.integers(2, 5), min_size=1, max_size=4).map(tuple), data=st.data())
def test_trees_share_no_link(sides, data):
    """All nodes are below the root of every tree, and each link, one step along one ring, serves one tree at most."""
    n, both = prod(sides), min(sides) > 2 and data.draw(st.booleans())
    root = data.draw(st.integers(0, n - 1))
    child, parent, tree, level = torus_spanning_trees(sides, root, both)
    trees = len(sides) * (1 + both)
    assert len(np.unique(parent * n + child)) == len(child) == trees * (n - 1)
    moved = np.array(np.unravel_index(child, sides)) - np.array(np.unravel_index(parent, sides))
    moved %= np.array(sides)[:, None]
    assert ((moved != 0).sum(axis=0) == 1).all()
    back = np.array(sides)[:, None] - 1
    assert (((moved == 0) | (moved == 1)).all(axis=0) | (both & ((moved == 0) | (moved == back)).all(axis=0))).all()
    levels = np.zeros((trees, n), int)
    levels[tree, child] = level
    assert (levels[tree, parent] == level - 1).all()
    assert level.max() == (sum(sides) - len(sides) + 1 if len(sides) > 1 else sides[0] - 1)


@pytest.mark.parametrize("name", ["oddl:shape=3x5", "oddl:shape=2x3x4", "torus:shape=4x4"])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_right_at_every_rank(name, collective):
    """Odd, even and unequal sides, any root, pipelines shorter and longer than the trees are deep."""
    where = fabric(name)
    for request in requests(collective, where.num_nodes):
        for pipeline in (1, 9):
            both = name.startswith("torus")
            schedule = check(f"torus_trees:pipeline={pipeline},both_ways={both}", request, where)
            assert schedule.num_steps == sum(where.dimensions) - len(where.dimensions) + pipeline


@pytest.mark.parametrize(("shape", "pipeline"), [("3x5", 1), ("8x8", 16), ("4x4x4", 7)])
def test_time_on_oddl(shape, pipeline):
    """One setting, and D + s - 1 steps of a piece on a NIC at the rate of all its wavelengths."""
    where = fabric(f"oddl:shape={shape}")
    law = assumptions("common")
    plan = compile(where, "broadcast", 10**7, algorithm=f"torus_trees:pipeline={pipeline}")
    timeline = plan.simulate(assumptions=law)
    sides = where.dimensions
    steps = 1 + sum(sides) - len(sides) + pipeline - 1
    piece = 8e7 / (len(sides) * pipeline)
    due = steps * piece / (where.num_wavelengths * where.rate_bits_per_s)
    assert timeline.transfer_s.sum() == pytest.approx(due, rel=1e-9)
    assert (timeline.reconfiguration_s > 0).sum() == 1


@pytest.mark.deep
def test_largest_scale():
    """4,096 nodes: every chunk and all light."""
    verdict = verify(lower(where := fabric("oddl:shape=64x64"), generate("torus_trees:pipeline=2", "broadcast", where)))
    assert verdict.ok
    assert verdict.exhaustive
