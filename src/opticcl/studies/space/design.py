"""The file of a design space: axes, measures, constraints and answers, checked before any work.

title = "Who is fastest"
measure = ["time", "bound", "gap", "dollars", "watts", "margin"]

[axes]                                  # their product is studied
fabric = ["ramp", "lightpath:reconfiguration=1us"]
nodes = [16, 64]
size = { from = "1KB", to = "1GB", factor = 10 }
workload = ["vgg19", "trace.et"]        # in place of size and collective: an iteration of training
assume.endpoint = ["0.5us", "1us"]      # one assumption
parameter.reconfiguration = ["1us"]     # a parameter of the fabrics that have it

[vary]                                  # each assumption halved and doubled, at these points
keys = "all"
nodes = 64
size = "1MB"

[constraints]
light = "closes"
watts_per_node = 500

[answers.map]                           # written when all points are finished
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from opticcl.assumptions import Assumptions, assumptions
from opticcl.errors import OpticclError, ParameterError, printable
from opticcl.fabrics import FABRICS
from opticcl.plans.equal import EQUAL_RATE
from opticcl.plans.ranks import Variation, sensitivity
from opticcl.plans.sizes import sizes_by
from opticcl.registry import canonical, nearest, parse_call
from opticcl.studies.space.axis_values import AXES, DEFAULTS, REQUIRED, axis_value
from opticcl.units import toml_number

__all__ = [
    "ANSWERS",
    "COLUMNS",
    "MEASURES",
    "MOST_POINTS",
    "OF_PLANS",
    "DesignPoint",
    "DesignSpace",
    "assumed_of",
    "column_of",
    "read_design",
    "selection",
    "variation_of",
]

MOST_POINTS = 1_000_000
"""Points of one study [count]."""

MOST_BYTES = 1 << 20
"""Of a file [bytes]."""

MEASURES: dict[str, tuple[str, ...]] = {
    "time": ("algorithm", "total_s", "verdict", "verified", "light_closes", "not_tried"),
    "waiting": ("compute_s", "exposed_s"),
    "bound": ("lower_bound_s", "bound_by"),
    "gap": ("gap",),
    "dollars": ("usd_per_node",),
    "watts": ("w_per_node",),
    "margin": ("light_margin_db", "light_optics", "light_of"),
    "rounds": ("rounds", "circuit_rounds", "least_rounds", "reconfigurations"),
    "overlap": ("overlap", "without_waveguide"),
}
"""What can be measured -> columns of the results."""

OF_PLANS = ("rounds", "overlap")
"""Measures of a plan, only where a file names them."""

COLUMNS = {"nodes": "num_nodes", "size": "size_bytes", "algorithm": "requested_algorithm"}
"""Axis -> its column, where that has another name."""

_OF_WORKLOADS = {axis: value for axis, value in DEFAULTS.items() if axis != "collective"}

MACHINE = ("fabric", "nodes", "node_rate", "workload", "collective", "algorithm")
"""Axes, besides parameters of fabrics, that points of one machine share."""

ANSWERS = {
    "map": ("x", "y", "where"),
    "pareto": ("where",),
    "tornado": ("where",),
    "breakeven": ("over", "between", "where"),
    "lines": ("x", "y", "mean", "between", "logarithmic", "where"),
}
"""Answer -> its options in a file."""

CONSTRAINTS = ("light", "watts_per_node", "dollars_per_node")


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """One point.

    Args:
        values: by axis, defaults included.
        key: text that identifies it in a ledger, whatever axes are added with their defaults.
    """

    values: Mapping[str, Any]
    key: str

    def row(self) -> dict[str, Any]:
        """Its columns in the table of results."""
        return {column_of(axis): value for axis, value in self.values.items()}

    @property
    def machine(self) -> tuple[Any, ...]:
        """What points with the same plans share: the machine, the collective or workload, and the algorithm."""
        values = self.values
        parameters = [(axis, values[axis]) for axis in _parameters_among(tuple(values))]
        return *map(values.get, MACHINE), *parameters


@dataclass(frozen=True, slots=True)
class DesignSpace:
    """A study file.

    Args:
        name: of the file, without its suffix.
        title: in words.
        axes: values of each axis that the file has.
        measure: names of `MEASURES`.
        vary: keys that are halved and doubled; empty: none.
        vary_at: values of axes at which they are; other axes: all values.
        light: "closes": a plan whose light budget does not close is refused; "ignored": plans are chosen and ranked without
            regard to light; "": it is chosen and ranked behind others.
        watts_per_node, dollars_per_node: most of a machine; None: any [W, USD].
        answers: options of each answer that is written when all points are finished.
    """

    name: str
    title: str
    axes: Mapping[str, tuple[Any, ...]]
    measure: tuple[str, ...]
    vary: tuple[str, ...] = ()
    vary_at: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    light: str = ""
    watts_per_node: float | None = None
    dollars_per_node: float | None = None
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def num_points(self) -> int:
        """Points [count]."""
        count = math.prod(map(len, self.axes.values()))
        at = math.prod(len(self.vary_at.get(axis, values)) for axis, values in self.axes.items())
        return count + (at * 2 * len(self.vary))

    @property
    def needs_plans(self) -> bool:
        """Whether each point has a plan: its time is measured, or its light is a constraint."""
        return self.light == "closes" or not {"time", *OF_PLANS}.isdisjoint(self.measure)

    @property
    def judged_by(self) -> str:
        """What a finished point depends on besides its values: measures and constraints."""
        limits = [self.light, self.watts_per_node, self.dollars_per_node]
        return json.dumps({"measure": sorted(self.measure), "constraints": limits})

    def points(self) -> Iterator[DesignPoint]:
        """All points in the order of the file, the varied ones last."""
        yield from _points(self.axes)
        if self.vary:
            for values in product(*(self.vary_at.get(axis, values) for axis, values in self.axes.items())):
                at = dict(zip(self.axes, values, strict=True))
                names = [one.name for one in sensitivity(assumed_of(at)) if one.key in self.vary]
                yield from _points({axis: [value] for axis, value in at.items()} | {"vary": names})

    def machines(self, points: Sequence[DesignPoint]) -> list[list[int]]:
        """Positions of the points of each machine, collective and algorithm, which share their plans; largest first."""
        rows_of: dict[tuple[Any, ...], list[int]] = {}
        known = points[0].values
        machine = itemgetter(*(axis for axis in (*MACHINE, *_parameters_among(tuple(known))) if axis in known))
        for i, point in enumerate(points):
            rows_of.setdefault(machine(point.values), []).append(i)
        return sorted(rows_of.values(), key=lambda some: (-points[some[0]].values["nodes"], -len(some)))


def assumed_of(values: Mapping[str, Any]) -> Assumptions:
    """Time assumptions of a point, before one of them is halved or doubled."""
    changed = {axis.removeprefix("assume."): value for axis, value in values.items() if axis.startswith("assume.")}
    return assumptions(values.get("assumptions", DEFAULTS["assumptions"]), **changed)


def variation_of(values: Mapping[str, Any], assumed: Assumptions) -> Variation | None:
    """The variation of a point; None: it has none.

    Args:
        values: of the point.
        assumed: its assumptions.
    """
    name = values.get("vary")
    return next(one for one in sensitivity(assumed) if one.name == name) if name else None


@cache
def _parameters_among(axes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in axes if axis.startswith("parameter."))


@cache
def column_of(axis: str) -> str:
    """Column of an axis in the table of results.

    >>> column_of("nodes"), column_of("assume.endpoint")
    ('num_nodes', 'assume_endpoint')
    """
    return COLUMNS.get(axis, axis.replace(".", "_"))


def _points(axes: Mapping[str, Sequence[Any]]) -> Iterator[DesignPoint]:
    """Product of axes. A key is the JSON object of the values that are no defaults, sorted by axis.

    Each value is written as JSON once, however many points have it.
    """
    defaults = _OF_WORKLOADS if "workload" in axes else DEFAULTS
    named = [
        ["" if DEFAULTS.get(axis) == value else json.dumps({axis: value})[1:-1] for value in values]
        for axis, values in axes.items()
    ]
    in_order = sorted(range(len(axes)), key=list(axes).__getitem__)
    for values, texts in zip(product(*axes.values()), product(*named), strict=True):
        key = ", ".join([text for i in in_order if (text := texts[i])])
        yield DesignPoint(defaults | dict(zip(axes, values, strict=True)), f"{{{key}}}")


def read_design(path: Path) -> DesignSpace:
    """A study file.

    Raises: ParameterError, UnknownNameError: the file, the place in it, the value, and what to write.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror}") from None
    if len(text) > MOST_BYTES:
        raise ParameterError(f"{path}: more than {MOST_BYTES:,} bytes; a study is a short file of axes")
    try:
        tables = tomllib.loads(text.decode(), parse_float=toml_number)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{path}: is not valid TOML: {error}") from None
    try:
        return _design(printable(path.stem), tables)
    except OpticclError as error:
        raise type(error)(f"{path}: {error}") from None


