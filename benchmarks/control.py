"""CPU seconds of the control plane, each beside its mark: `python benchmarks/control.py`. Marks are for one core."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import opticcl
from opticcl.operations import scripts
from opticcl.operations.arbiter import Arbiter
from opticcl.operations.oddl_control.simulation import simulate
from opticcl.operations.oddl_control.state_space import explore


def measure(what: str, mark_s: float, run: Callable[[], object], repeat: int = 3) -> None:
    """Print the least of some runs."""
    taken = []
    for _ in range(repeat):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    print(f"{what:<58}{min(taken):>10.4f} s   mark {mark_s:g} s")


def main() -> None:
    """All marks."""
    small, large = (
        opticcl.compile(f"oddl:shape={shape}", "all_reduce", 10**8, algorithm="halving_doubling").circuits
        for shape in ("4", "32x32")
    )
    simulate(small, 10**8)
    measure("control protocol of 1024 nodes, halving-doubling", 2.0, lambda: simulate(large, 10**8))
    measure("all states of 4 nodes on a hostile network", 5.0, lambda: explore(scripts(small), "any"))
    with tempfile.TemporaryDirectory() as folder:
        arbiter = Arbiter("oddl:shape=16x16x16", Path(folder) / "jobs.json")
        for k in range(30):
            arbiter.place(1 + 2 * k)

        def place_and_free() -> None:
            arbiter.place(512, "big")
            arbiter.free("big")

        measure("arbiter: place and free 512 of 4096 nodes, file included", 0.1, place_and_free)


if __name__ == "__main__":
    main()
