"""Morphlux's claims, by the group of LUMORPH: a photonic fabric in the servers of a torus; the abstract alone is at hand.

A rack is a torus of 4 x 4 x 4 chips, and 2 x 2 x 1 of them are a server. In a torus a chip has two links in each dimension. A
tenant's slice uses those between its own chips; the others are idle, since they lead to chips of other tenants. A photonic
server points all links of a chip at the slice, and lets a free chip use the outer links of any chip of its server.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import IntArray, no_progress
from opticcl.operations.jobs_over_time.arrivals import poisson_arrivals
from opticcl.operations.jobs_over_time.simulation import JobsSetup, simulate_jobs
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers._inverse import argument_of
from opticcl.plans.plan import compile

RACK = "torus:shape=4x4x4"
SERVER = (2, 2, 1)
SIZE = 10e9  # the data of a gradient, of which the time of the first byte is no part


@cache
def share_used(where: str, *chips: int) -> float:
    """Part of what the chips of a slice can send that its verified all-reduce of large messages uses."""
    rules = assumptions("lumorph")  # bytes over rate, without costs of messages or sums
    plan = compile(where, "all_reduce", SIZE, nodes=chips, assumptions=rules, ignore_light=True)
    plan.verify().raise_if_bad()
    least_s = 2 * (len(chips) - 1) / len(chips) * 8 * SIZE / fabric(where).node_rate_bits_per_s
    return float(least_s / plan.simulate(assumptions=rules).total_s)


def gain() -> tuple[float, float]:
    """Share of a server's slice in the torus and on a photonic server."""
    return share_used(RACK, 0, 1, 4, 5), share_used("lightpath:shape=2x2", 0, 1, 2, 3)


@claim("morphlux", "M1")
def bandwidth_in_points() -> Found:
    """A server's share of its links, photonic less torus [percentage points]."""
    torus, photonic = gain()
    return found(100 * (photonic - torus), torus=100 * torus, photonic=100 * photonic)


@claim("morphlux", "M1r")
def bandwidth_as_a_ratio() -> Found:
    """The same as an increase over the torus [%]; and that of a plane of 16 chips as a fact."""
    torus, photonic = gain()
    plane = share_used(RACK, *range(16))
    return found(100 * (photonic / torus - 1), plane=100 * (photonic / plane - 1))


@claim("morphlux", "M2")
def less_fragmentation() -> Found:
    """Free chips outside the largest possible slice over all free ones, mean over time and runs: its reduction [%]."""
    entry = printed_claims("morphlux")["M2"]
    runs = [lost_chips(seed, entry["load"], entry["jobs"], entry["largest"]) for seed in range(entry["runs"])]
    torus, photonic = np.sum(runs, axis=0)
    each = [100 * (1 - photonic / torus) for torus, photonic in runs]
    return found(float(100 * (1 - photonic / torus)), least=min(each), most=max(each))


def lost_chips(seed: int, load: float, jobs: int, largest: int) -> tuple[float, float]:
    """Time for which free chips are lost to blocks of the torus, and to servers that `largest_joined` joins [s].

    Args: seed, load, jobs, largest: of random jobs, as of `poisson_arrivals`, which get blocks of the torus.
    """
    rack = fabric(RACK)
    arrivals = poisson_arrivals(rack.num_nodes, seed, load=load, count=jobs, mean=3600.0, smallest=1, largest=largest)
    rules = assumptions("lumorph")
    setup = JobsSetup(rack, arrivals, "first", "all_reduce", "1 MB", "ring", rules, 0.3)
    ran = simulate_jobs(setup, progress=no_progress)
    lost_s = np.zeros(2)
    for state, following in zip(ran.states[:-1], ran.states[1:], strict=True):
        free = np.ones(rack.num_nodes, bool)
        for job in ran.jobs:
            if job.start_s is not None and job.end_s is not None and job.start_s <= state.time_s < job.end_s:
                free[job.held] = False
        if free.any():
            usable = np.array([state.largest, largest_joined(free.reshape(rack.dimensions))])
            lost_s += (following.time_s - state.time_s) * (1 - usable / free.sum())
    return float(lost_s[0]), float(lost_s[1])


def largest_joined(free: IntArray) -> int:
    """Free chips of the largest set of servers that are neighbours on the torus and have a free chip each [count].

    Args: free: whether each chip is, bool (4, 4, 4).
    """
    split = [part for side, own in zip(free.shape, SERVER, strict=True) for part in (side // own, own)]
    chips = free.reshape(split).sum(axis=tuple(range(1, 2 * free.ndim, 2)))
    some = chips > 0
    label = np.arange(chips.size).reshape(chips.shape)
    known = np.zeros(0, np.int64)
    while not np.array_equal(label, known):
        known = label
        for axis in range(chips.ndim):
            for way in (1, -1):
                joined = some & np.roll(some, way, axis)
                label = np.where(joined, np.minimum(label, np.roll(label, way, axis)), label)
    return int(np.bincount(label[some], weights=chips[some]).max())


@claim("morphlux", "M3")
def training_throughput() -> Found:
    """Of an iteration with the job simulator's usual share of messages, which become as fast as `gain` says."""
    torus, photonic = gain()

    def speed_up(share: float) -> float:
        return 1 / (1 - share + share * torus / photonic)

    entry = printed_claims("morphlux")["M3"]
    needed = argument_of(speed_up, entry["published"], 0.0, 1.0, tolerance=1e-9)
    return found(speed_up(entry["share"]), needed=100 * needed, messages=photonic / torus)
