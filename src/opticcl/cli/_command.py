"""Parsing and help of the verbs: panels of `opticcl --help`, and other names of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import click
from click.exceptions import Exit

from opticcl.cli._parameters import Argument, make_parameter
from opticcl.errors import ParameterError

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


class Verb(click.Command):
    """A verb of the program.

    Args:
        name: of the verb.
        run: executes it. Its parameters are described by their annotations, and its docstring is the help.
    """

    def __init__(self, name: str, run: Callable[..., None]) -> None:
        text = inspect.getdoc(run) or ""
        parameters = list(_parameters(run))
        callback = click.pass_context(run) if "context" in inspect.signature(run).parameters else run
        super().__init__(name, callback=callback, params=parameters, help=text, short_help=text.partition(".")[0] + ".")
        for parameter in self.params:
            named = next((VALUES[flag] for flag in parameter.opts if flag in VALUES), None)
            if named is not None and parameter.metavar in ("<text>", "<file>", "<float>", "<int>"):
                parameter.metavar = named

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the verb.

        Args:
            ctx: of this call; receives the values.
            args: words as the user wrote them.
        Returns: words that no parameter takes.
        Raises: ParameterError: an option that has another name now.
        """
        known = {name for parameter in self.params for name in parameter.opts}
        for name in (word.partition("=")[0] for word in args):
            now = next((option for option in FORMER.get(name, ()) if option in known), None)
            if now and name not in known:
                value = "FILE" if now == "--out" else "NAME"
                raise ParameterError(f"{self.name}: {name} is {now} now; write {now} {value}")
        words = [_without_alias(word) if ALIASES.get(word.partition("=")[0]) in known else word for word in args]
        return super().parse_args(ctx, _with_values(words, known))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and the options.

        Args:
            ctx: of the call for help.
            formatter: receives the text.
        """
        rows = [parameter.row for parameter in self.params if isinstance(parameter, Argument)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
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


def _parameters(run: Callable[..., None]) -> Iterator[click.Parameter]:
    """Parameters of a verb."""
    hints = get_type_hints(run, include_extras=True)
    for one in inspect.signature(run).parameters.values():
        if hints[one.name] is not click.Context:
            hint, described = hints[one.name].__origin__, hints[one.name].__metadata__[0]
            yield make_parameter(
                one.name, hint, described, **({} if one.default is one.empty else {"default": one.default})
            )


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


class Verbs(click.Group):
    """All verbs, in the panels of `opticcl --help`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section a panel.

        Args:
            ctx: of the call for help.
            formatter: receives the text.
        """
        width = formatter.width - 6 - max(map(len, self.commands))
        for heading, names in PANELS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])
