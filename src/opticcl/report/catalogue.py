"""Catalogue: everything that is registered, with parameters, defaults and the sources of the defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from opticcl.assumptions import SETS, set_of
from opticcl.circuits import RULES
from opticcl.collective import COLLECTIVES, as_request
from opticcl.errors import FabricError, UnknownNameError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.files import read_toml
from opticcl.formats import FORMATS
from opticcl.registry import Registry, canonical, nearest, unit_of
from opticcl.report.kit.columns import Column, FittedTable
from opticcl.schedule import ALGORITHMS, reason_declined
from opticcl.simulate import ENGINES
from opticcl.studies import STUDIES
from opticcl.traces import TRACES
from opticcl.training.device import DEVICES
from opticcl.training.models import MODELS, model
from opticcl.units import format_quantity

__all__ = ["REGISTRIES", "catalogue", "catalogue_tables"]

REGISTRIES: dict[str, Registry[Any]] = {
    "fabric": FABRICS,
    "algorithm": ALGORITHMS,
    "rule": RULES,
    "engine": ENGINES,
    "model": MODELS,
    "format": FORMATS,
    "trace": TRACES,
    "study": STUDIES,
}
"""What plugins may add to, by kind."""

MATRIX_NODES = 16
"""Size of the fabrics in the matrix of fabrics and collectives [nodes]."""

FORMATS_SECTION = "formats"


def catalogue(name: str | None = None) -> dict[str, Any]:
    """Fabrics, algorithms and models with their parameters, collectives, assumptions, devices.

    Args: name: of a fabric, algorithm or model, or "formats" for the file formats; None: everything.
    Raises: UnknownNameError: no such name.
    """
    kinds = (FABRICS.names(), ALGORITHMS.names(), MODELS.names())
    key = None if name is None else canonical(name)
    if key == FORMATS_SECTION:
        return {FORMATS_SECTION: _formats()}
    if key is not None and not any(key in names for names in kinds):
        known = {*chain(*kinds), FORMATS_SECTION}
        raise UnknownNameError(f"unknown fabric, algorithm or model {name!r}; {nearest(key, known)}")
    fabrics, algorithms, models = (tuple(n for n in names if key in (None, n)) for names in kinds)
    return {
        "fabrics": [_entry(f, FABRICS.get(f), 0, _sheet(f)) for f in fabrics],
        "algorithms": [_entry(a, ALGORITHMS.get(a).generate, 2, {}) for a in algorithms],
        "models": [_model(m) for m in models],
        **({} if name else _overview_of_the_rest()),
    }


def _sheet(fabric: str) -> dict[str, Any]:
    """Defaults with their sources; a fabric of a plugin has none."""
    try:
        return read_toml("opticcl.fabrics", f"{fabric}.toml")["machine"]
    except FileNotFoundError:
        return {}


def _overview_of_the_rest() -> dict[str, Any]:
    return {
        "collectives": list(COLLECTIVES),
        "devices": list(DEVICES),
        FORMATS_SECTION: _formats(),
        "assumptions": {name: set_of(name) for name in SETS},
        "matrix": {f: _algorithms_of(f) for f in FABRICS.names()},
    }


def _formats() -> list[dict[str, Any]]:
    return [FORMATS.get(name).record() for name in FORMATS.names()]


def _algorithms_of(name: str) -> dict[str, list[str]]:
    """Algorithms that accept each collective on a fabric of 16 nodes."""
    try:
        fabric = fabric_at_scale(name, MATRIX_NODES)
    except FabricError:  # a fabric of a plugin may have other sizes
        return {c: [] for c in COLLECTIVES}
    requests = {c: as_request(c) for c in COLLECTIVES}
    return {
        c: [a for a in ALGORITHMS.names() if reason_declined(a, one, fabric) is None] for c, one in requests.items()
    }


def _entry(name: str, function: Callable[..., Any], positional: int, sheet: dict[str, Any]) -> dict[str, Any]:
    """Name, summary and parameters of what is registered.

    Args:
        name: registered name.
        function: its maker.
        positional: leading parameters that the user does not give [count].
        sheet: defaults with their sources, by parameter.
    """
    parameters = list(inspect.signature(function).parameters.values())[positional:]
    described = _described_arguments(function)
    return {
        "name": name,
        "summary": (inspect.getdoc(function) or "").partition("\n")[0],
        "parameters": [
            {
                "name": p.name,
                "default": p.default,
                "unit": unit_of(function, p.name),
                "about": described.get(p.name, ""),
                "source": sheet.get(p.name, {}).get("source", ""),
            }
            for p in parameters
        ],
    }


def _model(name: str) -> dict[str, Any]:
    """A model with its default parameters."""
    built = model(name)
    about = {"sample": built.sample, "weights": built.parameters, "macs": built.macs, "source": built.source}
    return {**_entry(name, MODELS.get(name), 0, {}), **about}


def _described_arguments(function: Callable[..., Any]) -> dict[str, str]:
    """Text of each argument, from the "Args" of the docstring."""
    found: dict[str, str] = {}
    current, inside = "", False
    for line in (inspect.getdoc(function) or "").splitlines():
        if line.startswith("Args:"):
            inside, line = True, " " * 4 + line.removeprefix("Args:").strip()
        elif line and not line.startswith(" "):
            inside = False
        if not inside or not line.strip():
            continue
        head, colon, text = line.strip().partition(": ")
        if line.startswith(" " * 4) and not line.startswith(" " * 5) and colon and head.isidentifier():
            current, found[head] = head, text
        elif current:
            found[current] += " " + line.strip()
    return found


def catalogue_tables(found: dict[str, Any]) -> list[FittedTable | str]:
    """The catalogue as tables: one row a parameter for a single name, one row a name for the whole.

    Args: found: as `catalogue` returns it.
    """
    if list(found) == [FORMATS_SECTION]:
        return [_formats_table(found[FORMATS_SECTION])]
    if "matrix" not in found:
        entries = found["fabrics"] + found["algorithms"] + found["models"]
        about = [text for entry in found["models"] for text in _about_model(entry)]
        return [_parameter_table(e) if e["parameters"] else f"{e['name']}: {e['summary']}" for e in entries] + about
    tables: list[FittedTable | str] = []
    for table in (*(_overview(kind, found[kind]) for kind in ("fabrics", "algorithms")), _matrix(found["matrix"])):
        tables += [table, ""]
    tables += [_models(found["models"]), ""]
    tables += [f"{kind}: {', '.join(found[kind])}" for kind in ("assumptions", "devices")]
    tables.append(f"formats: {', '.join(entry['name'] for entry in found[FORMATS_SECTION])}")
    tables.append("\n`opticcl list NAME` shows the parameters of one of them, with defaults and sources;")
    tables.append("`opticcl list formats` shows the file formats.")
    return tables


def _overview(kind: str, entries: Sequence[dict[str, Any]]) -> FittedTable:
    return FittedTable(
        [
            Column("name", [e["name"] for e in entries], justify="left"),
            Column("description", [e["summary"] for e in entries], justify="left", wrap=True),
            Column(
                "parameters", [", ".join(p["name"] for p in e["parameters"]) for e in entries], 1, "left", wrap=True
            ),
        ],
        heading=kind,
    )


def _models(models: Sequence[dict[str, Any]]) -> FittedTable:
    weights, operations = ([format_quantity(float(e[key]), " ").strip() for e in models] for key in ("weights", "macs"))
    return FittedTable(
        [
            Column("name", [e["name"] for e in models], justify="left"),
            Column("description", [e["summary"] for e in models], justify="left", wrap=True),
            Column("sample", [e["sample"] for e in models], 2, "left", wrap=True),
            Column("weights", weights),
            Column("multiply-adds", operations),
            Column("parameters", [", ".join(p["name"] for p in e["parameters"]) for e in models], 1, "left", wrap=True),
        ],
        heading="models",
    )


def _formats_table(entries: Sequence[dict[str, Any]]) -> FittedTable:
    return FittedTable(
        [
            Column("name", [e["name"] for e in entries], justify="left"),
            Column("suffixes", [" ".join(e["suffixes"]) for e in entries], justify="left"),
            Column("reads", [e["reads"] or "-" for e in entries], justify="left"),
            Column("writes", [e["writes"] or "-" for e in entries], justify="left"),
            Column("content", [e["about"] for e in entries], justify="left", wrap=True),
        ],
        heading="file formats",
    )


def _about_model(entry: dict[str, Any]) -> Iterator[str]:
    yield f"{entry['weights']:,} weights, {entry['macs']:,} multiply-adds for a sample: {entry['sample']}"
    yield f"source: {entry['source']}"


def _matrix(matrix: dict[str, dict[str, list[str]]]) -> FittedTable:
    counts = {c: [str(len(by_collective[c]) or "-") for by_collective in matrix.values()] for c in COLLECTIVES}
    return FittedTable(
        [
            Column("fabric", [*matrix], justify="left"),
            *(Column(c.replace("_", " "), cells, wrap=True) for c, cells in counts.items()),
        ],
        heading=f"number of algorithms for each collective, at {MATRIX_NODES} nodes (opticcl list --json names them)",
    )


def _parameter_table(entry: dict[str, Any]) -> FittedTable:
    parameters = entry["parameters"]
    columns = [
        Column("parameter", [p["name"] for p in parameters], justify="left"),
        Column("default", [format_quantity(p["default"], p["unit"]) for p in parameters], justify="left"),
        Column("description", [p["about"] for p in parameters], justify="left", wrap=True),
    ]
    if any(p["source"] for p in parameters):
        sources = [p["source"] for p in parameters]
        columns.append(Column("source of the default", sources, justify="left", wrap=True))
    return FittedTable(columns, heading=f"{entry['name']}: {entry['summary']}")
