"""Marks of the benchmarks and whether a case meets them; the values and their sources are in `marks.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["UNITS", "Mark", "load_marks"]

UNITS = {
    "cpu_s": "CPU s",
    "wall_s": "s",
    "peak_mb": "MB",
    "import_ms": "ms",
    "cells_per_s": "cells/s",
    "bytes_per_s": "B/s",
    "worst_cpu_s": "CPU s each",
    "rows": "rows",
}
"""Figure -> unit; a figure without a row is a ratio or a number."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a case must reach.

    Args:
        at_most: figure -> largest value that meets the mark.
        at_least: figure -> smallest value that meets the mark.
        source: where the mark is from.
    """

    at_most: Mapping[str, float]
    at_least: Mapping[str, float]
    source: str

    def missed(self, figures: Mapping[str, float]) -> list[str]:
        """Figures that are beyond the mark or absent."""
        over = [name for name, limit in self.at_most.items() if not figures.get(name, float("inf")) <= limit]
        return over + [name for name, limit in self.at_least.items() if not figures.get(name, float("-inf")) >= limit]

    def texts(self, figures: Mapping[str, float]) -> list[tuple[str, str]]:
        """Figure and, as a text, its value beside the mark."""
        limits = [(name, "<=", limit) for name, limit in self.at_most.items()]
        limits += [(name, ">=", limit) for name, limit in self.at_least.items()]
        return [
            (name, f"{number(figures.get(name))} {sign} {number(limit)} {UNITS.get(name, name)}")
            for name, sign, limit in limits
        ]


def number(value: float | None) -> str:
    """Three digits, with a unit prefix from a million on.

    >>> number(0.01234), number(3_100_000), number(None)
    ('0.0123', '3.1M', '-')
    """
    if value is None:
        return "-"
    return f"{value / 1e6:.3g}M" if value >= 1e6 else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def load_marks(path: Path, names: Collection[str]) -> dict[str, Mark]:
    """The marks of a file, by case.

    Args:
        path: TOML file: a table a case with `at_most`, `at_least` and `source`.
        names: of the cases that there are.
    Raises: ValueError: a mark of no case, without a source, or without a limit.
    """
    found = {}
    for name, row in tomllib.loads(path.read_text("utf-8")).items():
        odd = row.keys() - {"at_most", "at_least", "source"}
        if name not in names or odd or not row.get("source") or not (row.get("at_most") or row.get("at_least")):
            raise ValueError(
                f"{path.name}: [{name!r}]: needs a case of that name, at_most or at_least, and source; has {row}"
            )
        found[name] = Mark(row.get("at_most", {}), row.get("at_least", {}), row["source"])
    return found
