"""Law 6, capacity at any instant: against a count at every instant, on drawn circuits; and what a violation says."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.verify.timing import Bench, changed, plan_of, schedule_times

from opticcl.collective import collective
from opticcl.ir import CircuitPlan, Circuits, Op, Resource, Schedule, Transfers, Usage
from opticcl.ir.occupied import Condition, PartUse
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.verify.time.programme import TimeRules, check_programme

END, MB = 24.0, 1_000_000
SHOWN = 8
"""Violations of a law that a verdict lists [count]."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Shelf(Bench):
    """Four nodes whose circuits take several kinds of resource; what is set once is never exceeded.

    Args:
        splitting: whether transmitters hand one signal to several receivers.
        shares: whether circuits take shares of the waveguide.
    """

    nodes: int = 4
    setting_time: float = 0.0
    latency: float = 0.5
    splitting: bool = False
    shares: bool = True

    @property
    def num_wavelengths(self):
        """Of a fibre."""
        return 6

    @cached_property
    def resources(self):
        """By wavelength; several at a time; shares of a capacity; and two that are never counted."""
        return (
            Resource("laser", 4, per_wavelength=False, splits=self.splitting),
            Resource("fibre", 2),
            Resource("switch_port", 4, capacity=2, per_wavelength=False),
            Resource("waveguide", 1, capacity=5, per_wavelength=False),
            Resource("subnet", 1, per_wavelength=False, once_per_job=True),
            Resource("photodiode", 4, per_wavelength=False),
        )

    def usage(self, circuits):
        """Of the last resource nothing."""
        laser, fibre, port, waveguide, crossbar, _ = self.resources
        src, dst = circuits.src.astype(np.int64), circuits.dst.astype(np.int64)
        zero = np.zeros(len(circuits), np.int64)
        yield Usage(laser, src)
        yield Usage(fibre, src % 2)
        both = np.repeat(np.arange(len(circuits)), 2)
        yield Usage(port, np.stack([src, dst], 1).reshape(-1), both)
        if self.shares:
            yield Usage(waveguide, zero, amount=1 + dst % 3)
        yield Usage(crossbar, zero)


def plan_and_times(shelf, rows):
    """A plan of rows (step, round, transfer or -1, src, dst, first wavelength, wavelengths, chunk, op, start, left).

    Idle circuits, of transfer -1, stand to the end.
    """
    rows = sorted(rows)
    steps = range(1 + max(row[0] for row in rows))
    transfers, rounds, table = {}, {}, []
    for step in steps:
        mine = [row for row in rows if row[0] == step]
        carry = [row for row in mine if row[2] >= 0]
        transfers[step] = Transfers.of(*np.array([(r[3], r[4], r[7], 1, r[8]) for r in carry]).reshape(-1, 5).T)
        number = {id(row): i for i, row in enumerate(carry)}
        made = []
        for of in range(1 + max((row[1] for row in mine), default=-1)):
            these = [row for row in mine if row[1] == of]
            _, _, _, src, dst, lo, n, *_ = np.array(these).reshape(-1, 11).T.astype(int)
            transfer = np.array([number.get(id(row), -1) for row in these], int)
            made.append(Circuits.of(transfer, src, dst, wavelength_lo=lo, wavelength_n=n, wavelength_step=2))
            for i, row in enumerate(these):
                end = row[10] + shelf.latency if row[2] >= 0 else np.nan
                table.append((step, of, i, row[9], end, -1, -1))
        rounds[step] = tuple(made)
    data = [(step, t, END, END) for step in steps for t in range(len(transfers[step]))]
    schedule = Schedule("by hand", collective("barrier", 4, 8), len(steps), transfers.__getitem__)
    programme = Programme(
        "test", 8, END, StepRuns.of(first=steps, repeats=1, period_s=0.0),
        CircuitTimes.of(**dict(zip(CircuitTimes.KINDS, zip(*table, strict=True), strict=True))),
        DataTimes.of(**dict(zip(DataTimes.KINDS, zip(*data, strict=True), strict=True))) if data else DataTimes.empty(),
        DeviceTable.empty(), ControlTimes.empty(),
    )  # fmt: skip
    return CircuitPlan(shelf, schedule, rounds.__getitem__), programme


def exceeding(plan, programme):
    """(kind, step, round, instance, circuit, missing time, count) of each violation of law 6."""
    found = []
    for one in check_programme(plan, programme, TimeRules(compute="none", control="none")).violations:
        if one.law == "overlap":
            unit, circuit = one.where.split(", circuit ")
            kind, index = unit.split()
            found.append((kind, one.step, one.round, int(index), circuit, one.missing_s, one.count))
    return found


