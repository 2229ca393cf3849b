"""Facts of routes that are evaluated some at a time, beside every route link by link."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from tests.simulate.plans import by_hand
from tests.streams import StreamedPlan

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import Op, circuit_plan
from opticcl.simulate.closed_form import Cost, profile
from opticcl.simulate.facts import PlanFacts
from opticcl.simulate.latency import path_latency
from opticcl.simulate.route_loads import RouteLoads

FABRICS = ("torus:shape=4x3", "fat_tree:nodes=8", "dragonfly:nodes=12")
ASSUMED = (
    assumptions("common", message_gap=1e-8), assumptions("common", hop=1e-3, message_gap=0), assumptions("published"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Routes of every step are evaluated three at a time."""
    monkeypatch.setattr(circuit_plan, "ROUTES_LISTED", 1)
    monkeypatch.setattr(circuit_plan, "ROUTES_AT_ONCE", 3)


def step_on(name):
    """Ten transfers of 1 to 8 chunks, node 1 sends three of them; the longest routes come in no particular place."""
    where, random = fabric(name), np.random.default_rng(5)
    rows = [(0, 1, dst, 0, n, Op.COPY) for dst, n in ((2, 8), (4, 1), (6, 3))]
    for src in range(2, 8):
        rows.append((0, src, (src + int(random.integers(1, 8))) % 8, 0, int(random.integers(1, 9)), Op.COPY))
    rows.append((0, 0, 5, 0, 7, Op.REDUCE))
    return by_hand(where, rows)


def link_by_link(plan, laws):
    """Chunks on each link, time of the busiest [s a byte of chunk], latency of the longest route under each law [s]."""
    where, t = plan.fabric, plan.schedule.step(0)
    capacity = [resource.capacity for resource in where.resources for _ in range(resource.count)]
    chunks, late = [0] * len(capacity), [[] for _ in laws]
    for src, dst, amount in zip(t.src.tolist(), t.dst.tolist(), t.chunk_n.tolist(), strict=True):
        links, _ = where.route(np.array([src]), np.array([dst]))
        for link in links.tolist():
            chunks[link] += amount
        for seconds, law in zip(late, laws, strict=True):
            seconds.append(law.base_s + sum(law.of_hops(links).tolist()))
    slowest = max(8 * on_link / rate for on_link, rate in zip(chunks, capacity, strict=True))
    return chunks, slowest, list(map(max, late))


class Counted:
    """Rounds of a plan; counts how often its routes are evaluated."""

    def __init__(self, plan):
        self.plan, self.passes = plan, 0

    def __call__(self, i):
        """Never called: the routes are evaluated some at a time."""
        raise AssertionError

    def stream(self, i):
        """Routes of step i."""
        self.passes += 1
        yield from self.plan.stream(i)


@pytest.mark.parametrize("name", FABRICS)
def test_in_any_order(name):
    """Loads before latencies or behind them; alone, or with those of a law that is known from the start."""
    plan = step_on(name)
    laws = [path_latency(plan.fabric, assumed) for assumed in ASSUMED]
    chunks, slowest, late = link_by_link(plan, laws)
    assert len(set(late)) == 3
    for order in permutations((None, 0, 1)):
        for also in ((), ASSUMED[2:]):
            run = PlanFacts(plan, also).of_run(0)
            assert run.streamed
            for what in (*order, 2, *order):
                if what is None:
                    assert run.slowest == pytest.approx((slowest,), rel=1e-12, abs=0)
                    assert run.link_chunks.tolist() == chunks
                else:
                    assert run.longest_s(laws[what]) == pytest.approx([late[what]], rel=1e-12)


@pytest.mark.parametrize("name", FABRICS[1:])
def test_routes_are_evaluated_once_for_all_laws(name):
    """That are known when the first is wanted; again for others; not at all for another plan with the same transfers."""
    plan = step_on(name)
    laws = [path_latency(plan.fabric, assumed) for assumed in ASSUMED]
    _, slowest, late = link_by_link(plan, laws)
    shared = RouteLoads()
    for also, loads, due in ((ASSUMED, shared, 1), (ASSUMED, shared, 0), (ASSUMED[:2], None, 2), ((), None, 3)):
        counted = Counted(plan)
        streamed = StreamedPlan(plan.fabric, plan.schedule, counted)
        run = PlanFacts(streamed, also, loads).of_run(0)
        for _ in range(2):
            assert [run.longest_s(law) for law in laws] == [pytest.approx([seconds], rel=1e-12) for seconds in late]
            assert run.slowest == pytest.approx((slowest,), rel=1e-12, abs=0)
        assert counted.passes == due


@pytest.mark.parametrize("name", FABRICS)
def test_costs_of_packets(name):
    """Nothing is set or agreed on: latencies, messages of node 1, and the chunks that one rank adds."""
    plan = step_on(name)
    for assumed in ASSUMED:
        law = path_latency(plan.fabric, assumed)
        _, slowest, (late,) = link_by_link(plan, [law])
        (cost,) = profile(plan, assumed).costs
        due_s = late + 3 * law.message_gap_s
        due = Cost(1, 1, 0.0, pytest.approx(due_s, rel=1e-12), 0.0, 7 + 2 * 7, pytest.approx((slowest,), abs=0))
        assert cost == replace(due, last_latency_s=pytest.approx(due_s, rel=1e-12), is_last=True)
