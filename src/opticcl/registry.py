"""Names for makers: fabrics, algorithms, collectives and whatever else is looked up by name.

A room keeps a `Registry`; a file of that room registers its function with a decorator and is found by discovery, so that
no list is edited. Names are case-folded, and a hyphen is an underscore; doubles are refused; an unknown name is answered
with the nearest known one. `convert_arguments` turns texts into arguments by the annotations of a function's signature;
where a public function takes plain arguments, the functions at the end refuse what is none of the kind.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from numbers import Integral
from typing import Any, Generic, TypeVar

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.units import quantity, shape

__all__ = [
    "Registry",
    "as_list",
    "as_path",
    "as_text",
    "canonical",
    "convert_arguments",
    "nearest",
    "one_or_more",
    "parse_call",
    "unit_of",
    "whole_number",
    "write_call",
]

T = TypeVar("T")


def canonical(name: str) -> str:
    """The form in which names are compared: lower case, underscores.

    >>> canonical("All-Reduce")
    'all_reduce'
    """
    return name.strip().lower().replace("-", "_")


def nearest(name: str, known: Iterable[str]) -> str:
    """Hint with the nearest known name, or with all of them.

    >>> nearest("rinq", ["ring", "tree"])
    "did you mean 'ring'?"
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(known)


class Registry(Generic[T]):
    """Named entries of one kind.

    Args:
        kind: what is registered, in words ("fabric").
        package: dotted package whose modules register themselves when imported, or None.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers an entry under `name`.

        Raises: ValueError: the name is taken (an error of the developer).
        """
        key = canonical(name)

        def add(entry: T) -> T:
            if key in self._entries:
                raise ValueError(f"{self.kind} {key!r} is registered twice")
            self._entries[key] = entry
            return entry

        return add

    def _discover(self) -> None:
        if self._package is None:
            return
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{package.__name__}.{module.name}")
        self._package = None  # once is enough

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        self._discover()
        return tuple(sorted(self._entries))

    def get(self, name: str) -> T:
        """The entry of that name.

        Raises: UnknownNameError: there is none; the text gives the nearest known name.
        """
        self._discover()
        key = canonical(name)
        if key not in self._entries:
            raise UnknownNameError(f"unknown {self.kind} {name!r}; {nearest(key, self._entries)}")
        return self._entries[key]


# --- "name:key=value,..." ---------------------------------------------------------------------------------------------


def parse_call(text: str) -> tuple[str, dict[str, str]]:
    """Name and arguments of "name:key=value,key=value".

    >>> parse_call("ramp:groups=4,racks=2")
    ('ramp', {'groups': '4', 'racks': '2'})

    Raises: ParameterError: an argument without "=", or one given twice.
    """
    name, _, rest = text.partition(":")
    arguments: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key or not value:
            raise ParameterError(f"{name}: {item!r} is not key=value; write {name}:key=value,key=value")
        if canonical(key) in arguments:
            raise ParameterError(f"{name}: {key} is given twice")
        arguments[canonical(key)] = value
    return canonical(name), arguments


def write_call(name: str, arguments: Mapping[str, Any]) -> str:
    """The text that `parse_call` reads.

    >>> write_call("oddl", {"shape": (4, 2), "wavelengths": 3})
    'oddl:shape=4x2,wavelengths=3'
    """

    def text(value: Any) -> str:
        if isinstance(value, tuple):
            return "x".join(map(str, value))
        return f"{value:.12g}" if isinstance(value, float) else str(value)

    return name + ":" * bool(arguments) + ",".join(f"{key}={text(value)}" for key, value in arguments.items())


def unit_of(function: Callable[..., Any], name: str) -> str:
    """Unit that a parameter's annotation gives, or ""."""
    hint = typing.get_type_hints(function, include_extras=True).get(name)
    choices = (hint, *typing.get_args(hint))
    return next((str(typing.get_args(h)[1]) for h in choices if typing.get_origin(h) is typing.Annotated), "")


