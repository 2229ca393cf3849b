"""A lock between processes that compile: one at a time loads, compiles and keeps kernels of a file.

Numba replaces each of its files at once, but reads the index of a kernel, adds to it, writes it, and then the compiled code. Of
two processes that do so at the same time with arguments of other types, one may write its code under the name that the index
gives to the other, which is then called with the wrong types.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from numba.core.event import Listener

__all__ = ["CompilerLock"]


class CompilerLock(Listener):
    """Holds the file of a kernel locked while numba loads, compiles and keeps it, and those of the same file that it calls.

    Args: file: path of the file that is compiled now; where it cannot be locked, no process waits.
    """

    def __init__(self, file: Callable[[], Path]):
        """Lock nothing yet."""
        self._file, self._depth = file, 0
        self._threads, self._held = threading.RLock(), ExitStack()

    def on_start(self, event: Any) -> None:
        """Wait for other threads and processes; a thread may enter again."""
        with ExitStack() as undone:  # where the user interrupts
            self._threads.acquire()
            undone.callback(self._threads.release)
            if not self._depth:
                self._wait()
            self._depth += 1
            undone.pop_all()

    def _wait(self) -> None:
        with suppress(ImportError, OSError):  # not on Windows, not in an archive, not on every file system
            import fcntl

            fcntl.flock(self._held.enter_context(self._file().open("rb")), fcntl.LOCK_EX)

    def on_end(self, event: Any) -> None:
        """Let others in."""
        self._depth -= 1
        if not self._depth:
            self._held.close()
        self._threads.release()
