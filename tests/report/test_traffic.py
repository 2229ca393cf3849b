"""Files and words about what links carry: tables, traces, pictures, the critical path."""

import csv
import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import polars
import pytest

import opticcl
from opticcl.errors import OutputError, UnsupportedError
from opticcl.report import transfer_trace
from opticcl.report.kit.svg import save_picture
from opticcl.report.load_pictures import load_picture, load_view
from opticcl.report.simulation import Simulation
from opticcl.report.traffic import critical_path_lines, critical_path_rows, write_links
from opticcl.report.transfer_trace import write_transfer_trace
from opticcl.simulate import simulate

MB = 1_000_000


def simulated(specification, collective, algorithm, engine="flow", mode="barrier"):
    """A plan, simulated."""
    plan = opticcl.compile(specification, collective, MB, algorithm=algorithm)
    options = {} if engine == "closed_form" else {"mode": mode, "record": True}
    return Simulation(plan, engine, simulate(plan.circuits, MB, engine=engine, **options, assumed="published"))


@pytest.fixture(scope="module")
def tree():
    """An all-to-all on a fat tree with barriers."""
    return simulated("fat_tree:nodes=16,radix=8", "all_to_all", "mesh")


@pytest.fixture(scope="module")
def ring():
    """A ring all-reduce on a fat tree, each transfer when it can."""
    return simulated("fat_tree:nodes=16,radix=8", "all_reduce", "ring", mode="asynchronous")


# --- tables of links --------------------------------------------------------------------------------------------------


