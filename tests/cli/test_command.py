"""Parsing and help of the program: panels, version, options given twice, one `-o` for all verbs."""

import gc
import json
import os
import re
import shlex
import signal
import subprocess
import sys

import polars
import pytest
from click import UsageError
from tests.cli.verbs import VERBS, options_of, parse

from opticcl import assumptions, cli
from opticcl.cli import words_of_today
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


def test_help_shows_sixteen_verbs_in_panels(opticcl):
    """Every verb but one that a kernel makes needless stands in one of them; verbs of a group in the help of the group."""
    text = opticcl("--help").stdout
    panels = ["A collective", "A job", "A machine", "A design space", "Your own"]
    places = [text.index(f"\n{heading}:") for heading in panels]
    assert places == sorted(places)
    shown = re.findall("\n  ([a-z]+)  ", text[places[0] :])
    assert len(shown) == len(set(shown)) == 16
    assert set(shown) == {verb.split()[0] for verb in VERBS} - {"warm"}
    assert max(map(len, text.splitlines())) <= 80
    for group in ("machine", "study"):
        members = {verb.split()[1] for verb in VERBS if verb.startswith(f"{group} ")}
        assert members == set(re.findall("\n  ([a-z_]+)  ", opticcl(group, "--help").stdout))


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
                assert words_of_today([*verb.split(), name, "x"]) == (*verb.split(), name, "x")
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
    for line in opticcl(*verb.split(), "--help").stdout.splitlines():
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
    assert tried or verb in ("list", "warm")


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
    assert parse("machine budget", "ramp").params["fabric"] == "ramp"
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
    with pytest.raises(UsageError, match="No such option"):
        parse("list", "--html", "x.html")


