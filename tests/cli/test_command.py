"""Parsing and help of the program: panels, version, options given twice, one `-o` for all verbs."""

import gc
import json
import os
import re
import signal
import subprocess
import sys

import polars
import pytest
from click import UsageError
from tests.cli.verbs import VERBS, options_of, parse

from opticcl import assumptions, cli
from opticcl.cli._command import ALIASES, FORMER, PANELS
from opticcl.cli._output import FileKind, Outputs
from opticcl.cli._parameters import NUMBER, WHOLE
from opticcl.cli._request import DEFAULT_SET
from opticcl.errors import ParameterError

SHORT = {
    "-f": "--fabric", "-n": "--nodes", "-s": "--size", "-c": "--collective", "-a": "--algorithm", "-w": "--workload",
    "-o": "--out", "-m": "--model", "-h": "--help",
}  # fmt: skip
NAMED = {
    "--links", "--trace", "--programme", "--time", "--input", "--state", "--file", "--times", "--import", "--faults",
    "--replay", "--kernel-sizes",
}  # fmt: skip
"""Options of files beside --out: outputs of another kind, and inputs."""


def test_help_shows_four_panels(opticcl):
    """Every verb stands in one of them, in one line at 80 columns."""
    text = opticcl("--help").stdout
    assert list(PANELS) == ["A collective", "A job", "A machine", "Research"]
    places = [text.index(f"{heading}:") for heading in PANELS]
    assert places == sorted(places)
    assert sorted(name for names in PANELS.values() for name in names) == sorted(VERBS)
    assert all(f"\n  {name} " in text for name in VERBS)
    assert max(map(len, text.splitlines())) <= 80


def test_version(opticcl):
    """Of the installed package, also without a verb and as a module."""
    import opticcl as package

    assert opticcl("--version").stdout == f"opticcl {package.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "opticcl", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"opticcl {package.__version__}\n"


