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
    assert opticcl(*both, "list", "star").stderr == ""
    found, code = answer(*both, "verify", "-f", "star:nodes=12", "-c", "all_gather", "-a", "wave:senders=4")
    assert (code, found["ok"], found["checked"]["transfers"]) == (0, True, 12 * 11)
    table = library.compare(["star:nodes=9"], "all_reduce", "1MB", algorithm="all").frame()
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
        (
            "w = self.wavelengths",
            "w = 1 / 0",
            "plugin mine.py, line 58, in Star.numbers: ZeroDivisionError: division by zero",
        ),
        (
            "return (COUPLER,)",
            "return COUPLER",
            "star: resources is not a tuple of Resource; return (Resource(...), ...)",
        ),
        ("return FabricNumbers(", "return dict(", "star: numbers is of type dict; return FabricNumbers(...)"),
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


def plugin(folder, *changes):
    """The example with changes, in a file of its own."""
    path, text = folder / "mine.py", STAR.read_text("utf-8")
    for right, wrong in changes:
        assert right in text
        text = text.replace(right, wrong, 1)
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (
            "def usage(",
            "def uses(",
            "star: class Star has no usage; usage: Resources that circuits occupy",
        ),
        (
            "    wavelengths: int = 16\n",
            "    wavelengths: int = 16\n    parts: int = 2\n",
            "parameter parts hides Fabric.parts",
        ),
        (
            "@dataclass(frozen=True, kw_only=True, repr=False)",
            "",
            "class Star is not a dataclass, so it has no parameters",
        ),
        ("class Star(Fabric)", "class Star", "@register_fabric is for a class; write class Mine(Fabric)"),
    ],
)
def test_a_class_that_cannot_be_a_fabric_is_refused(opticcl, tmp_path, right, wrong, words):
    """As the file is read, in a line with the member."""
    done = opticcl("--plugin", plugin(tmp_path, (right, wrong)), "list", "star")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_names_that_nothing_reads_are_told_at_once(opticcl, tmp_path):
    """One line for all of them, with the members that were meant; what the file itself uses is not among them."""
    path = plugin(
        tmp_path,
        ("    def control_s(", "    num_ports = 4\n    spare = 3\n\n    def control_seconds("),
        ("def light_path(", "def lite_path("),
        ("w = self.wavelengths", "w = self.wavelengths + 0 * self.spare"),
    )
    done = opticcl("--plugin", path, "list", "star")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert re.match(
        r"opticcl: plugin mine\.py, line 26: star: nothing reads lite_path \(did you mean light_path\?\), ", line
    )
    assert (
        "num_ports (did you mean ports_per_node?), control_seconds (did you mean control_s?) of class Star; docs/"
        in line
    )
    assert "spare" not in line


BUSY = ("return tuple(circuits.take(number == r) for r in range(number.max() + 1))", "return (circuits,)")
"""A rule that gives all signals of a step light in one round, on wavelengths that collide or do not exist."""


@pytest.mark.parametrize(
    ("verb", "options"),
    [("simulate", ()), ("execute", ()), ("simulate", ("--engine", "flow")), ("jobs", ("--place", "8"))],
)
def test_a_wrong_plan_is_judged_before_it_is_timed(opticcl, tmp_path, verb, options):
    """The reason is what is wrong with the plan, not that its time is too short."""
    path = plugin(tmp_path, BUSY, ("wavelengths: int = 16", "wavelengths: int = 2"))
    done = opticcl("--plugin", path, verb, "-f", "star:nodes=16", "-c", "all_to_all", "-a", "mesh", *options)
    assert (done.returncode, done.stdout) == (1, "")
    text = "\n".join(
        line for line in done.stderr.splitlines() if line.startswith(("opticcl: mesh on star: refused: ", "  "))
    )
    assert re.search(r"\n  \w+: step 0", text)
    assert "report" not in done.stderr


def test_a_comparison_goes_on_beside_a_plugin_that_fails(answer, tmp_path):
    """A wrong plan has no rank; an exception is the reason for which a fabric is left out, with the line and the member."""
    asked = ("compare", "-f", "star", "-f", "fat_tree", "-n", "16", "-s", "1MB", "-a", "mesh")
    rounds = plugin(tmp_path, BUSY, ("wavelengths: int = 16", "wavelengths: int = 2"))
    found, code = answer("--plugin", rounds, *asked)
    assert (code, {row["fabric"]: (row["rank"], row["verified"]) for row in found["rows"]}) == (
        1, {"fat_tree": (1, True), "star": (None, False)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("Usage(COUPLER, np", "Usage(COUPLERS, np", r"star raised NameError: .* \(mine\.py, line \d+, in Star\.usage"),
        (
            "number, first = np.divmod(", "number, first = np.divmods(",
            r"circuit rule star: \w+, step 0, raised AttributeError: .* \(mine\.py, line \d+, in wavelengths_of_signals\.",
        ),
        ("return rounds", "return lambda step, t: []", r"rule star: \w+, step 0: returned list, not a tuple of Circuits"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["compare", "compare --sizes 1KB:4KB", "train"])
def test_an_exception_of_a_plugin_leaves_its_fabric_out(opticcl, tmp_path, right, wrong, place, verb):
    """In whatever verb compares fabrics; the others have their rows."""
    asked = {"compare": ("-s", "1MB"), "train": ("-m", "lenet")}
    path = plugin(tmp_path, (right, wrong))
    done = opticcl("--plugin", path, *verb.split(), "-f", "star", "-f", "ideal", "-n", "8", *asked.get(verb, ()))
    assert done.returncode == 0, done.stderr
    assert "ideal" in done.stdout
    assert re.search(r"left out: .*" + place, " ".join(done.stdout.split())), done.stdout


def test_a_rule_reads_the_parameters_of_the_machine_in_a_job_too(answer, tmp_path):
    """`fabric.nodes` is the parameter of the class, of the whole machine and of a part of it."""
    path = plugin(tmp_path, ("def rounds(step, t):", "assert fabric.nodes == 16\n\n    def rounds(step, t):"))
    found, code = answer("--plugin", path, "verify", "-f", "star:nodes=16", "--job", "8-15", "-a", "ring", "-s", "1MB")
    assert (code, found["ok"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "member"),
    [
        (("machine", "budget"), "`light_path`"),
        (("machine", "netlist"), "`netlist`"),
        (("verify", "--emulate"), "`netlist`"),
        (("faults", "--sweep"), "`inventory`"),
    ],
)
def test_what_a_plugin_does_not_define_is_named(opticcl, tmp_path, words, member):
    """The member that the verb reads, not that its packets are electrical."""
    path = plugin(tmp_path, ("def light_path(", "def _light_path("))
    done = opticcl("--plugin", path, *words, "-f", "star")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Star does not define {member}" in done.stderr
    assert "electrically" not in done.stderr


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
