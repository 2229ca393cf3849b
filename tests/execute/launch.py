"""Processes of MPI and torchrun for tests, and whether the extras are installed."""

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import opticcl

MPIEXEC = Path(sys.executable).parent / "mpiexec"
SOURCE = str(Path(opticcl.__file__).parents[1])

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
    reason="the extra mpi is not installed: pip install 'opticcl[mpi]'",
)
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="the extra torch is not installed: pip install 'opticcl[torch]'"
)


def environment(**more):
    """Variables of a process that finds this package; one thread, since tests share few cores."""
    paths = [SOURCE, str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1", **more}


def mpiexec(processes, *arguments, timeout=120, **more):
    """Run a Python command line under mpiexec."""
    command = [str(MPIEXEC), "-n", str(processes), sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, env=environment(**more)
    )


def torchrun(processes, *arguments, timeout=240, options=(), **more):
    """Run a Python file under torchrun, at a free port of this host."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        str(processes),
        "--standalone",
        *options,
    ]
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment(**more),
    )


def processes_of_a_group(count, script, timeout=120, wrap=lambda rank, command: command, address="127.0.0.1", **more):
    """Run a torch script in processes of its own, without a launcher that ends them; returns their results.

    Args:
        count: processes [count].
        script: path.
        timeout: for all of them [s].
        wrap: (rank, command) -> command, such as one that enters a network namespace.
        address: of rank 0, as the others see it.
    """
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    variables = {"WORLD_SIZE": str(count), "MASTER_ADDR": address, "MASTER_PORT": str(port), **more}
    running = [
        subprocess.Popen(
            wrap(rank, [sys.executable, str(script)]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(RANK=str(rank), **variables),
        )
        for rank in range(count)
    ]
    found = []
    try:
        for process in running:
            out, err = process.communicate(timeout=timeout)
            found.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    finally:
        for process in running:
            process.kill()
    return found
