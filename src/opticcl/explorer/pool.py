"""Work in a bounded number of processes, each piece with a limit of time and a way to cancel it.

    ask --> waiting queue --> thread of a worker <--> its process

A thread passes one task at a time to its process. A task that takes too long or is cancelled ends with its process; the next
task starts another.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from opticcl.errors import OpticclError

__all__ = ["Answer", "Asked", "BusyError", "Limits", "Pool", "Progress", "Work"]

Progress = Callable[[str], None]
"""Called with a line of text."""


class Answer(NamedTuple):
    """Result of a task.

    Args:
        code: exit code of the command; 0 and 1 come with a JSON text.
        json: what the command prints on standard output.
        error: what it prints on standard error.
    """

    code: int
    json: str
    error: str = ""


Work = Callable[[Any, Progress], Answer]
"""A task in a process; importable by its name."""


class BusyError(OpticclError):
    """More tasks wait than the pool accepts."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the work.

    Args:
        workers: processes [count].
        waiting: tasks that wait for one, at most [count].
        time_s: of one task [s].
        memory_bytes: that a process may take [bytes].
        answer_bytes: largest answer [bytes].
        kept: finished tasks whose answers are kept [count].
        kept_bytes: of all their answers [bytes].
    """

    workers: int = 2
    waiting: int = 16
    time_s: float = 120.0
    memory_bytes: int = 6 << 30
    answer_bytes: int = 32 << 20
    kept: int = 64
    kept_bytes: int = 128 << 20


@dataclass(slots=True, eq=False)
class Asked:
    """A task and what became of it.

    Args:
        number: name that cannot be guessed.
        task: what to do; equal tasks have one job.
        state: waiting, running, done, refused, cancelled, late or crashed.
        progress: last line of progress.
        answer: of a task that is done or refused.
        started_s: when it began to run, on the monotonic clock [s].
        cancel: set when it is no longer wanted.
        ended: set when its state is final.
    """

    number: str
    task: Hashable
    state: str = "waiting"
    progress: str = ""
    answer: Answer | None = None
    started_s: float = 0.0
    cancel: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class Pool:
    """Processes that do tasks.

    Args:
        work: done in the processes.
        limits: of the work.
        prepare: called once in each process before its first task; importable by its name.
    """

    def __init__(self, work: Work, limits: Limits | None = None, prepare: Callable[[], object] | None = None) -> None:
        self.limits = limits or Limits()
        self._work, self._prepare = work, prepare
        self._lock = threading.Condition()
        self._waiting: deque[Asked] = deque()
        self._jobs: OrderedDict[str, Asked] = OrderedDict()
        self._by_task: dict[Hashable, Asked] = {}
        self._closed = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self.limits.workers)]
        for thread in self._threads:
            thread.start()

    def ask(self, task: Hashable) -> Asked:
        """The job of a task: one that is finished or under way, or a new one.

        Raises: BusyError: too many wait.
        """
        with self._lock:
            known = self._by_task.get(task)
            if known is not None:
                self._jobs.move_to_end(known.number)
                return known
            if len(self._waiting) >= self.limits.waiting:
                raise BusyError(f"{len(self._waiting)} questions wait already; try again when one is answered")
            job = Asked(secrets.token_urlsafe(12), task)
            self._jobs[job.number] = self._by_task[task] = job
            self._waiting.append(job)
            self._lock.notify()
            return job

    def job(self, number: str) -> Asked | None:
        """The job of that name, if it is known."""
        with self._lock:
            return self._jobs.get(number)

    def cancel(self, job: Asked) -> None:
        """End a task; one that is finished stays as it is."""
        job.cancel.set()
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                self._end(job, "cancelled", None)

    def close(self) -> None:
        """End all tasks and processes."""
        with self._lock:
            self._closed = True
            for job in self._jobs.values():
                job.cancel.set()
            self._lock.notify_all()
        for thread in self._threads:
            thread.join(5.0)

    def _serve(self) -> None:
        """One thread: tasks one after the other in a process of its own."""
        process: _Process | None = _Process(self._work, self.limits, self._prepare)
        while True:
            with self._lock:
                while not self._waiting and not self._closed:
                    self._lock.wait()
                if self._closed:
                    break
                job = self._waiting.popleft()
                job.state, job.started_s = "running", time.monotonic()
            process = process or _Process(self._work, self.limits, self._prepare)
            state, answer = process.do(job)
            if state not in ("done", "refused"):
                process.kill()
                process = None
            with self._lock:
                self._end(job, state, answer)
        if process is not None:
            process.kill()

    def _end(self, job: Asked, state: str, answer: Answer | None) -> None:
        """Make a state final; forget the oldest answers. The lock is held."""
        if answer is not None and len(answer.json) > self.limits.answer_bytes:
            size = f"{len(answer.json) >> 20} MB"
            state, answer = "refused", Answer(2, "", f"opticcl: the answer has {size}; try fewer nodes or fabrics")
        job.answer, job.state = answer, state
        job.ended.set()
        if state not in ("done", "refused"):  # a later question starts it again
            self._by_task.pop(job.task, None)
        finished = [one for one in self._jobs.values() if one.ended.is_set()]
        held = sum(len(one.answer.json) for one in finished if one.answer)
        while finished and (len(finished) > self.limits.kept or held > self.limits.kept_bytes):
            oldest = finished.pop(0)
            held -= len(oldest.answer.json) if oldest.answer else 0
            del self._jobs[oldest.number]
            if self._by_task.get(oldest.task) is oldest:
                del self._by_task[oldest.task]


class _Process:
    """A process that does one task at a time."""

    def __init__(self, work: Work, limits: Limits, prepare: Callable[[], object] | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._limits = limits
        self._process = context.Process(target=_loop, args=(work, other, limits.memory_bytes, prepare), daemon=True)
        self._process.start()
        other.close()

    def do(self, job: Asked) -> tuple[str, Answer | None]:
        """Final state and answer of a job."""
        try:
            self._connection.send(job.task)
            while True:
                if job.cancel.is_set():
                    return "cancelled", None
                if time.monotonic() - job.started_s > self._limits.time_s:
                    return "late", None
                if self._connection.poll(0.05):
                    kind, value = self._connection.recv()
                    if kind == "answer":
                        return ("done" if value.code in (0, 1) else "refused"), value
                    job.progress = value
        except (EOFError, OSError):
            return "crashed", None

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _loop(work: Work, connection: Connection, memory_bytes: int, prepare: Callable[[], object] | None) -> None:
    """Body of a process: tasks until the other end of the pipe is closed."""
    import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes if most < 0 else min(memory_bytes, most), most))
    os.environ["COLUMNS"] = "120"
    if prepare is not None:
        prepare()
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer = work(task, lambda text: connection.send(("progress", text[:200])))
        except MemoryError:
            answer = Answer(2, "", "opticcl: out of memory; try fewer nodes or a smaller message")
        try:
            connection.send(("answer", answer))
        except OSError:
            return
