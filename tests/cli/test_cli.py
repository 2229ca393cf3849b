"""The command line as a user types it: answers, exit codes, one clear line for what is wrong."""

import signal
import subprocess
import time

import numpy as np
import pytest
from tests.cli.process import COMMAND, opticcl_process

SMALL = ["--fabric", "ramp:groups=3,racks=3,wavelengths=6"]


def test_a_right_plan_is_good(answer):
    """The contract of `opticcl verify --json`."""
    found, code = answer("verify", *SMALL, "--collective", "all_reduce", "--algorithm", "ramp")
    assert code == 0
    assert found["ok"] is True
    assert found["violations"] == []
    assert set(found["checked"]) == {"transfers", "circuits", "chunks", "exhaustive", "how", "emulated"}


def test_the_printed_ramp_is_refused(opticcl):
    """As printed, RAMP's tables leave all 54 nodes with a wrong sum, and equation 2 uses 128 receivers twice."""
    wrong = opticcl("verify", *SMALL, "--collective", "all-reduce", "--algorithm", "ramp:variant=published")
    assert wrong.returncode == 1
    assert "54 of 54 nodes end with a wrong sum" in wrong.stdout
    clash = opticcl(
        "verify", "--fabric", "ramp:groups=4,racks=4,wavelengths=8", "--algorithm", "ramp:variant=published"
    )
    assert clash.returncode == 1
    assert "128 receivers used twice" in clash.stdout
    assert "receiver_shared" in clash.stdout


def test_simulate_answers_its_parts(answer):
    """The contract of `opticcl simulate --json`: the parts add up to the total."""
    found, code = answer("simulate", *SMALL, "--algorithm", "ramp", "--size", "1MB", "--assume", "compute=chain")
    assert code == 0
    parts = [found[f"{p}_s"] for p in ("reconfiguration", "latency", "transfer", "compute", "control")]
    assert sum(parts) == pytest.approx(found["total_s"])
    assert (found["num_steps"], found["num_rounds"]) == (8, 8)
    assert found["assumptions"]["compute"] == "chain"


def test_compare_ranks_what_it_verified(answer):
    """The contract of `opticcl compare --json`: rows, fastest first, nothing below its bound, and who is left out."""
    found, code = answer("compare", "--nodes", "16", "--size", "1MB", "--size", "2MB")
    rows = found["rows"]
    assert found["left_out"] == []
    assert code == 0
    ranked = [r["total_s"] for r in rows if r["rank"] is not None]
    assert ranked == sorted(ranked)
    assert [r["fabric"] for r in rows if r["rank"] is None] == ["ideal"]
    assert {r["fabric"] for r in rows} >= {"ideal", "lightpath", "oddl", "ramp", "sipac", "terarack"}
    assert all(r["node_rate_bits_per_s"] == pytest.approx(800e9) for r in rows)
    assert all(r["verified"] and r["num_nodes"] == 16 and r["total_s"] >= r["lower_bound_s"] > 0 for r in rows)


def test_compare_gives_every_node_the_same_rate(answer):
    """The comparison is one of architectures, not of transceivers, at the rate of --equal."""
    rows = answer("compare", "--nodes", "8", "--size", "1MB", "--equal", "rate=2.4Tb/s")[0]["rows"]
    assert len(rows) > 10
    assert all(r["node_rate_bits_per_s"] == pytest.approx(2.4e12) for r in rows)


def test_compare_tells_whom_it_leaves_out(opticcl, answer):
    """One has no machine of that size, another's dead tile leaves no way round; the third stands."""
    found, code = answer("compare", "-n", "12", "-f", "oddl", "-f", "ideal", "-s", "1MB")
    assert (code, [row["fabric"] for row in found["rows"]]) == (0, ["ideal"])
    assert [(one["fabric"], one["reason"][:14]) for one in found["left_out"]] == [("oddl", "oddl: 12 nodes")]
    done = opticcl("compare", "-f", "lightpath:shape=1x4,dead_tiles=1", "-f", "ideal:nodes=3", "-s", "1MB")
    assert done.returncode == 0
    assert "left out: lightpath: no algorithm does all_reduce" in done.stdout


def test_compare_reads_a_workload(opticcl, tmp_path):
    """The built-in list; the page is written whole."""
    page = tmp_path / "page.html"
    few = ("--fabric", "terarack", "--fabric", "lightpath", "--fabric", "torus")
    done = opticcl("compare", "--nodes", "8", *few, "--workload", "resnet50_ddp", "--out", page)
    assert done.returncode == 0, done.stderr
    assert "102,228,128 bytes" in done.stdout
    assert page.read_text("utf-8").rstrip().endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_execute_compares_with_numpy(opticcl, answer, tmp_path):
    """Random data, and a user's own file."""
    found, code = answer("execute", "--fabric", "sipac:radix=3,levels=2", "--size", "10KB", "--dtype", "float32")
    assert (code, found["ok"], found["ranks"]) == (0, True, 9)
    np.save(tmp_path / "in.npy", np.arange(9 * 5).reshape(9, 5))
    done = opticcl(
        "execute",
        "--fabric",
        "sipac:radix=3,levels=2",
        "--input",
        tmp_path / "in.npy",
        "--out",
        tmp_path / "out.npy",
    )
    assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "out.npy") == np.arange(45).reshape(9, 5).sum(axis=0)).all()


def test_one_node_costs_nothing(answer):
    """N = 1 works everywhere."""
    for name in ("ideal", "lightpath", "oddl", "ramp", "sipac", "terarack"):
        found, code = answer("simulate", "--fabric", name, "--nodes", "1")
        assert (code, found["total_s"], found["num_steps"]) == (0, 0, 0)


def test_papers_answers_rows(answer):
    """The contract of `opticcl study papers --json`, and every verdict on file is true."""
    rows, code = answer("study", "papers", "wrht")
    assert code == 0
    assert rows
    assert {"id", "paper", "where", "published", "ours", "relative_error", "verdict", "reason"} <= set(rows[0])


def test_a_process_of_its_own_answers_the_same(opticcl):
    """A good answer, one that is no, and a refusal: what `main` adds to the tests within this process."""
    for arguments in (
        ("verify", *SMALL, "--algorithm", "ramp", "--json"),
        ("verify", *SMALL, "--algorithm", "ramp:variant=published"),
        ("verify", "--fabric", "rampp"),
    ):
        alone, within = opticcl_process(*arguments), opticcl(*arguments)
        assert (alone.returncode, alone.stdout) == (within.returncode, within.stdout)
        assert alone.stderr.endswith(within.stderr)  # behind the progress, if it takes more than a second


def test_interrupted_runs_leave_nothing(tmp_path):
    """Ctrl-C while a page is being made: no file, no half of one."""
    arguments = ("compare", "--nodes", "1024", "--algorithm", "all", "--html", tmp_path / "page.html")
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3)  # it is at work
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert b"interrupted" in error
    assert not list(tmp_path.iterdir())


def test_a_reader_that_leaves_is_no_error():
    """`opticcl list | head -1` ends quietly."""
    with subprocess.Popen([*COMMAND, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0  # 1 is a negative answer
