"""A limit of time for what no thread of a process can watch: MPI holds the interpreter while it waits for all to start."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import NoReturn

__all__ = ["StartGuard"]


class StartGuard:
    """Another process, which ends this one when something takes too long, with one line that says what.

    Args: who: this process, in words.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        reading, self._writing = os.pipe()
        parent = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            os.close(self._writing)
            _watch(reading, parent)
        os.close(reading)

    def allow(self, limit_s: float, what: str) -> None:
        """From now on this process is ended after a while.

        Args:
            limit_s: the while [s].
            what: is missing then, in words.
        """
        line = f"opticcl: {self._who}: {what} within {limit_s:g} s; all processes are ended"
        os.write(self._writing, f"{limit_s!r} {line}\n".encode())

    def end(self) -> None:
        """End the other process: there is no limit any more."""
        os.close(self._writing)
        os.waitpid(self._process, 0)


def _watch(reading: int, parent: int) -> NoReturn:
    """What the other process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for stream in (0, 1):  # their readers do not wait for this process
        os.close(stream)
    end: float | None = None
    line = b""
    try:
        while True:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            if not select.select([reading], [], [], left)[0]:
                os.write(2, line + b"\n")
                os.kill(parent, signal.SIGKILL)
                os._exit(0)
            sent = os.read(reading, select.PIPE_BUF)
            if not sent:
                os._exit(0)
            limit_s, _, line = sent.splitlines()[-1].partition(b" ")
            end = time.monotonic() + float(limit_s)
    finally:
        os._exit(1)
