"""A fabric and an algorithm of one's own: the pages that tell how, and the option that reads them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import opticcl as library
from opticcl import data
from opticcl.circuits import RULES
from opticcl.cli import _plugins
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabric import FABRICS
from opticcl.schedule import ALGORITHMS, register_algorithm

ROOT = Path(__file__).parents[2]


def blocks(page):
    """Python on a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """What a test registers is forgotten after it."""
    for registry in (FABRICS, ALGORITHMS, RULES):
        registry.names()
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(_plugins, "_loaded", set())
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv(_plugins.VARIABLE, raising=False)


@pytest.fixture
def star(tmp_path):
    """The example of the page, as a file."""
    path = tmp_path / "star.py"
    path.write_text(blocks("docs/extending.md")[0], "utf-8")
    return path


def test_the_page_is_a_script(star):
    """It runs as it stands, judges itself and prints both tables."""
    done = subprocess.run([sys.executable, star], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all " in done.stdout
    assert "ideal" in done.stdout


def test_the_command_line_reads_it(star, opticcl, answer):
    """Every verb sees the fabric and the algorithm; a file given twice is read once."""
    both = ("--plugin", star, "--plugin", star)
    found, code = answer(*both, "verify", "-f", "star:nodes=12", "-c", "all_gather", "-a", "shout:speakers=4")
    assert (code, found["ok"], found["checked"]["transfers"]) == (0, True, 12 * 11)
    table = library.compare(["star:nodes=9"], "all_reduce", "1MB", algorithm="all")
    assert len(table) > 5
    assert table["verified"].all()  # its rule gives any algorithm light without collisions
    declined = opticcl("--plugin", star, "verify", "-f", "star:wavelengths=3", "-c", "all_gather", "-a", "shout")
    assert (declined.returncode, "speakers=8" in declined.stderr) == (2, True)


def test_the_environment_names_plugins(star, answer, monkeypatch):
    """The same without an option."""
    monkeypatch.setenv(_plugins.VARIABLE, str(star))
    found, code = answer("execute", "-f", "star:nodes=5", "-c", "all_gather", "-a", "shout:speakers=2", "-s", "10KB")
    assert (code, found["ok"], found["ranks"]) == (0, True, 5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ny = z\n", ", line 2: NameError: name 'z' is not defined"),
        ("def f(:\n", ", line 1: SyntaxError: "),
        ("\nraise SystemExit(3)", ", line 2: SystemExit: 3"),
        ("\n\nimport nowhere_to_be_found", ", line 3: ModuleNotFoundError: "),
        (
            "from opticcl.schedule import register_algorithm\n"
            "def f(collective, fabric): ...\n"
            "register_algorithm('ring', f)(f)",
            ", line 3: ValueError: algorithm 'ring' is registered twice",
        ),
        (
            "from opticcl.ir import Resource\nResource('transmitter', 3)\n",
            ", line 2: Resource: kind='transmitter' is none",
        ),
    ],
)
def test_what_is_wrong_in_it_is_told_with_its_line(opticcl, tmp_path, text, words):
    """One line that names the file and the line, exit code 2, and a second try finds the same."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    for _ in range(2):
        done = opticcl("--plugin", path, "list")
        assert done.returncode == 2
        assert f"mine.py{words}" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_not_there(opticcl, monkeypatch):
    """Whoever named it is told."""
    assert "--plugin: absent.py: there is no such file" in opticcl("--plugin", "absent.py", "list").stderr
    monkeypatch.setenv(_plugins.VARIABLE, "gone.py")
    done = opticcl("list")
    assert (done.returncode, "OPTICCL_PLUGINS: gone.py: there is no such file" in done.stderr) == (2, True)


def test_the_templates_for_contributors_run(monkeypatch):
    """What CONTRIBUTING.md prints, as it stands, with a datasheet as the page asks for one."""
    monkeypatch.setattr(data, "datasheet", {"mine": {"nodes": 8, "port_rate": 1e11}}.__getitem__)
    fabric, algorithm = blocks("CONTRIBUTING.md")
    exec(fabric, {})
    assert FABRICS.get("mine").at_scale(5) == {"nodes": 5}
    exec(algorithm, {})
    assert library.compile("ideal:nodes=7", "all_gather", "1KB", algorithm="mine:stride=3").verify().ok
    with pytest.raises(UnsupportedError, match="stride=2 does not reach all 8 nodes"):
        library.compile("ideal:nodes=8", "all_gather", "1KB", algorithm="mine:stride=2")


def test_functions_that_do_not_fit_are_refused():
    """At registration, not when somebody compiles."""

    def generate(collective, fabric, *, radix: int = 2): ...

    with pytest.raises(ParameterError, match=r"mine: accepts: .*radix.*write def accepts\(collective, fabric, radix"):
        register_algorithm("mine", lambda collective, fabric: None)(generate)
    with pytest.raises(ParameterError, match=r"mine: variants: .*write def variants\(collective, fabric\)"):
        register_algorithm("mine", lambda collective, fabric, radix=2: None, lambda collective: [])(generate)
    assert "mine" not in ALGORITHMS.names()
