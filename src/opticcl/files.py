"""Files are written whole or not at all: to a temporary file beside them, which is then renamed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from opticcl.errors import OpticclError, OutputError, printable
from opticcl.interrupts import temporary

__all__ = ["read_toml", "temporary_folder", "write_whole", "write_whole_folder"]


@contextmanager
def write_whole(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` when the block ends without an error, and not before.

    A symbolic link stays a link: the file that it points to is written.

    Args:
        path: file to write or replace.
    Raises: OutputError: the directory or file cannot be written, or `path` is no regular file.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        if path.is_dir():
            raise OutputError(f"cannot write {path}: it is a directory")
        if target.is_symlink() or (target.exists() and not target.is_file()):  # realpath leaves links that form a cycle
            raise OutputError(f"cannot write {path}: it is no regular file")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    unfinished = Path(name)
    with temporary(unfinished):
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            mask = os.umask(0)
            os.umask(mask)
            unfinished.chmod(0o666 & ~mask)  # mkstemp makes it private
            unfinished.replace(target)
        except Exception as error:
            raise _refusal(path, error) from None
        finally:
            unfinished.unlink(missing_ok=True)


@contextmanager
def write_whole_folder(path: Path, names: Sequence[str]) -> Iterator[Path]:
    """A directory that appears under `path` when the block ends without an error, and not before.

    Args:
        path: directory to write; one that holds no files but these is replaced.
        names: of the files that the block writes.
    Raises: OutputError: it cannot be written, or `path` is a file or holds others.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise OutputError(f"cannot write {path}: it is no directory")
        others = sorted(set(os.listdir(target)) - set(names)) if target.exists() else []
        if others:
            raise OutputError(f"cannot write {path}: the directory holds other files, such as {printable(others[0])}")
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    fresh, before = made / "new", made / "old"
    try:
        with temporary(made):
            fresh.mkdir()
            yield fresh
        if target.exists():
            target.replace(before)
        fresh.replace(target)
    except Exception as error:
        raise _refusal(path, error) from None
    finally:
        if before.exists() and not target.exists():
            before.replace(target)
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new directory for files of this process alone, removed at the end of the block or of the program."""
    with tempfile.TemporaryDirectory(prefix="opticcl-") as folder, temporary(folder):
        yield Path(folder)


def _refusal(path: Path, error: Exception) -> Exception:
    """What is raised where a file could not be written.

    Args:
        path: of the file.
        error: of the system, or of a library that says it in its own words.
    """
    if isinstance(error, OpticclError):
        return error
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := re.search(r"\(os error (\d+)\)|\[Errno (\d+)\]", str(error))):
        number = int(found[1] or found[2])
    if number is not None:
        return OutputError(f"cannot write {path}: {os.strerror(number)}")
    return OutputError(f"cannot write {path}: {error}") if isinstance(error, OSError) else error


@cache
def read_toml(package: str, name: str) -> dict[str, Any]:
    """A TOML file that stands beside the module that reads it; parsed once.

    Args:
        package: dotted name of the package, "opticcl.fabrics".
        name: path of the file inside the package, "ramp.toml".
    Returns: its tables by name; callers must not change them.
    """
    return tomllib.loads(files(package).joinpath(name).read_text("utf-8"))
