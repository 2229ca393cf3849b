"""The flow engine: fair shares, bytes and bounds, both modes against each other and against the closed form."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.engines import closed_form, flow, flow_result, packet
from tests.profiles import examples
from tests.simulate.plans import all_pairs, by_hand

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric
from opticcl.ir import CircuitPlan
from opticcl.schedule import generate
from opticcl.simulate.flow import events as events_module
from opticcl.simulate.flow import rounds as rounds_module
from opticcl.simulate.flow._classes import quotient
from opticcl.simulate.links import Links
from opticcl.simulate.parts import latencies

LIGHT = assumptions("published", compute="none", control="none")
MODES = ("barrier", "asynchronous")


OPTICAL = {
    "ramp": ("ramp:groups=3,racks=3,wavelengths=6", "ramp", "ring", "tree"),
    "sipac": ("sipac:radix=4,levels=2", "sipco", "ring"),
    "terarack": ("terarack:nodes=15,wavelengths=2", "wrht", "ring", "tree"),
    "oddl": ("oddl:shape=4x4", "halving_doubling", "recursive_doubling", "ring"),
    "oddl, several rounds": ("oddl:shape=16", "double_tree", "ring"),
    "lightpath": ("lightpath:shape=4x4", "lumorph", "lumorph:radix=4", "ring", "tree"),
}
PACKETS = [
    "ideal:nodes=16",
    "fat_tree:nodes=16,radix=8,routing=ecmp",
    "torus:shape=4x4",
    "superpod:nodes=16",
    "leaf_spine:nodes=16,nodes_per_leaf=4,spines=2",
    "bcube:radix=4,levels=2",
    "dragonfly:nodes=16,nodes_per_router=2,routers_per_group=4,global_links=2",
]


def fair(hops, offsets, capacity):
    """Max-min fair rates by their definition: all rise together, and stop with the first full link that they cross."""
    owner, left = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), capacity.copy()
    rates, rises = np.zeros(len(offsets) - 1), np.ones(len(offsets) - 1, bool)
    while rises.any():
        crossing = np.bincount(hops[rises[owner]], minlength=len(left))
        level = np.divide(left, crossing, out=np.full(len(left), np.inf), where=crossing > 0)
        stop = np.unique(owner[(level <= level.min() * (1 + 1e-11))[hops] & rises[owner]])
        rates[stop], rises[stop] = level.min(), False
        left -= np.bincount(hops, np.where(np.isin(owner, stop), level.min(), 0), minlength=len(left))
    return rates


def test_shares_by_hand():
    """Three flows into node 0, one of them from a node that also sends elsewhere: 1/3 each, and the other gets 2/3."""
    where = fabric("ideal:nodes=4,rate=8Gb/s,latency=0s")
    rows = [(0, 1, 0, 0, 4, 1), (0, 2, 0, 0, 4, 1), (0, 3, 0, 0, 4, 1), (0, 3, 2, 0, 8, 1)]
    assert flow_result(by_hand(where, rows), 8 * 10**9, LIGHT).traffic.transfers.end_s == pytest.approx(
        [12, 12, 12, 12]
    )


# --- max-min fairness -------------------------------------------------------------------------------------------------


def test_times_by_hand():
    """Two flows share a port until the short one has ended; the long one then has it to itself: 6 GB in 6 s."""
    where = fabric("ideal:nodes=3,rate=8Gb/s,latency=1s")
    plan = by_hand(where, [(0, 1, 0, 0, 2, 1), (0, 2, 0, 2, 4, 1)])
    assert flow(plan, 8 * 10**9, LIGHT).total_s == pytest.approx(1 + 6)
    later = by_hand(where, [(0, 1, 0, 0, 2, 1), (0, 2, 0, 2, 4, 1), (1, 0, 1, 0, 2, 0)], num_steps=2)
    assert flow(later, 8 * 10**9, LIGHT).total_s == pytest.approx(1 + 6 + 1 + 2)
    # asynchronously node 0 passes on chunks 0 and 1 as soon as they are there: 1 + 4 s, and done before the long one
    assert flow(later, 8 * 10**9, LIGHT, mode="asynchronous").total_s == pytest.approx(1 + 4 + 1 + 2)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(PACKETS), st.integers(1, 40))
def test_bytes_are_conserved(seed, specification, num_flows):
    """Every flow ends when its rates have carried all of its bytes: replayed with an independent event loop."""
    rng = np.random.default_rng(seed)
    where = fabric(specification)
    src = rng.integers(0, 16, num_flows)
    dst = (src + rng.integers(1, 16, num_flows)) % 16
    lo = rng.integers(0, 4, num_flows)
    rows = [(0, s, d, c, n, 1) for s, d, c, n in zip(src, dst, lo, rng.integers(1, 5, num_flows), strict=True)]
    plan = by_hand(where, rows)
    size = 8 * 10**6
    result = flow_result(plan, size, LIGHT)
    ends = replayed(plan, size)
    assert result.traffic.transfers.end_s == pytest.approx(ends, rel=1e-9)
    assert result.timeline.total_s == pytest.approx(ends.max(), rel=1e-9)


@examples(40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 120))
def test_slow_flows_keep_their_rates(seed, num_flows):
    """Many flows of many sizes and latencies over few links: whichever starts or ends, all rates are max-min fair."""
    rng = np.random.default_rng(seed)
    where = fabric("leaf_spine:nodes=24,nodes_per_leaf=3,spines=2", uplink_rate=float(rng.choice([1e11, 4e11, 1e12])))
    src = rng.integers(0, 24, num_flows)
    dst = (src + rng.integers(1, 24, num_flows)) % 24
    rows = [(0, s, d, 0, n, 1) for s, d, n in zip(src, dst, rng.integers(1, 60, num_flows), strict=True)]
    plan = by_hand(where, rows, chunks=60)
    late = rng.integers(0, 40, len(Links(where).capacity)) * 1e-6
    plan = CircuitPlan(altered(where, hop_latency_s=lambda self, hops: late[hops]), plan.schedule, plan.rounds)
    ends = flow_result(plan, 6 * 10**6, LIGHT).traffic.transfers.end_s
    assert ends == pytest.approx(replayed(plan, 6 * 10**6), rel=1e-9)


def replayed(plan, size_bytes):
    """Ends of the flows of one step, simulated by another loop: from event to event, all shares computed anew."""
    transfers, (circuits,) = plan.schedule.step(0), plan.rounds(0)
    links = Links(plan.fabric)
    hops, offsets = links.paths(circuits)
    begin = latencies(plan.fabric, circuits, assumptions("published"))
    left = transfers.chunk_n * (size_bytes / plan.schedule.collective.num_chunks)
    now, carried, ends = 0.0, np.zeros(len(links.capacity)), np.zeros(len(left))
    while (left > 0).any():
        active = np.flatnonzero((begin <= now) & (left > 0))
        pending = begin[begin > now]
        until = pending.min(initial=np.inf)
        rates = np.zeros(len(left))
        if len(active):
            parts = [hops[offsets[i] : offsets[i + 1]] for i in active]
            rates[active] = fair(np.concatenate(parts), np.cumsum([0, *map(len, parts)]), links.capacity)
            until = min(until, now + (left[active] / rates[active]).min())
        owner = np.repeat(np.arange(len(left)), np.diff(offsets))
        carried += np.bincount(hops, rates[owner] * (until - now), minlength=len(carried))
        after = left - rates * (until - now)
        after[after < 1e-5] = 0
        ends[(left > 0) & (after == 0)] = until
        left = after
        now = until
    owner = np.repeat(np.arange(len(left)), np.diff(offsets))
    amount = transfers.chunk_n * (size_bytes / plan.schedule.collective.num_chunks)
    assert carried == pytest.approx(np.bincount(hops, amount[owner], minlength=len(carried)), rel=1e-6, abs=1e-3)
    return ends


@pytest.mark.parametrize(
    "specification", [p.replace("nodes=16", "nodes=72") for p in PACKETS if "nodes=16" in p] + ["torus:shape=8x9"]
)
def test_equivalent_flows_are_simulated_as_one(specification, monkeypatch):
    """The quotient and the flows one by one take the same time."""
    plan = all_pairs(fabric(specification))
    as_one = flow(plan, 72 * 10**6, LIGHT).total_s
    monkeypatch.setattr(rounds_module, "QUOTIENT_FLOWS", 10**9)
    assert flow(plan, 72 * 10**6, LIGHT).total_s == pytest.approx(as_one, rel=1e-9)


def test_the_quotient_is_small():
    """All pairs on WRHT's tree: two kinds of flows, within a leaf and across; their weights add up to the loads."""
    where = fabric("fat_tree:nodes=128,preset=wrht")
    circuits = all_pairs(where).rounds(0)[0]
    links = Links(where)
    hops, offsets = links.paths(circuits)
    amount, delay = np.full(len(circuits), 1e6), latencies(where, circuits, assumptions("published"))
    link, _, weight, amounts, delays, *_ = quotient(hops, offsets, amount, delay, links.capacity)
    assert len(amounts) == 2
    assert sorted(delays) == pytest.approx([25e-6, 75e-6])
    assert sorted(np.bincount(link, weight)) == [96, 127]  # links of leaves, links of hosts; up and down are equivalent


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling", "recursive_doubling"])
@pytest.mark.parametrize("compute", ["none", "fused", "chain"])
def test_ideal_is_the_closed_form(algorithm, compute):
    """Nothing is shared unevenly on the ideal switch."""
    plan = opticcl.compile("ideal:nodes=16", "all_reduce", "10MB", algorithm=algorithm).circuits
    assumed = assumptions("published", compute=compute)
    expected = closed_form(plan, 10**7, assumed)
    found = flow(plan, 10**7, assumed)
    for part in found.PARTS:
        assert getattr(found, part) == pytest.approx(getattr(expected, part), rel=1e-9, abs=1e-15)
    assert (found.rounds == expected.rounds).all()


