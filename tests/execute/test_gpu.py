"""CUDA devices, where one is found: rank schedules in device memory, NCCL's sends and receives, and what is refused."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from tests.execute.launch import torchrun

import opticcl
from opticcl.execute.lockstep import run_in_lockstep
from opticcl.execute.loop import chunk_width, load_state, play, store_result
from opticcl.execute.ranks import rank_schedules
from opticcl.fabrics import fabric

HERE = Path(__file__).parent


def devices():
    """CUDA devices of this machine."""
    if importlib.util.find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


@pytest.fixture(autouse=True)
def device():
    """Skip what has no device, once a test runs: torch is not imported to collect the tests of all others."""
    if not devices():
        pytest.skip("no CUDA device was found: what runs on GPUs is not tested here")


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_schedules_in_device_memory(collective, dtype):
    """Four ranks on one device, step by step: bit by bit what NumPy computes, odd lengths too."""
    import torch

    from opticcl.execute.torch.reductions import tensor_reduction

    plan = opticcl.compile(fabric("ideal", nodes=4), collective, 1_000_000)
    schedules = rank_schedules(plan.schedule)
    length = 4 * 501
    held = length // 4 if collective == "all_gather" else length
    given = np.random.default_rng(0).normal(0, 1000, (4, held)).astype(dtype)
    states = [load_state(cut, given[cut.rank], length, np.dtype(dtype)) for cut in schedules]
    on_device = [torch.from_numpy(state).cuda() for state in states]
    reduce = tensor_reduction("SUM", on_device[0].dtype, "cuda")
    width = chunk_width(schedules[0], length)
    run_in_lockstep(
        play(cut, state, torch.empty((cut.stage_rows, width), dtype=state.dtype, device="cuda"), reduce)
        for cut, state in zip(schedules, on_device, strict=True)
    )
    for cut, state, due in zip(schedules, on_device, plan.execute(list(given)), strict=True):
        found = store_result(cut, state.cpu().numpy(), length)
        assert np.array_equal(found.ravel(), due.ravel())


def test_sends_and_receives_of_nccl():
    """One GPU a rank, as many as this machine has; with one GPU the messages of a rank to itself and plans of one rank."""
    ranks = devices()
    done = torchrun(ranks, HERE / "torch_gpu.py")
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert sorted(re.findall(r"rank (\d+) of", done.stdout)) == sorted(map(str, range(ranks)))


@pytest.mark.skipif(
    devices() < 2, reason="one GPU a rank, and NCCL refuses two ranks on one: messages between GPUs not run"
)
def test_messages_between_gpus():
    """Two ranks on two devices."""
    done = torchrun(2, HERE / "torch_gpu.py")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"rank \d of 2 done", done.stdout)) == 2


@pytest.mark.parametrize("ranks", ["all", "the second"])
def test_cuda_tensors_on_a_cpu_group(tmp_path, ranks):
    """One line with what to do, exit code 2, and no rank hangs; the group without the entry point, too."""
    script = tmp_path / "script.py"
    where = "'cuda'" if ranks == "all" else "'cuda' if r else 'cpu'"
    script.write_text(
        "import torch\nimport torch.distributed as dist\nfrom opticcl._torch_entry import register\nregister()\n"
        "dist.init_process_group('opticcl')\nr = dist.get_rank()\n"
        f"dist.all_reduce(torch.ones(10, device={where}))\n"
    )
    done = torchrun(2, script)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("opticcl:")]
    assert len(lines) == 1, done.stderr
    rank = 0 if ranks == "all" else 1
    assert f"all_reduce: rank {rank}: a tensor on cuda:0 in a group for CPU tensors; move it to the CPU" in lines[0]
    assert "exitcode: 2" in done.stderr
