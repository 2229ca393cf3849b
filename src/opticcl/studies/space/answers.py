"""Answers from the table of results: who is fastest, what is worth its price, which assumption decides, where two break even.

Every function takes rows that are done, keeps those at one place of the axes that it does not vary, and returns a frozen
result with `record()`. A row with another value of an axis that is not chosen is refused, never averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from opticcl.errors import ParameterError
from opticcl.plans.ranks import is_tie
from opticcl.studies.space.axis_values import DEFAULTS
from opticcl.studies.space.design import DesignSpace, column_of

__all__ = [
    "Bar",
    "Breakeven",
    "Cell",
    "Crossover",
    "FastestMap",
    "Offer",
    "Pareto",
    "Stretch",
    "Tornado",
    "breakeven",
    "fastest_map",
    "pareto",
    "tornado",
]

Row = Mapping[str, Any]
EQUAL = 1e-9
"""Relative difference of times that count as equal."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a map.

    Args:
        x, y: values of its axes.
        fabric, algorithm: the fastest.
        total_s: its time [s].
        second: the next fabric; "" if there is none.
        second_s: its time; None if there is none [s].
        contestants: fabrics with a time there [count].
    """

    x: Any
    y: Any
    fabric: str
    algorithm: str
    total_s: float
    second: str
    second_s: float | None
    contestants: int

    @property
    def lead(self) -> float | None:
        """Time of the second over that of the fastest; None if there is no second, or the fastest takes no time."""
        return self.second_s / self.total_s if self.second_s is not None and self.total_s else None

    @property
    def is_tie(self) -> bool:
        """Whether the second is as good as the fastest."""
        return self.second_s is not None and is_tie(self.second_s, self.total_s)


@dataclass(frozen=True, slots=True)
class FastestMap:
    """The fastest fabric over two axes.

    Args:
        x, y: columns of the axes.
        xs, ys: their values, ascending where they are numbers.
        cells: one a place where any fabric has a time.
        where: values of the other axes, by column.
    """

    x: str
    y: str
    xs: tuple[Any, ...]
    ys: tuple[Any, ...]
    cells: tuple[Cell, ...]
    where: Row

    @property
    def wins(self) -> dict[str, int]:
        """Places at which each fabric is the fastest, the most first; those of ties count for no fabric [count]."""
        alone = Counter(cell.fabric for cell in self.cells if not cell.is_tie)
        return dict(sorted(alone.items(), key=lambda item: -item[1]))

    @property
    def ties(self) -> int:
        """Places at which the second is as good as the fastest [count]."""
        return sum(cell.is_tie for cell in self.cells)

    def record(self) -> dict[str, Any]:
        """Plain values."""
        cells = [{name: getattr(cell, name) for name in (*Cell.__slots__, "lead")} for cell in self.cells]
        return {
            "answer": "map",
            "x": self.x,
            "y": self.y,
            "where": dict(self.where),
            "wins": self.wins,
            "ties": self.ties,
            "cells": cells,
        }


@dataclass(frozen=True, slots=True)
class Offer:
    """A fabric with its time and price.

    Args:
        fabric, algorithm: names.
        total_s: time [s].
        usd_per_node, w_per_node: price and power [USD, W].
        better: a fabric that is not worse in any of the three and better in one; "" if it is on the front.
    """

    fabric: str
    algorithm: str
    total_s: float
    usd_per_node: float
    w_per_node: float
    better: str = ""


@dataclass(frozen=True, slots=True)
class Pareto:
    """Fabrics by time, dollars and watts.

    Args:
        offers: fastest first.
        unpriced: fabrics without a price or power.
        dark: fabrics whose plan's light does not close.
        where: values of the axes, by column.
    """

    offers: tuple[Offer, ...]
    unpriced: tuple[str, ...]
    dark: tuple[str, ...]
    where: Row

    @property
    def front(self) -> tuple[Offer, ...]:
        """Offers that no other is better than."""
        return tuple(offer for offer in self.offers if not offer.better)

    def record(self) -> dict[str, Any]:
        """Plain values."""
        offers = [{name: getattr(offer, name) for name in Offer.__slots__} for offer in self.offers]
        front = [offer.fabric for offer in self.front]
        return {
            "answer": "pareto",
            "where": dict(self.where),
            "front": front,
            "rows": offers,
            "unpriced": list(self.unpriced),
            "dark": list(self.dark),
        }


@dataclass(frozen=True, slots=True)
class Bar:
    """One assumption halved or doubled.

    Args:
        variation: such as "endpoint x 2".
        key: of the assumption.
        total_s: time of the fabric that is the fastest without it [s].
        rival: the fastest other fabric.
        rival_s: its time [s].
    """

    variation: str
    key: str
    total_s: float
    rival: str
    rival_s: float

    @property
    def lead(self) -> float:
        """Time of the rival over that of the fabric; below 1 the answer is another."""
        return self.rival_s / self.total_s if self.total_s else float("inf")

    @property
    def flips(self) -> bool:
        """Whether the rival is faster."""
        return self.rival_s < self.total_s * (1 - EQUAL)


@dataclass(frozen=True, slots=True)
class Tornado:
    """Which assumption moves the answer.

    Args:
        fabric: the fastest without a variation.
        base: its time and its rival's.
        bars: keys that move the lead most first, the halved value before the doubled one.
        where: values of the axes, by column.
    """

    fabric: str
    base: Bar
    bars: tuple[Bar, ...]
    where: Row

    def record(self) -> dict[str, Any]:
        """Plain values."""
        names = (*Bar.__slots__, "lead", "flips")
        bars = [{name: getattr(bar, name) for name in names} for bar in self.bars]
        base = {name: getattr(self.base, name) for name in ("total_s", "rival", "rival_s", "lead")}
        return {"answer": "tornado", "where": dict(self.where), "fabric": self.fabric, "base": base, "bars": bars}


@dataclass(frozen=True, slots=True)
class Crossover:
    """A value of an axis at which another fabric becomes the fastest.

    Args:
        at: estimate, by interpolation of the logarithms of both times between the two points beside it.
        below, above: values of these points, between which it lies.
        before, after: the fastest fabrics at these points.
    """

    at: float
    below: float
    above: float
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """Points of an axis with one fastest fabric.

    Args:
        fabric: the fastest.
        first, last: values of the axis.
    """

    fabric: str
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Breakeven:
    """The fastest of some fabrics along an axis.

    Args:
        over: column of the axis.
        fabrics: that are compared.
        stretches: in the order of the axis.
        crossovers: between them.
        times: of each fabric: values of the axis, and times [s].
        where: values of the other axes, by column.
    """

    over: str
    fabrics: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    crossovers: tuple[Crossover, ...]
    times: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]
    where: Row

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "answer": "breakeven",
            "over": self.over,
            "where": dict(self.where),
            "fabrics": list(self.fabrics),
            "stretches": [{name: getattr(one, name) for name in Stretch.__slots__} for one in self.stretches],
            "crossovers": [{name: getattr(one, name) for name in Crossover.__slots__} for one in self.crossovers],
        }


def fastest_map(space: DesignSpace, rows: Sequence[Row], where: Row, x: str = "size", y: str = "nodes") -> FastestMap:
    """The fastest fabric over two axes.

    Args:
        space: the study.
        rows: that are done.
        where: one value of other axes, by axis.
        x, y: axes.
    Raises: ParameterError: no such axis, no times, or an axis that must be chosen.
    """
    for axis in (x, y):
        _numeric(space, axis)
    if x == y:
        raise ParameterError(f"map: both axes are {x}; give two, such as --x size --y nodes")
    kept, fixed = _at(space, rows, where, "map", (x, y))
    columns = column_of(x), column_of(y)
    places: dict[tuple[Any, Any], list[Row]] = {}
    for row in kept:
        places.setdefault((row[columns[0]], row[columns[1]]), []).append(row)
    cells = []
    for at, contestants in sorted(places.items()):
        ranked, dark = _by_light(space, contestants)
        first, *others = [*sorted(ranked, key=_total_s), *sorted(dark, key=_total_s)]
        second = others[0] if others else None
        cells.append(
            Cell(
                *at,
                first["fabric"],
                first["algorithm"],
                first["total_s"],
                second["fabric"] if second else "",
                second["total_s"] if second else None,
                len(contestants),
            )
        )
    xs, ys = (tuple(sorted(space.axes[axis])) for axis in (x, y))
    return FastestMap(*columns, xs, ys, tuple(cells), fixed)


def pareto(space: DesignSpace, rows: Sequence[Row], where: Row) -> Pareto:
    """Fabrics that no other is better than in time, dollars and watts.

    Args:
        space: the study.
        rows: that are done.
        where: one value of other axes, by axis.
    Raises: ParameterError: dollars or watts are not measured, no times, or an axis that must be chosen.
    """
    for name in ("dollars", "watts"):
        if name not in space.measure:
            raise ParameterError(f"pareto: the study does not measure {name}; add '{name}' to measure")
    kept, fixed = _at(space, rows, where, "pareto")
    ranked, dark = _by_light(space, kept)
    priced = [row for row in ranked if row["usd_per_node"] is not None and row["w_per_node"] is not None]
    if not priced:
        raise ParameterError("pareto: no fabric there has a price and a power; opticcl machine cost shows which have")
    values = ("total_s", "usd_per_node", "w_per_node")

    def better(row: Row) -> str:
        for other in priced:
            pairs = [(other[name], row[name]) for name in values]
            if all(a <= b for a, b in pairs) and any(a < b for a, b in pairs):
                return str(other["fabric"])
        return ""

    priced.sort(key=lambda row: row["total_s"])
    offers = tuple(
        Offer(row["fabric"], row["algorithm"], row["total_s"], row["usd_per_node"], row["w_per_node"], better(row))
        for row in priced
    )
    known = {offer.fabric for offer in offers}
    unpriced = tuple(row["fabric"] for row in ranked if row["fabric"] not in known)
    return Pareto(offers, unpriced, tuple(row["fabric"] for row in dark), fixed)


def tornado(space: DesignSpace, rows: Sequence[Row], where: Row) -> Tornado:
    """How the lead of the fastest fabric moves as each assumption is halved and doubled.

    Args:
        space: the study.
        rows: that are done.
        where: one value of other axes, by axis.
    Raises: ParameterError: the study varies nothing there, fewer than two fabrics, or an axis that must be chosen.
    """
    if not space.vary:
        raise ParameterError('tornado: the study varies no assumption; add a table [vary] with keys = "all"')
    only = {axis: values[0] for axis, values in space.vary_at.items() if len(values) == 1}
    kept, fixed = _at(space, rows, only | dict(where), "tornado")
    base = sorted(_by_light(space, kept)[0], key=_total_s)
    if len(base) < 2:
        raise ParameterError("tornado: there is one fabric only; an answer needs two")
    fastest = base[0]["fabric"]
    varied: dict[str, list[Row]] = {}
    for row in rows:
        if row["vary"] and all(row[column] == _stored(value, row[column]) for column, value in fixed.items()):
            varied.setdefault(row["vary"], []).append(row)
    varied = {name: _by_light(space, some)[0] for name, some in varied.items()}
    bars = [bar for name, some in varied.items() if (bar := _bar(name, fastest, some)) is not None]
    if not bars:
        raise ParameterError("tornado: no assumption is varied there; see [vary] in the study")
    first = _bar("", fastest, base)
    assert first is not None
    span = {bar.key: 0.0 for bar in bars}
    for bar in bars:
        span[bar.key] = max(span[bar.key], abs(log(bar.lead / first.lead)))
    bars.sort(key=lambda bar: (-span[bar.key], bar.key, bar.variation))
    return Tornado(fastest, first, tuple(bars), fixed)


def _bar(variation: str, fabric: str, rows: Sequence[Row]) -> Bar | None:
    """Time of a fabric and of its fastest rival under a variation; None if one of them has none."""
    own = next((row for row in rows if row["fabric"] == fabric), None)
    rivals = sorted((row for row in rows if row["fabric"] != fabric), key=lambda row: row["total_s"])
    if own is None or not rivals:
        return None
    return Bar(variation, variation.partition(" ")[0], own["total_s"], rivals[0]["fabric"], rivals[0]["total_s"])


def breakeven(
    space: DesignSpace, rows: Sequence[Row], where: Row, over: str = "size", between: Sequence[str] = ()
) -> Breakeven:
    """Where the fastest of some fabrics changes along an axis.

    Args:
        space: the study.
        rows: that are done.
        where: one value of other axes, by axis.
        over: axis.
        between: fabrics as the study writes them; empty: all.
    Raises: ParameterError: no such axis or fabric, no times, or an axis that must be chosen.
    """
    _numeric(space, over)
    for name in between:
        if name not in space.axes["fabric"]:
            raise ParameterError(
                f"breakeven: {name!r} is not a fabric of the study; it has {', '.join(space.axes['fabric'])}"
            )
    column = column_of(over)
    kept, fixed = _at(space, rows, where, "breakeven", (over,))
    times: dict[str, dict[float, float]] = {}
    for row in sorted(kept, key=lambda row: row[column]):
        if not between or row["fabric"] in between:
            times.setdefault(row["fabric"], {})[row[column]] = row["total_s"]
    fabrics = tuple(name for name in space.axes["fabric"] if name in times)
    if len(fabrics) < 2:
        raise ParameterError("breakeven: fewer than two fabrics have times there; an answer needs two")
    places = sorted({at for line in times.values() for at in line})
    winners = [min((name for name in fabrics if at in times[name]), key=lambda name: times[name][at]) for at in places]
    stretches, crossovers = [Stretch(winners[0], places[0], places[0])], []
    for lower, at, winner in zip(places, places[1:], winners[1:], strict=False):
        before = stretches[-1].fabric
        if winner == before or times[before].get(at, float("inf")) <= times[winner][at] * (1 + EQUAL):
            stretches[-1] = Stretch(before, stretches[-1].first, at)
            continue
        crossovers.append(Crossover(_crossing(times[before], times[winner], lower, at), lower, at, before, winner))
        stretches.append(Stretch(winner, at, at))
    lines = {name: (tuple(times[name]), tuple(times[name].values())) for name in fabrics}
    return Breakeven(column, fabrics, tuple(stretches), tuple(crossovers), lines, fixed)


def _crossing(first: Mapping[float, float], second: Mapping[float, float], low: float, high: float) -> float:
    """Where two times are equal, if their ratio is a power of the axis between two points; the middle where one is missing."""
    if not all(line.get(at) for line in (first, second) for at in (low, high)):
        return exp((log(low) + log(high)) / 2) if low > 0 else (low + high) / 2
    lower, upper = (log(first[at] / second[at]) for at in (low, high))
    share = lower / (lower - upper) if lower != upper else 0.5
    share = min(1.0, max(0.0, share))
    return exp(log(low) + share * (log(high) - log(low))) if low > 0 else low + share * (high - low)


def _by_light(space: DesignSpace, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows that are ranked, and those that are not since the light of their plans does not close.

    All are ranked where none closes, or the study ignores light.
    """
    dark = [] if space.light == "ignored" else [row for row in rows if row.get("light_closes") is False]
    if len(dark) == len(rows):
        dark = []
    return [row for row in rows if row not in dark], dark


