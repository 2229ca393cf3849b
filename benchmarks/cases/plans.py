"""Plans compiled, verified, written, read and executed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from measure import Run, case, register

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import FabricError
from opticcl.estimate.budget import budget
from opticcl.estimate.cost import bill_of
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale
from opticcl.optics.values import chain_of, optics
from opticcl.plans.held_shifts import fastest_held
from opticcl.plans.limits import limits
from opticcl.plans.overlap import SwitchLaw, overlap
from opticcl.plans.planner import plan_collective
from opticcl.schedule import generate
from opticcl.simulate.held_links import ShiftLaw

FULL = "ramp:groups=32,racks=32,wavelengths=64"
SMALL = "ramp:groups=4,racks=3,wavelengths=8"
RAMP_COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "scatter", "gather", "reduce", "broadcast", "barrier",
)  # fmt: skip


def verified(specification: str, collective: str, algorithm: str) -> None:
    """Compile and verify, or fail.

    Args:
        specification: of the fabric.
        collective: to compile.
        algorithm: that does it.
    """
    assert opticcl.compile(specification, collective, "1GB", algorithm=algorithm).verify().ok


def ramp(collective: str) -> Run:
    """All circuits and all chunks of 65,536 nodes."""
    verified(SMALL, collective, "ramp")
    return lambda: verified(FULL, collective, "ramp")


for _collective in RAMP_COLLECTIVES:
    register(
        f"plans.ramp_65536_{_collective}",
        f"RAMP {_collective}, 65,536 nodes, compiled, all chunks and circuits verified",
        lambda collective=_collective: ramp(collective),
    )


def on_ports(nodes: int) -> Run:
    """A plan for an all_to_all on two ports a node, with relays between them; without break-evens.

    Args: nodes: of the machine [count].
    """
    assumed = assumptions("published", initial="warm", compute="none")

    def plan(number: int = nodes) -> None:
        where = f"ocs:nodes={number},planes=2,forwarding=any,rate=800Gb/s,reconfiguration=1ms"
        plan_collective(where, "all_to_all", "1 MB", assumptions=assumed, break_evens=False)

    plan(16)
    return plan


for _nodes in (64, 1024):
    register(
        f"plans.ocs_any_{_nodes}",
        f"plan on an ocs of two ports with relays between them, {_nodes:,} nodes",
        lambda nodes=_nodes: on_ports(nodes),
    )


@case("plans.ring_65536_closed_form", "ring all_reduce, 65,536 nodes, closed form")
def ring() -> Run:
    """64 nodes beforehand."""

    def run(nodes: int = 65536) -> None:
        opticcl.compile(f"ideal:nodes={nodes}", "all_reduce", "1GB", algorithm="ring").simulate()

    run(64)
    return run


@case("plans.auto_1024", "auto over all algorithms, SiPAC of 1,024 nodes")
def auto() -> Run:
    """16 nodes beforehand."""
    opticcl.compile("sipac:radix=4,levels=2", "all_reduce", "1MB")
    return lambda: opticcl.compile("sipac:radix=32,levels=2", "all_reduce", "100MB") and None


for _name in FABRICS.names():

    def _auto(name: str = _name) -> Run:
        opticcl.compile(fabric_at_scale(name, 64), "all_reduce", "1MB")
        try:
            large = fabric_at_scale(name, 65536)
        except FabricError:
            large = fabric_at_scale(name, 32768)  # ODDL's largest grid
        return lambda: opticcl.compile(large, "all_reduce", "100MB") and None

    register(f"plans.auto_65536_{_name}", f"auto over all algorithms, {_name} of 65,536 nodes", _auto)


for _nodes, _size in ((1024, "64MiB"), (1024, "1GiB"), (960, "64MiB")):

    def _torus(nodes: int = _nodes, size: str = _size) -> Run:
        opticcl.compile(fabric_at_scale("torus", 16), "all_gather", size)
        where = fabric_at_scale("torus", nodes)

        def run() -> dict[str, float]:
            found = opticcl.compile(where, "all_gather", size).simulate()
            return {"time_to_bound": found.total_s / found.lower_bound_s}

        return run

    register(f"plans.torus_{_nodes}_{_size.lower()}", f"auto, torus of {_nodes:,} nodes, all_gather of {_size}", _torus)


for _shape in ("4x32", "3x5x7", "7x31", "16x64"):

    def _odd(shape: str = _shape) -> Run:
        opticcl.compile("torus:shape=3x4", "all_gather", "64MiB")

        def run() -> dict[str, float]:
            found = opticcl.compile(f"torus:shape={shape}", "all_gather", "64MiB").simulate()
            return {"time_to_bound": found.total_s / found.lower_bound_s}

        return run

    register(f"plans.torus_{_shape}_64mib", f"auto, torus of {_shape}, all_gather of 64 MiB", _odd)


@case("plans.wrht_4096", "WRHT, 4,096 nodes, compiled, all chunks and fibre segments verified")
def wrht() -> Run:
    """64 nodes beforehand."""
    verified("terarack:nodes=64", "all_reduce", "wrht")
    return lambda: verified("terarack:nodes=4096", "all_reduce", "wrht")


@case("plans.lumorph_256", "LUMORPH, 256 nodes, compiled and verified")
def lumorph() -> Run:
    """16 nodes beforehand."""
    verified("lightpath:shape=4x4", "all_reduce", "lumorph")
    return lambda: verified("lightpath", "all_reduce", "lumorph:radix=4")


@case("plans.execute_8", "ring all_reduce executed on 8 x 100 MB of float32")
def execute() -> Run:
    """The arrays are made beforehand."""
    plan = opticcl.compile("ideal:nodes=8", "all_reduce", "100MB", algorithm="ring")
    data = np.ones((8, 25_000_000), np.float32)
    plan.execute(np.ones((8, 8), np.float32))

    def run() -> None:
        assert plan.execute(data)[7].max() == 8

    return run


@case("plans.budget_65536", "light budgets and limits of every optical fabric, 65,536 nodes")
def budgets() -> Run:
    """Fabrics and tables are made beforehand."""
    names = ("lightpath", "ramp", "sipac", "terarack", "terarack_torus")
    made = [fabric_at_scale(name, 65536) for name in names] + [fabric("oddl:shape=65536")]
    values = [optics(one.light_path.table, "typical") for one in made]

    def run() -> None:
        for one, of in zip(made, values, strict=True):
            budget(one, of)
            budget(one, of, "typical")
            limits(one, of)

    return run


@case("plans.light_65536", "light of 65,536 circuits of a ring: elements and margin of each")
def light() -> Run:
    """Circuits are made beforehand."""
    lit = []
    for name in ("lightpath", "ramp", "terarack"):
        one = fabric_at_scale(name, 65536)
        circuits = lower(one, generate("ring", "all_reduce", one)).rounds(0)[0]
        lit.append((one.light_path, circuits, optics(one.light_path.table, "typical")))

    def run() -> None:
        for path, circuits, of in lit:
            counts = path(circuits)
            assert len(chain_of(path, of, counts.any(axis=0)).margin_db(counts)) == 65536

    return run


@case("plans.cost_65536", "bills of every fabric, 65,536 nodes")
def cost() -> Run:
    """Fabrics are made beforehand."""
    made = []
    for name in FABRICS.names():
        if name == "ideal":
            continue  # it has no parts
        try:
            made.append(fabric_at_scale(name, 65536))
        except FabricError:
            made.append(fabric_at_scale(name, 32768))  # ODDL's largest grid

    def run() -> None:
        for one in made:
            bill_of(one)

    return run


@case("plans.file_written", "RAMP all_reduce plan file, 65,536 nodes, written to Parquet")
def file_written() -> Run:
    """A small one beforehand."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "plan.parquet"
    opticcl.compile(SMALL, "all_reduce", "1GB", algorithm="ramp").save(path)

    def run() -> dict[str, float]:
        rows = opticcl.compile(FULL, "all_reduce", "1GB", algorithm="ramp").save(path)
        size = path.stat().st_size
        folder.cleanup()
        return {"rows": rows, "file_mb": size / 1e6}

    return run


