"""`opticcl new`: the plugins that it writes work as they stand, and nothing is overwritten."""

import os
import shlex
import subprocess
import sys

import pytest

KINDS = ("fabric", "algorithm", "trace")
pytestmark = pytest.mark.usefixtures("plugins_forgotten")


@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_that_it_prints_work(opticcl, answer, tmp_path, monkeypatch, kind):
    """Verified and ranked beside others, without a warning on names that nothing reads; the plugin has 60 lines at most."""
    monkeypatch.chdir(tmp_path)
    found, code = answer("new", kind, "my_own")
    assert (code, found["plugin"], found["test"]) == (0, "my_own.py", "test_my_own.py")
    lines = (tmp_path / "my_own.py").read_text().splitlines()
    assert 20 < len(lines) <= 60
    assert max(map(len, lines)) <= 120
    (tmp_path / "job.my_own").write_text("all_reduce 25MB\nall_gather 4MB\n")
    *commands, test = map(shlex.split, found["commands"])
    for program, *words in commands:
        assert program == "opticcl"
        done = opticcl(*words)
        assert (done.returncode, "plugin" in done.stderr) == (0, False), done.stderr
        assert "left out" not in done.stdout
        if words[0] == "compare":
            rows = answer(*words)[0]["rows"]
            named = [row for row in rows if "my_own" in (row["fabric"], row["algorithm"])]
            assert named
            assert all(row["verified"] and (row["rank"] or row["fabric"] == "ideal") for row in named)
    assert test[:3] == ["python", "-m", "pytest"]


def test_its_tests_pass(opticcl, tmp_path):
    """Under a plain pytest in the folder of the files."""
    for kind in KINDS:
        assert opticcl("new", kind, f"my_{kind}", "-o", tmp_path).returncode == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout


@pytest.mark.parametrize("taken", ["mine.py", "test_mine.py"])
def test_nothing_is_overwritten(opticcl, tmp_path, monkeypatch, taken):
    """Where one of both files is there, neither is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / taken).write_text("kept")
    done = opticcl("new", "fabric", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"opticcl: new: {taken} exists; give another name or folder, nothing is overwritten\n"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {taken: "kept"}
