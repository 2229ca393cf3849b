"""What is registered, with parameters, defaults and where the defaults come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opticcl.collective import COLLECTIVES
from opticcl.data import load
from opticcl.errors import UnknownNameError
from opticcl.fabric import FABRICS, fabric_at_scale
from opticcl.registry import canonical, nearest, unit_of
from opticcl.schedule import ALGORITHMS, reason_declined
from opticcl.simulate import PRESETS
from opticcl.units import format_quantity

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["catalogue", "catalogue_tables"]

MATRIX_NODES = 16


def catalogue(name: str | None = None) -> dict[str, Any]:
    """Fabrics and algorithms with their parameters, collectives, presets.

    Args: name: only the fabric or algorithm of that name.
    Raises: UnknownNameError: there is none.
    """
    fabrics, algorithms = FABRICS.names(), ALGORITHMS.names()
    if name is not None:
        key = canonical(name)
        if key not in (*fabrics, *algorithms):
            raise UnknownNameError(f"unknown fabric or algorithm {name!r}; {nearest(key, {*fabrics, *algorithms})}")
        fabrics, algorithms = tuple(f for f in fabrics if f == key), tuple(a for a in algorithms if a == key)
    return {
        "fabrics": [_entry(f, FABRICS.get(f).make, 0, load(f"fabrics/{f}.toml")) for f in fabrics],
        "algorithms": [_entry(a, ALGORITHMS.get(a).generate, 2, {}) for a in algorithms],
        **({} if name else _whole_house()),
    }


def _whole_house() -> dict[str, Any]:
    return {
        "collectives": list(COLLECTIVES),
        "presets": {p: load("presets.toml")[p] for p in PRESETS},
        "matrix": {f: _operations(f) for f in FABRICS.names()},
    }


def _operations(name: str) -> dict[str, list[str]]:
    """Algorithms that accept each collective on a fabric of 16 nodes."""
    made = fabric_at_scale(name, MATRIX_NODES)
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
    entries = found["fabrics"] + found["algorithms"]
    if len(entries) <= 2:
        return [_parameter_table(entry) for entry in entries]
    tables: list[Table | str] = [_overview(kind, found[kind]) for kind in ("fabrics", "algorithms")]
    tables.append(_matrix_table(found["matrix"]))
    tables.append("presets: " + ", ".join(found["presets"]))
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
