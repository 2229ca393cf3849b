"""The judge of jobs that arrive and leave: circuits that change, nodes that are taken or free, totals."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.fabrics import fabric, job
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.time import jobs as jobs_module
from opticcl.verify.time.isolation import verify_together
from opticcl.verify.time.jobs import JobsJudge

MACHINE = fabric("terarack:nodes=8")
USABLE = np.arange(8) < 7


def plan_on(nodes):
    """An all-reduce on a ring of these nodes."""
    where = job(MACHINE, nodes)
    return lower(where, generate("ring", "all_reduce", where))


def free_but(*nodes):
    """Nodes that the machine calls free: all but these, and but the one that no job may use."""
    return USABLE & ~np.isin(np.arange(8), nodes)


def edited(plan, edit):
    """The plan with every round of its second run of equal steps changed."""
    second = plan.schedule.step_classes()[1].start
    return replace(
        plan, rounds=lambda step: tuple(map(edit, plan.rounds(step))) if step >= second else plan.rounds(step)
    )


def column(name):
    """An edit that adds one to the last value of a column."""

    def edit(circuits):
        values = np.array(getattr(circuits, name))
        values[-1] += 1
        return replace(circuits, **{name: values})

    return edit


EDITS = {
    **{name: column(name) for name in ("transfer", "wavelength_lo")},
    "rows": lambda c: c.take(np.arange(1, len(c))),
}


def test_totals_of_all_changes():
    """Transfers of each arrival, circuits of all running jobs at each change; a job that is asked about is not remembered."""
    one, other = plan_on([0, 1, 2]), plan_on([4, 5])
    judge = JobsJudge(USABLE)
    judge.arrive("a", one, {"a": np.array([0, 1, 2])}, free_but(0, 1, 2))
    assert judge.admissible("b", other).ok
    judge.arrive("b", other, {"a": np.array([0, 1, 2]), "b": np.array([4, 5])}, free_but(0, 1, 2, 4, 5))
    judge.leave("a", {"b": np.array([4, 5])}, free_but(4, 5))
    judge.leave("b", {}, free_but())
    verdict = judge.verdict
    assert (judge.changes, judge.disturbed, verdict.ok, verdict.exhaustive, verdict.chunks) == (4, 0, True, True, 0)
    assert verdict.transfers == verify(one).transfers + verify(other).transfers
    assert verdict.circuits == sum(
        verify_together(p, ["a", "b"][: len(p)]).circuits for p in ([one], [one, other], [other])
    )
    assert verdict.notes == ("4 arrivals and departures, all running jobs together at each",)


@pytest.mark.parametrize(
    ("free", "held", "shown"),
    [
        (free_but(0, 1), {"a": [0, 1, 2]}, ("node 2", "taken", "free", 1)),
        (free_but(0, 1, 2, 3, 4), {"a": [0, 1, 2]}, ("node 3", "free", "taken", 2)),
        (free_but(0, 1, 2), {"a": [0, 1, 2], "b": []}, ("node -1", "free", "taken", 1)),
        (free_but(0, 1, 2), {"a": [0, 1, 2, 7], "b": []}, ("node -1", "free", "taken", 1)),
        (free_but(1, 2), {"a": [0, 1, 2]}, ("node 0", "taken", "free", 1)),
    ],
)
def test_nodes_that_are_not_those_of_the_jobs_are_refused(free, held, shown):
    """The first one is named, with what it must be; a node that no job may use is neither."""
    judge = JobsJudge(USABLE)
    judge.arrive("a", plan_on([0, 1, 2]), {name: np.array(nodes, int) for name, nodes in held.items()}, free)
    (found,) = judge.verdict.violations
    assert (found.rule, found.step, found.round) == ("cells_not_released", -1, -1)
    assert (found.where, found.expected, found.found, found.count) == shown


def test_a_job_on_a_node_of_another_is_refused():
    """Whether it is asked about or has arrived; both are named, and nothing else is wrong with a job elsewhere."""
    judge = JobsJudge(USABLE)
    plans = {"a": plan_on([0, 1, 2]), "b": plan_on([2, 4])}
    judge.arrive("a", plans["a"], {"a": np.arange(3)}, free_but(0, 1, 2))
    due = verify_together(list(plans.values()), list(plans))
    assert judge.admissible("b", plans["b"]) == due
    assert {(v.rule, v.found) for v in due.violations if v.where.startswith("node")} == {
        ("shared_between_jobs", "a and b")
    }
    assert judge.verdict.ok
    judge.arrive("b", plans["b"], {"a": np.arange(3), "b": np.array([2, 4])}, free_but(0, 1, 2, 4))
    assert judge.verdict.violations == due.violations


@pytest.mark.parametrize("edit", EDITS)
def test_circuits_that_change_while_a_job_runs_are_refused(monkeypatch, edit):
    """Named by the job and its first run of steps; all are counted, and the verdict names the first violations alone."""
    plan, now = plan_on([0, 1, 2]), []
    second = edited(plan, EDITS[edit])
    judge = JobsJudge(USABLE)
    judge.arrive(
        "a", replace(plan, rounds=lambda i: (second if now else plan).rounds(i)), {"a": np.arange(3)}, free_but(0, 1, 2)
    )
    now.append(True)
    both = {"a": np.arange(3), "b": np.array([4, 5])}
    judge.arrive("b", plan_on([4, 5]), both, free_but(0, 1, 2, 4, 5))
    (found,) = [v for v in judge.verdict.violations if v.rule == "job_disturbed"]
    assert (found.step, found.round, found.where, found.count) == (1, -1, "a, run 1 of equal steps", 1)
    assert judge.disturbed == 1
    monkeypatch.setattr(jobs_module, "MOST_REPORTED", 0)
    assert judge.verdict.violations == ()


def test_a_wrong_job_is_refused_when_it_arrives():
    """By the rules of one plan, whether it is asked about or has arrived."""
    plan = plan_on([0, 1, 2])
    wrong = replace(plan, schedule=replace(plan.schedule, num_steps=plan.schedule.num_steps - 1, classes=()))
    judge = JobsJudge(USABLE)
    rules = {v.rule for v in verify(wrong).violations}
    assert {v.rule for v in judge.admissible("a", wrong).violations} == rules
    judge.arrive("a", wrong, {"a": np.arange(3)}, free_but(0, 1, 2))
    assert {v.rule for v in judge.verdict.violations} == rules
