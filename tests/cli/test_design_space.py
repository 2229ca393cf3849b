"""opticcl study run FILE.toml, as a user types it: a run, queries, answers and their pictures."""

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import polars
import pytest

from opticcl.studies.space.design import read_design
from opticcl.studies.space.runner import run_space

TEXT = """
title = "Two fabrics"
[axes]
fabric = ["ideal", "torus"]
nodes = [4, 9]
size = ["1KB", "1MB"]
[vary]
keys = ["endpoint"]
nodes = 4
size = "1KB"
[answers.map]
[answers.pareto.where]
nodes = 9
size = "1KB"
[answers.tornado]
[answers.breakeven.where]
nodes = 4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a study that has run; copied by each test."""
    where = tmp_path_factory.mktemp("study")
    (where / "two.toml").write_text(TEXT)
    run_space(read_design(where / "two.toml"), where / "two.study", version=version("opticcl"))
    return where


@pytest.fixture
def inside(folder, tmp_path, monkeypatch):
    """A copy of that folder, which is the current one."""
    shutil.copytree(folder, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_a_finished_study_writes_its_answers(opticcl, answer, inside):
    """Nothing is computed again; records and pictures are in the folder."""
    done = opticcl("study", "run", "two.toml")
    assert done.returncode == 0, done.stderr
    assert "Two fabrics: 12 points: 12 done; 0 of them now" in done.stdout
    for name in ("map", "pareto", "tornado", "breakeven"):
        assert f"answer: two.study/{name}.json" in done.stdout
        assert json.loads((inside / "two.study" / f"{name}.json").read_text())["answer"] == name
        assert (inside / "two.study" / f"{name}.svg").read_text().startswith("<svg")
    found, code = answer("study", "run", "two.toml")
    assert (code, found["points"], found["states"]) == (0, 12, {"done": 12})


@pytest.mark.parametrize(
    ("name", "words", "printed"),
    [
        ("map", (), "fastest at: "),
        ("pareto", ("--where", "size=1MB"), "left out, without a price or power: ideal"),
        ("tornado", (), "endpoint x 2"),
        ("breakeven", ("--where", "nodes=9", "--between", "torus", "--between", "ideal"), "is the fastest"),
    ],
)
def test_an_answer_as_text_record_and_picture(opticcl, answer, inside, name, words, printed):
    """The same record on standard output and in a file; pictures of both kinds."""
    files = [f"{name}.{suffix}" for suffix in ("svg", "png", "json", "csv")]
    done = opticcl("study", name, "two.toml", *words, *(word for file in files for word in ("-o", file)))
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
    found, _ = answer("study", name, "two.toml", *words)
    assert json.loads(Path(files[2]).read_text()) == found
    assert found["answer"] == name
    assert Path(files[0]).read_text().startswith("<svg")
    assert Path(files[1]).read_bytes().startswith(b"\x89PNG")


def test_a_query(opticcl, answer, inside):
    """As a table, as JSON, as a file."""
    sql = "SELECT fabric, total_s FROM results WHERE num_nodes = 9 AND size_bytes = 1000 ORDER BY fabric"
    done = opticcl("study", "query", "two.toml", sql, "-o", "rows.parquet")
    assert "2 rows" in done.stdout
    found, _ = answer("study", "query", "two.toml", sql)
    assert [row["fabric"] for row in found] == ["ideal", "torus"]
    assert polars.read_parquet("rows.parquet").to_dicts() == found


def test_a_dry_run_writes_nothing(opticcl, answer, inside):
    """It counts and estimates."""
    shutil.rmtree("two.study")
    done = opticcl("study", "run", "two.toml", "--dry-run", "--jobs", "2")
    assert "Two fabrics: 12 points (2 fabric x 2 nodes x 2 size, 1 assumptions halved and doubled)" in done.stdout
    assert not Path("two.study").exists()
    found, _ = answer("study", "run", "two.toml", "--dry-run")
    assert (found["points"], found["finished"]) == (12, 0)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run", "absent.toml"), "cannot read absent.toml: No such file"),
        (("run", "two.toml", "other"), "Got unexpected extra argument (other) (opticcl study run --help"),
        (("map",), "Missing argument 'FILE.toml'. (opticcl study map --help lists arguments and options)"),
        (("query", "two.toml"), "Missing argument 'SQL'. (opticcl study query --help"),
        (("query", "two.toml", "SELECT x FROM results"), 'query: unable to find column "x"; columns: '),
        (("map", "two.toml", "--over", "size"), "study map: there is no option --over"),
        (
            ("query", "two.toml", "SELECT 1", "--x", "size"),
            "study query: there is no option --x; it is an option of study lines, study map",
        ),
        (("pareto", "two.toml", "--where", "nodes=5"), "where: nodes=5 is not on the axis; try 4"),
        (("pareto", "two.toml", "--where", "nodes"), "--where: 'nodes' is not name=value; write --where nodes=64"),
        (("pareto", "two.toml", "--where", "node=4"), "'node' is not an axis of the study; did you mean 'nodes'?"),
        (("map", "two.toml", "--folder", "absent"), "there is no absent/results.parquet yet; run opticcl study"),
        (("overlap", "--dry-run"), "study: there is no verb 'overlap'; known: beyond, breakeven,"),
        (("run", "two.toml", "--folder", "two.toml"), "cannot write two.toml: File exists"),
    ],
)
def test_wrong_input_is_one_line(opticcl, inside, words, hint):
    """Exit code 2, nothing on standard output."""
    done = opticcl("study", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
