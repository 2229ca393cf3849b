"""Data that move only as light: right where light is right, and wrong where one device is set in another way."""

import re
from dataclasses import replace

import numpy as np
import pytest

import opticcl
from opticcl.collective import collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.execute.in_process import execute
from opticcl.execute.light import execute_by_light
from opticcl.execute.reference import expected_results, random_arrays, wrong_ranks
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.optics.device_changes import device_change
from opticcl.optics.elements import KINDS
from opticcl.optics.rounds import lanes_of, needed_settings, round_settings
from opticcl.plans.plan import Plan

SPECIFICATIONS = [
    "ramp:groups=2,racks=2,wavelengths=4", "ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=2",
    "ramp:groups=4,racks=2,wavelengths=4,subnet=route_broadcast", "ramp:groups=2,racks=2,wavelengths=4,subnet=route_switch",
    "sipac:radix=3,levels=2,wavelengths=6", "sipac:radix=4,levels=1,channels=retuned",
    "sipac:radix=4,levels=1,channels=ring",
    "terarack:nodes=7,wavelengths=3", "terarack:nodes=6,rings=2,wavelengths=2,striping=yes",
    "oddl:shape=2x4", "lightpath:shape=3x3,lasers=3,waveguides=1", "lightpath:shape=3x4,dead_tiles=5",
    "lightpath:shape=2x4,lasers=3,waveguides=2,switch_unit=waveguide",
]  # fmt: skip
COLLECTIVES = ("all_reduce", "all_to_all", "broadcast", "reduce_scatter", "gather", "scatter")


def data_of(plan, elements=101, dtype="int64"):
    """Arrays for a plan, and what they have to become."""
    wanted = plan.schedule.collective
    arrays = random_arrays(wanted, elements * np.dtype(dtype).itemsize, dtype, 1)
    return arrays, expected_results(wanted, arrays)


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_every_collective_is_right(specification):
    """Exactly what NumPy computes, and every photodiode receives its signal alone."""
    done = 0
    for wanted in COLLECTIVES:
        try:
            plan = opticcl.compile(specification, wanted, "1 KB").circuits
        except UnsupportedError:
            continue
        arrays, due = data_of(plan)
        results, light = execute_by_light(plan, arrays)
        assert light.clean
        assert light.signals >= light.rounds
        assert not wrong_ranks(results, due, arrays), wanted
        done += 1
    assert done >= 4


@pytest.mark.deep
@pytest.mark.parametrize("name", ["lightpath", "oddl", "ramp", "sipac", "terarack"])
def test_bytes_of_64_nodes(name):
    """All-reduce and all-to-all, by what `auto` takes."""
    for wanted in ("all_reduce", "all_to_all"):
        plan = opticcl.compile(fabric_at_scale(name, 64), wanted, "100 KB").circuits
        arrays, due = data_of(plan, 1003)
        results, light = execute_by_light(plan, arrays)
        assert light.clean
        assert not wrong_ranks(results, due, arrays)


def test_sums_of_floats_are_those_of_the_memory():
    """Bit by bit: additions are in the order of the schedule."""
    plan = opticcl.compile("sipac:radix=3,levels=2,wavelengths=6", "all_reduce", "1 KB").circuits
    arrays = np.random.default_rng(0).normal(size=(9, 77)).astype(np.float32)
    by_light, _ = execute_by_light(plan, arrays)
    in_memory = execute(plan.schedule, arrays)
    assert all(np.array_equal(one, other) for one, other in zip(by_light, in_memory, strict=True))


def altered(plan, random):
    """A device that the plan sets, set in another way, as a user writes it."""
    made, netlist = plan.fabric, plan.fabric.netlist()
    step = int(random.integers(plan.schedule.num_steps))
    rounds = plan.rounds(step)
    circuits = rounds[int(random.integers(len(rounds)))]
    lanes = lanes_of(made, circuits, plan.schedule.step(step))
    tables = [round_settings(made, netlist, circuits, lanes), needed_settings(made, netlist, circuits, True)]
    rows = [
        (netlist.groups[g], n, i, v)
        for table in tables
        for g, n, i, v in zip(
            table.kind.tolist(), table.device.tolist(), table.index.tolist(), table.setting.tolist(), strict=True
        )
        if netlist.groups[g].kind in ("emitter", "laser", "gate", "ringbank", "wss", "filter", "mzi", "select")
    ]
    group, number, index, value = rows[int(random.integers(len(rows)))]
    other = -1 if group.kind == "emitter" or value != 0 else value + 1
    return f"{group.name}:{number}.{index}={1 - value if group.kind in ('gate', 'ringbank') else other}"


