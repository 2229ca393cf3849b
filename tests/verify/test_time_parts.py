"""Parts of the laws of time, each on numbers by hand: figures, the last event, steps that are named, sums, buffers."""

from dataclasses import replace as changed
from types import SimpleNamespace

import numpy as np
import pytest
from tests.verify.test_time_unrolled import plan, rows
from tests.verify.timing import Bench, plan_of, schedule_times

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Op, Transfers
from opticcl.ir.programme import DeviceTable
from opticcl.verify import _time_data
from opticcl.verify._time_data import _earliest_deadline, _keep, _turns_of_sums, buffer_bytes, follow_data, sums_late
from opticcl.verify._time_devices import Uses
from opticcl.verify.time import TimeRules, _Check, _check_devices, check_programme

MB = 1_000_000
PLAIN = TimeRules(compute="none", control="none")


@pytest.mark.parametrize(("lasts_s", "busy_s"), [(0.5, 32.0), (1.5, 64.5)])
def test_idle_time_of_repeated_steps(lasts_s, busy_s):
    """64 circuits, one begun every second, of which six are unrolled; they may overlap."""
    programme = rows().programme
    programme = changed(programme, circuits=changed(programme.circuits, end_s=np.array([lasts_s])))
    check = _Check(plan(), programme, PLAIN, None)
    assert check._idle_s() == pytest.approx(programme.total_s - busy_s)


def test_all_is_idle_where_nothing_is_sent():
    """A step without transfers."""
    empty = plan_of(Bench(nodes=3), [], num_steps=1)
    check = _Check(empty, changed(schedule_times(empty, MB, PLAIN), total_s=2.5), PLAIN, None)
    assert check._idle_s() == 2.5


@pytest.mark.parametrize(("time_s", "step"), [(5.0, 0), (10.0, 0), (11.0, 1), (11.2, 1), (12.9, 2), (200.0, 63)])
def test_the_last_step_that_has_begun(time_s, step):
    """Of steps of one second from 10 s on; the first before all of them."""
    made = rows(begin_s=10.0)
    assert _Check(plan(), made.programme, PLAIN, None)._step_at(time_s) == step


@pytest.mark.parametrize(
    ("ends", "device_s", "control_s", "total_s", "said"),
    [
        ([(0, 5.0, 1), (1, 3.0, 1)], 0.0, 0.0, 4.0, (0, 1.0)),
        ([(0, 5.0, 1), (1, 5.0, 1)], 0.0, 0.0, 4.0, (0, 1.0)),
        ([(0, 5.0, 1), (1, 6.0, 4)], 0.0, 0.0, 4.0, (4, 32.0)),
        ([(0, 5.0, 1)], 9.0, 0.0, 5.0, (0, 4.0)),
        ([(0, 5.0, 1)], 0.0, 8.0, 5.0, (0, 3.0)),
        ([(0, 0.0, 1)], 0.0, 8.0, 5.0, (0, 3.0)),
        ([(0, 5.0, 1)], 5.0, 5.0, 5.0, None),
    ],
)
def test_the_last_event(ends, device_s, control_s, total_s, said):
    """Of steps that end then, the first that does; repeated every 10 s; of devices; of control."""
    found = []
    steps = [
        SimpleNamespace(step=step, repeats=repeats, period_s=10.0, span_s=lambda end=end: (0.0, end))
        for step, end, repeats in ends
    ]
    programme = SimpleNamespace(
        devices=SimpleNamespace(done_s=np.array([device_s])), control=SimpleNamespace(end_s=np.array([control_s])),
        total_s=total_s,
    )  # fmt: skip
    _Check._total(
        SimpleNamespace(rows=SimpleNamespace(steps=steps), programme=programme, _put=lambda *one: found.append(one))
    )
    assert found == ([] if said is None else [("total_too_small", said[0], -1, "the last event", said[1], 1)])


def test_data_of_a_device_that_is_set_while_others_still_receive():
    """Without early settings, or behind a control exchange, it waits for its own data, not for that of all ranks."""
    late = [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 4, 0), (1, 1, 2, 0, 1, 0)]
    for control in (0.0, 1e-6):
        rules = TimeRules(
            compute="none", prepare="early" if control else "none", control="charged" if control else "none"
        )
        bench = plan_of(Bench(nodes=3, control=control), late)
        programme = schedule_times(bench, MB, rules)
        table = programme.devices
        last = int(np.argmax(table.begin_s))
        own = float(programme.data.arrived_s[0])
        assert own + control < float(programme.data.arrived_s[1]) <= table.begin_s[last]
        for begin, ok in ((own + control, True), (own + control - 1e-6, False)):
            by = np.where(np.arange(len(table)) == last, begin - table.begin_s[last], 0.0)
            moved = changed(table, begin_s=table.begin_s + by, done_s=table.done_s + by)
            assert check_programme(bench, changed(programme, devices=moved), rules).ok == ok


