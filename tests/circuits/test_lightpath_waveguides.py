"""LIGHTPATH where a switch moves a whole waveguide: reference times, waveguides of plans, files, light, tables, mutants."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.execute.test_light import data_of

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, UnsupportedError
from opticcl.execute.light import execute_by_light
from opticcl.fabrics import fabric, job
from opticcl.formats.device_tables import instructions_of_node
from opticcl.formats.plan_file import read_plan_file, write_plan_file
from opticcl.plans.tables import TableMaker
from opticcl.simulate import programme
from opticcl.verify import verify
from opticcl.verify.tables.devices import check_tables
from opticcl.verify.time.isolation import verify_together
from opticcl.verify.time.programme import check_programme, rules_of

SMALL = "lightpath:shape=3x4,lasers=4,waveguides=2,switch_unit=waveguide"


def plan_on(where, collective="all_reduce", algorithm="mesh"):
    """A plan of circuits."""
    return opticcl.compile(where, collective, "100 KB", algorithm=algorithm).circuits


def rules(plan):
    """Names of the broken rules."""
    return {violation.rule for violation in verify(plan).violations}


@pytest.mark.parametrize(("unit", "rounds", "due_s"), [("wavelength", 16, 608.8e-6), ("waveguide", 40, 1.46e-3)])
def test_all_reduce_by_mesh_in_both_readings(unit, rounds, due_s):
    """64 MB on 16 x 16 tiles: 128 circuits cross the most congested edge, which 40 waveguides carry at once, or in four rounds.

    Rounds of a step are the least: of the 16 turns of lasers, each needs the circuits of its most congested edge over 40.
    """
    plan = opticcl.compile(f"lightpath:shape=16x16,switch_unit={unit}", "all_reduce", "64 MB", algorithm="mesh")
    found = plan.simulate(assumptions="published")
    assert [len(plan.circuits.rounds(i)) for i in range(plan.schedule.num_steps)] == [rounds, rounds]
    assert found.total_s == pytest.approx(due_s, rel=1e-3)


@pytest.mark.parametrize("algorithm", ["mesh", "ring", "lumorph:radix=4", "double_tree"])
def test_both_judges_accept_what_the_rule_makes(algorithm):
    """By circuits and by light, on few waveguides of which some are dead, with dead lasers."""
    for hurt in ("", ",dead_waveguides=0-1:1+5-6:1,dead_lasers=2:1+7:0-1"):
        plan = opticcl.compile(SMALL + hurt, "all_reduce", "1 KB", algorithm=algorithm)
        plan.verify(emulate=True).raise_if_bad()


def test_a_circuit_keeps_its_waveguide():
    """One number a circuit; circuits of one edge, waveguide and round have one path."""
    plan = plan_on(SMALL)
    for circuits in plan.rounds(0):
        cell = circuits.hops * 2 + circuits.waveguide[circuits.hop_owner()]
        order = np.argsort(cell, kind="stable")
        again = cell[order[1:]] == cell[order[:-1]]
        one, other = (circuits.hop_owner()[order[side][again]] for side in (slice(1, None), slice(-1)))
        assert circuits.same_path(one, other).all()
    assert len(plan.rounds(0)) > 1


def test_runs_of_lasers_of_one_circuit_share_its_waveguide():
    """A dead laser in the middle: two circuits of one path and one waveguide."""
    plan = plan_on("lightpath:shape=1x2,lasers=3,waveguides=1,dead_lasers=0:1,switch_unit=waveguide", algorithm="ring")
    (circuits,) = plan.rounds(0)
    assert np.bincount(circuits.src).tolist() == [2, 1]
    assert circuits.waveguide.tolist() == [0, 0, 0]
    assert verify(plan).ok


def test_a_path_without_a_waveguide_that_works():
    """Waveguide 0 is dead on one edge and 1 on the next: each works alone, no waveguide from end to end."""
    where = "lightpath:shape=1x3,waveguides=2,switch_unit={},failed=waveguide:0+waveguide:3"
    with pytest.raises(UnsupportedError, match=r"no waveguide works on all edges from node 0 .* to node 2"):
        plan_on(where.format("waveguide")).rounds(0)
    assert verify(plan_on(where.format("wavelength"))).ok


# --- mutants ------------------------------------------------------------------------------------------------------------


def with_waveguides(plan, change):
    """The plan whose first round of the first step has other waveguides."""

    def rounds(step):
        first, *rest = plan.rounds(step)
        return (replace(first, waveguide=change(first)), *rest) if step == 0 else (first, *rest)

    return replace(plan, rounds=rounds)


def test_light_shows_two_settings_of_one_switch():
    """All on waveguide 0: the second judge names the device."""
    plan = with_waveguides(plan_on(SMALL, algorithm="lumorph:radix=4"), lambda c: np.zeros_like(c.waveguide))
    verdict = opticcl.Plan(plan, 1000).verify(emulate=True)
    assert "setting_clash" in {violation.rule for violation in verdict.violations}


def test_two_jobs_on_one_waveguide():
    """One job sends from 0 to 2 on laser 0, the other from 1 to 3 on laser 1: one waveguide, two settings of its switches."""
    where = "lightpath:shape=1x4,lasers=2,waveguides=1,switch_unit={}"

    def sharing(unit):
        plans = [plan_on(job(fabric(where.format(unit)), nodes), "all_gather", "ring") for nodes in ([0, 2], [1, 3])]

        def on_laser(plan, laser):
            return replace(
                plan,
                rounds=lambda i: tuple(
                    replace(c, wavelength_lo=np.full(len(c), laser, np.int32), wavelength_n=np.ones(len(c), np.int32))
                    for c in plan.rounds(i)
                ),
            )

        return verify_together([on_laser(plan, laser) for laser, plan in enumerate(plans)])

    assert sharing("wavelength").ok
    (violation,) = sharing("waveguide").violations
    assert (violation.rule, violation.expected) == ("shared_between_jobs", "the setting of one job")


# --- files, light, tables, time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_plan_files_have_a_column(tmp_path, suffix):
    """Written and read; without the column no switch can be set, and the plan is refused."""
    plan, path = plan_on(SMALL), tmp_path / f"plan.{suffix}"
    write_plan_file(path, plan, 1000, "mesh")
    read = read_plan_file(path).plan
    assert np.array_equal(read.rounds(0)[1].waveguide, plan.rounds(0)[1].waveguide)
    assert verify(read).ok
    if suffix == "json":
        whole = json.loads(path.read_text())
        whole["columns"]["waveguide"][0] = 7
        path.write_text(json.dumps(whole))
        assert rules(read_plan_file(path).plan) == {"waveguide_unassigned"}
        del whole["columns"]["waveguide"]
        path.write_text(json.dumps(whole))
        assert rules(read_plan_file(path).plan) == {"waveguide_unassigned"}


def test_instructions_of_a_node_name_its_waveguides():
    """Each send and receive of node 1, as its circuits have them."""
    plan = plan_on(SMALL)
    rows = instructions_of_node(plan, 1200, 1)
    first = plan.rounds(0)[0]
    mine = (first.src == 1) | (first.dst == 1)
    assert [row["waveguide"] for row in rows if row["step"] == row["round"] == 0] == first.waveguide[mine].tolist()


def test_data_move_as_light():
    """All bytes arrive; a switch that is set in another way shows in the data."""
    plan = plan_on(SMALL, algorithm="lumorph:radix=4")
    arrays, due = data_of(plan, 24)
    results, light = execute_by_light(plan, arrays)
    assert light.clean
    assert all(np.array_equal(result, due[0]) for result in results)
    (use, *_) = (use for use in plan.fabric.states(plan.rounds(0)[0]) if use.kind == "mzi")
    results, light = execute_by_light(plan, arrays, changes=[f"mzi:{use.index[0]}={(use.setting[0] + 1) % 4}"])
    assert not light.clean
    assert not all(np.array_equal(result, due[0]) for result in results)


def test_device_tables_set_the_switches():
    """Tables of lasers, selects and MZIs are right by themselves, and give each waveguide one setting at a time."""
    tables = TableMaker(opticcl.compile(SMALL, "all_reduce", "1 KB", algorithm="lumorph:radix=4")).tables()
    assert check_tables(tables).ok
    groups = [tables.fabric.netlist().groups[k].name for k in np.unique(tables.settings.kind)]
    assert {"laser_switch", "select", "mzi"} <= set(groups)


@pytest.mark.parametrize("engine", ["closed_form", "device"])
def test_programmes_are_lawful(engine):
    """A circuit that keeps its path and changes its waveguide waits for switches."""
    plan = plan_on(SMALL, "all_to_all")
    found = programme(plan, 10**5, assumptions("common"), engine=engine)
    assert check_programme(plan, found, rules_of(found)).ok
    other = with_waveguides(plan, lambda c: 1 - c.waveguide)
    assert verify(other).ok
    assert not check_programme(other, found, rules_of(found)).ok


def test_the_former_name_is_refused(opticcl):
    """With what to write in its place."""
    for value in ("circuit", "wavelength"):
        result = opticcl("simulate", "-f", f"lightpath:waveguide_sharing={value}")
        assert result.returncode == 2
        assert "switch_unit=wavelength" in result.stderr
        assert len(result.stderr.splitlines()) == 1
    with pytest.raises(FabricError, match="switch_unit"):
        fabric("lightpath", waveguide_sharing="circuit")