def convert_arguments(
    function: Callable[..., Any], given: Mapping[str, Any], what: str, positional: int = 0
) -> dict[str, Any]:
    """All keyword arguments of `function`: the given ones converted by its annotations, defaults for the rest.

    Args:
        function: its parameters after the first `positional` are keyword arguments with annotations and defaults.
        given: texts or values by name.
        what: name for messages ("ramp").
        positional: leading parameters that are not the user's.
    Raises: ParameterError: unknown key, or a value of the wrong kind.
    """
    parameters, hints = _signature(function)
    parameters = parameters[positional:]
    known = {p.name: p for p in parameters}
    arguments = {name: p.default for name, p in known.items() if p.default is not inspect.Parameter.empty}
    for key, value in given.items():
        name = canonical(key)
        if name not in known:
            hint = nearest(name, known) if known else "it takes none"
            raise ParameterError(f"{what}: unknown parameter {key!r}; {hint}")
        arguments[name] = _convert(value, hints.get(name, str), f"{what}: {name}")
    missing = [name for name in known if name not in arguments]
    if missing:
        raise ParameterError(f"{what}: {missing[0]} is missing; write {what}:{missing[0]}=...")
    return arguments


@cache
def _signature(function: Callable[..., Any]) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    return list(inspect.signature(function).parameters.values()), typing.get_type_hints(function, include_extras=True)


def _convert(value: Any, hint: Any, what: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        unit = arguments[1]
        return shape(value, what) if unit == "shape" else quantity(value, unit, what)
    if origin is typing.Literal:
        choice = canonical(value) if isinstance(value, str) else value
        if choice not in arguments:
            raise ParameterError(f"{what}: {value!r} is not one of " + ", ".join(map(str, arguments)))
        return choice
    if type(None) in arguments:  # "X | None"
        if value is None or (isinstance(value, str) and canonical(value) in ("none", "auto")):
            return None
        return _convert(value, next(a for a in arguments if a is not type(None)), what)
    if hint is bool:
        return _boolean(value, what)
    if hint is int:
        return _integer(value, what)
    if hint is float:
        return _number(value, what)
    return value


def _boolean(value: Any, what: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ParameterError(f"{what}: {value!r} is neither yes nor no")


def _integer(value: Any, what: str) -> int:
    written = isinstance(value, str) and value.lstrip("+-").isdecimal()
    number = int(value) if written else whole_number(value, what)
    if abs(number) >= 2**40:
        raise ParameterError(f"{what}: {value} is more than any machine has; it must be below 2**40")
    return number


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{what}: {value!r} is not a number") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise ParameterError(f"{what}: {value!r} is not finite")
    return number


# --- Plain arguments --------------------------------------------------------------------------------------------------


def as_text(value: Any, what: str, such_as: str) -> str:
    """A text as it is.

    Args:
        what: name of the argument, for the message.
        such_as: what could stand there.
    Raises: ParameterError: it is none.
    """
    if isinstance(value, str):
        return value
    raise ParameterError(f"{what}: {_shown(value)} is no text; write one such as {such_as!r}")


def as_path(value: Any, what: str, such_as: str) -> str | os.PathLike[str]:
    """A path, or the text of one, as it is; see `as_text`."""
    if isinstance(value, (str, os.PathLike)):
        return value
    raise ParameterError(f"{what}: {_shown(value)} is no path; write one such as {such_as!r}")


def as_list(value: Any, what: str, such_as: str) -> list[Any]:
    """What there is in a list, an array or the like, but not in a text; see `as_text`."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(f"{what}: {_shown(value)} is no list; give one such as {such_as}")
    return list(value)


def one_or_more(value: Any) -> list[Any]:
    """The same where one alone will do: a text, or what nothing can be in, is a list of one.

    >>> one_or_more("ideal"), one_or_more(("ideal", "torus")), one_or_more(3)
    (['ideal'], ['ideal', 'torus'], [3])
    """
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)


def whole_number(value: Any, what: str) -> int:
    """A whole number of Python or NumPy, as Python's.

    >>> whole_number(8, "nodes")
    8

    Args: what: name of the argument, for the message.
    Raises: ParameterError: a fraction (1.0 too), a truth value, a text, anything else, or more than 64 bits hold.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterError(f"{what}: {_shown(value)} is not a whole number; give one such as 1")
    if abs(int(value)) >= 2**63:
        raise ParameterError(f"{what}: {_shown(value)} is more than any machine has; give a smaller one")
    return int(value)


def _shown(value: Any) -> str:
    """A value in one short line, whatever it is."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
