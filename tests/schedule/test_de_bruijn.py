"""Two to four steps on the standing circuits of de Bruijn graphs and of those of Imase and Itoh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import same_columns
from opticcl.plans.plan import compile
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify

SQUARES = (
    "ideal:nodes=1", "ideal:nodes=4", "lightpath:shape=3x3", "lightpath:shape=4x4", "ideal:nodes=25", "lightpath:shape=3x9",
)  # fmt: skip
"""Squares of odd and even numbers, and a multiple of one."""


@pytest.mark.parametrize("collective", ["all_to_all", "all_gather", "reduce_scatter", "barrier"])
@pytest.mark.parametrize("name", SQUARES)
def test_right_at_every_rank(name, collective):
    """Squares of odd and even numbers, and a multiple of one."""
    check("de_bruijn", collective, fabric(name))


@pytest.mark.parametrize("steps", [2, 3, 4])
@pytest.mark.parametrize("name", SQUARES)
def test_sums_are_right_at_every_rank(name, steps):
    """An all_reduce of two, three and four steps."""
    assert check(f"de_bruijn:steps={steps}", "all_reduce", fabric(name)).num_steps in (0, steps)


def test_all_circuits_serve_both_steps():
    """So that nothing is reconfigured in between."""
    for collective in ("all_to_all", "all_gather", "reduce_scatter", "all_reduce"):
        schedule = generate("de_bruijn", collective, fabric("lightpath:shape=8x8"))
        pairs = [np.unique(schedule.step(i).src * 64 + schedule.step(i).dst) for i in range(schedule.num_steps)]
        assert all(np.array_equal(pairs[0], other) for other in pairs)
        assert len(pairs[0]) == 64 * 8 - 8


def test_other_degrees_are_named():
    """Those of 64 nodes."""
    reason = reason_declined("de_bruijn:degree=4", "all_reduce", fabric("ideal:nodes=64"))
    assert reason == "degree=4: nodes can have 8, 16, 32 successors; try degree=8"


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize(("shape", "roots"), [("3x3", (0, 4, 7)), ("4x4", (5, 6)), ("5x5", (1,)), ("2x4", (0, 1, 6))])
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


@pytest.mark.parametrize(
    ("shape", "degree", "steps", "shares"),
    [
        ("8x16", 16, 2, 2 / 2),
        ("8x16", 16, 3, 3 / 16),
        ("8x16", 16, 4, 2 / 16 + 2 / 128),
        ("4x8", 8, 4, (2 / 8 + 2 / 32) / 2),  # two lasers a circuit
        ("4x8", 16, 2, 2 / 8),
        ("8x8", 16, 2, 2 / 4),
        ("3x9", 9, 3, 3 / 9),
        ("10x10", 10, 4, 2 / 10 + 2 / 100),
    ],
)
def test_closed_form_with_several_paths(shape, degree, steps, shares):
    """One setting, the latencies, and 2 / m, 3 / d and 2 (1/d + 1/N) messages on the lasers of a circuit."""
    where = fabric(f"lightpath:shape={shape}")
    plan = compile(where, "all_reduce", "1MB", algorithm=f"de_bruijn:steps={steps},degree={degree}")
    assert plan.verify().ok
    due = where.reconfiguration_s + steps * where.latency_s + shares * plan.size_bytes * 8 / where.rate_bits_per_s
    assert plan.simulate(assumptions="published", compute="none").total_s == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "waveguides"), [("16x16", 5), ("8x16", 5), ("10x10", 3), ("4x8", 3), ("8x8", 3), ("3x9", 4)]
)
def test_few_waveguides_do(shape, waveguides):
    """Waveguides on each edge with which all circuits stand in one round; 16x16 tiles need 4 at least."""
    where = fabric(f"lightpath:shape={shape},waveguides={waveguides}")
    plan = lower(where, generate("de_bruijn:steps=4", "all_reduce", where))
    rounds = [plan.rounds(i) for i in range(4)]
    assert [len(one) for one in rounds] == [1, 1, 1, 1]
    assert verify(plan).ok
    assert same_columns(replace(rounds[0][0], transfer=rounds[3][0].transfer), rounds[3][0])


def test_too_many_chunks_that_are_no_neighbours():
    """Of an all_reduce in four steps alone."""
    where = fabric("ideal:nodes=4225")
    assert "try steps=3" in (reason_declined("de_bruijn:steps=4", "all_reduce", where) or "")
    assert reason_declined("de_bruijn:steps=3", "all_reduce", where) is None
