"""Independent parts of one job in several processes, with the same results as one after the other.

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
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from opticcl.errors import ParameterError
from opticcl.ir import ProgressCallback, no_progress

__all__ = ["MOST_JOBS", "each", "number_of_jobs"]

R = TypeVar("R")

MOST_JOBS = 256
LEAST_CAP = 1 << 29
"""Memory that a process may always take [bytes]."""


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
) -> list[R]:
    """Results of `work(0)`, `work(1)`, ..., in this order.

    Args:
        work: the part of that number; it gets a callback for its progress. Parts may share caches, but no results.
        count: parts [count].
        jobs: processes [count].
        progress: called with the reports of all parts, each with the number of parts that are done.
    Raises: what the first part raises that raises anything.
    """
    jobs = min(jobs, count)
    if jobs < 2 or sys.platform != "linux" or threading.active_count() > 1:  # forking would lose other threads
        return [work(i, progress) for i in range(count)]
    found = _in_processes(work, count, jobs, progress)
    return [found[i][0] if i in found else work(i, progress) for i in range(count)]


def _in_processes(
    work: Callable[[int, ProgressCallback], R], count: int, jobs: int, progress: ProgressCallback
) -> dict[int, tuple[R]]:
    """Results by number, as far as the processes had any.

    Args:
        work, count, jobs, progress: as of `each`.
    """
    context, cap = multiprocessing.get_context("fork"), max(LEAST_CAP, _available_bytes() // 2 // jobs)
    waiting = list(range(count))[::-1]
    found: dict[int, tuple[R]] = {}
    workers: dict[Connection, Any] = {}
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        for _ in range(jobs):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(work, there, here, [*workers], cap), daemon=True)
            process.start()
            there.close()
            workers[here] = process
            here.send(waiting.pop())
        busy = set(workers)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                try:
                    kind, number, value = connection.recv()
                except (EOFError, OSError):  # the process ended
                    busy.discard(connection)
                    continue
                if kind == "progress":
                    label, *counts = value
                    progress(f"{label} ({len(found)} of {count} done)", *counts)
                    continue
                if kind == "result":
                    found[number] = (value,)
                if waiting:
                    connection.send(waiting.pop())
                else:
                    connection.send(None)
                    busy.discard(connection)
        return found
    finally:
        for connection, process in workers.items():
            process.terminate()
            connection.close()
        for process in workers.values():
            process.join()


def _work(
    work: Callable[[int, ProgressCallback], Any],
    mine: Connection,
    parents: Connection,
    others: list[Connection],
    cap: int,
) -> None:
    """What a process does: parts by number, until there are none.

    Args:
        work: of `each`.
        mine: to the parent.
        parents: its other end, and `others` those of other processes: closed, so that these end when the parent ends.
        others: see above.
        cap: memory that it may take in addition [bytes].
    """
    import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends all
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for connection in (parents, *others):
        connection.close()
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + cap
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most < 0 else min(limit, most), most))
    while (number := mine.recv()) is not None:

        def report(label: str, done: int = 0, total: int = 0, /, number: int = number) -> None:
            mine.send(("progress", number, (label, done, total)))

        try:
            mine.send(("result", number, work(number, report)))
        except (BrokenPipeError, EOFError):
            return
        except Exception:  # done again by the parent, which raises it
            mine.send(("failed", number, None))


def _available_bytes() -> int:
    """Memory that is free for programs [bytes]."""
    with open("/proc/meminfo", encoding="ascii") as file:
        found = {line.partition(":")[0]: line.split()[1] for line in file}
    return int(found.get("MemAvailable", found["MemFree"])) * 1024


def _data_bytes() -> int:
    """Data of this process [bytes]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
