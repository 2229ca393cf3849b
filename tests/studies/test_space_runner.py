"""Runs of a design space: killed, crashed, on a full disk, two at once; nothing is lost and nothing is done twice."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, deque
from pathlib import Path

import polars
import pytest
from tests.execute.launch import environment

from opticcl.errors import OutputError, ParameterError, StateFileError
from opticcl.processes import events
from opticcl.studies.space import measure
from opticcl.studies.space.design import read_design
from opticcl.studies.space.ledger import Ledger
from opticcl.studies.space.measure import Measured
from opticcl.studies.space.runner import estimate, query, read_rows, run_space

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

SCRIPT = Path(__file__).with_name("slow_study.py")

SMALL = """
[axes]
fabric = ["ideal", "torus"]
nodes = [4, 6]
size = { from = "1KB", to = "1MB", factor = 10 }
"""


@pytest.fixture
def file(tmp_path):
    """A study of 16 points."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def counts(folder):
    """Points in each state, as another process reads the ledger."""
    if not (folder / "ledger.sqlite").exists():
        return Counter()
    connection = sqlite3.connect(f"file:{folder}/ledger.sqlite?mode=ro", uri=True)
    try:
        return Counter(state for (state,) in connection.execute("SELECT state FROM points"))
    except sqlite3.OperationalError:  # not made yet
        return Counter()
    finally:
        connection.close()


def finished(folder):
    """Result and number of the run of every finished point."""
    connection = sqlite3.connect(f"{folder}/ledger.sqlite")
    try:
        rows = connection.execute("SELECT key, result, run FROM points WHERE state IN ('done', 'refused')").fetchall()
    finally:
        connection.close()
    return {key: (result, run) for key, result, run in rows}


def start(*words):
    """The slow study in a process of its own."""
    words = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(condition, process):
    """Wait for a condition while a process runs."""
    while process.poll() is None and not condition():
        time.sleep(0.005)


def test_a_killed_run_goes_on(file, tmp_path):
    """What was recorded stays as it was; every point has one result."""
    folder, log = tmp_path / "out", tmp_path / "log"
    killed = start(file, folder, log, 0.1)
    until(lambda: counts(folder)["done"] > 1, killed)
    killed.kill()
    killed.communicate()
    before = finished(folder)
    assert 1 < len(before) < 16
    done = start(file, folder, log, 0)
    _, errors = done.communicate()
    assert done.returncode == 0, errors
    after = finished(folder)
    assert len(after) == 16
    assert {key: after[key] for key in before} == before
    rows = polars.read_parquet(folder / "results.parquet")
    assert rows["total_s"].to_list() == [number + 1.0 for number in range(16)]
    assert set(rows["state"]) == {"done"}


@pytest.mark.deep
def test_a_study_killed_20_times(tmp_path):
    """At random moments, with real points: the table equals that of one undisturbed run, and no point was recorded twice."""
    file = tmp_path / "real.toml"
    file.write_text(SMALL.replace("factor = 10", "factor = 1.05"))
    once, often = tmp_path / "once", tmp_path / "often"
    words = [sys.executable, "-m", "opticcl", "study", "run", str(file), "--jobs", "2", "--folder"]
    subprocess.run([*words, str(once)], env=environment(), check=True, capture_output=True)
    draw = random.Random(0)
    known: dict = {}
    for _ in range(20):
        with subprocess.Popen([*words, str(often)], env=environment(), stdout=-1, stderr=-1) as process:
            until(lambda: (often / "ledger.sqlite").exists(), process)
            time.sleep(draw.uniform(0, 1.0))
            process.send_signal(signal.SIGKILL)
        now = finished(often) if counts(often) else {}
        assert {key: now[key] for key in known} == known
        known = now
    subprocess.run([*words, str(often)], env=environment(), check=True, capture_output=True)
    assert {key: finished(often)[key] for key in known} == known
    first, second = (polars.read_parquet(folder / "results.parquet") for folder in (once, often))
    assert first.height == 4 * 142
    assert first.equals(second)


