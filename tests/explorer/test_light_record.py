"""The light of a plan as the page draws it: rounds, settings, and where a wrong plan clashes."""

import numpy as np
import pytest

import opticcl as library
from opticcl.errors import ParameterError
from opticcl.explorer import light
from opticcl.explorer.light import clashes, light_record
from opticcl.ir import Circuits
from opticcl.plans.plan import read
from opticcl.verify import verify

PLANS = {
    "terarack:nodes=8": "wrht",
    "ramp:groups=3,racks=3,wavelengths=6": "ramp",
    "lightpath:shape=4x4": "lumorph",
    "oddl:shape=4x4": "auto",
    "sipac:radix=4,levels=2": "sipco",
    "ocs:nodes=8": "auto",
    "torus:shape=4x4": "ring",
}


def record(path=None, run=0, round=None, **given):
    """Of a plan file, or of a plan that is compiled."""
    named = {"collective": "all_reduce", "size": "1MB", **given}
    plan = library.compile(**named) if path is None else read(path)
    return light_record(plan, plan.verify(), {} if round is None else {"run": run, "round": round})


@pytest.mark.parametrize("fabric", PLANS)
def test_rounds_are_those_of_the_plan(fabric):
    """The circuits of the last round of each run, their settings and fibres; a right plan has no clash."""
    given = {"fabric": fabric, "algorithm": PLANS[fabric], "size": "1MB"}
    plan = library.compile(fabric, "all_reduce", "1MB", algorithm=PLANS[fabric])
    whole = record(**given)
    assert whole["verdict"]["ok"]
    assert sum((one["last"] - one["first"] + 1) * one["rounds"] for one in whole["runs"]) == plan.simulate().num_rounds
    assert whole["layout"]["kind"] == {"terarack": "ring", "lightpath": "grid"}.get(plan.fabric.name, "circle")
    for run, one in enumerate(whole["runs"]):
        shown = record(**given, run=run, round=one["rounds"] - 1)
        circuits = plan.circuits.rounds(one["first"])[-1]
        assert shown["total"] == len(circuits)
        assert (shown["src"], shown["dst"]) == (circuits.src.tolist(), circuits.dst.tolist())
        assert [use["setting"] for use in shown["settings"]] == [
            use.setting.tolist() for use in plan.fabric.settings(circuits)
        ]
        assert shown["clashes"] == []
        assert clashes(plan.fabric, circuits) == []
        assert all(max(use["circuit"], default=0) < len(circuits) for use in (*shown["used"], *shown["settings"]))


@pytest.mark.parametrize("field", ["run", "round"])
def test_a_round_that_does_not_exist_is_refused(field):
    """By its name and number."""
    with pytest.raises(ParameterError, match=f"{field}: 99 is none of"):
        record(**{"fabric": "ideal:nodes=4", "algorithm": "ring", "run": 0, "round": 0, field: 99})


def test_a_wrong_plan_clashes_where_the_judge_finds_it(tmp_path):
    """Two circuits on one wavelength: the same step, fibre and wavelength, with both circuits."""
    plan = library.compile("terarack:nodes=8", "all_to_all", "1MB", algorithm="mesh")
    path = tmp_path / "plan.csv"
    plan.save(path)
    lines = path.read_text("utf-8").splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.startswith("step,")]
    column = lines[head].split(",").index("wavelength_lo")
    first, second = (lines[head + row].split(",") for row in (10, 11))
    second[column] = first[column]
    lines[head + 11] = ",".join(second)
    path.write_text("\n".join(lines) + "\n")
    whole = record(path=str(path))
    violations = whole["verdict"]["violations"]
    assert violations
    assert not whole["verdict"]["ok"]
    shown = record(path=str(path), run=0, round=violations[0]["round"])
    assert shown["violations"][0]["where"] == violations[0]["where"]
    pairs = {(shown["src"][i], shown["dst"][i]) for one in shown["clashes"] for i in one["circuits"]}
    assert (int(first[3]), int(first[4])) in pairs or len(pairs) >= 2
    named = {f"{one['kind']} {one['index']} wavelength {one['wavelength']}" for one in shown["clashes"]}
    assert violations[0]["where"] in named


def test_large_rounds_are_thinned_and_clashing_circuits_kept(monkeypatch):
    """Both counts are given."""
    monkeypatch.setattr(light, "MOST_DRAWN", 20)
    assert light._thinned(20, np.array([3])).tolist() == list(range(20))
    rows = light._thinned(1000, np.array([501, 502]))
    assert len(rows) == 20
    assert {0, 501, 502, 999} <= set(rows.tolist())
    shown = record(fabric="terarack:nodes=16", algorithm="wrht", run=0, round=0)
    assert (shown["total"], len(shown["src"])) == (240, 20)


def test_signals_that_split_do_not_clash():
    """Nor do circuits on nodes that the machine does not have stop the others from being shown."""
    plan = library.compile("sipac:radix=4,levels=2", "broadcast", "1MB")
    assert verify(plan.circuits).ok
    for step in range(plan.schedule.num_steps):
        for circuits in plan.circuits.rounds(step):
            assert clashes(plan.fabric, circuits) == []
    beyond = Circuits.of([0], np.array([0]), np.array([1]), wavelength_lo=10**6)
    assert clashes(library.fabric("lightpath:shape=2x2"), beyond) == []
