"""The runner of the benchmarks: verdicts, exit codes, the last results, and marks that fit the cases."""

import ast
import doctest
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """The modules of `benchmarks/`, which are no package."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield {name: importlib.import_module(name) for name in ("run", "marks", "measure")}
    for name in set(sys.modules) - known:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def toy(bench, monkeypatch, tmp_path):
    """A runner with cases of its own, which run in this process; answers exit code and results."""
    run, measure = bench["run"], bench["measure"]
    monkeypatch.setattr(run.cases, "load", lambda topic: None)
    monkeypatch.setattr(measure, "CASES", {})
    figures = {"cpu_s": 1.0, "wall_s": 9.0, "peak_mb": 10.0, "loop_ms": 1.0, "ratio": 2.0}
    for name in ("toy.good", "toy.slow", "toy.free"):
        measure.register(name, "a toy", lambda: lambda: None)

    def process(words, **given):
        return run.subprocess.CompletedProcess(words, 0, f"chatter\n{json.dumps(figures)}\n", "")

    monkeypatch.setattr(run.subprocess, "run", process)
    marks = tmp_path / "marks.toml"
    marks.write_text(
        "['toy.good']\nat_most = {cpu_s = 1.5}\nat_least = {ratio = 2}\nsource = 'a'\n"
        "['toy.slow']\nat_most = {cpu_s = 0.5}\nsource = 'b'\n"
    )

    def main(*words):
        return run.main([*words, "--marks", str(marks), "--results", str(tmp_path / "results")])

    main.results = lambda: json.loads(next((tmp_path / "results").iterdir()).read_text())
    main.figures = figures
    return main


def test_a_missed_mark_is_exit_code_1(toy, capsys):
    """And a met one is 0; a case without a mark says so."""
    assert toy("--only", "good", "--only", "free") == 0
    said = capsys.readouterr().out
    assert re.search(r"^met +toy.good .*1 <= 1.5 CPU s; 2 >= 2 ratio$", said, re.MULTILINE)
    assert re.search(r"^no mark +toy.free .*ratio 2$", said, re.MULTILINE)
    assert toy() == 1
    assert re.search(r"^MISSED +toy.slow .*1 <= 0.5 CPU s; ratio 2$", capsys.readouterr().out, re.MULTILINE)


def test_the_last_run_stands_beside_this_one(toy, capsys):
    """And a run of one case keeps the results of the others."""
    toy()
    toy.figures |= {"cpu_s": 1.1, "loop_ms": 1.25}
    capsys.readouterr()
    toy("--only", "good")
    assert re.search(r"toy.good +1.100 +1.000 +\+10% +\+25%", capsys.readouterr().out)
    assert {name: row["cpu_s"] for name, row in toy.results().items()} == {
        "toy.good": 1.1,
        "toy.slow": 1.0,
        "toy.free": 1.0,
    }


def test_an_absent_figure_misses_its_mark(toy):
    """A case that forgets to measure does not pass."""
    del toy.figures["ratio"]
    assert toy("--only", "good") == 1


def test_a_case_that_fails_is_red(toy, bench, monkeypatch, capsys):
    """With its last line; one that cannot run is not."""
    run = bench["run"]
    for code, out, err, expected, exit_code in (
        (1, "", "Traceback\nAssertionError: wrong\n", "FAILED   toy.good.*AssertionError: wrong", 1),
        (0, "\nnot run: no torch\n", "", "not run  toy.good.*no torch", 0),
    ):
        done = run.subprocess.CompletedProcess([], code, out, err)
        monkeypatch.setattr(run.subprocess, "run", lambda words, done=done, **given: done)
        assert toy("--only", "good") == exit_code
        assert re.search(expected, capsys.readouterr().out)


def test_measured_figures(bench):
    """CPU, wall and memory of a case of one's own, without its preparation."""
    measure = bench["measure"]

    def prepare():
        sum(range(3_000_000))
        return lambda: {"ratio": 3.0}

    figures = measure.measured(measure.Case("toy.one", "a toy", prepare))
    assert figures.keys() == {"cpu_s", "wall_s", "peak_mb", "loop_ms", "ratio"}
    assert figures["cpu_s"] < 0.05
    assert figures["peak_mb"] > 10


def test_every_mark_has_a_case(bench):
    """And a source; every case is of the topic of its file."""
    bench["run"].cases.load(None)
    names = bench["measure"].CASES
    marks = bench["marks"].load_marks(BENCHMARKS / "marks.toml", names)
    assert len(marks) > 100
    topics = {path.stem for path in (BENCHMARKS / "cases").glob("*.py")}
    assert {name.partition(".")[0] for name in names} <= topics
    for path in (BENCHMARKS / "cases").glob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8")))
    with pytest.raises(ValueError, match="needs a case of that name"):
        bench["marks"].load_marks(BENCHMARKS / "marks.toml", ["flow.pairs_256"])


def test_examples_in_docstrings(bench):
    """Of the runner and the marks."""
    for name in ("run", "marks"):
        done = doctest.testmod(bench[name])
        assert (done.failed, done.attempted > 0) == (0, True)
