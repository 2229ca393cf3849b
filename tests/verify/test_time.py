"""The laws of time: lawful programmes of a plain scheduler, and a mutant for every law, refused by its name."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.strategies import transfers_by_step
from tests.verify.timing import Bench, changed, plan_of, plan_on, schedule_times

import opticcl
from opticcl.circuits import lower
from opticcl.collective import Request, collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.programme import DeviceTable, StepRuns
from opticcl.ir.time_verdict import TIME_LAWS
from opticcl.schedule import generate, reason_declined
from opticcl.verify.time._data import ranges_cross
from opticcl.verify.time.programme import TimeRules, check_programme, rules_of

MB = 1_000_000
PLAIN = TimeRules(compute="none", control="none")


def ring(bench, collective="all_reduce", algorithm="ring"):
    """A ring on the bench."""
    ideal = fabric(f"ideal:nodes={bench.nodes}")
    return plan_on(bench, generate(algorithm, Request(collective), ideal))


def laws(plan, programme, rules=PLAIN, **others):
    """Names of the laws that are broken."""
    return {violation.law for violation in check_programme(plan, programme, rules, **others).violations}


CASES = {
    "ring": (ring(Bench()), PLAIN),
    "sums": (ring(Bench(nodes=5)), TimeRules(control="none")),
    "chain": (ring(Bench(nodes=3)), TimeRules(control="none", compute="chain")),
    "halving": (ring(Bench(nodes=8), "all_reduce", "halving_doubling"), TimeRules(control="none")),
    "pairs": (ring(Bench(nodes=5, lanes=5), "all_to_all", "bruck"), PLAIN),
    "control": (ring(Bench(control=3e-6), "all_gather"), TimeRules(compute="none", control_charge="every_step")),
    "on change": (ring(Bench(control=3e-6), "all_gather"), TimeRules(compute="none")),
    "unprepared": (ring(Bench(nodes=8), "all_gather", "halving_doubling"), replace(PLAIN, prepare="none")),
    "slots": (ring(Bench(setting_time=0.0, slot=20e-9, payload=950.0)), TimeRules(control="none")),
}


STORED = [(name, compact) for name in CASES for compact in (False, True) if name != "slots" or not compact]
"""With slots, sums end between two of them, so that steps have no common period."""


@pytest.mark.parametrize(("name", "compact"), STORED)
def test_a_lawful_programme_is_accepted(name, compact):
    """Whatever is charged, and whether identical steps are stored once or one by one."""
    plan, rules = CASES[name]
    programme = schedule_times(plan, MB, rules, compact=compact)
    verdict = check_programme(plan, programme, rules)
    assert verdict.ok, verdict
    assert verdict.total_s == programme.total_s
    assert verdict.record()["ok"] is True
    once = check_programme(plan, schedule_times(plan, MB, rules), rules)
    assert (verdict.circuits, verdict.changes) == (once.circuits, once.changes)
    assert verdict.idle_s == pytest.approx(once.idle_s, rel=1e-9)


def drawn_schedule(drawn, ranks, chunks):
    """Four steps of drawn transfers."""

    def step(i):
        rows = [[*key[1:], *row] for key, row in drawn.items() if key[0] == i]
        *columns, apart = np.array(rows).reshape(-1, 6).T
        return Transfers.of(*columns, chunk_step=apart)

    return Schedule("drawn", collective("barrier", ranks, chunks), 4, step)


@examples(50)
@given(
    transfers_by_step(ranks=5, chunks=8, steps=4), st.integers(0, 10**6), st.sampled_from(["none", "fused", "chain"]),
    st.sampled_from(["early", "none"]), st.sampled_from([0, 7]), st.floats(0, 1e-5),
)  # fmt: skip
def test_drawn_plans_are_accepted(drawn, size, compute, prepare, lanes, setting_time):
    """Transfers of any chunks, several of a sender in one step, in rounds of their own."""
    plan = plan_on(Bench(nodes=5, lanes=lanes, setting_time=setting_time), drawn_schedule(drawn, 5, 8))
    rules = replace(PLAIN, compute=compute, prepare=prepare, receive_buffers="separate")
    verdict = check_programme(plan, schedule_times(plan, size, rules), rules)
    assert verdict.ok, verdict


@examples(100)
@given(transfers_by_step(ranks=4, chunks=6, steps=4), st.data())
def test_what_is_sent_early_is_found(drawn, data):
    """A transfer that starts earlier breaks the law of data exactly if something that it sends has not been summed."""
    schedule = drawn_schedule(drawn, 4, 6)
    plan = plan_on(Bench(setting_time=0.0), schedule)
    rules = TimeRules(control="none", receive_buffers="separate", memory_bytes_per_s=1e9)
    p = schedule_times(plan, 6000, rules)
    row = data.draw(st.integers(0, len(p.circuits) - 1))
    by = data.draw(st.floats(0, 1)) * float(p.circuits.start_s[row])
    moved = shifted(shifted(p.circuits, "start_s", -by, row), "end_s", -by, row)
    step, number = int(p.circuits.step[row]), int(p.circuits.round[row])
    transfer = int(plan.rounds(step)[number].transfer[p.circuits.row[row]])
    summed = {}
    for i in range(step):
        t = schedule.step(i)
        for k, (dst, lo, n, op, by) in enumerate(zip(t.dst, t.chunk_lo, t.chunk_n, t.op, t.chunk_step, strict=True)):
            done = float(p.data.summed_s[(p.data.step == i) & (p.data.transfer == k)][0])
            for chunk in range(lo, lo + n * by, by):
                summed[dst, chunk] = [done, *(summed.get((dst, chunk), []) if op == Op.REDUCE else [])]
    t = schedule.step(step)
    sent = t.chunk_lo[transfer] + np.arange(t.chunk_n[transfer]) * t.chunk_step[transfer]
    ready = max((done for chunk in sent for done in summed.get((t.src[transfer], chunk), [])), default=0.0)
    start = float(moved.start_s[row])
    early = ready - start > 1e-9 * start + 1e-15
    assert ("sent_before_there" in laws(plan, replace(p, circuits=moved), rules)) == early


# --- the optical systems ---------------------------------------------------------------------------------------------

SYSTEMS = [
    "ramp:groups=3,racks=2,wavelengths=6", "ramp:groups=4,racks=2,wavelengths=8,subnet=route_switch",
    "ramp:groups=2,racks=2,wavelengths=4,slot=0s", "sipac:radix=3,levels=2", "terarack:nodes=9,wavelengths=4",
    "terarack:nodes=8,rings=2,striping=yes", "terarack_torus:shape=3x4", "sip_ring:nodes=8,wavelengths=4",
    "oddl:shape=4x2", "oddl:shape=8,wavelengths=6", "lightpath:shape=3x3",
    "lightpath:shape=4x4,waveguides=2,routing=random", "lightpath:shape=3x3,dead_tiles=4",
]  # fmt: skip


@pytest.mark.parametrize("specification", SYSTEMS)
@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all", "broadcast"])
def test_programmes_of_the_systems_are_accepted(specification, collective):
    """Steps one after the other, on the devices that each system names; a device that is late is refused."""
    where = fabric(specification)
    algorithms = (where.algorithm, "ring", "tree", "mesh", "bruck")  # without idle circuits
    chosen = next(one for one in algorithms if one and reason_declined(one, Request(collective), where) is None)
    plan = opticcl.compile(where, collective, MB, algorithm=chosen).circuits
    rules = TimeRules(control_charge="every_step", receive_buffers="separate")
    programme = schedule_times(plan, MB, rules)
    verdict = check_programme(plan, programme, rules)
    assert verdict.ok, verdict
    assert verdict.changes == len(programme.devices)
    slow = [i for i, device in enumerate(plan.fabric.devices) if device.setting_time_s and not device.once_per_job]
    rows = np.flatnonzero(np.isin(programme.devices.kind, slow))
    if len(rows):
        late = shifted(programme.devices, "done_s", 1e-3, rows[-1])
        assert laws(plan, replace(programme, devices=late), rules) <= {
            "set_in_flight",
            "unset_at_start",
            "total_too_small",
        }
        assert laws(plan, replace(programme, devices=late, total_s=1.0), rules)


# --- a mutant for every law -------------------------------------------------------------------------------------------


def shifted(table, name, by, rows=slice(None)):
    """A column later (or earlier) in some rows."""
    column = getattr(table, name).copy()
    column[rows] += by
    return changed(table, **{name: column})


def mutant(law):
    """(plan, programme, rules) that break that law and, where it can be, no other."""
    plan, rules = CASES["ring"]
    p = schedule_times(plan, MB, rules)
    c = p.circuits
    if law == "too_short":
        short = (c.end_s - c.start_s - plan.fabric.latency) * 0.01
        last = c.step == c.step.max()
        return plan, replace(p, circuits=changed(c, start_s=np.where(last, c.start_s + short, c.start_s))), rules
    if law == "off_slot":
        plan, rules = CASES["slots"]
        p = schedule_times(plan, MB, rules)
        late = p.circuits.step == p.circuits.step.max()
        both = {n: getattr(p.circuits, n) + 5e-9 * late for n in ("start_s", "end_s")}
        data = {n: getattr(p.data, n) + 5e-9 * (p.data.step == p.data.step.max()) for n in ("arrived_s", "summed_s")}
        moved = replace(p, circuits=changed(p.circuits, **both), data=changed(p.data, **data), total_s=p.total_s + 5e-9)
        return plan, moved, rules
    if law == "set_in_flight":
        plan, rules = CASES["unprepared"]
        p = schedule_times(plan, MB, rules)
        second = p.devices.begin_s > 0
        return plan, replace(p, devices=shifted(p.devices, "done_s", -1e-6, second)), rules
    if law == "unset_at_start":
        return plan, replace(p, devices=p.devices.take(p.devices.device != 2)), rules
    if law == "sent_before_there":
        plan, rules = CASES["sums"]
        p = schedule_times(plan, MB, rules)
        early = p.circuits.step >= 2
        by = 1e-8
        data = changed(
            p.data,
            arrived_s=p.data.arrived_s - by * (p.data.step >= 2), summed_s=p.data.summed_s - by * (p.data.step >= 2),
        )  # fmt: skip
        circuits = shifted(shifted(p.circuits, "start_s", -by, early), "end_s", -by, early)
        return plan, replace(p, circuits=circuits, data=data), rules
    if law == "overwritten_before_sent":
        plan = plan_of(Bench(nodes=3), [(0, 0, 1, 0, 4, 0), (0, 2, 0, 0, 1, 0)])
        return plan, schedule_times(plan, MB, rules), rules
    if law == "summed_too_fast":
        plan, rules = CASES["sums"]
        p = schedule_times(plan, MB, rules)
        data = changed(p.data, summed_s=p.data.arrived_s + 0.99 * (p.data.summed_s - p.data.arrived_s))
        return plan, replace(p, data=data), rules
    if law == "overlap":
        plan = plan_of(Bench(nodes=3), [(0, 0, 1, 0, 1, 0), (1, 2, 1, 4, 1, 0)])
        p = schedule_times(plan, MB, rules)
        later = p.circuits.step == 1
        by = float(p.circuits.start_s[0] - p.circuits.start_s[later][0])
        data = {n: getattr(p.data, n) + by * (p.data.step == 1) for n in ("arrived_s", "summed_s")}
        circuits = shifted(shifted(p.circuits, "start_s", by, later), "end_s", by, later)
        return plan, replace(p, circuits=circuits, data=changed(p.data, **data)), rules
    if law == "control_late":
        plan, rules = CASES["control"]
        p = schedule_times(plan, MB, rules)
        return plan, replace(p, control=p.control.take(p.control.step != 1)), rules
    if law == "total_too_small":
        return plan, replace(p, total_s=p.total_s * 0.999), rules
    plan = plan_of(Bench(nodes=3), [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 1, 0)])
    p = schedule_times(plan, MB, rules)
    alone = replace(plan, rounds=lambda i: (plan.rounds(i)[0].take([0]),))
    return alone, replace(p, circuits=p.circuits.take([0])), rules


@pytest.mark.parametrize("law", TIME_LAWS)
def test_a_mutant_is_refused_by_its_law(law):
    """And by no other; the violation says where and by how much."""
    plan, programme, rules = mutant(law)
    verdict = check_programme(plan, programme, rules)
    assert {violation.law for violation in verdict.violations} == {law}
    assert all(violation.count >= 1 and law in str(violation) for violation in verdict.violations)
    assert not verdict
    if law != "never_sent":
        assert max(violation.missing_s for violation in verdict.violations) > 0


# --- devices ----------------------------------------------------------------------------------------------------------


def test_settings_that_stand():
    """Warm devices need no first setting; saved settings stand only where they are the right ones."""
    plan, rules = CASES["ring"]
    p = schedule_times(plan, MB, rules)
    bare = replace(p, devices=DeviceTable.empty())
    assert laws(plan, bare, replace(rules, initial="warm")) == set()
    assert laws(plan, bare) == {"unset_at_start"}
    right = DeviceTable.of(kind=0, device=range(4), step=-1, begin_s=0, done_s=0, setting=[1, 2, 3, 0])
    assert laws(plan, bare, standing=right) == set()
    assert laws(plan, bare, standing=changed(right, setting=right.setting[::-1].copy())) == {"set_in_flight"}
    with pytest.raises(ParameterError, match="standing row 1: kind=0, device=4; there are transmitter 0"):
        check_programme(plan, bare, rules, standing=changed(right, device=np.array([0, 4, 1, 2])))


def test_a_change_under_light_is_refused():
    """And one between two uses of the same setting is not, once it is undone in time."""
    plan = plan_of(Bench(nodes=3, setting_time=1e-7), [(0, 0, 1, 0, 8, 0), (1, 2, 0, 0, 8, 0), (2, 0, 1, 0, 8, 0)])
    p = schedule_times(plan, MB, PLAIN)
    end, start = float(p.circuits.end_s[0]), float(p.circuits.start_s[2])

    def with_detour(begin_s):
        there_and_back = DeviceTable.of(
            kind=0, device=0, step=-1, begin_s=[begin_s, start - 1e-7], done_s=[begin_s + 1e-7, start], setting=[2, 1]
        )
        tables = (p.devices, there_and_back)
        columns = {name: np.concatenate([getattr(one, name) for one in tables]) for name in DeviceTable.KINDS}
        return replace(p, devices=DeviceTable(**columns))

    assert laws(plan, with_detour(end)) == set()
    found = check_programme(plan, with_detour(end - 2e-6), PLAIN).violations
    assert [violation.law for violation in found] == ["set_in_flight"]
    assert found[0].missing_s == pytest.approx(2e-6 - 1e-6)  # the last bit leaves a latency before it arrives
    assert "transmitter 0, circuit 0 -> 1" in found[0].where


def test_members_of_a_pool_replace_each_other():
    """Two circuits at once need two lanes; a lane that is being set carries nothing."""
    plan = plan_of(Bench(nodes=4, lanes=2), [(0, 0, 1, 0, 4, 0), (0, 2, 3, 4, 4, 0), (1, 1, 2, 0, 4, 0)])
    p = schedule_times(plan, MB, PLAIN)
    assert laws(plan, p) == set()
    lanes = p.devices.kind == 1
    assert sorted(p.devices.device[lanes].tolist()) == [0, 0, 1]
    one_lane = changed(p.devices, device=np.where(lanes, 0, p.devices.device))
    assert laws(plan, replace(p, devices=one_lane)) == {"set_in_flight"}
    wrong = changed(p.devices, setting=np.where(lanes, p.devices.setting + 1, p.devices.setting))
    assert laws(plan, replace(p, devices=wrong)) == {"set_in_flight"}
    assert laws(plan, replace(p, devices=p.devices.take(~lanes))) == {"unset_at_start"}


@pytest.mark.parametrize(
    ("shape", "collective", "engine"), [("1x17", "barrier", "flow:mode=asynchronous"), ("5x5", "all_reduce", "device")]
)
def test_members_that_are_changed_for_the_data_of_one_circuit(shape, collective, engine):
    """Circuits of a round that start later find them set; a member is taken by the circuit that it was changed for."""
    plan = opticcl.compile(f"lightpath:shape={shape}", collective, 0, algorithm="dissemination")
    found = plan.programme(engine, assumptions="published")
    assert check_programme(plan.circuits, found, rules_of(found)).ok
    sooner = changed(found.devices, begin_s=found.devices.begin_s * 0.9)
    refused = check_programme(plan.circuits, replace(found, devices=sooner), rules_of(found))
    assert {one.law for one in refused.violations} == {"set_in_flight"}


def test_devices_that_are_set_once_a_job():
    """No change is allowed, and all uses must agree."""
    from opticcl.ir.device import Device

    class Fixed(Bench):
        devices = (Device("transmitter", 4, 0.0, once_per_job=True),)

    agrees = plan_of(Fixed(), [(0, 0, 1, 0, 1, 0), (1, 0, 1, 1, 1, 0)])
    p = schedule_times(agrees, MB, PLAIN)
    assert laws(agrees, p) == set()
    change = DeviceTable.of(kind=0, device=3, step=-1, begin_s=[0], done_s=[0], setting=[1])
    assert laws(agrees, replace(p, devices=change)) == {"set_in_flight"}
    stands = DeviceTable.of(kind=0, device=0, step=-1, begin_s=[0], done_s=[0], setting=[1])
    assert laws(agrees, replace(p, devices=change), standing=stands) == {"set_in_flight"}
    assert laws(agrees, p, standing=stands) == set()
    differs = plan_of(Fixed(), [(0, 0, 1, 0, 1, 0), (1, 0, 2, 0, 1, 0)])
    assert laws(differs, schedule_times(differs, MB, PLAIN)) == {"set_in_flight"}


def test_idle_circuits_keep_their_devices_and_resources():
    """A circuit that carries nothing in a round obeys the laws of settings and of capacity."""
    from opticcl.ir import CircuitPlan, Circuits

    base = plan_of(Bench(nodes=4, setting_time=1e-6), [(0, 0, 1, 0, 4, 0), (1, 2, 3, 4, 4, 0), (2, 0, 1, 0, 4, 0)])

    def rounds(i):
        return (Circuits.of([0, -1], [2, 0], [3, 1]),) if i == 1 else base.rounds(i)

    plan = CircuitPlan(base.fabric, base.schedule, rounds)
    p = schedule_times(base, MB, PLAIN)
    idle = {"step": 1, "round": 0, "row": 1, "start_s": p.circuits.start_s[1], "end_s": np.nan, "slot": -1, "slots": -1}
    columns = {name: np.append(getattr(p.circuits, name), idle[name]) for name in idle}
    stands = replace(p, circuits=changed(p.circuits, **columns))
    assert laws(plan, stands) == set()
    turned = changed(p.devices, setting=np.where(p.devices.device == 0, 2, p.devices.setting))
    assert "set_in_flight" in laws(plan, replace(stands, devices=turned))
    meets = CircuitPlan(
        base.fabric, base.schedule, lambda i: (Circuits.of([0, -1], [2, 0], [3, 3]),) if i == 1 else base.rounds(i)
    )
    assert "overlap" in laws(meets, stands)


# --- data, sums and light ---------------------------------------------------------------------------------------------


def test_receive_buffers():
    """An arrival that would change what still leaves needs a buffer of its own, if there may be one."""
    plan, programme, rules = mutant("overwritten_before_sent")
    verdict = check_programme(plan, programme, replace(rules, receive_buffers="separate"))
    assert verdict.ok
    assert verdict.receive_buffer_bytes == pytest.approx(MB / 8)


def test_sums_of_two_steps_share_a_memory():
    """Each fits alone; together they must take turns, the more urgent first."""
    bench, memory = Bench(nodes=3, setting_time=0.0), 1e9
    plan = plan_of(bench, [(0, 0, 1, 0, 4, 1), (1, 2, 1, 4, 4, 1)])
    rules = TimeRules(control="none", memory_bytes_per_s=memory)
    p = schedule_times(plan, MB, rules)
    work = 3 * (MB / 2) / memory
    arrived = p.data.arrived_s[:1].repeat(2)
    at_once = replace(
        p, circuits=changed(p.circuits, start_s=p.circuits.start_s[:1].repeat(2), end_s=p.circuits.end_s[:1].repeat(2))
    )
    taking_turns = changed(p.data, arrived_s=arrived, summed_s=arrived + np.array([work, 2 * work]))
    together = changed(p.data, arrived_s=arrived, summed_s=arrived + np.array([work, 1.9 * work]))
    assert "summed_too_fast" not in laws(plan, replace(at_once, data=taking_turns), rules)
    assert "summed_too_fast" in laws(plan, replace(at_once, data=together), rules)
    reverse = changed(p.data, arrived_s=arrived, summed_s=arrived + np.array([2 * work, work]))
    assert "summed_too_fast" not in laws(plan, replace(at_once, data=reverse), rules)


def test_ranges_that_cross_against_all_pairs():
    """Of one rank, neither apart nor equal."""
    random, verdicts = np.random.default_rng(1), set()
    for _ in range(500):
        rank, lo, n = random.integers((0, 0, 1), (3, 8, 5), (int(random.integers(1, 7)), 3)).T
        rows = set(zip(rank.tolist(), lo.tolist(), n.tolist(), strict=True))
        due = any(a[0] == b[0] and a[1] <= b[1] < a[1] + a[2] for a, b in permutations(rows, 2))
        assert ranges_cross(rank, lo, n) == due
        verdicts.add(due)
    assert verdicts == {False, True}


def test_one_signal_for_several_receivers():
    """Circuits of one signal count once where optics split it; sent at two times it is two signals."""
    rows = [(0, 0, 1, 0, 4, 0), (0, 0, 2, 0, 4, 0)]
    splitting = plan_of(Bench(nodes=3, splits=True), rows)
    p = schedule_times(splitting, MB, PLAIN)
    assert laws(splitting, p) == set()
    plain = replace(splitting, fabric=Bench(nodes=3))
    assert "overlap" in laws(plain, p)
    later = {name: getattr(p.circuits, name) + np.array([0, 1e-6]) for name in ("start_s", "end_s")}
    data = {name: getattr(p.data, name) + np.array([0, 1e-6]) for name in ("arrived_s", "summed_s")}
    moved = replace(p, circuits=changed(p.circuits, **later), data=changed(p.data, **data), total_s=p.total_s + 1e-6)
    assert laws(splitting, moved) == {"overlap"}


def test_repeated_steps_are_judged_at_their_seams():
    """A period that is too short, and a change that is under way when the next repetition begins."""
    plan, rules = CASES["sums"]
    p = schedule_times(plan, MB, rules, compact=True)
    assert len(p.runs) < plan.schedule.num_steps
    tight = changed(p.runs, period_s=p.runs.period_s * 0.9)
    assert "sent_before_there" in laws(plan, replace(p, runs=tight), rules)
    repeated = int(p.runs.first[p.runs.repeats > 1][0])
    start = float(p.circuits.start_s[p.circuits.step == repeated][0])
    wobble = DeviceTable.of(
        kind=0, device=0, step=repeated, begin_s=[start + 1e-9, start + 2e-5], done_s=[start + 2e-5, start + 3e-5],
        setting=[3, 1],
    )  # fmt: skip
    columns = {n: np.concatenate([getattr(one, n) for one in (p.devices, wobble)]) for n in DeviceTable.KINDS}
    assert "set_in_flight" in laws(plan, replace(p, devices=DeviceTable(**columns)), rules)


# --- programmes that are no programmes of the plan --------------------------------------------------------------------


def test_packets_and_nameless_devices_are_refused():
    """Links are shared, and changes of unknown devices cannot be verified."""
    where = fabric("torus:shape=4")
    plan = lower(where, generate("ring", Request("all_reduce"), where))
    programme = schedule_times(CASES["ring"][0], MB, PLAIN)
    with pytest.raises(UnsupportedError, match="packets share"):
        check_programme(plan, programme)

    class Nameless(Bench):
        devices = ()

    nameless = plan_of(Nameless(), [(0, 0, 1, 0, 1, 0)])
    with pytest.raises(UnsupportedError, match="names no devices"):
        check_programme(nameless, programme)


def test_tables_are_plain_values():
    """Columns compare, print and have a record."""
    plan, rules = CASES["ring"]
    p = schedule_times(plan, MB, rules)
    again = schedule_times(plan, MB, rules)
    assert p.circuits == again.circuits != shifted(p.circuits, "start_s", 1e-9)
    record = p.record()
    assert record["total_s"] == p.total_s
    assert record["circuits"]["start_s"] == p.circuits.start_s.tolist()
    assert record["runs"]["repeats"] == [1] * plan.schedule.num_steps
    with pytest.raises(ParameterError, match="different lengths"):
        StepRuns.of(first=[0, 1], repeats=[1, 1, 1], period_s=0.0)
    with pytest.raises(ParameterError, match="check period_s"):
        StepRuns.of(first=[0, 1], repeats=[1, 1])
