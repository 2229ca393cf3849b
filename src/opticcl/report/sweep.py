"""Sweeps over message sizes as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticcl.plans.sentences import ground, listed, not_tried_line
from opticcl.plans.sweep import fastest_of
from opticcl.report.beside import other_times, unranked_line
from opticcl.report.kit.columns import Column, FittedTable, Shown, algorithm_column, columns_of
from opticcl.report.kit.words import gap
from opticcl.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.plans.equal import Equal
    from opticcl.plans.sweep import Sweep, Sweeps

__all__ = ["sweep_answer", "sweep_blocks", "sweep_table"]

NAMED = 3
"""Fabrics that tie and are named in the sentence [count]."""

SHOWN = 2
"""Those that are named in a cell [count]."""

RUNS = 4
"""Ranges of sizes that the sentence names [count]."""


def sweep_blocks(found: Sweeps) -> list[FittedTable | str]:
    """The table, and what was not tried or left out.

    Args: found: the times.
    """
    not_tried = filter(None, [not_tried_line(found.not_tried)])
    return [sweep_table(found), *not_tried, *map(str, found.left_out)]


def sweep_answer(found: Sweeps, equal: Equal | None = None) -> str:
    """Time at the ends of one fabric's sizes; of several fabrics which is the fastest where.

    Args:
        found: the times.
        equal: what the fabrics have in common; None: they are as built.
    """
    where = ground(equal, [one.fabric.node_rate_bits_per_s for one in found.sweeps])
    sizes = [format_bytes(point.size_bytes) for point in found.sweeps[0].points]
    if len(found.sweeps) == 1:
        first, last = (format_seconds(found.sweeps[0].points[i].total_s) for i in (0, -1))
        until = f" to {last} for {sizes[-1]}" if len(sizes) > 1 else ""
        return f"{where}, {found.names[0]} takes {first} for {sizes[0]}{until}."
    fastest = fastest_of(found.sweeps)
    best = [_with_ties([found.names[i] for i in tied]) for tied in fastest]
    runs = [
        (names, size) for i, (names, size) in enumerate(zip(best, sizes, strict=True)) if not i or best[i - 1] != names
    ]
    parts = [f", from {size} on {names}" if i else f"{names} is the fastest" for i, (names, size) in enumerate(runs)]
    more = f", with {len(parts) - RUNS} more changes" if len(parts) > RUNS else ""
    return f"{where}, {''.join(parts[:RUNS])}{more}."


def _with_ties(names: Sequence[str]) -> str:
    """The fastest, and those that tie with it."""
    return f"{names[0]} (a tie with {listed(names[1:], NAMED)})" if len(names) > 1 else names[0]


def sweep_table(found: Sweeps) -> FittedTable:
    """One row a size: for one fabric its rates, as nccl-tests print them; for several the time of each and the fastest.

    The fabrics are in the order of their times at the largest size; those that do not fit continue in a table below.
    """
    return _one(found.sweeps[0]) if len(found.sweeps) == 1 else _several(found)


def _one(sweep: Sweep) -> FittedTable:
    points = sweep.points
    columns = [
        *columns_of(points, Shown("size_bytes")),
        algorithm_column([p.algorithm for p in points]),
        *columns_of(points, Shown("total_s", "time")),
        *other_times(points),
        *columns_of(points, Shown("algorithm_bytes_per_s", "algbw"), Shown("bus_bytes_per_s", "busbw")),
        Column(
            "x bound",
            [gap(p) for p in points],
            2,
            justify="left",
            short=[gap(p, short=True) for p in points],
            short_rank=1,
        ),
    ]
    fabric = sweep.fabric
    rate = format_rate(fabric.node_rate_bits_per_s)
    about = f"{sweep.collective} on {fabric.name}, {fabric.num_nodes:,} nodes, {rate} per node"
    return FittedTable(columns, f"{about}{_verified([sweep])}")


def _several(found: Sweeps) -> FittedTable:
    by_last_time = sorted(range(len(found.sweeps)), key=lambda i: found.sweeps[i].points[-1].total_s)
    sweeps, names = [found.sweeps[i] for i in by_last_time], [found.names[i] for i in by_last_time]
    best = fastest_of(sweeps)
    algorithms = [sweeps[tied[0]].points[row].algorithm for row, tied in enumerate(best)]
    columns = [
        *columns_of(sweeps[0].points, Shown("size_bytes")),
        Column("fastest", [listed([names[i] for i in tied], SHOWN) for tied in best], justify="left"),
        algorithm_column(algorithms, "by algorithm"),
        *_fastest_beside(sweeps, names),
        *(Column(n, [format_seconds(p.total_s) for p in one.points]) for one, n in zip(sweeps, names, strict=True)),
    ]
    rates = {sweep.fabric.node_rate_bits_per_s for sweep in sweeps}
    rate = f"{format_rate(rates.pop())} per node" if len(rates) == 1 else "nodes of different rates"
    return FittedTable(columns, f"{sweeps[0].collective}, {rate}{_verified(sweeps)}")


def _fastest_beside(sweeps: Sequence[Sweep], names: Sequence[str]) -> list[Column]:
    """The fastest fabric at each size under the other set of assumptions, with its time, if that was evaluated."""
    known = [[point.beside for point in one.points if point.beside] for one in sweeps]
    if not known[0]:
        return []
    cells = []
    for row in zip(*known, strict=True):
        best = min(range(len(row)), key=lambda i: row[i][1])
        cells.append(f"{names[best]} {format_seconds(row[best][1])}")
    return [Column(f"fastest under {known[0][0][0]}", cells, justify="left")]


def _verified(sweeps: Sequence[Sweep]) -> str:
    points = [(sweep.fabric.name, point) for sweep in sweeps for point in sweep.points]
    wrong = {point.algorithm for _, point in points if point.verdict == "wrong"}
    about = f"\nWRONG: {', '.join(sorted(wrong))}" if wrong else ""
    if all(point.verdict == "right" for _, point in points):
        about = ", all plans verified"
    unranked = {
        (name, point.algorithm): (f"{name} {point.algorithm}", point.light, point.verdict)
        for name, point in points
        if not point.ranked and point.verdict != "wrong"
    }
    line = unranked_line(unranked.values())
    return about + (f"\n{line}" if line else "")
