"""Plans that start with circuits that stand: what is charged, programmes, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import changed

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir.device_settings import DeviceSettings
from opticcl.ir.programme import DeviceTable
from opticcl.simulate import programme, simulate
from opticcl.verify.time.programme import check_programme, rules_of

SYSTEMS = ("terarack:nodes=8", "oddl:shape=3x3", "lightpath:shape=3x3", "ocs:nodes=8,planes=2")
ENGINES = ("closed_form", "flow", "flow:mode=asynchronous", "device")


def made(where, algorithm="ring", collective="all_gather"):
    """A plan of 1 KB."""
    return opticcl.compile(where, collective, "1 KB", algorithm=algorithm)


@pytest.mark.parametrize("name", ["common", "published"])
@pytest.mark.parametrize("where", SYSTEMS)
def test_a_plan_that_starts_with_its_own_circuits_is_warm(where, name):
    """The last circuits of a ring are its first: no engine charges a setting, and the programme is lawful."""
    plan = made(where)
    for engine in ENGINES:
        given, warm = (plan.simulate(engine, assumptions=name, initial=i) for i in (plan.configuration, "warm"))
        assert given.total_s == pytest.approx(warm.total_s, rel=1e-12)
        times = plan.programme(engine, assumptions=name, initial=plan.configuration)
        assert times.total_s == pytest.approx(given.total_s, rel=1e-9)
        rules = rules_of(times)
        assert rules.initial == times.assumptions["initial"] == "given"
        verdict = check_programme(plan.circuits, times, rules)
        assert verdict.ok, str(verdict)
        assert verdict.changes == 0
        assert check_programme(plan.circuits, times, rules, standing=plan.configuration.table).ok
        dark = check_programme(plan.circuits, times, rules, standing=DeviceTable.empty())
        assert {one.law for one in dark.violations} >= {"unset_at_start"}


@pytest.mark.parametrize("where", SYSTEMS)
def test_other_circuits_are_set(where):
    """From the circuits of another collective a plan takes as long as cold, or less by what stands; programmes are lawful."""
    plan, before = made(where), made(where, "auto", "broadcast").configuration
    for engine in ENGINES:
        cold, given, warm = (plan.simulate(engine, initial=i).total_s for i in ("cold", before, "warm"))
        assert warm * (1 - 1e-9) <= given <= cold * (1 + 1e-9)
        times = plan.programme(engine, initial=before)
        assert times.total_s == pytest.approx(given, rel=1e-9)
        assert check_programme(plan.circuits, times, rules_of(times), standing=before.table).ok
    assert plan.simulate(initial=before).total_s > plan.simulate(initial="warm").total_s


def test_a_programme_cannot_claim_more_than_stands():
    """A row that begins and ends at 0 is a change of no time if the start does not have it."""
    plan = made("terarack:nodes=8")
    times = plan.programme(initial=plan.configuration)
    part = plan.configuration.table.take(np.arange(3))
    assert not check_programme(plan.circuits, times, rules_of(times), standing=part).ok
    other = changed(plan.configuration.table, setting=plan.configuration.table.setting + 1)
    assert not check_programme(plan.circuits, times, rules_of(times), standing=other).ok
    none = replace(times, devices=DeviceTable.empty())
    assert not check_programme(plan.circuits, none, rules_of(none)).ok


def test_the_end_of_a_programme_is_a_start():
    """All devices keep what they were set to last, those of earlier steps too."""
    plan = made("lightpath:shape=3x3", "bruck", "all_to_all")
    for engine in ENGINES:
        times = plan.programme(engine)
        after = DeviceSettings.of_programme(plan.fabric, times)
        assert set(_rows(plan.configuration)) <= set(_rows(after)) or plan.fabric.devices[0].pool > 1
        again = made("lightpath:shape=3x3", "bruck", "all_to_all")
        last = again.circuits.rounds(again.schedule.num_steps - 1)[-1]
        assert after.stand(last).all()
        assert plan.configuration.stand(last).all()
        assert not plan.configuration.stand(again.circuits.rounds(0)[0]).all()


def _rows(configuration):
    table = configuration.table
    return zip(table.kind.tolist(), table.device.tolist(), table.setting.tolist(), strict=True)


def test_repeated_steps_end_with_their_last_repetition():
    """A change that is repeated with its run is later than a single one of an earlier step."""
    plan = made("lightpath:shape=3x3")
    times = plan.programme(assumptions="published")
    table = DeviceTable.of(kind=0, device=0, step=[0, -1], begin_s=[0.0, 1.0], done_s=[1.0, 2.0], setting=[1, 2])
    runs = changed(times.runs, repeats=np.full(len(times.runs), 9), period_s=np.full(len(times.runs), 5.0))
    assert DeviceSettings.of_programme(
        plan.fabric, replace(times, devices=table, runs=runs)
    ).table.setting.tolist() == [1]
    once = changed(runs, repeats=np.ones(len(runs), int))
    assert DeviceSettings.of_programme(
        plan.fabric, replace(times, devices=table, runs=once)
    ).table.setting.tolist() == [2]


def test_what_is_charged_for_each_circuit():
    """Asynchronously, those that do not stand alone: the first of them start at once."""
    plan = made("terarack:nodes=8")
    (circuits,) = plan.circuits.rounds(0)
    half = DeviceSettings.of_circuits(plan.fabric, circuits.take(np.arange(4)))
    times = plan.programme("flow:mode=asynchronous", initial=half).circuits
    stands = half.stand(circuits)
    assert 0 < stands.sum() < len(stands)
    start = times.start_s[times.step == 0]
    assert (start[stands] == 0).all()
    assert (start[~stands] >= plan.fabric.reconfiguration_s).all()
    assert plan.simulate("device", initial=half).total_s == pytest.approx(plan.simulate("device").total_s)


def test_the_start_decides_the_algorithm():
    """Under a configuration `compile` takes what is the fastest from there."""
    ring = made("terarack:nodes=16")
    assumed = assumptions("common", initial=ring.configuration)
    plan = opticcl.compile("terarack:nodes=16", "all_gather", "1 KB", assumptions=assumed)
    assert plan.simulate(assumptions=assumed).total_s <= ring.simulate(assumptions=assumed).total_s
    cold = opticcl.compile("terarack:nodes=16", "all_gather", "1 KB")
    assert plan.simulate(assumptions=assumed).total_s <= cold.simulate(assumptions=assumed).total_s


def test_equal_configurations_are_equal():
    """By value, so that assumptions with them are keys of caches."""
    one, other = (made("terarack:nodes=8").configuration for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != made("terarack:nodes=8", "mesh", "all_to_all").configuration
    assert one != "cold"
    assert assumptions("common", initial=one) == assumptions("common", initial=other)
    assert assumptions("common", initial=one).record()["initial"] == str(one) == "given"
    assert "devices set" in repr(one)


def test_times_and_rates_of_the_machine_may_differ():
    """What a setting means does not depend on them."""
    plan = made("terarack:nodes=8,reconfiguration=1us")
    start = made("terarack:nodes=8").configuration
    assert plan.simulate(initial=start).totals()["reconfiguration_s"] == 0


def test_refusals():
    """Other machines, devices that do not exist, and fabrics that name none."""
    start, where = made("terarack:nodes=8").configuration, fabric("terarack:nodes=8")
    for engine in ENGINES:
        with pytest.raises(ParameterError, match="the start is of terarack with 8 nodes, not of this terarack with 9"):
            made("terarack:nodes=9").simulate(engine, initial=start)
    with pytest.raises(ParameterError, match="8 nodes and wavelengths=64, not of this terarack with 8"):
        made("terarack:nodes=8,wavelengths=2").simulate(initial=start)
    with pytest.raises(ParameterError, match="'given' is not one of cold, warm"):
        assumptions("common", initial="given")
    row = {"kind": 0, "device": 0, "step": -1, "begin_s": 0, "done_s": 0, "setting": 1}
    for wrong, words in (
        ({"kind": 9}, "kind 9"),
        ({"device": 10**6}, "no device 1000000"),
        ({"device": -1}, "device -1"),
    ):
        with pytest.raises(ParameterError, match=words):
            DeviceSettings(where, DeviceTable.of(**{**row, **wrong, "setting": [1]}))
    with pytest.raises(ParameterError, match="set twice"):
        DeviceSettings(where, DeviceTable.of(**{**row, "setting": [1, 2]}))
    with pytest.raises(ParameterError, match="without circuits"):
        _ = made("ideal:nodes=1").configuration
    packets = made("ideal:nodes=4")
    assert packets.simulate(initial=packets.configuration).total_s == packets.simulate().total_s


def test_fabrics_without_names_of_devices(monkeypatch):
    """What stands there is not known."""
    plan = made("terarack:nodes=8")
    monkeypatch.setattr(type(plan.fabric), "devices", ())
    with pytest.raises(UnsupportedError, match="names no devices"):
        _ = plan.configuration
    assert simulate(plan.circuits, 1000).timeline.total_s > 0
    with pytest.raises(UnsupportedError):
        programme(plan.circuits, 1000, engine="device")
