"""Spanning trees without common links."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedule.oracle import check, requests

from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule.disjoint_trees import spanning_trees

SIPACS = ["sipac:radix=2,levels=3", "sipac:radix=3,levels=2", "sipac:radices=4x3x2", "sipac:radix=5,levels=1"]


@given(sides=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple), data=st.data())
def test_trees_share_no_link(sides, data):
    """All nodes are below the root of every tree, a link serves one tree, and along each link one coordinate changes."""
    n = prod(sides)
    child, parent, tree, level = spanning_trees(sides, data.draw(st.integers(0, n - 1)))
    assert len(np.unique(parent * n + child)) == len(child) == sum(side - 1 for side in sides) * (n - 1)
    differing = np.array(np.unravel_index(child, sides)) != np.array(np.unravel_index(parent, sides))
    assert (differing.sum(axis=0) == 1).all()
    levels = np.zeros((sum(side - 1 for side in sides) + 1, n), int)
    levels[tree, child] = level
    assert (levels[tree, parent] == level - 1).all()
    assert level.max(initial=0) <= sum(side > 1 for side in sides) + 1


@pytest.mark.parametrize("name", SIPACS)
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("pipeline", [1, 2, 7])
def test_right_at_every_rank(name, collective, pipeline):
    """Any root, equal and unequal radices, pipelines shorter and longer than the trees are deep."""
    where = fabric(name)
    for request in requests(collective, where.num_nodes):
        check(f"disjoint_trees:pipeline={pipeline}", request, where)


def test_on_other_grids():
    """Fabrics whose lines are linked, and a shape of one's own."""
    for name in ("oddl:shape=3x4,wavelengths=4", "ideal:nodes=12"):
        for collective in ("broadcast", "reduce"):
            check("disjoint_trees:pipeline=3,shape=3x4", collective, fabric(name))
    check("disjoint_trees:shape=4x2x2", Request("broadcast", 5), fabric("lightpath:shape=4x4"))


@pytest.mark.parametrize(("radix", "levels", "pipeline"), [(3, 2, 1), (4, 3, 5), (8, 3, 12), (5, 1, 4)])
def test_time(radix, levels, pipeline):
    """L + k steps of 1 us and of 1/(k T) of the message on a channel of B/r each."""
    where = fabric("sipac", radix=radix, levels=levels)
    plan = compile(where, "broadcast", 10**7, algorithm=f"disjoint_trees:pipeline={pipeline}")
    lines = where.num_wavelengths // radix
    piece = plan.size_bytes * 8 / (pipeline * levels * (radix - 1))
    due = (levels + pipeline) * (where.latency_s + piece / (lines * where.rate_bits_per_s))
    assert plan.simulate(assumptions="published").total_s == pytest.approx(due, rel=1e-9)
