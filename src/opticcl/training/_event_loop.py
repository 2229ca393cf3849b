"""The event loop of `simulate_iteration`: readiness, fusion and start of tasks.

Every task is released, started and ended once and waits in a heap in between, so that n tasks take O(n log n). Where messages
share a node (`opticcl.training._sharing`), the end of each is put off or brought forward as others begin and end to move data.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from opticcl.ir.task_graph import TaskGraph
from opticcl.training._sharing import Ports, Sharing
from opticcl.training.runtime import COMPUTE, MessageTimes, Runtime, Span, TimeOf, TimesInTurn, num_streams

__all__ = ["EventLoop"]

_ENDED = -1.0
Queues = tuple[tuple[int, int], ...]  # devices and their queues, 0 for any


@dataclass(slots=True)
class _Message:
    """A message to be sent: a task, or the gradients of a static buffer."""

    tasks: tuple[int, ...]
    size_bytes: int
    fusible: bool
    waits: int  # tasks that are not ready yet
    queues: Queues
    sent: bool = False


class EventLoop:
    """Processes events in the order of time: ended spans release their dependents, then idle queues start tasks.

    Every device has a queue of computation and as many of communication as there are streams. A message occupies a queue of
    each device that takes part: the recorded one, unless the runtime says how many there are.

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
        as_recorded = runtime.streams is None and runtime.overlap
        self._messages = _messages(job, runtime.threshold_bytes if self._fusion == "static" else 0, as_recorded)
        self._message_of = {i: m for m, message in enumerate(self._messages) for i in message.tasks}
        self._ready: dict[Queues, list[tuple[bool, float, int]]] = {}  # heaps of messages; fused ones are marked sent
        self._lanes: dict[tuple[str, str], list[tuple[float, int]]] = {}  # heaps of gradients that may be fused
        self._in_order: list[list[int]] = [[] for _ in range(job.num_devices)]  # messages of each device, last first
        for m in reversed(range(len(self._messages))):
            for device, _ in self._messages[m].queues:
                self._in_order[device].append(m)
        self._spans: list[Span] = []
        self._held: list[list[tuple[int, int]]] = []  # device and slot that each span occupies
        self._span_of = [-1] * len(job.tasks)
        self._running: list[tuple[float, int]] = []  # heap of (end, span); an entry counts if the span still ends then
        self._end_s: list[float] = []  # of each span, as far as is known
        # Without overlap messages share the slot of computation.
        slots = 1 + (num_streams(job, runtime) if runtime.overlap else 0)
        self._idle = [[True] * slots for _ in range(job.num_devices)]
        self._last = [[-1] * slots for _ in range(job.num_devices)]
        self._free_queues = job.num_devices * (slots - 1 if runtime.overlap else 1)  # for messages
        self._sharing: Sharing | None = None  # recorded times include what was shared
        if time_of is not None and max(slots - 1, job.num_devices) > 1:
            ports = Ports(job)
            self._sharing = Sharing(ports) if slots > 2 or ports.beyond_devices else None
        self._moving: list[tuple[float, int]] = []  # heap of (when its data begins to move, span)

    def run(self) -> tuple[Span, ...]:
        """The spans, in the order of their start."""
        now = 0.0
        for i, waits in enumerate(self._waits):
            if not waits:
                self._release(i, now)
        wake = self._start(now)
        while self._running or wake < inf:
            now = min(wake, self._running[0][0]) if self._running else wake
            if self._moving:
                now = min(now, self._moving[0][0])
            while self._running and self._running[0][0] <= now:
                end_s, row = heapq.heappop(self._running)
                if end_s == self._end_s[row]:
                    self._finish(row, now)
            while self._moving and self._moving[0][0] <= now:
                self._move(heapq.heappop(self._moving)[1], now)
            wake = self._start(now)
        return tuple(self._spans)

    def _finish(self, row: int, now: float) -> None:
        """A span has ended."""
        span = self._spans[row]
        if span.end_s != self._end_s[row]:
            self._spans[row] = replace(span, end_s=self._end_s[row])
        self._end_s[row] = _ENDED
        if self._sharing is not None:
            self._put_off(self._sharing.leave(row), now)
        for device, slot in self._held[row]:
            self._idle[device][slot] = True
            self._free_queues += slot != COMPUTE or not self._runtime.overlap
        for i in sorted(j for task in span.tasks for j in self._ahead[task]):
            self._waits[i] -= 1
            if not self._waits[i]:
                self._release(i, now)

    def _move(self, row: int, now: float) -> None:
        """The data of a message begins to move."""
        if self._sharing is not None and self._end_s[row] > now:
            self._put_off(self._sharing.join(row, self._tasks[self._spans[row].tasks[0]]), now)

    def _put_off(self, changed: list[tuple[int, int, int]], now: float) -> None:
        """Move the ends of messages.

        Args:
            changed: (row, k, l) of those that moved at 1/k of their speed and now move at 1/l.
            now: the time [s].
        """
        for row, before, among in changed:
            self._end_s[row] = now + (self._end_s[row] - now) * among / before
            heapq.heappush(self._running, (self._end_s[row], row))

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
        waiting = self._ready.setdefault(message.queues, [])
        heapq.heappush(waiting, (message.fusible and order == "transfers_first", since, m))
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
        heads = [(waiting[0], queues) for queues, waiting in self._ready.items()] if self._free_queues else []
        if len(heads) > 1:
            heapq.heapify(heads)
        while heads and self._free_queues and wake == inf:
            (_, _, m), queues = heapq.heappop(heads)
            waiting, message = self._ready[queues], self._messages[m]
            if not message.sent:
                slots = self._slots(queues, m)
                if not slots:
                    continue  # nor can another that waits for the same queues start
                wake = self._tick(message, now)
                if wake < inf:
                    continue
                self._send(m, slots, now)
            heapq.heappop(waiting)
            if not waiting:
                del self._ready[queues]
            elif self._free_queues:
                heapq.heappush(heads, (waiting[0], queues))
        return wake

    def _send(self, m: int, slots: list[tuple[int, int]], now: float) -> None:
        """Start a message, with those that are fused with it.

        Args:
            now: the time [s].
        """
        sent = self._take(m)
        first = self._tasks[sent[0]]
        size = sum(self._tasks[i].size_bytes for i in sent)
        row = len(self._spans)
        if self._time_of is None:
            took = sum(self._tasks[i].measured_s for i in sent)
        else:
            agreed = self._runtime.latency_s if first.fusible else 0.0
            message = first.collective, self._job.groups[first.group], size
            parts = (first.matrix_bytes,) if first.matrix_bytes else ()
            if isinstance(self._time_of, TimesInTurn):
                took = agreed + self._time_of.at(now + agreed, *message, *parts)
            elif isinstance(self._time_of, MessageTimes):
                took = self._time_of(*message, *parts) + agreed
            else:
                took = self._time_of(*message) + agreed
        self._begin(sent, slots, max(slots[0][1], 1), now, took, size)
        if self._sharing is None:
            return
        still_s = agreed
        if isinstance(self._time_of, MessageTimes):
            still_s = took - self._time_of.moving_s(*message, *parts)
        if still_s > 0:
            heapq.heappush(self._moving, (now + still_s, row))
        else:
            self._move(row, now)

    def _slots(self, queues: Queues, m: int) -> list[tuple[int, int]]:
        """Device and idle slot for each device of a message; empty if one is busy or waits for an earlier message."""
        found = []
        for device, queue in queues:
            if self._runtime.order == "job":
                following = self._in_order[device]
                while self._messages[following[-1]].sent:
                    following.pop()
                if following[-1] != m:
                    return []
            idle = self._idle[device]
            candidates = (queue,) if queue else range(1, len(idle)) if self._runtime.overlap else (COMPUTE,)
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
        before = {self._span_of[j] for i in tasks for j in self._tasks[i].after}
        before |= {self._last[device][slot] for device, slot in held}
        _, cause = max((self._spans[row].end_s if row >= 0 else -1.0, row) for row in before)
        row = len(self._spans)
        devices = tuple(device for device, _ in held)
        self._spans.append(Span(tasks, queue, now, now + took, size, cause, devices))
        self._end_s.append(now + took)
        self._held.append(held)
        for device, slot in held:
            self._last[device][slot] = row
            self._idle[device][slot] = False
            self._free_queues -= slot != COMPUTE or not self._runtime.overlap
        for i in tasks:
            self._span_of[i] = row
        heapq.heappush(self._running, (now + took, row))


def _messages(job: TaskGraph, threshold_bytes: int, as_recorded: bool) -> list[_Message]:
    """Every task that communicates; with a threshold fusible ones are grouped into static buffers.

    A buffer is closed before it would overflow and before a task that depends on its contents, so that no order allowed by
    the job can deadlock. Messages are in the order of their last tasks.

    Args:
        threshold_bytes: maximum size of a buffer; 0: no buffers [bytes].
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
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Queues] = {}
    for members in done:
        first, size = job.tasks[members[0]], sum(job.tasks[i].size_bytes for i in members)
        placed = first.devices, first.streams
        if placed not in known:
            streams = first.streams if as_recorded and first.streams else (0,) * len(first.devices)
            known[placed] = tuple(zip(first.devices, streams, strict=True))
        made.append(_Message(members, size, first.fusible, len(members), known[placed]))
    return made
