"""What the README shows is what the tool makes; notebooks run."""

import json
import re
import shutil

import pytest
from tests.docs.pages import EXAMPLES, ROOT

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_the_readme_opens_with_a_picture_and_two_commands():
    """A picture of docs/, a sentence, two commands and what the first prints."""
    head = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]
    (picture,) = re.findall(r"^!\[.+\]\((docs/[\w.-]+\.svg)\)$", head, re.MULTILINE)
    assert (ROOT / picture).read_text("utf-8").startswith("<svg ")
    assert re.findall(r"^make (\w+)", head, re.MULTILINE) == ["demo", "test"]
    assert head.index(picture) < head.index("make demo") < head.index("```text")


@pytest.mark.deep
def test_the_picture_is_that_of_the_study(tmp_path, opticcl, monkeypatch):
    """Of examples/who-wins-256.toml, to the byte."""
    monkeypatch.chdir(tmp_path)
    file = str(EXAMPLES / "who-wins-256.toml")
    assert opticcl("study", "run", file, "--folder", "out").returncode == 0
    assert opticcl("study", "map", file, "--folder", "out", "-o", "who-wins.svg").returncode == 0
    assert (tmp_path / "who-wins.svg").read_text("utf-8") == (ROOT / "docs" / "who-wins.svg").read_text("utf-8")


@pytest.mark.deep
def test_the_answer_of_the_readme_is_that_of_the_demo(opticcl, monkeypatch):
    """What `make demo` prints at 80 columns, to the last plan."""
    monkeypatch.setenv("COLUMNS", "80")
    done = opticcl("compare", "--nodes", "64", "--workload", EXAMPLES / "resnet50-step.toml")
    block = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    printed = block[1].splitlines()
    assert shown[: len(printed)] == printed
    assert shown[len(printed)].startswith("not tried")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(path):
    """Of version 4, with a name for each cell."""
    content = json.loads(path.read_text("utf-8"))
    assert content["nbformat"] == 4
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert all(
        not cell["outputs"] and cell["execution_count"] is None for cell in content["cells"] if "outputs" in cell
    )


@pytest.mark.deep
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run(path, tmp_path, monkeypatch):
    """All cells one after the other, in a folder with examples/ alone."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name} {cell['id']}", "exec"), names)
