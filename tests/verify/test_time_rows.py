"""Rows of a programme, one refusal at a time; repeated steps beside others; latencies summed by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.verify.timing import Bench, changed, plan_of, plan_on, schedule_times

from opticcl.assumptions import assumptions
from opticcl.collective import collective
from opticcl.errors import ParameterError
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.floor_plan import Passage
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.verify.time.programme import TimeRules, check_programme

PLAIN = TimeRules(compute="none", control="none")
WARM = replace(PLAIN, initial="warm")
MB = 1_000_000

BASE = plan_of(Bench(), [(0, 0, 1, 0, 1, 0), (0, 0, 2, 1, 1, 0), (1, 1, 3, 2, 1, 0), (3, 2, 1, 3, 1, 0)])
"""Two rounds in the first step, one in the second and the last, none in the third."""
TIMES = schedule_times(BASE, MB, PLAIN)


def table(name, **columns):
    """A table of the programme with some entries changed: column = (row, value)."""
    given = getattr(TIMES, name)
    made = {column: getattr(given, column).copy() for column in columns}
    for column, (row, value) in columns.items():
        made[column][row] = value
    return {name: changed(given, **made)}


CONTROL = {"round": 0, "begin_s": 0.0, "end_s": [1e-6]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runs": StepRuns.of(first=[0, 2, 3], repeats=[2, 1, 1], period_s=1.0)}, "circuits row 2: step 1 is the first"),
        ({"runs": StepRuns.of(first=range(5), repeats=[1, 1, 1, 1, 2], period_s=1.0)}, "runs end at step 6, and the plan"),
        ({"runs": StepRuns.of(first=[0, 1, 2], repeats=[1, 1, 1], period_s=0.0)}, "runs end at step 3, and the plan has 4"),
        ({"runs": StepRuns.of(first=[0], repeats=[0], period_s=0.0)}, "runs row 0: first=0, repeats=0; expected 0"),
        (table("circuits", step=(1, 9)), "circuits row 1: step 9 is the first of no run"),
        (table("data", step=(2, 9)), "data row 2: step 9 is the first of no run"),
        ({"control": ControlTimes.of(step=9, **CONTROL)}, "control row 0: step 9 is the first of no run"),
        ({"control": ControlTimes.of(step=0, **CONTROL | {"begin_s": -1.0})}, "control row 0: begin_s=-1.0 is not a time"),
        ({"control": ControlTimes.of(step=0, **CONTROL | {"end_s": [np.inf]})}, "control row 0: end_s=inf is not a time"),
        (table("circuits", start_s=(0, np.inf)), "circuits row 0: start_s=inf is not a time"),
        (table("circuits", end_s=(0, -1.0)), "circuits row 0: end_s=-1.0 is not a time"),
        (table("circuits", end_s=(0, np.nan)), "circuits row 0: end_s is missing; only idle circuits have none"),
        (table("circuits", round=(1, -1)), "circuits row 1: step 0 has no circuit 0 in round -1"),
        (table("circuits", round=(1, 2)), "circuits row 1: step 0 has no circuit 0 in round 2"),
        (table("circuits", row=(1, 1)), "circuits row 1: step 0 has no circuit 1 in round 1"),
        (table("circuits", row=(1, -1)), "circuits row 1: step 0 has no circuit -1 in round 1"),
        ({"circuits": TIMES.circuits.take([0, 2, 3])}, "circuit 0 of step 0 round 1 is missing"),
        ({"circuits": TIMES.circuits.take([0, 1, 2, 3, 1])}, "circuit 0 of step 0 round 1 has several rows"),
        (table("data", transfer=(1, -1)), "data row 1: step 0 has no transfer -1"),
        (table("data", transfer=(1, 2)), "data row 1: step 0 has no transfer 2"),
        (table("data", arrived_s=(1, -1.0)), "data row 1: arrived_s=-1.0 is not a time"),
        ({"data": TIMES.data.take([0, 2, 3])}, "data: transfer 1 of step 0 is missing"),
        ({"data": TIMES.data.take([0, 1, 1, 2, 3])}, "data: transfer 1 of step 0 has several rows"),
        (table("data", summed_s=(1, np.inf)), "data row 1: summed_s=inf is not a time"),
        (table("devices", device=(1, 9)), "devices row 1: kind=0, device=9; there are transmitter 0..3"),
        (table("devices", kind=(0, 1)), "devices row 0: kind=1, device="),
        (table("devices", step=(0, 9)), "devices row 0: step 9 is the first of no run"),
        (table("devices", begin_s=(0, -1.0)), "devices row 0: begin_s=-1.0 is not a time"),
        (table("devices", done_s=(0, np.inf)), "devices row 0: done_s=inf is not a time"),
        ({"total_s": np.inf}, "total_s=inf"),
        ({"total_s": -1.0}, "total_s=-1.0"),
        ({"total_s": float("nan")}, "total_s=nan"),
        ({"runs": TIMES.runs.take(slice(1, None))}, "runs row 0: first=1"),
    ],
)  # fmt: skip
def test_rows_that_are_none_of_the_plan(change, words):
    """The table, the row and what is wrong are named."""
    assert check_programme(BASE, TIMES, PLAIN).ok
    with pytest.raises(ParameterError) as refused:
        check_programme(BASE, replace(TIMES, **change), PLAIN)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_changes_where_nothing_changes():
    """A machine without devices has none of any kind."""

    class Fixed(Bench):
        devices = ()

    plan = plan_of(Fixed(setting_time=0.0), [(0, 0, 1, 0, 1, 0)])
    programme = replace(schedule_times(BASE, MB, PLAIN), devices=TIMES.devices.take([0]))
    with pytest.raises(ParameterError, match="devices row 0: kind=0, device=0; there are 0 kinds"):
        check_programme(plan, programme, PLAIN)


# --- repeated steps beside others ----------------------------------------------------------------------------------------


def two_runs(second_s, period_s=4e-6):
    """64 steps from 0 to 1 every 2 us, and three from 2 to 3 from `second_s` on; each takes 2 us."""
    chunks = 67

    def step(i):
        return Transfers.of([0], [1], [i], 1, Op.COPY) if i < 64 else Transfers.of([2], [3], [i], 1, Op.COPY)

    schedule = Schedule("two", collective("barrier", 4, chunks), chunks, step, classes=(range(64), range(64, 67)))
    plan = plan_on(Bench(setting_time=0.0), schedule)
    start, end = np.array([0.0, second_s]), np.array([2e-6, second_s + 2e-6])
    programme = Programme(
        "test", 1000.0 * chunks, 1.0, StepRuns.of(first=[0, 64], repeats=[64, 3], period_s=[2e-6, period_s]),
        CircuitTimes.of(step=[0, 64], round=0, row=0, start_s=start, end_s=end, slot=-1, slots=-1),
        DataTimes.of(step=[0, 64], transfer=0, arrived_s=end, summed_s=end), DeviceTable.empty(), ControlTimes.empty(),
    )  # fmt: skip
    return plan, programme


@pytest.mark.parametrize(
    ("second_s", "period_s", "meets"),
    [
        (128e-6, 4e-6, False), (60e-6, 4e-6, True), (0.0, 60e-6, True), (0.0, 4e-6, True), (0.0, 1.9e-6, False),
        (122e-6, 4e-6, False), (121.9e-6, 4e-6, True), (121.9e-6, 1e-3, True),
    ],
)  # fmt: skip
def test_steps_may_not_happen_during_copies_that_are_not_unrolled(second_s, period_s, meets):
    """Three copies are unrolled at each end: nothing else may happen from 6 us to 122 us."""
    plan, programme = two_runs(second_s, period_s)
    rules = replace(PLAIN, initial="warm")
    if meets:
        with pytest.raises(ParameterError, match=r"step 64 happens during the repeated steps 0\.\.63; store the steps"):
            check_programme(plan, programme, rules)
    else:
        check_programme(plan, programme, rules)


TICK = 2.0**-20
"""Times that are multiples of it are exact [s]."""


def runs_of(*runs, lanes=0):
    """Runs (steps, first start, period, sender) of steps that take two ticks; node 0 sends to 1, node 2 to 3."""
    steps = [sum(run[0] for run in runs[:i]) for i in range(len(runs) + 1)]
    sender = np.repeat([run[3] for run in runs], [run[0] for run in runs])
    classes = tuple(range(*ends) for ends in pairwise(steps))
    wanted = collective("barrier", 4, steps[-1])
    schedule = Schedule(
        "runs",
        wanted,
        steps[-1],
        lambda i: Transfers.of(sender[[i]], sender[[i]] + 1, [i], 1, Op.COPY),
        classes=classes,
    )
    plan = plan_on(Bench(setting_time=0.0, latency=TICK, lanes=lanes), schedule)
    start = np.array([run[1] for run in runs]) * TICK
    table = {
        "step": steps[:-1],
        "row": 0,
        "round": 0,
        "start_s": start,
        "end_s": start + 2 * TICK,
        "slot": -1,
        "slots": -1,
    }
    data = DataTimes.of(step=steps[:-1], transfer=0, arrived_s=start + 2 * TICK, summed_s=start + 2 * TICK)
    programme = Programme(
        "test", 1e-3, (runs[-1][1] + (runs[-1][0] - 1) * runs[-1][2] + 2) * TICK,
        StepRuns.of(first=steps[:-1], repeats=[run[0] for run in runs], period_s=[run[2] * TICK for run in runs]),
        CircuitTimes.of(**table), data, DeviceTable.empty(), ControlTimes.empty(),
    )  # fmt: skip
    return plan, programme


LONG, SHORT = (64, 10, 2, 0), (3, 140, 1, 2)
"""Three copies of the long run are unrolled at each end: those from 16 to 132 are not."""


@pytest.mark.parametrize(
    ("runs", "change", "uses"),
    [
        ((LONG, SHORT), None, 6 + 3), (((8, 10, 2, 0), SHORT), None, 6 + 3), (((6, 10, 2, 0), SHORT), None, 6 + 3),
        # a change of the sender of the long run, or of others
        ((LONG, SHORT), (0, -1, 50, 50), 64 + 3), ((LONG, SHORT), (1, -1, 50, 50), 6 + 3),
        ((LONG, SHORT), (2, -1, 50, 50), 6 + 3), ((LONG, SHORT), (0, -1, 15, 15), 6 + 3),
        ((LONG, SHORT), (0, -1, 17, 17), 64 + 3), ((LONG, SHORT), (0, -1, 131, 131), 64 + 3),
        ((LONG, SHORT), (0, -1, 133, 133), 6 + 3), ((LONG, SHORT), (0, -1, 10, 15), 6 + 3),
        ((LONG, SHORT), (0, -1, 10, 17), 64 + 3),
        # one that the short run repeats twice, a tick apart
        ((LONG, SHORT), (0, 64, 13, 13), 6 + 3), ((LONG, SHORT), (0, 64, 14.5, 14.5), 64 + 3),
        (((3, 0, 1, 2), LONG), (0, 0, 13, 13), 6 + 3), (((3, 0, 1, 2), LONG), (0, 0, 14.5, 14.5), 64 + 3),
        # its own changes are part of each copy, which then lasts longer
        ((LONG, SHORT), (0, 0, 12, 12), 6 + 3), ((LONG, SHORT), (1, 0, 11, 19), 14 + 3), ((LONG, SHORT), (1, 0, 3, 4), 14 + 3),
    ],
)  # fmt: skip
def test_copies_that_are_unrolled(runs, change, uses):
    """The first and the last ones; all where another change of their devices is under way between these."""
    plan, programme = runs_of(*runs)
    if change is not None:
        device, step, begin, done = change
        row = {"kind": 0, "device": device, "step": step, "begin_s": begin * TICK, "done_s": [done * TICK]}
        programme = replace(programme, devices=DeviceTable.of(**row, setting=plan.rounds(0)[0].dst))
    assert check_programme(plan, programme, WARM).uses == uses


@pytest.mark.parametrize(("member", "uses"), [(0, 2 * 67), (1, 2 * 67)])
def test_copies_that_share_a_pool_are_unrolled(member, uses):
    """Where any member changes; each circuit uses a transmitter and a lane."""
    plan, programme = runs_of(LONG, SHORT, lanes=2)
    at = 50 * TICK
    change = DeviceTable.of(kind=1, device=member, step=-1, begin_s=at, done_s=[at], setting=1)
    assert check_programme(plan, replace(programme, devices=change), WARM).uses == uses


def test_a_step_may_end_as_the_copies_that_are_not_unrolled_begin():
    """Not later."""
    for first, meets in ((10, False), (11, True)):
        plan, programme = runs_of(LONG, (1, first + 4, 1, 2))
        if meets:
            with pytest.raises(ParameterError, match="step 64 happens during the repeated steps"):
                check_programme(plan, programme, WARM)
        else:
            check_programme(plan, programme, WARM)


@pytest.mark.parametrize(
    ("begin", "step"),
    [(5, 0), (10, 0), (11.5, 0), (12, 1), (14, 2), (14.5, 2), (139, 63), (140, 64), (141, 65), (141.5, 65)],
)
def test_a_change_that_is_refused_has_the_last_step_that_has_begun(begin, step):
    """Repeated or not; step 0 before the first."""
    plan, programme = runs_of(LONG, SHORT)
    rows = {"begin_s": np.array([begin - 1, begin]) * TICK, "done_s": np.array([begin + 2, begin + 1]) * TICK}
    changes = DeviceTable.of(kind=0, device=1, step=-1, **rows, setting=[2, 3])
    found = check_programme(plan, replace(programme, devices=changes), WARM).violations
    assert [(one.step, one.missing_s) for one in found if "change of transmitter 1" in one.where] == [(step, 2 * TICK)]


def test_time_without_data():
    """Before the first step; copies that are not unrolled are no pause, though each lasts longer than a period."""
    plan, programme = runs_of((64, 10, 1, 0))
    assert check_programme(plan, programme, WARM).idle_s == 10 * TICK


def test_rows_of_runs_that_are_cut(monkeypatch):
    """As many copies as there may be; each at its own time, beside changes that are of no step."""
    plan, programme = runs_of(LONG, SHORT)
    listed = replace(plan, schedule=replace(plan.schedule, classes=()))
    row = {"kind": 0, "device": 1, "step": -1, "begin_s": 50 * TICK, "done_s": [50 * TICK], "setting": 0}
    programme = replace(programme, devices=DeviceTable.of(**row))
    monkeypatch.setattr("opticcl.verify.time._rows.MOST_COPIED", 65)
    verdict = check_programme(listed, programme, WARM)
    assert (verdict.changes, verdict.circuits) == (1, 67)
    assert "total_too_small" not in {one.law for one in verdict.violations}
    monkeypatch.setattr("opticcl.verify.time._rows.MOST_COPIED", 64)
    with pytest.raises(
        ParameterError, match="65 rows of repeated steps that the plan lists one by one are more than 64"
    ):
        check_programme(listed, programme, WARM)


def test_a_period_is_positive_and_ends_with_its_class():
    """Runs may begin and end where classes do."""
    plan, programme = two_runs(128e-6)
    with pytest.raises(ParameterError, match=r"runs row 0: period_s=0.0 of repeated steps is not positive"):
        check_programme(plan, replace(programme, runs=changed(programme.runs, period_s=np.zeros(2))), PLAIN)
    longer = StepRuns.of(first=[0, 65], repeats=[65, 2], period_s=2e-6)
    with pytest.raises(ParameterError, match="circuits row 1: step 64 is the first of no run"):
        check_programme(plan, replace(programme, runs=longer), PLAIN)


def first_run(programme, repeats):
    """The times of the first run alone, with another number of steps."""
    runs = StepRuns.of(first=0, repeats=[repeats], period_s=2e-6)
    return replace(programme, runs=runs, circuits=programme.circuits.take([0]), data=programme.data.take([0]))


def test_a_run_that_the_plan_lists_is_cut():
    """At the ends of the plan's classes, with rows of its own for each part: the times are those of the run."""
    plan, programme = two_runs(128e-6)
    for classes in ((), (range(5), range(5, 64), range(64, 66), range(66, 67))):
        listed = replace(plan, schedule=replace(plan.schedule, classes=classes))
        verdicts = [check_programme(form, programme, WARM) for form in (listed, plan)]
        assert verdicts[0] == replace(verdicts[1], uses=verdicts[0].uses)
        assert verdicts[0].ok
        late = replace(programme, runs=changed(programme.runs, period_s=np.array([0.9e-6, 4e-6])))
        refused = {one.law for one in check_programme(listed, late, WARM).violations}
        assert refused == {one.law for one in check_programme(plan, late, WARM).violations} == {"overlap"}


