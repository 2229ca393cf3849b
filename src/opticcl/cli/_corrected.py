"""The command that a refusal means: the words of the user with the name, the unit or the value that its text suggests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

from opticcl.errors import OpticclError

__all__ = ["corrected"]

SUGGESTIONS = (
    r"no option (?P<wrong>-\S+); did you mean (?P<right>-[\w-]+)\?",
    r"'(?P<wrong>[^' ]+)'[^']*; did you mean '?(?P<right>[^'? ]+)'?\?",
    r"'(?P<wrong>[^' ]+)' has no unit; try (?P<right>[^\s;,]+)",
    r"'(?P<wrong>[^']+)' is not a (?:whole )?number; give one such as (?P<right>[0-9.]+)",
    r"(?P<wrong>[0-9]+) nodes\b.*; nearest: (?P<right>[0-9]+)",
)
"""Texts of refusals with a wrong word and a right one."""

VALUES = {
    "<fabric>": "ramp", "<algorithm>": "auto", "<collective>": "all_reduce", "<model>": "vgg19", "<size>": "100MB",
    "<int>": "64", "<engine>": "flow", "<name>": "common",
}  # fmt: skip
"""Placeholder of a value -> a value, for an option that is given without one."""


def corrected(words: Sequence[str], error: Exception, why: str, group: click.Group) -> str:
    """The command that the user may have meant, such as "opticcl compare -n 64"; "" where nothing suggests one.

    Args:
        words: of the command line.
        error: with which it is refused.
        why: text of the refusal.
        group: the command line, which the corrected words are parsed by.
    """
    fixed = _fixed(list(words), error, why, group)
    if fixed is None or fixed == list(words) or not _parses(fixed, group):
        return ""
    return shlex.join(["opticcl", *fixed])


def _fixed(words: list[str], error: Exception, why: str, group: click.Group) -> list[str] | None:
    """The words with what the refusal suggests; None: it suggests nothing."""
    if isinstance(error, click.BadOptionUsage) and "requires an argument" in error.message:
        return _with_value(words, error.option_name, group)
    names = set(group.list_commands(click.Context(group)))
    if words and words[0].startswith("-") and (verb := next((word for word in words if word in names), "")):
        return [verb, *(word for word in words if word != verb)]
    for pattern in SUGGESTIONS:
        if match := re.search(pattern, why):
            return _replaced(words, match["wrong"], match["right"])
    return None


def _with_value(words: list[str], name: str, group: click.Group) -> list[str] | None:
    """The words with a value behind the option that has none.

    Args:
        words: of the command line.
        name: of the option, as it is written there.
        group: the command line.
    """
    command, _ = _verb_of(words, group)
    option = next((one for one in command.get_params(click.Context(command)) if name in one.opts), None)
    value = None if option is None else VALUES.get(str(option.metavar))
    if value is None or name not in words:
        return None
    at = len(words) - words[::-1].index(name)
    return [*words[:at], value, *words[at:]]


def _replaced(words: list[str], wrong: str, right: str) -> list[str] | None:
    """The words with a name or a value in place of another one, where it occurs in one word alone."""
    whole = re.compile(rf"(?<![\w.-]){re.escape(wrong)}(?![\w.-])")
    places = [i for i, word in enumerate(words) if whole.search(word)]
    if len(places) != 1:
        return None
    return [whole.sub(lambda _: right, word, count=1) if i == places[0] else word for i, word in enumerate(words)]


def _verb_of(words: list[str], group: click.Group) -> tuple[click.Command, list[str]]:
    """The verb of a command line, and the words after it.

    Raises: OpticclError: there is none.
    """
    command: click.Command = group
    while isinstance(command, click.Group):
        _, verb, words = command.resolve_command(click.Context(command), words)
        assert verb is not None
        command = verb
    return command, words


def _parses(words: list[str], group: click.Group) -> bool:
    """Whether there are such a verb and such options."""
    try:
        command, left = _verb_of(words, group)
        command.make_context(command.name, left).close()
    except (OpticclError, click.exceptions.Exit, click.ClickException, IndexError):
        return False
    return True