@pytest.mark.parametrize("charge", ["on_change", "every_step"])
@pytest.mark.parametrize("system", OPTICAL)
def test_circuits_are_the_closed_form(system, charge):
    """With a barrier, circuits take what the closed form says, part by part."""
    specification, *algorithms = OPTICAL[system]
    for algorithm in algorithms:
        plan = opticcl.compile(specification, "all_reduce", "1MB", algorithm=algorithm).circuits
        assumed = assumptions("published", reconfiguration_charge=charge)
        for size in (0, 1, 10**6):
            expected, found = closed_form(plan, size, assumed), flow(plan, size, assumed)
            for part in found.PARTS:
                assert getattr(found, part) == pytest.approx(getattr(expected, part), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("charge", ["on_change", "every_step"])
@pytest.mark.parametrize("system", OPTICAL)
def test_circuits_are_never_slower_asynchronously(system, charge):
    """Whatever may start as soon as it can starts no later, and the parts of the critical path add up."""
    specification, *algorithms = OPTICAL[system]
    for algorithm in algorithms:
        plan = opticcl.compile(specification, "all_reduce", "1MB", algorithm=algorithm).circuits
        for compute in ("none", "fused", "chain"):
            for initial in ("cold", "warm"):
                assumed = assumptions("published", reconfiguration_charge=charge, initial=initial, compute=compute)
                barrier, free = (flow(plan, 10**6, assumed, mode=m).total_s for m in ("barrier", "asynchronous"))
                assert free <= barrier * (1 + 1e-12)
                assert free >= barrier / 4  # and no nonsense: the chain of dependencies is as long


def test_asynchronous_pays_only_for_what_changes():
    """0 -> 1 stands for both steps and is the longer chain; with a barrier it waits for others to be set anew."""
    where = fabric("lightpath:shape=2x2")
    plan = by_hand(where, [(0, 0, 1, 0, 4, 1), (0, 2, 3, 4, 1, 1), (1, 0, 1, 4, 4, 1), (1, 3, 2, 4, 1, 1)], num_steps=2)
    barrier, free = (flow(plan, 10**9, LIGHT, mode=m).totals() for m in ("barrier", "asynchronous"))
    assert barrier["reconfiguration_s"] == pytest.approx(2 * where.reconfiguration_s)
    assert free["reconfiguration_s"] == pytest.approx(where.reconfiguration_s)
    assert free["transfer_s"] == pytest.approx(barrier["transfer_s"])


@examples(40)
@given(
    st.sampled_from(PACKETS),
    st.sampled_from(["ring", "tree", "halving_doubling"]),
    st.integers(0, 10**8),
    st.sampled_from(["barrier", "asynchronous"]),
)
def test_never_below_the_bound(specification, algorithm, size, mode):
    """At least the lower bound; with a barrier also no less than the busiest link of every step."""
    plan = opticcl.compile(specification, "all_reduce", size, algorithm=algorithm).circuits
    time = flow(plan, size, LIGHT, mode=mode)
    assert time.total_s >= time.lower_bound_s * (1 - 1e-9)
    if mode == "barrier":
        busiest = closed_form(plan, size, LIGHT).totals()["transfer_s"]
        assert time.total_s >= busiest * (1 - 1e-9)


# --- against the closed form and the bound ----------------------------------------------------------------------------


def cut_s(plan, size_bytes, inside):
    """What the links that leave a set of nodes and switches need at least for all that the plan sends out of it [s].

    Args: inside: of each vertex of the network, bool.
    """
    network = plan.fabric.network
    leaving = inside[network.tail] & ~inside[network.head]
    bytes_per_s = Links(plan.fabric).capacity[leaving].sum()
    total = 0.0
    for i in range(plan.schedule.num_steps):
        transfers = plan.schedule.step(i)
        total += transfers.size_chunks()[inside[transfers.src] & ~inside[transfers.dst]].sum()
    chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
    return total * chunk_bytes / bytes_per_s if total else 0.0


@examples(60)
@given(st.sampled_from(PACKETS[1:]), st.data(), st.sampled_from([flow, packet]), st.sampled_from(MODES))
def test_never_below_a_cut(specification, data, engine, mode):
    """Any set of nodes and switches, a bisection too: what leaves it crosses the links that leave it."""
    where = fabric(specification)
    name, algorithm = data.draw(
        st.sampled_from([("all_to_all", "mesh"), ("all_to_all", "bruck"), ("all_reduce", "ring")])
    )
    plan = lower(where, generate(algorithm, name, where))
    vertices = 1 + int(np.concatenate([where.network.tail, where.network.head]).max())
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=vertices, max_size=vertices)))
    size = data.draw(st.integers(0, 10**6))
    assert engine(plan, size, LIGHT, mode=mode).total_s >= cut_s(plan, size, inside) * (1 - 1e-9)


