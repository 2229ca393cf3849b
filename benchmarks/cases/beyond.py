"""Plans by `auto` beside the closed forms of their constructions: a case a system and collective, eight sizes.

A row with `streamed` has the plans of `plan --streamed`, timed without barriers.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from measure import Run, register

from opticcl.ir import Timeline

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