def test_a_point_that_crashes_twice_is_set_aside(file, tmp_path):
    """With its signal; the others are computed once each."""
    folder, log = tmp_path / "out", tmp_path / "log"
    done = start(file, folder, log, 0, 5)
    printed, errors = done.communicate()
    assert done.returncode == 0, errors
    assert "'done': 15" in printed
    assert "'set aside': 1" in printed
    assert "SIGKILL" in printed
    assert sorted(map(int, log.read_text().split())) == [number for number in range(16) if number != 5]


def test_results_do_not_depend_on_the_processes(file, tmp_path):
    """One, two, or a run after another; a finished study computes nothing."""
    space = read_design(file)
    tables = []
    for jobs in (1, 2):
        found = run_space(space, tmp_path / str(jobs), jobs=jobs)
        assert (found.computed, found.ok, found.states) == (16, True, {"done": 16})
        tables.append(polars.read_parquet(tmp_path / str(jobs) / "results.parquet"))
    assert tables[0].equals(tables[1])
    assert run_space(space, tmp_path / "1").computed == 0


def test_values_are_those_of_the_other_verbs(file, tmp_path, answer):
    """Time, bound and gap of compare; dollars, watts and light too."""
    run_space(read_design(file), tmp_path / "out")
    row = next(r for r in read_rows(tmp_path / "out") if (r["fabric"], r["num_nodes"]) == ("torus", 6))
    found, _ = answer("compare", "-f", "torus", "-n", "6", "-s", "1KB")
    compared = found["rows"][0]
    for column in ("total_s", "lower_bound_s", "bound_by", "gap", "usd_per_node", "w_per_node", "light_margin_db"):
        assert row[column] == compared[column], column


def test_iterations_of_training_are_those_of_train(tmp_path, answer):
    """A model and a trace."""
    file = tmp_path / "mine.toml"
    (tmp_path / "trace.toml").write_text('name = "mine"\n[[calls]]\ncollective = "all_reduce"\nsize = "25 MB"\n')
    workloads = ["lenet", str(tmp_path / "trace.toml")]
    file.write_text(f'[axes]\nfabric = "torus"\nnodes = 6\nworkload = {json.dumps(workloads)}\n')
    assert run_space(read_design(file), tmp_path / "out").states == {"done": 2}
    for row, option in zip(read_rows(tmp_path / "out"), ("--model", "--workload"), strict=True):
        found, _ = answer("train", option, row["workload"], "-n", "6", "-f", "torus", "--as-built")
        trained = found["rows"][0]
        assert row["total_s"] == trained["iteration_s"] > 0
        assert (row["compute_s"], row["exposed_s"]) == (trained["compute_s"], trained["exposed_s"])
        assert row["algorithm"] == " ".join(trained["algorithms"])


def test_a_longer_axis_computes_the_new_points_alone(file, tmp_path):
    """And an axis of default values none."""
    run_space(read_design(file), tmp_path / "out")
    file.write_text(SMALL.replace("[4, 6]", "[4, 6, 9]") + 'collective = ["all_reduce"]\n')
    assert run_space(read_design(file), tmp_path / "out").computed == 8


def test_the_table_is_that_of_the_file(file, tmp_path):
    """Also where the same number of points was replaced by others that the ledger has, and where it was removed."""
    folder = tmp_path / "out"
    file.write_text(SMALL.replace("[4, 6]", "[4, 6, 9]"))
    run_space(read_design(file), folder)
    for nodes in ([4, 6], [4, 9]):
        file.write_text(SMALL.replace("[4, 6]", str(nodes)))
        assert run_space(read_design(file), folder).computed == 0
        assert {row["num_nodes"] for row in read_rows(folder)} == set(nodes)
    (folder / "results.parquet").unlink()
    run_space(read_design(file), folder)
    assert len(read_rows(folder)) == 16


def test_other_constraints_need_another_folder(file, tmp_path):
    """Since finished points would be wrong."""
    run_space(read_design(file), tmp_path / "out")
    file.write_text(SMALL + '[constraints]\nlight = "closes"\n')
    with pytest.raises(StateFileError, match="other measures, constraints or another version; give another --folder"):
        run_space(read_design(file), tmp_path / "out")


