"""Routes of steps of very many packets, some at a time: the same cost, verdict and loads as of all together."""

import dataclasses

import numpy as np
import pytest
from tests.streams import StreamedPlan

from opticcl.assumptions import assumptions
from opticcl.circuits import lightpath as lightpath_rule
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, circuit_plan, concatenate_circuits
from opticcl.ir.step_cache import StepCache
from opticcl.plans.compare import compare_plans
from opticcl.schedule import generate
from opticcl.simulate import PlanFacts, profile
from opticcl.simulate.bottleneck import loads
from opticcl.simulate.latency import path_latency
from opticcl.simulate.pieces import RouteLegs
from opticcl.verify import verify

FABRICS = [
    "torus:shape=4x6", "torus:shape=3x3x3", "fat_tree:nodes=27", "dragonfly:nodes=20", "leaf_spine:nodes=24",
    "bcube:radix=3,levels=3", "superpod:nodes=32", "ideal:nodes=21",
]  # fmt: skip


@pytest.fixture
def few(monkeypatch):
    """Steps of more than 16 transfers are streamed, 7 at a time."""
    monkeypatch.setattr(circuit_plan, "ROUTES_LISTED", 16)
    monkeypatch.setattr(circuit_plan, "ROUTES_AT_ONCE", 7)


@pytest.mark.parametrize("specification", FABRICS)
@pytest.mark.parametrize(("algorithm", "collective"), [("mesh", "all_to_all"), ("ring", "all_reduce")])
def test_nothing_differs(specification, algorithm, collective, monkeypatch):
    """Cost of every step, verdict, loads of every link, with and without the cache of a search."""
    where = fabric(specification)
    schedule = generate(algorithm, collective, where)
    common, plan = assumptions("common"), lower(where, schedule)
    whole = profile(plan, common).costs, verify(plan), loads(plan, 10**6)
    assert plan.stream(0) is None
    monkeypatch.setattr(circuit_plan, "ROUTES_LISTED", 16)
    monkeypatch.setattr(circuit_plan, "ROUTES_AT_ONCE", 7)
    for one in (lower(where, schedule), StepCache().of_plan(lower(where, schedule))):
        streamed = concatenate_circuits(one.stream(0))
        assert np.array_equal(streamed.hops, plan.rounds(0)[0].hops)
        assert verify(one) == whole[1]
        for due, cost in zip(whole[0], profile(one, common).costs, strict=True):
            assert dataclasses.astuple(cost)[:2] == dataclasses.astuple(due)[:2]
            assert np.allclose(
                [*dataclasses.astuple(cost)[2:6], *cost.slowest],
                [*dataclasses.astuple(due)[2:6], *due.slowest],
                rtol=1e-9,
                atol=0,
            )
        for due, load in zip(whole[2], loads(one, 10**6), strict=True):
            assert np.array_equal(load.index, due.index)
            assert np.allclose(load.carried_bytes, due.carried_bytes)


def test_circuits_are_never_streamed(few):
    """Only routes of packets share links; light is counted as a whole."""
    where = fabric("sipac:radix=3,levels=3")
    assert lower(where, generate("sipco", "all_to_all", where)).stream(0) is None


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda c: dataclasses.replace(c, src=np.roll(c.src, 1)), "circuit_astray"),
        (lambda c: dataclasses.replace(c, hops=c.hops[::-1].copy()), "path_broken"),
        (
            lambda c: dataclasses.replace(c, hops=np.where(c.hops == c.hops[-1], 10**6, c.hops).astype(np.int32)),
            "path_broken",
        ),
        (lambda c: dataclasses.replace(c, transfer=c.transfer + 10**6), "transfer_unknown"),
        (lambda c: c.take(np.arange(1, len(c))), "transfer_not_carried"),
        (lambda c: dataclasses.replace(c, port=c.port + 99), "port_unknown"),
    ],
)
def test_mutants_are_refused(edit, rule, few):
    """One block of routes is changed; the columns name the rule."""
    where = fabric("torus:shape=4x4")
    plan = lower(where, generate("mesh", "all_to_all", where))

    class Changed:
        def stream(self, i):
            for number, block in enumerate(plan.stream(i)):
                yield edit(block) if number == 3 else block

    assert rule in {v.rule for v in verify(StreamedPlan(where, plan.schedule, Changed())).violations}
    assert verify(plan).ok


def test_a_comparison_of_streamed_steps(few):
    """The same rows."""
    machines = [fabric(one) for one in ("torus:shape=4x4", "fat_tree:nodes=16", "ideal:nodes=16")]
    rows = {entry.fabric.name: entry for entry in compare_plans(machines, "all_to_all", [10**6]).entries}
    assert set(rows) == {"torus", "fat_tree", "ideal"}
    assert all(entry.verdict.ok and entry.bottleneck is not None for entry in rows.values())


def test_a_fabric_that_would_not_fit_is_left_out_for_its_bytes(monkeypatch):
    """Before its paths are evaluated; the others go on."""
    monkeypatch.setattr(lightpath_rule, "MOST_HOPS", 1000)
    found = compare_plans(
        [fabric("lightpath:shape=8x8"), fabric("ideal:nodes=64")], "all_to_all", [10**6], algorithm="mesh"
    )
    assert [entry.fabric.name for entry in found.entries] == ["ideal"]
    (out,) = found.left_out
    assert "edges, which take 241.9 KB; at most 12 KB are used" in out.reason


@pytest.mark.parametrize("shape", ["7", "2x5", "4x6", "1x3x4", "3x4x5"])
def test_straight_parts_are_the_routes(shape):
    """The links at the places of the parts, in order; loads and the longest route follow from them."""
    where = fabric("torus", shape=shape)
    n = where.num_nodes
    src, dst = (column.ravel() for column in np.indices((n, n)))
    apart = src != dst
    src, dst = src[apart], dst[apart]
    hops, offsets = where.route(src, dst)
    parts = where.pieces(src, dst)
    listed = [
        where.lines[first + (start + np.arange(length)) % side]
        for first, side, start, length in zip(
            *(getattr(parts, c).ravel() for c in ("first", "side", "start", "length")), strict=True
        )
    ]
    assert np.array_equal(np.concatenate(listed), hops)
    assert np.array_equal(np.sort(where.lines), np.arange(where.network.num_links))
    laws = [path_latency(where, assumptions(name)) for name in ("common", "published")]
    for every in (1, n):  # more routes than there are legs on a grid, and fewer
        some, to = src[::every], dst[::every]
        hops, offsets = where.route(some, to)
        amount = np.arange(len(some)) % 5
        assert np.array_equal(
            RouteLegs(where, some, to).loads(amount),
            np.bincount(hops, np.repeat(amount, np.diff(offsets)), where.network.num_links),
        )
        circuits = Circuits.of(np.arange(len(some)), some, to, path=(hops, offsets))
        for law in laws:
            assert RouteLegs(where, some, to).longest_s(law) == pytest.approx(law.longest_s(circuits), rel=1e-12)


@pytest.mark.parametrize("specification", ["torus:shape=4x6", "fat_tree:nodes=27"])
def test_facts_hold_under_all_assumptions(few, specification):
    """Routes that are evaluated some at a time for one law of latency, and again for another."""
    plan = lower(fabric(specification), generate("mesh", "all_to_all", fabric(specification)))
    assert plan.stream(0) is not None
    facts = PlanFacts(plan)
    for changed in ({}, {"hop": 1e-3}, {"latency": "published"}, {"message_gap": 1e-6}):
        assumed = assumptions("common", **changed)
        assert profile(plan, assumed, facts).costs == profile(plan, assumed).costs
