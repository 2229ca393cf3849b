"""Opening of input files, plain or packed with gzip, xz or bzip2, and errors in one printable line with the place."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from opticcl.errors import WorkloadError, printable
from opticcl.units import MAX_MESSAGE_BYTES

__all__ = [
    "DamageError",
    "check_file",
    "check_size",
    "content_of",
    "converted",
    "head_of",
    "lines",
    "plain_name",
    "printable",
    "reading",
    "refusal",
    "title",
    "whole_lines",
]

T = TypeVar("T")

MAX_LINE = 2**20  # of a log [bytes]
CHUNK = 2**16  # read at a time [bytes]
PACKED = (".gz", ".xz", ".bz2")
MAX_DICTIONARY = 2**28  # of an xz file; its strongest setting takes 2**26 [bytes]


class DamageError(Exception):
    """A fault of a file.

    Args:
        at: byte, character or line at which it is.
        what: the fault, in words.
    """

    def __init__(self, at: int, what: str) -> None:
        self.at, self.what = at, what


def check_file(path: Path, form: str = "file") -> None:
    """Refuse directories, devices, pipes and files that do not exist.

    Args:
        path: of the file.
        form: name of the format that is expected, for messages; "file": any that holds a workload.
    Raises: WorkloadError: `path` is one of them.
    """
    if not os.path.isfile(path):
        if os.path.isdir(path):
            raise refusal(path, "is a directory; give one file in it, such as the trace of rank 0")
        if os.path.exists(path):
            raise refusal(path, "is not a regular file; save it to disk first")
        workload = "a trace, a list of sizes (.toml) or the name of a built-in workload"
        raise refusal(path, f"no such file; give {workload if form == 'file' else 'a ' + form}")


def refusal(where: Path | str, what: str) -> WorkloadError:
    """The error for a file, in one printable line.

    Args:
        where: the file, or another place.
        what: what is wrong.
    """
    return WorkloadError(printable(f"{where}: {what}"))


def plain_name(name: str) -> str:
    """The name of a file without the suffix of its packing.

    >>> plain_name("step.json.xz")
    'step.json'
    """
    return name[: -len(suffix)] if (suffix := Path(name).suffix).lower() in PACKED else name


def title(path: Path) -> str:
    """Name of a job, after its file.

    >>> title(Path("runs/resnet.json.gz"))
    'resnet'
    """
    return printable(Path(plain_name(path.name)).stem)


@contextmanager
def reading(path: Path, form: str, unit: str = "byte") -> Iterator[BinaryIO]:
    """Open a file; gzip, xz and bzip2 are decompressed while it is read.

    Args:
        path: of the file.
        form: name of the format that is expected, for messages.
        unit: what `DamageError.at` counts: bytes, characters or lines.
    Raises: WorkloadError: no such file, it cannot be read, or a DamageError inside the block.
    """
    check_file(path, form)
    try:
        with open(path, "rb") as raw:
            yield cast("BinaryIO", _unpacked(raw))
    except DamageError as error:
        raise refusal(path, f"{unit} {error.at:,}: {error.what}; is this a whole {form}?") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise refusal(path, f"cannot be read to its end: {error}") from None


def _unpacked(raw: io.BufferedReader) -> io.BufferedIOBase:
    """The content of a file, which its first bytes say to be packed or not."""
    head = raw.peek(16)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    # a digit, then the mark of a block or of the end
    if re.match(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", head):
        return bz2.BZ2File(raw)
    return io.BufferedReader(_Unxz(raw)) if head.startswith(b"\xfd7zXZ\0") else raw


class _Unxz(io.RawIOBase):
    """The content of an xz file, with a bound on the memory of its dictionary, which `lzma.LZMAFile` does not have."""

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._stream = packed, self._new_stream()

    def _new_stream(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DICTIONARY)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, target: Any) -> int:
        """Unpack as much as is wanted, or less.

        Args: target: buffer that is filled.
        Returns: what was unpacked; 0 at the end [bytes].
        Raises: LZMAError, EOFError: a damaged or a cut file.
        """
        while True:
            data = b""
            if self._stream.eof:  # another stream may follow, after zeros
                data = (self._stream.unused_data or self._packed.read(CHUNK)).lstrip(b"\0")
                if not data:
                    return 0
                self._stream = self._new_stream()
            elif self._stream.needs_input and not (data := self._packed.read(CHUNK)):
                raise EOFError("the packed file ends before its end mark")
            if unpacked := self._stream.decompress(data, len(target)):
                target[: len(unpacked)] = unpacked
                return len(unpacked)


def head_of(path: Path, size: int = 4096) -> bytes:
    """The first bytes, decompressed; fewer where a damaged archive ends earlier.

    Raises: WorkloadError: it cannot be read at all.
    """
    with reading(path, "file") as file:
        try:
            return file.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError):
            return b""


def content_of(path: Path, file: BinaryIO, limit: int, advice: str = "") -> bytes:
    """The rest of a file, which takes no more memory than its own size.

    Args:
        path: of the file, for messages.
        file: open.
        limit: largest size [bytes].
        advice: what to do with a larger one, for the message.
    Raises: WorkloadError: it is larger.
    """
    parts, left = [], limit + 1
    while left and (part := file.read(min(left, 2**20))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise refusal(path, f"more than {limit:,} bytes{'; ' * bool(advice)}{advice}")
    return b"".join(parts)


def converted(table: Any, form: type[T], where: Path | str, advice: str) -> T:
    """The values of a table as a struct.

    Args:
        table: of TOML or JSON.
        form: a class of `msgspec.Struct`.
        where: the file, for messages.
        advice: what to write, for messages.
    Raises: WorkloadError: an unknown or a missing key, or a value of another kind.
    """
    import msgspec

    try:
        return msgspec.convert(table, form, strict=True)
    except msgspec.ValidationError as error:
        what, _, field = str(error).partition(" - at `$.")
        raise refusal(where, f"{field.rstrip('`') or 'file'}: {what}; {advice}") from None


def lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Each line that is not empty, without its end and a byte order mark, and its number from 1.

    Raises: DamageError: a line longer than any log has.
    """
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise DamageError(number, f"a line of more than {MAX_LINE:,} bytes")
        if text := line.decode("utf-8", "replace").lstrip("\ufeff").strip():
            yield number, text


def whole_lines(file: BinaryIO, first: int = 1, size: int = 2**20) -> Iterator[tuple[int, bytes]]:
    """The rest of a file in blocks of whole lines, and the number of the first line of each.

    Args:
        file: open, at the start of a line.
        first: number of that line.
        size: read at a time [bytes].
    Raises: DamageError: a line longer than any log has.
    """
    rest = b""
    while True:
        read = file.read(size)
        data = rest + read
        cut = data.rfind(b"\n") + 1 if read else len(data)
        rest = data[cut:]
        if cut:
            yield first, data[:cut]
            first += data.count(b"\n", 0, cut)
        if len(rest) > MAX_LINE:
            raise DamageError(first, f"a line of more than {MAX_LINE:,} bytes")
        if not read:
            return


def check_size(size_bytes: int, at: int, what: str) -> int:
    """Check that a message can have a size, and return it.

    Args:
        size_bytes: to be checked [bytes].
        at: its place in the file.
        what: its name, for the message.
    Raises: DamageError: negative or more than 2**60.
    """
    if not 0 <= size_bytes <= MAX_MESSAGE_BYTES:
        shown = f"{size_bytes:,}" if abs(size_bytes) < 2**70 else "a number of more than 20 digits"
        raise DamageError(at, f"{what} is {shown} bytes, not 0 to 2**60")
    return size_bytes