def test_a_run_of_steps_of_other_sizes_is_refused():
    """The step that has other circuits than the first is named; and so is one of as many that are others, by the laws."""
    plan, programme = two_runs(128e-6)
    assert "never_sent" not in {one.law for one in check_programme(plan, first_run(programme, 67), WARM).violations}

    def step(i):
        return Transfers.of([0, 2], [1, 3], [i, i], 1, Op.COPY) if i == 9 else plan.schedule.step(i)

    other = plan_on(plan.fabric, replace(plan.schedule, step=step, classes=()))
    with pytest.raises(ParameterError, match="runs row 0: step 9 has other circuits than step 8; store them apart"):
        check_programme(other, first_run(programme, 67), WARM)


# --- latencies -----------------------------------------------------------------------------------------------------------


class Hall(Bench):
    """Three hops; what every signal passes, and what each hop adds."""

    def passage(self, floor):
        """Of every circuit; one switch less than hops say."""
        return Passage(fibre_m=10.0, waveguide_m=0.5, receivers=1.0, switches=-1.0, server_switches=2.0)

    def hop_passages(self, floor):
        """Some by hop."""
        return Passage(fibre_m=np.array([1.0, 20.0, 400.0]), receivers=np.array([0.0, 1.0, 0.0]), switches=1.0)

    def hop_latency_s(self, hops):
        """As printed."""
        return np.array([1e-6, 2e-6, 4e-6])[hops]


