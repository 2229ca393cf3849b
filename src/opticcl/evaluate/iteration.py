"""An iteration of training: the tasks of a job played on the queues of one device.

::

    compute        f1  f2  f3  b3  b2  b1          one after the other, in the order of the job
    communication              [g3][g2 g1 fused]   one message at a time, or as many as there are streams

A task starts when what it waits for has ended and its queue is free. Gradients may travel together, as Horovod has them:
greedily, whatever is ready when the network falls idle up to a threshold, or statically, in buffers that are filled in the
order of the gradients and leave when they are full. Without overlap the device does one thing at a time, and gradients wait
until nothing is left to compute.

Reading: every collective waits for the slowest device, also where that one is in another group; so the slowest device's
iteration is everybody's.

Source: Horovod (Sergeev and Del Balso 2018) for tensor fusion; ODDL section 5.A as the notes restate it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.evaluate._player import Player
from opticcl.evaluate.runtime import COMPUTE, Runtime, Span, TimeOf
from opticcl.ir import IntArray
from opticcl.units import counted, format_seconds
from opticcl.workload.job import Job
from opticcl.workload.partition_tasks import WAIT

__all__ = ["COMPUTE", "Iteration", "Runtime", "Span", "TimeOf", "longest_chain_s", "play", "stretch_of"]


@dataclass(frozen=True, slots=True)
class Iteration:
    """How long an iteration takes, and what each queue did when.

    Args:
        job: what was played.
        spans: in the order of their start.
        stretch: what the slowest device multiplies computation by.
    """

    job: Job
    spans: tuple[Span, ...]
    stretch: float = 1.0

    def __repr__(self) -> str:
        took, waits = format_seconds(self.total_s), format_seconds(self.exposed_s)
        return f"<Iteration of {self.job.name}: {took}, {waits} of it waiting, {counted(self.num_messages, 'message')}>"

    @property
    def total_s(self) -> float:
        """From the first start to the last end [s]."""
        return max((span.end_s for span in self.spans), default=0.0)

    @property
    def compute_s(self) -> float:
        """Computation of the slowest device, that of others for which it waits in a pipeline aside [s]."""
        return self._busy_s(lambda span: span.queue == COMPUTE and not self.waits_in(span))

    @property
    def bubble_s(self) -> float:
        """Computation of the other stages of a pipeline, for which the device waits [s]."""
        return self._busy_s(lambda span: span.queue == COMPUTE and self.waits_in(span))

    @property
    def communication_s(self) -> float:
        """All messages, as if one after the other [s]."""
        return self._busy_s(lambda span: span.queue != COMPUTE)

    @property
    def exposed_s(self) -> float:
        """Time in which nothing is computed because messages are waited for [s]."""
        return max(0.0, self.total_s - self.compute_s - self.bubble_s)

    @property
    def utilisation(self) -> float:
        """Share of the iteration in which the device computes."""
        return self.compute_s / self.total_s if self.total_s else 1.0

    @property
    def num_messages(self) -> int:
        """Messages after fusion [count]."""
        return sum(span.queue != COMPUTE for span in self.spans)

    def _busy_s(self, wanted: Callable[[Span], bool]) -> float:
        return sum(span.end_s - span.start_s for span in self.spans if wanted(span))

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
        """Rows of the spans that decide the total, in order: each waited for the one before it."""
        if not self.spans:
            return ()
        row = max(range(len(self.spans)), key=lambda i: (self.spans[i].end_s, -i))
        path = [row]
        while (row := self.spans[row].cause) >= 0:
            path.append(row)
        return tuple(reversed(path))


def stretch_of(factors: Mapping[int, float], num_ranks: int) -> float:
    """What the slowest device multiplies computation by, where device r takes factors[r] times as long as it should.

    >>> stretch_of({3: 1.2}, 8), stretch_of({0: 0.5}, 2), stretch_of({0: 0.5, 1: 0.75}, 2)
    (1.2, 1.0, 0.75)

    Raises: ParameterError: no such device, or a factor that is not positive.
    """
    for rank, factor in factors.items():
        if not 0 <= rank < num_ranks:
            raise ParameterError(f"straggler: there is no device {rank}; try 0 to {num_ranks - 1}")
        if not 0 < factor < inf:
            raise ParameterError(f"straggler: device {rank} cannot take {factor:g} times as long; try {rank}=1.2")
    usual = 1.0 if len(factors) < num_ranks else 0.0
    return max([usual, *factors.values()])


def play(
    job: Job, time_of: TimeOf, runtime: Runtime | None = None, stragglers: Mapping[int, float] | None = None
) -> Iteration:
    """Play a job on the queues of its slowest device.

    Args:
        job: what there is to do.
        time_of: how long a collective of that size takes in that group.
        runtime: fusion, overlap and order; None: the defaults.
        stragglers: device -> what it multiplies its computation by.
    Raises: ParameterError: a straggler that does not exist.
    """
    stretch = stretch_of(stragglers or {}, job.num_ranks)
    return Iteration(job, Player(job, time_of, runtime or Runtime(), stretch).run(), stretch)


def longest_chain_s(job: Job, time_of: TimeOf, stretch: float = 1.0) -> float:
    """The longest chain of tasks that wait for each other, queues and fusion aside: no iteration can be shorter [s].

    It holds where a larger message never takes less time.
    """
    ends: list[float] = []
    for task in job.tasks:
        took = time_of(task.collective, job.groups[task.group], task.size_bytes) if task.communicates else 0.0
        starts = max((ends[i] for i in task.after), default=0.0)
        ends.append(starts + took + task.compute_s * stretch)
    return max(ends, default=0.0)
