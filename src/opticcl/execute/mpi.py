"""MPI as a transport of rank schedules, by mpi4py.

A step posts all receives, then all sends, and waits for all of them. The tag is the step modulo 2**14; messages of one pair
of ranks do not overtake each other, so longer schedules are safe as well. Messages are bytes, in parts of at most 1 GiB.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from opticcl.errors import OpticclError, ParameterError, UnsupportedError
from opticcl.execute.loop import Exchange

__all__ = ["INSTALL", "TAGS", "MpiTransport", "Watchdog", "from_rank_0", "load_mpi"]

INSTALL = "pip install 'opticcl[mpi]'"
TAGS = 1 << 14
PART_BYTES = 1 << 30


def load_mpi() -> Any:
    """The module mpi4py.MPI.

    Raises: UnsupportedError: mpi4py is not installed, or finds no MPI library.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0][:200]
        raise UnsupportedError(f"mpi: mpi4py cannot be loaded ({reason}); {INSTALL}") from None
    return MPI


def from_rank_0(comm: Any, make: Callable[[], tuple[Any, Sequence[Any]]]) -> tuple[Any, Any]:
    """Run a function on rank 0 and share what it returns; its failure is raised on every rank.

    Args:
        comm: mpi4py communicator.
        make: returns a value for all ranks, and one value per rank.
    Returns: the value for all ranks, and that of this rank.
    Raises: ParameterError: with the text and the exit code of the error on rank 0.
    """
    failure, common, own = None, None, None
    if comm.rank == 0:
        try:
            common, own = make()
        except OpticclError as error:
            failure = str(error), error.exit_code
    failure = comm.bcast(failure)
    if failure is not None:
        failed = ParameterError(failure[0])
        failed.exit_code = failure[1]
        raise failed
    return comm.bcast(common), comm.scatter(own)


class Watchdog:
    """Ends the process when a step takes longer than the time limit, with one line that says where.

    Args:
        limit_s: longest duration of a step [s].
        who: this rank, in words.
    """

    def __init__(self, limit_s: float, who: str) -> None:
        self._limit_s, self._who = limit_s, who
        self._step: tuple[Callable[[], str], float] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="opticcl-watchdog", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def begin(self, where: Callable[[], str], least_s: float = 0.0) -> None:
        """A step begins.

        Args:
            where: says what is waited for; called when the time limit is exceeded.
            least_s: time that it has at least [s].
        """
        self._step = where, least_s

    def end(self) -> None:
        """The step has ended."""
        self._step = None

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        """Note which step is there now and then; that of a second look is still the same object."""
        watched, since = None, 0.0
        while not self._stopped.wait(min(1.0, self._limit_s / 4)):
            step, now = self._step, time.monotonic()
            if step is not watched:
                watched, since = step, now
            if step is None:
                continue
            allowed_s = max(self._limit_s, step[1])
            if now - since > allowed_s:
                line = f"opticcl: {self._who}: {step[0]()}: no answer within {allowed_s:g} s; all processes are ended"
                print(line, file=sys.stderr, flush=True)
                os._exit(1)


class MpiTransport:
    """Messages between the ranks of an MPI communicator.

    Args:
        comm: mpi4py communicator that nothing else uses, one process per rank.
        limit_s: longest duration of a step; None: no limit [s].
    """

    def __init__(self, comm: Any, limit_s: float | None = None) -> None:
        self._mpi = load_mpi()
        self._comm = comm
        self._watchdog = None if limit_s is None else Watchdog(limit_s, f"rank {comm.rank} of {comm.size}")
        self.begin = _nothing if self._watchdog is None else self._watchdog.begin
        self.end = _nothing if self._watchdog is None else self._watchdog.end
        self.label = "collective"

    def run(self, exchanges: Iterator[Exchange]) -> None:
        """Carry the messages of all steps."""
        for exchange in exchanges:
            if not exchange.sends and not exchange.recvs:
                continue
            self.begin(partial(self._where, exchange))
            self._mpi.Request.Waitall(self._post(exchange))
            self.end()

    def _where(self, exchange: Exchange) -> str:
        peers = sorted({peer for peer, _ in (*exchange.recvs, *exchange.sends)})
        return f"{self.label}, step {exchange.step}, with ranks {', '.join(map(str, peers[:8]))}"

    def start(self, requests: list[Any], where: Callable[[], str]) -> None:
        """Start messages that are kept, and wait for all of them.

        Args:
            requests: persistent ones.
            where: says what is waited for.
        """
        self.begin(where)
        self._mpi.Prequest.Startall(requests)
        self._mpi.Request.Waitall(requests)
        self.end()

    def words(self, value: Any) -> list[Any]:
        """What all ranks say, where their calls differ; each says it when it sees that, as this one.

        Args: value: of this rank.
        """
        with self.watched(lambda: f"{self.label}, which other ranks do not call, waiting for what they call"):
            gathered: list[Any] = self._comm.allgather(value)
        return gathered

    @contextmanager
    def watched(self, where: Callable[[], str], least_s: float = 0.0) -> Iterator[None]:
        """Limit the time of the block.

        Args:
            where: says what is waited for.
            least_s: time that it has at least [s].
        """
        self.begin(where, least_s)
        try:
            yield
        finally:
            self.end()

    def _post(self, exchange: Exchange) -> list[Any]:
        tag, byte = exchange.step % TAGS, self._mpi.BYTE
        requests = [
            self._comm.Irecv((part, byte), peer, tag) for peer, buffer in exchange.recvs for part in _parts(buffer)
        ]
        requests += [
            self._comm.Isend((part, byte), peer, tag) for peer, buffer in exchange.sends for part in _parts(buffer)
        ]
        return requests

    def close(self) -> None:
        """End the watchdog."""
        if self._watchdog is not None:
            self._watchdog.stop()


def _nothing(*_: Any) -> None:
    """No step is limited."""


def _parts(buffer: np.ndarray) -> list[np.ndarray]:
    """A contiguous buffer as bytes, in parts that every MPI library can count."""
    flat = buffer.reshape(-1).view(np.uint8)
    if len(flat) <= PART_BYTES:
        return [flat]
    return [flat[first : first + PART_BYTES] for first in range(0, len(flat), PART_BYTES)]