def used_by(row):
    """Units that a circuit takes: kind, unit, amount, and what is one light there, however it is divided into circuits."""
    src, dst, lo, n = row[3:7]
    path = (src, dst)
    yield "laser", src, 1, (*path, lo, n)
    yield from (("fibre", (src % 2, lo + 2 * i), 1, path) for i in range(n))
    yield from (("switch_port", end, 1, (*path, lo, n)) for end in path)
    yield "waveguide", 0, 1 + dst % 3, path


def stands(row, rows, light, now):
    """Whether an idle circuit is on a unit: until a row of the same light there begins, from when data before it has left."""
    others = [one for one in rows if one is not row and light in [used[:2] + used[3:] for used in used_by(one)]]
    for one in others:
        later, carries = one[9] > row[9], one[2] >= 0
        if one[9] <= now and (later or (carries and one[9] == row[9])):
            return False
        if carries and one[9] <= row[9] and now < one[10]:
            return False
        if not carries and one[9] == row[9] and rows.index(one) > rows.index(row):
            return False
    return True


def exceeded(shelf, rows):
    """Kinds of resource that are exceeded at some instant, by counting at every instant."""
    found = set()
    for now in np.arange(0.5, END):
        counts, signals = Counter(), set()
        for row in (row for row in rows if row[9] <= now < row[10]):
            step, number, transfer, _, _, lo, n, chunk, _, start, left = row
            for kind, unit, amount, same in used_by(row):
                signal = (kind, unit, step, number, transfer >= 0 and chunk, lo, n, start, left)
                if kind == "laser" and shelf.splitting and signal in signals:
                    continue
                signals.add(signal)
                if transfer >= 0 or stands(row, rows, (kind, unit, same), now):
                    counts[kind, unit] += amount
        most = {"laser": 1, "fibre": 1, "switch_port": 2, "waveguide": 5}
        found |= {kind for (kind, _), count in counts.items() if count > most[kind]}
    return found


@st.composite
def circuits_in_time(draw, idle):
    """Rows of a plan; receivers of a round differ."""
    rows = []
    for step in range(draw(st.integers(1, 3))):
        for number in range(draw(st.integers(1, 2))):
            receivers = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
            for dst in receivers:
                src = (dst + draw(st.integers(1, 3))) % 4
                lo, n = draw(st.integers(0, 3)), draw(st.integers(1, 2))
                if idle and rows and draw(st.booleans()):  # one that was there before
                    src, dst, lo, _ = draw(st.sampled_from(rows))[3:7]  # on fewer wavelengths, or more
                start = draw(st.integers(0, 12))
                left = start + draw(st.integers(1, 4))
                transfer = -1 if idle and draw(st.booleans()) else 0
                left = left if transfer == 0 else int(END)
                chunk, op = draw(st.integers(0, 1)), draw(st.sampled_from([Op.COPY, Op.REDUCE]))
                rows.append((step, number, transfer, src, dst, lo, n, chunk, op, float(start), float(left)))
    return rows


@examples(80)
@given(circuits_in_time(idle=True), circuits_in_time(idle=False))
def test_capacity_is_that_of_every_instant(some, signals):
    """Of wavelengths, ports and shares; idle circuits stand beside others that do not say the same; signals count once."""
    for shelf, rows in ((Shelf(), some), (Shelf(splitting=True), signals), (Shelf(shares=False), some)):
        plan, programme = plan_and_times(shelf, rows)
        found = exceeding(plan, programme)
        due = exceeded(shelf, rows) - ({"waveguide"} if not shelf.shares else set())
        kinds = {one[0] for one in found}
        assert kinds == due or (kinds < due and len(found) == SHOWN)
        assert all(missing_s > 0 and count > 0 for *_, missing_s, count in found)


def stays(step, src, dst, start, lo=0, n=1):
    """An idle circuit."""
    return step, 0, -1, src, dst, lo, n, 0, 0, float(start), END


def sends(step, src, dst, start, left, lo=0, n=1):
    """A circuit with data."""
    return step, 0, 0, src, dst, lo, n, 0, 0, float(start), float(left)


