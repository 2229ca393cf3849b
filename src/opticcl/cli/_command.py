"""Parsing and help of the verbs: panels of `opticcl --help`, and other names of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

import click
from click.core import ParameterSource

from opticcl.cli._parameters import Argument
from opticcl.cli._request import VerbRequest, parameters_of
from opticcl.errors import ParameterError
from opticcl.report.kit.result import Result

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
    "A job": ("trace", "train", "jobs", "traffic", "faults"),
    "A machine": ("list", "budget", "cost", "netlist", "control", "warm"),
    "Research": ("papers", "study", "explore", "new"),
}
"""Heading of each panel of `opticcl --help` -> its verbs, in the order in which they are shown."""

ALIASES = {"--html": "--out", "--global-batch": "--batch"}
"""Another spelling of an option -> the option, in the verbs that have it."""

BARE = {"--emulate": ("always", "auto", "never")}
"""Option that may be given without a value -> the value that it has then, and its other values."""

FORMER = {
    "--output": ("--out",),
    "--picture": ("--out",),
    "--preset": ("--assumptions", "--optics"),
    "--node-rate": ("--equal",),
}
"""Option of an earlier version -> the options that replace it, in the verbs that have them."""

VALUES = {"--out": "FILE", "--equal": "rate=800Gb/s"}
"""Option -> a value that it takes, where that is no name."""


class Verb(click.Command):
    """A verb of the program.

    Args:
        name: of the verb.
        run: executes it and returns the answer, or the exit code of a process that prints none. Its docstring is the help, and
            the annotation of its parameter `request` the class whose fields are the options.
    """

    def __init__(self, name: str, run: Callable[[Any], Result | int]) -> None:
        self._run = run
        self._request: type[VerbRequest] = inspect.signature(run, eval_str=True).parameters["request"].annotation
        text = inspect.getdoc(run) or ""
        short = text.partition(".")[0] + "."
        super().__init__(name, params=parameters_of(self._request), help=text, short_help=short)

    @cached_property
    def generated(self) -> list[click.Parameter]:
        """Options that are generated from other classes, which are imported now."""
        sources = self._request.sources()
        if not sources:
            return []
        from opticcl.cli._generated import generated_options

        return generated_options(sources)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All parameters, `--help` last.

        Args: ctx: of the call.
        """
        *own, help_option = super().get_params(ctx)
        return [*own, *self.generated, help_option]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the verb.

        Args:
            ctx: of this call; receives the values.
            args: words as the user wrote them.
        Returns: words that no parameter takes.
        Raises: ParameterError: an option that has another name now.
        """
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        for name in (word.partition("=")[0] for word in args):
            now = next((option for option in FORMER.get(name, ()) if option in known), None)
            if now and name not in known:
                raise ParameterError(f"{self.name}: {name} is {now} now; write {now} {VALUES.get(now, 'NAME')}")
        words = [_without_alias(word) if ALIASES.get(word.partition("=")[0]) in known else word for word in args]
        words = _with_values(words, known)
        return super().parse_args(ctx, self._placed(ctx, words, known) + words)

    def _placed(self, ctx: click.Context, words: list[str], known: set[str]) -> list[str]:
        """Options for words without one, where the verb takes no arguments: a number is `--nodes`, a name `--fabric`.

        Args:
            ctx: of this call; the words themselves are no error then.
            words: after the verb.
            known: options of the verb.
        """
        if any(isinstance(one, click.Argument) for one in self.params):
            return []
        try:
            _, alone, _ = self.make_parser(ctx).parse_args(list(words))
        except click.UsageError:  # which `parse_args` reports
            return []
        flags = ["--nodes" if word.strip("0123456789") == "" else "--fabric" for word in alone]
        ctx.allow_extra_args = set(flags) <= known
        if not ctx.allow_extra_args:
            return []
        return [part for flag, word in zip(flags, alone, strict=True) for part in (flag, word)]

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

    def request(self, ctx: click.Context) -> VerbRequest:
        """The values of a call.

        Args: ctx: of the call, with the values.
        """
        values = {one.name: ctx.params[one.name] for one in self.params}
        generated = {one.name: ctx.params[one.name] for one in self.generated if ctx.params[one.name] is not None}
        given = frozenset(name for name in values if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE)
        return self._request(verb=str(self.name), given=given, generated=generated, **values)

    def invoke(self, ctx: click.Context) -> int:
        """Run the verb; its files appear when it has ended, all of them or, where it is refused, none.

        Args: ctx: of this call, with the values.
        Returns: the exit code.
        """
        from opticcl.files import all_or_none

        with all_or_none():
            try:
                return self._answer(self.request(ctx))
            except BrokenPipeError as error:  # its reader has left, and its files are complete
                left = error
        raise left

    def _answer(self, request: VerbRequest) -> int:
        """Write and print the answer of a call; returns the exit code."""
        with request.progress as progress:
            outputs = request.outputs
            result = self._run(request)
            if isinstance(result, int):
                return result
            outputs.write_result(result, progress)
        outputs.print_result(result, json=request.json, all_notes=request.notes)
        return 0 if result.ok else 1


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
