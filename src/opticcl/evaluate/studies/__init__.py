"""Studies: one question each, answered by a table and a picture. One file a study, found by discovery.

A study is a function with keyword arguments that returns a `Study`; its file is named as the study is, and its docstring
says in its first line what is asked. `opticcl study NAME` runs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from opticcl.registry import Registry, convert_arguments, parse_call

__all__ = ["STUDIES", "Chart", "Progress", "Study", "register_study", "run_study"]

Progress = Callable[[str, int, int], None]
"""(what, done, total): told while a study runs."""


@dataclass(frozen=True, slots=True)
class Chart:
    """How to draw a study: one line for each value of a column.

    Args:
        x, y: columns.
        lines: columns whose values together name a line.
        x_label, y_label: what stands at the axes.
        logarithmic: axes that are, of "x" and "y".
        steps: whether y stays as it is up to the next x.
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
    """What came out.

    Args:
        name: of the study, with its parameters.
        title: in words.
        source: what it is to be held against.
        rows: one mapping a row, the same keys in all; a key ends in its unit (_s, _bytes, _bits_per_s) where it has one.
        chart: how to draw it.
        notes: what the rows do not say, a line each.
    """

    name: str
    title: str
    source: str
    rows: Sequence[Mapping[str, Any]]
    chart: Chart
    notes: tuple[str, ...] = ()


STUDIES: Registry[Callable[..., Study]] = Registry("study", __name__)

Maker = TypeVar("Maker", bound=Callable[..., Study])


def register_study(name: str) -> Callable[[Maker], Maker]:
    """Decorator that registers a study function."""

    def add(make: Maker) -> Maker:
        STUDIES.register(name)(make)
        return make

    return add


def run_study(text: str, progress: Progress | None = None) -> Study:
    """The study of that name.

    Args:
        text: "name:key=value,...".
        progress: told (what, done, total) while it runs.
    Raises: UnknownNameError, ParameterError: no such study or parameter.
    """
    name, written = parse_call(text)
    make = STUDIES.get(name)
    arguments = convert_arguments(make, written, name, positional=1)
    return make(progress or (lambda what, done, total: None), **arguments)
