"""What polars says of damaged files, in one line: for some it panics, and prints where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from opticcl.errors import PlanFileError

__all__ = ["first_line", "reading"]

_ONE_AT_A_TIME = RLock()


@contextmanager
def reading(path: object, problem: str, *also: type[Exception]) -> Iterator[None]:
    """Within this polars reads a file: it prints nothing, and what it raises is refused in one line.

    Args:
        path: of the file.
        problem: that such a file has, in words.
        also: other exceptions of damaged files.
    Raises: PlanFileError.
    """
    import polars as pl

    damaged: tuple[type[BaseException], ...] = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, *also)
    with _unprinted():
        try:
            yield
        except damaged as error:
            raise PlanFileError(f"{path}: {problem}: {first_line(error)}") from None


@contextmanager
def _unprinted() -> Iterator[None]:
    """Within this nothing is printed on standard error."""
    with _ONE_AT_A_TIME:
        try:
            kept = os.dup(2)
        except OSError:  # standard error is closed
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def first_line(error: BaseException) -> str:
    """The first line of an exception of a reader, 200 characters of it."""
    import polars as pl

    if isinstance(error, pl.exceptions.PanicException):
        return "its reader cannot make sense of it"
    return (str(error) or type(error).__name__).splitlines()[0][:200]
