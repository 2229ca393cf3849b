"""The search for the fastest algorithm, against evaluating every one of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.engines import closed_form
from tests.profiles import examples
from tests.strategies import fabrics

from opticcl.assumptions import assumptions
from opticcl.circuits import LoweredRounds, lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.estimate.budget import best_budget, plan_budget
from opticcl.fabrics import fabric
from opticcl.fabrics.job import job
from opticcl.plans.light import DEFAULT_RULE, LightRule
from opticcl.plans.search import Search, at_any_rate
from opticcl.schedule import ALGORITHMS, all_variants, generate
from opticcl.verify.judge import Judge

NAMES = st.sampled_from(["all_reduce", "all_gather", "all_to_all", "broadcast", "send_recv"])


def every_time(where, wanted, sizes, assumed, only=None):
    """Time of every algorithm that the fabric can carry, those alone whose light closes where there are any [s]."""
    found = list(every_plan(where, wanted, sizes, assumed, only))
    yield from [time for time, closes in found if closes] or [time for time, _ in found]


def every_plan(where, wanted, sizes, assumed, only=None):
    """Time of every algorithm that the fabric can carry [s], and whether its light closes as `machine budget` computes it."""
    for algorithm in all_variants(wanted, where):
        try:
            plan = lower(where, generate(algorithm, wanted, where))
            if only in (None, plan.schedule.name):
                yield sum(closed_form(plan, size, assumed).total_s for size in sizes), light_closes(plan)
        except UnsupportedError:
            continue


def light_closes(plan):
    """By the worst circuit, element by element."""
    if plan.fabric.light_path is None or not plan.fabric.num_nodes > 1:
        return True
    _, found, _ = best_budget(plan.fabric, lambda values: plan_budget(plan, values))
    return found.closes


@examples(6)
@given(
    where=fabrics(16),
    name=NAMES,
    sizes=st.lists(st.lists(st.integers(0, 10**9), min_size=1, max_size=3), min_size=1, max_size=3),
    cold=st.booleans(),
)
def test_none_is_faster(where, name, sizes, cold):
    """For one message and for several, whatever was searched before."""
    wanted, assumed = Request(name), assumptions("published", initial="cold" if cold else "warm")
    candidates = Search(where, wanted, assumed, all_variants(wanted, where))
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
    candidates = Search(where, wanted, assumed, all_variants(wanted, where), resolution_s=resolution)
    due = min(every_time(where, wanted, [size], assumed), default=None)
    found = candidates.fastest([size])
    if due is None:
        assert found is None
        return
    assert found.profile.timeline(size).total_s <= due + resolution + 1e-9 * due


def test_one_algorithm_alone_may_be_asked_for():
    """With its best parameters for the size."""
    where, wanted, assumed = fabric("lightpath:shape=4x4"), Request("all_reduce"), assumptions("published")
    candidates = Search(where, wanted, assumed, all_variants(wanted, where))
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
    candidates = Search(made, Request(name), assumptions("published"), all_variants(Request(name), made))
    assert candidates.fastest([1]) is None
    assert said in candidates.why_none()


@pytest.mark.parametrize(
    ("where", "chosen", "without_regard"),
    [
        ("sip_ring:nodes=64", "ring", "lumorph"),
        ("lightpath:shape=8x8", "lumorph", "mesh"),  # 12.7 dB short
        ("lightpath:shape=16x16", "de_bruijn", "de_bruijn"),  # none closes: the fastest
    ],
)
def test_a_plan_whose_light_closes_is_chosen_before_faster_ones(where, chosen, without_regard):
    """And the fastest of all where none closes, or light is ignored."""
    made, wanted = fabric(where), Request("all_reduce")
    for rule, due in ((DEFAULT_RULE, chosen), (LightRule(ignored=True), without_regard)):
        candidates = Search(made, wanted, assumptions("common"), rule=rule)
        for size in (10**8, 10**5, 10**8):  # whatever was searched before
            found = candidates.fastest([size])
        assert found.schedule.name == due
    near = candidates.near(10**8, 2 * found.lower_bound_s([10**8]), 3)
    assert near[0] is found


@pytest.mark.parametrize("where", ["sip_ring:nodes=64", "lightpath:shape=16x16", "terarack:nodes=300"])
def test_distances_that_no_light_spans_change_no_answer(where):
    """Where the search asks for them before it makes circuits, and where it makes the circuits of all."""
    made, found = fabric(where), []
    for machine in (made, altered(made, light_path=replace(made.light_path, least=None))):
        candidates = Search(machine, Request("all_reduce"), assumptions("common"))
        best = candidates.fastest([10**8])
        light = candidates.light(best)
        found.append((best.schedule.name, best.schedule.parameters, light, candidates.not_tried, candidates.failures))
    assert found[0] == found[1]


def test_another_preset_chooses_another_plan():
    """With less loss a ring node, the fastest plan of a SiP-Ring closes too."""
    made, wanted = fabric("sip_ring:nodes=16"), Request("all_reduce")
    names = {}
    for preset in ("typical", "optimistic"):
        found = Search(made, wanted, assumptions("common"), rule=LightRule(preset)).fastest([10**8])
        names[preset] = found.light(LightRule(preset)).closes, found.schedule.name
    assert names["typical"][0]
    assert names["optimistic"][0]


def test_plans_that_cannot_be_judged_give_way():
    """A plan without symmetry that carries too many chunks to follow is not chosen where another can be judged."""
    made, wanted = fabric("ideal:nodes=8"), Request("all_reduce")
    judge = Judge()
    fastest = Search(made, wanted, assumptions("common"), judge=judge).fastest([10**8])
    assert judge.can_judge(fastest.profile.plan)
    unjudged = fastest.schedule.name
    judge.can_judge = lambda plan: plan.schedule.name != unjudged
    assert Search(made, wanted, assumptions("common"), judge=judge).fastest([10**8]).schedule.name != unjudged
    judge.can_judge = lambda plan: False
    assert Search(made, wanted, assumptions("common"), judge=judge).fastest([10**8]).schedule.name == unjudged


def test_what_a_search_leaves_out_is_named():
    """Steps that are too many to evaluate, and circuits that take too much memory."""
    candidates = Search(fabric("ideal:nodes=1024"), Request("all_reduce"), assumptions("common"))
    assert "mesh: 1,047,552 transfers of its distinct steps; a search evaluates 262,144 at most" in candidates.not_tried
    assert not Search(fabric("ideal:nodes=64"), Request("all_reduce"), assumptions("common")).not_tried


def test_a_plan_that_is_kept_has_not_the_cache_of_the_search():
    """The cache belongs to the search; the plan is the same."""
    where, wanted = fabric("ideal", nodes=8), Request("all_reduce")
    found = Search(where, wanted, assumptions("published"), all_variants(wanted, where)).fastest([10**6])
    assert found.profile.plan.schedule.step(0) is found.profile.plan.schedule.step(0)
    assert type(found.profile.plan.rounds) is not type(found.plan().rounds)
    assert isinstance(found.plan().rounds, LoweredRounds)
    assert found.plan().schedule == found.profile.plan.schedule
    assert closed_form(found.plan(), 10**6, assumptions("published")).total_s == found.profile.timeline(10**6).total_s


def test_a_schedule_of_too_many_distinct_steps_is_set_aside_with_the_reason(monkeypatch):
    """Where there are others; alone it is evaluated to the end."""
    monkeypatch.setattr("opticcl.plans.candidate.MOST_DISTINCT_STEPS", 4)
    where, wanted, assumed = fabric("terarack:nodes=16,wavelengths=2"), Request("all_to_all"), assumptions("common")
    alone = Search(where, wanted, assumed, ["wavelength_exchange"])
    number = len(generate("wavelength_exchange", wanted, where).step_classes())
    several = Search(where, wanted, assumed, ["bruck", "mesh", "wavelength_exchange"])
    assert several.fastest([10**9]).schedule.name in ("bruck", "mesh")
    assert f"has {number} distinct steps, a search evaluates 4 at most" in several.not_tried[0]
    assert alone.fastest([10**9]).complete
    assert not alone.failures


def test_no_step_is_listed_of_a_schedule_whose_steps_are_too_many_to_be_the_fastest(monkeypatch):
    """Each takes its latency at least: 512 of them more than the 63 of a ring."""

    def never(*_):
        raise AssertionError("a step is listed")

    where, wanted = fabric("terarack:nodes=64,wavelengths=1"), Request("all_gather")
    monkeypatch.setattr("opticcl.schedule.wavelength_exchange.arcs", never)
    search = Search(where, wanted, assumptions("common"), ["ring", "wavelength_exchange"])
    assert search.fastest([1000]).schedule.name == "ring"
    assert not search.failures
    assert search.fastest([1000], algorithm="wavelength_exchange") is None
    assert search.failures


@pytest.mark.parametrize(
    ("where", "name"),
    [("ideal:nodes=16", "all_to_all"), ("fat_tree:nodes=16", "all_gather"), ("torus:shape=4x4", "all_reduce")],
)
def test_of_equal_times_the_one_registered_first_is_taken(where, name):
    """However the searches before it went, and though times are sums of the same terms in another order."""
    machine, wanted, assumed = fabric(where), Request(name), assumptions("common")
    sizes = (1000, 10**5, 10**8)

    def found(order):
        candidates = Search(machine, wanted, assumed)
        chosen = {size: candidates.fastest([size]).schedule for size in order}
        return [(chosen[size].name, dict(chosen[size].parameters)) for size in sizes if size in chosen]

    alone = [found([size])[0] for size in sizes]
    assert found(sizes) == found(sizes[::-1]) == alone
    for size, (algorithm, parameters) in zip(sizes, alone, strict=True):
        candidates = Search(machine, wanted, assumed)
        least = candidates.fastest([size]).lower_bound_s([size])
        equal = [one.schedule for one in candidates.in_order([size], below_s=least * (1 + 1e-8))]
        first = min(equal, key=lambda one: ALGORITHMS.names().index(one.name))
        assert (first.name, dict(first.parameters)) == (algorithm, parameters)


@examples(25)
@given(
    where=fabrics(16),
    name=NAMES,
    size=st.integers(1, 10**9),
    other=st.integers(1, 10**9),
    times=st.sampled_from([0.1, 0.99, 3.0, 40.0]),
    part=st.booleans(),
)
def test_a_search_at_another_node_rate_finds_what_a_new_one_does(where, name, size, other, times, part):
    """Whatever was searched before, on a job too: time, bound, light and verdict; laws propose candidates for its own rate."""
    if part:
        where = job(where, range(0, where.num_nodes, 2))
    faster, wanted = where.with_node_rate(times * where.node_rate_bits_per_s), Request(name)
    assert at_any_rate(where) == at_any_rate(faster)
    first, assumed, found = Search(where, wanted, assumptions("common")), assumptions("published"), []
    assert (first.fastest([size]) is None) == (Search(faster, wanted, assumed).fastest([size]) is None)
    for search in (first.under(assumed, faster), Search(faster, wanted, assumed)):
        for each in (size, other):
            if (one := search.fastest([each])) is not None:
                plan = one.profile.plan
                assert plan.fabric == faster
                timeline, light, verdict = search.timed(each)[0], search.light(one), search.verdict(one)
                found.append((plan.schedule.name, plan.schedule.parameters, light, verdict, timeline))
    half = len(found) // 2
    for (*one, took), (*due, least) in zip(found[:half], found[half:], strict=True):
        assert one == due
        assert took.total_s == pytest.approx(least.total_s, rel=1e-12)
        assert took.lower_bound_s == pytest.approx(least.lower_bound_s, rel=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("torus:shape=4x4,rate=100Gb/s", "torus:shape=4x4,rate=200Gb/s", True),
        ("torus:shape=4x4,rate=100Gb/s", "torus:shape=2x8,rate=200Gb/s", False),
        ("torus:shape=4x4", "ideal:nodes=16", False),
        ("oddl:shape=4x4,nic_rate=100Gb/s", "oddl:shape=4x4,nic_rate=50Gb/s,reconfiguration=1ms", False),
    ],
)
def test_what_machines_are_apart_from_their_rate(one, other, same):
    """Shape, kind and times; of a job its nodes."""
    mine, its = fabric(one), fabric(other)
    assert (at_any_rate(mine) == at_any_rate(its)) == same
    assert (at_any_rate(job(mine, range(4))) == at_any_rate(job(its, range(4)))) == same
    assert at_any_rate(job(mine, range(4))) != at_any_rate(job(its, [0, 1, 2, 4]))
    assert at_any_rate(job(mine, range(4))) != at_any_rate(its)