def _design(name: str, tables: Mapping[str, Any]) -> DesignSpace:
    _known(tables, ("title", "measure", "axes", "vary", "constraints", "answers"), "")
    title = tables.get("title", name)
    if not isinstance(title, str):
        raise ParameterError(f"title={title!r} is not text")
    trains = "workload" in _table(tables, "axes")
    unknown = ("bound", "gap", *OF_PLANS) if trains else ("waiting",)
    measure = _measures(tables.get("measure", [one for one in MEASURES if one not in (*unknown, *OF_PLANS)]))
    for one in unknown:
        if one in measure:
            what = "a collective; leave the axis workload out" if trains else "a workload; add the axis workload"
            raise ParameterError(f"measure: {one} is of {what}")
    limits = _table(tables, "constraints")
    _known(limits, CONSTRAINTS, "constraints.")
    if limits.get("light", "closes") not in ("closes", "ignored"):
        raise ParameterError(
            f'constraints.light={limits["light"]!r}; write light = "closes" or light = "ignored", or leave it out'
        )
    needs_size = limits.get("light") == "closes" or not {"time", *OF_PLANS}.isdisjoint(measure)
    axes = _axes(_table(tables, "axes"), needs_size=needs_size and not trains)
    varied = _table(tables, "vary")
    _known(varied, ("keys", *axes), "vary.")
    at = {axis: _values(f"vary.{axis}", axis, value, axes) for axis, value in varied.items() if axis != "keys"}
    for axis, values in at.items():
        if not set(values) <= set(axes[axis]):
            raise ParameterError(f"vary.{axis}={varied[axis]!r} is not on the axis {axis}; write values that it has")
    space = DesignSpace(
        name,
        title,
        axes,
        measure,
        _varied(varied, axes, measure),
        at,
        limits.get("light", ""),
        _limit(limits, "watts_per_node"),
        _limit(limits, "dollars_per_node"),
        _answers(_table(tables, "answers"), axes),
    )
    if space.num_points > MOST_POINTS:
        sizes = " x ".join(f"{len(values):,} {axis}" for axis, values in axes.items())
        raise ParameterError(f"axes: {space.num_points:,} points ({sizes}); at most {MOST_POINTS:,}, shorten an axis")
    return space


