"""Plans are values: equal if they do the same, and pickled to other processes."""

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

import opticcl
from opticcl.circuits import lower
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job
from opticcl.ir import CircuitPlan, Transfers
from opticcl.schedule import generate
from opticcl.synthesis import synthesize

SMALL = {"ramp": "ramp:groups=2,racks=2,wavelengths=4", "sipac": "sipac:radix=4,levels=2"}


def small(name):
    """A machine of 16 nodes."""
    return fabric(SMALL[name]) if name in SMALL else fabric_at_scale(name, 16)


@pytest.mark.parametrize("name", FABRICS.names())
def test_plans_of_every_fabric_pickle(name):
    """The copy is equal to the plan, has the same circuits and verifies."""
    plan = opticcl.compile(small(name), "all_reduce", "1 MB")
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert hash(copy) == hash(plan)
    assert copy.verify().ok
    assert copy.simulate(assumptions="published").total_s == plan.simulate(assumptions="published").total_s


def test_a_pickled_plan_verifies_in_another_process(tmp_path):
    """Of the five systems and of a fabric of packets, also of part of a machine."""
    systems = ("lightpath", "oddl", "ramp", "sipac", "terarack", "fat_tree")
    plans = [opticcl.compile(small(name), "all_gather", "1 MB") for name in systems]
    plans.append(opticcl.compile(job(fabric("oddl:shape=4x4"), [0, 1, 3, 7, 5, 4]), "all_reduce", 1000))
    file = tmp_path / "plans.pickle"
    file.write_bytes(pickle.dumps(plans))
    code = f"import pickle; print(all(p.verify().ok for p in pickle.load(open({str(file)!r}, 'rb'))))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_plans_without_an_algorithm_pickle_with_their_rows(tmp_path):
    """Those that were synthesized, and those that were read from a file."""
    made = synthesize("lightpath:shape=2x2", "all_gather", method="constructed").circuits
    assert pickle.loads(pickle.dumps(made)) == made
    opticcl.compile("sipac:radix=3,levels=2", "all_to_all", "9 kB", algorithm="sipco").save(tmp_path / "plan.json")
    read = opticcl.load(tmp_path / "plan.json")
    assert pickle.loads(pickle.dumps(read)) == read


def test_other_plans_are_not_equal():
    """Another size, algorithm, fabric, or one circuit changed."""
    plan = opticcl.compile("terarack:nodes=8", "all_reduce", "1 MB", algorithm="ring")
    assert plan != opticcl.compile("terarack:nodes=8", "all_reduce", "2 MB", algorithm="ring")
    assert plan != opticcl.compile("terarack:nodes=8", "all_reduce", "1 MB", algorithm="wrht")
    assert plan != opticcl.compile("terarack:nodes=8,striping=yes", "all_reduce", "1 MB", algorithm="ring")
    light = plan.circuits

    def other_light(i):
        return tuple(replace(c, wavelength_lo=c.wavelength_lo + 1) for c in light.rounds(i))

    assert light != CircuitPlan(light.fabric, light.schedule, other_light)
    assert light == CircuitPlan(light.fabric, light.schedule, lambda i: light.rounds(i))


def test_a_changed_step_function_travels_as_it_is():
    """A schedule whose steps were replaced pickles with the steps that it has, not with those of its algorithm."""
    made = generate("ring", "all_reduce", fabric("ideal:nodes=4"))

    def reversed_rows(i):
        t = made.step(i)
        return Transfers.of(t.src[::-1], t.dst[::-1], t.chunk_lo[::-1], t.chunk_n[::-1], t.op[::-1])

    changed = replace(made, step=reversed_rows)
    copy = pickle.loads(pickle.dumps(lower(fabric("ideal:nodes=4"), changed)))
    assert copy.schedule == changed
    assert copy.schedule != made
