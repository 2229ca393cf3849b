"""Paced circuits: their times by rows against the closed form, and the clock of real transfers against both."""

import json

import pytest
from tests.execute.launch import mpiexec, needs_mpi

import opticcl
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.execute.paced import PacedRun, paces, rank_paces
from opticcl.report.kit.svg import save_picture
from opticcl.report.paced import gantt, paced_lines

SYSTEMS = [
    "ramp:groups=2,racks=2,wavelengths=4",
    "sipac:radix=2,levels=2",
    "terarack:nodes=8",
    "oddl:shape=4x4",
    "lightpath:shape=2x4",
]
PAIRS = [
    "ramp:groups=1,racks=1,wavelengths=2",
    "sipac:radix=2,levels=1",
    "terarack:nodes=2",
    "oddl:shape=2",
    "lightpath:shape=1x2",
]


def rows(plan, size_bytes):
    """Times of the plan's steps by its rows."""
    return paces(plan.circuits, size_bytes / plan.schedule.collective.num_chunks)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all", "broadcast"])
@pytest.mark.parametrize("fabric", SYSTEMS)
def test_rows_take_the_simulated_time_of_the_circuits(fabric, collective):
    """Two computations that share no code: reconfiguration, latency and transfer; sums would wait for slots."""
    plan = opticcl.compile(fabric, collective, "1 MB")
    found, parts = rows(plan, 1e6), plan.simulate(assumptions="published", compute="none").totals()
    assert sum(step.duration_s for step in found) == pytest.approx(
        parts["reconfiguration_s"] + parts["latency_s"] + parts["transfer_s"], rel=1e-9
    )
    assert sum(step.reconfiguration_s for step in found) == pytest.approx(parts["reconfiguration_s"])
    assert len(found) == plan.schedule.num_steps


@pytest.mark.parametrize(
    "fabric", ["sipac:radix=2,levels=2", "terarack:nodes=8", "oddl:shape=4", "lightpath:shape=2x4"]
)
def test_twice_the_rate_halves_the_transfer_part(fabric):
    """Nothing else changes."""
    machine = opticcl.fabric(fabric)
    slow, fast = (
        rows(opticcl.compile(machine.with_node_rate(rate), "all_reduce", "8 MB", algorithm="ring"), 8e6)
        for rate in (machine.node_rate_bits_per_s, 2 * machine.node_rate_bits_per_s)
    )
    for one, two in zip(slow, fast, strict=True):
        fixed = one.reconfiguration_s + one.latency_s
        assert two.duration_s - fixed == pytest.approx((one.duration_s - fixed) / 2)


def test_rounds_follow_each_other():
    """A step that needs two rounds: the messages of the second are released after the first has ended."""
    plan = opticcl.compile("lightpath:shape=1x4,waveguides=1,lasers=2", "all_to_all", "1 MB", algorithm="mesh")
    assert len(plan.circuits.rounds(0)) > 1
    (step,) = rows(plan, 1e6)
    releases = sorted(set(step.release_s.values()))
    assert releases[-1] == step.duration_s
    assert len(releases) >= len(plan.circuits.rounds(0))
    by_rank = rank_paces([step], 4)
    assert sum(len(steps[0]) for steps in by_rank) == len(step.release_s) == 12


def test_packets_have_no_circuits():
    """One line with what to do."""
    plan = opticcl.compile("fat_tree:nodes=8", "all_reduce", "1 MB")
    with pytest.raises(UnsupportedError, match="leave --pace out"):
        rows(plan, 1e6)


def measured(**changes):
    """A paced run of two steps."""
    found = {
        "size_bytes": 1000, "factor": 1000.0, "mode": "barrier", "rows_end_s": (2e-6, 5e-6), "reconfiguration_s": 1e-6,
        "latency_s": 1e-6, "shortest_s": 2e-6, "total_s": 5.2e-3, "end_s": (2.1e-3, 5.1e-3), "late": 0, "messages": 4,
        "overhead_s": 1e-3, "wrong": 0, "simulated_s": {"transfer_s": 5e-6, "compute_s": 1e-6, "control_s": 0.0},
    } | changes  # fmt: skip
    return PacedRun(**found)


def test_the_report(tmp_path):
    """A line a step, the sums, and what to try where messages were late; a picture of both."""
    found = measured()
    assert found.deviation == pytest.approx(0.04)
    lines = paced_lines(found)
    assert any("5.2 us (+4.0%) of 5.2 ms; 0 of 4 messages late" in line for line in lines)
    assert not any("too fast" in line for line in lines)
    assert paced_lines(measured(late=2))[-1] == "too fast for this machine; try --pace 1.5e+03"
    save_picture(tmp_path / "gantt.svg", lambda: gantt(found, "two steps"), "two steps")
    assert "step 1" in (tmp_path / "gantt.svg").read_text()


@needs_mpi
@pytest.mark.parametrize("fabric", [PAIRS[-1], *(pytest.param(f, marks=pytest.mark.deep) for f in PAIRS[:-1])])
@pytest.mark.parametrize("mode", ["barrier", pytest.param("asynchronous", marks=pytest.mark.deep)])
def test_measured_within_ten_percent(fabric, mode, tmp_path):
    """No late message, at a factor at which this machine is fast enough; every result right; a picture."""
    plan = opticcl.compile(fabric, "all_reduce", "100 kB", algorithm="halving_doubling")
    factor = 0.5 / min(at for step in rows(plan, 1e5) for at in step.release_s.values())
    plan.save(tmp_path / "plan.parquet")
    done = mpiexec(
        2, "-m", "opticcl", "execute", tmp_path / "plan.parquet", "--transport", "mpi", "-s", "100kB",
        "--pace", f"{factor:.0f}", "--mode", mode, "-o", tmp_path / "gantt.png", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["runs"]
    assert (found["late"], found["wrong"], found["messages"]) == (0, 0, 4)
    assert 0 <= found["deviation"] < 0.1
    assert (tmp_path / "gantt.png").stat().st_size > 1000


@needs_mpi
@pytest.mark.deep
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-f", "torus:shape=1x2", "--pace", "10"], "leave --pace out"),
        (["-f", "lightpath:shape=1x2", "--pace", "-1"], "--pace: -1 is not positive"),
        (["-f", "lightpath:shape=1x2", "--mode", "asynchronous"], "for --pace"),
    ],
)
def test_refused(options, words):
    """One line of rank 0, exit code 2."""
    done = mpiexec(2, "-m", "opticcl", "execute", "--transport", "mpi", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("opticcl:") == 1


def test_factors_are_positive():
    """In Python too."""
    from opticcl.execute.paced import run_paced

    with pytest.raises(ParameterError, match="not positive"):
        run_paced(None, None, None, dict, 1, None, 0.0, "barrier", 1.0, 0)
