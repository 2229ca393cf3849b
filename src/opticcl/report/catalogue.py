"""What is registered, with parameters, defaults and where the defaults come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

from opticcl.collective import COLLECTIVES
from opticcl.data import load
from opticcl.errors import FabricError, UnknownNameError
from opticcl.fabric import FABRICS, fabric_at_scale
from opticcl.registry import canonical, nearest, unit_of
from opticcl.schedule import ALGORITHMS, reason_declined
from opticcl.simulate import PRESETS
from opticcl.units import format_quantity
from opticcl.workload.device import DEVICES
from opticcl.workload.models import MODELS, model

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["catalogue", "catalogue_tables"]

MATRIX_NODES = 16


def catalogue(name: str | None = None) -> dict[str, Any]:
    """Fabrics, algorithms and models with their parameters, collectives, presets, devices.

    Args: name: only the fabric, algorithm or model of that name.
    Raises: UnknownNameError: there is none.
    """
    rooms = (FABRICS.names(), ALGORITHMS.names(), MODELS.names())
    key = None if name is None else canonical(name)
    if key is not None and not any(key in names for names in rooms):
        raise UnknownNameError(f"unknown fabric, algorithm or model {name!r}; {nearest(key, {*chain(*rooms)})}")
    fabrics, algorithms, models = (tuple(n for n in names if key in (None, n)) for names in rooms)
    return {
        "fabrics": [_entry(f, FABRICS.get(f).make, 0, _sheet(f)) for f in fabrics],
        "algorithms": [_entry(a, ALGORITHMS.get(a).generate, 2, {}) for a in algorithms],
        "models": [_model(m) for m in models],
        **({} if name else _whole_house()),
    }


def _sheet(fabric: str) -> dict[str, Any]:
    """Defaults with their sources; a fabric of the user's own has none."""
    try:
        return load(f"fabrics/{fabric}.toml")
    except FileNotFoundError:
        return {}


def _whole_house() -> dict[str, Any]:
    return {
        "collectives": list(COLLECTIVES),
        "devices": list(DEVICES),
        "presets": {p: load("presets.toml")[p] for p in PRESETS},
        "matrix": {f: _operations(f) for f in FABRICS.names()},
    }


def _operations(name: str) -> dict[str, list[str]]:
    """Algorithms that accept each collective on a fabric of 16 nodes."""
    try:
        made = fabric_at_scale(name, MATRIX_NODES)
    except FabricError:  # one of the user's own may be of other sizes
        return {c: [] for c in COLLECTIVES}
    return {c: [a for a in ALGORITHMS.names() if reason_declined(a, c, made) is None] for c in COLLECTIVES}


def _entry(name: str, function: Callable[..., Any], positional: int, sheet: dict[str, Any]) -> dict[str, Any]:
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
    """What a model is with its default parameters."""
    made = model(name)
    about = {"sample": made.sample, "weights": made.parameters, "macs": made.macs, "source": made.source}
    return {**_entry(name, MODELS.get(name), 0, {}), **about}


def _described_arguments(function: Callable[..., Any]) -> dict[str, str]:
    """Text of each argument, read from the "Args" of the docstring."""
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


def catalogue_tables(found: dict[str, Any]) -> list[Table | str]:
    """The catalogue as tables: a line a parameter, or a line an entry if there are many entries."""
    if "matrix" not in found:
        entries = found["fabrics"] + found["algorithms"] + found["models"]
        about = [text for entry in found["models"] for text in _about_model(entry)]
        return [_parameter_table(e) if e["parameters"] else f"{e['name']}: {e['summary']}" for e in entries] + about
    tables: list[Table | str] = [_overview(kind, found[kind]) for kind in ("fabrics", "algorithms")]
    tables.append(_matrix_table(found["matrix"]))
    tables.append(_models_table(found["models"]))
    tables.append("presets: " + ", ".join(found["presets"]))
    tables.append("devices: " + ", ".join(found["devices"]))
    tables.append("\n`opticcl list NAME` tells the parameters of one of them, their defaults and sources.")
    return tables


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _overview(kind: str, entries: list[dict[str, Any]]) -> Table:
    table = _table(kind, "name", "what it is", "parameters")
    for entry in entries:
        table.add_row(entry["name"], entry["summary"], ", ".join(p["name"] for p in entry["parameters"]))
    return table


def _models_table(models: list[dict[str, Any]]) -> Table:
    table = _table("models", "name", "what it is", "sample", "weights", "multiply-adds", "parameters")
    for entry in models:
        counts = (format_quantity(float(entry[key]), " ").strip() for key in ("weights", "macs"))
        settings = ", ".join(p["name"] for p in entry["parameters"])
        table.add_row(entry["name"], entry["summary"], entry["sample"], *counts, settings)
    for column in table.columns[3:5]:
        column.justify, column.no_wrap = "right", True
    return table


def _about_model(entry: dict[str, Any]) -> tuple[str, str]:
    size = f"{entry['weights']:,} weights, {entry['macs']:,} multiply-adds for a sample: {entry['sample']}"
    return size, f"source: {entry['source']}"


def _matrix_table(matrix: dict[str, dict[str, list[str]]]) -> Table:
    title = f"algorithms for each collective, at {MATRIX_NODES} nodes (opticcl list --json names them)"
    table = _table(title, "fabric", *(c.replace("_", " ") for c in COLLECTIVES))
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify, column.overflow = "right", "fold"
    for fabric, operations in matrix.items():
        table.add_row(fabric, *(str(len(names) or "-") for names in operations.values()))
    return table


def _parameter_table(entry: dict[str, Any]) -> Table:
    table = _table(f"{entry['name']}: {entry['summary']}", "parameter", "default", "about", "source of the default")
    for p in entry["parameters"]:
        table.add_row(p["name"], format_quantity(p["default"], p["unit"]), p["about"], p["source"])
    return table
