"""Defaults of options that a user keeps in a file: `opticcl.toml` in this folder, or in the folder of the user's settings.

equal = "rate=400Gb/s"
nodes = 64

[compare]
columns = "all"

[machine.cost]
prices = "ramp_hpc"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from opticcl.errors import ParameterError
from opticcl.registry import nearest

__all__ = ["defaults_of", "profile_path"]

FILE = "opticcl.toml"


def profile_path() -> Path | None:
    """The file that is used; None: there is none."""
    for folder in (Path(), Path(click.get_app_dir("opticcl"))):
        if (folder / FILE).is_file():
            return folder / FILE
    return None


def defaults_of(
    verb: str, options: Mapping[str, click.Parameter], options_of_others: Callable[[], set[str]]
) -> dict[str, Any]:
    """Defaults of the options of a verb, by the names of their parameters.

    Args:
        verb: words after `opticcl`.
        options: its options by their long names, without dashes.
        options_of_others: returns the names of all options and verbs; called where a name is none of its own.
    Raises: ParameterError: the file cannot be read, or has a name that no verb has, or a value of another kind.
    """
    path = profile_path()
    if path is None:
        return {}
    written, own = _read(path), {}
    table: Any = written
    for word in verb.split():
        table = table.get(word, {}) if isinstance(table, dict) else {}
    for key, value in written.items():
        name = key.replace("_", "-")
        if name in options and not isinstance(value, dict):
            own[name] = value
        elif name not in options and key not in (known := options_of_others()) and name not in known:
            raise ParameterError(f"{path}: no verb has the option {key}; {nearest(name, known)}")
    if not isinstance(table, dict):
        raise ParameterError(f"{path}: {verb} is a verb; write its options below [{verb.replace(' ', '.')}]")
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in options:
            raise ParameterError(f"{path}: {verb} has no option {key}; {nearest(name, options)}")
        own[name] = value
    return {str(options[name].name): _value(path, name, options[name], value) for name, value in own.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path}: is not valid TOML: {error}") from None


def _value(path: Path, name: str, option: click.Parameter, value: Any) -> Any:
    """A value as the command line gives it: texts, or whether a switch is on."""
    if isinstance(option, click.Option) and option.is_flag:
        if not isinstance(value, bool):
            raise ParameterError(f"{path}: {name}={value!r} is neither true nor false")
        return value
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, (dict, list, bool)) for one in values):
        raise ParameterError(f"{path}: {name}={value!r} is not text, a number, or a list of these")
    return tuple(map(str, values))
