"""What the software between model and network does, and the spans of time that come out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from opticcl.errors import ParameterError
from opticcl.workload.job import Group

__all__ = ["COMPUTE", "Runtime", "Span", "TimeOf"]

COMPUTE = 0
"""Queue of computation; those of communication are 1, 2, ..."""

TimeOf = Callable[[str, Group, int], float]
"""(collective, group, bytes) -> how long it takes [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What the software between model and network does.

    Args:
        overlap: whether communication runs beside computation.
        fusion: greedy fuses what is ready when the network falls idle; static fills buffers in the order of the gradients;
            none sends every message as it is.
        threshold_bytes: most that fused gradients may have in all; a larger one goes alone [bytes].
        cycle_s: gradients leave only at multiples of this; 0: at any time [s]. Without overlap nothing is waited for.
        latency_s: what it costs to agree on a message of gradients [s].
        order: which of the messages that are ready goes first: transfers_first takes gradients last, ready the one that has
            waited longest, and job waits for each in the order of the job, ready or not.
        streams: messages at a time, each as fast as if it were alone [count].
    Raises: ParameterError: a value out of range.
    """

    overlap: bool = True
    fusion: Literal["greedy", "static", "none"] = "greedy"
    threshold_bytes: int = 16_000_000
    cycle_s: float = 0.0
    latency_s: float = 0.0
    order: Literal["transfers_first", "ready", "job"] = "transfers_first"
    streams: int = 1

    def __post_init__(self) -> None:
        if self.threshold_bytes < 0:
            raise ParameterError(f"fusion: threshold_bytes={self.threshold_bytes} is negative; 0 fuses nothing")
        for name in ("cycle_s", "latency_s"):
            if not 0 <= getattr(self, name) < inf:
                raise ParameterError(f"fusion: {name}={getattr(self, name)} is no time; give 0 or more seconds")
        if self.streams < 1:
            raise ParameterError(f"iteration: {self.streams} streams; there is at least 1")


@dataclass(frozen=True, slots=True)
class Span:
    """What one queue did at a time.

    Args:
        tasks: of the job, by their place: one, or the gradients that travelled together.
        queue: 0 computation, 1 and more communication.
        start_s, end_s: from the start of the iteration [s].
        size_bytes: the message; 0 for computation [bytes].
        cause: row of the span whose end it waited for last; -1 if none.
    """

    tasks: tuple[int, ...]
    queue: int
    start_s: float
    end_s: float
    size_bytes: int = 0
    cause: int = -1
