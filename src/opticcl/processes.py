"""Independent parts of one job in several processes, with the same results as one after the other.

`each` returns the results of all parts; `events` yields them as they arrive, and reports a process that ends instead of doing
its part again.

Processes are forked, so they know what this one knows, plugins too. Each may take half of the memory that is free, shared among
them. What a process cannot do - it runs out of memory, ends, raises an exception, or its result cannot be sent - is done again
here, after the others: so every error is the same as without processes. Whatever ends this process ends the others.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from opticcl.errors import ParameterError
from opticcl.interrupts import end_with_parent
from opticcl.ir import ProgressCallback, no_progress

__all__ = ["MOST_JOBS", "Event", "each", "events", "number_of_jobs"]

R = TypeVar("R")
T = TypeVar("T")

MOST_JOBS = 256
LEAST_CAP = 1 << 29
"""Memory that a process may always take [bytes]."""

SMALL = 16
"""A part is small whose weight is such a part of what each process has to do."""

MOST_READ = 1 << 18
"""Read at once [bytes]."""

LENGTH_BYTES = 8
"""Of the length of a message [bytes]."""

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
    if jobs < 2 or sys.platform != "linux" or threading.active_count() > 1:  # forking would lose other threads
        return [work(i, progress) for i in range(count)]
    order = sorted(range(count), key=lambda i: -weights[i]) if weights else list(range(count))
    found: dict[int, tuple[R]] = {}
    if weights and weights[order[-1]] * jobs * SMALL <= sum(weights):
        with suppress(Exception):  # raised below, by the first part that raises anything
            found[order[-1]] = (work(order[-1], progress),)
        order.pop()
    if len(order) > 1:
        _in_processes(work, order, min(jobs, len(order)), progress, found)
    return [found[i][0] if i in found else work(i, progress) for i in range(count)]


def _in_processes(
    work: Callable[[int, ProgressCallback], R],
    order: Sequence[int],
    jobs: int,
    progress: ProgressCallback,
    found: dict[int, tuple[R]],
) -> None:
    """Add results by number, as far as the processes have any.

    Args:
        work, jobs, progress: as of `each`.
        order: of the parts.
        found: results so far.
    """
    context, cap = multiprocessing.get_context("fork"), max(LEAST_CAP, _available_bytes() // 2 // jobs)
    waiting, total = list(order)[::-1], len(order) + len(found)
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
                    progress(f"{label} ({len(found)} of {total} done)", *counts)
                    continue
                if kind == "result":
                    found[number] = (value,)
                if waiting:
                    connection.send(waiting.pop())
                else:
                    connection.send(None)
                    busy.discard(connection)
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
    _begin((parents, *others), cap)
    while (number := mine.recv()) is not None:

        def report(label: str, done: int = 0, total: int = 0, /, number: int = number) -> None:
            mine.send(("progress", number, (label, done, total)))

        try:
            mine.send(("result", number, work(number, report)))
        except (BrokenPipeError, EOFError):
            return
        except Exception:  # done again by the parent, which raises it
            mine.send(("failed", number, None))


def _begin(inherited: Iterable[Connection], cap: int) -> None:
    """Prepare a process: the parent ends it, and its memory is capped.

    Args:
        inherited: ends of pipes that belong to the parent.
        cap: memory that it may take in addition [bytes].
    """
    import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends all
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    for connection in inherited:
        connection.close()
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + cap
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most < 0 else min(limit, most), most))


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
    if sys.platform != "linux" or threading.active_count() > 1:  # forking would lose other threads
        yield from _events_here(work, waiting)
        return
    context = multiprocessing.get_context("fork")
    cap = max(LEAST_CAP, _available_bytes() // 2 // jobs)
    workers: dict[Connection, Any] = {}
    inboxes: dict[Connection, bytearray] = {}
    items: dict[Connection, T] = {}
    poller, numbered = select.poll(), dict[int, Connection]()  # made once, as `wait` makes one at each call

    def forget(connection: Connection) -> None:
        poller.unregister(connection)
        del numbered[connection.fileno()], workers[connection], inboxes[connection]
        connection.close()

    try:
        while waiting or items:
            while waiting and len(items) < jobs:
                idle = next((one for one in workers if one not in items), None)
                if idle is None:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    idle, there = context.Pipe()
                    process = context.Process(target=_serve, args=(work, there, [idle, *workers], cap), daemon=True)
                    process.start()
                    there.close()
                    workers[idle], inboxes[idle], numbered[idle.fileno()] = process, bytearray(), idle
                    poller.register(idle, select.POLLIN)
                items[idle] = waiting.popleft()
                with suppress(OSError):  # it ended: found below
                    idle.send(items[idle])
            time.sleep(PAUSE_S)
            ready = [numbered[number] for number, _ in poller.poll(1000 * patience_s)]
            if not ready:
                yield None
            for connection in ready:
                if connection not in items:  # it ended while it had nothing to do
                    forget(connection)
                    continue
                event = _received(connection, inboxes[connection], items[connection], workers[connection], cap)
                if event.ended:
                    del items[connection]
                if event.crash:
                    forget(connection)
                yield event
    finally:
        for connection, process in workers.items():
            process.terminate()
            connection.close()
        for process in workers.values():
            process.join()


def _received(connection: Connection, inbox: bytearray, item: T, process: Any, cap: int) -> Event[T, Any]:
    """What a process sent, or how it ended; after an exception it is ended.

    Args:
        connection: to the process.
        inbox: what arrived of a message that is not whole yet; changed.
        item: that it works on.
        process: see above.
        cap: memory that it may take [bytes].
    """
    try:
        arrived = os.read(connection.fileno(), MOST_READ)
    except OSError:
        arrived = b""
    inbox += arrived
    values = []
    for kind, value in _messages(inbox):
        if kind == "value":
            values.append(value)
            continue
        if kind == "end":
            return Event(item, tuple(values), True)
        process.terminate()
        process.join()
        return Event(item, tuple(values), True, value or f"out of memory: more than {cap / 1e9:.1f} GB")
    if arrived:
        return Event(item, tuple(values))
    process.join()
    code = process.exitcode
    return Event(item, tuple(values), True, signal.Signals(-code).name if code < 0 else f"exit code {code}")


def _messages(inbox: bytearray) -> list[tuple[str, Any]]:
    """Whole messages, which are removed: each is its length and its pickle, as `_send` writes them."""
    found, begin = [], 0
    while len(inbox) >= (body := begin + LENGTH_BYTES):
        end = body + int.from_bytes(inbox[begin:body], "big")
        if len(inbox) < end:
            break
        found.append(pickle.loads(inbox[body:end]))
        begin = end
    del inbox[:begin]
    return found


def _send(to: int, kind: str, value: Any) -> None:
    """Write a message to a file descriptor; many of them are read at once, which `Connection.recv` cannot."""
    pickled = pickle.dumps((kind, value))
    left = memoryview(len(pickled).to_bytes(LENGTH_BYTES, "big") + pickled)
    while left:
        left = left[os.write(to, left) :]


def _serve(work: Callable[[T], Iterator[Any]], mine: Connection, inherited: list[Connection], cap: int) -> None:
    """What a process does: items until there are none, or until one raises an exception.

    Args:
        work: of `events`.
        mine: to the parent.
        inherited: ends of pipes that belong to the parent.
        cap: memory that it may take in addition [bytes].
    """
    _begin(inherited, cap)
    to = mine.fileno()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent ended
        while True:
            item = mine.recv()
            try:
                for value in work(item):
                    _send(to, "value", value)
            except (EOFError, BrokenPipeError, ConnectionResetError):
                return
            except MemoryError:
                _send(to, "failed", "")
                return
            except Exception as error:
                _send(to, "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"[:500])
                return
            _send(to, "end", None)


def _events_here(work: Callable[[T], Iterator[R]], waiting: deque[T]) -> Iterator[Event[T, R]]:
    """`events` in this process."""
    while waiting:
        item = waiting.popleft()
        crash = ""
        try:
            for value in work(item):
                yield Event(item, (value,))
        except Exception as error:
            crash = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
        yield Event(item, (), True, crash)


def _available_bytes() -> int:
    """Memory that is free for programs [bytes]."""
    with open("/proc/meminfo", encoding="ascii") as file:
        found = {line.partition(":")[0]: line.split()[1] for line in file}
    return int(found.get("MemAvailable", found["MemFree"])) * 1024


def _data_bytes() -> int:
    """Data of this process [bytes]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
