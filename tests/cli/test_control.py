"""`opticcl machine control` and `opticcl jobs` as a user types them."""

import json

import pytest


def test_control_tells_both_times_and_draws(opticcl, tmp_path):
    """Played and printed control times side by side; a picture; every state of four nodes."""
    picture = tmp_path / "step.svg"
    done = opticcl(
        "machine",
        "control",
        "-f",
        "oddl:shape=4",
        "-a",
        "halving_doubling",
        "--explore",
        "-o",
        picture,
        "--exchange",
        1,
    )
    assert done.returncode == 0
    assert "explored: 4,736 states" in done.stdout
    assert "no violation" in done.stdout
    assert picture.read_text("utf-8").startswith("<svg")


def test_control_shows_how_the_switches_are_set(opticcl, answer):
    """Table 1 in the paper's form: of eight nodes each has a wavelength to each of its three partners, from no other sender."""
    options = ("machine", "control", "-f", "oddl:shape=8", "-a", "halving_doubling", "--table")
    lines = [line.split() for line in opticcl(*options).stdout.splitlines()]
    first = lines.index(["sender", *map(str, range(8))]) + 2
    assert [len(lines[first + sender]) - 1 for sender in range(8)] == [3] * 8
    found, _ = answer(*options)
    table = found["routing_table"]
    rows = list(zip(table["src"], table["dst"], table["wavelength_lo"], strict=True))
    assert {(src, dst) for src, dst, _ in rows} == {(node, node ^ bit) for node in range(8) for bit in (1, 2, 4)}
    assert len({(src, wavelength) for src, _, wavelength in rows}) == 24
    assert len({(dst, wavelength) for _, dst, wavelength in rows}) == 24
    assert [lines[first + 3][1:], sorted(wavelength for src, _, wavelength in rows if src == 3)] == [
        [str(wavelength) for _, wavelength in sorted((dst, w) for src, dst, w in rows if src == 3)],
        [0, 1, 2],
    ]


def test_control_runs_processes(answer):
    """Eight of them with a fifth of the messages lost."""
    options = ("--processes", "--loss", "0.2", "--seed", "1", "--size", "1KB", "-a", "halving_doubling")
    found, code = answer("machine", "control", "-f", "oddl:shape=8", *options)
    assert code == 0
    assert found["processes"]["exact"] is True
    assert found["processes"]["lost"] > 0
    assert found["longest_wait_s"][0] > found["equation_1_s"][0] == pytest.approx(10e-6)


def test_control_of_fabrics_without_units(opticcl, answer):
    """What is known of them is told; pictures and processes are refused."""
    found, code = answer("machine", "control", "-f", "lightpath:shape=2x4,synchronisation=1us", "-a", "ring")
    assert (code, found["control_s"]) == (0, pytest.approx(1e-6))  # its circuits stand after the first round
    for units_only in (("--explore",), ("--table",), ("--loss", "0.1"), ("--from-rest",), ("--memory", "1TB/s")):
        wrong = opticcl("machine", "control", "-f", "lightpath:shape=2x4", *units_only)
        assert wrong.returncode == 2
        assert "lightpath has no control units" in wrong.stderr


def test_jobs_are_kept_from_call_to_call(opticcl, answer, tmp_path):
    """Placed, judged, freed; a call that fails changes nothing."""
    state, halving = tmp_path / "jobs.json", ("-a", "halving_doubling")
    found, code = answer(
        "jobs", "-f", "oddl:shape=4x4", "--place", "4", "--place", "bert=8", "--state", state, *halving
    )
    assert code == 0
    assert found["together"]["ok"] is True
    assert [(j["job"], len(j["nodes"]), j["switch_ports"]) for j in found["jobs"]] == [
        ("job-1", 4, 16),
        ("bert", 8, 32),
    ]
    assert all(0 < job["total_s"] < job["published_s"] for job in found["jobs"])
    kept = state.read_bytes()
    for arguments, text in (
        (("--place", "2", "--place", "9"), "9 nodes for job-3, but 2 of 16"),
        (("--place", "x"), "'x' is not a number of nodes"),
        (("--place", "2", "-a", "wrht"), "wrht"),
    ):
        wrong = opticcl("jobs", "--state", state, *arguments)
        assert wrong.returncode == 2
        assert text in wrong.stderr
        assert wrong.stderr.count("\n") == 1
        assert state.read_bytes() == kept
    found, _ = answer("jobs", "--state", state, "--free", "bert", *halving)
    assert found["free"] == 12
    assert [j["name"] for j in json.loads(state.read_text("utf-8"))["jobs"]] == ["job-1"]


def test_rows_name_the_algorithm_of_the_system(answer):
    """Of jobs on a part of a SiPAC and of a RAMP, and of a machine whose parts fail."""
    sipac, _ = answer("jobs", "-f", "sipac:radix=8,levels=2", "--place", "16")
    ramp, _ = answer("jobs", "-f", "ramp:groups=4,racks=4,wavelengths=8", "--place", "64", "-c", "all_to_all")
    assert [one["algorithm"].partition(":")[0] for one in sipac["jobs"]] == ["sipco"]
    assert [one["algorithm"].partition(":")[0] for one in ramp["jobs"]] == ["skewed_exchange"]
    faults, _ = answer("faults", "-f", "ramp:groups=2,racks=2,wavelengths=4", "-a", "ramp", "--fail", "transmitter:5")
    assert (faults["algorithm"], faults["rows"][0]["algorithm"]) == ("ramp", "ramp")
    assert answer("faults", "-f", "sipac:radix=4,levels=2", "--fail", "node:5")[0]["algorithm"].startswith("sipco")


def test_jobs_on_networks_of_packets_share_links(opticcl):
    """Nobody says that they leave each other alone."""
    done = opticcl("jobs", "-f", "fat_tree:nodes=8", "--place", "4", "--place", "4", "-a", "ring")
    assert done.returncode == 0
    assert "no node in common; their packets may share links" in done.stdout
    wrong = opticcl("jobs", "--nodes", "8", "--state", "nothing.json")
    assert wrong.returncode == 2
    assert "--nodes sizes a fabric" in wrong.stderr


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b'{"form": "opticcl arbiter", "version": 9}', None])
def test_a_bad_state_file_is_wrong_input(opticcl, tmp_path, content):
    """Exit code 2 and one line, whatever is wrong with it; a directory too."""
    state = tmp_path / "jobs.json"
    state.mkdir() if content is None else state.write_bytes(content)
    done = opticcl("jobs", "--state", state, "--place", "4")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "jobs.json" in done.stderr


def test_names_of_a_state_file_cannot_control_the_terminal(opticcl, tmp_path):
    """A job and a machine whose names have escape bytes."""
    state = tmp_path / "jobs.json"
    kept = {"form": "opticcl arbiter", "version": 1, "fabric": "oddl:shape=4x4", "jobs": []}
    for wrong in (
        {"fabric": "ev\x1bil"},
        {"jobs": [{"name": "ev\x1bil", "nodes": [0], "held": [0]}]},
        {"form": "ev\x1bil"},
    ):
        state.write_text(json.dumps(kept | wrong), "utf-8")
        done = opticcl("jobs", "--state", state, "--place", "4")
        assert done.returncode == 2
        assert "\x1b" not in done.stderr
        assert "ev" in done.stderr
