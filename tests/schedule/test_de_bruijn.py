"""Two steps on the standing circuits of a de Bruijn graph."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.oracle import check

from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate, reason_declined


@pytest.mark.parametrize("collective", ["all_to_all", "all_gather"])
@pytest.mark.parametrize(
    "name", ["ideal:nodes=1", "ideal:nodes=4", "lightpath:shape=3x3", "lightpath:shape=4x4", "ideal:nodes=25"]
)
def test_right_at_every_rank(name, collective):
    """Squares of odd and even numbers."""
    check("de_bruijn", collective, fabric(name))


def test_all_circuits_serve_both_steps():
    """So that nothing is reconfigured in between."""
    for collective in ("all_to_all", "all_gather"):
        schedule = generate("de_bruijn", collective, fabric("lightpath:shape=8x8"))
        pairs = [np.unique(schedule.step(i).src * 64 + schedule.step(i).dst) for i in (0, 1)]
        assert np.array_equal(*pairs)
        assert len(pairs[0]) == 64 * 8 - 8


@pytest.mark.parametrize(
    ("collective", "size", "shares"),
    [
        ("all_to_all", "1KB", 2 / 16),
        ("all_to_all", "10MB", 2 / 16),
        ("all_gather", "1KB", 1 / 256 + 1 / 16),
        ("all_gather", "1MB", 1 / 256 + 1 / 16),
    ],
)
def test_time_on_256_tiles(collective, size, shares):
    """One reconfiguration, two latencies, and the message's shares on one laser."""
    where = fabric("lightpath:shape=16x16")
    plan = compile(where, collective, size)
    assert plan.algorithm == "de_bruijn"
    assert plan.verify().ok
    due = where.reconfiguration_s + 2 * where.latency_s + shares * plan.size_bytes * 8 / where.rate_bits_per_s
    assert plan.simulate(assumptions="published").total_s == pytest.approx(due, rel=0.001)


@pytest.mark.parametrize(
    ("collective", "name", "text"),
    [
        ("all_reduce", "ideal:nodes=16", "it does all_to_all, all_gather"),
        ("all_gather", "ideal:nodes=15", "15 nodes are no square; nearest: 9 or 16"),
        ("all_gather", "sipac:radix=4,levels=2", "no single circuit joins nodes"),
        ("all_gather", "ideal:nodes=262144", "transfers a step are more than"),
    ],
)
def test_declined(collective, name, text):
    """With a reason."""
    assert text in (reason_declined("de_bruijn", collective, fabric(name)) or "")


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize(("shape", "roots"), [("3x3", (0, 4, 7)), ("4x4", (5, 6)), ("5x5", (1,))])
def test_from_and_to_a_root(collective, shape, roots):
    """Also a root that follows itself; one setting of circuits."""
    where = fabric(f"lightpath:shape={shape}")
    for root in roots:
        plan = compile(where, Request(collective, root), "1KB", algorithm="de_bruijn")
        assert plan.verify().ok
        found = plan.simulate(assumptions="published", compute="none")
        assert found.reconfiguration_s.sum() == where.reconfiguration_s
        assert found.num_steps == 2


def test_trees_that_stand():
    """16 trees on 256 tiles: one setting, and the closed form of depth + k - 1 steps of 1 / (16 k) on one laser."""
    where = fabric("lightpath")
    plan = compile(where, "broadcast", "1MB", algorithm="disjoint_trees:shape=8x8x2x2,pipeline=4")
    assert plan.verify().ok
    due = 3.7e-6 + 8 * (0.7e-6 + 8e6 / 64 / where.rate_bits_per_s)
    assert plan.simulate(assumptions="published", compute="none").total_s == pytest.approx(due, rel=1e-9)
