"""The command line: one file a verb, found by discovery.

Exit code 0: good; 1: the answer is no; 2: there is no answer, since the input or this program is wrong; 130: interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from opticcl.cli._command import Verb, Verbs
from opticcl.cli._corrected import corrected
from opticcl.cli._former import words_of_today
from opticcl.cli._parameters import Option
from opticcl.cli._request import VerbRequest
from opticcl.errors import OpticclError
from opticcl.interrupts import INTERRUPTED, is_interrupted

__all__ = ["command_group", "main", "parsed", "run_command", "words_of_today"]

SHELLS = ("bash", "fish", "zsh")
"""Shells that verbs, options and names are completed in."""

COMPLETES = "_OPTICCL_COMPLETE"
"""Environment variable with which the script of `--completion` calls the program."""

GARBAGE = 10_000
"""Objects made and not yet freed before cycles of them are looked for; the usual 700 costs a quarter second [count]."""

OF_MODULES = 1_000_000
"""Those before they are looked for the first time: modules, as they are read, make most of them, and no garbage [count]."""

_HERE = "opticcl.cli"


@cache
def command_group() -> Verbs:
    """The command line; a verb is imported when it is looked up."""
    return Verbs(
        _HERE,
        "opticcl",
        callback=_before_a_verb,
        params=[
            Option(
                ["--plugin"],
                repeatable=True,
                type=Path,
                metavar="FILE.py",
                help="Import this file, which registers fabrics and algorithms. Repeat for several, or set OPTICCL_PLUGINS.",
            ),
            click.Option(
                ["--completion"],
                type=click.Choice(SHELLS),
                is_eager=True,
                expose_value=False,
                callback=_print_completion,
                help="Print the script that completes verbs, options and names in this shell, and exit.",
            ),
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_version,
                help="Show the version and exit.",
            ),
        ],
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Compile collective operations to optical and electrical networks, verify the plans, and compute their time, "
        "light budget and cost.",
        epilog="Fabrics and algorithms are written name:key=value,...; `opticcl list` shows all names. opticcl.toml may have "
        "defaults of options.",
    )


def _plugins_first(words: list[str]) -> list[str]:
    """The words of a command line, with plugins that stand behind the verb before it: they are read before the verb is parsed.

    >>> _plugins_first(["compare", "-f", "star", "--plugin", "star.py", "--json"])
    ['--plugin', 'star.py', 'compare', '-f', 'star', '--json']
    """
    first: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            return [*first, *rest, word, *left]
        if word.startswith("--plugin="):
            first.append(word)
        elif word == "--plugin":
            first += [word, *islice(left, 1)]
        else:
            rest.append(word)
    return first + rest


def _unknown_option(error: click.NoSuchOption) -> str:
    """What to write in place of an option that a verb does not have, or the verbs that have it."""
    assert error.ctx is not None
    verb, option = str(error.ctx.command.name), error.option_name
    close = [one for one in error.possibilities or () if one != "--help"]
    others = [name for name, one in command_group().walk() if any(option in p.opts for p in one.params)]
    hint = f"opticcl {verb} --help lists its options"
    if close:
        hint = f"did you mean {close[0]}?"
    elif others:
        hint = f"it is an option of {', '.join(others)}"
    return f"{verb}: there is no option {option}; {hint}"


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from opticcl.files import program_version

        print(f"opticcl {program_version()}")
        context.exit()


def _print_completion(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        complete = get_completion_class(shell)
        assert complete is not None
        print(complete(command_group(), {}, "opticcl", COMPLETES).source())
        context.exit()


def _complete(group: Verbs, instruction: str) -> int:
    """Print what a shell requests by the script of `--completion`.

    Args:
        group: the command line.
        instruction: such as "bash_complete".
    """
    complete = get_completion_class(instruction.partition("_")[0])
    if complete is None:
        return 2
    print(complete(group, {}, "opticcl", COMPLETES).complete())
    return 0


def _before_a_verb(plugin: tuple[Path, ...]) -> None:
    if plugin or os.environ.get("OPTICCL_PLUGINS"):
        from opticcl.cli._plugins import load_plugins

        load_plugins(plugin)


def main() -> None:
    """Entry point: run a verb and exit with its code."""
    # else threads begin with each process, for products of short vectors
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(OF_MODULES)
    gc.callbacks.append(_look_for_garbage_often)
    try:
        code = run_command()
    finally:
        gc.freeze()  # else the interpreter searches all objects for garbage as it ends, 0.3 s
    sys.exit(code)


def _look_for_garbage_often(phase: str, info: dict[str, int], /) -> None:
    """What the garbage collector calls when it runs for the first time."""
    gc.set_threshold(GARBAGE)
    gc.callbacks.remove(_look_for_garbage_often)


def run_command(*, suggests: bool = True) -> int:
    """Run the verb of `sys.argv`; every refusal becomes one line on standard error.

    Args: suggests: whether that line ends with the command that may be meant, where there is one.
    Returns: the exit code.
    """
    try:
        code = _invoke(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:  # the reader of standard output has closed it, as `head` does
        return _reader_left()
    except SystemExit as leave:
        if isinstance(leave.__context__, BrokenPipeError):  # rich exits with 1 then, which is a negative answer here
            return _reader_left()
        raise
    except Exception as error:
        return _refused(error, sys.argv[1:] if suggests else ())
    return code


def _invoke(words: list[str]) -> int:
    """Run the verb of a command line; returns the exit code of its answer."""
    words = _plugins_first(words)
    group = command_group()
    if shown := os.environ.get(COMPLETES):
        return _complete(group, shown)
    try:
        with group.make_context("opticcl", words) as context:
            return group.invoke(context) or 0
    except click.exceptions.Exit as leave:
        return leave.exit_code


def parsed(words: Sequence[str]) -> VerbRequest:
    """What a command line asks of its verb.

    Args: words: verb, options and arguments.
    """
    group: click.Command | None = command_group()
    left, name = list(words), "opticcl"
    while isinstance(group, Verbs):
        word, group, left = group.resolve_command(click.Context(group), left)
        name = str(word)
    assert isinstance(group, Verb)
    with group.make_context(name, left) as context:
        return group.request(context)


def _refused(error: Exception, words: Sequence[str]) -> int:
    """Print why there is no answer, in one line, and the command that may be meant.

    Args:
        error: that ended the verb.
        words: of the command line; none: no command is suggested.
    Returns: the exit code.
    """
    if is_interrupted():  # some libraries raise another exception in place of KeyboardInterrupt
        return _interrupted()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # no verb is given
        _print_error(error.format_message())
        return 2
    if isinstance(error, OpticclError):
        why = str(error)
    elif isinstance(error, click.NoSuchOption):
        why = _unknown_option(error)
    elif isinstance(error, click.ClickException):
        verb = error.ctx.command if isinstance(error, click.UsageError) and error.ctx is not None else None
        of = "opticcl" if verb is None or isinstance(verb, Verbs) else f"opticcl {verb.name}"
        why = f"{error.format_message()} ({of} --help lists arguments and options)"
    elif isinstance(error, OSError):
        why = str(error.strerror or error)
    elif isinstance(error, MemoryError):
        why = "out of memory; try a smaller fabric or message"
    else:
        why = _of_this_program(error)
    meant = corrected(words, error, why, command_group()) if words else ""
    end = "" if why.endswith(("?", ".")) else "."
    _print_error(f"opticcl: {why}{end} Try: {meant}" if meant else f"opticcl: {why}")
    return error.exit_code if isinstance(error, OpticclError) else 2


def _of_this_program(error: Exception) -> str:
    """What an exception that is no refusal says, in a line: the plugin that raised it, or that this program is wrong."""
    from opticcl.cli._plugins import blame

    blamed = blame(error)
    if blamed is not None:
        return blamed
    import traceback

    _print_error("".join(traceback.format_exception(error)))
    return f"an error of this program, {type(error).__name__}; please report it with the lines above"


def _print_error(line: str) -> None:
    """Print on standard error, where it can be written."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _reader_left() -> int:
    """Standard output is closed: what is left of it is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _interrupted() -> int:
    _print_error("opticcl: interrupted; nothing was written")
    return INTERRUPTED
