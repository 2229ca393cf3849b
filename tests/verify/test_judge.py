"""Verification of many plans: what fabrics share is judged once."""

from dataclasses import replace

import opticcl
from opticcl.fabrics import fabric
from opticcl.verify import judge as judge_module
from opticcl.verify import verify
from opticcl.verify.data.contributions import check_data
from opticcl.verify.judge import Judge


def test_fabrics_that_carry_the_same_schedule_share_only_its_data(monkeypatch):
    """The same phases on two machines: data are judged once, circuits are checked on each."""
    judge, judged = Judge(), []
    monkeypatch.setattr(judge_module, "check_data", lambda one: judged.append(one) or check_data(one))
    plans = [
        opticcl.compile(fabric(name, nodes=8), "all_reduce", 8, algorithm="ring") for name in ("ideal", "fat_tree")
    ]
    for plan in plans:
        assert judge(plan.circuits) == verify(plan.circuits)
    assert len(judged) == 1
    other = opticcl.compile(fabric("ideal", nodes=8), "all_reduce", 8, algorithm="tree")
    judge(other.circuits)
    assert len(judged) == 2
    made = plans[0].schedule
    shorter = replace(made, num_steps=made.num_steps - 1, classes=(), step=lambda i: made.step(i))
    assert not judge(replace(plans[0].circuits, schedule=shorter)).ok


def test_the_same_steps_of_another_collective_are_judged_again():
    """A root that is another one."""
    judge = Judge()
    made = [opticcl.compile("ideal:nodes=6", "broadcast", 8, algorithm="tree", root=root).circuits for root in (0, 1)]
    assert all(judge(plan).ok for plan in made)
    wrong = replace(made[0], schedule=replace(made[0].schedule, collective=made[1].schedule.collective))
    assert not judge(wrong).ok
