"""Options and arguments of the verbs: how they are described, and how their texts become values."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from opticcl.errors import ParameterError
from opticcl.units import number_of, whole_of

__all__ = [
    "NUMBER",
    "WHOLE",
    "Argument",
    "Described",
    "Option",
    "make_parameter",
]


@dataclass(frozen=True, slots=True)
class Described:
    """What the command line shows of a value that a user gives.

    Args:
        flags: names of the option; an argument has none.
        help: text of the help.
        metavar: placeholder of the value in the help; empty: that of its type.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""


class Argument(click.Argument):
    """An argument that the help explains.

    Args:
        name: of the parameter.
        about: text of the help.
        placeholder: of the value.
        metavar: name in the help; empty: that of the parameter.
        settings: of `click.Argument`.
    """

    def __init__(self, name: str, about: str, placeholder: str, metavar: str = "", **settings: Any) -> None:
        super().__init__([name], **settings)
        shown = metavar or name
        self.metavar = (shown if self.required else f"[{shown}]") + "..." * (self.nargs != 1)
        self.row = (
            f"{shown}{'...' * (self.nargs != 1)} {placeholder}",
            about + "  [required]" * self.required,
        )
        """Both columns of the help."""


class Option(click.Option):
    """An option that takes a value. A second value is refused, where it takes one, instead of losing the first.

    Args:
        declared: name of the parameter and flags.
        repeatable: whether it takes several values.
        settings: of `click.Option`; `default` is one value where it takes one.
    """

    def __init__(self, declared: Sequence[str], *, repeatable: bool, **settings: Any) -> None:
        if not repeatable and settings.get("default") is not None:
            settings["default"] = (settings["default"],)
        super().__init__(declared, multiple=True, show_default=True, **settings)
        self.repeatable = repeatable

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The values, or the one value; None if it is not given.

        Args:
            ctx: of the call.
            value: texts.
        Raises: ParameterError: there are several, and it takes one.
        """
        if not self.repeatable and value is not None and len(value) > 1:
            raise ParameterError(
                f"{ctx.command.name}: {_long_flag(self)} is given {len(value)} times and takes one value; give it once"
            )
        values = super().type_cast_value(ctx, value)
        return values if self.repeatable else next(iter(values), None)


class _Number(click.ParamType[Any]):
    """A number that is written in the digits 0 to 9.

    Args:
        read: converts a text; its ValueError says what is wrong.
        example: of such a number, for messages.
    """

    name = "number"

    def __init__(self, read: Callable[[str], float], example: str) -> None:
        self._read, self._example = read, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that a text writes; a default is one already.

        Raises: ParameterError: it writes none; with the option, the text and an example.
        """
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            assert param is not None
            raise ParameterError(f"{_long_flag(param)}: {value!r} {error}; give one such as {self._example}") from None


class _Choice(click.Choice[str]):
    """One of some words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word.

        Raises: ParameterError: it is another one; with the option, all words and the nearest.
        """
        if value in self.choices:
            return str(value)
        assert param is not None
        close = difflib.get_close_matches(str(value), self.choices, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ParameterError(f"{_long_flag(param)}: {value!r} is not one of {', '.join(self.choices)}{hint}")


WHOLE = _Number(whole_of, "8")
NUMBER = _Number(number_of, "0.5")

_TYPES = {
    int: (WHOLE, "<int>"),
    float: (NUMBER, "<float>"),
    str: (click.STRING, "<text>"),
    Path: (Path, "<file>"),
}
"""Type of a value -> the framework's and a placeholder."""


def _long_flag(parameter: click.Parameter) -> str:
    """The longest name of an option."""
    return max(parameter.opts, key=len)


def _value_type(hint: Any) -> tuple[Any, bool]:
    """The type of one value of an annotation, and whether it takes several.

    >>> _value_type(int | None), _value_type(tuple[str, ...])
    ((<class 'int'>, False), (<class 'str'>, True))
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    return hint, False


def _names_of(metavar: str) -> Callable[[click.Context, click.Parameter, str], list[str]] | None:
    """What a shell offers for a value: the registered names that begin with its first letters; None: nothing is known.

    Args: metavar: of the option, such as "<fabric>".
    """
    kind = metavar.strip("<>")
    if kind not in ("fabric", "algorithm", "collective", "model", "engine"):
        return None

    def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from opticcl.collective import COLLECTIVES
        from opticcl.report.registries import REGISTRIES

        known = COLLECTIVES if kind == "collective" else REGISTRIES[kind].names()
        return [one for one in known if one.startswith(incomplete)]

    return names


def make_parameter(name: str, hint: Any, described: Described, **default: Any) -> click.Parameter:
    """A parameter of the framework.

    Args:
        name: of the value.
        hint: its annotation: bool, int, float, str, Path or a Literal of texts; a tuple of any number of them; or None.
        described: its description.
        default: `default` where it has one; otherwise it is required.
    """
    kind, many = _value_type(hint)
    if not described.flags:
        settings = {"required": not default, "nargs": -1 if many else 1}
        type, placeholder = (Path, "<path>") if kind is Path else _TYPES[kind]
        return Argument(name, described.help, placeholder, described.metavar, type=type, **settings)
    declared = [name, *described.flags]
    if kind is bool:
        return click.Option(declared, is_flag=True, help=described.help, **default)
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        type, placeholder = _Choice(choices), f"<{'|'.join(choices)}>"
    else:
        type, placeholder = _TYPES[kind]
    return Option(
        declared,
        repeatable=many,
        shell_complete=_names_of(described.metavar),
        type=type,
        required=not default,
        metavar=described.metavar or placeholder,
        help=described.help,
        **default,
    )