ALTERED = [
    text for text in SPECIFICATIONS if "sipac" not in text and "=34" not in text
]  # passive switches are never set


@pytest.mark.parametrize("specification", ALTERED)
def test_one_altered_device_shows(specification):
    """Never clean light and wrong data; eight of ten give wrong data."""
    random, wrong, count = np.random.default_rng(0), 0, 0
    for wanted in ("all_reduce", "all_to_all"):
        plan = opticcl.compile(specification, wanted, "1 KB").circuits
        arrays, due = data_of(plan, 20)
        for _ in range(4):
            change = altered(plan, random)
            results, light = execute_by_light(plan, arrays, changes=[change])
            differs = bool(wrong_ranks(results, due, arrays))
            assert not (differs and light.clean), change
            wrong, count = wrong + differs, count + 1
    assert wrong >= 0.8 * count, (wrong, count)


def test_light_that_meets_is_the_exclusive_or():
    """RAMP: a gate that stays open lets a second signal in; where both carry the same, nothing is left."""
    plan = opticcl.compile("ramp:groups=2,racks=2,wavelengths=2", "all_to_all", "1 KB", algorithm="mesh").circuits
    arrays, due = data_of(plan)
    gates = [f"rx_gate:{gate}=1" for gate in range(fabric("ramp:groups=2,racks=2,wavelengths=2").num_nodes * 4)]
    results, light = execute_by_light(plan, arrays, changes=gates)
    assert {violation.rule for violation in light.violations} >= {"light_collided"}
    assert wrong_ranks(results, due, arrays)


def test_a_schedule_that_is_no_plan_is_refused():
    """All-to-all whose transfers say other sizes than they carry."""
    plan = opticcl.compile("terarack:nodes=4,wavelengths=2", "all_to_all", "1 KB", algorithm="ring").circuits
    arrays, _ = data_of(plan)

    def doubled(i):
        step = plan.schedule.step(i)
        parts = np.ones(len(step), np.int32) if step.parts is None else step.parts
        return Transfers(step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, 2 * parts)

    with pytest.raises(ParameterError, match="the messages of step 0 are not its transfers; verify the plan first"):
        execute_by_light(replace(plan, schedule=replace(plan.schedule, step=doubled)), arrays)


# --- devices as a user writes them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("specification", "text", "words"),
    [
        ("ramp:groups=2,racks=2,wavelengths=2", "tx_gate=0", "'tx_gate=0' is not group:device=state; try laser:0=-1"),
        ("ramp:groups=2,racks=2,wavelengths=2", "gate:0=0", "no devices 'gate' that can be set; known: laser, modulator"),
        ("ramp:groups=2,racks=2,wavelengths=2", "tx_gate:32=0", "tx_gate:32 does not exist; tx_gate has 0 to 31"),
        ("ramp:groups=2,racks=2,wavelengths=2", "tx_gate:3=2", "a state of tx_gate is 0 to 1, not 2"),
        ("ramp:groups=2,racks=2,wavelengths=2", "tx_gate:3.1=0", "tx_gate has places 0 to 0, not 1"),
        ("ramp:groups=2,racks=2,wavelengths=2", "filter:0=1", "no devices 'filter' that can be set"),
        ("terarack:nodes=3,wavelengths=2", "transmitter:0=4", "a state of transmitter is -1 to -1, not 4"),
        ("terarack:nodes=3,wavelengths=2", "drop:1.2=1", "drop has places 0 to 1, not 2"),
        ("terarack:nodes=3,wavelengths=2", "photodiode:0=1", "known: transmitter, add, drop"),
    ],
)  # fmt: skip
def test_devices_that_cannot_be_set(specification, text, words):
    """One line with what is known."""
    with pytest.raises(ParameterError, match=re.escape(words)) as caught:
        device_change(fabric(specification).netlist(), text)
    assert "\n" not in str(caught.value)