@pytest.mark.parametrize("engine", [flow, packet])
def test_the_bisection_of_a_torus_is_attained(engine):
    """64 pairs from each half to the other over 8 links: a bound that says something, missed by less than a tenth."""
    where = fabric("torus:shape=4x4,link_latency=0s")
    plan = lower(where, generate("mesh", "all_to_all", where))
    bound = cut_s(plan, 10**7, np.arange(16) < 8)
    assert bound <= engine(plan, 10**7, LIGHT).total_s * (1 + 1e-9) <= 1.1 * bound


@examples(30)
@given(
    st.sampled_from(["fat_tree:nodes=16,radix=8,routing=ecmp", "leaf_spine:nodes=16,nodes_per_leaf=4,spines=2"]),
    st.sampled_from(["ring", "tree", "halving_doubling", "recursive_doubling"]),
    st.integers(1, 10**8), st.floats(1, 8), st.floats(0, 1e-4),
)  # fmt: skip
def test_more_bandwidth_and_less_latency_take_no_longer(specification, algorithm, size, faster, latency):
    """Steps of all_reduces with a barrier: all links faster, or all routers quicker."""

    def time(**changed):
        where = fabric(specification, **changed)
        return flow(lower(where, generate(algorithm, "all_reduce", where)), size, LIGHT).total_s

    assert time(rate_factor=faster) <= time() * (1 + 1e-9)
    assert time(router_latency=latency) >= time(router_latency=latency / 2) * (1 - 1e-9)


