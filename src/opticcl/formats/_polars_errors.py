"""What polars says of damaged files, in one line: for some it panics, and prints where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

__all__ = ["first_line", "panics_unprinted"]

_ONE_AT_A_TIME = RLock()


@contextmanager
def panics_unprinted() -> Iterator[None]:
    """Within this, or in a function that it decorates, nothing is printed on standard error; exceptions are raised as ever."""
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


def first_line(error: Exception) -> str:
    """The first line of an exception of a reader, 200 characters of it."""
    import polars as pl

    if isinstance(error, pl.exceptions.PanicException):
        return "its reader cannot make sense of it"
    return (str(error) or type(error).__name__).splitlines()[0][:200]
