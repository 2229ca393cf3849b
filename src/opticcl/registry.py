"""Registries: fabrics, algorithms, engines, formats and everything else that is looked up by name.

A package keeps a `Registry`; a module of that package registers its function with a decorator and is found by discovery, so
that no list is edited. Names are compared without case, and a hyphen equals an underscore; a name that is registered twice is
refused; for an unknown name the error gives the nearest known one. `convert_arguments` converts texts to arguments by the
annotations of a function's signature. The functions at the end check the plain arguments of public functions.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Generic, TypeVar

from opticcl.errors import ParameterError, UnitError, UnknownNameError
from opticcl.units import message_size, number_of, quantity, shape, whole_of

__all__ = [
    "Registry",
    "argument_texts",
    "as_list",
    "as_path",
    "as_text",
    "canonical",
    "convert_arguments",
    "convert_given",
    "convert_value",
    "failure_of",
    "is_of_library",
    "known_name",
    "nearest",
    "one_or_more",
    "parameter_types",
    "parse_call",
    "place_of",
    "unit_of",
    "user_parameters",
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
    """A hint with the nearest known name, or with all of them.

    >>> nearest("rinq", ["ring", "tree"])
    "did you mean 'ring'?"
    """
    known = sorted(known)
    if not known:
        return "none is known"
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(known)


def known_name(kind: str, name: str, known: Collection[str]) -> str:
    """The canonical form of a name that is known.

    >>> known_name("shape", "Ring", ["ring", "tree"])
    'ring'

    Args:
        kind: noun for the message.
        name: of the user.
        known: canonical names.
    Raises: UnknownNameError: not among them; the text gives the nearest.
    """
    key = canonical(name)
    if key not in known:
        raise UnknownNameError(f"unknown {kind} {name!r}; {nearest(key, known)}")
    return key


def is_of_library(registered: Any) -> bool:
    """Whether a class or function is part of this library, not of a plugin or a script.

    >>> is_of_library(Registry), is_of_library(dict)
    (True, False)
    """
    return getattr(registered, "__module__", "").startswith("opticcl.")


def place_of(error: BaseException, file: str) -> str:
    """Where a file was when an exception arose: "line 12", "line 12, in Star.usage"; "" if none of its lines was executed.

    Args:
        error: that was raised.
        file: its path.
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == file:
            member = code.co_qualname.replace("<locals>.", "")
            place = f"line {trace.tb_lineno}" + (f", in {member}" if member != "<module>" else "")
        trace = trace.tb_next
    return place


def failure_of(function: Callable[..., Any], what: str, error: Exception) -> str:
    """That a registered function raised an exception, in a line; where it is no part of this library, with its file and line.

    Args:
        function: that is registered, or a class.
        what: was called, as "algorithm ring: step 3".
        error: that it raised.
    """
    said = " ".join(str(error).split())[:200]
    text = f"{what} raised {type(error).__name__}" + f": {said}" * bool(said)
    file = getattr(sys.modules.get(function.__module__), "__file__", None) or ""
    place = "" if is_of_library(function) else place_of(error, file)
    return f"{text} ({os.path.basename(file)}, {place})" if place else text


