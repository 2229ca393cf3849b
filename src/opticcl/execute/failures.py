"""What a process of a group prints and returns when an error of OptiCCL ends it: one line and the exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from opticcl.errors import ExecutionError, OpticclError, ParameterError

__all__ = ["remember_failure", "report_failures", "text_of_error"]

GRACE_S = 0.5
"""Time by which a rank that prints nothing ends later, since a launcher ends all ranks when one has ended [s]."""

_installed = False
_last: OpticclError | None = None


def text_of_error(check: Callable[[], None]) -> str | None:
    """Text of the ParameterError that a check raises; None if it raises none."""
    try:
        check()
    except ParameterError as error:
        return str(error)
    return None


def remember_failure(error: OpticclError) -> None:
    """Keep a failure that may be raised again as another exception, which has its text: callers in C++ know no other way."""
    global _last
    _last = error


def _failure_of(error: BaseException) -> OpticclError | None:
    """The error of OptiCCL that an exception is, or has the text of."""
    if isinstance(error, OpticclError):
        return error
    return _last if _last is not None and str(_last) in str(error) else None


def report_failures(rank: int, end: Callable[[int], Any] = os._exit, *, others: bool = False) -> None:
    """Print uncaught errors of OptiCCL as one line, and end the process with their exit code.

    Errors that all ranks of a group raise are printed by its first rank; those of one rank, with its name, by that rank.
    Other exceptions are printed as usual.

    Args:
        rank: of this process.
        end: called with the exit code.
        others: whether other exceptions end the process in the same way, after their traceback.
    """
    global _installed
    if _installed:
        return
    _installed = True
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        failure = _failure_of(error)
        if failure is None:
            before(kind, error, trace)
            if others and not issubclass(kind, KeyboardInterrupt):
                print(f"opticcl: rank {rank} raised {kind.__name__}", file=sys.stderr, flush=True)
                end(1)
            return
        if rank == failure.printed_by or isinstance(failure, ExecutionError):
            print(f"opticcl: {failure}", file=sys.__stderr__, flush=True)  # torch replaces sys.stderr meanwhile
        else:
            time.sleep(GRACE_S)
        sys.stdout.flush()
        end(failure.exit_code)

    sys.excepthook = hook
