"""Groups of nodes that do the same at the same time, on disjoint parts of one machine: one plan of all, judged together."""

from dataclasses import replace

import numpy as np
import pytest

import opticcl
from opticcl.collective import Request
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import fabric, groups, job
from opticcl.plans.search import Searches
from opticcl.schedule import AlgorithmCall
from opticcl.verify import verify

SHAPES = {
    "ramp:groups=4,racks=2,wavelengths=8": (4, 2, 8),
    "sipac:radices=4x3x2": (2, 3, 4),
    "terarack:nodes=24,wavelengths=16": (24,),
    "terarack_torus:shape=4x6": (4, 6),
    "oddl:shape=4x8": (4, 8),
    "lightpath:shape=4x6": (4, 6),
    "ocs:nodes=24,planes=2": (24,),
    "torus:shape=4x6": (4, 6),
    "fat_tree:nodes=24": (24,),
    "superpod:nodes=32": (4, 8),
}

OTHERS = [
    ("all_reduce", "interleaved"),
    ("all_to_all", "neighbours"),
    ("all_reduce", "columns"),
    ("all_to_all", "columns"),
]


def members_of(machine, kind):
    """Nodes of groups: neighbours, every second, or all with one coordinate along the first side."""
    made = fabric(machine)
    n, sides = made.num_nodes, SHAPES[machine]
    if kind == "neighbours":
        return np.arange(n).reshape(-1, sides[-1] if len(sides) > 1 else 4)
    if kind == "interleaved":
        return np.arange(n).reshape(-1, sides[-1] if len(sides) > 1 else 4).T
    every = np.arange(n).reshape(sides)
    return np.moveaxis(every, -1, 0).reshape(sides[-1], -1) if len(sides) > 1 else every.reshape(2, -1)


@pytest.mark.parametrize(
    ("collective", "kind"),
    [
        ("all_reduce", "neighbours"),
        ("all_to_all", "interleaved"),
        *(pytest.param(*case, marks=pytest.mark.deep) for case in OTHERS),
    ],
)
@pytest.mark.parametrize("machine", SHAPES)
def test_fastest_of_groups(machine, kind, collective):
    """Right, no faster than one group alone and no slower than all groups one after the other."""
    where = groups(fabric(machine), members_of(machine, kind))
    assert where.num_nodes == where.machine.num_nodes
    plan = opticcl.compile(where, collective, "1MB", ignore_light=True)
    plan.verify().raise_if_bad()
    together = plan.simulate().total_s
    alone = opticcl.compile(where.member, collective, "1MB", ignore_light=True).simulate().total_s
    assert alone * (1 - 1e-9) <= together <= 1.001 * where.num_members * alone


@pytest.mark.parametrize("machine", ["ramp:groups=4,racks=2,wavelengths=8", "sipac:radices=4x3x2", "oddl:shape=4x8"])
def test_groups_are_as_fast_as_one_where_they_share_nothing(machine):
    """Parts that cross: each group has links of its own, and the system's own algorithm."""
    where = groups(fabric(machine), members_of(machine, "columns"))
    for algorithm in dict.fromkeys((fabric(machine).algorithm, "ring")):
        if AlgorithmCall.of(algorithm).reason_declined(Request("all_reduce"), where):
            continue
        plan, alone = (opticcl.compile(one, "all_reduce", "1MB", algorithm=algorithm) for one in (where, where.member))
        plan.verify().raise_if_bad()
        assert plan.simulate().total_s == pytest.approx(alone.simulate().total_s, rel=1e-9)


def test_groups_round_a_ring_have_equal_shares():
    """Groups of every eighth node have an eighth of the wavelengths each; neighbours half of all, each way."""
    ring = fabric("terarack", nodes=64, wavelengths=64)
    apart = groups(ring, np.arange(64).reshape(-1, 8).T)
    plan = opticcl.compile(apart, "all_reduce", "1MB", algorithm="circulant_rings").circuits
    assert set(plan.rounds(0)[0].wavelength_n.tolist()) == {8}
    beside = groups(ring, np.arange(64).reshape(-1, 8))
    plan = opticcl.compile(beside, "all_reduce", "1MB", algorithm="circulant_rings:folded=true").circuits
    assert set(plan.rounds(0)[0].wavelength_n.tolist()) == {32}
    verify(plan).raise_if_bad()


