"""Sweeps over message sizes in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticcl.report._columns import Column, Fitting
from opticcl.units import format_bytes, format_quantity, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.evaluate.sweep import Sweep

__all__ = ["sweep_table"]

MOST_IN_120 = 7  # fabrics whose times fit 120 columns


def sweep_table(sweeps: Sequence[Sweep], names: Sequence[str]) -> Fitting:
    """A row a size: of one fabric with its rates, as nccl-tests print them; of several their times and which is the fastest.

    Those that are fastest at the largest size stand first; a narrow console loses the last ones.

    Args:
        sweeps: of the same collective and sizes.
        names: of their fabrics, as the user wrote them.
    """
    return _one(sweeps[0]) if len(sweeps) == 1 else _several(sweeps, names)


def _one(sweep: Sweep) -> Fitting:
    points = sweep.points
    bounds = [point.lower_bound_s / point.total_s if point.total_s else 1.0 for point in points]
    columns = [
        Column("size", [format_bytes(p.size_bytes) for p in points]),
        Column("algorithm", [p.algorithm for p in points], 1, justify="left"),
        Column("time", [format_seconds(p.total_s) for p in points]),
        Column("algbw", [format_quantity(p.algorithm_bytes_per_s, "byte/s") for p in points], 2),
        Column("busbw", [format_quantity(p.bus_bytes_per_s, "byte/s") for p in points], 3),
        Column("bound/time", [f"{share:.0%}" for share in bounds], 4),
    ]
    where = sweep.fabric
    rate = format_rate(where.node_rate_bits_per_s)
    return Fitting(
        columns, f"{sweep.collective} on {where.name}, {where.num_nodes:,} nodes, {rate} a node{_judged([sweep])}"
    )


def _several(sweeps: Sequence[Sweep], names: Sequence[str]) -> Fitting:
    from opticcl.evaluate.sweep import fastest_of

    at_last = sorted(range(len(sweeps)), key=lambda i: sweeps[i].points[-1].total_s)
    sweeps, names = [sweeps[i] for i in at_last], [names[i] for i in at_last]
    best = fastest_of(sweeps)
    columns = [
        Column("size", [format_bytes(p.size_bytes) for p in sweeps[0].points]),
        Column("fastest", [names[i] for i in best], justify="left"),
        Column(
            "with", [sweeps[i].points[row].algorithm for row, i in enumerate(best)], len(sweeps) + 1, justify="left"
        ),
        *(
            Column(name, [format_seconds(p.total_s) for p in sweep.points], rank)
            for rank, (sweep, name) in enumerate(zip(sweeps, names, strict=True), 1)
        ),
    ]
    rates = {sweep.fabric.node_rate_bits_per_s for sweep in sweeps}
    alike = f", {format_rate(rates.pop())} a node" if len(rates) == 1 else ", nodes of different rates"
    narrow = "\na narrow console shows fewer fabrics; --json tells all" if len(sweeps) > MOST_IN_120 else ""
    return Fitting(columns, f"{sweeps[0].collective}{alike}{_judged(sweeps)}{narrow}")


def _judged(sweeps: Sequence[Sweep]) -> str:
    wrong = {point.algorithm for sweep in sweeps for point in sweep.points if not point.verified}
    return f"\nWRONG: {', '.join(sorted(wrong))}" if wrong else ", all plans verified"