def read_links(path):
    """Rows of a file of links, whatever its kind."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    return (polars.read_csv(path) if path.suffix == ".csv" else polars.read_parquet(path)).to_dicts()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_links_are_written_alike_in_every_kind_of_file(tree, tmp_path, suffix):
    """A row a link that carries something; bytes and shares are those of the simulation."""
    path, total_s = tmp_path / f"links{suffix}", tree.result.timeline.total_s
    written = write_links(path, tree.plan.fabric, tree.loads, total_s)
    rows = read_links(path)
    assert written == len(rows) == len(tree.result.traffic.link)
    assert sum(row["bytes"] for row in rows) == pytest.approx(tree.result.traffic.carried_bytes.sum())
    busiest = max(rows, key=lambda row: row["busy_s"])
    assert busiest["utilisation"] == pytest.approx(tree.bottleneck.utilisation)
    assert tree.bottleneck.name in {r["name"] for r in rows if r["busy_s"] == pytest.approx(busiest["busy_s"])}
    assert {row["kind"] for row in rows} == {"node -> leaf", "leaf -> node", "leaf -> spine", "spine -> leaf"}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_comma_in_a_name_stays_in_its_column(tmp_path):
    """Names hold commas; every line of the file has as many fields as the head."""
    found = simulated("superpod:nodes=16", "all_reduce", "ring")
    path = tmp_path / "links.csv"
    write_links(path, found.plan.fabric, found.loads, found.result.timeline.total_s)
    with path.open() as file:
        rows = list(csv.reader(file))
    assert "link node 0 (server 0, rail 0) -> NVSwitch 0" in {row[2] for row in rows}
    assert {len(row) for row in rows} == {8}


def test_other_suffixes_leave_nothing(tree, tmp_path):
    """A line that names the file, and no file."""
    for write, name in (
        (lambda path: write_links(path, tree.plan.fabric, tree.loads, 1.0), "links.txt"),
        (lambda path: write_transfer_trace(path, tree.plan, tree.result), "trace.csv"),
        (lambda path: save_picture(path, *load_picture(tree)), "load.pdf"),
    ):
        with pytest.raises(OutputError, match=name):
            write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_light_has_links_too(tmp_path):
    """On an optical fabric the parts are its transmitters, receivers and glass."""
    found = simulated("terarack:nodes=9,wavelengths=4", "all_reduce", "wrht")
    path = tmp_path / "links.json"
    write_links(path, found.plan.fabric, found.loads, found.result.timeline.total_s)
    rows = read_links(path)
    assert {row["kind"] for row in rows} == {"fibre", "lasers", "photodiodes"}
    assert all(0 < row["utilisation"] <= 1 for row in rows)


# --- traces -----------------------------------------------------------------------------------------------------------


def trace_of(found, path):
    """Slices of a trace by thread, the whole file, and what it was said to tell."""
    told = write_transfer_trace(path, found.plan, found.result)
    whole = json.loads(path.read_text())
    threads = defaultdict(list)
    for event in whole["traceEvents"]:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(event)
    return threads, whole, told


@pytest.mark.parametrize("mode", ["barrier", "asynchronous"])
@pytest.mark.parametrize(
    ("specification", "collective", "algorithm"),
    [
        ("fat_tree:nodes=16,radix=8", "all_reduce", "ring"),
        ("superpod:nodes=16", "all_to_all", "mesh"),
        ("sipac:radix=3,levels=2", "all_reduce", "sipco"),
        ("terarack:nodes=9,wavelengths=2", "all_reduce", "wrht"),
    ],
)
def test_spans_lie_inside_the_plan_and_not_over_each_other(specification, collective, algorithm, mode, tmp_path):
    """Every transfer of every step stands there once, on a line on which nothing overlaps, with a name."""
    found = simulated(specification, collective, algorithm, mode=mode)
    threads, whole, told = trace_of(found, tmp_path / "trace.json")
    total_us = found.result.timeline.total_s * 1e6
    for spans in threads.values():
        spans.sort(key=lambda e: e["ts"])
        assert all(e["ts"] >= 0 and e["ts"] + e["dur"] <= total_us * (1 + 1e-9) for e in spans)
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(spans))
    transfers = [e for (process, _), spans in threads.items() if process == 1 for e in spans]
    schedule = found.plan.schedule
    due = sum(len(schedule.step(i)) for i in range(schedule.num_steps))
    assert (len(transfers), told) == (due, "all transfers")
    assert any(e["args"]["critical"] for e in transfers)
    assert max(e["ts"] + e["dur"] for e in transfers) <= total_us * (1 + 1e-9)
    named = {(e["pid"], e["tid"]) for e in whole["traceEvents"] if e["name"] == "thread_name"}
    assert named == set(threads)
    steps = threads[0, 0]
    assert steps[-1]["ts"] + steps[-1]["dur"] == pytest.approx(
        total_us if mode == "barrier" else float(found.result.traffic.critical.end_s[-1]) * 1e6
    )
    assert len(steps) == (schedule.num_steps if mode == "barrier" else len(found.result.traffic.critical))


def test_a_large_plan_is_told_in_part(tree, tmp_path, monkeypatch):
    """The first nodes that fit, and the file says which."""
    monkeypatch.setattr(transfer_trace, "MOST_SLICES", 50)
    threads, whole, told = trace_of(tree, tmp_path / "trace.json")
    transfers = [e for (process, _), spans in threads.items() if process == 1 for e in spans]
    assert told.startswith("transfers from nodes 0 to 2 of 16")
    assert whole["otherData"]["transfers"] == told
    assert len(transfers) == 3 * 15
    monkeypatch.setattr(transfer_trace, "MOST_LINES", 20)
    assert trace_of(tree, tmp_path / "trace.json")[2].startswith("transfers from node 0 of 16")
    monkeypatch.setattr(transfer_trace, "MOST_SLICES", 10)
    threads, _, told = trace_of(tree, tmp_path / "trace.json")
    assert told.startswith("transfers from node 0")
    assert sum(len(spans) for (process, _), spans in threads.items() if process == 1) <= 15


def test_the_closed_form_has_no_trace(tree, tmp_path):
    """It is refused, and no file is left."""
    still = simulated("ideal:nodes=4", "all_reduce", "ring", engine="closed_form")
    with pytest.raises(UnsupportedError, match="--engine flow"):
        write_transfer_trace(tmp_path / "trace.json", still.plan, still.result)
    assert not list(tmp_path.iterdir())


# --- the critical path ------------------------------------------------------------------------------------------------


def test_the_critical_path_in_words(ring):
    """A long one is told at both ends; its last line ends when the plan does."""
    critical = ring.result.traffic.critical
    lines = critical_path_lines(ring.plan.fabric, critical)
    assert lines[0] == "critical path, 30 transfers; each waits for the one before:"
    assert lines[1].startswith("  step 0: node ")
    assert lines[5] == "  ... 22 more"
    assert len(lines) == 10
    assert [row["step"] for row in critical_path_rows(critical)] == list(range(30))


def test_no_critical_path_has_no_words(tree):
    """With barriers every step has its own last transfer."""
    assert critical_path_lines(tree.plan.fabric, tree.result.traffic.critical) == []


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_what_the_picture_shows_adds_up(tree):
    """Curves are sorted and as full as the links; the squares hold all bytes; slices of time the busy time."""
    seen = load_view(tree)
    busy = {load.resource: load.busy_s.sum() for load in tree.loads}
    total_s = tree.result.timeline.total_s
    assert sum(kind.busy.sum() for kind in seen.kinds) * total_s == pytest.approx(sum(busy.values()))
    assert all((np.diff(kind.busy) <= 0).all() and len(kind.busy) == kind.count for kind in seen.kinds)
    assert seen.sent.sum() == pytest.approx(16 * 15 / 16 * MB)
    assert np.trace(seen.sent) == 0
    parts = np.concatenate(
        [np.full(bands, kind.count / bands) for kind, bands in zip(seen.kinds, seen.bands, strict=True)]
    )
    shown_s = (seen.over_time * parts[:, None]).sum() * total_s / seen.over_time.shape[1]
    assert shown_s == pytest.approx(sum(busy.values()), rel=1e-6)


def test_pictures_are_written_whole(tree, tmp_path):
    """With time, without time and of nothing; as drawing and as dots."""
    alone = simulated("ideal:nodes=1", "all_reduce", "auto")
    still = simulated("sipac:radix=4,levels=4", "all_reduce", "auto", engine="closed_form")
    drawn = {}
    for name, found in (("tree.svg", tree), ("still.svg", still), ("alone.svg", alone), ("tree.png", tree)):
        save_picture(tmp_path / name, *load_picture(found))
        drawn[name] = (tmp_path / name).read_bytes()
    assert drawn["tree.png"].startswith(b"\x89PNG")
    assert all(drawn[name].startswith(b"<svg") for name in ("tree.svg", "still.svg", "alone.svg"))
    assert b"time since the start" in drawn["tree.svg"]
    assert b"time since the start" not in drawn["still.svg"]
    assert b"bytes from sender to receiver" in drawn["still.svg"]
    assert b"nothing is sent" in drawn["alone.svg"]
    assert len(list(tmp_path.iterdir())) == 4