def _measures(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not given:
        raise ParameterError(f"measure={given!r}; write a list such as {json.dumps(list(MEASURES)[:2])}")
    for one in given:
        if one not in MEASURES:
            raise ParameterError(f"measure: {one!r}; {nearest(str(one), MEASURES)}")
    if not {"bound", "gap", "waiting"}.isdisjoint(given) and "time" not in given:
        raise ParameterError("measure: bound, gap and waiting are of a time; add 'time'")
    return tuple(one for one in MEASURES if one in given)


def _axes(given: Mapping[str, Any], needs_size: bool) -> dict[str, tuple[Any, ...]]:
    written: dict[str, Any] = {}
    for axis, value in given.items():
        if axis in ("assume", "parameter"):
            for key, inner in _table(given, axis, "axes.").items():
                written[f"{axis}.{canonical(key)}"] = inner
        else:
            written[axis] = value
    own = [axis for axis in written if axis.partition(".")[0] in ("assume", "parameter")]
    _known(written, (*AXES, *own), "axes.", "; assumptions are assume.KEY, parameters of fabrics parameter.NAME")
    for axis in ("size", "collective"):
        if "workload" in written and axis in written:
            raise ParameterError(f"axes: {axis} and workload; messages of a workload have their own, leave {axis} out")
    for axis in (*REQUIRED, *(("size",) if needs_size else ())):
        if axis not in written:
            raise ParameterError(f"axes: {axis} is missing; write {axis} = [...]")
    axes: dict[str, tuple[Any, ...]] = {}
    for axis in sorted(written, key=lambda axis: axis in own):  # single keys need the named sets and fabrics
        axes[axis] = _values(f"axes.{axis}", axis, written[axis], axes)
        if len(set(axes[axis])) < len(axes[axis]):
            raise ParameterError(f"axes.{axis}: a value is given twice; give each once")
    if "node_rate" not in axes and _ranks_fabrics(axes):
        axes["node_rate"] = (EQUAL_RATE.value,)
    return axes


def _ranks_fabrics(axes: Mapping[str, tuple[Any, ...]]) -> bool:
    """Whether times of several systems are compared, whose rates can be chosen."""
    systems = {parse_call(text)[0] for text in axes["fabric"]}
    timed = "size" in axes or "workload" in axes
    return timed and len(systems) > 1 and not any(FABRICS.get(name).is_fixed for name in systems)


def _values(what: str, axis: str, given: Any, axes: Mapping[str, tuple[Any, ...]]) -> tuple[Any, ...]:
    """Values of an axis, one or a list of them, or a range of sizes or nodes."""
    if isinstance(given, dict):
        return _range(what, axis, given)
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise ParameterError(f"{what}: is empty, so the study has no points; write at least one value")
    return tuple(axis_value(axis, value, axes, what) for value in listed)


def _range(what: str, axis: str, given: Mapping[str, Any]) -> tuple[int, ...]:
    if axis not in ("size", "nodes"):
        raise ParameterError(f"{what}: is a table; write a list of values")
    _known(given, ("from", "to", "factor"), f"{what}.")
    for key in ("from", "to"):
        if key not in given:
            raise ParameterError(f"{what}: {key} is missing; write {{ from = ..., to = ..., factor = 10 }}")
    factor = given.get("factor", 2)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)):
        raise ParameterError(f"{what}.factor={factor!r} is not a number; try 10")
    smallest, largest = (axis_value(axis, given[key], {}, f"{what}.{key}") for key in ("from", "to"))
    return tuple(sizes_by(smallest, largest, factor, what))


