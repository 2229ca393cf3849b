"""Real processes: MPI against the library's own collectives, PyTorch against Gloo. Need the extras `mpi` and `torch`."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from measure import NotRunError, Run, case, register

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def _done(words: list[str], **variables: str) -> str:
    """Standard output of a command; it fails the case where the command fails and prints nothing."""
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        # compiled modules are kept, as pip keeps them
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": paths, **variables},
    )
    if done.returncode and not done.stdout.strip():
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    return done.stdout


def _needs(extra: str, module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise NotRunError(f"the extra {extra} is not installed: pip install 'opticcl[{extra}]'")


def _torchrun(processes: int, *words: str) -> str:
    return _done(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--standalone", *words]
    )


def mpi(size: str) -> Run:
    """`opticcl execute --transport mpi --compare` on as many processes as there are cores, at least two."""
    _needs("mpi", "mpi4py")
    processes = max(2, min(8, os.cpu_count() or 2))
    mpiexec = Path(sys.executable).parent / "mpiexec"

    def run() -> dict[str, float]:
        said = _done([
            str(mpiexec), "-n", str(processes), sys.executable, "-m", "opticcl", "execute", "--transport", "mpi", "-f",
            f"ideal:nodes={processes}", "-c", "all_reduce", "-s", size, "--repeat", "11", "--compare",
        ])  # fmt: skip
        found = re.search(r"OptiCCL takes ([\d.e+-]+) times as long", said)
        assert found, said
        return {"times_mpi": float(found[1]), "processes": processes}

    return run


for _size in ("1MB", "16MB"):
    register(
        f"running.mpi_{_size.lower()}",
        f"MPI all_reduce of {_size} against the library's own",
        lambda size=_size: mpi(size),
    )


@case("running.mpi_small", "MPI all_reduce of 1 and 64 KiB against the library's own, CPU time, 2 processes")
def mpi_small() -> Run:
    """Medians of seven runs of both in turn."""
    _needs("mpi", "mpi4py")
    mpiexec = Path(sys.executable).parent / "mpiexec"

    def run() -> dict[str, float]:
        said = _done([str(mpiexec), "-n", "2", sys.executable, str(HERE.parent / "mpi_calls.py")])
        return {
            f"times_mpi_{size}_kib": float(ratio) for size, ratio in re.findall(r"(\d+) KiB: .* ratio ([\d.]+)", said)
        }

    return run


def torch_calls(processes: int) -> Run:
    """The worst all_reduce of 1 to 512 KiB and of 1 to 64 MiB, and the worst of the other collectives of 1 and 16 MiB."""
    _needs("torch", "torch")

    def run() -> dict[str, float]:
        said = _torchrun(processes, str(HERE.parent / "torch_calls.py"))
        figures: dict[str, float] = {}
        for name, size, ratio in re.findall(r"^(\w+) +(\d+) KiB .* ratio ([\d.]+)", said, re.MULTILINE):
            kind = ("small" if int(size) < 1024 else "large") if name == "all_reduce" else f"{int(size) >> 10}_mib"
            figures[f"times_gloo_{kind}"] = max(figures.get(f"times_gloo_{kind}", 0.0), float(ratio))
        return figures

    return run


def torch_start(processes: int) -> Run:
    """Medians of seven starts of both in turn; the difference [s]."""
    _needs("torch", "torch")

    def run() -> dict[str, float]:
        said = [_torchrun(processes, str(HERE.parent / "torch_start.py"), who) for who in ("opticcl", "gloo") * 7]
        taken = [float(text.split()[1]) for text in said]
        return {"more_than_gloo_s": median(taken[::2]) - median(taken[1::2])}

    return run


for _processes in (2, 4):
    register(
        f"running.torch_calls_{_processes}",
        f"PyTorch backend against Gloo, CPU time of a call, {_processes} processes",
        lambda count=_processes: torch_calls(count),
    )
    register(
        f"running.torch_start_{_processes}",
        f"init_process_group and first all_reduce, wall time beyond that of Gloo, {_processes} processes",
        lambda count=_processes: torch_start(count),
    )


@case("running.torch_ddp", "training a CNN with DDP against Gloo, wall time, 4 processes")
def torch_ddp() -> Run:
    """The CNN of the example; the median over short rounds of the ratio of both, which other processes disturb least."""
    _needs("torch", "torch")

    def run() -> dict[str, float]:
        said = _torchrun(4, str(HERE.parent / "torch_ddp.py"))
        found = re.search(r"ratio ([\d.]+)", said)
        assert found, said
        return {"times_gloo": float(found[1])}

    return run


@case("running.import_torch", "what the entry point adds to `import torch`")
def import_torch() -> Run:
    """CPU time to import and call it, the least of five; torch looks for entry points with or without it."""
    _needs("torch", "torch")
    code = (
        "import time, torch\nfrom importlib.metadata import entry_points\n"
        "(entry,) = entry_points(group='torch.backends', name='opticcl')\n"
        "begun = time.process_time()\nentry.load()()\nprint(time.process_time() - begun)"
    )

    def run() -> dict[str, float]:
        found = [float(_done([sys.executable, "-c", code], TORCH_DEVICE_BACKEND_AUTOLOAD="0")) for _ in range(5)]
        return {"import_ms": 1e3 * min(found)}

    return run
