"""The event loop of `simulate_iteration`: readiness, fusion and start of tasks.

Every task is released, started and ended once and waits in a heap in between, so that n tasks take O(n log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from opticcl.ir.task_graph import TaskGraph
from opticcl.training.runtime import COMPUTE, Runtime, Span, TimeOf, TimesInTurn

__all__ = ["EventLoop"]


@dataclass(slots=True)
class _Message:
    """A message to be sent: a task, or the gradients of a static buffer."""

    tasks: tuple[int, ...]
    size_bytes: int
    fusible: bool
    waits: int  # tasks that are not ready yet
    devices: tuple[int, ...]
    sent: bool = False


class EventLoop:
    """Processes events in the order of time: ended spans release their dependents, then idle queues start tasks.

    Every device has a queue of computation and as many of communication as there are streams. A message occupies a queue of
    each device that takes part.

    Args:
        job: tasks of an iteration.
        time_of: time of each message; None: the recorded times.
        runtime: overlap, fusion and order.
        slowdowns: factor on the computation time of each device.
    """

    def __init__(
        self, job: TaskGraph, time_of: TimeOf | TimesInTurn | None, runtime: Runtime, slowdowns: Sequence[float]
    ) -> None:
        self._job, self._time_of, self._runtime, self._slowdowns = job, time_of, runtime, slowdowns
        self._tasks = job.tasks
        self._waits = [len(set(task.after)) for task in job.tasks]
        self._ahead: list[list[int]] = [[] for _ in job.tasks]
        for i, task in enumerate(job.tasks):
            for j in set(task.after):
                self._ahead[j].append(i)
        self._compute: list[list[int]] = [[] for _ in range(job.num_devices)]
        for i, task in enumerate(job.tasks):
            if not task.communicates:
                self._compute[task.devices[0]].append(i)
        self._next_compute = [0] * job.num_devices
        self._fusion = runtime.fusion if runtime.threshold_bytes else "none"
        self._messages = _messages(job, runtime.threshold_bytes if self._fusion == "static" else 0)
        self._message_of = {i: m for m, message in enumerate(self._messages) for i in message.tasks}
        self._ready: list[tuple[bool, float, int]] = []  # heap of messages; fused ones are marked sent
        self._lanes: dict[tuple[str, str], list[tuple[float, int]]] = {}  # heaps of gradients that may be fused
        self._in_order: list[list[int]] = [[] for _ in range(job.num_devices)]  # messages of each device, last first
        for m in reversed(range(len(self._messages))):
            for device in self._messages[m].devices:
                self._in_order[device].append(m)
        self._spans: list[Span] = []
        self._held: list[list[tuple[int, int]]] = []  # device and slot that each span occupies
        self._span_of = [-1] * len(job.tasks)
        self._running: list[tuple[float, int]] = []  # heap of (end, span)
        # Without overlap messages share the slot of computation.
        slots = 1 + (runtime.streams if runtime.overlap else 0)
        self._idle = [[True] * slots for _ in range(job.num_devices)]
        self._last = [[-1] * slots for _ in range(job.num_devices)]
        self._free_queues = job.num_devices * (slots - 1 if runtime.overlap else 1)  # for messages

    def run(self) -> tuple[Span, ...]:
        """The spans, in the order of their start."""
        now = 0.0
        for i, waits in enumerate(self._waits):
            if not waits:
                self._release(i, now)
        wake = self._start(now)
        while self._running or wake < inf:
            now = min(wake, self._running[0][0] if self._running else inf)
            while self._running and self._running[0][0] <= now:
                _, row = heapq.heappop(self._running)
                for device, slot in self._held[row]:
                    self._idle[device][slot] = True
                    self._free_queues += slot != COMPUTE or not self._runtime.overlap
                for i in sorted(j for task in self._spans[row].tasks for j in self._ahead[task]):
                    self._waits[i] -= 1
                    if not self._waits[i]:
                        self._release(i, now)
            wake = self._start(now)
        return tuple(self._spans)

    def _release(self, i: int, now: float) -> None:
        """A task's dependencies have ended: a message becomes ready."""
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

    # --- start of tasks ---

    def _start(self, now: float) -> float:
        """Start every task that can start now. Returns: next tick of the fusion cycle if a message waits for it, else inf."""
        for device, tasks in enumerate(self._compute):
            while self._idle[device][COMPUTE] and self._next_compute[device] < len(tasks):
                i = tasks[self._next_compute[device]]
                if self._waits[i]:
                    break
                self._next_compute[device] += 1
                took = self._tasks[i].compute_s * self._slowdowns[device]
                self._begin((i,), [(device, COMPUTE)], COMPUTE, now, took, 0)
        wake = inf
        blocked = []  # messages whose devices are busy
        while self._ready and self._free_queues:
            entry = heapq.heappop(self._ready)
            message = self._messages[entry[2]]
            if message.sent:
                continue
            slots = self._slots(message, entry[2])
            if not slots:
                blocked.append(entry)
                continue
            wake = self._tick(message, now)
            if wake < inf:
                blocked.append(entry)
                break
            sent = self._take(entry[2])
            first = self._tasks[sent[0]]
            size = sum(self._tasks[i].size_bytes for i in sent)
            if self._time_of is None:
                took = sum(self._tasks[i].measured_s for i in sent)
            else:
                agreed = self._runtime.latency_s if first.fusible else 0.0
                group = self._job.groups[first.group]
                if isinstance(self._time_of, TimesInTurn):
                    took = agreed + self._time_of.at(now + agreed, first.collective, group, size)
                else:
                    took = self._time_of(first.collective, group, size) + agreed
            self._begin(sent, slots, max(slots[0][1], 1), now, took, size)
        for entry in blocked:
            heapq.heappush(self._ready, entry)
        return wake

    def _slots(self, message: _Message, m: int) -> list[tuple[int, int]]:
        """Device and idle slot for each device of a message; empty if one is busy or waits for an earlier message."""
        found = []
        for device in message.devices:
            if self._runtime.order == "job":
                following = self._in_order[device]
                while self._messages[following[-1]].sent:
                    following.pop()
                if following[-1] != m:
                    return []
            idle = self._idle[device]
            candidates = range(1, len(idle)) if self._runtime.overlap else (COMPUTE,)
            slot = next((slot for slot in candidates if idle[slot]), -1)
            if slot < 0:
                return []
            found.append((device, slot))
        return found

    def _tick(self, message: _Message, now: float) -> float:
        """Next tick of the fusion cycle that a message has to wait for; inf if it may start now."""
        cycle = self._runtime.cycle_s if self._runtime.overlap else 0.0
        if cycle and message.fusible:
            tick = ceil(now / cycle - 1e-9) * cycle
            if tick > now:
                return tick
        return inf

    def _take(self, m: int) -> tuple[int, ...]:
        """The tasks of a message, including those fused greedily."""
        message = self._messages[m]
        message.sent = True
        if self._fusion != "greedy" or not message.fusible:
            return message.tasks
        first = self._tasks[message.tasks[0]]
        lane = self._lanes[first.collective, first.group]
        tasks, size = list(message.tasks), message.size_bytes
        while lane:
            joins = self._messages[lane[0][1]]
            if not joins.sent:
                if size + joins.size_bytes > self._runtime.threshold_bytes:
                    break
                joins.sent = True
                tasks += joins.tasks
                size += joins.size_bytes
            heapq.heappop(lane)
        return tuple(tasks)

    def _begin(
        self,
        tasks: tuple[int, ...],
        held: list[tuple[int, int]],
        queue: int,
        now: float,
        took: float,
        size: int,
    ) -> None:
        """Start a span in a slot of each of its devices."""
        before = [self._span_of[j] for i in tasks for j in self._tasks[i].after]
        before += [self._last[device][slot] for device, slot in held]
        cause = max(before, key=lambda row: (self._spans[row].end_s, row) if row >= 0 else (-1.0, -1))
        row = len(self._spans)
        devices = tuple(device for device, _ in held)
        self._spans.append(Span(tasks, queue, now, now + took, size, cause, devices))
        self._held.append(held)
        for device, slot in held:
            self._last[device][slot] = row
            self._idle[device][slot] = False
            self._free_queues -= slot != COMPUTE or not self._runtime.overlap
        for i in tasks:
            self._span_of[i] = row
        heapq.heappush(self._running, (now + took, row))