def _total_s(row: Row) -> float:
    total_s: float = row["total_s"]
    return total_s


def _numeric(space: DesignSpace, axis: str) -> None:
    if axis not in space.axes or axis == "fabric":
        raise ParameterError(f"{axis!r} is not an axis of the study besides fabric; it has {', '.join(_others(space))}")
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in space.axes[axis]):
        raise ParameterError(f"{axis!r} is an axis of names, not of numbers; try size or nodes")


def _others(space: DesignSpace) -> list[str]:
    return [axis for axis in space.axes if axis != "fabric"]


def _at(
    space: DesignSpace, rows: Sequence[Row], where: Row, what: str, free: Sequence[str] = ()
) -> tuple[list[Row], dict[str, Any]]:
    """Rows without a variation at one place of the axes, and that place by column.

    Raises: ParameterError: an axis with several values is neither free nor chosen; no rows.
    """
    if "time" not in space.measure:
        raise ParameterError(f"{what}: the study does not measure time; add 'time' to measure")
    fixed = {}
    for axis in _others(space):
        if axis in free:
            continue
        values = space.axes[axis]
        if axis not in where and len(values) > 1:
            raise ParameterError(
                f"{what}: {axis} has {len(values)} values; choose one: --where {axis}={_written(values[len(values) // 2])}"
            )
        fixed[column_of(axis)] = where.get(axis, values[0])
    kept = [
        row
        for row in rows
        if row["vary"] == DEFAULTS["vary"]
        and row["total_s"] is not None
        and all(row[column] == _stored(value, row[column]) for column, value in fixed.items())
    ]
    if not kept:
        raise ParameterError(f"{what}: no point with a time there; the column `reason` of the results has the reasons")
    return kept, fixed


def _stored(value: Any, like: Any) -> Any:
    """A value as the table has it, whose columns of numbers and names hold texts."""
    return str(value) if isinstance(like, str) else value


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
