"""`opticcl simulate --engine packet`: its options, what it prints, what it refuses."""

import json
import subprocess
import sys

import pytest

PAIRS = ["--fabric", "leaf_spine:nodes=16,nodes_per_leaf=4,spines=4", "--collective", "all_to_all", "--size", "1MB"]


def opticcl(*arguments):
    """Run the command line in a process of its own."""
    code = "from opticcl.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "simulate", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_every_option_reaches_the_engine():
    """What was assumed is printed; the same seed gives the same time."""
    options = [
        "--engine", "packet", "--cell", "1KiB", "--queue", "input", "--forwarding", "cut_through", "--buffer", "8KiB",
        "--transport", "windowed", "--window", 8, "--retransmit", "20us", "--order", "shuffled", "--seed", 5,
        "--mode", "asynchronous", "--max-events", 10**6, "--json",
    ]  # fmt: skip
    done = opticcl(*PAIRS, *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    told = {
        "mode": "asynchronous", "cell_bytes": 1024, "queue": "input", "forwarding": "cut_through", "buffer_bytes": 8192,
        "transport": "windowed", "window": 8, "retransmit_s": 2e-5, "order": "shuffled", "seed": 5,
    }  # fmt: skip
    assert told.items() <= found["assumptions"].items()
    assert found["total_s"] >= found["lower_bound_s"] > 0


def test_the_table_is_for_people():
    """Steps, parts, the bound, and every assumption by its name."""
    done = opticcl(*PAIRS, "--engine", "packet")
    assert done.returncode == 0, done.stderr
    assert "all_to_all of 1 MB on leaf_spine with 16 nodes" in done.stdout
    assert "cell_bytes=4096, queue=output, forwarding=store_and_forward, transport=paced" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "flow", "--cell", "4kB"], "cell_bytes is an option of engine=packet, not of flow"),
        (["--seed", "1"], "seed is an option of engine=packet, not of closed_form"),
        (["--engine", "packet", "--max-events", "100"], "max_events=..."),
        (["--engine", "pakcet"], "did you mean 'packet'?"),
        (["--engine", "packet", "--transport", "tcp"], "'tcp' is not one of"),
    ],
)
def test_wrong_options_are_refused_in_a_line(options, words):
    """Exit code 2 and one line on standard error."""
    done = opticcl(*PAIRS, *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