class Yard(Hall):
    """Hops add nothing."""

    hop_passages = Bench.hop_passages


PARTS = assumptions(
    "common", endpoint=5e-6, transceiver=1e-7, fibre=5e-9, waveguide=1e-8, hop=3e-7, server_hop=2e-8, latency="parts"
)
EVERY = 5e-6 + 1e-7 + 10 * 5e-9 + 0.5 * 1e-8 - 3e-7 + 2 * 2e-8
HOPS = np.array([1 * 5e-9 + 3e-7, 20 * 5e-9 + 1e-7 + 3e-7, 400 * 5e-9 + 3e-7])
SLOT = 20e-9
IN_SLOTS = {"slot": SLOT, "payload": 950.0}


@pytest.mark.parametrize(
    ("hall", "latency", "fixed", "each"),
    [
        (Hall(latency=3e-6, setting_time=0.0), None, 3e-6, np.array([1e-6, 2e-6, 4e-6])),
        (Hall(latency=3e-6, setting_time=0.0), PARTS, EVERY, HOPS),
        (Yard(latency=3e-6, setting_time=0.0), PARTS, EVERY, 0 * HOPS),
        (Hall(latency=3e-6, setting_time=0.0, **IN_SLOTS), PARTS, 245 * SLOT, HOPS),  # 244.75 slots
        (Yard(latency=3e-6, setting_time=0.0, **IN_SLOTS), replace(PARTS, endpoint=5e-6 + 5e-9 + 1e-17), 245 * SLOT, 0 * HOPS),
        (Yard(latency=3e-6, setting_time=0.0, **IN_SLOTS), replace(PARTS, endpoint=5e-6 + 6e-9), 246 * SLOT, 0 * HOPS),
    ],
)  # fmt: skip
def test_latencies_of_paths(hall, latency, fixed, each):
    """What is missing to circuits that stand for their bytes alone: as printed, or the sum of the parts, in whole slots."""
    paths = [[0, 1], [2], [], [1, 2, 1]]
    plan = plan_of(replace(hall, latency=0.0), [(i, 0, 1, i, 1, 0) for i in range(len(paths))])
    p = schedule_times(plan, 8000, replace(PLAIN, initial="warm"))
    start = p.circuits.start_s + (0.0 if hall.slot else 1.0)  # so that nothing depends on rounding
    end = start + [hall.slot * 2 if hall.slot else 1e-6] * len(paths)
    p = replace(
        p,
        circuits=changed(p.circuits, start_s=start, end_s=end),
        data=changed(p.data, arrived_s=end, summed_s=end),
        total_s=9.0,
    )

    def rounds(i):
        return (
            replace(plan.rounds(i)[0], hops=np.array(paths[i], np.int32), hop_offsets=np.array([0, len(paths[i])])),
        )

    where = replace(plan, fabric=hall, rounds=rounds)
    found = check_programme(where, p, replace(PLAIN, initial="warm", latency=latency)).violations
    due = [fixed + each[path].sum() if path else fixed for path in paths]
    assert [one.missing_s for one in found if one.law == "too_short"] == pytest.approx(due, rel=1e-9)