def test_a_module_calls_itself_by_its_name():
    """Not __main__.py."""
    done = subprocess.run([sys.executable, "-m", "opticcl", "list", "-h"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: opticcl list ")


@pytest.mark.parametrize("verb", VERBS)
def test_options_have_one_name_in_all_verbs(verb):
    """Short options are the common ones; files are written by --out, and by few others that keep a name."""
    for option in options_of(verb):
        for name in option.opts:
            if len(name) == 2:
                assert SHORT[name] in option.opts
            else:
                assert name not in {*ALIASES, *FORMER}
        if "FILE" in (option.metavar or "") and option.name != "out":
            assert NAMED & {*option.opts}
        if option.name == "out":
            assert option.opts == ["--out", "-o"]
            assert option.repeatable


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_help_text(verb):
    """As a sentence, or as a list of values."""
    for option in options_of(verb):
        assert option.help, option.opts
        assert option.help[-1] in ".)", option.opts


@pytest.mark.parametrize("verb", VERBS)
def test_values_are_described_not_typed(opticcl, verb):
    """Help texts show <size> or <fabric>, no type of Python."""
    for line in opticcl(verb, "--help").stdout.splitlines():
        assert not re.match(r" +-.*<(str|list.*)>", line), line


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_with_one_value_is_refused_twice(verb):
    """Whichever verb; a repeatable one and a switch are not."""
    tried = 0
    for option in options_of(verb):
        name = max(option.opts, key=len)
        if option.is_flag or option.repeatable:
            continue
        with pytest.raises(ParameterError) as caught:
            parse(verb, name, "1", name, "2")
        assert str(caught.value) == f"{verb}: {name} is given 2 times and takes one value; give it once"
        tried += 1
    assert tried or verb in ("list", "papers", "study", "warm")


@pytest.mark.parametrize("verb", VERBS)
def test_a_text_in_place_of_a_number_is_refused_by_name(verb):
    """With the option, the text and a number to give; every number is tried."""
    for option in options_of(verb):
        if option.type in (WHOLE, NUMBER):
            name = max(option.opts, key=len)
            what = "a whole number; give one such as 8" if option.type is WHOLE else "a number; give one such as 0.5"
            with pytest.raises(ParameterError) as caught:
                parse(verb, name, "1e3x")
            assert str(caught.value) == f"{name}: '1e3x' is not {what}"
    assert any(option.type is WHOLE for option in options_of("compare"))


def test_long_and_short_forms_are_one_option(opticcl):
    """Also where the value is written behind an equals sign; switches may be repeated, their opposites may not."""
    done = opticcl("compile", "-f", "ideal:nodes=2", "--fabric=ideal:nodes=3")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--fabric is given 2 times" in done.stderr
    assert parse("list", "ideal", "--json", "--json").params["json"] is True
    with pytest.raises(ParameterError, match="--overlap is given 2 times"):
        parse("train", "--model", "lenet", "--overlap", "--no-overlap")
    assert parse("compare", "-f", "a", "-f", "b", "-o", "c.svg", "-o", "d.json").params["fabrics"] == ("a", "b")


def test_words_without_an_option_are_nodes_and_fabrics(answer):
    """In verbs that take no arguments; several fabrics may stand in one text, parameters of one stay with it."""
    asked = parse("compare", "-s", "64", "64", "ramp", "-f", "ideal").params
    assert (asked["nodes"], asked["fabrics"], asked["sizes"]) == (64, ("ramp", "ideal"), ("64",))
    assert parse("budget", "ramp").params["fabric"] == "ramp"
    both = cli.parsed(["compare", "-f", "lightpath:shape=2x2,waveguides=4,torus:shape=2x2", "-f", "ideal"])
    assert both.fabrics == ("lightpath:shape=2x2,waveguides=4", "torus:shape=2x2", "ideal")
    found, _ = answer("compare", "4", "-f", "ideal,torus", "-s", "1KB")
    assert {row["fabric"]: row["num_nodes"] for row in found["rows"]} == {"ideal": 4, "torus": 4}
    with pytest.raises(UsageError, match="unexpected extra argument"):
        parse("warm", "8")


def test_other_spellings_of_out(opticcl, tmp_path):
    """--html is one; options of an earlier version are refused with the new name."""
    page = tmp_path / "page.html"
    assert opticcl("compare", "-f", "ideal:nodes=4", "-s", "1KB", "--html", page).returncode == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    for arguments in (
        ("budget", "--output=x.svg"),
        ("simulate", "--picture", "x.svg"),
        ("execute", "--output", "x.npy"),
    ):
        done = opticcl(*arguments)
        assert (done.returncode, "write --out FILE" in done.stderr) == (2, True)
    for verb, option in (("simulate", "--assumptions"), ("compare", "--assumptions"), ("budget", "--optics")):
        done = opticcl(verb, "-f", "ramp", "--preset", "typical")
        assert (done.returncode, f"--preset is {option} now; write {option} NAME" in done.stderr) == (2, True)
    with pytest.raises(UsageError, match="No such option"):
        parse("list", "--html", "x.html")


def test_one_call_writes_several_files(opticcl, answer, tmp_path):
    """The suffix says the kind; the record is that of --json, the rows are its rows."""
    files = [tmp_path / name for name in ("out.html", "out.svg", "out.png", "out.json", "out.csv", "out.parquet")]
    asked = ["compare", "-f", "ideal:nodes=4", "-f", "torus:shape=2x2", "-s", "1KB"]
    done = opticcl(*asked, *(word for file in files for word in ("-o", file)))
    assert done.returncode == 0, done.stderr
    for kind, file in zip(("page", "picture", "picture", "record", "rows", "rows"), files, strict=True):
        assert f"{kind}: {file}" in done.stdout
    found, _ = answer(*asked)
    assert json.loads(files[3].read_text()) == found
    keys = {"headline", "equal", "assumptions", "rows", "left_out", "notes", "caveats", "not_tried", "flips", "decided"}
    assert keys == set(found)
    read = polars.read_parquet(files[5])
    assert read.to_dicts() == found["rows"]
    assert polars.read_csv(files[4])["fabric"].to_list() == [row["fabric"] for row in found["rows"]]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if any(o.name == "out" for o in options_of(verb))])
def test_a_verb_that_writes_lists_its_suffixes(verb):
    """JSON is always among them: the record, or the plan; formats are listed elsewhere."""
    (out,) = [option for option in options_of(verb) if option.name == "out"]
    assert "its suffix selects what is written: " in out.help
    assert ".json" in out.help or "opticcl list formats" in out.help


