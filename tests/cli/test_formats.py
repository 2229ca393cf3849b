"""Formats of other programs on the command line."""

import json

import pytest
from tests.formats.test_msccl import SMALL


@pytest.fixture
def small(tmp_path):
    """An all_reduce of two ranks as MSCCL XML."""
    path = tmp_path / "small.xml"
    path.write_text(SMALL)
    return path


def test_a_graph_is_verified(opticcl, answer, small):
    """Exit code 0 if it is right, 1 if it is wrong, 2 if it is malformed."""
    found, code = answer("verify", small)
    assert (code, found["ok"], found["checked"]["transfers"], found["checked"]["exhaustive"]) == (0, True, 4, True)
    assert "a test: all_reduce among 2 ranks" in opticcl("verify", small).stdout
    small.write_text(SMALL.replace('type="rrc"', 'type="r"'))
    found, code = answer("verify", small)
    assert (code, found["violations"][0]["rule"]) == (1, "contribution_missing")
    assert "rank 1 chunk 0 x0" in found["violations"][0]["found"]
    small.write_text(SMALL.replace('type="rrc"', 'type="x"'))
    done = opticcl("verify", small)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "line 5, step: operation_unknown" in done.stderr


def test_a_graph_is_simulated_on_any_fabric(opticcl, answer, small):
    """With the fabric, its size and the message from the options."""
    found, code = answer("simulate", small, "-f", "sipac", "--nodes", "2", "--size", "2MB")
    assert (code, found["num_steps"]) == (0, 2)
    slower, _ = answer("simulate", small, "-f", "sipac", "--nodes", "2", "--size", "4MB")
    assert slower["total_s"] > found["total_s"] >= found["lower_bound_s"] > 0
    found, code = answer("simulate", small, "-f", "ideal:nodes=8", "--job", "3,5")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate"], "has no fabric; give --fabric"),
        (["simulate", "-f", "ideal:nodes=3"], "2 ranks, but ideal has 3 nodes"),
        (["simulate", "-f", "ideal:nodes=2", "-a", "ring"], "--algorithm is part of"),
        (["verify", "--sample", "1"], "--sample"),
        (["verify", "--budget", "literal"], "--budget"),
        (["verify", "-f", "ideal:nodes=2"], "--fabric is part of"),
        (["execute"], "a plan file ends in .parquet, .csv, .json"),
    ],
)
def test_options_that_do_not_fit_a_graph_are_refused(opticcl, small, arguments, words):
    """One line, exit code 2."""
    done = opticcl(arguments[0], small, *arguments[1:])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_plans_are_compiled_to_other_formats(opticcl, answer, tmp_path):
    """The suffix chooses; the line says what the format cannot express."""
    out = tmp_path / "plan.xml"
    done = opticcl("compile", "-f", "ramp:groups=2,racks=2,wavelengths=4", "-s", "1MB", "-o", out)
    assert done.returncode == 0
    assert "without circuits, wavelengths, times" in done.stdout
    assert answer("verify", out)[1] == 0
    refused = opticcl("compile", "-f", "ideal:nodes=4", "-c", "broadcast", "-o", tmp_path / "b.xml")
    assert (refused.returncode, "not broadcast" in refused.stderr) == (2, True)
    assert not (tmp_path / "b.xml").exists()
    refused = opticcl("compile", "-f", "ideal:nodes=4", "-o", tmp_path / "b.docx")
    assert "must end in" in refused.stderr


def test_formats_are_listed(opticcl, answer):
    """As a table and as JSON."""
    found, code = answer("list", "formats")
    assert code == 0
    assert {"msccl", "plan", "perfetto"} <= {entry["name"] for entry in found["formats"]}
    done = opticcl("list", "formats")
    assert ".xml" in done.stdout
    assert json.dumps(found["formats"][0]["name"]).strip('"') in done.stdout


@pytest.mark.parametrize(
    "kind", ["fabrics", "algorithms", "models", "engines", "collectives", "assumptions", "devices", "formats"]
)
def test_a_kind_is_listed_alone(opticcl, answer, kind):
    """The entries that `list` has of it, and no others."""
    alone, code = answer("list", kind)
    assert code == 0
    assert alone == {kind: answer("list")[0][kind]}
    shown = opticcl("list", kind).stdout
    assert shown.startswith(f"OptiCCL knows {len(alone[kind])} {kind[:-1]}")
    assert all((one["name"] if isinstance(one, dict) else one) in shown for one in alone[kind])


def test_a_graph_is_converted_to_a_plan_file(opticcl, answer, small, tmp_path):
    """With the fabric that the options describe; the plan file is verified and has the time that the graph has."""
    done = opticcl(
        "compile", small, "-f", "sipac", "-n", "2", "-s", "2MB", "-o", tmp_path / "a.csv", "-o", tmp_path / "a.flows"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "plan file: " in done.stdout
    assert "flow list: " in done.stdout
    assert answer("verify", tmp_path / "a.csv")[1] == 0
    of_graph, _ = answer("simulate", small, "-f", "sipac", "-n", "2", "-s", "2MB")
    of_plan, _ = answer("simulate", tmp_path / "a.csv")
    assert of_plan["total_s"] == pytest.approx(of_graph["total_s"])


def test_a_plan_file_is_converted_to_a_graph(opticcl, answer, tmp_path):
    """It has a fabric of its own."""
    opticcl("compile", "-f", "ideal:nodes=4", "-a", "ring", "-s", "1MB", "-o", tmp_path / "a.parquet")
    assert opticcl("compile", tmp_path / "a.parquet", "-o", tmp_path / "a.xml").returncode == 0
    found, code = answer("verify", tmp_path / "a.xml")
    assert (code, found["checked"]["transfers"]) == (0, 24)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["small.xml", "-o", "b.csv"], "has no fabric; give --fabric"),
        (["small.xml", "-f", "ideal:nodes=2", "-o", "small.xml"], "the input file"),
        (["small.xml", "-f", "ideal:nodes=2", "-o", "b.docx"], "must end in"),
        (["absent.xml", "-f", "ideal:nodes=2", "-o", "b.csv"], "there is no such file"),
        (["plan.csv", "-f", "ideal:nodes=2", "-o", "b.xml"], "--fabric is part of"),
    ],
)
def test_conversions_that_make_no_sense_are_refused(opticcl, small, tmp_path, monkeypatch, arguments, words):
    """One line, exit code 2, nothing written."""
    monkeypatch.chdir(tmp_path)
    opticcl("compile", "-f", "ideal:nodes=2", "-a", "ring", "-s", "1MB", "-o", "plan.csv")
    done = opticcl("compile", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"small.xml", "plan.csv"}
