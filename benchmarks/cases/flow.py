"""The flow engine: regular and irregular traffic. A small case of the same kind runs beforehand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measure import Run, register

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import CircuitPlan, Fabric, Op, Schedule, Transfers
from opticcl.schedule import generate
from opticcl.simulate import simulate
from opticcl.simulate.options import Mode

LIGHT = assumptions("published", compute="none")
MB = 10**6


def all_reduce(algorithm: str, nodes: int) -> CircuitPlan:
    """On WRHT's tree."""
    where = fabric("fat_tree", nodes=nodes, preset="wrht")
    return lower(where, generate(algorithm, "all_reduce", where))


def ring(nodes: int) -> CircuitPlan:
    """Two classes of steps."""
    return all_reduce("ring", nodes)


def ring_uncounted(nodes: int) -> CircuitPlan:
    """The same; its steps do not claim to be equal."""
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
    """On leaves and spines with paths by chance: no two flows are equal."""
    return pairs(fabric_at_scale("leaf_spine", nodes))


CASES: list[tuple[str, str, Mode, Callable[[int], CircuitPlan], int]] = [
    ("ring_1024_counted", "ring of 1,024, equal steps counted", "barrier", ring, 1024),
    ("ring_1024_played", "ring of 1,024, every step simulated (2.1 M flows)", "barrier", ring_uncounted, 1024),
    ("ring_1024_dependencies", "ring of 1,024, by dependencies", "asynchronous", ring, 1024),
    ("ring_256_dependencies", "ring of 256, by dependencies (130,560 flows)", "asynchronous", ring, 256),
    ("halving_doubling_1024", "halving-doubling, 1,024 hosts", "barrier", halving_doubling, 1024),
    ("halving_doubling_1024_dependencies", "the same by dependencies", "asynchronous", halving_doubling, 1024),
    ("shifts_1024", "all-to-all of shifts, 1,024 hosts (1.05 M flows)", "barrier", shifts, 1024),
    ("shifts_1024_dependencies", "the same by dependencies", "asynchronous", shifts, 1024),
    ("pairs_256", "all pairs at once, 256 hosts (65,280 flows)", "barrier", all_pairs, 256),
    ("pairs_512", "all pairs at once, 512 hosts", "barrier", all_pairs, 512),
    ("pairs_1024", "all pairs at once, 1,024 hosts (1.05 M flows)", "barrier", all_pairs, 1024),
    ("pairs_512_torus", "all pairs at once on a torus 16x32", "barrier", all_pairs_torus, 512),
    ("pairs_256_ecmp", "all pairs at once, 256 hosts, leaf-spine, ECMP", "barrier", all_pairs_ecmp, 256),
]


def prepared(make: Callable[[int], CircuitPlan], nodes: int, mode: Mode) -> Callable[[], Run]:
    """Plan made, kernels compiled by 128 nodes.

    Args:
        make: the plan for a number of nodes.
        nodes: number of them.
        mode: of the engine.
    """

    def prepare() -> Run:
        size = 100 * MB if make in (ring, ring_uncounted, halving_doubling) else nodes * MB
        simulate(make(128), 100 * MB, LIGHT, engine="flow", mode=mode)

        def run() -> dict[str, float]:
            return {"simulated_s": simulate(make(nodes), size, LIGHT, engine="flow", mode=mode).timeline.total_s}

        return run

    return prepare


for _name, _title, _mode, _make, _nodes in CASES:
    register(f"flow.{_name}", _title, prepared(_make, _nodes, _mode))


def irregular(where: Fabric, flows: int, kind: str = "random", seed: int = 1) -> CircuitPlan:
    """Transfers between nodes drawn by chance, of 1 to 64 chunks each, all at once.

    Args:
        where: a packet fabric.
        flows: transfers [count].
        kind: random; skewed: half of them go to a twentieth of the nodes; experts: every node sends to 8 of a quarter.
        seed: of the draw.
    """
    draw, n = np.random.default_rng(seed), where.num_nodes
    src, dst = draw.integers(0, n, flows), draw.integers(0, n, flows)
    if kind == "skewed":
        dst = np.where(draw.random(flows) < 0.5, draw.integers(0, max(1, n // 20), flows), dst)
    elif kind == "experts":
        src, dst = np.arange(flows) % n, draw.integers(0, max(1, n // 4), flows) * 4 % n
    dst = np.where(src == dst, (dst + 1) % n, dst)
    transfers = Transfers.of(src, dst, 0, draw.integers(1, 65, flows), Op.COPY)
    return lower(where, Schedule(kind, collective("barrier", n, 64), 1, lambda i: transfers))


IRREGULAR: list[tuple[str, str, Fabric, int, str, float]] = [
    ("torus_2000", "torus 15x15", fabric("torus", shape="15x15"), 2000, "random", 0.0),
    ("torus_8000", "torus 15x15", fabric("torus", shape="15x15"), 8000, "random", 0.0),
    ("torus_8000_tolerance", "torus 15x15, tolerance 0.01", fabric("torus", shape="15x15"), 8000, "random", 0.01),
    ("torus_4000_skewed", "torus 15x15", fabric("torus", shape="15x15"), 4000, "skewed", 0.0),
    ("tree_4000", "fat tree of 256", fabric("fat_tree", nodes=256, preset="wrht"), 4000, "random", 0.0),
    ("leaf_spine_4000_experts", "leaf-spine of 256, ECMP", fabric_at_scale("leaf_spine", 256), 4000, "experts", 0.0),
    ("dragonfly_4000", "dragonfly of 256", fabric_at_scale("dragonfly", 256), 4000, "random", 0.0),
]
for _name, _where, _fabric, _flows, _kind, _tolerance in IRREGULAR:

    def _prepare(where: Fabric = _fabric, flows: int = _flows, kind: str = _kind, tolerance: float = _tolerance) -> Run:
        simulate(irregular(where, 64), 64 * MB, LIGHT, engine="flow")
        plan = irregular(where, flows, kind)

        def run() -> dict[str, float]:
            found = simulate(plan, 64 * MB, LIGHT, engine="flow", tolerance=tolerance).timeline
            return {"simulated_s": found.total_s}

        return run

    register(f"flow.irregular_{_name}", f"{_flows:,} {_kind} flows on a {_where}", _prepare)
