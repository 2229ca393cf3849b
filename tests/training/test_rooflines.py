"""Computation of a trace without times: operations and bytes by the roofline of a device; faster devices."""

import pytest
from tests.optional import shared_file
from tests.traces.independent import chakra_nodes
from tests.traces.test_chakra import COMP, attribute, coll, node, trace

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.traces import load_steps
from opticcl.training.device import device
from opticcl.training.rooflines import note_untimed, time_by_roofline
from opticcl.training.train import train

ON_DEVICE = attribute("is_cpu_op", 0, 27)


def mixed(path):
    """An all_reduce between computation by operations, by bytes, by both and by a time."""
    nodes = [
        node(1, COMP, ON_DEVICE, attribute("num_ops", 10**12), attribute("tensor_size", 10)),
        node(2, COMP, ON_DEVICE, attribute("num_ops", 0), attribute("tensor_size", 10**9)),
        node(3, COMP, ON_DEVICE, attribute("num_ops", 10**9), attribute("tensor_size", 10**9)),
        node(4, COMP, ON_DEVICE, attribute("num_ops", 10**15), duration_us=7),
        coll(5, 8),
    ]
    path.write_bytes(trace(*nodes))
    return path


def test_the_longer_of_operations_and_bytes(tmp_path):
    """An H100 at 0.5 of 989.5e12 operations/s and 3.35e12 bytes/s; a recorded time stays."""
    steps = load_steps(mixed(tmp_path / "a.et"), num_ranks=2)
    (job,) = time_by_roofline(steps, "h100", "bf16", 0.5)
    times = sorted(task.compute_s for task in job.tasks if not task.communicates)
    assert times == pytest.approx([7e-6, 1e9 / 3.35e12, 1e9 / 3.35e12, 1e12 / (0.5 * 989.5e12)])
    assert job.operations == pytest.approx(1.001e12)
    assert "computation: 3 of 4 tasks by the roofline of h100, bf16, efficiency 0.5" in job.notes
    assert (steps[0].bound, note_untimed(steps[0]).bound, note_untimed(job)) == ("", "lower", job)


def test_what_a_device_cannot_time(tmp_path):
    """A trace of recorded times, an unknown device, a precision that the device has not."""
    timed = TaskGraph("timed", "a test", 2, (Task("a", 1e-3),))
    with pytest.raises(ParameterError, match="timed has no computation with operations and without a time"):
        time_by_roofline([timed], "h100")
    steps = load_steps(mixed(tmp_path / "a.et"), num_ranks=2)
    with pytest.raises(UnknownNameError, match="unknown device 'h1000'"):
        time_by_roofline(steps, "h1000")
    with pytest.raises(ParameterError, match="no fp16 rate"):
        time_by_roofline(steps, device("m40"), "fp16")
    assert any("roofline of m40, fp32" in note for note in time_by_roofline(steps, "m40")[0].notes)


def test_a_device_on_the_command_line(tmp_path, answer, opticcl):
    """Without one the iteration is a lower bound and says so; with one it is timed; options without a device are refused."""
    options = ["train", "--workload", mixed(tmp_path / "a.et"), "--nodes", "2", "--fabric", "ideal"]
    without, _ = answer(*options)
    assert without["job"]["bound"] == "lower"
    assert any("3 of 4 tasks with operations instead of times take no time here" in n for n in without["job"]["notes"])
    timed, code = answer(*options, "--device", "h100", "--precision", "bf16", "--efficiency", "0.5")
    assert (code, timed["job"]["bound"]) == (0, None)
    assert timed["rows"][0]["compute_s"] == pytest.approx(7e-6 + 2e9 / 3.35e12 + 1e12 / (0.5 * 989.5e12))
    for more, said in (
        (("--precision", "bf16"), "give --device h100"),
        (("--device", "h100", "--precision", "fp8"), "--precision"),
        (("--device", "h100", "--tensor", "2"), "--tensor: an option of models"),
    ):
        refused = opticcl(*options, *more)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert said in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("scale", [0.5, 2.0, 1e9])
def test_a_faster_device_computes_in_less_time(scale):
    """Computation alone scales, for models and traces; communication stays."""
    tasks = (Task("a", 4e-3), Task("b", collective="all_reduce", size_bytes=10**6, group="", after=(0,)))
    job = TaskGraph("job", "a test", 4, tasks, {"": ProcessGroup("", range(4))})
    usual, scaled = (train(job, "ideal", compute_scale=x, assumptions="published") for x in (1.0, scale))
    first, second = usual.rows[0].iteration, scaled.rows[0].iteration
    assert second.compute_s == pytest.approx(first.compute_s / scale)
    assert second.communication_s == pytest.approx(first.communication_s)
    assert second.total_s == pytest.approx(first.total_s - first.compute_s + first.compute_s / scale)
    assert scaled.record()["job"]["compute_scale"] == scale
    assert scaled.job.compute_s == usual.job.compute_s


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf"])
def test_a_scale_that_is_none_is_refused(scale, opticcl):
    """One line, exit code 2."""
    done = opticcl("train", "-m", "lenet", "-n", "2", "-f", "ideal", "--compute-scale", scale)
    assert done.returncode == 2
    assert f"compute_scale={scale}" in done.stderr


def test_every_llama_rank_by_an_independent_sum():
    """Each computation of a file of the symbolic generator, on an H100."""
    for rank in (0, 9):
        path = shared_file(f"chakra/llama-dp2-tp4-pp2/w.{rank}.et")
        peak, rate = 0.4 * 989.5e12, 3.35e12
        found = [n["attributes"] for n in chakra_nodes(path) if n["type"] == 4]
        expected = sum(max(a.get("num_ops", 0) / peak, a.get("tensor_size", 0) / rate) for a in found)
        (job,) = time_by_roofline(load_steps(path), "h100")
        assert expected > 0
        assert job.compute_s == pytest.approx(expected)
