"""Plans by `auto` beside the closed forms of their constructions: a case a system and collective, eight sizes.

A row with `streamed` has the plans of `plan --streamed`, timed without barriers. Cases `gap_...` have the largest time over its
bound of machines that were far from it, light left out; `streamed_...` the CPU time of `plan --streamed` on 1,024 nodes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from measure import Run, register

from opticcl.ir import Timeline

GAPS = {
    "oddl_all_to_all": ("oddl", "all_to_all", (16, 64, 256, 1024), range(7, 11)),
    "ramp_all_to_all": ("ramp", "all_to_all", (16384, 65536), range(8, 11)),
    "lightpath_all_to_all": ("lightpath", "all_to_all", (65536,), range(8, 11)),
    "terarack_4096_all_reduce": ("terarack", "all_reduce", (4096,), [6]),
    "terarack_65536_all_reduce": ("terarack", "all_reduce", (65536,), [6]),
}
"""System, collective, nodes, and powers of ten of the sizes [bytes]."""

STREAMED = [
    (system, "broadcast") for system in ("ramp", "lightpath", "oddl", "sipac", "ocs", "terarack", "terarack_torus")
]

ROWS = tomllib.loads((Path(__file__).parent / "beyond.toml").read_text("utf-8"))


HALF_DECADES = [round(10 ** (half / 2)) for half in range(6, 21)]
"""1 KB to 10 GB [bytes]."""


def worst(row: dict[str, object]) -> dict[str, float]:
    """Largest ratio of the time to the due time, and of the time to the bound: from 100 MB on, and at any size."""
    from opticcl.assumptions import assumptions
    from opticcl.collective import Request
    from opticcl.fabrics import as_fabric
    from opticcl.plans.search import Search

    assumed = replace(assumptions(str(row["set"])), **row["assume"])  # type: ignore[arg-type]
    where, wanted = as_fabric(str(row["fabric"])), Request(str(row["collective"]))
    if row.get("streamed"):
        return worst_streamed(row, assumed)
    search = Search(where, wanted, assumed)

    def timeline(size_bytes: int) -> Timeline:
        found = search.fastest([size_bytes])
        assert found is not None
        return found.profile.timeline(size_bytes)

    due_s = {size: 1e-6 * due_us for size, due_us in zip(row["sizes"], row["due_us"], strict=True)}  # type: ignore[call-overload]
    times = {size: timeline(size) for size in {*due_s, *HALF_DECADES}}
    gaps = {size: time.total_s / time.lower_bound_s for size, time in times.items()}
    return {
        "over_due": max(times[size].total_s / due for size, due in due_s.items()),
        "over_bound": max(gap for size, gap in gaps.items() if size >= 1e8),
        "gap": max(gaps.values()),
    }


def worst_streamed(row: dict[str, object], assumed: object) -> dict[str, float]:
    """The same of plans whose pieces go on as they arrive."""
    from opticcl.plans.streams import plan_streamed

    ratios, gaps = [], [1.0]
    for size_bytes, due_us in zip(row["sizes"], row["due_us"], strict=True):  # type: ignore[call-overload]
        found = plan_streamed(str(row["fabric"]), str(row["collective"]), size_bytes, assumptions=assumed)
        ratios.append(found.total_s / due_us * 1e6)
        if size_bytes >= 1e8:
            gaps.append(found.gap)
    return {"over_due": max(ratios), "over_bound": max(gaps)}


for _name, _row in ROWS.items():

    def _due(row: dict[str, object] = _row) -> Run:
        return lambda: worst(row)

    register(
        f"beyond.{_name}",
        f"{'streams' if _row.get('streamed') else 'auto'} beside due times: {_row['fabric']} {_row['collective']}",
        _due,
    )


def largest_gap(system: str, collective: str, nodes: tuple[int, ...], powers: Iterable[int]) -> dict[str, float]:
    """Largest time over its bound, and the longest time."""
    from opticcl.assumptions import assumptions
    from opticcl.collective import Request
    from opticcl.fabrics import fabric_at_scale
    from opticcl.plans.light import LightRule
    from opticcl.plans.search import Search

    times = []
    for count in nodes:
        where = fabric_at_scale(system, count)
        search = Search(where, Request(collective), assumptions("common"), rule=LightRule(ignored=True))
        for size in (10**power for power in powers):
            found = search.fastest([size])
            assert found is not None
            times.append(found.profile.timeline(size))
    return {"gap": max(time.gap for time in times), "time_us": max(time.total_s for time in times) * 1e6}


for _name, _cell in GAPS.items():
    register(
        f"beyond.gap_{_name}",
        f"largest time over its bound: {_cell[0]} {_cell[1]} on {', '.join(f'{n:,}' for n in _cell[2])} nodes",
        lambda cell=_cell: lambda: largest_gap(*cell),
    )


def streamed(system: str, collective: str) -> dict[str, float]:
    """The gap of a plan in pieces on 1,024 nodes."""
    from opticcl.fabrics import fabric_at_scale
    from opticcl.plans.streams import plan_streamed

    return {"gap": plan_streamed(fabric_at_scale(system, 1024), collective, "1MB").gap}


for _system, _collective in STREAMED:
    register(
        f"beyond.streamed_1024_{_system}_{_collective}",
        f"plan --streamed: {_system} {_collective} of 1 MB on 1,024 nodes",
        lambda system=_system, collective=_collective: lambda: streamed(system, collective),
    )
