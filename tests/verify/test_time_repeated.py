"""Steps that are stored once: what happens during the repetitions that are not unrolled is judged too."""

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import Bench, changed, plan_of, plan_on, schedule_times

from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.programme import DeviceTable
from opticcl.verify.time.programme import TimeRules, check_programme

STEPS = 64
SIZE = 64_000
PLAIN = TimeRules(compute="none", control="none")


def pipeline(bench, rows_of, ranks=3):
    """A plan of one class of steps, each of transfers (src, dst, chunk, chunks, op)."""

    def step(i):
        return Transfers.of(*np.array(rows_of(i)).T)

    wanted = collective("barrier", ranks, STEPS)
    return plan_on(bench, Schedule("pipeline", wanted, STEPS, step, classes=(range(STEPS),)))


def added(i):
    """Rank 1 adds a chunk of its own in each step."""
    return [(0, 1, i, 1, Op.REDUCE)]


def laws(plan, programme, rules=PLAIN):
    """Names of the laws that are broken."""
    return {violation.law for violation in check_programme(plan, programme, rules).violations}


def both(plan, rules=PLAIN):
    """The plan's programme with one run of repeated steps, and with every step by itself."""
    found = [schedule_times(plan, SIZE, rules, compact=compact) for compact in (True, False)]
    assert [len(one.runs) for one in found] == [3, STEPS]
    return found


@pytest.mark.parametrize(("device", "refused"), [(0, {"set_in_flight"}), (2, set())])
def test_a_device_that_is_turned_away_and_back_during_repetitions(device, refused):
    """Refused if the steps use it; no light is on the transmitter of node 2."""
    plan = pipeline(Bench(nodes=3, setting_time=1e-7), added)
    for programme in both(plan):
        middle = programme.total_s / 2
        there_and_back = DeviceTable.of(
            kind=0, device=device, step=-1, begin_s=[middle, middle + 3e-7], done_s=[middle + 1e-7, middle + 4e-7],
            setting=[2, 1],
        )  # fmt: skip
        tables = (programme.devices, there_and_back)
        columns = {name: np.concatenate([getattr(one, name) for one in tables]) for name in DeviceTable.KINDS}
        assert laws(plan, programme) == set()
        assert laws(plan, replace(programme, devices=DeviceTable(**columns))) == refused


@pytest.mark.parametrize(("share", "refused"), [(1.05, {"summed_too_fast"}), (0.95, set())])
def test_a_memory_that_is_a_little_too_slow(share, refused):
    """Its work of a step takes 1.05 of a step: sums that are due two steps later are late after some twenty steps."""
    plan = pipeline(Bench(nodes=3, setting_time=0.0), added)
    for programme in both(plan):
        period = float(programme.circuits.start_s[1] - programme.circuits.start_s[0])
        work = share * period
        rules = TimeRules(control="none", memory_bytes_per_s=3 * (SIZE / STEPS) / work)
        due = changed(programme.data, summed_s=programme.data.arrived_s + 2 * work)
        assert laws(plan, replace(programme, data=due, total_s=programme.total_s + 2 * work), rules) == refused


def test_sums_of_repeated_steps_that_are_too_many(monkeypatch):
    """Where they meet in time, all of a run count."""
    plan = pipeline(Bench(nodes=3, setting_time=0.0), added)
    programme, _ = both(plan)
    period = float(programme.circuits.start_s[1] - programme.circuits.start_s[0])
    rules = TimeRules(control="none", memory_bytes_per_s=3 * (SIZE / STEPS) / (0.5 * period))
    due = changed(programme.data, summed_s=programme.data.arrived_s + 2 * period)
    slow = replace(programme, data=due, total_s=programme.total_s + 2 * period)
    monkeypatch.setattr("opticcl.verify.time._data.MOST_SUMS", STEPS - 2)
    assert laws(plan, slow, rules) == set()
    monkeypatch.setattr("opticcl.verify.time._data.MOST_SUMS", STEPS - 3)
    with pytest.raises(UnsupportedError, match=r"^verify: 62 sums of repeated steps meet in time, more than 61; try"):
        check_programme(plan, slow, rules)


def relayed(i):
    """Rank 1 sends on what came in the step before, but at both ends of the pipeline chunks that it has had."""
    return [(0, 1, i, 1, Op.COPY), (1, 2, i - 1 if 15 < i < STEPS - 15 else STEPS - 1 - i, 1, Op.COPY)]


@pytest.mark.parametrize(("earlier", "refused"), [(0.0, set()), (3e-6, {"control_late"})])
def test_control_of_what_arrives_during_repetitions(earlier, refused):
    """The exchange waits for the data of every repetition, though the first and last send what they had before."""
    rules = TimeRules(compute="none", control_charge="every_step")
    plan = pipeline(Bench(nodes=3, setting_time=0.0, control=3e-6), relayed)
    for programme in both(plan, rules):
        earlier_by_step = np.maximum(np.arange(STEPS) - 2, 0) * earlier
        runs = changed(programme.runs, period_s=np.maximum(programme.runs.period_s - earlier, 0.0))
        tables = {
            name: replace(
                getattr(programme, name),
                **{
                    column: getattr(getattr(programme, name), column) - earlier_by_step[getattr(programme, name).step]
                    for column in columns
                },
            )
            for name, columns in (
                ("circuits", ("start_s", "end_s")), ("data", ("arrived_s", "summed_s")),
                ("control", ("begin_s", "end_s")),
            )
        }  # fmt: skip
        assert laws(plan, replace(programme, runs=runs, **tables), rules) == refused


