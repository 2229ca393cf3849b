"""Studies of a design space: cheap points in processes, and a study that is finished."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from measure import Run, case, cpu_seconds

POINTS = """
measure = ["time", "bound", "gap", "dollars", "watts", "margin"]
[axes]
fabric = ["ideal", "torus", "fat_tree", "leaf_spine", "lightpath", "sipac", "oddl", "superpod", "topoopt", "ramp"]
nodes = [16, 64]
size = { from = "1KB", to = "1GB", factor = 1.0279 }
"""
"""10,060 points."""


def _folder() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "cheap.toml").write_text(POINTS)
    return folder


@case("studies.cheap_points", "10,060 cheap points of a study in two processes, against one")
def cheap_points() -> Run:
    """Points a CPU second of a process after warm-up, and wall time against one process."""
    from opticcl.studies.space.design import read_design
    from opticcl.studies.space.runner import run_space

    folder = _folder()
    space = read_design(Path(folder.name) / "cheap.toml")
    small = replace(space, axes={**space.axes, "size": space.axes["size"][:2]})
    run_space(small, Path(folder.name) / "warm", jobs=1)

    def run() -> dict[str, float]:
        wall, cpu = [], []
        for jobs in (1, 2):
            begun, used = time.monotonic(), cpu_seconds()
            run_space(space, Path(folder.name) / str(jobs), jobs=jobs)
            wall.append(time.monotonic() - begun)
            cpu.append(cpu_seconds() - used)
        folder.cleanup()
        return {"points_per_cpu_s": space.num_points / cpu[0], "times_one_job": wall[1] / wall[0]}

    return run


@case("studies.finished", "opticcl study of 10,060 points that are finished, a process of its own")
def finished() -> Run:
    """The study is run before."""
    folder = _folder()
    where = Path(folder.name)
    words = ["-m", "opticcl", "study", "run", str(where / "cheap.toml"), "--folder", str(where / "out")]
    subprocess.run([sys.executable, *words], capture_output=True, check=True)

    def run() -> None:
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        folder.cleanup()

    return run
