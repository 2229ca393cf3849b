"""An iteration of training: the tasks of a job simulated on the queues of one device.

::

    compute        f1  f2  f3  b3  b2  b1          one after the other, in the order of the job
    communication              [g3][g2 g1 fused]   one message at a time per stream

A task starts when its dependencies have ended and its queue is free. Messages of several streams share the rate of the nodes
that they have in common (`opticcl.training._sharing`). Gradients may be fused, as in Horovod: greedily, all that are ready when
the network becomes idle, up to a threshold, or statically, in buffers that are filled in the order of the gradients and sent
when full. Without overlap the device executes one task at a time, and gradients wait until all computation has ended.

Reading: every collective waits for the slowest device, even if that is in another group; so the iteration time of the
slowest device is that of the job.

Source: Horovod (Sergeev and Del Balso 2018) for tensor fusion; ODDL section 5.A as the notes restate it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray
from opticcl.ir.task_graph import Matrix, TaskGraph
from opticcl.simulate import port_bytes
from opticcl.simulate.guards import refuse_below
from opticcl.training._event_loop import EventLoop
from opticcl.training._sharing import Ports
from opticcl.training.partition.tasks import WAIT
from opticcl.training.runtime import COMPUTE, MessageTimes, Runtime, Span, TimeOf, TimesInTurn
from opticcl.units import counted, format_seconds

__all__ = [
    "COMPUTE",
    "Iteration",
    "MessageTimes",
    "Runtime",
    "Span",
    "TimeOf",
    "least_iteration_s",
    "refuse_below_rate",
    "replay",
    "simulate_iteration",
    "slowdown_of",
]


@dataclass(frozen=True, slots=True)
class Iteration:
    """Timeline of an iteration on the queues of one device.

    Args:
        job: task graph that was simulated.
        spans: in the order of their start.
        slowdown: factor on the computation time of the slowest device, `compute_scale` included.

    Times of a device are those of the busiest one, if the traces of several are known.
    """

    job: TaskGraph
    spans: tuple[Span, ...]
    slowdown: float = 1.0

    def __repr__(self) -> str:
        took, waits = format_seconds(self.total_s), format_seconds(self.exposed_s)
        return f"<Iteration of {self.job.name}: {took}, {waits} exposed, {counted(self.num_messages, 'message')}>"

    @property
    def total_s(self) -> float:
        """From the first start to the last end [s]."""
        return max((span.end_s for span in self.spans), default=0.0)

    @property
    def device(self) -> int:
        """Index of the device with the most computation."""
        busy = [0.0] * self.job.num_devices
        for span in self.spans:
            if span.queue == COMPUTE:
                busy[span.devices[0]] += span.end_s - span.start_s
        return busy.index(max(busy))

    def spans_of(self, device: int) -> tuple[Span, ...]:
        """Spans of a device, in the order of their start."""
        return tuple(span for span in self.spans if device in span.devices)

    @property
    def compute_s(self) -> float:
        """Computation of the device itself, without the pipeline stages that it waits for [s]."""
        return self._busy_s(lambda span: span.queue == COMPUTE and not self.waits_in(span))

    @property
    def bubble_s(self) -> float:
        """Time in which the device waits for other devices: pipeline stages, or ranks that have not arrived [s].

        Of several devices with traces of their own it is the time in which this one neither computes nor communicates.
        """
        if self.job.num_devices == 1:
            return self._busy_s(lambda span: span.queue == COMPUTE and self.waits_in(span))
        busy, until = 0.0, 0.0
        for span in sorted(self.spans_of(self.device), key=lambda span: span.start_s):
            busy += max(0.0, span.end_s - max(span.start_s, until))
            until = max(until, span.end_s)
        return max(0.0, self.total_s - busy)

    @property
    def communication_s(self) -> float:
        """Time in which a message of the device is on the network [s]."""
        covered_s, until = 0.0, 0.0
        for span in self.spans_of(self.device):
            if span.queue != COMPUTE:
                covered_s += max(0.0, span.end_s - max(span.start_s, until))
                until = max(until, span.end_s)
        return covered_s

    @property
    def duplex_s(self) -> float:
        """Time in which the device sends one transfer while it receives another [s]."""
        device, ports = self.device, Ports(self.job)
        covered_s, counted, until = 0.0, 0.0, [0.0, 0.0]  # sent, received
        for span in self.spans_of(device):
            if span.queue != COMPUTE:
                ways = [port % 2 for port in ports.of(self.job.tasks[span.tasks[0]]) if port // 2 == device]
                if len(ways) == 1:
                    both_s = min(span.end_s, until[1 - ways[0]])
                    covered_s += max(0.0, both_s - max(span.start_s, counted))
                    counted, until[ways[0]] = max(counted, both_s), max(until[ways[0]], span.end_s)
        return covered_s

    @property
    def messages_s(self) -> float:
        """Durations of all messages of the device, those of several streams added up [s]."""
        return self._busy_s(lambda span: span.queue != COMPUTE)

    @property
    def exposed_s(self) -> float:
        """Exposed communication: time in which the device waits for messages and computes nothing [s]."""
        return max(0.0, self.total_s - self.compute_s - self.bubble_s)

    @property
    def utilisation(self) -> float:
        """Share of the iteration in which the device computes."""
        return self.compute_s / self.total_s if self.total_s else 1.0

    @property
    def num_messages(self) -> int:
        """Messages of the device after fusion [count]."""
        return sum(span.queue != COMPUTE for span in self.spans_of(self.device))

    def _busy_s(self, wanted: Callable[[Span], bool]) -> float:
        return sum(span.end_s - span.start_s for span in self.spans_of(self.device) if wanted(span))

    def waits_in(self, span: Span) -> bool:
        """Whether a span of computation is that of other stages of a pipeline."""
        return self.job.tasks[span.tasks[0]].name.startswith(WAIT)

    def columns(self) -> dict[str, npt.NDArray[np.float64] | IntArray]:
        """Spans as columns: task (the first of a fused message), start_s, end_s, queue; a row a span."""
        return {
            "task": np.array([span.tasks[0] for span in self.spans], np.int64),
            "start_s": np.array([span.start_s for span in self.spans], np.float64),
            "end_s": np.array([span.end_s for span in self.spans], np.float64),
            "queue": np.array([span.queue for span in self.spans], np.int64),
        }

    def critical_path(self) -> tuple[int, ...]:
        """Rows of the spans on the critical path, in order: each started when the one before it ended."""
        if not self.spans:
            return ()
        row = max(range(len(self.spans)), key=lambda i: (self.spans[i].end_s, -i))
        path = [row]
        while (row := self.spans[row].cause) >= 0:
            path.append(row)
        return tuple(reversed(path))


def slowdown_of(factors: Mapping[int, float], num_ranks: int) -> float:
    """Factor of the slowest device, given the factor of some devices (1 for all others).

    >>> slowdown_of({3: 1.2}, 8), slowdown_of({0: 0.5}, 2), slowdown_of({0: 0.5, 1: 0.75}, 2)
    (1.2, 1.0, 0.75)

    Args:
        factors: device -> factor on its computation time.
        num_ranks: devices [count].
    Raises: ParameterError: no such device, or a factor that is not positive.
    """
    for rank, factor in factors.items():
        if not 0 <= rank < num_ranks:
            raise ParameterError(f"straggler: no device {rank}; give one from 0 to {num_ranks - 1}")
        if not 0 < factor < inf:
            raise ParameterError(f"straggler: the factor {factor:g} of device {rank} is not positive; try {rank}=1.2")
    usual = 1.0 if len(factors) < num_ranks else 0.0
    return max([usual, *factors.values()])


def simulate_iteration(
    job: TaskGraph,
    time_of: TimeOf | TimesInTurn,
    runtime: Runtime | None = None,
    stragglers: Mapping[int, float] | None = None,
    *,
    compute_scale: float = 1.0,
) -> Iteration:
    """Simulate a job on the queues of its slowest device, or of every device whose trace is known.

    Args:
        job: task graph.
        time_of: time of a collective of a size in a group.
        runtime: fusion, overlap and order; None: the defaults.
        stragglers: device -> factor on its computation time.
        compute_scale: speed of all devices relative to those of the job; 2 halves the time of all computation.
    Raises: ParameterError: no such straggler, or a scale that is not positive. BoundError: messages are faster than the rate
        of a node.
    """
    if not 0 < compute_scale < inf:
        raise ParameterError(
            f"compute_scale={compute_scale:g}: the speed relative to the job's devices is positive; 2 is twice as fast"
        )
    factors = stragglers or {}
    slowdown = slowdown_of(factors, job.num_ranks)
    slowdowns = [slowdown]
    if job.device_ranks:  # each device has its own factor
        if missing := sorted(set(factors) - set(job.device_ranks)):
            raise ParameterError(
                f"straggler: there is no trace of device {missing[0]}; give one of {job.device_ranks[0]}, ..."
            )
        slowdowns = [factors.get(rank, 1.0) for rank in job.device_ranks]
    slowdowns = [factor / compute_scale for factor in slowdowns]
    iteration = Iteration(job, EventLoop(job, time_of, runtime or Runtime(), slowdowns).run(), slowdown / compute_scale)
    if isinstance(time_of, MessageTimes):
        refuse_below_rate(iteration, time_of)
    return iteration


def replay(job: TaskGraph, streams: int | None = None) -> Iteration:
    """Simulate a recorded job with the recorded duration of every message, on its recorded stream.

    The difference to the recording is what the task graph does not have: idle times of the device, and dependencies that are
    not those of the recorded run. Recorded durations include the time for which messages shared a network, so here they do
    not slow each other down.

    Args:
        job: with recorded times.
        streams: concurrent messages of a device instead of the recorded streams [count].
    """
    slowdowns = [1.0] * job.num_devices
    return Iteration(job, EventLoop(job, None, Runtime(fusion="none", order="ready", streams=streams), slowdowns).run())


def least_iteration_s(job: TaskGraph, times: MessageTimes) -> float:
    """Time in which the busiest node sends, or receives, the bytes of its messages at its rate: a lower bound [s].

    A collective is counted for each member of its group and each device that takes part, a transfer where it is sent and where
    it is received, an uneven all_to_all with the parts of each member. Of a job of one device, which is in every group,
    collectives are also counted all together.

    Args:
        job: task graph.
        times: of messages, with the bytes that they move at least over the rate of a node.
    """
    sizes = Counter[tuple[str, str, tuple[int, ...]]]()
    uneven = Counter[tuple[str, int, Matrix]]()
    for task in job.tasks:
        if task.matrix_bytes:
            uneven[task.group, task.size_bytes, task.matrix_bytes] += 1
        elif task.communicates:
            sizes[task.collective, task.group, task.devices] += task.size_bytes
    ranks = [max(job.groups[name].ranks, default=0) for name in {task.group for task in job.tasks if task.communicates}]
    last = max([job.num_ranks, *(rank + 1 for rank in ranks), *(rank + 1 for rank in job.device_ranks)])
    nodes = np.zeros((2, last + 1))  # sent and received; the last is the device of a job of one
    for (collective, name, devices), size in sizes.items():
        group = job.groups[name]
        least_s = times.least_s(collective, group, size)
        if collective == "send_recv" and len(group.ranks) == 2:
            nodes[[0, 1], list(group.ranks)] += least_s
            continue
        also = {job.device_ranks[device] for device in devices} if job.device_ranks else {last}
        members = np.union1d(np.asarray(group.ranks), list(also))
        nodes[:, members] += least_s
    for (name, size, matrix), count in uneven.items():
        least_s, parts = times.least_s("all_to_all", job.groups[name], size, matrix), port_bytes(np.array(matrix))
        nodes[:, job.groups[name].ranks] += count * least_s * parts / max(1, parts.max())
        nodes[:, last] += 0.0 if job.device_ranks else count * least_s
    return float(nodes.max())


def refuse_below_rate(iteration: Iteration, times: MessageTimes) -> None:
    """Refuse an iteration in which a node moves more than its rate, which is a defect of the simulation.

    Args:
        iteration: simulated.
        times: of its messages.
    Raises: BoundError: it is shorter than `least_iteration_s`.
    """
    least_s = least_iteration_s(iteration.job, times)
    refuse_below(iteration.total_s, least_s, f"an iteration of {iteration.job.name}", times.tolerance)
