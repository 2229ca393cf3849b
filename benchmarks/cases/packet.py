"""The packet engine, cells of 4,096 bytes. A small case of the same kind runs beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Run, register

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Fabric, Op, Schedule, Transfers
from opticcl.simulate import simulate

LIGHT = assumptions("published", compute="none")
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
Make = Callable[[int], CircuitPlan]
CASES: list[tuple[str, str, Make, int, int, dict[str, Any]]] = [
    ("pairs_64", "all-to-all 64 x 1 MB, 40 Gb/s leaf-spine", all_to_all, 64, 10**6, {}),
    ("pairs_64_cut_through", "the same, cut-through", all_to_all, 64, 10**6, {"forwarding": "cut_through"}),
    ("pairs_64_input", "the same, input queues", all_to_all, 64, 10**6, {"queue": "input"}),
    ("pairs_64_buffers", "the same, buffers of 64 KiB", all_to_all, 64, 10**6, {"buffer_bytes": 16 * CELL}),
    ("pairs_64_windowed", "the same, buffers of 64 KiB, windowed", all_to_all, 64, 10**6, WINDOWED),
    ("pairs_128", "all-to-all 128 x 0.1 MB", all_to_all, 128, 10**5, {}),
    ("permutation_1024", "permutation 1,024 x 2 MB, 100 Gb/s, three layers, ECMP", permutation, 1024, 2 * 10**6, {}),
    ("permutation_1024_windowed", "the same, windowed", permutation, 1024, 2 * 10**6, WINDOWED),
]


def prepared(make: Make, nodes: int, block: int, options: dict[str, Any]) -> Callable[[], Run]:
    """Plan made, kernels compiled by 16 nodes.

    Args:
        make: the plan for a number of nodes.
        nodes: number of them.
        block: bytes of a transfer.
        options: of the engine.
    """

    def prepare() -> Run:
        simulate(make(16), 16 * CELL, LIGHT, engine="packet", **options)
        plan = make(nodes)
        size = block * (nodes if make is all_to_all else 1)
        cells = len(plan.schedule.step(0)) * -(-block // CELL)

        def run() -> dict[str, float]:
            begun = time.process_time()
            found = simulate(plan, size, LIGHT, engine="packet", record=True, **options)
            spent = time.process_time() - begun
            return {"cells_per_s": cells / spent, "simulated_s": found.timeline.total_s}

        return run

    return prepare


for _name, _title, _make, _nodes, _block, _options in CASES:
    register(f"packet.{_name}", _title, prepared(_make, _nodes, _block, _options))