@pytest.mark.parametrize(
    ("rows", "due"),
    [
        ([stays(0, 0, 1, 0), sends(1, 0, 1, 5, 8)], set()),
        ([stays(0, 0, 1, 0), sends(1, 0, 2, 5, 8)], {"laser", "fibre"}),
        ([stays(0, 0, 1, 0), sends(1, 2, 1, 5, 8)], {"fibre"}),
        ([stays(0, 0, 1, 0), sends(1, 0, 1, 5, 8, lo=1)], {"laser"}),
        ([stays(0, 0, 1, 0, n=2), sends(1, 0, 1, 5, 8)], {"laser"}),
        ([stays(0, 0, 1, 0), sends(1, 0, 1, 5, 8, n=2)], {"laser"}),
        ([sends(0, 0, 1, 0, 5), stays(1, 0, 1, 2), sends(2, 0, 2, 6, 7)], {"laser", "fibre"}),
        ([sends(0, 0, 1, 0, 5), stays(1, 0, 1, 2), sends(2, 0, 1, 6, 7)], set()),
        ([stays(0, 0, 1, 0), stays(1, 0, 1, 0), sends(2, 0, 1, 5, 8)], set()),
        ([stays(0, 0, 1, 0), stays(1, 0, 1, 3), sends(2, 0, 2, 5, 8)], {"laser", "fibre"}),
        ([stays(0, 0, 1, 5), sends(1, 0, 1, 5, 8)], set()),
        ([stays(0, 0, 1, 0), sends(1, 0, 1, 5, 8), sends(2, 0, 2, 9, 10)], set()),
        ([stays(0, 0, 1, 0), sends(1, 0, 1, 5, 8), sends(2, 0, 2, 3, 4)], {"laser", "fibre"}),
        ([stays(0, 0, 1, 0, n=2), sends(1, 0, 1, 5, 8), sends(2, 2, 3, 9, 10)], {"laser"}),
        ([stays(0, 0, 1, 0, n=2), sends(1, 0, 1, 5, 8), sends(2, 2, 3, 9, 10, lo=2)], {"laser", "fibre"}),
        ([stays(0, 0, 2, 0), stays(1, 1, 2, 0), sends(2, 1, 0, 5, 6)], {"laser", "fibre", "waveguide"}),
        ([stays(0, 0, 2, 0), stays(1, 1, 2, 0), sends(2, 0, 2, 5, 6)], {"waveguide"}),
    ],
)  # fmt: skip
def test_idle_circuits_beside_light(rows, due):
    """An idle circuit is one light with others of its path and wavelengths, from the end of such data to the next of them."""
    plan, programme = plan_and_times(Shelf(), rows)
    assert {one[0] for one in exceeding(plan, programme)} == exceeded(Shelf(), sorted(rows)) == due


def test_what_exceeds_a_capacity_is_named():
    """The circuit that comes last, the resource, the time until a place is free, and how many cells; of each round once."""
    rows = [
        (0, 0, 0, 1, 2, 0, 2, 0, 0, 0.0, 5.0), (0, 0, 0, 3, 0, 4, 1, 0, 0, 0.0, 9.0),
        (1, 0, 0, 0, 1, 0, 1, 0, 0, 1.0, 3.0), (1, 1, 0, 3, 2, 0, 2, 0, 0, 3.0, 4.0),
        (2, 0, 0, 1, 3, 0, 1, 0, 0, 20.0, 21.0), (3, 0, 0, 1, 3, 0, 1, 0, 0, 21.0, 22.0),
    ]  # fmt: skip
    plan, programme = plan_and_times(Shelf(), rows)
    assert [one for one in exceeding(plan, programme) if one[0] in ("laser", "fibre")] == [
        ("laser", 1, 1, 3, "3 -> 2", pytest.approx(1.0), 1), ("fibre", 1, 1, 1, "3 -> 2", pytest.approx(1.0), 2),
    ]  # fmt: skip


def test_repeated_steps_meet_at_their_own_times():
    """The second repetition meets what the first one does not; so does an idle circuit of a later round."""
    rows = [
        (0, 0, 0, 0, 1, 0, 1, 0, 0, 0.0, 5.0), (2, 0, 0, 1, 2, 1, 1, 0, 0, 1.0, 2.0), (3, 0, 0, 0, 2, 1, 1, 0, 0, 12.0, 13.0),
    ]  # fmt: skip
    plan, programme = plan_and_times(Shelf(), rows)
    again = replace(plan, rounds=lambda i: plan.rounds(0 if i == 1 else i))
    steps = [plan.schedule.step(i) for i in (0, 0, 2, 3)].__getitem__
    again = replace(again, schedule=replace(plan.schedule, step=steps, classes=(range(2), range(2, 3), range(3, 4))))
    runs = StepRuns.of(first=[0, 2, 3], repeats=[2, 1, 1], period_s=[10.0, 0.0, 0.0])
    ((kind, step, *_, missing_s, _),) = exceeding(again, replace(programme, runs=runs))
    assert (kind, step, missing_s) == ("laser", 3, pytest.approx(1.0))


