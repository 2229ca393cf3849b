"""A fabric and an algorithm of one's own: the pages that tell how, and the option that reads them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import opticcl as library
from opticcl.cli import _plugins
from opticcl.errors import ParameterError
from opticcl.schedule import ALGORITHMS, register_algorithm

ROOT = Path(__file__).parents[2]


def blocks(page):
    """Python on a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


STAR = ROOT / "examples/star.py"
pytestmark = pytest.mark.usefixtures("plugins_forgotten")


def test_the_example_is_a_script():
    """It runs as it stands, judges itself and prints both tables."""
    done = subprocess.run([sys.executable, STAR], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "all " in done.stdout
    assert "ideal" in done.stdout


def test_the_command_line_reads_it(opticcl, answer):
    """Every verb sees the fabric and the algorithm; a file given twice is read once."""
    both = ("--plugin", STAR, "--plugin", STAR)
    found, code = answer(*both, "verify", "-f", "star:nodes=12", "-c", "all_gather", "-a", "wave:senders=4")
    assert (code, found["ok"], found["checked"]["transfers"]) == (0, True, 12 * 11)
    table = library.compare(["star:nodes=9"], "all_reduce", "1MB", algorithm="all")
    assert len(table) > 5
    assert table["verified"].all()  # its rule gives any algorithm light without collisions
    declined = opticcl("--plugin", STAR, "verify", "-f", "star:wavelengths=3", "-c", "all_gather", "-a", "wave")
    assert (declined.returncode, "senders=8" in declined.stderr) == (2, True)


def test_the_environment_names_plugins(answer, monkeypatch):
    """The same without an option."""
    monkeypatch.setenv(_plugins.VARIABLE, str(STAR))
    found, code = answer("execute", "-f", "star:nodes=5", "-c", "all_gather", "-a", "wave:senders=2", "-s", "10KB")
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
            "from opticcl.formats import Format, register_format\nregister_format(Format('msccl', ('.x',), 'a test'))\n",
            ", line 2: ValueError: format 'msccl' is registered twice",
        ),
        (
            "from opticcl.ir import Resource\nResource('transmitter', 3)\n",
            ", line 2: Resource: kind='transmitter' has no rule",
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


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("w = self.wavelengths", "w = 1 / 0", "plugin mine.py, line 58: ZeroDivisionError: division by zero"),
        ("return (COUPLER,)", "return COUPLER", ": TypeError: 'Resource' object is not iterable (fabric.py, line "),
        ("return Schedule(", "return None and Schedule(", "algorithm wave: generate returned NoneType, not a Schedule"),
    ],
)
def test_what_is_wrong_later_is_told_in_one_line(opticcl, tmp_path, right, wrong, words):
    """In a method of the plugin, in the library that uses what it returned, in the algorithm."""
    path = tmp_path / "mine.py"
    path.write_text(STAR.read_text("utf-8").replace(right, wrong, 1), "utf-8")
    done = opticcl("--plugin", path, "verify", "-f", "star", "-c", "all_gather", "-a", "wave")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("opticcl: ")] == []


def test_a_file_that_is_not_there(opticcl, monkeypatch):
    """Whoever named it is told."""
    assert "--plugin: absent.py: there is no such file" in opticcl("--plugin", "absent.py", "list").stderr
    assert "--plugin: .: is a directory" in opticcl("--plugin", ".", "list").stderr
    monkeypatch.setenv(_plugins.VARIABLE, "gone.py")
    done = opticcl("list")
    assert (done.returncode, "OPTICCL_PLUGINS: gone.py: there is no such file" in done.stderr) == (2, True)


def test_functions_that_do_not_fit_are_refused():
    """At registration, not when somebody compiles."""

    def generate(collective, fabric, *, radix: int = 2): ...

    with pytest.raises(ParameterError, match=r"mine: accepts: .*radix.*write def accepts\(collective, fabric, radix"):
        register_algorithm("mine", lambda collective, fabric: None)(generate)
    with pytest.raises(ParameterError, match=r"mine: variants: .*write def variants\(collective, fabric\)"):
        register_algorithm("mine", lambda collective, fabric, radix=2: None, lambda collective: [])(generate)
    assert "mine" not in ALGORITHMS.names()
