"""The recipes of docs/extending, followed literally: files are written, commands run. The tree of CONTRIBUTING.md is right."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from tests.docs.pages import RECIPES, ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {"claim": ["fabric"]}
"""Recipes whose files use those of another one."""

FIRST = {"fabric"}
"""Recipes that `make test` follows; each starts several processes."""


def blocks(recipe, *languages):
    """Texts of the blocks of a recipe in these languages."""
    page = RECIPES[recipe].read_text("utf-8")
    return [text for language, text in BLOCK.findall(page) if language in languages]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the sources and of what their tests need; compiled files come along."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", root / "src")
    shutil.copytree(ROOT / "tests", root / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", root)
    return root


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(name, marks=() if name in FIRST else pytest.mark.deep) for name in RECIPES],
)
def test_a_recipe_can_be_followed_literally(copy, recipe):
    """Its files are written, its commands end well; the files are removed again."""
    written = []
    for text in (text for name in (*NEEDS.get(recipe, ()), recipe) for text in blocks(name, "python", "toml")):
        path = copy / text.partition("\n")[0].removeprefix("# ")
        assert not path.exists(), path
        path.write_text(text)
        written.append(path)
    commands = [line for text in blocks(recipe, "sh") for line in text.splitlines()]
    assert written
    assert commands
    try:
        for command in commands:
            done = run(copy, command)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    finally:
        for path in written:
            path.unlink()


def run(root, command):
    """A line for a shell, in a folder, with the program and Python of this process."""
    line = (
        command.replace("opticcl ", f"{sys.executable} -m opticcl ", 1) if command.startswith("opticcl ") else command
    )
    line = line.replace("python -m", f"{sys.executable} -m", 1) if line.startswith("python ") else line
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    return subprocess.run(line, shell=True, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_every_block_of_a_recipe_names_its_file():
    """In its first line."""
    for name in RECIPES:
        for text in blocks(name, "python", "toml"):
            assert re.match(r"# (src/opticcl|tests)/[\w/]+\.(py|toml)\n", text), text


def test_the_tree_is_the_tree_on_disk():
    """Every folder with files, and every module beside the packages of the library."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (tree,) = re.findall(r"^src/opticcl/\n.*?(?=^```)", page, re.MULTILINE | re.DOTALL)
    assert printed(tree) == on_disk()


def printed(tree):
    """Paths of a tree whose levels are indented by two spaces; a line may have several folders."""
    found, parents = set(), []
    for line in tree.splitlines():
        level = (len(line) - len(line.lstrip())) // 2
        names = [name for name in line.split() if re.fullmatch(r"[\w./]+(/|\.py)", name)]
        names = names if len(names) == len(line.split()) else names[:1]
        parents = [*parents[:level], names[0]]
        found |= {"".join(parents[:level]) + name for name in names}
    return found


def on_disk():
    """Folders that hold files of the repository, and modules directly in the package."""
    found = {f"src/opticcl/{path.name}" for path in (ROOT / "src/opticcl").glob("*.py")}
    for top in ("src/opticcl", "tests", "benchmarks", "docs", "examples", "studies", ".ci"):
        folders = [ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())]
        for folder in folders:
            hidden = any(part.startswith((".", "__")) for part in folder.relative_to(ROOT / top).parts)
            if not hidden and any(path.is_file() for path in folder.iterdir()):
                found.add(f"{folder.relative_to(ROOT)}/")
    return found
