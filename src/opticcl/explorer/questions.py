"""Questions of the browser as words of a command: every parameter is checked and limited before any work starts."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from opticcl.errors import ParameterError

__all__ = ["MOST_NODES", "VIEWS", "Names", "Question", "question"]

MOST_NODES = 4096
"""Largest machine that the explorer compiles for [count]."""

MOST_TEXT = 200
"""Longest text of a parameter [characters]."""

MOST_FABRICS, MOST_SIZES, MOST_ASSUMED = 40, 16, 20


class Question(NamedTuple):
    """A question that a process answers.

    Args:
        words: of the command after `opticcl`; the answer is what it prints with --json, or the light of its plan.
        shown: words of the command that a user would type.
        fabrics: whose sizes are checked first.
        nodes: that they are scaled to; 0: not scaled.
        light: run and round that are shown, of the whole plan if empty; None: the answer is what the command prints.
        traced: whether the verb writes a timeline too; the answer is then an object of `record` and `trace`.
        since: when the answer may be computed again; equal questions have one answer [s, ns or similar].
    """

    words: tuple[str, ...]
    shown: tuple[str, ...]
    fabrics: tuple[str, ...] = ()
    nodes: int = 0
    light: tuple[tuple[str, int], ...] | None = None
    traced: bool = False
    since: int = 0

    @property
    def command(self) -> str:
        """The command as one would type it."""
        return shlex.join(("opticcl", *self.shown))


Names = Mapping[str, Sequence[str]]
"""Kind of a name (fabric, algorithm, ...) -> names."""

NAME = r"[\w-]+"
CALL = NAME + r"(:[\w=,.+/ *\[\]()-]*)?"
PAIR = r"[\w.]+ ?= ?[\w.+/ -]+"
QUANTITY = r"[0-9][0-9.eE+-]{0,20} ?[A-Za-z/]{0,12}"


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter of a view.

    Args:
        option: of the command; "": an argument.
        pattern: of its texts.
        example: of a text.
        most: values that it takes [count].
        kind: of the names with which its texts begin; "": they begin with no name.
        others: that they may begin with too.
        within: least and largest whole number; None: it is no number.
    """

    option: str
    pattern: str
    example: str
    most: int = 1
    kind: str = ""
    others: tuple[str, ...] = ()
    within: tuple[int, int] | None = None

    def check(self, name: str, value: Any, names: Names) -> str:
        """Text of the option.

        Args:
            name: of the parameter.
            value: that the browser sends.
            names: that are known.
        Raises: ParameterError: the value is not accepted, or begins with an unknown name.
        """
        shown = repr(value if self.within is None else str(value))[:60]
        if self.within is not None:
            low, high = self.within
            text = "" if isinstance(value, bool) else str(value)
            if not re.fullmatch(self.pattern, text) or not low <= int(text) <= high:
                raise ParameterError(f"{name}: {shown} is not a whole number from {low:,} to {high:,}")
            return str(int(text))
        if not isinstance(value, str) or len(value) > MOST_TEXT or not re.fullmatch(self.pattern, value):
            raise ParameterError(f"{name}: {shown} is not accepted here; try {self.example}")
        known = [*names[self.kind], *self.others] if self.kind else []
        if known and (head := value.partition(":")[0].replace("-", "_").lower()) not in known:
            raise ParameterError(f"{name}: {head!r} is not known; known: {', '.join(known)}")
        return value


def _named(kind: str, example: str, *others: str, most: int = 1) -> Field:
    """A registered name, with parameters if it has some."""
    return Field(f"--{kind}", CALL, example, most, kind, others)


def _whole(option: str, low: int, high: int) -> Field:
    """A whole number."""
    return Field(option, "[0-9]{1,11}", str(low), within=(low, high))


FABRIC = _named("fabric", "ramp:groups=4,racks=4,wavelengths=8")
FABRICS = replace(FABRIC, most=MOST_FABRICS)
NODES = _whole("--nodes", 1, MOST_NODES)
COLLECTIVE = replace(_named("collective", "all_reduce"), pattern=NAME)
ALGORITHM = _named("algorithm", "lumorph:radix=4", "auto")
SIZE = Field("--size", QUANTITY, "100MB")
ASSUMED = {
    "assumptions": replace(_named("assumptions", "common"), pattern=NAME),
    "assume": Field("--assume", PAIR, "endpoint=2.7us", MOST_ASSUMED),
}
EQUAL = Field("--equal", PAIR, "rate=800Gb/s")
ENGINE = _named("engine", "closed_form")
PLAN = {"fabric": FABRIC, "nodes": NODES, "collective": COLLECTIVE, "algorithm": ALGORITHM, "size": SIZE}

VIEWS: dict[str, tuple[tuple[str, ...], dict[str, Field]]] = {
    "list": (("list",), {}),
    "compare": (
        ("compare",),
        {
            "fabric": FABRICS,
            "nodes": NODES,
            "collective": COLLECTIVE,
            "algorithm": replace(ALGORITHM, others=("auto", "main", "all")),
            "size": replace(SIZE, most=MOST_SIZES),
            "equal": EQUAL,
            **ASSUMED,
        },
    ),
    "sweep": (
        ("compare",),
        {
            "fabric": FABRICS,
            "nodes": NODES,
            "collective": COLLECTIVE,
            "algorithm": ALGORITHM,
            "sizes": Field("--sizes", f"{QUANTITY}:{QUANTITY}(:[0-9]{{1,2}})?", "1KB:1GB:8"),
            "equal": EQUAL,
            **ASSUMED,
        },
    ),
    "simulate": (("simulate",), {**PLAN, "engine": ENGINE, **ASSUMED}),
    "budget": (("machine", "budget"), {"fabric": FABRIC, "nodes": NODES}),
    "cost": (("machine", "cost"), {"fabric": FABRICS, "nodes": NODES}),
    "train": (
        ("train",),
        {"model": _named("model", "vgg19"), "nodes": NODES, "fabric": FABRICS, **ASSUMED},
    ),
}
"""View -> first words of its command, and its parameters."""