@pytest.mark.parametrize(
    ("former", "today"),
    [
        ("budget --output=x.svg -f ramp", "machine budget --out x.svg -f ramp"),
        ("budget --preset typical", "machine budget --optics typical"),
        ("machine budget --preset typical", "machine budget --optics typical"),
        ("control -f oddl --loss 0.2", "machine control -f oddl --loss 0.2"),
        ("convert plan.xml -f ideal -o a.csv", "compile plan.xml -f ideal -o a.csv"),
        ("cost -n 64", "machine cost -n 64"),
        ("netlist -f oddl", "machine netlist -f oddl"),
        ("papers ramp --claim A*", "study papers ramp --claim 'A*'"),
        ("run plan.parquet -s 1kB --compare", "execute --transport mpi plan.parquet -s 1kB --compare"),
        ("sweep -f ramp --from 8B --factor 2 -n 64", "compare -f ramp -n 64 --sizes 8B:1GB:2"),
        ("study space.toml --jobs 2", "study run space.toml --jobs 2"),
        ("traffic -f ramp --load 0.5", "machine traffic -f ramp --load 0.5"),
        ("compare -n 8 --node-rate 2Tb/s", "compare -n 8 --equal rate=2Tb/s"),
        ("simulate --picture x.svg", "simulate --out x.svg"),
        ("simulate --preset wrht", "simulate --assumptions wrht"),
        ("simulate -f ramp --cell 9kB --queue=input", "simulate -f ramp --engine packet:cell_bytes=9kB,queue=input"),
        ("simulate --engine flow --mode asynchronous", "simulate --engine flow:mode=asynchronous"),
    ],
)
def test_commands_of_earlier_versions_are_refused_with_that_of_today(opticcl, former, today):
    """In one line, which names what is former; the command of today is one that nothing maps to another."""
    done = opticcl(*former.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith(f"is of an earlier version; write opticcl {today}\n")
    assert done.stderr.split()[1] in former.replace("=", " ").split()
    words = tuple(shlex.split(today))
    assert words_of_today(words) == words


def test_a_file_has_defaults_of_options(opticcl, tmp_path, monkeypatch):
    """In this folder; what is used is named, what is given goes first, and a plan file is asked as it is."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "opticcl.toml"
    file.write_text(
        'nodes = 4\nsize = "1KB"\nfabric = "ideal"\nignore-light = true\n[machine.cost]\nprices = "ramp_hpc"\n'
    )
    done = opticcl("compare", "-s", "1MB", "--json")
    assert done.stderr == "opticcl.toml: --fabric ideal, --nodes 4, --ignore-light True\n"
    found = json.loads(done.stdout)
    assert [(row["fabric"], row["num_nodes"]) for row in found["rows"]] == [("ideal", 4)]
    assert "prices ramp_hpc" in opticcl("machine", "cost", "-f", "ramp", "-n", "8").stderr
    assert opticcl("compile", "-o", "plan.json").returncode == 0
    done = opticcl("verify", "plan.json")
    assert (done.returncode, "--fabric" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nods = 4", "opticcl.toml: no verb has the option nods; did you mean 'nodes'?"),
        ("[compare]\nnods = 4", "opticcl.toml: compare has no option nods; did you mean 'nodes'?"),
        ("json = 4", "opticcl.toml: json=4 is neither true nor false"),
        ("nodes = [[4]]", "is not text, a number, or a list of these"),
        ("nodes = 4.5", "--nodes: '4.5' is not a whole number"),
        ("nodes =", "opticcl.toml: is not valid TOML"),
        ("compare = 3", "opticcl.toml: compare is a verb; write its options below [compare]"),
    ],
)
def test_a_wrong_file_of_defaults_is_refused(opticcl, tmp_path, monkeypatch, text, said):
    """In one line that names the file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "opticcl.toml").write_text(text)
    done = opticcl("compare", "-f", "ideal", "-s", "1KB")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("opticcl comp", {"compare", "compile"}),
        ("opticcl machine c", {"control", "cost"}),
        ("opticcl study t", {"tornado", "transfers"}),
        ("opticcl compare --equ", {"--equal"}),
        ("opticcl compare -f terarack", {"terarack", "terarack_torus"}),
        ("opticcl simulate -c all_r", {"all_reduce"}),
        ("opticcl simulate -a lumo", {"lumorph"}),
    ],
)
def test_shells_complete_verbs_options_and_names(opticcl, monkeypatch, words, offered):
    """By what the script of --completion asks for."""
    assert "_OPTICCL_COMPLETE=zsh_complete" in opticcl("--completion", "zsh").stdout
    monkeypatch.setenv("_OPTICCL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    done = opticcl()
    assert done.returncode == 0
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == offered


@pytest.mark.parametrize("form", ["csv", "md", "json"])
def test_rows_are_printed_in_other_forms(opticcl, answer, form):
    """CSV has the rows of the record, Markdown the tables below the sentence, json what --json prints."""
    asked = ("compare", "-f", "bcube", "-f", "torus", "-n", "4", "-s", "1KB")
    found, _ = answer(*asked)
    text = opticcl(*asked, "--format", form).stdout
    if form == "json":
        assert json.loads(text) == found
    elif form == "csv":
        assert polars.read_csv(text.encode())["total_s"].to_list() == [row["total_s"] for row in found["rows"]]
    else:
        assert text.startswith(found["headline"])
        head, line, *rows = [line for line in text.splitlines() if line.startswith("|")]
        assert head.startswith("| fabric | algorithm | time |")
        assert set(line) <= set("|-: ")
        assert len(rows) == len(found["rows"])


def test_times_at_many_sizes_in_the_columns_of_nccl_tests(opticcl, answer):
    """A row a size: bytes, elements, time in us, bandwidths; its reader finds them where nccl-tests print them."""
    asked = ("compare", "-f", "ideal:nodes=4", "-c", "all_gather", "--sizes", "1KB:4KB:2")
    found, _ = answer(*asked)
    lines = opticcl(*asked, "--format", "nccl").stdout.splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert [int(row[0]) for row in rows] == [1000, 2000, 4000]
    assert [int(row[1]) for row in rows] == [250, 500, 1000]
    for row, one in zip(rows, found["rows"], strict=True):
        assert float(row[5]) == pytest.approx(one["total_s"] * 1e6, abs=0.006)
        assert float(row[7]) == pytest.approx(one["bus_bytes_per_s"] / 1e9, abs=0.006)


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


def test_columns_are_chosen(opticcl, monkeypatch):
    """All of them, or those that are named; others are refused."""
    monkeypatch.setenv("COLUMNS", "160")
    asked = ("compare", "-n", "4", "-f", "ramp:groups=2,racks=1,wavelengths=2", "-f", "torus", "-s", "1MB")
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
    lines = opticcl("machine", "cost", "-n", "8", "-f", "oddl").stdout.splitlines()
    assert lines[0].split()[0] == "oddl"
    assert any(line.split()[:1] == ["part"] for line in lines)
    assert any(line.startswith("wss") for line in lines)


def test_no_verb_prints_the_help(opticcl):
    """The whole of it and nothing else, with the code of wrong input."""
    done = opticcl()
    assert (done.returncode, done.stderr.strip()) == (2, opticcl("--help").stdout.strip())


def test_the_answer_at_many_sizes_is_never_dropped(opticcl, monkeypatch):
    """Fabrics that do not fit continue below."""
    monkeypatch.setenv("COLUMNS", "60")
    names = ("ideal", "torus", "oddl", "lightpath", "fat_tree", "bcube", "topoopt")
    asked = [word for name in names for word in ("-f", name)]
    text = opticcl("compare", "-n", "4", *asked, "--sizes", "1KB:4KB").stdout
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
