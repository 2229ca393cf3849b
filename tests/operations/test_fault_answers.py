"""Answers to failed parts: judged plans, proven cuts, bounds, and equal parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import Condition, Fabric
from opticcl.operations.faults import relabellings
from opticcl.operations.faults.answers import Healthy, answer, recovery_parameters
from opticcl.operations.faults.relabellings import (
    check_relabelling,
    pairs_to_check,
    part_classes,
    relabelling_maps,
)
from opticcl.operations.faults.residual import closed_set, residual, residual_bound_s
from opticcl.operations.faults.sweep import classes_to_try, limits_of, pairs_of_parts, sweep
from opticcl.plans.plan import compile
from opticcl.verify.data.cut import check_cut
from opticcl.verify.time.programme import check_programme, rules_of

FIVE = [
    "ramp:groups=2,racks=2,wavelengths=2",
    "sipac:radix=2,levels=2,wavelengths=4",
    "terarack:nodes=4,wavelengths=2",
    "oddl:shape=2x4,control_radix=2",
    "lightpath:shape=2x3,waveguides=2,lasers=4",
]
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")


def healthy(spec: str, collective: str = "all_reduce", size: int = 10_000_000, **options: float) -> Healthy:
    """A collective where nothing has failed."""
    assumed = assumptions("common")
    return Healthy(fabric(spec), Request(collective), size, "auto", assumed, {**recovery_parameters(), **options})


QUICK = {(FIVE[2], "all_to_all"), (FIVE[4], "all_reduce")}


@pytest.mark.parametrize(
    ("spec", "collective"),
    [
        pytest.param(spec, collective, marks=() if (spec, collective) in QUICK else pytest.mark.deep)
        for spec in FIVE
        for collective in COLLECTIVES
    ],
)
def test_every_part_is_answered(spec: str, collective: str) -> None:
    """By a verified plan that is not below its bound, or by a cut that the judge confirms."""
    whole = healthy(spec, collective)
    reports = list(sweep(whole, lambda *_: None))
    assert sum(r.equal_parts for r in reports) == sum(kind.count for kind in whole.fabric.inventory())
    for report in reports:
        if report.answer == "cut":
            left = whole.fabric.without(report.conditions)
            assert not check_cut(left, left.ranks_at(np.array(report.cut)))
            continue
        assert report.ok, report.conditions
        assert report.ratio is None or report.ratio >= 1 - 1e-9, (report.conditions, report.ratio)
        assert (report.answer == "kept") == (report.recovery.total_s == 0)
        assert report.work >= report.restart_work


@pytest.mark.parametrize(
    ("spec", "single"),
    [
        pytest.param(
            "sipac:radix=4,levels=1,wavelengths=4",
            {"comb_laser", "switch", "input_fibre", "output_fibre"},
            marks=pytest.mark.deep,
        ),
        pytest.param("sipac:radix=2,levels=2,wavelengths=4", set(), marks=pytest.mark.deep),
        ("oddl:shape=4,control_radix=8", {"transmitter", "receiver", "input_fibre", "output_fibre", "switch"}),
        pytest.param("oddl:shape=2x2,control_radix=8", set(), marks=pytest.mark.deep),
        ("ramp:groups=1,racks=1,wavelengths=4", {"transmitter", "receiver", "star"}),
        pytest.param("ramp:groups=2,racks=2,wavelengths=2", set(), marks=pytest.mark.deep),
    ],
)
def test_single_points_of_failure(spec: str, single: set[str]) -> None:
    """One of these parts cuts ranks off where a node has one port; none where it has two. Control switches have no second."""
    whole = healthy(spec)
    reports = [answer(whole, [each.condition]) for each in classes_to_try(whole) if each.condition.kind != "node"]
    cut = {report.conditions[0].kind for report in reports if report.answer == "cut"} - {"control_switch"}
    assert cut >= single
    assert bool(cut) == bool(single)


def test_a_restart_is_preferred_where_it_works_more() -> None:
    """A ring of 8 nodes without a comb: all nodes take twice as long, seven do not."""
    whole = healthy("terarack:nodes=8,wavelengths=4", size=100_000_000)
    report = answer(whole, [Condition("comb_laser", 0)])
    assert (report.answer, report.ranks, report.restart_ranks) == ("shrunk", 7, 7)
    rarely = answer(
        healthy("terarack:nodes=8,wavelengths=4", size=100_000_000, communication=0.01), [Condition("comb_laser", 0)]
    )
    assert rarely.answer in ("reassigned", "rescheduled")
    assert rarely.work > rarely.restart_work > 0


def test_a_sweep_times_what_is_made_for_damage() -> None:
    """LIGHTPATH 4x4 without a laser: `uneven_exchange` is faster than every algorithm of the machine as built, at 1 GB."""
    whole = replace(healthy("lightpath:shape=4x4", size=1_000_000_000), assumed=assumptions("common", compute="none"))
    report = answer(whole, [Condition("laser", 80)], search=False)
    assert (report.answer, report.algorithm, report.plan_from) == ("rescheduled", "uneven_exchange", "for damage")
    left = whole.fabric.without([Condition("laser", 80)])
    for name in whole.best_algorithms:
        plan = compile(left, whole.wanted, whole.size_bytes, algorithm=name, assumptions=whole.assumed)
        assert plan.simulate(assumptions=whole.assumed).total_s > report.time_s  # type: ignore[operator]
    searched = answer(whole, [Condition("laser", 80)])
    assert (searched.algorithm, searched.plan_from) == ("uneven_exchange", "full search")
    assert searched.time_s == pytest.approx(report.time_s, rel=1e-12)


@pytest.mark.parametrize(
    ("spec", "parts", "plan_from"),
    [
        pytest.param("sipac:radix=3,levels=2", [Condition("modulator", 1)], "as built", marks=pytest.mark.deep),
        ("sipac:radix=3,levels=2", [Condition("switch", 1)], "for damage"),
        pytest.param("terarack:nodes=8,wavelengths=4", [Condition("fibre", 3)], "as built", marks=pytest.mark.deep),
        ("lightpath:shape=3x3,waveguides=4", [Condition("laser", 5, "weak", 0.5)], "as built"),
    ],
)
def test_a_plan_of_one_search_is_no_faster_than_that_of_all(spec: str, parts: list[Condition], plan_from: str) -> None:
    """It is verified, and not below the bound; the search of all has its plan too."""
    whole = healthy(spec, size=100_000_000, communication=0.01)
    once, again = (answer(whole, parts, search=search) for search in (False, True))
    assert once.ok
    assert again.ok
    assert once.plan_from == plan_from
    assert once.time_s >= again.time_s * (1 - 1e-12) >= again.bound_s * (1 - 1e-9)  # type: ignore[operator]


def test_all_algorithms_are_searched_where_none_survives() -> None:
    """A SiPAC of 144 nodes without a comb: its algorithms need every link, and trees are for up to 128 nodes."""
    whole = healthy("sipac:radix=12,levels=2")
    report = answer(whole, [Condition("comb_laser", 0)], search=False)
    assert report.ok
    assert (report.plan_from, report.restart_ranks) == ("full search", 0)
    assert report.algorithm not in whole.best_algorithms
    assert limits_of(whole.fabric) == [
        "over 128 nodes: bounds are those of single nodes, not of other sets of ranks",
        "over 128 nodes: no restart without the nodes that use a failed part",
    ]
    assert limits_of(fabric("sipac:radix=3,levels=2")) == []


@pytest.mark.parametrize("spec", ["sipac:radix=4,levels=2", "oddl:shape=4x4"])
def test_the_bound_of_a_weak_node(spec: str) -> None:
    """One of two ports of a node is dead: all_reduce is bounded by its half rate, 16 / 15 of the healthy bound."""
    whole = healthy(spec, size=1_000_000_000)
    kind = "comb_laser" if "sipac" in spec else "transmitter"
    left = whole.fabric.without([Condition(kind, 5)])
    rate = residual(whole.fabric).sent
    assert (residual(left).sent < rate).sum() == 1
    weak_s = residual_bound_s(left, whole.wanted, whole.size_bytes, whole.assumed)
    b = float(rate.max()) * residual(whole.fabric).rate_bits_per_s / 8
    assert weak_s >= whole.size_bytes / (b / 2) * (1 - 1e-9)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("spec", "part", "most"),
    [
        ("sipac:radix=2,levels=2,wavelengths=4", "comb_laser", 1.02),
        ("sipac:radix=3,levels=2,wavelengths=3", "comb_laser", 1.05),
        ("oddl:shape=4x4", "switch", 1.06),
    ],
)
def test_pieces_that_go_on_as_they_arrive(spec: str, part: str, most: float) -> None:
    """Without steps that wait, trees are nearer to the bound; the times obey the laws of time."""
    assumed = assumptions("common", compute="none")
    whole = replace(healthy(spec, size=100_000_000), assumed=assumed, streamed=True)
    report = answer(whole, [Condition(part, 3)])
    waiting = answer(replace(whole, streamed=False), [Condition(part, 3)])
    assert report.ok
    assert report.answer == waiting.answer == "packed"
    assert 1 - 1e-9 <= report.ratio < most < waiting.ratio  # type: ignore[operator]
    left = whole.fabric.without([Condition(part, 3)])
    plan = compile(left, whole.wanted, whole.size_bytes, algorithm=report.algorithm, assumptions=assumed)
    times = plan.programme("device", assumptions=assumed)
    assert times.total_s == pytest.approx(report.time_s, rel=1e-9)
    assert check_programme(plan.circuits, times, rules_of(times)).ok


# --- cuts -------------------------------------------------------------------------------------------------------------


def test_a_cut_is_refused_while_one_way_works() -> None:
    """By name; a set of no ranks or of all is none."""
    whole = fabric("sipac:radix=2,levels=2,wavelengths=4")
    one_port = whole.without([Condition("comb_laser", 0)])
    assert [v.rule for v in check_cut(one_port, np.array([0]))] == ["cut_open"]
    both = whole.without([Condition("comb_laser", 0), Condition("comb_laser", 1)])
    assert not check_cut(both, np.array([0]))
    assert closed_set(both).tolist() == [0]
    assert closed_set(one_port) is None
    assert [v.rule for v in check_cut(both, np.array([], int))] == ["cut_empty"]
    assert [v.rule for v in check_cut(both, np.arange(4))] == ["cut_empty"]


def test_a_line_of_tiles_is_cut_by_its_switches() -> None:
    """And by no single waveguide where an edge has two."""
    whole = healthy("lightpath:shape=1x4,waveguides=2,lasers=2")
    report = answer(whole, [Condition("mzi", 2)])
    assert report.answer == "cut"
    assert report.restart_ranks >= 2
    assert answer(whole, [Condition("waveguide", 2)]).answer != "cut"


# --- equal parts ---------------------------------------------------------------------------------------------


def test_classes_of_parts() -> None:
    """All ports of a SiPAC are equal, and all lines of a channel; a wrong relabelling is refused."""
    where = fabric("sipac:radix=3,levels=2,wavelengths=6")
    classes = part_classes(where, None)
    assert {kind: len(set(found[found >= 0].tolist())) for kind, found in classes.items()} == {
        "node": 1, "comb_laser": 1, "modulator": 1, "photodiode": 1, "micro_ring": 1, "switch": 1, "input_fibre": 1,
        "output_fibre": 1,
    }  # fmt: skip
    pairs = pairs_to_check(where)
    assert len(pairs[0]) == 9 * 8

    def two_nodes_change_places(c):
        swap = np.arange(9)
        swap[[0, 4]] = [4, 0]
        return replace(c, src=swap[c.src].astype(np.int32), dst=swap[c.dst].astype(np.int32))

    assert check_relabelling(where, pairs, two_nodes_change_places, None) is None
    assert check_relabelling(where, pairs, lambda c: c, 0) is not None
    fixed = list(relabelling_maps(where, 0))
    assert len(fixed) < len(list(relabelling_maps(where, None)))


def test_gaps_of_digits_that_are_multiples_are_equal() -> None:
    """On a switch of 8: gaps 1, 3, 5, 7 by factors that have an inverse, 2 and 6, and 4; the gap 0 is dark."""
    classes = part_classes(fabric("sipac:radix=8,levels=1"), None)["micro_ring"][:8]
    assert classes.tolist() == [-1, 1, 2, 1, 4, 1, 2, 1]


LARGER = {
    "ramp:groups=4,racks=2,wavelengths=4": 1 << 11,
    "sipac:radix=4,levels=2": 1 << 12,
    "terarack:nodes=12,wavelengths=3": 1 << 11,
    "lightpath:shape=3x4,waveguides=4,lasers=4": 1 << 10,
}


@pytest.mark.parametrize("spec", LARGER)
def test_classes_by_the_ways_of_some_pairs(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all ways are too many: the same classes, and none for parts that no way of these pairs passes."""
    where = fabric(spec)
    whole = part_classes(where, None)
    n = where.num_nodes
    monkeypatch.setattr(relabellings, "MOST_WAYS", LARGER[spec])
    monkeypatch.setattr(relabellings, "WAYS_AT_ONCE", LARGER[spec] // 4)
    for known in (part_classes, pairs_to_check):
        known.cache_clear()
    try:
        assert n <= len(pairs_to_check(where)[0]) < n * (n - 1)
        some = part_classes(where, None)
    finally:
        for known in (part_classes, pairs_to_check):
            known.cache_clear()
    for kind, classes in whole.items():
        passed = classes >= 0
        for value in np.unique(some[kind][passed]):  # no part is equal to one that is not
            assert len(np.unique(classes[passed & (some[kind] == value)])) == 1
    for kind in ("node", "laser", "comb_laser", "transmitter"):
        assert len(np.unique(some.get(kind, 0))) == len(np.unique(whole.get(kind, 0)))


@pytest.mark.parametrize("spec", FIVE)
def test_parts_that_are_equal_have_one_bound(spec: str) -> None:
    """Whatever member of a class fails."""
    where = fabric(spec)
    bounds: dict[tuple[str, int], set[str]] = {}
    for kind, classes in part_classes(where, None).items():
        if kind in ("node", "waveguide"):
            continue
        for value in set(classes[classes >= 0].tolist()):
            members = np.flatnonzero(classes == value)[[0, -1]]
            for member in members.tolist():
                left = where.without([Condition(kind, member)])
                bounds.setdefault((kind, value), set()).add(
                    f"{residual_bound_s(left, Request('all_reduce'), 10**8, assumptions('published')):.9g}"
                )
    assert all(len(found) == 1 for found in bounds.values())


def test_pairs_are_drawn_by_a_seed() -> None:
    """The same pairs for the same seed, never a part with itself, all of them where they are few."""
    where = fabric(FIVE[1])
    assert pairs_of_parts(where, 20, 3) == pairs_of_parts(where, 20, 3) != pairs_of_parts(where, 20, 4)
    assert all(one < other for one, other in pairs_of_parts(where, 20, 3))


def trees(where: Fabric, collective: str, pipeline: int) -> float:
    """Time of a verified plan along packed trees."""
    plan = compile(where, collective, "10 MB", algorithm=f"packed_trees:pipeline={pipeline}")
    plan.verify(exact=True).raise_if_bad()
    return plan.simulate(assumptions="published").total_s


@pytest.mark.parametrize(
    "collective",
    ["all_reduce", "all_to_all", *(pytest.param(c, marks=pytest.mark.deep) for c in ("all_gather", "reduce"))],
)
def test_packed_trees(collective: str) -> None:
    """On a SiPAC with a dead switch: data by sets of contributors, and pipelines of several lengths."""
    where = fabric("sipac:radix=3,levels=2,failed=switch:1")
    assert min(trees(where, collective, pipeline) for pipeline in (1, 3, 16)) > 0


def test_packed_trees_of_oddl_use_no_more_partners_than_wavelengths() -> None:
    """Its switches are set once: partners differ in one bit, or are neighbours of a circle."""
    for spec in ("oddl:shape=4x4,failed=switch:1", "oddl:shape=3x5,failed=transmitter:3"):
        assert trees(fabric(spec), "all_to_all", 2) > 0
