"""Trees along the links that are left: they span, share links evenly, and alternate on them."""

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.operations.faults.residual import residual_bound_s
from opticcl.plans.plan import compile
from opticcl.schedule._links_left import links_left
from opticcl.schedule._tree_packing import below, busiest, in_turns, pack

COMB = "sipac:radix=3,levels=2,failed=comb_laser:3"
WSS = "oddl:shape=4x4,failed=switch:3"


def packing(spec, trees, share):
    """Links and trees of full-rate roots."""
    links = links_left(fabric(spec), one_partner=True)
    rate = np.minimum(*(side.sum(axis=1) for side in links.port_width))
    roots = np.resize(np.flatnonzero(rate == rate.max()), trees)
    return links, pack(links, roots, True, True, counted=False, share=share, enough=0.0)


@pytest.mark.parametrize("spec", [COMB, WSS])
def test_every_tree_spans_all_nodes_along_links(spec):
    """In-trees lead to the root, out-trees away from it."""
    links, forests = packing(spec, 8, 0.5)
    for forest, inwards in zip(forests, (True, False), strict=True):
        tree, node = np.nonzero(forest.depth > 0)
        parent = forest.parent[tree, node]
        ends = (node, parent) if inwards else (parent, node)
        assert (links.width[ends] > 0).all()
        assert (forest.depth[tree, node] == forest.depth[tree, parent] + 1).all()
        roots = (np.arange(8), forest.root)
        assert (forest.depth[roots] == 0).all()
        assert (below(forest)[roots] == len(links.width)).all()


def test_the_busiest_link_carries_no_more_than_the_bound_asks_for():
    """A node without one of its two combs sends every message once over the links that it has left."""
    found = []
    for share in (1.0, 0.5, 0.25, 0.1):
        links, forests = packing(COMB, 24, share)
        load = np.zeros(links.width.shape)
        for forest, inwards in zip(forests, (True, False), strict=True):
            tree, node = np.nonzero(forest.depth > 0)
            parent = forest.parent[tree, node]
            np.add.at(load, (node, parent) if inwards else (parent, node), 1)
        found.append(float(busiest(links, load[None], 1).max()) / 24)
    assert min(found) == pytest.approx(1 / int(links.port_width[0].sum(axis=1).min()))


def test_turns_use_each_link_once_a_period_and_never_before_what_they_need():
    """Transfers of two trees on a line of three nodes: in, then out."""
    tree_0 = [
        np.array([[0], [1], [0], [1], [1]]),
        np.array([[1], [2], [0], [1], [2]]),
        np.array([[2], [1], [0], [0], [1]]),
    ]
    both = [np.concatenate([stage, np.add(stage, [[0], [0], [1], [0], [0]])], axis=1) for stage in tree_0]
    turns, period = in_turns(both)
    assert period == 2
    start = {(int(s), int(d), int(t)): at for at, rows in enumerate(turns) for s, d, t in rows[:3].T}
    for link in ((0, 1), (1, 2), (2, 1)):
        assert {start[(*link, t)] % period for t in (0, 1)} == {0, 1}
    for t in (0, 1):
        assert start[0, 1, t] < start[1, 2, t] < start[2, 1, t]


@pytest.mark.parametrize(("spec", "algorithm", "most"), [
    (COMB, "packed_trees:pipeline=128", 1.05),
    (WSS, "packed_trees:pipeline=24,stagger=true", 1.25),
])  # fmt: skip
def test_time_over_the_bound(spec, algorithm, most):
    """An all_reduce of 1 GB without the time of sums, verified."""
    assumed = assumptions("common", compute="none")
    plan = compile(spec, "all_reduce", "1 GB", algorithm=algorithm, assumptions=assumed)
    assert plan.verify().ok
    bound_s = residual_bound_s(plan.circuits.fabric, Request("all_reduce"), 10**9, assumed)
    assert plan.simulate(assumptions=assumed).total_s < most * bound_s


def test_free_roots_share_links_more_evenly():
    """42 trees on the links of ODDL without a switch: 46 transfers on the busiest, where 45 are the least."""
    links = links_left(fabric(WSS), one_partner=True)
    used = (links.width > 0).sum()
    assert used == 28
    forests = pack(links, np.arange(42) % 16, True, True, counted=False, share=0.5, enough=0.0, free=True)
    load = np.zeros(links.width.shape)
    for forest, inwards in zip(forests, (True, False), strict=True):
        tree, node = np.nonzero(forest.depth > 0)
        assert len(tree) == 42 * 15
        parent = forest.parent[tree, node]
        np.add.at(load, (node, parent) if inwards else (parent, node), 1)
    assert np.array_equal(forests[0].root, forests[1].root)
    assert len(set(forests[0].root.tolist())) > 1
    assert (forests[0].depth[np.arange(42), forests[0].root] == 0).all()
    assert load.max() <= 46
    assert load.max() >= 2 * 15 * 42 / used


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_turns_leave_time_for_what_arrives(lag):
    """On a chain of four nodes each transfer starts that many steps after the one before it."""
    chain = [np.array([[node], [node + 1], [0], [1], [1]]) for node in range(3)]
    turns, period = in_turns(chain, lag)
    assert period == 1
    assert [rows.shape[1] for rows in turns] == [int(at % lag == 0) for at in range(2 * lag + 1)]


def test_trees_with_a_number_are_for_all_reduce_in_turns():
    """Others are declined with the reason."""
    for given, name in (("trees=8", "all_reduce"), ("trees=8,stagger=true", "all_gather")):
        with pytest.raises(UnsupportedError, match="trees=8: 1 to 128 go with all_reduce and stagger=true"):
            compile(WSS, name, "1 MB", algorithm=f"packed_trees:{given}")