def test_every_kind_with_a_state_can_be_set_or_is_an_end():
    """But for those that carry data or end light."""
    kept = {"modulator", "photodiode", "control"}
    assert {kind for kind, one in KINDS.items() if one.about} == {
        "emitter", "laser", "gate", "ringbank", "wss", "filter", "mzi", "select", "matrix", "relay", *kept
    }  # fmt: skip


# --- the command -----------------------------------------------------------------------------------------------------------

RAMP = ("-f", "ramp:groups=2,racks=2,wavelengths=4", "-a", "ramp", "-s", "2KB")


def test_execute_by_light(opticcl, answer):
    """Right, with what the light did; wrong with a dark laser, with the photodiode and the circuit."""
    found, code = answer("execute", *RAMP, "--transport", "light")
    assert (code, found["ok"], found["wrong_ranks"], found["light"]["violations"]) == (0, True, [], [])
    done = opticcl("execute", *RAMP, "--transport", "light", "--set-device", "laser:0=-1")
    assert done.returncode == 1
    assert "light_missing: step" in done.stdout
    assert re.search(r"wrong: \d+ of 16 ranks differ from NumPy", done.stdout)
    found, code = answer("execute", *RAMP, "--transport", "light", "--set-device", "laser:0=-1")
    assert (code, found["ok"]) == (1, False)
    assert found["light"]["violations"][0]["rule"] == "light_missing"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((*RAMP, "--set-device", "laser:0=1"), "--set-device is of another transport; give --transport light too"),
        ((*RAMP, "--transport", "light", "--set-device", "laser:0=9"), "a state of laser is -1 to 3, not 9"),
        (("-f", "torus:shape=2x2", "--transport", "light"), "torus: no light from end to end"),
        *(
            (("-f", where, "--transport", "light", "--set-device", "none:0=0"), "has no devices 'none' that can be set")
            for where in ("sipac:radix=3,levels=2", "terarack:nodes=8", "lightpath:shape=2x4", "oddl:shape=2x4")
        ),
    ],
)
def test_refused(opticcl, words, text):
    """Before anything is executed."""
    done = opticcl("execute", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_a_dark_modulator_sends_nothing(opticcl):
    """On SiPAC no device is set during a job; its modulators can fail."""
    done = opticcl(
        "execute", "-f", "sipac:radix=3,levels=2", "-s", "1KB", "--transport", "light", "--set-device", "modulator:3=-1"
    )
    assert done.returncode == 1
    assert "light_wrong: step 0" in done.stdout


def test_verify_with_the_second_judge(opticcl, answer, tmp_path):
    """A plan file: accepted; --time and --emulate are two questions."""
    made = opticcl("compile", "-f", "terarack:nodes=6,wavelengths=2", "-a", "ring", "-o", tmp_path / "p.json")
    assert made.returncode == 0, made.stderr
    found, code = answer("verify", tmp_path / "p.json", "--emulate")
    assert (code, found["ok"]) == (0, True)
    assert "emulated: " in found["notes"][-1]
    done = opticcl("verify", tmp_path / "p.json", "--emulate", "--time", tmp_path / "p.json")
    assert done.returncode == 2
    assert "--time verifies times alone" in done.stderr


def test_verify_names_device_and_both_circuits(opticcl, tmp_path):
    """A plan file in which two circuits are added to one wavelength of a fibre: exit code 1."""
    made = fabric("terarack:nodes=6,wavelengths=2")
    step = Transfers.of([0, 1], [2, 3], [0, 1], 1, Op.COPY)
    light = Circuits.of([0, 1], [0, 1], [2, 3], 0, 1, 1, [[0, 1], [1, 2]])
    schedule = Schedule("by hand", collective("all_gather", 6, 6), 1, lambda i: step)
    Plan(CircuitPlan(made, schedule, lambda i: (light,)), 6000).save(tmp_path / "wrong.json")
    done = opticcl("verify", tmp_path / "wrong.json", "--emulate")
    assert done.returncode == 1
    where = "setting_clash: step 0 round 0, drop:4 (node 2 port 0, wavelength 1)"
    assert f"{where}: expected state 1 for 0 -> 2, found state 0 for 1 -> 3" in done.stdout
    assert "wavelength_clash" in done.stdout
