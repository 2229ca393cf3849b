"""What verbs print and write: JSON or text on standard output, progress on standard error, files where they can be."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from opticcl.errors import OutputError

__all__ = ["PICTURES", "Progress", "check_outputs", "print_json", "print_table"]

PICTURES = (".svg", ".png")
"""What a picture's name may end in."""


def check_outputs(files: Mapping[str, tuple[Path | None, Collection[str]]], *, read: Path | None = None) -> None:
    """Refuse files that could not be written or that would replace each other, before any work is done for them.

    Args:
        files: by option: where to, None if it is not asked for, and what its name must end in, empty for anything.
        read: the programme that the verb reads, which none of them may replace.
    Raises: OutputError: the option, the file, and what is wrong with it.
    """
    taken = {} if read is None else {read.resolve(): "the programme"}
    for option, (path, suffixes) in files.items():
        if path is None:
            continue
        refused = f"{option}: cannot write {path}: "
        if suffixes and path.suffix.lower() not in suffixes:
            raise OutputError(f"{refused}its name must end in {' or '.join(suffixes)}")
        if path.is_dir():
            raise OutputError(f"{refused}it is a folder; give the name of a file")
        if not path.parent.is_dir():
            raise OutputError(f"{refused}there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK):
            raise OutputError(f"{refused}no file may be made in {path.parent}")
        if (other := taken.setdefault(path.resolve(), option)) != option:
            raise OutputError(f"{refused}it is the file of {other}; give another name")


def print_json(value: Any) -> None:
    """One JSON value on standard output."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(*tables: Any) -> None:
    """Tables and texts on standard output, as wide as the terminal or 120 columns in a pipe."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
    for table in tables:
        console.print(table)


class Progress:
    """What is being done, on standard error, once it takes longer than a second: rate and remaining time where known."""

    def __init__(self, patience_s: float = 1.0) -> None:
        self._started = self._label_started = time.monotonic()
        self._shown_at = self._started + patience_s
        self._label = ""
        self._live = sys.stderr.isatty()
        self._width = 0

    def __call__(self, label: str, done: int = 0, total: int = 0) -> None:
        """Tell that `done` of `total` units of `label` are done."""
        now = time.monotonic()
        if label != self._label:
            self._label, self._label_started = label, now
        if now < self._shown_at:
            return
        self._shown_at = now + (0.1 if self._live else 5.0)
        text = label
        elapsed = now - self._label_started
        if total and done and elapsed > 0:
            rate = done / elapsed
            text += f": {done:,} of {total:,}, {rate:.3g}/s, {(total - done) / rate:.0f} s left"
        if self._live:
            sys.stderr.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self._live and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
