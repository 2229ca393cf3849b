"""Commands run within this process, each in a folder of its own, with nothing of the user's settings."""

import contextlib
import io
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from tests.records.commands import INPUTS, Command
from tests.records.meaning import command_of

FIXED = {"COLUMNS": "120", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
UNSET = ("OPTICCL_PLUGINS", "FORCE_COLOR", "TERMINAL_WIDTH")
DIGITS = 11
"""Significant digits of recorded numbers; they are compared to fewer."""
CLOCK = frozenset({"seconds"})
"""Fields that a clock measured: not recorded."""
APART = frozenset({"checked"})
"""Fields on how a verdict was reached, and the notes beside them: recorded, not compared."""


def answer_of(command: Command) -> dict[str, Any]:
    """Run a command for its record: exit code, and answer or refusal; what is recorded apart is under `apart`.

    Args: command: with those that run before it in the same folder.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), mock.patch.dict(os.environ, FIXED):
        for name in UNSET:
            os.environ.pop(name, None)
        for name in command.inputs:
            Path(name).write_text(INPUTS[name], "utf-8")
        for words in command.before:
            code, _, refusal = run(command_of(words))
            if code:
                raise RuntimeError(f"{command.id}: opticcl {shlex.join(words)} ended with {code}: {refusal}")
        code, printed, refusal = run(command_of(command.words))
        printed, refusal = (text.replace(os.path.realpath(folder), "<folder>") for text in (printed, refusal))
    return record_of(code, printed.replace(folder, "<folder>"), refusal.replace(folder, "<folder>"))


def run(words: tuple[str, ...]) -> tuple[int, str, str]:
    """Exit code, standard output and the refusal of a command: its standard error without lines of progress."""
    from opticcl import cli

    out, err = io.StringIO(), io.StringIO()
    with (
        stopped_clock(),
        mock.patch.object(sys, "argv", ["opticcl", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = cli.run_command()
    lines = err.getvalue().splitlines()
    said = next((i for i, line in enumerate(lines) if line.startswith(("opticcl: ", "Usage: "))), len(lines))
    return code, out.getvalue(), "\n".join(lines[said:])


@contextlib.contextmanager
def stopped_clock() -> Iterator[None]:
    """Within this, planning takes no CPU time: plans anew after a fault, and times of jobs that wait for one, count it."""
    real = time.process_time

    def stopped() -> float:
        return 0.0

    def exchange(old: object, new: object) -> None:
        time.process_time = new  # for modules that are imported meanwhile
        for name, module in list(sys.modules.items()):
            if name.startswith("opticcl.") and vars(module).get("process_time") is old:
                module.process_time = new

    exchange(real, stopped)
    try:
        yield
    finally:
        exchange(stopped, real)


def record_of(code: int, printed: str, refusal: str) -> dict[str, Any]:
    """The record of what a command gave, without its name.

    Args:
        code: exit code.
        printed: standard output, JSON of the verbs that have `--json`.
        refusal: text on standard error of a command that did not answer.
    """
    found: dict[str, Any] = {"code": code}
    if printed.strip():
        try:
            answer = json.loads(printed)
        except ValueError:
            answer = printed.splitlines()
        apart: dict[str, Any] = {}
        found["answer"] = kept(answer, apart, "")
        if apart:
            found["apart"] = apart
    if code not in (0, 1) or not printed.strip():
        found["refusal"] = refusal
    return found


def kept(value: Any, apart: dict[str, Any], where: str) -> Any:
    """A value as it is recorded: numbers rounded, without what a clock measured.

    Args:
        value: of an answer.
        apart: what is not compared, by its path; added to.
        where: path of the value.
    """
    if isinstance(value, Mapping):
        found = {}
        for key, one in value.items():
            path = f"{where}.{key}" if where else key
            if key in APART or (key == "notes" and not APART.isdisjoint(value)):
                apart[path] = kept(one, {}, path)
            elif key not in CLOCK:
                found[key] = kept(one, apart, path)
        return found
    if isinstance(value, list):
        return [kept(one, apart, f"{where}[{i}]") for i, one in enumerate(value)]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
