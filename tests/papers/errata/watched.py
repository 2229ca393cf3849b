"""Runs the examples of a paper and notes which values of ours each of them reads.

`python -m tests.papers.errata.watched PAPER` prints a JSON list: for each example the number that it gives and the keys of the
values whose source begins with one of `OURS`. They are read from TOML files as objects that note every use, before any module
of the library is imported, and each example runs in a process of its own, so that nothing is taken from a cache of another.
"""

from __future__ import annotations

import json
import operator
import os
import sys
import tomllib
from collections.abc import Callable
from typing import Any

OURS = ("ours", "assumed", "fitted", "inferred", "typical", "not in the paper")
"""How the source of a value begins that is no paper's, no standard's and no datasheet's."""

read: set[str] = set()
"""Places of the values that were used since the example began."""


class Watched:
    """A value of ours, which stands for itself in arithmetic and notes that it was used."""

    def __init__(self, value: Any, place: str) -> None:
        self._value, self._place = value, place

    def __hash__(self) -> int:
        return hash(self._place)  # a key of a cache is no use of the value

    def __getattr__(self, name: str) -> Any:
        return getattr(value_of(self), name)


def value_of(given: Any) -> Any:
    """The value itself, noted as used if it is ours."""
    if isinstance(given, Watched):
        read.add(given._place)
        return given._value
    return given


def _noting(function: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
    def method(*given: Any) -> Any:
        values = [value_of(each) for each in given]
        return function(*reversed(values) if swapped else values)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_"):
    _plain = _name.rstrip("_")
    setattr(Watched, f"__{_plain}__", _noting(getattr(operator, _name)))
    setattr(Watched, f"__r{_plain}__", _noting(getattr(operator, _name), swapped=True))
for _name in ("lt", "le", "gt", "ge", "ne", "neg", "abs", "index", "getitem", "contains"):
    setattr(Watched, f"__{_name}__", _noting(getattr(operator, _name)))
for _kind in (int, float, bool, str, len, iter, round, repr, format):
    setattr(Watched, f"__{_kind.__name__}__", _noting(_kind))
Watched.__eq__ = lambda self, other: self is other or value_of(self) == value_of(other)  # type: ignore[method-assign]


def watch(table: dict[str, Any], place: str) -> dict[str, Any]:
    """A table of a TOML file whose values of ours are watched: all of a table whose source begins with one of `OURS`."""
    ours = str(table.get("source", "")).startswith(OURS)
    return {
        key: _watched(value, f"{place}.{key}", ours and key not in ("source", "unit", "about"))
        for key, value in table.items()
    }


def _watched(value: Any, place: str, ours: bool) -> Any:
    if isinstance(value, dict):
        return watch(value, place)
    return Watched(value, place) if ours else value


def value(example: Any) -> float:
    """What an example gives."""
    from tests.papers.errata import examples

    from opticcl.papers.formula import evaluate

    if example.formula:
        return evaluate(example.formula, example.at)
    return float(getattr(examples, example.call)(**example.at))


def _apart(example: Any) -> dict[str, Any]:
    """Value and reads of an example, computed by a child of this process."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        read.clear()
        try:
            answer = {"value": value(example)}
        except Exception as error:  # the parent reports it, as the answer of this example
            answer = {"failed": repr(error)}
        os.write(sending, json.dumps({**answer, "read": sorted(read)}).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


def main(paper: str) -> list[dict[str, Any]]:
    """Answers of all examples of a paper, in order."""
    from tests.papers.errata import errata

    listed = [example for entry in errata(paper) for example in entry.examples]
    loads = tomllib.loads
    tomllib.loads = lambda text: watch(loads(text), "")  # type: ignore[assignment]
    return [_apart(example) for example in listed]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