def test_classes_are_counted():
    """Identical steps are simulated once; a schedule that hides its classes takes the same time."""
    plan = opticcl.compile("fat_tree:nodes=24,radix=8,routing=ecmp", "all_reduce", "1MB", algorithm="ring").circuits
    step_by_step = dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, classes=()))
    for mode in ("barrier", "asynchronous"):
        one, other = flow(plan, 10**6, LIGHT, mode=mode), flow(step_by_step, 10**6, LIGHT, mode=mode)
        assert one.total_s == pytest.approx(other.total_s, rel=1e-9)
        assert one.num_rounds == other.num_rounds == 46


@pytest.mark.parametrize("name", FABRICS.names())
def test_one_node_takes_no_time(name):
    """Nothing to send."""
    where = opticcl.fabric(f"{name}", **FABRICS.get(name).parameters_at_scale(1))
    plan = lower(where, generate("ring", "all_reduce", where))
    for mode in ("barrier", "asynchronous"):
        assert flow(plan, 10**6, assumptions("published"), mode=mode).total_s == 0


def test_sums_before_sending_on():
    """Asynchronously a sum is passed on when it is made: the ring's chain of receive, add, send."""
    n, size = 8, 8 * 10**6
    plan = opticcl.compile(f"ideal:nodes={n}", "all_reduce", size, algorithm="ring").circuits
    assumed = assumptions("published", memory_bytes_per_s="1 TB/s")
    barrier, free = (flow(plan, size, assumed, mode=m).totals() for m in ("barrier", "asynchronous"))
    assert free == pytest.approx(barrier)
    assert free["compute_s"] == pytest.approx((n - 1) * 3 * size / n / 1e12)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_too_many_events_are_refused():
    """Refused before it is simulated, with the number and an alternative."""
    plan = opticcl.compile("fat_tree:nodes=64,radix=16", "all_reduce", "1MB", algorithm="ring").circuits
    with pytest.raises(ParameterError, match=r"about 24,192 events.*max_events="):
        flow(plan, 10**6, LIGHT, mode="asynchronous", max_events=20_000)
    assert flow(plan, 10**6, LIGHT, mode="asynchronous", max_events=40_000).total_s > 0
    crowded = all_pairs(fabric("leaf_spine:nodes=48,nodes_per_leaf=6,spines=3"))
    with pytest.raises(ParameterError, match="max_events="):
        flow(crowded, 48 * 10**6, LIGHT, max_events=5_000)