# --- data ----------------------------------------------------------------------------------------------------------------


def test_buffers_of_several_ranks_are_not_added():
    """The largest of a rank; one that ends when another begins is not held with it."""
    rows = [(0, 0, 1, 0, 4, 0), (0, 2, 0, 0, 2, 0), (0, 1, 3, 4, 4, 0), (0, 3, 1, 4, 1, 0)]
    plan = plan_of(Bench(setting_time=0.0), rows)
    p = schedule_times(plan, MB, replace(PLAIN, receive_buffers="separate"))
    separate = replace(PLAIN, receive_buffers="separate")
    assert check_programme(plan, p, separate).receive_buffer_bytes == 4 * MB / 8


def test_data_that_is_summed_before_it_arrives():
    """Is summed too fast, whatever sums take; in a repeated step it is said once."""
    data = changed(TIMES.data, summed_s=TIMES.data.summed_s - np.array([0, 1e-6, 0, 0]))
    (found,) = check_programme(BASE, replace(TIMES, data=data), PLAIN).violations
    assert (found.law, found.step, found.count) == ("summed_too_fast", 0, 1)
    assert found.missing_s == pytest.approx(1e-6)
    plan, programme = two_runs(128e-6)
    early = changed(programme.data, summed_s=programme.data.summed_s - np.array([1e-6, 0]))
    (found,) = check_programme(plan, replace(programme, data=early), replace(PLAIN, initial="warm")).violations
    assert (found.law, found.step, found.count) == ("summed_too_fast", 0, 1)


