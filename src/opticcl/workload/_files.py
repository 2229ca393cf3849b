"""How a trace is opened and refused: plain or gzip, in pieces, errors in one printable line with the place."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from opticcl.errors import WorkloadError
from opticcl.units import MAX_MESSAGE_BYTES

__all__ = ["DamageError", "check_file", "check_size", "head_of", "lines", "printable", "reading", "refusal", "title"]

MAX_LINE = 2**20  # bytes; a longer one is no line of a log


class DamageError(Exception):
    """What is wrong with a file, and at which byte, character or line."""

    def __init__(self, at: int, what: str) -> None:
        self.at, self.what = at, what


def check_file(path: Path) -> None:
    """Refuses what is no file: directories, devices and pipes.

    Raises: WorkloadError
    """
    if not os.path.isfile(path):
        if os.path.isdir(path):
            raise refusal(path, "is a directory; give one file in it, such as the trace of rank 0")
        if os.path.exists(path):
            raise refusal(path, "is no regular file; save it to disk first")
        raise refusal(path, "no such file; give a trace, a list of sizes (.toml) or the name of a built-in workload")


def refusal(where: Path | str, what: str) -> WorkloadError:
    """The error with that text, in one printable line."""
    return WorkloadError(printable(f"{where}: {what}"))


def printable(text: str) -> str:
    """The text in one line, what cannot be printed escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def title(path: Path) -> str:
    """Name of the job that a file is called after.

    >>> title(Path("runs/resnet.json.gz"))
    'resnet'
    """
    return printable(Path(path.name.removesuffix(".gz")).stem)


@contextmanager
def reading(path: Path, form: str, unit: str = "byte") -> Iterator[BinaryIO]:
    """The file, unpacked on the way where it is gzip.

    Args:
        form: what it should be, for messages.
        unit: what `DamageError.at` counts: bytes, characters or lines.
    Raises: WorkloadError: no such file, it cannot be read, or a DamageError inside the block.
    """
    check_file(path)
    try:
        with open(path, "rb") as raw, gzip.GzipFile(fileobj=raw) as unzipped:
            yield cast("BinaryIO", unzipped if raw.peek(2)[:2] == b"\x1f\x8b" else raw)
    except DamageError as error:
        raise refusal(path, f"{unit} {error.at:,}: {error.what}; is this a whole {form}?") from None
    except (OSError, EOFError, zlib.error) as error:
        raise refusal(path, f"cannot be read to its end: {error}") from None


def head_of(path: Path, size: int = 4096) -> bytes:
    """The first bytes, unpacked; fewer where a damaged archive has no more.

    Raises: WorkloadError: it cannot be read at all.
    """
    with reading(path, "file") as file:
        try:
            return file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return b""


def lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Each line that is not empty, without its end, and its number from 1.

    Raises: DamageError: a line longer than any log has.
    """
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise DamageError(number, f"a line of more than {MAX_LINE:,} bytes")
        if text := line.decode("utf-8", "replace").strip():
            yield number, text


def check_size(size_bytes: int, at: int, what: str) -> int:
    """The size, if a message can have it.

    Raises: DamageError: negative or absurdly large.
    """
    if not 0 <= size_bytes <= MAX_MESSAGE_BYTES:
        shown = f"{size_bytes:,}" if abs(size_bytes) < 2**70 else "a number of more than 20 digits"
        raise DamageError(at, f"{what} is {shown} bytes, not 0 to 2**60")
    return size_bytes
