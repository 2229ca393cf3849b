"""ODDL's rivals: what the fat tree's routing, which the paper does not state, does to halving-doubling; the SiP ring.

The paper puts the fat tree's losses down to congestion and gives no number apart from training times. What a routing
costs is therefore held against our own independent computation, which the file names as such.
"""

from __future__ import annotations

import numpy as np

from opticcl.circuits import lower
from opticcl.errors import FabricError
from opticcl.fabric import fabric
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.simulate import assumptions
from opticcl.simulate.flow import flow
from opticcl.verify import verify

SIZE = 10**8
ECMP_SEEDS = range(5)


def _slow_down(routing: str, seed: int = 0) -> float:
    """Transfer time of halving-doubling on the fat tree of 1024 hosts over that without contention."""
    where = fabric("fat_tree:nodes=1024,preset=oddl,router_latency=0s", routing=routing, seed=seed)
    plan = lower(where, generate("halving_doubling", "all_reduce", where))
    alone_s = 2 * SIZE * (1 - 1 / where.num_nodes) * 8 / where.rate_bits_per_s
    return flow(plan, SIZE, assumptions(compute="none")).total_s / alone_s


@claim("oddl", "O20")
def hosts_of_two_and_three_layers() -> list[int]:
    """Hosts that node 0 reaches over three switches at most, and the largest tree of three layers."""
    largest = 1024
    try:
        fabric("fat_tree:preset=oddl", nodes=largest + 1)
    except FabricError:
        where = fabric("fat_tree:preset=oddl", nodes=largest)
        assert where.route is not None
        others = np.arange(1, largest)
        _, offsets = where.route(np.zeros_like(others), others)
        return [1 + int((np.diff(offsets) <= 4).sum()), largest]
    return []


@claim("oddl", "O21t")
def wavelengths_of_two_way_sip_ring() -> list[int]:
    """Wavelengths that halving-doubling uses, verified, all of every step in one round; two directions."""
    used = []
    for nodes in (8, 1024):
        where = fabric("sip_ring", nodes=nodes, wavelengths=nodes, directions=2)
        plan = lower(where, generate("halving_doubling", "all_reduce", where))
        verify(plan, num_chunks=1).raise_if_bad()
        rounds = [plan.rounds(i) for i in range(plan.schedule.num_steps)]
        used.append(max(int(circuits.wavelength_lo.max()) + 1 for (circuits,) in rounds))
    return used


@claim("oddl", "O26-dmodk")
def contention_under_dmodk() -> float:
    """By the receiver's number."""
    return _slow_down("dmodk")


@claim("oddl", "O26-dstedge")
def contention_under_dstedge() -> float:
    """One path a leaf of the receiver."""
    return _slow_down("dstedge")


@claim("oddl", "O26-single")
def contention_under_single() -> float:
    """One path for all."""
    return _slow_down("single")


@claim("oddl", "O26-ecmp")
def contention_under_ecmp() -> float:
    """At random, mean of five seeds."""
    return float(np.mean([_slow_down("ecmp", seed) for seed in ECMP_SEEDS]))
