"""Light and loads at scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measure import Run, case, register

import opticcl
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import CircuitPlan, Fabric, Op, Schedule, Transfers
from opticcl.simulate import simulate


def pairs(where: Fabric) -> Schedule:
    """All-to-all in one step."""
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n, dtype=np.int64), n)
    rows = Transfers.of(src, dst, dst, 1, Op.MOVE)
    return Schedule("pairs", collective("all_to_all", n, n), 1, lambda i: rows)


def loads(nodes: int) -> Callable[[], Run]:
    """The closed form, which counts the bytes of every link."""

    def prepare() -> Run:
        def plan(n: int) -> CircuitPlan:
            where = fabric_at_scale("torus", n)
            return lower(where, pairs(where))

        simulate(plan(512), 512 * 1024)  # large enough for the kernels
        large = plan(nodes)
        return lambda: simulate(large, nodes * 1024) and None

    return prepare


for _nodes in (1024, 4096):
    register(f"light.torus_pairs_{_nodes}", f"loads of all pairs on a torus of {_nodes:,} nodes", loads(_nodes))


@case("light.fibre_ring_4096", "ring of fibres, all_to_all of 4,096 nodes, every round verified")
def fibre_ring() -> Run:
    """160 nodes beforehand, enough for the kernels."""

    def run(nodes: int = 4096) -> None:
        where = f"terarack:nodes={nodes}"
        assert opticcl.compile(where, "all_to_all", "1GB", algorithm="wavelength_exchange").verify().ok

    run(160)
    return run


@case(
    "light.ramp_all_pairs_65536",
    "RAMP, all_to_all in one step, 4.3e9 circuits: data, light, times by definition",
)
def ramp_all_pairs() -> Run:
    """54 nodes beforehand, whose step is listed."""
    from opticcl.verify.time.programme import check_programme, rules_of

    def run(where: str = "ramp") -> None:
        plan = opticcl.compile(where, "all_to_all", "1GB", algorithm="skewed_exchange:steps=1")
        verdict = plan.verify()
        assert verdict.ok
        programme = plan.programme(assumptions="published", rounds="in_line")
        times = check_programme(plan.circuits, programme, rules_of(programme))
        assert times.ok
        assert verdict.circuits == times.circuits == plan.fabric.num_nodes * (plan.fabric.num_nodes - 1)

    run("ramp:groups=3,racks=3,wavelengths=6")
    return run
