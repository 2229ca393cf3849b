"""Which copies of repeated steps are unrolled, by the changes of devices that reach into the time of the others."""

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import Bench, plan_on

from opticcl.collective import collective
from opticcl.errors import ParameterError
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.verify._time_rows import TimeRows

REPEATS = 64
BENCH = Bench(nodes=3, latency=0.0, setting_time=0.0)


def plan(first=0, bench=BENCH):
    """Steps of one transfer from rank 0 to rank 1: a class of `first` of them, and one of 64."""
    step = Transfers.of([0], [1], [0], 1, Op.REDUCE)
    num = first + REPEATS
    classes = (range(first), range(first, num)) if first else (range(num),)
    return plan_on(bench, Schedule("hand", collective("barrier", 3, 8), num, lambda i: step, classes=classes))


def rows(devices=(), first=0, begin_s=0.0, bench=BENCH):
    """Steps of 1 s each, the 64 from `begin_s` on, with changes (device, step, begin, done) of transmitters.

    Args:
        devices: changes.
        first: steps of a run before, from 0 s on.
        begin_s: of the run of 64 steps.
        bench: machine.
    """
    starts = np.array([0.0, begin_s] if first else [begin_s])
    step = np.array([0, first] if first else [0])
    repeats = np.array([first, REPEATS] if first else [REPEATS])
    zero, end = np.zeros(len(step), int), starts + 0.5
    device, of_step, begin, done = np.array(devices, float).reshape(-1, 4).T
    table = DeviceTable.of(kind=0, device=device, step=of_step, begin_s=begin, done_s=done, setting=1)
    runs = StepRuns.of(first=step, repeats=repeats, period_s=np.ones(len(step)))
    circuits = CircuitTimes.of(
        step=step, round=zero, row=zero, start_s=starts, end_s=end, slot=zero - 1, slots=zero - 1
    )
    data = DataTimes.of(step=step, transfer=zero, arrived_s=end, summed_s=end)
    programme = Programme("test", 8, 1000.0, runs, circuits, data, table, ControlTimes.empty())
    return TimeRows(plan(first, bench), programme)


def unrolled(made, run=-1):
    """Copies of a run that are unrolled [count]."""
    return len(made.turns(made.steps[run]))


def test_as_many_copies_as_can_meet_and_two_more():
    """At each end: a step of 0.5 s meets one; with a change of its own from 3 s before to 4 s after its begin, seven."""
    assert unrolled(rows()) == 2 * 3
    assert rows().hole(rows().steps[0]) == (3.0, 61.0, 58)
    for begin_s in (0.0, 10.0):
        own = (2, 0, begin_s + 1.0, begin_s + 7.0)
        assert unrolled(rows([own], begin_s=begin_s)) == 2 * (2 + 7)
    assert unrolled(rows([(2, 0, 7.0, 7.25)], begin_s=10.0)) == 2 * (2 + 4)
    assert unrolled(rows([(2, 0, 0.0, 24.0)])) == 2 * 26  # more than a third of all
    assert unrolled(rows([(2, 0, 0.0, 30.0)])) == REPEATS
    copies = rows().turns(rows().steps[0])
    assert copies == [0, 1, 2, 61, 62, 63]


@pytest.mark.parametrize(
    ("change", "all_of_them"),
    [
        ((0, -1, 30.0, 30.5), True),  # in the time of the copies that are not unrolled, of the transmitter that is used
        ((2, -1, 30.0, 30.5), False),  # of another one
        ((0, -1, 60.5, 60.75), True),
        ((0, -1, 61.5, 62.0), False),  # during the last copies
        ((0, -1, 100.0, 101.0), False),
        ((0, -1, 1.0, 3.5), True),
        ((0, -1, 1.0, 2.5), False),  # during the first ones
        ((0, 0, 0.0, 0.25), False),  # repeated with the step
    ],
)
def test_changes_of_others_during_copies_unroll_them(change, all_of_them):
    """Those that begin before the last copies that are unrolled, and are not done before the first ones end."""
    assert unrolled(rows([change])) == (REPEATS if all_of_them else 6)


def test_steps_that_are_further_apart():
    """Of 2 s each: the copies that are not unrolled take 6 s to 122 s."""
    made = rows([(0, -1, 60.0, 60.5)])
    runs = replace(made.programme.runs, period_s=np.array([2.0]))
    assert unrolled(TimeRows(made.plan, replace(made.programme, runs=runs))) == REPEATS


@pytest.mark.parametrize(
    ("done_s", "all_of_them"),
    [(93.5, True), (92.5, False)],  # the tenth is done 9 s later, and the hole begins at 103 s minus one step less
)
def test_repeated_changes_of_another_run_reach_as_far_as_its_last_step(done_s, all_of_them):
    """A run of ten steps before: the last of its changes is done nine steps after the first."""
    made = rows([(0, 0, 20.0, done_s)], first=10, begin_s=99.0)
    assert unrolled(made) == (REPEATS if all_of_them else 6)


def test_changes_of_a_device_with_several_members():
    """A change of either lane is one of the lanes that the steps use."""
    bench = replace(BENCH, lanes=2)
    for member in (0, 1):
        made = rows(bench=bench)
        lane = DeviceTable.of(kind=1, device=member, step=-1, begin_s=30.0, done_s=30.5, setting=1)
        assert unrolled(TimeRows(made.plan, replace(made.programme, devices=lane))) == REPEATS


def test_the_unrolled_table_of_devices():
    """Each change of a run once for each unrolled copy, later by its turn; all of them are counted."""
    table, total = rows([(2, -1, 5.0, 6.0), (2, 0, 0.0, 0.25), (1, 0, 0.0, 0.5)]).changes()
    assert total == 1 + 2 * REPEATS
    turns = np.repeat([0, 1, 2, 61, 62, 63], 2)
    assert table.begin_s.tolist() == [5.0, *turns]
    assert table.done_s.tolist() == [6.0, *(turns + np.tile([0.25, 0.5], 6))]


def test_a_step_may_end_when_the_hole_begins():
    """Six steps until 5.5 s, where the copies of the others that are not unrolled begin; a little earlier they meet."""
    made = rows(first=6, begin_s=2.5)
    hole = made.hole(made.steps[1])
    assert hole is not None
    assert hole[0] == 5.5
    with pytest.raises(ParameterError, match="step 0 happens during the repeated steps"):
        rows(first=6, begin_s=2.25)


def test_a_round_that_does_not_exist_is_refused():
    """Of a step with one round, and of one without any."""
    made = rows()
    for number, row in ((5, 0), (-1, 0), (0, 1)):
        times = replace(made.programme.circuits, round=np.array([number]), row=np.array([row]))
        with pytest.raises(ParameterError, match=f"step 0 has no circuit {row} in round {number}"):
            TimeRows(made.plan, replace(made.programme, circuits=times))