def listed(plan, step):
    """Transfers of a step as sorted rows."""
    found = plan.schedule.step(step)
    columns = (found.src, found.dst, found.chunk_lo, found.chunk_n, found.op)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    "algorithm", ["ring", "lumorph", "tree", "halving_doubling", "circulant_rings:folded=true", "bruck"]
)
def test_steps_are_those_of_each_group(algorithm):
    """Rank r of group k is rank k n + r, with the chunks of the schedule of one group."""
    where = groups(fabric("terarack", nodes=32), np.arange(32).reshape(8, 4).T)
    collective = "all_gather" if algorithm == "bruck" else "all_reduce"
    plan = opticcl.compile(where, collective, "1MB", algorithm=algorithm).circuits
    alone = opticcl.compile(where.member, collective, "1MB", algorithm=algorithm).circuits
    assert plan.schedule.num_steps == alone.schedule.num_steps
    for step in range(plan.schedule.num_steps):
        due = [(src + 8 * k, dst + 8 * k, *rest) for k in range(4) for src, dst, *rest in listed(alone, step)]
        assert listed(plan, step) == sorted(due)


def test_light_of_two_groups_that_meet_is_refused():
    """The circuits of a group on the wavelengths of another."""
    where = groups(fabric("terarack", nodes=16, wavelengths=16), np.arange(16).reshape(4, 4).T)
    plan = opticcl.compile(where, "all_reduce", "1MB", algorithm="circulant_rings").circuits
    (first,) = plan.rounds(0)
    wrong = replace(first, wavelength_lo=np.zeros_like(first.wavelength_lo))
    bad = replace(plan, rounds=lambda i: (wrong,) if i == 0 else plan.rounds(i))
    assert {violation.rule for violation in verify(bad).violations} == {"wavelength_clash"}


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([[0, 1], [1, 2]], "group 1: node 1 is in group 0 too"),
        ([[0, 1], [2, 3, 4]], "group 1: 3 nodes, group 0 has 2"),
        ([[0, 1], [2, 16]], "group 1: terarack: there is no node 16"),
        ([[0, 1], [2, 2]], "group 1: terarack: node 2 is given twice"),
        ([], "groups of nodes are at least one"),
    ],
)
def test_bad_groups(members, text):
    """One line that names the group and the node."""
    with pytest.raises(FabricError, match=text):
        groups(fabric("terarack", nodes=16), members)


def test_a_failed_node_of_a_group_is_named():
    """Parts that have failed."""
    with pytest.raises(FabricError, match=r"group 1: .* is dead"):
        groups(
            fabric("terarack", nodes=16).without(fabric("terarack:nodes=16,failed=node:5").machine.conditions),
            [[0, 1], [4, 5]],
        )


def test_what_is_made_of_one_group(tmp_path):
    """Files, programmes and data."""
    plan = opticcl.compile(groups(fabric("terarack", nodes=16), [[0, 1], [2, 3]]), "all_reduce", "1MB")
    for make in (plan.programme, lambda: plan.save(tmp_path / "p.json"), lambda: plan.execute([np.zeros(1)] * 4)):
        with pytest.raises(UnsupportedError, match="2 groups at once"):
            make()


def test_searches_tell_groups_apart():
    """Of the same nodes in the same order, as four groups of two, two of four, a job of all or one with its share."""
    searches, machine, nodes = Searches(), fabric("terarack", nodes=16), np.arange(8)
    asked = [groups(machine, nodes.reshape(many, -1)) for many in (4, 2)]
    asked += [job(machine, nodes, shares=shares) for shares in (False, True)]
    found = [searches.of(where, Request("all_reduce")) for where in asked]
    assert [search.fabric for search in found] == asked
    assert len(set(map(id, found))) == 4