PLACE = {"run": _whole("", 0, 1 << 30), "round": _whole("", 0, 1 << 30)}
"""Parameters of the light of a plan, beside those of the plan: the round that is shown; without it, the whole plan."""

ANSWERS = ("map", "pareto", "tornado", "breakeven")
"""Answers of a study that the explorer draws."""

ALONE = ("compare", "sweep", "train")
"""Verbs that would start processes: each has one here, and several answer at the same time."""


UNCOMPILED = ("budget", "cost")
"""Verbs that compile no plan, so that a machine may be as large as it is."""

STUDY_S = 2.0
"""Time for which an answer of a study, which may still run, is not computed again [s]."""


def question(given: Any, names: Names, opened: Mapping[str, Path]) -> Question:
    """The question that a browser sends.

    Args:
        given: decoded JSON: `view` and parameters by name.
        names: that are known, by their kind: fabric, algorithm, collective, engine, model, assumptions.
        opened: files that were opened or sent, by the key under which the browser knows them.
    Raises: ParameterError: the parameter, its value, the rule.
    """
    if not isinstance(given, dict) or not isinstance(given.get("view"), str):
        raise ParameterError("question: write {'view': NAME, ...}")
    view = given["view"]
    parameters = {name: value for name, value in given.items() if name != "view" and value not in (None, "", [])}
    if view == "light":
        return _light(parameters, names, opened)
    if view in ("study", *ANSWERS):
        return _study(view, parameters, opened)
    if view not in VIEWS:
        raise ParameterError(
            f"view: {view[:60]!r} is not known; known: {', '.join([*VIEWS, 'light', 'study', *ANSWERS])}"
        )
    first, fields = VIEWS[view]
    values = _checked(view, parameters, fields, names)
    words = [f"{fields[name].option}={text}" for name, texts in values.items() for text in texts]
    shown = [word for name, texts in values.items() for text in texts for word in (fields[name].option, text)]
    alone = ("--jobs=1",) if view in ALONE else ()
    nodes = int(values.get("nodes", ["0"])[0])
    traced = view == "train"
    compiled = tuple(values.get("fabric", ())) if view not in UNCOMPILED else ()
    asked = (*first, *shown, *(("--trace", "trace.json") if traced else ()))
    return Question((*first, *words, *alone, "--json"), asked, compiled, nodes, traced=traced)


def _checked(
    view: str, parameters: Mapping[str, Any], fields: Mapping[str, Field], names: Names
) -> dict[str, list[str]]:
    """Texts of every parameter, in the order of the fields."""
    for name in parameters:
        if name not in fields:
            raise ParameterError(f"{view}: {name[:60]!r} is not a parameter; known: {', '.join(fields) or 'none'}")
    checked = {}
    for name, field in fields.items():
        if name in parameters:
            value = parameters[name]
            values = value if isinstance(value, list) else [value]
            if len(values) > field.most:
                raise ParameterError(f"{name}: {len(values)} values, at most {field.most}")
            checked[name] = [field.check(name, one, names) for one in values]
    return checked


def _light(parameters: Mapping[str, Any], names: Names, opened: Mapping[str, Path]) -> Question:
    """The light of a plan that is compiled, or of a plan file."""
    given = dict(parameters)
    path = _file(given.pop("plan"), opened) if "plan" in given else None
    fields = {**(PLAN if path is None else {}), **PLACE}
    values = _checked("light", given, fields, names)
    place = tuple((name, int(*values.pop(name))) for name in PLACE if name in values)
    if path is not None:
        return Question(("verify", str(path)), ("verify", path.name), light=place, since=path.stat().st_mtime_ns)
    if "fabric" not in values:
        raise ParameterError("light: the fabric is missing")
    pairs = [(PLAN[name].option, text) for name, texts in values.items() for text in texts]
    words = ("verify", *(f"{option}={text}" for option, text in pairs))
    shown = ("compile", *(word for pair in pairs for word in pair), "--out", "plan.json")
    return Question(words, shown, tuple(values["fabric"]), int(*values.get("nodes", ["0"])), place)


def _study(view: str, parameters: Mapping[str, Any], opened: Mapping[str, Path]) -> Question:
    """The state of a study, or an answer of it."""
    given = dict(parameters)
    path = _file(given.pop("study", None), opened)
    axis = {"map": ("x", "y"), "breakeven": ("over",)}.get(view, ())
    fields = {} if view == "study" else {"where": Field("--where", PAIR, "nodes=64", MOST_ASSUMED)}
    fields |= {name: Field(f"--{name}", r"[\w.]+", "size") for name in axis}
    values = _checked(view, given, fields, {})
    where = [f"{fields[name].option}={text}" for name, texts in values.items() for text in texts]
    words = ("study", "run", str(path), "--dry-run") if view == "study" else ("study", view, str(path), *where)
    shown = ("study", "run", path.name, "--dry-run") if view == "study" else ("study", view, path.name, *where)
    return Question((*words, "--json"), shown, since=int(time.monotonic() / STUDY_S))


def _file(key: Any, opened: Mapping[str, Path]) -> Path:
    """A file by the key under which it was opened; a path is never taken from a browser."""
    if not isinstance(key, str) or key not in opened:
        raise ParameterError(f"file: {str(key)[:60]!r} is not open; give it to opticcl explore, or open it on the page")
    return opened[key]