def test_an_interrupted_run_keeps_what_is_finished(file, tmp_path):
    """Also what was not yet in the ledger."""

    def interrupt(label, done=0, total=0):
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_space(read_design(file), tmp_path / "out", progress=interrupt)
    known = counts(tmp_path / "out")["done"]
    assert known > 5
    assert run_space(read_design(file), tmp_path / "out").computed == 16 - known


def test_constraints_refuse_points_with_the_reason(file, tmp_path):
    """A node that takes too many watts, or whose price is unknown; tests/plans/test_light.py constrains light."""
    file.write_text(SMALL.replace("ideal", "lightpath") + 'node_rate = "built"\n[constraints]\nwatts_per_node = 30\n')
    space = read_design(file)
    found = run_space(space, tmp_path / "watts")
    kept = read_rows(tmp_path / "watts")
    assert all(row["w_per_node"] <= 30 for row in kept)
    assert all(reason.startswith("constraint watts_per_node: torus takes ") for reason in found.refusals)
    assert (found.states["refused"], {row["num_nodes"] for row in kept if row["fabric"] == "torus"}) == (4, {4})
    file.write_text(SMALL + "[constraints]\ndollars_per_node = 1e9\n")
    found = run_space(read_design(file), tmp_path / "dollars")
    assert found.refusals == {"constraint dollars_per_node: the dollars of ideal are unknown": 8}


@pytest.mark.deep
def test_two_runs_on_one_ledger(file, tmp_path):
    """The second names the first, which is not disturbed."""
    folder = tmp_path / "out"
    with start(file, folder, tmp_path / "log", 0.2) as first:
        until(lambda: counts(folder)["pending"] > 1, first)
        with pytest.raises(StateFileError, match=rf"another run works on this ledger \(process {first.pid}\)"):
            Ledger(folder, "x")
        first.communicate()
    assert counts(folder) == {"done": 16}


def test_a_removed_folder_is_written_again(file, tmp_path, monkeypatch):
    """With what was finished, and an error that names it."""
    folder = tmp_path / "out"

    def removed(_space, _points, numbers):
        for number in numbers:
            if number == 9:
                shutil.rmtree(folder)
            time.sleep(0.05)
            yield Measured(number, {"total_s": 1.0})

    monkeypatch.setattr(measure, "measured", removed)
    with pytest.raises(OutputError, match=r"ledger\.sqlite was removed while the study ran; it is written again"):
        run_space(read_design(file), folder)
    known = len(finished(folder))
    assert known > 0
    monkeypatch.undo()
    assert run_space(read_design(file), folder).computed == 16 - known


def test_a_full_disk_loses_nothing(file, tmp_path):
    """The error names the ledger; points that did not fit stay pending."""
    points = list(read_design(file).points())
    with Ledger(tmp_path / "out", "x") as ledger:
        ledger.add(point.key for point in points)
        ledger.record({points[0].key: ("", '{"total_s": 1.0}')})
        ledger._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(OutputError, match=r"cannot write .*ledger\.sqlite: database or disk is full"):
            ledger.record({point.key: ("", json.dumps("x" * 10_000)) for point in points[1:]})
        assert Counter(ledger.states().values()) == {"pending": 15, "done": 1}


def test_no_point_is_recorded_twice(file, tmp_path):
    """Nor one that is unknown."""
    with Ledger(tmp_path / "out", "x") as ledger:
        ledger.add(["a", "b"])
        ledger.record({"a": ("", "{}")})
        for key in ("a", "unknown"):
            with pytest.raises(RuntimeError, match="1 points would be done twice"):
                ledger.record({key: ("", "{}"), "b": ("", "{}")})
        assert ledger.states() == {"a": "done", "b": "pending"}


