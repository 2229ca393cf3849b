"""Irregular flows: the engine, which changes only the shares that a start or an end can reach, against shares computed anew."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.simulate.dependencies import Dependencies, released_together
from opticcl.simulate.flow.events import FlowColumns, Merging, run_flows
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.links import Links

FABRICS = (
    "torus:shape=3x4",
    "torus:shape=5",
    "fat_tree:nodes=16,radix=8,layers=2",
    "leaf_spine:nodes=16,nodes_per_leaf=4,spines=2",
    "dragonfly:nodes=24",
)
KINDS = ("random", "skewed", "experts")


def paths(where, kind, flows, draw):
    """Hops and offsets of flows between nodes drawn by chance."""
    n = where.num_nodes
    src, dst = draw.integers(0, n, flows), draw.integers(0, n, flows)
    if kind == "skewed":
        dst = np.where(draw.random(flows) < 0.5, 0, dst)
    elif kind == "experts":
        src, dst = np.arange(flows) % n, draw.integers(0, max(1, n // 4), flows) * 4 % n
    dst = np.where(src == dst, (dst + 1) % n, dst)
    rows = Transfers.of(src, dst, 0, 1, Op.COPY)
    plan = lower(where, Schedule(kind, collective("barrier", n, 1), 1, lambda i: rows))
    return Links(where).paths(plan.rounds(0)[0])


def run(columns, waits, capacity, tolerance=0.0):
    """(what the engine finds, the largest part left out, the events that it simulates)."""
    limit, merging = EventLimit("flow", 10**7), Merging(tolerance)
    found = run_flows(limit, lambda *_: None, merging, FlowColumns(*columns), waits, np.array(capacity, float))
    return found, merging.left_out[0], limit.max_events - limit.left


def by_the_engine(hops, offsets, amount, delay, capacity, tolerance=0.0):
    """When each flow ends [s]; with a tolerance, and the largest part of the bytes of a flow that was left out."""
    n, ones = len(amount), np.ones(len(hops), np.int64)
    path_at, path_n = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int32)
    columns = amount, delay, np.zeros(n), path_at, path_n, hops.astype(np.int32), ones
    found, left_out, _ = run(columns, released_together(n), capacity, tolerance)
    return (found.finished, left_out) if tolerance else found.finished


def anew(hops, offsets, amount, delay, capacity):
    """When each flow ends, where every start and end computes all shares from nothing [s]."""
    n = len(amount)
    rest, end, now = amount.copy(), np.full(n, np.nan), 0.0
    waiting, active = np.ones(n, bool), np.zeros(n, bool)
    while waiting.any() or active.any():
        rate = np.zeros(n)
        if active.any():
            rate[active] = filled(
                [set(hops[offsets[f] : offsets[f + 1]].tolist()) for f in np.flatnonzero(active)], capacity
            )
        takes = np.divide(rest, rate, out=np.full(n, np.inf), where=active)
        then = min(takes.min(), (delay[waiting] - now).min(initial=np.inf))
        rest -= rate * then
        now += then
        done = active & (takes <= then * (1 + 1e-12) + now * 1e-13)
        end[done] = now
        starts = waiting & (delay <= now * (1 + 1e-12))
        active, waiting = (active & ~done) | starts, waiting & ~starts
    return end


def filled(links_of, capacity):
    """Max-min fair rates by their definition: all rise together, and stop with the first full link that they cross."""
    rates, left = np.full(len(links_of), np.nan), dict(enumerate(capacity))
    while np.isnan(rates).any():
        rising = [f for f in range(len(links_of)) if np.isnan(rates[f])]
        crossing = {link: [f for f in rising if link in links_of[f]] for f in rising for link in links_of[f]}
        full = min(crossing, key=lambda link: left[link] / len(crossing[link]))
        share = left[full] / len(crossing[full])
        for f in crossing[full]:
            rates[f] = share
            for link in links_of[f]:
                left[link] -= share
    return rates


@pytest.mark.parametrize("specification", FABRICS)
@examples(8)
@given(kind=st.sampled_from(KINDS), flows=st.integers(1, 40), late=st.booleans(), seed=st.integers(0, 10**6))
def test_shares_of_what_changes_are_those_computed_anew(specification, kind, flows, late, seed):
    """Different sizes, some equal, starting together or one after the other."""
    draw, where = np.random.default_rng(seed), fabric(specification)
    hops, offsets = paths(where, kind, flows, draw)
    capacity = Links(where).capacity
    amount = draw.integers(1, 20, len(offsets) - 1) * 1e6
    delay = draw.integers(0, 5, len(amount)) * 1e-5 if late else np.zeros(len(amount))
    found = by_the_engine(hops, offsets, amount, delay, capacity)
    np.testing.assert_allclose(found, anew(hops, offsets, amount, delay, capacity), rtol=1e-9)


@pytest.mark.parametrize("tolerance", [0.1, 0.01])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("specification", FABRICS)
def test_a_tolerance_moves_ends_by_at_most_that_part(specification, kind, tolerance):
    """Of the time; and of no flow is a larger part of the bytes left out."""
    draw, where = np.random.default_rng(5), fabric(specification)
    hops, offsets = paths(where, kind, 300, draw)
    amount = draw.integers(1, 10**6, len(offsets) - 1) * 10.0
    delay = draw.integers(0, 50, len(amount)) * 1e-5
    given = (hops, offsets, amount, delay, Links(where).capacity)
    exact, (merged, left_out) = by_the_engine(*given), by_the_engine(*given, tolerance)
    assert 0 < left_out <= tolerance
    assert 0 < np.abs(merged / exact - 1).max() <= tolerance


def test_a_tolerance_stands_beside_the_time(answer, opticcl):
    """With the largest part that was left out; one that is no small part is refused."""
    words = ("simulate", "-f", "torus:shape=3x4", "-c", "all_to_all", "-a", "mesh", "-s", "12MB", "--engine")
    (exact, _), (merged, _) = (answer(*words, f"flow{option}") for option in ("", ":tolerance=0.05"))
    assert "tolerance" not in exact["assumptions"]
    assert merged["assumptions"]["tolerance"] == 0.05
    assert 0 <= merged["assumptions"]["left_out"] <= 0.05
    assert merged["total_s"] == pytest.approx(exact["total_s"], rel=0.05)
    done = opticcl(*words, "flow:tolerance=0.5")
    assert done.returncode == 2
    assert "flow: tolerance=0.5 is not between 0 and 0.1; try 0.001" in done.stderr


# --- small drawn problems, in exact fractions ------------------------------------------------------------------------


def shares(hops_of, capacity):
    """Max-min fair rates by their definition: all rise together, and stop with the first full link that they cross.

    Args:
        hops_of: of each flow: link -> how often its rate counts there.
        capacity: of each link.
    """
    rate, left = {}, [Fraction(c) for c in capacity]
    while len(rate) < len(hops_of):
        rising = {f: hops for f, hops in hops_of.items() if f not in rate}
        total = [sum(hops.get(link, 0) for hops in rising.values()) for link in range(len(left))]
        level = min(left[link] / times for link, times in enumerate(total) if times)
        full = {link for link, times in enumerate(total) if times and left[link] / times == level}
        for f, hops in rising.items():
            if full & hops.keys():
                rate[f] = level
                for link, times in hops.items():
                    left[link] -= level * times
    return rate


@st.composite
def weighted_paths(draw, most_flows):
    """(of each flow: link -> weight, capacity of each link): few of either, whole numbers, so that levels often coincide."""
    capacity = draw(st.lists(st.sampled_from([1, 2, 3, 6, 10]), min_size=1, max_size=5))
    weights = draw(st.sampled_from([st.just(1), st.integers(1, 3)]))
    path = st.dictionaries(st.integers(0, len(capacity) - 1), weights, min_size=1, max_size=4)
    return draw(st.lists(path, min_size=1, max_size=most_flows)), capacity


def columns(hops_of):
    """Where the hops of each flow begin, their number, links and weights."""
    length = np.array([len(hops) for hops in hops_of], np.int64)
    links = np.array([link for hops in hops_of for link in hops], np.int64)
    weight = np.array([times for hops in hops_of for times in hops.values()], np.int64)
    return np.cumsum(length) - length, length, links, weight


@st.composite
def dependent_flows(draw):
    """(paths, capacity, (amounts, delays, sums), group of each flow, block of each group, next blocks, (flow, group) fed)."""
    hops_of, capacity = draw(weighted_paths(9))
    n = len(hops_of)
    amount = draw(st.lists(st.sampled_from([0, 1, 6, 12, 60]), min_size=n, max_size=n))
    delay, compute = (draw(st.lists(st.sampled_from([0, 0, 1, 5]), min_size=n, max_size=n)) for _ in range(2))
    group_of = np.cumsum([0, *draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))]).tolist()
    groups = group_of[-1] + 1
    block_of = np.cumsum([0, *draw(st.lists(st.booleans(), min_size=groups - 1, max_size=groups - 1))]).tolist()
    following, free = {}, set(range(1, block_of[-1] + 1))
    for block in range(block_of[-1]):
        after = draw(st.sampled_from([None, *sorted(b for b in free if b > block)]))
        if after is not None:
            following[block] = after
            free.remove(after)
    later = [(f, g) for f in range(n) for g in range(groups) if g > group_of[f]]
    feeds = draw(st.lists(st.sampled_from(later), max_size=6, unique=True)) if later else []
    return hops_of, capacity, (amount, delay, compute), group_of, block_of, following, feeds


def events(problem):
    """(end of each flow, release of each group, flows in flight at most), from event to event in fractions."""
    hops_of, capacity, (amount, delay, compute), group_of, block_of, following, feeds = problem
    n, before = len(hops_of), {after: block for block, after in following.items()}
    released, begun, ended, usable = {}, {}, {}, {}
    rest, now, most = [Fraction(a) for a in amount], Fraction(0), 0
    while len(usable) < n:
        changed = True
        while changed:  # all that happens at this time
            old = len(released), len(begun), len(ended), len(usable)
            for g in range(len(block_of)):
                sent = [f for f in range(n) if block_of[group_of[f]] == before.get(block_of[g], -1)]
                if (
                    g not in released
                    and all(f in ended for f in sent)
                    and all(f in usable for f, to in feeds if to == g)
                ):
                    released[g] = now
            for f in range(n):
                if f not in begun and group_of[f] in released and released[group_of[f]] + delay[f] == now:
                    begun[f] = now
                if f in begun and f not in ended and rest[f] == 0:
                    ended[f] = now
                if f in ended and f not in usable and ended[f] + compute[f] == now:
                    usable[f] = now
            changed = old != (len(released), len(begun), len(ended), len(usable))
        active = {f: hops_of[f] for f in begun if f not in ended}
        most = max(most, len(active))
        rate = shares(active, capacity)
        due = [now + rest[f] / rate[f] for f in active]
        due += [released[group_of[f]] + delay[f] for f in range(n) if group_of[f] in released and f not in begun]
        due += [ended[f] + compute[f] for f in ended if f not in usable]
        if due:
            for f in active:
                rest[f] -= rate[f] * (min(due) - now)
            now = min(due)
    return ended, released, most


def order_of(problem, most):
    """The dependencies as the engine takes them; `most`: flows in flight at most."""
    *_, group_of, block_of, following, feeds = problem
    n, groups, blocks = len(group_of), len(block_of), block_of[-1] + 1
    feeds = sorted(feeds)
    after = {group for group in range(groups) if block_of[group] in following.values()}
    waits = [sum(to == g for _, to in feeds) + (g in after) for g in range(groups)]
    return Dependencies(
        np.searchsorted(group_of, np.arange(groups + 1)),
        np.array(group_of),
        np.array(waits),
        np.searchsorted(block_of, np.arange(blocks + 1)),
        np.array([block_of[g] for g in group_of]),
        np.array([following.get(b, -1) for b in range(blocks)]),
        np.searchsorted([f for f, _ in feeds], np.arange(n + 1)),
        np.array([to for _, to in feeds], np.int64),
        most,
    )


@examples(30)
@given(dependent_flows())
def test_flows_that_wait_for_each_other_end_when_they_do_in_fractions(problem):
    """Each end and release; what released a group has ended then, and the group waits for it. No slot is needed twice."""
    hops_of, capacity, (amount, delay, compute), group_of, block_of, following, feeds = problem
    ended, released_at, most = events(problem)
    at, length, links, weight = columns(hops_of)
    floats = (np.array(column, float) for column in (amount, delay, compute))
    flows = *floats, at, length.astype(np.int32), links.astype(np.int32), weight
    (finished, released, cause), _, count = run(flows, order_of(problem, most), capacity)
    assert finished.tolist() == pytest.approx([float(ended[f]) for f in range(len(hops_of))], rel=1e-9)
    assert released.tolist() == pytest.approx([float(released_at[g]) for g in range(len(block_of))], rel=1e-9)
    for group, by in enumerate(cause.tolist()):
        flow, of_data = divmod(by, 2)
        if by < 0:
            assert order_of(problem, most).waits[group] == 0
            continue
        ready = float(ended[flow]) + compute[flow] * of_data
        assert ready == pytest.approx(released[group], rel=1e-9)
        assert (flow, group) in feeds if of_data else following[block_of[group_of[flow]]] == block_of[group]
    rates = sum(amount[f] > 0 for f in ended)  # one at least for each that carries anything
    assert count >= 2 * len(ended) + rates


def by_hand(flows, capacity, tolerance=0.0):
    """(ends, largest part left out) of flows (bytes, delay, link -> weight) that are released together."""
    amount, delay, hops_of = zip(*flows, strict=True)
    at, length, links, weight = columns(hops_of)
    floats = np.array(amount, float), np.array(delay, float), np.zeros(len(flows))
    given = *floats, at, length.astype(np.int32), links.astype(np.int32), weight
    found, left_out, _ = run(given, released_together(len(flows)), capacity, tolerance)
    return found.finished.tolist(), left_out


def test_a_tolerance_is_of_the_time_and_of_the_bytes():
    """Half of the bytes in a two hundredth of the time; fewer of the bytes in more of the time; and just both."""
    short = (2, 98, {0: 1}), (1, 99.5, {1: 1}), (99, 99.5, {1: 1})
    assert by_hand(short, [1, 2], tolerance=0.02) == ([100, 100.5, 149.5], 0.0)
    slow = (49.7, 0, {0: 1}), (100, 0, {1: 1}), (1000, 0.5, {1: 99})
    finished, left_out = by_hand(slow, [1, 100], tolerance=0.01)
    assert finished[:2] == pytest.approx([49.7, 50.5])
    assert left_out == 0
    just = (100, 0, {0: 1}), (100, 1, {1: 1}), (200, 1, {1: 1})
    assert by_hand(just, [1, 2], tolerance=0.01) == ([100, 101, 150.5], 0.01)


def test_a_path_may_cross_a_link_more_than_once():
    """Three times each: two flows have a sixth of it each, the one that is left a third; a link has more hops than flows."""
    hops, at, n = np.zeros(6, np.int32), np.array([0, 3]), np.array([3, 3], np.int32)
    flows = np.array([30.0, 60.0]), np.zeros(2), np.zeros(2), at, n, hops, np.ones(6, np.int64)
    found, *_ = run(flows, released_together(2), [6])
    assert found.finished.tolist() == [30, 45]
