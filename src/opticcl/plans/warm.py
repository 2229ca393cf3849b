"""Compiles the kernels beforehand, by small plans of every kind, so that the first command takes no longer than the second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.ir import Fabric, ProgressCallback, no_progress
from opticcl.kernels import compiled_kernels
from opticcl.plans.compare import compare_plans
from opticcl.plans.held_shifts import fastest_held
from opticcl.plans.plan import compile
from opticcl.simulate import simulate
from opticcl.simulate.held_links import ShiftLaw

__all__ = ["Warmth", "warm"]


@dataclass(frozen=True, slots=True)
class Warmth:
    """What was compiled.

    Args:
        compiled: kernels compiled now, one a combination of types [count].
        loaded: kernels that were on the disk already [count].
        directory: where they are kept.
        seconds: that it took [s].
    """

    compiled: int
    loaded: int
    directory: str
    seconds: float


def warm(*, engines: bool = False, progress: ProgressCallback = no_progress) -> Warmth:
    """Compile the kernels that commands need, unless they are on the disk.

    Args:
        engines: also those of the flow and packet engines, routes, failed parts, and execution.
        progress: called with a line of text before each part of the work.
    """
    begun = time.perf_counter()
    for what, run in {**_ALWAYS, **(_FURTHER if engines else {})}.items():
        progress(what)
        run()
    kernels = _made()
    compiled = sum(kernels.values())
    return Warmth(compiled, len(kernels) - compiled, _directory(), time.perf_counter() - begun)


def _made() -> dict[tuple[str, str], bool]:
    """Kernels that this process has, by name and types, and whether it compiled them."""
    made = {}
    for name, kernel in compiled_kernels().items():
        made.update({(name, str(types)): False for types in kernel.stats.cache_hits})
        made.update({(name, str(types)): True for types in kernel.stats.cache_misses})
    return made


def _machines(nodes: int) -> list[Fabric]:
    made = []
    for name in FABRICS.names():
        try:
            made.append(fabric_at_scale(name, nodes))
        except FabricError:
            continue
    return made


def _directory() -> str:
    return os.environ.get("NUMBA_CACHE_DIR") or str(Path(__file__).parents[1])


def _search(collective: str) -> None:
    for fabric in _machines(16):
        with suppress(UnsupportedError):
            compile(fabric, collective, 10**6).simulate()


def _compare(nodes: int, collective: str) -> None:
    compare_plans(_machines(nodes), collective, [10**6], algorithm="main")


def _verify() -> None:
    for algorithm in ("ring", "tree"):
        compile("ideal:nodes=512", "all_reduce", 10**6, algorithm=algorithm).verify()
    compile("terarack:nodes=96", "all_to_all", 10**6, algorithm="wavelength_exchange").verify()


def _flows() -> None:
    for mode in ("barrier", "asynchronous"):
        for where in ("leaf_spine:nodes=16", "lightpath:shape=4x4"):
            for algorithm in ("mesh", "ring"):
                plan = compile(where, "all_to_all" if algorithm == "mesh" else "all_reduce", 10**6, algorithm=algorithm)
                simulate(plan.circuits, 10**6, engine="flow", mode=mode)


def _packets() -> None:
    for collective, algorithm, mode in (("all_to_all", "mesh", "barrier"), ("all_reduce", "ring", "asynchronous")):
        plan = compile("leaf_spine:nodes=16", collective, 10**6, algorithm=algorithm)
        simulate(plan.circuits, 10**6, engine="packet", mode=mode)


def _routes() -> None:
    where = "lightpath:shape=4x4,routing=least_overlap,numbering=random,waveguides=10"
    compile(where, "all_reduce", 10**6, algorithm="lumorph").verify()
    where = (
        "lightpath:shape=8x8,waveguides=8,switch_unit=waveguide"  # full enough that paths look for another waveguide
    )
    compile(where, "all_to_all", 10**6, algorithm="mesh").circuits.rounds(0)


def _failed_parts() -> None:
    for where in ("sipac:radix=2,levels=2,failed=switch:1", "oddl:shape=2x4,failed=switch:1"):
        for collective in ("all_reduce", "all_to_all"):
            compile(where, collective, 10**6).verify()
    for where in ("terarack:nodes=6,wavelengths=2,failed=fibre:1", "lightpath:shape=3x3,failed=mzi:1"):
        compile(where, "all_to_all", 10**6).verify()


def _execution() -> None:
    compile("ideal:nodes=4", "all_reduce", 10**6, algorithm="ring").execute(np.ones((4, 4), np.float16))


def _held_shifts() -> None:
    fastest_held("all_reduce", 16, 10**6, ShiftLaw(1e-6, 1e-7, 1e-10, 1e-5))


# The parts that verify stand last, so that the process which begins with them finds other kernels to compile.
_ALWAYS: dict[str, Callable[[], None]] = {
    **{f"search {collective} on 16 nodes": partial(_search, collective) for collective in ("all_reduce", "all_to_all")},
    **{
        f"compare {collective} on {nodes} nodes": partial(_compare, nodes, collective)
        for nodes in (16, 64)
        for collective in ("all_reduce", "all_to_all")
    },
    "verify all chunks by symmetry and one by one": _verify,
}

_FURTHER: dict[str, Callable[[], None]] = {
    "simulate flows": _flows,
    "simulate packets": _packets,
    "search routes": _routes,
    "plan around failed parts": _failed_parts,
    "execute": _execution,
    "plan links to hold": _held_shifts,
}
