"""The documentation site: every page is in its navigation, and it builds without a warning."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys

import pytest
from tests.docs.pages import ROOT

NAVIGATION = set(
    re.findall(r"^ +- (?:[^:\n]+: )?([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
)
MADE = {"index.md", "contributing.md", "changelog.md"} | {
    f"reference/{name}.md" for name in ("verbs", "python", "fabrics", "algorithms", "assumptions")
}


def test_every_page_is_in_the_navigation():
    """And nothing else."""
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages | MADE == NAVIGATION


def test_arguments_in_the_reference_are_a_list():
    """Also behind them other sections and examples follow; annotations have no quotes."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs/site/reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    text = inspect.cleandoc("""Add.

        Args:
            first: a number,
                whole.
            second: another.
        Raises: ValueError: none.

        >>> add(1, 2)
        3
        """)
    assert list(reference.docstring(text)) == [
        "Add.\n", "- `first`: a number, whole.", "- `second`: another.", "", "Raises: ValueError: none.\n",
        "```pycon\n>>> add(1, 2)\n3\n```\n\n",
    ]  # fmt: skip
    pages = reference.pages()
    assert "path: str | Path, *" in pages["python"]
    assert "inspect" not in pages["verbs"]


def test_it_builds(tmp_path):
    """Strictly: a warning is an error. No page asks a server for anything."""
    if not importlib.util.find_spec("mkdocs"):
        pytest.skip("the extra docs is not installed: pip install 'opticcl[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in MADE:
        text = (tmp_path / page).with_suffix(".html").read_text("utf-8")
        assert not re.search(r"""<(?:script|link|img)[^>]*(?:src|href)=["']?https?://""", text), page
    assert "two_sided_ring" in (tmp_path / "reference/algorithms.html").read_text("utf-8")
    assert "--collective" in (tmp_path / "reference/verbs.html").read_text("utf-8")
    assert "message of every rank" in (tmp_path / "reference/python.html").read_text("utf-8")
