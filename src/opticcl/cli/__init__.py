"""The command line: one file a verb, found by discovery. Exit code 0 good, 1 the answer is no, 2 the input is wrong."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import Abort, Exit, TyperException

from opticcl.errors import OpticclError

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    name="opticcl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help appears in half the time
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Compile collective operations to light, prove them right, time them and run them.",
    epilog="A fabric is written name:key=value,... and an algorithm the same way; `opticcl list` tells what there is.",
)
for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        _run_verb = importlib.import_module(f"{__name__}.{_module.name}").run
        _first_sentence = (_run_verb.__doc__ or "").strip().partition(".")[0] + "."
        app.command(name=_module.name.removesuffix("_verb"), short_help=_first_sentence)(_run_verb)


@app.callback()
def _before_a_verb(
    plugin: Annotated[
        list[Path],
        typer.Option(
            "--plugin",
            metavar="FILE.py",
            help="Import a file of yours with fabrics and algorithms first. Repeat for several, or set OPTICCL_PLUGINS.",
        ),
    ] = [],  # noqa: B006 (the framework copies it)
) -> None:
    if plugin or os.environ.get("OPTICCL_PLUGINS"):
        from opticcl.cli._plugins import load_plugins

        load_plugins(plugin)


def main() -> None:
    """Entry point: run a verb, turn every refusal into one line and an exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be ended cleans up as Ctrl-C does
    sys.exit(_run())


def _run() -> int:
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except OpticclError as error:
        print(f"opticcl: {error}", file=sys.stderr)
        return error.exit_code
    except Exit as leave:
        code = leave.exit_code
    except TyperException as error:
        if text := error.format_message():
            print(f"opticcl: {text} (opticcl --help lists the verbs and their options)", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Abort):
        return _interrupted()
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"opticcl: {error.strerror or error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("opticcl: out of memory; try a smaller fabric or message", file=sys.stderr)
        return 2
    if code == INTERRUPTED:  # how the framework tells of Ctrl-C
        return _interrupted()
    return code if isinstance(code, int) else 0


def _interrupted() -> int:
    print("opticcl: interrupted; nothing was written", file=sys.stderr)
    return INTERRUPTED
