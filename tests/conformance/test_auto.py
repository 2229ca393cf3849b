"""`auto` is the best of all algorithms under the same assumptions: every fabric, six sizes, cold and warm, both sets."""

import pytest

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.plans.compare import compare_plans
from opticcl.plans.search import Search
from opticcl.schedule import all_variants, generate
from opticcl.simulate import profile

SIZES = (1, 1000, 10**5, 10**6, 10**8, 10**10)
ASSUMED = [assumptions(name, initial=initial) for name in ("common", "published") for initial in ("cold", "warm")]


def check(name, collective, nodes):
    """The search against all algorithms of a fabric, each evaluated wholly."""
    where, wanted = fabric_at_scale(name, nodes), Request(collective)
    plans = []
    for variant in all_variants(wanted, where):
        try:
            plan = lower(where, generate(variant, wanted, where))
            profile(plan, ASSUMED[0])
            plans.append(plan)
        except UnsupportedError:
            continue
    assert plans, f"{name}: no algorithm does {collective}"
    for assumed in ASSUMED:
        times = [profile(plan, assumed) for plan in plans]
        candidates = Search(where, wanted, assumed, all_variants(wanted, where))
        for size in SIZES:
            best_s = min(one.timeline(size).total_s for one in times)
            found = candidates.fastest([size])
            assert found is not None
            about = f"{name} {collective} {size} {assumed.name} {assumed.initial}: {found.schedule.name}"
            assert found.profile.timeline(size).total_s == pytest.approx(best_s, rel=1e-9), about


@pytest.mark.parametrize("name", ["ramp", "terarack", "lightpath", "fat_tree"])
def test_auto_is_the_best_of_all(name):
    """Small machines; all fabrics and more collectives are deep."""
    check(name, "all_reduce", 8)


@pytest.mark.deep
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all", "broadcast"])
@pytest.mark.parametrize("name", FABRICS.names())
def test_auto_is_the_best_of_all_everywhere(name, collective):
    """Every fabric with 16 nodes."""
    check(name, collective, 16)


@pytest.mark.parametrize("initial", ["cold", "warm"])
def test_compare_all_begins_with_auto(initial):
    """The first row of `--algorithm all` has the time of `auto`."""
    made, assumed = [fabric_at_scale("sipac", 9)], assumptions("common", initial=initial)
    every, auto = (
        compare_plans(made, "all_gather", [9000], algorithm=algorithm, assumptions=assumed)
        for algorithm in ("all", "auto")
    )
    assert every.entries[0].total_s == pytest.approx(auto.entries[0].total_s, rel=1e-12)
