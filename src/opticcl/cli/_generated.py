"""Options of a verb that are generated from the parameters of functions and dataclasses: names, types, defaults, docstrings.

These are imported when options of their verb are needed, so that `opticcl --help` stays fast and engines of plugins
have options too.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import click

from opticcl.cli._parameters import Option
from opticcl.registry import argument_texts, convert_value, parameter_types, user_parameters
from opticcl.units import format_quantity

__all__ = ["OptionSource", "flag_of", "generated_options"]

_UNIT_ENDS = ("_bits_per_s", "_bytes_per_s", "_bytes", "_s")
_METAVARS = {"bytes": "<size>", "bit/s": "<rate>", "byte/s": "<rate>", "s": "<time>", "dB": "<dB>", "shape": "<shape>"}


@dataclass(frozen=True, slots=True)
class OptionSource:
    """A function or a dataclass whose parameters become options.

    Args:
        options: with an annotated type, a default and a line in the docstring's Args for each parameter.
        owner: name that help texts begin with, such as that of an engine; "" for none.
        flags: option of a parameter where it is not `flag_of`.
        positional: leading parameters that are no options [count].
        topic: heading of the options in the help.
    """

    options: Callable[..., Any]
    owner: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    positional: int = 0
    topic: str = "Options"

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """Those that become options."""
        return user_parameters(self.options, self.positional)


def flag_of(name: str) -> str:
    """Option for a parameter: its name without the unit.

    >>> flag_of("cell_bytes"), flag_of("max_events")
    ('--cell', '--max-events')
    """
    end = next((end for end in _UNIT_ENDS if name.endswith(end)), "")
    return "--" + name.removesuffix(end).replace("_", "-")


class _Option(typing.NamedTuple):
    """One generated option: parameters of one name in one or more sources."""

    flag: str
    hint: Any
    owners: list[str]
    defaults: list[Any]
    text: str


def generated_options(sources: Sequence[OptionSource]) -> list[click.Parameter]:
    """Optional options for parameters; their values are converted to the types of the parameters.

    Args: sources: the functions and classes. Parameters of one name are one option.
    """
    options: dict[str, _Option] = {}
    for source in sources:
        types_of = parameter_types(source.options, source.positional)
        texts = argument_texts(source.options)
        for one in source.parameters:
            flag = source.flags.get(one.name) or flag_of(one.name)
            text = re.sub(r" \[[^]]*\]\.?$|\.$", "", texts[one.name])  # without its unit
            known = options.setdefault(one.name, _Option(flag, types_of[one.name], [], [], text))
            known.owners.append(source.owner)
            known.defaults.append(None if one.default is one.empty else one.default)
    return [_parameter(name, option) for name, option in options.items()]


def _parameter(name: str, option: _Option) -> click.Parameter:
    boolean = option.hint is bool
    flag = f"{option.flag}/{option.flag.replace('--', '--no-', 1)}" if boolean else option.flag
    return Option(
        [name, flag],
        repeatable=False,
        is_flag=boolean or None,
        default=None,
        help=_help(option),
        callback=lambda context, parameter, value: (
            None if value is None else convert_value(value, option.hint, option.flag)
        ),
        metavar=None if boolean else _metavar(option.hint),
    )


def _help(option: _Option) -> str:
    """Owners, text and default of an option."""
    owners = ", ".join(filter(None, option.owners))
    shown = [_shown(default, option) for default in option.defaults]
    if len(set(shown)) == 1:
        default = shown[0]
    else:
        default = ", ".join(f"{owner} {one}" for owner, one in zip(option.owners, shown, strict=True))
    text = f"{owners}: {option.text}" if owners else option.text[:1].upper() + option.text[1:]
    return f"{text} [default: {default}]" if default else text


def _shown(default: Any, option: _Option) -> str:
    """A default in short; "" for None."""
    if default is None:
        return ""
    if option.hint is bool:
        return ("" if default else "no-") + option.flag.removeprefix("--")
    if typing.get_origin(option.hint) is Annotated and option.hint.__metadata__[0] in ("bytes", "s"):
        return format_quantity(default, "B" if option.hint.__metadata__[0] == "bytes" else "s")
    return f"{default:,}" if isinstance(default, int) else str(default)


def _metavar(hint: Any) -> str:
    """Placeholder for a value in the help."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is typing.Literal:
        return f"[{'|'.join(map(str, typing.get_args(hint)))}]"
    if typing.get_origin(hint) is Annotated:
        return _METAVARS[hint.__metadata__[0]]
    return {int: "<int>", float: "<float>"}.get(hint, "<text>")
