"""Catalogue: everything that is registered, with parameters, defaults and the sources of the defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from itertools import chain
from typing import Any, NamedTuple

from opticcl.assumptions import SETS, set_of
from opticcl.collective import COLLECTIVES, as_request
from opticcl.errors import FabricError, UnknownNameError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.files import read_toml
from opticcl.formats import FORMATS
from opticcl.registry import argument_texts, canonical, nearest, unit_of, user_parameters
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.result import Result
from opticcl.schedule import ALGORITHMS, AlgorithmCall
from opticcl.simulate import ENGINES
from opticcl.training.device import DEVICES
from opticcl.training.model import Model
from opticcl.training.models import MODELS, model
from opticcl.units import counted, format_quantity

__all__ = ["Catalogue", "catalogue"]

MATRIX_NODES = 16
"""Size of the fabrics in the matrix of fabrics and collectives [nodes]."""

NAMED = ("fabrics", "algorithms", "models", "engines")
"""Kinds of which one name can be listed alone, with its parameters."""

KINDS = (*NAMED, "collectives", "assumptions", "devices", "formats")
COUNTED = ("fabrics", "algorithms", "models", "collectives")
"""Kinds that the headline of the whole counts."""

NEEDED = "needed"
"""In place of the default of a parameter that has none."""

NAME = Shown("name")


def catalogue(name: str | None = None) -> Result:
    """Fabrics, algorithms, models and engines with their parameters, collectives, assumptions, devices.

    Args: name: of a fabric, algorithm, model or engine, or of a kind, such as "fabrics" or "formats"; None: everything.
    Raises: UnknownNameError: no such name.
    """
    names = (FABRICS.names(unlisted=True), ALGORITHMS.names(), MODELS.names(), ENGINES.names())
    key = None if name is None else canonical(name)
    kinds = KINDS if key is None else (key,) if key in KINDS else ()
    if not kinds and not any(key in some for some in names):
        known = {*chain(*names), *KINDS}
        raise UnknownNameError(f"unknown fabric, algorithm, model or engine {name!r}; {nearest(key or '', known)}")
    fabrics, algorithms, models, engines = ([one for one in some if kinds or one == key] for some in names)
    return Catalogue(
        [_Entry(one, FABRICS.get(one), sheet=True) for one in fabrics],
        [_Entry(one, ALGORITHMS.get(one).generate, positional=2) for one in algorithms],
        [_Entry(one, MODELS.get(one)) for one in models],
        [_Entry(one, ENGINES.get(one).options) for one in engines],
        kinds,
    )


class _Kind(NamedTuple):
    """What is registered of a kind.

    Args:
        word: for one of it.
        names: of all.
        record: returns it as plain values.
        table: returns it with a row a name; None: a line of names says all.
    """

    word: str
    names: Sequence[str]
    record: Callable[[], Any]
    table: Callable[[], FittedTable] | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is registered under a name.

    Args:
        name: registered name.
        function: its maker.
        positional: leading parameters that the user does not give [count].
        sheet: whether a datasheet has the sources of its defaults.
    """

    name: str
    function: Callable[..., Any]
    positional: int = 0
    sheet: bool = False

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return (self.function.__doc__ or "").lstrip().partition("\n")[0].rstrip()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What the user may give."""
        return user_parameters(self.function, self.positional)

    def record(self) -> dict[str, Any]:
        """As a plain dict: name, summary, and parameters with defaults, units, descriptions and sources of the defaults."""
        described, sheet = argument_texts(self.function), _sheet(self.name) if self.sheet else {}
        return {
            "name": self.name,
            "summary": self.summary,
            "parameters": [
                {
                    "name": p.name,
                    "default": NEEDED if p.default is p.empty else p.default,
                    "unit": unit_of(self.function, p.name),
                    "about": described.get(p.name, ""),
                    "source": sheet.get(p.name, {}).get("source", ""),
                }
                for p in self.parameters
            ],
        }


def _sheet(fabric: str) -> dict[str, Any]:
    """Defaults with their sources; a fabric of a plugin has none."""
    try:
        return read_toml("opticcl.fabrics", f"{fabric}.toml")["machine"]
    except FileNotFoundError:
        return {}


@dataclass(frozen=True, slots=True)
class Catalogue(Result):
    """What is registered.

    Args:
        fabrics, algorithms, models, engines: of each kind, those requested.
        kinds: that are listed; (): single names.
    """

    fabrics: Sequence[_Entry]
    algorithms: Sequence[_Entry]
    models: Sequence[_Entry]
    engines: Sequence[_Entry]
    kinds: Sequence[str]

    @property
    def _every(self) -> dict[str, _Kind]:
        """All kinds, by name."""

        def entries(word: str, some: Sequence[_Entry]) -> _Kind:
            names, table = [one.name for one in some], partial(_overview, f"{word}s", some)
            return _Kind(word, names, lambda: [one.record() for one in some], table)

        models = entries("model", self.models)
        return {
            "fabrics": entries("fabric", self.fabrics),
            "algorithms": entries("algorithm", self.algorithms),
            "models": models._replace(
                record=lambda: list(map(_model_record, self.models)), table=lambda: _models(self.models)
            ),
            "engines": entries("engine", self.engines),
            "collectives": _Kind("collective", [*COLLECTIVES], lambda: [*COLLECTIVES]),
            "assumptions": _Kind("assumption set", [*SETS], lambda: {name: set_of(name) for name in SETS}),
            "devices": _Kind("device", [*DEVICES], lambda: [*DEVICES]),
            "formats": _Kind("format", FORMATS.names(), _formats, lambda: _formats_table(_formats())),
        }

    def record(self) -> dict[str, Any]:
        """Entries of each kind; of the whole also the matrix."""
        record = {kind: self._every[kind].record() for kind in self.kinds or NAMED}
        return {**record, "matrix": _accepting()} if self.kinds == KINDS else record

    @property
    def headline(self) -> str:
        """How much there is; "" for single names."""
        kinds = COUNTED if self.kinds == KINDS else self.kinds
        counts = [counted(len(self._every[kind].names), self._every[kind].word) for kind in kinds]
        return f"OptiCCL knows {' and '.join(filter(None, (', '.join(counts[:-1]), counts[-1])))}." if counts else ""

    def blocks(self) -> Iterable[Any]:
        """One row a parameter for a single name, one row a name for a kind."""
        if not self.kinds:
            entries = [one.record() for one in (*self.fabrics, *self.algorithms, *self.models, *self.engines)]
            yield from (_parameter_table(e) if e["parameters"] else f"{e['name']}: {e['summary']}" for e in entries)
            for one in self.models:
                yield from _about_model(model(one.name))
        for name in self.kinds:
            kind = self._every[name]
            if kind.table and (name in NAMED or self.kinds == (name,)):
                yield kind.table()
                yield ""
            else:
                yield f"{name}: {', '.join(kind.names)}"
        if self.kinds == KINDS:
            yield "\n`opticcl list NAME` shows the parameters of one of them, with defaults and sources;"
            yield "`opticcl list formats` shows the file formats, `opticcl list algorithms` one kind alone."


def _formats() -> list[dict[str, Any]]:
    return [FORMATS.get(name).record() for name in FORMATS.names()]


def _accepting() -> dict[str, dict[str, list[str]]]:
    """Algorithms that accept each collective, of each fabric of 16 nodes."""
    calls = [AlgorithmCall.of(name) for name in ALGORITHMS.names()]
    requests = [as_request(name) for name in COLLECTIVES]
    accepting: dict[str, dict[str, list[str]]] = {}
    for name in FABRICS.names():
        try:
            fabric = fabric_at_scale(name, MATRIX_NODES)
        except FabricError:  # a fabric of a plugin may have other sizes
            accepting[name] = {one.name: [] for one in requests}
            continue
        accepting[name] = {
            one.name: [call.name for call in calls if call.reason_declined(one, fabric) is None] for one in requests
        }
    return accepting


def _model_record(entry: _Entry) -> dict[str, Any]:
    """A model with its default parameters."""
    built = model(entry.name)
    about = {"sample": built.sample, "weights": built.parameters, "macs": built.macs, "source": built.source}
    return {**entry.record(), **about}


def _overview(kind: str, entries: Sequence[_Entry]) -> FittedTable:
    return FittedTable(
        [
            Column("name", [e.name for e in entries], justify="left"),
            Column("description", [e.summary for e in entries], justify="left", wrap=True),
        ],
        heading=kind,
    )


def _models(entries: Sequence[_Entry]) -> FittedTable:
    built = [model(e.name) for e in entries]
    weights, operations = (
        [format_quantity(float(count), " ").strip() for count in counts]
        for counts in ([m.parameters for m in built], [m.macs for m in built])
    )
    return FittedTable(
        [
            Column("name", [e.name for e in entries], justify="left"),
            Column("description", [e.summary for e in entries], justify="left", wrap=True),
            Column("sample", [m.sample for m in built], 2, "left", wrap=True),
            Column("weights", weights),
            Column("multiply-adds", operations),
        ],
        heading="models",
    )


def _formats_table(entries: Sequence[dict[str, Any]]) -> FittedTable:
    def known(content: str) -> str:
        return content or "-"

    columns = columns_of(
        entries,
        NAME,
        Shown("suffixes", form=" ".join),
        Shown("reads", form=known),
        Shown("writes", form=known),
        Shown("about", "content", wrap=True),
    )
    return FittedTable(columns, heading="file formats")


def _about_model(built: Model) -> Iterator[str]:
    yield f"{built.parameters:,} weights, {built.macs:,} multiply-adds for a sample: {built.sample}"
    yield f"source: {built.source}"


def _parameter_table(entry: dict[str, Any]) -> FittedTable:
    parameters = entry["parameters"]
    defaults = [format_quantity(p["default"], p["unit"]) for p in parameters]
    columns = [
        *columns_of(parameters, Shown("name", "parameter")),
        Column("default", defaults, justify="left"),
        *columns_of(parameters, Shown("about", "description", wrap=True)),
    ]
    if any(p["source"] for p in parameters):
        columns += columns_of(parameters, Shown("source", "source of the default", wrap=True))
    return FittedTable(columns, heading=f"{entry['name']}: {entry['summary']}")
