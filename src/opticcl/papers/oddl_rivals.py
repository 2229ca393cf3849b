"""ODDL's rivals: what the fat tree's routing, which the paper does not state, does to halving-doubling; the SiP ring.

The paper attributes the fat tree's losses to congestion and prints no number apart from training times. The rows O26-... are
therefore no claims of the paper but computations that the rows of training times refer to.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from opticcl.circuits import lower
from opticcl.errors import FabricError
from opticcl.fabrics import fabric
from opticcl.ir import Timeline
from opticcl.ir.circuit_plan import StoredRounds
from opticcl.papers import Found, claim, found
from opticcl.schedule import generate
from opticcl.simulate import simulate
from opticcl.verify import verify

SIZE = 10**8
ECMP_SEEDS = range(5)


@cache
def _timeline(routing: str, seed: int = 0) -> Timeline:
    """Halving-doubling on the fat tree of 1024 hosts, without latency and sums."""
    where = fabric("fat_tree:nodes=1024,preset=oddl,router_latency=0s", routing=routing, seed=seed)
    plan = lower(where, generate("halving_doubling", "all_reduce", where))
    return simulate(plan, SIZE, "published", engine="flow", compute="none").timeline


@claim("oddl", "O26-dmodk", "dmodk")
@claim("oddl", "O26-single", "single")
def slow_down(routing: str, seed: int = 0) -> float:
    """Transfer time of halving-doubling over that without contention."""
    where = fabric("fat_tree:preset=oddl")
    alone_s = 2 * SIZE * (1 - 1 / 1024) * 8 / where.rate_bits_per_s
    return _timeline(routing, seed).total_s / alone_s


@claim("oddl", "O20")
def hosts_of_two_and_three_layers() -> Found:
    """Hosts that node 0 reaches over three switches at most, and the largest tree of three layers."""
    largest = _largest(3)
    where = fabric("fat_tree:preset=oddl", nodes=largest)
    assert where.route is not None
    others = np.arange(1, largest)
    _, offsets = where.route(np.zeros_like(others), others)
    return found([1 + int((np.diff(offsets) <= 4).sum()), largest], two_layers=_largest(2))


def _largest(layers: int) -> int:
    """Hosts of the largest tree of 16-port switches [count]."""

    def exists(nodes: int) -> bool:
        try:
            fabric("fat_tree", radix=16, layers=layers, nodes=nodes)
        except FabricError:
            return False
        return True

    nodes = 1
    while exists(2 * nodes):
        nodes *= 2
    return nodes


@claim("oddl", "O21t")
def wavelengths_of_two_way_sip_ring() -> list[int]:
    """Wavelengths that halving-doubling uses, verified, all of every step in one round; two directions."""
    used = []
    for nodes in (8, 1024):
        where = fabric("sip_ring", nodes=nodes, wavelengths=nodes, directions=2)
        plan = lower(where, generate("halving_doubling", "all_reduce", where))
        rounds = StoredRounds(tuple(map(plan.rounds, range(plan.schedule.num_steps))))
        verify(replace(plan, rounds=rounds)).raise_if_bad()
        used.append(max(int(circuits.wavelength_lo.max()) + 1 for (circuits,) in rounds.steps))
    return used


@claim("oddl", "O26-dstedge")
def contention_under_dstedge() -> Found:
    """One path a leaf of the receiver; and its steps against those without contention."""
    slower = _timeline("dstedge").transfer_s / _timeline("dmodk").transfer_s
    return found(slow_down("dstedge"), most=slower.max(), slowed=int((slower > 1.5).sum()), steps=len(slower))


@claim("oddl", "O26-ecmp")
def contention_under_ecmp() -> Found:
    """At random, mean of five seeds."""
    slow_downs = [slow_down("ecmp", seed) for seed in ECMP_SEEDS]
    return found(float(np.mean(slow_downs)), deviation=float(np.std(slow_downs)))
