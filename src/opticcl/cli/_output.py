"""What verbs print: JSON or text on standard output, progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

__all__ = ["Progress", "print_json", "print_table"]


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
