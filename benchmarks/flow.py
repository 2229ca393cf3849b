"""CPU seconds of the flow engine, each beside its mark: `python benchmarks/flow.py`.

A warm-up run of the same kind comes first, so that what Numba compiles is not counted. Marks are for one core.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import CircuitPlan, Fabric, Op, Schedule, Transfers
from opticcl.schedule import generate
from opticcl.simulate import simulate
from opticcl.simulate.options import Mode

LIGHT = assumptions(compute="none")
MB = 10**6


def all_reduce(algorithm: str, nodes: int) -> CircuitPlan:
    """On WRHT's tree."""
    where = fabric("fat_tree", nodes=nodes, preset="wrht")
    return lower(where, generate(algorithm, "all_reduce", where))


def ring(nodes: int) -> CircuitPlan:
    """Two classes of steps."""
    return all_reduce("ring", nodes)


def ring_uncounted(nodes: int) -> CircuitPlan:
    """The same; its steps do not say that they are alike."""
    plan = ring(nodes)
    kept = plan.schedule
    return lower(plan.fabric, Schedule(kept.name, kept.collective, kept.num_steps, kept.step))


def halving_doubling(nodes: int) -> CircuitPlan:
    """20 steps for 1024 nodes."""
    return all_reduce("halving_doubling", nodes)


def shifts(nodes: int) -> CircuitPlan:
    """All-to-all in N - 1 steps: everyone to the rank i + 1 further on."""
    where = fabric("fat_tree", nodes=nodes, preset="wrht")
    node = np.arange(nodes, dtype=np.int32)

    def step(i: int) -> Transfers:
        to = (node + i + 1) % nodes
        return Transfers.of(node, to, to, 1, Op.MOVE)

    return lower(where, Schedule("shift", collective("all_to_all", nodes, nodes), nodes - 1, step))


def pairs(where: Fabric) -> CircuitPlan:
    """All-to-all in one step."""
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n), n)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    return lower(where, Schedule("pairs", collective("all_to_all", n, n), 1, lambda i: transfers))


def all_pairs(nodes: int) -> CircuitPlan:
    """On WRHT's tree."""
    return pairs(fabric("fat_tree", nodes=nodes, preset="wrht"))


def all_pairs_torus(nodes: int) -> CircuitPlan:
    """On a 2-D torus: paths of every length, many ends at many times."""
    return pairs(fabric_at_scale("torus", nodes))


def all_pairs_ecmp(nodes: int) -> CircuitPlan:
    """On leaves and spines with paths by chance: no two flows are alike."""
    return pairs(fabric_at_scale("leaf_spine", nodes))


CASES: list[tuple[str, str, Mode, Callable[[int], CircuitPlan], int]] = [
    ("ring 1,024, equal steps counted", "< 0.5", "barrier", ring, 1024),
    ("ring 1,024, every step played", "< 3", "barrier", ring_uncounted, 1024),
    ("ring 1,024, by dependencies", "", "asynchronous", ring, 1024),
    ("ring 256, by dependencies (130,560 flows)", "< 0.3", "asynchronous", ring, 256),
    ("halving-doubling 1,024", "< 0.1", "barrier", halving_doubling, 1024),
    ("halving-doubling 1,024, by dependencies", "", "asynchronous", halving_doubling, 1024),
    ("shift all-to-all 1,024 (1.05 M flows)", "< 2", "barrier", shifts, 1024),
    ("shift all-to-all 1,024, by dependencies", "", "asynchronous", shifts, 1024),
    ("all pairs at once 256 (65,280 flows)", "< 1", "barrier", all_pairs, 256),
    ("all pairs at once 512", "< 60", "barrier", all_pairs, 512),
    ("all pairs at once 1,024 (1.05 M flows)", "< 60", "barrier", all_pairs, 1024),
    ("all pairs at once 512, torus 16x32", "", "barrier", all_pairs_torus, 512),
    ("all pairs at once 256, leaf-spine, ECMP", "", "barrier", all_pairs_ecmp, 256),
]


def main() -> None:
    """Print the table."""
    print(f"{'flow engine':<44}{'CPU s':>9}{'mark':>8}{'simulated s':>14}{'peak MiB':>10}")
    for name, mark, mode, make, nodes in CASES:
        simulate(make(128), 100 * MB, LIGHT, engine="flow", mode=mode)
        size = 100 * MB if make in (ring, ring_uncounted, halving_doubling) else nodes * MB
        begin = time.process_time()
        seconds = simulate(make(nodes), size, LIGHT, engine="flow", mode=mode).timeline.total_s
        spent = time.process_time() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name:<44}{spent:>9.3f}{mark:>8}{seconds:>14.6f}{peak:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