def test_rounds_are_compared_in_the_order_of_time():
    """A later step that begins sooner meets the first one; rounds of one step are apart."""
    sooner = [
        (0, 0, 0, 0, 1, 0, 1, 0, 0, 0.0, 8.0), (1, 0, 0, 1, 2, 1, 1, 0, 0, 20.0, 21.0), (2, 0, 0, 0, 2, 0, 1, 0, 0, 4.0, 5.0),
    ]  # fmt: skip
    apart = [
        (0, 0, 0, 0, 1, 0, 1, 0, 0, 0.0, 1.0), (0, 1, 0, 0, 2, 0, 1, 0, 0, 2.0, 3.0), (0, 1, 1, 0, 3, 0, 1, 0, 0, 2.0, 3.0),
    ]  # fmt: skip
    for rows, where in ((sooner, (2, 0)), (apart, (0, 1))):
        plan, programme = plan_and_times(Shelf(), rows)
        assert {one[1:3] for one in exceeding(plan, programme)} == {where}
    at_once = [(0, 0, 0, 0, 1, 0, 1, 0, 0, 0.0, 5.0), (1, 0, 0, 0, 2, 1, 1, 0, 0, 2.0, 2.0)]  # in no time, no light
    plan, programme = plan_and_times(Shelf(), at_once)
    assert exceeding(plan, programme) == []
    nothing = plan_of(Bench(), [], num_steps=0)
    assert exceeding(nothing, schedule_times(nothing, MB, TimeRules())) == []


def test_slots():
    """A circuit starts with its slot, and has a slot for each payload that it begins."""
    slot = 20e-9
    bench = Bench(nodes=3, setting_time=0.0, slot=slot, payload=950.0)
    plan = plan_of(bench, [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 1, 0), (1, 1, 2, 0, 1, 0)])
    rules = TimeRules(compute="none", control="none")
    p = schedule_times(plan, 8 * 2375, rules)  # two slots and a half a chunk
    assert p.circuits.slots.tolist() == [3, 3, 3]

    def found(**columns):
        verdict = check_programme(plan, replace(p, circuits=changed(p.circuits, **columns)), rules)
        return [(one.law, one.step, one.where, pytest.approx(one.missing_s), one.count) for one in verdict.violations]

    assert found() == []
    assert found(slots=np.array([3, 2, 1])) == [
        ("too_short", 0, "circuit 2 -> 0", slot, 1), ("too_short", 1, "circuit 1 -> 2", 2 * slot, 1),
    ]  # fmt: skip
    assert found(slot=p.circuits.slot + np.array([0, 2, 0])) == [("off_slot", 0, "circuit 2 -> 0", 2 * slot, 1)]
    assert found(slot=np.array([0, 0, -1]))[0][:3] == ("off_slot", 1, "circuit 1 -> 2")


@pytest.mark.parametrize(
    ("second", "one"),
    [
        ((0, 2, 0, 1, 0, Op.COPY, 1.0, 3.0), True), ((0, 2, 0, 1, 0, Op.REDUCE, 1.0, 3.0), True),
        ((0, 2, 0, 1, 1, Op.COPY, 1.0, 3.0), False), ((0, 2, 0, 2, 0, Op.COPY, 1.0, 3.0), False),
        ((0, 2, 1, 1, 0, Op.COPY, 1.0, 3.0), False), ((0, 2, 0, 1, 0, Op.COPY, 2.0, 3.0), False),
        ((0, 2, 0, 1, 0, Op.COPY, 1.0, 4.0), False), ((3, 2, 0, 1, 0, Op.COPY, 1.0, 3.0), True),
    ],
)  # fmt: skip
def test_one_signal_has_one_time(second, one):
    """Receivers may store or add it; other data, wavelengths or times are another signal, which the laser cannot send."""
    rows = [
        (0, 0, 0, 0, 1, 0, 1, 0, Op.COPY, 1.0, 3.0),
        (0, 0, 0, *second),
        (0, 0, 0, 2, 3, 0, 1, 0, Op.COPY, 1.0, 3.0),
    ]
    plan, programme = plan_and_times(Shelf(splitting=True), rows)
    found = {kind for kind, *_ in exceeding(plan, programme)}
    assert "fibre" in found  # so that times are compared
    assert ("laser" not in found) == one


