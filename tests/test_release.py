"""What is released: a wheel and an sdist that work without the repository, one version, a changelog, an image."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import opticcl

ROOT = Path(__file__).parents[1]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_stands_in_one_place():
    """In the package, from which the build reads it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/opticcl/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", opticcl.__version__)


def test_the_changelog_has_the_form_of_keep_a_changelog():
    """Versions, the unreleased one first, and kinds of changes."""
    headings = re.findall(r"^(#+) (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[:2] == [("#", "Changelog"), ("##", "[Unreleased]")]
    for marks, text in headings[2:]:
        if marks == "##":
            assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", text), text
        else:
            assert marks == "###"
            assert text in KINDS


def test_the_image_copies_and_makes_existing_files():
    """Its commands are targets of the Makefile; nothing that is built outside is copied."""
    text = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [name for name, _ in steps] == ["FROM", "RUN", "COPY", "USER", "WORKDIR", "ENV", "RUN", "CMD"]
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("$(EXTENDED)", ".venv/.extended")
    for target in (".venv/.extended", "demo", "test"):
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target
        assert f"make {target}" in text or f'"make", "{target}"' in text
    ignored = (ROOT / ".containerignore").read_text("utf-8").split()
    assert {".git", ".venv"} <= set(ignored)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder of the wheel and the sdist."""
    if importlib.util.find_spec("build") is None:
        pytest.skip("build is not installed: pip install 'opticcl[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    return folder


@pytest.mark.deep
@pytest.mark.parametrize("suffix", [".whl", ".tar.gz"])
def test_it_is_installed_without_the_repository(built, tmp_path, suffix):
    """In an environment of its own, where it compares all fabrics."""
    (file,) = (path for path in built.iterdir() if path.name.endswith(suffix))
    assert file.name.startswith(f"opticcl-{opticcl.__version__}")
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    binaries = tmp_path / "environment" / "bin"
    subprocess.run([sys.executable, "-m", "venv", binaries.parent], check=True, env=outside)
    pip = [binaries / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", file]
    subprocess.run(pip, check=True, cwd=tmp_path, env=outside)

    def run(*words):
        done = subprocess.run(
            [binaries / "opticcl", *words], cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version").strip() == f"opticcl {opticcl.__version__}"
    table = run("compare", "--nodes", "64")
    assert "ramp" in table
    assert "NO" not in re.findall(r"\bNO\b", table)