def test_a_time_below_the_bound_is_a_defect_of_the_engine(monkeypatch):
    """Refused; a tolerance moves the bound by as much, and no more."""
    plan = by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1)])
    made = rounds_module.simulate_flows

    def below(part):
        return lambda *given: dataclasses.replace(found := made(*given), lower_bound_s=found.total_s / (1 - part))

    monkeypatch.setattr(rounds_module, "simulate_flows", below(0.01))
    with pytest.raises(BoundError, match="below the lower bound"):
        flow(plan, 10**6, LIGHT)
    assert flow(plan, 10**6, LIGHT, tolerance=0.02).total_s > 0
    with pytest.raises(BoundError, match="below the lower bound"):
        flow(plan, 10**6, LIGHT, tolerance=0.005)


def test_unknown_modes_and_several_routes_are_refused():
    """In one line each."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", "1MB", algorithm="ring").circuits
    with pytest.raises(ParameterError, match="not one of barrier, asynchronous"):
        flow(plan, 10**6, LIGHT, mode="fast")

    def twice(i):
        (kept,) = plan.rounds(i)
        return (kept.take(np.repeat(np.arange(len(kept)), 2)),)

    with pytest.raises(UnsupportedError, match="several routes"):
        flow(CircuitPlan(plan.fabric, plan.schedule, twice), 10**6, LIGHT, mode="asynchronous")
    assert flow(CircuitPlan(plan.fabric, plan.schedule, twice), 10**6, LIGHT).total_s == pytest.approx(
        flow(plan, 10**6, LIGHT).total_s
    )


def test_progress_is_reported():
    """After every class of steps."""
    reports = []
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", "1MB", algorithm="ring").circuits
    flow(plan, 10**6, LIGHT, progress=lambda *what: reports.append(what))
    assert reports == [("simulate steps", 3, 6), ("simulate steps", 6, 6)]


def test_a_long_step_reports_its_progress_and_can_be_stopped(monkeypatch):
    """Flows that have ended, while others are simulated; an exception of `progress` stops the kernel at once."""
    monkeypatch.setattr(events_module, "POLL_S", 0.01)
    plan = all_pairs(fabric("leaf_spine:nodes=192"))  # seconds: no two flows are equivalent
    flow(all_pairs(fabric("leaf_spine:nodes=17")), 17 * 10**6, LIGHT)  # compiled beforehand
    reports = []

    def stop(what, done, total):
        reports.append((what, done, total))
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow(plan, 192 * 10**6, LIGHT, progress=stop)
    assert {(what, total) for what, _, total in reports} == {("simulate flows", 192 * 191)}
    assert 100 < reports[-1][1] < 192 * 191
