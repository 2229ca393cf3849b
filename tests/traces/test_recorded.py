"""The recorded iteration: what a simulation of a trace is compared with."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.fsdp import fsdp_step
from tests.traces.independent import kineto
from tests.traces.test_chakra import COLL, COMP, attribute, field, node, trace

from opticcl.traces import load_job, load_steps
from opticcl.traces.recorded import recorded_times, union_s
from opticcl.traces.recording import RankCall, lowered
from opticcl.training.iteration import replay
from opticcl.training.train import train

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


@examples(200)
@given(spans)
def test_the_union_counts_every_instant_once(drawn):
    """By marking every unit of time."""
    covered = {at for start, length in drawn for at in range(start, start + length)}
    start = np.array([float(s) for s, _ in drawn])
    end = np.array([float(s + length) for s, length in drawn])
    assert union_s(start, end) == len(covered)


def test_the_duration_of_a_step_may_be_given():
    """Else it is that of its kernels."""
    kernels, none = (np.array([1.0]), np.array([3.0])), (np.zeros(0), np.zeros(0))
    assert [recorded_times(kernels, none, given).total_s for given in (None, 9.0)] == [2, 9]
    assert recorded_times(none, none).total_s == 0


@pytest.mark.parametrize(
    ("more", "uneven"),
    [
        ({}, False),
        ({"received_bytes": 8}, False),
        ({"received_bytes": 9}, True),
        ({"received_bytes": 0}, True),
        ({"sent_splits": (4, 4), "received_splits": (4, 4)}, False),
        ({"sent_splits": (4, 5)}, True),
        ({"received_splits": (4, 5)}, True),
    ],
)
def test_an_all_to_all_is_uneven(more, uneven):
    """By the bytes of both sides, or by the parts of one."""
    assert RankCall("a", "all_to_all", 8, **more).is_uneven == uneven


def test_what_bounds_a_time_that_may_be_too_short():
    """An exact one becomes a lower bound, an upper one an estimate."""
    assert [lowered(bound) for bound in ("", "lower", "upper", "estimate")] == [
        "lower",
        "lower",
        "estimate",
        "estimate",
    ]


@pytest.mark.parametrize("waits", ["cuda_sync", "runtime"])
def test_a_replay_takes_what_was_recorded(tmp_path, waits):
    """Without idle times the replay of a step with its recorded durations is the recorded step."""
    (tmp_path / "a.json").write_text(fsdp_step(layers=6, call_us=2_500.0, waits=waits))
    job = load_job(tmp_path / "a.json")
    assert job.recorded is not None
    again = replay(job)
    assert again.total_s == pytest.approx(job.recorded.total_s, rel=0.01)
    assert again.exposed_s == pytest.approx(job.recorded.exposed_s, rel=0.02)
    assert job.recorded.compute_s == pytest.approx(6 * 5e-3)
    assert 0 < job.recorded.hidden_share < 1


def timed(number, kind, start_us, us, *more):
    """A node of a feeder's trace with a start."""
    return node(number, kind, attribute("is_cpu_op", 0, 27), *more, duration_us=us) + field(6, start_us)


def test_starts_in_a_chakra_trace_give_the_overlap(tmp_path):
    """Kernels from 10 to 30 and 50 to 60, a collective from 20 to 45: 15 us exposed, 5 idle of 50."""
    call = timed(2, COLL, 20, 25, attribute("comm_type", 0), attribute("comm_size", 8))
    (tmp_path / "a.et").write_bytes(trace(timed(1, COMP, 10, 20), call, timed(3, COMP, 50, 10)))
    recorded = load_job(tmp_path / "a.et", num_ranks=2).recorded
    assert recorded.record() == {
        "iteration_s": pytest.approx(50e-6),
        "compute_s": pytest.approx(30e-6),
        "busy_s": pytest.approx(30e-6),
        "communication_s": pytest.approx(25e-6),
        "exposed_s": pytest.approx(15e-6),
        "hidden_share": pytest.approx(0.4),
        "idle_s": pytest.approx(5e-6),
        "host_s": None,
        "skew_s": None,
    }


