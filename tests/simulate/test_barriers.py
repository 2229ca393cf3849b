"""Rounds between barriers: which steps and times a recorder is told."""

from types import SimpleNamespace

import pytest

from opticcl.assumptions import assumptions
from opticcl.plans.plan import compile
from opticcl.simulate.barriers import circuit_rounds, simulate_with_barriers


def test_a_recorder_is_told_every_step_once():
    """On a ring whose first step sets the circuits, the others follow it; their lengths add up to the total."""
    plan, assumed = compile("terarack:nodes=6", "all_reduce", "1 MB", algorithm="ring").circuits, assumptions("common")
    steps, lengths_s = [], []
    recorder = SimpleNamespace(
        add_round=lambda mine, *rest: steps.append(mine), end_step=lambda rounds, length_s: lengths_s.append(length_s)
    )
    found = simulate_with_barriers(plan, 10**6, assumed, circuit_rounds(plan, assumed, True), lambda *_: None, recorder)
    assert [step for mine in steps for step in mine] == list(range(10))
    assert len(steps) > len(plan.schedule.step_classes())
    total_s = sum(len(mine) * length_s for mine, length_s in zip(steps, lengths_s, strict=True))
    assert total_s == pytest.approx(found.total_s)
