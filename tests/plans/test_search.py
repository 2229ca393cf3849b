"""The search for the fastest algorithm, against evaluating every one of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines import closed_form
from tests.profiles import examples
from tests.strategies import fabrics

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.plans.search import Candidates
from opticcl.schedule import GeneratedStep, all_variants, generate

NAMES = st.sampled_from(["all_reduce", "all_gather", "all_to_all", "broadcast", "send_recv"])


def every_time(where, wanted, sizes, assumed, only=None):
    """Time of every algorithm that the fabric can carry [s]."""
    for algorithm in all_variants(wanted, where):
        try:
            plan = lower(where, generate(algorithm, wanted, where))
            if only in (None, plan.schedule.name):
                yield sum(closed_form(plan, size, assumed).total_s for size in sizes)
        except UnsupportedError:
            continue


@examples(10)
@given(
    where=fabrics(16),
    name=NAMES,
    sizes=st.lists(st.lists(st.integers(0, 10**9), min_size=1, max_size=3), min_size=1, max_size=3),
    cold=st.booleans(),
)
def test_none_is_faster(where, name, sizes, cold):
    """For one message and for several, whatever was searched before."""
    wanted, assumed = Request(name), assumptions("published", initial="cold" if cold else "warm")
    candidates = Candidates(where, wanted, all_variants(wanted, where), assumed)
    for messages in sizes:
        due = min(every_time(where, wanted, messages, assumed), default=None)
        found = candidates.fastest(messages)
        if due is None:
            assert found is None
            return
        assert sum(found.profile.timeline(size).total_s for size in messages) == pytest.approx(due, rel=1e-9)


@examples(10)
@given(where=fabrics(12), size=st.integers(0, 10**9), resolution=st.floats(0, 1e-3))
def test_a_resolution_bounds_what_is_lost(where, size, resolution):
    """The result is slower than the fastest by at most the resolution."""
    wanted, assumed = Request("all_reduce"), assumptions("published")
    candidates = Candidates(where, wanted, all_variants(wanted, where), assumed)
    due = min(every_time(where, wanted, [size], assumed), default=None)
    found = candidates.fastest([size], resolution_s=resolution)
    if due is None:
        assert found is None
        return
    assert found.profile.timeline(size).total_s <= due + resolution + 1e-9 * due


def test_one_algorithm_alone_may_be_asked_for():
    """With its best parameters for the size."""
    where, wanted, assumed = fabric("lightpath:shape=4x4"), Request("all_reduce"), assumptions("published")
    candidates = Candidates(where, wanted, all_variants(wanted, where), assumed)
    for name in ("ring", "lumorph"):
        found = candidates.fastest([10**6], algorithm=name)
        due = min(every_time(where, wanted, [10**6], assumed, only=name))
        assert found.schedule.name == name
        assert found.profile.timeline(10**6).total_s == pytest.approx(due)
    assert candidates.fastest([10**6], algorithm="wrht") is None


@pytest.mark.parametrize(
    ("where", "name", "said"),
    [
        ("lightpath:shape=1x4,dead_tiles=1", "all_reduce", "no circuit leads from node 0"),
        ("oddl:shape=4x4", "send_recv", "no circuit leads from node (0, 0) to node (1, 1)"),
    ],
)
def test_why_there_is_none(where, name, said):
    """Which nodes lie apart."""
    made = fabric(where)
    candidates = Candidates(made, Request(name), all_variants(Request(name), made), assumptions("published"))
    assert candidates.fastest([1]) is None
    assert said in candidates.why_none()


def test_a_plan_that_is_kept_has_not_the_cache_of_the_search():
    """The cache belongs to the search; the plan is the same."""
    where, wanted = fabric("ideal", nodes=8), Request("all_reduce")
    found = Candidates(where, wanted, all_variants(wanted, where), assumptions("published")).fastest([10**6])
    assert found.profile.plan.schedule.step(0) is found.profile.plan.schedule.step(0)
    assert not isinstance(found.profile.plan.schedule.step, GeneratedStep)
    assert isinstance(found.plan().schedule.step, GeneratedStep)
    assert closed_form(found.plan(), 10**6, assumptions("published")).total_s == found.profile.timeline(10**6).total_s


def test_a_schedule_of_too_many_distinct_steps_is_set_aside_with_the_reason(monkeypatch):
    """Where there are others; alone it is evaluated to the end."""
    monkeypatch.setattr("opticcl.plans.search.MOST_DISTINCT_STEPS", 4)
    where, wanted, assumed = fabric("terarack:nodes=16,wavelengths=2"), Request("all_to_all"), assumptions("common")
    alone = Candidates(where, wanted, ["wavelength_exchange"], assumed)
    number = len(generate("wavelength_exchange", wanted, where).step_classes())
    several = Candidates(where, wanted, ["bruck", "mesh", "wavelength_exchange"], assumed)
    assert several.fastest([10**9]).schedule.name in ("bruck", "mesh")
    assert f"has {number} distinct steps, a search evaluates 4 at most" in several.failures["wavelength_exchange"]
    assert alone.fastest([10**9]).complete
    assert not alone.failures
