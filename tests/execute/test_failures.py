"""A rank that is killed, hangs or raises: the others end with one line of rank, collective and step; nothing is left."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.execute.launch import MPIEXEC, environment, needs_mpi, needs_torch, processes_of_a_group, torchrun

PREAMBLE = """
import os, time
from datetime import timedelta
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("opticcl", timeout=timedelta(seconds=10))
r, x = dist.get_rank(), torch.ones(1000)
dist.all_reduce(x)
print("pid", os.getpid(), flush=True)
"""
TRAINING = """
model = DistributedDataParallel(torch.nn.Linear(50, 50))
for step in range(3):
    if step == 2 and r == 1:
        os.kill(os.getpid(), 9)
    model(torch.ones(2, 50)).sum().backward()
"""
LONG = """
import threading
if r == 1:
    threading.Timer(0.2, os._exit, [3]).start()
for _ in range(1000):
    dist.all_reduce(torch.ones(1_000_000))
"""
GONE = r"(reset|closed)"


def deep(*values):
    """A case of `make test-deep`."""
    return pytest.param(*values, marks=pytest.mark.deep)


def lines_of(text):
    """What OptiCCL prints on standard error."""
    return [line for line in text.splitlines() if line.startswith("opticcl:")]


@needs_torch
@pytest.mark.parametrize(
    ("count", "code", "words"),
    [
        (2, TRAINING, rf"all_reduce, (before step 0|step \d+): rank 1: .*{GONE}"),
        deep(3, "if r == 1:\n    os.kill(os.getpid(), 9)", rf"all_reduce, before step 0: rank 1: .*{GONE}"),
        deep(3, LONG, rf"all_reduce, (before step 0|step \d+): rank \d: .*{GONE}"),
        deep(3, "if r == 1:\n    time.sleep(30)", r"all_reduce, before step 0: rank 1: Timed out waiting 10000ms"),
        deep(
            2,
            "dist.group.WORLD.set_timeout(timedelta(seconds=2))\nif r == 1:\n    time.sleep(20)",
            r"all_reduce, before step 0: rank 1: Timed out waiting 2000ms",
        ),
        deep(3, "if r == 1:\n    raise ValueError('it stops')", rf"all_reduce, before step 0: rank 1: .*{GONE}"),
        deep(3, TRAINING, rf"all_reduce, (before step 0|step \d+): rank \d: .*{GONE}"),
    ],
)
def test_the_others_end(tmp_path, count, code, words):
    """Without a launcher that ends them: one line of each, exit code 1."""
    script = tmp_path / "script.py"
    script.write_text(f"{PREAMBLE}{code}\ndist.all_reduce(x)\n")
    done = processes_of_a_group(count, script)
    for rank in set(range(count)) - {1}:
        (line,) = lines_of(done[rank].stderr)
        assert re.search(f"opticcl: rank {rank} of {count}: {words}", line)
        assert done[rank].returncode == 1
    assert done[1].returncode != 0


@needs_torch
@pytest.mark.deep
def test_nothing_is_left(tmp_path):
    """torchrun with a killed rank: a line that names it, no process, and no file of this package."""
    script, temporary = tmp_path / "script.py", tmp_path / "temporary"
    temporary.mkdir()
    script.write_text(f"{PREAMBLE}if r == 1:\n    os.kill(os.getpid(), 9)\ndist.all_reduce(x)\n")
    shared = set(os.listdir("/dev/shm"))
    done = torchrun(3, script, TMPDIR=str(temporary))
    assert done.returncode != 0
    assert any("rank 1:" in line for line in lines_of(done.stderr))
    processes = re.findall(r"pid (\d+)", done.stdout)
    assert len(processes) == 3
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    assert not [path for path in temporary.rglob("*") if path.is_file() and "torchelastic" not in str(path)]
    assert set(os.listdir("/dev/shm")) <= shared


@needs_torch
@pytest.mark.deep
def test_a_restart_gives_a_working_group(tmp_path):
    """torchrun --max-restarts: the first attempt fails in a collective, the second works."""
    mark = tmp_path / "failed"
    script = tmp_path / "script.py"
    script.write_text(
        f"{PREAMBLE}import pathlib\nmark = pathlib.Path({str(mark)!r})\n"
        "if r == 1 and not mark.exists():\n    mark.touch()\n    os._exit(1)\n"
        "dist.all_reduce(x)\nassert (x == 9).all()\nprint(f'rank {r} done', flush=True)\n"
        "dist.destroy_process_group()\n"
    )
    done = torchrun(3, script, options=("--max-restarts", "1"))
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"rank (\d+) done", done.stdout)) == ["0", "1", "2"]


@needs_mpi
def test_a_killed_rank_of_mpi(tmp_path):
    """mpiexec ends the others, with its code and a line of the one that died; no process is left."""
    code = (
        "import os, numpy as np\nfrom mpi4py import MPI\nfrom opticcl.mpi import Communicator\n"
        "comm = Communicator(MPI.COMM_WORLD)\nopen(f'{DIRECTORY}/{os.getpid()}', 'x').close()\ncomm.Barrier()\n"
        "if comm.rank == 1:\n    os.kill(os.getpid(), 9)\nwhile True:\n    comm.Allreduce(np.ones(4), np.ones(4))\n"
    )
    code = f"DIRECTORY = {str(tmp_path)!r}\n{code}"
    shared = set(os.listdir("/dev/shm"))
    done = subprocess.run(
        [MPIEXEC, "-n", "3", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(),
    )
    assert done.returncode != 0
    assert re.search(r"KILLED BY SIGNAL: 9|EXIT CODE: 9", done.stdout + done.stderr)
    processes = [path.name for path in tmp_path.iterdir()]
    assert len(processes) == 3
    until = time.monotonic() + 10
    while (left := [pid for pid in processes if Path(f"/proc/{pid}").exists()]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
    left = set(os.listdir("/dev/shm")) - shared  # MPICH itself leaves the memory that its processes shared
    assert all(name.startswith("mpich_shm") for name in left)
