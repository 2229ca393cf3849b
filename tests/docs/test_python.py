"""Every block of Python of the README and of docs/ runs as it is printed; every block of TOML is a shipped example."""

import shutil

import pytest
from tests.docs.pages import EXAMPLES, blocks
from tests.traces.test_topoopt import GOOD

import opticcl

SHIPPED = {path.read_text("utf-8") for path in EXAMPLES.glob("*.*") if path.suffix in (".py", ".toml")}
PYTHON = [block for block in blocks("python") if block.text not in SHIPPED]
WITH_PYTHON = sorted({block.page for block in PYTHON} - {"README.md"})
"""Pages with blocks of Python; those of the README run in a test of their own."""

WITH_TORCH = sorted({block.page for block in PYTHON if "torch" in block.text})


@pytest.fixture
def folder(tmp_path, monkeypatch, plugins_forgotten):
    """The folder in which the blocks run; it holds the shipped examples alone."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_after(page, torch):
    """What the blocks of a page define, run one after the other; those that need torch only with it."""
    names = {}
    for block in PYTHON:
        if block.page == page and (torch or "torch" not in block.text):
            exec(compile(block.text, str(block), "exec"), names)
    return names


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_of_a_page_runs(folder, page):
    """All blocks that need no torch."""
    names_after(page, torch=False)


@pytest.mark.deep
@pytest.mark.parametrize("page", WITH_TORCH)
def test_python_of_a_page_with_torch_runs(folder, page):
    """All blocks, those that need torch too."""
    pytest.importorskip("torch", reason="the extra torch is not installed: pip install 'opticcl[torch]'")
    names_after(page, torch=True)


def test_the_readme_gives_what_it_promises(folder, capsys):
    """Results of every rank, a plan that can be loaded again, and a table of every fabric."""
    names = names_after("README.md", torch=False)
    assert [float(result[0]) for result in names["results"]] == [128.0] * 128
    assert opticcl.load(folder / "plan.parquet").verify().ok
    assert "fat_tree" in capsys.readouterr().out


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_is_shipped(block):
    """A reader finds the file in examples/."""
    assert block.text in SHIPPED


def test_the_plugin_is_shipped():
    """The script of docs/extending/plugins.md is examples/star.py, letter by letter."""
    assert (EXAMPLES / "star.py").read_text("utf-8") in {block.text for block in blocks("python")}


def test_the_task_graph_is_that_of_the_tests():
    """Binary, and so not written by hand."""
    assert (EXAMPLES / "graph.fbuf").read_bytes() == GOOD


def test_the_chakra_trace_is_that_of_the_library(tmp_path):
    """Rank 0 of a ring, byte by byte."""
    opticcl.compile("torus:shape=2x2", "all_reduce", "16 MB", algorithm="ring").export(tmp_path / "ring.et")
    assert (EXAMPLES / "ring.0.et").read_bytes() == (tmp_path / "ring.0.et").read_bytes()
