"""Irregular flows: the engine, which changes only the shares that a start or an end can reach, against shares computed anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.simulate import _flow_kernels as kernels
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


def by_the_engine(hops, offsets, amount, delay, capacity, tolerance=0.0):
    """When each flow ends [s]; with a tolerance, and the largest part of the bytes of a flow that was left out."""
    n = len(amount)
    left_out = np.zeros(1)
    path_at, path_n = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int32)
    ones = np.ones(len(hops), np.int64)
    flows = kernels.FlowColumns(amount, delay, np.zeros(n), path_at, path_n, hops.astype(np.int32), ones)
    none, one = np.zeros(n + 1, np.int64), np.array([0, 1])
    order = kernels.FlowOrder(n * one, none[:1].copy(), one, none[:n], np.full(1, -1), none, none[:0])
    status, _, finished, _, _ = kernels.run(
        tuple(flows), tuple(order), capacity, n, 10**7, np.zeros(2, np.int64), tolerance, left_out
    )
    assert status == kernels.DONE
    return (finished, left_out[0]) if tolerance else finished


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