def sent_late(i):
    """Rank 1 sends in a second round; in the middle of the pipeline it sends the chunk that arrives in the first one."""
    return [
        (0, 1, i, 1, Op.COPY), (1, 2, STEPS - 1 - i, 1, Op.COPY),
        (1, 0, i if 15 < i < STEPS - 15 else STEPS - 1 - i, 1, Op.COPY),
    ]  # fmt: skip


def test_buffers_for_what_arrives_during_repetitions():
    """A chunk that arrives before it has been sent needs a buffer: one chunk at a time, in the middle alone."""
    rules = replace(PLAIN, receive_buffers="separate")
    plan = pipeline(Bench(nodes=3, setting_time=0.0), sent_late)
    found = [check_programme(plan, programme, rules) for programme in both(plan, rules)]
    assert [one.ok for one in found] == [True, True]
    assert [one.receive_buffer_bytes for one in found] == [SIZE / STEPS, SIZE / STEPS]


# --- with barriers, and what sums take -----------------------------------------------------------------------------------


def test_schedules_that_are_too_large_to_be_replayed(monkeypatch):
    """All sent chunks count; steps that wait for all data before them need no replay, others are refused in one line."""
    plan = plan_of(Bench(nodes=3, setting_time=0.0), [(i, 0, 1, 2 * i, 2, 0) for i in range(4)])
    plan = replace(plan, schedule=replace(plan.schedule, classes=(range(4),)))
    rules = replace(PLAIN, prepare="none", initial="warm")
    p = schedule_times(plan, SIZE, rules, compact=True)
    assert p.runs.repeats.tolist() == [1, 1, 2]
    meets = replace(p, data=changed(p.data, summed_s=p.data.summed_s + 1e-6), total_s=1.0)
    monkeypatch.setattr("opticcl.verify.time._data.MOST_REPLAYED", 8)
    assert laws(plan, p, rules) == laws(plan, meets, rules) == set()
    monkeypatch.setattr("opticcl.verify.time._data.MOST_REPLAYED", 7)
    assert laws(plan, p, rules) == set()
    with pytest.raises(UnsupportedError, match=r"^verify: the times of 8 sent chunks are more than 7; try a programme"):
        check_programme(plan, meets, rules)


def test_sums_of_ranks_in_any_order():
    """Each rank has its memory: sums of two of them, listed in turn, are in time; a little faster they are not."""
    plan = plan_of(
        Bench(nodes=4, setting_time=0.0), [(i, src, dst, i, 1, 1) for i, (src, dst) in enumerate(ORDER)], chunks=8
    )
    rules = TimeRules(control="none", memory_bytes_per_s=1e6)
    p = schedule_times(plan, 8, rules)
    together = {name: np.full(len(ORDER), getattr(p.circuits, name)[0]) for name in ("start_s", "end_s")}
    arrived = np.full(len(ORDER), p.data.arrived_s[0])
    work = 3e-6
    turn = np.array([[at for _, at in ORDER[:i]].count(dst) for i, (_, dst) in enumerate(ORDER)])
    for share, refused in ((1.0, set()), (0.9, {0, 1, 2, 3})):
        summed = arrived + (turn + 1) * work * share
        moved = replace(
            p, circuits=changed(p.circuits, **together), data=changed(p.data, arrived_s=arrived, summed_s=summed)
        )
        found = [one for one in check_programme(plan, moved, rules).violations if one.law == "summed_too_fast"]
        assert {one.step for one in found} == refused
        for one in found:
            assert one.missing_s == pytest.approx((turn[one.step] + 1) * work * 0.1)


ORDER = [(0, 2), (0, 1), (3, 2), (3, 1)]


@pytest.mark.parametrize(
    ("compute", "first", "second", "moved"),
    [
        ("fused", (0, 4, 1), (2, 4, 1), 20), ("fused", (2, 4, 1), (0, 4, 1), 20), ("fused", (0, 4, 1), (0, 4, 1), 16),
        ("fused", (0, 2, 1), (4, 2, 1), 12), ("fused", (0, 3, 2), (1, 3, 2), 18), ("fused", (0, 3, 2), (0, 3, 2), 12),
        ("fused", (0, 3, 2), (2, 3, 2), 14), ("fused", (0, 3, 2), (4, 2, 1), 13), ("fused", (0, 2, 3), (3, 2, 3), 10),
        ("fused", (2, 2, 2), (3, 2, 2), 12), ("fused", (4, 1, 1), (0, 3, 2), 10), ("fused", (5, 1, 1), (0, 3, 2), 12),
        ("fused", (3, 2, 3), (1, 3, 2), 13), ("fused", (1, 2, 3), (4, 2, 3), 10), ("chain", (0, 3, 2), (4, 2, 1), 15),
    ],
)  # fmt: skip
def test_what_a_rank_moves_for_its_sums(compute, first, second, moved):
    """Chunks (first, how many, apart) of two arrivals at once: each chunk, and each arrival of it, is moved once more."""
    columns = zip(first, second, strict=True)
    lo, n, apart = (list(column) for column in columns)
    step = Transfers.of([0, 2], [1, 1], lo, n, [Op.REDUCE] * 2, chunk_step=apart)
    plan = plan_on(Bench(nodes=3, setting_time=0.0), Schedule("two", collective("barrier", 3, 8), 1, lambda i: step))
    p = schedule_times(plan, 8, PLAIN)
    rules = TimeRules(compute=compute, control="none", memory_bytes_per_s=1e6)
    arrived = np.full(2, p.data.arrived_s.max())
    for share, late in ((1.0, []), (0.75, [pytest.approx(moved * 0.25e-6)])):
        summed = arrived + moved * 1e-6 * share
        data = changed(p.data, arrived_s=arrived, summed_s=summed)
        found = check_programme(plan, replace(p, data=data, total_s=1.0), rules).violations
        assert [one.missing_s for one in found if one.law == "summed_too_fast"] == late
