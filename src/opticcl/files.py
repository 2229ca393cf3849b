"""Files are written whole or not at all: to a temporary file beside them, which is then renamed. So are all of a command."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, NamedTuple

from opticcl.errors import OutputError, printable
from opticcl.interrupts import temporary

__all__ = [
    "all_or_none",
    "as_written",
    "program_version",
    "read_toml",
    "temporary_folder",
    "write_whole",
    "write_whole_folder",
]


MORE_BYTES = 1 << 16
"""That are written to find out why the writing of a file has failed [bytes]."""


def program_version() -> str:
    """Version of this program, which its files name."""
    from importlib.metadata import version  # imports 20 modules, for e-mail and archives among others

    return version("opticcl")


class _Finished(NamedTuple):
    """A file or directory that is written and not yet in its place.

    Args:
        path: as the caller names it.
        place: renames it.
        clean: removes what is left of it.
    """

    path: Path
    place: Callable[[], object]
    clean: ExitStack


_waiting: list[_Finished] | None = None
"""What appears at the end of `all_or_none`; None outside it."""


@contextmanager
def all_or_none() -> Iterator[None]:
    """Within this, what is written whole appears when the block ends without an error, all of it, and not before.

    Raises: OutputError: a file can no longer be put in its place.
    """
    global _waiting
    outer, _waiting = _waiting, []
    waiting = _waiting
    try:
        yield
        for path, place, _ in waiting:
            try:
                place()
            except OSError as error:
                raise _refusal(path, error) from None
    finally:
        _waiting = outer
        for finished in reversed(waiting):
            finished.clean.close()


@contextmanager
def as_written() -> Iterator[None]:
    """Within this, each file appears when it is written, within `all_or_none` too: rows that are kept while a verb goes on."""
    global _waiting
    outer, _waiting = _waiting, None
    try:
        yield
    finally:
        _waiting = outer


@contextmanager
def write_whole(path: Path, *, at_once: bool = False) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` when the block ends without an error, and not before.

    A symbolic link stays a link: the file that it points to is written.

    Args:
        path: file to write or replace.
        at_once: within `all_or_none` too: a state that the program itself reads again.
    Raises: OutputError: the directory or file cannot be written, or `path` is no regular file.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        if path.is_dir():
            raise OutputError(f"cannot write {path}: it is a directory")
        if target.is_symlink() or (target.exists() and not target.is_file()):  # realpath leaves links that form a cycle
            raise OutputError(f"cannot write {path}: it is not a regular file")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    made = Path(name)
    with ExitStack() as clean:
        clean.enter_context(temporary(made))
        clean.callback(made.unlink, missing_ok=True)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            mask = os.umask(0)
            os.umask(mask)
            made.chmod(0o666 & ~mask)  # mkstemp makes it private
            _finish(path, partial(made.replace, target), clean, at_once)
        except Exception as error:
            raise _refusal(path, error, made) from None


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
            raise OutputError(f"cannot write {path}: it is not a directory")
        others = sorted(set(os.listdir(target)) - set(names)) if target.exists() else []
        if others:
            raise OutputError(f"cannot write {path}: the directory holds other files, such as {printable(others[0])}")
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    fresh, before = made / "new", made / "old"
    noted = ExitStack()

    def place() -> None:
        noted.close()  # from here on it holds what was there before
        if target.exists():
            target.replace(before)
        fresh.replace(target)

    def restore() -> None:
        if before.exists() and not target.exists():
            before.replace(target)

    with ExitStack() as clean:
        clean.callback(shutil.rmtree, made, ignore_errors=True)
        clean.callback(restore)
        clean.push(noted)
        noted.enter_context(temporary(made))
        try:
            fresh.mkdir()
            yield fresh
            _finish(path, place, clean, False)
        except Exception as error:
            raise _refusal(path, error, fresh) from None


def _finish(path: Path, place: Callable[[], object], clean: ExitStack, at_once: bool) -> None:
    """Put a file in its place, or keep it until the others are finished.

    Args:
        path, place, clean: of `_Finished`.
        at_once: of `write_whole`.
    """
    if _waiting is None or at_once:
        place()
    else:
        _waiting.append(_Finished(path, place, clean.pop_all()))


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new directory for files of this process alone, removed at the end of the block or of the program."""
    with tempfile.TemporaryDirectory(prefix="opticcl-") as folder, temporary(folder):
        yield Path(folder)


def _refusal(path: Path, error: Exception, made: Path | None = None) -> Exception:
    """What is raised where a file could not be written.

    Args:
        path: of the file.
        error: of the system, or of polars, which says it in its own words or not at all.
        made: the file or directory that was being written, if it is still there.
    """
    of_polars = type(error).__module__.partition(".")[0] == "polars"
    if not of_polars and not isinstance(error, OSError):
        return error
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := re.search(r"\(os error ([0-9]+)\)|\[Errno ([0-9]+)\]", str(error))):
        number = int(found[1] or found[2])
    if number is None and made is not None:
        number = _why_not_written(made)
    why = os.strerror(number) if number is not None else (str(error) or type(error).__name__).splitlines()[0][:200]
    return OutputError(f"cannot write {path}: {why}")


def _why_not_written(made: Path) -> int | None:
    """Number of the error of the system with which a file, or one of a directory, cannot be written; None: it can."""
    try:
        with open(made / "more" if made.is_dir() else made, "ab", buffering=0) as file:
            file.write(b"x" * MORE_BYTES)
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno
    return None


@cache
def read_toml(package: str, name: str) -> dict[str, Any]:
    """A TOML file that stands beside the module that reads it; parsed once.

    Args:
        package: dotted name of the package, "opticcl.fabrics".
        name: path of the file inside the package, "ramp.toml".
    Returns: its tables by name; callers must not change them.
    """
    return tomllib.loads(files(package).joinpath(name).read_text("utf-8"))
