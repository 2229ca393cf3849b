"""CPU seconds of the packet engine, each beside its mark: `python benchmarks/packet.py`.

A warm-up run of the same kind comes first, so that what Numba compiles is not counted. Marks are for one core. Cells of
4,096 bytes.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Fabric, Op, Schedule, Transfers
from opticcl.simulate import simulate

LIGHT = assumptions(compute="none")
CELL = 4096


def leaf_spine(nodes: int) -> Fabric:
    """40 Gb/s everywhere, as many spines as nodes a leaf."""
    side = 1 << (nodes.bit_length() // 2)
    return fabric("leaf_spine", nodes=nodes, nodes_per_leaf=side, spines=side, rate=40e9, uplink_rate=40e9)


def all_to_all(nodes: int) -> CircuitPlan:
    """Everyone to everyone at once."""
    src, dst = np.divmod(np.arange(nodes * nodes), nodes)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    return lower(leaf_spine(nodes), Schedule("pairs", collective("all_to_all", nodes, nodes), 1, lambda i: transfers))


def permutation(nodes: int, routing: str = "ecmp") -> CircuitPlan:
    """Everyone to one other, drawn once, over three layers of 100 Gb/s switches with 16 ports."""
    where = fabric("fat_tree", nodes=nodes, radix=16, layers=3, rate=100e9, routing=routing)
    order = np.random.default_rng(1).permutation(nodes)
    to = np.empty(nodes, np.int64)
    to[order] = np.roll(order, 1)
    transfers = Transfers.of(np.arange(nodes), to, 0, 1, Op.COPY)
    return lower(where, Schedule("permutation", collective("barrier", nodes, 1), 1, lambda i: transfers))


WINDOWED = {"transport": "windowed", "buffer_bytes": 16 * CELL}
CASES: list[tuple[str, str, Callable[[int], CircuitPlan], int, int, dict[str, Any]]] = [
    ("all-to-all 64 x 1 MB", "< 6, > 500", all_to_all, 64, 10**6, {}),
    ("all-to-all 64 x 1 MB, cut-through", "", all_to_all, 64, 10**6, {"forwarding": "cut_through"}),
    ("all-to-all 64 x 1 MB, input queues", "", all_to_all, 64, 10**6, {"queue": "input"}),
    ("all-to-all 64 x 1 MB, 64 KiB buffers", "", all_to_all, 64, 10**6, {"buffer_bytes": 16 * CELL}),
    ("all-to-all 64 x 1 MB, 64 KiB, windowed", "", all_to_all, 64, 10**6, WINDOWED),
    ("all-to-all 128 x 0.1 MB", "< 4", all_to_all, 128, 10**5, {}),
    ("permutation 1,024 x 2 MB", "< 13", permutation, 1024, 2 * 10**6, {}),
    ("permutation 1,024 x 2 MB, windowed", "", permutation, 1024, 2 * 10**6, WINDOWED),
]


def main() -> None:
    """Print the table."""
    print(
        f"{'packet engine':<42}{'CPU s':>8}{'k cells/s':>11}{'mark':>12}{'simulated s':>13}{'busiest link':>14}{'peak MiB':>10}"
    )
    for name, mark, make, nodes, block, options in CASES:
        simulate(make(16), 16 * CELL, LIGHT, engine="packet", **options)
        plan = make(nodes)
        size = block * (nodes if make is all_to_all else 1)
        begin = time.process_time()
        result = simulate(plan, size, LIGHT, engine="packet", record=True, **options)
        spent = time.process_time() - begin
        assert result.traffic is not None
        cells = len(plan.schedule.step(0)) * -(-block // CELL)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        bound = float(result.traffic.busy_s.max())
        print(
            f"{name:<42}{spent:>8.2f}{cells / spent / 1e3:>11.0f}{mark:>12}{result.timeline.total_s:>13.6f}"
            f"{bound:>14.6f}{peak:>10.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