def _varied(given: Mapping[str, Any], axes: Mapping[str, tuple[Any, ...]], measure: tuple[str, ...]) -> tuple[str, ...]:
    if not given:
        return ()
    if "time" not in measure:
        raise ParameterError("vary: assumptions are of a time; add 'time' to measure")
    known: list[str] = []
    names = axes.get("assumptions", (DEFAULTS["assumptions"],))
    for name in names:
        keys = list(dict.fromkeys(one.key for one in sensitivity(assumptions(name))))
        known = [key for key in keys if not known or key in known]
    keys = given.get("keys", "all")
    if keys == "all":
        return tuple(known)
    if not isinstance(keys, list) or not keys:
        raise ParameterError(f'vary.keys={keys!r}; write "all", or a list such as ["endpoint"]')
    for key in keys:
        if key not in known:
            raise ParameterError(f"vary.keys: {key!r}; {nearest(str(key), known)}")
    return tuple(dict.fromkeys(keys))


def _limit(limits: Mapping[str, Any], key: str) -> float | None:
    if key not in limits:
        return None
    value = limits[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ParameterError(f"constraints.{key}={value!r} is not a positive number; write {key} = 500")
    return float(value)


def _answers(given: Mapping[str, Any], axes: Mapping[str, tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    answers = {}
    _known(given, tuple(ANSWERS), "answers.")
    for name in given:
        options = _table(given, name, "answers.")
        _known(options, ANSWERS[name], f"answers.{name}.")
        answers[name] = dict(options) | {"where": selection(_table(options, "where", f"answers.{name}."), axes)}
        for key in ("x", "mean", "over") if name == "lines" else ("x", "y", "over"):
            if key in options and options[key] not in axes:
                raise ParameterError(f"answers.{name}.{key}: {options[key]!r}; {nearest(str(options[key]), axes)}")
        if name == "lines" and options.get("logarithmic", "") not in ("", "x", "y", "xy"):
            raise ParameterError(f'answers.lines.logarithmic={options["logarithmic"]!r}; write "x", "y" or "xy"')
    return answers


def selection(given: Mapping[str, Any], axes: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """One value of some axes, checked.

    Args:
        given: texts or values by axis.
        axes: of the study.
    Raises: ParameterError: no such axis, or a value that is not on it.
    """
    chosen = {}
    for axis, value in given.items():
        if axis not in axes:
            raise ParameterError(f"where: {axis!r} is not an axis of the study; {nearest(axis, axes)}")
        chosen[axis] = axis_value(axis, value, axes, f"where: {axis}")
        if chosen[axis] not in axes[axis]:
            raise ParameterError(f"where: {axis}={value} is not on the axis; try {axes[axis][0]}")
    return chosen


def _table(tables: Mapping[str, Any], name: str, inside: str = "") -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ParameterError(f"{inside}{name}={table!r} is not a table; write [{inside}{name}]")
    return table


def _known(given: Mapping[str, Any], known: Sequence[str], inside: str, remark: str = "") -> None:
    for key in given:
        if key not in known:
            raise ParameterError(f"unknown key {inside}{key}; {nearest(key, known)}{remark}")
