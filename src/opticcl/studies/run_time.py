"""Time of an all-reduce against the buffer, LUMORPH on LIGHTPATH against ring and tree on an ideal switch."""

from __future__ import annotations

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.fabrics.lightpath import near_square
from opticcl.ir import Fabric, ProgressCallback
from opticcl.plans.plan import compile
from opticcl.simulate.closed_form import Profile, profile
from opticcl.studies import Chart, Study, register_study
from opticcl.studies.lumorph import UNDER, check_power_of_two

__all__ = ["ON_LIGHT", "ON_SWITCH", "profiles", "rival_of", "run_time"]

ON_LIGHT = {"lumorph:radix=2": "LUMORPH-2", "lumorph:radix=4": "LUMORPH-4", "divide_and_conquer": "D&C"}
ON_SWITCH = {"ring": "ring", "tree": "tree"}
SIZES = tuple(round(10 ** (4 + k / 4)) for k in range(21))  # 10 KB to 1 GB


@register_study("run_time")
def run_time(progress: ProgressCallback, *, nodes: int = 256) -> Study:
    """How long does an all-reduce take (figure 7)?

    Every plan is verified. The switch has the nodes, node rate and alpha of LIGHTPATH and no reconfiguration; the tree sends
    the whole buffer on every level, as the figure requires.

    Args:
        progress: called with (what, done, total).
        nodes: GPUs, a power of two [count].
    Source: LUMORPH section 5, figure 7: 64, 128 and 256 GPUs.
    """
    check_power_of_two("run_time: nodes", nodes)
    wafer = fabric("lightpath", shape=near_square(nodes))
    lines = profiles(wafer, progress)
    rows = [
        {"size_bytes": size, "algorithm": name, "time_s": line.timeline(size).total_s}
        for name, line in lines.items()
        for size in SIZES
    ]
    ring = next(line for name, line in lines.items() if name.startswith("ring"))
    wins = [size for size in SIZES if lines["LUMORPH-4"].timeline(size).total_s < ring.timeline(size).total_s]
    return Study(
        f"run_time:nodes={nodes}",
        f"Time of an all-reduce of {nodes} GPUs",
        "LUMORPH figure 7",
        rows,
        Chart("size_bytes", "time_s", ("algorithm",), "buffer of each GPU", "time", "xy"),
        (f"LUMORPH-4 beats the ring at {len(wins)} of {len(SIZES)} sizes", UNDER),
    )


def rival_of(wafer: Fabric) -> Fabric:
    """The ideal switch with the nodes, node rate and alpha of LIGHTPATH."""
    return fabric("ideal", nodes=wafer.num_nodes, rate=wafer.node_rate_bits_per_s, latency=wafer.latency_s)


def profiles(wafer: Fabric, progress: ProgressCallback) -> dict[str, Profile]:
    """Profile of each algorithm, by its name, by the paper's model; plans are verified."""
    found: dict[str, Profile] = {}
    cases = [(wafer, ON_LIGHT, ""), (rival_of(wafer), ON_SWITCH, " on a switch")]
    for where, algorithms, suffix in cases:
        for algorithm, name in algorithms.items():
            progress("compile and verify", len(found), len(ON_LIGHT) + len(ON_SWITCH))
            plan = compile(where, "all_reduce", 0, algorithm=algorithm)
            plan.verify().raise_if_bad()
            found[name + suffix] = profile(plan.circuits, assumptions("lumorph"))
    return found