def test_two_wavelengths_are_two():
    """Circuits on one fibre, each on its own; their laser is one."""

    class Two(Shelf):
        num_wavelengths = 2

    rows = [(0, 0, 0, 0, 1, 0, 1, 0, 0, 0.0, 1.0), (0, 0, 0, 0, 2, 1, 1, 0, 0, 0.0, 1.0)]
    plan, programme = plan_and_times(Two(), rows)
    assert [kind for kind, *_ in exceeding(plan, programme)] == ["laser"]


class Worn(Bench):
    """Transmitters and receivers some of which pass a share of the rate."""

    conditions = (
        Condition("laser", 0, "weak", 0.5), Condition("laser", 2, "weak", 0.1), Condition("photodiode", 1, "weak", 0.25),
        Condition("photodiode", 2, "weak", 0.5), Condition("photodiode", 2, "weak", 0.8), Condition("photodiode", 3, "dead"),
    )  # fmt: skip

    def parts_used(self, circuits):
        """In the reverse order, of receivers."""
        row = np.arange(len(circuits))[::-1]
        yield PartUse("laser", circuits.src)
        yield PartUse("photodiode", circuits.dst[row], row)
        yield PartUse("node", circuits.src)


def test_what_passes_weak_parts_takes_longer():
    """By the smallest share on its way; times at the full rate are too short by the rest."""
    rows = [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 1, 0), (1, 1, 2, 0, 1, 0), (2, 0, 3, 1, 1, 0), (3, 3, 0, 2, 1, 0)]
    plan = plan_of(Worn(), rows)
    p = schedule_times(plan, MB, TimeRules(compute="none", control="none"))
    took = MB / 8 * 8 / 8e9
    found = check_programme(plan, p, TimeRules(compute="none", control="none")).violations
    assert [(one.law, one.step, one.where, one.missing_s, one.count) for one in found] == [
        ("too_short", 0, "circuit 2 -> 0", pytest.approx(9 * took), 2),
        ("too_short", 1, "circuit 1 -> 2", pytest.approx(took), 1),
        ("too_short", 2, "circuit 0 -> 3", pytest.approx(took), 1),
    ]
    other = CircuitPlan(plan.fabric, plan.schedule, lambda i: tuple(c.take(np.array([0])) for c in plan.rounds(i)))
    alone = replace(p, circuits=p.circuits.take(np.flatnonzero(p.circuits.row == 0)))
    first = check_programme(other, alone, TimeRules(compute="none", control="none")).violations[0]
    assert (first.where, first.missing_s, first.count) == ("circuit 0 -> 1", pytest.approx(3 * took), 1)


def test_rounds_of_repeated_steps_are_counted_once():
    """What fits needs no second count, however often the step happens."""
    counted = []

    class Counting(Bench):
        def usage(self, circuits):
            counted.append(len(circuits))
            return super().usage(circuits)

    plan = plan_of(Counting(nodes=4, setting_time=0.0), [(i, 0, 1, 0, 1, 0) for i in range(12)])
    plan = replace(plan, schedule=replace(plan.schedule, classes=(range(12),)))
    rules = TimeRules(compute="none", control="none")
    p = schedule_times(plan, MB, rules, compact=True)
    counted.clear()
    assert check_programme(plan, p, rules).ok
    assert counted == [1] * len(p.runs)


def test_what_does_not_fit_is_counted_each_time():
    """Two rounds of a step at once, in every repetition."""
    rows = [(i, 0, dst, dst, 1, 0) for i in range(12) for dst in (1, 2)]
    plan = plan_of(Bench(setting_time=0.0), rows)
    plan = replace(plan, schedule=replace(plan.schedule, classes=(range(12),)))
    rules = TimeRules(compute="none", control="none")
    p = schedule_times(plan, MB, rules, compact=True)
    first = np.repeat(p.circuits.start_s[p.circuits.round == 0], 2)
    earlier = p.circuits.start_s - first
    at_once = replace(p, circuits=changed(p.circuits, start_s=first, end_s=p.circuits.end_s - earlier))
    verdict = check_programme(plan, at_once, replace(rules, initial="warm"))
    steps = [one.step for one in verdict.violations if one.law == "overlap"]
    assert (steps[:5], len(steps)) == ([0, 1, 2, 3, 4], SHOWN)