# --- settings ------------------------------------------------------------------------------------------------------------


def test_settings_that_stand_are_changed_later():
    """In any order of their rows: each device has its own, before its changes."""
    plan = plan_of(Bench(), [(0, 0, 1, 0, 1, 0), (0, 2, 3, 1, 1, 0), (1, 0, 2, 2, 1, 0)])
    p = schedule_times(plan, MB, PLAIN)
    bare = replace(p, devices=p.devices.take(p.devices.setting == 2))
    assert len(bare.devices) == 1
    right = {0: 1, 1: 0, 2: 3, 3: 0}
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        stands = DeviceTable.of(kind=0, device=order, step=-1, begin_s=0, done_s=0, setting=[right[i] for i in order])
        assert check_programme(plan, bare, PLAIN, standing=stands).ok
        wrong = changed(stands, setting=np.where(stands.device == 2, 1, stands.setting))
        laws = {one.law for one in check_programme(plan, bare, PLAIN, standing=wrong).violations}
        assert laws == {"set_in_flight"}


def test_a_member_of_a_pool_is_named():
    """Of the second kind of device, with its group and its number in it."""
    plan = plan_of(Bench(nodes=4, lanes=2), [(0, 0, 1, 0, 4, 0), (0, 2, 3, 4, 4, 0), (1, 1, 2, 0, 4, 0)])
    p = schedule_times(plan, MB, PLAIN)
    row = int(np.flatnonzero((p.devices.kind == 1) & (p.devices.device == 1))[0])
    begin = p.devices.begin_s.copy()
    begin[row] += 1e-6
    (found,) = check_programme(plan, replace(p, devices=changed(p.devices, begin_s=begin)), PLAIN).violations
    assert found.where.startswith("change of lane 0 member 1 at ")
