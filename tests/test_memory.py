"""What was made lately."""

import opticcl
from opticcl.ir import Transfers
from opticcl.memory import Memory


def plan(counted):
    """A ring of eight; `counted` is told each step that is made."""
    from dataclasses import replace

    made = opticcl.compile("ideal:nodes=8", "all_reduce", 8, algorithm="ring").schedule
    return replace(made, step=lambda i: counted.append(i) or made.step(i))


def test_a_step_is_made_once():
    """Until there is no room."""
    counted = []
    schedule = Memory().of_schedule(plan(counted))
    assert isinstance(schedule.step(3), Transfers)
    assert schedule.step(3) is schedule.step(3)
    assert counted == [3]


def test_what_nobody_asked_for_longest_is_forgotten():
    """A step of eight transfers is 8 x (4 x 4 + 1) bytes; two of them fit."""
    counted = []
    schedule = Memory(2 * 136).of_schedule(plan(counted))
    for i in (0, 1, 0, 2, 0, 1):
        schedule.step(i)
    assert counted == [0, 1, 2, 1]


def test_what_does_not_fit_is_made_every_time():
    """And throws out nothing else."""
    counted = []
    schedule = Memory(100).of_schedule(plan(counted))
    schedule.step(0)
    schedule.step(0)
    assert counted == [0, 0]


def test_two_schedules_do_not_mix():
    """Nor do the steps and the circuits of one plan."""
    memory = Memory()
    ring, tree = (
        opticcl.compile("ideal:nodes=8", "all_reduce", 8, algorithm=name).circuits for name in ("ring", "tree")
    )
    kept = [memory.of_schedule(one.schedule) for one in (ring, tree)]
    assert len(kept[0].step(0)) == 8 != len(kept[1].step(0))
    lit = memory.of_plan(ring)
    assert lit.rounds(0) is lit.rounds(0)
    assert len(lit.rounds(0)[0]) == 8