def test_what_is_no_ledger_is_refused(tmp_path):
    """A file of another kind, a folder that cannot be made."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ledger.sqlite").write_text("no database" * 100)
    with pytest.raises(StateFileError, match="is not a ledger of a study: file is not a database"):
        Ledger(tmp_path / "out", "x")
    with pytest.raises(OutputError, match="No such file"):
        Ledger(tmp_path / "absent" / "out", "x")


def test_queries(file, tmp_path):
    """SQL on the table of results; what is wrong is one line."""
    with pytest.raises(OutputError, match="run opticcl study"):
        query(tmp_path, "SELECT 1")
    run_space(read_design(file), tmp_path / "out")
    found = query(tmp_path / "out", "SELECT fabric, min(total_s) AS best FROM results GROUP BY fabric ORDER BY fabric")
    assert found["fabric"].to_list() == ["ideal", "torus"]
    for sql in ("SELECT nothing FROM results", "SELEC 1", "SELECT * FROM absent"):
        with pytest.raises(ParameterError, match=r"columns: .*num_nodes") as caught:
            query(tmp_path / "out", sql)
        assert "\n" not in str(caught.value)


def test_queries_with_windows_and_two_studies(file, tmp_path):
    """Ranks within a size, sums of groups, and the results of another folder beside those of this one."""
    run_space(read_design(file), tmp_path / "out")
    ranks = query(
        tmp_path / "out",
        "SELECT fabric, rank() OVER (PARTITION BY num_nodes, size_bytes ORDER BY total_s) AS place FROM results "
        "ORDER BY num_nodes, size_bytes, place",
    )
    assert ranks["place"].to_list() == [1, 2] * 8
    grouped = "SELECT num_nodes, count(*) AS points FROM results GROUP BY num_nodes HAVING count(*) > 7 ORDER BY num_nodes DESC"
    assert query(tmp_path / "out", grouped).rows() == [(6, 8), (4, 8)]
    file.write_text(SMALL.replace("[4, 6]", "[6]"))
    run_space(read_design(file), tmp_path / "other")
    joined = (
        "SELECT a.fabric, a.total_s / b.total_s AS ratio FROM results AS a "
        f"JOIN read_parquet('{tmp_path}/other/results.parquet') AS b "
        "ON a.fabric = b.fabric AND a.num_nodes = b.num_nodes AND a.size_bytes = b.size_bytes"
    )
    assert query(tmp_path / "out", joined)["ratio"].to_list() == [1.0] * 8
    with pytest.raises(ParameterError, match="WITH RECURSIVE is not supported"):
        query(tmp_path / "out", "with  recursive t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t")


def test_an_estimate_writes_nothing(file, tmp_path):
    """And counts what is finished."""
    space = read_design(file)
    expected = estimate(space, tmp_path / "out", jobs=2)
    assert (expected.points, expected.finished, expected.machines) == (16, 0, 4)
    assert 0 < expected.least_s <= expected.most_s
    assert not (tmp_path / "out").exists()
    run_space(space, tmp_path / "out")
    assert json.loads(json.dumps(estimate(space, tmp_path / "out").record()))["finished"] == 16


def test_events_of_processes():
    """Values in their order; an exception and the end of a process are reported, and the other items are done."""

    def work(item):
        yield item
        if item == 1:
            raise ValueError("one\nline")
        yield -item

    seen: dict = {}
    for event in events(work, deque(range(4)), jobs=2):
        if event is not None:
            seen.setdefault(event.item, []).extend(event.values)
            if event.crash:
                seen[event.item].append(event.crash)
    assert seen == {0: [0, 0], 1: [1, "ValueError: one line"], 2: [2, -2], 3: [3, -3]}


def test_a_process_that_ends_with_nothing_to_do_is_no_crash():
    """What is given later is done by another one."""

    def work(item):
        yield os.getpid()
        time.sleep(0.2 if item == "slow" else 0)

    waiting, seen = deque(["first", "slow"]), {}
    for event in events(work, waiting, jobs=2):
        if event is not None:
            assert not event.crash
            seen.setdefault(event.item, []).extend(event.values)
            if event.item == "first" and event.ended:
                os.kill(seen["first"][0], signal.SIGKILL)
            if event.item == "slow" and event.ended:
                waiting.append("last")
    assert set(seen) == {"first", "slow", "last"}
    assert seen["last"][0] != seen["first"][0]


def test_values_larger_than_one_read():
    """They arrive whole, beside small ones that arrive together."""

    def work(item):
        yield from range(100)
        yield bytes(item * 300_001)
        yield item

    seen: dict = {}
    for event in events(work, deque(range(4)), jobs=2):
        if event is not None:
            seen.setdefault(event.item, []).extend(event.values)
            assert not event.crash
    assert seen == {item: [*range(100), bytes(item * 300_001), item] for item in range(4)}
