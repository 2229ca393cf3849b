"""The control plane and the arbiter of jobs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import Run, case

import opticcl
from opticcl.ir import CircuitPlan
from opticcl.operations import scripts
from opticcl.operations.arbiter import Arbiter
from opticcl.operations.oddl_control.simulation import simulate
from opticcl.operations.oddl_control.state_space import explore


def halving_doubling(shape: str) -> CircuitPlan:
    """On a grid of ODDL."""
    return opticcl.compile(f"oddl:shape={shape}", "all_reduce", 10**8, algorithm="halving_doubling").circuits


@case("control.protocol_1024", "control protocol of 1,024 nodes, halving-doubling")
def protocol() -> Run:
    """A small one beforehand."""
    simulate(halving_doubling("4"), 10**8)
    large = halving_doubling("32x32")
    return lambda: simulate(large, 10**8) and None


@case("control.states_4", "all states of 4 nodes on a hostile network")
def states() -> Run:
    """Every order, loss and repetition of messages."""
    small = halving_doubling("4")
    return lambda: explore(scripts(small), "any") and None


@case("control.arbiter_4096", "place and free 512 of 4,096 nodes among 30 jobs, file included")
def arbiter() -> Run:
    """Thirty jobs are there already."""
    folder = tempfile.TemporaryDirectory()
    jobs = Arbiter("oddl:shape=16x16x16", Path(folder.name) / "jobs.json")
    for k in range(30):
        jobs.place(1 + 2 * k)

    def place_and_free() -> None:
        jobs.place(512, "big")
        jobs.free("big")
        folder.cleanup()

    return place_and_free