def test_a_study_without_a_name_writes_the_list(opticcl, tmp_path):
    """As a record; a picture of it is refused."""
    target = tmp_path / "studies.json"
    assert opticcl("study", "-o", target).returncode == 0
    assert "transfers" in json.loads(target.read_text())
    done = opticcl("study", "-o", tmp_path / "studies.svg")
    assert (done.returncode, "must end in .json" in done.stderr) == (2, True)
    assert not (tmp_path / "studies.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "a.json", "-o", "./a.json"), "it is the file of --out; give another name"),
        (("-o", "loop.json"), "its links lead to no file"),
        (("-o", "absent/a.json"), "there is no folder absent"),
        (("-o", "."), "it is a folder; give the name of a file"),
        (("-o", "a"), "its name must end in .json"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(opticcl, tmp_path, monkeypatch, arguments, words):
    """One line, and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.json").symlink_to("loop.json")
    done = opticcl("verify", "-f", "ideal:nodes=4", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["loop.json"]


def test_names_of_written_files_are_printable(opticcl, tmp_path):
    """A name with an escape sequence does not reach the terminal."""
    path = tmp_path / "\x1b[31mred.csv"
    done = opticcl("compile", "-f", "ideal:nodes=2", "-o", path)
    assert (done.returncode, path.exists(), "\x1b" in done.stdout) == (0, True, False)


def test_outputs_sort_files_by_kind(tmp_path):
    """In the order given; upper case counts as lower case."""
    kinds = FileKind("a", (".x", ".y")), FileKind("b", (".z",))
    paths = [tmp_path / name for name in ("1.x", "2.z", "3.Y")]
    outputs = Outputs(paths, *kinds)
    assert outputs.of(kinds[0]) == [paths[0], paths[2]]
    outputs.write(kinds[0], lambda path: path.name)
    outputs.write(kinds[1], lambda path: None)
    assert outputs.lines == [f"a: {paths[0]}, 1.x", f"a: {paths[2]}, 3.Y", f"b: {paths[1]}"]


@pytest.mark.parametrize("width", [60, 80, 160])
def test_tables_are_as_wide_as_columns_says(opticcl, monkeypatch, width):
    """Also in a pipe; the columns of the answer are always there, the others where they are asked for."""
    monkeypatch.setenv("COLUMNS", str(width))
    asked = ("compare", "-n", "4", "-f", "ramp:groups=2,racks=1,wavelengths=2", "-f", "torus", "-s", "1MB")
    lines = opticcl(*asked).stdout.splitlines()
    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.startswith("fabric ")]
    assert {"algorithm", "time", "vs best", "as built", "light"} <= {
        word for word in ("algorithm", "time", "vs best", "as built", "light") if any(word in head for head in heads)
    }
    assert "bottleneck" not in "".join(lines)
    whole = opticcl(*asked, "--columns", "all").stdout
    assert all(word in whole for word in ("bottleneck", "x bound", "USD per node", "command"))
    chosen = opticcl(*asked, "--columns", "fabric,steps").stdout
    assert [line.split() for line in chosen.splitlines() if line.startswith("fabric")] == [["fabric", "steps"]]
    refused = opticcl(*asked, "--columns", "fabric,speed")
    assert (refused.returncode, refused.stdout, "--columns: no column 'speed'; there are fabric" in refused.stderr) == (
        2,
        "",
        True,
    )


def test_the_answer_stands_in_the_narrowest_terminal(opticcl, monkeypatch):
    """A column less wide than a word is none."""
    monkeypatch.setenv("COLUMNS", "1")
    lines = opticcl("cost", "-n", "8", "-f", "oddl").stdout.splitlines()
    assert lines[0].split()[0] == "oddl"
    assert any(line.split()[:1] == ["part"] for line in lines)
    assert any(line.startswith("wss") for line in lines)


def test_no_verb_prints_the_help(opticcl):
    """The whole of it and nothing else, with the code of wrong input."""
    done = opticcl()
    assert (done.returncode, done.stderr.strip()) == (2, opticcl("--help").stdout.strip())


def test_the_answer_of_a_sweep_is_never_dropped(opticcl, monkeypatch):
    """Fabrics that do not fit continue below."""
    monkeypatch.setenv("COLUMNS", "60")
    names = ("ideal", "torus", "oddl", "lightpath", "fat_tree", "bcube", "topoopt")
    asked = [word for name in names for word in ("-f", name)]
    text = opticcl("sweep", "-n", "4", *asked, "--from", "1KB", "--to", "4KB").stdout
    heads = [line for line in text.splitlines() if line.lstrip().startswith("size")]
    assert len(heads) > 1
    assert {word for line in heads for word in line.split()} >= set(names)
    assert "not shown" not in text


def test_values_of_assume_are_given_once(opticcl):
    """As those of --set are."""
    done = opticcl("simulate", "-f", "ideal:nodes=2", "--assume", "compute=none", "--assume", "compute=chain")
    assert (done.returncode, "compute is given twice" in done.stderr) == (2, True)


def test_the_default_assumptions_are_those_of_the_library():
    """The command line names them without an import that help would wait for."""
    assert DEFAULT_SET == assumptions.DEFAULT_SET


def test_garbage_is_looked_for_often_once_modules_are_read(monkeypatch):
    """The first collection is late; from it on there is one for every few objects, and nothing is called again."""
    before = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["opticcl", "--version"])
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    try:
        with pytest.raises(SystemExit):
            cli.main()
        assert gc.get_threshold()[0] == cli.OF_MODULES
        assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
        gc.collect()
        assert gc.get_threshold()[0] == cli.GARBAGE
        assert cli._look_for_garbage_often not in gc.callbacks
    finally:
        gc.set_threshold(*before)
