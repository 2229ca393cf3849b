"""Files of a trace: one, several, a directory, a glob pattern, or an archive of files, a file for each rank."""

from __future__ import annotations

import glob
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from opticcl.files import temporary_folder
from opticcl.reading import head_of, printable, reading, refusal
from opticcl.traces.reader import format_of
from opticcl.traces.sidecar import is_group_list

__all__ = ["MAX_UNPACKED", "copy_unpacked", "files_of", "is_archive", "is_group_file"]

ARCHIVES = (".tar", ".tar.gz", ".tar.xz", ".tar.bz2", ".tgz", ".txz", ".tbz2", ".zip")
ZIP = b"PK\x03\x04"
MAX_FILES = 100_000
MAX_UNPACKED = 2**35  # bytes
CHUNK = 2**20


def is_archive(path: Path) -> bool:
    """Whether a file is an archive by its content; by its name, if the content is of no trace format."""
    if not path.is_file():
        return False
    head = head_of(path, 512)
    if head[257:262] == b"ustar" or head.startswith(ZIP):
        return True
    return path.name.lower().endswith(ARCHIVES) and format_of(path) is None


def is_group_file(path: Path, names: Sequence[str]) -> bool:
    """Whether a file lists the process groups of traces beside it, by its content, or by its name as w.json beside w.0.et.

    Args:
        path: of the file.
        names: of all files beside it.
    """
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    of_a_rank = re.compile(re.escape(path.name.removesuffix(".json")) + r"\..*\.et(\.gz|\.xz|\.bz2)?")
    return any(of_a_rank.fullmatch(name) for name in names) or is_group_list(path)


@contextmanager
def files_of(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """The files that paths stand for, in order, each once. Archives are unpacked for the time of the context.

    Args: paths: of files, directories and archives, or glob patterns.
    Raises: WorkloadError: nothing is found, or an archive cannot be read or is too large.
    """
    with ExitStack() as stack:
        files: list[Path] = []
        for path in paths:
            for one in _matches(path):
                if one.is_dir():
                    files += _inside(one)
                elif is_archive(one):
                    folder = stack.enter_context(temporary_folder())
                    _unpack(one, folder)
                    files += _inside(folder, one)
                else:
                    files.append(one)
        files = list(dict.fromkeys(files))
        yield [one for one in files if len(files) == 1 or not is_group_file(one, ())] or files


def _matches(path: str | os.PathLike[str]) -> list[Path]:
    """A path, or the files of a glob pattern.

    Raises: WorkloadError: the pattern matches nothing.
    """
    text = os.fspath(path)
    if os.path.exists(text) or not any(character in text for character in "*?["):
        return [Path(text)]
    matching = [Path(one) for one in sorted(glob.glob(text))]
    if not matching:
        raise refusal(text, "matches no file")
    return matching


def _inside(folder: Path, named: Path | None = None) -> list[Path]:
    """Regular files of a directory that may be traces, by name.

    Raises: WorkloadError: there is none, or too many.
    """
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.is_file() and not e.name.startswith("."))
    files = [folder / name for name in names if not is_group_file(folder / name, names)]
    files = [path for path in files if not path.name.lower().startswith("readme")]
    if not files:
        raise refusal(named or folder, "no traces in it; give a folder that has one trace a rank, or a file")
    if len(files) > MAX_FILES:
        raise refusal(named or folder, f"{len(files):,} files in it are more than {MAX_FILES:,}")
    return files


def _unpack(archive: Path, folder: Path) -> None:
    """Write the regular files of an archive into one folder, under their last names.

    Raises: WorkloadError: damaged, too large, or two files of one name.
    """
    left, seen = MAX_UNPACKED, set[str]()
    unpack = _zip_members if head_of(archive, len(ZIP)) == ZIP else _tar_members
    with reading(archive, "archive") as file:
        try:
            for path, source in unpack(archive, file):
                name = os.path.basename(path)
                if not name or name.startswith("."):
                    continue
                if name in seen:
                    raise refusal(
                        archive, f"two files are called {printable(name)}; unpack it and name the files by rank"
                    )
                if len(seen) >= MAX_FILES:
                    raise refusal(archive, f"more than {MAX_FILES:,} files")
                seen.add(name)
                left -= copy_unpacked(archive, source, folder / name, left)
        except _DAMAGE as error:
            raise refusal(archive, f"is not a readable archive: {error or type(error).__name__}") from None


_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(OSError, EOFError, ValueError, NotImplementedError),
)


def _tar_members(archive: Path, file: BinaryIO) -> Iterator[tuple[str, IO[bytes]]]:
    """Path of each regular file of an archive, and its content."""
    with tarfile.open(fileobj=file, mode="r|") as members:
        for member in members:
            if member.isreg() and (source := members.extractfile(member)) is not None:
                yield member.name, source


def _zip_members(archive: Path, file: BinaryIO) -> Iterator[tuple[str, IO[bytes]]]:
    """The same of one that is not encrypted, and packed by methods that take little memory.

    Raises: WorkloadError: packed otherwise.
    """
    with zipfile.ZipFile(file) as members:
        for member in members.infolist():
            if member.flag_bits & 1:
                raise refusal(archive, f"{printable(member.filename)} in it is encrypted; unpack it first")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
                raise refusal(archive, f"{printable(member.filename)} in it is not packed with deflate; unpack it")
            with members.open(member) as source:
                yield member.filename, source


def copy_unpacked(packed: Path, source: IO[bytes], target: Path, limit: int = MAX_UNPACKED) -> int:
    """Copy the content of a packed file, or of a member of an archive.

    Args:
        packed: the file, for the message.
        source: its content.
        target: file that is written.
        limit: largest size [bytes].
    Returns: its size [bytes].
    Raises: WorkloadError: it is larger than the limit.
    """
    size = 0
    with open(target, "wb") as file:
        while content := source.read(CHUNK):
            size += len(content)
            if size > limit:
                raise refusal(
                    packed, f"more than {MAX_UNPACKED:,} bytes once unpacked; unpack it and give the directory"
                )
            file.write(content)
    return size
