"""Programmes by the engines: lawful on every system, their last event is the total, nothing that stands is charged."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.altered import altered

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import UnsupportedError
from opticcl.simulate import programme, simulate
from opticcl.verify.time.programme import check_programme, rules_of

ENGINES = ("closed_form", "flow", "flow:mode=asynchronous", "packet:mode=asynchronous", "device")
SPECIFICATIONS = [
    "ramp:groups=3,racks=2,wavelengths=6", "ramp:groups=2,racks=2,wavelengths=4,slot=0s", "sipac:radix=3,levels=2",
    "terarack:nodes=9,wavelengths=4", "terarack_torus:shape=3x4",
    "sip_ring:nodes=8,wavelengths=4", "ocs:nodes=6,planes=2,control=1us", "oddl:shape=4x2", "lightpath:shape=3x3",
]  # fmt: skip
LARGER = ("lightpath:shape=4x4,waveguides=2,routing=random", "terarack:nodes=8,rings=2,striping=yes")
CASES = [
    ("all_reduce", "ring"), ("all_reduce", "halving_doubling"), ("broadcast", "tree"), ("all_to_all", "mesh"),
    ("barrier", "dissemination"), ("reduce", "double_tree"),
]  # fmt: skip
ASSUMED = [
    assumptions("published"), assumptions("common"), assumptions("published", initial="warm"),
    assumptions("published", compute="chain", reconfiguration_charge="every_step"),
    assumptions("common", control_order="beside_setting", receive_buffers="separate"),
    assumptions("common", compute="none", control="none", initial="warm"), assumptions("published", prepare="early"),
]  # fmt: skip


def circuits_of(specification, collective, algorithm):
    """A plan, or None where the fabric cannot carry it."""
    try:
        return opticcl.compile(specification, collective, "1 MB", algorithm=algorithm).circuits
    except UnsupportedError:
        return None


@pytest.mark.parametrize(
    "specification", [*SPECIFICATIONS, *(pytest.param(one, marks=pytest.mark.deep) for one in LARGER)]
)
def test_programmes_are_lawful(specification):
    """By every engine, under different charges; the last event is the total of the timeline."""
    checked = 0
    for i, case in enumerate(CASES):
        plan = circuits_of(specification, *case)
        for j, engine in enumerate(ENGINES if plan else ()):
            assumed = ASSUMED[(i + j) % len(ASSUMED)]
            size = (0, 10**3, 10**6)[(i + j) % 3]
            found = programme(plan, size, assumed, engine=engine)
            total_s = simulate(plan, size, assumed, engine=engine).timeline.total_s
            assert found.total_s == pytest.approx(total_s, rel=1e-9, abs=1e-15)
            verdict = check_programme(plan, found, rules_of(found))
            assert verdict.ok, f"{case} {engine}: {verdict}"
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_devices_are_never_slower_than_reconfigurations(specification):
    """Device engine <= asynchronous <= barrier."""
    for i, case in enumerate(CASES):
        plan = circuits_of(specification, *case)
        if plan is None:
            continue
        assumed, size = ASSUMED[i % len(ASSUMED)], (10**6, 10**3, 0)[i % 3]
        device, free, barrier = (
            simulate(plan, size, assumed, engine=engine).timeline.total_s
            for engine in ("device", "flow:mode=asynchronous", "flow")
        )
        assert device <= free * (1 + 1e-12), case
        assert free <= barrier * (1 + 1e-11), case


def test_nothing_that_stands_is_charged():
    """A broadcast along a ring of 8 nodes sets all of its circuits at once: 25 us and seven transfers of 50 ns."""
    plan = opticcl.compile("terarack:nodes=8", "broadcast", "1 KB", algorithm="ring")
    as_printed = assumptions("published", prepare="early")
    assert plan.simulate(assumptions=as_printed).total_s == pytest.approx(175.35e-6, rel=1e-6)
    assert plan.simulate("device", assumptions=as_printed).total_s == pytest.approx(25.35e-6, rel=1e-6)
    assert plan.simulate("device", assumptions="published").total_s == pytest.approx(175.35e-6, rel=1e-6)


def test_sums_share_the_memory_of_their_rank():
    """Asynchronously, sums of different steps queue."""
    plan = opticcl.compile("sipac:radix=3,levels=2", "all_reduce", "1 MB", algorithm="tree")
    assert plan.simulate("flow", mode="asynchronous", assumptions="published").total_s >= 105.467e-6


def test_light_begins_with_a_slot():
    """After sums, which end within one."""
    plan = opticcl.compile("ramp:groups=3,racks=2,wavelengths=6", "all_reduce", "1 MB", algorithm="ramp")
    slot_s = plan.fabric.slot_s
    for engine in ENGINES:
        start = plan.programme(engine, assumptions="common").circuits.start_s
        assert start == pytest.approx(slot_s * (start / slot_s).round(), rel=1e-9)
    assert plan.simulate(assumptions="published").totals()["compute_s"] % slot_s > 1e-12


def test_routes_are_part_of_what_stands():
    """Random routes of LIGHTPATH: another path is a change of switches."""
    plan = opticcl.compile("lightpath:shape=3x3,waveguides=1,routing=random", "broadcast", "1 KB", algorithm="ring")
    found = plan.programme()
    assert check_programme(plan.circuits, found, rules_of(found)).ok
    assert len(found.devices)


def test_repeated_steps_are_stored_once():
    """A ring of 64 nodes: the step that sets its circuits, and the others."""
    plan = opticcl.compile("terarack:nodes=64", "all_reduce", "1 MB", algorithm="ring")
    found = plan.programme()
    assert found.runs.repeats.tolist() == [1, 62, 63]
    assert (found.devices.step == -1).all()


def test_a_packet_network_has_no_programme():
    """Its links are shared; an engine without programmes says so."""
    plan = opticcl.compile("torus:shape=2x2", "all_reduce", "1 MB")
    for engine in ENGINES:
        with pytest.raises(UnsupportedError, match="packets share the links of torus"):
            plan.programme(engine)


@pytest.mark.parametrize(("warm", "engine"), list(product([False, True], ENGINES)))
def test_warm_devices_stand_from_the_start(warm, engine):
    """The first setting is charged or not."""
    plan = opticcl.compile("terarack:nodes=4", "all_gather", "1 KB", algorithm="ring")
    found = plan.programme(engine, initial="warm" if warm else "cold")
    assert (found.circuits.start_s.min() < 25e-6) == warm
    assert (found.devices.done_s == (0.0 if warm else 25e-6)).all()
    assert check_programme(plan.circuits, found, rules_of(found)).changes == (0 if warm else len(found.devices))


def test_devices_must_have_names():
    """A fabric that only says how long a reconfiguration takes."""
    plan = opticcl.compile("terarack:nodes=4", "all_reduce", "1 MB").circuits
    unnamed = replace(plan, fabric=altered(plan.fabric, devices=()))
    with pytest.raises(UnsupportedError, match="terarack names no devices"):
        simulate(unnamed, 1000, engine="device", assumed="published")


@pytest.mark.parametrize("engine", ["flow:mode=asynchronous", "device"])
def test_idle_circuits_delay_what_follows_them_in_the_timeline_too(engine):
    """On a ring of TeraRack, whose circuits of all steps are set at the start."""
    plan = opticcl.compile("terarack:nodes=8", "reduce_scatter", "1 MB", algorithm="two_sided_ring")
    times = plan.simulate(engine)
    assert times.total_s == pytest.approx(plan.programme(engine).total_s, rel=1e-12)
    assert times.totals()["reconfiguration_s"] == pytest.approx(plan.fabric.reconfiguration_s)


def earlier(plan, found, since_s, by_s, devices):
    """The programme with everything that begins from a time on earlier, its devices too or not, and its last event as total."""
    circuits, data, slot_s = found.circuits, found.data, plan.fabric.slot_s
    places = zip(circuits.step.tolist(), circuits.round.tolist(), circuits.row.tolist(), strict=True)
    transfer = np.array([plan.rounds(step)[number].transfer[row] for step, number, row in places])
    moved = circuits.start_s >= since_s
    stay = set(zip(circuits.step[~moved].tolist(), transfer[~moved].tolist(), strict=True))
    gone = np.array([arrival not in stay for arrival in zip(data.step.tolist(), data.transfer.tolist(), strict=True)])
    slots = round(by_s / slot_s) if slot_s else 0
    changed = [(circuits, "start_s end_s", moved), (data, "arrived_s summed_s", gone)]
    changed.append((found.control, "begin_s end_s", found.control.begin_s >= since_s))
    changed.append((found.devices, "begin_s done_s", (found.devices.begin_s >= since_s) & devices))
    circuits, data, control, settings = (
        replace(table, **{name: getattr(table, name) - by_s * rows for name in names.split()})
        for table, names, rows in changed
    )
    last_s = max(float(np.nanmax(circuits.end_s)), float(data.summed_s.max()))
    circuits = replace(circuits, slot=circuits.slot - slots * moved)
    return replace(found, circuits=circuits, data=data, control=control, devices=settings, total_s=last_s)


@pytest.mark.parametrize("specification", [SPECIFICATIONS[i] for i in (0, 3, 7, 8)])
def test_the_device_engine_waits_for_a_reason(specification):
    """Its programme breaks a law with everything from some time on earlier; what else is accepted so is no faster than it."""
    checked = 0
    for i, case in enumerate(CASES[1:4]):
        plan = circuits_of(specification, *case)
        if plan is None:
            continue
        assumed = (ASSUMED[1], ASSUMED[6])[i % 2]
        fastest_s = programme(plan, 10**6, assumed, engine="device").total_s
        for engine in ("device", "flow:mode=asynchronous"):
            found = programme(plan, 10**6, assumed, engine=engine)
            starts, by_s = np.unique(found.circuits.start_s), plan.fabric.slot_s or found.total_s / 1e3
            for since_s, devices in product(starts[[len(starts) // 3, len(starts) // 2, -1]].tolist(), (True, False)):
                if since_s >= by_s:
                    sooner = earlier(plan, found, since_s, by_s, devices)
                    accepted = check_programme(plan, sooner, rules_of(found)).ok
                    assert not accepted or (engine != "device" and sooner.total_s >= fastest_s * (1 - 1e-9)), case
                    checked += 1
    assert checked >= 20