class Registry(Generic[T]):
    """Named entries of one kind.

    Args:
        kind: noun for messages ("fabric").
        package: dotted name of the package whose modules register entries when they are imported, or None.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, T] = {}
        self._unlisted: set[str] = set()

    def register(self, name: str, *, listed: bool = True) -> Callable[[T], T]:
        """Decorator that registers an entry under `name`.

        Args:
            name: of the entry.
            listed: whether `names` has it.

        Raises: ValueError: the name is taken.
        """
        key = canonical(name)

        def add(entry: T) -> T:
            if key in self._entries:
                raise ValueError(f"{self.kind} {key!r} is registered twice")
            self._entries[key] = entry
            self._unlisted |= set() if listed else {key}
            return entry

        return add

    def _discover(self) -> None:
        if self._package is None:
            return
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{package.__name__}.{module.name}")
        self._package = None  # discovered

    def _load(self, name: str) -> None:
        """Import the module of that name, which registers the entry in most cases; without it, all modules."""
        if name in self._entries or self._package is None:
            return
        if name.isidentifier() and not name.startswith("_") and find_spec(f"{self._package}.{name}") is not None:
            importlib.import_module(f"{self._package}.{name}")
        if name not in self._entries:
            self._discover()

    def names(self, *, unlisted: bool = False) -> tuple[str, ...]:
        """All names that are listed, sorted.

        Args: unlisted: whether those that are not are among them.
        """
        self._discover()
        return tuple(sorted(self._entries.keys() - (set() if unlisted else self._unlisted)))

    def get(self, name: str) -> T:
        """The entry of that name.

        Raises: UnknownNameError: not registered; the text gives the nearest known name.
        """
        self._load(canonical(name))
        return self._entries[known_name(self.kind, name, self._entries)]


# --- "name:key=value,..." ---------------------------------------------------------------------------------------------


def parse_call(text: str, function_of: Callable[[str], Callable[..., Any]] | None = None) -> tuple[str, dict[str, str]]:
    """Name and arguments of "name:key=value,key=value".

    >>> parse_call("ramp:groups=4,racks=2")
    ('ramp', {'groups': '4', 'racks': '2'})

    Args:
        text: of the user.
        function_of: name -> the function or class that takes the arguments, for the message on one without "="; None: any.
    Raises: ParameterError: an argument without "=", or one given twice; those of `function_of`.
    """
    name, _, rest = text.partition(":")
    arguments: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key or not value:
            raise ParameterError(f"{name}: {item!r} is not key=value; write {_call_like(name, item, function_of)}")
        if canonical(key) in arguments:
            raise ParameterError(f"{name}: {key} is given twice")
        arguments[canonical(key)] = value
    return canonical(name), arguments


def _call_like(name: str, item: str, function_of: Callable[[str], Callable[..., Any]] | None) -> str:
    """A call to write in place of one whose argument has no "=": with the parameter that has the type of the argument.

    Args:
        name: as it is written.
        item: the argument.
        function_of: as of `parse_call`.
    """
    for key, hint in {} if function_of is None else parameter_types(function_of(name)).items():
        if key in ("collective", "fabric"):  # the caller gives them
            continue
        try:
            convert_value(item, hint, key)
        except (ParameterError, UnitError):
            continue
        return f"{name}:{key}={item}"
    return f"{name}:key=value,key=value"


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
    """The unit in the annotation of a parameter, or ""."""
    hint = parameter_types(function).get(name)
    choices = (hint, *typing.get_args(hint))
    return next((str(typing.get_args(h)[1]) for h in choices if typing.get_origin(h) is typing.Annotated), "")


def argument_texts(documented: Callable[..., Any]) -> dict[str, str]:
    """Description of each parameter, from the Args of the docstring; names may share one, "hops, offsets: ...".

    >>> argument_texts(nearest)
    {}
    """
    _, _, described = (inspect.getdoc(documented) or "").partition("\nArgs:")
    texts: dict[str, str] = {}
    names: list[str] = []
    for number, line in enumerate(described.splitlines()):
        if line and number and not line.startswith("    "):
            break
        entry = re.match(r"(?: |    )([A-Za-z]\w*(?:, \w+)*): (.*)", line)
        if entry:
            names = entry[1].split(", ")
            texts |= dict.fromkeys(names, entry[2].strip())
        else:
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names if line.strip()}
    return texts


def convert_arguments(
    function: Callable[..., Any], given: Mapping[str, Any], what: str, positional: int = 0
) -> dict[str, Any]:
    """All keyword arguments of `function`: the given ones converted by its annotations, defaults for the rest.

    Args:
        function: its parameters after the first `positional` are keyword arguments with annotations and defaults.
        given: texts or values by name.
        what: name for messages ("ramp").
        positional: leading parameters that users do not give [count].
    Returns: values by name.
    Raises: ParameterError: unknown name, a value of the wrong kind, or a missing argument.
    """
    arguments = {p.name: p.default for p in user_parameters(function, positional) if p.default is not p.empty}
    arguments |= convert_given(function, given, what, positional)
    missing = [p.name for p in user_parameters(function, positional) if p.name not in arguments]
    if missing:
        raise ParameterError(f"{what}: {missing[0]} is missing; write {what}:{missing[0]}=...")
    return arguments


def convert_given(
    function: Callable[..., Any], given: Mapping[str, Any], what: str, positional: int = 0
) -> dict[str, Any]:
    """The given arguments of `function`, converted by its annotations.

    Args: function, given, what, positional: as of `convert_arguments`.
    Raises: ParameterError: unknown name, or a value of the wrong kind.
    """
    if not given:
        return {}
    types = parameter_types(function, positional)
    converted: dict[str, Any] = {}
    for key, value in given.items():
        name = canonical(key)
        if name not in types:
            hint = nearest(name, types) if types else "it takes none"
            raise ParameterError(f"{what}: unknown parameter {key!r}; {hint}")
        converted[name] = convert_value(value, types[name], f"{what}: {name}")
    return converted


@cache
def user_parameters(function: Callable[..., Any], positional: int = 0) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function, or of a class, that users give.

    Args:
        function: any.
        positional: leading parameters that users do not give [count].
    """
    return tuple(inspect.signature(function).parameters.values())[positional:]


