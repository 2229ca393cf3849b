"""Output of the verbs: tables and JSON on standard output, progress on standard error, files of `-o` by their suffix."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opticcl.errors import OutputError, printable
from opticcl.report.kit.result import Result, Verbatim

if TYPE_CHECKING:
    from opticcl.ir import ProgressCallback

__all__ = [
    "ARRAYS",
    "PAGE",
    "PICTURE",
    "PLAN",
    "RECORD",
    "TABLE",
    "TIMELINE",
    "FileKind",
    "Outputs",
    "ProgressLine",
    "check_folder",
    "output_width",
    "print_json",
    "print_table",
]

WIDTH_WITHOUT_TERMINAL = 120
"""Of tables where standard output is no terminal and COLUMNS is not set [columns]."""

MOST_NOTES = 3
"""Lines of notes below an answer [count]."""

LEAST_WIDTH = 20
"""Of tables, however narrow the terminal is [columns]."""


class FileKind(NamedTuple):
    """A kind of file that a verb can write.

    Args:
        name: in the help and in the line that reports the file, such as "picture".
        suffixes: in lower case, that name this kind.
        folder: the one of them that is written as a folder; "" for none.
    """

    name: str
    suffixes: tuple[str, ...]
    folder: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.suffixes)})"


PAGE = FileKind("page", (".html",))
PICTURE = FileKind("picture", (".svg", ".png"))
RECORD = FileKind("record", (".json",))
TABLE = FileKind("rows", (".csv", ".parquet"))
PLAN = FileKind("plan file", (".parquet", ".csv", ".json"))
ARRAYS = FileKind("arrays", (".npy",))
TIMELINE = FileKind("timeline", (".json",))


class Outputs:
    """The files that a call writes, checked before any work is done for them, and what its answer must say beside the result.

    Attributes:
        notes: of the fabrics, which are notes of the answer too.

    Args:
        out: values of `-o`.
        kinds: that the verb can write, each with suffixes of its own.
        named: other files, by their option: path (None: not given) and kind.
        read: the files that the verb reads; no output may replace one.
    Raises: OutputError: the option, the file, and what is wrong with it.
    """

    def __init__(
        self,
        out: Sequence[Path],
        *kinds: FileKind,
        named: Mapping[str, tuple[Path | None, FileKind]] | None = None,
        read: Sequence[Path | str] = (),
    ) -> None:
        suffixes = [suffix for kind in kinds for suffix in kind.suffixes]
        taken = {os.path.realpath(path): "the input file" for path in read}
        for path in out:
            _check(path, "--out", suffixes, taken)
        for flag, (other, kind) in (named or {}).items():
            if other is not None:
                _check(other, flag, kind.suffixes, taken, kind.folder)
        self._paths, self._kinds = tuple(out), kinds
        self.lines: list[str] = []
        self.notes: list[str] = []

    def of(self, kind: FileKind) -> list[Path]:
        """Files of `-o` that are of that kind, if the call writes it."""
        suited = [path for path in self._paths if path.suffix.lower() in kind.suffixes]
        return suited if kind in self._kinds else []

    def write(self, kind: FileKind, write: Callable[[Path], object]) -> None:
        """Write the files of a kind.

        Args:
            kind: which files.
            write: writes one of them, whole or not at all; a text that it returns is added to the line on that file.
        """
        for path in self.of(kind):
            self.report(kind, path, write(path))

    def print_lines(self) -> None:
        """Print the lines on the files that were written, control characters in their names as escapes."""
        for line in self.lines:
            print(printable(line))

    def report(self, kind: FileKind, path: Path, about: object = None) -> None:
        """Add a line such as "picture: load.svg" to those that are printed at the end.

        Args:
            kind: of the file.
            path: of the file.
            about: a text for the line; anything else is ignored.
        """
        self.lines.append(f"{kind.name}: {path}" + (f", {about}" if isinstance(about, str) else ""))

    def write_result(self, result: Result, progress: ProgressCallback, *only: FileKind) -> None:
        """Write the pages, pictures, records and rows of an answer.

        Args:
            result: the answer.
            progress: called before each part of a page.
            only: kinds that are written; default: all.
        """
        if not self._paths:
            return
        from opticcl.report.kit.records import write_record, write_rows
        from opticcl.report.kit.svg import save_picture

        writers: dict[FileKind, Callable[[Path], object]] = {
            PAGE: lambda path: result.write_page(path, progress),
            PICTURE: lambda path: save_picture(path, result.figure, result.label),
            RECORD: lambda path: write_record(path, self._record(result)),
            TABLE: lambda path: f"{write_rows(path, result.table_rows()):,} rows",
        }
        for kind in only or writers:
            self.write(kind, writers[kind])

    def print_result(self, result: Result, *, form: str = "table", all_notes: bool = False) -> None:
        """Print an answer, its sentence first, and the lines on the files that were written.

        Args:
            result: the answer.
            form: table; or json (its record), csv (its rows) or md (Markdown), and nothing else.
            all_notes: whether every note is printed.
        """
        if form == "json":
            print_json(self._record(result))
            return
        if form == "csv":
            from opticcl.report.kit.records import csv_text

            print(csv_text(result.table_rows()))
            return
        notes = list(dict.fromkeys((*result.notes, *self.notes)))
        if form == "md":
            print("\n\n".join(_markdown(part) for part in (result.headline, *result.blocks(), *notes) if part))
            return
        if result.headline:
            print_table(result.headline)
        for block in result.blocks():
            if isinstance(block, Verbatim):
                print(block)
            else:
                print_table(block)
        for note in shown_notes(notes, all_notes):
            print_table(note)
        self.print_lines()

    def _record(self, result: Result) -> Any:
        """Plain values of an answer, with the notes of its fabrics that it does not have itself."""
        values = result.record()
        if not isinstance(values, dict):
            return values
        known = [*values.get("notes", ()), *values.get("caveats", ())]
        more = [note for note in dict.fromkeys(self.notes) if note not in known]
        return {**values, "notes": [*values.get("notes", ()), *more]} if more else values


def _markdown(part: Any) -> str:
    """A part of an answer in Markdown: a table, a text, or lines that stay as they are."""
    from opticcl.report.kit.columns import FittedTable

    if isinstance(part, Verbatim):
        return f"```\n{part}\n```"
    return part.markdown() if isinstance(part, FittedTable) else str(part)


def _check(path: Path, option: str, suffixes: Sequence[str], taken: dict[str, str], folder: str = "") -> None:
    """Refuse a file that could not be written, or that is another file of this call already.

    Args:
        path: to be written.
        option: that names it.
        suffixes: that it may have.
        taken: files of this call so far; it is added.
        folder: suffix of what is written as a folder.
    """
    refused = f"{option}: cannot write {path}: "
    if path.is_dir() and not (folder and path.suffix.lower() == folder):
        raise OutputError(f"{refused}it is a folder; give the name of a file")
    if path.suffix.lower() not in suffixes:
        *first, last = suffixes
        raise OutputError(f"{refused}its name must end in {', '.join(first)}{' or ' * bool(first)}{last}")
    if not path.parent.is_dir():
        raise OutputError(f"{refused}there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{refused}the folder {path.parent} is not writable")
    target = os.path.realpath(path)
    if os.path.islink(target):  # links that form a cycle
        raise OutputError(f"{refused}its links lead to no file")
    if (other := taken.get(target)) is not None:
        raise OutputError(f"{refused}it is {other}; give another name")
    taken[target] = f"the file of {option}"


def shown_notes(notes: Sequence[str], all_notes: bool) -> Sequence[str]:
    """Those of the notes that a terminal shows: all, or the first and how many there are more.

    >>> shown_notes(["a", "b", "c", "d"], False)
    ['a', 'b', '2 more notes: --notes']

    Args:
        notes: what decides most first.
        all_notes: whether every one is shown.
    """
    if all_notes or len(notes) <= MOST_NOTES:
        return notes
    return [*notes[: MOST_NOTES - 1], f"{len(notes) - MOST_NOTES + 1:,} more notes: --notes"]


def check_folder(path: Path) -> None:
    """Refuse a folder that could not be written: its parent does not exist, or it is not empty.

    Raises: OutputError: the folder, and what is wrong with it.
    """
    refused = f"--out: cannot write {path}: "
    if path.exists() and not path.is_dir():
        raise OutputError(f"{refused}it is a file; give the name of a new folder, or a suffix")
    if path.is_dir() and any(path.iterdir()):
        raise OutputError(f"{refused}the folder is not empty; give the name of a new one")
    if not path.parent.is_dir():
        raise OutputError(f"{refused}there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{refused}the folder {path.parent} is not writable")


def print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    from opticcl.report.kit.records import json_text

    print(json_text(value))


def print_table(*tables: Any) -> None:
    """Print tables and texts on standard output, as wide as COLUMNS, the terminal or, in a pipe, 120 columns."""
    from rich.console import Console

    console = Console(width=_width(), highlight=False, markup=False)
    for table in tables:
        console.print(table)


def output_width() -> int:
    """Columns of standard output: those of COLUMNS, the terminal or, in a pipe, 120."""
    return _width() or max(shutil.get_terminal_size().columns, LEAST_WIDTH)


def _width() -> int | None:
    """Columns of standard output; None: as many as the terminal has."""
    given = os.environ.get("COLUMNS", "")
    if re.fullmatch("0*[1-9][0-9]{0,8}", given):
        return max(int(given), LEAST_WIDTH)
    return None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL


class ProgressLine:
    """Reports on a terminal what is being done, once it takes longer than a second, with rate and time left if known.

    Without a terminal on standard error it says nothing.

    Args: patience_s: before the first report [s].
    """

    def __init__(self, patience_s: float = 1.0) -> None:
        self._started = self._label_started = time.monotonic()
        self._shown_at = self._started + patience_s
        self._label = ""
        self._live = sys.stderr.isatty()
        self._width = 0

    def __call__(self, label: str, done: int = 0, total: int = 0) -> None:
        """Report progress.

        Args:
            label: what is being done.
            done: units that are finished [count].
            total: all units; 0 if unknown [count].
        """
        if not self._live:
            return
        now = time.monotonic()
        if label != self._label:
            self._label, self._label_started = label, now
        if now < self._shown_at:
            return
        self._shown_at = now + 0.1
        text = label
        elapsed = now - self._label_started
        if total and done and elapsed > 0:
            rate = done / elapsed
            text += f": {done:,} of {total:,}, {rate:.3g}/s, {(total - done) / rate:.0f} s left"
        self._print("\r" + text.ljust(self._width))
        self._width = len(text)

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._print("\r" + " " * self._width + "\r")
            self._width = 0

    def _print(self, text: str) -> None:
        with suppress(OSError):  # the answer does not need it
            sys.stderr.write(text)
            sys.stderr.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
