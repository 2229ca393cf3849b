"""Time of an all-reduce against the rate of a laser."""

from __future__ import annotations

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.fabrics.lightpath import near_square
from opticcl.ir import ProgressCallback
from opticcl.plans.plan import compile
from opticcl.simulate.closed_form import profile
from opticcl.studies import Chart, Study, register_study
from opticcl.studies.lumorph import UNDER, check_power_of_two
from opticcl.units import format_bytes

__all__ = ["laser_rate"]

RATES_BITS_PER_S = tuple(1e9 * rate for rate in (25, 50, 75, 100, 112, 125, 150, 175, 200, 224, 300, 400))
SIZES = (10_000, 1_000_000, 16_000_000, 64_000_000, 1_000_000_000)


@register_study("laser_rate")
def laser_rate(progress: ProgressCallback, *, nodes: int = 256, radix: int = 4) -> Study:
    """How does the time depend on the rate of a laser (figure 8b)?

    Args:
        progress: called with (what, done, total).
        nodes: GPUs, a power of two [count].
        radix: of LUMORPH.
    Source: LUMORPH section 5, figure 8b: 16 lasers of about 18 GB/s match 300 GB/s.
    """
    check_power_of_two("laser_rate: nodes", nodes)
    rows = []
    for done, rate in enumerate(RATES_BITS_PER_S):
        progress("compile", done, len(RATES_BITS_PER_S))
        where = fabric("lightpath", shape=near_square(nodes), laser_rate=rate)
        plan = compile(where, "all_reduce", 0, algorithm=f"lumorph:radix={radix}")
        line = profile(plan.circuits, assumptions("lumorph"))
        rows += [
            {"laser_bits_per_s": rate, "buffer": format_bytes(size), "time_s": line.timeline(size).total_s}
            for size in SIZES
        ]
    return Study(
        f"laser_rate:nodes={nodes},radix={radix}",
        f"Time of an all-reduce of {nodes} GPUs by LUMORPH-{radix}",
        "LUMORPH figure 8b",
        rows,
        Chart("laser_bits_per_s", "time_s", ("buffer",), "rate of a laser", "time", "y"),
        (UNDER,),
    )
