"""What a job gains from another network: the recorded step, its parts, and what fabrics save of it."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.ir.task_graph import ProcessGroup, RecordedTimes, Task, TaskGraph
from opticcl.traces import load_job
from opticcl.training.train import train

ELEMENTS = 1_000_000
COMPUTE, NCCL = 7, 20  # streams


def profile(kernels, rank=0, ranks=2):
    """A trace of the profiler.

    Args:
        kernels: stream, launch, start and duration of each [us].
        rank, ranks: of the job.
    """
    events = []
    for number, (stream, launch, start, took) in enumerate(kernels, 1):
        args = {"correlation": number}
        launched = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "args": args}
        events.append({**launched, "ts": launch, "dur": 0.1})
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL" if stream == NCCL else "gemm"
        ran = {"ph": "X", "cat": "kernel", "name": name, "tid": stream}
        events.append({**ran, "ts": start, "dur": took, "args": {"stream": stream, **args}})
        if stream == NCCL:
            about = {"Collective name": "allreduce", "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS}
            about |= {"dtype": "Float", "Group size": ranks, "Process Group Name": "0"}
            about |= {"Process Group Ranks": str(list(range(ranks)))}
            call = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "tid": 1}
            events.append({**call, "ts": launch - 0.5, "dur": 1.0, "args": about})
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": ranks}, "traceEvents": events})


drawn = st.lists(
    st.tuples(st.sampled_from([COMPUTE, NCCL]), st.integers(1, 30), st.integers(0, 40), st.integers(2, 40)),
    min_size=2,
    max_size=12,
).filter(lambda rows: {COMPUTE, NCCL} <= {stream for stream, *_ in rows})


@examples(60)
@given(drawn)
def test_the_parts_of_a_recorded_step_add_up(tmp_path_factory, rows):
    """By marking every microsecond: computation, exposed communication and idle time, of it what the host had not launched."""
    launch, begun, kernels = 10, set(), []
    free = {COMPUTE: 0, NCCL: 0}
    for stream, later, lag, took in rows:
        launch += 2 * later
        start = max(free[stream], launch + lag)
        while start in begun:
            start += 1
        begun.add(start)
        free[stream] = start + took
        kernels.append((stream, launch, start, took))
    path = tmp_path_factory.mktemp("drawn") / "a.json"
    path.write_text(profile(kernels))
    found = load_job(path).recorded.record()
    first, last = min(start for _, _, start, _ in kernels), max(start + took for _, _, start, took in kernels)
    busy = np.zeros((2, last), bool)
    for stream, _, start, took in kernels:
        busy[int(stream == NCCL), start : start + took] = True
    idle = [at for at in range(first, last) if not busy[:, at].any()]
    following = [min((k for k in kernels if k[2] > at), key=lambda k: k[2]) for at in idle]
    expected = {
        "iteration_s": last - first,
        "busy_s": busy[0].sum(),
        "exposed_s": (busy[1] & ~busy[0]).sum(),
        "idle_s": len(idle),
        "host_s": sum(kernel[1] > at for at, kernel in zip(idle, following, strict=True)),
    }
    for name, microseconds in expected.items():
        assert found[name] == pytest.approx(1e-6 * float(microseconds), abs=1e-12), name
    parts = found["busy_s"] + found["exposed_s"] + found["idle_s"]
    assert parts == pytest.approx(found["iteration_s"], rel=1e-3)


STEP = [(COMPUTE, 10, 20, 3_000), (NCCL, 30, 3_020, 2_000), (COMPUTE, 5_900, 6_020, 1_000)]
"""3 ms of computation, 2 ms of an exposed message, 1 ms of idle time, 1 ms of computation."""


def test_a_fabric_saves_the_exposed_time_that_it_does_not_take(tmp_path, answer, opticcl):
    """Idle time stays; the same sentence, row and values are in the record, in the terminal and on the page."""
    (tmp_path / "a.json").write_text(profile(STEP))
    asked = ["train", "-w", tmp_path / "a.json", "-f", "ideal:rate=100Gb/s", "--as-built"]
    found, _ = answer(*asked)
    recorded, (row,) = found["as_recorded"], found["rows"]
    assert (recorded["fabric"], recorded["saved_s"]) == ("as recorded", None)
    assert recorded["step_s"] == pytest.approx(7e-3)
    assert recorded["exposed_s"] == pytest.approx(2e-3)
    assert recorded["idle_s"] == pytest.approx(1e-3)
    saved_s = 2e-3 - row["communication_s"]
    assert 1e-3 < saved_s < 2e-3
    assert row["saved_s"] == pytest.approx(saved_s)
    assert row["saved_share"] == pytest.approx(saved_s / 7e-3)
    assert row["step_s"] == pytest.approx(7e-3 - saved_s)
    assert "2 of 7 ms (28.6 %) is exposed communication" in found["headline"]
    assert (
        f"ideal with 100 Gb/s a node saves {1e3 * saved_s:.4g} ms ({100 * saved_s / 7e-3:.1f} %)" in found["headline"]
    )
    lines = opticcl(*asked, "-o", tmp_path / "a.html").stdout.splitlines()
    assert found["headline"].startswith(lines[0].strip())
    rows = [line for line in lines if line.startswith(("fabric", "as recorded", "ideal "))]
    assert [line.split("  ")[0] for line in rows] == ["fabric", "as recorded", "ideal"]
    assert "of the step" in rows[0]
    page = html.unescape((tmp_path / "a.html").read_text())
    assert found["headline"] in page
    assert re.search(r'<th scope="row">(<[^>]*>)*as recorded', page)


def test_a_fabric_slower_than_the_recording_saves_less_than_nothing(tmp_path, answer):
    """The step is longer by what the message takes more."""
    (tmp_path / "a.json").write_text(profile(STEP))
    found, _ = answer("train", "-w", tmp_path / "a.json", "-f", "ideal", "--equal", "rate=1Gb/s")
    (row,) = found["rows"]
    more_s = row["communication_s"] - 2e-3
    assert more_s > 0
    assert row["saved_s"] == pytest.approx(-more_s)
    assert row["step_s"] == pytest.approx(7e-3 + more_s)
    assert "saves nothing and takes" in found["headline"]


def test_what_makes_a_step_slow_is_named_if_it_exceeds_communication(tmp_path, answer):
    """Idle time with what the host launched late; of several ranks waiting for the slower one, which no fabric saves."""
    late = [(COMPUTE, 10, 20, 3_000), (NCCL, 30, 3_020, 2_000), (COMPUTE, 15_000, 15_020, 1_000)]
    (tmp_path / "late.json").write_text(profile(late))
    found, _ = answer("train", "-w", tmp_path / "late.json", "-f", "ideal", "--as-built")
    assert (
        "10 of 16 ms (62.5 %) in which the device is idle, 9.98 ms of it before kernels that the host"
        in found["headline"]
    )
    folder = tmp_path / "ranks"
    folder.mkdir()
    slow = [(COMPUTE, 10, 20, 4_500), (NCCL, 30, 4_520, 500), (COMPUTE, 40, 5_020, 999)]
    quick = [(COMPUTE, 10, 20, 3_000), (NCCL, 30, 3_020, 2_000), (COMPUTE, 40, 5_020, 1_000)]
    for rank, kernels in enumerate((quick, slow)):
        (folder / f"rank{rank}.json").write_text(profile(kernels, rank))
    found, _ = answer("train", "-w", folder, "-f", "ideal")
    assert found["as_recorded"]["skew_s"] == pytest.approx(1.5e-3)
    assert "1.5 of 2 ms (75.0 %) of its messages in which it waits for slower ranks" in found["headline"]
    assert found["caveats"] == []
    assert found["rows"][0]["saved_s"] <= 0.5e-3


@pytest.mark.parametrize(
    ("bound", "begins", "doubt"),
    [
        ("", "2 of 7 ms", False),
        ("upper", "At most 2", False),
        ("lower", "At least 2", False),
        ("estimate", "About 2", True),
    ],
)
def test_the_sentence_says_whether_the_file_gives_a_bound(bound, begins, doubt):
    """As the iteration of the job is one; of an estimate it is not known."""
    tasks = (Task("forward", 4e-3), Task("gradient", 0.0, "all_reduce", 10**6, "all", (0,), measured_s=2e-3))
    recorded = RecordedTimes(4e-3, 2e-3, 2e-3, 7e-3, 4e-3)
    job = TaskGraph("job", "written", 4, tasks, {"all": ProcessGroup("all", range(4))}, bound=bound, recorded=recorded)
    said = train(job, "ideal").answer
    assert said.startswith(begins)
    assert ("may be too high or too low" in said) == doubt
    apart = train(replace(job, recorded=RecordedTimes(4e-3, 2e-3)), "ideal")
    assert apart.answer.startswith("The recorded step is not known, since starts are not recorded: at most 2 ms")
    assert apart.record()["rows"][0]["saved_share"] is None
    altered = train(job, "ideal", compute_scale=2.0)
    assert "leave --compute-scale and --straggler out" in altered.answer
    assert altered.record()["rows"][0]["saved_s"] is None


def test_a_file_without_computation_says_that_it_is_communication_only(tmp_path, answer, opticcl):
    """And what to give; there is no share of waiting, with or without recorded times."""
    (tmp_path / "a.log").write_text("AR;8000000;0,1|2.5\n")
    (tmp_path / "b.log").write_text("AR;8000000;0,1\n")
    (tmp_path / "layers.txt").write_text("DATA\n1\na -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 1000 1\n")
    for name, said in (
        ("a.log", "2.5 ms as recorded"),
        ("b.log", "record_shapes=True"),
        ("layers.txt", "--clock 1GHz"),
    ):
        asked = ["train", "-w", tmp_path / name, "-f", "ideal", "-n", "2"]
        found, _ = answer(*asked)
        assert found["headline"].startswith("Communication only")
        assert said in found["headline"]
        (row,) = found["rows"]
        assert (row["communication_share"], row["saved_share"]) == (None, None)
        shown = opticcl(*asked).stdout
        assert shown.startswith("Communication only")
        assert "waits for messages" not in shown
        assert "%" not in shown.split("\n", 3)[0]
    found, _ = answer("train", "-w", tmp_path / "a.log", "-f", "ideal")
    assert found["rows"][0]["saved_s"] == pytest.approx(2.5e-3 - found["rows"][0]["iteration_s"])


def test_notes_that_are_equal_for_all_fabrics_are_one_line(tmp_path, opticcl):
    """Of a trace of two steps."""
    steps = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": 1e4 * i, "dur": 1e4} for i in (0, 1)
    ]
    later = [(stream, launch + 1e4, start + 1e4, took) for stream, launch, start, took in STEP]
    trace = json.loads(profile([*STEP, *later]))
    (tmp_path / "a.json").write_text(json.dumps(trace | {"traceEvents": [*trace["traceEvents"], *steps]}))
    shown = opticcl("train", "-w", tmp_path / "a.json", "-f", "ideal", "-f", "fat_tree").stdout
    assert shown.count("of 2 steps that of median computation") == 1


def test_a_model_has_no_recorded_step(answer):
    """Nothing is saved of it."""
    found, _ = answer("train", "-m", "lenet", "-n", "2", "-f", "ideal")
    assert not {"answer", "as_recorded", "caveats"} & found.keys()
    assert "saved_s" not in found["rows"][0]