def _messages(job: TaskGraph, threshold_bytes: int) -> list[_Message]:
    """Every task that communicates; with a threshold fusible ones are grouped into static buffers.

    A buffer is closed before it would overflow and before a task that depends on its contents, so that no order allowed by
    the job can deadlock. Messages are in the order of their last tasks.
    """
    done: list[tuple[int, ...]] = []
    filling: dict[tuple[str, str], tuple[list[int], int]] = {}  # tasks of the open buffers, and their bytes
    buffer_of: dict[int, tuple[str, str]] = {}  # of tasks in open buffers

    def close(key: tuple[str, str]) -> None:
        tasks, _ = filling.pop(key)
        done.append(tuple(tasks))
        for i in tasks:
            del buffer_of[i]

    for i, task in enumerate(job.tasks):
        for key in {buffer_of[j] for j in task.after if j in buffer_of}:
            close(key)
        if not task.communicates:
            continue
        if not (threshold_bytes and task.fusible):
            done.append((i,))
            continue
        key = task.collective, task.group
        if key in filling and filling[key][1] + task.size_bytes > threshold_bytes:
            close(key)
        tasks, size = filling.get(key, ([], 0))
        tasks.append(i)
        filling[key] = tasks, size + task.size_bytes
        buffer_of[i] = key
    for key in list(filling):
        close(key)
    done.sort(key=lambda tasks: tasks[-1])
    made = []
    for members in done:
        first, size = job.tasks[members[0]], sum(job.tasks[i].size_bytes for i in members)
        made.append(_Message(members, size, first.fusible, len(members), first.devices))
    return made
