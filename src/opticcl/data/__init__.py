"""Numbers of papers and datasheets, as TOML: value, unit, source. Laws live in code, numbers live here."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["datasheet", "load"]


@cache
def load(path: str) -> dict[str, Any]:
    """One file of this folder, parsed.

    Args: path: such as "fabrics/ramp.toml".
    """
    return tomllib.loads(files(__name__).joinpath(path).read_text("utf-8"))


@cache
def datasheet(name: str) -> dict[str, Any]:
    """Values of "fabrics/<name>.toml" by key, without their sources.

    Every key of the file is a table with value, source and, where it has one, unit (always the SI unit of its dimension).
    """
    return {key: entry["value"] for key, entry in load(f"fabrics/{name}.toml").items() if isinstance(entry, dict)}
