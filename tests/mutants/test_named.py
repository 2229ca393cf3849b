"""Changes of the source that once no test noticed: each is detected by the test that `named.toml` names."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NAMED = tomllib.loads(Path(__file__).with_name("named.toml").read_text("utf-8"))["mutant"]


@pytest.mark.parametrize("mutant", NAMED, ids=lambda mutant: mutant["what"])
def test_the_change_can_be_made_and_its_test_exists(mutant):
    """The text that is changed stands in the file once; the test is a function of its file."""
    source = (REPOSITORY / "src/opticcl" / mutant["file"]).read_text("utf-8")
    assert source.count(mutant["before"]) == 1
    assert mutant["after"] != mutant["before"]
    file, _, test = mutant["test"].partition("::")
    assert f"\ndef {test.partition('[')[0]}(" in (REPOSITORY / file).read_text("utf-8")


def run(package, *tests):
    """Exit code of tests with the package in a folder: 1 if one fails, 4 if one does not exist."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={package}",
        *tests,
    ]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False, capture_output=True).returncode


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Folder with a copy of the package, with which all of the tests pass."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(REPOSITORY / "src/opticcl", folder / "opticcl")
    assert run(folder, *{mutant["test"] for mutant in NAMED}) == 0
    return folder


@pytest.mark.deep
@pytest.mark.parametrize("mutant", NAMED, ids=lambda mutant: mutant["what"])
def test_the_change_is_detected(mutant, package):
    """Its test fails with it."""
    changed = package / "opticcl" / mutant["file"]
    source = changed.read_text("utf-8")
    changed.write_text(source.replace(mutant["before"], mutant["after"]), "utf-8")
    try:
        assert run(package, mutant["test"]) == 1
    finally:
        changed.write_text(source, "utf-8")
