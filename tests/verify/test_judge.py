"""Verification of many plans."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.fabrics import fabric
from opticcl.ir import Collective, Op, Schedule, Transfers
from opticcl.ir.collective import Holders, HolderTable
from opticcl.ir.symmetry import Digits, Run, RunSteps, Symmetry, Xor
from opticcl.schedule import skewed_exchange
from opticcl.verify import judge as judge_module
from opticcl.verify import verify
from opticcl.verify.data import check_data
from opticcl.verify.judge import Judge, _fingerprint
from opticcl.verify.symmetry import runs_of


def fingerprint(schedule):
    """Of a schedule with its own runs."""
    return _fingerprint(schedule, runs_of(schedule))


def test_fabrics_that_carry_the_same_schedule_share_only_its_data(monkeypatch):
    """The same steps on two machines: data are replayed once, circuits are checked on each."""
    judge, replayed = Judge(), []
    monkeypatch.setattr(judge_module, "check_data", lambda one: replayed.append(one) or check_data(one))
    plans = [
        opticcl.compile(fabric(name, nodes=8), "all_reduce", 8, algorithm="ring") for name in ("ideal", "fat_tree")
    ]
    for plan in plans:
        assert judge(plan.circuits) == verify(plan.circuits)
    assert len(replayed) == 1
    other = opticcl.compile(fabric("ideal", nodes=8), "all_reduce", 8, algorithm="tree")
    judge(other.circuits)
    assert len(replayed) == 2
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


def row(**columns):
    """A step of two transfers, made anew."""
    made = Transfers.of([0, 1], [1, 2], [0, 1], [1, 2], [Op.COPY, Op.REDUCE])
    return replace(made, **{name: np.array(values, np.int32) for name, values in columns.items()})


def wide(name):
    """A column of the step with 8 bytes a value, which are those of twice as many values of 4 bytes."""
    return replace(row(), **{name: getattr(row(), name).astype(np.int64)})


def schedule_of(*runs, symmetries=(), **collective):
    """A schedule of runs; of one step, if none is given."""
    steps = RunSteps(runs or (Run(row),), 4)
    same = {"name": "sum", "num_ranks": 4, "num_chunks": 4, "reduces": True}
    ends = {"before": Holders("all"), "after": Holders("all")}
    return Schedule("hand", Collective(**{**same, **ends, **collective}), steps.num_steps, steps, symmetries=symmetries)


def different():
    """Schedules of which any two differ, in one thing each from the first or from the one before."""
    table = np.eye(4, dtype=bool)
    yield schedule_of()
    for name, value in {"name": "other", "root": 1, "shift": 2, "reduces": False, "keeps_apart": True}.items():
        yield schedule_of(**{name: value})
    yield from (schedule_of(num_ranks=5), schedule_of(num_chunks=5))
    for end in ("before", "after"):
        for holders in (Holders("root"), Holders("root", 1), Holders("owner", 0, np.arange(4)), HolderTable(table)):
            yield schedule_of(**{end: holders})
        yield schedule_of(**{end: HolderTable(table[::-1])})
    for ranks, chunks in ((1, 1), (2, 1), (1, 2)):
        yield schedule_of(symmetries=(Symmetry(Xor(ranks), Xor(chunks)),))
    yield from (schedule_of(Run(row, 2)), schedule_of(Run(row), Run(row)), schedule_of(Run(row, beside=(Run(row),))))
    yield from (schedule_of(Run(row, 2, Digits((4,), 0, add))) for add in (1, 2))
    yield schedule_of(Run(row, 2, None, 1))
    for name in ("src", "dst", "chunk_lo", "chunk_n", "op"):
        yield schedule_of(
            Run(lambda name=name: replace(row(), **{name: getattr(row(), name) + np.eye(2, dtype="u1")[1]}))
        )
    for columns in ({"parts": [2, 2]}, {"chunk_step": [2, 2]}, {"parts": [2, 2], "chunk_step": [2, 2]}):
        yield schedule_of(Run(lambda columns=columns: row(**columns)))
    yield schedule_of(Run(lambda: row(parts=[2, 2])), Run(row))
    yield from (schedule_of(Run(lambda name=name: wide(name))) for name in ("src", "chunk_n"))


def test_schedules_that_differ_in_one_thing_have_different_fingerprints():
    """And made again, each has the same one."""
    marks = [fingerprint(one) for one in different()]
    assert len(set(marks)) == len(marks)
    assert marks == [fingerprint(one) for one in different()]


def test_transfers_in_columns_of_other_types_are_other_transfers():
    """The bytes of one transfer in wide columns are those of two in narrow ones."""
    one = Transfers(*(np.array([x], np.int64) for x in (1, 0, 0, 1)), np.array([1], np.uint16))
    two = Transfers(*(np.array([x, 0], np.int32) for x in (1, 0, 0, 1)), np.array([1, 0], np.uint8))
    assert fingerprint(schedule_of(Run(lambda: one))) != fingerprint(schedule_of(Run(lambda: two)))


def test_a_predicate_that_cannot_be_compared_is_equal_to_itself_alone():
    """Functions are known by their addresses, which the judge keeps from being used again."""
    one, other = (lambda rank, chunk: rank == 0), (lambda rank, chunk: rank == 1)
    marks = [fingerprint(schedule_of(after=function)) for function in (one, other, one)]
    assert marks[0] == marks[2] != marks[1]


def test_reports_are_cached_where_comparing_is_quicker(monkeypatch):
    """A schedule seen twice is replayed once; one of more rows than the limit every time, and none is kept of it."""
    plan = opticcl.compile("ideal:nodes=8", "all_reduce", 8, algorithm="ring").circuits
    rows, replayed = 8 * len(runs_of(plan.schedule)), []
    monkeypatch.setattr(judge_module, "check_data", lambda one: replayed.append(one) or check_data(one))
    again = replace(plan, schedule=replace(plan.schedule))
    for limit, times in ((rows, 1), (rows - 1, 3)):
        monkeypatch.setattr(judge_module, "COMPARED_ROWS", limit)
        judge = Judge()
        replayed.clear()
        assert judge(plan).ok
        assert judge(plan).ok
        assert not judge._collectives  # its rows were not read for a comparison with itself
        assert judge(again).ok
        assert len(replayed) == times
        assert judge._collectives == [plan.schedule.collective] * (times == 1)


def test_steps_that_are_not_listed_are_not_compared(monkeypatch):
    """Their reports are not kept, since their rows would be listed for that."""
    monkeypatch.setattr(skewed_exchange, "MOST_LISTED", 0)
    judge = Judge()
    for _ in range(2):
        plan = opticcl.compile(
            "ramp:groups=3,racks=2,wavelengths=6", "all_to_all", 8, algorithm="skewed_exchange:steps=1"
        )
        assert judge(plan.circuits) == verify(plan.circuits)
        assert not judge._followed


def test_a_third_schedule_of_the_same_form_is_compared_with_both_before(monkeypatch):
    """The first and the third are equal, the second is not, and is wrong."""
    judge, replayed = Judge(), []
    monkeypatch.setattr(judge_module, "check_data", lambda one: replayed.append(one) or check_data(one))
    made = opticcl.compile("ideal:nodes=4", "all_reduce", 8, algorithm="ring").schedule
    one, third = (replace(made, step=lambda i: made.step(i), classes=()) for _ in range(2))
    wrong = replace(made, step=lambda i: replace(made.step(i), dst=made.step(i).src[::-1].copy()), classes=())
    answers = [judge._data(schedule) for schedule in (one, wrong, third)]
    assert [bool(answer.violations) for answer in answers] == [False, True, False]
    assert len(replayed) == 2
    assert judge._data(wrong) == answers[1]
    assert len(replayed) == 2
