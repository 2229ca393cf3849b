"""Jobs over time, and recorded faults on a job with spares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from measure import NotRunError, Run, register

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import no_progress
from opticcl.operations.fault_replay.fault_trace import read_fault_trace
from opticcl.operations.fault_replay.replay import ReplaySetup, recovery_times, replay
from opticcl.operations.jobs_over_time.arrivals import make_arrivals
from opticcl.operations.jobs_over_time.simulation import JobsRun, JobsSetup, simulate_jobs

TRACE = Path(__file__).parents[3] / "shared" / "data" / "faults" / "infinitehbd-first-half.json"


def jobs(shape: str, count: int, policy: str) -> JobsRun:
    """Jobs at load 0.85 on LIGHTPATH."""
    machine = fabric(f"lightpath:shape={shape}")
    arrivals, _ = make_arrivals(f"poisson:load=0.85,count={count}", machine.num_nodes, 1)
    setup = JobsSetup(machine, arrivals, policy, "all_reduce", "100MB", "auto", assumptions("common"), 0.3)
    return simulate_jobs(setup, progress=no_progress)


def scattered() -> Run:
    """Mean wait by `any` over that by `first`."""
    jobs("4x4", 5, "any")

    def run() -> dict[str, float]:
        first, scattered = jobs("16x16", 300, "first"), jobs("16x16", 300, "any")
        waits = [np.mean([job.wait_s for job in one.jobs if job.wait_s is not None]) for one in (first, scattered)]
        both = (first, scattered)
        return {
            "wait_over_first": float(waits[1] / waits[0]),
            "violations": float(sum(len(one.verdict.violations) for one in both)),
            "disturbed": float(sum(one.disturbed for one in both)),
        }

    return run


def replayed(machine: str) -> None:
    """Half a year of faults of 400 servers, 384 ranks and 16 spares."""

    def prepare() -> Run:
        if not TRACE.exists():
            raise NotRunError(f"../shared/data/faults/{TRACE.name} is not there")
        trace = read_fault_trace(TRACE)
        setup = ReplaySetup(
            fabric(machine), trace, 384, 16, "all_reduce", "100MB", "auto", assumptions("common"), recovery_times(), 0
        )

        def run() -> dict[str, float]:
            goodput = {one.policy: one.goodput for one in replay(setup, progress=no_progress)}
            return {"best": goodput["best"], "best_over_restart": goodput["best"] / goodput["restart"]}

        return run

    name = machine.partition(":")[0]
    register(f"jobs.replay_{name}", f"half a year of faults of 400 servers on {machine}", prepare)


register("jobs.scattered", "300 jobs on 16 x 16 tiles at load 0.85, by first and by any", scattered)
replayed("oddl:shape=20x20")
replayed("sipac:radix=20,levels=2")
