"""Parameters of the training framework's communication runtime, and the spans of a simulated timeline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from opticcl.errors import ParameterError
from opticcl.ir.task_graph import Matrix, ProcessGroup, TaskGraph
from opticcl.units import Seconds, WholeBytes

__all__ = ["COMPUTE", "MessageTimes", "Runtime", "Span", "TimeOf", "TimesInTurn", "num_streams"]

COMPUTE = 0
"""Number of the compute queue; communication queues are 1, 2, ..."""

TimeOf = Callable[[str, ProcessGroup, int], float]
"""(collective, group, message [bytes]) -> time [s]."""


class MessageTimes(ABC):
    """Times of messages between nodes whose rate is known, as a `TimeOf` that also has their parts."""

    tolerance: float = 0.0
    """Part of the bytes of a message that its times may leave out."""

    @abstractmethod
    def __call__(self, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()) -> float:
        """Time of a message that shares no node with another [s].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        """

    @abstractmethod
    def moving_s(self, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()) -> float:
        """Part of the time of a message in which its data moves, so that other messages of the same nodes slow it down [s].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        """

    @abstractmethod
    def least_s(self, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()) -> float:
        """Bytes that a rank must send or receive with any schedule, over the rate of its node [s].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        """


class TimesInTurn(ABC):
    """Times of messages that depend on those before them: called once a message, in the order in which they begin."""

    @abstractmethod
    def at(
        self, now_s: float, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()
    ) -> float:
        """From the time at which a message is ready and the network idle until it has arrived [s].

        Args:
            now_s: that time [s].
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Parameters of the communication runtime.

    Args:
        overlap: whether communication overlaps computation.
        fusion: "greedy" fuses gradients that are ready when the network becomes idle; "static" fills buffers in the order
            of the gradients; "none" sends every message separately.
        threshold_bytes: maximum size of a fused message; a larger gradient is sent alone [bytes].
        cycle_s: gradients start only at multiples of this; 0: at any time. Ignored without overlap [s].
        latency_s: negotiation time of each message of gradients [s].
        order: which ready message is sent first: "transfers_first" sends gradients last, "ready" the one that is ready
            longest, "job" sends all in the order of the job and waits for each.
        streams: concurrent messages of a device, which share its rate; if left out, those of the recording, else 1 [count].
    Raises: ParameterError: a value out of range.
    """

    overlap: bool = True
    fusion: Literal["greedy", "static", "none"] = "greedy"
    threshold_bytes: WholeBytes = 16_000_000
    cycle_s: Seconds = 0.0
    latency_s: Seconds = 0.0
    order: Literal["transfers_first", "ready", "job"] = "transfers_first"
    streams: int | None = None

    def __post_init__(self) -> None:
        if self.threshold_bytes < 0:
            raise ParameterError(f"fusion: threshold_bytes={self.threshold_bytes} is negative; 0 fuses nothing")
        for name in ("cycle_s", "latency_s"):
            if not 0 <= getattr(self, name) < inf:
                raise ParameterError(f"fusion: {name}={getattr(self, name)} is not a duration; give 0 or more seconds")
        if self.streams is not None and self.streams < 1:
            raise ParameterError(f"iteration: streams={self.streams} is not positive; give at least 1")


@dataclass(frozen=True, slots=True)
class Span:
    """An interval in which a queue is busy.

    Args:
        tasks: indices in the job: one task, or the gradients of a fused message.
        queue: 0 computation, 1 and more communication.
        start_s, end_s: since the start of the iteration [s].
        size_bytes: the message; 0 for computation [bytes].
        cause: row of the span whose end allowed it to start; -1 if none.
        devices: devices that it occupies, see `opticcl.ir.task_graph.TaskGraph.device_ranks`.
    """

    tasks: tuple[int, ...]
    queue: int
    start_s: float
    end_s: float
    size_bytes: int = 0
    cause: int = -1
    devices: tuple[int, ...] = (0,)


def num_streams(job: TaskGraph, runtime: Runtime) -> int:
    """Queues of messages of a device: as the runtime says, else as recorded; one without overlap [count].

    Args:
        job: task graph.
        runtime: of the framework.
    """
    if not runtime.overlap:
        return 1
    return runtime.streams or max((max(task.streams) for task in job.tasks if task.streams), default=1) or 1
