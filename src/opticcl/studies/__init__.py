"""Studies: one question each, answered by a table and a picture. One file per study, found by discovery.

A study is a function with keyword arguments that returns a `Study`; its file has the name of the study, and the first line of
its docstring is the question. `opticcl study NAME` runs one. The modules `lumorph` and `concurrent_transfers` are shared code
and register no study, so names of studies come from `STUDIES`, never from file names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opticcl.ir import ProgressCallback, no_progress
from opticcl.registry import Registry, convert_arguments, parse_call

__all__ = ["STUDIES", "Chart", "Study", "run_study"]


@dataclass(frozen=True, slots=True)
class Chart:
    """Axes and lines of a study's picture: one line per value of a column.

    Args:
        x, y: columns.
        lines: columns whose values together name a line.
        x_label, y_label: labels of the axes.
        logarithmic: logarithmic axes, of "x" and "y".
        steps: whether y is constant up to the next x.
    """

    x: str
    y: str
    lines: tuple[str, ...]
    x_label: str
    y_label: str
    logarithmic: str = ""
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """Result of a study.

    Args:
        name: of the study, with its parameters.
        title: in words.
        source: figure of the paper that it reproduces.
        rows: one mapping per row, with the same keys; a key ends in its unit (_s, _bytes, _bits_per_s) if it has one.
        chart: axes and lines of the picture.
        notes: remarks that the rows do not contain, one line each.
    """

    name: str
    title: str
    source: str
    rows: Sequence[Mapping[str, Any]]
    chart: Chart
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "study": self.name,
            "title": self.title,
            "source": self.source,
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }


STUDIES: Registry[Callable[..., Study]] = Registry("study", __name__)


def run_study(text: str, progress: ProgressCallback | None = None) -> Study:
    """Run the study of a name.

    Args:
        text: "name:key=value,...".
        progress: called with (what, done, total) while it runs.
    Raises: UnknownNameError, ParameterError: no such study or parameter.
    """
    name, written = parse_call(text)
    make = STUDIES.get(name)
    arguments = convert_arguments(make, written, name, positional=1)
    return make(progress or no_progress, **arguments)