def overlap_by_hand(path, step):
    """Time in which a kernel of a collective runs and none that computes, in steps of a tenth of a microsecond [s]."""
    events = [e for e in kineto(path)["traceEvents"] if e.get("ph") == "X"]
    window = next(e for e in events if e["name"] == step and e["cat"] == "user_annotation")
    launches = {
        e["args"]["correlation"]: e["ts"] for e in events if e.get("cat") == "cuda_runtime" and "aunch" in e["name"]
    }
    begins, ends = window["ts"], window["ts"] + window["dur"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    kernels = [e for e in kernels if begins <= launches.get(e["args"]["correlation"], -1) < ends]
    grid = np.zeros(int(10 * window["dur"]) + 10_000, np.int8)
    for bit, nccl in ((1, True), (2, False)):
        for e in kernels:
            if e["name"].lower().startswith("nccl") == nccl:
                at = round(10 * (e["ts"] - begins))
                grid[at : at + round(10 * e["dur"])] |= bit
    return float((grid == 1).sum()) * 1e-7


def test_the_recorded_column_of_a_real_trace_is_what_the_file_says():
    """Exposed time and step by an independent walk through the file; the replay comes within a fifth of it."""
    path = shared_file("kineto/nccl-data.json.gz")
    for job in load_steps(path):
        assert job.recorded.exposed_s == pytest.approx(overlap_by_hand(path, job.step), rel=1e-3)
        assert replay(job).exposed_s == pytest.approx(job.recorded.exposed_s, rel=0.2)
        assert job.recorded.idle_s > 0.7 * job.recorded.total_s  # the host was slow


@pytest.mark.parametrize(
    ("name", "ranks", "has_starts"),
    [
        ("kineto/nccl-data.json.gz", 0, True),
        ("kineto/timeline-rank0.json.gz", 0, True),
        ("kineto/dlrm-8ranks.tar.gz", 0, True),
        ("chakra/resnet50-ddp.rank0.et", 2, False),
    ],
)
def test_every_timed_trace_has_a_recorded_column(name, ranks, has_starts, answer, opticcl):
    """In JSON and in text, beside the replay and the model of the recorded network."""
    options = ["--workload", shared_file(name), "--fabric", "ideal", "--recorded-on", "ideal:rate=100Gb/s"]
    options += ["--nodes", str(ranks)] if ranks else []
    found, code = answer("train", *options)
    recorded = found["recorded"]
    assert code == 0
    assert recorded["compute_s"] > 0
    assert (recorded["exposed_s"] is not None) == has_starts
    assert recorded["replay"]["iteration_s"] > 0
    assert recorded["on"]["node_rate_bits_per_s"] == 100e9
    shown = opticcl("train", *options, "--notes").stdout
    assert "recorded" in shown
    assert ("on ideal as the recorded network" in shown) == has_starts


def test_a_model_has_no_recorded_column(opticcl, answer):
    """And nothing to compare with."""
    found, _ = answer("train", "--model", "lenet", "--nodes", "2", "--fabric", "ideal")
    assert "recorded" not in found
    done = opticcl("train", "--model", "lenet", "--nodes", "2", "--fabric", "ideal", "--recorded-on", "ideal")
    assert (done.returncode, "no recorded times" in done.stderr) == (2, True)


def test_a_log_with_times_has_a_sum(tmp_path):
    """The order of calls and computation is not recorded."""
    (tmp_path / "a.log").write_text("AR;8;0,1|2.5\nAR;8;0,1|1.5\n")
    (job,) = load_steps(tmp_path / "a.log")
    assert json.loads(json.dumps(job.recorded.record()))["communication_s"] == pytest.approx(4e-3)
    assert train(job, "ideal", recorded_on="ideal", assumptions="published").record()["recorded"]["iteration_s"] is None