@cache
def parameter_types(function: Callable[..., Any], positional: int = 0) -> dict[str, Any]:
    """Annotations of the parameters that users give, with their units; callers must not change them.

    Args: function, positional: as of `user_parameters`.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    return {p.name: hints.get(p.name, str) for p in user_parameters(function, positional)}


def convert_value(value: Any, hint: Any, what: str) -> Any:
    """A value converted to an annotated type.

    >>> convert_value("3.7 us", typing.Annotated[float, "s"], "--latency")
    3.7e-06

    Args:
        value: text, or a value of that type.
        hint: int, float, bool, a Literal, `Annotated` with a unit (`opticcl.units`), or one of them or None or a
            class of our own.
        what: name of the value for messages.
    Raises: ParameterError, UnitError: a value of another kind.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        unit = arguments[1]
        if unit == "bytes" and arguments[0] is int:
            return message_size(value, what)
        return shape(value, what) if unit == "shape" else quantity(value, unit, what)
    if origin is typing.Literal:
        choice = canonical(value) if isinstance(value, str) else value
        if choice not in arguments:
            raise ParameterError(f"{what}: {value!r} is not one of " + ", ".join(map(str, arguments)))
        return choice
    if type(None) in arguments:  # "X | None"
        inner = next(a for a in arguments if a is not type(None))
        left_out = ("none", "auto") if "none" not in typing.get_args(inner) else ("auto",)
        if value is None or (isinstance(value, str) and canonical(value) in left_out):
            return None
        return convert_value(value, inner, what)
    if origin in (typing.Union, types.UnionType):  # "Literal[...] | Kind"
        if any(isinstance(kind, type) and isinstance(value, kind) for kind in arguments):
            return value
        return convert_value(value, arguments[0], what)
    if hint is bool:
        return _boolean(value, what)
    if hint is int:
        return _integer(value, what)
    if hint is float:
        return _number(value, what)
    if hint is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return value


def _boolean(value: Any, what: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ParameterError(f"{what}: {value!r} is neither yes nor no")


def _integer(value: Any, what: str) -> int:
    try:
        number = whole_of(value) if isinstance(value, str) else whole_number(value, what)
    except ValueError:
        raise ParameterError(f"{what}: {_shown(value)} is not a whole number; give one such as 1") from None
    if abs(number) >= 2**40:
        raise ParameterError(f"{what}: {value} is more than any machine has; it must be below 2**40")
    return number


def _number(value: Any, what: str) -> float:
    try:
        number = number_of(value) if isinstance(value, str) else float(value)
    except TypeError:
        raise ParameterError(f"{what}: {value!r} is not a number") from None
    except ValueError as error:
        raise ParameterError(f"{what}: {value!r} {error}") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise ParameterError(f"{what}: {value!r} is not finite")
    return number


# --- Plain arguments --------------------------------------------------------------------------------------------------


def as_text(value: Any, what: str, such_as: str) -> str:
    """Check that a value is a text, and return it.

    Args:
        value: as the caller gave it.
        what: name of the argument, for the message.
        such_as: an example of a good value, for the message.
    Raises: ParameterError: it is no text.
    """
    if isinstance(value, str):
        return value
    raise ParameterError(f"{what}: {_shown(value)} is not text; write one such as {such_as!r}")


def as_path(value: Any, what: str, such_as: str) -> str | os.PathLike[str]:
    """Check that a value is a path or the text of one, and return it.

    Args:
        value: as the caller gave it.
        what: name of the argument, for the message.
        such_as: an example of a good value, for the message.
    Raises: ParameterError: it is neither.
    """
    if isinstance(value, (str, os.PathLike)):
        return value
    raise ParameterError(f"{what}: {_shown(value)} is not a path; write one such as {such_as!r}")


def as_list(value: Any, what: str, such_as: str) -> list[Any]:
    """The elements of a list, an array or another iterable that is no text.

    Args:
        value: as the caller gave it.
        what: name of the argument, for the message.
        such_as: an example of a good value, for the message.
    Raises: ParameterError: it is a text or not iterable.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(f"{what}: {_shown(value)} is not a list; give one such as {such_as}")
    return list(value)


def one_or_more(value: Any) -> list[Any]:
    """The elements of an iterable; a text, or a value that is not iterable, becomes a list of one.

    >>> one_or_more("ideal"), one_or_more(("ideal", "torus")), one_or_more(3)
    (['ideal'], ['ideal', 'torus'], [3])
    """
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)


def whole_number(value: Any, what: str) -> int:
    """A whole number of Python or NumPy, as an `int`.

    >>> whole_number(8, "nodes")
    8

    Args:
        value: as the caller gave it.
        what: name of the argument, for the message.
    Raises: ParameterError: a float (1.0 too), a bool, a text, any other type, or beyond 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterError(f"{what}: {_shown(value)} is not a whole number; give one such as 1")
    if abs(int(value)) >= 2**63:
        raise ParameterError(f"{what}: {_shown(value)} is more than any machine has; give a smaller one")
    return int(value)


def _shown(value: Any) -> str:
    """Any value in one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
