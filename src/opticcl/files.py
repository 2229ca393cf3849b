"""Files are written whole or not at all: to a temporary name beside them, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from opticcl.errors import OutputError

__all__ = ["write_whole"]


@contextmanager
def write_whole(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` once the block ends without an error, and not before.

    Raises: OutputError: the folder or file cannot be written.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder")
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp makes it private
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
