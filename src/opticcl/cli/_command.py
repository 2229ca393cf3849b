"""Parsing and help of the verbs: panels of `opticcl --help`, groups of verbs, and other names of options."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import click
from click.core import ParameterSource

from opticcl.cli._former import words_of_today
from opticcl.cli._parameters import Argument
from opticcl.cli._request import VerbRequest, parameters_of, topics_of
from opticcl.errors import ParameterError
from opticcl.registry import nearest
from opticcl.report.kit.result import Result

__all__ = ["PANELS", "Verb", "Verbs"]

PANELS = {
    "A collective": ("compile", "compare", "plan", "simulate", "verify", "execute", "synthesize"),
    "A job": ("train", "trace", "jobs", "faults"),
    "A machine": ("list", "machine"),
    "A design space": ("study", "explore"),
    "Your own": ("new",),
}
"""Heading of each panel of `opticcl --help` -> its verbs, in the order in which they are shown; others are not shown."""

ALIASES = {"--html": "--out", "--global-batch": "--batch"}
"""Another spelling of an option -> the option, in the verbs that have it."""

BARE = {"--emulate": ("always", "auto", "never")}
"""Option that may be given without a value -> the value that it has then, and its other values."""


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
        super().__init__(name, params=parameters_of(self._request), help=text, short_help=_first_sentence(text))

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
        """Parse the words after the verb; defaults may stand in a file of the user.

        Args:
            ctx: of this call; receives the values.
            args: words as the user wrote them.
        Returns: words that no parameter takes.
        Raises: ParameterError: an option that has another name now.
        """
        _refuse_former(str(self.name).split(), args)
        options = {name: parameter for parameter in self.get_params(ctx) for name in parameter.opts}
        known = set(options)
        ctx.default_map = self._defaults(ctx, options)
        words = [_without_alias(word) if ALIASES.get(word.partition("=")[0]) in known else word for word in args]
        words = _with_values(words, known)
        return super().parse_args(ctx, self._placed(ctx, words, known) + words)

    def _defaults(self, ctx: click.Context, options: Mapping[str, click.Parameter]) -> dict[str, Any]:
        """Defaults of a file of the user, by the names of parameters.

        Args:
            ctx: of this call.
            options: its parameters by their flags.
        """
        from opticcl.cli._profile import defaults_of

        def names_of_others() -> set[str]:
            top = ctx.find_root().command
            verbs = list(top.walk()) if isinstance(top, Verbs) else []
            flags = {name for _, verb in verbs for one in verb.get_params(ctx) for name in one.opts}
            return {name.removeprefix("--") for name in flags} | {word for path, _ in verbs for word in path.split()}

        long = {name.removeprefix("--"): one for name, one in options.items() if name.startswith("--")}
        return defaults_of(str(self.name), long, names_of_others)

    def _print_defaults(self, ctx: click.Context) -> None:
        """Name the options whose values are of a file of the user, on standard error."""
        from opticcl.cli._profile import profile_path

        used = [
            f"{max(one.opts, key=len)} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"
            for one in self.get_params(ctx)
            if ctx.get_parameter_source(str(one.name)) is ParameterSource.DEFAULT_MAP
            for value in (ctx.params[str(one.name)],)
        ]
        if used:
            click.echo(f"{profile_path()}: {', '.join(used)}", err=True)

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
        topics = {one.name: source.topic for source in self._request.sources() for one in source.parameters}
        topics |= topics_of(self._request)
        by_topic: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if not isinstance(parameter, Argument) and (row := parameter.get_help_record(ctx)):
                by_topic.setdefault(topics.get(str(parameter.name), "Options"), []).append(row)
        for topic, rows in by_topic.items():
            with formatter.section(topic):
                formatter.write_dl(rows)

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

        self._print_defaults(ctx)
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
        takes_notes = any(one.name == "notes" for one in self.params)
        outputs.print_result(result, form=request.form, all_notes=request.notes or not takes_notes)
        return 0 if result.ok else 1


def _first_sentence(text: str) -> str:
    """The first sentence of a help text.

    >>> _first_sentence("How far is it? Not far.")
    'How far is it?'
    """
    sentence = re.match(r".*?[.?](?=\s|$)", text, re.S)
    return sentence[0] if sentence else text


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
    """The verbs of a package, each imported when it is looked up: a module is a verb, a package within it a group of verbs.

    A package may have more of them than modules: `EXTRA_NAMES()` has their names and `extra_verb(name)` returns one, or None.

    Args:
        package: full name; its docstring is the help of a group that has none of its own.
        name: of the group: words after `opticcl`, or the program.
        settings: of `click.Group`.
    """

    def __init__(self, package: str, name: str, **settings: Any) -> None:
        self._package = importlib.import_module(package)
        self._top = not package.count(".") > 1
        text = inspect.getdoc(self._package) or ""
        settings = {"help": text, "short_help": _first_sentence(text), "no_args_is_help": True, **settings}
        super().__init__(name, **settings)
        modules = pkgutil.iter_modules(self._package.__path__)
        self._modules = {one.name.removesuffix("_verb"): one for one in modules if not one.name.startswith("_")}
        self._found: dict[str, click.Command] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs.

        Args: ctx: of the call.
        """
        return sorted([*self._modules, *getattr(self._package, "extra_names", list)()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A verb, or a group of verbs; None: there is none of that name.

        Args:
            ctx: of the call.
            cmd_name: its name.
        """
        if cmd_name not in self._found:
            made = self._made(cmd_name)
            if made is None:
                return None
            self._found[cmd_name] = made
        return self._found[cmd_name]

    def _made(self, name: str) -> click.Command | None:
        path = name if self._top else f"{self.name} {name}"
        if name not in self._modules:
            extra = getattr(self._package, "extra_verb", None)
            return None if extra is None else extra(name)
        module = f"{self._package.__name__}.{self._modules[name].name}"
        if self._modules[name].ispkg:
            return Verbs(module, path)
        return Verb(path, importlib.import_module(module).run)

    def walk(self) -> Iterator[tuple[str, Verb]]:
        """Every verb by its words after `opticcl`, those of groups too."""
        context = click.Context(self)
        for name in self.list_commands(context):
            one = self.get_command(context, name)
            if isinstance(one, Verbs):
                yield from one.walk()
            elif isinstance(one, Verb):
                yield str(one.name), one

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb of a command line and the words after it.

        Args:
            ctx: of the call.
            args: the verb and the words after it.
        Raises: ParameterError: a verb of an earlier version, with the command of today; or there is none, with the nearest.
        """
        if self.get_command(ctx, args[0]) is None:
            path = [] if self._top else str(self.name).split()
            _refuse_former(path, args)
            shown = [name for names in PANELS.values() for name in names] if self._top else self.list_commands(ctx)
            hint = nearest(args[0], shown)
            raise ParameterError(f"{' '.join(path)}{': ' * bool(path)}there is no verb {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section a panel.

        Args:
            ctx: of the call for help.
            formatter: receives the text.
        """
        panels = PANELS if self._top else {"Verbs": tuple(self.list_commands(ctx))}
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        for heading, names in panels.items():
            verbs = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(heading):
                formatter.write_dl([(name, one.get_short_help_str(width)) for name, one in verbs.items() if one])


def _refuse_former(path: Sequence[str], args: Sequence[str]) -> None:
    """Refuse a command of an earlier version.

    Args:
        path: words before the others: the verb, or the group.
        args: the other words.
    Raises: ParameterError: with the command of today.
    """
    words = (*path, *args)
    now = words_of_today(words)
    if now == words:
        return
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    old = words[0] if now[0] != words[0] else next((word for word in options if word not in now), " ".join(words[:2]))
    raise ParameterError(f"{old} is of an earlier version; write opticcl {shlex.join(now)}")
