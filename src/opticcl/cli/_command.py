"""Parsing and help of the verbs: panels of `opticcl --help`, and options that are given twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import Exit

from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

__all__ = ["PANELS", "Verb", "Verbs"]

PANELS = {
    "A collective": (
        "compile",
        "plan",
        "verify",
        "simulate",
        "execute",
        "run",
        "compare",
        "sweep",
        "synthesize",
        "convert",
    ),
    "A job": ("train", "jobs", "traffic", "faults"),
    "A machine": ("list", "budget", "cost", "netlist", "control", "warm"),
    "Research": ("papers", "study", "explore"),
}
"""Heading of each panel of `opticcl --help` -> its verbs, in the order in which they are shown."""

ALIASES = {"--html": "--out"}
"""Another spelling of an option -> the option, in the verbs that have it."""

BARE = {"--emulate": ("always", "auto", "never")}
"""Option that may be given without a value -> the value that it has then, and its other values."""

FORMER = {"--output": ("--out",), "--picture": ("--out",), "--preset": ("--assumptions", "--optics")}
"""Option of an earlier version -> the options that replace it, in the verbs that have them."""


VALUES = {
    "--fabric": "<fabric>",
    "--recorded-on": "<fabric>",
    "--algorithm": "<algorithm>",
    "--collective": "<collective>",
    "--size": "<size>",
    "--from": "<size>",
    "--to": "<size>",
    "--node-rate": "<rate>",
    "--memory": "<rate>",
    "--clock": "<frequency>",
    "--time-limit": "<time>",
    "--timeout": "<time>",
    "--jitter": "<time>",
    "--job": "<nodes>",
    "--place": "<nodes>",
    "--free": "<job>",
    "--engine": "<engine>",
    "--equal": "<what>=<value>",
    "--assumptions": "<name>",
    "--optics": "<preset>",
    "--budget": "<preset>",
    "--prices": "<price list>",
    "--verdict": "<verdict>",
    "--model": "<model>",
    "--workload": "<trace>",
    "--device": "<device>",
    "--precision": "<precision>",
    "--dtype": "<type>",
    "--groups": "<scaled|machine>",
    "--emulate": "<auto|always|never>",
    "--straggler": "<device>=<factor>",
    "--times": "<file>",
    "--load": "<share>",
    "--skew": "<factor>",
    "--flows": "<sizes>",
    "--gaps": "<gaps>",
    "--scheduler": "<scheduler>",
    "--reserve": "<what>=<count>",
}
"""Option -> kind of its value in help texts; of other options the type of the value is shown."""

_NUMBERS = {int: ("a whole number", "8"), float: ("a number", "0.5")}
_TYPES = {str: "<text>", list[str]: "<text>", Path: "<file>"}


class _Plain:
    """Conversion of the texts of an option, in place of the framework's, which takes a tenth of a second to load.

    Args:
        of: converts a text, or a value that is converted already.
        many: whether the option takes several.
    """

    def __init__(self, of: Callable[[Any], Any], many: bool) -> None:
        self._of, self._many = of, many

    def coerce(self, value: Any, param: object, ctx: object) -> Any:
        """The converted value; None, or none of several, where nothing is given.

        Args:
            value: text, texts, or a default.
            param, ctx: not used.
        """
        if self._many:
            return [self._of(one) for one in value or ()]
        return None if value is None else self._of(value)


_PLAIN = {
    bool: _Plain(bool, many=False),
    str: _Plain(str, many=False),
    int: _Plain(int, many=False),
    float: _Plain(float, many=False),
    Path: _Plain(Path, many=False),
    list[str]: _Plain(str, many=True),
    list[float]: _Plain(float, many=True),
    list[Path]: _Plain(Path, many=True),
}
"""Type of an option -> its conversion; numbers are checked before (`_check_number`), switches are on or off already."""


def _convert_plainly(parameters: Iterable[Any]) -> None:
    """Have options of plain types converted without the framework.

    Args: parameters: of a verb; changed.
    """
    for parameter in parameters:
        plain = _PLAIN.get(parameter.type_descriptor.annotation)
        if plain is not None:
            parameter.get_runtime_param = lambda plain=plain: plain


class Verb(TyperCommand):
    """A verb. An option that takes one value and is given twice is refused instead of losing the first value."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and not parameter.is_flag and parameter.metavar is None:
                named = next((VALUES[name] for name in parameter.opts if name in VALUES), None)
                parameter.metavar = named or _TYPES.get(parameter.type_descriptor.annotation)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words after the verb.

        Args:
            ctx: of this call; receives the values.
            args: words as the user wrote them.
        Returns: words that no parameter takes.
        Raises: ParameterError: a single-valued option is given twice, or an option that has another name now.
        """
        known = {name for parameter in self.params for name in parameter.opts}
        for name in (word.partition("=")[0] for word in args):
            now = next((option for option in FORMER.get(name, ()) if option in known), None)
            if now and name not in known:
                value = "FILE" if now == "--out" else "NAME"
                raise ParameterError(f"{self.name}: {name} is {now} now; write {now} {value}")
        words = [_without_alias(word) if ALIASES.get(word.partition("=")[0]) in known else word for word in args]
        words = _with_values(words, known)
        texts, _, given = self.make_parser(ctx).parse_args(args=list(words))
        for parameter, count in Counter(given).items():
            takes_one = isinstance(parameter, TyperOption) and not parameter.multiple and not _is_switch(parameter)
            if takes_one and count > 1:
                name = max(parameter.opts, key=len)
                raise ParameterError(f"{self.name}: {name} is given {count} times and takes one value; give it once")
        for parameter in set(given):
            _check_number(parameter, texts.get(parameter.name))
        _convert_plainly(self.get_params(ctx))
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Context) -> Any:
        """Run the verb; its files appear when it has ended, all of them or, where it is refused, none.

        Args: ctx: of this call, with the values.
        """
        from opticcl.files import all_or_none

        ended: Exception | None = None
        with all_or_none():
            try:
                return super().invoke(ctx)
            except (Exit, BrokenPipeError) as leave:  # its answer is complete, or its reader has left
                ended = leave
        raise ended


def _check_number(parameter: object, text: object) -> None:
    """Refuse a text that is no number where an option takes one.

    Raises: ParameterError: with the option and the text.
    """
    if not isinstance(parameter, TyperOption):
        return
    annotation = parameter.type_descriptor.annotation
    kind = float if annotation == list[float] else annotation
    form, example = _NUMBERS.get(kind, ("", ""))
    if not form or not isinstance(text, (str, list)):
        return
    from opticcl.units import number_of, whole_of

    for one in [text] if isinstance(text, str) else text:
        try:
            whole_of(one) if kind is int else number_of(one)
        except ValueError as error:
            name = max(parameter.opts, key=len)
            raise ParameterError(f"{name}: {one!r} {error}; give one such as {example}") from None


def _with_values(words: list[str], known: set[str]) -> list[str]:
    """The words, with the value of each option that is given without one.

    Args:
        words: after the verb.
        known: options of the verb.

    >>> _with_values(["--emulate", "plan.json"], {"--emulate"}), _with_values(["--emulate", "auto"], {"--emulate"})
    (['--emulate=always', 'plan.json'], ['--emulate', 'auto'])
    """
    end = words.index("--") if "--" in words else len(words)
    following = [*words[1:end], ""][:end]
    head = [
        f"{word}={BARE[word][0]}" if word in known and word in BARE and after not in BARE[word] else word
        for word, after in zip(words[:end], following, strict=True)
    ]
    return head + words[end:]


def _without_alias(word: str) -> str:
    name, equals, value = word.partition("=")
    return ALIASES[name] + equals + value


def _is_switch(option: TyperOption) -> bool:
    """Whether it is on or absent, so that giving it twice loses nothing."""
    return option.is_flag and not option.secondary_opts


class Verbs(TyperGroup):
    """All verbs, in the panels of `opticcl --help`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words up to the verb.

        Args:
            ctx: of this call; receives the values.
            args: words as the user wrote them.
        Returns: the words from the verb on.
        """
        _convert_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write one section a panel.

        Args:
            ctx: of the call for help.
            formatter: receives the text.
        """
        width = formatter.width - 6 - max(map(len, self.commands))
        for heading, names in PANELS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])
