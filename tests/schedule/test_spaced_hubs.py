"""Chains of hubs whose territories shrink with the depth."""

from math import comb

import numpy as np
import pytest
from tests.schedule.oracle import check
from tests.schedule.test_circulant_rings import PLAIN

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule.spaced_hubs import hub_depth, hub_links
from opticcl.verify.time.programme import check_programme, rules_of


@pytest.mark.parametrize("nodes", [2, 7, 13, 24])
@pytest.mark.parametrize(("levels", "halves"), [(1, False), (2, True), (2, False), (3, True)])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_data_light_and_time(nodes, levels, halves, collective):
    """The closed form is depth + S - 1 steps on the wavelengths of a level."""
    pieces, size = 3, 960_000
    where = fabric("terarack", nodes=nodes, wavelengths=6)
    name = f"spaced_hubs:levels={levels},pipeline={pieces},halves={halves}"
    wanted = Request(collective, nodes // 3)
    check(name, wanted, where)
    plan = compile(where, wanted, size, algorithm=name)
    piece_s = 8 * size / (1 + halves) / pieces / (6 // levels * where.rate_bits_per_s)
    due = 25e-6 + (hub_depth(nodes, levels, halves) + pieces - 1) * (1e-6 + piece_s)
    assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)


def farthest(levels, steps, halves):
    """Nodes that so many steps reach, by paths counted one by one: each hop goes on along its chain or down a level."""
    if halves:
        return comb(levels + steps, levels)
    return sum(2**k * comb(levels, k) * comb(steps, k) for k in range(min(levels, steps) + 1))


@pytest.mark.parametrize("halves", [True, False])
def test_no_more_steps_than_hops_and_levels_need(halves):
    """All nodes once in each tree, each a step behind its parent; one node more takes a step more."""
    for levels in range(1, 5):
        for steps in range(1, 5):
            most = farthest(levels, steps, halves)
            assert hub_depth(most, levels, halves) == steps
            assert hub_depth(most + 1, levels, halves) == steps + 1
            child, parent, tree, depth, *_ = hub_links(most, levels, 1, halves)
            for number in range(1 + halves):
                at = np.zeros(most, np.int64)
                at[child[tree == number]] = depth[tree == number]
                assert np.count_nonzero(at) == most - 1 == np.count_nonzero(tree == number)
                assert (at[parent[tree == number]] + 1 == depth[tree == number]).all()
                assert at.max() == steps


@pytest.mark.deep
def test_auto_takes_five_levels_on_1024_nodes():
    """1 MB with 1 us a step: 15 steps on 12 or 13 of 64 wavelengths; equal distances take 67.7 us at best."""
    plan = compile("terarack", "broadcast", "1MB", assumptions=assumptions("common", **PLAIN), ignore_light=True)
    assert plan.algorithm == "spaced_hubs:levels=5,pipeline=8,halves=True"
    fastest, slowest = (25e-6 + (8 + 7) * (1e-6 + 1e6 * 8 / 2 / 8 / (wide * 40e9)) for wide in (13, 12))
    assert fastest < plan.simulate(assumptions=assumptions("common", **PLAIN)).total_s < slowest < 56e-6
    assert plan.verify().ok


@pytest.mark.deep
def test_all_of_1024_nodes_by_the_laws_of_time():
    """Every chunk is followed, every circuit judged, and all times."""
    assumed = assumptions("common", **PLAIN)
    plan = compile("terarack", "broadcast", "1MB", algorithm="spaced_hubs:levels=5,pipeline=8,halves=True")
    assert plan.verify(every_chunk=True).ok
    times = plan.programme("closed_form", assumptions=assumed)
    assert check_programme(plan.circuits, times, rules_of(times)).ok
