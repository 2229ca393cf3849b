"""Time of an all-reduce against the reconfiguration delay of the switches."""

from __future__ import annotations

from opticcl.fabrics import fabric
from opticcl.fabrics.lightpath import Lightpath, near_square
from opticcl.ir import ProgressCallback
from opticcl.studies import Chart, Study, register_study
from opticcl.studies.lumorph import UNDER, check_power_of_two
from opticcl.studies.run_time import profiles
from opticcl.units import Bytes, format_bytes, format_seconds, message_size

__all__ = ["break_even_s", "reconfiguration_delay"]

DELAYS_S = (0.0, 10e-9, 100e-9, 1e-6, 2e-6, 3.7e-6, 5e-6, 7e-6, 10e-6, 15e-6, 20e-6, 25e-6, 30e-6, 40e-6, 50e-6)


@register_study("reconfiguration_delay")
def reconfiguration_delay(progress: ProgressCallback, *, nodes: int = 256, size: Bytes = 4e6) -> Study:
    """How fast must switches be to beat a ring on an ideal switch (figure 8a)?

    Args:
        progress: called with (what, done, total).
        nodes: GPUs, a power of two [count].
        size: buffer of each GPU; the paper states none, 4 MB is ours: its factor of 4 results there [bytes].
    Source: LUMORPH section 5, figure 8a: 3.7 us and 25 us.
    """
    check_power_of_two("reconfiguration_delay: nodes", nodes)
    buffer = message_size(size, "reconfiguration_delay: size")
    found = profiles(fabric("lightpath", shape=near_square(nodes)), progress)
    given = found["LUMORPH-2"].plan.fabric.reconfiguration_s
    rows: list[dict[str, float | str]] = []
    for name, line in found.items():
        timeline = line.timeline(buffer)
        rounds = timeline.num_rounds if isinstance(line.plan.fabric, Lightpath) else 0
        fixed = timeline.total_s - rounds * given
        rows += [
            {"delay_s": delay, "algorithm": name, "time_s": fixed + rounds * delay}
            for delay in DELAYS_S
            if not name.startswith("tree")
        ]
    ends = (f"{name} {format_seconds(found_s)}" for name, found_s in break_even_s(rows).items())
    return Study(
        f"reconfiguration_delay:nodes={nodes},size={buffer}",
        f"Time of an all-reduce of {format_bytes(buffer)} on {nodes} GPUs against the reconfiguration delay",
        "LUMORPH figure 8a",
        rows,
        Chart("delay_s", "time_s", ("algorithm",), "reconfiguration delay", "time"),
        ("as fast as the ring at: " + ", ".join(ends), UNDER),
    )


def break_even_s(rows: list[dict[str, float | str]]) -> dict[str, float]:
    """Delay at which each algorithm takes as long as the ring, by its name; times are linear in the delay [s]."""
    by_name: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        by_name.setdefault(str(row["algorithm"]), []).append((float(row["delay_s"]), float(row["time_s"])))
    ring = next(times[0][1] for name, times in by_name.items() if name.startswith("ring"))
    found = {}
    for name, times in by_name.items():
        (d0, t0), (d1, t1) = times[0], times[-1]
        if t1 > t0:
            found[name] = max(0.0, d0 + (ring - t0) * (d1 - d0) / (t1 - t0))
    return found
