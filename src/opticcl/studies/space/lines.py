"""A measured value along an axis of a study, a line for each place of the other axes; algorithms as contestants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from opticcl.errors import ParameterError
from opticcl.fabrics import FABRICS
from opticcl.registry import nearest, parameter_types, parse_call
from opticcl.studies import Chart, Study
from opticcl.studies.space.design import MEASURES, DesignSpace, column_of
from opticcl.units import Rate, Seconds, unit_suffix

__all__ = ["by_algorithm", "lines"]

Row = Mapping[str, Any]


def by_algorithm(space: DesignSpace, rows: Sequence[Row], where: Row) -> tuple[DesignSpace, list[Row]]:
    """A study of several algorithms as one of fabrics, each named with an algorithm: "ideal ring".

    Args:
        space: the study.
        rows: that are done.
        where: one value of some axes, by axis.
    """
    algorithms = space.axes.get("algorithm", ())
    if len(algorithms) < 2 or "algorithm" in where:
        return space, list(rows)
    column = column_of("algorithm")
    axes = {axis: values for axis, values in space.axes.items() if axis != "algorithm"}
    axes["fabric"] = tuple(f"{fabric} {one}" for fabric in axes["fabric"] for one in algorithms)
    return replace(space, axes=axes), [row | {"fabric": f"{row['fabric']} {row[column]}"} for row in map(dict, rows)]


def lines(
    space: DesignSpace,
    rows: Sequence[Row],
    where: Row,
    x: str = "size",
    y: str = "total_s",
    mean: str = "",
    between: Sequence[str] = (),
    logarithmic: str = "",
) -> Study:
    """A measured value along an axis, a line for each place of the other axes that have several values.

    Args:
        space: the study, as `by_algorithm` returns it.
        rows: that are done.
        where: one value of other axes, by axis.
        x: axis of numbers.
        y: column of a measured value, or the node rate, which every result has.
        mean: axis over whose values the mean and the largest value are taken; "": none.
        between: fabrics; empty: all.
        logarithmic: logarithmic axes of the picture, of "x" and "y".
    Raises: ParameterError: no such axis, column or fabric, or no values there.
    """
    measured = ["node_rate_bits_per_s", *(column for name in space.measure for column in MEASURES[name])]
    if y not in measured:
        raise ParameterError(f"lines: the study does not measure {y!r}; {nearest(y, measured)}")
    for axis in (x, *([mean] if mean else [])):
        if axis not in space.axes:
            raise ParameterError(f"lines: {axis!r} is not an axis of the study; it has {', '.join(space.axes)}")
    if not all(isinstance(value, (int, float)) for value in space.axes[x]):
        raise ParameterError(f"lines: {x!r} is an axis of names, not of numbers; try size or nodes")
    for name in between:
        if name not in space.axes["fabric"]:
            raise ParameterError(f"lines: {name!r} is not a fabric of the study; {nearest(name, space.axes['fabric'])}")
    named = [a for a, values in space.axes.items() if a not in (x, mean) and len(values) > 1 and a not in where]
    keys, across = [_key(space, axis) for axis in named], _key(space, x)
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        fits = all(row[column_of(axis)] in (value, str(value)) for axis, value in where.items())
        if row["vary"] or row[y] is None or not fits or (between and row["fabric"] not in between):
            continue
        place = *(row[column_of(axis)] for axis in named), row[column_of(x)]
        groups.setdefault(place, []).append(row[y])
    if not groups:
        raise ParameterError(f"lines: no point with {y} there; the column `reason` of the results has the reasons")
    order = {name: i for i, name in enumerate(space.axes["fabric"])}
    found = []
    for (*line, at), values in groups.items():
        best = {f"most_{y}": max(values)} if mean else {}
        found.append(dict(zip(keys, line, strict=True)) | {across: at, y: fmean(values) if mean else values[0]} | best)
    found.sort(key=lambda row: (order.get(row.get("fabric", ""), 0), *(_rank(row[key]) for key in keys), row[across]))
    chart = Chart(across, y, tuple(keys), _label(across), _label(y), logarithmic)
    notes = (f"mean and maximum over {len(space.axes[mean])} values of {mean.rpartition('.')[2]}",) if mean else ()
    return Study(space.name, space.title, "opticcl study", found, chart, notes)


def _rank(value: Any) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (value, "")


def _key(space: DesignSpace, axis: str) -> str:
    """Column of an axis, with its unit if it is a rate, a parameter or an assumption: "reconfiguration_s"."""
    if axis == "node_rate":
        return "node_rate_bits_per_s"
    kind, _, name = axis.partition(".")
    if kind == "assume":
        return f"{name}_s"
    if kind != "parameter":
        return column_of(axis)
    for text in space.axes["fabric"]:
        hint = parameter_types(FABRICS.get(parse_call(text.split()[0])[0])).get(name)
        if hint is not None:
            return name + {Rate: "_bits_per_s", Seconds: "_s"}.get(hint, "")
    return name


def _label(column: str) -> str:
    if column == "total_s":
        return "time"
    return column.removesuffix(unit_suffix(column)).removeprefix("num_").replace("_", " ")
