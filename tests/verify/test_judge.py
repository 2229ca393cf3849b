"""Verification of many plans."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.fabrics import fabric
from opticcl.verify import verify
from opticcl.verify.judge import Judge, _fingerprint
from opticcl.verify.symmetry import runs_of


def fingerprint(schedule):
    """Of a schedule with its own runs."""
    return _fingerprint(schedule, runs_of(schedule))


def test_fabrics_that_carry_the_same_schedule_share_only_its_data():
    """The same steps on two machines: data are replayed once, circuits are checked on each."""
    judge = Judge()
    plans = [
        opticcl.compile(fabric(name, nodes=8), "all_reduce", 8, algorithm="ring") for name in ("ideal", "fat_tree")
    ]
    for plan in plans:
        assert judge(plan.circuits) == verify(plan.circuits)
    assert len(judge._followed) == 1
    other = opticcl.compile(fabric("ideal", nodes=8), "all_reduce", 8, algorithm="tree")
    judge(other.circuits)
    assert len(judge._followed) == 2
    broken = replace(
        plans[0].circuits, schedule=replace(plans[0].schedule, num_steps=plans[0].schedule.num_steps - 1, classes=())
    )
    assert not judge(broken).ok


@examples(40)
@given(st.data())
def test_any_change_of_any_step_is_another_schedule(data):
    """A changed entry of one column of one step, a missing step and another collective change the fingerprint."""
    schedule = opticcl.compile("ideal:nodes=6", "all_reduce", 8, algorithm="ring").schedule
    i = data.draw(st.integers(0, schedule.num_steps - 1))
    column = data.draw(st.sampled_from(["src", "dst", "chunk_lo", "chunk_n", "op"]))
    row = data.draw(st.integers(0, len(schedule.step(i)) - 1))

    def step(k):
        made = schedule.step(k)
        if k != i:
            return made
        changed = getattr(made, column).copy()
        changed[row] += 1
        return replace(made, **{column: changed})

    mark = fingerprint(schedule)
    assert fingerprint(replace(schedule, step=step)) != mark
    assert fingerprint(replace(schedule, num_steps=schedule.num_steps - 1)) != mark
    other = replace(schedule.collective, name="all_gather")
    assert fingerprint(replace(schedule, collective=other)) != mark


def test_the_same_steps_made_again_are_the_same_schedule():
    """Equal for equal schedules that share their columns in the same way."""
    one, other = (
        opticcl.compile(fabric(name, nodes=7), "all_gather", 8, algorithm="bruck").schedule
        for name in ("ideal", "leaf_spine")
    )
    assert np.array_equal(one.step(0).src, other.step(0).src)
    assert fingerprint(one) == fingerprint(other)