def test_data_of_idle_circuits_is_always_ready():
    """Those that carry something wait for it."""
    one = SimpleNamespace(circuits=SimpleNamespace(transfer=np.array([-1, 1])))
    check = SimpleNamespace(rounds=[(SimpleNamespace(step=3), one)])
    zero = np.zeros(2)
    uses = Uses(np.arange(2), zero, zero, np.arange(2), np.zeros(2, int), np.arange(2), np.array([True, False]))
    timing = SimpleNamespace(ready_s={3: np.array([4.0, 7.0])})
    assert _Check._ready_s(check, uses, timing).tolist() == [-np.inf, 7.0]


def test_changes_on_a_machine_without_devices():
    """There are no kinds."""
    table = DeviceTable.of(kind=0, device=0, step=-1, begin_s=[0.0], done_s=1.0, setting=1)
    with pytest.raises(ParameterError, match="kind=0, device=0; there are 0 kinds"):
        _check_devices(table, (), "devices")


def test_data_behind_repeated_steps():
    """It is complete when the last of them is."""
    ready = follow_data(rows(first=4, begin_s=4.0), exact=False).ready_s
    assert [float(ready[step][0]) for step in (0, 1, 3, 4, 5)] == [0.0, 0.5, 2.5, 3.5, 4.5]


def test_what_is_missed_is_the_most_of_all_chunks():
    """Found some chunks at a time."""
    found = {}
    for missing in ([0.0, 0.0], [1.0, 0.0], [0.5, 2.0]):
        _keep(found, 3, np.array(missing))
    assert {step: one.tolist() for step, one in found.items()} == {3: [1.0, 2.0]}


def stored(step, op, arrived_s, summed_s, repeats=1, dst=None):
    """A step of transfers of a chunk each to rank 1, or others, every 10 s."""
    n = len(arrived_s)
    transfers = Transfers.of(np.zeros(n, int), np.ones(n, int) if dst is None else dst, np.arange(n), 1, op)
    return SimpleNamespace(
        step=step, repeats=repeats, period_s=10.0, transfers=transfers, arrived_s=np.array(arrived_s, float),
        summed_s=np.array(summed_s, float), sent_s=lambda: (np.array(arrived_s, float) - 5, np.array(arrived_s, float)),
    )  # fmt: skip


def of_steps(*steps, unrolled=range(1)):
    """Rows of a programme with these steps."""
    schedule = SimpleNamespace(step=lambda i: max((s for s in steps if s.step <= i), key=lambda s: s.step).transfers)
    return SimpleNamespace(steps=steps, plan=SimpleNamespace(schedule=schedule), turns=lambda step: list(unrolled))


@pytest.mark.parametrize(("begins", "chunks"), [(10, 2), (15, 1)])
def test_buffers_that_are_full_at_once(begins, chunks):
    """One from 0 to 15 s; another of the first repetition of the next step, which begins when the first ends or before."""
    both = of_steps(stored(0, Op.COPY, [5], [5]), stored(1, Op.COPY, [begins + 5], [begins + 5], repeats=3))
    timing = SimpleNamespace(overwritten_s={0: np.array([10.0]), 1: np.array([2.0])})
    assert buffer_bytes(both, timing, 7.0) == 7.0 * chunks


def test_sums_are_computed_as_they_arrive():
    """One that arrives first and is due last is done before the other comes; only what is late is named."""
    some = of_steps(stored(0, Op.REDUCE, [0, 10, 10], [14, 12, 30], dst=[1, 1, 2]))
    for speed, late in ((3.0, []), (1.0, [1])):
        found = list(sums_late(some, 1.0, "fused", speed))
        assert [rows.tolist() for _, rows, _ in found] == ([late] if late else [])


@pytest.mark.parametrize(
    ("op", "compute", "summed_s", "every"),
    [
        (Op.REDUCE, "fused", 20.0, True), (Op.REDUCE, "none", 20.0, False), (Op.COPY, "fused", 20.0, False),
        (Op.MOVE, "fused", 20.0, False), (Op.REDUCE_MOVE, "chain", 20.0, True), (Op.REDUCE, "fused", 15.0, False),
    ],
)  # fmt: skip
def test_repetitions_whose_sums_meet_are_all_followed(monkeypatch, op, compute, summed_s, every):
    """Where sums take longer than the 10 s from one step to the next; copies do not; too many are refused."""
    step = stored(0, op, [5.0], [summed_s], repeats=100)
    some = of_steps(step, unrolled=(0, 1, 98, 99))
    monkeypatch.setattr(_time_data, "MOST_SUMS", 100)
    assert list(_turns_of_sums(some, step, compute)) == list(range(100) if every else (0, 1, 98, 99))
    monkeypatch.setattr(_time_data, "MOST_SUMS", 99)
    if every:
        with pytest.raises(UnsupportedError, match="100 sums of repeated steps meet in time, more than 99"):
            _turns_of_sums(some, step, compute)


def test_a_sum_that_ends_when_another_comes_is_over():
    """The other is due before it was, and does not delay it."""
    kernel = getattr(_earliest_deadline, "py_func", _earliest_deadline)
    columns = ([0, 0], [5.0, 4.0], [0.0, 5.0], [7.0, 6.0])
    assert kernel(*map(np.array, columns)).tolist() == [0.0, 3.0]
