"""The backend "opticcl" of torch.distributed: unmodified scripts under torchrun; two processes, more in `make test-deep`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.execute.launch import environment, needs_torch, processes_of_a_group, torchrun

pytestmark = needs_torch
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
MORE = [pytest.param(n, marks=pytest.mark.deep) for n in (1, 3, 4, 8)]


def entry_point():
    """Whether this environment has the entry point, so that torch registers the backend itself."""
    from importlib.metadata import entry_points

    return any(entry.name == "opticcl" for entry in entry_points(group="torch.backends"))


def assert_done(done, processes):
    """Every rank reached its end."""
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"rank (\d+) done", done.stdout)) == sorted(map(str, range(processes)))


def test_the_entry_point_is_installed():
    """An installed package registers the backend when torch is imported."""
    assert entry_point()


@pytest.mark.parametrize("processes", [2, *MORE])
def test_every_operation(processes):
    """Against Gloo, bit by bit: types, operations, lists, coalesced, asynchronous, functional, groups, objects."""
    assert_done(torchrun(processes, HERE / "torch_collectives.py"), processes)


@pytest.mark.parametrize(
    ("fabric", "processes"),
    [
        pytest.param(fabric, processes, marks=pytest.mark.deep)
        for fabric, processes in [
            ("lightpath:shape=2x2", 4), ("oddl:shape=4", 4), ("sipac:radix=2,levels=2", 4), ("terarack:nodes=3", 3),
            ("ramp:groups=2,racks=1,wavelengths=2", 4), ("lightpath:shape=3x3", 4),
        ]
    ],
)  # fmt: skip
def test_every_operation_on_a_fabric(fabric, processes):
    """Plans of optical fabrics, among them a part of a machine."""
    done = torchrun(processes, HERE / "torch_collectives.py", OPTICCL_FABRIC=fabric)
    assert_done(done, processes)


@pytest.mark.parametrize(
    ("processes", "chosen"),
    [
        (2, ["test_ddp", "test_fsdp", "test_tensor_parallel"]),
        *(pytest.param(processes, [], marks=pytest.mark.deep) for processes in (1, 2, 3, 4, 8)),
    ],
)
def test_training(processes, chosen):
    """DDP, hooks, FSDP2, meshes, tensor parallel layers, checkpoints, compiled models: two ranks bitwise as with Gloo."""
    assert_done(torchrun(processes, HERE / "torch_training.py", *chosen, timeout=600), processes)


SCRIPTS = ["train_ddp.py", "train_fsdp.py"]


def accuracy_of(script, backend, processes):
    """What an example prints."""
    done = torchrun(processes, EXAMPLES / script, "--backend", backend, timeout=600)
    assert done.returncode == 0 or gloo_aborts(backend, done), done.stderr
    return float(re.search(r"accuracy ([0-9.]+)", done.stdout)[1])


def gloo_aborts(backend, done):
    """Whether a rank of Gloo died when it had ended: its thread frees a tensor while the interpreter ends, and torch aborts."""
    return backend == "gloo" and "terminate called without an active exception" in done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("processes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("script", SCRIPTS)
def test_examples_beside_gloo(script, processes):
    """As accurate as with Gloo."""
    ours, theirs = (accuracy_of(script, backend, processes) for backend in ("opticcl", "gloo"))
    assert ours >= 0.95
    assert abs(ours - theirs) <= 0.02


SHORT = {"train_ddp.py": ("--epochs", 1, "--pictures", 256), "train_fsdp.py": ("--steps", 3)}


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("destroy", [True, False])
@pytest.mark.parametrize("processes", [1, 2, 4, 8])
@pytest.mark.parametrize("script", SCRIPTS)
def test_twenty_runs_end_with_code_0(tmp_path, script, processes, destroy):
    """The examples, with and without destroy_process_group."""
    for _ in range(20):
        assert_ends(script, processes, tmp_path, destroy)


def assert_ends(script, processes, folder, destroy):
    """A short run of an example ends with code 0."""
    text = (EXAMPLES / script).read_text()
    assert text.count("    dist.destroy_process_group()\n") == 1
    copy = folder / script
    copy.write_text(text if destroy else text.replace("    dist.destroy_process_group()\n", ""))
    done = torchrun(processes, copy, *SHORT[script])
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout


def test_words_of_another_rank_are_waited_for_a_while():
    """A rank that sends the digest of another call and then says nothing: one line that names it, and no wait without end."""
    from datetime import timedelta

    import torch.distributed as dist

    from opticcl.errors import ExecutionError
    from opticcl.execute.torch.agreement import Agreement, GroupCall

    class Wires:
        label = ""

        def post(self, exchange, tag):
            for _, row in exchange.recvs:
                row[:] = b"\1" * len(row)
            return lambda: None

    agreement = Agreement(Wires(), dist.HashStore(), 0, 3, timedelta(seconds=0.1), (0, 1, 2))
    agreement.begin_call("broadcast")
    with pytest.raises(
        ExecutionError, match="rank 0 of 3: broadcast of 4: rank 1 calls something else and does not say"
    ):
        agreement.agree(GroupCall.of("broadcast", "broadcast of 4", None))


PREAMBLE = """
import os, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist
dist.init_process_group("opticcl", timeout=timedelta(seconds=10))
r, x = dist.get_rank(), torch.ones(1000)
dist.all_reduce(x)
"""


def test_a_group_that_is_not_destroyed(tmp_path):
    """The interpreter ends as usual; `test_twenty_runs_end_with_code_0` has the examples."""
    script = tmp_path / "script.py"
    script.write_text(f"{PREAMBLE}print(f'rank {{r}} done')\n")
    assert_done(torchrun(2, script), 2)


def deep(*values):
    """A case of `make test-deep`."""
    return pytest.param(*values, marks=pytest.mark.deep)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "if r: x = torch.ones(999)",
            "rank 0 calls all_reduce root 0 SUM torch.float32 of 1000 elements, rank 1 calls",
        ),
        deep("if r: x = x.double()", "torch.float64 of 1000 elements; all must be equal"),
        deep("if r: dist.broadcast(x, 0)", "rank 1 calls broadcast"),
        deep(
            "dist.all_reduce(torch.ones(3, dtype=torch.int32), op=dist.ReduceOp.AVG)",
            "AVG of torch.int32 is not defined",
        ),
        deep("dist.all_reduce(x, op=dist.ReduceOp.BAND)", "BAND of torch.float32 is not defined"),
        deep("dist.all_reduce(x.to('meta'))", "a tensor on meta in a group for CPU tensors"),
        deep("dist.reduce_scatter_tensor(torch.ones(2), torch.ones(5))", "5 elements"),
    ],
)
def test_calls_that_differ_or_cannot_be(tmp_path, code, words):
    """One line of rank 0 before data move, exit code 2, no process waits."""
    script = tmp_path / "script.py"
    script.write_text(f"{PREAMBLE}{code}\ndist.all_reduce(x)\n")
    done = torchrun(2, script)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("opticcl:")]
    assert len(lines) == 1, done.stderr
    assert words in lines[0]
    assert "exitcode: 2" in done.stderr


@pytest.mark.deep
@pytest.mark.parametrize(
    ("variable", "value", "processes", "words"),
    [
        ("OPTICCL_FABRIC", "nonsense", 1, "unknown fabric 'nonsense'"),
        ("OPTICCL_FABRIC", "lightpath:shape=1x1", 2, "use a larger fabric or fewer processes"),
        ("OPTICCL_ALGORITHM", "nonsense", 1, "unknown algorithm 'nonsense'"),
        ("OPTICCL_CHECK", "5", 1, "OPTICCL_CHECK='5' is neither 0 nor 1"),
    ],
)
def test_settings_are_refused(tmp_path, variable, value, processes, words):
    """One line of rank 0, exit code 2."""
    script = tmp_path / "script.py"
    script.write_text(PREAMBLE)
    done = processes_of_a_group(processes, script, **{variable: value})[0]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("opticcl:")]
    assert words in line
    assert done.returncode == 2


@pytest.mark.deep
def test_recorded_runs_are_read_as_workloads(tmp_path):
    """Run, record with the profiler, read: the calls of a job with this backend are those with Gloo."""
    from opticcl.traces import load_workload

    found = {}
    for backend in ("opticcl", "gloo"):
        path = tmp_path / f"{backend}.json"
        done = torchrun(2, HERE / "torch_profile.py", backend, path)
        assert done.returncode == 0 or gloo_aborts(backend, done), f"{backend}: {done.stderr}"
        calls = load_workload(path).calls
        found[backend] = sorted((call.collective, call.size_bytes) for call in calls)
    assert found["opticcl"] == found["gloo"]
    assert ("all_reduce", 4 * 90_300) in found["opticcl"]


@pytest.mark.deep
def test_importing_torch_takes_no_longer():
    """The entry point adds less than 5 ms to `import torch`, and imports NumPy at most."""
    code = """
import time, torch, sys
from importlib.metadata import entry_points
(entry,) = entry_points(group="torch.backends", name="opticcl")
before, begun = set(sys.modules), time.process_time()
entry.load()()
print(time.process_time() - begun, *set(sys.modules) - before)
"""
    took = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment(TORCH_DEVICE_BACKEND_AUTOLOAD="0"),
        )
        seconds, *modules = done.stdout.split()
        assert sorted(modules) == ["opticcl", "opticcl._torch_entry", "opticcl.kernels"]
        took.append(float(seconds))
    assert min(took) < 0.005
