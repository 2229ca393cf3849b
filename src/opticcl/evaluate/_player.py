"""The event loop behind `play`: what is ready, what goes together, what starts.

Every task is freed, started and ended once, and waits in a heap in between: n tasks take the time of sorting n.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import ceil, inf

from opticcl.evaluate.runtime import COMPUTE, Runtime, Span, TimeOf
from opticcl.workload.job import Job

__all__ = ["Player"]


@dataclass(slots=True)
class _Message:
    """A message that is to be sent: a task, or the gradients of a static buffer."""

    tasks: tuple[int, ...]
    size_bytes: int
    fusible: bool
    waits: int  # for how many of its tasks
    sent: bool = False


class Player:
    """Events in the order of time; at each one ended spans free what waited for them, then idle queues start."""

    def __init__(self, job: Job, time_of: TimeOf, runtime: Runtime, stretch: float) -> None:
        self._job, self._time_of, self._runtime, self._stretch = job, time_of, runtime, stretch
        self._tasks = job.tasks
        self._waits = [len(set(task.after)) for task in job.tasks]
        self._ahead: list[list[int]] = [[] for _ in job.tasks]
        for i, task in enumerate(job.tasks):
            for j in set(task.after):
                self._ahead[j].append(i)
        self._compute = [i for i, task in enumerate(job.tasks) if not task.communicates]
        self._next_compute = 0
        self._fusion = runtime.fusion if runtime.threshold_bytes else "none"
        self._messages = _messages(job, runtime.threshold_bytes if self._fusion == "static" else 0)
        self._message_of = {i: m for m, message in enumerate(self._messages) for i in message.tasks}
        self._ready: list[tuple[bool, float, int]] = []  # heap of messages; those that were fused with others are sent
        self._lanes: dict[tuple[str, str], list[tuple[float, int]]] = {}  # heaps of gradients that may go together
        self._next_message = 0  # in the order of the job
        self._spans: list[Span] = []
        self._span_of = [-1] * len(job.tasks)
        self._running: list[tuple[float, int]] = []  # heap of (end, span)
        slots = 1 + (runtime.streams if runtime.overlap else 0)  # without overlap messages share that of computation
        self._idle, self._last = [True] * slots, [-1] * slots

    def run(self) -> tuple[Span, ...]:
        """The spans, in the order of their start."""
        now = 0.0
        for i, waits in enumerate(self._waits):
            if not waits:
                self._free(i, now)
        wake = self._start(now)
        while self._running or wake < inf:
            now = min(wake, self._running[0][0] if self._running else inf)
            while self._running and self._running[0][0] <= now:
                _, row = heapq.heappop(self._running)
                self._idle[self._spans[row].queue if self._runtime.overlap else COMPUTE] = True
                for i in sorted(j for task in self._spans[row].tasks for j in self._ahead[task]):
                    self._waits[i] -= 1
                    if not self._waits[i]:
                        self._free(i, now)
            wake = self._start(now)
        return tuple(self._spans)

    def _free(self, i: int, now: float) -> None:
        """A task waits for nothing more."""
        if not self._tasks[i].communicates:
            return
        m = self._message_of[i]
        message = self._messages[m]
        message.waits -= 1
        if message.waits:
            return
        order = self._runtime.order
        since = 0.0 if order == "job" else now
        heapq.heappush(self._ready, (message.fusible and order == "transfers_first", since, m))
        if message.fusible and self._fusion == "greedy":
            lane = self._lanes.setdefault((self._tasks[i].collective, self._tasks[i].group), [])
            heapq.heappush(lane, (since, m))

    # --- what starts ---

    def _start(self, now: float) -> float:
        """Start what can start now; the time at which to look again where a cycle must be waited for, else inf."""
        while self._idle[COMPUTE] and self._next_compute < len(self._compute):
            i = self._compute[self._next_compute]
            if self._waits[i]:
                break
            self._next_compute += 1
            self._begin((i,), COMPUTE, COMPUTE, now, self._tasks[i].compute_s * self._stretch, 0)
        wake = inf
        for slot in range(1, len(self._idle)) if self._runtime.overlap else (COMPUTE,):
            if not self._idle[slot]:
                continue
            m, wake = self._choose(now)
            if m < 0:
                break
            tasks = self._take(m)
            first = self._tasks[tasks[0]]
            size = sum(self._tasks[i].size_bytes for i in tasks)
            took = self._time_of(first.collective, self._job.groups[first.group], size)
            took += self._runtime.latency_s if first.fusible else 0.0
            self._begin(tasks, slot, max(slot, 1), now, took, size)
        return wake

    def _choose(self, now: float) -> tuple[int, float]:
        """The message that goes now; or -1, and when to look again."""
        while self._ready and self._messages[self._ready[0][2]].sent:
            heapq.heappop(self._ready)
        if not self._ready:
            return -1, inf
        m = self._ready[0][2]
        if self._runtime.order == "job":
            while self._messages[self._next_message].sent:
                self._next_message += 1
            if m != self._next_message:
                return -1, inf
        cycle = self._runtime.cycle_s if self._runtime.overlap else 0.0
        if cycle and self._messages[m].fusible:
            tick = ceil(now / cycle - 1e-9) * cycle
            if tick > now:
                return -1, tick
        heapq.heappop(self._ready)
        return m, now

    def _take(self, m: int) -> tuple[int, ...]:
        """The tasks that travel in a message, with those that join it greedily."""
        message = self._messages[m]
        message.sent = True
        if self._fusion != "greedy" or not message.fusible:
            return message.tasks
        first = self._tasks[message.tasks[0]]
        lane = self._lanes[first.collective, first.group]
        heapq.heappop(lane)  # the message itself: nothing that may join it has waited longer
        tasks, size = list(message.tasks), message.size_bytes
        while lane and size + (joins := self._messages[lane[0][1]]).size_bytes <= self._runtime.threshold_bytes:
            heapq.heappop(lane)
            joins.sent = True
            tasks += joins.tasks
            size += joins.size_bytes
        return tuple(tasks)

    def _begin(self, tasks: tuple[int, ...], slot: int, queue: int, now: float, took: float, size: int) -> None:
        """Start a span in a slot: that of its queue, or the only one of a device that does one thing at a time."""
        before = [self._span_of[j] for i in tasks for j in self._tasks[i].after] + [self._last[slot]]
        cause = max(before, key=lambda row: (self._spans[row].end_s, row) if row >= 0 else (-1.0, -1))
        row = len(self._spans)
        self._spans.append(Span(tasks, queue, now, now + took, size, cause))
        self._last[slot] = row
        self._idle[slot] = False
        for i in tasks:
            self._span_of[i] = row
        heapq.heappush(self._running, (now + took, row))


def _messages(job: Job, threshold_bytes: int) -> list[_Message]:
    """Every task that communicates, or the static buffers of those that are fusible where there is a threshold.

    A buffer leaves before it would overflow, and before something in the job waits for what it holds; so no order that
    the job allows can come to a standstill. Messages stand in the order of their last tasks.
    """
    done: list[tuple[int, ...]] = []
    filling: dict[tuple[str, str], tuple[list[int], int]] = {}  # tasks of the open buffers, and their bytes
    buffer_of: dict[int, tuple[str, str]] = {}  # of tasks in open buffers

    def leave(key: tuple[str, str]) -> None:
        tasks, _ = filling.pop(key)
        done.append(tuple(tasks))
        for i in tasks:
            del buffer_of[i]

    for i, task in enumerate(job.tasks):
        for key in {buffer_of[j] for j in task.after if j in buffer_of}:
            leave(key)
        if not task.communicates:
            continue
        if not (threshold_bytes and task.fusible):
            done.append((i,))
            continue
        key = task.collective, task.group
        if key in filling and filling[key][1] + task.size_bytes > threshold_bytes:
            leave(key)
        tasks, size = filling.get(key, ([], 0))
        tasks.append(i)
        filling[key] = tasks, size + task.size_bytes
        buffer_of[i] = key
    for key in list(filling):
        leave(key)
    done.sort(key=lambda tasks: tasks[-1])
    size_of = [sum(job.tasks[i].size_bytes for i in tasks) for tasks in done]
    return [_Message(t, n, job.tasks[t[0]].fusible, len(t)) for t, n in zip(done, size_of, strict=True)]