@case("plans.file_read", "the same plan file loaded and verified")
def file_read() -> Run:
    """It is written beforehand, which counts in the peak memory."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "plan.parquet"
    opticcl.compile(FULL, "all_reduce", "1GB", algorithm="ramp").save(path)

    def run() -> None:
        assert opticcl.load(path)
        folder.cleanup()

    return run


@case("plans.ring_file_65536", "ring all_reduce plan file, 65,536 nodes: written, loaded and verified")
def ring_file() -> Run:
    """Two base steps, not 8.6e9 rows."""
    folder = tempfile.TemporaryDirectory()

    def run(nodes: int = 65536) -> None:
        path = Path(folder.name) / "plan.parquet"  # the folder lives as long as this function
        opticcl.compile(f"ideal:nodes={nodes}", "all_reduce", "1GB", algorithm="ring").save(path)
        assert opticcl.load(path)

    run(64)
    return run


def held(num_nodes: int, size_bytes: int) -> None:
    """The fastest segments of shifts of an all_to_all, with the tables of smaller sizes known.

    Args:
        num_nodes: nodes [count].
        size_bytes: message of every rank [bytes].
    """
    law = ShiftLaw(0.5e-6, 0.5e-6, 8 / 800e9, 10e-6, first_free=True)
    assert fastest_held("all_to_all", num_nodes, size_bytes, law).proven


@case("plans.held_shifts_64", "interval programme: all_to_all of 64 nodes, every radix and shift")
def held_64() -> Run:
    """Another size beforehand."""
    held(64, 1 << 18)
    return lambda: held(64, 1 << 20)


@case("plans.held_shifts_4096", "interval programme: all_to_all of 4,096 nodes")
def held_4096() -> Run:
    """64 nodes beforehand."""
    held(64, 1 << 20)
    return lambda: held(4096, 1 << 20)


@case("plans.switches_256", "shares of a pairwise exchange of 256 nodes on 8 switches that change while others send")
def switches_256() -> Run:
    """A few steps beforehand."""
    law = SwitchLaw(8, 12.5e9, 0.2e-3, 0.02e-3)

    def run(steps: int = 255) -> None:
        assert overlap(range(steps), [0.25e6 / 256] * steps, law).seconds <= 7.2e-3

    run(20)
    return run
