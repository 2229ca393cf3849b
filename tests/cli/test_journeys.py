"""What four readers do first: choose a network, make a step faster, try a network of their own, build the hardware."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_LINES = 60
"""Of the files of a researcher [count]."""


@pytest.fixture
def first_line(opticcl):
    """Function: what a command prints first, in a terminal of any width."""

    def run(*words):
        done = opticcl(*words)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split("\n\n")[0].split())

    return run


def test_an_architect_defends_an_answer_in_three_commands(opticcl, answer, first_line, tmp_path, monkeypatch):
    """Which network, at one rate and as built; a page with price, power and what was assumed; the plan of a row, verified."""
    monkeypatch.chdir(tmp_path)
    asked = ("compare", "-n", "16", "-s", "100MB", "-f", "ramp,lightpath,fat_tree,ocs")
    assert first_line(*asked).startswith("At 800 Gb/s a node, ")
    assert opticcl(*asked, "-o", "page.html").returncode == 0
    found, _ = answer(*asked)
    page = Path("page.html").read_text("utf-8")
    assert all(text in page for text in (found["headline"].split(".")[0], "USD", " W", "Read with care"))
    best = found["rows"][0]
    verb, *plan = shlex.split(best["command"])[1:]
    assert verb == "compile"
    verdict, code = answer("verify", *plan)
    assert (code, verdict["ok"]) == (0, True)


def test_an_engineer_reads_the_gain_in_the_first_line(first_line):
    """Of a recorded step: what is exposed, and what a network would save of it."""
    said = first_line("train", "-w", EXAMPLES / "profile.json", "-f", "ramp,fat_tree")
    gain, _, network = said.partition(" is exposed communication, which may be too high or too low; ")
    assert re.fullmatch(r"About [0-9.]+ of [0-9.]+ ms \([0-9.]+ %\)", gain)  # some parts of that file are assumed
    assert re.match(r"[a-z_]+ with 800 Gb/s a node saves [0-9.]+ [mu]s \([0-9.]+ %\)", network)


def test_a_researcher_ranks_a_network_and_an_algorithm_after_two_files(
    opticcl, answer, tmp_path, monkeypatch, plugins_forgotten
):
    """After two files of at most sixty lines: both have rows beside the systems that are known."""
    monkeypatch.chdir(tmp_path)
    assert opticcl("new", "fabric", "my_network").returncode == 0
    assert opticcl("new", "algorithm", "my_schedule").returncode == 0
    for name in ("my_network.py", "my_schedule.py"):
        assert len(Path(name).read_text("utf-8").splitlines()) <= MOST_LINES
    plugins = ("--plugin", "my_network.py", "--plugin", "my_schedule.py")
    found, code = answer(
        "compare", "-f", "my_network,fat_tree", "-n", "8", "-s", "1MB", "-c", "all_gather", "-a", "all", *plugins
    )
    assert code == 0
    assert {"my_network", "fat_tree"} == {row["fabric"] for row in found["rows"]}
    ranked = {(row["fabric"], row["algorithm"].partition(":")[0]) for row in found["rows"] if row["verified"]}
    assert ("my_network", "my_schedule") in ranked


def test_a_hardware_team_has_tables_netlist_and_power_in_three_commands(opticcl, answer, tmp_path, monkeypatch):
    """Settings by their names as CSV, the elements, and whether enough light arrives."""
    monkeypatch.chdir(tmp_path)
    plan = ("-f", "lightpath:shape=2x2", "-s", "1MB", "-a", "ring")
    assert opticcl("compile", *plan, "-o", "tables").returncode == 0
    with open("tables/settings.csv", encoding="utf-8", newline="") as file:
        settings = list(csv.DictReader(file))
    assert {"input", "output", "wavelength"} <= set(settings[0])
    netlist, _ = answer("machine", "netlist", "-f", "lightpath:shape=2x2")
    assert sum(group["count"] for group in netlist["groups"]) > len(settings) // 100
    done = opticcl("verify", "--tables", "tables", "--budget", "typical", "--json")
    assert done.returncode in (0, 1)
    assert any(re.match(r"light: least margin [0-9.]+ dB", note) for note in json.loads(done.stdout)["notes"])
