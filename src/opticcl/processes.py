"""Independent parts of one job in several processes, with the same results as one after the other.

`each` returns the results of all parts; `events` yields them as they arrive, and reports a process that ends instead of doing
its part again. A pool of `concurrent.futures` breaks as a whole when one process ends, and does not say at which part.

Processes are forked, so they know what this one knows, plugins too. Each may take half of the memory that is free, shared among
them. What a process cannot do - it runs out of memory, ends, raises an exception, or its result cannot be sent - is done again
here, after the others: so every error is the same as without processes. Whatever ends this process ends the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from opticcl.errors import ParameterError
from opticcl.interrupts import end_with_parent
from opticcl.ir import ProgressCallback, no_progress

__all__ = ["MOST_JOBS", "Event", "available_bytes", "each", "events", "number_of_jobs"]

R = TypeVar("R")
T = TypeVar("T")

MOST_JOBS = 256
LEAST_CAP = 1 << 29
"""Memory that a process may always take [bytes]."""

SMALL = 16
"""A part is small whose weight is such a part of what each process has to do."""

VALUE, END = "value", "end"
"""Kinds of a message of a process."""

_to_parent: Connection
"""In a process: its pipe to the parent."""

MOST_VALUES = 256
"""Of one process, before another one is asked [count]."""

PAUSE_S = 0.004
"""Before values are received: many at once cost this process, which shares the cores, less [s]."""


def number_of_jobs(given: int | None, *, large: bool = True) -> int:
    """Processes to use: what is given, or one a core.

    Args:
        given: value of `--jobs`; None: as many as there are cores, or 1 for a small job [count].
        large: whether the job takes longer than starting processes.
    Raises: ParameterError: below 1, or more than `MOST_JOBS`.
    """
    if given is None and not large:
        return 1
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= given <= MOST_JOBS:
        raise ParameterError(
            f"--jobs={given} is not within 1 to {MOST_JOBS}; try --jobs 2, or leave it out: one a core"
        )
    return given


def each(
    work: Callable[[int, ProgressCallback], R],
    count: int,
    *,
    jobs: int = 1,
    progress: ProgressCallback = no_progress,
    weights: Sequence[float] = (),
) -> list[R]:
    """Results of `work(0)`, `work(1)`, ..., in this order.

    Args:
        work: the part of that number; it gets a callback for its progress. Parts may share caches, but no results.
        count: parts [count].
        jobs: processes [count].
        progress: called with the reports of all parts, each with the number of parts that are done.
        weights: of the parts: processes begin with the largest, so that none of them works alone at the end. If the least is
            small beside the others, it is done here first, so that processes share what it loads and caches. None: in order.
    Raises: what the first part raises that raises anything.
    """
    jobs = min(jobs, count)
    if jobs < 2 or not _can_fork():
        return [work(i, progress) for i in range(count)]
    order = sorted(range(count), key=lambda i: -weights[i]) if weights else list(range(count))
    results: dict[int, tuple[R]] = {}
    if weights and weights[order[-1]] * jobs * SMALL <= sum(weights):
        with suppress(Exception):  # raised below, by the first part that raises anything
            results[order[-1]] = (work(order[-1], progress),)
        order.pop()

    def part(i: int) -> Iterator[tuple[bool, Any]]:
        def report(label: str, done: int = 0, total: int = 0, /) -> None:
            _to_parent.send((VALUE, (False, (label, done, total))))

        yield True, work(i, report)

    total = len(order) + len(results)
    if len(order) > 1:
        with closing(events(part, deque(order), jobs=min(jobs, len(order)))) as stream:
            for event in filter(None, stream):
                for is_result, value in event.values:
                    if is_result:
                        results[event.item] = (value,)
                    else:
                        label, *counts = value
                        progress(f"{label} ({len(results)} of {total} done)", *counts)
    return [results[i][0] if i in results else work(i, progress) for i in range(count)]


@dataclass(frozen=True, slots=True)
class Event(Generic[T, R]):
    """What a process reports of an item.

    Args:
        item: that was given to it.
        values: that arrived, in their order.
        ended: whether the item is finished, for whatever reason.
        crash: why it was not finished: a signal, an exception, no memory; "" if it was, or is not yet.
        unsure: whether it is unknown at which of the values that did not arrive.
    """

    item: T
    values: tuple[R, ...] = ()
    ended: bool = False
    crash: str = ""
    unsure: bool = False


def events(
    work: Callable[[T], Iterator[R]], waiting: deque[T], *, jobs: int = 1, patience_s: float = 0.25
) -> Generator[Event[T, R] | None, None, None]:
    """Values of `work(item)` of every item, as they arrive; None where nothing arrived for a while.

    A process that ends is replaced by another one. Where processes cannot be forked, everything is done in this one.

    Args:
        work: yields the values of an item; called in a process that was forked from this one.
        waiting: items, the first first; the caller may add some while it iterates.
        jobs: processes [count].
        patience_s: most time between two events [s].
    """
    if not _can_fork():
        yield from _events_here(work, waiting)
        return
    context, cap = multiprocessing.get_context("fork"), max(LEAST_CAP, available_bytes() // 2 // jobs)
    workers: dict[Connection, BaseProcess] = {}
    items: dict[Connection, T] = {}
    try:
        while waiting or items:
            while waiting and len(items) < jobs:
                idle = next((connection for connection in workers if connection not in items), None)
                if idle is None:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    idle, there = context.Pipe()
                    workers[idle] = context.Process(
                        target=_serve, args=(work, there, [idle, *workers], cap), daemon=True
                    )
                    workers[idle].start()
                    there.close()
                items[idle] = waiting.popleft()
                with suppress(OSError):  # it ended: found below
                    idle.send(items[idle])
            time.sleep(PAUSE_S)
            ready = wait(list(workers), patience_s)
            if not ready:
                yield None
            for connection in ready:
                assert isinstance(connection, Connection)
                event: Event[T, R] | None = None
                if connection in items:
                    event = _received(connection, items[connection], workers[connection])
                if event is None or event.crash:  # it has ended, perhaps while it had nothing to do
                    workers.pop(connection)
                    connection.close()
                if event is not None:
                    if event.ended:
                        del items[connection]
                    yield event
    finally:
        for connection, process in workers.items():
            process.terminate()
            connection.close()
        for process in workers.values():
            process.join()


def _received(connection: Connection, item: T, process: BaseProcess) -> Event[T, Any]:
    """What a process sent, or how it ended; after an exception it ends by itself."""
    values: list[Any] = []
    try:
        while len(values) < MOST_VALUES and connection.poll():
            kind, value = connection.recv()
            if kind != VALUE:
                return Event(item, tuple(values), True, value)
            values.append(value)
    except (EOFError, OSError):
        process.join()
        code = process.exitcode or 0
        return Event(item, tuple(values), True, signal.Signals(-code).name if code < 0 else f"exit code {code}")
    return Event(item, tuple(values))


def _serve(work: Callable[[T], Iterator[Any]], pipe: Connection, inherited: list[Connection], cap: int) -> None:
    """Body of a process: items until there are none, or until one raises an exception.

    Args:
        work: of `events`.
        pipe: to the parent.
        inherited: ends of pipes that belong to the parent, closed so that those of other processes end with it.
        cap: memory that it may take in addition [bytes].
    """
    global _to_parent
    import resource

    _to_parent = pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends all
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    for connection in inherited:
        connection.close()
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + cap
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most < 0 else min(limit, most), most))
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent ended
        crash = ""
        while not crash:
            item = pipe.recv()
            try:
                for value in work(item):
                    pipe.send((VALUE, value))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                return
            except MemoryError:
                crash = f"out of memory: more than {cap / 1e9:.1f} GB"
            except Exception as error:
                crash = _words(error)
            pipe.send((END, crash))


def _events_here(work: Callable[[T], Iterator[R]], waiting: deque[T]) -> Iterator[Event[T, R]]:
    """`events` in this process."""
    while waiting:
        item, crash = waiting.popleft(), ""
        try:
            for value in work(item):
                yield Event(item, (value,))
        except Exception as error:
            crash = _words(error)
        yield Event(item, (), True, crash)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def _can_fork() -> bool:
    """Whether processes can be forked: with other threads that would lose them."""
    return sys.platform == "linux" and threading.active_count() == 1


def available_bytes() -> int:
    """Memory that is free for programs; where that is not known, as much as any has [bytes]."""
    if sys.platform != "linux":
        return sys.maxsize
    with open("/proc/meminfo", encoding="ascii") as file:
        sizes = {line.partition(":")[0]: line.split()[1] for line in file}
    return int(sizes.get("MemAvailable", sizes["MemFree"])) * 1024


def _data_bytes() -> int:
    """Data of this process [bytes]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
