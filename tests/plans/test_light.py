"""The light of a plan is one answer: every verb gives the margin that `opticcl machine budget` computes for it."""

import pytest

from opticcl.errors import FabricError, UnknownNameError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale
from opticcl.plans.light import Light, light_of_machine, light_of_plan, light_rule
from opticcl.plans.plan import compile
from opticcl.studies.space.answers import fastest_map
from opticcl.studies.space.design import read_design
from opticcl.studies.space.runner import read_rows, run_space

SIZES = ("1KB", "1MB", "100MB")
FEW = ((16, "1KB"),)
"""Nodes and sizes that `make test` asks for."""

OPTICAL = ("lightpath", "ocs", "oddl", "ramp", "sip_ring", "sipac", "terarack", "terarack_torus", "topoopt")


def exists(name, nodes):
    """Whether a fabric has that many nodes."""
    try:
        return fabric_at_scale(name, nodes).num_nodes == nodes
    except FabricError:
        return False


def studied(folder, text):
    """Rows of a study that are done, and why others were refused."""
    number = len(list(folder.iterdir()))
    (folder / f"light{number}.toml").write_text(text)
    found = run_space(read_design(folder / f"light{number}.toml"), folder / f"out{number}")
    return read_rows(folder / f"out{number}"), found.refusals


def test_the_optical_fabrics_are_those_with_a_light_path():
    """No fabric is left out below."""
    assert tuple(name for name in FABRICS.names() if FABRICS.get(name).example()[0].light_path is not None) == OPTICAL


@pytest.mark.parametrize("name", OPTICAL)
@pytest.mark.parametrize(
    ("nodes", "size"),
    [
        pytest.param(nodes, size, marks=() if (nodes, size) in FEW else pytest.mark.deep)
        for nodes in (16, 64, 1024, 4096)
        for size in SIZES
    ],
)
def test_every_verb_gives_the_margin_of_the_plan(answer, tmp_path, name, nodes, size):
    """That of `budget --algorithm` for the algorithm of the row."""
    if not exists(name, nodes):
        pytest.skip(f"{name} has no machine of {nodes} nodes")
    compared, _ = answer("compare", "-f", name, "-n", str(nodes), "-s", size)
    (row,) = compared["rows"]
    due, _ = answer("machine", "budget", "-f", row["specification"], "-a", row["algorithm"])
    margin = pytest.approx(due["margin_db"], abs=1e-9)
    assert (row["light_margin_db"], row["light_optics"], row["light_of"]) == (margin, due["preset"], "plan")
    assert row["light_closes"] is due["closes"]
    assert (row["rank"] is None) is not due["closes"]
    swept, _ = answer("compare", "-f", name, "-n", str(nodes), "--sizes", f"{size}:{size}")
    assert swept["rows"][0]["light_margin_db"] == margin
    assert swept["rows"][0]["algorithm"] == row["algorithm"]
    study = f'measure = ["time", "margin"]\n[axes]\nfabric = ["{name}"]\nnodes = [{nodes}]\nsize = ["{size}"]\n'
    rows, _ = studied(tmp_path, study)
    assert rows[0]["light_margin_db"] == margin
    assert (rows[0]["light_closes"], rows[0]["light_of"]) == (due["closes"], "plan")


def test_a_machine_without_a_plan_says_so(tmp_path):
    """A study of prices and margins alone names the worst path of the machine."""
    study = 'measure = ["dollars", "margin"]\n[axes]\nfabric = ["terarack"]\nnodes = [64]\n'
    rows, _ = studied(tmp_path, study)
    assert rows[0]["light_of"] == "machine"
    assert rows[0]["light_margin_db"] == pytest.approx(light_of_machine(fabric("terarack:nodes=64")).margin_db)


def test_a_constraint_is_about_the_plan(tmp_path):
    """TeraRack of 64 nodes closes with its plan though its worst path lacks 62 dB; LIGHTPATH of 256 has no plan that closes."""
    study = (
        '[axes]\nfabric = ["terarack", "lightpath"]\nnodes = [256]\nsize = ["100MB"]\n'
        'node_rate = "built"\n[constraints]\nlight = "LIGHT"\n'
    )
    rows, refusals = studied(tmp_path, study.replace("LIGHT", "closes"))
    assert {row["fabric"] for row in rows} == {"terarack"}
    (refusal,) = refusals
    assert refusal == "constraint light: de_bruijn:steps=4 on lightpath lacks 58.50 dB of light"
    rows, refusals = studied(tmp_path, study.replace("LIGHT", "ignored"))
    assert ({row["fabric"] for row in rows}, dict(refusals)) == ({"terarack", "lightpath"}, {})


def test_a_study_ranks_plans_whose_light_closes_first(tmp_path):
    """LIGHTPATH of 256 nodes would be second; it wins nowhere unless light is ignored."""
    study = '[axes]\nfabric = ["lightpath", "torus"]\nnodes = [256]\nsize = ["10MB", "100MB"]\n'
    for constraint, first in (("", "torus"), ('[constraints]\nlight = "ignored"\n', "lightpath")):
        (tmp_path / f"{first}.toml").write_text(study + constraint)
        space = read_design(tmp_path / f"{first}.toml")
        run_space(space, tmp_path / first)
        found = fastest_map(space, read_rows(tmp_path / first), {})
        assert {cell.fabric for cell in found.cells} == {first}


def test_light_ignored_chooses_by_time_alone(answer):
    """In the verbs that choose: the same plan as before, which the row still says does not close."""
    assert answer("simulate", "-f", "sip_ring:nodes=64")[0]["algorithm"] == "ring"
    found, _ = answer("simulate", "-f", "sip_ring:nodes=64", "--ignore-light")
    assert found["algorithm"] == "lumorph:radix=4"
    compared, _ = answer("compare", "-f", "sip_ring:nodes=64", "--ignore-light")
    (row,) = compared["rows"]
    assert (row["algorithm"], row["rank"], row["light_closes"]) == ("lumorph:radix=4", 1, False)
    trained, _ = answer("train", "--model", "lenet", "-n", "64", "-f", "sip_ring", "--ignore-light")
    assert trained["rows"][0]["light_closes"] is False
    trained, _ = answer("train", "--model", "lenet", "-n", "64", "-f", "sip_ring")
    assert trained["rows"][0]["light_closes"] is True
    planned, _ = answer("plan", "-f", "sip_ring:nodes=64")
    assert planned["algorithm"] == "ring"
    assert compile("sip_ring:nodes=64", "all_reduce", "100 MB", ignore_light=True).algorithm == "lumorph:radix=4"


def test_unknown_presets_are_refused(opticcl):
    """With the known ones, whether or not light matters."""
    with pytest.raises(UnknownNameError, match="unknown preset 'bright'"):
        light_rule([fabric("ideal"), fabric("ramp")], "bright", False)
    done = opticcl("compare", "-n", "16", "-f", "ramp", "--optics", "bright")
    assert done.returncode == 2
    assert "unknown preset 'bright' of its optics; known: literal, fitted, typical" in done.stderr


def test_light_in_words():
    """None without light from end to end."""
    assert light_of_plan(compile("ideal:nodes=4", "all_reduce", "1 MB").circuits) == Light(None, "", "plan")
    assert light_of_plan(compile("ramp", "all_reduce", "1 MB", nodes=[0, 1]).circuits, "bright") == Light(
        None, "", "plan"
    )
    found = light_of_plan(compile("terarack:nodes=64", "all_reduce", "1 MB").circuits)
    assert (found.closes, found.of) == (True, "plan")
